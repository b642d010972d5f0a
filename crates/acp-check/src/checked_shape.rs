//! Defines the shape that a schema check covers.

/// A shape in the schema, against which a check validates messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CheckedShape {
    /// The name of the shape in the schema, such as `PromptResponse`.
    pub shape: &'static str,
    /// The value of the tag, such as `plan` for `SessionUpdate`, if the shape has variants.
    pub variant: Option<&'static str>,
}
