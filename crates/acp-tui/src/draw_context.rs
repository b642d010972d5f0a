//! What everything that is drawn has to know.

use std::path::Path;

use crate::Theme;
use crate::images::ImageCanvas;

/// What everything that is drawn has to know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DrawContext<'a> {
    pub(crate) theme: &'a Theme,
    /// Files below it are named from there.
    pub(crate) cwd: &'a Path,
    /// How often what moves has moved: the frame of a spinner.
    pub(crate) frame: usize,
    /// What images are drawn on, if they are shown.
    pub(crate) images: Option<ImageCanvas>,
}

/// What shows that something goes on, frame by frame.
pub(crate) const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
