//! The sessions of a trace, built from their messages as a client does it: with the library's own [`Thread`].

use std::collections::HashMap;

use acp::v1::{self, TerminalExitStatus, TerminalId};
use acp::v2;
use acp::{Thread, Update};
use acp_wire::jsonrpc::{self, Incoming, RequestId};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::format::{RecordBody, TraceRecord};
use acp_rules::Side;

/// The limit of shown sessions.
const SESSIONS: usize = 256;

/// The limit of remembered pending requests.
const PENDING: usize = 16 * 1024;

/// A position in the trace.
#[derive(Debug, Clone, Copy)]
pub(super) struct TracePosition {
    /// The record, counting from 0.
    pub(super) row: usize,
    /// Microseconds since the start.
    pub(super) time_us: u64,
}

/// The end of a turn.
#[derive(Debug)]
pub(super) struct TurnEnd {
    /// The number of items at that time.
    pub(super) items: usize,
    pub(super) reason: String,
    pub(super) failed: bool,
    pub(super) position: TracePosition,
}

/// A permission request for a tool call.
#[derive(Debug)]
pub(super) struct TracedQuestion {
    id: RequestId,
    pub(super) options: Vec<String>,
    ids: Vec<String>,
    /// The user's answer; `None` while it is pending.
    pub(super) answer: Option<String>,
    pub(super) position: TracePosition,
}

/// A session as the user saw it.
#[derive(Debug, Default)]
pub(super) struct TracedSession {
    pub(super) id: String,
    pub(super) thread: Thread,
    /// Where each item started, including items that the thread has dropped.
    pub(super) item_positions: Vec<TracePosition>,
    pub(super) turn_ends: Vec<TurnEnd>,
    /// The permission requests, by tool call.
    pub(super) questions: HashMap<String, Vec<TracedQuestion>>,
    /// The last known output of each client terminal.
    outputs: HashMap<TerminalId, String>,
    has_pending_prompt: bool,
}

impl TracedSession {
    fn item_count(&self) -> usize {
        self.thread.truncation().items + self.thread.items().len()
    }

    fn end_turn(&mut self, how: String, failed: bool, place: TracePosition) {
        self.has_pending_prompt = false;
        let items = self.item_count();
        self.turn_ends.push(TurnEnd {
            items,
            reason: how,
            failed,
            position: place,
        });
    }
}

/// A pending request.
#[derive(Debug)]
struct TracedRequest {
    method: String,
    session: usize,
    params: Value,
}

#[derive(Debug, Default)]
pub(super) struct TracedSessions {
    all: Vec<TracedSession>,
    indices: HashMap<String, usize>,
    pending_requests: HashMap<(Side, RequestId), TracedRequest>,
    is_v2: bool,
    has_omitted: bool,
}

/// The params that name a session.
#[derive(Deserialize)]
struct SessionParam {
    #[serde(rename = "sessionId")]
    session: String,
}

impl TracedSessions {
    pub(super) fn iter(&self) -> impl Iterator<Item = &TracedSession> {
        self.all.iter()
    }

    /// Returns a note if there are more sessions than are shown.
    pub(super) fn left_out(&self) -> Option<String> {
        self.has_omitted.then(|| {
            format!("Only the first {SESSIONS} sessions are shown here; all messages are included.")
        })
    }

    /// Processes a record, which is number `row`, counting from 0.
    pub(super) fn record(&mut self, record: &TraceRecord, row: usize) {
        let RecordBody::Message { from, message, .. } = &record.body else {
            return;
        };
        let place = TracePosition {
            row,
            time_us: record.time_us,
        };
        match jsonrpc::parse(message.get().as_bytes()) {
            Ok(Incoming::Request { id, method, params }) => {
                self.handle_request(*from, id, &method, params, place);
            }
            Ok(Incoming::Notification { method, params }) => {
                if let Some(params) = params {
                    self.handle_notification(*from, &method, params, place);
                }
            }
            Ok(Incoming::Response { id, result }) => {
                if let Some(asked) = self.pending_requests.remove(&(from.other(), id.clone())) {
                    let result = result.map(parse_value);
                    let result = result.map_err(|error| error.message.to_string());
                    self.handle_response(&asked, &id, result, place);
                }
            }
            Err(_) => {}
        }
    }

    fn find_or_add(&mut self, id: &str) -> Option<usize> {
        if let Some(&number) = self.indices.get(id) {
            return Some(number);
        }
        let number = self.all.len();
        if number >= SESSIONS {
            self.has_omitted = true;
            return None;
        }
        self.all.push(TracedSession {
            id: id.to_owned(),
            ..TracedSession::default()
        });
        self.indices.insert(id.to_owned(), number);
        Some(number)
    }

