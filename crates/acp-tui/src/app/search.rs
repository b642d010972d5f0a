//! Searches the conversation for text.

use acp::Thread;
use acp::thread::{Item, ItemKind, ThreadToolCallContent};

use super::App;
use super::overlay::{ChatOverlay, LinePurpose};
use super::prompt_line::PromptLine;

/// The direction of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchDirection {
    /// Towards the end of the conversation.
    Forward,
    /// Towards its beginning.
    Backward,
}

impl App {
    /// Asks for the text to search for.
    pub(super) fn ask_for_search(&mut self) {
        let last = self.active_tab_mut().and_then(|tab| tab.search.clone());
        let line = PromptLine::new("Search conversation", "").with_recall(last);
        self.overlay = Some(ChatOverlay::PromptLine(LinePurpose::Search, line));
    }

    /// Selects the first item from the selected one on that contains the text.
    pub(super) fn search(&mut self, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        if let Some(tab) = self.active_tab_mut() {
            tab.search = Some(text.to_owned());
        }
        self.find(SearchDirection::Forward, true);
    }

    /// Selects the next item that contains the text of the last search.
    pub(super) fn search_again(&mut self, direction: SearchDirection) {
        self.find(direction, false);
    }

    fn find(&mut self, direction: SearchDirection, includes_selected: bool) {
        let Some(tab) = self.active_tab_mut() else {
            return;
        };
        let Some(text) = tab.search.clone() else {
            self.show_note("no search; press / first");
            return;
        };
        let selected = tab.view.selected();
        let found = tab.thread.read(|thread| {
            let first = thread.truncation().items;
            let selected = selected.map_or(0, |number| number.saturating_sub(first));
            let found = find_item(thread, &text, selected, direction, includes_selected)?;
            let is_wrapped = match direction {
                SearchDirection::Forward => found < selected,
                SearchDirection::Backward => found > selected,
            };
            Some((first + found, is_wrapped))
        });
        match found {
            Some((number, is_wrapped)) => {
                tab.view.open_item_at(number, &text);
                if is_wrapped {
                    self.show_note("search continued at the other end");
                }
            }
            None => {
                let text = acp_host::terminal_text::clean_line(&text);
                self.show_note(format!("not found: {text}"));
            }
        }
    }
}

/// Returns the index of the nearest item that contains the text, going around the end of the conversation.
fn find_item(
    thread: &Thread,
    text: &str,
    selected: usize,
    direction: SearchDirection,
    includes_selected: bool,
) -> Option<usize> {
    let items = thread.items();
    let count = items.len();
    let text = text.to_lowercase();
    let steps = match includes_selected {
        true => 0..count,
        false => 1..count + 1,
    };
    steps
        .map(|step| match direction {
            SearchDirection::Forward => (selected + step) % count,
            SearchDirection::Backward => (selected + count - step) % count,
        })
        .find(|index| {
            let number = thread.truncation().items + index;
            let is_outermost = thread.parent_item(number).is_none();
            let item = items.get(*index).filter(|_| is_outermost);
            item.is_some_and(|item| contains(thread, number, item, &text))
        })
}

/// Returns whether an item, or one that is nested under it, contains a text, which is in lower case.
fn contains(thread: &Thread, number: usize, item: &Item, text: &str) -> bool {
    let is_in = |part: &str| part.to_lowercase().contains(text);
    match &item.kind {
        ItemKind::User(message) | ItemKind::Agent(message) | ItemKind::Thought(message) => {
            is_in(&message.text())
        }
        ItemKind::ToolCall(call) => {
            is_in(&call.title)
                || call.content.iter().any(|content| match content {
                    ThreadToolCallContent::Content(block) => {
                        is_in(block.as_text().unwrap_or_default())
                    }
                    ThreadToolCallContent::Terminal(id) => {
                        let terminal = thread.terminal(id);
                        terminal.is_some_and(|terminal| is_in(&terminal.output()))
                    }
                    ThreadToolCallContent::Diff(diff) => diff.changes.iter().any(|change| {
                        let texts = change.texts.as_ref();
                        is_in(&change.path)
                            || texts.is_some_and(|texts| {
                                is_in(&texts.new) || texts.old.as_deref().is_some_and(is_in)
                            })
                    }),
                    _ => false,
                })
                || thread
                    .nested_items(number)
                    .any(|(number, item)| contains(thread, number, item, text))
        }
        ItemKind::Notice(notice) => {
            is_in(&notice.title) || notice.description.as_deref().is_some_and(is_in)
        }
        ItemKind::Subagent(subagent) => subagent.thread.read(|thread| {
            let first = thread.truncation().items;
            let mut items = (first..).zip(thread.items());
            items.any(|(number, item)| contains(thread, number, item, text))
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acp::ThreadHandle;
    use acp::v1::SessionUpdate;
    use serde_json::json;

    fn thread(messages: &[&str]) -> ThreadHandle {
        let thread = ThreadHandle::new();
        for (index, message) in messages.iter().enumerate() {
            // Messages of the same side would become one.
            let kind = match index % 2 {
                0 => "user_message_chunk",
                _ => "agent_message_chunk",
            };
            let update =
                json!({"sessionUpdate": kind, "content": {"type": "text", "text": message}});
            let update: SessionUpdate = serde_json::from_value(update).unwrap();
            thread.change(|thread| thread.apply(&update.into()));
        }
        thread
    }

    #[test]
    fn the_nearest_item_is_found_in_both_directions() {
        use SearchDirection::{Backward, Forward};
        let thread = thread(&["Apple", "pear", "apple pie", "plum"]);
        thread.read(|thread| {
            let find = |text, selected, direction, includes_selected| {
                find_item(thread, text, selected, direction, includes_selected)
            };
            assert_eq!(find("APPLE", 0, Forward, true), Some(0));
            assert_eq!(find("apple", 0, Forward, false), Some(2));
            assert_eq!(find("apple", 2, Forward, false), Some(0));
            assert_eq!(find("apple", 0, Backward, false), Some(2));
            assert_eq!(find("pear", 3, Backward, false), Some(1));
            assert_eq!(find("pear", 1, Forward, false), Some(1));
            assert_eq!(find("cherry", 1, Forward, true), None);
        });
        ThreadHandle::new().read(|thread| {
            assert_eq!(find_item(thread, "any", 0, Forward, true), None);
            assert_eq!(find_item(thread, "any", 0, Backward, false), None);
        });
    }
}
