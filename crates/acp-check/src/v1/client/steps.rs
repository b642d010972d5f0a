//! Steps shared by many checks for clients.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, timeout_at};

use crate::check::CheckFuture;
use crate::client_harness::{ClientHarness, ReceivedPrompt};
use crate::verdict::{CheckStop, fail, skip};
use crate::wire::ReceivedResponse;
use acp_rules::schema::Envelope;

/// The agent's message in checks that depend on the user cancelling the turn.
pub const CANCEL_REQUEST_TEXT: &str = "Please cancel this turn.";

/// The title of a permission request that must stay pending until the turn is cancelled.
pub const WAIT_REQUEST_TEXT: &str = "Please leave this open.";

/// How long to watch for messages that the client must not send. This is long enough for a client that would send them
/// immediately.
pub(super) const WATCH_TIME: Duration = Duration::from_millis(300);

/// Adds a description of the preceding event to a failure's reason.
pub(super) fn add_context<T>(what: &str, done: Result<T, CheckStop>) -> Result<T, CheckStop> {
    match done {
        Err(CheckStop::Fail(why)) => fail(format!("after {what}, {why}")),
        done => done,
    }
}

/// Requires that the client still responds to requests. If the check fails, the reason mentions `what`, the preceding
/// event.
pub(super) async fn require_responsive(
    harness: &mut ClientHarness,
    what: &str,
) -> Result<(), CheckStop> {
    let asked = harness.request("_acp_check/alive", json!({})).await;
    add_context(what, asked).map(drop)
}

/// Sends updates in the client's first turn, and requires that it still responds. `what` describes the updates.
pub(super) fn require_updates_accepted<'a>(
    harness: &'a mut ClientHarness,
    what: &'a str,
    updates: impl IntoIterator<Item = Value>,
) -> CheckFuture<'a> {
    let updates: Vec<Value> = updates.into_iter().collect();
    Box::pin(async move {
        let prompted = harness.wait_for_prompt().await?;
        for update in updates {
            let sent = harness.send_update(&prompted.session, update).await;
            add_context(what, sent)?;
        }
        require_responsive(harness, what).await?;
        harness.end_turn(&prompted, "end_turn").await
    })
}

/// Requires that no message with one of the `unwanted` methods arrives for a while. Responds to all other messages.
pub(super) async fn require_none_of(
    harness: &mut ClientHarness,
    unwanted: &[&str],
    before: &str,
) -> Result<(), CheckStop> {
    let until = Instant::now() + WATCH_TIME;
    while let Ok(next) = timeout_at(until, harness.next()).await {
        let Some(message) = next? else {
            return Ok(());
        };
        if unwanted.contains(&message.method()) {
            return fail(format!("the client sent `{}` {before}", message.method()));
        }
        harness.serve(&message).await?;
    }
    Ok(())
}

/// Skips the check unless the client supports the capability at `pointer`, whose value must be true or an object.
pub(super) fn require_capability(harness: &ClientHarness, pointer: &str) -> Result<(), CheckStop> {
    if has_capability(harness, pointer) {
        return Ok(());
    }
    let name = pointer.trim_start_matches('/').replace('/', ".");
    skip(format!("the client does not support `{name}`"))
}

/// Returns `true` if the client supports the capability at `pointer`.
pub(super) fn has_capability(harness: &ClientHarness, pointer: &str) -> bool {
    matches!(
        harness.capability(pointer),
        Value::Bool(true) | Value::Object(_)
    )
}

/// Waits for the client's first prompt. Skips the check unless the client supports the capability at `pointer`.
pub(super) async fn wait_for_prompt_with_capability(
    harness: &mut ClientHarness,
    pointer: &str,
) -> Result<ReceivedPrompt, CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    require_capability(harness, pointer)?;
    Ok(prompted)
}

/// Sends a request that must succeed, and returns its result.
pub(super) async fn request_result(
    harness: &mut ClientHarness,
    method: &str,
    params: Value,
) -> Result<Value, CheckStop> {
    match harness.request(method, params).await? {
        ReceivedResponse::Result(result) => Ok(result),
        ReceivedResponse::Error { code, message, .. } => {
            fail(format!("`{method}` failed with error {code}: {message}"))
        }
    }
}

