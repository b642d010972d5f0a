//! Renders a session as HTML, showing it as the user saw it. All text is escaped.

use std::time::Duration;

use acp::Thread;
use acp::thread::{
    FileChange, FileTexts, Item, ItemKind, PlanContent, ThreadDiff, ThreadMessage, ThreadPlan,
    ThreadToolCall, ThreadToolCallContent, ToolCallStatus,
};
use acp::v1::{ContentBlock, EmbeddedResourceResource, TerminalId};
use maud::{Markup, html};
use serde_json::Value;
use similar::TextDiff;

use super::sessions::{TracePosition, TracedQuestion, TracedSession, TurnEnd};
use super::text;

/// The maximum length of text in the session view, in characters. The list of messages contains the complete text.
const MAX_TEXT_CHARS: usize = 64 * 1024;

/// The maximum number of items in the session view. Only the last ones are shown.
const MAX_ITEMS: usize = 5000;

/// The time limit for computing an exact diff. After that, a coarser diff is used.
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);

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
            (render_item(item, session, thread, session.positions.items.get(number)))
        }
        @for end in ends { (render_turn_end(end)) }
        @for plan in thread.plans() { (render_plan(plan)) }
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

fn render_item(
    item: &Item,
    session: &TracedSession,
    thread: &Thread,
    place: Option<&TracePosition>,
) -> Markup {
    match &item.kind {
        ItemKind::User(message) => render_message("user", "Person", message, place),
        ItemKind::Agent(message) => render_message("agent", "Agent", message, place),
        ItemKind::Thought(message) => html! {
            details.item.thought {
                summary { span.who { "Thought" } (render_position(place)) }
                (render_blocks(&message.content))
            }
        },
        ItemKind::ToolCall(call) => render_tool_call(call, session, thread, place),
        ItemKind::Notice(notice) => html! {
            div.item.notice {
                p { span.who { (text::sanitize_line(notice.severity.as_str())) } (render_position(place)) }
                p { (text::sanitize_line(&notice.title)) }
                @if let Some(more) = &notice.description { (render_text(more)) }
            }
        },
        ItemKind::Compaction(compaction) => html! {
            div.item.notice {
                p { span.who { "Compaction" } span.status { (text::sanitize_line(compaction.status.as_str())) } (render_position(place)) }
                (render_blocks(&compaction.summary))
                @if let Some(error) = &compaction.error { (render_text(error)) }
            }
        },
        ItemKind::Subagent(subagent) => html! {
            div.item.notice {
                p { span.who { "Subagent" } (render_position(place)) }
                p { (text::sanitize_line(subagent.name())) ": see session " (text::sanitize_line(subagent.session_id.as_str())) }
                @if let Some(more) = &subagent.description { (render_text(more)) }
            }
        },
        ItemKind::SessionMessage(message) => html! {
            div.item.notice {
                p { span.who { "Message between sessions" } (render_position(place)) }
                (render_blocks(&message.content))
            }
        },
        ItemKind::Unknown(object) => html! {
            details.item.notice {
                summary { span.who { "Unknown content" } (render_position(place)) }
                (render_code(&serde_json::to_string_pretty(object).unwrap_or_default()))
            }
        },
        _ => html! {},
    }
}

fn render_message(
    class: &str,
    who: &str,
    message: &ThreadMessage,
    place: Option<&TracePosition>,
) -> Markup {
    html! {
        div.item.(class) {
            p { span.who { (who) } (render_position(place)) }
            @if message.is_truncated { p.left-out { "The beginning is omitted." } }
            (render_blocks(&message.content))
        }
    }
}

fn render_text(text: &str) -> Markup {
    html! { div.text { (truncate_text(text)) } }
}

fn render_code(text: &str) -> Markup {
    html! { pre { (truncate_text(text)) } }
}

fn truncate_text(text: &str) -> String {
    text::truncate_text(&text::sanitize_text(text), MAX_TEXT_CHARS)
}

fn render_blocks(content: &[ContentBlock]) -> Markup {
    html! { @for block in content { (render_block(block)) } }
}

fn render_block(block: &ContentBlock) -> Markup {
    let chip = |what: &str, of: &str| html! { span.chip { (what) " " code { (text::truncate_text(&text::sanitize_line(of), 500)) } } };
    match block {
        ContentBlock::Text(block) => render_text(&block.text),
        ContentBlock::Image(image) => chip("image", &image.mime_type),
        ContentBlock::Audio(audio) => chip("sound", &audio.mime_type),
        ContentBlock::ResourceLink(link) => chip("link", &link.uri),
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::Text(resource) => html! {
                details.resource { summary { (chip("resource", &resource.uri)) } (render_code(&resource.text)) }
            },
            EmbeddedResourceResource::Blob(resource) => chip("resource", &resource.uri),
            _ => chip("resource", ""),
        },
        ContentBlock::Unknown(object) => {
            render_code(&serde_json::to_string(object).unwrap_or_default())
        }
        _ => html! {},
    }
}

