//! Comparing a value with its shape.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::fault::{Fault, FaultKind};
use super::notation::{Field, Object, Shape, Type, Union};
use super::shapes::Schema;

/// How deep a value may be nested. No shape is: what is deeper is `any`, which is not looked into.
const DEEPEST: usize = 64;

/// How many faults of one message are told. One that is wrong everywhere is told well enough by these.
const MOST: usize = 256;

/// How much of a wrong string is quoted.
const QUOTED: usize = 80;

impl Schema {
    /// What is wrong with `value` as a `name`, such as `PromptRequest`; nothing if it has that shape, or if there
    /// is no such shape. Places are told from `root` on: `params.prompt[0].text`.
    #[must_use]
    pub fn judge(&self, name: &str, value: &Value, root: &str) -> Vec<Fault> {
        judge(self, name, value, root)
    }
}

fn judge(schema: &Schema, name: &str, value: &Value, root: &str) -> Vec<Fault> {
    let mut judge = Judge {
        schema,
        path: root.to_owned(),
        depth: 0,
        faults: Vec::new(),
    };
    judge.named(name, value);
    judge.faults
}

struct Judge<'a> {
    schema: &'a Schema,
    path: String,
    depth: usize,
    faults: Vec<Fault>,
}

impl<'a> Judge<'a> {
    fn fault(&mut self, kind: FaultKind) {
        if self.faults.len() < MOST {
            let path = self.path.clone();
            self.faults.push(Fault { path, kind });
        }
    }

    /// Does `work` one step further down.
    fn at(&mut self, step: Step<'_>, work: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        // Writing to a string cannot fail.
        let _ = match step {
            Step::Field(name) if self.path.is_empty() => write!(self.path, "{name}"),
            Step::Field(name) => write!(self.path, ".{name}"),
            Step::Item(index) => write!(self.path, "[{index}]"),
        };
        self.depth += 1;
        if self.depth <= DEEPEST {
            work(self);
        }
        self.depth -= 1;
        self.path.truncate(length);
    }

    fn named(&mut self, name: &str, value: &Value) {
        match self.schema.shapes.get(name) {
            None => {}
            Some(Shape::Alias(of)) => self.of(of, value),
            Some(Shape::Object(object)) => match value {
                Value::Object(fields) => self.object(object, fields),
                other => self.wrong_type("an object", other),
            },
        }
    }

    fn object(&mut self, object: &'a Object, fields: &Map<String, Value>) {
        let mut known = vec!["_meta"];
        let open = self.fields_of(object, fields, &mut known);
        if let Some(meta) = fields.get("_meta") {
            self.at(Step::Field("_meta"), |judge| {
                if !meta.is_object() && !meta.is_null() {
                    judge.wrong_type("an object", meta);
                }
            });
        }
        if open {
            return;
        }
        for name in fields.keys() {
            if !known.contains(&name.as_str()) {
                self.at(Step::Field(name), |judge| {
                    judge.fault(FaultKind::UnknownField);
                });
            }
        }
    }

