//! Translates the client's messages from version 2 to version 1.

use acp_wire::RawObject;
use acp_wire::jsonrpc::{self, RequestId};

use super::super::json::{
    BridgeLine, BridgeOutput, read_session_id, require_session_id, to_raw_value,
    write_notification, write_result, write_update,
};
use super::super::{method, setup};
use super::{
    LegacySetting, MAX_QUEUED_BYTES, MAX_QUEUED_PROMPTS, QueuedPrompt, V1ToV2Bridge,
    V1ToV2Question, V1ToV2Request, cancelled_request_id, state_update,
};

impl V1ToV2Bridge {
    pub(super) fn handle_client_request(
        &mut self,
        id: &RequestId,
        method_name: &str,
        params: RawObject,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) -> Result<(), jsonrpc::Error> {
        self.client_requests.check_capacity(id)?;
        match method_name {
            method::INITIALIZE => Err(jsonrpc::Error::new(
                jsonrpc::Error::INVALID_REQUEST,
                "Invalid request: the connection is already initialized",
            )),
            method::PROMPT => self.handle_prompt(id, &params, line, out),
            method::NEW_SESSION | method::FORK_SESSION => {
                let place = session_directories(&params);
                let mut params = params;
                setup::servers_to_v1(&mut params);
                line.write_with_params(&mut out.agent, &params);
                self.client_requests
                    .add(id, V1ToV2Request::OpenSession { roots: place });
                Ok(())
            }
            method::RESUME_SESSION => self.handle_resume(id, params, line, out),
            method::LIST_SESSIONS if !self.agent_supports_method(method::LIST_SESSIONS) => {
                write_result(&mut out.client, id, &self.list_known_sessions(&params)?);
                Ok(())
            }
            method::CLOSE_SESSION => self.handle_close(id, &params, line, out),
            // Archiving closes the session.
            method::ARCHIVE_SESSION => {
                let session = require_session_id(&params)?;
                line.write_unchanged(&mut out.agent);
                let closed = session.clone();
                self.client_requests
                    .add(id, V1ToV2Request::Close { session: closed });
                self.cancel(&session, out);
                Ok(())
            }
            method::DELETE_SESSION => {
                let session = require_session_id(&params)?;
                line.write_unchanged(&mut out.agent);
                self.client_requests
                    .add(id, V1ToV2Request::Delete { session });
                Ok(())
            }
            method::SET_OPTION => self.handle_set_option(id, params, line, out),
            method::LOGIN => {
                line.write_with_method(&mut out.agent, method::AUTHENTICATE, &params);
                self.client_requests.add(id, V1ToV2Request::PassThrough);
                Ok(())
            }
            method::LOGOUT_V2 => {
                if !self.agent_supports_method(method::LOGOUT_V1) {
                    return Err(unsupported_method_error(
                        method_name,
                        "the agent does not support logout",
                    ));
                }
                line.write_with_method(&mut out.agent, method::LOGOUT_V1, &params);
                self.client_requests.add(id, V1ToV2Request::PassThrough);
                Ok(())
            }
            // Version 1 methods, which a version 2 client must not call.
            method::LOAD_SESSION
            | method::SET_MODE
            | method::SET_MODEL
            | method::AUTHENTICATE
            | method::LOGOUT_V1 => Err(jsonrpc::Error::method_not_found(method_name)),
            _ => {
                line.write_unchanged(&mut out.agent);
                self.client_requests.add(id, V1ToV2Request::PassThrough);
                Ok(())
            }
        }
    }

    pub(super) fn handle_client_notification(
        &mut self,
        method_name: &str,
        params: &RawObject,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) {
        match method_name {
            method::CANCEL_TURN => {
                // Send the cancel first. An agent that reads the outcome `cancelled` before the cancel may treat the
                // outcome as a plain rejection.
                line.write_unchanged(&mut out.agent);
                if let Some(session) = read_session_id(params) {
                    self.cancel(&session, out);
                }
            }
            method::CANCEL_REQUEST => {
                let Some(id) = cancelled_request_id(params) else {
                    return line.write_unchanged(&mut out.agent);
                };
                match self.client_requests.get(&id) {
                    Some(V1ToV2Request::Queued { .. }) => self.cancel_queued_prompt(&id, out),
                    // The client already has the response, so there is nothing left to cancel.
                    Some(V1ToV2Request::Prompt { .. }) => {}
                    _ => line.write_unchanged(&mut out.agent),
                }
            }
            _ => line.write_unchanged(&mut out.agent),
        }
    }

