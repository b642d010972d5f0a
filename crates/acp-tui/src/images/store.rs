//! Stores the visible images, and caches other images.

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

/// The maximum number of images decoded at once. Decoding several at once would save little time but use much more
/// memory.
const MAX_CONCURRENT_DECODES: usize = 1;

/// The memory limit for cached images that are not visible, in bytes.
const MAX_CACHE_BYTES: usize = 32 * 1024 * 1024;

/// The maximum number of cached images.
const MAX_CACHED_IMAGES: usize = 64;

/// The symbol in the cells below an image. A cell that no longer contains it has been drawn over.
const COVERED_SYMBOL: &str = "\u{a0}";

/// A row of an image on the screen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageRow {
    pub(crate) key: ImageKey,
    /// The number of the row within the image.
    pub(crate) row: u16,
    /// The screen position of the row's first cell.
    pub(crate) position: Position,
    /// The index of the thread item that contains the image.
    pub(crate) item: usize,
    pub(crate) block: usize,
}

/// A store for the images of a chat.
#[derive(Debug, Default)]
pub(crate) struct ImageStore {
    canvas: Option<ImageCanvas>,
    images: HashMap<ImageKey, StoredImage>,
    /// The image rows to draw on top after all cells have been drawn.
    overlay_rows: Vec<ImageRow>,
    tasks: Vec<DecodeTask>,
    /// The kitty numbers of evicted images, which must be deleted from the terminal.
    evicted_ids: Vec<u32>,
    /// The number of frames drawn so far.
    frame: u64,
    /// The number for the next image.
    next_id: u32,
}

#[derive(Debug)]
struct StoredImage {
    state: ImageState,
    /// The number of the frame in which the image was last visible.
    last_frame: u64,
}

#[derive(Debug)]
enum ImageState {
    /// The image is being decoded.
    Decoding,
    Ready(EncodedImage),
    /// The image could not be decoded. Contains the reason.
    Failed(String),
}

impl ImageStore {
    /// Sets the canvas for images, or `None` to show no images.
    pub(crate) fn set_canvas(&mut self, canvas: Option<ImageCanvas>) {
        if self.next_id == 0 {
            // Another chat on the same terminal should not use the same numbers.
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

    /// Begins a frame. All images are painted again in each frame.
    pub(crate) fn begin_frame(&mut self) {
        self.frame += 1;
        self.overlay_rows.clear();
    }

    /// Paints the rows of images that have been decoded. `data` returns an image's data in base64.
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
                            mark_covered(row, buf);
                            self.overlay_rows.push(*row);
                        }
                        ImageState::Ready(made) => paint_row(made, row, buf),
                        ImageState::Failed(why) if row.row == 0 => {
                            let why = format!("cannot show the image: {why}");
                            let room = buf.area.right().saturating_sub(row.position.x);
                            let Position { x, y } = row.position;
                            buf.set_stringn(x, y, why, usize::from(room), style);
                        }
                        ImageState::Failed(_) => {}
                    }
                }
                None if coming < MAX_CONCURRENT_DECODES => {
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

    /// Returns the number of images that are being decoded.
    fn decoding_count(&self) -> usize {
        let coming = |known: &&StoredImage| matches!(known.state, ImageState::Decoding);
        self.images.values().filter(coming).count()
    }

    /// Finishes a frame by drawing images over their cells, except where something else was drawn.
    pub(crate) fn finish_frame(&mut self, buf: &mut Buffer) {
        for row in std::mem::take(&mut self.overlay_rows) {
            let Some(ImageState::Ready(EncodedImage::Rows(rows))) =
                self.images.get(&row.key).map(|known| &known.state)
            else {
                continue;
            };
            let free = row_cells(&row)
                .all(|at| buf.cell(at).is_some_and(|c| c.symbol() == COVERED_SYMBOL));
            let sequence = rows.get(usize::from(row.row)).filter(|_| free);
            let width = NonZeroU16::new(row.key.columns);
            match (sequence, width, buf.cell_mut(row.position)) {
                (Some(sequence), Some(width), Some(first)) => {
                    // The cells after the first are not drawn. They stay marked, so that they differ from whatever is
                    // drawn there next.
                    first
                        .set_symbol(sequence)
                        .set_diff_option(CellDiffOption::ForcedWidth(width));
                }
                _ => {
                    for at in row_cells(&row) {
                        let cell = buf
                            .cell_mut(at)
                            .filter(|cell| cell.symbol() == COVERED_SYMBOL);
                        if let Some(cell) = cell {
                            cell.reset();
                        }
                    }
                }
            }
        }
    }

    /// Removes and returns the tasks for images that are waiting to be decoded.
    pub(crate) fn take_tasks(&mut self) -> Vec<DecodeTask> {
        std::mem::take(&mut self.tasks)
    }

    /// Stores the result of decoding an image.
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

    /// Drops the images that have been off screen the longest if the cache is too large.
    fn evict(&mut self) {
        let mut bytes: usize = self.images.values().map(StoredImage::byte_len).sum();
        while bytes > MAX_CACHE_BYTES || self.images.len() > MAX_CACHED_IMAGES {
            let now = self.frame;
            let old = self.images.iter().filter(|(_, known)| {
                // A visible image must stay, or it would be decoded again at once.
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

    /// Sends the terminal the image data that it needs before showing the frame.
    pub(crate) fn send(&mut self, out: &mut impl Write) -> io::Result<()> {
        for id in self.evicted_ids.drain(..) {
            kitty::queue_deletion(id, out)?;
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

/// Returns the positions of a row's cells.
fn row_cells(row: &ImageRow) -> impl Iterator<Item = Position> + use<> {
    let Position { x, y } = row.position;
    (0..row.key.columns).map(move |column| Position::new(x.saturating_add(column), y))
}

/// Paints an image row that consists of ordinary cells.
fn paint_row(made: &EncodedImage, row: &ImageRow, buf: &mut Buffer) {
    for (column, at) in (0..).zip(row_cells(row)) {
        let Some(cell) = buf.cell_mut(at) else { return };
        match (made, row.key.canvas.protocol) {
            (EncodedImage::Blocks(image), ImageProtocol::Blocks(depth)) => {
                blocks::paint_cell(image, depth, column, row.row, cell);
            }
            (EncodedImage::Kitty(picture), _) => picture.paint_cell(column, row.row, cell),
            _ => {}
        }
    }
}

/// Marks the cells below an image row that will be drawn over them later.
fn mark_covered(row: &ImageRow, buf: &mut Buffer) {
    for at in row_cells(row) {
        if let Some(cell) = buf.cell_mut(at) {
            cell.reset();
            cell.set_symbol(COVERED_SYMBOL);
        }
    }
}
