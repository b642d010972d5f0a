//! Draws the chat on the screen.
//!
//! From the top: the tabs, the conversation, the panels (plan, failure, notes, queued prompts), the status line, the
//! prompt or the question, and a footer about the session.

use std::time::Duration;

use acp::thread::{Activity, ItemKind, ToolCallStatus};
use acp::v1::{SessionConfigKind, SessionConfigOptionCategory, StopReason};
use acp_host::terminal_text;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Widget};
use unicode_width::UnicodeWidthStr;

use super::failure::wrap_indented;
use super::tab::{LastTurnEnd, Tab, TabPhase};
use super::{App, ChatFocus, plan, time};
use crate::draw_context::{DrawContext, SPINNER_FRAMES};
use crate::images;
use crate::keys::KeyAction;
use crate::text::fit::truncate_to_width;
use crate::theme::Theme;
use crate::view;

/// How long an agent may keep working after a cancellation before the status line mentions it.
const SLOW_CANCEL_DELAY: Duration = Duration::from_secs(5);

/// The maximum number of queued prompts shown.
const MAX_QUEUED_SHOWN: usize = 3;

impl App {
    /// Draws the chat and returns the cursor's position.
    pub(crate) fn draw(&mut self, area: Rect, buf: &mut Buffer) -> Option<Position> {
        let tab = self.tabs.get(self.active)?;
        let beside = self.panel_lines(tab, area.width);
        let footer = self.render_footer(tab, area.width);
        let bar = self.render_tab_bar(area.width);

        let theme = &self.setup.theme;
        let look = DrawContext {
            theme,
            cwd: &self.setup.cwd,
            frame: self.frame,
            images: self
                .images
                .canvas()
                .map(|canvas| canvas.for_rows(area.height)),
        };
        let focus = self.focus;
        let tab = self.tabs.get_mut(self.active)?;

        let width = area.width.saturating_sub(2);
        let writing = match &tab.question {
            Some(question) => question.height(area.width, (area.height * 4 / 5).max(8), &look),
            None => tab.editor.height(width, area.height) + 2,
        };
        let rows = ScreenAreas::new(area, beside.len(), writing);

        draw_line(&bar, rows.bar, buf);
        self.images.begin_frame();
        let thread = tab.thread.clone();
        thread.read(|thread| {
            if thread.items().is_empty() && thread.truncation().is_empty() {
                draw_welcome(rows.thread, buf, &look);
            } else {
                tab.view.draw(thread, rows.thread, buf, &look);
                let images = tab.view.images();
                let data = |row: &images::ImageRow| view::image_data(thread, row);
                self.images.paint(images, buf, theme.dim, data);
            }
        });
        for (n, beside) in beside.iter().enumerate() {
            let n = u16::try_from(n).unwrap_or(u16::MAX);
            if n < rows.panel.height {
                let row = Rect {
                    y: rows.panel.y + n,
                    height: 1,
                    ..rows.panel
                };
                draw_line(beside, row, buf);
            }
        }
        draw_line(&footer, rows.footer, buf);
        // Drawn after the conversation, because the status line shows whether there is more below, and before the
        // prompt, because the prompt's completion list covers it.
        let mode_width = self.draw_vim_mode(rows.status, buf);
        let row = Rect {
            width: rows.status.width - mode_width,
            ..rows.status
        };
        let status = self
            .tabs
            .get(self.active)
            .map(|tab| self.render_status(tab, row.width));
        draw_line(&status.unwrap_or_default(), row, buf);
        let tab = self.tabs.get_mut(self.active)?;
        let focused = focus == ChatFocus::Input;
        let style = if focused { theme.focus } else { theme.border };
        let cursor = match &mut tab.question {
            Some(question) => question.draw(rows.input, buf, &look),
            None => {
                let block = Block::bordered()
                    .border_type(BorderType::Rounded)
                    .border_style(style);
                let inner = block.inner(rows.input);
                block.render(rows.input, buf);
                tab.editor.draw(inner, rows.input, buf, theme)
            }
        };
        let over = self
            .overlay
            .as_mut()
            .map(|overlay| overlay.draw(area, buf, &look));
        theme.fill(buf);
        self.images.finish_frame(buf);
        match over {
            Some(cursor) => cursor,
            None => cursor.filter(|_| focused),
        }
    }

