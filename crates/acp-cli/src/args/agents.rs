//! What can be typed behind `acp agents`.

use std::path::PathBuf;

use clap::Subcommand;

use super::shared::ListFormat;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AgentsArgs {
    #[command(flatten)]
    pub(crate) list: ListAgentsArgs,

    #[command(subcommand)]
    pub(crate) command: Option<AgentsSubcommand>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListAgentsArgs {
    /// The project, or a directory in it.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,

    /// What to print: `text` for people; `json` for programs, an agent a line.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: ListFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsSubcommand {
    Allow(AllowAgentsArgs),
    Revoke(RevokeAgentsArgs),
}

/// Look at what a project's .acp/config.toml says of agents, and allow it until the file changes.
#[derive(Debug, clap::Args)]
pub(crate) struct AllowAgentsArgs {
    /// Do not ask.
    #[arg(long)]
    pub(crate) yes: bool,

    /// The project, or a directory in it.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,
}

/// Do not use a project's agents any more.
#[derive(Debug, clap::Args)]
pub(crate) struct RevokeAgentsArgs {
    /// The project, or a directory in it.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,
}
