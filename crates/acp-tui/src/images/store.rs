//! The images that are on the screen, and some that were.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::num::NonZeroU16;

use ratatui::buffer::{Buffer, CellDiffOption};
use ratatui::layout::Position;
use ratatui::style::Style;

use super::{
    DecodeResult, DecodeTask, EncodedImage, ImageCanvas, ImageKey, ImageProtocol, blocks, kitty,
};

/// How many are decoded at once. One more costs more memory than it saves time.
const AT_ONCE: usize = 1;

/// How much is kept of what is not on the screen, in bytes.
const KEPT: usize = 32 * 1024 * 1024;

/// How many are kept.
const MOST: usize = 64;

/// What stands in the cells of an image that is drawn over them, to see whether something else was drawn there.
const COVERED: &str = "\u{a0}";

/// A row of an image on the screen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageRow {
    pub(crate) key: ImageKey,
    /// Which of its rows.
    pub(crate) row: u16,
    /// Where it begins.
    pub(crate) position: Position,
    /// Where in the thread the image is: the number of the item, and that of the block within.
    pub(crate) item: usize,
    pub(crate) block: usize,
}

/// The images.
#[derive(Debug, Default)]
pub(crate) struct ImageStore {
    canvas: Option<ImageCanvas>,
    images: HashMap<ImageKey, StoredImage>,
    /// What is drawn over the cells when all of them are drawn.
    overlay_rows: Vec<ImageRow>,
    tasks: Vec<DecodeTask>,
    /// The kitty numbers that are not needed any more.
    evicted_ids: Vec<u32>,
    /// How often it was drawn.
    frame: u64,
    /// The number of the next image.
    next_id: u32,
}

#[derive(Debug)]
struct StoredImage {
    state: ImageState,
    /// When it was seen last.
    last_frame: u64,
}

#[derive(Debug)]
enum ImageState {
    /// It is being decoded.
    Decoding,
    Ready(EncodedImage),
    /// It cannot be, for this reason.
    Failed(String),
}

impl ImageStore {
    /// Images are drawn on this from now on; not at all if there is none.
    pub(crate) fn set_canvas(&mut self, canvas: Option<ImageCanvas>) {
        if self.next_id == 0 {
            // Another chat on the same terminal should not have the same numbers.
            let mut hasher = DefaultHasher::new();
            (std::process::id(), std::time::SystemTime::now()).hash(&mut hasher);
            let [a, b, ..] = hasher.finish().to_be_bytes();
            self.next_id = u32::from_be_bytes([0, a, b, 0]);
        }
        self.canvas = canvas;
    }

    pub(crate) fn canvas(&self) -> Option<ImageCanvas> {
        self.canvas
    }

    /// A drawing begins.
    pub(crate) fn begin(&mut self) {
        self.frame += 1;
        self.overlay_rows.clear();
    }

    /// Paints these rows, as far as the images are there. `data` has an image's data in base64.
    pub(crate) fn paint(
        &mut self,
        rows: &[ImageRow],
        buf: &mut Buffer,
        style: Style,
        data: impl Fn(&ImageRow) -> Option<String>,
    ) {
        let mut coming = self.decoding_count();
        for row in rows {
            match self.images.get_mut(&row.key) {
                Some(known) => {
                    known.last_frame = self.frame;
                    match &known.state {
                        ImageState::Decoding => {}
                        ImageState::Ready(EncodedImage::Rows(_)) => {
                            cover(row, buf);
                            self.overlay_rows.push(*row);
                        }
                        ImageState::Ready(made) => paint(made, row, buf),
                        ImageState::Failed(why) if row.row == 0 => {
                            let why = format!("cannot show the image: {why}");
                            let room = buf.area.right().saturating_sub(row.position.x);
                            let Position { x, y } = row.position;
                            buf.set_stringn(x, y, why, usize::from(room), style);
                        }
                        ImageState::Failed(_) => {}
                    }
                }
                None if coming < AT_ONCE => {
                    let Some(data) = data(row) else { continue };
                    coming += 1;
                    self.next_id = (self.next_id + 1) & 0xff_ffff;
                    self.tasks.push(DecodeTask {
                        key: row.key,
                        id: self.next_id,
                        data,
                    });
                    let known = StoredImage {
                        state: ImageState::Decoding,
                        last_frame: self.frame,
                    };
                    self.images.insert(row.key, known);
                }
                None => {}
            }
        }
    }

    /// How many are being decoded.
    fn decoding_count(&self) -> usize {
        let coming = |known: &&StoredImage| matches!(known.state, ImageState::Decoding);
        self.images.values().filter(coming).count()
    }

