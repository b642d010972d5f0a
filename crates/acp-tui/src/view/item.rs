//! An item of a thread, laid out.

use std::time::Instant;

use acp::Thread;
use acp::thread::{Item, ItemKind};
use acp::v1::{CompactionStatus, NoticeSeverity};
use acp_host::clean;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::Detail;
use super::image::Spot;
use super::message::{LaidMessage, Speaker};
use super::subagent::{self, LaidSubagent};
use super::tool_call::LaidCall;
use crate::images::Canvas;
use crate::look::Look;
use crate::text::wrap::wrap;

/// What is to be laid out.
pub(super) struct Wanted<'a> {
    pub(super) thread: &'a Thread,
    pub(super) item: &'a Item,
    pub(super) width: u16,
    /// Whether the person has opened or folded it.
    pub(super) open: Option<bool>,
    /// It is the last one of a thread that goes on.
    pub(super) running: bool,
    pub(super) detail: Detail,
    /// Which drawing of the view this is.
    pub(super) drawing: u64,
    /// How long this drawing lays out.
    pub(super) until: Instant,
}

/// An item, laid out.
#[derive(Default)]
pub(super) struct Laid {
    /// What it was laid out for.
    key: Option<Key>,
    /// The drawing in which it was looked at last: once in each is enough.
    drawing: u64,
    /// It is shown whole.
    pub(super) open: bool,
    body: Body,
}

/// All that a layout depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    revision: u64,
    width: u16,
    open: Option<bool>,
    running: bool,
    detail: Detail,
    /// How much its terminals have printed, or what is shown below it has changed.
    printed: u64,
    /// What its images are drawn on.
    images: Option<Canvas>,
}

#[derive(Default)]
enum Body {
    #[default]
    Nothing,
    Message(Box<LaidMessage>),
    Call(Box<LaidCall>),
    Subagent(Box<LaidSubagent>),
    Lines(Vec<Line<'static>>),
}

impl Laid {
    pub(super) fn update(&mut self, wanted: &Wanted<'_>, look: &Look<'_>) {
        if std::mem::replace(&mut self.drawing, wanted.drawing) == wanted.drawing {
            return;
        }
        let printed = match &wanted.item.kind {
            ItemKind::ToolCall(call) => super::tool_call::printed(call, wanted.thread),
            _ => subagent::revision(wanted.item),
        };
        let key = Key {
            revision: wanted.item.revision,
            width: wanted.width,
            open: wanted.open,
            running: wanted.running,
            detail: wanted.detail,
            printed,
            images: look.images,
        };
        if self.key == Some(key) && !self.is_unfinished() && !self.waits() {
            // Its sign moves; what stands below it does not.
            match (&mut self.body, &wanted.item.kind) {
                (Body::Call(laid), ItemKind::ToolCall(call)) if !call.is_finished() => {
                    laid.update_head(call, wanted.width, look);
                }
                (Body::Subagent(laid), ItemKind::Subagent(subagent)) if subagent.is_running() => {
                    laid.update_head(subagent, wanted.width, look);
                }
                _ => {}
            }
            return;
        }
        self.key = Some(key);
        self.lay(wanted, look);
    }

    fn lay(&mut self, wanted: &Wanted<'_>, look: &Look<'_>) {
        let theme = look.theme;
        let lines = |lines: Vec<Line<'static>>| Body::Lines(lines);
        match &wanted.item.kind {
            ItemKind::User(message) => self.message(message, Speaker::User, wanted, look),
            ItemKind::Agent(message) => self.message(message, Speaker::Agent, wanted, look),
            ItemKind::Thought(message) => self.message(message, Speaker::Thought, wanted, look),
            ItemKind::ToolCall(call) => {
                let mut laid = match std::mem::take(&mut self.body) {
                    Body::Call(laid) => laid,
                    _ => Box::default(),
                };
                self.open = laid.update(call, wanted, look);
                self.body = Body::Call(laid);
            }
            ItemKind::Subagent(subagent) => {
                let mut laid = match std::mem::take(&mut self.body) {
                    Body::Subagent(laid) => laid,
                    _ => Box::default(),
                };
                self.open = laid.update(subagent, wanted, look);
                self.body = Body::Subagent(laid);
            }
            ItemKind::SessionMessage(message) => {
                let text: String = message
                    .content
                    .iter()
                    .filter_map(acp::v1::ContentBlock::as_text)
                    .collect();
                let mut all = vec![said("✉ ", &addressed(message, wanted.thread), theme.dim)];
                let text = clean::clean(&text);
                all.extend(text.lines().map(|line| said("  ", line, Style::new())));
                self.body = lines(wrapped(all, wanted.width));
            }
            ItemKind::Notice(notice) => {
                let style = match notice.severity {
                    NoticeSeverity::Error => theme.bad,
                    NoticeSeverity::Warning => theme.warn,
                    _ => theme.dim,
                };
                let mut all = vec![said("! ", &clean::value(&notice.title), style)];
                let more = notice.description.as_deref().unwrap_or_default();
                let more = clean::clean(more);
                all.extend(more.lines().map(|line| said("  ", line, theme.dim)));
                self.body = lines(wrapped(all, wanted.width));
            }
            ItemKind::Compaction(compaction) => {
                let how = match (&compaction.status, &compaction.error) {
                    (CompactionStatus::InProgress, _) => "is being shortened".to_owned(),
                    (CompactionStatus::Completed, _) => "has been shortened".to_owned(),
                    (_, Some(error)) => format!("could not be shortened: {error}"),
                    (_, None) => "could not be shortened".to_owned(),
                };
                let line = said("", &format!("the conversation {how}"), theme.dim);
                self.body = lines(wrapped(vec![line], wanted.width));
            }
            ItemKind::Unknown(object) => {
                let kind: String = object.field("sessionUpdate").unwrap_or_default();
                let text = format!("an update of a kind unknown here: {kind}");
                self.body = lines(wrapped(vec![said("", &text, theme.dim)], wanted.width));
            }
            _ => self.body = Body::Nothing,
        }
    }

