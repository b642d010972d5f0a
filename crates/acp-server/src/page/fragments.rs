//! The HTML of a view, and which parts of it have changed.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use acp::Thread;
use acp::thread::{Item, ItemKind, ThreadToolCallContent};
use acp::v1::{
    SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOptions,
};
use acp_host::question::{describe_answer, is_complete, question_text};
use acp_host::{AlwaysEffect, literal};
use acp_html::{Unannotated, render_item, render_plan, text};
use maud::{Markup, html};
use serde::Serialize;

use super::view::{PageQuestion, SessionView, ViewContents};

/// The number of items that a view shows when it is opened. Earlier ones are left out.
const MAX_FIRST_ITEMS: usize = 400;

/// An element of the page with new contents. Without contents, the element is removed.
#[derive(Debug, Serialize)]
pub(super) struct Fragment {
    /// The id of the element. If there is no such element, it is added to the end of its part of the page.
    id: String,
    html: String,
}

/// What a browser has been sent.
#[derive(Debug, Default)]
pub(super) struct SentFragments {
    /// The revision of the thread up to which its items have been sent.
    revision: Option<u64>,
    /// The number of the first item that is shown.
    first_item: usize,
    /// The hash of each element's contents.
    hashes: HashMap<String, u64>,
}

impl SentFragments {
    /// Returns the parts of a view that have changed since the last call.
    pub(super) fn changes(&mut self, view: &SessionView) -> Vec<Fragment> {
        let mut fragments = Vec::new();
        let contents = view.state.lock();
        view.session.thread().read(|thread| {
            self.push_items(thread, &mut fragments);
            let plans = html! { @for plan in thread.plans() { (render_plan(plan, "")) } };
            self.push("plans".to_owned(), plans, &mut fragments);
            self.push("title".to_owned(), title(view, thread), &mut fragments);
            self.push("state".to_owned(), state(thread, &contents), &mut fragments);
            self.push("settings".to_owned(), settings(thread), &mut fragments);
        });
        self.push("queue".to_owned(), queue(&contents), &mut fragments);
        let notes = html! { @for note in &contents.notes { p { (note) } } };
        self.push("notes".to_owned(), notes, &mut fragments);
        self.push_questions(&contents, Path::new(&view.cwd), &mut fragments);
        fragments
    }

    fn push_items(&mut self, thread: &Thread, fragments: &mut Vec<Fragment>) {
        let dropped = thread.truncation().items;
        let items = thread.items();
        let shown_from = *self.revision.get_or_insert(0);
        if shown_from == 0 && items.len() > MAX_FIRST_ITEMS {
            self.first_item = dropped + items.len() - MAX_FIRST_ITEMS;
            let note = html! { p.left-out { "Earlier messages and tool calls are left out. `acp sessions export` shows all." } };
            self.push("earlier".to_owned(), note, fragments);
        }
        for (number, item) in thread.outermost_items() {
            if number >= self.first_item && is_changed(number, item, thread, shown_from) {
                let markup = render_item(item, number, thread, &Unannotated);
                self.push(format!("item-{number}"), markup, fragments);
            }
        }
        self.revision = Some(thread.revision());
    }

    fn push_questions(
        &mut self,
        contents: &ViewContents,
        cwd: &Path,
        fragments: &mut Vec<Fragment>,
    ) {
        for (number, question) in &contents.questions {
            let markup = render_question(*number, question, cwd);
            self.push(format!("question-{number}"), markup, fragments);
        }
        let closed: Vec<String> = self
            .hashes
            .keys()
            .filter(|id| {
                let number = id.strip_prefix("question-").and_then(|id| id.parse().ok());
                number.is_some_and(|number: u64| !contents.questions.contains_key(&number))
            })
            .cloned()
            .collect();
        for id in closed {
            self.hashes.remove(&id);
            fragments.push(Fragment {
                id,
                html: String::new(),
            });
        }
    }

    /// Adds an element, unless the browser has it already.
    fn push(&mut self, id: String, markup: Markup, fragments: &mut Vec<Fragment>) {
        let html = markup.into_string();
        let mut hasher = DefaultHasher::new();
        html.hash(&mut hasher);
        let hash = hasher.finish();
        if self.hashes.insert(id.clone(), hash) != Some(hash) {
            fragments.push(Fragment { id, html });
        }
    }
}

