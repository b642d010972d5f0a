//! A thread as a Markdown document.
//!
//! What the person, the agent and its tools said keeps its place in the document: headings of it are below ours, it has
//! no HTML, and what it opens is closed where it ends (`tame.rs`). What commands printed and files contain stands in
//! fences that are longer than any within.

mod tame;

use acp::thread::{
    Compaction, Diff, FileChange, Item, ItemKind, Message, PlanContent, ThreadPlan, ThreadTerminal,
    ThreadToolCall, ToolCallContent,
};
use acp::v1::{ContentBlock, EmbeddedResourceResource, Notice, NoticeSeverity};
use acp::{Thread, v2::PlanEntryStatus, v2::ToolCallStatus};
use acp_host::clean;
use similar::TextDiff;

use self::tame::tame;

/// How many lines around a change are shown.
const AROUND: usize = 3;

/// The longest text of a raw input or output that is written, in bytes.
const LONGEST_RAW: usize = 64 * 1024;

/// The thread as a Markdown document (CommonMark, with the task lists and tables of GitHub's).
#[must_use]
pub fn markdown(thread: &Thread) -> String {
    let mut page = Page::default();
    let title = thread.title().map(inline).filter(|title| !title.is_empty());
    page.block(&format!("# {}", title.as_deref().unwrap_or("Session")));
    let dropped = thread.dropped().items;
    if dropped > 0 {
        page.block(&format!("*The first {dropped} parts are not kept here.*"));
    }
    for plan in thread.plans() {
        page.plan(plan);
    }
    for item in thread.items() {
        page.item(thread, item);
    }
    page.text
}

/// A document that grows block by block.
#[derive(Default)]
struct Page {
    text: String,
    /// Whose words came last.
    speaker: Option<Speaker>,
}

/// Whose words they are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaker {
    Person,
    Agent,
}

impl Page {
    /// Puts a block behind what there is.
    fn block(&mut self, block: &str) {
        let block = block.trim_end();
        if block.is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(block);
        self.text.push('\n');
    }

    /// Says whose words follow.
    fn speaks(&mut self, speaker: Speaker) {
        if self.speaker != Some(speaker) {
            self.speaker = Some(speaker);
            self.block(match speaker {
                Speaker::Person => "## You",
                Speaker::Agent => "## Agent",
            });
        }
    }

    fn item(&mut self, thread: &Thread, item: &Item) {
        match &item.kind {
            ItemKind::User(message) => {
                // Two prompts with nothing between them are two.
                self.speaker = None;
                self.speaks(Speaker::Person);
                self.message(message);
            }
            ItemKind::Agent(message) => {
                self.speaks(Speaker::Agent);
                self.message(message);
            }
            ItemKind::Thought(message) => {
                self.speaks(Speaker::Agent);
                self.folded("Thought", |page| page.message(message));
            }
            ItemKind::ToolCall(call) => {
                self.speaks(Speaker::Agent);
                self.tool_call(thread, call);
            }
            ItemKind::Notice(notice) => self.notice(notice),
            ItemKind::Compaction(compaction) => self.compaction(compaction),
            ItemKind::Subagent(subagent) => {
                self.speaks(Speaker::Agent);
                self.block(&format!("### Subagent: {}", inline(subagent.name())));
                self.folded("What it did", |page| {
                    subagent.thread.read(|thread| {
                        for item in thread.items() {
                            page.item(thread, item);
                        }
                    });
                });
            }
            ItemKind::SessionMessage(message) => {
                self.speaks(Speaker::Agent);
                self.folded("Message between sessions", |page| {
                    page.content(&message.content)
                });
            }
            _ => self.block("*Something that is not known here.*"),
        }
    }

    fn message(&mut self, message: &Message) {
        if message.cut {
            self.block("*Its beginning is not kept.*");
        }
        self.content(&message.content);
    }

    /// Blocks of content, text that belongs together as one.
    fn content(&mut self, blocks: &[ContentBlock]) {
        let mut words = String::new();
        for block in blocks {
            match block {
                ContentBlock::Text(text) => words.push_str(&text.text),
                other => {
                    self.block(&tame(&std::mem::take(&mut words)));
                    self.attachment(other);
                }
            }
        }
        self.block(&tame(&words));
    }

