//! The prompt that is being written.
//!
//! What is written is text in which some stretches stand for more than they show ([`marked_text`]): a long text that was
//! pasted, a file that was named. [`text_buffer`] changes it, [`rows`] lays it out, [`keys`] says what keys do, and
//! [`draft`] makes of it what is sent.

mod attach;
mod complete;
mod draft;
mod draw;
mod history;
mod keys;
mod marked_text;
mod paste;
mod popup;
mod rows;
mod search;
mod text_buffer;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use acp::v1::{AvailableCommand, PromptCapabilities};
use acp_host::AttachmentKind;

use self::attach::Attachments;
pub(crate) use self::complete::FileFinder;
use self::complete::{CommandItem, Completion, Trigger};
pub(crate) use self::draft::PromptDraft;
pub(crate) use self::history::{HistoryEntry, PromptHistory};
use self::marked_text::{MarkContent, MarkedText};
use self::search::HistorySearch;
use self::text_buffer::TextBuffer;

/// How much a prompt holds at most, with what was pasted, in bytes.
const MOST: usize = 4 * 1024 * 1024;
/// See [`PromptEditor::completion_timeout`].
const PATIENCE: Duration = Duration::from_millis(300);
/// Pasted text up to this many bytes can be opened, to be changed.
const OPENED: usize = 128 * 1024;

/// What came of a key or a paste.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EditorOutcome {
    /// It means nothing here.
    Ignored,
    /// There is something else to draw.
    Changed,
    /// The prompt is to be [taken](PromptEditor::take) and sent.
    Submit,
    /// It is not done, or not as asked; the person is to be told why.
    Note(String),
}

/// The prompt that is being written.
pub(crate) struct PromptEditor {
    buffer: TextBuffer,
    attachments: Attachments,
    prompt_capabilities: PromptCapabilities,
    commands: Vec<CommandItem>,
    files: FileFinder,
    completion: Option<Completion>,
    /// How long a key that takes a file waits for the files that fit what was typed just before it.
    completion_timeout: Duration,
    /// Where the `/` or `@` is whose completion was closed.
    dismissed_at: Option<usize>,
    history: PromptHistory,
    walk: Option<HistoryWalk>,
    search: Option<HistorySearch>,
    placeholder: String,
    layout: EditorLayout,
    /// The first row that is shown.
    top: usize,
    /// The column in which moving up and down goes on.
    goal_column: Option<u16>,
}

/// A walk through the prompts of the past.
struct HistoryWalk {
    entries: Vec<HistoryEntry>,
    /// Which of them is shown.
    index: usize,
    /// What was there before.
    saved_text: MarkedText,
}

/// The rows of the text, as they were last asked for.
struct EditorLayout {
    revision: u64,
    width: u16,
    rows: Vec<Range<usize>>,
}

impl PromptEditor {
    /// Nothing is written yet. The files are those that an `@` completes, and the history is where
    /// what is [taken](Self::take) is added.
    pub(crate) fn new(files: FileFinder, history: PromptHistory) -> Self {
        let laid = EditorLayout {
            revision: 0,
            width: 80,
            rows: rows::rows("", 80),
        };
        Self {
            buffer: TextBuffer::default(),
            attachments: Attachments::default(),
            prompt_capabilities: PromptCapabilities::new(),
            commands: Vec::new(),
            files,
            completion: None,
            completion_timeout: PATIENCE,
            dismissed_at: None,
            history,
            walk: None,
            search: None,
            placeholder: String::new(),
            layout: laid,
            top: 0,
            goal_column: None,
        }
    }

    /// What the agent takes (specification: Initialization), for what is attached from now on.
    pub(crate) fn set_prompt_capabilities(&mut self, takes: PromptCapabilities) {
        self.prompt_capabilities = takes;
    }