/// Returns `true` if an item, or one that is nested under it, has changed after a revision.
fn is_changed(number: usize, item: &Item, thread: &Thread, after: u64) -> bool {
    item.revision > after
        || has_running_terminal(item, thread)
        || thread
            .nested_items(number)
            .any(|(number, item)| is_changed(number, item, thread, after))
}

/// Returns `true` if an item shows a terminal, whose output does not count as a change of the item.
fn has_running_terminal(item: &Item, thread: &Thread) -> bool {
    let ItemKind::ToolCall(call) = &item.kind else {
        return false;
    };
    call.content.iter().any(|content| match content {
        ThreadToolCallContent::Terminal(id) => thread.terminal(id).is_some(),
        _ => false,
    })
}

fn title(view: &SessionView, thread: &Thread) -> Markup {
    let title = thread.title().unwrap_or(view.session.id().as_str());
    html! { (text::sanitize_line(title)) }
}

fn state(thread: &Thread, contents: &ViewContents) -> Markup {
    let is_running = contents.is_running;
    html! {
        @if !contents.questions.is_empty() {
            span.state.waits { "waits for an answer" }
        } @else if is_running {
            span.state.runs { "working" }
        } @else {
            span.state { "idle" }
        }
        @if let Some(usage) = thread.usage() {
            span.soft { " · " (usage.used) " of " (usage.size) " tokens" }
        }
    }
}

/// Renders the options of the session that the user can change: its mode and model.
fn settings(thread: &Thread) -> Markup {
    let options = thread.config_options().iter().filter(|option| {
        matches!(
            option.category,
            Some(SessionConfigOptionCategory::Mode | SessionConfigOptionCategory::Model)
        )
    });
    html! { @for option in options { (setting(option)) } }
}

fn setting(option: &SessionConfigOption) -> Markup {
    let SessionConfigKind::Select(select) = &option.kind else {
        return html! {};
    };
    let values = match &select.options {
        SessionConfigSelectOptions::Ungrouped(values) => values.iter().collect::<Vec<_>>(),
        SessionConfigSelectOptions::Grouped(groups) => {
            groups.iter().flat_map(|group| &group.options).collect()
        }
        _ => Vec::new(),
    };
    let name = text::sanitize_line(&option.name);
    html! {
        label {
            span { (name) }
            select data-option=(option.id.as_str()) {
                @for value in values {
                    option value=(value.value.as_str()) selected[value.value == select.current_value] {
                        (text::sanitize_line(&value.name))
                    }
                }
            }
        }
    }
}

fn queue(contents: &ViewContents) -> Markup {
    html! {
        @if !contents.queue.is_empty() {
            h2 { "Waiting prompts" }
            ol {
                @for prompt in &contents.queue {
                    li {
                        span.text { (text::sanitize_text(&prompt.text)) }
                        @if let Some(client) = &prompt.client { span.soft { " " (text::sanitize_line(client)) } }
                        button type="button" data-action="take_back" data-prompt=(prompt.prompt) { "Take back" }
                    }
                }
            }
        }
    }
}

/// Renders a question in full. Nothing is shortened, and invisible characters are escaped.
fn render_question(number: u64, question: &PageQuestion, cwd: &Path) -> Markup {
    let request = &question.request;
    let text = question_text(request, cwd);
    html! {
        h2 { "The agent asks for permission" }
        pre { (text) }
        div.options {
            @for option in &request.options {
                @let meaning = describe_answer(option, &AlwaysEffect::LeftToAgent, request, cwd);
                @let is_possible = option.kind.rejects() || is_complete(request);
                button type="button" data-action="answer" data-question=(number)
                    data-choice=(option.option_id.as_str()) disabled[!is_possible] {
                    b { (literal::escape_line(&option.name)) }
                    @match meaning {
                        Some(meaning) if meaning.is_empty() => {}
                        Some(meaning) => { " " span.soft { (literal::escape_line(&meaning)) } }
                        None => { " " span.soft { "unknown whether this allows or rejects" } }
                    }
                }
            }
        }
    }
}