    /// Judges the fields of an object, and adds their names to those that are known. Gives whether it may have
    /// others.
    fn fields_of(
        &mut self,
        object: &'a Object,
        fields: &Map<String, Value>,
        known: &mut Vec<&'a str>,
    ) -> bool {
        for field in &object.fields {
            known.push(field.name);
            self.field(field, fields);
        }
        let mut open = false;
        if let Some(union) = &object.union {
            known.push(union.tag);
            open |= self.variant(union, fields, known);
        }
        if !object.one_of.is_empty() {
            let mut best: Option<(Vec<Fault>, Vec<&'a str>)> = None;
            for name in &object.one_of {
                let Some(one) = self.object_named(name) else {
                    continue;
                };
                let mut names = Vec::new();
                let faults = std::mem::take(&mut self.faults);
                self.fields_of(one, fields, &mut names);
                let found = std::mem::replace(&mut self.faults, faults);
                if best
                    .as_ref()
                    .is_none_or(|(least, _)| found.len() < least.len())
                {
                    best = Some((found, names));
                }
            }
            if let Some((found, names)) = best {
                self.faults.extend(found);
                known.extend(names);
            }
        }
        open
    }

    /// Judges the fields that an object has by its tag. Gives whether it may have others.
    fn variant(
        &mut self,
        union: &'a Union,
        fields: &Map<String, Value>,
        known: &mut Vec<&'a str>,
    ) -> bool {
        let tag = fields.get(union.tag);
        let variant = tag.and_then(Value::as_str).and_then(|tag| {
            let mut variants = union.variants.iter();
            variants.find(|variant| variant.value == tag)
        });
        if let Some(variant) = variant {
            let before = std::mem::take(&mut self.faults);
            let open = self.fields_named(variant.object, fields, known);
            let found = std::mem::replace(&mut self.faults, before);
            // The one without a tag has nothing against one: what it takes is right.
            let untagged = union.absent.filter(|_| !found.is_empty());
            if let Some(untagged) = untagged {
                let before = std::mem::take(&mut self.faults);
                let open = self.fields_named(untagged, fields, known);
                let taken = std::mem::replace(&mut self.faults, before).is_empty();
                if taken {
                    return open;
                }
            }
            self.faults.extend(found);
            return open || variant.unstable;
        }
        match (tag, union.other, union.absent) {
            (Some(Value::String(_)), Some(other), _) => {
                self.fields_named(other, fields, known);
                true
            }
            (_, _, Some(untagged)) => self.fields_named(untagged, fields, known),
            (tag, _, None) => {
                self.at(Step::Field(union.tag), |judge| match tag {
                    None => judge.fault(FaultKind::Missing),
                    Some(Value::String(tag)) => {
                        let allowed = union.variants.iter().filter(|variant| !variant.unstable);
                        let allowed = allowed.map(|variant| format!("{:?}", variant.value));
                        let allowed = allowed.collect();
                        let found = quoted(tag);
                        judge.fault(FaultKind::Value { allowed, found });
                    }
                    Some(other) => judge.wrong_type("a string", other),
                });
                true
            }
        }
    }

    fn fields_named(
        &mut self,
        name: &str,
        fields: &Map<String, Value>,
        known: &mut Vec<&'a str>,
    ) -> bool {
        self.object_named(name)
            .is_some_and(|object| self.fields_of(object, fields, known))
    }

    fn object_named(&self, name: &str) -> Option<&'a Object> {
        match self.schema.shapes.get(name) {
            Some(Shape::Object(object)) => Some(object),
            _ => None,
        }
    }

    fn field(&mut self, field: &'a Field, fields: &Map<String, Value>) {
        if field.unstable {
            return;
        }
        match fields.get(field.name) {
            Some(value) => self.at(Step::Field(field.name), |judge| judge.of(&field.of, value)),
            None if field.optional => {}
            None => self.at(Step::Field(field.name), |judge| {
                judge.fault(FaultKind::Missing);
            }),
        }
    }

