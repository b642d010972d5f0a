//! The notation of the shapes, and its reader.
//!
//! ```text
//! # a comment
//! Name = type                                  what a name stands for
//! Name { field: type, optional?: type }        an object; `_meta` may be in every one
//! Name { field: type
//!     by tag {                                 more fields, by what the field `tag` says
//!         value: Other
//!         absent: Other                        where there is no such field, or what it says does not count
//!         else: Other                          where it says something else, and more fields may follow
//!     }
//! }
//! Name { field: type, one of One | Other }     and the fields of one of these
//! ```
//!
//! A type is `string bool number object null any`, `int32 int64 uint16 uint32 uint64`, `path` (absolute), `uri`,
//! `date-time`, `currency`; a constant in quotes or a number; `[type]`, `{type}` for a map; a name; and
//! alternatives of these with `|`. `~` before a field or a variant: the unstable schema alone has it, so it is
//! known and not judged.

use std::collections::HashMap;

use serde_json::Value;

/// What a name stands for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    Alias(Type),
    Object(Object),
}

/// An object, and what may be in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Object {
    pub(super) fields: Vec<Field>,
    pub(super) union: Option<Union>,
    /// The fields of exactly one of these objects are in it too.
    pub(super) one_of: Vec<&'static str>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) optional: bool,
    pub(super) unstable: bool,
    pub(super) of: Type,
}

