//! The prompt editor.
//!
//! A prompt is text in which some ranges stand for more than they show ([`marked_text`]): a long text that was pasted,
//! or a file that is mentioned. [`text_buffer`] edits it, [`rows`] lays it out, [`keys`] handles keys, and [`draft`]
//! turns it into the content that is sent. [`vim`] handles keys instead if the user wants Vim keys.

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
mod vim;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use acp::v1::{AvailableCommand, PromptCapabilities};
use acp_host::AttachmentKind;

use self::attach::Attachments;
pub(crate) use self::complete::FileFinder;
use self::complete::{CommandItem, Completion, CompletionTrigger};
pub(crate) use self::draft::{FoldedText, PromptDraft};
pub(crate) use self::history::{HistoryEntry, PromptHistory};
pub(crate) use self::marked_text::{MarkContent, MarkedText};
use self::search::HistorySearch;
use self::text_buffer::TextBuffer;
use self::vim::VimState;

/// The maximum size of a prompt, in bytes, including pasted text.
const MAX_PROMPT_BYTES: usize = 4 * 1024 * 1024;
/// The default for [`PromptEditor::completion_timeout`].
const COMPLETION_TIMEOUT: Duration = Duration::from_millis(300);
/// The maximum length of pasted text that can be expanded for editing, in bytes.
const MAX_EXPANDED_BYTES: usize = 128 * 1024;

/// The effect of a key or a paste on the prompt editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EditorOutcome {
    /// The editor does not use this key.
    Ignored,
    /// The editor must be redrawn.
    Changed,
    /// The prompt is ready to be [taken](PromptEditor::take) and sent.
    Submit,
    /// The editor did nothing, or something other than what was requested. The message explains why.
    Note(String),
}

/// The editor for writing a prompt.
pub(crate) struct PromptEditor {
    buffer: TextBuffer,
    attachments: Attachments,
    prompt_capabilities: PromptCapabilities,
    commands: Vec<CommandItem>,
    files: FileFinder,
    completion: Option<Completion>,
    /// How long to wait for file matches when a key accepts a completion.
    completion_timeout: Duration,
    /// The position of the `/` or `@` for which the user closed the completion list.
    dismissed_at: Option<usize>,
    history: PromptHistory,
    walk: Option<HistoryPosition>,
    search: Option<HistorySearch>,
    placeholder: String,
    layout: EditorLayout,
    /// The index of the first visible row.
    top: usize,
    /// The column that vertical movement tries to keep.
    goal_column: Option<u16>,
    /// The state of the Vim keys, or `None` without them.
    vim: Option<VimState>,
}

/// The position in the prompt history while the user is browsing it.
struct HistoryPosition {
    entries: Vec<HistoryEntry>,
    /// The index of the displayed prompt.
    index: usize,
    /// The text that the user was writing before browsing the history.
    saved_text: MarkedText,
}

/// The most recent layout of the text.
struct EditorLayout {
    revision: u64,
    width: u16,
    rows: Vec<Range<usize>>,
}

impl PromptEditor {
    /// Creates an empty editor. `files` completes `@`, and [taken](Self::take) prompts are added to `history`.
    pub(crate) fn new(files: FileFinder, history: PromptHistory) -> Self {
        let laid = EditorLayout {
            revision: 0,
            width: 80,
            rows: rows::wrap_rows("", 80),
        };
        Self {
            buffer: TextBuffer::default(),
            attachments: Attachments::default(),
            prompt_capabilities: PromptCapabilities::new(),
            commands: Vec::new(),
            files,
            completion: None,
            completion_timeout: COMPLETION_TIMEOUT,
            dismissed_at: None,
            history,
            walk: None,
            search: None,
            placeholder: String::new(),
            layout: laid,
            top: 0,
            goal_column: None,
            vim: None,
        }
    }

    /// Sets the types of content that the agent accepts in prompts (specification: Initialization). Affects files
    /// attached from now on.
    pub(crate) fn set_prompt_capabilities(&mut self, takes: PromptCapabilities) {
        self.prompt_capabilities = takes;
    }