    /// Everything is drawn: what is drawn over the cells is put there, unless something else is.
    pub(crate) fn finish(&mut self, buf: &mut Buffer) {
        for row in std::mem::take(&mut self.overlay_rows) {
            let Some(ImageState::Ready(EncodedImage::Rows(rows))) =
                self.images.get(&row.key).map(|known| &known.state)
            else {
                continue;
            };
            let free =
                row_cells(&row).all(|at| buf.cell(at).is_some_and(|c| c.symbol() == COVERED));
            let sequence = rows.get(usize::from(row.row)).filter(|_| free);
            let width = NonZeroU16::new(row.key.columns);
            match (sequence, width, buf.cell_mut(row.position)) {
                (Some(sequence), Some(width), Some(first)) => {
                    // The cells behind the first are not drawn; as what they are they will differ from what is.
                    first
                        .set_symbol(sequence)
                        .set_diff_option(CellDiffOption::ForcedWidth(width));
                }
                _ => {
                    for at in row_cells(&row) {
                        let cell = buf.cell_mut(at).filter(|cell| cell.symbol() == COVERED);
                        if let Some(cell) = cell {
                            cell.reset();
                        }
                    }
                }
            }
        }
    }

    /// What is to be decoded.
    pub(crate) fn take_tasks(&mut self) -> Vec<DecodeTask> {
        std::mem::take(&mut self.tasks)
    }

    /// Takes what was decoded.
    pub(crate) fn add_result(&mut self, done: DecodeResult) {
        let state = match done.result {
            Ok(made) => ImageState::Ready(made),
            Err(why) => ImageState::Failed(why),
        };
        if let Some(known) = self.images.get_mut(&done.key) {
            known.state = state;
        }
        self.evict();
    }

    /// Lets go of what was not seen for longest, if it is much.
    fn evict(&mut self) {
        let mut bytes: usize = self.images.values().map(StoredImage::byte_len).sum();
        while bytes > KEPT || self.images.len() > MOST {
            let now = self.frame;
            let old = self.images.iter().filter(|(_, known)| {
                // What is seen must stay, or it would be decoded again at once.
                known.last_frame < now && !matches!(known.state, ImageState::Decoding)
            });
            let Some(key) = old
                .min_by_key(|(_, known)| known.last_frame)
                .map(|(key, _)| *key)
            else {
                return;
            };
            let Some(known) = self.images.remove(&key) else {
                return;
            };
            bytes -= known.byte_len();
            if let ImageState::Ready(EncodedImage::Kitty(picture)) = known.state {
                self.evicted_ids.push(picture.id);
            }
        }
    }

    /// Tells the terminal what it must know before it shows this drawing.
    pub(crate) fn send(&mut self, out: &mut impl Write) -> io::Result<()> {
        for id in self.evicted_ids.drain(..) {
            kitty::forget(id, out)?;
        }
        for (key, known) in &self.images {
            if let (ImageState::Ready(EncodedImage::Kitty(picture)), ImageProtocol::Kitty { tmux }) =
                (&known.state, key.canvas.protocol)
                && known.last_frame == self.frame
            {
                picture.send(tmux, out)?;
            }
        }
        Ok(())
    }
}

impl StoredImage {
    fn byte_len(&self) -> usize {
        match &self.state {
            ImageState::Ready(made) => made.byte_len(),
            ImageState::Decoding | ImageState::Failed(_) => 0,
        }
    }
}

/// The cells of a row.
fn row_cells(row: &ImageRow) -> impl Iterator<Item = Position> + use<> {
    let Position { x, y } = row.position;
    (0..row.key.columns).map(move |column| Position::new(x.saturating_add(column), y))
}

/// Paints what is made of cells.
fn paint(made: &EncodedImage, row: &ImageRow, buf: &mut Buffer) {
    for (column, at) in (0..).zip(row_cells(row)) {
        let Some(cell) = buf.cell_mut(at) else { return };
        match (made, row.key.canvas.protocol) {
            (EncodedImage::Blocks(image), ImageProtocol::Blocks(depth)) => {
                blocks::paint(image, depth, column, row.row, cell);
            }
            (EncodedImage::Kitty(picture), _) => picture.paint(column, row.row, cell),
            _ => {}
        }
    }
}

/// Marks the cells over which it will be drawn.
fn cover(row: &ImageRow, buf: &mut Buffer) {
    for at in row_cells(row) {
        if let Some(cell) = buf.cell_mut(at) {
            cell.reset();
            cell.set_symbol(COVERED);
        }
    }
}
