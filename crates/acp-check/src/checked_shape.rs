//! What a check of shapes looks at.

/// What is looked at by a check of shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CheckedShape {
    /// The shape, such as `PromptResponse`.
    pub shape: &'static str,
    /// The value of the tag, where the shape is one of several: `plan`, in `SessionUpdate`.
    pub variant: Option<&'static str>,
}
