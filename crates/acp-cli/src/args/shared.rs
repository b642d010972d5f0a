//! What several commands take.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::exit::Exit;

// Where what is started may write.
#[derive(Debug, clap::Args)]
pub(crate) struct SandboxArgs {
    /// Let commands, and agents other than the bundled one, read everything and write only where the session
    /// works, in a temporary directory of their own, and to what --writable adds. Takes Linux 6.2 or later;
    /// where it is not possible, nothing is started.
    #[arg(long)]
    pub(crate) sandbox: bool,

    /// Let them write here, too; can be given several times. Agents that keep something in the home
    /// directory need this.
    #[arg(long, value_name = "DIR", requires = "sandbox")]
    pub(crate) writable: Vec<PathBuf>,
}

impl SandboxArgs {
    /// What --writable names, as it is called from everywhere; `None` without --sandbox.
    pub(crate) fn writable(&self) -> Result<Option<Vec<PathBuf>>, Exit> {
        let called = |path: &PathBuf| {
            std::fs::canonicalize(path)
                .map_err(|e| Exit::usage(format!("--writable {}: {e}", path.display())))
        };
        let writable: Result<_, _> = self.writable.iter().map(called).collect();
        Ok(self.sandbox.then_some(writable?))
    }
}

// Which version of the protocol is spoken.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct ProtocolArg {
    /// The latest version of the protocol to speak; what the other side speaks decides. Version 2 is a
    /// draft.
    #[arg(long, value_name = "VERSION", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=2))]
    pub(crate) protocol: u16,
}

impl ProtocolArg {
    /// The version in the options of a connection.
    pub(crate) fn set(self, options: acp::Options) -> acp::Options {
        if self.protocol == 2 {
            options.draft_version_2()
        } else {
            options
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    Text,
    Json,
}