    fn of(&mut self, of: &'a Type, value: &Value) {
        match (of, value) {
            (Type::Any, _)
            | (Type::Null, Value::Null)
            | (Type::Bool, Value::Bool(_))
            | (Type::String, Value::String(_))
            | (Type::Number, Value::Number(_))
            | (Type::Object, Value::Object(_)) => {}
            (Type::Integer(least, most), Value::Number(number)) => {
                let whole = number
                    .as_i64()
                    .map(i128::from)
                    .or(number.as_u64().map(i128::from));
                // JSON has no integers: 1.0 is 1.
                let whole = whole.or_else(|| {
                    let float = number.as_f64()?;
                    (float.fract() == 0.0 && float.abs() < 1e18).then_some(float as i128)
                });
                if !whole.is_some_and(|n| (*least..=*most).contains(&n)) {
                    let found = number.to_string();
                    let expected = words(of);
                    self.fault(FaultKind::Type { expected, found });
                }
            }
            (Type::Path, Value::String(path)) => {
                if !is_absolute(path) {
                    let found = short(path);
                    self.fault(FaultKind::RelativePath { found });
                }
            }
            (Type::Uri, Value::String(uri)) => self.form("a URI", uri, is_uri),
            (Type::DateTime, Value::String(time)) => {
                self.form("a time as in RFC 3339", time, is_date_time);
            }
            (Type::Currency, Value::String(currency)) => {
                self.form("a currency as in ISO 4217", currency, is_currency);
            }
            (Type::Constant(constant), value) => {
                if value != constant {
                    let allowed = vec![constant.to_string()];
                    let found = brief(value);
                    self.fault(FaultKind::Value { allowed, found });
                }
            }
            (Type::List(of), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.at(Step::Item(index), |judge| judge.of(of, item));
                }
            }
            (Type::Map(of), Value::Object(entries)) => {
                for (name, entry) in entries {
                    self.at(Step::Field(name), |judge| judge.of(of, entry));
                }
            }
            (Type::Named(name), value) => self.named(name, value),
            (Type::Either(either), value) => self.either(either, value),
            (of, value) => self.wrong_type(&words(of), value),
        }
    }

    fn form(&mut self, expected: &'static str, found: &str, fits: impl Fn(&str) -> bool) {
        if !fits(found) {
            let found = short(found);
            self.fault(FaultKind::Form { expected, found });
        }
    }

    /// One of several: if none fits, what is told is what is wrong with the one that was meant.
    fn either(&mut self, either: &'a [Type], value: &Value) {
        let mut best: Option<Vec<Fault>> = None;
        for of in either {
            let before = std::mem::take(&mut self.faults);
            self.of(of, value);
            let found = std::mem::replace(&mut self.faults, before);
            if found.is_empty() {
                return;
            }
            let deep = |faults: &[Fault]| faults.iter().all(|fault| self.is_of_the_kind(fault));
            let better = match &best {
                None => true,
                Some(least) => (!deep(&found), found.len()) < (!deep(least), least.len()),
            };
            if better {
                best = Some(found);
            }
        }
        let deep = best
            .as_ref()
            .is_some_and(|faults| faults.iter().all(|fault| self.is_of_the_kind(fault)));
        if deep {
            self.faults.extend(best.into_iter().flatten());
            return;
        }
        let constants = either.iter().filter_map(|of| match of {
            Type::Constant(constant) => Some(constant.to_string()),
            _ => None,
        });
        let allowed: Vec<String> = constants.collect();
        if allowed.is_empty() || !(value.is_string() || value.is_number()) {
            let expected: Vec<String> = either.iter().map(|of| self.expected(of)).collect();
            self.wrong_type(&expected.join(" or "), value);
        } else {
            let found = brief(value);
            self.fault(FaultKind::Value { allowed, found });
        }
    }

    /// Whether a value with this fault is of the kind that was looked for: it is wrong further down, or a string that
    /// has not its form.
    fn is_of_the_kind(&self, fault: &Fault) -> bool {
        let form = matches!(
            fault.kind,
            FaultKind::RelativePath { .. } | FaultKind::Form { .. }
        );
        form || fault.path != self.path
    }

    fn wrong_type(&mut self, expected: &str, found: &Value) {
        let expected = expected.to_owned();
        let found = match found {
            Value::Null => "null".to_owned(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => brief(found),
            Value::Array(_) => "an array".to_owned(),
            Value::Object(_) => "an object".to_owned(),
        };
        self.fault(FaultKind::Type { expected, found });
    }

    /// A type in words, with what its name stands for.
    fn expected(&self, of: &Type) -> String {
        match of {
            Type::Named(name) => match self.schema.shapes.get(name) {
                Some(Shape::Alias(of)) => self.expected(of),
                _ => "an object".to_owned(),
            },
            of => words(of),
        }
    }
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Item(usize),
}

