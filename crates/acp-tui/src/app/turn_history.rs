//! The turns of a tab that can be undone, and those that were.

use std::sync::Arc;

use acp::ThreadHandle;
use acp::client::ClientSession;
use acp_host::terminal_text;
use acp_rewind::Snapshot;
use jiff::Timestamp;

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
    /// Where the turn begins in its conversation, or `None` if the conversation was loaded again since.
    pub(super) position: Option<TurnPosition>,
}

/// The beginning of a turn in a conversation.
#[derive(Debug, Clone)]
pub(super) struct TurnPosition {
    /// The conversation, which the tab may have left since.
    pub(super) thread: ThreadHandle,
    /// The number of items before the turn.
    pub(super) item_count: usize,
    /// The earlier conversation, if it was sent with the turn's prompt. Then the turn is the first of its session.
    pub(super) transcript: Option<Arc<str>>,
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
    /// Adds a turn that starts now. Returns its number, and the conversations that can no longer be reached.
    pub(super) fn start(
        &mut self,
        prompt: &str,
        position: TurnPosition,
    ) -> (TurnNumber, Vec<ClientSession>) {
        let number = TurnNumber(self.next_number);
        self.next_number += 1;
        if self.turns.len() == MAX_TURNS {
            self.turns.remove(0);
        }
        let prompt = terminal_text::clean_line(prompt.trim());
        self.turns.push(TurnRecord {
            number,
            prompt: terminal_text::truncate_middle(&prompt, MAX_PROMPT_BYTES).into_owned(),
            started_at: Timestamp::now(),
            files: KeptFiles::Pending,
            position: Some(position),
        });
        (number, self.forget_undone())
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
