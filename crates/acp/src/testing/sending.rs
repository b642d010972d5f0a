//! The sending half of a scripted peer.

use std::panic::Location;

use acp_wire::jsonrpc;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::ScriptedPeer;

/// Methods that send messages. They panic if the other side does not read the message before the timeout.
impl ScriptedPeer {
    /// Sends raw bytes, such as an incomplete line or invalid JSON.
    #[track_caller]
    pub fn send_bytes(&mut self, bytes: impl AsRef<[u8]>) -> impl Future<Output = ()> {
        let caller = Location::caller();
        async move {
            let bytes = bytes.as_ref();
            self.history.record_sent(bytes.trim_ascii_end());
            let Some(output) = &mut self.output else {
                panic!(
                    "{caller}: cannot send: the scripted peer's output is closed or belongs to its other half"
                );
            };
            match tokio::time::timeout(self.patience, output.write_all(bytes)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    panic!(
                        "{caller}: the other side stopped reading ({error}); {}",
                        self.history
                    )
                }
                Err(_) => panic!(
                    "{caller}: the other side did not read the message within {:?}; {}",
                    self.patience, self.history
                ),
            }
        }
    }

    /// Sends a line, adding a line ending.
    #[track_caller]
    pub fn send_line(&mut self, line: impl AsRef<[u8]>) -> impl Future<Output = ()> {
        let mut bytes = line.as_ref().to_vec();
        bytes.push(b'\n');
        self.send_bytes(bytes)
    }

    /// Sends a message as is.
    #[track_caller]
    pub fn send(&mut self, message: Value) -> impl Future<Output = ()> {
        self.send_line(message.to_string())
    }

    /// Sends a request with a new id, and returns the id.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> impl Future<Output = i64> {
        self.last_id += 1;
        let id = self.last_id;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let sending = self.send(message);
        async move {
            sending.await;
            id
        }
    }

    /// Sends a notification with any method and params.
    #[track_caller]
    pub fn notify(&mut self, method: &str, params: Value) -> impl Future<Output = ()> {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    /// Responds to a request with a result.
    #[track_caller]
    pub fn answer(&mut self, id: &Value, result: Value) -> impl Future<Output = ()> {
        self.send(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    /// Responds to a request with an error.
    #[track_caller]
    pub fn answer_error(&mut self, id: &Value, error: &jsonrpc::Error) -> impl Future<Output = ()> {
        self.send(json!({"jsonrpc": "2.0", "id": id, "error": error}))
    }

    /// Sends a session update, as an agent.
    #[track_caller]
    pub fn update(&mut self, session: &str, update: Value) -> impl Future<Output = ()> {
        self.notify(
            "session/update",
            json!({"sessionId": session, "update": update}),
        )
    }

    /// Sends a chunk of an agent message, as an agent. All chunks in a session form one message.
    #[track_caller]
    pub fn send_message_chunk(&mut self, session: &str, text: &str) -> impl Future<Output = ()> {
        let content = json!({"type": "text", "text": text});
        self.update(
            session,
            json!({"sessionUpdate": "agent_message_chunk", "messageId": "msg", "content": content}),
        )
    }

    /// Initializes a version 1 connection without capabilities, as a client, and returns the agent's response.
    #[track_caller]
    pub fn initialize(&mut self) -> impl Future<Output = Value> {
        self.initialize_with(json!({"protocolVersion": 1, "clientCapabilities": {}}))
    }

    /// Sends `initialize` with the given params, as a client, and returns the agent's response.
    #[track_caller]
    pub fn initialize_with(&mut self, params: Value) -> impl Future<Output = Value> {
        let caller = Location::caller();
        async move {
            let id = self.request("initialize", params).await;
            self.expect_answer_at(caller, id.into()).await
        }
    }

    /// Opens a session in `/`, as a client, and returns the session's id.
    #[track_caller]
    pub fn open_session(&mut self) -> impl Future<Output = String> {
        let caller = Location::caller();
        async move {
            let params = json!({"cwd": "/", "mcpServers": []});
            let id = self.request("session/new", params).await;
            let result = self.expect_answer_at(caller, id.into()).await;
            match result["sessionId"].as_str() {
                Some(id) => id.to_owned(),
                None => panic!("{caller}: expected a session id; {}", self.history),
            }
        }
    }

    /// Sends a prompt, as a client, and returns the id of the request.
    #[track_caller]
    pub fn prompt(&mut self, session: &str, text: &str) -> impl Future<Output = i64> {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request(
            "session/prompt",
            json!({"sessionId": session, "prompt": prompt}),
        )
    }

    /// Expects `session/new` and responds with a session id, as an agent.
    #[track_caller]
    pub fn answer_new_session(&mut self, id: &str) -> impl Future<Output = ()> {
        let caller = Location::caller();
        async move {
            let call = self.expect_request_at(caller, "session/new").await;
            self.answer(&call.id, json!({"sessionId": id})).await;
        }
    }
}