/// Sends a request that must fail, and returns the response. If it succeeds, the reason for the failed check mentions
/// `what`, a description of the request.
pub(super) async fn request_error(
    harness: &mut ClientHarness,
    method: &str,
    params: Value,
    what: &str,
) -> Result<ReceivedResponse, CheckStop> {
    match harness.request(method, params).await? {
        ReceivedResponse::Result(result) => {
            fail(format!("{what} succeeded with {result}; expected an error"))
        }
        error => Ok(error),
    }
}

/// Waits for a request or notification with this method, and returns its id and params. Returns `None` if none arrives
/// in time, because clients do not have to send it and may be waiting for a user.
pub(super) async fn wait_for_optional_message(
    harness: &mut ClientHarness,
    method: &str,
) -> Result<Option<(Value, Value)>, CheckStop> {
    match harness.wait_for_message(method).await {
        Ok(found) => Ok(Some(found)),
        Err(CheckStop::Fail(_)) => Ok(None),
        Err(stop) => Err(stop),
    }
}

/// Like [`wait_for_optional_message`], but also responds to later prompts.
pub(super) async fn wait_for_optional_message_after_turns(
    harness: &mut ClientHarness,
    method: &str,
) -> Result<Option<(Value, Value)>, CheckStop> {
    let until = Instant::now() + harness.wire.timeout();
    while let Ok(next) = timeout_at(until, harness.next()).await {
        let Some(message) = next? else {
            break;
        };
        let id = message.0["id"].clone();
        match message.method() {
            of if of == method => return Ok(Some((id, message.params().clone()))),
            "session/prompt" => {
                let ended = json!({"stopReason": "end_turn"});
                harness.wire.send_result(&id, ended).await?;
            }
            _ => harness.serve(&message).await?,
        }
    }
    Ok(None)
}

/// Returns the response to a request, if it has already arrived.
pub(super) fn find_response(harness: &ClientHarness, id: &Value) -> Option<ReceivedResponse> {
    harness
        .messages
        .iter()
        .find_map(|message| match message.envelope() {
            Some(Envelope::Response { id: of, result }) if of == id => {
                Some(ReceivedResponse::from_result(result))
            }
            _ => None,
        })
}

/// Waits for the response to a request, unless it has already arrived. Use this when several requests are pending at
/// once.
pub(super) async fn wait_for_response(
    harness: &mut ClientHarness,
    id: &Value,
) -> Result<ReceivedResponse, CheckStop> {
    match find_response(harness, id) {
        Some(response) => Ok(response),
        None => harness.wait_for_response(id).await,
    }
}

/// Returns the params of all messages from the client with this method.
pub(super) fn sent_params<'a>(
    harness: &'a ClientHarness,
    method: &'a str,
) -> impl Iterator<Item = &'a Value> {
    let messages = harness.messages.iter();
    messages
        .filter(move |message| message.method() == method)
        .map(|message| message.params())
}

/// A temporary directory inside the session's working directory, where the client gives access to files. It is removed
/// on drop.
pub(super) struct ScratchDirectory(TempDir);

impl ScratchDirectory {
    /// Creates the directory. The client must already have opened its session.
    pub(super) fn new(harness: &ClientHarness) -> Result<Self, CheckStop> {
        let cwd = sent_params(harness, "session/new").next();
        let cwd = cwd.and_then(|params| params["cwd"].as_str());
        let Some(cwd) = cwd.filter(|cwd| Path::new(cwd).is_dir()) else {
            return skip("the session's `cwd` is not a directory");
        };
        let made = tempfile::Builder::new()
            .prefix("acp-check-")
            .tempdir_in(cwd);
        match made {
            Ok(directory) => Ok(Self(directory)),
            Err(e) => skip(format!("cannot write to the session's `cwd`: {e}")),
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Creates a file with this content, and returns its path.
    pub(super) fn create_file(&self, name: &str, text: &str) -> Result<PathBuf, CheckStop> {
        let path = self.file(name);
        match std::fs::write(&path, text) {
            Ok(()) => Ok(path),
            Err(e) => Err(CheckStop::Harness(format!("{}: {e}", path.display()))),
        }
    }
}
