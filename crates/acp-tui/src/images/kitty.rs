//! Encodes images for kitty's graphics protocol. Each image is sent once, and appears in all cells that contain its
//! number.
//!
//! Such a cell is text to everything but the terminal: ratatui scrolls it and draws over it like any other. An image is
//! invisible while no cell has its number. <https://sw.kovidgoyal.net/kitty/graphics-protocol/#unicode-placeholders>

use std::fmt::Write as _;
use std::io::{self, Write};
use std::num::NonZeroU16;
use std::sync::{Mutex, PoisonError};

use ratatui::buffer::{Cell, CellDiffOption};
use ratatui::style::Color;

use super::wrap_for_tmux;

/// The maximum length of image data per command, in characters of base64.
const MAX_CHUNK_BYTES: usize = 4096;

/// The placeholder character in each cell of an image.
const PLACEHOLDER_CHAR: char = '\u{10eeee}';

/// The combining marks that encode a cell's row and column in the image. The protocol defines more, but no image is
/// that large.
#[rustfmt::skip]
const ROW_COLUMN_DIACRITICS: [char; 96] = [
    '\u{305}', '\u{30d}', '\u{30e}', '\u{310}', '\u{312}', '\u{33d}', '\u{33e}', '\u{33f}',
    '\u{346}', '\u{34a}', '\u{34b}', '\u{34c}', '\u{350}', '\u{351}', '\u{352}', '\u{357}',
    '\u{35b}', '\u{363}', '\u{364}', '\u{365}', '\u{366}', '\u{367}', '\u{368}', '\u{369}',
    '\u{36a}', '\u{36b}', '\u{36c}', '\u{36d}', '\u{36e}', '\u{36f}', '\u{483}', '\u{484}',
    '\u{485}', '\u{486}', '\u{487}', '\u{592}', '\u{593}', '\u{594}', '\u{595}', '\u{597}',
    '\u{598}', '\u{599}', '\u{59c}', '\u{59d}', '\u{59e}', '\u{59f}', '\u{5a0}', '\u{5a1}',
    '\u{5a8}', '\u{5a9}', '\u{5ab}', '\u{5ac}', '\u{5af}', '\u{5c4}', '\u{610}', '\u{611}',
    '\u{612}', '\u{613}', '\u{614}', '\u{615}', '\u{616}', '\u{617}', '\u{657}', '\u{658}',
    '\u{659}', '\u{65a}', '\u{65b}', '\u{65d}', '\u{65e}', '\u{6d6}', '\u{6d7}', '\u{6d8}',
    '\u{6d9}', '\u{6da}', '\u{6db}', '\u{6dc}', '\u{6df}', '\u{6e0}', '\u{6e1}', '\u{6e2}',
    '\u{6e4}', '\u{6e7}', '\u{6e8}', '\u{6eb}', '\u{6ec}', '\u{730}', '\u{732}', '\u{733}',
    '\u{735}', '\u{736}', '\u{73a}', '\u{73d}', '\u{73f}', '\u{740}', '\u{741}', '\u{743}',
];

/// The images that the terminal has received, and whether each went through tmux.
///
/// The terminal stores them until they are deleted, which must be possible from wherever the chat ends.
static SENT_IMAGES: Mutex<Vec<SentImage>> = Mutex::new(Vec::new());

struct SentImage {
    id: u32,
    tmux: bool,
}

/// An image in the form that kitty's protocol can display.
#[derive(Debug)]
pub(super) struct KittyImage {
    /// The image's number. It is encoded as the foreground color of the cells that show the image.
    pub(super) id: u32,
    pub(super) columns: u16,
    pub(super) rows: u16,
    /// The image as PNG in base64.
    pub(super) data: String,
}

impl KittyImage {
    /// Draws into a cell the part of the image at the given column and row.
    pub(super) fn paint_cell(&self, column: u16, row: u16, cell: &mut Cell) {
        let number = |n: u16| ROW_COLUMN_DIACRITICS.get(usize::from(n)).copied();
        let (Some(row), Some(column)) = (number(row), number(column)) else {
            return;
        };
        let symbol: String = [PLACEHOLDER_CHAR, row, column].iter().collect();
        let [_, r, g, b] = self.id.to_be_bytes();
        cell.set_symbol(&symbol)
            .set_fg(Color::Rgb(r, g, b))
            .set_diff_option(CellDiffOption::ForcedWidth(NonZeroU16::MIN));
    }

