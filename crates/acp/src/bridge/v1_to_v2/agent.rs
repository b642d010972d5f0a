//! Translates the agent's messages from version 1 to version 2.

use acp_wire::RawObject;
use acp_wire::jsonrpc::{self, RequestId};
use serde_json::value::RawValue;

use super::super::json::{
    BridgeLine, BridgeOutput, read_session_id, to_object, to_raw_value, write_result,
    write_translations, write_update,
};
use super::super::method;
use super::{
    V1ToV2Bridge, V1ToV2PendingQuestion, V1ToV2Question, V1ToV2Request, cancelled_response,
    content, state_update,
};

/// The result or the error of a response, as received.
type V1ResponseResult<'a> = Result<&'a &'a RawValue, &'a jsonrpc::Error>;

impl V1ToV2Bridge {
    pub(super) fn handle_agent_notification(
        &mut self,
        method_name: &str,
        params: &RawObject,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) {
        let session = read_session_id(params).filter(|_| method_name == method::SESSION_UPDATE);
        let Some(session) = session else {
            return line.write_unchanged(&mut out.client);
        };
        let emits = self
            .sessions
            .get_or_insert(&session)
            .translate_update(to_object(params.get("update")));
        write_translations(&mut out.client, line, params, &session, emits);
    }

    pub(super) fn handle_agent_request(
        &mut self,
        id: &RequestId,
        method_name: &str,
        params: RawObject,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) -> Result<(), jsonrpc::Error> {
        if method::is_v1_client_method(method_name) {
            // A version 2 client does not have these methods, so the bridge does not offer them.
            return Err(jsonrpc::Error::method_not_found(method_name));
        }
        let permission = method_name == method::REQUEST_PERMISSION;
        let session_id = read_session_id(&params)
            .filter(|_| permission || method_name == method::CREATE_ELICITATION);
        let Some(session_id) = session_id else {
            line.write_unchanged(&mut out.client);
            return Ok(());
        };
        // If the bridge has already answered a request with this id, the agent has reused the id for a new question.
        if let Some(V1ToV2Question::Answered) = self.agent_requests.get(id) {
            self.agent_requests.take(id);
        }
        self.agent_requests.check_capacity(id)?;
        let session = self.sessions.get_or_insert(&session_id);
        if session.turn.as_ref().is_some_and(|turn| turn.is_cancelled) {
            write_result(&mut out.agent, id, &cancelled_response(permission));
            return Ok(());
        }
        if session.turn.is_some() && session.pending_questions.is_empty() {
            write_update(
                &mut out.client,
                &session_id,
                &state_update("requires_action"),
            );
        }
        session.pending_questions.push(V1ToV2PendingQuestion {
            id: id.clone(),
            is_permission: permission,
        });
        if permission {
            let params = session.translate_permission_request(params);
            line.write_with_params(&mut out.client, &params);
        } else {
            line.write_unchanged(&mut out.client);
        }
        self.agent_requests.add(
            id,
            V1ToV2Question::Pending {
                session: session_id,
            },
        );
        Ok(())
    }

    pub(super) fn handle_agent_response(
        &mut self,
        id: &RequestId,
        result: V1ResponseResult<'_>,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) {
        let Some(request) = self.client_requests.take(id) else {
            return line.write_unchanged(&mut out.client);
        };
        match request {
            V1ToV2Request::Prompt { session } => {
                self.finish_prompt(id, &session, result, line, out)
            }
            // The agent does not know of queued prompts.
            V1ToV2Request::Queued { session } => self
                .client_requests
                .add(id, V1ToV2Request::Queued { session }),
            request => match result {
                Ok(result) => self.handle_result(request, to_object(Some(result)), line, out),
                Err(_) => {
                    if let V1ToV2Request::Resume { session, .. } = request
                        && let Some(session) = self.sessions.get(&session)
                    {
                        session.hides_replay = false;
                    }
                    line.write_unchanged(&mut out.client);
                }
            },
        }
    }

