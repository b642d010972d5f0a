//! Lays out messages and thoughts.

use std::borrow::Cow;

use acp::thread::ThreadMessage;
use acp::v1::ContentBlock;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::image::{self, ImagePlacement};
use super::item::ItemRequest;
use crate::draw_context::DrawContext;
use crate::editor::FoldedText;
use crate::text::markdown::MarkdownView;
use crate::text::wrap::wrap_line;

/// The maximum number of lines of a user's text to show.
const MAX_USER_LINES: usize = 2_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum MessageSpeaker {
    #[default]
    Agent,
    User,
    Thought,
}

/// The layout of a message, in one part per content block.
#[derive(Default)]
pub(super) struct MessageLayout {
    speaker: MessageSpeaker,
    pieces: Vec<MessagePiece>,
    /// The summary line of a collapsed thought.
    summary: Option<Line<'static>>,
}

enum MessagePiece {
    /// Text that may still grow.
    Text {
        markdown: Box<MarkdownView>,
        height: usize,
    },
    /// Text written by the user.
    Lines(Vec<Line<'static>>),
    /// Any other content, such as an image.
    Other {
        lines: Vec<Line<'static>>,
        image: Option<ImagePlacement>,
    },
}

impl MessagePiece {
    fn height(&self) -> usize {
        match self {
            Self::Text { height, .. } => *height,
            Self::Lines(lines) | Self::Other { lines, .. } => lines.len(),
        }
    }

    fn line(&self, n: usize) -> Option<&Line<'static>> {
        match self {
            Self::Text { markdown, .. } => markdown.last_lines().get(n),
            Self::Lines(lines) | Self::Other { lines, .. } => lines.get(n),
        }
    }
}

impl MessageLayout {
    /// Updates the layout and returns whether the message is expanded.
    pub(super) fn update(
        &mut self,
        message: &ThreadMessage,
        speaker: MessageSpeaker,
        wanted: &ItemRequest<'_>,
        look: &DrawContext<'_>,
    ) -> bool {
        self.speaker = speaker;
        // What was a label in the prompt is one here, too.
        let has_labels = speaker == MessageSpeaker::User
            && message
                .content
                .iter()
                .filter_map(ContentBlock::as_text)
                .any(|text| matches!(fold_text(text, wanted.folded), Cow::Owned(_)));
        // By default, a thought is expanded while it is being received.
        let whole = match speaker {
            MessageSpeaker::User if has_labels => wanted.is_open.unwrap_or(wanted.detail.all),
            MessageSpeaker::Thought => wanted
                .is_open
                .unwrap_or(wanted.detail.all || wanted.is_running),
            _ => wanted.is_open.unwrap_or(true),
        };
        self.summary = (!whole && !has_labels).then(|| render_summary(message, speaker, look));
        if self.summary.is_some() {
            return false;
        }
        self.pieces.truncate(message.content.len());
        for (n, block) in message.content.iter().enumerate() {
            let piece = match block {
                // The user's text is shown exactly as typed, not as Markdown.
                ContentBlock::Text(text) if speaker == MessageSpeaker::User => {
                    let text = match whole {
                        true => Cow::Borrowed(text.text.as_str()),
                        false => fold_text(&text.text, wanted.folded),
                    };
                    MessagePiece::Lines(layout_plain(&text, wanted.width, look))
                }
                ContentBlock::Text(text) => {
                    let mut markdown = match self.pieces.get_mut(n) {
                        Some(MessagePiece::Text { markdown, .. }) => std::mem::take(markdown),
                        _ => Box::default(),
                    };
                    let theme = look.theme;
                    let lines = markdown.lines(&text.text, wanted.width, theme, wanted.deadline);
                    let height = lines.len();
                    MessagePiece::Text { markdown, height }
                }
                other => {
                    let (lines, key) = image::layout_block(other, wanted.width, look);
                    let image = key.map(|key| ImagePlacement {
                        key,
                        line: lines.len() - usize::from(key.rows),
                        indent: 0,
                        block: n,
                    });
                    MessagePiece::Other { lines, image }
                }
            };
            match self.pieces.get_mut(n) {
                Some(known) => *known = piece,
                None => self.pieces.push(piece),
            }
        }
        whole
    }