    /// The agent's slash commands (specification: Slash Commands).
    pub(crate) fn set_commands(&mut self, commands: &[AvailableCommand]) {
        let commands = CommandItem::all(commands);
        if commands == self.commands {
            return;
        }
        self.commands = commands;
        if self
            .completion
            .as_ref()
            .is_some_and(|c| !c.trigger.is_file())
        {
            self.completion = None;
            self.update_completion();
        }
    }

    /// What is shown while nothing is written.
    pub(crate) fn set_placeholder(&mut self, placeholder: &str) {
        self.placeholder = acp_host::terminal_text::clean_line(placeholder);
    }

    /// Whether nothing is written or attached.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.text().is_empty() && self.attachments.is_empty()
    }

    /// Whether keys are for a list: of commands, files or the past.
    pub(crate) fn has_popup(&self) -> bool {
        let offered = self.completion.as_ref().is_some_and(|c| !c.rows.is_empty());
        offered || self.search.is_some()
    }

    /// What is written, with all of what was pasted.
    pub(crate) fn text(&self) -> String {
        self.buffer.marked().to_full_text()
    }

    /// What is written, which is kept in the history; nothing is left.
    pub(crate) fn take(&mut self) -> PromptDraft {
        let draft = PromptDraft {
            marked_text: self.buffer.take(),
            attachments: std::mem::take(&mut self.attachments).files(),
        };
        self.reset_state();
        if let Err(e) = self.history.add(draft.to_history_entry()) {
            tracing::warn!("the prompt is not kept for the next time: {e}");
        }
        draft
    }

    /// A draft in place of what is written: to be changed, or since it could not be sent.
    pub(crate) fn set(&mut self, draft: PromptDraft) {
        self.buffer.reset(draft.marked_text);
        self.attachments = Attachments::new(draft.attachments);
        self.reset_state();
    }

    fn reset_state(&mut self) {
        self.completion = None;
        self.dismissed_at = None;
        self.walk = None;
        self.search = None;
        self.goal_column = None;
        self.top = 0;
    }

    /// A file goes with the prompt.
    pub(crate) fn attach(&mut self, file: &Path) -> EditorOutcome {
        match self.attachments.add(file, &self.prompt_capabilities) {
            Ok(()) => EditorOutcome::Changed,
            Err(why) => EditorOutcome::Note(why),
        }
    }

    /// What was pasted: text, or the paths of files that were dropped on the terminal. Of those, images and sound
    /// are attached, and others named where the cursor is.
    pub(crate) fn paste(&mut self, text: &str) -> EditorOutcome {
        if let Some(search) = &mut self.search {
            search.type_text(&acp_host::terminal_text::clean_line(text));
            return EditorOutcome::Changed;
        }
        self.goal_column = None;
        if text.len() > paste::MOST {
            let most = paste::MOST / 1024 / 1024;
            let why = "nothing was pasted, since it is more than";
            return EditorOutcome::Note(format!("{why} {most} MiB: attach it as a file"));
        }
        if let Some(paths) = paste::paths(text) {
            return self.paste_paths(paths);
        }
        let text = paste::clean(text);
        let pasted = match paste::label(&text) {
            Some(label) => MarkedText::label(label, MarkContent::Paste(text.into())),
            None => MarkedText::from(text),
        };
        self.insert(pasted)
    }

    fn paste_paths(&mut self, paths: Vec<PathBuf>) -> EditorOutcome {
        let mut outcome = EditorOutcome::Changed;
        for path in paths {
            let other = AttachmentKind::from_path(&path) == AttachmentKind::Other;
            if !other && let EditorOutcome::Changed = self.attach(&path) {
                continue;
            }
            if !other {
                let name = acp_host::terminal_text::clean_line(&path.to_string_lossy());
                let why = format!(
                    "{name}: not attached, since this agent does not take it; it is named instead"
                );
                outcome = EditorOutcome::Note(why);
            }
            let inside = path.strip_prefix(self.files.root()).unwrap_or(&path);
            let mut shown = inside.to_string_lossy().into_owned();
            if path.is_dir() && !shown.ends_with('/') {
                shown.push('/');
            }
            let mut named = file_mention(&shown, path);
            named.push(&MarkedText::from(" "));
            let before = &self.buffer.text()[..self.buffer.cursor()];
            if before.ends_with(|c: char| !c.is_whitespace()) {
                named.replace(0..0, &MarkedText::from(" "));
            }
            if let told @ EditorOutcome::Note(_) = self.insert(named) {
                return told;
            }
        }
        outcome
    }

    /// Inserts it where the cursor is, if there is room for it.
    fn insert(&mut self, more: MarkedText) -> EditorOutcome {
        if self.buffer.marked().held_bytes() + more.held_bytes() > MOST {
            let most = MOST / 1024 / 1024;
            return EditorOutcome::Note(format!("a prompt holds no more than {most} MiB"));
        }
        self.walk = None;
        self.buffer.insert(more);
        self.update_completion();
        EditorOutcome::Changed
    }

    /// Offers what there is to complete where the cursor is, after the text has changed.
    fn update_completion(&mut self) {
        let trigger = Trigger::at(self.buffer.marked(), self.buffer.cursor());
        let Some(trigger) = trigger else {
            self.completion = None;
            self.dismissed_at = None;
            return;
        };
        if self.dismissed_at == Some(trigger.start) {
            return;
        }
        if self
            .completion
            .as_ref()
            .is_none_or(|c| c.trigger != trigger)
        {
            self.completion = Some(Completion::new(trigger, &self.commands, &self.files));
        }
    }

    /// A place in the past replaces what is written. What a person wrote can be had back by undoing.
    fn recall(&mut self, entry: &HistoryEntry) {
        let marked = restore_marks(entry, self.files.root());
        self.buffer.replace_all(marked);
        self.completion = None;
    }

    /// The rows of what is written, for so many columns.
    fn update_layout(&mut self, width: u16) {
        let revision = self.buffer.revision();
        if self.layout.revision != revision || self.layout.width != width {
            self.layout = EditorLayout {
                revision,
                width,
                rows: rows::rows(self.buffer.text(), width),
            };
        }
    }
}

