//! Lays out each image in a thread as a line of description, followed by enough empty lines to fit the image.
//!
//! The description is shown even if the image is shown too, for users who copy the text or use a screen reader.

use std::hash::{DefaultHasher, Hash, Hasher};

use acp::Thread;
use acp::thread::{ItemKind, ThreadToolCallContent};
use acp::v1::{ContentBlock, EmbeddedResourceResource};
use ratatui::text::Line;

use crate::draw_context::DrawContext;
use crate::images::{ImageKey, ImageRow, MAX_BASE64_BYTES, MAX_PIXELS, PixelSize};
use crate::text::image::{describe_block, image_dimensions};
use crate::text::wrap::wrap_line;

/// The number of bytes to hash at each end of an image's data. Shorter data is hashed completely. For longer data, the
/// ends are enough, because every image format has a part near one end that depends on everything in between.
const MAX_HASHED_BYTES: usize = 64 * 1024;

/// The space reserved for an image among the lines of an item.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImagePlacement {
    pub(super) key: ImageKey,
    /// The line where the image starts.
    pub(super) line: usize,
    /// The number of columns before the image.
    pub(super) indent: u16,
    /// The number of the image's block in the item.
    pub(super) block: usize,
}

impl ImagePlacement {
    /// Returns the row of the image on a line, or `None` if the image does not cover the line.
    pub(super) fn row(&self, line: usize) -> Option<u16> {
        let row = u16::try_from(line.checked_sub(self.line)?).ok()?;
        (row < self.key.rows).then_some(row)
    }
}

/// Lays out a content block that is not text. For an image that can be shown, also returns the space reserved for it,
/// which is in the last lines.
pub(super) fn layout_block(
    block: &ContentBlock,
    width: u16,
    look: &DrawContext<'_>,
) -> (Vec<Line<'static>>, Option<ImageKey>) {
    let dim = look.theme.dim;
    let mut lines = wrap_line(&Line::styled(describe_block(block), dim), width);
    let image = look.images.zip(block_data(block));
    let Some((canvas, data)) = image else {
        return (lines, None);
    };
    let Some((pixels_wide, pixels_high)) = image_dimensions(data) else {
        return (lines, None);
    };
    let pixels = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let size = PixelSize {
        width: pixels(pixels_wide),
        height: pixels(pixels_high),
    };
    let too_large = if data.len() > MAX_BASE64_BYTES {
        Some("too many bytes")
    } else if u64::from(size.width) * u64::from(size.height) > MAX_PIXELS {
        Some("too many pixels")
    } else {
        None
    };
    if let Some(why) = too_large {
        let line = format!("cannot be shown: {why}");
        lines.extend(wrap_line(&Line::styled(line, dim), width));
        return (lines, None);
    }
    let Some((columns, rows)) = canvas.cells(size, width) else {
        return (lines, None);
    };
    let key = ImageKey {
        content_hash: content_hash(data),
        columns,
        rows,
        canvas,
    };
    lines.extend(std::iter::repeat_n(Line::default(), rows.into()));
    (lines, Some(key))
}

/// Returns the base64 data of the image that a row belongs to.
pub(crate) fn image_data(thread: &Thread, row: &ImageRow) -> Option<String> {
    let at = row.item.checked_sub(thread.truncation().items)?;
    let block = match &thread.items().get(at)?.kind {
        ItemKind::User(message) | ItemKind::Agent(message) | ItemKind::Thought(message) => {
            message.content.get(row.block)?
        }
        ItemKind::ToolCall(call) => match call.content.get(row.block)? {
            ThreadToolCallContent::Content(block) => block,
            _ => return None,
        },
        _ => return None,
    };
    block_data(block).map(str::to_owned)
}

