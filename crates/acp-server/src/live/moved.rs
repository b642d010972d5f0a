//! Sessions that another server owns by now: their clients are passed on to it.

use std::collections::BTreeMap;

use acp::jsonrpc::RequestId;
use acp::v1::SessionId;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::agent::{LiveAgent, SentRequest};
use super::log::ClientId;
use super::message::{notification, to_raw};
use super::prompt::{new_prompt_key, prompt_key};
use super::unwritten::StoredSessionEnd;

/// A session of a client that another server owns now.
#[derive(Debug)]
pub(super) struct MovedSession {
    pub(super) id: SessionId,
    /// The client has read everything before this position.
    pub(super) position: u64,
    /// The client's prompts that have not ended.
    pub(super) prompts: Vec<MovedPrompt>,
}

/// A prompt that is sent again to the session's new owner.
#[derive(Debug, Clone)]
pub(super) struct MovedPrompt {
    pub(super) request: RequestId,
    pub(super) key: String,
    pub(super) params: Box<RawValue>,
}

impl MovedPrompt {
    /// Creates a prompt. Its params contain the key, so that it does not run twice.
    pub(super) fn new(request: RequestId, key: Option<String>, params: Option<&RawValue>) -> Self {
        let key = key.unwrap_or_else(new_prompt_key);
        let params = match params {
            Some(with_key) if prompt_key(params).as_ref() == Some(&key) => with_key.to_owned(),
            params => params_with_key(params, &key),
        };
        Self {
            request,
            key,
            params,
        }
    }
}

/// Returns a prompt's params with its key. Everything that this server does not know stays as it is.
fn params_with_key(params: Option<&RawValue>, key: &str) -> Box<RawValue> {
    let mut members: BTreeMap<String, Box<RawValue>> = params
        .and_then(|params| serde_json::from_str(params.get()).ok())
        .unwrap_or_default();
    let meta = members.remove("_meta");
    let mut meta: Value = meta
        .and_then(|meta| serde_json::from_str(meta.get()).ok())
        .filter(Value::is_object)
        .unwrap_or_else(|| json!({}));
    if !meta["live"].is_object() {
        meta["live"] = json!({});
    }
    meta["live"]["promptKey"] = key.into();
    members.insert("_meta".to_owned(), to_raw(&meta));
    to_raw(&members)
}

impl LiveAgent {
    /// Gives up a session that another server owns by now. Its clients are passed on to that server.
    pub(super) fn lose_session(&mut self, id: &SessionId) {
        tracing::warn!(session = %id, "another server owns the session now");
        let Some(session) = self.sessions.get(id) else {
            return;
        };
        let params = json!({ "sessionId": id });
        if session.prompts.turn.is_some() {
            self.send_to_agent(&notification("session/cancel", &params));
        }
        if self.agent_supports(&["sessionCapabilities", "close"]) {
            let purpose = SentRequest::CloseSession;
            self.send_request("session/close", Some(&to_raw(&params)), purpose);
        }
        self.move_clients(id);
        self.remove_session(id, StoredSessionEnd::Lost);
    }

    /// Passes the clients of a session on to its new owner.
    pub(super) fn move_clients(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let prompts = session.prompts.take_open();
        for client_id in session.clients().collect::<Vec<_>>() {
            let Some(client) = self.clients.get_mut(&client_id) else {
                continue;
            };
            let own = prompts.iter().filter_map(|prompt| {
                let request = prompt.sender.request()?;
                (request.client == client_id).then(|| {
                    let key = Some(prompt.key.clone());
                    MovedPrompt::new(request.id, key, Some(&prompt.params))
                })
            });
            client.moved.push(MovedSession {
                id: id.clone(),
                position: session.position(client_id).unwrap_or_default(),
                prompts: own.collect(),
            });
            client.wake.notify_one();
        }
    }

    /// Takes the sessions of a client that another server owns now.
    pub(super) fn take_moved(&mut self, client: ClientId) -> Vec<MovedSession> {
        let client = self.clients.get_mut(&client);
        client.map_or_else(Vec::new, |client| std::mem::take(&mut client.moved))
    }
}
