//! Exports a thread as a Markdown document.
//!
//! The messages of the user, the agent and its tools cannot change the document's structure: their headings are below
//! the document's own, they have no HTML, and each block they open is closed at its end (`embed.rs`). The output of
//! commands and the contents of files are in fences that are longer than any inside them.

mod embed;

use acp::thread::{
    FileChange, Item, ItemKind, PlanContent, ThreadCompaction, ThreadDiff, ThreadMessage,
    ThreadPlan, ThreadTerminal, ThreadToolCall, ThreadToolCallContent,
};
use acp::v1::{ContentBlock, EmbeddedResourceResource, Notice, NoticeSeverity};
use acp::{Thread, v2::PlanEntryStatus, v2::ToolCallStatus};
use acp_host::terminal_text;
use similar::TextDiff;

use self::embed::embed_markdown;

use crate::text::columns::pluralize;

/// The number of context lines around a change.
const CONTEXT_LINES: usize = 3;

/// The maximum length of exported raw input or output, in bytes of formatted JSON.
const MAX_RAW_BYTES: usize = 64 * 1024;

/// Renders a thread as a Markdown document (CommonMark with GitHub's task lists and tables).
#[must_use]
pub fn render_markdown(thread: &Thread) -> String {
    let mut page = ExportPage::default();
    let title = thread
        .title()
        .map(escape_inline)
        .filter(|title| !title.is_empty());
    page.push_block(&format!("# {}", title.as_deref().unwrap_or("Session")));
    let dropped = thread.truncation().items;
    if dropped > 0 {
        page.push_block(&format!("*Earlier items omitted: {dropped}*"));
    }
    for plan in thread.plans() {
        page.render_plan(plan);
    }
    page.render_items(thread);
    page.text
}

/// What comes before a transcript that is part of a prompt's text.
pub(crate) const TRANSCRIPT_INTRODUCTION: &str = "The conversation so far, for context:";

/// The maximum length of a transcript, in bytes.
const MAX_TRANSCRIPT_BYTES: usize = 256 * 1024;

/// Renders the first `count` items of a thread, including those that are no longer in memory, as a Markdown document for
/// an agent. Returns `None` if there are no items. Omits the earliest items of a long conversation, and says so.
pub(crate) fn render_transcript(thread: &Thread, count: usize) -> Option<String> {
    let dropped = thread.truncation().items;
    let items = thread.items();
    let items = &items[..count.saturating_sub(dropped).min(items.len())];
    let mut omitted = dropped.min(count);
    if count == 0 {
        return None;
    }
    let mut texts = Vec::new();
    let mut length = 0;
    for (index, item) in items.iter().enumerate().rev() {
        if thread.parent_item(dropped + index).is_some() {
            continue;
        }
        let mut page = ExportPage::default();
        page.render_item(thread, dropped + index, item);
        length += page.text.len();
        if length > MAX_TRANSCRIPT_BYTES {
            omitted += index + 1;
            break;
        }
        texts.push(page.text);
    }
    let mut transcript = String::new();
    if omitted > 0 {
        transcript.push_str(&format!("*Earlier items omitted: {omitted}*\n\n"));
    }
    for text in texts.iter().rev() {
        transcript.push_str(text);
        transcript.push('\n');
    }
    Some(transcript)
}

/// A Markdown document, built block by block.
#[derive(Default)]
struct ExportPage {
    text: String,
    /// The speaker of the previous block.
    speaker: Option<ExportSpeaker>,
}

/// The side that a block comes from, named in the heading.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExportSpeaker {
    User,
    Agent,
}