/// Further fields of an object, by the value of one of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Union {
    pub(super) tag: &'static str,
    pub(super) variants: Vec<Variant>,
    /// The object where there is no tag. It takes any tag, too.
    pub(super) absent: Option<&'static str>,
    /// The object where the tag is none of the variants; `Some("")` if nothing more is known of it.
    pub(super) other: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Variant {
    pub(super) value: &'static str,
    /// The object with its fields; empty if it has none.
    pub(super) object: &'static str,
    pub(super) unstable: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Type {
    Any,
    Null,
    Bool,
    String,
    Number,
    Object,
    /// An integer between the two, both included.
    Integer(i128, i128),
    Path,
    Uri,
    DateTime,
    Currency,
    Constant(Value),
    List(Box<Type>),
    Map(Box<Type>),
    Either(Vec<Type>),
    Named(&'static str),
}

/// Reads shapes. What cannot be read is told with its line, and left out: a test makes sure that there is nothing
/// of the kind.
pub(super) fn read(text: &'static str) -> (HashMap<&'static str, Shape>, Vec<String>) {
    let mut reader = Reader {
        tokens: tokens(text),
        at: 0,
    };
    let mut shapes = HashMap::new();
    let mut mistakes = Vec::new();
    while let Some(&(token, line)) = reader.tokens.get(reader.at) {
        if token == "\n" {
            reader.at += 1;
            continue;
        }
        match reader.definition() {
            Some((name, shape)) => {
                if shapes.insert(name, shape).is_some() {
                    mistakes.push(format!("line {line}: {name} is there twice"));
                }
            }
            None => {
                let line = reader.tokens.get(reader.at).map_or(line, |t| t.1);
                mistakes.push(format!("line {line}: this cannot be read"));
                reader.skip_line();
            }
        }
    }
    (shapes, mistakes)
}

/// The words, marks and line ends of `text`, with their lines.
fn tokens(text: &'static str) -> Vec<(&'static str, usize)> {
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

struct Reader {
    tokens: Vec<(&'static str, usize)>,
    at: usize,
}

impl Reader {
    fn peek(&self) -> &'static str {
        self.tokens.get(self.at).map_or("", |token| token.0)
    }

    fn next(&mut self) -> &'static str {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn takes(&mut self, token: &str) -> bool {
        let found = self.peek() == token;
        if found {
            self.at += 1;
        }
        found
    }

    /// Between two fields.
    fn skip_separators(&mut self) {
        while self.takes("\n") || self.takes(",") {}
    }

    fn skip_line(&mut self) {
        while !matches!(self.next(), "\n" | "") {}
    }

    fn word(&mut self) -> Option<&'static str> {
        let token = self.next();
        let is_word = token.starts_with(|c: char| c.is_alphanumeric() || "_~".contains(c));
        is_word.then_some(token)
    }

    fn definition(&mut self) -> Option<(&'static str, Shape)> {
        let name = self.word()?;
        let shape = if self.takes("=") {
            Shape::Alias(self.alternatives()?)
        } else if self.takes("{") {
            Shape::Object(self.object()?)
        } else {
            return None;
        };
        Some((name, shape))
    }

    /// What is left of an object behind its `{`.
    fn object(&mut self) -> Option<Object> {
        let mut object = Object::default();
        loop {
            self.skip_separators();
            if self.takes("}") {
                return Some(object);
            }
            let name = self.word()?;
            match (name, self.peek()) {
                ("by", tag) if tag != ":" && tag != "?" => object.union = Some(self.union()?),
                ("one", "of") => {
                    self.at += 1;
                    object.one_of.push(self.word()?);
                    while self.takes("|") {
                        object.one_of.push(self.word()?);
                    }
                }
                _ => object.fields.push(self.field(name)?),
            }
        }
    }

    fn field(&mut self, name: &'static str) -> Option<Field> {
        let optional = self.takes("?");
        if !self.takes(":") {
            return None;
        }
        let of = self.alternatives()?;
        Some(Field {
            name: name.trim_start_matches('~'),
            optional,
            unstable: name.starts_with('~'),
            of,
        })
    }

    fn union(&mut self) -> Option<Union> {
        let mut union = Union {
            tag: self.word()?,
            variants: Vec::new(),
            absent: None,
            other: None,
        };
        if !self.takes("{") {
            return None;
        }
        loop {
            self.skip_separators();
            if self.takes("}") {
                return Some(union);
            }
            let value = self.word()?;
            if !self.takes(":") {
                return None;
            }
            let object = if self.takes("{") {
                self.takes("}").then_some("")?
            } else {
                self.word()?
            };
            match value {
                "absent" => union.absent = Some(object),
                "else" => union.other = Some(object),
                _ => union.variants.push(Variant {
                    value: value.trim_start_matches('~'),
                    object,
                    unstable: value.starts_with('~'),
                }),
            }
        }
    }

    fn alternatives(&mut self) -> Option<Type> {
        let first = self.of()?;
        if self.peek() != "|" {
            return Some(first);
        }
        let mut either = vec![first];
        while self.takes("|") {
            either.push(self.of()?);
        }
        Some(Type::Either(either))
    }

    fn of(&mut self) -> Option<Type> {
        let token = self.next();
        Some(match token {
            "[" => {
                let item = self.alternatives()?;
                self.takes("]").then(|| Type::List(Box::new(item)))?
            }
            "{" => {
                let item = self.alternatives()?;
                self.takes("}").then(|| Type::Map(Box::new(item)))?
            }
            "any" => Type::Any,
            "null" => Type::Null,
            "bool" => Type::Bool,
            "string" => Type::String,
            "number" => Type::Number,
            "object" => Type::Object,
            "int32" => Type::Integer(i32::MIN.into(), i32::MAX.into()),
            "int64" => Type::Integer(i64::MIN.into(), i64::MAX.into()),
            "uint16" => Type::Integer(0, u16::MAX.into()),
            "uint32" => Type::Integer(0, u32::MAX.into()),
            "uint64" => Type::Integer(0, u64::MAX.into()),
            "path" => Type::Path,
            "uri" => Type::Uri,
            "date-time" => Type::DateTime,
            "currency" => Type::Currency,
            _ if token.starts_with(['"', '-']) => Type::Constant(serde_json::from_str(token).ok()?),
            _ if token.starts_with(|c: char| c.is_ascii_uppercase()) => Type::Named(token),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_can_be_written_is_read() {
        let (shapes, mistakes) = read(
            "# of everything\n\
             A = \"x\" | -3 | [string] | {B} | null\n\
             B { one: int32, two?: A | null, ~three?: any, one of C | D }\n\
             C {\n  id: string\n  by type {\n    b: B\n    ~u: any\n    absent: C\n    else: {}\n  }\n}\n",
        );
        assert_eq!(mistakes, Vec::<String>::new());
        let Some(Shape::Object(b)) = shapes.get("B") else {
            panic!("B is an object");
        };
        assert_eq!(b.fields.len(), 3);
        assert!(b.fields[1].optional && b.fields[2].unstable);
        assert_eq!(b.one_of, ["C", "D"]);
        let Some(Shape::Object(c)) = shapes.get("C") else {
            panic!("C is an object");
        };
        let union = c.union.as_ref().unwrap();
        assert_eq!((union.tag, union.variants.len()), ("type", 2));
        assert_eq!((union.absent, union.other), (Some("C"), Some("")));
        let Some(Shape::Alias(Type::Either(a))) = shapes.get("A") else {
            panic!("A is a choice");
        };
        assert_eq!(a.len(), 5);
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        let (shapes, mistakes) = read("A = string\nB { x y }\nC = nothing\nA = null\n");
        assert_eq!(shapes.len(), 1);
        assert_eq!(
            mistakes,
            [
                "line 2: this cannot be read",
                "line 3: this cannot be read",
                "line 4: A is there twice"
            ]
        );
    }
}
