//! The sessions of a trace, put together from their messages as a client does: by the library's own [`Thread`].

use std::collections::HashMap;

use acp::v1::{self, TerminalExitStatus, TerminalId};
use acp::v2;
use acp::{Thread, Update};
use acp_wire::jsonrpc::{self, Incoming, RequestId};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::format::{Record, What};
use acp_rules::Side;

/// How many sessions are told.
const SESSIONS: usize = 256;

/// How many requests are remembered that wait for their answers.
const PENDING: usize = 16 * 1024;

/// Where something is in the trace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The record, counting from 0.
    pub(super) row: usize,
    /// Microseconds since the start.
    pub(super) at: u64,
}

/// The end of a turn.
#[derive(Debug)]
pub(super) struct End {
    /// How many items there were.
    pub(super) items: usize,
    pub(super) how: String,
    pub(super) failed: bool,
    pub(super) place: Place,
}

/// What the person was asked about a tool call.
#[derive(Debug)]
pub(super) struct Question {
    id: RequestId,
    pub(super) options: Vec<String>,
    ids: Vec<String>,
    /// What they answered; `None` before they did.
    pub(super) answer: Option<String>,
    pub(super) place: Place,
}

/// A session as a person saw it.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) thread: Thread,
    /// Where each item began, those that the thread has dropped among them.
    pub(super) begun: Vec<Place>,
    pub(super) ends: Vec<End>,
    /// By tool call.
    pub(super) questions: HashMap<String, Vec<Question>>,
    /// What was last seen of terminals that the client runs.
    outputs: HashMap<TerminalId, String>,
    prompting: bool,
}

impl Session {
    fn items(&self) -> usize {
        self.thread.dropped().items + self.thread.items().len()
    }

    fn end(&mut self, how: String, failed: bool, place: Place) {
        self.prompting = false;
        let items = self.items();
        self.ends.push(End {
            items,
            how,
            failed,
            place,
        });
    }
}

/// A request that waits for its answer.
#[derive(Debug)]
struct Asked {
    method: String,
    session: usize,
    params: Value,
}

#[derive(Debug, Default)]
pub(super) struct Sessions {
    all: Vec<Session>,
    known: HashMap<String, usize>,
    asked: HashMap<(Side, RequestId), Asked>,
    version2: bool,
    left_out: bool,
}

/// What names a session.
#[derive(Deserialize)]
struct Named {
    #[serde(rename = "sessionId")]
    session: String,
}

