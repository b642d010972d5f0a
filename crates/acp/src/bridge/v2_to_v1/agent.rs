//! Translates the agent's messages from version 2 to version 1.

use acp_wire::RawObject;
use acp_wire::jsonrpc::{self, RequestId};
use acp_wire::v1::StopReason;
use serde_json::value::RawValue;

use super::super::json::{
    BridgeLine, BridgeOutput, read_session_id, store_original, to_object, to_raw_value,
    write_error, write_result, write_translations, write_update,
};
use super::super::{method, setup};
use super::client::cancel_turn;
use super::{
    MAX_ECHOES, MAX_SUBAGENT_DEPTH, PendingPermission, V2ToV1Bridge, V2ToV1Request, V2ToV1Session,
    get_non_null,
};

/// The result or the error of a response, as received.
type V2ResponseResult<'a> = Result<&'a &'a RawValue, &'a jsonrpc::Error>;

impl V2ToV1Bridge {
    pub(super) fn handle_agent_notification(
        &mut self,
        method_name: &str,
        params: &RawObject,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) {
        let session_id = read_session_id(params).filter(|_| method_name == method::SESSION_UPDATE);
        let Some(session_id) = session_id else {
            return line.write_unchanged(&mut out.client);
        };
        let update = to_object(params.get("update"));
        if update.field::<String>("sessionUpdate").as_deref() == Some("state_update") {
            return self.apply_state(&session_id, update, out);
        }
        if update.field::<String>("sessionUpdate").as_deref() == Some("subagent_update")
            && let Some(subagent) = read_session_id(&update)
            && subagent != session_id
        {
            self.parents
                .get_or_insert(&subagent)
                .clone_from(&session_id);
        }
        let session = self.sessions.get_or_insert(&session_id);
        let emits = session.translate_update(&self.client_features, update);
        if self.root_session(&session_id).is_none() {
            write_translations(&mut out.client, line, params, &session_id, emits);
        }
    }

    pub(super) fn handle_agent_request(
        &mut self,
        id: &RequestId,
        method_name: &str,
        params: RawObject,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) {
        let Some(session) = read_session_id(&params) else {
            return line.write_unchanged(&mut out.client);
        };
        let asked_as = self.root_session(&session);
        if method_name != method::REQUEST_PERMISSION {
            return match asked_as {
                Some(known) => {
                    let mut params = params;
                    params.set("sessionId", to_raw_value(&known));
                    line.write_with_params(&mut out.client, &params);
                }
                None => line.write_unchanged(&mut out.client),
            };
        }
        let (mut params, hidden) = self
            .sessions
            .get_or_insert(&session)
            .translate_permission_request(params);
        if let Some(known) = asked_as {
            params.set("sessionId", to_raw_value(&known));
            return line.write_with_params(&mut out.client, &params);
        }
        line.write_with_params(&mut out.client, &params);
        // If too many permission requests are pending, the call shows the request's content until its next update.
        if let Some(call) = hidden.filter(|_| self.pending_permissions.check_capacity(id).is_ok()) {
            self.pending_permissions
                .add(id, PendingPermission { session, call });
        }
    }

    /// Returns a subagent's root session if the client does not support subagents, so that the subagent's requests can
    /// be sent as the root session's. Returns `None` if the session is not a subagent's or the client supports
    /// subagents.
    fn root_session(&self, session: &str) -> Option<String> {
        if self.client_features.subagents {
            return None;
        }
        let mut top = self.parents.get(session)?;
        for _ in 0..MAX_SUBAGENT_DEPTH {
            match self.parents.get(top) {
                Some(parent) => top = parent,
                None => break,
            }
        }
        Some(top.clone())
    }

    pub(super) fn handle_agent_response(
        &mut self,
        id: &RequestId,
        result: V2ResponseResult<'_>,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) {
        let Some(request) = self.client_requests.take(id) else {
            return line.write_unchanged(&mut out.client);
        };
        if let V2ToV1Request::Resume {
            session,
            replayed: true,
        } = &request
            && let Some(session) = self.sessions.get(session)
        {
            session.replays = session.replays.saturating_sub(1);
        }
        let result = match (&request, result) {
            (V2ToV1Request::Prompt { session: id_ }, Err(_)) => {
                if let Some(session) = self.sessions.get(id_) {
                    session.turns.retain(|turn| turn.id != *id);
                }
                return line.write_unchanged(&mut out.client);
            }
            (_, Err(_)) => return line.write_unchanged(&mut out.client),
            (_, Ok(result)) => to_object(Some(result)),
        };
        self.handle_result(id, request, result, line, out);
    }

