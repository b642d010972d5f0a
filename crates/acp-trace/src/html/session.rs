//! A session as a person saw it, as HTML: all of it is text that is escaped.

use std::time::Duration;

use acp::Thread;
use acp::thread::{
    Diff, FileChange, FileTexts, Item, ItemKind, Message, PlanContent, ThreadPlan, ThreadToolCall,
    ToolCallContent, ToolCallStatus,
};
use acp::v1::{ContentBlock, EmbeddedResourceResource, TerminalId};
use maud::{Markup, html};
use serde_json::Value;
use similar::TextDiff;

use super::plain;
use super::sessions::{End, Place, Question, Session};

/// How much of a text is shown, in characters. The messages have all of it.
const TEXT: usize = 64 * 1024;

/// How many items are shown, the last ones.
const ITEMS: usize = 5000;

/// How long a diff may be worked on before it is made coarser.
const DIFFING: Duration = Duration::from_millis(200);

pub(super) fn html(session: &Session) -> Markup {
    let thread = &session.thread;
    let dropped = thread.dropped().items;
    let skipped = thread.items().len().saturating_sub(ITEMS);
    let first = dropped + skipped;
    let mut ends = session.ends.iter().peekable();
    while ends
        .next_if(|end| end.items <= first && first > 0)
        .is_some()
    {}
    html! {
        @if let Some(title) = thread.title() { h2 { (plain::line(title)) } }
        p.soft {
            code { (plain::line(&session.id)) }
            @if let Some(usage) = thread.usage() {
                " · " (usage.used) " of " (usage.size) " tokens of context"
            }
        }
        @if first > 0 {
            p.left-out { "The first " (first) " messages and tool calls are left out here; they are under Messages." }
        }
        @for (number, item) in (first..).zip(thread.items().iter().skip(skipped)) {
            @while let Some(end) = ends.next_if(|end| end.items <= number) { (end_of_turn(end)) }
            (shown(item, session, session.begun.get(number)))
        }
        @for end in ends { (end_of_turn(end)) }
        @for plan in thread.plans() { (plan_of(plan)) }
    }
}

/// A link to where it is in the trace.
fn at(place: Option<&Place>) -> Markup {
    html! {
        @if let Some(place) = place {
            button.at data-row=(place.row) title="Show the message" { (seconds(place.at)) }
        }
    }
}

fn end_of_turn(end: &End) -> Markup {
    html! {
        div.end.failed[end.failed] { span { "turn: " (plain::line(&end.how)) } (at(Some(&end.place))) }
    }
}

fn shown(item: &Item, session: &Session, place: Option<&Place>) -> Markup {
    match &item.kind {
        ItemKind::User(message) => said("user", "Person", message, place),
        ItemKind::Agent(message) => said("agent", "Agent", message, place),
        ItemKind::Thought(message) => html! {
            details.item.thought {
                summary { span.who { "Thought" } (at(place)) }
                (blocks(&message.content))
            }
        },
        ItemKind::ToolCall(call) => tool_call(call, session, place),
        ItemKind::Notice(notice) => html! {
            div.item.notice {
                p { span.who { (plain::line(notice.severity.as_str())) } (at(place)) }
                p { (plain::line(&notice.title)) }
                @if let Some(more) = &notice.description { (text(more)) }
            }
        },
        ItemKind::Compaction(compaction) => html! {
            div.item.notice {
                p { span.who { "Compaction" } span.status { (plain::line(compaction.status.as_str())) } (at(place)) }
                (blocks(&compaction.summary))
                @if let Some(error) = &compaction.error { (text(error)) }
            }
        },
        ItemKind::Subagent(subagent) => html! {
            div.item.notice {
                p { span.who { "Subagent" } (at(place)) }
                p { (plain::line(subagent.name())) ": what it does is in the session " (plain::line(subagent.session_id.as_str())) }
                @if let Some(more) = &subagent.description { (text(more)) }
            }
        },
        ItemKind::SessionMessage(message) => html! {
            div.item.notice {
                p { span.who { "Message between sessions" } (at(place)) }
                (blocks(&message.content))
            }
        },
        ItemKind::Unknown(object) => html! {
            details.item.notice {
                summary { span.who { "Something unknown" } (at(place)) }
                (code(&serde_json::to_string_pretty(object).unwrap_or_default()))
            }
        },
        _ => html! {},
    }
}

fn said(class: &str, who: &str, message: &Message, place: Option<&Place>) -> Markup {
    html! {
        div.item.(class) {
            p { span.who { (who) } (at(place)) }
            @if message.cut { p.left-out { "The beginning is left out." } }
            (blocks(&message.content))
        }
    }
}

fn text(text: &str) -> Markup {
    html! { div.text { (bounded(text)) } }
}

fn code(text: &str) -> Markup {
    html! { pre { (bounded(text)) } }
}

fn bounded(text: &str) -> String {
    plain::shortened(&plain::text(text), TEXT)
}

fn blocks(content: &[ContentBlock]) -> Markup {
    html! { @for block in content { (block_of(block)) } }
}

fn block_of(block: &ContentBlock) -> Markup {
    let chip = |what: &str, of: &str| html! { span.chip { (what) " " code { (plain::shortened(&plain::line(of), 500)) } } };
    match block {
        ContentBlock::Text(block) => text(&block.text),
        ContentBlock::Image(image) => chip("image", &image.mime_type),
        ContentBlock::Audio(audio) => chip("sound", &audio.mime_type),
        ContentBlock::ResourceLink(link) => chip("link", &link.uri),
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::Text(resource) => html! {
                details.resource { summary { (chip("resource", &resource.uri)) } (code(&resource.text)) }
            },
            EmbeddedResourceResource::Blob(resource) => chip("resource", &resource.uri),
            _ => chip("resource", ""),
        },
        ContentBlock::Unknown(object) => code(&serde_json::to_string(object).unwrap_or_default()),
        _ => html! {},
    }
}

