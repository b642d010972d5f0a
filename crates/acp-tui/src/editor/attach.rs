//! The files attached to a prompt, shown above it as a line of chips.

use std::path::{Path, PathBuf};

use acp::v1::PromptCapabilities;
use acp_host::AttachmentKind;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::popup::draw_truncated;
use super::rows::column_count;
use crate::Theme;

/// The maximum number of files attached to one prompt.
const MAX_FILES: usize = 32;
/// The maximum width of a file name in a chip, in columns.
const MAX_NAME_WIDTH: u16 = 32;

/// The files attached to a prompt.
#[derive(Debug, Default)]
pub(crate) struct Attachments {
    files: Vec<(PathBuf, String)>,
}

impl Attachments {
    pub(crate) fn new(files: Vec<PathBuf>) -> Self {
        let files = files.into_iter().map(|file| {
            let label = chip_label(&file);
            (file, label)
        });
        let files = files.collect();
        Self { files }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Attaches a file. Returns an error message if the agent does not accept it.
    pub(crate) fn add(&mut self, file: &Path, takes: &PromptCapabilities) -> Result<(), String> {
        let name = || acp_host::terminal_text::clean_line(&file.to_string_lossy());
        match AttachmentKind::from_path(file) {
            AttachmentKind::Image if !takes.image => {
                return Err(format!("{}: this agent does not accept images", name()));
            }
            AttachmentKind::Audio if !takes.audio => {
                return Err(format!("{}: this agent does not accept audio", name()));
            }
            _ => {}
        }
        if self.files.iter().any(|(other, _)| other == file) {
            return Ok(());
        }
        if self.files.len() == MAX_FILES {
            return Err(format!(
                "{}: too many attachments (limit: {MAX_FILES})",
                name()
            ));
        }
        self.files.push((file.to_owned(), chip_label(file)));
        Ok(())
    }

    /// Removes the last file. Returns `false` if there is none.
    pub(crate) fn remove_last(&mut self) -> bool {
        self.files.pop().is_some()
    }

    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.files.iter().map(|(file, _)| file.clone()).collect()
    }

    pub(crate) fn draw(&self, line: Rect, buf: &mut Buffer, theme: &Theme) {
        let mut x = line.x;
        for (index, (_, label)) in self.files.iter().enumerate() {
            let wide = column_count(label).min(MAX_NAME_WIDTH);
            let left = self.files.len() - index;
            let more = format!("+{left} more");
            let last = left == 1;
            let for_more = if last { 0 } else { column_count(&more) + 1 };
            let room = line.right().saturating_sub(x);
            if wide + 2 + for_more > room && index > 0 {
                draw_truncated(buf, x, line.y, &more, room, theme.dim);
                return;
            }
            let wide = wide.min(room.saturating_sub(2));
            let end = draw_truncated(buf, x + 1, line.y, label, wide, theme.accent);
            let chip = Rect::new(x, line.y, (end + 1).saturating_sub(x), 1).intersection(line);
            buf.set_style(chip, theme.selected);
            x = chip.right() + 1;
        }
    }
}

/// Returns the label of a chip: the file's type and name.
fn chip_label(file: &Path) -> String {
    let kind = match AttachmentKind::from_path(file) {
        AttachmentKind::Image => "image",
        AttachmentKind::Audio => "sound",
        AttachmentKind::Other => "file",
    };
    let name = file.file_name().unwrap_or(file.as_os_str());
    let name = acp_host::terminal_text::clean_line(&name.to_string_lossy());
    format!("{kind} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw_chips(files: &[&str], width: u16) -> String {
        let attachments = Attachments::new(files.iter().map(PathBuf::from).collect());
        let line = Rect::new(0, 0, width, 1);
        let mut buf = Buffer::empty(line);
        attachments.draw(line, &mut buf, &Theme::default());
        (0..width).map(|x| buf[(x, 0)].symbol()).collect()
    }

    #[test]
    fn chips_name_attachments_and_count_the_rest() {
        let files = ["/a/b.png", "/c.txt", "/d/e\u{1b}[2J.wav"];
        assert_eq!(
            draw_chips(&files, 40),
            format!("{:40}", " image b.png   file c.txt   sound e.wav ")
        );
        assert_eq!(
            draw_chips(&files, 24),
            format!("{:24}", " image b.png  +2 more")
        );
        assert_eq!(draw_chips(&files, 9), " image … ");
        for width in 0..60 {
            draw_chips(&files, width);
        }
    }

    #[test]
    fn unsupported_attachment_is_rejected() {
        let mut attachments = Attachments::default();
        let none = PromptCapabilities::new();
        let refused = attachments.add(Path::new("/a.png"), &none).unwrap_err();
        assert_eq!(refused, "/a.png: this agent does not accept images");
        attachments.add(Path::new("/a.txt"), &none).unwrap();
        attachments.add(Path::new("/a.txt"), &none).unwrap();
        assert_eq!(attachments.files(), [Path::new("/a.txt")]);
        for i in 0..MAX_FILES - 1 {
            attachments.add(Path::new(&format!("/{i}")), &none).unwrap();
        }
        assert!(attachments.add(Path::new("/one-more"), &none).is_err());
    }
}
