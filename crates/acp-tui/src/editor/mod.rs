//! The prompt that is being written.
//!
//! What is written is text in which some stretches stand for more than they show ([`marked`]): a long text that was
//! pasted, a file that was named. [`written`] changes it, [`rows`] lays it out, [`keys`] says what keys do, and
//! [`draft`] makes of it what is sent.

mod attach;
mod complete;
mod draft;
mod draw;
mod history;
mod keys;
mod marked;
mod pasted;
mod popup;
mod rows;
mod search;
mod written;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use acp::v1::{AvailableCommand, PromptCapabilities};
use acp_host::AttachmentKind;

use self::attach::Attachments;
pub(crate) use self::complete::Files;
use self::complete::{Command, Completion, Trigger};
pub(crate) use self::draft::Draft;
pub(crate) use self::history::{Entry, History};
use self::marked::{Marked, Stands};
use self::search::Search;
use self::written::Written;

/// How much a prompt holds at most, with what was pasted, in bytes.
const MOST: usize = 4 * 1024 * 1024;
/// See [`Editor::patience`].
const PATIENCE: Duration = Duration::from_millis(300);
/// Pasted text up to this many bytes can be opened, to be changed.
const OPENED: usize = 128 * 1024;

/// What came of a key or a paste.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It means nothing here.
    Ignored,
    /// There is something else to draw.
    Changed,
    /// The prompt is to be [taken](Editor::take) and sent.
    Submit,
    /// It is not done, or not as asked; the person is to be told why.
    Told(String),
}

/// The prompt that is being written.
pub(crate) struct Editor {
    written: Written,
    attachments: Attachments,
    takes: PromptCapabilities,
    commands: Vec<Command>,
    files: Files,
    completion: Option<Completion>,
    /// How long a key that takes a file waits for the files that fit what was typed just before it.
    patience: Duration,
    /// Where the `/` or `@` is whose completion was closed.
    closed: Option<usize>,
    history: History,
    walk: Option<Walk>,
    search: Option<Search>,
    placeholder: String,
    laid: Laid,
    /// The first row that is shown.
    top: usize,
    /// The column in which moving up and down goes on.
    goal: Option<u16>,
}

/// A walk through the prompts of the past.
struct Walk {
    entries: Vec<Entry>,
    /// Which of them is shown.
    at: usize,
    /// What was there before.
    before: Marked,
}

/// The rows of the text, as they were last asked for.
struct Laid {
    revision: u64,
    width: u16,
    rows: Vec<Range<usize>>,
}

impl Editor {
    /// Nothing is written yet. The files are those that an `@` completes, and the history is where
    /// what is [taken](Self::take) is added.
    pub(crate) fn new(files: Files, history: History) -> Self {
        let laid = Laid {
            revision: 0,
            width: 80,
            rows: rows::rows("", 80),
        };
        Self {
            written: Written::default(),
            attachments: Attachments::default(),
            takes: PromptCapabilities::new(),
            commands: Vec::new(),
            files,
            completion: None,
            patience: PATIENCE,
            closed: None,
            history,
            walk: None,
            search: None,
            placeholder: String::new(),
            laid,
            top: 0,
            goal: None,
        }
    }

    /// What the agent takes (specification: Initialization), for what is attached from now on.
    pub(crate) fn set_takes(&mut self, takes: PromptCapabilities) {
        self.takes = takes;
    }

