//! Opens a session whose log is in the store, after another server or an earlier process of the agent has owned it.

use std::collections::HashMap;

use acp::jsonrpc;
use acp::v1::SessionId;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::agent::{LiveAgent, SentRequest};
use super::client_messages::session_lost_error;
use super::log::{Audience, LiveLog};
use super::message::{LiveLine, notification, to_raw, with_line_feed};
use super::prompt::{PromptNumber, Prompts, write_response};
use super::record::SessionRecord;
use super::session::{OpenState, SharedSession};
use super::setup::LiveSetup;
use crate::store::{LoggedLine, PromptRecord, PromptState, SessionHead, StoredLiveSession};

/// What the log says when a turn was cut.
const TURN_CUT: &str = "The server that ran this turn stopped. The turn was cut, and is not continued. What it did until then may be incomplete.";

/// The parts of an update that tell whether a tool call has ended.
#[derive(Deserialize)]
struct ToolCallLine {
    params: ToolCallParams,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolCallParams {
    session_id: SessionId,
    update: ToolCallHead,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolCallHead {
    session_update: String,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(default)]
    status: Option<String>,
}

/// What the store contains about the setup of a session.
#[derive(Default, Deserialize)]
struct StoredSetup {
    #[serde(default)]
    result: Value,
    #[serde(default)]
    params: Value,
}

impl LiveAgent {
    /// Adds a session that this server owns now, with its log. The agent opens it in the background.
    pub(super) fn reopen(&mut self, stored: StoredLiveSession, lines: Vec<LoggedLine>) {
        let id = SessionId::from(stored.key.session);
        if self.sessions.contains_key(&id) {
            return;
        }
        self.at_rest.remove(&id);
        let setup: StoredSetup = serde_json::from_str(&stored.head.setup).unwrap_or_default();
        let mut session = SharedSession::new(id.clone(), stored.head.cwd, self.max_log_bytes);
        session.title = stored.head.title;
        session.creator = stored.head.creator;
        session.setup = LiveSetup::from_result(&setup.result.to_string());
        session.record = Some(SessionRecord::stored(stored.token, setup.params.clone()));
        let (prompts, cut) = Prompts::stored(stored.next_prompt, stored.prompts);
        session.prompts = prompts;
        let lines = lines.into_iter().map(|line| {
            (
                line.number,
                line.until,
                with_line_feed(line.line.as_bytes()),
            )
        });
        let lines: Vec<(u64, u64, LiveLine)> = lines.collect();
        let unfinished = cut.as_ref().map(|_| unfinished_tool_calls(&lines));
        session.log = LiveLog::stored(self.max_log_bytes, stored.next_line, lines);
        if let (Some(cut), Some(unfinished)) = (cut, unfinished) {
            cut_turn(&mut session, cut, unfinished);
        }
        self.open_in_agent(&mut session, &setup.params);
        self.sessions.insert(id.clone(), session);
        self.wake_clients(&id);
        self.start_next_turn(&id);
    }

    /// Lets the agent open a session, unless it has it open already.
    fn open_in_agent(&mut self, session: &mut SharedSession, params: &Value) {
        let id = &session.id;
        if self.open_in_agent.contains(id) {
            return;
        }
        // The history is in the log, so the agent need not send it.
        let method = if self.agent_supports(&["sessionCapabilities", "resume"]) {
            "session/resume"
        } else if self.agent_supports(&["loadSession"]) {
            "session/load"
        } else {
            let reason = "it supports neither session/resume nor session/load";
            lose(session, reason.to_owned());
            return;
        };
        let mut params = match params {
            Value::Object(params) => params.clone(),
            _ => serde_json::Map::new(),
        };
        params.insert("sessionId".to_owned(), json!(id));
        params.insert("cwd".to_owned(), json!(session.cwd));
        params.entry("mcpServers").or_insert_with(|| json!([]));
        session.agent_state = OpenState::Reopening;
        let purpose = SentRequest::ReopenSession(id.clone());
        self.send_request(method, Some(&to_raw(&params)), purpose);
    }