    fn attachment(&mut self, block: &ContentBlock) {
        match block {
            ContentBlock::Image(image) => {
                self.block(&media("Image", &image.mime_type, image.data.len()));
            }
            ContentBlock::Audio(audio) => {
                self.block(&media("Sound", &audio.mime_type, audio.data.len()));
            }
            ContentBlock::ResourceLink(link) => {
                self.block(&format!("*Attached:* {}", code(&link.uri)));
            }
            ContentBlock::Resource(embedded) => match &embedded.resource {
                EmbeddedResourceResource::Text(text) => {
                    self.block(&format!("*Attached:* {}", code(&text.uri)));
                    self.block(&fenced("", &text.text));
                }
                EmbeddedResourceResource::Blob(blob) => {
                    self.block(&format!("*Attached:* {}", code(&blob.uri)));
                }
                _ => self.block("*Attached: something that is not known here*"),
            },
            _ => self.block("*Something that is not known here.*"),
        }
    }

    /// What is shown when one opens it.
    fn folded(&mut self, summary: &str, inside: impl FnOnce(&mut Self)) {
        let mut page = Self {
            speaker: self.speaker,
            ..Self::default()
        };
        inside(&mut page);
        if !page.text.is_empty() {
            self.block(&format!("<details><summary>{summary}</summary>"));
            self.block(&page.text);
            self.block("</details>");
        }
    }

    fn tool_call(&mut self, thread: &Thread, call: &ThreadToolCall) {
        let mut title = inline(&call.title);
        if title.is_empty() {
            title = call.name.as_deref().map(inline).unwrap_or_default();
        }
        let status = if call.cancelled {
            ToolCallStatus::Cancelled.as_str()
        } else {
            call.status.as_str()
        };
        let kind = inline(call.kind.as_str());
        let status = inline(&status.replace('_', " "));
        self.block(&format!("### {title}"));
        let mut said = format!("*{kind}, {status}*");
        let mut seen: Vec<String> = Vec::new();
        for location in &call.locations {
            let place = match location.line {
                Some(line) => format!("{}:{line}", location.path),
                None => location.path.clone(),
            };
            if !seen.contains(&place) {
                said.push_str(if seen.is_empty() { ": " } else { ", " });
                said.push_str(&code(&place));
                seen.push(place);
            }
        }
        self.block(&said);
        if call.cut {
            self.block("*Not all of it is kept.*");
        }
        for content in &call.content {
            match content {
                ToolCallContent::Content(block) => self.content(std::slice::from_ref(block)),
                ToolCallContent::Diff(diff) => self.diff(diff),
                ToolCallContent::Terminal(id) => match thread.terminal(id) {
                    Some(terminal) => self.terminal(terminal),
                    None => self.block("*What it printed is not kept.*"),
                },
                _ => self.block("*Something that is not known here.*"),
            }
        }
        if call.content.is_empty() {
            self.raw("Input", call.raw_input.as_ref());
            self.raw("Output", call.raw_output.as_ref());
        }
    }

    /// What the agent told of a call beside what is to be shown of it.
    fn raw(&mut self, summary: &str, value: Option<&serde_json::Value>) {
        let Some(text) = value.and_then(|value| serde_json::to_string_pretty(value).ok()) else {
            return;
        };
        let mut end = text.len().min(LONGEST_RAW);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let (kept, rest) = text.split_at(end);
        self.folded(summary, |page| {
            page.block(&fenced("json", kept));
            if !rest.is_empty() {
                page.block(&format!("*{} more bytes*", rest.len()));
            }
        });
    }

    fn diff(&mut self, diff: &Diff) {
        for change in &diff.changes {
            match &change.texts {
                Some(texts) => {
                    let (old, new) = (texts.old.as_deref().unwrap_or_default(), &texts.new);
                    let path = clean::line(&change.path);
                    let from = match texts.old {
                        Some(_) => path.clone(),
                        None => "/dev/null".to_owned(),
                    };
                    let lines = TextDiff::from_lines(old, new.as_str());
                    let unified = lines
                        .unified_diff()
                        .context_radius(AROUND)
                        .header(&from, &path)
                        .to_string();
                    match unified.is_empty() {
                        true => self.block(&format!("*Unchanged:* {}", code(&path))),
                        false => self.block(&fenced("diff", &unified)),
                    }
                }
                None => self.block(&changed(change)),
            }
        }
        if let Some(patch) = &diff.patch {
            self.block(&fenced("diff", &patch.text));
        }
    }