    pub(super) fn handle_client_response(
        &mut self,
        id: &RequestId,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) {
        match self.agent_requests.take(id) {
            Some(V1ToV2Question::Answered) => {}
            Some(V1ToV2Question::Pending { session }) => {
                line.write_unchanged(&mut out.agent);
                if let Some(open) = self.sessions.get(&session) {
                    let before = open.pending_questions.len();
                    open.pending_questions.retain(|question| question.id != *id);
                    let last = before > 0 && open.pending_questions.is_empty();
                    if last && open.turn.is_some() {
                        write_update(&mut out.client, &session, &state_update("running"));
                    }
                }
            }
            None => line.write_unchanged(&mut out.agent),
        }
    }

    fn handle_prompt(
        &mut self,
        id: &RequestId,
        params: &RawObject,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) -> Result<(), jsonrpc::Error> {
        let session_id = require_session_id(params)?;
        let blocks: Option<Vec<serde::de::IgnoredAny>> = params.field("prompt");
        if blocks.is_none_or(|blocks| blocks.is_empty()) {
            // A prompt that has been acknowledged can no longer be rejected.
            let text = "Invalid params: prompt must be a non-empty list of content blocks";
            return Err(jsonrpc::Error::invalid_params(text));
        }
        let queued = QueuedPrompt {
            id: id.clone(),
            line: line.bytes.into(),
        };
        let session = self.sessions.get_or_insert(&session_id);
        if session.turn.is_none() {
            self.begin_turn(&session_id, &queued, out);
            return Ok(());
        }
        if session.queued_prompts.len() >= MAX_QUEUED_PROMPTS {
            let text = format!("too many queued prompts: the limit is {MAX_QUEUED_PROMPTS}");
            return Err(jsonrpc::Error::internal(text));
        }
        if self.queued_bytes + queued.line.len() > MAX_QUEUED_BYTES {
            let text =
                format!("too many queued prompts: the limit is {MAX_QUEUED_BYTES} bytes in total");
            return Err(jsonrpc::Error::internal(text));
        }
        self.queued_bytes += queued.line.len();
        session.queued_prompts.push_back(queued);
        self.client_requests.add(
            id,
            V1ToV2Request::Queued {
                session: session_id,
            },
        );
        Ok(())
    }

    fn handle_resume(
        &mut self,
        id: &RequestId,
        params: RawObject,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) -> Result<(), jsonrpc::Error> {
        let session = require_session_id(&params)?;
        let place = session_directories(&params);
        let from: Option<RawObject> = params.field("replayFrom");
        let from = from.map(|from| from.field::<String>("type").unwrap_or_default());
        let mut params = params.without(&["replayFrom"]);
        setup::servers_to_v1(&mut params);
        let resumes = self.agent_supports_method(method::RESUME_SESSION);
        let loads = self.agent_supports_method(method::LOAD_SESSION);
        let known = self.sessions.get_or_insert(&session);
        match from.as_deref() {
            None if resumes => line.write_with_params(&mut out.agent, &params),
            None if loads => {
                known.hides_replay = true;
                line.write_with_method(&mut out.agent, method::LOAD_SESSION, &params);
            }
            Some("start") if loads => {
                known.current_message = None;
                line.write_with_method(&mut out.agent, method::LOAD_SESSION, &params);
            }
            None => {
                return Err(unsupported_method_error(
                    method::RESUME_SESSION,
                    "the agent can neither resume nor load sessions",
                ));
            }
            Some("start") => {
                let text = "the agent cannot replay sessions";
                return Err(unsupported_method_error(method::RESUME_SESSION, text));
            }
            Some(other) => {
                let text = format!("Invalid params: unknown replayFrom type {other:?}");
                return Err(jsonrpc::Error::invalid_params(text));
            }
        }
        self.client_requests.add(
            id,
            V1ToV2Request::Resume {
                session,
                roots: place,
            },
        );
        Ok(())
    }

