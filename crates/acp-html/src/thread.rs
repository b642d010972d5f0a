//! Renders the items of a thread. All text is escaped.

use std::time::Duration;

use acp::Thread;
use acp::thread::{
    FileChange, FileTexts, Item, ItemKind, PlanContent, ThreadDiff, ThreadMessage, ThreadPlan,
    ThreadSubagent, ThreadToolCall, ThreadToolCallContent, ToolCallStatus,
};
use acp::v1::{ContentBlock, EmbeddedResourceResource, TerminalId};
use acp::v2::StateUpdate;
use maud::{Markup, html};
use serde_json::Value;
use similar::TextDiff;

use crate::markdown::{as_markdown, render_markdown};
use crate::text;

/// The maximum length of a text, in characters.
pub(crate) const MAX_TEXT_CHARS: usize = 64 * 1024;

/// The time limit for computing an exact diff. After that, a coarser diff is used.
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);

/// What a page adds to the items of a thread.
pub trait ItemAnnotations {
    /// Returns what follows the head of the item with this number. Items are counted from the first of the session,
    /// including those that the thread has dropped.
    fn after_head(&self, item: usize) -> Markup {
        let _ = item;
        html! {}
    }

    /// Returns what precedes the content of a tool call, such as the questions about it.
    fn before_content(&self, call: &ThreadToolCall) -> Markup {
        let _ = call;
        html! {}
    }

    /// Returns `true` if [`subagent_work`](Self::subagent_work) returns everything that the subagent has done.
    fn shows_subagent_work(&self) -> bool {
        true
    }

    /// Returns the work of a subagent that has a session of its own.
    fn subagent_work(&self, subagent: &ThreadSubagent) -> Markup {
        subagent.thread.read(|thread| {
            // What the page knows about items is about those of the parent's session.
            render_work(thread.outermost_items(), thread, &Unannotated)
        })
    }
}

/// A page that adds nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unannotated;

impl ItemAnnotations for Unannotated {}

/// The maximum number of nested items to render, counted from the end.
const MAX_NESTED_ITEMS: usize = 200;

/// Renders the work of a subagent, folded.
fn render_work<'a>(
    items: impl Iterator<Item = (usize, &'a Item)>,
    thread: &Thread,
    page: &impl ItemAnnotations,
) -> Markup {
    let items: Vec<(usize, &Item)> = items.collect();
    let left_out = items.len().saturating_sub(MAX_NESTED_ITEMS);
    html! {
        @if !items.is_empty() {
            details.work {
                summary { "Work of the subagent (" (items.len()) @if items.len() == 1 { " item)" } @else { " items)" } }
                @if left_out > 0 { p.left-out { "Earlier items are left out: " (left_out) "." } }
                @for (number, item) in items.iter().skip(left_out) { (render_item(item, *number, thread, page)) }
            }
        }
    }
}

/// Renders an item, with everything that is nested under it. `number` is its number within the session.
pub fn render_item(
    item: &Item,
    number: usize,
    thread: &Thread,
    page: &impl ItemAnnotations,
) -> Markup {
    let note = page.after_head(number);
    match &item.kind {
        ItemKind::User(message) => render_message("user", "Person", message, &note),
        ItemKind::Agent(message) => render_message("agent", "Agent", message, &note),
        ItemKind::Thought(message) => html! {
            details.item.thought {
                summary { span.who { "Thought" } (note) }
                (render_markdown_blocks(&message.content))
            }
        },
        ItemKind::ToolCall(call) => {
            let work = render_work(thread.nested_items(number), thread, page);
            render_tool_call(call, thread, &note, &page.before_content(call), &work)
        }
        ItemKind::Notice(notice) => html! {
            div.item.notice {
                p { span.who { (text::sanitize_line(notice.severity.as_str())) } (note) }
                p { (text::sanitize_line(&notice.title)) }
                @if let Some(more) = &notice.description { (render_text(more)) }
            }
        },
        ItemKind::Compaction(compaction) => html! {
            div.item.notice {
                p { span.who { "Compaction" } span.status { (text::sanitize_line(compaction.status.as_str())) } (note) }
                (render_blocks(&compaction.summary))
                @if let Some(error) = &compaction.error { (render_text(error)) }
            }
        },
        ItemKind::Subagent(subagent) => html! {
            div.item.notice {
                p {
                    span.who { "Subagent" }
                    @if let Some(state) = describe_state(subagent) { span.status { (state) } }
                    (note)
                }
                p { (text::sanitize_line(subagent.name())) }
                @if let Some(more) = &subagent.description { (render_text(more)) }
                (page.subagent_work(subagent))
            }
        },
        // The subagent shows it.
        ItemKind::SessionMessage(message)
            if page.shows_subagent_work() && thread.is_in_subagent(message) =>
        {
            html! {}
        }
        ItemKind::SessionMessage(message) => html! {
            div.item.notice {
                p { span.who { "Message " (text::sanitize_line(&thread.message_direction(message))) } (note) }
                (render_blocks(&message.content))
            }
        },
        ItemKind::Unknown(object) => html! {
            details.item.notice {
                summary { span.who { "Unknown content" } (note) }
                (render_code(&serde_json::to_string_pretty(object).unwrap_or_default()))
            }
        },
        _ => html! {},
    }
}

