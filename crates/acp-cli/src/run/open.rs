//! Opens the session: a new one, an existing one, or a named one.

use acp::client::{AgentConnection, ClientSession, SessionSetup};
use acp_host::session_options::{set_model_when_offered, set_option_when_offered};
use serde_json::json;

use super::client::RunClient;
use super::notes::RunNotes;
use super::setup::RunSetup;
use crate::exit::CommandExit;
use crate::login;
use crate::start::StartFailure;

/// Returns `true` if several clients share the agent.
pub(super) fn is_live(agent: &AgentConnection) -> bool {
    let meta = agent.capabilities().meta.as_ref();
    meta.is_some_and(|meta| meta.contains_key("live"))
}

/// Returns `true` if the agent of a live session can open the session again after it has ended.
fn stores_sessions(agent: &AgentConnection) -> bool {
    let meta = agent.capabilities().meta.as_ref();
    let live = meta.and_then(|meta| meta.get("live"));
    live.is_none_or(|live| live["isStored"] != false)
}

impl RunSetup {
    /// Connects to the agent and opens the session.
    pub(super) async fn open(
        &self,
        (transport, options): (acp::Transport, acp::Options),
        client: RunClient,
        notes: RunNotes,
    ) -> Result<ClientSession, StartFailure> {
        let (handshake, driver) = acp::client::connect_with(transport, client, options);
        tokio::spawn(driver);
        let agent = handshake.await?;
        if is_live(&agent) {
            // The policy and the rules of this run are for its own turn only.
            let questions = json!({ "questions": "own" });
            agent
                .connection()
                .notify_raw("_live/answers", &questions)
                .await?;
        }
        if let Some(named) = &self.naming {
            named.require_stored_sessions(&self.agent, &agent, || self.storage_problem())?;
        }
        let mut setup = SessionSetup::new(&self.cwd)
            .additional_directories(&self.additional_directories)
            .mcp_servers(self.mcp_servers.clone());
        setup.system_prompt = self.args.system_prompt();
        let resumes = agent.capabilities().session_capabilities.resume.is_some();
        let session = match &self.resume {
            None => agent.new_session(setup).await,
            Some(id) if self.args.fork.fork => agent.fork_session(id.as_str(), setup).await,
            Some(id) if resumes => agent.resume_session(id.as_str(), setup).await,
            Some(id) => agent.load_session(id.as_str(), setup).await,
        };
        let session = match (session, &self.naming, &self.resume) {
            (Err(error), _, _) if error.is_auth_required() => {
                return Err(login::login_required_exit(&self.target(), &agent, &error).into());
            }
            (Err(error @ acp::Error::Rpc(_)), Some(named), Some(id)) => {
                return Err(named.open_failure_exit(&self.agent, id, &error).into());
            }
            (session, _, _) => session?,
        };
        if let (Some(named), None) = (&self.naming, &self.resume) {
            named.assign(&session, &notes)?;
            if self.live.is_some() && !stores_sessions(&agent) {
                notes.add(format!(
                    "{} does not store sessions: `{}` ends when it has not been used for {} s",
                    self.agent.display_name(),
                    named.name(),
                    self.args.server.keep
                ));
            }
        }
        self.configure(&session).await?;
        Ok(session)
    }

    /// Sets the mode and the config options. Values configured for the agent apply only to new sessions, since the user
    /// may have chosen others in an existing session. Values on the command line always apply.
    async fn configure(&self, session: &ClientSession) -> Result<(), StartFailure> {
        let begins = self.resume.is_none();
        if let Some(mode) = &self.args.session_args.mode {
            session.set_mode(mode).await?;
        } else if let Some(mode) = self.agent.mode.as_deref().filter(|_| begins) {
            let set = session.set_mode(mode).await;
            set.map_err(|e| self.configuration_error(&format!("mode {mode:?}"), e))?;
        }
        let is_typed = |key: &str| {
            self.args
                .session_args
                .options
                .iter()
                .any(|(typed, _)| typed == key)
        };
        for (key, value) in self.agent.options.iter().filter(|_| begins) {
            if !is_typed(key) {
                let set = session.set_config_option(key.as_str(), value.as_str());
                let what = format!("option {key:?}");
                set.await.map_err(|e| self.configuration_error(&what, e))?;
            }
        }
        if let Some(model) = &self.args.model
            && !set_model_when_offered(session, model).await?
        {
            let message = "--model: the agent does not offer a choice of models";
            return Err(CommandExit::usage(message).into());
        }
        for (key, value) in &self.args.session_args.options {
            set_option_when_offered(session, key, value).await?;
        }
        Ok(())
    }

    /// Returns the failure for a configured value that the agent does not offer.
    fn configuration_error(&self, what: &str, error: acp::Error) -> StartFailure {
        match error {
            acp::Error::Unsupported { .. } | acp::Error::InvalidRequest(_) => {
                let name = self.agent.storage_key();
                CommandExit::usage(format!("[agents.{name}], {what}: {error}")).into()
            }
            other => other.into(),
        }
    }
}
