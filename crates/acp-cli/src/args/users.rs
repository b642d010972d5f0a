//! Arguments of `acp users`.

use std::path::PathBuf;

use acp_server::users::Scope;
use clap::{Subcommand, ValueHint};

#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct UsersArgs {
    #[command(subcommand)]
    pub(crate) command: UsersSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UsersSubcommand {
    /// Add a user, and print the user's token.
    ///
    /// Only a hash of the token is stored, so it cannot be printed again. Servers that are running learn of the user
    /// within seconds.
    Add(AddUserArgs),
    /// List the users, and what they may do.
    List(ListUsersArgs),
    /// Remove a user, and disconnect their clients.
    Remove(RemoveUserArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct UserFileArgs {
    /// File that stores the users.
    ///
    /// The default is serve-users.toml in acp's state directory, which `acp serve` reads by default.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AddUserArgs {
    /// Name of the user.
    pub(crate) name: String,

    /// What the user may do: look, answer, prompt or administer.
    ///
    /// `look`: list sessions and see all that happens in them, which every user may. `answer`: answer questions, such as
    /// permission requests. `prompt`: create sessions, send prompts, cancel turns, and delete their own sessions.
    /// `administer`: everything. To change modes and options, and to bring MCP servers along, a user needs both `answer`
    /// and `prompt`. Separate several scopes with commas.
    #[arg(long, value_name = "SCOPE", required = true, value_delimiter = ',')]
    pub(crate) can: Vec<Scope>,

    /// Show the user only sessions that they have created.
    #[arg(long)]
    pub(crate) own_sessions: bool,

    /// Maximum number of connections of the user to one server.
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_connections: Option<usize>,

    /// Maximum number of live sessions that the user has created on one server.
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_sessions: Option<usize>,

    #[command(flatten)]
    pub(crate) file: UserFileArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListUsersArgs {
    #[command(flatten)]
    pub(crate) file: UserFileArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RemoveUserArgs {
    /// Name of the user.
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) file: UserFileArgs,
}

const EXAMPLES: &str = "\
Examples:
  acp users add anna --can answer,prompt
  acp users add ci --can prompt --own-sessions --max-sessions 4
  acp users add wall-display --can look
  acp users list
  acp users remove anna";