    /// Translates the result of a request from the client.
    fn handle_result(
        &mut self,
        request: V1ToV2Request,
        mut result: RawObject,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) {
        match request {
            V1ToV2Request::OpenSession { roots: place } => {
                if let Some(id) = read_session_id(&result) {
                    let session = self.sessions.get_or_insert(&id);
                    session.roots = Some(place);
                    session.config.rewrite_response(&mut result);
                }
                line.write_with_result(&mut out.client, &result);
            }
            V1ToV2Request::Resume {
                session: id,
                roots: place,
            } => {
                let session = self.sessions.get_or_insert(&id);
                session.roots = Some(place);
                session.hides_replay = false;
                session.current_message = None;
                session.config.rewrite_response(&mut result);
                let now = match (&session.turn, session.pending_questions.is_empty()) {
                    (None, _) => "idle",
                    (Some(_), true) => "running",
                    (Some(_), false) => "requires_action",
                };
                write_update(&mut out.client, &id, &state_update(now));
                line.write_with_result(&mut out.client, &result);
            }
            V1ToV2Request::SetOption { session: id } => {
                let session = self.sessions.get_or_insert(&id);
                session.config.rewrite_response(&mut result);
                if !result.has("configOptions") {
                    result.set("configOptions", to_raw_value(&session.config.list()));
                }
                line.write_with_result(&mut out.client, &result);
            }
            V1ToV2Request::SetLegacyOption {
                session: id,
                switch,
                value,
            } => {
                let session = self.sessions.get_or_insert(&id);
                session.config.set_current(switch, &value);
                result.set("configOptions", to_raw_value(&session.config.list()));
                line.write_with_result(&mut out.client, &result);
            }
            V1ToV2Request::Close { session: id } => {
                if self.sessions.get(&id).is_some_and(|s| s.turn.is_some()) {
                    // The agent has not ended its turn yet, but this response closes the session.
                    let mut idle = state_update("idle");
                    idle.push("stopReason".to_owned(), to_raw_value("cancelled"));
                    write_update(&mut out.client, &id, &idle);
                }
                self.sessions.remove(&id);
                line.write_with_result(&mut out.client, &result);
            }
            V1ToV2Request::Delete { session: id } => {
                if self.sessions.get(&id).is_some_and(|s| s.turn.is_none()) {
                    self.sessions.remove(&id);
                }
                line.write_with_result(&mut out.client, &result);
            }
            V1ToV2Request::PassThrough
            | V1ToV2Request::Prompt { .. }
            | V1ToV2Request::Queued { .. } => {
                // In version 1, an empty result may be `null`.
                if has_null_result(line) {
                    line.write_with_result(&mut out.client, &result);
                } else {
                    line.write_unchanged(&mut out.client);
                }
            }
        }
    }

    /// Ends a prompt's turn, and moves the fields of the response into a `state_update`.
    fn finish_prompt(
        &mut self,
        id: &RequestId,
        session_id: &str,
        result: V1ResponseResult<'_>,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) {
        let turn = self
            .sessions
            .get(session_id)
            .and_then(|session| session.turn.as_ref())
            .filter(|turn| turn.id == *id);
        let Some(turn) = turn else {
            // The session has been closed in the meantime.
            return;
        };
        let mut idle = state_update("idle");
        match result {
            Ok(result) => {
                for (key, value) in to_object(Some(result)).iter() {
                    if idle.get(key).is_none() && value.get() != "null" {
                        idle.push(key.to_owned(), value.to_owned());
                    }
                }
            }
            // The turn counts as cancelled, whatever error the cancellation caused.
            Err(_) if turn.is_cancelled => {
                idle.push("stopReason".to_owned(), to_raw_value("cancelled"))
            }
            Err(_) => {
                idle.push("stopReason".to_owned(), to_raw_value("error"));
                let line: RawObject = super::parse_json(line.bytes).unwrap_or_default();
                if let Some(error) = line.get("error") {
                    idle.push("error".to_owned(), error.to_owned());
                }
            }
        }
        self.end_turn(session_id, &idle, out);
    }
}

fn has_null_result(line: &BridgeLine<'_>) -> bool {
    matches!(
        &line.message,
        jsonrpc::Incoming::Response { result: Ok(result), .. } if result.get() == "null"
    )
}

impl super::V1ToV2Session {
    /// Translates the params of a permission request to version 2.
    fn translate_permission_request(&mut self, mut params: RawObject) -> RawObject {
        let call = content::remove_nulls(to_object(params.take("toolCall").as_deref()));
        let id: Option<String> = call.field("toolCallId");
        let title = call
            .field::<String>("title")
            .or_else(|| self.titles.get(id.as_deref()?).cloned())
            .filter(|title| !title.is_empty())
            .or_else(|| call.field("kind"))
            .unwrap_or_else(|| "The agent requests your permission".to_owned());
        let mut call = call;
        content::content_to_v2(&mut call);
        if !params.has("title") {
            params.set("title", to_raw_value(&title));
        }
        let subject = object! { "type": "tool_call", "toolCall": call };
        params.set("subject", to_raw_value(&subject));
        params
    }
}