    /// Draws the Vim mode of the prompt at the right end of the status line, and returns its width.
    fn draw_vim_mode(&self, area: Rect, buf: &mut Buffer) -> u16 {
        let tab = self.tabs.get(self.active);
        let tab = tab.filter(|tab| tab.question.is_none() && self.focus == ChatFocus::Input);
        let Some(mode) = tab.and_then(|tab| tab.editor.vim_mode()) else {
            return 0;
        };
        let text = format!(" {} ", terminal_text::clean_line(&mode));
        let width = u16::try_from(text.width()).unwrap_or(u16::MAX);
        if area.height == 0 || width >= area.width {
            return 0;
        }
        let x = area.right() - width;
        buf.set_stringn(x, area.y, &text, width.into(), self.setup.theme.accent);
        width
    }

    /// Builds the tab bar. If the tabs do not all fit, shows the active tab and as many others as possible.
    fn render_tab_bar(&self, width: u16) -> Line<'static> {
        let theme = &self.setup.theme;
        let mut spans = Vec::new();
        let tabs = u16::try_from(self.tabs.len()).unwrap_or(u16::MAX).max(1);
        let room = (width / tabs).saturating_sub(7).clamp(4, 32);
        // Show as many tabs as fit, including the active tab.
        let shown = usize::from(width / (room + 7)).max(1);
        let from = (self.active + 1).saturating_sub(shown);
        for (n, tab) in self.tabs.iter().enumerate().skip(from).take(shown) {
            let agent = self.agent(tab.agent).map(|agent| agent.name());
            let name = tab.name().or(agent).unwrap_or_default();
            let sign = self.tab_symbol(tab);
            let style = if n == self.active {
                theme.accent
            } else {
                theme.dim
            };
            spans.push(Span::styled(format!(" {} ", n + 1), style));
            spans.push(sign);
            spans.push(Span::styled(
                format!(" {} ", truncate_to_width(&name, room)),
                if n == self.active {
                    theme.strong
                } else {
                    theme.dim
                },
            ));
            spans.push(Span::styled("│", theme.border));
        }
        spans.pop();
        Line::from(spans)
    }

    /// Returns the symbol for a tab's state.
    fn tab_symbol(&self, tab: &Tab) -> Span<'static> {
        let theme = &self.setup.theme;
        if tab.question_count > 0 {
            return Span::styled("?", theme.warn);
        }
        match &tab.phase {
            TabPhase::Failed(_) => Span::styled("✗", theme.bad),
            TabPhase::LoginRequired(_) => Span::styled("!", theme.warn),
            TabPhase::Starting | TabPhase::Opening(_) => Span::styled("◌", theme.dim),
            TabPhase::Open if tab.is_working() => {
                let frame = SPINNER_FRAMES
                    .get(self.frame % SPINNER_FRAMES.len())
                    .copied();
                Span::styled(frame.unwrap_or("●"), theme.accent)
            }
            TabPhase::Open if tab.has_unseen => Span::styled("●", theme.good),
            TabPhase::Open => Span::styled("·", theme.dim),
        }
    }

    /// Builds the panels between the conversation and the status line.
    fn panel_lines(&self, tab: &Tab, width: u16) -> Vec<Line<'static>> {
        let look = self.draw_context();
        let theme = look.theme;
        let mut lines = Vec::new();
        if !tab.plan_hidden {
            tab.thread.read(|thread| {
                let plans = thread.plans().iter();
                lines.extend(plans.flat_map(|plan| plan::render_plan(plan, width, &look)));
            });
        }
        lines.extend(self.failure_lines(tab, width));
        for note in &self.notes {
            lines.extend(wrap_indented(
                terminal_text::truncate_middle(
                    &terminal_text::clean_line(&note.text),
                    terminal_text::MAX_MESSAGE_CHARS,
                )
                .into_owned(),
                theme.warn,
                width,
            ));
        }
        for message in &tab.steered {
            let state = match message.is_delivered {
                true => "sent to the turn: ",
                false => "sending: ",
            };
            let text = format!("{state}{}", message.text);
            lines.push(Line::from(vec![
                Span::styled("  ⇢ ", theme.accent),
                Span::styled(truncate_to_width(&text, width.saturating_sub(6)), theme.dim),
            ]));
        }
        let skipped = tab.queue.len().saturating_sub(MAX_QUEUED_SHOWN);
        for draft in tab.queue.iter().skip(skipped) {
            let files = match draft.attachments().len() {
                0 => String::new(),
                1 => " (1 file)".to_owned(),
                files => format!(" ({files} files)"),
            };
            let text = terminal_text::clean_line(draft.display_text()) + &files;
            lines.push(Line::from(vec![
                Span::styled("  ↳ ", theme.accent),
                Span::styled(truncate_to_width(&text, width.saturating_sub(6)), theme.dim),
            ]));
        }
        lines
    }

    pub(super) fn key_name(&self, action: KeyAction) -> String {
        let key = self.setup.keys.key(action);
        key.map(|key| key.to_string()).unwrap_or_default()
    }

    /// Builds the status line: what the agent is doing, how the last turn ended, or what is queued.
    fn render_status(&self, tab: &Tab, width: u16) -> Line<'static> {
        let theme = &self.setup.theme;
        let spinner = SPINNER_FRAMES
            .get(self.frame % SPINNER_FRAMES.len())
            .copied();
        let moving = |text: String| {
            Line::from(vec![
                Span::styled(format!(" {} ", spinner.unwrap_or_default()), theme.accent),
                Span::styled(text, theme.dim),
            ])
        };
        let since = self.started_waiting_at().map(|since| since.elapsed());
        let since = since.map(time::format_duration).unwrap_or_default();
        let behind = tab.view.has_more_below();
        match &tab.phase {
            TabPhase::Starting => {
                let name = self.agent(tab.agent).map(|agent| agent.spec.name.clone());
                let name = terminal_text::clean_line(&name.unwrap_or_default());
                return moving(format!("starting {name} {since}"));
            }
            TabPhase::Opening(_) => return moving(format!("opening the session {since}")),
            TabPhase::LoginRequired(_) => return Line::styled(" not logged in", theme.warn),
            TabPhase::Failed(_) => return Line::styled(" not connected", theme.bad),
            TabPhase::Open => {}
        }
        if tab.question_count > 0 {
            let more = match tab.question_count {
                1 => String::new(),
                more => format!(" ({} more pending)", more - 1),
            };
            return Line::styled(format!(" ? needs your answer{more}"), theme.warn);
        }
        if tab.shell.is_some() {
            return moving("running your command   Esc: stop".to_owned());
        }
        if tab.is_working() {
            let turn = tab.turn.as_ref();
            let took = turn.map(|turn| time::format_duration(turn.started_at.elapsed()));
            let doing = match turn {
                Some(turn) if turn.cancelled_at.is_some() => "cancelling".to_owned(),
                _ => tab.thread.read(activity_text),
            };
            let cancelled_at = turn.and_then(|turn| turn.cancelled_at);
            if cancelled_at.is_some_and(|cancelled| cancelled.elapsed() > SLOW_CANCEL_DELAY) {
                let again = self.key_name(KeyAction::Restart);
                let text =
                    format!("cancelling… the agent has not stopped yet   {again}: restart agent");
                return moving(text);
            }
            let below = if behind { "   ↓ more" } else { "" };
            let enter = match (tab.editor.is_empty(), tab.can_steer()) {
                (true, _) => String::new(),
                _ if tab.is_shell_prompt() => "   Enter: run the command".to_owned(),
                (false, false) => "   Enter: queue".to_owned(),
                (false, true) => {
                    let queue = self.key_name(KeyAction::Queue);
                    format!("   Enter: steer  {queue}: queue")
                }
            };
            let rest = format!(" {}{enter}   Esc: cancel{below}", took.unwrap_or_default());
            // The keys matter more than the end of a long title. Three columns are for the spinner.
            let taken = u16::try_from(rest.width() + 3).unwrap_or(u16::MAX);
            let doing = truncate_to_width(&doing, width.saturating_sub(taken));
            return moving(doing + &rest);
        }
        if tab.is_shell_prompt() {
            return Line::styled(" Enter: run the command", theme.accent);
        }
        let mut spans = match &tab.last_turn_end {
            None => vec![],
            Some(LastTurnEnd::Failed(why)) => {
                vec![Span::styled(
                    format!(" ✗ {}", terminal_text::clean_line(why)),
                    theme.bad,
                )]
            }
            Some(LastTurnEnd::Stopped(StopReason::Cancelled)) => {
                vec![Span::styled(" cancelled", theme.dim)]
            }
            Some(LastTurnEnd::Stopped(reason)) => {
                vec![Span::styled(
                    format!(" {}", stop_reason_text(reason)),
                    theme.warn,
                )]
            }
        };
        spans.extend(queue_spans(tab.queue.len(), theme));
        // While the prompt is empty, it says so itself.
        if let (Some(transcript), false) = (&tab.transcript, tab.editor.is_empty()) {
            let size = transcript.len().div_ceil(1000);
            let text = format!(" the conversation so far goes with it ({size} KB)");
            spans.push(Span::styled(text, theme.dim));
        }
        if behind {
            let end = self.key_name(KeyAction::ToEnd);
            spans.push(Span::styled(format!(" ↓ more below: {end}"), theme.dim));
        }
        Line::from(spans)
    }

    /// Builds the footer: the session's mode, model, context usage and cost, and the help key.
    fn render_footer(&self, tab: &Tab, width: u16) -> Line<'static> {
        let theme = &self.setup.theme;
        let mut parts: Vec<Span<'static>> = Vec::new();
        let mut part = |text: String, style| {
            if !parts.is_empty() {
                parts.push(Span::styled(" · ", theme.dim));
            }
            parts.push(Span::styled(text, style));
        };
        tab.thread.read(|thread| {
            use SessionConfigOptionCategory::{Mode, Model, ThoughtLevel};
            for (category, style) in [
                (Mode, theme.accent),
                (Model, theme.text),
                (ThoughtLevel, theme.dim),
            ] {
                let option = thread
                    .config_options()
                    .iter()
                    .find(|o| o.category.as_ref() == Some(&category));
                if let Some(SessionConfigKind::Select(select)) = option.map(|o| &o.kind) {
                    let value = select
                        .options
                        .iter()
                        .find(|o| o.value == select.current_value)
                        .map_or_else(|| select.current_value.to_string(), |o| o.name.clone());
                    part(
                        truncate_to_width(&terminal_text::clean_line(&value), 24),
                        style,
                    );
                }
            }
            if let Some(usage) = thread.usage() {
                let full = (usage.used * 100)
                    .checked_div(usage.size)
                    .unwrap_or_default();
                let style = match full {
                    ..70 => theme.dim,
                    70..90 => theme.warn,
                    _ => theme.bad,
                };
                let text = format!(
                    "{} of {} ({full} %)",
                    format_tokens(usage.used),
                    format_tokens(usage.size)
                );
                part(text, style);
                if let Some(cost) = &usage.cost {
                    part(
                        format!(
                            "{:.2} {}",
                            cost.amount,
                            terminal_text::clean_line(&cost.currency)
                        ),
                        theme.dim,
                    );
                }
            }
        });
        let help = match self.focus {
            ChatFocus::Input => format!("?: help  {}: commands", self.key_name(KeyAction::Palette)),
            ChatFocus::Thread => "↑↓ Enter y d e  Esc: prompt".to_owned(),
        };
        let left: usize = parts.iter().map(Span::width).sum();
        let gap = usize::from(width).saturating_sub(left + help.width() + 2);
        let mut spans = vec![Span::raw(" ")];
        spans.extend(parts);
        if gap > 0 {
            spans.push(Span::raw(" ".repeat(gap)));
            spans.push(Span::styled(help, theme.dim));
        }
        Line::from(spans)
    }
}

