//! Shows questions to the user. An open question replaces the editor until it is answered.
//!
//! The body of a question scrolls if it is longer than the screen allows; the possible answers are always visible. A
//! key that was meant for something else does not answer a question: see [`QuestionView::handle_key`].

mod address;
mod form;
pub(crate) mod lines;
mod permission;

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acp::v1::{ElicitationAction, ElicitationMode, ElicitationNoContent};
use acp_host::terminal_text;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Padding, Widget};

use self::address::AddressView;
use self::form::FormView;
use self::permission::PermissionView;
use crate::Theme;
use crate::agent::{ChatAnswer, ChatQuestion, OpenQuestion};
use crate::draw_context::DrawContext;
use crate::text::columns::pluralize;
use crate::text::fit::truncate_to_width;
use crate::text::highlight;
use crate::web_address::WebAddress;

/// How long the keyboard must be idle before a key counts as an answer. A user who is typing a prompt does not stop the
/// moment a question replaces the editor.
const SETTLE_TIME: Duration = Duration::from_millis(300);

/// The effect of a key on a question.
#[derive(Debug)]
pub(crate) enum QuestionOutcome {
    /// The question does not use this key. Escape is always ignored and leaves the question open.
    Ignored,
    /// The key was not meant for the question: it came too soon, or is a letter that answers nothing. It goes to the
    /// editor, where the user was typing.
    Early,
    /// The question must be redrawn.
    Changed,
    /// The user wants to [open](WebAddress::open) this URL.
    OpenAddress(WebAddress),
    /// The user wants to reject a permission request and say what to do instead.
    Instead,
    /// The user answered the question.
    Answer(ChatAnswer),
}

/// The view of a question from an agent.
pub(crate) struct QuestionView {
    question: Arc<OpenQuestion>,
    /// The name of the agent that asked.
    agent: String,
    kind: QuestionKind,
    /// The time of the last key that was not meant for the question or, if there was none, the time at which the
    /// question appeared.
    unsettled_at: Instant,
    /// Why the last key was not taken, if it was not.
    untaken_key: Option<UntakenKey>,
    /// The first visible line of the body.
    top: usize,
    /// The number of visible body lines in the last frame.
    visible_lines: usize,
    /// Whether the end of the body has been shown.
    was_read: bool,
    /// Whether part of the body cannot be shown.
    partial: bool,
    /// Whether the user tried to allow something before seeing the end of the body.
    was_unread: bool,
    /// Whether to scroll to the focused element when the question is next drawn.
    scrolls_to_focus: bool,
    /// A counter that changes with the contents, so that an outdated layout is not reused.
    revision: u64,
    layout_cache: RefCell<Option<(QuestionLayoutKey, Arc<QuestionBody>)>>,
}

/// Why a key was not taken for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UntakenKey {
    /// It came too soon after the question had appeared, or after another such key.
    TooSoon,
    /// It is a letter that is no answer, so the user is writing something else.
    NoAnswer,
}

enum QuestionKind {
    Permission(Box<PermissionView>),
    Form(FormView),
    Address(AddressView),
}

/// Everything that the body's layout depends on.
#[derive(PartialEq)]
struct QuestionLayoutKey {
    width: u16,
    revision: u64,
    theme: Theme,
}

/// The body of a question, as lines.
#[derive(Default)]
struct QuestionBody {
    lines: Vec<Line<'static>>,
    /// The lines of the focused element.
    focus: Option<Range<usize>>,
    /// The cursor's line and column.
    cursor: Option<(usize, u16)>,
    /// Whether there is more content that cannot be shown.
    partial: bool,
}

