//! What can be typed behind `acp sessions`.

use std::path::PathBuf;

use acp_config::SessionName;
use clap::Subcommand;

use super::agent_choice::AgentChoiceArgs;
use super::shared::ListFormat;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp sessions [OPTIONS] [-- AGENT COMMAND...]\n       acp sessions name|forget|rename|archive|unarchive|export ...",
    args_conflicts_with_subcommands = true,
    after_long_help = SESSIONS_EXIT_CODES,
    after_help = "See --help for the exit codes."
)]
pub(crate) struct SessionsArgs {
    #[command(flatten)]
    pub(crate) list: ListSessionsArgs,

    #[command(subcommand)]
    pub(crate) command: Option<SessionsSubcommand>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListSessionsArgs {
    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Only sessions that work in this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Also list archived sessions; `(archived)`, in JSON `archived`, says which they are. The agent must support
    /// archiving.
    #[arg(long)]
    pub(crate) archived: bool,

    /// What to print: `text` for people; `json` for programs, a session a line as the protocol writes it, with
    /// its name, if it has one, in `_meta` as `acp/name`.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: ListFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsSubcommand {
    Name(NameSessionArgs),
    Forget(ForgetSessionArgs),
    Rename(RenameSessionArgs),
    /// Hide a session from `acp sessions`. The session is kept and can still be resumed.
    ///
    /// If another program has the session open, its next message there may fail.
    #[command(override_usage = "acp sessions archive [OPTIONS] NAME|ID [-- AGENT COMMAND...]")]
    Archive(ManageSessionArgs),
    /// List an archived session again.
    #[command(override_usage = "acp sessions unarchive [OPTIONS] NAME|ID [-- AGENT COMMAND...]")]
    Unarchive(ManageSessionArgs),
    Export(ExportSessionArgs),
}

/// Give a name to a session, for `acp run --session`. The agent is not asked.
#[derive(Debug, clap::Args)]
#[command(override_usage = "acp sessions name [OPTIONS] ID NAME [-- AGENT COMMAND...]")]
pub(crate) struct NameSessionArgs {
    /// The session, by its id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// The name.
    #[arg(value_name = "NAME")]
    pub(crate) name: SessionName,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Where the session works.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,
}

/// Take its name from a session, which stays as it is.
#[derive(Debug, clap::Args)]
#[command(override_usage = "acp sessions forget [OPTIONS] NAME [-- AGENT COMMAND...]")]
pub(crate) struct ForgetSessionArgs {
    /// The name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Where the session works.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ManageSessionArgs {
    /// The session, by the name you gave it or by its id.
    #[arg(value_name = "NAME|ID")]
    pub(crate) session: String,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Where the session works.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,
}

/// Change the title that an agent keeps for a session, which `acp sessions` shows.
#[derive(Debug, clap::Args)]
#[command(override_usage = "acp sessions rename [OPTIONS] NAME|ID TITLE [-- AGENT COMMAND...]")]
pub(crate) struct RenameSessionArgs {
    /// The session, by the name you gave it or by its id.
    #[arg(value_name = "NAME|ID")]
    pub(crate) session: String,

    /// The title.
    #[arg(value_name = "TITLE")]
    pub(crate) title: String,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Where the session works.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,
}

/// Write a session as Markdown: what was said, done and changed in it.
///
/// The agent is started and has to show its past (loadSession). What it says cannot break out of its place in the
/// document, and has no HTML.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp sessions export [OPTIONS] NAME|ID [-- AGENT COMMAND...]",
    after_long_help = SESSIONS_EXIT_CODES,
    after_help = "See --help for the exit codes."
)]
pub(crate) struct ExportSessionArgs {
    /// The session, by the name you gave it or by its id.
    #[arg(value_name = "NAME|ID")]
    pub(crate) session: String,

    /// Where to write it; without it, to stdout. A file that is there is not written over.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Where the session works.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,
}

const SESSIONS_EXIT_CODES: &str = "\
Exit codes:
    0  all sessions, or the first 10,000 of them, are listed; or the session is exported
    1  the agent answered with an error
    2  wrong usage, or the agent does not list sessions or show their past
    3  the agent could not be started, or broke the connection
  130  cancelled by Ctrl-C";
