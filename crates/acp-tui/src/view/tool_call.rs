//! Tool calls as cards.

use acp::Thread;
use acp::thread::{ThreadToolCall, ToolCallContent, ToolCallStatus};
use acp::v1::{ContentBlock, ToolKind};
use acp_host::clean;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::item::Wanted;
use crate::look::{Look, SPINNER};
use crate::text::wrap::wrap;

/// A tool call, laid out.
#[derive(Default)]
pub(super) struct LaidCall {
    lines: Vec<Line<'static>>,
}

/// How much the terminals of a call have printed, in bytes.
pub(super) fn printed(call: &ThreadToolCall, thread: &Thread) -> u64 {
    let terminals = call.content.iter().filter_map(|content| match content {
        ToolCallContent::Terminal(id) => thread.terminal(id),
        _ => None,
    });
    terminals
        .map(|terminal| terminal.total() + u64::from(terminal.exit_status.is_some()))
        .sum()
}

impl LaidCall {
    /// Lays it out; gives whether it is shown whole.
    pub(super) fn update(
        &mut self,
        call: &ThreadToolCall,
        wanted: &Wanted<'_>,
        look: &Look<'_>,
    ) -> bool {
        let open = wanted.open.unwrap_or(wanted.detail.all);
        self.lines.clear();
        self.lines.extend(wrap(&head(call, look), wanted.width));
        for content in &call.content {
            match content {
                ToolCallContent::Content(ContentBlock::Text(text)) if open => {
                    for line in clean::clean(&text.text).lines() {
                        let line = Line::styled(format!("  {line}"), look.theme.dim);
                        self.lines.extend(wrap(&line, wanted.width));
                    }
                }
                ToolCallContent::Terminal(id) => {
                    let output = wanted.thread.terminal(id).map(|t| t.output());
                    let output = clean::clean(&output.unwrap_or_default());
                    let lines: Vec<&str> = output.lines().collect();
                    let from = if open {
                        0
                    } else {
                        lines.len().saturating_sub(5)
                    };
                    for line in lines.get(from..).unwrap_or_default() {
                        let line = Line::styled(format!("  {line}"), look.theme.dim);
                        self.lines.extend(wrap(&line, wanted.width));
                    }
                }
                _ => {}
            }
        }
        open
    }

    pub(super) fn lines(&self) -> &[Line<'static>] {
        &self.lines
    }
}

/// What it is, and how far.
fn head(call: &ThreadToolCall, look: &Look<'_>) -> Line<'static> {
    let (mark, style) = status(call, look);
    let title = match clean::line(&call.title) {
        title if title.is_empty() => call.name.clone().unwrap_or_else(|| "tool call".to_owned()),
        title => title,
    };
    Line::from(vec![
        Span::styled(format!("{mark} "), style),
        Span::styled(format!("{} ", icon(&call.kind)), look.theme.dim),
        Span::styled(title, look.theme.strong),
    ])
}

fn status(call: &ThreadToolCall, look: &Look<'_>) -> (&'static str, Style) {
    let theme = look.theme;
    if call.cancelled {
        return ("⊘", theme.dim);
    }
    match call.status {
        ToolCallStatus::Completed => ("✓", theme.good),
        ToolCallStatus::Failed => ("✗", theme.bad),
        ToolCallStatus::Cancelled => ("⊘", theme.dim),
        ToolCallStatus::Pending => ("○", theme.dim),
        _ => (
            SPINNER
                .get(look.frame % SPINNER.len())
                .copied()
                .unwrap_or("●"),
            theme.accent,
        ),
    }
}

/// A sign for what sort of thing it does, one column wide everywhere.
fn icon(kind: &ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "▤",
        ToolKind::Edit => "✎",
        ToolKind::Delete => "⌫",
        ToolKind::Move => "→",
        ToolKind::Search => "⌕",
        ToolKind::Execute => "$",
        ToolKind::Think => "∴",
        ToolKind::Fetch => "↓",
        ToolKind::SwitchMode => "⇄",
        _ => "•",
    }
}
