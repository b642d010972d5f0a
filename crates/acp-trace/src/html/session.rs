//! Renders a session of a trace, showing it as the user saw it.

use acp::Thread;
use acp::thread::{ThreadSubagent, ThreadToolCall};
use acp_html::{ItemAnnotations, render_item, render_plan, text};
use maud::{Markup, html};

use super::sessions::{TracePosition, TracedQuestion, TracedSession, TurnEnd};

/// The maximum number of items in the session view. Only the last ones are shown.
const MAX_ITEMS: usize = 5000;

impl ItemAnnotations for TracedSession {
    fn after_head(&self, item: usize) -> Markup {
        render_position(self.positions.items.get(item))
    }

    fn before_content(&self, call: &ThreadToolCall) -> Markup {
        let questions = self.questions.get(&call.id);
        html! {
            @for question in questions.into_iter().flatten() { (render_question(question)) }
        }
    }

    fn shows_subagent_work(&self) -> bool {
        false
    }

    /// Refers to the subagent's session, which the page shows in full.
    fn subagent_work(&self, subagent: &ThreadSubagent) -> Markup {
        html! { p.soft { "See session " (text::sanitize_line(subagent.session_id.as_str())) "." } }
    }
}

pub(super) fn session_markup(session: &TracedSession) -> Markup {
    session
        .thread
        .read(|thread| render_session(session, thread))
}

fn render_session(session: &TracedSession, thread: &Thread) -> Markup {
    let dropped = thread.truncation().items;
    let skipped = thread.items().len().saturating_sub(MAX_ITEMS);
    let first = dropped + skipped;
    let mut ends = session.positions.turn_ends.iter().peekable();
    while ends
        .next_if(|end| end.items <= first && first > 0)
        .is_some()
    {}
    html! {
        @if let Some(title) = thread.title() { h2 { (text::sanitize_line(title)) } }
        p.soft {
            code { (text::sanitize_line(session.id.as_str())) }
            @if let Some(usage) = thread.usage() {
                " · " (usage.used) " of " (usage.size) " context tokens"
            }
        }
        @if first > 0 {
            p.left-out { "The first " (first) " messages and tool calls are omitted here; see the Messages tab." }
        }
        @for (number, item) in (first..).zip(thread.items().iter().skip(skipped)) {
            @while let Some(end) = ends.next_if(|end| end.items <= number) { (render_turn_end(end)) }
            @if thread.parent_item(number).is_none_or(|parent| parent < first) {
                (render_item(item, number, thread, session))
            }
        }
        @for end in ends { (render_turn_end(end)) }
        @for plan in thread.plans() { (render_plan(plan, "at the end of the trace")) }
    }
}

/// Renders a link to a record in the page.
fn render_position(place: Option<&TracePosition>) -> Markup {
    html! {
        @if let Some(place) = place {
            button.at data-row=(place.row) title="Show the message" { (format_seconds(place.time_us)) }
        }
    }
}

fn render_turn_end(end: &TurnEnd) -> Markup {
    html! {
        div.end.failed[end.failed] { span { "turn: " (text::sanitize_line(&end.reason)) } (render_position(Some(&end.position))) }
    }
}

fn render_question(question: &TracedQuestion) -> Markup {
    html! {
        p.asked {
            "asked: "
            @for (_, name) in &question.options { span.option { (text::sanitize_line(name)) } }
            @match &question.answer {
                Some(answer) => { "→ " b { (text::sanitize_line(answer)) } }
                None => { "→ no response" }
            }
            (render_position(Some(&question.position)))
        }
    }
}

fn format_seconds(microseconds: u64) -> String {
    let milliseconds = microseconds.saturating_add(500) / 1000;
    format!("{}.{:03} s", milliseconds / 1000, milliseconds % 1000)
}
