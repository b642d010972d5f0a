//! Defines faults, the places where a message differs from the schema.

use std::fmt;

/// A place where a message differs from the schema.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaFault {
    /// The path of the value in the message, such as `params.update.content.text`.
    pub path: String,
    /// How the value differs from the schema.
    pub kind: SchemaFaultKind,
}

/// How a value differs from the schema.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SchemaFaultKind {
    /// A required field is missing.
    Missing,
    /// The value has the wrong type.
    Type {
        /// The expected type, in words.
        expected: String,
        /// The type of the value, in words.
        found: String,
    },
    /// The value is not one of the allowed values.
    Value {
        /// The values that the schema allows, as JSON.
        allowed: Vec<String>,
        /// The value in the message, as JSON.
        found: String,
    },
    /// The specification does not define the field, and reserves all field names in its types (section
    /// "Extensibility"). Extensions belong in `_meta`.
    UnknownField,
    /// The value is a relative path, but all file paths must be absolute (section "Overview").
    RelativePath {
        /// The relative path in the message.
        found: String,
    },
    /// The string does not have the required format.
    Format {
        /// The format that the schema requires, in words.
        expected: &'static str,
        /// The string in the message.
        found: String,
    },
    /// The message is not a valid JSON-RPC 2.0 message. The text is the reason.
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
