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
    /// Project directory, or a directory inside it.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,

    /// Output format: `text`, or `json` with one agent per line.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: ListFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsSubcommand {
    Allow(AllowAgentsArgs),
    Revoke(RevokeAgentsArgs),
}

/// Review and allow the agents in a project's .acp/config.toml, until the file changes.
#[derive(Debug, clap::Args)]
pub(crate) struct AllowAgentsArgs {
    /// Allow without asking.
    #[arg(long)]
    pub(crate) yes: bool,

    /// The project, or a directory in it.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,
}

/// Stop using a project's agents.
#[derive(Debug, clap::Args)]
pub(crate) struct RevokeAgentsArgs {
    /// The project, or a directory in it.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,
}
