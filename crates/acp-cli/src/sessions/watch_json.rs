//! `acp sessions watch --format json`: what happens in a session, one message per line.
//!
//! The messages are printed as they came, so they are not parsed into types that might lose something.

use acp::CloseReason;
use acp::jsonrpc::{self, Incoming, RequestId};
use acp_config::SessionNames;
use acp_host::AgentProcess;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};

use super::cursor::{CursorTracker, InvalidCursor, SeenBefore, WatchCursor};
use crate::exit::CommandExit;
use crate::screen::{TerminalScreen, print};
use crate::signals::Signals;
use crate::start::{EXIT_GRACE_PERIOD, StartFailure, StartTarget, is_not_found};

const INITIALIZE: RequestId = RequestId::Number(0);
const OPEN: RequestId = RequestId::Number(1);
const STATUS: RequestId = RequestId::Number(2);

/// A line of the output.
#[derive(Serialize)]
struct WatchedMessage<'a> {
    /// Where to go on after this message. Only a live session has positions.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    method: &'a str,
    params: &'a RawValue,
}

/// The params of `_live/position`.
#[derive(Deserialize)]
struct PositionParams {
    position: Option<u64>,
    log: Option<String>,
}

/// The response to `initialize`, as far as it matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult {
    protocol_version: u64,
    #[serde(default)]
    agent_capabilities: Value,
}

/// A script that watches a session.
pub(super) struct JsonWatch<'a> {
    pub(super) target: StartTarget<'a>,
    /// The session, as given on the command line.
    pub(super) name_or_id: &'a str,
    pub(super) since: Option<WatchCursor>,
}

impl JsonWatch<'_> {
    /// Prints messages until the connection is closed or the user presses Ctrl-C.
    pub(super) async fn run(&self) -> Result<(), CommandExit> {
        let mut signals = Signals::listen()
            .map_err(|e| CommandExit::failed(format!("cannot listen for signals: {e}")))?;
        let screen = TerminalScreen::new(false);
        let process = self
            .target
            .spawn_command(&self.target.command()?, &screen)?;
        let watched = tokio::select! {
            watched = self.watch(&process) => watched,
            _ = signals.next() => Err(CommandExit::CANCELLED.into()),
        };
        let exit = match watched {
            Ok(()) => None,
            Err(failure) => Some(failure.exit(&self.target, &process).await),
        };
        tokio::select! {
            _ = process.shutdown(EXIT_GRACE_PERIOD) => {}
            _ = signals.next() => {}
        }
        exit.map_or(Ok(()), Err)
    }

    async fn watch(&self, process: &AgentProcess) -> Result<(), StartFailure> {
        let (mut stdin, stdout) = process
            .take_stdio()
            .ok_or_else(|| CommandExit::agent_failed("cannot open the agent's stdin and stdout"))?;
        let mut session = WatchedSession {
            watch: self,
            id: self.session_id()?,
            tracker: CursorTracker::new(self.since.as_ref()),
            has_positions: false,
            pending: None,
        };
        let params = json!({
            "protocolVersion": 1,
            "clientInfo": { "name": "acp", "title": "acp", "version": env!("CARGO_PKG_VERSION") },
            "clientCapabilities": {},
            "_meta": { "live": { "linePositions": true } },
        });
        send_request(&mut stdin, &INITIALIZE, "initialize", &params).await?;
        let mut lines = BufReader::new(stdout);
        let mut line = Vec::new();
        loop {
            line.clear();
            match lines.read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => return Err(acp::Error::Closed(CloseReason::Peer).into()),
                Ok(_) => session.receive(&line, &mut stdin).await?,
            }
        }
    }

    fn session_id(&self) -> Result<String, CommandExit> {
        let names = SessionNames::open(self.target.agent.storage_key(), self.target.cwd);
        let named = names.find(self.name_or_id)?;
        Ok(named.map_or_else(|| self.name_or_id.to_owned(), |named| named.id))
    }

    pub(super) fn invalid_cursor_exit(&self) -> CommandExit {
        CommandExit::failed(format!(
            "invalid cursor: the log of session {} does not contain it any more; watch the session from the beginning, without --since",
            self.name_or_id
        ))
    }
}

