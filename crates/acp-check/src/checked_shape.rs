//! The shape that a schema check is about.

/// A shape in the schema that a check compares messages with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CheckedShape {
    /// The name of the shape in the schema, such as `PromptResponse`.
    pub shape: &'static str,
    /// The value of the tag, such as `plan` for `SessionUpdate`, if the shape has variants.
    pub variant: Option<&'static str>,
}
