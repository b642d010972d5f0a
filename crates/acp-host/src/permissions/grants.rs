//! Grants: actions that the agent may take through the client because the user has allowed the tool call.
//!
//! An agent that has asked for permission then acts: it was allowed to run `make`, and now calls `terminal/create`. A
//! grant connects the two, so that the user is not asked twice. It covers only what the user was shown, and ends with
//! its tool call or its turn. Anything else requires another question.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use acp::ThreadHandle;
use acp::client::PermissionRequest;
use acp::thread::{FileTexts, ThreadToolCallContent};
use acp_wire::v1::{ToolCallId, ToolKind};
use acp_wire::v2::ToolCallStatus;

use super::action::Action;
use super::command::CommandLine;

/// The maximum number of grants in a session. Beyond that, the oldest are dropped, so the user may be asked about them
/// again.
const MAX_GRANTS: usize = 64;

/// The maximum number of commands that can be allowed for a whole session.
const MAX_COMMANDS: usize = 1024;

/// The maximum number of possible results to try when parts of a diff match a file in several places.
const MAX_RESULTS: usize = 4;

/// Keys that agents use in a tool's input for the new text of a file.
const TEXT_KEYS: [&str; 5] = ["content", "contents", "text", "file_text", "new_text"];

/// A change that is about to be written to a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileEdit<'a> {
    /// The current text. `None` if the file does not exist or cannot be read.
    pub(crate) old: Option<&'a str>,
    /// The text that replaces the current text.
    pub(crate) new: &'a str,
}

/// A session's grants, shared by the actions running concurrently.
#[derive(Debug, Default)]
pub(crate) struct Grants(Mutex<SessionGrants>);

impl Grants {
    pub(super) fn lock(&self) -> MutexGuard<'_, SessionGrants> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the grants of the current turn.
    pub(crate) fn end_turn(&self) {
        self.lock().end_turn();
    }
}

/// A session's grants, protected by the lock in [`Grants`].
#[derive(Debug, Default)]
pub(super) struct SessionGrants {
    /// How many turns have ended.
    ended_turns: u64,
    grants: VecDeque<Grant>,
    /// Commands that are allowed for the whole session, with their working directories.
    commands: HashSet<(String, PathBuf)>,
    /// Whether edits are allowed for the whole session, except to files that other programs run or trust.
    allows_edits: bool,
}

/// The commands and files covered by one "allow" answer.
#[derive(Debug)]
struct Grant {
    tool_call: ToolCallId,
    scope: GrantScope,
    /// The commands that may run. Each may run once.
    commands: Vec<CommandLine>,
    reads: Vec<PathBuf>,
    edits: Vec<GrantedEdit>,
}

/// The turn in which a question was asked. A grant applies only to that turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GrantScope {
    /// How many of the session's turns had ended when the question was asked.
    ended_turns: u64,
    is_in_turn: bool,
}

/// A change to a single file that a grant covers.
#[derive(Debug)]
struct GrantedEdit {
    file: PathBuf,
    shown_edit: ShownChange,
}

/// A file change as shown to the user.
#[derive(Debug)]
enum ShownChange {
    /// The entire new text of the file was shown.
    Text(String),
    /// Diffs of all or parts of the text. They may be applied together or one after another.
    Diffs(VecDeque<FileTexts>),
}

impl SessionGrants {
    /// Returns the scope for a question asked now.
    pub(super) fn current_scope(&self, thread: &ThreadHandle) -> GrantScope {
        GrantScope {
            ended_turns: self.ended_turns,
            is_in_turn: thread.read(|thread| thread.is_running()),
        }
    }

    pub(super) fn end_turn(&mut self) {
        self.ended_turns += 1;
        self.grants.clear();
    }

    /// Adds a grant for a request made in the scope `when`.
    pub(super) fn add(&mut self, request: &PermissionRequest, action: &Action, when: GrantScope) {
        if when.ended_turns != self.ended_turns {
            // The answer came too late: the turn has ended.
            return;
        }
        let grant = Grant::new(request, action, when);
        if self.grants.len() >= MAX_GRANTS {
            self.grants.pop_front();
        }
        self.grants.push_back(grant);
    }

    /// Allows the action's commands or, if it is an edit without commands, all edits for the whole session.
    pub(super) fn add_for_session(&mut self, action: &Action) {
        if action.commands.is_empty() {
            self.allows_edits |= action.kind == ToolKind::Edit;
            return;
        }
        for command in &action.commands {
            if let (Some(cwd), true) = (&command.cwd, self.commands.len() < MAX_COMMANDS) {
                self.commands
                    .insert((command.line().to_owned(), cwd.clone()));
            }
        }
    }