    /// The agent's slash commands (specification: Slash Commands).
    pub(crate) fn set_commands(&mut self, commands: &[AvailableCommand]) {
        let commands = Command::all(commands);
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
            self.complete();
        }
    }

    /// What is shown while nothing is written.
    pub(crate) fn set_placeholder(&mut self, placeholder: &str) {
        self.placeholder = acp_host::clean::line(placeholder);
    }

    /// Whether nothing is written or attached.
    pub(crate) fn is_empty(&self) -> bool {
        self.written.text().is_empty() && self.attachments.is_empty()
    }

    /// Whether keys are for a list: of commands, files or the past.
    pub(crate) fn has_popup(&self) -> bool {
        let offered = self.completion.as_ref().is_some_and(|c| !c.rows.is_empty());
        offered || self.search.is_some()
    }

    /// What is written, with all of what was pasted.
    pub(crate) fn text(&self) -> String {
        self.written.marked().expanded()
    }

    /// What is written, which is kept in the history; nothing is left.
    pub(crate) fn take(&mut self) -> Draft {
        let draft = Draft {
            marked: self.written.take(),
            attachments: std::mem::take(&mut self.attachments).files(),
        };
        self.begin();
        if let Err(e) = self.history.add(draft.entry()) {
            tracing::warn!("the prompt is not kept for the next time: {e}");
        }
        draft
    }

    /// A draft in place of what is written: to be changed, or since it could not be sent.
    pub(crate) fn set(&mut self, draft: Draft) {
        self.written.reset(draft.marked);
        self.attachments = Attachments::new(draft.attachments);
        self.begin();
    }

    fn begin(&mut self) {
        self.completion = None;
        self.closed = None;
        self.walk = None;
        self.search = None;
        self.goal = None;
        self.top = 0;
    }

    /// A file goes with the prompt.
    pub(crate) fn attach(&mut self, file: &Path) -> Outcome {
        match self.attachments.add(file, &self.takes) {
            Ok(()) => Outcome::Changed,
            Err(why) => Outcome::Told(why),
        }
    }

    /// What was pasted: text, or the paths of files that were dropped on the terminal. Of those, images and sound
    /// are attached, and others named where the cursor is.
    pub(crate) fn paste(&mut self, text: &str) -> Outcome {
        if let Some(search) = &mut self.search {
            search.type_text(&acp_host::clean::line(text));
            return Outcome::Changed;
        }
        self.goal = None;
        if text.len() > pasted::MOST {
            let most = pasted::MOST / 1024 / 1024;
            let why = "nothing was pasted, since it is more than";
            return Outcome::Told(format!("{why} {most} MiB: attach it as a file"));
        }
        if let Some(paths) = pasted::paths(text) {
            return self.paste_paths(paths);
        }
        let text = pasted::clean(text);
        let pasted = match pasted::label(&text) {
            Some(label) => Marked::label(label, Stands::Pasted(text.into())),
            None => Marked::from(text),
        };
        self.insert(pasted)
    }

    fn paste_paths(&mut self, paths: Vec<PathBuf>) -> Outcome {
        let mut outcome = Outcome::Changed;
        for path in paths {
            let other = AttachmentKind::of(&path) == AttachmentKind::Other;
            if !other && let Outcome::Changed = self.attach(&path) {
                continue;
            }
            if !other {
                let name = acp_host::clean::line(&path.to_string_lossy());
                let why = format!(
                    "{name}: not attached, since this agent does not take it; it is named instead"
                );
                outcome = Outcome::Told(why);
            }
            let inside = path.strip_prefix(self.files.root()).unwrap_or(&path);
            let mut shown = inside.to_string_lossy().into_owned();
            if path.is_dir() && !shown.ends_with('/') {
                shown.push('/');
            }
            let mut named = mention(&shown, path);
            named.push(&Marked::from(" "));
            let before = &self.written.text()[..self.written.cursor()];
            if before.ends_with(|c: char| !c.is_whitespace()) {
                named.replace(0..0, &Marked::from(" "));
            }
            if let told @ Outcome::Told(_) = self.insert(named) {
                return told;
            }
        }
        outcome
    }

    /// Inserts it where the cursor is, if there is room for it.
    fn insert(&mut self, more: Marked) -> Outcome {
        if self.written.marked().held() + more.held() > MOST {
            let most = MOST / 1024 / 1024;
            return Outcome::Told(format!("a prompt holds no more than {most} MiB"));
        }
        self.walk = None;
        self.written.insert(more);
        self.complete();
        Outcome::Changed
    }

    /// Offers what there is to complete where the cursor is, after the text has changed.
    fn complete(&mut self) {
        let trigger = Trigger::at(self.written.marked(), self.written.cursor());
        let Some(trigger) = trigger else {
            self.completion = None;
            self.closed = None;
            return;
        };
        if self.closed == Some(trigger.start) {
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
    fn recall(&mut self, entry: &Entry) {
        let marked = marked_again(entry, self.files.root());
        self.written.replace_all(marked);
        self.completion = None;
    }

    /// The rows of what is written, for so many columns.
    fn lay(&mut self, width: u16) {
        let revision = self.written.revision();
        if self.laid.revision != revision || self.laid.width != width {
            self.laid = Laid {
                revision,
                width,
                rows: rows::rows(self.written.text(), width),
            };
        }
    }
}

impl Draft {
    /// What is kept of it in the history. Of one that would be too long what was pasted is left out.
    fn entry(&self) -> Entry {
        let whole = self.marked.held() <= history::WHOLE;
        let files = self.marked.marks().iter().filter_map(|mark| {
            let label = &self.marked.text()[mark.range.clone()];
            let named = matches!(mark.stands, Stands::File(_));
            named.then(|| label.trim_start_matches('@').to_owned())
        });
        Entry {
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
fn mention(shown: &str, path: PathBuf) -> Marked {
    let label = format!("@{}", acp_host::clean::line(shown));
    Marked::label(label, Stands::File(path))
}

/// A prompt of the past, with those of its files marked that are still there.
fn marked_again(entry: &Entry, root: &Path) -> Marked {
    let text = acp_host::clean::clean(&entry.text);
    let mut marked = Marked::default();
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
            marked.push(&Marked::from(&text[from..at]));
            marked.push(&mention(file, root.join(file)));
            from = at + 1 + file.len();
        }
    }
    marked.push(&Marked::from(&text[from..]));
    marked
}

#[cfg(test)]
mod tests;
