//! The images that are on the screen, and some that were.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::num::NonZeroU16;

use ratatui::buffer::{Buffer, CellDiffOption};
use ratatui::layout::Position;
use ratatui::style::Style;

use super::{Canvas, Done, Key, Made, Task, Way, blocks, kitty};

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
pub(crate) struct Row {
    pub(crate) key: Key,
    /// Which of its rows.
    pub(crate) row: u16,
    /// Where it begins.
    pub(crate) at: Position,
    /// Where in the thread the image is: the number of the item, and that of the block within.
    pub(crate) item: usize,
    pub(crate) block: usize,
}

/// The images.
#[derive(Debug, Default)]
pub(crate) struct Store {
    canvas: Option<Canvas>,
    known: HashMap<Key, Known>,
    /// What is drawn over the cells when all of them are drawn.
    over: Vec<Row>,
    wanted: Vec<Task>,
    /// The kitty numbers that are not needed any more.
    gone: Vec<u32>,
    /// How often it was drawn.
    drawn: u64,
    /// The number of the next image.
    next: u32,
}

#[derive(Debug)]
struct Known {
    state: State,
    /// When it was seen last.
    drawn: u64,
}

#[derive(Debug)]
enum State {
    /// It is being decoded.
    Coming,
    Made(Made),
    /// It cannot be, for this reason.
    Failed(String),
}

impl Store {
    /// Images are drawn on this from now on; not at all if there is none.
    pub(crate) fn set_canvas(&mut self, canvas: Option<Canvas>) {
        if self.next == 0 {
            // Another chat on the same terminal should not have the same numbers.
            let mut hasher = DefaultHasher::new();
            (std::process::id(), std::time::SystemTime::now()).hash(&mut hasher);
            let [a, b, ..] = hasher.finish().to_be_bytes();
            self.next = u32::from_be_bytes([0, a, b, 0]);
        }
        self.canvas = canvas;
    }

    pub(crate) fn canvas(&self) -> Option<Canvas> {
        self.canvas
    }

    /// A drawing begins.
    pub(crate) fn begin(&mut self) {
        self.drawn += 1;
        self.over.clear();
    }

    /// Paints these rows, as far as the images are there. `data` has an image's data in base64.
    pub(crate) fn paint(
        &mut self,
        rows: &[Row],
        buf: &mut Buffer,
        style: Style,
        data: impl Fn(&Row) -> Option<String>,
    ) {
        let mut coming = self.coming();
        for row in rows {
            match self.known.get_mut(&row.key) {
                Some(known) => {
                    known.drawn = self.drawn;
                    match &known.state {
                        State::Coming => {}
                        State::Made(Made::Rows(_)) => {
                            cover(row, buf);
                            self.over.push(*row);
                        }
                        State::Made(made) => paint(made, row, buf),
                        State::Failed(why) if row.row == 0 => {
                            let why = format!("it cannot be shown: {why}");
                            let room = buf.area.right().saturating_sub(row.at.x);
                            let Position { x, y } = row.at;
                            buf.set_stringn(x, y, why, usize::from(room), style);
                        }
                        State::Failed(_) => {}
                    }
                }
                None if coming < AT_ONCE => {
                    let Some(data) = data(row) else { continue };
                    coming += 1;
                    self.next = (self.next + 1) & 0xff_ffff;
                    self.wanted.push(Task {
                        key: row.key,
                        id: self.next,
                        data,
                    });
                    let known = Known {
                        state: State::Coming,
                        drawn: self.drawn,
                    };
                    self.known.insert(row.key, known);
                }
                None => {}
            }
        }
    }

    /// How many are being decoded.
    fn coming(&self) -> usize {
        let coming = |known: &&Known| matches!(known.state, State::Coming);
        self.known.values().filter(coming).count()
    }