    /// Returns `true` if a grant for the whole session covers the action.
    pub(super) fn session_grants_cover(&self, action: &Action) -> bool {
        if action.commands.is_empty() {
            return self.allows_edits
                && action.kind == ToolKind::Edit
                && action.paths.iter().all(|target| target.is_ordinary);
        }
        action.commands.iter().all(|command| {
            let key = |cwd: &PathBuf| (command.line().to_owned(), cwd.clone());
            command.env.is_empty()
                && command
                    .cwd
                    .as_ref()
                    .is_some_and(|cwd| self.commands.contains(&key(cwd)))
        })
    }

    /// Uses up a grant that covers the action. Returns `true` if there was one. Each command may run once and each
    /// change may be made once. Files may be read any number of times.
    pub(super) fn use_up_grant(
        &mut self,
        action: &Action,
        change: Option<FileEdit<'_>>,
        thread: &ThreadHandle,
    ) -> bool {
        let now = self.current_scope(thread);
        let has_ended = |id: &ToolCallId| {
            let ended = [
                ToolCallStatus::Completed,
                ToolCallStatus::Failed,
                ToolCallStatus::Cancelled,
            ];
            thread.read(|thread| {
                let call = thread.tool_call(id);
                call.is_some_and(|call| call.is_cancelled || ended.contains(&call.status))
            })
        };
        self.grants
            .retain(|grant| grant.scope == now && !has_ended(&grant.tool_call));
        self.grants
            .iter_mut()
            .any(|grant| grant.use_up_grant(action, change))
    }
}

impl Grant {
    fn new(request: &PermissionRequest, action: &Action, when: GrantScope) -> Self {
        let files: Vec<PathBuf> = action
            .paths
            .iter()
            .filter_map(|target| target.real_path.clone())
            .collect();
        let edits = files.iter().filter(|_| is_edit(action));
        Self {
            tool_call: request.tool_call.id.clone(),
            scope: when,
            commands: action.commands.clone(),
            edits: edits
                .filter_map(|file| {
                    let shown = edit_shown_by(request, action, file)?;
                    let file = file.clone();
                    Some(GrantedEdit {
                        file,
                        shown_edit: shown,
                    })
                })
                .collect(),
            reads: files,
        }
    }

    fn use_up_grant(&mut self, action: &Action, change: Option<FileEdit<'_>>) -> bool {
        match (&action.commands[..], &action.paths[..]) {
            ([command], []) => {
                let Some(at) = self.commands.iter().position(|c| c.looks_same_as(command)) else {
                    return false;
                };
                self.commands.swap_remove(at);
                true
            }
            ([], [target]) => {
                let Some(file) = &target.real_path else {
                    return false;
                };
                match change {
                    None => action.kind == ToolKind::Read && self.reads.contains(file),
                    Some(change) => self.use_up_edit(file, change),
                }
            }
            _ => false,
        }
    }

    fn use_up_edit(&mut self, file: &Path, change: FileEdit<'_>) -> bool {
        let Some(at) = self.edits.iter().position(|edit| edit.file == *file) else {
            return false;
        };
        let covers = match self.edits.get_mut(at).map(|edit| &mut edit.shown_edit) {
            None => false,
            Some(ShownChange::Text(text)) => is_same_text(text, change.new),
            Some(ShownChange::Diffs(diffs)) => match count_matching_diffs(diffs, change) {
                None => false,
                Some(count) if count < diffs.len() => {
                    diffs.drain(..count);
                    // The remaining diffs may still be applied.
                    return true;
                }
                Some(_) => true,
            },
        };
        if covers {
            self.edits.swap_remove(at);
        }
        covers
    }
}

/// Returns `true` if the user could see that the action would change files.
fn is_edit(action: &Action) -> bool {
    action.is_change
        || matches!(
            action.kind,
            ToolKind::Edit | ToolKind::Delete | ToolKind::Move
        )
}

/// Returns the change to a file that the request shows. Returns `None` if it shows no changes, or only changes to other
/// files. A change that the user has not seen is not granted. The user is asked about it when the agent makes it.
fn edit_shown_by(request: &PermissionRequest, action: &Action, file: &Path) -> Option<ShownChange> {
    let is_this_file = |path: &str| {
        let path = Path::new(path);
        path == file
            || action.paths.iter().any(|target| {
                target.given_path == path && target.real_path.as_deref() == Some(file)
            })
    };
    let mut diffs = VecDeque::new();
    for content in &request.tool_call.content {
        if let ThreadToolCallContent::Diff(diff) = content {
            let changes = diff
                .changes
                .iter()
                .filter(|change| is_this_file(&change.path));
            diffs.extend(changes.filter_map(|change| change.texts.clone()));
        }
    }
    if !diffs.is_empty() {
        return Some(ShownChange::Diffs(diffs));
    }
    if action.is_change {
        return None;
    }
    let input = request.tool_call.raw_input.as_ref();
    let text = input.and_then(|input| {
        let mut texts = TEXT_KEYS.iter().filter_map(|key| input.get(key));
        texts.find_map(|text| text.as_str())
    });
    text.map(|text| ShownChange::Text(text.to_owned()))
}

