//! `--session`: the name of the session that `acp run` continues or starts.

use std::path::Path;

use acp::client::{AgentConnection, ClientSession};
use acp_config::{AgentChoice, SessionName, SessionNames};

use super::notes::RunNotes;
use crate::args::run::RunArgs;
use crate::exit::CommandExit;
use crate::start::is_not_found;

/// A session name and the session it refers to.
pub(super) struct SessionNaming {
    names: SessionNames,
    name: SessionName,
    /// The id of the session with this name, if there is one.
    session_id: Option<String>,
    /// Whether to start a new session with this name (`--new`).
    is_new: bool,
}

impl SessionNaming {
    /// Returns the session name given on the command line, if any.
    pub(super) fn from_args(
        args: &RunArgs,
        agent: &AgentChoice,
        cwd: &Path,
    ) -> Result<Option<Self>, CommandExit> {
        let Some(name) = &args.session else {
            return Ok(None);
        };
        let names = SessionNames::open(agent.storage_key(), cwd);
        let has = names.find(name.as_str())?.map(|named| named.id);
        Ok(Some(Self {
            names,
            name: name.clone(),
            session_id: has,
            is_new: args.new,
        }))
    }

    pub(super) fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Returns `true` if the session with this id has the name.
    pub(super) fn belongs_to(&self, id: &str) -> bool {
        let named = self.names.find(self.name.as_str());
        named.is_ok_and(|named| named.is_some_and(|named| named.id == id))
    }

    /// Returns the id of the session to continue, or `None` to start a new one.
    pub(super) fn existing_session(&self) -> Option<String> {
        self.session_id.clone().filter(|_| !self.is_new)
    }

    /// Returns an error unless the agent stores its sessions.
    ///
    /// `why_not` returns the reason why it does not, if that is known.
    pub(super) fn require_stored_sessions(
        &self,
        agent: &AgentChoice,
        connection: &AgentConnection,
        why_not: impl FnOnce() -> Option<String>,
    ) -> Result<(), CommandExit> {
        let offers = connection.capabilities();
        if offers.load_session || offers.session_capabilities.resume.is_some() {
            return Ok(());
        }
        if let Some(why) = why_not() {
            return Err(CommandExit::usage(format!(
                "cannot use --session {}: sessions are not stored: {why}",
                self.name
            )));
        }
        Err(CommandExit::usage(format!(
            "{} does not store sessions (it supports neither loadSession nor sessionCapabilities.resume), so --session {} cannot be used",
            agent.display_name(),
            self.name
        )))
    }

    /// Returns the `CommandExit` to use if a named session could not be opened.
    pub(super) fn open_failure_exit(
        &self,
        agent: &AgentChoice,
        id: &str,
        error: &acp::Error,
    ) -> CommandExit {
        let agent = agent.display_name();
        let name = &self.name;
        let what = match is_not_found(error) {
            true => {
                format!("session not found: `{name}` ({id}) no longer exists in {agent}")
            }
            false => format!("cannot resume session `{name}` ({id}): {error}"),
        };
        CommandExit::failed(format!(
            "{what}; use --new to start a new session under this name"
        ))
    }

    /// Gives the name to the new session.
    pub(super) fn assign(
        &self,
        session: &ClientSession,
        notes: &RunNotes,
    ) -> Result<(), CommandExit> {
        let id = session.id().as_str();
        let has = self
            .names
            .assign(&self.name, id, self.session_id.as_deref())?;
        if has != id {
            // Another run assigned the name first.
            notes.add(format!(
                "the name `{}` was given to session {has} in the meantime; the id of this session is {id}",
                self.name
            ));
        }
        Ok(())
    }
}
