//! The turns of a tab that can be undone, and those that were.

use std::collections::HashSet;
use std::sync::Arc;

use acp::ThreadHandle;
use acp::client::ClientSession;
use acp::v1::SessionId;
use acp_host::terminal_text;
use acp_rewind::{KeptTurn, Snapshot};
use jiff::Timestamp;

use super::turn_position::{PromptText, TurnPosition, TurnToFind, find_turns};
use crate::editor::PromptDraft;
use crate::setup::SessionSource;

/// The maximum number of turns to remember.
const MAX_TURNS: usize = 500;

/// The maximum length of a prompt in the list of turns, in bytes.
const MAX_PROMPT_BYTES: usize = 200;

/// A number that identifies a turn of a tab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnNumber(pub(crate) u64);

/// A turn, and what is needed to undo it.
#[derive(Debug, Clone)]
pub(super) struct TurnRecord {
    pub(super) number: TurnNumber,
    /// The beginning of the prompt, on one line.
    pub(super) prompt: String,
    pub(super) started_at: Timestamp,
    pub(super) files: KeptFiles,
    /// The prompt as the conversation shows it.
    text: PromptText,
    /// The prompt as the user has written it, if it was in this chat.
    draft: Option<PromptDraft>,
    /// Where the turn begins in its conversation, or `None` if the conversation is not known to contain it.
    pub(super) position: Option<TurnPosition>,
}

impl TurnRecord {
    /// Returns the prompt, to be edited and sent again. That of an earlier chat is in the conversation.
    pub(super) fn draft(&self) -> Option<PromptDraft> {
        self.draft.clone().or_else(|| {
            let prompt = self.position.as_ref()?.prompt()?;
            Some(PromptDraft::from(prompt.trim()))
        })
    }
}

/// Whether the project's files before a turn were kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeptFiles {
    /// The snapshot is being taken.
    Pending,
    Kept(Snapshot),
    /// They were not, for this reason.
    NotKept(String),
}

/// Turns that were undone together.
#[derive(Debug)]
pub(super) struct UndoneTurns {
    pub(super) turns: Vec<TurnRecord>,
    /// The files before they were restored, if they were.
    pub(super) files: Option<Snapshot>,
    /// The conversation that was left, if it was.
    pub(super) conversation: Option<LeftConversation>,
}

/// A conversation that was left for a new one, and stays open.
#[derive(Debug)]
pub(super) struct LeftConversation {
    pub(super) session: ClientSession,
    pub(super) thread: ThreadHandle,
    pub(super) source: SessionSource,
    /// The earlier conversation, if it was still to be sent with the next prompt.
    pub(super) transcript: Option<Arc<str>>,
}

/// The turns of a tab.
#[derive(Debug, Default)]
pub(super) struct TurnHistory {
    /// The turns that can be undone, oldest first.
    turns: Vec<TurnRecord>,
    /// What was undone, the latest last. A new turn clears it.
    undone: Vec<UndoneTurns>,
    next_number: u64,
}

impl TurnHistory {
    /// Adds a turn that starts now. Returns its number and its time, and the conversations that can no longer be
    /// reached.
    pub(super) fn start(
        &mut self,
        draft: PromptDraft,
        position: TurnPosition,
    ) -> (TurnNumber, Timestamp, Vec<ClientSession>) {
        let number = TurnNumber(self.next_number);
        self.next_number += 1;
        if self.turns.len() == MAX_TURNS {
            self.turns.remove(0);
        }
        let started_at = Timestamp::now();
        let prompt = draft.text();
        self.turns.push(TurnRecord {
            number,
            prompt: shorten_prompt(&prompt),
            started_at,
            files: KeptFiles::Pending,
            text: PromptText::new(&prompt),
            draft: Some(draft),
            position: Some(position),
        });
        (number, started_at, self.forget_undone())
    }

    /// Forgets what was undone. Returns the sessions that can no longer be reached, to be closed.
    pub(super) fn forget_undone(&mut self) -> Vec<ClientSession> {
        let left = std::mem::take(&mut self.undone).into_iter();
        let left = left.filter_map(|undone| Some(undone.conversation?.session));
        left.collect()
    }

    /// Removes a turn that did not start after all.
    pub(super) fn drop_last(&mut self) {
        self.turns.pop();
    }

    /// Records whether the files before a turn were kept.
    pub(super) fn set_files(&mut self, number: TurnNumber, files: KeptFiles) {
        if let Some(turn) = self.turns.iter_mut().find(|turn| turn.number == number) {
            turn.files = files;
        }
    }

    /// Records the text of the prompt, as it was sent.
    pub(super) fn set_text(&mut self, number: TurnNumber, text: PromptText) {
        if let Some(turn) = self.turns.iter_mut().find(|turn| turn.number == number) {
            turn.text = text;
        }
    }