/// Says what a subagent is doing, or how it has ended, if the agent reports it.
fn describe_state(subagent: &ThreadSubagent) -> Option<String> {
    Some(match subagent.state.as_ref()? {
        StateUpdate::Running(_) => "running".to_owned(),
        StateUpdate::RequiresAction(_) => "needs an answer".to_owned(),
        StateUpdate::Idle(idle) => match idle.stop_reason.as_ref()?.as_str() {
            "end_turn" => "done".to_owned(),
            reason => text::sanitize_line(&reason.replace('_', " ")),
        },
        _ => return None,
    })
}

fn render_message(class: &str, who: &str, message: &ThreadMessage, note: &Markup) -> Markup {
    html! {
        div.item.(class) {
            p { span.who { (who) } (note) }
            @if message.is_truncated { p.left-out { "The beginning is omitted." } }
            @match class {
                // People write text, and agents write Markdown.
                "agent" => (render_markdown_blocks(&message.content)),
                _ => (render_blocks(&message.content)),
            }
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

/// Renders content blocks.
pub fn render_blocks(content: &[ContentBlock]) -> Markup {
    html! { @for block in content { (render_block(block)) } }
}

/// Renders an agent's content blocks, whose text is Markdown.
fn render_markdown_blocks(content: &[ContentBlock]) -> Markup {
    html! {
        @for block in content {
            @match as_markdown(block) {
                Some(markdown) => (render_markdown(markdown)),
                None => (render_block(block)),
            }
        }
    }
}

/// Returns the text inside a code fence, if the whole text is one fenced block. Many agents fence a tool's output.
fn without_fence(text: &str) -> &str {
    let fenced = || {
        let fence_length = text.len() - text.trim_start_matches('`').len();
        let fence = text.get(..fence_length).filter(|_| fence_length >= 3)?;
        let (_, rest) = text.split_once('\n')?;
        let inner = rest.trim_end().strip_suffix(fence)?;
        (!inner.contains(fence)).then_some(inner)
    };
    fenced().unwrap_or(text)
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
    thread: &Thread,
    note: &Markup,
    before_content: &Markup,
    work: &Markup,
) -> Markup {
    let (class, status) = match (&call.status, call.is_cancelled) {
        (ToolCallStatus::Completed, _) => ("completed", "completed"),
        (ToolCallStatus::Failed, _) => ("failed", "failed"),
        (ToolCallStatus::Cancelled, _) | (_, true) => ("cancelled", "cancelled"),
        (other, _) => ("open", other.as_str()),
    };
    html! {
        div.item.tool {
            p {
                span.kind { (text::sanitize_line(call.kind.as_str())) }
                b { (text::truncate_text(&text::sanitize_line(call.title_or_id()), 500)) }
                span.status.(class) { (text::sanitize_line(status)) }
                (note)
            }
            @if !call.locations.is_empty() {
                p.soft {
                    @for location in &call.locations {
                        code { (text::sanitize_line(&location.path)) @if let Some(line) = location.line { ":" (line) } } " "
                    }
                }
            }
            (before_content)
            @for content in &call.content {
                @match content {
                    ThreadToolCallContent::Content(ContentBlock::Text(block)) => (render_code(without_fence(&block.text))),
                    ThreadToolCallContent::Content(block) => (render_block(block)),
                    ThreadToolCallContent::Diff(diff) => (render_diff(diff)),
                    ThreadToolCallContent::Terminal(id) => (render_terminal(id, thread)),
                    ThreadToolCallContent::Unknown(object) => (render_code(&serde_json::to_string(object).unwrap_or_default())),
                    _ => {}
                }
            }
            (render_raw("given", call.raw_input.as_ref()))
            (render_raw("returned", call.raw_output.as_ref()))
            (work)
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
pub fn render_diff(diff: &ThreadDiff) -> Markup {
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

/// Renders a plan. `when` says of which time it is.
pub fn render_plan(plan: &ThreadPlan, when: &str) -> Markup {
    html! {
        div.item.plan {
            p { span.who { "Plan" } span.soft { (when) } }
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
