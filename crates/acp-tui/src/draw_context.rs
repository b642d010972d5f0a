//! The context that all drawing code shares.

use std::path::Path;

use crate::Theme;
use crate::images::ImageCanvas;

/// The context that all drawing code shares.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DrawContext<'a> {
    pub(crate) theme: &'a Theme,
    /// The directory that file paths are shown relative to.
    pub(crate) cwd: &'a Path,
    /// The number of animation steps so far: the frame of a spinner.
    pub(crate) frame: usize,
    /// What images are drawn on, if they are shown.
    pub(crate) images: Option<ImageCanvas>,
}

/// The frames of the animation that shows that something is in progress.
pub(crate) const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