    /// Handles the agent's response when it has opened a session whose log is in the store.
    pub(super) fn session_reopened(
        &mut self,
        id: &SessionId,
        result: Result<Box<RawValue>, jsonrpc::Error>,
    ) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        match result {
            Ok(result) => {
                session.agent_state = OpenState::Open;
                let setup = LiveSetup::from_result(result.get());
                if !setup.to_result().is_empty() {
                    session.setup = setup;
                    session.head_changed();
                }
                self.open_in_agent.insert(id.clone());
            }
            Err(error) => {
                tracing::warn!(session = %id, %error, "the agent cannot open the session again");
                lose(session, error.message);
            }
        }
        self.wake_clients(id);
        self.start_next_turn(id);
    }
}

/// Returns the directories of a stored session.
pub(super) fn session_directories(head: &SessionHead) -> Vec<String> {
    let setup: StoredSetup = serde_json::from_str(&head.setup).unwrap_or_default();
    let more = setup.params["additionalDirectories"].as_array();
    let more = more.into_iter().flatten().filter_map(Value::as_str);
    let cwd = head.cwd.iter().map(String::as_str);
    cwd.chain(more).map(str::to_owned).collect()
}

/// Marks a session as lost for the agent. The prompts that wait fail.
fn lose(session: &mut SharedSession, reason: String) {
    let error = session_lost_error(&session.id, &reason);
    session.agent_state = OpenState::Lost(reason);
    let text = format!("{}.", error.message);
    let response = Err(error);
    let prompts = session.prompts.take_back(|_| true);
    if !prompts.is_empty() {
        push_notice(session, &text);
    }
    for prompt in prompts {
        session.prompt_changed(prompt.ended_record(&response));
        if let Some(request) = prompt.sender.request() {
            session.respond(&request, &response);
        }
        let number = prompt.number;
        session
            .prompts
            .remember(number, prompt.key, response.clone());
    }
}

/// Ends a turn that was running when the last owner stopped, and says so in the log. Its prompt is not run again, since
/// the agent may have acted on it.
fn cut_turn(session: &mut SharedSession, cut: PromptRecord, unfinished: Vec<(SessionId, String)>) {
    for (of, tool_call) in unfinished {
        let update = json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": tool_call,
            "status": "failed",
        });
        let params = json!({ "sessionId": of, "update": update });
        session.push(Audience::All, notification("session/update", &params));
    }
    push_notice(session, TURN_CUT);
    let mut error = jsonrpc::Error::internal(TURN_CUT);
    error.data = Some(json!({ "live": "turnCut" }));
    let response = Err(error);
    session.prompt_changed(PromptRecord {
        state: PromptState::Ended,
        params: String::new(),
        response: Some(write_response(&response)),
        ..cut.clone()
    });
    let number = PromptNumber(cut.number);
    session.prompts.remember(number, cut.key, response);
}

/// Appends a text of this server to the log.
fn push_notice(session: &mut SharedSession, text: &str) {
    let update = json!({
        "sessionUpdate": "agent_message_chunk",
        "content": { "type": "text", "text": format!("\n\n[{text}]\n") },
        "_meta": { "live": { "isNotice": true } },
    });
    let params = json!({ "sessionId": session.id, "update": update });
    session.push(Audience::All, notification("session/update", &params));
}

/// Returns the tool calls that have not ended, with their sessions.
fn unfinished_tool_calls(lines: &[(u64, u64, LiveLine)]) -> Vec<(SessionId, String)> {
    let mut unfinished: HashMap<String, SessionId> = HashMap::new();
    for (_, _, line) in lines {
        // Most lines are of other kinds, and need not be parsed.
        if memchr::memmem::find(line, b"\"toolCallId\"").is_none() {
            continue;
        }
        let Ok(ToolCallLine { params }) = serde_json::from_slice(line) else {
            continue;
        };
        let update = params.update;
        let Some(id) = update.tool_call_id else {
            continue;
        };
        match (update.session_update.as_str(), update.status.as_deref()) {
            ("tool_call" | "tool_call_update", Some("completed" | "failed")) => {
                unfinished.remove(&id);
            }
            ("tool_call", _) => {
                unfinished.insert(id, params.session_id);
            }
            _ => {}
        }
    }
    let mut unfinished: Vec<_> = unfinished.into_iter().map(|(id, of)| (of, id)).collect();
    unfinished.sort();
    unfinished
}