/// A type in words.
fn words(of: &Type) -> String {
    match of {
        Type::Any => "anything".to_owned(),
        Type::Null => "null".to_owned(),
        Type::Bool => "true or false".to_owned(),
        Type::String | Type::Path | Type::Uri | Type::DateTime | Type::Currency => {
            "a string".to_owned()
        }
        Type::Number => "a number".to_owned(),
        Type::Object | Type::Map(_) | Type::Named(_) => "an object".to_owned(),
        Type::Integer(least, most) => match (*least, *most) {
            (0, most) => format!("an integer from 0 to {most}"),
            _ => "an integer".to_owned(),
        },
        Type::Constant(constant) => constant.to_string(),
        Type::List(_) => "an array".to_owned(),
        Type::Either(either) => {
            let words: Vec<String> = either.iter().map(words).collect();
            words.join(" or ")
        }
    }
}

/// A string that is not made longer than a person reads.
fn short(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

fn quoted(text: &str) -> String {
    format!("{:?}", short(text))
}

fn brief(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => short(&other.to_string()),
    }
}

/// On any system: the one at the other end of the pipe may be another.
fn is_absolute(path: &str) -> bool {
    let bytes = path.as_bytes();
    let drive = matches!(bytes, [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    path.starts_with('/') || path.starts_with("\\\\") || drive
}

/// A scheme and something behind it.
fn is_uri(uri: &str) -> bool {
    let Some((scheme, rest)) = uri.split_once(':') else {
        return false;
    };
    let letter = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(letter)
        && !rest.is_empty()
        && !uri.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// `2026-01-31T12:00:00.5+01:00`, by its form.
fn is_date_time(time: &str) -> bool {
    let bytes = time.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes
            .get(range)
            .is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    let marks = [(4, "-"), (7, "-"), (10, "Tt "), (13, ":"), (16, ":")];
    let marked = |&(at, marks): &(usize, &str)| {
        bytes
            .get(at)
            .is_some_and(|mark| marks.as_bytes().contains(mark))
    };
    let numbers = [0..4, 5..7, 8..10, 11..13, 14..16, 17..19];
    if !marks.iter().all(marked) || !numbers.into_iter().all(digits) {
        return false;
    }
    let mut rest = time.get(19..).unwrap_or_default();
    if let Some(fraction) = rest.strip_prefix('.') {
        let end = fraction
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(fraction.len());
        if end == 0 {
            return false;
        }
        rest = fraction.get(end..).unwrap_or_default();
    }
    let offset = rest.as_bytes();
    matches!(rest, "Z" | "z")
        || matches!(offset, [b'+' | b'-', a, b, b':', c, d]
            if [a, b, c, d].iter().all(|digit| digit.is_ascii_digit()))
}

fn is_currency(currency: &str) -> bool {
    currency.len() == 3 && currency.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// The names that shapes use and that stand for nothing.
#[cfg(test)]
pub(super) fn names_without_shape(schema: &Schema) -> Vec<&'static str> {
    fn named(of: &Type, names: &mut Vec<&'static str>) {
        match of {
            Type::Named(name) => names.push(name),
            Type::List(of) | Type::Map(of) => named(of, names),
            Type::Either(either) => either.iter().for_each(|of| named(of, names)),
            _ => {}
        }
    }
    let mut names = Vec::new();
    for shape in schema.shapes.values() {
        match shape {
            Shape::Alias(of) => named(of, &mut names),
            Shape::Object(object) => {
                object.fields.iter().for_each(|f| named(&f.of, &mut names));
                names.extend(object.one_of.iter());
                if let Some(union) = &object.union {
                    let stable = union.variants.iter().filter(|v| !v.unstable);
                    let all = stable.map(|v| v.object);
                    names.extend(all.chain(union.absent).chain(union.other));
                }
            }
        }
    }
    names.retain(|name| !name.is_empty() && !schema.shapes.contains_key(name));
    names.sort_unstable();
    names.dedup();
    names
}
