//! The host that a check provides to the agent under test: files, terminals and answers to permission requests.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use acp::v1::{
    CreateTerminalRequest, KillTerminalRequest, ReadTextFileRequest, ReleaseTerminalRequest,
    TerminalOutputRequest, WaitForTerminalExitRequest, WriteTextFileRequest,
};
use acp_host::{HostTerminals, SessionTerminals};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// The maximum number of responses waiting to be sent.
const MAX_WAITING_RESPONSES: usize = 64;

/// How a check answers permission requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PermissionReply {
    /// Choose the first option that allows the action.
    #[default]
    Allow,
    /// Choose the first option that rejects the action.
    Reject,
    /// Leave the request pending. The check responds later or cancels the turn.
    Hold,
    /// Respond that the turn was cancelled.
    Cancel,
}

/// The files, terminals and permission answers that a check provides to the agent under test.
pub struct CheckHost {
    /// How to answer permission requests.
    pub permission_reply: PermissionReply,
    /// The methods whose requests the check itself answers.
    pub held_methods: Vec<&'static str>,
    /// The ids of all terminals created so far.
    pub created_terminals: Vec<String>,
    terminals: HostTerminals,
    sessions: HashMap<String, Arc<SessionTerminals>>,
    answers: mpsc::Sender<(Value, Result<Value, Value>)>,
    finished: mpsc::Receiver<(Value, Result<Value, Value>)>,
}

impl CheckHost {
    pub(super) fn new() -> Self {
        let (answers, finished) = mpsc::channel(MAX_WAITING_RESPONSES);
        Self {
            permission_reply: PermissionReply::default(),
            held_methods: Vec::new(),
            created_terminals: Vec::new(),
            terminals: HostTerminals::new(),
            sessions: HashMap::new(),
            answers,
            finished,
        }
    }

    /// Registers a session so that it can have terminals.
    pub(super) fn open_session(&mut self, id: &str, cwd: PathBuf) {
        let terminals = self.terminals.session(cwd, |_| {});
        self.sessions.insert(id.to_owned(), Arc::new(terminals));
    }

    /// Waits until the host has finished handling a request, and returns the request's id and the response. Cancel
    /// safe.
    pub(super) async fn next_response(&mut self) -> Option<(Value, Result<Value, Value>)> {
        let finished = self.finished.recv().await;
        if let Some((_, Ok(response))) = &finished {
            let terminal = response["terminalId"].as_str();
            self.created_terminals.extend(terminal.map(str::to_owned));
        }
        finished
    }

    /// Starts to handle a request from the agent. Returns `false` if the check itself must respond.
    pub(super) fn serve(&self, id: &Value, method: &str, params: &Value) -> bool {
        if self.held_methods.contains(&method) {
            return false;
        }
        let (id, params) = (id.clone(), params.clone());
        let answers = self.answers.clone();
        let session = params.get("sessionId").and_then(Value::as_str);
        let terminals = session.and_then(|id| self.sessions.get(id)).cloned();
        macro_rules! terminal {
            ($request:ty, $method:ident) => {
                tokio::spawn(async move {
                    let response = match (parse_params::<$request>(params), terminals) {
                        (Ok(request), Some(terminals)) => {
                            to_json_result(terminals.$method(&request).await)
                        }
                        (Ok(request), None) => {
                            let message = format!("unknown session: {}", request.session_id);
                            Err(error_object(-32602, message))
                        }
                        (Err(error_object), _) => Err(error_object),
                    };
                    let _ = answers.send((id, response)).await;
                })
            };
        }
        match method {
            "session/request_permission" => {
                let wanted = match self.permission_reply {
                    PermissionReply::Hold => return false,
                    PermissionReply::Allow => "allow",
                    PermissionReply::Reject => "reject",
                    // No option has a kind that starts with this.
                    PermissionReply::Cancel => "cancelled",
                };
                let response = Ok(permission_outcome(&params, wanted));
                tokio::spawn(async move { answers.send((id, response)).await.is_ok() });
            }
            "elicitation/create" => {
                let response = Ok(json!({"action": "decline"}));
                tokio::spawn(async move { answers.send((id, response)).await.is_ok() });
            }
            "fs/read_text_file" | "fs/write_text_file" => {
                let reads = method == "fs/read_text_file";
                tokio::task::spawn_blocking(move || {
                    let response = if reads {
                        read_file(params)
                    } else {
                        write_file(params)
                    };
                    let _ = answers.blocking_send((id, response));
                });
            }
            "terminal/create" => drop(terminal!(CreateTerminalRequest, create)),
            "terminal/output" => drop(terminal!(TerminalOutputRequest, output)),
            "terminal/wait_for_exit" => {
                drop(terminal!(WaitForTerminalExitRequest, wait_for_exit));
            }
            "terminal/kill" => drop(terminal!(KillTerminalRequest, kill)),
            "terminal/release" => drop(terminal!(ReleaseTerminalRequest, release)),
            _ => {
                let error =
                    json!({"code": -32601, "message": format!("method not found: {method}")});
                tokio::spawn(async move { answers.send((id, Err(error))).await.is_ok() });
            }
        }
        true
    }

    pub(super) async fn end(&self) {
        self.terminals.close_all().await;
    }
}

/// Returns a response to a permission request that chooses the first option whose kind starts with `wanted`.
fn permission_outcome(params: &Value, wanted: &str) -> Value {
    let options = params.get("options").and_then(Value::as_array);
    let option = options.into_iter().flatten().find(|option| {
        let kind = option.get("kind").and_then(Value::as_str);
        kind.is_some_and(|kind| kind.starts_with(wanted))
    });
    match option.and_then(|option| option.get("optionId")) {
        Some(id) => json!({"outcome": {"outcome": "selected", "optionId": id}}),
        None => json!({"outcome": {"outcome": "cancelled"}}),
    }
}

fn error_object(code: i64, message: impl std::fmt::Display) -> Value {
    json!({"code": code, "message": message.to_string()})
}

fn parse_params<T: DeserializeOwned>(params: Value) -> Result<T, Value> {
    serde_json::from_value(params).map_err(|e| error_object(-32602, e))
}

fn to_json_result<T: Serialize>(answer: Result<T, acp::jsonrpc::Error>) -> Result<Value, Value> {
    match answer {
        Ok(response) => serde_json::to_value(response).map_err(|e| error_object(-32603, e)),
        Err(e) => Err(serde_json::to_value(e).unwrap_or_else(|e| error_object(-32603, e))),
    }
}

fn read_file(params: Value) -> Result<Value, Value> {
    let request: ReadTextFileRequest = parse_params(params)?;
    let text = std::fs::read_to_string(&request.path).map_err(|e| {
        let code = match e.kind() {
            std::io::ErrorKind::NotFound => -32002,
            _ => -32603,
        };
        error_object(code, format!("{}: {e}", request.path))
    })?;
    let from = request.line.unwrap_or(1).max(1) as usize - 1;
    let most = request.limit.map_or(usize::MAX, |limit| limit as usize);
    let text: String = text.split_inclusive('\n').skip(from).take(most).collect();
    Ok(json!({"content": text}))
}

fn write_file(params: Value) -> Result<Value, Value> {
    let request: WriteTextFileRequest = parse_params(params)?;
    std::fs::write(&request.path, request.content)
        .map_err(|e| error_object(-32603, format!("{}: {e}", request.path)))?;
    Ok(json!({}))
}
