//! Undoes and redoes turns: the project's files, the conversation, or both.
//!
//! Before anything changes, a popup shows what would (`rewind_view.rs`). Files are restored from the snapshot that was
//! taken before the turn ([`crate::file_history`]). The conversation is taken back by going on in another session
//! (`leave_conversation.rs`).

use acp::v1::SessionId;
use acp_host::literal;
use acp_rewind::{KeptTurn, SkippedPath, Snapshot};
use ratatui::text::Line;

use super::overlay::ChatOverlay;
use super::pager::Pager;
use super::rewind_view::{
    RewindDescription, RewindScope, RewindTarget, RewindView, describe_turns,
};
use super::tab::Tab;
use super::turn_history::{KeptFiles, TurnNumber, TurnRecord};
use super::{App, ChatEffect, TabKey};
use crate::file_history::{RestoreFailure, RestorePreview};
use crate::picker::{Picker, PickerItem};
use crate::setup::SessionSource;

/// What the user wants to undo.
#[derive(Debug, Clone, Copy)]
enum UndoRequest {
    /// The last turn.
    Last,
    /// The turns since one that the user chooses from a list.
    Choose,
}

/// A search for turns of earlier chats that is not finished.
#[derive(Debug, Default)]
pub(super) struct TurnSearch {
    /// What the user wants to undo then.
    wanted: Option<UndoRequest>,
}

impl App {
    /// Records the snapshot before a turn. If there is none, tells the user why, once for each reason.
    pub(super) fn on_snapshot_taken(
        &mut self,
        key: TabKey,
        turn: TurnNumber,
        result: Result<Snapshot, String>,
    ) {
        let is_turned_off = self.setup.rewind.is_none();
        if let Err(reason) = &result
            && !is_turned_off
            && self.told_not_kept.as_ref() != Some(reason)
        {
            self.show_note(format!("file changes cannot be undone: {reason}"));
            self.told_not_kept = Some(reason.clone());
        }
        if let Some(tab) = self.tab_mut(key) {
            let files = result.map_or_else(KeptFiles::NotKept, KeptFiles::Kept);
            tab.history.set_files(turn, files);
        }
    }