    /// Adds turns of earlier chats, as far as the session's conversation contains them. If the conversation is not shown,
    /// all of them are added, so that their files can be restored.
    pub(super) fn add_kept(
        &mut self,
        kept: Vec<KeptTurn>,
        session: &SessionId,
        thread: &ThreadHandle,
    ) {
        let undone = self.undone.iter().flat_map(|undone| &undone.turns);
        let known: HashSet<Timestamp> = self
            .turns
            .iter()
            .chain(undone)
            .map(|turn| turn.started_at)
            .collect();
        let mut added = Vec::new();
        for turn in kept {
            let Ok(started_at) = turn.started_at.parse() else {
                continue;
            };
            if known.contains(&started_at) {
                continue;
            }
            added.push(TurnRecord {
                number: TurnNumber(self.next_number),
                prompt: shorten_prompt(&turn.prompt),
                started_at,
                files: KeptFiles::Kept(turn.snapshot),
                text: PromptText::new(&turn.prompt),
                draft: None,
                position: None,
            });
            self.next_number += 1;
        }
        let newest: Vec<TurnNumber> = self.turns.iter().map(|turn| turn.number).collect();
        added.append(&mut self.turns);
        self.turns = added;
        self.locate(session, thread);
        if !thread.read(|thread| thread.items().is_empty()) {
            self.turns
                .retain(|turn| turn.position.is_some() || newest.contains(&turn.number));
        }
        let surplus = self.turns.len().saturating_sub(MAX_TURNS);
        self.turns.drain(..surplus);
    }

    /// Returns the turns of a session as they are kept for the next time that it is opened.
    pub(super) fn turns_to_keep(&self, agent: &str, session: &SessionId) -> Vec<KeptTurn> {
        let turns = self.turns.iter().filter_map(|turn| {
            let is_here = turn.position.as_ref()?.session == *session;
            let (KeptFiles::Kept(snapshot), true) = (&turn.files, is_here) else {
                return None;
            };
            Some(KeptTurn {
                agent: agent.to_owned(),
                session: session.to_string(),
                started_at: turn.started_at.to_string(),
                prompt: turn.text.clone().into(),
                snapshot: snapshot.clone(),
            })
        });
        turns.collect()
    }

    /// Finds the turns in a conversation that was loaded.
    pub(super) fn locate(&mut self, session: &SessionId, thread: &ThreadHandle) {
        let turns: Vec<_> = self
            .turns
            .iter()
            .map(|turn| TurnToFind {
                prompt: &turn.text,
                known: turn
                    .position
                    .as_ref()
                    .filter(|position| position.thread.is_same(thread))
                    .map(|position| position.item_count),
            })
            .collect();
        let found = thread.read(|thread| find_turns(thread, &turns));
        for (turn, found) in self.turns.iter_mut().zip(found) {
            if let Some(item_count) = found {
                let before = turn.position.take();
                turn.position = Some(TurnPosition {
                    session: session.clone(),
                    thread: thread.clone(),
                    item_count,
                    transcript: before.and_then(|position| position.transcript),
                });
            }
        }
    }

    /// Returns the turns that can be undone, oldest first.
    pub(super) fn turns(&self) -> &[TurnRecord] {
        &self.turns
    }

    pub(super) fn turn(&self, number: TurnNumber) -> Option<&TurnRecord> {
        self.turns.iter().find(|turn| turn.number == number)
    }

    pub(super) fn last_undone(&self) -> Option<&UndoneTurns> {
        self.undone.last()
    }

    /// Returns how many turns are undone together with this one.
    pub(super) fn count_since(&self, number: TurnNumber) -> usize {
        let since = self.turns.iter().skip_while(|turn| turn.number != number);
        since.count()
    }

    /// Moves a turn and the later ones to those that were undone.
    pub(super) fn undo(
        &mut self,
        number: TurnNumber,
        files: Option<Snapshot>,
        conversation: Option<LeftConversation>,
    ) {
        let from = self.turns.iter().position(|turn| turn.number == number);
        let turns = self.turns.split_off(from.unwrap_or(self.turns.len()));
        self.undone.push(UndoneTurns {
            turns,
            files,
            conversation,
        });
    }

    /// Moves the turns that were undone last back. `before` is the snapshot of the files before that, if they change.
    /// Undoing the turns again restores it. Returns the conversation to go back to, if there is one.
    pub(super) fn redo(&mut self, before: Option<Snapshot>) -> Option<LeftConversation> {
        let mut undone = self.undone.pop()?;
        if let (Some(before), Some(first)) = (before, undone.turns.first_mut()) {
            first.files = KeptFiles::Kept(before);
        }
        self.turns.append(&mut undone.turns);
        undone.conversation
    }

    /// Forgets where in the conversation turns began, and the conversations that were left, because the agent has ended
    /// or the conversation is loaded again.
    pub(super) fn forget_conversations(&mut self) {
        let undone = self.undone.iter_mut();
        for turn in undone.flat_map(|undone| {
            undone.conversation = None;
            undone.turns.iter_mut()
        }) {
            turn.position = None;
        }
        for turn in &mut self.turns {
            turn.position = None;
        }
    }
}

/// Shortens a prompt to one line for the list of turns.
fn shorten_prompt(prompt: &str) -> String {
    let prompt = terminal_text::clean_line(prompt.trim());
    terminal_text::truncate_middle(&prompt, MAX_PROMPT_BYTES).into_owned()
}
