//! `--sandbox`, and the sandbox that `--allow none` and `--allow reads` imply: where what is started may write.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use acp_config::AgentChoice;
use acp_host::{AgentCommand, Policy, Sandbox, SandboxError, SandboxRules};

use crate::args::shared::{SandboxArgs, SandboxWrites};
use crate::exit::CommandExit;

/// Where what is started may write.
#[derive(Debug, Clone)]
pub(crate) struct Confinement {
    args: SandboxArgs,
    rules: SandboxRules,
    cwd: PathBuf,
    kind: ConfinementKind,
}

#[derive(Debug, Clone)]
enum ConfinementKind {
    /// It was asked for by name. The commands that an agent runs through us are in this sandbox.
    Explicit(Sandbox),
    /// The policy, which has this name, implies it. What runs through us is judged by the policy.
    Implied(&'static str),
}

/// How an agent is started.
#[derive(Debug)]
pub(crate) struct ConfinedCommand {
    pub(crate) command: AgentCommand,
    /// What the person is to be told of that.
    pub(crate) notes: Vec<String>,
}

impl Confinement {
    /// What the command line asks for, if anything, for someone who works in `cwd`. `policy` is what was typed
    /// behind `--allow`: a default asks for nothing, since an agent that keeps something of its own must start
    /// for someone who has never heard of sandboxes.
    pub(crate) fn of(
        args: &SandboxArgs,
        policy: Option<Policy>,
        cwd: &Path,
    ) -> Result<Option<Self>, CommandExit> {
        let Some(rules) = args.rules(policy)? else {
            return Ok(None);
        };
        let kind = match (args.sandbox, policy) {
            (None, Some(Policy::None)) => ConfinementKind::Implied("none"),
            (None, _) => ConfinementKind::Implied("reads"),
            (Some(_), _) => {
                let rules = rules.for_roots([cwd.to_owned()]);
                ConfinementKind::Explicit(Sandbox::with(rules).map_err(|e| sandbox_exit(&e))?)
            }
        };
        Ok(Some(Self {
            args: args.clone(),
            rules,
            cwd: cwd.to_owned(),
            kind,
        }))
    }

    /// The sandbox of the commands that agents run through us, if they are to be in one.
    pub(crate) fn of_commands(&self) -> Option<&Sandbox> {
        match &self.kind {
            ConfinementKind::Explicit(sandbox) => Some(sandbox),
            ConfinementKind::Implied(_) => None,
        }
    }

    /// How the same is said to another `acp`: what was typed.
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

    fn is_read_only(&self) -> bool {
        let named = self.args.sandbox.and_then(|mode| mode.writes);
        match named {
            Some(writes) => writes == SandboxWrites::ReadOnly,
            None => self.rules == self.rules.clone().read_only(),
        }
    }

    /// An agent's command, confined.
    ///
    /// Where the agent may write in the project, the bundled one is itself careful where it does, and confines
    /// its commands; of another nobody knows. Where nobody may, each agent is confined with all that it starts,
    /// and may write what it keeps of its own.
    ///
    /// # Errors
    /// A sandbox that was asked for by name is not possible. One that is implied is then done without, and the
    /// notes say so.
    pub(crate) fn confine(
        &self,
        agent: &AgentChoice,
        command: AgentCommand,
    ) -> Result<ConfinedCommand, CommandExit> {
        let command = match (&self.kind, agent.is_bundled()) {
            (ConfinementKind::Explicit(_), true) => command.args(self.arguments()),
            _ => command,
        };
        if !self.is_read_only() {
            let command = match &self.kind {
                ConfinementKind::Explicit(sandbox) if !agent.is_bundled() => {
                    command.sandboxed(sandbox.clone())
                }
                _ => command,
            };
            let notes = Vec::new();
            return Ok(ConfinedCommand { command, notes });
        }
        // Nothing is made in anybody's home directory where there will be no sandbox.
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
            // It asks a model over the network; its commands have a sandbox of their own, without.
            rules = rules.with_network();
        }
        let sandbox = Sandbox::with(rules).map_err(|e| sandbox_exit(&e))?;
        Ok(ConfinedCommand {
            command: command.sandboxed(sandbox),
            notes: own.notes,
        })
    }

    /// What to do where an agent breaks in a sandbox that nobody named.
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