    /// Changes the session, and records where its new items started.
    fn change_session(
        &mut self,
        number: usize,
        place: TracePosition,
        change: impl FnOnce(&mut TracedSession),
    ) {
        if let Some(session) = self.all.get_mut(number) {
            change(session);
            let items = session.item_count();
            session
                .item_positions
                .resize(items.max(session.item_positions.len()), place);
        }
    }

    fn handle_request(
        &mut self,
        from: Side,
        id: RequestId,
        method: &str,
        params: Option<&RawValue>,
        place: TracePosition,
    ) {
        let params = params.map(parse_value).unwrap_or_default();
        // For a request that opens a session, only the response gives the session's id.
        let number = params["sessionId"]
            .as_str()
            .and_then(|id| self.find_or_add(id))
            .unwrap_or(usize::MAX);
        match (from, method) {
            (Side::Client, "session/prompt") => {
                let prompt = params["prompt"].as_array().into_iter().flatten();
                let prompt: Vec<v1::ContentBlock> = prompt.filter_map(read_value).collect();
                self.change_session(number, place, |session| {
                    session.has_pending_prompt = true;
                    session.thread.begin_turn(&prompt);
                });
            }
            (Side::Agent, "session/request_permission") => {
                self.add_question(number, &id, &params, place);
            }
            (Side::Agent, "terminal/release") => {
                if let Some(terminal) = terminal_id(&params) {
                    self.change_session(number, place, |session| {
                        session.thread.release_terminal(&terminal);
                    });
                }
            }
            _ => {}
        }
        let matters = matches!(
            method,
            "initialize"
                | "session/new"
                | "session/fork"
                | "session/prompt"
                | "session/request_permission"
        ) || method.starts_with("terminal/");
        if matters && self.pending_requests.len() < PENDING {
            let asked = TracedRequest {
                method: method.to_owned(),
                session: number,
                params,
            };
            self.pending_requests.insert((from, id), asked);
        }
    }

    fn add_question(
        &mut self,
        number: usize,
        id: &RequestId,
        params: &Value,
        place: TracePosition,
    ) {
        let call = &params["toolCall"];
        let call = if call.is_null() {
            &params["subject"]["toolCall"]
        } else {
            call
        };
        let texts = |name: &str| -> Vec<String> {
            let options = params["options"].as_array().into_iter().flatten();
            options
                .map(|option| option[name].as_str().unwrap_or_default().to_owned())
                .collect()
        };
        let question = TracedQuestion {
            id: id.clone(),
            options: texts("name"),
            ids: texts("optionId"),
            answer: None,
            position: place,
        };
        let version2 = self.is_v2;
        self.change_session(number, place, |session| {
            if version2 {
                if let Some(update) = read_value::<v2::ToolCallUpdate>(call) {
                    session.thread.apply_permission_request(&update.into());
                }
            } else if let Some(update) = read_value::<v1::ToolCallUpdate>(call) {
                session.thread.apply_permission_request(&update.into());
            }
            let call = call["toolCallId"].as_str().unwrap_or_default().to_owned();
            session.questions.entry(call).or_default().push(question);
        });
    }

    fn handle_notification(
        &mut self,
        from: Side,
        method: &str,
        params: &RawValue,
        place: TracePosition,
    ) {
        let named = serde_json::from_str::<SessionParam>(params.get());
        let Some(number) = named
            .ok()
            .and_then(|named| self.find_or_add(&named.session))
        else {
            return;
        };
        match (from, method) {
            (Side::Client, "session/cancel") => {
                self.change_session(number, place, |session| session.thread.cancel_turn());
            }
            (Side::Agent, "session/update") if self.is_v2 => {
                if let Ok(told) =
                    serde_json::from_str::<v2::UpdateSessionNotification>(params.get())
                {
                    self.change_session(number, place, |session| {
                        let update = Update::from(told.update);
                        session.thread.apply(&update);
                        if let Update::StateUpdate(state) = &update {
                            session.apply_state(state, place);
                        }
                    });
                }
            }
            (Side::Agent, "session/update") => {
                if let Ok(told) = serde_json::from_str::<v1::SessionNotification>(params.get()) {
                    let update = Update::from(told.update);
                    self.change_session(number, place, |session| session.thread.apply(&update));
                }
            }
            _ => {}
        }
    }

