//! Messages and thoughts, laid out.

use acp::thread::Message;
use acp::v1::ContentBlock;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::image::{self, Spot};
use super::item::Wanted;
use crate::look::Look;
use crate::text::markdown::Markdown;
use crate::text::wrap::wrap;

/// How many lines of what was typed or pasted are shown.
const TYPED: usize = 2_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Speaker {
    #[default]
    Agent,
    User,
    Thought,
}

/// A message, laid out block by block.
#[derive(Default)]
pub(super) struct LaidMessage {
    speaker: Speaker,
    pieces: Vec<Piece>,
    /// A thought that is folded: the one line that stands for it.
    folded: Option<Line<'static>>,
}

enum Piece {
    /// Text, which may grow.
    Text {
        markdown: Box<Markdown>,
        height: usize,
    },
    /// What was typed.
    Lines(Vec<Line<'static>>),
    /// Anything else, which may be an image.
    Other {
        lines: Vec<Line<'static>>,
        image: Option<Spot>,
    },
}

impl Piece {
    fn height(&self) -> usize {
        match self {
            Self::Text { height, .. } => *height,
            Self::Lines(lines) | Self::Other { lines, .. } => lines.len(),
        }
    }

    fn line(&self, n: usize) -> Option<&Line<'static>> {
        match self {
            Self::Text { markdown, .. } => markdown.laid().get(n),
            Self::Lines(lines) | Self::Other { lines, .. } => lines.get(n),
        }
    }
}

impl LaidMessage {
    /// Lays it out; gives whether it is shown whole.
    pub(super) fn update(
        &mut self,
        message: &Message,
        speaker: Speaker,
        wanted: &Wanted<'_>,
        look: &Look<'_>,
    ) -> bool {
        self.speaker = speaker;
        // A thought is of interest while it is thought.
        let whole = match speaker {
            Speaker::Thought => wanted.open.unwrap_or(wanted.detail.all || wanted.running),
            _ => wanted.open.unwrap_or(true),
        };
        self.folded = (!whole).then(|| folded(message, speaker, look));
        if !whole {
            return false;
        }
        self.pieces.truncate(message.content.len());
        for (n, block) in message.content.iter().enumerate() {
            let piece = match block {
                // What the person has typed is shown as they have typed it.
                ContentBlock::Text(text) if speaker == Speaker::User => {
                    Piece::Lines(typed(&text.text, wanted.width, look))
                }
                ContentBlock::Text(text) => {
                    let mut markdown = match self.pieces.get_mut(n) {
                        Some(Piece::Text { markdown, .. }) => std::mem::take(markdown),
                        _ => Box::default(),
                    };
                    let theme = look.theme;
                    let lines = markdown.lines(&text.text, wanted.width, theme, wanted.until);
                    let height = lines.len();
                    Piece::Text { markdown, height }
                }
                other => {
                    let (lines, key) = image::lay(other, wanted.width, look);
                    let image = key.map(|key| Spot {
                        key,
                        line: lines.len() - usize::from(key.rows),
                        indent: 0,
                        block: n,
                    });
                    Piece::Other { lines, image }
                }
            };
            match self.pieces.get_mut(n) {
                Some(known) => *known = piece,
                None => self.pieces.push(piece),
            }
        }
        true
    }

    fn texts(&self) -> impl Iterator<Item = &Markdown> {
        let shown = self.folded.is_none();
        let texts = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text { markdown, .. } => Some(&**markdown),
            Piece::Lines(_) | Piece::Other { .. } => None,
        });
        texts.filter(move |_| shown)
    }

    /// Whether not all of it is laid out yet.
    pub(super) fn is_unfinished(&self) -> bool {
        self.texts().any(Markdown::is_unfinished)
    }

    /// Whether there is code in it that is to get its colours.
    pub(super) fn waits(&self) -> bool {
        self.texts().any(Markdown::waits)
    }

    pub(super) fn height(&self) -> usize {
        match self.folded {
            Some(_) => 1,
            None => self.pieces.iter().map(Piece::height).sum(),
        }
    }

    pub(super) fn line(&self, n: usize) -> Option<&Line<'static>> {
        if let Some(folded) = &self.folded {
            return (n == 0).then_some(folded);
        }
        let (piece, n) = self.piece(n)?;
        piece.line(n)
    }

    /// The image that has its row in this line, and which row that is.
    pub(super) fn image(&self, n: usize) -> Option<(Spot, u16)> {
        if self.folded.is_some() {
            return None;
        }
        match self.piece(n)? {
            (Piece::Other { image, .. }, n) => {
                let spot = (*image)?;
                Some((spot, spot.row(n)?))
            }
            _ => None,
        }
    }

    /// The piece that a line is of, and which line of it.
    fn piece(&self, line: usize) -> Option<(&Piece, usize)> {
        let mut line = line;
        for piece in &self.pieces {
            if line < piece.height() {
                return Some((piece, line));
            }
            line -= piece.height();
        }
        None
    }

    pub(super) fn style(&self, look: &Look<'_>) -> Style {
        match self.speaker {
            Speaker::Thought => look.theme.thought,
            _ => Style::new(),
        }
    }

    pub(super) fn mark(&self, look: &Look<'_>) -> (&'static str, Style) {
        match self.speaker {
            Speaker::User => ("▌", look.theme.user),
            Speaker::Thought => ("┊", look.theme.dim),
            Speaker::Agent => (" ", Style::new()),
        }
    }
}

/// A text as it was typed.
fn typed(text: &str, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
    let text = acp_host::clean::clean(text);
    let lines = text.trim_end().lines().take(TYPED);
    lines
        .flat_map(|line| wrap(&Line::styled(line.to_owned(), look.theme.text), width))
        .collect()
}

/// The one line that stands for a message.
fn folded(message: &Message, speaker: Speaker, look: &Look<'_>) -> Line<'static> {
    let text = message.text();
    let first = text.lines().find(|line| !line.trim().is_empty());
    let first = acp_host::clean::line(first.unwrap_or_default().trim());
    let (what, style) = match speaker {
        Speaker::Thought => ("thought: ", look.theme.thought),
        _ => ("", look.theme.dim),
    };
    Line::from(vec![
        Span::styled("▸ ", look.theme.dim),
        Span::styled(what, look.theme.dim),
        Span::styled(first, style),
    ])
}
