//! Defines the context shared by all drawing code.

use std::path::Path;

use crate::Theme;
use crate::images::ImageCanvas;

/// The data that all drawing code needs for one frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DrawContext<'a> {
    pub(crate) theme: &'a Theme,
    /// The directory to which displayed file paths are relative.
    pub(crate) cwd: &'a Path,
    /// The number of animation steps so far, which selects the spinner's frame.
    pub(crate) frame: usize,
    /// The canvas for images, if images are shown.
    pub(crate) images: Option<ImageCanvas>,
}

/// The frames of the spinner, shown while something is in progress.
pub(crate) const SPINNER_FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
