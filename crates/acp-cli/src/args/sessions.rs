//! Arguments of `acp sessions`.

use std::path::PathBuf;

use acp_config::SessionName;
use clap::{Subcommand, ValueHint};
use jiff::SignedDuration;

use super::agent_choice::AgentChoiceArgs;
use super::candidates;
use super::shared::{ListFormat, parse_span};

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp sessions [OPTIONS] [-- AGENT COMMAND...]\n       acp sessions list|name|forget|rename|archive|unarchive|export|delete|prune ...
       acp sessions watch|status|cancel|queue|stop ...",
    args_conflicts_with_subcommands = true,
    after_long_help = EXAMPLES
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

    /// List only the sessions with this working directory.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<PathBuf>,

    /// Also list archived sessions.
    ///
    /// They are marked `(archived)`, or `archived` in JSON. The agent must support archiving.
    #[arg(long)]
    pub(crate) archived: bool,

    /// Output format.
    ///
    /// Text has the sessions of this directory first, and times such as `2 minutes ago`. JSON has one session per line, as
    /// in the protocol, with exact times. Its name, if any, is in `_meta` as `acp/name`.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: ListFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsSubcommand {
    /// List the sessions that an agent stores.
    ///
    /// The same as `acp sessions` without a subcommand.
    #[command(
        override_usage = "acp sessions list [OPTIONS] [-- AGENT COMMAND...]",
        after_long_help = EXAMPLES
    )]
    List(ListSessionsArgs),
    Name(NameSessionArgs),
    Forget(ForgetSessionArgs),
    Rename(RenameSessionArgs),
    /// Hide a session from `acp sessions`.
    ///
    /// It can still be resumed. If another program has the session open, its next prompt may fail.
    #[command(
        override_usage = "acp sessions archive [OPTIONS] NAME|ID [-- AGENT COMMAND...]",
        after_long_help = ARCHIVE_EXAMPLES
    )]
    Archive(ManageSessionArgs),
    /// Show an archived session in `acp sessions` again.
    #[command(
        override_usage = "acp sessions unarchive [OPTIONS] NAME|ID [-- AGENT COMMAND...]",
        after_long_help = UNARCHIVE_EXAMPLES
    )]
    Unarchive(ManageSessionArgs),
    Export(ExportSessionArgs),
    Watch(WatchSessionArgs),
    Status(SessionStatusArgs),
    /// Cancel the running turn of a live session.
    ///
    /// Prompts that other clients have queued then run.
    #[command(
        override_usage = "acp sessions cancel [OPTIONS] NAME|ID [-- AGENT COMMAND...]",
        after_long_help = CANCEL_EXAMPLES
    )]
    Cancel(ManageSessionArgs),
    Queue(QueueArgs),
    Stop(StopArgs),
    Delete(DeleteSessionArgs),
    Prune(PruneArgs),
}

/// Delete a session that the agent stores.
///
/// The agent must support deleting. A session that is open somewhere is closed first.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp sessions delete [OPTIONS] NAME|ID [-- AGENT COMMAND...]",
    after_long_help = DELETE_EXAMPLES
)]
pub(crate) struct DeleteSessionArgs {
    /// Session name or id.
    #[arg(value_name = "NAME|ID", add = candidates::session_names())]
    pub(crate) session: String,

    /// Do not ask for confirmation.
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Working directory of the session.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,
}

/// Delete the sessions of this directory that have not changed for some time.
///
/// Lists them, and asks for confirmation. The agent must support listing and deleting.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp sessions prune --older-than SPAN [OPTIONS] [-- AGENT COMMAND...]",
    after_long_help = PRUNE_EXAMPLES
)]
pub(crate) struct PruneArgs {
    /// Time without a change: a number and a unit (m, h, d or w), such as 30d.
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub(crate) older_than: SignedDuration,

    /// Do not ask for confirmation.
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Working directory of the sessions.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,
}

