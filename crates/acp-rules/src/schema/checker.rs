//! Checks JSON values against shapes.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::fault::{SchemaFault, SchemaFaultKind};
use super::notation::{ShapeDefinition, ShapeField, ShapeObject, ShapeType, ShapeUnion};
use super::shapes::Schema;

/// The maximum nesting depth to check. No shape is nested more deeply, so deeper values are not checked.
const MAX_NESTING_DEPTH: usize = 64;

/// The maximum number of faults to report for one message.
const MAX_FAULTS: usize = 256;

/// The maximum length of a string quoted in a fault, in bytes.
const MAX_QUOTE_LEN: usize = 80;

impl Schema {
    /// Checks a value against a shape, such as `PromptRequest`, and returns the faults. Returns no faults if no shape
    /// has this name. Paths start with `root`, as in `params.prompt[0].text`.
    #[must_use]
    pub fn check_value(&self, name: &str, value: &Value, root: &str) -> Vec<SchemaFault> {
        check_value(self, name, value, root)
    }
}

fn check_value(schema: &Schema, name: &str, value: &Value, root: &str) -> Vec<SchemaFault> {
    let mut judge = SchemaChecker {
        schema,
        path: root.to_owned(),
        depth: 0,
        faults: Vec::new(),
    };
    judge.check_named_shape(name, value);
    judge.faults
}

struct SchemaChecker<'a> {
    schema: &'a Schema,
    path: String,
    depth: usize,
    faults: Vec<SchemaFault>,
}

impl<'a> SchemaChecker<'a> {
    fn add_fault(&mut self, kind: SchemaFaultKind) {
        if self.faults.len() < MAX_FAULTS {
            let path = self.path.clone();
            self.faults.push(SchemaFault { path, kind });
        }
    }

    /// Calls `work` after adding a segment to the path.
    fn descend(&mut self, step: PathSegment<'_>, work: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        // Writing to a string cannot fail.
        let _ = match step {
            PathSegment::Field(name) if self.path.is_empty() => write!(self.path, "{name}"),
            PathSegment::Field(name) => write!(self.path, ".{name}"),
            PathSegment::Item(index) => write!(self.path, "[{index}]"),
        };
        self.depth += 1;
        if self.depth <= MAX_NESTING_DEPTH {
            work(self);
        }
        self.depth -= 1;
        self.path.truncate(length);
    }

    fn check_named_shape(&mut self, name: &str, value: &Value) {
        match self.schema.shapes.get(name) {
            None => {}
            Some(ShapeDefinition::Alias(of)) => self.check_type(of, value),
            Some(ShapeDefinition::Object(object)) => match value {
                Value::Object(fields) => self.check_object(object, fields),
                other => self.add_wrong_type("an object", other),
            },
        }
    }

    fn check_object(&mut self, object: &'a ShapeObject, fields: &Map<String, Value>) {
        let mut known = vec!["_meta"];
        let open = self.check_fields(object, fields, &mut known);
        if let Some(meta) = fields.get("_meta") {
            self.descend(PathSegment::Field("_meta"), |judge| {
                if !meta.is_object() && !meta.is_null() {
                    judge.add_wrong_type("an object", meta);
                }
            });
        }
        if open {
            return;
        }
        for name in fields.keys() {
            if !known.contains(&name.as_str()) {
                self.descend(PathSegment::Field(name), |judge| {
                    judge.add_fault(SchemaFaultKind::UnknownField);
                });
            }
        }
    }