/// The session, as far as it has been read.
struct WatchedSession<'a> {
    watch: &'a JsonWatch<'a>,
    id: String,
    tracker: CursorTracker,
    /// Whether the server tells the position after each message.
    has_positions: bool,
    /// A message whose position is not known yet.
    pending: Option<(String, Box<RawValue>)>,
}

impl WatchedSession<'_> {
    async fn receive(
        &mut self,
        line: &[u8],
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), StartFailure> {
        match jsonrpc::parse(line) {
            Ok(Incoming::Response { id, result }) if id == INITIALIZE => {
                self.initialized(result.map_err(acp::Error::Rpc)?, to).await
            }
            Ok(Incoming::Response { id, result }) if id == OPEN => match result {
                Ok(_) if self.has_positions => {
                    let params = json!({ "sessionId": self.id });
                    send_request(to, &STATUS, "_live/status", &params).await
                }
                Ok(_) => Ok(()),
                Err(error) => Err(self.open_failure(error)),
            },
            // Without a status, the script still gets everything that happens.
            Ok(Incoming::Response {
                id,
                result: Ok(result),
            }) if id == STATUS => self.show_status(result),
            Ok(Incoming::Response { .. }) => Ok(()),
            Ok(Incoming::Notification { method, params }) => {
                let params = params.map_or_else(|| RawValue::NULL.to_owned(), ToOwned::to_owned);
                self.notified(&method, params)
            }
            Ok(Incoming::Request { id, method, .. }) => {
                let error = jsonrpc::Error::method_not_found(&method);
                let mut line = Vec::new();
                if jsonrpc::write_error(&mut line, &id, &error).is_ok() {
                    send(to, &line).await?;
                }
                Ok(())
            }
            // An agent's stdout may contain other text.
            Err(_) => Ok(()),
        }
    }

    /// Opens the session.
    async fn initialized(
        &mut self,
        result: &RawValue,
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), StartFailure> {
        let result: InitializeResult = serde_json::from_str(result.get())
            .map_err(|e| CommandExit::failed(format!("invalid response to initialize: {e}")))?;
        let agent = self.watch.target.agent.display_name();
        if result.protocol_version != 1 {
            let message = format!(
                "cannot watch sessions of {agent} as JSON: it does not speak version 1 of the protocol"
            );
            return Err(CommandExit::usage(message).into());
        }
        let offers = result.agent_capabilities;
        let is_live = offers["_meta"]["live"].is_object();
        self.has_positions = offers["_meta"]["live"]["linePositions"] == true;
        if is_live {
            // A server that does not know `shown` would ask this client, which answers nothing.
            let wanted = if self.has_positions { "shown" } else { "none" };
            let questions = json!({ "questions": wanted });
            let mut line = Vec::new();
            if jsonrpc::write_notification(&mut line, "_live/answers", &questions).is_ok() {
                send(to, &line).await?;
            }
        }
        let mut params = json!({
            "sessionId": self.id,
            "cwd": self.watch.target.cwd.to_string_lossy(),
            "mcpServers": [],
        });
        let Some(since) = &self.watch.since else {
            if offers["loadSession"] != true {
                let message =
                    format!("cannot watch sessions of {agent}: it does not support loadSession");
                return Err(CommandExit::usage(message).into());
            }
            return send_request(to, &OPEN, "session/load", &params).await;
        };
        if !self.has_positions {
            return Err(self.watch.invalid_cursor_exit().into());
        }
        params["_meta"] = json!({ "live": { "from": since.position, "log": since.log } });
        send_request(to, &OPEN, "session/resume", &params).await
    }

    fn open_failure(&self, error: jsonrpc::Error) -> StartFailure {
        let target = self.watch.target;
        let is_invalid = error.code == jsonrpc::Error::INVALID_PARAMS
            && error.message.contains("invalid cursor");
        let error = acp::Error::Rpc(error);
        let is_missing = is_not_found(&error);
        if self.watch.since.is_some() && (is_invalid || is_missing) {
            return self.watch.invalid_cursor_exit().into();
        }
        let agent = target.agent.display_name();
        if is_missing {
            let message = format!("session not found in {agent}: {}", self.id);
            return CommandExit::failed(message).into();
        }
        if error.is_auth_required() {
            let login = target.command_hint(&["login"]);
            let message = format!("{agent} requires a login; log in first: {login}");
            return CommandExit::failed(message).into();
        }
        error.into()
    }

    fn notified(&mut self, method: &str, params: Box<RawValue>) -> Result<(), StartFailure> {
        if method != "_live/position" {
            if !self.has_positions {
                return self.print(method, &params);
            }
            self.flush()?;
            self.pending = Some((method.to_owned(), params));
            return Ok(());
        }
        let read: PositionParams = serde_json::from_str(params.get())
            .map_err(|e| CommandExit::failed(format!("invalid position: {e}")))?;
        let Some(position) = read.position else {
            return Ok(());
        };
        self.read_pending(|tracker| tracker.set_position(read.log, position))
    }

    /// Prints the message that waits for its position. Normally there is none.
    fn flush(&mut self) -> Result<(), StartFailure> {
        self.read_pending(|_| {})
    }

    /// Prints the message that waits, if there is one, after its position has been set.
    fn read_pending(
        &mut self,
        set_position: impl FnOnce(&mut CursorTracker),
    ) -> Result<(), StartFailure> {
        let Some((method, params)) = self.pending.take() else {
            set_position(&mut self.tracker);
            return Ok(());
        };
        let invalid = |InvalidCursor| self.watch.invalid_cursor_exit();
        let seen = self.tracker.read(&method, params.get()).map_err(invalid)?;
        set_position(&mut self.tracker);
        let params = match seen {
            SeenBefore::All => return Ok(()),
            SeenBefore::No => params,
            SeenBefore::Text(read) => text_after(&params, read)
                .ok_or(InvalidCursor)
                .map_err(invalid)?,
        };
        self.print(&method, &params)
    }

    /// Prints whether a turn is running, and what waits.
    fn show_status(&mut self, result: &RawValue) -> Result<(), StartFailure> {
        let status: Value = serde_json::from_str(result.get()).unwrap_or_default();
        let sessions = status["sessions"].as_array();
        let mut sessions = sessions.into_iter().flatten();
        let Some(session) = sessions.find(|session| session["sessionId"] == *self.id) else {
            return Ok(());
        };
        match serde_json::value::to_raw_value(session) {
            Ok(session) => self.print("_live/status", &session),
            Err(_) => Ok(()),
        }
    }

    fn print(&self, method: &str, params: &RawValue) -> Result<(), StartFailure> {
        let cursor = self
            .has_positions
            .then(|| self.tracker.cursor().to_string());
        let message = WatchedMessage {
            cursor,
            method,
            params,
        };
        let mut line = serde_json::to_vec(&message)
            .map_err(|e| CommandExit::failed(format!("cannot print a message: {e}")))?;
        line.push(b'\n');
        // In one write: a script that is stopped has read the whole line, or nothing.
        match print(&line) {
            true => Ok(()),
            false => Err(CommandExit::STDOUT_CLOSED.into()),
        }
    }
}

/// Returns the params of a chunk without the first bytes of its text.
fn text_after(params: &RawValue, read: usize) -> Option<Box<RawValue>> {
    let mut params: Value = serde_json::from_str(params.get()).ok()?;
    let text = params["update"]["content"]["text"].as_str()?;
    let rest = text.get(read..)?.to_owned();
    params["update"]["content"]["text"] = rest.into();
    serde_json::value::to_raw_value(&params).ok()
}

async fn send_request(
    to: &mut (impl AsyncWrite + Unpin),
    id: &RequestId,
    method: &str,
    params: &Value,
) -> Result<(), StartFailure> {
    let mut line = Vec::new();
    jsonrpc::write_request(&mut line, id, method, params)
        .map_err(|e| CommandExit::failed(format!("cannot write {method}: {e}")))?;
    send(to, &line).await
}

/// Writes a line to the agent.
async fn send(to: &mut (impl AsyncWrite + Unpin), line: &[u8]) -> Result<(), StartFailure> {
    let written = async {
        to.write_all(line).await?;
        to.flush().await
    };
    let closed = |_: std::io::Error| acp::Error::Closed(CloseReason::Peer);
    Ok(written.await.map_err(closed)?)
}