/// The layout of the screen.
struct ScreenAreas {
    bar: Rect,
    thread: Rect,
    panel: Rect,
    status: Rect,
    input: Rect,
    footer: Rect,
}

impl ScreenAreas {
    /// Divides the screen into areas. The prompt gets its rows first, because users must see what they type, and then
    /// the conversation.
    fn new(area: Rect, beside: usize, writing: u16) -> Self {
        let mut y = area.y;
        let mut left = area.height;
        let mut take = |height: u16| {
            let height = height.min(left);
            left -= height;
            height
        };
        let writing = take(writing);
        let status = take(1);
        let footer = take(1);
        let bar = take(1);
        // The conversation gets at least a third, whatever the panels need.
        let beside = u16::try_from(beside).unwrap_or(u16::MAX);
        let beside =
            beside.min(area.height.saturating_sub(writing + status + footer + bar) * 2 / 3);
        let beside = take(beside);
        let thread = take(u16::MAX);
        let mut row = |height: u16| {
            let row = Rect {
                x: area.x,
                y,
                width: area.width,
                height,
            };
            y += height;
            row
        };
        Self {
            bar: row(bar),
            thread: row(thread),
            panel: row(beside),
            status: row(status),
            input: row(writing),
            footer: row(footer),
        }
    }
}

