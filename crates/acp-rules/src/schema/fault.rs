//! What is wrong with a message, and where.

use std::fmt;

/// Where a message differs from the schema.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaFault {
    /// The place, such as `params.update.content.text`.
    pub path: String,
    /// What is wrong there.
    pub kind: SchemaFaultKind,
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SchemaFaultKind {
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
    Format {
        /// What it should be, in words.
        expected: &'static str,
        /// The string.
        found: String,
    },
    /// It is no message of JSON-RPC 2.0, and why.
    Envelope(String),
}

impl fmt::Display for SchemaFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.kind {
            SchemaFaultKind::Missing => write!(f, "`{path}` is missing"),
            SchemaFaultKind::Type { expected, found } => {
                write!(f, "`{path}` must be {expected}, but is {found}")
            }
            SchemaFaultKind::Value { allowed, found } => {
                let allowed = allowed.join(", ");
                write!(f, "`{path}` must be one of {allowed}, but is {found}")
            }
            SchemaFaultKind::UnknownField => write!(
                f,
                "`{path}` is not in the specification; custom fields belong in `_meta`"
            ),
            SchemaFaultKind::RelativePath { found } => {
                write!(f, "`{path}` must be an absolute path, but is {found:?}")
            }
            SchemaFaultKind::Format { expected, found } => {
                write!(f, "`{path}` must be {expected}, but is {found:?}")
            }
            SchemaFaultKind::Envelope(why) => f.write_str(why),
        }
    }
}