    fn terminal(&mut self, terminal: &ThreadTerminal) {
        let mut text = String::new();
        if let Some(command) = &terminal.command {
            text.push_str(&format!("$ {command}\n"));
        }
        text.push_str(&terminal.output());
        self.block(&fenced("console", &text));
        let Some(status) = &terminal.exit_status else {
            return;
        };
        match (&status.signal, status.exit_code) {
            (Some(signal), _) => self.block(&format!("*Ended by {}.*", inline(signal))),
            (None, Some(code)) => self.block(&format!("*Ended with exit code {code}.*")),
            (None, None) => {}
        }
    }

    fn plan(&mut self, plan: &ThreadPlan) {
        self.block("## Plan");
        match &plan.content {
            PlanContent::Entries(entries) => {
                let mut list = String::new();
                for entry in entries {
                    let (mark, more) = match &entry.status {
                        PlanEntryStatus::Completed => ('x', String::new()),
                        PlanEntryStatus::Pending => (' ', String::new()),
                        other => (
                            ' ',
                            format!(" *({})*", inline(&other.as_str().replace('_', " "))),
                        ),
                    };
                    list.push_str(&format!("- [{mark}] {}{more}\n", inline(&entry.content)));
                }
                self.block(&list);
            }
            PlanContent::Markdown(text) => self.block(&tame(text)),
            PlanContent::File(uri) => self.block(&format!("*In* {}", code(uri))),
            _ => self.block("*Something that is not known here.*"),
        }
    }

    fn notice(&mut self, notice: &Notice) {
        let severity = match &notice.severity {
            NoticeSeverity::Info => "Note",
            NoticeSeverity::Warning => "Warning",
            NoticeSeverity::Error => "Error",
            _ => "Notice",
        };
        self.block(&format!("**{severity}:** {}", inline(&notice.title)));
        if let Some(description) = &notice.description {
            self.block(&tame(description));
        }
    }

    fn compaction(&mut self, compaction: &Compaction) {
        let status = inline(&compaction.status.as_str().replace('_', " "));
        self.block(&format!("*The conversation is shortened: {status}.*"));
        if let Some(error) = &compaction.error {
            self.block(&tame(error));
        }
        self.folded("What is left of it", |page| {
            page.content(&compaction.summary);
        });
    }
}

/// A change of a file whose texts are not known.
fn changed(change: &FileChange) -> String {
    let what = inline(change.operation.as_str());
    match &change.old_path {
        Some(from) => format!("*{what}:* {} → {}", code(from), code(&change.path)),
        None => format!("*{what}:* {}", code(&change.path)),
    }
}

/// What stands for a picture or a sound, of which `base64` characters came.
fn media(what: &str, mime_type: &str, base64: usize) -> String {
    let bytes = base64 / 4 * 3;
    format!("*{what}, {}, about {bytes} bytes*", inline(mime_type))
}

/// A block of text as it is, in a fence that is longer than any in it.
fn fenced(language: &str, text: &str) -> String {
    let text = clean::clean(text);
    let longest = text.lines().map(|line| longest_run(line, '`')).max();
    let fence = "`".repeat(longest.unwrap_or_default().max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{fence}{language}\n{text}{end}{fence}")
}

/// A line as it is, in a sentence.
fn code(text: &str) -> String {
    let text = clean::line(text);
    if text.trim().is_empty() {
        return String::new();
    }
    let fence = "`".repeat(longest_run(&text, '`') + 1);
    // A space is taken off at both ends if there is one at both, and what begins with a backtick needs one.
    let space = match text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) {
        true => " ",
        false => "",
    };
    format!("{fence}{space}{text}{space}{fence}")
}

/// How often this character is there in a row, at most.
fn longest_run(text: &str, character: char) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == character { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// A line of words, in which nothing means more than it is.
fn inline(text: &str) -> String {
    let text = clean::line(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut line = String::with_capacity(text.len());
    for c in words.join(" ").chars() {
        match c {
            '<' => line.push_str("&lt;"),
            '&' => line.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '!' | '$' => {
                line.push('\\');
                line.push(c);
            }
            c => line.push(c),
        }
    }
    line
}

#[cfg(test)]
mod tests;