/// Returns the data of a content block that is an image.
fn block_data(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Image(image) => Some(&image.data),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            EmbeddedResourceResource::Blob(blob) => {
                let kind = blob.mime_type.as_deref().unwrap_or_default();
                kind.starts_with("image/").then_some(blob.blob.as_str())
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns a hash that tells images apart.
fn content_hash(data: &str) -> u64 {
    let bytes = data.as_bytes();
    let mut hasher = DefaultHasher::new();
    bytes.len().hash(&mut hasher);
    if bytes.len() <= 2 * MAX_HASHED_BYTES {
        bytes.hash(&mut hasher);
    } else {
        bytes.get(..MAX_HASHED_BYTES).hash(&mut hasher);
        bytes
            .get(bytes.len() - MAX_HASHED_BYTES..)
            .hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use acp::v1::ContentChunk;
    use acp::v1::SessionUpdate;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use ratatui::buffer::Buffer;
    use ratatui::layout::{Position, Rect};
    use serde_json::json;

    use super::*;
    use crate::images::{ColorDepth, ImageCanvas, ImageProtocol};
    use crate::view::ThreadView;
    use crate::{Background, Colors, Theme};

    /// Returns the header of a PNG, which is all that the layout needs.
    fn png_base64(width: u32, height: u32) -> String {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend([8, 6, 0, 0, 0]);
        STANDARD.encode(bytes)
    }

    fn image_block(data: &str) -> ContentBlock {
        let block = json!({"type": "image", "data": data, "mimeType": "image/png"});
        serde_json::from_value(block).unwrap()
    }

    fn add_message(thread: &mut Thread, block: ContentBlock) {
        thread.apply(&SessionUpdate::AgentMessageChunk(ContentChunk::new(block)).into());
    }

    /// Draws a thread on 40×10 cells. Returns the lines and the image rows.
    fn draw_view(
        view: &mut ThreadView,
        thread: &Thread,
        images: bool,
    ) -> (Vec<String>, Vec<ImageRow>) {
        let theme = Theme::new(Background::Dark, Colors::None);
        let canvas = ImageCanvas::new(ImageProtocol::Blocks(ColorDepth::Rgb), None).for_rows(10);
        let look = DrawContext {
            theme: &theme,
            cwd: Path::new("/project"),
            frame: 0,
            images: images.then_some(canvas),
        };
        let area = Rect::new(0, 0, 40, 10);
        let mut buf = Buffer::empty(area);
        view.draw(thread, area, &mut buf, &look);
        let row = |y| (0..40).map(|x| buf[(x, y)].symbol()).collect::<String>();
        let lines = (0..10).map(|y| row(y).trim_end().to_owned()).collect();
        (lines, view.images().to_vec())
    }

    #[test]
    fn image_is_placed_below_its_label() {
        let mut thread = Thread::new();
        add_message(&mut thread, ContentBlock::text("Look:"));
        add_message(&mut thread, image_block(&png_base64(16, 8)));
        add_message(&mut thread, ContentBlock::text("Nice."));
        let mut view = ThreadView::default();
        let (lines, rows) = draw_view(&mut view, &thread, true);
        let said = "  [image: PNG 16×8, 29 bytes]";
        assert_eq!(lines[..7], ["  Look:", said, "", "", "", "", "  Nice."]);
        let at: Vec<(u16, Position)> = rows.iter().map(|row| (row.row, row.position)).collect();
        let expected = |n: u16| (n, Position::new(2, n + 2));
        assert_eq!(at, [0, 1, 2, 3].map(expected));
        assert_eq!(image_data(&thread, &rows[0]).unwrap(), png_base64(16, 8));
        // If images are not shown, no space is reserved for them.
        let (lines, rows) = draw_view(&mut view, &thread, false);
        assert_eq!(lines[..3], ["  Look:", said, "  Nice."]);
        assert!(rows.is_empty());
    }

    #[test]
    fn collapsed_tool_call_shows_its_images() {
        let mut thread = Thread::new();
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Screenshot", "content": [
            {"type": "content", "content": {"type": "text", "text": "done"}},
            {"type": "content", "content": {"type": "image", "data": png_base64(8, 4), "mimeType": "image/png"}},
        ]});
        thread.apply(
            &serde_json::from_value::<acp::v1::SessionUpdate>(call)
                .unwrap()
                .into(),
        );
        let mut view = ThreadView::default();
        let (lines, rows) = draw_view(&mut view, &thread, true);
        assert_eq!(lines[1], "    [image: PNG 8×4, 29 bytes]");
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].position, Position::new(4, 2));
        assert_eq!(image_data(&thread, &rows[1]).unwrap(), png_base64(8, 4));
    }

    #[test]
    fn image_at_an_edge_is_partly_drawn() {
        let mut thread = Thread::new();
        add_message(&mut thread, image_block(&png_base64(10, 10)));
        add_message(&mut thread, ContentBlock::text("1\n\n2\n\n3\n\n4"));
        let mut view = ThreadView::default();
        let (lines, rows) = draw_view(&mut view, &thread, true);
        assert_eq!(lines[9], "  4");
        let rows: Vec<u16> = rows.iter().map(|row| row.row).collect();
        assert_eq!(rows, [2, 3, 4]);
    }

    #[test]
    fn only_visible_images_are_requested() {
        let mut thread = Thread::new();
        for n in 0..1000 {
            add_message(&mut thread, image_block(&png_base64(10, 10 + n % 3)));
        }
        let (_, rows) = draw_view(&mut ThreadView::default(), &thread, true);
        assert!(rows.len() <= 10, "{}", rows.len());
    }

    #[test]
    fn oversized_image_gets_a_note_but_no_space() {
        let mut thread = Thread::new();
        add_message(&mut thread, image_block(&png_base64(65_000, 65_000)));
        let (lines, rows) = draw_view(&mut ThreadView::default(), &thread, true);
        assert_eq!(lines[0], "  [image: PNG 65000×65000, 29 bytes]");
        assert_eq!(lines[1], "  cannot be shown: too many pixels");
        assert!(rows.is_empty());
    }
}
