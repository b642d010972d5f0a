//! What a schema check is about.

/// The shape that a schema check compares messages with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CheckedShape {
    /// The shape, such as `PromptResponse`.
    pub shape: &'static str,
    /// The value of the tag, such as `plan` for `SessionUpdate`, if the shape has variants.
    pub variant: Option<&'static str>,
}
