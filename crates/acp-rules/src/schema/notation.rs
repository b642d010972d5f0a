//! Defines and parses the notation in which shapes are written.
//!
//! ```text
//! # a comment
//! Name = type                                  another name for a type
//! Name { field: type, optional?: type }        an object; any object may have `_meta`
//! Name { field: type
//!     by tag {                                 more fields, by the value of the field `tag`
//!         value: Other
//!         absent: Other                        if the field is missing; accepts any value of it, too
//!         else: Other                          if it has any other value; unknown fields are allowed
//!     }
//! }
//! Name { field: type, one of One | Other }     an object that also has the fields of one of these
//! ```
//!
//! A type is `string bool number object null any`, `int32 int64 uint16 uint32 uint64`, `path` (absolute), `uri`,
//! `date-time`, `currency`; a constant in quotes or a number; `[type]`, `{type}` for a map; a name; and alternatives of
//! these with `|`. A `~` before a field or a variant means that only the unstable schema has it. The field or variant
//! is then accepted but not checked.

use std::collections::HashMap;

use serde_json::Value;

/// The definition of a named shape.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ShapeDefinition {
    Alias(ShapeType),
    Object(ShapeObject),
}

/// The shape of an object: its fields and the variants of its tags.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ShapeObject {
    pub(super) fields: Vec<ShapeField>,
    pub(super) union: Option<ShapeUnion>,
    /// The names of alternative objects. The fields of exactly one of them are added to this object.
    pub(super) one_of: Vec<&'static str>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ShapeField {
    pub(super) name: &'static str,
    pub(super) optional: bool,
    pub(super) unstable: bool,
    pub(super) ty: ShapeType,
}