    /// Sets the agent's slash commands (specification: Slash Commands).
    pub(crate) fn set_commands(&mut self, commands: &[AvailableCommand]) {
        let commands = CommandItem::from_available(commands);
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

    /// Sets the text to show while the prompt is empty.
    pub(crate) fn set_placeholder(&mut self, placeholder: &str) {
        self.placeholder = acp_host::terminal_text::clean_line(placeholder);
    }

    /// Returns whether the editor has neither text nor attachments.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.text().is_empty() && self.attachments.is_empty()
    }

    /// Returns whether a popup (commands, files or prompt history) has the keyboard focus.
    pub(crate) fn has_popup(&self) -> bool {
        let offered = self.completion.as_ref().is_some_and(|c| !c.rows.is_empty());
        offered || self.search.is_some()
    }

    /// Returns whether the cursor is at a label that stands for text, which Tab expands.
    pub(crate) fn is_at_label(&self) -> bool {
        let mark = self.buffer.marked().mark_at(self.buffer.cursor());
        mark.is_some_and(|mark| mark.content.hidden_text().is_some())
    }

    /// Returns the text, with pasted text in full.
    pub(crate) fn text(&self) -> String {
        self.buffer.marked().to_full_text()
    }

    /// Takes the prompt, adds it to the history, and empties the editor.
    pub(crate) fn take(&mut self) -> PromptDraft {
        let draft = PromptDraft {
            marked_text: self.buffer.take(),
            attachments: std::mem::take(&mut self.attachments).files(),
        };
        self.reset_state();
        self.add_to_history(&draft);
        draft
    }

    fn add_to_history(&mut self, draft: &PromptDraft) {
        if let Err(e) = self.history.add(draft.history_entry()) {
            tracing::warn!("cannot save the prompt to history: {e}");
        }
    }

    /// Replaces the contents with a draft, either for the user to edit or because it could not be sent.
    pub(crate) fn set(&mut self, draft: PromptDraft) {
        self.buffer.reset(draft.marked_text);
        self.attachments = Attachments::new(draft.attachments);
        self.reset_state();
    }

    /// Returns whether the prompt is exactly this one.
    pub(crate) fn contains(&self, draft: &PromptDraft) -> bool {
        self.buffer.marked() == &draft.marked_text && self.attachments.files() == draft.attachments
    }

    /// Clears the prompt. Undo restores the text, but not the attachments.
    pub(crate) fn clear(&mut self) {
        self.buffer.replace_all(MarkedText::default());
        self.attachments = Attachments::default();
        self.reset_state();
    }

    fn reset_state(&mut self) {
        self.completion = None;
        self.dismissed_at = None;
        self.walk = None;
        self.search = None;
        self.goal_column = None;
        self.top = 0;
        self.reset_vim();
    }

    /// Attaches a file to the prompt.
    pub(crate) fn attach(&mut self, file: &Path) -> EditorOutcome {
        match self.attachments.add(file, &self.prompt_capabilities) {
            Ok(()) => EditorOutcome::Changed,
            Err(why) => EditorOutcome::Note(why),
        }
    }

    /// Handles pasted text, or the paths that a terminal pastes when files are dropped on it. Attaches image and audio
    /// files, and mentions other files at the cursor.
    pub(crate) fn paste(&mut self, text: &str) -> EditorOutcome {
        if let Some(search) = &mut self.search {
            search.type_text(&acp_host::terminal_text::clean_line(text));
            return EditorOutcome::Changed;
        }
        self.goal_column = None;
        if text.len() > paste::MAX_PASTE_BYTES {
            let most = paste::MAX_PASTE_BYTES / 1024 / 1024;
            let why = "not pasted: larger than";
            return EditorOutcome::Note(format!("{why} {most} MiB; attach it as a file instead"));
        }
        if let Some(paths) = paste::parse_paths(text) {
            return self.paste_paths(paths);
        }
        let text = paste::normalize_line_endings(text);
        let pasted = match paste::paste_label(&text) {
            Some(label) => MarkedText::from_mark(label, MarkContent::Paste(text.into())),
            None => MarkedText::from(text),
        };
        self.insert(pasted)
    }

