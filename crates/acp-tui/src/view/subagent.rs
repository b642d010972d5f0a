//! Lays out a subagent as a line with its task and status, followed by its work.

use acp::thread::ThreadSubagent;
use acp::v2::StateUpdate;
use acp_host::terminal_text;
use ratatui::text::{Line, Span};

use super::item::ItemRequest;
use super::nested::{NestedItems, NestedLayout};
use crate::draw_context::{DrawContext, SPINNER_FRAMES};
use crate::text::wrap::wrap_line;

/// The laid-out lines of a subagent.
#[derive(Default)]
pub(super) struct SubagentLayout {
    head: Vec<Line<'static>>,
    body: NestedLayout,
}

impl SubagentLayout {
    /// Updates the layout and returns whether the subagent is expanded.
    pub(super) fn update(
        &mut self,
        subagent: &ThreadSubagent,
        wanted: &ItemRequest<'_>,
        look: &DrawContext<'_>,
    ) -> bool {
        let is_open = wanted.is_open.unwrap_or(wanted.detail.all);
        self.update_head(subagent, wanted.width, look);
        subagent.thread.read(|thread| {
            let nested = NestedItems {
                thread,
                items: thread.outermost_items().collect(),
                has_dropped: !thread.truncation().is_empty(),
                is_open,
                is_running: subagent.is_running(),
            };
            self.body.update(&nested, wanted, look);
        });
        is_open
    }

    /// Updates the first line, which shows the task and the status. The status symbol is animated.
    pub(super) fn update_head(
        &mut self,
        subagent: &ThreadSubagent,
        width: u16,
        look: &DrawContext<'_>,
    ) {
        self.head = wrap_line(&render_head(subagent, look), width);
    }

    pub(super) fn is_unfinished(&self) -> bool {
        self.body.is_unfinished()
    }

    pub(super) fn height(&self) -> usize {
        self.head.len() + self.body.height()
    }

    pub(super) fn line(&self, n: usize) -> Option<&Line<'static>> {
        match n.checked_sub(self.head.len()) {
            Some(n) => self.body.line(n),
            None => self.head.get(n),
        }
    }
}

/// Builds the first line of a subagent: the task and its current activity.
fn render_head(subagent: &ThreadSubagent, look: &DrawContext<'_>) -> Line<'static> {
    let theme = look.theme;
    let (sign, style, doing) = match &subagent.state {
        Some(StateUpdate::Running(_)) => {
            let frame = SPINNER_FRAMES
                .get(look.frame % SPINNER_FRAMES.len())
                .copied();
            (frame.unwrap_or("●"), theme.accent, String::new())
        }
        Some(StateUpdate::RequiresAction(_)) => ("?", theme.warn, " needs your answer".to_owned()),
        Some(StateUpdate::Idle(idle)) => {
            let reason = idle.stop_reason.as_ref();
            let ended = reason.map(|reason| match reason.as_str() {
                "end_turn" => "done".to_owned(),
                reason => reason.replace('_', " "),
            });
            (
                "■",
                theme.dim,
                ended.map(|how| format!(" {how}")).unwrap_or_default(),
            )
        }
        _ => ("■", theme.dim, String::new()),
    };
    Line::from(vec![
        Span::styled(format!("{sign} "), style),
        Span::raw("Subagent: "),
        Span::raw(terminal_text::clean_line(subagent.name())),
        Span::styled(terminal_text::clean_line(&doing), theme.dim),
    ])
}
