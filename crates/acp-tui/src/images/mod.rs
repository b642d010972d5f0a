//! Images in a conversation, where the terminal can show them.
//!
//! How many cells an image takes is known by its first bytes ([`ImageCanvas::cells`]), so nothing moves when it comes. What of
//! it is on the screen is painted row by row ([`ImageStore::paint`]); what is not decoded yet is asked for, and comes as an
//! event. Only what was decoded here, and encoded again, is ever sent to the terminal.

mod blocks;
mod decode;
mod detect;
mod iterm2;
pub(crate) mod kitty;
pub(crate) mod query;
mod sixel;
mod store;
#[cfg(test)]
mod tests;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::RgbaImage;

pub(crate) use decode::{LONGEST, MOST_PIXELS, is_guarded};
pub(crate) use detect::{ImageSupport, detect};
pub(crate) use store::{ImageRow, ImageStore};

/// How many columns an image takes at most.
const COLUMNS: u16 = 80;

/// How many rows it takes at most, however high the screen is.
const ROWS: u16 = 24;

/// A size in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PixelSize {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl PixelSize {
    /// How large a cell is taken to be where the terminal does not say: as on the terminals that had sixels first.
    pub(crate) const CELL: Self = Self {
        width: 10,
        height: 20,
    };

    /// That of an image which is turned by a quarter.
    fn swap_axes(self) -> Self {
        Self {
            width: self.height,
            height: self.width,
        }
    }
}

/// How images are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ImageProtocol {
    /// By kitty's graphics protocol.
    Kitty { tmux: bool },
    /// By iTerm2's inline images.
    Iterm2 { tmux: bool },
    /// As sixels.
    Sixel { tmux: bool },
    /// As half blocks.
    Blocks(ColorDepth),
}

/// How colours are said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ColorDepth {
    Rgb,
    /// By their numbers among 256.
    Indexed,
}

/// What images are drawn on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ImageCanvas {
    protocol: ImageProtocol,
    /// How many pixels a cell has.
    cell_size: PixelSize,
    /// How many rows an image takes at most.
    max_rows: u16,
}

impl ImageCanvas {
    /// That of a terminal whose cells are so large.
    pub(crate) fn new(way: ImageProtocol, cell: Option<PixelSize>) -> Self {
        let cell = match way {
            ImageProtocol::Blocks(_) => PixelSize {
                width: 1,
                height: 2,
            },
            _ => cell.unwrap_or(PixelSize::CELL),
        };
        Self {
            protocol: way,
            cell_size: cell,
            max_rows: ROWS,
        }
    }

    /// The same on a screen of so many rows: an image takes half of them at most.
    pub(crate) fn for_rows(self, rows: u16) -> Self {
        Self {
            max_rows: (rows / 2).clamp(1, ROWS),
            ..self
        }
    }

    /// How many columns and rows an image takes where there are so many columns. Nothing if it has no pixels, or there
    /// is no room for it.
    pub(crate) fn cells(&self, of: PixelSize, columns: u16) -> Option<(u16, u16)> {
        let (width, height) = (u64::from(of.width), u64::from(of.height));
        let cell_width = u64::from(self.cell_size.width).max(1);
        let cell_height = u64::from(self.cell_size.height).max(1);
        if width == 0 || height == 0 {
            return None;
        }
        let most_width = u64::from(columns.clamp(1, COLUMNS)) * cell_width;
        let most_height = u64::from(self.max_rows) * cell_height;
        // No larger than it is, and with its proportions.
        let mut shown = (width, height);
        if shown.0 > most_width {
            shown = (most_width, (height * most_width / width).max(1));
        }
        if shown.1 > most_height {
            shown = ((width * most_height / height).max(1), most_height);
        }
        let taken = u16::try_from(shown.0.div_ceil(cell_width)).ok()?;
        let rows = u16::try_from(shown.1.div_ceil(cell_height)).ok()?;
        // Where the cursor is behind a sequence nobody knows. Behind one column, ratatui thinks that it does.
        let least = match self.protocol {
            ImageProtocol::Iterm2 { .. } | ImageProtocol::Sixel { .. } => 2,
            ImageProtocol::Kitty { .. } | ImageProtocol::Blocks(_) => 1,
        };
        let taken = taken.max(least);
        (taken <= columns).then_some((taken, rows))
    }
}

/// An image as it is shown: what is in it, and how large it is. Two that are the same are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ImageKey {
    /// What it shows.
    pub(crate) content_hash: u64,
    pub(crate) columns: u16,
    pub(crate) rows: u16,
    pub(crate) canvas: ImageCanvas,
}

/// An image that is to be decoded.
#[derive(Debug)]
pub(crate) struct DecodeTask {
    key: ImageKey,
    /// Its number, if it is kitty's.
    id: u32,
    data: String,
}

/// What came of it; if nothing, the reason.
#[derive(Debug)]
pub(crate) struct DecodeResult {
    key: ImageKey,
    result: Result<EncodedImage, String>,
}

/// An image as the terminal takes it.
#[derive(Debug)]
enum EncodedImage {
    Blocks(RgbaImage),
    Kitty(kitty::KittyImage),
    /// A sequence for each of its rows.
    Rows(Vec<String>),
}

impl EncodedImage {
    /// How much memory it takes, in bytes.
    fn byte_len(&self) -> usize {
        match self {
            Self::Blocks(image) => image.as_raw().len(),
            Self::Kitty(picture) => picture.data.len(),
            Self::Rows(rows) => rows.iter().map(String::len).sum(),
        }
    }
}

impl DecodeTask {
    /// Decodes it. It takes a while, so it is done on a thread of its own.
    pub(crate) fn decode(self) -> DecodeResult {
        let key = self.key;
        DecodeResult {
            key,
            result: decode::catch_panic(|| self.encode()),
        }
    }

    /// What is told if it did not come to an end.
    pub(crate) fn failure(key: ImageKey) -> DecodeResult {
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
        let image = decode::decode(&self.data, room)?;
        drop(self.data);
        let strips = |rows: Vec<String>, tmux| {
            // What was there before would be seen through what is transparent.
            let made = |row| format!("\x1b[{columns}X{}", wrap_for_tmux(row, tmux));
            EncodedImage::Rows(rows.into_iter().map(made).collect())
        };
        Ok(match canvas.protocol {
            ImageProtocol::Blocks(_) => EncodedImage::Blocks(image),
            ImageProtocol::Kitty { .. } => EncodedImage::Kitty(kitty::KittyImage {
                id: self.id,
                columns,
                rows,
                data: STANDARD.encode(iterm2::png(&image)?),
            }),
            ImageProtocol::Sixel { tmux } => {
                strips(sixel::rows(&image, canvas.cell_size.height), tmux)
            }
            ImageProtocol::Iterm2 { tmux } => {
                let rows = iterm2::rows(&image, columns, canvas.cell_size.height)?;
                strips(rows, tmux)
            }
        })
    }
}

/// A command for the terminal, through tmux if that is in between: it passes on what is marked so, where it is allowed to.
fn wrap_for_tmux(command: String, tmux: bool) -> String {
    if !tmux {
        return command;
    }
    format!("\x1bPtmux;{}\x1b\\", command.replace('\x1b', "\x1b\x1b"))
}