    /// Returns the text with its marks, unless there are attachments.
    pub(crate) fn text_only(&self) -> Option<&MarkedText> {
        self.attachments.is_empty().then(|| self.buffer.marked())
    }

    /// Puts the output of a command at the beginning of the prompt, behind earlier ones, with a label that stands for it.
    /// The cursor stays where it is in the text.
    pub(crate) fn insert_output(&mut self, label: &str, output: String) -> EditorOutcome {
        let mut inserted = MarkedText::from_mark(label, MarkContent::CommandOutput(output.into()));
        inserted.push(&MarkedText::from(" "));
        let (cursor, length) = (self.buffer.cursor(), inserted.len());
        let at = self.buffer.marked().outputs_end();
        self.buffer.move_cursor(at);
        let outcome = self.insert(inserted);
        let is_behind = cursor >= at && outcome == EditorOutcome::Changed;
        self.buffer
            .move_cursor(if is_behind { cursor + length } else { cursor });
        outcome
    }

    /// Removes the text behind the outputs at the beginning, and adds it to the history.
    pub(crate) fn clear_after_outputs(&mut self) {
        let mut outputs = self.buffer.take();
        let rest = outputs.outputs_end()..outputs.len();
        let removed = outputs.replace(rest, &MarkedText::default());
        self.buffer.reset(outputs);
        self.reset_state();
        self.add_to_history(&PromptDraft {
            marked_text: removed,
            attachments: Vec::new(),
        });
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
                    "{name}: not attached (not supported by this agent); inserted as a file name"
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
            if let outcome @ EditorOutcome::Note(_) = self.insert(named) {
                return outcome;
            }
        }
        outcome
    }

    /// Inserts text at the cursor if the limits allow it.
    fn insert(&mut self, more: MarkedText) -> EditorOutcome {
        if self.buffer.marked().memory_bytes() + more.memory_bytes() > MAX_PROMPT_BYTES {
            let most = MAX_PROMPT_BYTES / 1024 / 1024;
            return EditorOutcome::Note(format!("prompt too long (limit: {most} MiB)"));
        }
        self.walk = None;
        self.buffer.insert(more);
        self.update_completion();
        EditorOutcome::Changed
    }

    /// Opens or updates the completion list at the cursor after the text has changed.
    fn update_completion(&mut self) {
        let trigger = CompletionTrigger::find_before(self.buffer.marked(), self.buffer.cursor());
        let Some(trigger) = trigger.filter(|_| !self.is_in_normal_mode()) else {
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

    /// Replaces the text with a prompt from the history. Undo restores the previous text.
    fn recall(&mut self, entry: &HistoryEntry) {
        let marked = restore_marks(entry, self.files.root());
        self.buffer.replace_all(marked);
        self.completion = None;
    }

    /// Lays out the text in `width` columns.
    fn update_layout(&mut self, width: u16) {
        let revision = self.buffer.revision();
        if self.layout.revision != revision || self.layout.width != width {
            self.layout = EditorLayout {
                revision,
                width,
                rows: rows::wrap_rows(self.buffer.text(), width),
            };
        }
    }
}

impl PromptDraft {
    /// Returns the entry to store in the history. Omits pasted text if the entry would be too long.
    fn history_entry(&self) -> HistoryEntry {
        let whole = self.marked_text.memory_bytes() <= history::MAX_TEXT_BYTES;
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
                self.display_text().to_owned()
            },
        }
    }
}

/// Creates the text of a file mention, which is a mark displayed as `shown`.
fn file_mention(shown: &str, path: PathBuf) -> MarkedText {
    let label = format!("@{}", acp_host::terminal_text::clean_line(shown));
    MarkedText::from_mark(label, MarkContent::File(path))
}

/// Returns the text of a history entry, with marks for the mentioned files that still exist.
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
