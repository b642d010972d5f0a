//! Arguments of `acp agents`.

use std::path::PathBuf;

use clap::{Subcommand, ValueHint};

use super::shared::ListFormat;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_long_help = EXAMPLES)]
pub(crate) struct AgentsArgs {
    #[command(flatten)]
    pub(crate) list: ListAgentsArgs,

    #[command(subcommand)]
    pub(crate) command: Option<AgentsSubcommand>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListAgentsArgs {
    /// Project directory, or a directory in it.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,

    /// Output format.
    ///
    /// JSON has one agent per line.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: ListFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsSubcommand {
    Allow(AllowAgentsArgs),
    Revoke(RevokeAgentsArgs),
}

/// Review and allow a project's agents.
///
/// Shows the agents in the project's .acp/config.toml and asks whether they may be used. The answer holds until
/// the file changes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = ALLOW_EXAMPLES)]
pub(crate) struct AllowAgentsArgs {
    /// Allow without asking.
    #[arg(long)]
    pub(crate) yes: bool,

    /// Project directory, or a directory in it.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,
}

/// Stop using a project's agents.
#[derive(Debug, clap::Args)]
#[command(after_long_help = REVOKE_EXAMPLES)]
pub(crate) struct RevokeAgentsArgs {
    /// Project directory, or a directory in it.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  acp agents
  acp agents --format json
  acp agents allow                                   # use the project's agents
  acp run --agent goose \"Why does the build fail?\"";

const ALLOW_EXAMPLES: &str = "\
Examples:
  acp agents allow
  acp agents allow --yes --cwd ~/src/project";

const REVOKE_EXAMPLES: &str = "\
Examples:
  acp agents revoke
  acp agents revoke --cwd ~/src/project";