    /// Sends the image, unless the terminal already has it.
    pub(super) fn send(&self, tmux: bool, out: &mut impl Write) -> io::Result<()> {
        {
            let mut sent = SENT_IMAGES.lock().unwrap_or_else(PoisonError::into_inner);
            if sent.iter().any(|sent| sent.id == self.id) {
                return Ok(());
            }
            sent.push(SentImage { id: self.id, tmux });
        }
        let (id, columns, rows) = (self.id, self.columns, self.rows);
        let mut begun = false;
        let mut pieces = self.data.as_bytes().chunks(MAX_CHUNK_BYTES).peekable();
        while let Some(piece) = pieces.next() {
            let mut command = "\x1b_Gq=2,".to_owned();
            if !std::mem::replace(&mut begun, true) {
                // Writing to a string cannot fail.
                let _ = write!(command, "i={id},a=T,U=1,f=100,c={columns},r={rows},");
            }
            let more = u8::from(pieces.peek().is_some());
            let piece = String::from_utf8_lossy(piece);
            let _ = write!(command, "m={more};{piece}\x1b\\");
            out.write_all(wrap_for_tmux(command, tmux).as_bytes())?;
        }
        Ok(())
    }
}

/// Deletes an image from the terminal, if the terminal has it.
pub(super) fn queue_deletion(id: u32, out: &mut impl Write) -> io::Result<()> {
    let mut sent = SENT_IMAGES.lock().unwrap_or_else(PoisonError::into_inner);
    match sent.iter().position(|sent| sent.id == id) {
        Some(at) => write_deletion(&sent.swap_remove(at), out),
        None => Ok(()),
    }
}

/// Deletes all images from the terminal. Never blocks, because the panic hook calls it too.
pub(crate) fn delete_all_images(out: &mut impl Write) -> io::Result<()> {
    let Ok(mut sent) = SENT_IMAGES.try_lock() else {
        return Ok(());
    };
    for sent in sent.drain(..) {
        write_deletion(&sent, out)?;
    }
    Ok(())
}

fn write_deletion(sent: &SentImage, out: &mut impl Write) -> io::Result<()> {
    let command = format!("\x1b_Gq=2,a=d,d=I,i={}\x1b\\", sent.id);
    out.write_all(wrap_for_tmux(command, sent.tmux).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_is_sent_once_in_chunks_and_deleted_when_dropped() {
        let picture = KittyImage {
            id: 0x01_02_03,
            columns: 4,
            rows: 2,
            data: "A".repeat(MAX_CHUNK_BYTES) + "BBBB",
        };
        let mut out = Vec::new();
        picture.send(false, &mut out).unwrap();
        let sent = String::from_utf8(std::mem::take(&mut out)).unwrap();
        let whole = "A".repeat(MAX_CHUNK_BYTES);
        assert_eq!(
            sent,
            format!(
                "\x1b_Gq=2,i=66051,a=T,U=1,f=100,c=4,r=2,m=1;{whole}\x1b\\\x1b_Gq=2,m=0;BBBB\x1b\\"
            )
        );
        picture.send(false, &mut out).unwrap();
        assert!(out.is_empty(), "the terminal already has the image");
        queue_deletion(picture.id, &mut out).unwrap();
        assert_eq!(out, b"\x1b_Gq=2,a=d,d=I,i=66051\x1b\\");
        out.clear();
        queue_deletion(picture.id, &mut out).unwrap();
        assert!(out.is_empty(), "the terminal no longer has the image");
    }

    #[test]
    fn cell_encodes_its_image_and_position() {
        let picture = KittyImage {
            id: 0x01_02_03,
            columns: 4,
            rows: 2,
            data: String::new(),
        };
        let mut cell = Cell::default();
        picture.paint_cell(2, 1, &mut cell);
        assert_eq!(cell.symbol(), "\u{10eeee}\u{30d}\u{30e}");
        assert_eq!(cell.fg, Color::Rgb(1, 2, 3));
    }
}
