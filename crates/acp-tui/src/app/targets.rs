//! Lists the files and links of the conversation, and opens one.
//!
//! Files are opened in the user's editor, and links in the browser. A link is shown in full before it is opened, because
//! its end may contain what the agent has read.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use acp::thread::{Item, ItemKind, ThreadToolCallContent};
use acp::v1::ContentBlock;
use acp::{Thread, ThreadHandle};
use acp_host::terminal_text;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use url::Url;

use super::overlay::ChatOverlay;
use super::pager::Pager;
use super::{App, ChatEffect, ChatFocus, TabKey};
use crate::draw_context::DrawContext;
use crate::picker::{Picker, PickerItem};
use crate::text::markdown::find_urls;
use crate::theme::Theme;
use crate::user_editor::FilePlace;
use crate::web_address::{WebAddress, render_url, url_warnings};

/// The maximum number of files and links in the list.
const MAX_TARGETS: usize = 200;

/// The maximum number of words to look up as files. Only the latest are looked up.
const MAX_CANDIDATES: usize = 4_000;

/// The maximum length of a word that may be a path, in bytes.
const MAX_PATH_BYTES: usize = 1_024;

/// A file or link that the conversation mentions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum OpenTarget {
    /// A file that exists.
    File(FilePlace),
    /// A web page.
    Web(WebAddress),
}

/// The files and links of a conversation, the latest first.
#[derive(Debug, Default)]
pub(crate) struct FoundTargets {
    /// Those of the selected item, in order.
    selected: Vec<OpenTarget>,
    others: Vec<OpenTarget>,
}

/// Finds the files and links of a conversation. This looks up files, so it may block.
pub(crate) fn find_targets(
    thread: &ThreadHandle,
    selected: Option<usize>,
    cwd: &Path,
) -> FoundTargets {
    let mut seen = HashSet::new();
    let mut existing = |candidates: Vec<OpenTarget>| -> Vec<OpenTarget> {
        let mut found = Vec::new();
        for target in candidates {
            let exists = match &target {
                OpenTarget::File(place) => place.path.is_file(),
                OpenTarget::Web(_) => true,
            };
            if exists && found.len() < MAX_TARGETS && seen.insert(target.clone()) {
                found.push(target);
            }
        }
        found
    };
    // The thread is not locked while files are looked up.
    let (of_selected, of_others) = thread.read(|thread| {
        let mut collector = TargetCollector::new(cwd);
        let first = thread.truncation().items;
        let item = selected.and_then(|number| thread.items().get(number.checked_sub(first)?));
        if let (Some(number), Some(item)) = (selected, item) {
            collector.add_item(thread, number, item);
        }
        let of_selected = std::mem::take(&mut collector.found);
        for (number, item) in thread.outermost_items().rev() {
            collector.add_item(thread, number, item);
        }
        (of_selected, collector.found)
    });
    FoundTargets {
        selected: existing(of_selected),
        others: existing(of_others),
    }
}

/// Collects what may be a file or a link.
struct TargetCollector<'a> {
    cwd: &'a Path,
    found: Vec<OpenTarget>,
}

impl<'a> TargetCollector<'a> {
    fn new(cwd: &'a Path) -> Self {
        Self {
            cwd,
            found: Vec::new(),
        }
    }

    fn push(&mut self, target: OpenTarget) {
        if self.found.len() < MAX_CANDIDATES {
            self.found.push(target);
        }
    }

    fn add_item(&mut self, thread: &Thread, number: usize, item: &Item) {
        if self.found.len() >= MAX_CANDIDATES {
            return;
        }
        match &item.kind {
            ItemKind::User(message) | ItemKind::Agent(message) | ItemKind::Thought(message) => {
                message
                    .content
                    .iter()
                    .for_each(|block| self.add_block(block));
            }
            ItemKind::ToolCall(call) => {
                for location in &call.locations {
                    self.add_path(&location.path, location.line);
                }
                for content in &call.content {
                    match content {
                        ThreadToolCallContent::Content(block) => self.add_block(block),
                        ThreadToolCallContent::Diff(diff) => {
                            for change in &diff.changes {
                                self.add_path(&change.path, None);
                            }
                        }
                        ThreadToolCallContent::Terminal(id) => {
                            if let Some(terminal) = thread.terminal(id) {
                                self.add_text(&terminal.output());
                            }
                        }
                        _ => {}
                    }
                }
                for (number, item) in thread.nested_items(number) {
                    self.add_item(thread, number, item);
                }
            }
            ItemKind::Subagent(subagent) => subagent.thread.read(|thread| {
                for (number, item) in thread.outermost_items() {
                    self.add_item(thread, number, item);
                }
            }),
            _ => {}
        }
    }

