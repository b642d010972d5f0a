//! Lays out the items of a thread.

use std::time::Instant;

use acp::Thread;
use acp::thread::{Item, ItemKind};
use acp::v1::{CompactionStatus, Notice, NoticeSeverity};
use acp_host::terminal_text;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::DetailOptions;
use super::image::ImagePlacement;
use super::message::{MessageLayout, MessageSpeaker};
use super::nested::{NestedItems, NestedLayout};
use super::subagent::SubagentLayout;
use super::tool_call::ToolCallLayout;
use crate::draw_context::DrawContext;
use crate::editor::FoldedText;
use crate::images::ImageCanvas;
use crate::text::wrap::wrap_line;
use crate::theme::Theme;

/// A request to lay out an item, including the state that the layout depends on.
pub(super) struct ItemRequest<'a> {
    pub(super) thread: &'a Thread,
    pub(super) item: &'a Item,
    /// The item's number in the thread.
    pub(super) number: usize,
    pub(super) width: u16,
    /// `true` if the user has expanded the item, `false` if the user has collapsed it, and `None` if neither.
    pub(super) is_open: Option<bool>,
    /// Whether this is the last item of a thread that is still being worked on.
    pub(super) is_running: bool,
    pub(super) detail: DetailOptions,
    /// The texts of the user's messages that are shown as their labels.
    pub(super) folded: &'a [FoldedText],
    /// The number of the current frame.
    pub(super) drawing: u64,
    /// The deadline for layout in this frame.
    pub(super) deadline: Instant,
}

/// The lines of an item, laid out for the current width.
#[derive(Default)]
pub(super) struct ItemLayout {
    /// The layout key as of the last update.
    key: Option<ItemLayoutKey>,
    /// The number of the frame in which the layout was last updated. There is at most one update per frame.
    drawing: u64,
    /// Whether the item is expanded.
    pub(super) is_open: bool,
    body: ItemBody,
    /// What is nested under a tool call.
    nested: NestedLayout,
}

/// Everything that an item's layout depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ItemLayoutKey {
    revision: u64,
    width: u16,
    is_open: Option<bool>,
    is_running: bool,
    detail: DetailOptions,
    folded_count: usize,
    /// A number that changes when one of the item's terminals prints something, or when something nested changes.
    content_revision: u64,
    /// The canvas for the item's images.
    images: Option<ImageCanvas>,
}

#[derive(Default)]
enum ItemBody {
    #[default]
    Empty,
    Message(Box<MessageLayout>),
    ToolCall(Box<ToolCallLayout>),
    Subagent(Box<SubagentLayout>),
    Lines(Vec<Line<'static>>),
}

impl ItemLayout {
    pub(super) fn update(&mut self, wanted: &ItemRequest<'_>, look: &DrawContext<'_>) {
        if std::mem::replace(&mut self.drawing, wanted.drawing) == wanted.drawing {
            return;
        }
        let key = ItemLayoutKey {
            revision: wanted.item.revision,
            width: wanted.width,
            is_open: wanted.is_open,
            is_running: wanted.is_running,
            detail: wanted.detail,
            folded_count: wanted.folded.len(),
            content_revision: content_revision(wanted.thread, wanted.number, wanted.item),
            images: look.images,
        };
        if self.key == Some(key) && !self.is_unfinished() && !self.is_waiting() {
            // Only the item's symbol is animated. The lines below it stay the same.
            match (&mut self.body, &wanted.item.kind) {
                (ItemBody::ToolCall(laid), ItemKind::ToolCall(call)) if !call.is_finished() => {
                    laid.update_head(call, wanted.width, look);
                }
                (ItemBody::Subagent(laid), ItemKind::Subagent(subagent))
                    if subagent.is_running() =>
                {
                    laid.update_head(subagent, wanted.width, look);
                }
                _ => {}
            }
            return;
        }
        self.key = Some(key);
        self.layout(wanted, look);
    }