    fn markdown_views(&self) -> impl Iterator<Item = &MarkdownView> {
        let shown = self.summary.is_none();
        let texts = self.pieces.iter().filter_map(|piece| match piece {
            MessagePiece::Text { markdown, .. } => Some(&**markdown),
            MessagePiece::Lines(_) | MessagePiece::Other { .. } => None,
        });
        texts.filter(move |_| shown)
    }

    /// Returns whether part of the message is not laid out yet.
    pub(super) fn is_unfinished(&self) -> bool {
        self.markdown_views().any(MarkdownView::is_unfinished)
    }

    /// Returns whether the message contains code whose highlighting is pending.
    pub(super) fn is_waiting(&self) -> bool {
        self.markdown_views().any(MarkdownView::is_waiting)
    }

    pub(super) fn height(&self) -> usize {
        match self.summary {
            Some(_) => 1,
            None => self.pieces.iter().map(MessagePiece::height).sum(),
        }
    }

    pub(super) fn line(&self, n: usize) -> Option<&Line<'static>> {
        if let Some(folded) = &self.summary {
            return (n == 0).then_some(folded);
        }
        let (piece, n) = self.piece_at(n)?;
        piece.line(n)
    }

    /// Returns the image that covers line `n`, and the row of the image on that line.
    pub(super) fn image(&self, n: usize) -> Option<(ImagePlacement, u16)> {
        if self.summary.is_some() {
            return None;
        }
        match self.piece_at(n)? {
            (MessagePiece::Other { image, .. }, n) => {
                let spot = (*image)?;
                Some((spot, spot.row(n)?))
            }
            _ => None,
        }
    }

    /// Returns the piece that contains a line, and the line's index within the piece.
    fn piece_at(&self, line: usize) -> Option<(&MessagePiece, usize)> {
        let mut line = line;
        for piece in &self.pieces {
            if line < piece.height() {
                return Some((piece, line));
            }
            line -= piece.height();
        }
        None
    }

    pub(super) fn style(&self, look: &DrawContext<'_>) -> Style {
        match self.speaker {
            MessageSpeaker::Thought => look.theme.thought,
            _ => Style::new(),
        }
    }

    pub(super) fn mark(&self, look: &DrawContext<'_>) -> (&'static str, Style) {
        match self.speaker {
            MessageSpeaker::User => ("▌", look.theme.user),
            MessageSpeaker::Thought => ("┊", look.theme.dim),
            MessageSpeaker::Agent => (" ", Style::new()),
        }
    }
}

/// Puts the labels of folded texts in the place of the texts.
fn fold_text<'t>(text: &'t str, folded: &[FoldedText]) -> Cow<'t, str> {
    let mut shown = Cow::Borrowed(text);
    for FoldedText { label, text } in folded {
        // Empty lines around a prompt are not sent.
        let trimmed = text.trim_start_matches('\n').trim_end();
        for text in [text.as_ref(), trimmed] {
            if !text.is_empty() && shown.contains(text) {
                shown = Cow::Owned(shown.replace(text, label));
            }
        }
    }
    shown
}

/// Lays out text exactly as typed.
fn layout_plain(text: &str, width: u16, look: &DrawContext<'_>) -> Vec<Line<'static>> {
    let text = acp_host::terminal_text::clean_text(text);
    let lines = text.trim_end().lines().take(MAX_USER_LINES);
    lines
        .flat_map(|line| wrap_line(&Line::styled(line.to_owned(), look.theme.text), width))
        .collect()
}

/// Builds the summary line of a collapsed message.
fn render_summary(
    message: &ThreadMessage,
    speaker: MessageSpeaker,
    look: &DrawContext<'_>,
) -> Line<'static> {
    let text = message.text();
    let first = text.lines().find(|line| !line.trim().is_empty());
    let first = acp_host::terminal_text::clean_line(first.unwrap_or_default().trim());
    let (what, style) = match speaker {
        MessageSpeaker::Thought => ("thought: ", look.theme.thought),
        _ => ("", look.theme.dim),
    };
    Line::from(vec![
        Span::styled("▸ ", look.theme.dim),
        Span::styled(what, look.theme.dim),
        Span::styled(first, style),
    ])
}
