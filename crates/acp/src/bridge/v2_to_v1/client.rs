//! Translates the client's messages from version 1 to version 2.

use acp_wire::RawObject;
use acp_wire::jsonrpc::{self, CancelRequestNotification, RequestId};

use super::super::config::LegacySetting;
use super::super::json::{
    BridgeLine, BridgeOutput, require_session_id, to_raw_value, write_notification,
};
use super::super::{method, setup};
use super::{V2ToV1Bridge, V2ToV1Request, V2ToV1Turn};

/// Adds the value's type to a request that sets an option, as version 2 requires.
fn add_value_type(params: &mut RawObject) {
    if !params.has("type") {
        let boolean = params.field::<bool>("value").is_some();
        params.set("type", to_raw_value(if boolean { "boolean" } else { "id" }));
    }
}

impl V2ToV1Bridge {
    pub(super) fn handle_client_request(
        &mut self,
        id: &RequestId,
        method_name: &str,
        mut params: RawObject,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) -> Result<(), jsonrpc::Error> {
        self.client_requests.check_capacity(id)?;
        let what = match method_name {
            method::INITIALIZE => {
                return Err(jsonrpc::Error::new(
                    jsonrpc::Error::INVALID_REQUEST,
                    "Invalid request: the connection is already initialized",
                ));
            }
            method::PROMPT => {
                let session = require_session_id(&params)?;
                self.sessions
                    .get_or_insert(&session)
                    .turns
                    .push_back(V2ToV1Turn {
                        id: id.clone(),
                        is_accepted: false,
                        is_cancelled: false,
                        message_id: None,
                    });
                line.write_unchanged(&mut out.agent);
                V2ToV1Request::Prompt { session }
            }
            method::NEW_SESSION | method::FORK_SESSION => {
                setup::servers_to_v2(&mut params);
                line.write_with_params(&mut out.agent, &params);
                V2ToV1Request::OpenSession
            }
            method::LOAD_SESSION | method::RESUME_SESSION => {
                let session = require_session_id(&params)?;
                let replayed = method_name == method::LOAD_SESSION;
                setup::servers_to_v2(&mut params);
                if replayed {
                    params.set("replayFrom", to_raw_value(&object! { "type": "start" }));
                    self.sessions.get_or_insert(&session).replays += 1;
                }
                line.write_with_method(&mut out.agent, method::RESUME_SESSION, &params);
                V2ToV1Request::Resume { session, replayed }
            }
            method::CLOSE_SESSION | method::DELETE_SESSION | method::ARCHIVE_SESSION => {
                let session = require_session_id(&params)?;
                line.write_unchanged(&mut out.agent);
                V2ToV1Request::Close { session }
            }
            method::SET_OPTION => {
                let session = require_session_id(&params)?;
                add_value_type(&mut params);
                line.write_with_params(&mut out.agent, &params);
                V2ToV1Request::SetOption { session }
            }
            method::SET_MODE | method::SET_MODEL => {
                let session = require_session_id(&params)?;
                let option = match method_name {
                    method::SET_MODE => LegacySetting::Mode,
                    _ => LegacySetting::Model,
                };
                self.set_legacy_option(&session, option, params, line, out)?;
                V2ToV1Request::SetLegacyOption { session }
            }
            method::AUTHENTICATE => {
                line.write_with_method(&mut out.agent, method::LOGIN, &params);
                V2ToV1Request::PassThrough
            }
            method::LOGOUT_V1 => {
                line.write_with_method(&mut out.agent, method::LOGOUT_V2, &params);
                V2ToV1Request::PassThrough
            }
            _ => {
                line.write_unchanged(&mut out.agent);
                V2ToV1Request::PassThrough
            }
        };
        self.client_requests.add(id, what);
        Ok(())
    }

    pub(super) fn handle_client_notification(
        &mut self,
        method_name: &str,
        params: &RawObject,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) {
        if method_name == method::CANCEL_REQUEST
            && let Ok(cancel) = params.read::<CancelRequestNotification>()
            && let Some(V2ToV1Request::Prompt { session }) =
                self.client_requests.get(&cancel.request_id)
        {
            let session_id = session.clone();
            let turn = self.sessions.get(&session_id).and_then(|session| {
                let mut turns = session.turns.iter_mut();
                turns.find(|turn| turn.id == cancel.request_id)
            });
            if let Some(turn) = turn {
                turn.is_cancelled = true;
                if turn.is_accepted {
                    // The agent has already responded to the prompt request, so the client means the turn.
                    return cancel_turn(&session_id, out);
                }
            }
        }
        line.write_unchanged(&mut out.agent);
    }

    /// Translates a request that sets a mode or a model. Both are config options in version 2.
    fn set_legacy_option(
        &mut self,
        session: &str,
        switch: LegacySetting,
        params: RawObject,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) -> Result<(), jsonrpc::Error> {
        let option = self
            .sessions
            .get(session)
            .and_then(|session| session.config.legacy_setting_id(switch));
        let Some(option) = option else {
            let text = format!(
                "Invalid params: the session has no {} option",
                switch.category()
            );
            return Err(jsonrpc::Error::invalid_params(text));
        };
        let mut params = params.rename("modeId", "value").rename("modelId", "value");
        params.set("configId", option);
        params.set("type", to_raw_value("id"));
        line.write_with_method(&mut out.agent, method::SET_OPTION, &params);
        Ok(())
    }
}

/// Sends a `session/cancel` for the session to the agent.
pub(super) fn cancel_turn(session: &str, out: &mut BridgeOutput) {
    let params = object! { "sessionId": session };
    write_notification(&mut out.agent, method::CANCEL_TURN, &params);
}