    fn handle_result(
        &mut self,
        id: &RequestId,
        request: V2ToV1Request,
        mut result: RawObject,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) {
        let booleans = self.client_features.boolean_options;
        match request {
            V2ToV1Request::Prompt { session: id_ } => {
                // The agent has accepted the prompt. In version 1, the response comes at the end of the turn.
                let session = self.sessions.get_or_insert(&id_);
                if let Some(turn) = session.turns.iter_mut().find(|turn| turn.id == *id) {
                    turn.is_accepted = true;
                    if turn.is_cancelled {
                        // The client sent the cancel before this response arrived.
                        cancel_turn(&id_, out);
                    }
                    // In the draft of August 2026, the response has no message id.
                    let message: Option<String> = result.field("messageId");
                    turn.message_id = message
                        .filter(|id| !id.is_empty())
                        .or(turn.message_id.take());
                }
                self.client_requests
                    .add(id, V2ToV1Request::Prompt { session: id_ });
            }
            V2ToV1Request::OpenSession => {
                let Some(id) = read_session_id(&result) else {
                    return line.write_unchanged(&mut out.client);
                };
                self.finish_opening(&id, result, line, out);
            }
            V2ToV1Request::Resume { session, .. } => {
                self.finish_opening(&session, result, line, out)
            }
            V2ToV1Request::SetOption { session: id } => {
                let session = self.sessions.get_or_insert(&id);
                let mode = session.apply_config_options(&result);
                if result.has("configOptions") {
                    let options = session.config.list(booleans);
                    result.set("configOptions", to_raw_value(&options));
                }
                session.config.drop_oversized();
                line.write_with_result(&mut out.client, &result);
                if let Some(mode) = mode {
                    write_update(&mut out.client, &id, &mode);
                }
            }
            V2ToV1Request::SetLegacyOption { session: id } => {
                let session = self.sessions.get_or_insert(&id);
                let mode = session.apply_config_options(&result);
                let options = session.config.list(booleans);
                session.config.drop_oversized();
                line.write_with_result(&mut out.client, &result.without(&["configOptions"]));
                let changed = object! {
                    "sessionUpdate": "config_option_update", "configOptions": options,
                };
                write_update(&mut out.client, &id, &changed);
                if let Some(mode) = mode {
                    write_update(&mut out.client, &id, &mode);
                }
            }
            V2ToV1Request::Close { session } => {
                if self
                    .sessions
                    .get(&session)
                    .is_some_and(|session| session.turns.is_empty())
                {
                    self.sessions.remove(&session);
                }
                line.write_unchanged(&mut out.client);
            }
            V2ToV1Request::PassThrough => line.write_unchanged(&mut out.client),
        }
    }

    /// Responds to the request that opened a session, with the session's options and modes in version 1 form. The
    /// commands follow in an update.
    fn finish_opening(
        &mut self,
        id: &str,
        mut result: RawObject,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) {
        let session = self.sessions.get_or_insert(id);
        session.apply_config_options(&result);
        if result.has("configOptions") {
            let options = session.config.list(self.client_features.boolean_options);
            result.set("configOptions", to_raw_value(&options));
        }
        if let Some(modes) = session.config.modes() {
            result.set("modes", to_raw_value(&modes));
        }
        session.config.drop_oversized();
        let commands = result.take("availableCommands");
        line.write_with_result(&mut out.client, &result);
        if let Some(commands) = commands.filter(|commands| commands.get() != "null") {
            let mut commands_update = object! {
                "sessionUpdate": "available_commands_update", "availableCommands": commands,
            };
            setup::commands_to_v1(&mut commands_update);
            write_update(&mut out.client, id, &commands_update);
        }
    }

    /// Applies the agent's `state_update`. If the agent is idle, responds to the prompts that it has accepted.
    fn apply_state(&mut self, session_id: &str, idle: RawObject, out: &mut BridgeOutput) {
        let session = self.sessions.get_or_insert(session_id);
        if idle.field::<String>("state").as_deref() != Some("idle") {
            // No other state, known or not, ends a turn.
            session.is_active = true;
            return;
        }
        let active = std::mem::take(&mut session.is_active);
        if !active && get_non_null(&idle, "stopReason").is_none() {
            // The update only reports the current state. No turn has ended.
            return;
        }
        let (ended, open) = std::mem::take(&mut session.turns)
            .into_iter()
            .partition(|turn| turn.is_accepted);
        session.turns = open;
        for turn in ended {
            session.echoes.extend(turn.message_id);
            self.client_requests.take(&turn.id);
            respond_to_prompt(&mut out.client, &turn.id, &idle);
        }
        while session.echoes.len() > MAX_ECHOES {
            session.echoes.pop_front();
        }
    }
}

impl V2ToV1Session {
    /// Stores the config options from a response or an update. If the mode has changed, returns an update for the
    /// client.
    pub(super) fn apply_config_options(&mut self, source: &RawObject) -> Option<RawObject> {
        if !source.has("configOptions") {
            return None;
        }
        let before = self.config.mode().map(RawValue::get).map(str::to_owned);
        self.config
            .set(&super::super::json::list_items(source, "configOptions"));
        let mode = self.config.mode()?;
        if before.is_none_or(|before| before == mode.get()) {
            return None;
        }
        Some(object! { "sessionUpdate": "current_mode_update", "currentModeId": mode })
    }
}

/// Responds to a prompt with the stop reason or error from the `idle` state that ended its turn.
fn respond_to_prompt(buf: &mut Vec<u8>, id: &RequestId, idle: &RawObject) {
    let reason = get_non_null(idle, "stopReason");
    let word: Option<String> = idle.field("stopReason");
    if word.as_deref() == Some("error") {
        let error = idle.field("error").unwrap_or_else(|| {
            jsonrpc::Error::internal("the agent stopped with an error that it did not describe")
        });
        return write_error(buf, id, &error);
    }
    let mut result = object! {};
    let known = word.filter(|word| {
        let mut known = StopReason::KNOWN.iter();
        known.any(|known| known.as_str() == &**word)
    });
    result.push(
        "stopReason".to_owned(),
        to_raw_value(known.as_deref().unwrap_or("end_turn")),
    );
    for (key, value) in idle.iter() {
        let is_translated = matches!(
            key,
            "sessionUpdate" | "state" | "stopReason" | "background" | "error"
        );
        if !is_translated && value.get() != "null" {
            result.push(key.to_owned(), value.to_owned());
        }
    }
    if let (None, Some(reason)) = (known, reason) {
        store_original(&mut result, "stopReason", reason);
    }
    write_result(buf, id, &result);
}