    /// Adds the turns of earlier chats to those that can be undone.
    pub(super) fn on_kept_turns_found(
        &mut self,
        key: TabKey,
        session: &SessionId,
        turns: Vec<KeptTurn>,
    ) -> Vec<ChatEffect> {
        let tab = self.tab_mut(key).filter(|tab| {
            let open = tab.session.as_ref();
            open.is_some_and(|open| open.id() == session)
        });
        // The tab may have turned to another session in the meantime.
        let Some(tab) = tab else {
            return Vec::new();
        };
        tab.history.add_kept(turns, session, &tab.thread);
        let wanted = tab.turn_search.take().and_then(|search| search.wanted);
        let is_active = self.tabs.get(self.active).is_some_and(|tab| tab.key == key);
        match wanted.filter(|_| is_active) {
            Some(UndoRequest::Last) => self.undo(),
            Some(UndoRequest::Choose) => {
                self.show_turns();
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// Remembers what the user wants to undo until the turns of earlier chats were found. Returns `false` if they are not
    /// being looked for.
    fn defer_undo(&mut self, wanted: UndoRequest) -> bool {
        let search = self
            .active_tab_mut()
            .and_then(|tab| tab.turn_search.as_mut());
        search.map(|search| search.wanted = Some(wanted)).is_some()
    }

    /// Shows what undoing the last turn would change.
    pub(super) fn undo(&mut self) -> Vec<ChatEffect> {
        if self.defer_undo(UndoRequest::Last) {
            return Vec::new();
        }
        let tab = self.tabs.get(self.active);
        match tab.and_then(|tab| tab.history.turns().last()) {
            Some(turn) => {
                let target = RewindTarget::Turn(turn.number);
                self.start_rewind(target)
            }
            None => {
                self.show_note("nothing to undo");
                Vec::new()
            }
        }
    }

    /// Shows what redoing the turns that were undone last would change.
    pub(super) fn redo(&mut self) -> Vec<ChatEffect> {
        let tab = self.tabs.get(self.active);
        if tab.is_some_and(|tab| tab.history.last_undone().is_some()) {
            return self.start_rewind(RewindTarget::Redo);
        }
        self.show_note("nothing to redo");
        Vec::new()
    }

    /// Lists the turns that can be undone, the latest first.
    pub(super) fn show_turns(&mut self) {
        if self.defer_undo(UndoRequest::Choose) {
            return;
        }
        let turns = self.tabs.get(self.active).map(|tab| tab.history.turns());
        let items: Vec<_> = turns
            .unwrap_or_default()
            .iter()
            .rev()
            .map(|turn| {
                let mut item = PickerItem::new(turn.number, turn.prompt.clone());
                item.detail = super::time::format_time_ago(&turn.started_at.to_string());
                item
            })
            .collect();
        if items.is_empty() {
            self.show_note("nothing to undo");
        } else {
            let title = "Go back to before a prompt";
            self.overlay = Some(ChatOverlay::Turns(Picker::new(title, items)));
        }
    }

    /// Finds out what a rewind would change, and then shows it.
    pub(super) fn start_rewind(&mut self, target: RewindTarget) -> Vec<ChatEffect> {
        // Restoring files under a working agent would confuse both.
        if self.tabs.iter().any(Tab::is_working) {
            self.show_note("an agent is working; cancel its turn first");
            return Vec::new();
        }
        let Some(tab) = self.tabs.get(self.active) else {
            return Vec::new();
        };
        let key = tab.key;
        let files = match target {
            RewindTarget::Turn(number) => match tab.history.turn(number).map(|turn| &turn.files) {
                Some(KeptFiles::Kept(snapshot)) => Ok(snapshot.clone()),
                Some(KeptFiles::NotKept(reason)) => Err(reason.clone()),
                Some(KeptFiles::Pending) | None => Err("they were not kept".to_owned()),
            },
            RewindTarget::Redo => {
                let undone = tab.history.last_undone();
                let files = undone.and_then(|undone| undone.files.clone());
                files.ok_or_else(|| "they were not changed by the undo".to_owned())
            }
        };
        match files {
            Ok(to) => vec![ChatEffect::PlanRestore {
                tab: key,
                target,
                to,
            }],
            Err(reason) => {
                self.on_restore_planned(key, target, Err(reason));
                Vec::new()
            }
        }
    }

    /// Shows what a rewind would change, unless the user has opened something else in the meantime.
    pub(super) fn on_restore_planned(
        &mut self,
        key: TabKey,
        target: RewindTarget,
        result: Result<Box<RestorePreview>, String>,
    ) {
        let tab = self.tabs.get(self.active).filter(|tab| tab.key == key);
        let (Some(tab), None) = (tab, &self.overlay) else {
            return;
        };
        let Some(description) = describe_rewind(tab, target) else {
            return;
        };
        let view = RewindView::new(description, result, &self.setup.theme);
        self.overlay = Some(ChatOverlay::Rewind(Box::new(view)));
    }

    /// Carries out what the popup has shown.
    pub(super) fn rewind(&mut self, view: RewindView, scope: RewindScope) -> Vec<ChatEffect> {
        let (description, preview) = view.into_parts();
        let RewindDescription { tab, target, .. } = description;
        if self.tabs.iter().any(Tab::is_working) {
            self.show_note("an agent is working; cancel its turn first");
            return Vec::new();
        }
        match preview {
            Some(preview) if scope.files => vec![ChatEffect::RestoreFiles {
                tab,
                target,
                scope,
                plan: preview.plan,
            }],
            _ => self.finish_rewind(tab, target, scope, None),
        }
    }

    pub(super) fn on_files_restored(
        &mut self,
        key: TabKey,
        target: RewindTarget,
        scope: RewindScope,
        before: Snapshot,
        result: Result<Vec<SkippedPath>, RestoreFailure>,
    ) -> Vec<ChatEffect> {
        match result {
            Ok(skipped) => {
                let done = match target {
                    RewindTarget::Turn(_) => "files restored",
                    RewindTarget::Redo => "redone",
                };
                let except = match skipped.len() {
                    0 => String::new(),
                    count => format!(", except for {count}"),
                };
                let done = format!("{done}{except}");
                if !skipped.is_empty() {
                    self.overlay = Some(ChatOverlay::Pager(self.skipped_pager(&skipped)));
                }
                self.finish_rewind(key, target, scope, Some((before, done)))
            }
            Err(RestoreFailure::FilesChanged) => {
                self.show_note("files have changed in the meantime; nothing was restored");
                self.start_rewind(target)
            }
            Err(RestoreFailure::Other(reason)) => {
                self.show_note(format!("files were not restored: {reason}"));
                Vec::new()
            }
        }
    }

    fn skipped_pager(&self, skipped: &[SkippedPath]) -> Pager {
        let theme = &self.setup.theme;
        let mut lines = vec![Line::styled("These were left as they are:", theme.heading)];
        lines.extend(skipped.iter().map(|SkippedPath { path, reason, .. }| {
            let path = literal::escape_line(&path.to_string_lossy());
            let reason = literal::escape_line(reason);
            Line::styled(format!("  {path}: {reason}"), theme.text)
        }));
        Pager::new("Files restored", lines)
    }

    /// Updates the tab's turns after files were restored, if they were, and takes back the conversation if it is in the
    /// scope. `files` is how the files were before that, and what to tell the user about them.
    fn finish_rewind(
        &mut self,
        key: TabKey,
        target: RewindTarget,
        scope: RewindScope,
        files: Option<(Snapshot, String)>,
    ) -> Vec<ChatEffect> {
        let (before, mut notes) = match files {
            Some((before, note)) => (Some(before), vec![note]),
            None => (None, Vec::new()),
        };
        let Some(tab) = self.tab_mut(key) else {
            return Vec::new();
        };
        match target {
            RewindTarget::Turn(number) => {
                let turn = tab.history.turn(number).cloned();
                let draft = turn.as_ref().and_then(TurnRecord::draft);
                let position = turn.and_then(|turn| turn.position);
                let left = match position.filter(|_| scope.conversation) {
                    Some(position) => tab.leave_conversation(&position),
                    None => None,
                };
                let is_left = left.is_some();
                tab.history.undo(number, before, left);
                if is_left {
                    notes.push("conversation taken back".to_owned());
                    if let Some(draft) = draft.filter(|_| tab.editor.is_empty()) {
                        tab.editor.set(draft);
                        notes.push("the prompt can be edited and sent again".to_owned());
                    }
                } else if scope.conversation {
                    notes.push("the conversation stays as it is".to_owned());
                }
                self.show_note(notes.join("; "));
                if !is_left {
                    return Vec::new();
                }
                let mut effects = vec![ChatEffect::UnwatchThread { tab: key }];
                effects.extend(self.open_tab(key));
                effects
            }
            RewindTarget::Redo => {
                let undone = tab.history.last_undone();
                let draft = undone.and_then(|undone| undone.turns.first()?.draft());
                let conversation = tab.history.redo(before);
                // The prompt that the undo has put there is in the conversation again.
                if conversation.is_some() && draft.is_some_and(|draft| tab.editor.contains(&draft))
                {
                    tab.editor.clear();
                }
                if notes.is_empty() {
                    notes.push("conversation shown again".to_owned());
                }
                self.show_note(notes.join("; "));
                match conversation {
                    Some(conversation) => self.return_to_conversation(key, conversation),
                    None => Vec::new(),
                }
            }
        }
    }

    /// Opens a new session in the active tab instead of the current one.
    pub(super) fn clear_session(&mut self) -> Vec<ChatEffect> {
        let Some(tab) = self.active_tab_mut() else {
            return Vec::new();
        };
        let key = tab.key;
        if tab.is_working() {
            self.show_note("the agent is working; cancel its turn first");
            return Vec::new();
        }
        let Some(session) = tab.session.clone() else {
            self.show_note("the session is not open");
            return Vec::new();
        };
        let sessions = tab.history.forget_undone().into_iter().chain([session]);
        let mut effects = tab.reset();
        tab.begin_new_conversation();
        tab.title = None;
        effects.extend(sessions.map(|session| ChatEffect::CloseSession { session }));
        effects.extend(self.open_tab(key));
        effects
    }
}

impl Tab {
    /// Finds the turns of earlier chats in the session.
    pub(super) fn find_kept_turns(&mut self) -> Option<ChatEffect> {
        let session = self.session.as_ref()?.id().clone();
        self.turn_search = Some(TurnSearch::default());
        Some(ChatEffect::FindKeptTurns {
            tab: self.key,
            agent: self.storage_key.clone(),
            session,
        })
    }
}

/// Describes a rewind of a tab. Returns `None` if there is nothing to go back to any more.
fn describe_rewind(tab: &Tab, target: RewindTarget) -> Option<RewindDescription> {
    let quote = |turn: &TurnRecord| {
        let age = super::time::format_time_ago(&turn.started_at.to_string());
        format!("  {} ({age})", turn.prompt)
    };
    let (title, mut intro, conversation) = match target {
        RewindTarget::Turn(number) => {
            let turn = tab.history.turn(number)?;
            let count = tab.history.count_since(number);
            let intro = vec!["Go back to before this prompt:".to_owned(), quote(turn)];
            let conversation = match (&turn.position, &tab.session) {
                (Some(_), Some(_)) => Ok(()),
                _ => Err(
                    "The conversation cannot be taken back: it does not contain this prompt, or is not open"
                        .to_owned(),
                ),
            };
            (
                format!("Undo {}", describe_turns(count)),
                intro,
                conversation,
            )
        }
        RewindTarget::Redo => {
            let undone = tab.history.last_undone()?;
            let mut intro = vec!["Redo what was undone:".to_owned()];
            intro.extend(undone.turns.iter().map(quote));
            let conversation = match undone.conversation {
                Some(_) => Ok(()),
                None => Err("The conversation stays as it is".to_owned()),
            };
            let count = undone.turns.len();
            (
                format!("Redo {}", describe_turns(count)),
                intro,
                conversation,
            )
        }
    };
    if conversation.is_ok() {
        intro.push(String::new());
        intro.push(describe_conversation(tab, target).to_owned());
    }
    Some(RewindDescription {
        tab: tab.key,
        target,
        title,
        intro,
        conversation,
    })
}

/// Describes how a rewind takes back the conversation.
fn describe_conversation(tab: &Tab, target: RewindTarget) -> &'static str {
    let position = match target {
        RewindTarget::Turn(number) => tab.history.turn(number),
        RewindTarget::Redo => return "The conversation that was left is shown again.",
    };
    let position = position.and_then(|turn| turn.position.as_ref());
    match position.map(|position| (tab.source_before(position), position.is_beginning())) {
        Some((SessionSource::ForkAt { .. }, _)) => {
            "c and b continue in a copy of the session, which the agent ends before this prompt."
        }
        Some((_, true)) => "c and b begin a new session, because this prompt is the first one.",
        _ => {
            "c and b continue the conversation in a new session, which gets the earlier part with the next prompt."
        }
    }
}