impl QuestionView {
    /// Creates the view of a question that appears at the time `now`. `agent` is the user's name for the agent.
    pub(crate) fn new(asked: Arc<OpenQuestion>, agent: &str, now: Instant) -> Self {
        let kind = match &asked.question {
            ChatQuestion::Permission(request, always) => {
                QuestionKind::Permission(Box::new(PermissionView::new(request, always)))
            }
            ChatQuestion::Elicitation(request) => match &request.mode {
                ElicitationMode::Form { requested_schema } => {
                    QuestionKind::Form(FormView::new(&request.message, requested_schema))
                }
                ElicitationMode::Url { url, .. } => {
                    QuestionKind::Address(AddressView::new(&request.message, url))
                }
                _ => QuestionKind::Form(FormView::unsupported(&request.message)),
            },
        };
        Self {
            question: asked,
            agent: terminal_text::clean_value(agent),
            kind,
            unsettled_at: now,
            untaken_key: None,
            top: 0,
            visible_lines: 0,
            was_read: false,
            partial: false,
            was_unread: false,
            scrolls_to_focus: true,
            revision: 0,
            layout_cache: RefCell::default(),
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.question.id
    }

    /// Handles the return to this question from another tab. Keys are accepted only after a pause.
    pub(crate) fn on_shown(&mut self, now: Instant) {
        self.unsettled_at = now;
    }

    /// Stores the result of opening the URL in order to show it.
    pub(crate) fn on_address_opened(&mut self, result: Result<(), String>) {
        if let QuestionKind::Address(view) = &mut self.kind {
            view.set_open_result(result);
            self.invalidate_layout();
        }
    }

    fn invalidate_layout(&mut self) {
        self.revision += 1;
    }

    /// Returns whether a key at the time `now` came too early to be meant for this question. If so, so do the keys that
    /// follow it without a pause.
    fn check_if_too_early(&mut self, now: Instant) -> bool {
        let early = now.saturating_duration_since(self.unsettled_at) < SETTLE_TIME;
        if early {
            self.unsettled_at = now;
        } else {
            // From here on, the question gets the keys.
            self.unsettled_at = now.checked_sub(SETTLE_TIME).unwrap_or(now);
        }
        self.untaken_key = early.then_some(UntakenKey::TooSoon);
        if early {
            self.deselect();
        }
        early
    }

    /// Takes back the selection of an option, which may come from a letter of a word. Enter, at the end of the line,
    /// must not confirm it.
    fn deselect(&mut self) {
        if let QuestionKind::Permission(view) = &mut self.kind {
            view.deselect();
            self.invalidate_layout();
        }
    }

    /// Handles a key pressed at the time `now`. A key is [early](QuestionOutcome::Early) within 300 ms of the
    /// question's appearance, of another early key, or of a letter that answers nothing. So a user who keeps typing
    /// without looking cannot answer by accident. Scrolling always works.
    pub(crate) fn handle_key(&mut self, key: KeyEvent, now: Instant) -> QuestionOutcome {
        if key.kind == KeyEventKind::Release || key.code == KeyCode::Esc {
            return QuestionOutcome::Ignored;
        }
        let line = key.modifiers == KeyModifiers::CONTROL || key.modifiers == KeyModifiers::SHIFT;
        let page = isize::try_from(self.visible_lines.saturating_sub(1).max(1)).unwrap_or(1);
        let form = matches!(self.kind, QuestionKind::Form(_));
        match key.code {
            KeyCode::PageUp => return self.scroll(-page),
            KeyCode::PageDown => return self.scroll(page),
            KeyCode::Up if line => return self.scroll(-1),
            KeyCode::Down if line => return self.scroll(1),
            KeyCode::Home if !form => return self.scroll(isize::MIN),
            KeyCode::End if !form => return self.scroll(isize::MAX),
            _ => {}
        }
        if self.check_if_too_early(now) {
            return QuestionOutcome::Early;
        }
        let outcome = match &mut self.kind {
            QuestionKind::Permission(view) => view.handle_key(key, now),
            QuestionKind::Form(view) => view.handle_key(key),
            QuestionKind::Address(view) => view.handle_key(key),
        };
        if matches!(outcome, QuestionOutcome::Early) {
            self.unsettled_at = now;
            self.untaken_key = Some(UntakenKey::NoAnswer);
            self.deselect();
            return outcome;
        }
        self.was_unread = (!self.was_read || self.partial) && self.allows(&outcome);
        if self.was_unread {
            return QuestionOutcome::Changed;
        }
        if !matches!(outcome, QuestionOutcome::Ignored) {
            self.scrolls_to_focus = true;
            self.invalidate_layout();
        }
        outcome
    }

    /// Returns whether the outcome grants the agent a permission. The user can do that only after seeing the whole
    /// question.
    fn allows(&self, outcome: &QuestionOutcome) -> bool {
        match (outcome, &self.kind) {
            (QuestionOutcome::OpenAddress(_), _) => true,
            (
                QuestionOutcome::Answer(ChatAnswer::Permission(Some(id))),
                QuestionKind::Permission(view),
            ) => view.allows(id),
            (QuestionOutcome::Answer(ChatAnswer::Elicitation(action)), _) => {
                matches!(action, ElicitationAction::Accept(_))
            }
            _ => false,
        }
    }

    /// Handles text pasted at the time `now`.
    pub(crate) fn handle_paste(&mut self, text: &str, now: Instant) -> QuestionOutcome {
        if self.check_if_too_early(now) {
            return QuestionOutcome::Early;
        }
        match &mut self.kind {
            QuestionKind::Form(view) => {
                view.paste(text);
                self.scrolls_to_focus = true;
                self.invalidate_layout();
                QuestionOutcome::Changed
            }
            _ => QuestionOutcome::Ignored,
        }
    }

    /// Scrolls by a number of lines. Positive numbers scroll down.
    pub(crate) fn scroll(&mut self, lines: isize) -> QuestionOutcome {
        self.was_unread = false;
        self.top = self.top.saturating_add_signed(lines);
        self.scrolls_to_focus = false;
        QuestionOutcome::Changed
    }

    fn layout_body(&self, width: u16, look: &DrawContext<'_>) -> Arc<QuestionBody> {
        let key = QuestionLayoutKey {
            width,
            revision: self.revision,
            theme: look.theme.clone(),
        };
        let mut laid_out = self.layout_cache.borrow_mut();
        if let Some((known, body)) = &*laid_out
            && *known == key
        {
            return Arc::clone(body);
        }
        let (body, plain) = highlight::with_pending_flag(|| match &self.kind {
            QuestionKind::Permission(view) => view.build_body(&self.agent, width, look),
            QuestionKind::Form(view) => view.build_body(&self.agent, width, look),
            QuestionKind::Address(view) => view.build_body(&self.agent, width, look),
        });
        let body = Arc::new(body);
        // A layout whose code is not fully highlighted yet is not cached.
        *laid_out = (!plain).then(|| (key, Arc::clone(&body)));
        body
    }

    /// Builds the possible answers, in at most `most` lines if they fit.
    fn build_choices(&self, width: u16, most: usize, look: &DrawContext<'_>) -> Vec<Line<'static>> {
        match &self.kind {
            QuestionKind::Permission(view) => view.build_choices(width, most, look),
            QuestionKind::Form(view) => view.build_choices(look),
            QuestionKind::Address(view) => view.build_choices(width, look),
        }
    }

    /// Returns the question's height in rows for `width` columns, at most `most`.
    pub(crate) fn height(&self, width: u16, most: u16, look: &DrawContext<'_>) -> u16 {
        let inner = width.saturating_sub(4);
        // The frame, and the line between the body and the answers.
        let rows = self.layout_body(inner, look).lines.len()
            + self.build_choices(inner, usize::MAX, look).len()
            + 3;
        u16::try_from(rows).unwrap_or(u16::MAX).min(most)
    }

    /// Draws the question and returns the cursor's position.
    pub(crate) fn draw(
        &mut self,
        area: Rect,
        buf: &mut Buffer,
        look: &DrawContext<'_>,
    ) -> Option<Position> {
        Clear.render(area, buf);
        let block = Block::bordered()
            .border_type(BorderType::Rounded)
            .border_style(look.theme.focus)
            .padding(Padding::horizontal(1))
            .title_top(self.title(look))
            .title_bottom(self.render_keys(area.width.saturating_sub(2), look));
        let inner = block.inner(area);
        block.render(area, buf);
        if inner.is_empty() {
            return None;
        }
        let body = self.layout_body(inner.width, look);
        let height = usize::from(inner.height);
        // The body gets a third of the height, if it is that long.
        let least = body.lines.len().min(height / 3) + 1;
        let choices = self.build_choices(inner.width, height.saturating_sub(least), look);
        // If options are shortened, their full texts are shown at the end of the body.
        let all = self.build_choices(inner.width, usize::MAX, look);
        let more = match all.len() > choices.len() {
            true => all,
            false => Vec::new(),
        };
        let length = body.lines.len() + more.len();
        let rows = height.saturating_sub(choices.len() + 1);
        self.visible_lines = rows;
        self.partial = body.partial;
        self.scroll_to(&body, length, rows);
        self.was_read |= self.top + rows >= length;

        let lines = body.lines.iter().chain(&more);
        let shown = lines.skip(self.top).take(rows);
        for (y, line) in (inner.y..).zip(shown) {
            buf.set_line(inner.x, y, line, inner.width);
        }
        let shown = length.saturating_sub(self.top).min(rows);
        let below = length - shown - self.top;
        let row = |row: usize| inner.y + u16::try_from(row).unwrap_or(inner.height);
        if choices.len() < height {
            let rule = render_rule(self.top, below, inner.width, look);
            buf.set_line(inner.x, row(shown), &rule, inner.width);
        }
        let first = height
            .min(shown + 1)
            .min(height.saturating_sub(choices.len()));
        for (n, line) in choices.iter().enumerate().take(height - first) {
            buf.set_line(inner.x, row(first + n), line, inner.width);
        }
        let (line, column) = body.cursor?;
        let at = line.checked_sub(self.top).filter(|at| *at < rows)?;
        let x = (inner.x + column).min(inner.right() - 1);
        Some(Position::new(x, row(at)))
    }

    /// Adjusts the scroll position so that it is within the body and the focus is visible.
    fn scroll_to(&mut self, body: &QuestionBody, length: usize, rows: usize) {
        if let (true, Some(focus)) = (self.scrolls_to_focus, &body.focus) {
            let cursor = body.cursor.map_or(focus.start, |(line, _)| line);
            // Show all of the focused element, or at least the line with the cursor.
            self.top = self
                .top
                .max(focus.end.saturating_sub(rows))
                .min(focus.start);
            self.top = self.top.max((cursor + 1).saturating_sub(rows)).min(cursor);
        }
        self.top = self.top.min(length.saturating_sub(rows));
    }

    fn title(&self, look: &DrawContext<'_>) -> Line<'static> {
        let what = match &self.kind {
            QuestionKind::Permission(_) => "asks for permission",
            QuestionKind::Form(_) => "has a question",
            QuestionKind::Address(_) => "wants to open a web page",
        };
        let agent = truncate_to_width(&self.agent, 30);
        Line::from(vec![
            Span::styled(format!(" {agent} "), look.theme.strong),
            Span::styled(format!("{what} "), look.theme.text),
        ])
    }

    /// Builds the footer: why the last key was not taken, or the keys that can be pressed. It fits the width.
    fn render_keys(&self, width: u16, look: &DrawContext<'_>) -> Line<'static> {
        let notice = match self.untaken_key {
            Some(UntakenKey::TooSoon) => Some([
                " key ignored because it came too soon; try again ",
                " too soon; press the key again ",
            ]),
            Some(UntakenKey::NoAnswer) => Some([
                " this key is no answer; what you type goes to the prompt ",
                " no answer; it goes to the prompt ",
            ]),
            None if self.was_unread && self.partial => Some([
                " this request cannot be shown in full, so it can only be rejected ",
                " not shown in full; only reject it ",
            ]),
            None if self.was_unread => Some([
                " read to the end first: PgDn or End ",
                " read to the end first: End ",
            ]),
            None => None,
        };
        if let Some([long, short]) = notice {
            let text = match long.len() <= usize::from(width) {
                true => long,
                false => short,
            };
            return Line::styled(text, look.theme.warn);
        }
        let keys: Vec<KeyHint> = match &self.kind {
            QuestionKind::Permission(view) => view.keys(),
            QuestionKind::Form(view) => view.keys().to_vec(),
            QuestionKind::Address(_) => vec![CANCEL_HINT],
        };
        render_key_hints(&keys, width, look)
    }
}

/// A key in the footer: the key, what it does, and the same in a word or none for narrow screens.
type KeyHint = (&'static str, &'static str, &'static str);

/// The hint for the key that works in every question.
const CANCEL_HINT: KeyHint = ("esc", "cancel the turn", "cancel");

/// Builds the footer with these keys. If they do not fit, it says less about each, and then leaves out some between the
/// first and the last.
fn render_key_hints(keys: &[KeyHint], width: u16, look: &DrawContext<'_>) -> Line<'static> {
    let render = |keys: &[KeyHint], is_short: bool| {
        let mut line = Line::default();
        for (key, what, short) in keys {
            let before = if line.spans.is_empty() { " " } else { " · " };
            let what = if is_short { short } else { what };
            line.spans.push(Span::styled(before, look.theme.border));
            line.spans.push(Span::styled(*key, look.theme.accent));
            if !what.is_empty() {
                line.spans
                    .push(Span::styled(format!(" {what}"), look.theme.dim));
            }
        }
        line.spans.push(Span::raw(" "));
        line
    };
    let fits = |line: &Line<'_>| line.width() <= usize::from(width);
    let mut line = render(keys, false);
    let mut keys = keys.to_vec();
    while !fits(&line) {
        line = render(&keys, true);
        if fits(&line) || keys.len() <= 2 {
            break;
        }
        keys.remove(1);
    }
    line
}

/// Builds the line below the body, which shows how many lines are hidden above and below.
fn render_rule(above: usize, below: usize, width: u16, look: &DrawContext<'_>) -> Line<'static> {
    let said = match (above, below) {
        (0, 0) => String::new(),
        (0, below) => format!(" {}: PgDn ", pluralize(below, "more line")),
        (above, 0) => {
            let lines = if above == 1 { "line" } else { "lines" };
            format!(" {above} {lines} above: PgUp ")
        }
        (above, below) => format!(" {above} above, {below} below: PgUp PgDn "),
    };
    let said = truncate_to_width(&said, width.saturating_sub(2));
    let rest = usize::from(width).saturating_sub(said.len() + 2);
    Line::from(vec![
        Span::styled("──", look.theme.border),
        Span::styled(said, look.theme.warn),
        Span::styled("─".repeat(rest), look.theme.border),
    ])
}

fn decline_outcome() -> QuestionOutcome {
    let action = ElicitationAction::Decline(ElicitationNoContent::default());
    QuestionOutcome::Answer(ChatAnswer::Elicitation(action))
}

fn cancel_outcome() -> QuestionOutcome {
    let action = ElicitationAction::Cancel(ElicitationNoContent::default());
    QuestionOutcome::Answer(ChatAnswer::Elicitation(action))
}

#[cfg(test)]
mod tests;