    /// Everything is drawn: what is drawn over the cells is put there, unless something else is.
    pub(crate) fn finish(&mut self, buf: &mut Buffer) {
        for row in std::mem::take(&mut self.over) {
            let Some(State::Made(Made::Rows(rows))) =
                self.known.get(&row.key).map(|known| &known.state)
            else {
                continue;
            };
            let free = cells(&row).all(|at| buf.cell(at).is_some_and(|c| c.symbol() == COVERED));
            let sequence = rows.get(usize::from(row.row)).filter(|_| free);
            let width = NonZeroU16::new(row.key.columns);
            match (sequence, width, buf.cell_mut(row.at)) {
                (Some(sequence), Some(width), Some(first)) => {
                    // The cells behind the first are not drawn; as what they are they will differ from what is.
                    first
                        .set_symbol(sequence)
                        .set_diff_option(CellDiffOption::ForcedWidth(width));
                }
                _ => {
                    for at in cells(&row) {
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
    pub(crate) fn wanted(&mut self) -> Vec<Task> {
        std::mem::take(&mut self.wanted)
    }

    /// Takes what was decoded.
    pub(crate) fn done(&mut self, done: Done) {
        let state = match done.result {
            Ok(made) => State::Made(made),
            Err(why) => State::Failed(why),
        };
        if let Some(known) = self.known.get_mut(&done.key) {
            known.state = state;
        }
        self.forget();
    }

    /// Lets go of what was not seen for longest, if it is much.
    fn forget(&mut self) {
        let mut bytes: usize = self.known.values().map(Known::bytes).sum();
        while bytes > KEPT || self.known.len() > MOST {
            let now = self.drawn;
            let old = self.known.iter().filter(|(_, known)| {
                // What is seen must stay, or it would be decoded again at once.
                known.drawn < now && !matches!(known.state, State::Coming)
            });
            let Some(key) = old
                .min_by_key(|(_, known)| known.drawn)
                .map(|(key, _)| *key)
            else {
                return;
            };
            let Some(known) = self.known.remove(&key) else {
                return;
            };
            bytes -= known.bytes();
            if let State::Made(Made::Kitty(picture)) = known.state {
                self.gone.push(picture.id);
            }
        }
    }

    /// Tells the terminal what it must know before it shows this drawing.
    pub(crate) fn send(&mut self, out: &mut impl Write) -> io::Result<()> {
        for id in self.gone.drain(..) {
            kitty::forget(id, out)?;
        }
        for (key, known) in &self.known {
            if let (State::Made(Made::Kitty(picture)), Way::Kitty { tmux }) =
                (&known.state, key.canvas.way)
                && known.drawn == self.drawn
            {
                picture.send(tmux, out)?;
            }
        }
        Ok(())
    }
}

impl Known {
    fn bytes(&self) -> usize {
        match &self.state {
            State::Made(made) => made.bytes(),
            State::Coming | State::Failed(_) => 0,
        }
    }
}

/// The cells of a row.
fn cells(row: &Row) -> impl Iterator<Item = Position> + use<> {
    let Position { x, y } = row.at;
    (0..row.key.columns).map(move |column| Position::new(x.saturating_add(column), y))
}

/// Paints what is made of cells.
fn paint(made: &Made, row: &Row, buf: &mut Buffer) {
    for (column, at) in (0..).zip(cells(row)) {
        let Some(cell) = buf.cell_mut(at) else { return };
        match (made, row.key.canvas.way) {
            (Made::Blocks(image), Way::Blocks(depth)) => {
                blocks::paint(image, depth, column, row.row, cell);
            }
            (Made::Kitty(picture), _) => picture.paint(column, row.row, cell),
            _ => {}
        }
    }
}

/// Marks the cells over which it will be drawn.
fn cover(row: &Row, buf: &mut Buffer) {
    for at in cells(row) {
        if let Some(cell) = buf.cell_mut(at) {
            cell.reset();
            cell.set_symbol(COVERED);
        }
    }
}