    fn add_block(&mut self, block: &ContentBlock) {
        if let Some(text) = block.as_text() {
            self.add_text(text);
        }
        if let ContentBlock::ResourceLink(link) = block
            && let Ok(url) = Url::parse(&link.uri)
        {
            match url.to_file_path() {
                Ok(path) if url.scheme() == "file" => {
                    self.push(OpenTarget::File(FilePlace { path, line: None }))
                }
                _ => self.add_url(&url),
            }
        }
    }

    fn add_url(&mut self, url: &Url) {
        if let Some(address) = WebAddress::new(url) {
            self.push(OpenTarget::Web(address));
        }
    }

    fn add_path(&mut self, path: &str, line: Option<u32>) {
        let path = self.cwd.join(path);
        self.push(OpenTarget::File(FilePlace { path, line }));
    }

    /// Adds the URLs of a text, and the words that may be paths.
    fn add_text(&mut self, text: &str) {
        for url in find_urls(text).filter_map(|url| Url::parse(url).ok()) {
            self.add_url(&url);
        }
        let is_delimiter = |c: char| c.is_whitespace() || "`\"'()[]{}<>,;|=*".contains(c);
        for word in text.split(is_delimiter) {
            if self.found.len() >= MAX_CANDIDATES {
                return;
            }
            let word = word.trim_end_matches(['.', ':', '!', '?']);
            let may_be_path = word.contains(['/', '.', '\\']) && !word.contains("://");
            if may_be_path && word.len() <= MAX_PATH_BYTES {
                let (path, line) = split_line_number(word);
                self.add_path(path, line);
            }
        }
    }
}

/// Splits `src/main.rs:12:5` into the path and the line.
fn split_line_number(word: &str) -> (&str, Option<u32>) {
    let mut parts = word.splitn(3, ':');
    let path = parts.next().unwrap_or_default();
    match parts.next().and_then(|line| line.parse().ok()) {
        Some(line) => (path, Some(line)),
        None => (word, None),
    }
}

/// A link that is shown in full before it is opened.
pub(super) struct LinkView {
    address: WebAddress,
    pager: Pager,
}

/// The effect of a key on a [`LinkView`].
pub(super) enum LinkOutcome {
    KeepOpen,
    Close,
    Open(WebAddress),
}

impl LinkView {
    fn new(address: WebAddress, theme: &Theme) -> Self {
        let url = address.url();
        let mut lines = vec![Line::from(render_url(url, theme))];
        lines.extend(url_warnings(url).into_iter().map(|warning| {
            let warning = terminal_text::clean_line(&warning);
            Line::from(vec![
                Span::styled("! ", theme.warn),
                Span::styled(warning, theme.warn),
            ])
        }));
        let mut pager = Pager::new("Open this link?", lines);
        pager.set_keys("o: open in browser  any other key: close".to_owned());
        Self { address, pager }
    }

    pub(super) fn handle_key(&mut self, key: KeyEvent) -> LinkOutcome {
        if key.code == KeyCode::Char('o') && key.modifiers.is_empty() {
            // Not before the whole URL has been on the screen.
            return match self.pager.was_read() {
                true => LinkOutcome::Open(self.address.clone()),
                false => LinkOutcome::KeepOpen,
            };
        }
        match self.pager.handle_key(key) {
            true => LinkOutcome::KeepOpen,
            false => LinkOutcome::Close,
        }
    }

    pub(super) fn scroll(&mut self, by: isize) {
        self.pager.scroll(by);
    }

    pub(super) fn draw(&mut self, area: Rect, buf: &mut Buffer, look: &DrawContext<'_>) {
        self.pager.draw(area, buf, look);
    }
}

