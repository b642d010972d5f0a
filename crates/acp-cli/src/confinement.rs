//! Restricts where the agent and its commands may write: implements `--sandbox`, and the sandbox that `--allow none`
//! and `--allow reads` imply.

use std::ffi::OsString;
use std::path::PathBuf;

use acp_config::AgentChoice;
use acp_host::{AgentCommand, Policy, Sandbox, SandboxError, SandboxRules};

use crate::args::shared::{SandboxArgs, SandboxWrites};
use crate::exit::CommandExit;

/// The restriction on where the agent and its commands may write.
#[derive(Debug, Clone)]
pub(crate) struct Confinement {
    args: SandboxArgs,
    rules: SandboxRules,
    cwd: PathBuf,
    // Local servers exist only on Unix.
    #[cfg_attr(not(unix), allow(dead_code))]
    additional_roots: Vec<PathBuf>,
    kind: ConfinementKind,
}

#[derive(Debug, Clone)]
enum ConfinementKind {
    /// The user requested the sandbox. It also applies to commands that the agent runs through the host.
    Explicit(Sandbox),
    /// The sandbox is implied by the policy with this name. Commands that the agent runs through the host are not
    /// sandboxed, since the policy already applies to them.
    Implied(&'static str),
}

/// An agent's command with its sandbox.
#[derive(Debug)]
pub(crate) struct ConfinedCommand {
    pub(crate) command: AgentCommand,
    /// Messages about the sandbox to show to the user.
    pub(crate) notes: Vec<String>,
}

impl Confinement {
    /// Returns the sandbox that the command line requests or implies, if any, for sessions in `roots`. The first root
    /// is the agent's working directory. `policy` is the value of `--allow`. The default policy implies no sandbox, so
    /// that agents that write their own state can start even if the user does not know about sandboxes.
    pub(crate) fn from_args(
        args: &SandboxArgs,
        policy: Option<Policy>,
        roots: &[PathBuf],
    ) -> Result<Option<Self>, CommandExit> {
        let Some(rules) = args.rules(policy)? else {
            return Ok(None);
        };
        let kind = match (args.sandbox, policy) {
            (None, Some(Policy::None)) => ConfinementKind::Implied("none"),
            (None, _) => ConfinementKind::Implied("reads"),
            (Some(_), _) => {
                let rules = rules.for_roots(roots.iter().cloned());
                ConfinementKind::Explicit(Sandbox::from_rules(rules).map_err(|e| sandbox_exit(&e))?)
            }
        };
        Ok(Some(Self {
            args: args.clone(),
            rules,
            cwd: roots.first().cloned().unwrap_or_default(),
            additional_roots: roots.get(1..).unwrap_or_default().to_vec(),
            kind,
        }))
    }

    /// Returns the sandbox for commands that agents run through the host, if any.
    pub(crate) fn command_sandbox(&self) -> Option<&Sandbox> {
        match &self.kind {
            ConfinementKind::Explicit(sandbox) => Some(sandbox),
            ConfinementKind::Implied(_) => None,
        }
    }

    /// Returns the arguments that start another `acp` process with the same sandbox.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        if let Some(mode) = self.args.sandbox {
            let read_only = match self.is_read_only() {
                true => "read-only",
                false => "workspace",
            };
            words.push(match (self.is_read_only(), mode.no_network) {
                (false, false) => "--sandbox".into(),
                (_, false) => format!("--sandbox={read_only}").into(),
                (_, true) => format!("--sandbox={read_only},no-network").into(),
            });
        }
        for path in &self.args.writable {
            let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            words.extend(["--writable".into(), path.into()]);
        }
        for port in &self.args.reachable {
            words.extend(["--reachable".into(), port.0.to_string().into()]);
        }
        words
    }

    /// Returns the arguments that start the server of a live session with the same sandbox. Unlike an agent, the server
    /// does not learn the session's additional directories until its agent has started.
    #[cfg_attr(not(unix), allow(dead_code))]
    pub(crate) fn server_arguments(&self) -> Vec<OsString> {
        let mut words = self.arguments();
        if self.args.sandbox.is_some() && !self.is_read_only() {
            for root in &self.additional_roots {
                words.extend(["--writable".into(), root.into()]);
            }
        }
        words
    }

    fn is_read_only(&self) -> bool {
        let named = self.args.sandbox.and_then(|mode| mode.writes);
        match named {
            Some(writes) => writes == SandboxWrites::ReadOnly,
            None => self.rules == self.rules.clone().read_only(),
        }
    }

    /// Wraps an agent's command in the sandbox.
    ///
    /// A remote agent cannot be confined from here. The process in its place only passes messages on.
    ///
    /// If the agent may write to the project, the bundled agent needs no sandbox itself: it controls its own writes and
    /// confines its commands. Any other agent is confined. In a read-only sandbox, every agent is confined together
    /// with everything it starts, and may write only its own state.
    ///
    /// # Errors
    /// A sandbox that was asked for by name is not available. If an implied sandbox is not available, the agent runs
    /// without it, and the notes say so.
    pub(crate) fn confine(
        &self,
        agent: &AgentChoice,
        command: AgentCommand,
    ) -> Result<ConfinedCommand, CommandExit> {
        if agent.remote.is_some() {
            let option = match self.kind {
                ConfinementKind::Explicit(_) => "--sandbox".to_owned(),
                ConfinementKind::Implied(policy) => format!("--allow {policy}"),
            };
            let notes = vec![format!(
                "warning: {option} does not confine a remote agent; it applies only to the agent's actions on this machine"
            )];
            return Ok(ConfinedCommand { command, notes });
        }
        let command = match (&self.kind, agent.is_bundled()) {
            (ConfinementKind::Explicit(_), true) => command.args(self.arguments()),
            _ => command,
        };
        if !self.is_read_only() {
            let command = match &self.kind {
                ConfinementKind::Explicit(sandbox) if !agent.is_bundled() => {
                    command.sandbox(sandbox.clone())
                }
                _ => command,
            };
            let notes = Vec::new();
            return Ok(ConfinedCommand { command, notes });
        }
        // Check first, so that no state directories are created in a home directory when there will be no sandbox.
        let possible = Sandbox::new([]);
        if let (Err(SandboxError::NotSupported { why }), ConfinementKind::Implied(policy)) =
            (&possible, &self.kind)
        {
            let notes = vec![format!(
                "warning: --allow {policy} is not enforced for the agent: sandbox not available: {why}"
            )];
            return Ok(ConfinedCommand { command, notes });
        }
        drop(possible.map_err(|e| sandbox_exit(&e))?);
        let own = agent.state_paths(&self.cwd);
        let mut rules = self.rules.clone().writable(own.writable);
        if agent.is_bundled() {
            // The agent calls a model over the network; its commands have a sandbox of their own without network.
            rules = rules.with_network();
        }
        let sandbox = Sandbox::from_rules(rules).map_err(|e| sandbox_exit(&e))?;
        Ok(ConfinedCommand {
            command: command.sandbox(sandbox),
            notes: own.notes,
        })
    }

    /// Returns a hint to show if an agent fails in an implied sandbox.
    pub(crate) fn hint(&self) -> Option<String> {
        match self.kind {
            ConfinementKind::Explicit(_) => None,
            ConfinementKind::Implied(policy) => Some(format!(
                "with --allow {policy}, the agent can write only to its known state directories; use --writable DIR to allow more, or --sandbox=off to disable the sandbox"
            )),
        }
    }
}

fn sandbox_exit(error: &SandboxError) -> CommandExit {
    CommandExit::usage(format!("--sandbox: {error}"))
}