/// The fields of an object that depend on the value of one of its fields, the tag.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ShapeUnion {
    pub(super) tag: &'static str,
    pub(super) variants: Vec<ShapeVariant>,
    /// The object to use if the tag is missing. It also accepts any value of the tag.
    pub(super) untagged: Option<&'static str>,
    /// The object to use for an unknown tag. `Some("")` if its fields are unknown.
    pub(super) fallback: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ShapeVariant {
    pub(super) value: &'static str,
    /// The name of the object that contains the variant's fields. Empty if there are no fields.
    pub(super) object: &'static str,
    pub(super) unstable: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ShapeType {
    Any,
    Null,
    Bool,
    String,
    Number,
    Object,
    /// An integer in an inclusive range.
    Integer(i128, i128),
    Path,
    Uri,
    DateTime,
    Currency,
    Constant(Value),
    List(Box<ShapeType>),
    Map(Box<ShapeType>),
    AnyOf(Vec<ShapeType>),
    Named(&'static str),
}

/// Parses shapes. Skips lines with errors, and returns descriptions of the errors in the second list. A test ensures
/// that this list is empty.
pub(super) fn parse_shapes(
    text: &'static str,
) -> (HashMap<&'static str, ShapeDefinition>, Vec<String>) {
    let mut reader = NotationReader {
        tokens: tokenize(text),
        position: 0,
    };
    let mut shapes = HashMap::new();
    let mut mistakes = Vec::new();
    while let Some(&(token, line)) = reader.tokens.get(reader.position) {
        if token == "\n" {
            reader.position += 1;
            continue;
        }
        match reader.read_definition() {
            Some((name, shape)) => {
                if shapes.insert(name, shape).is_some() {
                    mistakes.push(format!("line {line}: duplicate name {name}"));
                }
            }
            None => {
                let line = reader.tokens.get(reader.position).map_or(line, |t| t.1);
                mistakes.push(format!("line {line}: cannot parse this line"));
                reader.skip_line();
            }
        }
    }
    (shapes, mistakes)
}

/// Splits `text` into words, punctuation and line ends, along with their line numbers.
fn tokenize(text: &'static str) -> Vec<(&'static str, usize)> {
    let mut tokens = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut rest = line.split('#').next().unwrap_or_default().trim_start();
        while let Some(first) = rest.chars().next() {
            let word = |c: char| c.is_alphanumeric() || "_-~".contains(c);
            let length = if first == '"' {
                rest.get(1..)
                    .and_then(|rest| rest.find('"'))
                    .map_or(rest.len(), |end| end + 2)
            } else if word(first) {
                rest.find(|c| !word(c)).unwrap_or(rest.len())
            } else {
                first.len_utf8()
            };
            let (token, after) = rest.split_at(length);
            tokens.push((token, number + 1));
            rest = after.trim_start();
        }
        tokens.push(("\n", number + 1));
    }
    tokens
}

struct NotationReader {
    tokens: Vec<(&'static str, usize)>,
    position: usize,
}

impl NotationReader {
    fn peek(&self) -> &'static str {
        self.tokens.get(self.position).map_or("", |token| token.0)
    }

    fn next(&mut self) -> &'static str {
        let token = self.peek();
        self.position += 1;
        token
    }

    fn consume(&mut self, token: &str) -> bool {
        let found = self.peek() == token;
        if found {
            self.position += 1;
        }
        found
    }

    /// Skips the commas and line ends between fields.
    fn skip_separators(&mut self) {
        while self.consume("\n") || self.consume(",") {}
    }

    fn skip_line(&mut self) {
        while !matches!(self.next(), "\n" | "") {}
    }

    fn read_word(&mut self) -> Option<&'static str> {
        let token = self.next();
        let is_word = token.starts_with(|c: char| c.is_alphanumeric() || "_~".contains(c));
        is_word.then_some(token)
    }

    fn read_definition(&mut self) -> Option<(&'static str, ShapeDefinition)> {
        let name = self.read_word()?;
        let shape = if self.consume("=") {
            ShapeDefinition::Alias(self.read_alternatives()?)
        } else if self.consume("{") {
            ShapeDefinition::Object(self.read_object()?)
        } else {
            return None;
        };
        Some((name, shape))
    }

    /// Reads the rest of an object's definition, after its `{`.
    fn read_object(&mut self) -> Option<ShapeObject> {
        let mut object = ShapeObject::default();
        loop {
            self.skip_separators();
            if self.consume("}") {
                return Some(object);
            }
            let name = self.read_word()?;
            match (name, self.peek()) {
                ("by", tag) if tag != ":" && tag != "?" => object.union = Some(self.read_union()?),
                ("one", "of") => {
                    self.position += 1;
                    object.one_of.push(self.read_word()?);
                    while self.consume("|") {
                        object.one_of.push(self.read_word()?);
                    }
                }
                _ => object.fields.push(self.read_field(name)?),
            }
        }
    }

    fn read_field(&mut self, name: &'static str) -> Option<ShapeField> {
        let optional = self.consume("?");
        if !self.consume(":") {
            return None;
        }
        let of = self.read_alternatives()?;
        Some(ShapeField {
            name: name.trim_start_matches('~'),
            optional,
            unstable: name.starts_with('~'),
            ty: of,
        })
    }

    fn read_union(&mut self) -> Option<ShapeUnion> {
        let mut union = ShapeUnion {
            tag: self.read_word()?,
            variants: Vec::new(),
            untagged: None,
            fallback: None,
        };
        if !self.consume("{") {
            return None;
        }
        loop {
            self.skip_separators();
            if self.consume("}") {
                return Some(union);
            }
            let value = self.read_word()?;
            if !self.consume(":") {
                return None;
            }
            let object = if self.consume("{") {
                self.consume("}").then_some("")?
            } else {
                self.read_word()?
            };
            match value {
                "absent" => union.untagged = Some(object),
                "else" => union.fallback = Some(object),
                _ => union.variants.push(ShapeVariant {
                    value: value.trim_start_matches('~'),
                    object,
                    unstable: value.starts_with('~'),
                }),
            }
        }
    }

    fn read_alternatives(&mut self) -> Option<ShapeType> {
        let first = self.read_type()?;
        if self.peek() != "|" {
            return Some(first);
        }
        let mut either = vec![first];
        while self.consume("|") {
            either.push(self.read_type()?);
        }
        Some(ShapeType::AnyOf(either))
    }

    fn read_type(&mut self) -> Option<ShapeType> {
        let token = self.next();
        Some(match token {
            "[" => {
                let item = self.read_alternatives()?;
                self.consume("]").then(|| ShapeType::List(Box::new(item)))?
            }
            "{" => {
                let item = self.read_alternatives()?;
                self.consume("}").then(|| ShapeType::Map(Box::new(item)))?
            }
            "any" => ShapeType::Any,
            "null" => ShapeType::Null,
            "bool" => ShapeType::Bool,
            "string" => ShapeType::String,
            "number" => ShapeType::Number,
            "object" => ShapeType::Object,
            "int32" => ShapeType::Integer(i32::MIN.into(), i32::MAX.into()),
            "int64" => ShapeType::Integer(i64::MIN.into(), i64::MAX.into()),
            "uint16" => ShapeType::Integer(0, u16::MAX.into()),
            "uint32" => ShapeType::Integer(0, u32::MAX.into()),
            "uint64" => ShapeType::Integer(0, u64::MAX.into()),
            "path" => ShapeType::Path,
            "uri" => ShapeType::Uri,
            "date-time" => ShapeType::DateTime,
            "currency" => ShapeType::Currency,
            _ if token.starts_with(['"', '-']) => {
                ShapeType::Constant(serde_json::from_str(token).ok()?)
            }
            _ if token.starts_with(|c: char| c.is_ascii_uppercase()) => ShapeType::Named(token),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notation_is_parsed() {
        let (shapes, mistakes) = parse_shapes(
            "# one of each kind\n\
             A = \"x\" | -3 | [string] | {B} | null\n\
             B { one: int32, two?: A | null, ~three?: any, one of C | D }\n\
             C {\n  id: string\n  by type {\n    b: B\n    ~u: any\n    absent: C\n    else: {}\n  }\n}\n",
        );
        assert_eq!(mistakes, Vec::<String>::new());
        let Some(ShapeDefinition::Object(b)) = shapes.get("B") else {
            panic!("B is an object");
        };
        assert_eq!(b.fields.len(), 3);
        assert!(b.fields[1].optional && b.fields[2].unstable);
        assert_eq!(b.one_of, ["C", "D"]);
        let Some(ShapeDefinition::Object(c)) = shapes.get("C") else {
            panic!("C is an object");
        };
        let union = c.union.as_ref().unwrap();
        assert_eq!((union.tag, union.variants.len()), ("type", 2));
        assert_eq!((union.untagged, union.fallback), (Some("C"), Some("")));
        let Some(ShapeDefinition::Alias(ShapeType::AnyOf(a))) = shapes.get("A") else {
            panic!("A is a choice");
        };
        assert_eq!(a.len(), 5);
    }

    #[test]
    fn syntax_error_is_reported_with_its_line() {
        let (shapes, mistakes) = parse_shapes("A = string\nB { x y }\nC = nothing\nA = null\n");
        assert_eq!(shapes.len(), 1);
        assert_eq!(
            mistakes,
            [
                "line 2: cannot parse this line",
                "line 3: cannot parse this line",
                "line 4: duplicate name A"
            ]
        );
    }
}