impl App {
    /// Looks for the files and links of the conversation, in order to list them.
    pub(super) fn list_targets(&mut self) -> Vec<ChatEffect> {
        let is_item_selected = self.focus == ChatFocus::Thread;
        let Some(tab) = self.tabs.get(self.active) else {
            return Vec::new();
        };
        let selected = tab.view.selected().filter(|_| is_item_selected);
        vec![ChatEffect::FindTargets {
            tab: tab.key,
            thread: tab.thread.clone(),
            selected,
        }]
    }

    /// Lists the files and links that were found, unless the user has turned to something else.
    pub(super) fn on_targets_found(&mut self, tab: TabKey, targets: FoundTargets) {
        let is_active = self.tabs.get(self.active).is_some_and(|it| it.key == tab);
        if !is_active || self.overlay.is_some() {
            return;
        }
        if targets.selected.is_empty() && targets.others.is_empty() {
            self.show_note("no files or links in this conversation");
            return;
        }
        let has_selected = !targets.selected.is_empty();
        let item = |target: OpenTarget, group: &str| {
            let label = self.target_label(&target);
            let mut item = PickerItem::new(target, label);
            item.group = has_selected.then(|| group.to_owned());
            item
        };
        let of_selected = targets.selected.into_iter();
        let mut items: Vec<_> = of_selected.map(|it| item(it, "Selected item")).collect();
        let others = targets.others.into_iter();
        items.extend(others.map(|it| item(it, "Conversation")));
        self.overlay = Some(ChatOverlay::Targets(Picker::new("Open", items)));
    }

    fn target_label(&self, target: &OpenTarget) -> String {
        let label = match target {
            OpenTarget::File(place) => {
                let path: PathBuf = match place.path.strip_prefix(&self.setup.cwd) {
                    Ok(path) => path.to_owned(),
                    Err(_) => place.path.clone(),
                };
                let line = place.line.map(|line| format!(":{line}"));
                format!("{}{}", path.display(), line.unwrap_or_default())
            }
            OpenTarget::Web(address) => address.url().to_string(),
        };
        terminal_text::clean_line(&label)
    }

    /// Opens a file, or shows a link in full before it is opened.
    pub(super) fn open_target(&mut self, target: OpenTarget) -> Vec<ChatEffect> {
        match target {
            OpenTarget::File(place) => vec![ChatEffect::OpenFile(place)],
            OpenTarget::Web(address) => {
                let view = LinkView::new(address, &self.setup.theme);
                self.overlay = Some(ChatOverlay::Link(Box::new(view)));
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acp::v1::SessionUpdate;
    use serde_json::json;

    #[test]
    fn files_and_links_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let cwd = directory.path();
        std::fs::create_dir(cwd.join("src")).unwrap();
        for file in ["src/main.rs", "-x.txt", "a b.md"] {
            std::fs::write(cwd.join(file), "").unwrap();
        }
        let thread = ThreadHandle::new();
        let link = Url::from_file_path(cwd.join("a b.md")).unwrap();
        let text = "See `src/main.rs:12:5`, (-x.txt) and /no/such.rs; https://a.example/x?y=1. \
            javascript:alert(1) file:///etc/passwd src";
        for (kind, content) in [
            (
                "user_message_chunk",
                json!({"type": "resource_link", "name": "n", "uri": link.as_str()}),
            ),
            ("agent_message_chunk", json!({"type": "text", "text": text})),
        ] {
            let update = json!({"sessionUpdate": kind, "content": content});
            let update: SessionUpdate = serde_json::from_value(update).unwrap();
            thread.change(|thread| thread.apply(&update.into()));
        }
        let file = |path: &str, line| {
            let path = cwd.join(path);
            OpenTarget::File(FilePlace { path, line })
        };
        let web = WebAddress::new(&Url::parse("https://a.example/x?y=1").unwrap()).unwrap();
        let of_answer = [
            OpenTarget::Web(web),
            file("src/main.rs", Some(12)),
            file("-x.txt", None),
        ];
        let of_prompt = [file("a b.md", None)];
        let found = find_targets(&thread, None, cwd);
        assert_eq!(found.selected, []);
        assert_eq!(found.others, [&of_answer[..], &of_prompt[..]].concat());
        let found = find_targets(&thread, Some(0), cwd);
        assert_eq!(
            (&*found.selected, &*found.others),
            (&of_prompt[..], &of_answer[..])
        );
    }
}