    fn message(
        &mut self,
        message: &acp::thread::Message,
        speaker: Speaker,
        wanted: &Wanted<'_>,
        look: &Look<'_>,
    ) {
        let mut laid = match std::mem::take(&mut self.body) {
            Body::Message(laid) => laid,
            _ => Box::default(),
        };
        self.open = laid.update(message, speaker, wanted, look);
        self.body = Body::Message(laid);
    }

    /// Whether this drawing looked at it, and there is more to be laid out of it.
    pub(super) fn is_unfinished_in(&self, drawing: u64) -> bool {
        self.drawing == drawing && self.is_unfinished()
    }

    /// Whether there is more to be laid out of it than was at once.
    pub(super) fn is_unfinished(&self) -> bool {
        match &self.body {
            Body::Message(message) => message.is_unfinished(),
            Body::Call(call) => call.unfinished,
            Body::Subagent(subagent) => subagent.is_unfinished(),
            Body::Nothing | Body::Lines(_) => false,
        }
    }

    /// Whether there is code in it that is to get its colours.
    fn waits(&self) -> bool {
        match &self.body {
            Body::Message(message) => message.waits(),
            Body::Call(call) => call.waits(),
            Body::Nothing | Body::Subagent(_) | Body::Lines(_) => false,
        }
    }

    pub(super) fn height(&self) -> usize {
        match &self.body {
            Body::Nothing => 0,
            Body::Message(message) => message.height(),
            Body::Call(call) => call.height(),
            Body::Subagent(subagent) => subagent.height(),
            Body::Lines(lines) => lines.len(),
        }
    }

    pub(super) fn line(&self, n: usize) -> Option<&Line<'static>> {
        match &self.body {
            Body::Nothing => None,
            Body::Message(message) => message.line(n),
            Body::Call(call) => call.line(n),
            Body::Subagent(subagent) => subagent.line(n),
            Body::Lines(lines) => lines.get(n),
        }
    }

    /// What all of its text has in common.
    pub(super) fn style(&self, look: &Look<'_>) -> Style {
        match &self.body {
            Body::Message(message) => message.style(look),
            _ => Style::new(),
        }
    }

    /// The image that has its row in this line, and which row that is.
    pub(super) fn image(&self, n: usize) -> Option<(Spot, u16)> {
        match &self.body {
            Body::Message(message) => message.image(n),
            Body::Call(call) => call.image(n),
            Body::Nothing | Body::Subagent(_) | Body::Lines(_) => None,
        }
    }

    /// What stands in the margin.
    pub(super) fn mark(&self, look: &Look<'_>) -> (&'static str, Style) {
        match &self.body {
            Body::Message(message) => message.mark(look),
            _ => (" ", Style::new()),
        }
    }
}

/// Who has said something to whom: a subagent by its name.
fn addressed(message: &acp::thread::SessionMessage, thread: &Thread) -> String {
    let name = |id: &Option<acp::v1::SessionId>| {
        let subagent = thread.subagent(id.as_ref()?)?;
        Some(subagent.name().to_owned())
    };
    match (name(&message.sender), name(&message.recipient)) {
        (Some(sender), _) => format!("from {sender}"),
        (None, Some(recipient)) => format!("to {recipient}"),
        (None, None) => "a message of another session".to_owned(),
    }
}

/// A line of somebody's words behind a mark.
fn said(mark: &'static str, text: &str, style: Style) -> Line<'static> {
    Line::from(vec![
        Span::styled(mark, style),
        Span::styled(clean::line(text), style),
    ])
}

fn wrapped(lines: Vec<Line<'static>>, width: u16) -> Vec<Line<'static>> {
    lines.iter().flat_map(|line| wrap(line, width)).collect()
}
