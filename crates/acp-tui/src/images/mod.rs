//! Shows images in a conversation, if the terminal supports them.
//!
//! The number of cells an image takes is known from its header ([`ImageCanvas::cells`]), so the layout does not change
//! when it has been decoded. The visible part is painted row by row ([`ImageStore::paint`]). Images that are not
//! decoded yet are requested, and arrive as events. Only data that was decoded and encoded again here is sent to the
//! terminal.

mod blocks;
mod decode;
mod detect;
mod iterm2;
pub(crate) mod kitty;
mod sixel;
mod store;
#[cfg(test)]
mod tests;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::RgbaImage;

pub(crate) use decode::{MAX_BASE64_BYTES, MAX_PIXELS, is_guarded};
pub(crate) use detect::{ImageSupport, detect_support};
pub(crate) use store::{ImageRow, ImageStore};

/// The maximum width of an image, in columns.
const MAX_IMAGE_COLUMNS: u16 = 80;

/// The maximum height of an image, in rows, on any screen.
const MAX_IMAGE_ROWS: u16 = 24;

/// A width and a height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PixelSize {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl PixelSize {
    /// The cell size to assume if the terminal reports none, which is that of the first terminals with sixel support.
    pub(crate) const DEFAULT_CELL: Self = Self {
        width: 10,
        height: 20,
    };

    /// Swaps width and height, as a rotation by a quarter turn does.
    fn swap_axes(self) -> Self {
        Self {
            width: self.height,
            height: self.width,
        }
    }
}

/// The protocol for displaying images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ImageProtocol {
    /// kitty's graphics protocol.
    Kitty { tmux: bool },
    /// iTerm2's inline image protocol.
    Iterm2 { tmux: bool },
    /// The sixel format of DEC terminals.
    Sixel { tmux: bool },
    /// Half-block characters with colors.
    Blocks(ColorDepth),
}

/// The color format of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ColorDepth {
    Rgb,
    /// An index from 0 to 255.
    Indexed,
}

/// The protocol for drawing images, and the space available to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ImageCanvas {
    protocol: ImageProtocol,
    /// The size of a cell in pixels.
    cell_size: PixelSize,
    /// The maximum height of an image, in rows.
    max_rows: u16,
}

impl ImageCanvas {
    /// Creates the canvas for a terminal with cells of this size.
    pub(crate) fn new(way: ImageProtocol, cell: Option<PixelSize>) -> Self {
        let cell = match way {
            ImageProtocol::Blocks(_) => PixelSize {
                width: 1,
                height: 2,
            },
            _ => cell.unwrap_or(PixelSize::DEFAULT_CELL),
        };
        Self {
            protocol: way,
            cell_size: cell,
            max_rows: MAX_IMAGE_ROWS,
        }
    }

    /// Returns the canvas for a screen with `rows` rows, of which an image occupies at most half.
    pub(crate) fn for_rows(self, rows: u16) -> Self {
        Self {
            max_rows: (rows / 2).clamp(1, MAX_IMAGE_ROWS),
            ..self
        }
    }

    /// Returns the number of columns and rows that an image occupies, using at most `columns` columns.
    ///
    /// Returns `None` if the image has no pixels or does not fit.
    pub(crate) fn cells(&self, of: PixelSize, columns: u16) -> Option<(u16, u16)> {
        let (width, height) = (u64::from(of.width), u64::from(of.height));
        let cell_width = u64::from(self.cell_size.width).max(1);
        let cell_height = u64::from(self.cell_size.height).max(1);
        if width == 0 || height == 0 {
            return None;
        }
        let most_width = u64::from(columns.clamp(1, MAX_IMAGE_COLUMNS)) * cell_width;
        let most_height = u64::from(self.max_rows) * cell_height;
        // Never enlarge the image, and keep its proportions.
        let mut shown = (width, height);
        if shown.0 > most_width {
            shown = (most_width, (height * most_width / width).max(1));
        }
        if shown.1 > most_height {
            shown = ((width * most_height / height).max(1), most_height);
        }
        let taken = u16::try_from(shown.0.div_ceil(cell_width)).ok()?;
        let rows = u16::try_from(shown.1.div_ceil(cell_height)).ok()?;
        // The position of the cursor after an image sequence is undefined. After a cell that is one column wide,
        // ratatui would assume that the cursor has moved by one.
        let least = match self.protocol {
            ImageProtocol::Iterm2 { .. } | ImageProtocol::Sixel { .. } => 2,
            ImageProtocol::Kitty { .. } | ImageProtocol::Blocks(_) => 1,
        };
        let taken = taken.max(least);
        (taken <= columns).then_some((taken, rows))
    }
}

