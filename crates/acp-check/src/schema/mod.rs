//! The shapes of messages, and whether a message has its own.
//!
//! Strict, where `acp-wire` is tolerant: it says what differs from the schema, also where every reader would
//! overlook it. The shapes are in `v1.shapes` and `v2.shapes`, and `notation.rs` says how they are written.

mod judge;
mod message;
mod notation;

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

use acp_wire::{Method, v1, v2};
use serde_json::Value;

pub use message::{Direction, Envelope};

use notation::Shape;

/// The shapes of one version's messages.
#[derive(Debug)]
pub struct Schema {
    shapes: HashMap<&'static str, Shape>,
    methods: &'static [Method],
    version: Version,
}

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// Version 1.
    V1,
    /// Version 2, a draft.
    V2,
}

impl Version {
    /// What `protocolVersion` says in `initialize`.
    #[must_use]
    pub fn number(self) -> u16 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.number())
    }
}

static V1: LazyLock<Schema> =
    LazyLock::new(|| Schema::read(Version::V1, include_str!("v1.shapes"), v1::METHODS));
static V2: LazyLock<Schema> =
    LazyLock::new(|| Schema::read(Version::V2, include_str!("v2.shapes"), v2::METHODS));

impl Schema {
    /// The shapes of a version.
    #[must_use]
    pub fn of(version: Version) -> &'static Self {
        match version {
            Version::V1 => &V1,
            Version::V2 => &V2,
        }
    }

    fn read(version: Version, text: &'static str, methods: &'static [Method]) -> Self {
        let (shapes, _) = notation::read(text);
        Self {
            shapes,
            methods,
            version,
        }
    }

    /// Which version's it is.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Every method of the version.
    #[must_use]
    pub fn methods(&self) -> &'static [Method] {
        self.methods
    }

    /// The method of that name.
    #[must_use]
    pub fn method(&self, name: &str) -> Option<&'static Method> {
        self.methods.iter().find(|method| method.name == name)
    }

    /// The names of all shapes, such as `PromptRequest`.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.shapes.keys().copied()
    }

    /// Every field that a shape or one of its variants may have, but for those of the unstable schema.
    #[must_use]
    pub fn fields(&self, name: &str) -> Vec<&'static str> {
        match self.shapes.get(name) {
            Some(Shape::Object(object)) => {
                let stable = object.fields.iter().filter(|field| !field.unstable);
                stable.map(|field| field.name).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The values of the tag by which the variants of a shape are told apart, but for those of the unstable schema.
    #[must_use]
    pub fn variants(&self, name: &str) -> Vec<&'static str> {
        match self.shapes.get(name) {
            Some(Shape::Object(object)) => {
                let variants = object.union.iter().flat_map(|union| &union.variants);
                let stable = variants.filter(|variant| !variant.unstable);
                stable.map(|variant| variant.value).collect()
            }
            _ => Vec::new(),
        }
    }

    /// What is wrong with `value` as a `name`, such as `PromptRequest`; nothing if it has that shape, or if there
    /// is no such shape. Places are told from `root` on: `params.prompt[0].text`.
    #[must_use]
    pub fn judge(&self, name: &str, value: &Value, root: &str) -> Vec<Fault> {
        judge::judge(self, name, value, root)
    }
}

/// Where a message differs from the schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// The place, such as `params.update.content.text`.
    pub path: String,
    /// What is wrong there.
    pub kind: FaultKind,
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FaultKind {
    /// A required field is missing.
    Missing,
    /// The value is of another type.
    Type {
        /// What it should be, in words.
        expected: String,
        /// What it is, in words.
        found: String,
    },
    /// The value is none of those that there are.
    Value {
        /// Those that there are, as JSON.
        allowed: Vec<String>,
        /// What it is, as JSON.
        found: String,
    },
    /// The field is not part of the specification, which keeps all names of its own types for itself
    /// (Extensibility): extensions belong into `_meta`.
    UnknownField,
    /// A path that is not absolute (Overview: all file paths are).
    RelativePath {
        /// The path.
        found: String,
    },
    /// A string that has not the form it must have.
    Form {
        /// What it should be, in words.
        expected: &'static str,
        /// The string.
        found: String,
    },
    /// It is no message of JSON-RPC 2.0, and why.
    Envelope(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.kind {
            FaultKind::Missing => write!(f, "`{path}` is missing"),
            FaultKind::Type { expected, found } => {
                write!(f, "`{path}` must be {expected}, and is {found}")
            }
            FaultKind::Value { allowed, found } => {
                let allowed = allowed.join(", ");
                write!(f, "`{path}` must be one of {allowed}, and is {found}")
            }
            FaultKind::UnknownField => write!(
                f,
                "`{path}` is not part of the specification; fields of one's own belong into `_meta`"
            ),
            FaultKind::RelativePath { found } => {
                write!(f, "`{path}` must be an absolute path, and is {found:?}")
            }
            FaultKind::Form { expected, found } => {
                write!(f, "`{path}` must be {expected}, and is {found:?}")
            }
            FaultKind::Envelope(why) => f.write_str(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shapes_can_be_read_and_name_only_what_is_there() {
        for (version, text) in [
            (Version::V1, include_str!("v1.shapes")),
            (Version::V2, include_str!("v2.shapes")),
        ] {
            let (_, mistakes) = notation::read(text);
            assert_eq!(mistakes, Vec::<String>::new(), "{version}");
            assert_eq!(
                judge::names_without_shape(Schema::of(version)),
                Vec::<&str>::new(),
                "{version}"
            );
        }
    }

    #[test]
    fn every_stable_method_has_its_shapes() {
        for version in [Version::V1, Version::V2] {
            let schema = Schema::of(version);
            for method in schema.methods().iter().filter(|m| m.unstable.is_none()) {
                for name in [Some(method.params), method.result].into_iter().flatten() {
                    assert!(
                        schema.shapes.contains_key(name),
                        "{version}: {} has {name}, which has no shape",
                        method.name
                    );
                }
            }
        }
    }
}