fn draw_line(line: &Line<'_>, area: Rect, buf: &mut Buffer) {
    if area.height > 0 {
        buf.set_line(area.x, area.y, line, area.width);
    }
}

/// Draws the welcome text of an empty conversation.
fn draw_welcome(area: Rect, buf: &mut Buffer, look: &DrawContext<'_>) {
    let cwd = look.cwd.display().to_string();
    let lines = [
        Line::styled(terminal_text::clean_line(&cwd), look.theme.dim),
        Line::styled("/ commands   @ files   ? help", look.theme.dim),
    ];
    let from = area.bottom().saturating_sub(3).max(area.y);
    for (row, text) in (from..area.bottom()).zip(&lines) {
        buf.set_line(area.x + 2, row, text, area.width.saturating_sub(2));
    }
}

/// Describes what the agent is doing.
fn activity_text(thread: &acp::Thread) -> String {
    if thread.activity() == Activity::RequiresAction {
        return "waiting for your answer".to_owned();
    }
    let last = thread.items().iter().rev().take(32);
    let open = last.clone().filter_map(|item| match &item.kind {
        ItemKind::ToolCall(call) if !call.is_finished() => Some(call),
        _ => None,
    });
    // If several calls are unfinished, a running one is more informative than a pending one.
    let mut running = open
        .clone()
        .filter(|call| call.status == ToolCallStatus::InProgress);
    let open = running.next().or_else(|| open.clone().next());
    if let Some(call) = open {
        let title = truncate_to_width(&terminal_text::clean_line(&call.title).replace('`', ""), 40);
        return match title.is_empty() {
            true => "running a tool".to_owned(),
            false => format!("running: {title}"),
        };
    }
    match last.into_iter().next().map(|item| &item.kind) {
        Some(ItemKind::Thought(_)) => "thinking".to_owned(),
        Some(ItemKind::Agent(_)) => "writing".to_owned(),
        _ => "working".to_owned(),
    }
}

fn stop_reason_text(reason: &StopReason) -> String {
    match reason {
        StopReason::MaxTokens => "stopped: the model reached its token limit".to_owned(),
        StopReason::MaxTurnRequests => {
            "stopped: maximum number of model requests per turn reached".to_owned()
        }
        StopReason::Refusal => "the agent refused to continue".to_owned(),
        other => format!("stopped: {}", terminal_text::clean_line(other.as_str())),
    }
}

/// Formats a token count in short form: `950`, `12k`, `1.5M`.
fn format_tokens(n: u64) -> String {
    match n {
        ..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{}k", n / 1_000),
        _ => format!("{:.1}M", n as f64 / 1_000_000.0),
    }
}

/// Returns the part of the status line that mentions queued prompts.
fn queue_spans(queued: usize, theme: &Theme) -> Vec<Span<'static>> {
    let wait = match queued {
        0 => return Vec::new(),
        1 => "1 prompt queued".to_owned(),
        wait => format!("{wait} prompts queued"),
    };
    vec![
        Span::styled(format!(" {wait}: "), theme.warn),
        Span::styled("Enter: send  ↑: edit", theme.dim),
    ]
}