fn render_tool_call(
    call: &ThreadToolCall,
    session: &TracedSession,
    thread: &Thread,
    place: Option<&TracePosition>,
) -> Markup {
    let title = if call.title.trim().is_empty() {
        call.id.as_str()
    } else {
        &call.title
    };
    let (class, status) = match (&call.status, call.is_cancelled) {
        (ToolCallStatus::Completed, _) => ("completed", "completed"),
        (ToolCallStatus::Failed, _) => ("failed", "failed"),
        (ToolCallStatus::Cancelled, _) | (_, true) => ("cancelled", "cancelled"),
        (other, _) => ("open", other.as_str()),
    };
    let questions = session.questions.get(&call.id);
    html! {
        div.item.tool {
            p {
                span.kind { (text::sanitize_line(call.kind.as_str())) }
                b { (text::truncate_text(&text::sanitize_line(title), 500)) }
                span.status.(class) { (text::sanitize_line(status)) }
                (render_position(place))
            }
            @if !call.locations.is_empty() {
                p.soft {
                    @for location in &call.locations {
                        code { (text::sanitize_line(&location.path)) @if let Some(line) = location.line { ":" (line) } } " "
                    }
                }
            }
            @for question in questions.into_iter().flatten() { (render_question(question)) }
            @for content in &call.content {
                @match content {
                    ThreadToolCallContent::Content(ContentBlock::Text(block)) => (render_code(&block.text)),
                    ThreadToolCallContent::Content(block) => (render_block(block)),
                    ThreadToolCallContent::Diff(diff) => (render_diff(diff)),
                    ThreadToolCallContent::Terminal(id) => (render_terminal(id, thread)),
                    ThreadToolCallContent::Unknown(object) => (render_code(&serde_json::to_string(object).unwrap_or_default())),
                    _ => {}
                }
            }
            (render_raw("given", call.raw_input.as_ref()))
            (render_raw("returned", call.raw_output.as_ref()))
        }
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

fn render_raw(name: &str, value: Option<&Value>) -> Markup {
    html! {
        @if let Some(value) = value {
            details.raw { summary { (name) } (render_code(&serde_json::to_string_pretty(value).unwrap_or_default())) }
        }
    }
}

fn render_terminal(id: &TerminalId, thread: &Thread) -> Markup {
    let Some(terminal) = thread.terminal(id) else {
        return html! { p.soft { "unknown terminal: " code { (text::sanitize_line(id.as_str())) } } };
    };
    let exit =
        terminal
            .exit_status
            .as_ref()
            .map(|status| match (status.exit_code, &status.signal) {
                (Some(code), _) => format!("exit code {code}"),
                (None, Some(signal)) => format!("terminated by {}", text::sanitize_line(signal)),
                (None, None) => "ended".to_owned(),
            });
    html! {
        div.terminal {
            @if let Some(command) = &terminal.command { pre.command { "$ " (truncate_text(command)) } }
            pre { (truncate_text(&terminal.output())) }
            @if let Some(exit) = exit { p.soft { (exit) } }
        }
    }
}

/// Renders file changes as a unified diff, as the agent sent them, or by name only.
fn render_diff(diff: &ThreadDiff) -> Markup {
    html! {
        div.diff {
            @if let Some(patch) = &diff.patch { (render_patch(&patch.text)) }
            @for change in &diff.changes {
                @match &change.texts {
                    Some(texts) => (render_texts(change, texts)),
                    None => p.file {
                        (text::sanitize_line(change.operation.as_str())) " " (text::sanitize_line(&change.path))
                        @if let Some(from) = &change.old_path { " (from " (text::sanitize_line(from)) ")" }
                    }
                }
            }
        }
    }
}

fn render_texts(change: &FileChange, texts: &FileTexts) -> Markup {
    let unified = TextDiff::configure()
        .timeout(DIFF_TIMEOUT)
        .diff_lines(texts.old.as_deref().unwrap_or_default(), &texts.new)
        .unified_diff()
        .context_radius(3)
        .to_string();
    html! {
        p.file { (text::sanitize_line(&change.path)) @if texts.old.is_none() { span.soft { " new" } } }
        @if unified.is_empty() { p.soft { "no changes" } }
        (render_patch(&unified))
    }
}

fn render_patch(patch: &str) -> Markup {
    let patch = truncate_text(patch);
    html! {
        pre {
            @for line in patch.lines() {
                @let class = match line.as_bytes().first() {
                    Some(b'+') => "plus",
                    Some(b'-') => "minus",
                    Some(b'@') => "hunk",
                    _ => "same",
                };
                span.(class) { (line) "\n" }
            }
        }
    }
}

fn render_plan(plan: &ThreadPlan) -> Markup {
    html! {
        div.item.plan {
            p { span.who { "Plan" } span.soft { "at the end of the trace" } }
            @match &plan.content {
                PlanContent::Entries(entries) => ul {
                    @for entry in entries {
                        li.(status_class(entry.status.as_str())) { (text::sanitize_line(&entry.content)) }
                    }
                },
                PlanContent::File(uri) => p { code { (text::sanitize_line(uri)) } },
                PlanContent::Markdown(markdown) => (render_text(markdown)),
                PlanContent::Unknown(object) => (render_code(&serde_json::to_string(object).unwrap_or_default())),
                _ => {}
            }
        }
    }
}

fn status_class(status: &str) -> &'static str {
    match status {
        "completed" => "completed",
        "in_progress" => "in-progress",
        _ => "pending",
    }
}

fn format_seconds(microseconds: u64) -> String {
    let milliseconds = microseconds.saturating_add(500) / 1000;
    format!("{}.{:03} s", milliseconds / 1000, milliseconds % 1000)
}