    /// Returns the sessions opened through the bridge, for agents that cannot list sessions.
    fn list_known_sessions(&self, params: &RawObject) -> Result<RawObject, jsonrpc::Error> {
        if params.has("cursor") {
            let text = "Invalid params: invalid cursor";
            return Err(jsonrpc::Error::invalid_params(text));
        }
        let archived: Option<String> = params.field("archived");
        match archived.as_deref() {
            None | Some("exclude" | "include") => {}
            // Archived sessions are closed, and the bridge does not know closed sessions.
            Some("only") => return Ok(object! { "sessions": Vec::<RawObject>::new() }),
            Some(_) => {
                let text = "Invalid params: unknown archive filter";
                return Err(jsonrpc::Error::invalid_params(text));
            }
        }
        let cwd: Option<String> = params.field("cwd");
        let mut sessions = Vec::new();
        for (id, session) in self.sessions.iter() {
            let Some(place) = &session.roots else {
                continue;
            };
            if cwd.is_some() && place.field("cwd") != cwd {
                continue;
            }
            let mut info = object! { "sessionId": id };
            if self.agent_supports_method(method::ARCHIVE_SESSION) {
                info.push("archived".to_owned(), to_raw_value(&false));
            }
            for (key, value) in place.iter() {
                info.push(key.to_owned(), value.to_owned());
            }
            sessions.push(info);
        }
        Ok(object! { "sessions": sessions })
    }

    fn handle_close(
        &mut self,
        id: &RequestId,
        params: &RawObject,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) -> Result<(), jsonrpc::Error> {
        let session_id = require_session_id(params)?;
        if self.agent_supports_method(method::CLOSE_SESSION) {
            line.write_unchanged(&mut out.agent);
            let session = session_id.clone();
            self.client_requests
                .add(id, V1ToV2Request::Close { session });
            self.cancel(&session_id, out);
            return Ok(());
        }
        match self.sessions.get(&session_id) {
            Some(session) if session.turn.is_some() => {
                session.close_requests.push(id.clone());
                let params = object! { "sessionId": session_id };
                write_notification(&mut out.agent, method::CANCEL_TURN, &params);
                self.cancel(&session_id, out);
            }
            _ => {
                self.sessions.remove(&session_id);
                write_result(&mut out.client, id, &RawObject::default());
            }
        }
        Ok(())
    }

    fn handle_set_option(
        &mut self,
        id: &RequestId,
        params: RawObject,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) -> Result<(), jsonrpc::Error> {
        let session = require_session_id(&params)?;
        let option: String = params.field("configId").unwrap_or_default();
        let switch = self
            .sessions
            .get(&session)
            .and_then(|session| session.config.find_legacy_setting(&option));
        let Some(switch) = switch else {
            let is_id = params.field::<String>("type").as_deref() == Some("id");
            let params = if is_id {
                params.without(&["type"])
            } else {
                params
            };
            line.write_with_params(&mut out.agent, &params);
            self.client_requests
                .add(id, V1ToV2Request::SetOption { session });
            return Ok(());
        };
        let Some(value) = params.get("value").map(ToOwned::to_owned) else {
            return Err(jsonrpc::Error::invalid_params(
                "Invalid params: value is missing",
            ));
        };
        let (called, field) = match switch {
            LegacySetting::Mode => (method::SET_MODE, "modeId"),
            LegacySetting::Model => (method::SET_MODEL, "modelId"),
        };
        let params = params.without(&["configId", "type"]).rename("value", field);
        line.write_with_method(&mut out.agent, called, &params);
        self.client_requests.add(
            id,
            V1ToV2Request::SetLegacyOption {
                session,
                switch,
                value,
            },
        );
        Ok(())
    }
}

/// Returns the working directory and the additional roots in `params`, as they appear in a `session/list` entry.
fn session_directories(params: &RawObject) -> RawObject {
    let mut place = object! {};
    for key in ["cwd", "additionalDirectories"] {
        if let Some(value) = params.get(key).filter(|_| params.has(key)) {
            place.push(key.to_owned(), to_raw_value(value));
        }
    }
    place
}

/// Creates the error for a method that version 2 requires but the version 1 agent does not support.
fn unsupported_method_error(method: &str, why: &str) -> jsonrpc::Error {
    let text = format!("Method not found: {method}: {why}");
    jsonrpc::Error::new(jsonrpc::Error::METHOD_NOT_FOUND, text)
}