    fn layout(&mut self, wanted: &ItemRequest<'_>, look: &DrawContext<'_>) {
        let theme = look.theme;
        let lines = |lines: Vec<Line<'static>>| ItemBody::Lines(lines);
        match &wanted.item.kind {
            ItemKind::User(message) => {
                self.layout_message(message, MessageSpeaker::User, wanted, look)
            }
            ItemKind::Agent(message) => {
                self.layout_message(message, MessageSpeaker::Agent, wanted, look)
            }
            ItemKind::Thought(message) => {
                self.layout_message(message, MessageSpeaker::Thought, wanted, look)
            }
            ItemKind::ToolCall(call) => {
                let mut laid = match std::mem::take(&mut self.body) {
                    ItemBody::ToolCall(laid) => laid,
                    _ => Box::default(),
                };
                self.is_open = laid.update(call, wanted, look);
                self.body = ItemBody::ToolCall(laid);
                self.layout_nested(!call.is_finished(), wanted, look);
            }
            ItemKind::Subagent(subagent) => {
                let mut laid = match std::mem::take(&mut self.body) {
                    ItemBody::Subagent(laid) => laid,
                    _ => Box::default(),
                };
                self.is_open = laid.update(subagent, wanted, look);
                self.body = ItemBody::Subagent(laid);
            }
            // The subagent shows it.
            ItemKind::SessionMessage(message) if wanted.thread.is_in_subagent(message) => {
                self.body = ItemBody::Empty;
            }
            ItemKind::SessionMessage(message) => {
                let text: String = message
                    .content
                    .iter()
                    .filter_map(acp::v1::ContentBlock::as_text)
                    .collect();
                let mut all = vec![marked_line(
                    "✉ ",
                    &format!("message {}", wanted.thread.message_direction(message)),
                    theme.dim,
                )];
                let text = terminal_text::clean_text(&text);
                all.extend(
                    text.lines()
                        .map(|line| marked_line("  ", line, Style::new())),
                );
                self.body = lines(wrap_lines(all, wanted.width));
            }
            ItemKind::Notice(notice) => {
                self.body = lines(wrap_lines(notice_lines(notice, theme), wanted.width));
            }
            ItemKind::Compaction(compaction) => {
                let how = match (&compaction.status, &compaction.error) {
                    (CompactionStatus::InProgress, _) => "is being compacted".to_owned(),
                    (CompactionStatus::Completed, _) => "was compacted".to_owned(),
                    (_, Some(error)) => format!("could not be compacted: {error}"),
                    (_, None) => "could not be compacted".to_owned(),
                };
                let line = marked_line("", &format!("the conversation {how}"), theme.dim);
                self.body = lines(wrap_lines(vec![line], wanted.width));
            }
            ItemKind::Unknown(object) => {
                let kind: String = object.field("sessionUpdate").unwrap_or_default();
                let text = format!("unknown update: {kind}");
                self.body = lines(wrap_lines(
                    vec![marked_line("", &text, theme.dim)],
                    wanted.width,
                ));
            }
            _ => self.body = ItemBody::Empty,
        }
    }

    /// Lays out what is nested under a tool call.
    fn layout_nested(
        &mut self,
        is_running: bool,
        wanted: &ItemRequest<'_>,
        look: &DrawContext<'_>,
    ) {
        let items: Vec<(usize, &Item)> = wanted.thread.nested_items(wanted.number).collect();
        if items.is_empty() {
            self.nested.clear();
            return;
        }
        let nested = NestedItems {
            thread: wanted.thread,
            items,
            has_dropped: false,
            is_open: wanted.is_open.unwrap_or(wanted.detail.all),
            is_running,
        };
        self.is_open = nested.is_open;
        self.nested.update(&nested, wanted, look);
    }

    fn layout_message(
        &mut self,
        message: &acp::thread::ThreadMessage,
        speaker: MessageSpeaker,
        wanted: &ItemRequest<'_>,
        look: &DrawContext<'_>,
    ) {
        let mut laid = match std::mem::take(&mut self.body) {
            ItemBody::Message(laid) => laid,
            _ => Box::default(),
        };
        self.is_open = laid.update(message, speaker, wanted, look);
        self.body = ItemBody::Message(laid);
    }

    /// Returns whether the layout was updated in this frame but is still unfinished.
    pub(super) fn is_unfinished_in_drawing(&self, drawing: u64) -> bool {
        self.drawing == drawing && self.is_unfinished()
    }

    /// Returns whether part of the item is not laid out yet.
    pub(super) fn is_unfinished(&self) -> bool {
        match &self.body {
            ItemBody::Message(message) => message.is_unfinished(),
            ItemBody::ToolCall(call) => call.unfinished || self.nested.is_unfinished(),
            ItemBody::Subagent(subagent) => subagent.is_unfinished(),
            ItemBody::Empty | ItemBody::Lines(_) => false,
        }
    }

    /// Returns whether the item contains code whose highlighting is pending.
    fn is_waiting(&self) -> bool {
        match &self.body {
            ItemBody::Message(message) => message.is_waiting(),
            ItemBody::ToolCall(call) => call.is_waiting(),
            ItemBody::Empty | ItemBody::Subagent(_) | ItemBody::Lines(_) => false,
        }
    }

