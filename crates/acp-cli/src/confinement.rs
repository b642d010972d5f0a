//! `--sandbox`: where what is started may write.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use acp_host::{AgentCommand, Sandbox};

use crate::agents::Chosen;
use crate::args::SandboxArgs;
use crate::exit::Exit;

/// Where what is started may write.
pub(crate) struct Confinement {
    pub(crate) sandbox: Sandbox,
    /// Beside the working directory.
    writable: Vec<PathBuf>,
}

impl Confinement {
    /// What the command line asks for, if anything, for someone who works in `cwd`.
    pub(crate) fn of(args: &SandboxArgs, cwd: &Path) -> Result<Option<Self>, Exit> {
        let Some(writable) = args.writable()? else {
            return Ok(None);
        };
        let everywhere = std::iter::once(cwd.to_owned()).chain(writable.iter().cloned());
        let sandbox =
            Sandbox::new(everywhere).map_err(|e| Exit::usage(format!("--sandbox: {e}")))?;
        Ok(Some(Self { sandbox, writable }))
    }

    /// How the same is said to another `acp`.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = OsString> {
        let writable = self
            .writable
            .iter()
            .flat_map(|path| ["--writable".into(), path.into()]);
        std::iter::once("--sandbox".into()).chain(writable)
    }

    /// An agent's command, confined. The bundled one is itself careful where it writes, and confines its commands; of
    /// another nobody knows.
    pub(crate) fn confine(&self, agent: &Chosen, command: AgentCommand) -> AgentCommand {
        if agent.is_bundled() {
            command.args(self.arguments())
        } else {
            command.sandboxed(self.sandbox.clone())
        }
    }
}
