//! Arguments of `acp permissions`.

use std::path::PathBuf;

use clap::{Subcommand, ValueHint};

use super::shared::ListFormat;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_long_help = EXAMPLES)]
pub(crate) struct PermissionsArgs {
    #[command(flatten)]
    pub(crate) list: ListPermissionsArgs,

    #[command(subcommand)]
    pub(crate) command: Option<PermissionsSubcommand>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListPermissionsArgs {
    /// Project directory, or a directory in it.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,

    /// Output format.
    ///
    /// JSON is one object.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: ListFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PermissionsSubcommand {
    Revoke(RevokeArgs),
}

/// Revoke remembered answers in a project.
#[derive(Debug, clap::Args)]
#[command(after_long_help = REVOKE_EXAMPLES)]
pub(crate) struct RevokeArgs {
    /// Number of the answer, as listed by `acp permissions`.
    #[arg(
        value_name = "NUMBER",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub(crate) number: Option<u64>,

    /// Revoke all remembered answers.
    #[arg(long)]
    pub(crate) all: bool,

    /// Project directory, or a directory in it.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  acp permissions
  acp permissions --cwd ~/src/project --format json
  acp permissions revoke 2                           # forget answer number 2";

const REVOKE_EXAMPLES: &str = "\
Examples:
  acp permissions revoke 2
  acp permissions revoke --all";
