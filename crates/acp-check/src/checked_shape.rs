//! Defines the message shape that a schema check covers.

/// A shape in the schema that a check validates messages against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CheckedShape {
    /// The name of the shape in the schema, such as `PromptResponse`.
    pub shape: &'static str,
    /// The tag's value, such as `plan` for `SessionUpdate`, if the shape has variants.
    pub variant: Option<&'static str>,
}
