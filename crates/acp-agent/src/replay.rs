//! Replays the history of a session to its client.

use std::collections::{BTreeMap, HashMap, HashSet};

use acp::Update;
use acp::agent::Session;
use acp::update::{MessageChunk, ToolCallOutput, ToolCallPatch};
use acp::v1::{
    CompactionId, CompactionStatus, CompactionUpdate, MessageId, PlanUpdate as PlanUpdateV1,
    PlanUpdateContent, ProtocolVersion, SessionUpdate as V1, TerminalId, ToolCallId,
};
use acp::v2::{
    Message, PlanUpdate, TerminalOutput, TerminalOutputChunk, TerminalUpdate, ToolCallStatus,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::context::compaction_update::show_compaction;
use crate::history::StoredHistory;
use crate::reported_call::text_content;
use crate::store::entry::StoreEntryContent;
use crate::store::stored_session::EntryFilter;
use crate::text::{to_code_block, truncate_to_tail};

/// The maximum size of a terminal's output when it is shown as text, in bytes. The end of the output is kept.
const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// The content shown for a tool call that never finished.
const UNFINISHED_CONTENT: &str = "The agent exited before this finished.";

/// The content shown for a client terminal whose output is unknown.
const MISSING_OUTPUT_CONTENT: &str = "The terminal was released, and its output was not stored.";

/// Replays the history of a session to its client.
pub(crate) async fn replay(session: &Session, past: &StoredHistory) -> acp::Result<()> {
    let mut replay = HistoryReplay {
        session,
        is_v2: session.client().version() == ProtocolVersion::V2,
        prompt: None,
        started_messages: HashSet::new(),
        terminals: HashMap::new(),
        calls: BTreeMap::new(),
        compaction: None,
    };
    let mut pages = past.entry_pages(EntryFilter::Updates, 0);
    while let Some(entries) = pages.next().await? {
        for entry in entries {
            match entry.parse() {
                Ok(StoreEntryContent::Update(update)) => replay.send_update(update).await?,
                Ok(StoreEntryContent::Message(_) | StoreEntryContent::Compaction(_)) => {}
                Err(error) => {
                    // The rest of the history is still useful.
                    tracing::warn!(session = %session.id(), %error, "skipping part of the history");
                }
            }
        }
    }
    replay.end_turn().await
}

struct HistoryReplay<'a> {
    session: &'a Session,
    is_v2: bool,
    /// The prompt that started the current turn.
    prompt: Option<MessageId>,
    /// The messages that have started in the turn. A version 2 client that still has one of them must replace it, so
    /// that it is not shown twice.
    started_messages: HashSet<MessageId>,
    /// The output of the agent's own terminals in the turn. Only the end of long output is kept.
    terminals: HashMap<TerminalId, Vec<u8>>,
    /// The turn's tool calls that are still running or that show terminals. Which terminals belong to the agent, and
    /// what they printed, may not be known until the turn ends.
    calls: BTreeMap<ToolCallId, ReplayedCall>,
    /// The compaction that is running in the turn, if any.
    compaction: Option<CompactionId>,
}

#[derive(Default)]
struct ReplayedCall {
    content: Vec<ToolCallOutput>,
    /// The part of the call's content that the client already has.
    shown_content: Vec<ToolCallOutput>,
    status: ToolCallStatus,
    raw_output: Option<Value>,
    has_ended: bool,
    is_cancelled: bool,
}

impl ReplayedCall {
    fn set_status(&mut self, status: &ToolCallStatus) {
        self.status = status.clone();
        self.is_cancelled = *status == ToolCallStatus::Cancelled;
        let done = matches!(status, ToolCallStatus::Completed | ToolCallStatus::Failed);
        self.has_ended = done || self.is_cancelled;
    }

    fn has_terminals(&self) -> bool {
        let mut content = self.content.iter();
        content.any(|content| matches!(content, ToolCallOutput::Terminal(_)))
    }
}

