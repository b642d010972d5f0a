//! Opening the session: a new one, an old one, or the one of a name.

use std::path::Path;
use std::time::Duration;

use acp::client::{AgentConnection, Session, SessionSetup};
use acp_config::{AgentChoice, SessionName, SessionNames};
use tokio::time::Instant;

use super::Run;
use super::client::{Notes, RunClient};
use crate::args::run::RunArgs;
use crate::exit::Exit;
use crate::login;
use crate::start::{Failure, gone};

/// How long an option may take to be offered.
const OFFERED: Duration = Duration::from_secs(3);

/// `--session`: the name, and which session has it.
pub(super) struct Naming {
    names: SessionNames,
    name: SessionName,
    /// What has the name.
    has: Option<String>,
    /// `--new`: another is to have it.
    anew: bool,
}

impl Naming {
    /// What the command line says of it, if anything.
    pub(super) fn of(
        args: &RunArgs,
        agent: &AgentChoice,
        cwd: &Path,
    ) -> Result<Option<Self>, Exit> {
        let Some(name) = &args.session else {
            return Ok(None);
        };
        let names = SessionNames::of(agent.key(), cwd);
        let has = names.find(name.as_str())?.map(|named| named.id);
        Ok(Some(Self {
            names,
            name: name.clone(),
            has,
            anew: args.new,
        }))
    }

    pub(super) fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Whether this session has the name.
    pub(super) fn is_of(&self, id: &str) -> bool {
        let named = self.names.find(self.name.as_str());
        named.is_ok_and(|named| named.is_some_and(|named| named.id == id))
    }

    /// The session to go on with; `None` if one is to be begun.
    pub(super) fn goes_on_with(&self) -> Option<String> {
        self.has.clone().filter(|_| !self.anew)
    }

    /// The agent has to keep its sessions.
    fn check(&self, run: &Run, agent: &AgentConnection) -> Result<(), Exit> {
        let offers = agent.capabilities();
        if offers.load_session || offers.session_capabilities.resume.is_some() {
            return Ok(());
        }
        if let Some(why) = run.why_not_kept() {
            return Err(Exit::usage(format!(
                "sessions are not kept, so that --session {} could not be gone on with: {why}",
                self.name
            )));
        }
        Err(Exit::usage(format!(
            "{} does not keep its sessions (it offers neither loadSession nor sessionCapabilities.resume), so that --session {} could not be gone on with",
            run.agent.title(),
            self.name
        )))
    }

    /// Why the session that has the name could not be gone on with.
    fn failed(&self, run: &Run, id: &str, error: &acp::Error) -> Exit {
        let agent = run.agent.title();
        let name = &self.name;
        let what = match gone(error) {
            true => {
                format!("the session `{name}` ({id}) is gone: {agent} does not have it any more")
            }
            false => format!("the session `{name}` ({id}) cannot be gone on with: {error}"),
        };
        Exit::failed(format!("{what}; --new begins another under this name"))
    }

    /// Gives the name to the session that was begun.
    fn give(&self, session: &Session, notes: &Notes) -> Result<(), Exit> {
        let id = session.id().as_str();
        let has = self.names.give(&self.name, id, self.has.as_deref())?;
        if has != id {
            // Another run was quicker.
            notes.add(format!(
                "`{}` has become the name of {has} meanwhile; this session is {id}",
                self.name
            ));
        }
        Ok(())
    }
}

/// Sets an option. Some agents learn only when a session is open what there is to choose from, such as the models of a
/// server; that is waited for.
async fn set_when_offered(session: &Session, key: &str, value: &str) -> acp::Result<()> {
    let deadline = Instant::now() + OFFERED;
    let mut seen = 0;
    loop {
        let error = match session.set_config_option(key, value).await {
            Err(error @ (acp::Error::NotOffered { .. } | acp::Error::Invalid(_))) => error,
            set => return set,
        };
        let changed = session.thread().changed(seen);
        match tokio::time::timeout_at(deadline, changed).await {
            Ok(revision) => seen = revision,
            Err(_) => return Err(error),
        }
    }
}

impl Run {
    /// Begins to talk, and opens the session.
    pub(super) async fn open(
        &self,
        (transport, options): (acp::Transport, acp::Options),
        client: RunClient,
        notes: Notes,
    ) -> Result<Session, Failure> {
        let agent = acp::client::connect_with(transport, client, options).await?;
        if let Some(named) = &self.named {
            named.check(self, &agent)?;
        }
        let setup = SessionSetup::new(&self.cwd).mcp_servers(self.mcp_servers.clone());
        let resumes = agent.capabilities().session_capabilities.resume.is_some();
        let session = match &self.resume {
            None => agent.new_session(setup).await,
            Some(id) if resumes => agent.resume_session(id.as_str(), setup).await,
            Some(id) => agent.load_session(id.as_str(), setup).await,
        };
        let session = match (session, &self.named, &self.resume) {
            (Err(error), _, _) if error.is_auth_required() => {
                return Err(login::needed(&self.target(), &agent, &error).into());
            }
            (Err(error @ acp::Error::Rpc(_)), Some(named), Some(id)) => {
                return Err(named.failed(self, id, &error).into());
            }
            (session, _, _) => session?,
        };
        if let (Some(named), None) = (&self.named, &self.resume) {
            named.give(&session, &notes)?;
        }
        self.configure(&session).await?;
        Ok(session)
    }

    /// Sets the mode and the options. What is configured of the agent is for new sessions, in which nobody has
    /// chosen yet; what is typed is for any.
    async fn configure(&self, session: &Session) -> Result<(), Failure> {
        let begins = self.resume.is_none();
        if let Some(mode) = &self.args.work.mode {
            session.set_mode(mode).await?;
        } else if let Some(mode) = self.agent.mode.as_deref().filter(|_| begins) {
            let set = session.set_mode(mode).await;
            set.map_err(|e| self.configured(&format!("mode {mode:?}"), e))?;
        }
        let is_typed = |key: &str| self.args.work.options.iter().any(|(typed, _)| typed == key);
        for (key, value) in self.agent.options.iter().filter(|_| begins) {
            if !is_typed(key) {
                let set = session.set_config_option(key.as_str(), value.as_str());
                let what = format!("option {key:?}");
                set.await.map_err(|e| self.configured(&what, e))?;
            }
        }
        for (key, value) in &self.args.work.options {
            set_when_offered(session, key, value).await?;
        }
        Ok(())
    }

    /// What is configured does not fit the agent.
    fn configured(&self, what: &str, error: acp::Error) -> Failure {
        match error {
            acp::Error::NotOffered { .. } | acp::Error::Invalid(_) => {
                let name = self.agent.key();
                Exit::usage(format!("[agents.{name}], {what}: {error}")).into()
            }
            other => other.into(),
        }
    }
}