impl Sessions {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.all.iter()
    }

    /// That there are more sessions than are told, if there are.
    pub(super) fn left_out(&self) -> Option<String> {
        self.left_out.then(|| {
            format!("Only the first {SESSIONS} sessions are told here; the messages have all.")
        })
    }

    /// Takes a record in; it is this one, counting from 0.
    pub(super) fn record(&mut self, record: &Record, row: usize) {
        let What::Message { from, message, .. } = &record.what else {
            return;
        };
        let place = Place { row, at: record.at };
        match jsonrpc::parse(message.get().as_bytes()) {
            Ok(Incoming::Request { id, method, params }) => {
                self.request(*from, id, &method, params, place);
            }
            Ok(Incoming::Notification { method, params }) => {
                if let Some(params) = params {
                    self.notification(*from, &method, params, place);
                }
            }
            Ok(Incoming::Response { id, result }) => {
                if let Some(asked) = self.asked.remove(&(from.other(), id.clone())) {
                    let result = result.map(value);
                    let result = result.map_err(|error| error.message.to_string());
                    self.answer(&asked, &id, result, place);
                }
            }
            Err(_) => {}
        }
    }

    fn number(&mut self, id: &str) -> Option<usize> {
        if let Some(&number) = self.known.get(id) {
            return Some(number);
        }
        let number = self.all.len();
        if number >= SESSIONS {
            self.left_out = true;
            return None;
        }
        self.all.push(Session {
            id: id.to_owned(),
            ..Session::default()
        });
        self.known.insert(id.to_owned(), number);
        Some(number)
    }

    /// Changes the session, and remembers where its new items began.
    fn change(&mut self, number: usize, place: Place, change: impl FnOnce(&mut Session)) {
        if let Some(session) = self.all.get_mut(number) {
            change(session);
            let items = session.items();
            session.begun.resize(items.max(session.begun.len()), place);
        }
    }

    fn request(
        &mut self,
        from: Side,
        id: RequestId,
        method: &str,
        params: Option<&RawValue>,
        place: Place,
    ) {
        let params = params.map(value).unwrap_or_default();
        // Of session setup only the answer says which session it is.
        let number = params["sessionId"]
            .as_str()
            .and_then(|id| self.number(id))
            .unwrap_or(usize::MAX);
        match (from, method) {
            (Side::Client, "session/prompt") => {
                let prompt = params["prompt"].as_array().into_iter().flatten();
                let prompt: Vec<v1::ContentBlock> = prompt.filter_map(read).collect();
                self.change(number, place, |session| {
                    session.prompting = true;
                    session.thread.begin_turn(&prompt);
                });
            }
            (Side::Agent, "session/request_permission") => {
                self.permission(number, &id, &params, place);
            }
            (Side::Agent, "terminal/release") => {
                if let Some(terminal) = terminal(&params) {
                    self.change(number, place, |session| {
                        session.thread.terminal_released(&terminal);
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
        if matters && self.asked.len() < PENDING {
            let asked = Asked {
                method: method.to_owned(),
                session: number,
                params,
            };
            self.asked.insert((from, id), asked);
        }
    }

    fn permission(&mut self, number: usize, id: &RequestId, params: &Value, place: Place) {
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
        let question = Question {
            id: id.clone(),
            options: texts("name"),
            ids: texts("optionId"),
            answer: None,
            place,
        };
        let version2 = self.version2;
        self.change(number, place, |session| {
            if version2 {
                if let Some(update) = read::<v2::ToolCallUpdate>(call) {
                    session.thread.permission_requested(&update.into());
                }
            } else if let Some(update) = read::<v1::ToolCallUpdate>(call) {
                session.thread.permission_requested(&update.into());
            }
            let call = call["toolCallId"].as_str().unwrap_or_default().to_owned();
            session.questions.entry(call).or_default().push(question);
        });
    }

    fn notification(&mut self, from: Side, method: &str, params: &RawValue, place: Place) {
        let named = serde_json::from_str::<Named>(params.get());
        let Some(number) = named.ok().and_then(|named| self.number(&named.session)) else {
            return;
        };
        match (from, method) {
            (Side::Client, "session/cancel") => {
                self.change(number, place, |session| session.thread.cancel_turn());
            }
            (Side::Agent, "session/update") if self.version2 => {
                if let Ok(told) =
                    serde_json::from_str::<v2::UpdateSessionNotification>(params.get())
                {
                    self.change(number, place, |session| {
                        let update = Update::from(told.update);
                        session.thread.apply(&update);
                        if let Update::StateUpdate(state) = &update {
                            session.state(state, place);
                        }
                    });
                }
            }
            (Side::Agent, "session/update") => {
                if let Ok(told) = serde_json::from_str::<v1::SessionNotification>(params.get()) {
                    let update = Update::from(told.update);
                    self.change(number, place, |session| session.thread.apply(&update));
                }
            }
            _ => {}
        }
    }

    fn answer(
        &mut self,
        asked: &Asked,
        id: &RequestId,
        result: Result<Value, String>,
        place: Place,
    ) {
        let none = Value::Null;
        let told = result.as_ref().unwrap_or(&none);
        match asked.method.as_str() {
            "initialize" => self.version2 = told["protocolVersion"].as_u64() >= Some(2),
            "session/new" | "session/fork" => {
                if let Some(id) = told["sessionId"].as_str() {
                    self.number(id);
                }
            }
            "session/prompt" => self.prompt_answered(asked.session, &result, place),
            "session/request_permission" => {
                self.change(asked.session, place, |session| {
                    session.answered(id, &result);
                });
            }
            "terminal/create" => {
                let Some(terminal) = terminal(told) else {
                    return;
                };
                let command = asked.params["command"].as_str().into_iter();
                let args = asked.params["args"].as_array().into_iter().flatten();
                let words: Vec<&str> = command.chain(args.filter_map(Value::as_str)).collect();
                let cwd = asked.params["cwd"].as_str();
                self.change(asked.session, place, |session| {
                    let thread = &mut session.thread;
                    thread.terminal_started(&terminal, &words.join(" "), cwd);
                });
            }
            "terminal/output" | "terminal/wait_for_exit" => {
                let Some(terminal) = terminal(&asked.params) else {
                    return;
                };
                let status = match asked.method.as_str() {
                    "terminal/output" => &told["exitStatus"],
                    _ => told,
                };
                let status = read::<TerminalExitStatus>(status);
                self.change(asked.session, place, |session| {
                    if let Some(output) = told["output"].as_str() {
                        session.printed(&terminal, output);
                    }
                    if let Some(status) = status {
                        session.thread.terminal_exited(&terminal, &status);
                    }
                });
            }
            _ => {}
        }
    }

    fn prompt_answered(&mut self, number: usize, result: &Result<Value, String>, place: Place) {
        let version2 = self.version2;
        self.change(number, place, |session| match result {
            Ok(result) if version2 => {
                if let Some(id) = result["messageId"].as_str() {
                    session.thread.prompt_inserted(&id.into());
                }
            }
            Ok(result) => {
                let reason = result["stopReason"].as_str().unwrap_or("ended");
                session.thread.end_turn(Some(&reason.into()));
                session.end(reason.to_owned(), false, place);
            }
            Err(error) => {
                session.thread.end_turn(None);
                session.end(format!("failed: {error}"), true, place);
            }
        });
    }
}

impl Session {
    /// In version 2 the agent says that it is idle when a turn has ended.
    fn state(&mut self, state: &v2::StateUpdate, place: Place) {
        let v2::StateUpdate::Idle(idle) = state else {
            return;
        };
        if self.prompting {
            let reason = idle.stop_reason.as_ref().map(|reason| reason.as_str());
            let reason = reason.unwrap_or("ended").to_owned();
            self.thread.end_turn(Some(&reason.as_str().into()));
            self.end(reason, false, place);
        }
    }

    fn answered(&mut self, id: &RequestId, result: &Result<Value, String>) {
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

    /// What an agent is told of a terminal is all that there is each time, or the end of it.
    fn printed(&mut self, terminal: &TerminalId, output: &str) {
        let before = self.outputs.get(terminal).map_or("", String::as_str);
        let more = output.strip_prefix(before).unwrap_or(output);
        self.thread.terminal_output(terminal, more);
        self.outputs.insert(terminal.clone(), output.to_owned());
    }
}

fn terminal(value: &Value) -> Option<TerminalId> {
    value["terminalId"].as_str().map(Into::into)
}

fn value(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

fn read<T: for<'de> Deserialize<'de>>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
}