impl HistoryReplay<'_> {
    async fn send_update(&mut self, update: Update) -> acp::Result<()> {
        match update {
            Update::UserMessageChunk(chunk) => {
                if self.prompt != chunk.message_id {
                    self.end_turn().await?;
                    self.prompt.clone_from(&chunk.message_id);
                }
                let update =
                    self.chunk_or_message(chunk, Update::UserMessageChunk, Update::UserMessage);
                self.session.send_update(update).await
            }
            Update::AgentMessageChunk(chunk) => {
                let update =
                    self.chunk_or_message(chunk, Update::AgentMessageChunk, Update::AgentMessage);
                self.session.send_update(update).await
            }
            Update::AgentThoughtChunk(chunk) => {
                let update =
                    self.chunk_or_message(chunk, Update::AgentThoughtChunk, Update::AgentThought);
                self.session.send_update(update).await
            }
            Update::ToolCallUpdate(call) if call.is_new => self.start_call(*call).await,
            Update::ToolCallUpdate(update) => self.update_call(*update).await,
            Update::PlanUpdate(update) => self.send_plan(update).await,
            Update::PlanRemoved(plan) => self.session.remove_plan(plan.plan_id).await,
            Update::CompactionUpdate(update) => {
                let runs = update.status == CompactionStatus::InProgress;
                self.compaction = runs.then(|| update.compaction_id.clone());
                show_compaction(self.session, *update).await
            }
            Update::Notice(notice) => self.session.show_notice(*notice).await,
            Update::TerminalUpdate(update) => self.send_terminal(*update).await,
            Update::TerminalOutputChunk(chunk) => self.send_output(chunk).await,
            update => match self.session.send_update(update).await {
                // Version 1 cannot express this update, and the agent has no other way to show it.
                Err(acp::Error::Unsupported { .. }) => Ok(()),
                told => told,
            },
        }
    }

    /// Returns the update for a message chunk. In version 2, the first chunk becomes a message update, which replaces
    /// any copy of the message that the client still has.
    fn chunk_or_message(
        &mut self,
        chunk: MessageChunk,
        piece: fn(MessageChunk) -> Update,
        whole: fn(Message) -> Update,
    ) -> Update {
        match &chunk.message_id {
            Some(id) if self.is_v2 && self.started_messages.insert(id.clone()) => {
                whole(Message::new(id).content(vec![chunk.content]))
            }
            _ => piece(chunk),
        }
    }

    /// Sends a plan. If the client supports only one plan, sends the steps of all plans together.
    async fn send_plan(&mut self, update: PlanUpdate) -> acp::Result<()> {
        match Update::PlanUpdate(update).into_v1() {
            Some(V1::PlanUpdate(PlanUpdateV1 {
                plan: PlanUpdateContent::Items(plan),
                ..
            })) => {
                self.session
                    .set_plan_by_id(plan.plan_id, plan.entries)
                    .await
            }
            Some(update) => self.session.send_update(update).await,
            None => Ok(()),
        }
    }

    async fn start_call(&mut self, mut call: ToolCallPatch) -> acp::Result<()> {
        let mut state = ReplayedCall {
            content: call.content.take().flatten().unwrap_or_default(),
            raw_output: call.raw_output.clone(),
            ..ReplayedCall::default()
        };
        state.set_status(&call.status.take().flatten().unwrap_or_default());
        state.shown_content = self.call_content(&state, false);
        let status = self.status_in_dialect(&state.status);
        if status != ToolCallStatus::default() {
            call.status = Some(Some(status.clone()));
        }
        let id = call.tool_call_id.clone();
        let mut update = ToolCallPatch::new(&id);
        if self.is_v2 {
            // In version 2, a call starts with an update, which can contain the content.
            call.content =
                (!state.shown_content.is_empty()).then(|| Some(state.shown_content.clone()));
        } else if !state.shown_content.is_empty() {
            // Some clients show the content of a call only if it is in an update. No client needs it twice.
            update.status = Some(Some(status));
            update.content = Some(Some(state.shown_content.clone()));
        }
        if !state.has_ended || state.has_terminals() {
            self.calls.insert(id, state);
        }
        self.send_tool_call(call).await?;
        match update.content {
            Some(_) => self.send_tool_call(update).await,
            None => Ok(()),
        }
    }

    async fn update_call(&mut self, mut update: ToolCallPatch) -> acp::Result<()> {
        let id = update.tool_call_id.clone();
        let known = self.calls.contains_key(&id);
        // A call that is unknown here has ended and shows no terminals.
        let mut call = self.calls.remove(&id).unwrap_or_else(|| ReplayedCall {
            has_ended: true,
            ..ReplayedCall::default()
        });
        let says_status = update.status.is_some();
        if let Some(status) = update.status.take() {
            call.set_status(&status.unwrap_or_default());
        }
        if let Some(output) = &update.raw_output {
            call.raw_output = Some(output.clone());
        }
        if let Some(content) = update.content.take() {
            call.content = content.unwrap_or_default();
            call.shown_content = self.call_content(&call, false);
            update.content = Some(Some(call.shown_content.clone()));
        }
        if known || says_status {
            update.status = Some(Some(self.status_in_dialect(&call.status)));
        }
        if !call.has_ended || call.has_terminals() {
            self.calls.insert(id, call);
        }
        self.send_tool_call(update).await
    }

    async fn send_tool_call(&self, update: ToolCallPatch) -> acp::Result<()> {
        let update = Update::ToolCallUpdate(update.into());
        self.session.send_update(update).await
    }

    /// Converts a status to the form used by the connection's protocol version.
    fn status_in_dialect(&self, status: &ToolCallStatus) -> ToolCallStatus {
        match status {
            ToolCallStatus::Cancelled if !self.is_v2 => ToolCallStatus::Failed,
            status => status.clone(),
        }
    }

    /// Returns the known content of a tool call. `all` means that the turn has ended, so no more content will follow.
    fn call_content(&self, call: &ReplayedCall, all: bool) -> Vec<ToolCallOutput> {
        let mut shown = Vec::with_capacity(call.content.len());
        for content in &call.content {
            let ToolCallOutput::Terminal(terminal) = content else {
                shown.push(content.clone());
                continue;
            };
            match self.terminals.get(&terminal.terminal_id) {
                Some(_) if self.is_v2 => shown.push(content.clone()),
                Some(printed) => {
                    let printed = String::from_utf8_lossy(printed);
                    let printed = truncate_to_tail(&printed, MAX_OUTPUT_BYTES);
                    shown.extend(
                        (!printed.is_empty()).then(|| text_content(to_code_block(printed)).into()),
                    );
                }
                None if all => {
                    let output = call.raw_output.as_ref().and_then(|data| data.get("output"));
                    let output = output.and_then(Value::as_str);
                    let output = output.map(|output| {
                        text_content(to_code_block(truncate_to_tail(output, MAX_OUTPUT_BYTES)))
                    });
                    shown.push(
                        output
                            .unwrap_or_else(|| text_content(MISSING_OUTPUT_CONTENT))
                            .into(),
                    );
                }
                None => {}
            }
        }
        if call.is_cancelled && !self.is_v2 {
            shown.push(text_content("Cancelled.").into());
        }
        shown
    }

    async fn send_terminal(&mut self, mut update: TerminalUpdate) -> acp::Result<()> {
        let new = !self.terminals.contains_key(&update.terminal_id);
        let printed = self
            .terminals
            .entry(update.terminal_id.clone())
            .or_default();
        if let Some(output) = &update.output {
            let data = output.as_ref().map(|output| output.data.as_str());
            *printed = STANDARD
                .decode(data.unwrap_or_default())
                .unwrap_or_default();
        } else if new {
            // Reset the output, because the client may still have some.
            update.output = Some(Some(TerminalOutput::new("")));
        }
        if self.is_v2 {
            self.session
                .send_update(Update::TerminalUpdate(update.into()))
                .await?;
        }
        Ok(())
    }

    async fn send_output(&mut self, chunk: TerminalOutputChunk) -> acp::Result<()> {
        if self.is_v2 {
            self.terminals.entry(chunk.terminal_id.clone()).or_default();
            let update = Update::TerminalOutputChunk(chunk);
            return self.session.send_update(update).await;
        }
        let printed = self.terminals.entry(chunk.terminal_id).or_default();
        printed.extend(STANDARD.decode(&chunk.data).unwrap_or_default());
        if printed.len() > 2 * MAX_OUTPUT_BYTES {
            printed.drain(..printed.len() - MAX_OUTPUT_BYTES);
        }
        Ok(())
    }

    /// Ends the turn: its calls are no longer running, and the output of its terminals is complete.
    async fn end_turn(&mut self) -> acp::Result<()> {
        for (id, mut call) in std::mem::take(&mut self.calls) {
            let mut content = self.call_content(&call, true);
            if !call.has_ended {
                content.push(text_content(UNFINISHED_CONTENT).into());
                call.set_status(&ToolCallStatus::Failed);
            } else if content == call.shown_content {
                continue;
            }
            let mut update = ToolCallPatch::new(id);
            update.status = Some(Some(self.status_in_dialect(&call.status)));
            update.content = Some(Some(content));
            self.send_tool_call(update).await?;
        }
        if let Some(id) = self.compaction.take() {
            let update = CompactionUpdate::new(id, CompactionStatus::Failed);
            show_compaction(self.session, update.error(UNFINISHED_CONTENT.to_owned())).await?;
        }
        self.terminals.clear();
        self.started_messages.clear();
        Ok(())
    }
}
