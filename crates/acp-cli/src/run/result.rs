//! The result of `acp run` for programs: one JSON object in the file of `--output`.

use std::collections::BTreeSet;
use std::io::Write;

use acp::Thread;
use acp::thread::{Item, ItemKind, ThreadToolCall, ThreadToolCallContent, ToolCallStatus};
use acp::v1::{Cost, StopReason, ToolKind};
use acp_host::Denier;
use serde::Serialize;
use serde_json::Value;

use super::decisions::DecisionCounts;
use crate::exit::CommandExit;
use crate::output_file::OutputFile;
use crate::permissions;

/// What a turn has done so far, from the session's thread.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnOutcome {
    pub(super) session_id: Option<String>,
    agent: Option<AgentInfo>,
    #[serde(skip)]
    stop_reason: Option<StopReason>,
    /// The agent's last message: its text after the last prompt and tool call.
    pub(super) answer: String,
    /// The answer as JSON, with `--output-schema`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer_json: Option<Value>,
    context: Option<ContextUse>,
    /// The cost of the session so far.
    cost: Option<Cost>,
    tool_calls: Vec<ToolCallResult>,
    /// The files that the agent has reported as changed, each once.
    files_changed: BTreeSet<String>,
}

#[derive(Debug, Clone, Serialize)]
struct AgentInfo {
    name: String,
    title: Option<String>,
    version: String,
}

/// How full the agent's context window is, in tokens.
#[derive(Debug, Clone, Copy, Serialize)]
struct ContextUse {
    used: u64,
    size: u64,
}

#[derive(Debug, Clone, Serialize)]
struct ToolCallResult {
    id: String,
    kind: String,
    title: String,
    status: String,
    files: Vec<String>,
    /// The tool call whose subagent made this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
}

/// The contents of the file.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunResult<'a> {
    exit_code: u8,
    stop_reason: Option<&'a str>,
    error: Option<&'a str>,
    #[serde(flatten)]
    turn: &'a TurnOutcome,
    denials: Vec<DenialResult<'a>>,
    duration_ms: u128,
}

#[derive(Serialize)]
struct DenialResult<'a> {
    action: &'a str,
    by: String,
}

impl TurnOutcome {
    /// Records the session, once it is open.
    pub(super) fn begin(&mut self, session: &acp::client::ClientSession) {
        self.session_id = Some(session.id().to_string());
        self.agent = session.agent().info().map(|info| AgentInfo {
            name: info.name.clone(),
            title: info.title.clone(),
            version: info.version.clone(),
        });
    }

    pub(super) fn end(&mut self, reason: &StopReason) {
        self.stop_reason = Some(reason.clone());
    }

    /// Records what happened after a revision of the thread, up to the item with the number `end`.
    pub(super) fn read(&mut self, thread: &Thread, after: u64, end: Option<usize>) {
        let items = (thread.truncation().items..).zip(thread.items());
        let items = items.take_while(|(number, _)| end.is_none_or(|end| *number < end));
        let new = items.filter(|(_, item)| item.revision > after);
        // What subagents say is not a part of the answer.
        let outermost = new.clone().map(|(_, item)| item);
        let outermost: Vec<&Item> = outermost.filter(|item| item.parent.is_none()).collect();
        self.answer = last_message(&outermost);
        self.tool_calls.clear();
        for (number, item) in new {
            if let ItemKind::ToolCall(call) = &item.kind {
                self.files_changed.extend(changed_files(call));
                let parent = thread.parent_call(number);
                self.tool_calls.push(ToolCallResult::new(call, parent));
            }
        }
        if let Some(usage) = thread.usage() {
            self.cost.clone_from(&usage.cost);
            self.context = Some(ContextUse {
                used: usage.used,
                size: usage.size,
            });
        }
    }

    /// Writes the result to a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn write(
        &self,
        file: &OutputFile,
        exit: &CommandExit,
        decisions: &DecisionCounts,
        duration: std::time::Duration,
    ) -> std::io::Result<()> {
        let denials = decisions.denials.iter().map(|denial| DenialResult {
            action: &denial.action,
            by: match &denial.denied_by {
                Some(Denier::Source(by)) => permissions::source_text(by),
                Some(by) => by.to_string(),
                None => String::new(),
            },
        });
        let result = RunResult {
            exit_code: exit.code,
            stop_reason: self.stop_reason.as_ref().map(StopReason::as_str),
            error: exit.message.as_deref(),
            turn: self,
            denials: denials.collect(),
            duration_ms: duration.as_millis(),
        };
        file.write(|file| {
            let mut line = serde_json::to_vec(&result)?;
            line.push(b'\n');
            file.write_all(&line)
        })
    }
}

/// Returns the text of the agent after the last prompt and tool call.
fn last_message(items: &[&Item]) -> String {
    let begin = items
        .iter()
        .rposition(|item| matches!(item.kind, ItemKind::User(_) | ItemKind::ToolCall(_)))
        .map_or(0, |at| at + 1);
    let messages = items.iter().skip(begin);
    let texts = messages.filter_map(|item| match &item.kind {
        ItemKind::Agent(message) => Some(message.text()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns the files that a successful tool call has changed, as far as the agent says.
fn changed_files(call: &ThreadToolCall) -> Vec<String> {
    if call.status != ToolCallStatus::Completed {
        return Vec::new();
    }
    let diffs = call.content.iter().filter_map(|content| match content {
        ThreadToolCallContent::Diff(diff) => Some(diff),
        _ => None,
    });
    let mut files: Vec<String> = diffs
        .flat_map(|diff| diff.changes.iter().map(|change| change.path.clone()))
        .collect();
    let is_change = matches!(
        call.kind,
        ToolKind::Edit | ToolKind::Delete | ToolKind::Move
    );
    if is_change && files.is_empty() {
        files.extend(call.locations.iter().map(|location| location.path.clone()));
    }
    files
}

impl ToolCallResult {
    fn new(call: &ThreadToolCall, parent: Option<&ThreadToolCall>) -> Self {
        let status = match call.is_cancelled {
            true => "cancelled",
            false => call.status.as_str(),
        };
        Self {
            id: call.id.to_string(),
            kind: call.kind.as_str().to_owned(),
            title: call.title.clone(),
            status: status.to_owned(),
            files: call
                .locations
                .iter()
                .map(|location| location.path.clone())
                .collect(),
            parent: parent.map(|parent| parent.id.to_string()),
        }
    }
}