/// Stop the agent that holds the live sessions of this directory.
///
/// It stops by itself when it has not been used for some time (see --keep of `acp run`). Sessions that the agent stores
/// can be continued.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp sessions stop [OPTIONS] [-- AGENT COMMAND...]",
    after_long_help = STOP_EXAMPLES
)]
pub(crate) struct StopArgs {
    /// Stop it even if a turn is running or another command is connected.
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Working directory of the sessions.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,
}

/// Show live sessions: their turns, queues and clients.
///
/// A session is live while an agent that commands can share has it open: after `acp run --session NAME` or
/// `acp chat --session NAME`, or on a server (`acp serve --live`).
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp sessions status [OPTIONS] [NAME|ID] [-- AGENT COMMAND...]",
    after_long_help = STATUS_EXAMPLES
)]
pub(crate) struct SessionStatusArgs {
    /// Session name or id. The default is all live sessions of the agent in this directory.
    #[arg(value_name = "NAME|ID", add = candidates::session_names())]
    pub(crate) session: Option<String>,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Working directory of the session.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,

    /// Output format.
    ///
    /// JSON has one session per line.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: ListFormat,
}

/// Show or change the prompts that wait in a live session.
///
/// They run one after the other, whichever client they come from.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp sessions queue [OPTIONS] NAME|ID [-- AGENT COMMAND...]",
    after_long_help = QUEUE_EXAMPLES
)]
pub(crate) struct QueueArgs {
    /// Session name or id.
    #[arg(value_name = "NAME|ID", add = candidates::session_names())]
    pub(crate) session: String,

    /// Remove the prompt with this number. Its client is told that it was cancelled.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) take_back: Option<u64>,

    /// Run the prompt with this number next.
    #[arg(long, value_name = "NUMBER", conflicts_with = "take_back")]
    pub(crate) first: Option<u64>,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Working directory of the session.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,
}

/// Name a session, for use with --session.
///
/// The name is known to `acp run`, `acp chat` and `acp sessions`. The agent is not started.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp sessions name [OPTIONS] ID NAME [-- AGENT COMMAND...]",
    after_long_help = NAME_EXAMPLES
)]
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
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,
}

/// Remove a session's name.
///
/// The session is not changed, and the agent is not started.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp sessions forget [OPTIONS] NAME [-- AGENT COMMAND...]",
    after_long_help = FORGET_EXAMPLES
)]
pub(crate) struct ForgetSessionArgs {
    /// Session name.
    #[arg(value_name = "NAME", add = candidates::session_names())]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Working directory of the session.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ManageSessionArgs {
    /// Session name or id.
    #[arg(value_name = "NAME|ID", add = candidates::session_names())]
    pub(crate) session: String,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Working directory of the session.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,
}

/// Show what happens in a session.
///
/// Prints the conversation so far, and then everything that other clients do in the session, until you press Ctrl-C.
/// Questions of the agent are shown to the other clients only, except with --format json. If the session is not live, it
/// is loaded, and nothing else happens in it.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp sessions watch [OPTIONS] NAME|ID [-- AGENT COMMAND...]",
    after_long_help = WATCH_EXAMPLES
)]
pub(crate) struct WatchSessionArgs {
    /// Session name or id.
    #[arg(value_name = "NAME|ID", add = candidates::session_names())]
    pub(crate) session: String,

    /// Output format.
    ///
    /// JSON has one message per line, as in the protocol. In a live session, `cursor` says where to go on after it. The
    /// ends of turns, questions and answers are messages whose method begins with `_live/`.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: ListFormat,

    /// Print only what comes after this cursor.
    ///
    /// Requires --format json. No update is missed or repeated. The cursors of a local server are valid until it stops.
    #[arg(long, value_name = "CURSOR")]
    pub(crate) since: Option<String>,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Working directory of the session.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,
}

/// Change a session's title, as shown by `acp sessions`.
///
/// The agent stores the title.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp sessions rename [OPTIONS] NAME|ID TITLE [-- AGENT COMMAND...]",
    after_long_help = RENAME_EXAMPLES
)]
pub(crate) struct RenameSessionArgs {
    /// Session name or id.
    #[arg(value_name = "NAME|ID", add = candidates::session_names())]
    pub(crate) session: String,

