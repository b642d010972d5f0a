//! What the client sends, in version 1, and what the agent gets of it.

use acp_wire::RawObject;
use acp_wire::jsonrpc::{self, CancelRequestNotification, RequestId};

use super::super::config::Switch;
use super::super::json::{Line, Out, notify, raw, session_asked};
use super::super::{method, setup};
use super::{Asked, Down, Turn};

impl Down {
    pub(super) fn client_asks(
        &mut self,
        id: &RequestId,
        asked: &str,
        mut params: RawObject,
        line: &Line<'_>,
        out: &mut Out,
    ) -> Result<(), jsonrpc::Error> {
        self.asked.room(id)?;
        let what = match asked {
            method::INITIALIZE => {
                return Err(jsonrpc::Error::new(
                    jsonrpc::Error::INVALID_REQUEST,
                    "Invalid request: the connection is initialized already",
                ));
            }
            method::PROMPT => {
                let session = session_asked(&params)?;
                self.sessions.touch(&session).turns.push_back(Turn {
                    id: id.clone(),
                    taken: false,
                    cancelled: false,
                    message: None,
                });
                line.pass(&mut out.agent);
                Asked::Prompt { session }
            }
            method::NEW | method::FORK => {
                setup::servers_to_v2(&mut params);
                line.with_params(&mut out.agent, &params);
                Asked::Open
            }
            method::LOAD | method::RESUME => {
                let session = session_asked(&params)?;
                let replayed = asked == method::LOAD;
                setup::servers_to_v2(&mut params);
                if replayed {
                    params.set("replayFrom", raw(&object! { "type": "start" }));
                    self.sessions.touch(&session).replays += 1;
                }
                line.with_method(&mut out.agent, method::RESUME, &params);
                Asked::Resume { session, replayed }
            }
            method::CLOSE | method::DELETE | method::ARCHIVE => {
                let session = session_asked(&params)?;
                line.pass(&mut out.agent);
                Asked::Close { session }
            }
            method::SET_OPTION => {
                let session = session_asked(&params)?;
                if !params.has("type") {
                    let boolean = params.field::<bool>("value").is_some();
                    params.set("type", raw(if boolean { "boolean" } else { "id" }));
                }
                line.with_params(&mut out.agent, &params);
                Asked::Set { session }
            }
            method::SET_MODE => {
                let session = session_asked(&params)?;
                self.switch(&session, Switch::Mode, params, line, out)?;
                Asked::Switch { session }
            }
            method::SET_MODEL => {
                let session = session_asked(&params)?;
                self.switch(&session, Switch::Model, params, line, out)?;
                Asked::Switch { session }
            }
            method::AUTHENTICATE => {
                line.with_method(&mut out.agent, method::LOGIN, &params);
                Asked::Plain
            }
            method::LOGOUT_V1 => {
                line.with_method(&mut out.agent, method::LOGOUT_V2, &params);
                Asked::Plain
            }
            _ => {
                line.pass(&mut out.agent);
                Asked::Plain
            }
        };
        self.asked.add(id, what);
        Ok(())
    }

    pub(super) fn client_says(
        &mut self,
        said: &str,
        params: &RawObject,
        line: &Line<'_>,
        out: &mut Out,
    ) {
        if said == method::CANCEL_REQUEST
            && let Ok(cancel) = params.read::<CancelRequestNotification>()
            && let Some(Asked::Prompt { session }) = self.asked.get(&cancel.request_id)
        {
            let session_id = session.clone();
            let turn = self.sessions.get(&session_id).and_then(|session| {
                let mut turns = session.turns.iter_mut();
                turns.find(|turn| turn.id == cancel.request_id)
            });
            if let Some(turn) = turn {
                turn.cancelled = true;
                if turn.taken {
                    // The agent has answered that request. What the client means is its turn.
                    return cancel_turn(&session_id, out);
                }
            }
        }
        line.pass(&mut out.agent);
    }

    /// Sets a mode or model, which the agent has as a config option.
    fn switch(
        &mut self,
        session: &str,
        switch: Switch,
        params: RawObject,
        line: &Line<'_>,
        out: &mut Out,
    ) -> Result<(), jsonrpc::Error> {
        let option = self
            .sessions
            .get(session)
            .and_then(|session| session.config.id_of(switch));
        let Some(option) = option else {
            let text = format!("Invalid params: the session has no {}", switch.category());
            return Err(jsonrpc::Error::invalid_params(text));
        };
        let mut params = params
            .renamed("modeId", "value")
            .renamed("modelId", "value");
        params.set("configId", option);
        params.set("type", raw("id"));
        line.with_method(&mut out.agent, method::SET_OPTION, &params);
        Ok(())
    }
}

/// Cancels what the session works on.
pub(super) fn cancel_turn(session: &str, out: &mut Out) {
    let params = object! { "sessionId": session };
    notify(&mut out.agent, method::CANCEL, &params);
}