    pub(super) fn height(&self) -> usize {
        self.body.height() + self.nested.height()
    }

    pub(super) fn line(&self, n: usize) -> Option<&Line<'static>> {
        match n.checked_sub(self.body.height()) {
            Some(n) if self.nested.height() > 0 => self.nested.line(n),
            _ => self.body.line(n),
        }
    }

    /// Returns the index of the first line that contains a text, which is in lower case. A text that begins at the end
    /// of a line and goes on in the next counts for the first of them.
    pub(super) fn find_text(&self, text: &str) -> Option<usize> {
        let line_text = |n: usize| {
            let spans = self.line(n).map(|line| line.spans.iter());
            let text: String = spans?.map(|span| span.content.as_ref()).collect();
            Some(text.to_lowercase())
        };
        let lines = 0..self.height();
        lines
            .clone()
            .find(|n| line_text(*n).is_some_and(|line| line.contains(text)))
            .or_else(|| {
                lines.clone().find(|n| {
                    let (line, next) = (line_text(*n), line_text(n + 1));
                    line.zip(next).is_some_and(|(line, next)| {
                        format!("{} {}", line.trim_end(), next.trim_start()).contains(text)
                            || format!("{}{}", line.trim_end(), next.trim_start()).contains(text)
                    })
                })
            })
    }

    /// Returns the style of the item's text.
    pub(super) fn style(&self, look: &DrawContext<'_>) -> Style {
        match &self.body {
            ItemBody::Message(message) => message.style(look),
            _ => Style::new(),
        }
    }

    /// Returns the image that covers line `n`, and the row of the image on that line.
    pub(super) fn image(&self, n: usize) -> Option<(ImagePlacement, u16)> {
        match &self.body {
            ItemBody::Message(message) => message.image(n),
            ItemBody::ToolCall(call) => call.image(n),
            ItemBody::Empty | ItemBody::Subagent(_) | ItemBody::Lines(_) => None,
        }
    }

    /// Returns the item's symbol in the margin.
    pub(super) fn mark(&self, look: &DrawContext<'_>) -> (&'static str, Style) {
        match &self.body {
            ItemBody::Message(message) => message.mark(look),
            _ => (" ", Style::new()),
        }
    }
}

impl ItemBody {
    fn height(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Message(message) => message.height(),
            Self::ToolCall(call) => call.height(),
            Self::Subagent(subagent) => subagent.height(),
            Self::Lines(lines) => lines.len(),
        }
    }

    fn line(&self, n: usize) -> Option<&Line<'static>> {
        match self {
            Self::Empty => None,
            Self::Message(message) => message.line(n),
            Self::ToolCall(call) => call.line(n),
            Self::Subagent(subagent) => subagent.line(n),
            Self::Lines(lines) => lines.get(n),
        }
    }
}

/// Returns a number that changes whenever an item's content changes without a new revision of the item, and whenever
/// something nested under it changes. All terms only grow, so their sum changes with each of them.
fn content_revision(thread: &Thread, number: usize, item: &Item) -> u64 {
    match &item.kind {
        ItemKind::ToolCall(call) => {
            let nested = thread
                .nested_items(number)
                .map(|(number, item)| item.revision + content_revision(thread, number, item));
            super::tool_call::output_byte_count(call, thread) + nested.sum::<u64>()
        }
        ItemKind::Subagent(subagent) => subagent.thread.read(Thread::revision),
        ItemKind::SessionMessage(message) => u64::from(thread.is_in_subagent(message)),
        _ => 0,
    }
}

/// Builds a line that starts with a mark.
fn marked_line(mark: &'static str, text: &str, style: Style) -> Line<'static> {
    Line::from(vec![
        Span::styled(mark, style),
        Span::styled(terminal_text::clean_line(text), style),
    ])
}

fn wrap_lines(lines: Vec<Line<'static>>, width: u16) -> Vec<Line<'static>> {
    lines
        .iter()
        .flat_map(|line| wrap_line(line, width))
        .collect()
}

/// Builds the lines of a notice.
fn notice_lines(notice: &Notice, theme: &Theme) -> Vec<Line<'static>> {
    let style = match notice.severity {
        NoticeSeverity::Error => theme.bad,
        NoticeSeverity::Warning => theme.warn,
        _ => theme.dim,
    };
    let title = terminal_text::clean_value(&notice.title);
    let mut all = vec![marked_line("! ", &title, style)];
    let more = notice.description.as_deref().unwrap_or_default();
    let more = terminal_text::clean_text(more);
    all.extend(more.lines().map(|line| marked_line("  ", line, theme.dim)));
    all
}
