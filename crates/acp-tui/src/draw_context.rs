//! Defines the context that all drawing code shares.

use std::path::Path;

use crate::Theme;
use crate::images::ImageCanvas;

/// The context that all drawing code shares.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DrawContext<'a> {
    pub(crate) theme: &'a Theme,
    /// The directory to which the shown file paths are relative.
    pub(crate) cwd: &'a Path,
    /// The number of animation steps so far, which selects a spinner's frame.
    pub(crate) frame: usize,
    /// The canvas for images, if images are shown.
    pub(crate) images: Option<ImageCanvas>,
}

/// The frames of the spinner, which shows that something is in progress.
pub(crate) const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