impl ExportPage {
    /// Appends a block to the document.
    fn push_block(&mut self, block: &str) {
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

    /// Appends a heading if the speaker changes.
    fn set_speaker(&mut self, speaker: ExportSpeaker) {
        if self.speaker != Some(speaker) {
            self.speaker = Some(speaker);
            self.push_block(match speaker {
                ExportSpeaker::User => "## You",
                ExportSpeaker::Agent => "## Agent",
            });
        }
    }

    /// Renders all items of a thread. Nested items follow the tool call that they belong to.
    fn render_items(&mut self, thread: &Thread) {
        for (number, item) in thread.outermost_items() {
            self.render_item(thread, number, item);
        }
    }

    fn render_item(&mut self, thread: &Thread, number: usize, item: &Item) {
        match &item.kind {
            ItemKind::User(message) => {
                // Two prompts with nothing between them get a heading each.
                self.speaker = None;
                self.set_speaker(ExportSpeaker::User);
                self.render_message(message);
            }
            ItemKind::Agent(message) => {
                self.set_speaker(ExportSpeaker::Agent);
                self.render_message(message);
            }
            ItemKind::Thought(message) => {
                self.set_speaker(ExportSpeaker::Agent);
                self.render_details("Thought", |page| page.render_message(message));
            }
            ItemKind::ToolCall(call) => {
                self.set_speaker(ExportSpeaker::Agent);
                self.render_tool_call(thread, call);
                if thread.nested_items(number).next().is_some() {
                    self.render_details("Activity", |page| {
                        for (number, item) in thread.nested_items(number) {
                            page.render_item(thread, number, item);
                        }
                    });
                }
            }
            ItemKind::Notice(notice) => self.render_notice(notice),
            ItemKind::Compaction(compaction) => self.render_compaction(compaction),
            ItemKind::Subagent(subagent) => {
                self.set_speaker(ExportSpeaker::Agent);
                self.push_block(&format!("### Subagent: {}", escape_inline(subagent.name())));
                self.render_details("Activity", |page| {
                    subagent.thread.read(|thread| page.render_items(thread));
                });
            }
            // The subagent contains it.
            ItemKind::SessionMessage(message) if thread.is_in_subagent(message) => {}
            ItemKind::SessionMessage(message) => {
                self.set_speaker(ExportSpeaker::Agent);
                let summary = format!("Message {}", thread.message_direction(message));
                self.render_details(&escape_inline(&summary), |page| {
                    page.render_content(&message.content)
                });
            }
            _ => self.push_block("*Unknown content.*"),
        }
    }

    fn render_message(&mut self, message: &ThreadMessage) {
        if message.is_truncated {
            self.push_block("*The beginning is omitted.*");
        }
        self.render_content(&message.content);
    }

    /// Appends content blocks, joining adjacent text blocks.
    fn render_content(&mut self, blocks: &[ContentBlock]) {
        let mut words = String::new();
        for block in blocks {
            match block {
                ContentBlock::Text(text) => words.push_str(&text.text),
                other => {
                    self.push_block(&embed_markdown(&std::mem::take(&mut words)));
                    self.render_attachment(other);
                }
            }
        }
        self.push_block(&embed_markdown(&words));
    }

    fn render_attachment(&mut self, block: &ContentBlock) {
        match block {
            ContentBlock::Image(image) => {
                self.push_block(&media_text("Image", &image.mime_type, image.data.len()));
            }
            ContentBlock::Audio(audio) => {
                self.push_block(&media_text("Audio", &audio.mime_type, audio.data.len()));
            }
            ContentBlock::ResourceLink(link) => {
                self.push_block(&format!("*Attached:* {}", code_span(&link.uri)));
            }
            ContentBlock::Resource(embedded) => match &embedded.resource {
                EmbeddedResourceResource::Text(text) => {
                    self.push_block(&format!("*Attached:* {}", code_span(&text.uri)));
                    self.push_block(&fenced_block("", &text.text));
                }
                EmbeddedResourceResource::Blob(blob) => {
                    self.push_block(&format!("*Attached:* {}", code_span(&blob.uri)));
                }
                _ => self.push_block("*Attached: unknown content*"),
            },
            _ => self.push_block("*Unknown content.*"),
        }
    }

    /// Appends a collapsible section. `inside` adds its contents.
    fn render_details(&mut self, summary: &str, inside: impl FnOnce(&mut Self)) {
        let mut page = Self {
            speaker: self.speaker,
            ..Self::default()
        };
        inside(&mut page);
        if !page.text.is_empty() {
            self.push_block(&format!("<details><summary>{summary}</summary>"));
            self.push_block(&page.text);
            self.push_block("</details>");
        }
    }

    fn render_tool_call(&mut self, thread: &Thread, call: &ThreadToolCall) {
        let mut title = escape_inline(&call.title);
        if title.is_empty() {
            title = call.name.as_deref().map(escape_inline).unwrap_or_default();
        }
        let status = if call.is_cancelled {
            ToolCallStatus::Cancelled.as_str()
        } else {
            call.status.as_str()
        };
        let kind = escape_inline(call.kind.as_str());
        let status = escape_inline(&status.replace('_', " "));
        self.push_block(&format!("### {title}"));
        let mut said = format!("*{kind}, {status}*");
        let mut seen: Vec<String> = Vec::new();
        for location in &call.locations {
            let place = match location.line {
                Some(line) => format!("{}:{line}", location.path),
                None => location.path.clone(),
            };
            if !seen.contains(&place) {
                said.push_str(if seen.is_empty() { ": " } else { ", " });
                said.push_str(&code_span(&place));
                seen.push(place);
            }
        }
        self.push_block(&said);
        if call.is_truncated {
            self.push_block("*Truncated.*");
        }
        for content in &call.content {
            match content {
                ThreadToolCallContent::Content(block) => {
                    self.render_content(std::slice::from_ref(block))
                }
                ThreadToolCallContent::Diff(diff) => self.render_diff(diff),
                ThreadToolCallContent::Terminal(id) => match thread.terminal(id) {
                    Some(terminal) => self.render_terminal(terminal),
                    None => self.push_block("*Output not available.*"),
                },
                _ => self.push_block("*Unknown content.*"),
            }
        }
        if call.content.is_empty() {
            self.render_raw_value("Input", call.raw_input.as_ref());
            self.render_raw_value("Output", call.raw_output.as_ref());
        }
    }

    /// Appends the raw input or output of a tool call.
    fn render_raw_value(&mut self, summary: &str, value: Option<&serde_json::Value>) {
        let Some(text) = value.and_then(|value| serde_json::to_string_pretty(value).ok()) else {
            return;
        };
        let mut end = text.len().min(MAX_RAW_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let (kept, rest) = text.split_at(end);
        self.render_details(summary, |page| {
            page.push_block(&fenced_block("json", kept));
            if !rest.is_empty() {
                page.push_block(&format!("*{}*", pluralize(rest.len(), "more byte")));
            }
        });
    }

    fn render_diff(&mut self, diff: &ThreadDiff) {
        for change in &diff.changes {
            match &change.texts {
                Some(texts) => {
                    let (old, new) = (texts.old.as_deref().unwrap_or_default(), &texts.new);
                    let path = terminal_text::clean_line(&change.path);
                    let from = match texts.old {
                        Some(_) => path.clone(),
                        None => "/dev/null".to_owned(),
                    };
                    let lines = TextDiff::from_lines(old, new.as_str());
                    let unified = lines
                        .unified_diff()
                        .context_radius(CONTEXT_LINES)
                        .header(&from, &path)
                        .to_string();
                    match unified.is_empty() {
                        true => self.push_block(&format!("*Unchanged:* {}", code_span(&path))),
                        false => self.push_block(&fenced_block("diff", &unified)),
                    }
                }
                None => self.push_block(&file_change_text(change)),
            }
        }
        if let Some(patch) = &diff.patch {
            self.push_block(&fenced_block("diff", &patch.text));
        }
    }

    fn render_terminal(&mut self, terminal: &ThreadTerminal) {
        let mut text = String::new();
        if let Some(command) = &terminal.command {
            text.push_str(&format!("$ {command}\n"));
        }
        text.push_str(&terminal.output());
        self.push_block(&fenced_block("console", &text));
        let Some(status) = &terminal.exit_status else {
            return;
        };
        match (&status.signal, status.exit_code) {
            (Some(signal), _) => {
                self.push_block(&format!("*Terminated by {}.*", escape_inline(signal)))
            }
            (None, Some(code)) => self.push_block(&format!("*Exit code {code}.*")),
            (None, None) => {}
        }
    }

    fn render_plan(&mut self, plan: &ThreadPlan) {
        self.push_block("## Plan");
        match &plan.content {
            PlanContent::Entries(entries) => {
                let mut list = String::new();
                for entry in entries {
                    let (mark, more) = match &entry.status {
                        PlanEntryStatus::Completed => ('x', String::new()),
                        PlanEntryStatus::Pending => (' ', String::new()),
                        other => (
                            ' ',
                            format!(" *({})*", escape_inline(&other.as_str().replace('_', " "))),
                        ),
                    };
                    list.push_str(&format!(
                        "- [{mark}] {}{more}\n",
                        escape_inline(&entry.content)
                    ));
                }
                self.push_block(&list);
            }
            PlanContent::Markdown(text) => self.push_block(&embed_markdown(text)),
            PlanContent::File(uri) => self.push_block(&format!("*In* {}", code_span(uri))),
            _ => self.push_block("*Unknown content.*"),
        }
    }

    fn render_notice(&mut self, notice: &Notice) {
        let severity = match &notice.severity {
            NoticeSeverity::Info => "Note",
            NoticeSeverity::Warning => "Warning",
            NoticeSeverity::Error => "Error",
            _ => "Notice",
        };
        self.push_block(&format!("**{severity}:** {}", escape_inline(&notice.title)));
        if let Some(description) = &notice.description {
            self.push_block(&embed_markdown(description));
        }
    }

    fn render_compaction(&mut self, compaction: &ThreadCompaction) {
        let status = escape_inline(&compaction.status.as_str().replace('_', " "));
        self.push_block(&format!("*Conversation compacted: {status}.*"));
        if let Some(error) = &compaction.error {
            self.push_block(&embed_markdown(error));
        }
        self.render_details("Summary", |page| {
            page.render_content(&compaction.summary);
        });
    }
}

/// Describes a change to a file whose contents are unknown.
fn file_change_text(change: &FileChange) -> String {
    let what = escape_inline(change.operation.as_str());
    match &change.old_path {
        Some(from) => format!(
            "*{what}:* {} → {}",
            code_span(from),
            code_span(&change.path)
        ),
        None => format!("*{what}:* {}", code_span(&change.path)),
    }
}

/// Describes an image or audio block. `base64` is the length of its base64 data.
fn media_text(what: &str, mime_type: &str, base64: usize) -> String {
    let bytes = base64 / 4 * 3;
    format!(
        "*{what}, {}, about {bytes} bytes*",
        escape_inline(mime_type)
    )
}

/// Builds a code block. Its fence is longer than any fence inside it.
pub(crate) fn fenced_block(language: &str, text: &str) -> String {
    let text = terminal_text::clean_text(text);
    let longest = text.lines().map(|line| longest_run(line, '`')).max();
    let fence = "`".repeat(longest.unwrap_or_default().max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{fence}{language}\n{text}{end}{fence}")
}

/// Builds an inline code span.
fn code_span(text: &str) -> String {
    let text = terminal_text::clean_line(text);
    if text.trim().is_empty() {
        return String::new();
    }
    let fence = "`".repeat(longest_run(&text, '`') + 1);
    // Markdown strips one space from each end if there is a space at both ends. Text that starts or ends with a
    // backtick needs such spaces.
    let space = match text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) {
        true => " ",
        false => "",
    };
    format!("{fence}{space}{text}{space}{fence}")
}

/// Returns the length of the longest run of `character` in the text.
fn longest_run(text: &str, character: char) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == character { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// Escapes a line of text so that none of it is parsed as markup.
fn escape_inline(text: &str) -> String {
    let text = terminal_text::clean_line(text);
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
