//! What can be typed behind `acp permissions`.

use std::path::PathBuf;

use clap::Subcommand;

use super::shared::ListFormat;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct PermissionsArgs {
    #[command(flatten)]
    pub(crate) list: ListPermissionsArgs,

    #[command(subcommand)]
    pub(crate) command: Option<PermissionsSubcommand>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListPermissionsArgs {
    /// The project, or a directory in it.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,

    /// What to print: `text` for people; `json` for programs, all in one object.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: ListFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PermissionsSubcommand {
    Revoke(RevokeArgs),
}

/// Forget something that you said for always in a project.
#[derive(Debug, clap::Args)]
pub(crate) struct RevokeArgs {
    /// Its number, as `acp permissions` lists it.
    #[arg(
        value_name = "NUMBER",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub(crate) number: Option<u64>,

    /// Forget all of it.
    #[arg(long)]
    pub(crate) all: bool,

    /// The project, or a directory in it.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,
}
