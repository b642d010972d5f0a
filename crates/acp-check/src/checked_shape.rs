//! The subject of a schema check.

/// The shape that a schema check inspects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CheckedShape {
    /// The shape, such as `PromptResponse`.
    pub shape: &'static str,
    /// The value of the tag, if the shape has variants: `plan`, in `SessionUpdate`.
    pub variant: Option<&'static str>,
}