impl PromptDraft {
    /// What is kept of it in the history. Of one that would be too long what was pasted is left out.
    fn to_history_entry(&self) -> HistoryEntry {
        let whole = self.marked_text.held_bytes() <= history::WHOLE;
        let files = self.marked_text.marks().iter().filter_map(|mark| {
            let label = &self.marked_text.text()[mark.range.clone()];
            let named = matches!(mark.content, MarkContent::File(_));
            named.then(|| label.trim_start_matches('@').to_owned())
        });
        HistoryEntry {
            files: files.collect(),
            text: if whole {
                self.text()
            } else {
                self.shown().to_owned()
            },
        }
    }
}

/// A file that is named in the text.
fn file_mention(shown: &str, path: PathBuf) -> MarkedText {
    let label = format!("@{}", acp_host::terminal_text::clean_line(shown));
    MarkedText::label(label, MarkContent::File(path))
}

/// A prompt of the past, with those of its files marked that are still there.
fn restore_marks(entry: &HistoryEntry, root: &Path) -> MarkedText {
    let text = acp_host::terminal_text::clean_text(&entry.text);
    let mut marked = MarkedText::default();
    let mut from = 0;
    for (at, _) in text.match_indices('@') {
        let begins = text[..at]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace);
        if !begins || at < from {
            continue;
        }
        let fits = |file: &&String| !file.is_empty() && text[at + 1..].starts_with(file.as_str());
        let named = entry
            .files
            .iter()
            .filter(fits)
            .max_by_key(|file| file.len());
        if let Some(file) = named
            && root.join(file).exists()
        {
            marked.push(&MarkedText::from(&text[from..at]));
            marked.push(&file_mention(file, root.join(file)));
            from = at + 1 + file.len();
        }
    }
    marked.push(&MarkedText::from(&text[from..]));
    marked
}

#[cfg(test)]
mod tests;
