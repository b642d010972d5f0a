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

    /// Only list sessions with this working directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Also list archived sessions, marked `(archived)`, or `archived` in JSON. Requires agent support.
    #[arg(long)]
    pub(crate) archived: bool,

    /// Output format: `text`, or `json` with one session per line as in the protocol; its name, if any, is in
    /// `_meta` as `acp/name`.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: ListFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsSubcommand {
    Name(NameSessionArgs),
    Forget(ForgetSessionArgs),
    Rename(RenameSessionArgs),
    /// Hide a session from `acp sessions`. It can still be resumed.
    ///
    /// If another program has the session open, its next prompt may fail.
    #[command(override_usage = "acp sessions archive [OPTIONS] NAME|ID [-- AGENT COMMAND...]")]
    Archive(ManageSessionArgs),
    /// Unarchive a session.
    #[command(override_usage = "acp sessions unarchive [OPTIONS] NAME|ID [-- AGENT COMMAND...]")]
    Unarchive(ManageSessionArgs),
    Export(ExportSessionArgs),
}

/// Name a session for `acp run --session`. The agent is not contacted.
#[derive(Debug, clap::Args)]
#[command(override_usage = "acp sessions name [OPTIONS] ID NAME [-- AGENT COMMAND...]")]
pub(crate) struct NameSessionArgs {
    /// Session id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// Session name.
    #[arg(value_name = "NAME")]
    pub(crate) name: SessionName,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Working directory of the session.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,
}

/// Remove a session's name. The session is not changed.
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
    /// Session name or id.
    #[arg(value_name = "NAME|ID")]
    pub(crate) session: String,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Where the session works.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,
}

/// Change a session's title, as shown by `acp sessions`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "acp sessions rename [OPTIONS] NAME|ID TITLE [-- AGENT COMMAND...]")]
pub(crate) struct RenameSessionArgs {
    /// The session, by the name you gave it or by its id.
    #[arg(value_name = "NAME|ID")]
    pub(crate) session: String,

    /// New title.
    #[arg(value_name = "TITLE")]
    pub(crate) title: String,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Where the session works.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,
}

/// Export a session as Markdown.
///
/// Starts the agent, which must support loadSession. The agent's text is escaped: it cannot alter the
/// structure of the document and contains no HTML.
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

    /// File to write, instead of stdout. An existing file is not overwritten.
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
    0  the sessions (at most 10,000) were listed, or the command succeeded
    1  the agent returned an error
    2  invalid command line, or not supported by the agent
    3  the agent could not be started, or closed the connection
  130  cancelled by Ctrl-C";
