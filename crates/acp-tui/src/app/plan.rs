//! Renders plans above the prompt.

use acp::thread::{PlanContent, PlanEntryStatus, ThreadPlan};
use acp_host::terminal_text;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::draw_context::DrawContext;
use crate::text::fit::truncate_to_width;

/// The maximum number of plan steps shown.
const MAX_SHOWN_STEPS: usize = 6;

/// Lays out a plan above the prompt. If there is not enough space, completed steps are hidden first.
pub(super) fn render_plan(
    plan: &ThreadPlan,
    width: u16,
    look: &DrawContext<'_>,
) -> Vec<Line<'static>> {
    let theme = look.theme;
    let room = width.saturating_sub(6);
    match &plan.content {
        PlanContent::Entries(entries) if !entries.is_empty() => {
            let over = |status: &PlanEntryStatus| {
                matches!(
                    status,
                    PlanEntryStatus::Completed | PlanEntryStatus::Cancelled
                )
            };
            let done = entries.iter().filter(|entry| over(&entry.status)).count();
            let count = format!("{done}/{} ", entries.len());
            let mut lines = vec![render_heading(&count, width, look)];
            // For a completed plan, only the heading is shown.
            if done == entries.len() {
                return lines;
            }
            let next = entries.iter().position(|entry| !over(&entry.status));
            let from = next.unwrap_or(0).saturating_sub(1);
            let from = from.min(entries.len().saturating_sub(MAX_SHOWN_STEPS));
            for entry in entries.iter().skip(from).take(MAX_SHOWN_STEPS) {
                let (mark, style) = match entry.status {
                    PlanEntryStatus::Completed => ("✓", theme.good),
                    PlanEntryStatus::InProgress => ("▸", theme.accent),
                    PlanEntryStatus::Cancelled => ("⊘", theme.dim),
                    _ => ("○", theme.dim),
                };
                let text = match entry.status {
                    PlanEntryStatus::InProgress => theme.text,
                    _ => theme.dim,
                };
                lines.push(Line::from(vec![
                    Span::styled(format!("  {mark} "), style),
                    Span::styled(
                        truncate_to_width(&terminal_text::clean_line(&entry.content), room),
                        text,
                    ),
                ]));
            }
            let more = entries.len().saturating_sub(from + MAX_SHOWN_STEPS);
            if more > 0 {
                lines.push(Line::styled(format!("    {more} more"), theme.dim));
            }
            lines
        }
        PlanContent::Markdown(text) => {
            let mut lines = vec![render_heading("", width, look)];
            let text = terminal_text::clean_text(text);
            for line in text.lines().take(MAX_SHOWN_STEPS) {
                lines.push(Line::styled(
                    format!("  {}", truncate_to_width(line, room)),
                    theme.dim,
                ));
            }
            lines
        }
        PlanContent::File(uri) => {
            let text = format!(
                "  Plan: {}",
                truncate_to_width(&terminal_text::clean_line(uri), room)
            );
            vec![Line::styled(text, theme.dim)]
        }
        _ => Vec::new(),
    }
}

/// Builds the heading that separates the plan from the conversation above it.
fn render_heading(count: &str, width: u16, look: &DrawContext<'_>) -> Line<'static> {
    let used = "── Plan ".width() + count.width();
    let rest = usize::from(width).saturating_sub(used);
    Line::from(vec![
        Span::styled("── ", look.theme.border),
        Span::styled("Plan ", look.theme.heading),
        Span::styled(count.to_owned(), look.theme.dim),
        Span::styled("─".repeat(rest), look.theme.border),
    ])
}