/// Returns how many of the diffs, counting from the first, are needed to turn the old text into the new one. Returns
/// `None` if they do not lead to the new text.
///
/// Agents send diffs of either the whole text or a part of it. A part that occurs several times may be replaced once or
/// everywhere.
fn count_matching_diffs(diffs: &VecDeque<FileTexts>, change: FileEdit<'_>) -> Option<usize> {
    let new = normalize_text(change.new);
    let mut results = vec![normalize_text(change.old.unwrap_or_default())];
    for (index, diff) in diffs.iter().enumerate() {
        let after = normalize_text(&diff.new);
        let mut next: Vec<String> = Vec::new();
        for text in &results {
            let of_part = match diff.old.as_deref().map(normalize_text) {
                // A diff of a new file fits only where there is no text yet.
                None => vec![(text.is_empty()).then(|| after.clone())],
                Some(old) if old.is_empty() => vec![(text.is_empty()).then(|| after.clone())],
                Some(old) if !text.contains(&old) => Vec::new(),
                Some(old) => vec![
                    Some(text.replacen(&old, &after, 1)),
                    Some(text.replace(&old, &after)),
                ],
            };
            for result in of_part.into_iter().flatten() {
                if next.len() < MAX_RESULTS && !next.contains(&result) {
                    next.push(result);
                }
            }
        }
        if next.contains(&new) {
            return Some(index + 1);
        }
        if next.is_empty() {
            return None;
        }
        results = next;
    }
    None
}

/// Converts text to the form that agents use in diffs: without a byte order mark and with LF line endings.
fn normalize_text(text: &str) -> String {
    text.trim_start_matches('\u{feff}').replace("\r\n", "\n")
}

fn is_same_text(one: &str, other: &str) -> bool {
    normalize_text(one) == normalize_text(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue_diffs(texts: &[(Option<&str>, &str)]) -> VecDeque<FileTexts> {
        let texts = texts.iter();
        texts
            .map(|(old, new)| FileTexts {
                old: old.map(str::to_owned),
                new: (*new).to_owned(),
            })
            .collect()
    }

    fn matching_diff_count(
        texts: &[(Option<&str>, &str)],
        old: Option<&str>,
        new: &str,
    ) -> Option<usize> {
        count_matching_diffs(&queue_diffs(texts), FileEdit { old, new })
    }

    #[test]
    fn grant_covers_only_the_shown_diffs() {
        let whole = [(Some("a\nb\n"), "a\nc\n")];
        assert_eq!(
            matching_diff_count(&whole, Some("a\nb\n"), "a\nc\n"),
            Some(1)
        );
        assert_eq!(
            matching_diff_count(&whole, Some("a\r\nb\r\n"), "a\r\nc\r\n"),
            Some(1)
        );
        assert_eq!(matching_diff_count(&whole, Some("a\nb\n"), "a\nd\n"), None);
        // The file is not the one that the user saw.
        assert_eq!(matching_diff_count(&whole, Some("x"), "a\nc\n"), None);
        let part = [(Some("b"), "c")];
        assert_eq!(matching_diff_count(&part, Some("a b b"), "a c b"), Some(1));
        assert_eq!(matching_diff_count(&part, Some("a b b"), "a c c"), Some(1));
        assert_eq!(matching_diff_count(&part, Some("a b b"), "a b c"), None);
        assert_eq!(
            matching_diff_count(&part, Some("a b b"), "a c b evil"),
            None
        );
        let both = [(Some("a"), "x"), (Some("b"), "y")];
        assert_eq!(matching_diff_count(&both, Some("a b"), "x y"), Some(2));
        assert_eq!(matching_diff_count(&both, Some("a b"), "x b"), Some(1));
        assert_eq!(matching_diff_count(&both, Some("a b"), "a y"), None);
        let new = [(None, "text")];
        assert_eq!(matching_diff_count(&new, None, "text"), Some(1));
        // The diff shows a new file, but existing text would be lost.
        assert_eq!(matching_diff_count(&new, Some("old"), "text"), None);
        assert_eq!(matching_diff_count(&[], None, "text"), None);
    }
}
