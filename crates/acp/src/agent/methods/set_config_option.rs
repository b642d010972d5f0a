//! `session/set_config_option` and its predecessors, `session/set_mode` and `session/set_model`.

use acp_wire::MessageHandler;
use acp_wire::v1::{
    self, ConfigOptionUpdate, CurrentModeUpdate, SessionConfigId, SessionConfigOption,
    SessionConfigOptionCategory, SessionConfigOptionValue, SessionId, SessionUpdate,
    SetSessionModeRequest, SetSessionModeResponse, SetSessionModelRequest, SetSessionModelResponse,
};
use acp_wire::v2;

use crate::agent::session::Session;
use crate::agent::side::AgentSide;
use crate::agent::{Agent, config};
use crate::dialect;
use crate::error::{Error, Result};
use crate::pending_request::PendingRequest;

impl<A: Agent> MessageHandler<v1::SetSessionConfigOptionRequest, ()>
    for PendingRequest<AgentSide<A>>
{
    fn handle(self, request: v1::SetSessionConfigOptionRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let session = side.session(&request.session_id)?;
            let options = side
                .set_option(&session, &request.config_id, request.value, true)
                .await?;
            Ok(v1::SetSessionConfigOptionResponse::new(options))
        });
    }
}

impl<A: Agent> MessageHandler<v2::SetSessionConfigOptionRequest, ()>
    for PendingRequest<AgentSide<A>>
{
    fn handle(self, request: v2::SetSessionConfigOptionRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let option = request.config_id;
            let value = match request.value {
                v2::SessionConfigOptionValue::Id(id) => SessionConfigOptionValue::Id(id),
                v2::SessionConfigOptionValue::Boolean(value) => {
                    SessionConfigOptionValue::Boolean(value)
                }
                _ => {
                    return Err(Error::invalid_params(format!(
                        "wrong value type for config option {option}"
                    )));
                }
            };
            let session = side.session(&request.session_id)?;
            let options = side.set_option(&session, &option, value, true).await?;
            let options = dialect::options_to_v2(options);
            Ok(v2::SetSessionConfigOptionResponse::new(options))
        });
    }
}

impl<A: Agent> MessageHandler<SetSessionModeRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: SetSessionModeRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let (session, mode) = (&request.session_id, request.mode_id.as_str());
            side.set_first_option_of_category(session, &SessionConfigOptionCategory::Mode, mode)
                .await?;
            Ok(SetSessionModeResponse::new())
        });
    }
}

impl<A: Agent> MessageHandler<SetSessionModelRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: SetSessionModelRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let (session, model) = (&request.session_id, request.model_id.as_str());
            side.set_first_option_of_category(session, &SessionConfigOptionCategory::Model, model)
                .await?;
            Ok(SetSessionModelResponse::new())
        });
    }
}

impl<A: Agent> AgentSide<A> {
    /// Sets a config option and returns the options that the client supports. Also reports the change in the other
    /// form: a mode change if the client set the option, or config options if the client set the mode.
    async fn set_option(
        &self,
        session: &Session,
        option: &SessionConfigId,
        value: SessionConfigOptionValue,
        as_option: bool,
    ) -> Result<Vec<SessionConfigOption>> {
        config::check_option_value(&session.config_options(), option, &value)?;
        let state = session.require_agent_state::<A>()?;
        let options = self
            .agent
            .set_config_option(&state, session, option, value)
            .await?;
        let mode = session.replace_config_options(options.clone());
        let client = session.client();
        let shown = config::supported_options(options, client.supports_boolean_options());
        if !as_option {
            let update = ConfigOptionUpdate::new(shown.clone());
            session
                .send_update(SessionUpdate::ConfigOptionUpdate(update))
                .await?;
        } else if let (Some(mode), false) = (mode, client.is_v2()) {
            let update = CurrentModeUpdate::new(mode);
            session
                .send_update(SessionUpdate::CurrentModeUpdate(update))
                .await?;
        }
        Ok(shown)
    }

    /// Sets the first config option of a category, for clients that still set modes or models.
    async fn set_first_option_of_category(
        &self,
        session: &SessionId,
        category: &SessionConfigOptionCategory,
        value: &str,
    ) -> Result<()> {
        let session = self.session(session)?;
        let option =
            config::find_option_id(&session.config_options(), category).ok_or_else(|| {
                Error::invalid_params(format!("this session has no {category} option"))
            })?;
        self.set_option(&session, &option, value.into(), false)
            .await?;
        Ok(())
    }
}
