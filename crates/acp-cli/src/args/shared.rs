//! What several commands take.

use std::path::PathBuf;

use acp::v1::McpServer;
use acp_host::Policy;
use clap::ValueEnum;

use crate::exit::Exit;
use crate::run::mcp;

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

// Where an agent works, and with what its sessions begin.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkArgs {
    /// Where the agent works.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,

    /// The mode to work in, by its id. By default, in a new session, what is configured of the agent.
    #[arg(long, value_name = "ID")]
    pub(crate) mode: Option<String>,

    /// Set a config option of the agent's; can be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) options: Vec<(String, String)>,

    /// MCP servers for the agent, as a JSON file: a list of servers as the protocol writes them, or
    /// {"mcpServers": {NAME: {...}}} as editors do.
    #[arg(long, value_name = "JSON FILE")]
    pub(crate) mcp: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
}

impl WorkArgs {
    /// Where the agent works, as it is called from everywhere.
    pub(crate) fn directory(&self) -> Result<PathBuf, Exit> {
        let cwd = std::fs::canonicalize(&self.cwd)
            .map_err(|e| Exit::usage(format!("--cwd {}: {e}", self.cwd.display())))?;
        match cwd.is_dir() {
            true => Ok(cwd),
            false => {
                let message = format!("--cwd {}: not a directory", self.cwd.display());
                Err(Exit::usage(message))
            }
        }
    }

    /// The MCP servers of --mcp, and those that are configured of the agent and have other names.
    pub(crate) fn servers(&self, configured: Vec<McpServer>) -> Result<Vec<McpServer>, Exit> {
        let mut all = match &self.mcp {
            Some(file) => mcp::read(file)?,
            None => Vec::new(),
        };
        for server in configured {
            if all.iter().all(|other| other.name() != server.name()) {
                all.push(server);
            }
        }
        Ok(all)
    }
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

pub(super) fn policy(name: &str) -> Result<Policy, acp_host::ParsePolicyError> {
    name.parse()
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
