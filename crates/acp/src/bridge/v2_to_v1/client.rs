//! The translation of the client's messages from version 1 to version 2.

use acp_wire::RawObject;
use acp_wire::jsonrpc::{self, CancelRequestNotification, RequestId};

use super::super::config::LegacyOption;
use super::super::json::{BridgeLine, BridgeOutput, notify, require_session_id, to_raw_value};
use super::super::{method, setup};
use super::{DownPendingRequest, DownTurn, V2ToV1Bridge};

/// Adds the type of an option's value, which version 2 requires.
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
        self.client_requests.check_room(id)?;
        let what = match method_name {
            method::INITIALIZE => {
                return Err(jsonrpc::Error::new(
                    jsonrpc::Error::INVALID_REQUEST,
                    "Invalid request: the connection is already initialized",
                ));
            }
            method::PROMPT => {
                let session = require_session_id(&params)?;
                self.sessions.touch(&session).turns.push_back(DownTurn {
                    id: id.clone(),
                    accepted: false,
                    cancelled: false,
                    message_id: None,
                });
                line.pass(&mut out.agent);
                DownPendingRequest::Prompt { session }
            }
            method::NEW | method::FORK => {
                setup::servers_to_v2(&mut params);
                line.with_params(&mut out.agent, &params);
                DownPendingRequest::OpenSession
            }
            method::LOAD | method::RESUME => {
                let session = require_session_id(&params)?;
                let replayed = method_name == method::LOAD;
                setup::servers_to_v2(&mut params);
                if replayed {
                    params.set("replayFrom", to_raw_value(&object! { "type": "start" }));
                    self.sessions.touch(&session).replays += 1;
                }
                line.with_method(&mut out.agent, method::RESUME, &params);
                DownPendingRequest::Resume { session, replayed }
            }
            method::CLOSE | method::DELETE | method::ARCHIVE => {
                let session = require_session_id(&params)?;
                line.pass(&mut out.agent);
                DownPendingRequest::Close { session }
            }
            method::SET_OPTION => {
                let session = require_session_id(&params)?;
                add_value_type(&mut params);
                line.with_params(&mut out.agent, &params);
                DownPendingRequest::SetOption { session }
            }
            method::SET_MODE | method::SET_MODEL => {
                let session = require_session_id(&params)?;
                let option = match method_name {
                    method::SET_MODE => LegacyOption::Mode,
                    _ => LegacyOption::Model,
                };
                self.set_legacy_option(&session, option, params, line, out)?;
                DownPendingRequest::SetLegacyOption { session }
            }
            method::AUTHENTICATE => {
                line.with_method(&mut out.agent, method::LOGIN, &params);
                DownPendingRequest::PassThrough
            }
            method::LOGOUT_V1 => {
                line.with_method(&mut out.agent, method::LOGOUT_V2, &params);
                DownPendingRequest::PassThrough
            }
            _ => {
                line.pass(&mut out.agent);
                DownPendingRequest::PassThrough
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
            && let Some(DownPendingRequest::Prompt { session }) =
                self.client_requests.get(&cancel.request_id)
        {
            let session_id = session.clone();
            let turn = self.sessions.get(&session_id).and_then(|session| {
                let mut turns = session.turns.iter_mut();
                turns.find(|turn| turn.id == cancel.request_id)
            });
            if let Some(turn) = turn {
                turn.cancelled = true;
                if turn.accepted {
                    // The agent has already responded to the prompt request, so the client means the turn.
                    return cancel_turn(&session_id, out);
                }
            }
        }
        line.pass(&mut out.agent);
    }

    /// Sets a mode or a model, which is a config option in version 2.
    fn set_legacy_option(
        &mut self,
        session: &str,
        switch: LegacyOption,
        params: RawObject,
        line: &BridgeLine<'_>,
        out: &mut BridgeOutput,
    ) -> Result<(), jsonrpc::Error> {
        let option = self
            .sessions
            .get(session)
            .and_then(|session| session.config.id_of(switch));
        let Some(option) = option else {
            let text = format!(
                "Invalid params: the session has no {} option",
                switch.category()
            );
            return Err(jsonrpc::Error::invalid_params(text));
        };
        let mut params = params
            .renamed("modeId", "value")
            .renamed("modelId", "value");
        params.set("configId", option);
        params.set("type", to_raw_value("id"));
        line.with_method(&mut out.agent, method::SET_OPTION, &params);
        Ok(())
    }
}

/// Sends a `session/cancel` for the session to the agent.
pub(super) fn cancel_turn(session: &str, out: &mut BridgeOutput) {
    let params = object! { "sessionId": session };
    notify(&mut out.agent, method::CANCEL, &params);
}
