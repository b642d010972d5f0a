//! What `acp run` is to do, known before the agent is started.

use std::path::PathBuf;

use acp::v1::McpServer;
use acp_config::AgentChoice;
use acp_host::{AgentProcess, Attachment, Permissions, Policy};

use super::naming::Naming;
use super::notes::Notes;
use super::prompt;
use crate::args::run::RunArgs;
use crate::ask;
use crate::confinement::Confinement;
use crate::exit::Exit;
use crate::permissions;
use crate::start::Target;

/// What was asked for, read and looked at.
pub(super) struct RunSetup {
    pub(super) args: RunArgs,
    pub(super) text: String,
    pub(super) attachments: Vec<Attachment>,
    pub(super) mcp_servers: Vec<McpServer>,
    pub(super) cwd: PathBuf,
    pub(super) permissions: Permissions,
    pub(super) agent: AgentChoice,
    /// The session to go on with.
    pub(super) resume: Option<String>,
    pub(super) named: Option<Naming>,
    pub(super) sandbox: Option<Confinement>,
}

impl RunSetup {
    /// All that can be wrong about the command line is said before anything is started.
    pub(super) fn prepare(args: RunArgs) -> Result<Self, Exit> {
        let text = prompt::read(&args)?;
        let attachments = prompt::attachments(&args.attach)?;
        let cwd = args.work.directory()?;
        if args.allow == Some(Policy::Ask) && !ask::possible() {
            return Err(Exit::usage("--allow ask needs a terminal to ask on"));
        }
        let permissions = permissions::of(args.allow, &cwd)?;
        let mut agent = args.which.choose(&cwd)?;
        let configured = std::mem::take(&mut agent.mcp_servers);
        let mcp_servers = args.work.servers(configured)?;
        let named = Naming::of(&args, &agent, &cwd)?;
        let resume = match &named {
            Some(named) => named.goes_on_with(),
            None => args.resume.clone(),
        };
        let sandbox = Confinement::of(&args.work.sandbox, args.allow, &cwd)?;
        Ok(Self {
            args,
            text,
            attachments,
            mcp_servers,
            cwd,
            permissions,
            agent,
            resume,
            named,
            sandbox,
        })
    }

    /// Starts the agent.
    pub(super) fn start(&self, notes: &Notes) -> Result<AgentProcess, Exit> {
        let mut command = self.target().command_for(&self.permissions)?;
        if let Some(confinement) = &self.sandbox {
            let confined = confinement.confine(&self.agent, command)?;
            command = confined.command;
            for note in confined.notes {
                notes.add(note);
            }
        }
        self.target().spawn_as(&command)
    }

    /// Adds to what is said of an agent that broke what may help against that.
    pub(super) fn with_hint(&self, mut exit: Exit) -> Exit {
        /// What an agent says that may not write.
        const REFUSED: [&str; 6] = [
            "permission denied",
            "eacces",
            "eperm",
            "erofs",
            "readonly",
            "read-only",
        ];
        let hint = self.sandbox.as_ref().and_then(Confinement::hint);
        if let (Some(message), Some(hint)) = (&mut exit.message, hint) {
            let said = message.to_ascii_lowercase();
            if exit.code == Exit::BROKEN || REFUSED.iter().any(|words| said.contains(words)) {
                message.push('\n');
                message.push_str(&hint);
            }
        }
        exit
    }

    /// Why the bundled agent keeps no sessions, if it is the one and cannot.
    pub(super) fn why_not_kept(&self) -> Option<String> {
        match self.agent.is_bundled() {
            true => crate::agent::why_not_kept(),
            false => None,
        }
    }

    pub(super) fn target(&self) -> Target<'_> {
        Target {
            agent: &self.agent,
            cwd: &self.cwd,
        }
    }
}