    fn handle_response(
        &mut self,
        asked: &TracedRequest,
        id: &RequestId,
        result: Result<Value, String>,
        place: TracePosition,
    ) {
        let none = Value::Null;
        let told = result.as_ref().unwrap_or(&none);
        match asked.method.as_str() {
            "initialize" => self.is_v2 = told["protocolVersion"].as_u64() >= Some(2),
            "session/new" | "session/fork" => {
                if let Some(id) = told["sessionId"].as_str() {
                    self.find_or_add(id);
                }
            }
            "session/prompt" => self.finish_prompt(asked.session, &result, place),
            "session/request_permission" => {
                self.change_session(asked.session, place, |session| {
                    session.answer_question(id, &result);
                });
            }
            "terminal/create" => {
                let Some(terminal) = terminal_id(told) else {
                    return;
                };
                let command = asked.params["command"].as_str().into_iter();
                let args = asked.params["args"].as_array().into_iter().flatten();
                let words: Vec<&str> = command.chain(args.filter_map(Value::as_str)).collect();
                let cwd = asked.params["cwd"].as_str();
                self.change_session(asked.session, place, |session| {
                    let thread = &mut session.thread;
                    thread.start_terminal(&terminal, &words.join(" "), cwd);
                });
            }
            "terminal/output" | "terminal/wait_for_exit" => {
                let Some(terminal) = terminal_id(&asked.params) else {
                    return;
                };
                let status = match asked.method.as_str() {
                    "terminal/output" => &told["exitStatus"],
                    _ => told,
                };
                let status = read_value::<TerminalExitStatus>(status);
                self.change_session(asked.session, place, |session| {
                    if let Some(output) = told["output"].as_str() {
                        session.update_output(&terminal, output);
                    }
                    if let Some(status) = status {
                        session.thread.exit_terminal(&terminal, &status);
                    }
                });
            }
            _ => {}
        }
    }

    fn finish_prompt(
        &mut self,
        number: usize,
        result: &Result<Value, String>,
        place: TracePosition,
    ) {
        let version2 = self.is_v2;
        self.change_session(number, place, |session| match result {
            Ok(result) if version2 => {
                if let Some(id) = result["messageId"].as_str() {
                    session.thread.confirm_prompt_echo(&id.into());
                }
            }
            Ok(result) => {
                let reason = result["stopReason"].as_str().unwrap_or("ended");
                session.thread.end_turn(Some(&reason.into()));
                session.end_turn(reason.to_owned(), false, place);
            }
            Err(error) => {
                session.thread.end_turn(None);
                session.end_turn(format!("failed: {error}"), true, place);
            }
        });
    }
}

impl TracedSession {
    /// Applies a version 2 state. The agent reports that it is idle when a turn has ended.
    fn apply_state(&mut self, state: &v2::StateUpdate, place: TracePosition) {
        let v2::StateUpdate::Idle(idle) = state else {
            return;
        };
        if self.has_pending_prompt {
            let reason = idle.stop_reason.as_ref().map(|reason| reason.as_str());
            let reason = reason.unwrap_or("ended").to_owned();
            self.thread.end_turn(Some(&reason.as_str().into()));
            self.end_turn(reason, false, place);
        }
    }

    fn answer_question(&mut self, id: &RequestId, result: &Result<Value, String>) {
        let all = self.questions.values_mut().flatten();
        let Some(question) = all
            .filter(|question| question.answer.is_none())
            .find(|question| question.id == *id)
        else {
            return;
        };
        let answer = match result {
            Ok(result) => {
                let outcome = &result["outcome"];
                let chosen = outcome["optionId"].as_str();
                let at = chosen.and_then(|chosen| question.ids.iter().position(|id| id == chosen));
                let name = at.and_then(|at| question.options.get(at)).cloned();
                name.or(chosen.map(str::to_owned)).unwrap_or_else(|| {
                    let outcome = outcome["outcome"].as_str();
                    outcome.unwrap_or_default().to_owned()
                })
            }
            Err(error) => error.clone(),
        };
        question.answer = Some(answer);
    }

    /// Updates the output of a client terminal. The client sends the agent all of it each time, or its end.
    fn update_output(&mut self, terminal: &TerminalId, output: &str) {
        let before = self.outputs.get(terminal).map_or("", String::as_str);
        let more = output.strip_prefix(before).unwrap_or(output);
        self.thread.append_terminal_output(terminal, more);
        self.outputs.insert(terminal.clone(), output.to_owned());
    }
}

fn terminal_id(value: &Value) -> Option<TerminalId> {
    value["terminalId"].as_str().map(Into::into)
}

fn parse_value(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

fn read_value<T: for<'de> Deserialize<'de>>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
}