    /// Checks the fields of an object, and adds their names to `known`. Returns `true` if other fields are allowed in
    /// the object.
    fn check_fields(
        &mut self,
        object: &'a ShapeObject,
        fields: &Map<String, Value>,
        known: &mut Vec<&'a str>,
    ) -> bool {
        for field in &object.fields {
            known.push(field.name);
            self.check_field(field, fields);
        }
        let mut open = false;
        if let Some(union) = &object.union {
            known.push(union.tag);
            open |= self.check_variant(union, fields, known);
        }
        if !object.one_of.is_empty() {
            let mut best: Option<(Vec<SchemaFault>, Vec<&'a str>)> = None;
            for name in &object.one_of {
                let Some(one) = self.find_object(name) else {
                    continue;
                };
                let mut names = Vec::new();
                let faults = std::mem::take(&mut self.faults);
                self.check_fields(one, fields, &mut names);
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

    /// Checks the fields that depend on an object's tag. Returns `true` if other fields are allowed in the object.
    fn check_variant(
        &mut self,
        union: &'a ShapeUnion,
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
            let open = self.check_named_fields(variant.object, fields, known);
            let found = std::mem::replace(&mut self.faults, before);
            // A value that matches the untagged object is also valid.
            let untagged = union.untagged.filter(|_| !found.is_empty());
            if let Some(untagged) = untagged {
                let before = std::mem::take(&mut self.faults);
                let open = self.check_named_fields(untagged, fields, known);
                let taken = std::mem::replace(&mut self.faults, before).is_empty();
                if taken {
                    return open;
                }
            }
            self.faults.extend(found);
            return open || variant.unstable;
        }
        match (tag, union.fallback, union.untagged) {
            (Some(Value::String(_)), Some(other), _) => {
                self.check_named_fields(other, fields, known);
                true
            }
            (_, _, Some(untagged)) => self.check_named_fields(untagged, fields, known),
            (tag, _, None) => {
                self.descend(PathSegment::Field(union.tag), |judge| match tag {
                    None => judge.add_fault(SchemaFaultKind::Missing),
                    Some(Value::String(tag)) => {
                        let allowed = union.variants.iter().filter(|variant| !variant.unstable);
                        let allowed = allowed.map(|variant| format!("{:?}", variant.value));
                        let allowed = allowed.collect();
                        let found = quote(tag);
                        judge.add_fault(SchemaFaultKind::Value { allowed, found });
                    }
                    Some(other) => judge.add_wrong_type("a string", other),
                });
                true
            }
        }
    }

    fn check_named_fields(
        &mut self,
        name: &str,
        fields: &Map<String, Value>,
        known: &mut Vec<&'a str>,
    ) -> bool {
        self.find_object(name)
            .is_some_and(|object| self.check_fields(object, fields, known))
    }

    fn find_object(&self, name: &str) -> Option<&'a ShapeObject> {
        match self.schema.shapes.get(name) {
            Some(ShapeDefinition::Object(object)) => Some(object),
            _ => None,
        }
    }

    fn check_field(&mut self, field: &'a ShapeField, fields: &Map<String, Value>) {
        if field.unstable {
            return;
        }
        match fields.get(field.name) {
            Some(value) => self.descend(PathSegment::Field(field.name), |judge| {
                judge.check_type(&field.ty, value)
            }),
            None if field.optional => {}
            None => self.descend(PathSegment::Field(field.name), |judge| {
                judge.add_fault(SchemaFaultKind::Missing);
            }),
        }
    }

    fn check_type(&mut self, of: &'a ShapeType, value: &Value) {
        match (of, value) {
            (ShapeType::Any, _)
            | (ShapeType::Null, Value::Null)
            | (ShapeType::Bool, Value::Bool(_))
            | (ShapeType::String, Value::String(_))
            | (ShapeType::Number, Value::Number(_))
            | (ShapeType::Object, Value::Object(_)) => {}
            (ShapeType::Integer(least, most), Value::Number(number)) => {
                let whole = number
                    .as_i64()
                    .map(i128::from)
                    .or(number.as_u64().map(i128::from));
                // JSON does not distinguish integers: 1.0 is 1.
                let whole = whole.or_else(|| {
                    let float = number.as_f64()?;
                    (float.fract() == 0.0 && float.abs() < 1e18).then_some(float as i128)
                });
                if !whole.is_some_and(|n| (*least..=*most).contains(&n)) {
                    let found = number.to_string();
                    let expected = describe_type(of);
                    self.add_fault(SchemaFaultKind::Type { expected, found });
                }
            }
            (ShapeType::Path, Value::String(path)) => {
                if !is_absolute(path) {
                    let found = truncate(path);
                    self.add_fault(SchemaFaultKind::RelativePath { found });
                }
            }
            (ShapeType::Uri, Value::String(uri)) => self.check_format("a URI", uri, is_uri),
            (ShapeType::DateTime, Value::String(time)) => {
                self.check_format("an RFC 3339 timestamp", time, is_date_time);
            }
            (ShapeType::Currency, Value::String(currency)) => {
                self.check_format("an ISO 4217 currency code", currency, is_currency);
            }
            (ShapeType::Constant(constant), value) => {
                if value != constant {
                    let allowed = vec![constant.to_string()];
                    let found = describe_value(value);
                    self.add_fault(SchemaFaultKind::Value { allowed, found });
                }
            }
            (ShapeType::List(of), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.descend(PathSegment::Item(index), |judge| judge.check_type(of, item));
                }
            }
            (ShapeType::Map(of), Value::Object(entries)) => {
                for (name, entry) in entries {
                    self.descend(PathSegment::Field(name), |judge| {
                        judge.check_type(of, entry)
                    });
                }
            }
            (ShapeType::Named(name), value) => self.check_named_shape(name, value),
            (ShapeType::AnyOf(either), value) => self.check_any_of(either, value),
            (of, value) => self.add_wrong_type(&describe_type(of), value),
        }
    }

    fn check_format(&mut self, expected: &'static str, found: &str, fits: impl Fn(&str) -> bool) {
        if !fits(found) {
            let found = truncate(found);
            self.add_fault(SchemaFaultKind::Format { expected, found });
        }
    }

    /// Checks a value against alternatives. If none matches, reports the faults for the alternative that was most
    /// likely intended.
    fn check_any_of(&mut self, either: &'a [ShapeType], value: &Value) {
        let mut best: Option<Vec<SchemaFault>> = None;
        for of in either {
            let before = std::mem::take(&mut self.faults);
            self.check_type(of, value);
            let found = std::mem::replace(&mut self.faults, before);
            if found.is_empty() {
                return;
            }
            let deep = |faults: &[SchemaFault]| faults.iter().all(|fault| self.matches_kind(fault));
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
            .is_some_and(|faults| faults.iter().all(|fault| self.matches_kind(fault)));
        if deep {
            self.faults.extend(best.into_iter().flatten());
            return;
        }
        let constants = either.iter().filter_map(|of| match of {
            ShapeType::Constant(constant) => Some(constant.to_string()),
            _ => None,
        });
        let allowed: Vec<String> = constants.collect();
        if allowed.is_empty() || !(value.is_string() || value.is_number()) {
            let expected: Vec<String> =
                either.iter().map(|of| self.describe_expected(of)).collect();
            self.add_wrong_type(&expected.join(" or "), value);
        } else {
            let found = describe_value(value);
            self.add_fault(SchemaFaultKind::Value { allowed, found });
        }
    }

    /// Returns `true` if the value has the right type and only a nested value or a string's format is wrong.
    fn matches_kind(&self, fault: &SchemaFault) -> bool {
        let form = matches!(
            fault.kind,
            SchemaFaultKind::RelativePath { .. } | SchemaFaultKind::Format { .. }
        );
        form || fault.path != self.path
    }

    fn add_wrong_type(&mut self, expected: &str, found: &Value) {
        let expected = expected.to_owned();
        let found = match found {
            Value::Null => "null".to_owned(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => describe_value(found),
            Value::Array(_) => "an array".to_owned(),
            Value::Object(_) => "an object".to_owned(),
        };
        self.add_fault(SchemaFaultKind::Type { expected, found });
    }

    /// Describes a type in words, resolving named types.
    fn describe_expected(&self, of: &ShapeType) -> String {
        match of {
            ShapeType::Named(name) => match self.schema.shapes.get(name) {
                Some(ShapeDefinition::Alias(of)) => self.describe_expected(of),
                _ => "an object".to_owned(),
            },
            of => describe_type(of),
        }
    }
}

#[derive(Clone, Copy)]
enum PathSegment<'a> {
    Field(&'a str),
    Item(usize),
}

/// Describes a type in words, without resolving named types.
fn describe_type(of: &ShapeType) -> String {
    match of {
        ShapeType::Any => "anything".to_owned(),
        ShapeType::Null => "null".to_owned(),
        ShapeType::Bool => "a boolean".to_owned(),
        ShapeType::String
        | ShapeType::Path
        | ShapeType::Uri
        | ShapeType::DateTime
        | ShapeType::Currency => "a string".to_owned(),
        ShapeType::Number => "a number".to_owned(),
        ShapeType::Object | ShapeType::Map(_) | ShapeType::Named(_) => "an object".to_owned(),
        ShapeType::Integer(least, most) => match (*least, *most) {
            (0, most) => format!("an integer from 0 to {most}"),
            _ => "an integer".to_owned(),
        },
        ShapeType::Constant(constant) => constant.to_string(),
        ShapeType::List(_) => "an array".to_owned(),
        ShapeType::AnyOf(either) => {
            let words: Vec<String> = either.iter().map(describe_type).collect();
            words.join(" or ")
        }
    }
}

/// Truncates a string to the maximum length for quoting.
fn truncate(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTE_LEN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

fn quote(text: &str) -> String {
    format!("{:?}", truncate(text))
}

fn describe_value(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        other => truncate(&other.to_string()),
    }
}

/// Returns `true` if a path is absolute on any operating system, because the peer may run on a different one.
fn is_absolute(path: &str) -> bool {
    let bytes = path.as_bytes();
    let drive = matches!(bytes, [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    path.starts_with('/') || path.starts_with("\\\\") || drive
}

/// Returns `true` if a string looks like a URI: a scheme, a colon, and something after it.
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

/// Returns `true` if a string is a date and time such as `2026-01-31T12:00:00.5+01:00`.
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

/// Returns the names of shapes that are used but not defined.
#[cfg(test)]
pub(super) fn names_without_shape(schema: &Schema) -> Vec<&'static str> {
    fn collect_shape_names(of: &ShapeType, names: &mut Vec<&'static str>) {
        match of {
            ShapeType::Named(name) => names.push(name),
            ShapeType::List(of) | ShapeType::Map(of) => collect_shape_names(of, names),
            ShapeType::AnyOf(either) => either.iter().for_each(|of| collect_shape_names(of, names)),
            _ => {}
        }
    }
    let mut names = Vec::new();
    for shape in schema.shapes.values() {
        match shape {
            ShapeDefinition::Alias(of) => collect_shape_names(of, &mut names),
            ShapeDefinition::Object(object) => {
                object
                    .fields
                    .iter()
                    .for_each(|f| collect_shape_names(&f.ty, &mut names));
                names.extend(object.one_of.iter());
                if let Some(union) = &object.union {
                    let stable = union.variants.iter().filter(|v| !v.unstable);
                    let all = stable.map(|v| v.object);
                    names.extend(all.chain(union.untagged).chain(union.fallback));
                }
            }
        }
    }
    names.retain(|name| !name.is_empty() && !schema.shapes.contains_key(name));
    names.sort_unstable();
    names.dedup();
    names
}