/// Identifies an image by its content and size. Equal images are decoded only once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ImageKey {
    /// A hash of the image's data.
    pub(crate) content_hash: u64,
    pub(crate) columns: u16,
    pub(crate) rows: u16,
    pub(crate) canvas: ImageCanvas,
}

/// A request to decode an image.
#[derive(Debug)]
pub(crate) struct DecodeTask {
    key: ImageKey,
    /// The image's number in kitty's protocol.
    id: u32,
    data: String,
}

/// The result of decoding an image, or the reason why it failed.
#[derive(Debug)]
pub(crate) struct DecodeResult {
    key: ImageKey,
    result: Result<EncodedImage, String>,
}

/// An encoded image, ready to be drawn.
#[derive(Debug)]
enum EncodedImage {
    Blocks(RgbaImage),
    Kitty(kitty::KittyImage),
    /// One escape sequence per row of cells.
    Rows(Vec<String>),
}

impl EncodedImage {
    /// Returns the memory that the image occupies, in bytes.
    fn byte_len(&self) -> usize {
        match self {
            Self::Blocks(image) => image.as_raw().len(),
            Self::Kitty(picture) => picture.data.len(),
            Self::Rows(rows) => rows.iter().map(String::len).sum(),
        }
    }
}

impl DecodeTask {
    /// Decodes the image. This is slow, so call it on a blocking thread.
    pub(crate) fn decode(self) -> DecodeResult {
        let key = self.key;
        DecodeResult {
            key,
            result: decode::catch_panic(|| self.encode()),
        }
    }

    /// Returns the result of a decode task that was aborted.
    pub(crate) fn failed_result(key: ImageKey) -> DecodeResult {
        let result = Err("cannot decode the image".to_owned());
        DecodeResult { key, result }
    }

    pub(crate) fn key(&self) -> ImageKey {
        self.key
    }

    fn encode(self) -> Result<EncodedImage, String> {
        let ImageKey {
            columns,
            rows,
            canvas,
            ..
        } = self.key;
        let room = PixelSize {
            width: u32::from(columns) * canvas.cell_size.width,
            height: u32::from(rows) * canvas.cell_size.height,
        };
        let image = decode::decode_image(&self.data, room)?;
        drop(self.data);
        let strips = |rows: Vec<String>, tmux| {
            // Transparent parts would otherwise show what was there before.
            let made = |row| format!("\x1b[{columns}X{}", wrap_for_tmux(row, tmux));
            EncodedImage::Rows(rows.into_iter().map(made).collect())
        };
        Ok(match canvas.protocol {
            ImageProtocol::Blocks(_) => EncodedImage::Blocks(image),
            ImageProtocol::Kitty { .. } => EncodedImage::Kitty(kitty::KittyImage {
                id: self.id,
                columns,
                rows,
                data: STANDARD.encode(iterm2::encode_png(&image)?),
            }),
            ImageProtocol::Sixel { tmux } => {
                strips(sixel::encode_rows(&image, canvas.cell_size.height), tmux)
            }
            ImageProtocol::Iterm2 { tmux } => {
                let rows = iterm2::encode_rows(&image, columns, canvas.cell_size.height)?;
                strips(rows, tmux)
            }
        })
    }
}

/// Wraps a command for tmux if necessary. tmux passes it on only if configured to.
fn wrap_for_tmux(command: String, tmux: bool) -> String {
    if !tmux {
        return command;
    }
    format!("\x1bPtmux;{}\x1b\\", command.replace('\x1b', "\x1b\x1b"))
}