fn tool_call(call: &ThreadToolCall, session: &Session, place: Option<&Place>) -> Markup {
    let title = if call.title.trim().is_empty() {
        call.id.as_str()
    } else {
        &call.title
    };
    let (class, status) = match (&call.status, call.cancelled) {
        (ToolCallStatus::Completed, _) => ("completed", "completed"),
        (ToolCallStatus::Failed, _) => ("failed", "failed"),
        (ToolCallStatus::Cancelled, _) | (_, true) => ("cancelled", "cancelled"),
        (other, _) => ("open", other.as_str()),
    };
    let questions = session.questions.get(call.id.as_str());
    html! {
        div.item.tool {
            p {
                span.kind { (plain::line(call.kind.as_str())) }
                b { (plain::shortened(&plain::line(title), 500)) }
                span.status.(class) { (plain::line(status)) }
                (at(place))
            }
            @if !call.locations.is_empty() {
                p.soft {
                    @for location in &call.locations {
                        code { (plain::line(&location.path)) @if let Some(line) = location.line { ":" (line) } } " "
                    }
                }
            }
            @for question in questions.into_iter().flatten() { (asked(question)) }
            @for content in &call.content {
                @match content {
                    ToolCallContent::Content(ContentBlock::Text(block)) => (code(&block.text)),
                    ToolCallContent::Content(block) => (block_of(block)),
                    ToolCallContent::Diff(diff) => (diff_of(diff)),
                    ToolCallContent::Terminal(id) => (terminal(id, &session.thread)),
                    ToolCallContent::Unknown(object) => (code(&serde_json::to_string(object).unwrap_or_default())),
                    _ => {}
                }
            }
            (raw("given", call.raw_input.as_ref()))
            (raw("gave back", call.raw_output.as_ref()))
        }
    }
}

fn asked(question: &Question) -> Markup {
    html! {
        p.asked {
            "asked: "
            @for option in &question.options { span.option { (plain::line(option)) } }
            @match &question.answer {
                Some(answer) => { "→ " b { (plain::line(answer)) } }
                None => { "→ no answer" }
            }
            (at(Some(&question.place)))
        }
    }
}

fn raw(name: &str, value: Option<&Value>) -> Markup {
    html! {
        @if let Some(value) = value {
            details.raw { summary { (name) } (code(&serde_json::to_string_pretty(value).unwrap_or_default())) }
        }
    }
}

fn terminal(id: &TerminalId, thread: &Thread) -> Markup {
    let Some(terminal) = thread.terminal(id) else {
        return html! { p.soft { "a terminal of which nothing is known: " code { (plain::line(id.as_str())) } } };
    };
    let exit =
        terminal
            .exit_status
            .as_ref()
            .map(|status| match (status.exit_code, &status.signal) {
                (Some(code), _) => format!("exit code {code}"),
                (None, Some(signal)) => format!("ended by {}", plain::line(signal)),
                (None, None) => "ended".to_owned(),
            });
    html! {
        div.terminal {
            @if let Some(command) = &terminal.command { pre.command { "$ " (bounded(command)) } }
            pre { (bounded(&terminal.output())) }
            @if let Some(exit) = exit { p.soft { (exit) } }
        }
    }
}

/// Changes of files: as the agent shows them, or as a unified diff of the texts, or by name.
fn diff_of(diff: &Diff) -> Markup {
    html! {
        div.diff {
            @if let Some(patch) = &diff.patch { (patch_of(&patch.text)) }
            @for change in &diff.changes {
                @match &change.texts {
                    Some(texts) => (texts_of(change, texts)),
                    None => p.file {
                        (plain::line(change.operation.as_str())) " " (plain::line(&change.path))
                        @if let Some(from) = &change.old_path { " (from " (plain::line(from)) ")" }
                    }
                }
            }
        }
    }
}

fn texts_of(change: &FileChange, texts: &FileTexts) -> Markup {
    let unified = TextDiff::configure()
        .timeout(DIFFING)
        .diff_lines(texts.old.as_deref().unwrap_or_default(), &texts.new)
        .unified_diff()
        .context_radius(3)
        .to_string();
    html! {
        p.file { (plain::line(&change.path)) @if texts.old.is_none() { span.soft { " new" } } }
        @if unified.is_empty() { p.soft { "no change" } }
        (patch_of(&unified))
    }
}

fn patch_of(patch: &str) -> Markup {
    let patch = bounded(patch);
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

fn plan_of(plan: &ThreadPlan) -> Markup {
    html! {
        div.item.plan {
            p { span.who { "Plan" } span.soft { "as it was at the end" } }
            @match &plan.content {
                PlanContent::Entries(entries) => ul {
                    @for entry in entries {
                        li.(step(entry.status.as_str())) { (plain::line(&entry.content)) }
                    }
                },
                PlanContent::File(uri) => p { code { (plain::line(uri)) } },
                PlanContent::Markdown(markdown) => (text(markdown)),
                PlanContent::Unknown(object) => (code(&serde_json::to_string(object).unwrap_or_default())),
                _ => {}
            }
        }
    }
}

fn step(status: &str) -> &'static str {
    match status {
        "completed" => "completed",
        "in_progress" => "in-progress",
        _ => "pending",
    }
}

fn seconds(microseconds: u64) -> String {
    let milliseconds = microseconds.saturating_add(500) / 1000;
    format!("{}.{:03} s", milliseconds / 1000, milliseconds % 1000)
}