    /// New title.
    #[arg(value_name = "TITLE")]
    pub(crate) title: String,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Working directory of the session.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,
}

/// Export a session as Markdown.
///
/// The agent is started and must support loadSession. Its text is escaped: it cannot alter the structure of
/// the document and contains no HTML.
#[derive(Debug, clap::Args)]
#[command(
    visible_alias = "show",
    override_usage = "acp sessions export [OPTIONS] NAME|ID [-- AGENT COMMAND...]",
    after_long_help = EXPORT_EXAMPLES
)]
pub(crate) struct ExportSessionArgs {
    /// Session name or id.
    #[arg(value_name = "NAME|ID", add = candidates::session_names())]
    pub(crate) session: String,

    /// Write to a file instead of stdout.
    ///
    /// An existing file is not overwritten.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Working directory of the session.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,
}

/// Appends the exit codes, which all of these commands share, to a command's examples.
macro_rules! with_exit_codes {
    ($examples:literal) => {
        concat!(
            $examples,
            "

Exit codes:
    0  success
    1  the agent returned an error, or the output could not be written
    2  invalid command line, or not supported by the agent
    3  the agent could not be started, exited, or closed the connection
  130  cancelled with Ctrl-C, or terminated by a signal"
        )
    };
}

const EXAMPLES: &str = with_exit_codes!(
    "\
Examples:
  acp sessions                                       # list sessions
  acp sessions --agent goose --cwd .                 # only those in this directory
  acp sessions rename build \"The new build\"
  acp sessions export build --out build.md
  acp run --session build \"Fix the build\"            # continue a session"
);

const NAME_EXAMPLES: &str = "\
Examples:
  acp sessions name 01a1ffbd-e6dd-7a43-a78f-adf7b946faad build";

const FORGET_EXAMPLES: &str = "\
Examples:
  acp sessions forget build";

const RENAME_EXAMPLES: &str = with_exit_codes!(
    "\
Examples:
  acp sessions rename build \"The new build\""
);

const ARCHIVE_EXAMPLES: &str = with_exit_codes!(
    "\
Examples:
  acp sessions archive build
  acp sessions --archived                            # include archived sessions"
);

const UNARCHIVE_EXAMPLES: &str = with_exit_codes!(
    "\
Examples:
  acp sessions unarchive build"
);

const EXPORT_EXAMPLES: &str = with_exit_codes!(
    "\
Examples:
  acp sessions export build
  acp sessions export build --out build.md"
);

const WATCH_EXAMPLES: &str = with_exit_codes!(
    "\
Examples:
  acp sessions watch build
  acp sessions watch build --url URL
  acp sessions watch build --format json | jq -c .params.update
  acp sessions watch build --format json --since 5c0f3a9e1b2d4f60-17"
);

const STATUS_EXAMPLES: &str = with_exit_codes!(
    "\
Examples:
  acp sessions status                                # all live sessions
  acp sessions status build --format json"
);

const STOP_EXAMPLES: &str = with_exit_codes!(
    "\
Examples:
  acp sessions stop
  acp sessions stop --force --agent goose"
);

const DELETE_EXAMPLES: &str = with_exit_codes!(
    "\
Examples:
  acp sessions delete build
  acp sessions delete --yes 01a1ffbd-e6dd-7a43-a78f-adf7b946faad"
);

const PRUNE_EXAMPLES: &str = with_exit_codes!(
    "\
Examples:
  acp sessions prune --older-than 30d
  acp sessions prune --older-than 12h --yes --agent goose"
);

const CANCEL_EXAMPLES: &str = with_exit_codes!(
    "\
Examples:
  acp sessions cancel build"
);

const QUEUE_EXAMPLES: &str = with_exit_codes!(
    "\
Examples:
  acp sessions queue build                           # list the prompts, with their numbers
  acp sessions queue build --first 4
  acp sessions queue build --take-back 4"
);
