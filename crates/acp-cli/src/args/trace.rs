//! Arguments of `acp trace`.

use std::path::PathBuf;

use acp_trace::{IgnoredPath, Side};
use clap::{Subcommand, ValueEnum};
use globset::{Glob, GlobMatcher};

use super::agent_choice::EnvArgs;
use super::remote::UrlArgs;
use super::serve::ServeArgs;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp trace [OPTIONS] FILE -- AGENT COMMAND...\n       acp trace [OPTIONS] FILE --url URL\n       acp trace live [OPTIONS] [FILE] [-- AGENT COMMAND...]\n       acp trace show [OPTIONS] FILE\n       acp trace lint [OPTIONS] FILE\n       acp trace html FILE [-o OUT]\n       acp trace replay [OPTIONS] FILE --as SIDE\n       acp trace serve [OPTIONS] DIR [-- AGENT COMMAND...]",
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_long_help = RECORD_EXAMPLES
)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    pub(crate) command: Option<TraceSubcommand>,

    #[command(flatten)]
    pub(crate) record: RecordArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceSubcommand {
    /// Print the messages of a trace, with times and latencies.
    Show(ShowArgs),

    /// Find protocol violations in a trace: invalid messages and broken rules.
    ///
    /// Each finding shows its line in the trace, the rule, the side that broke it, and how. MUST rules are
    /// mandatory; SHOULD rules are recommendations.
    Lint(LintArgs),

    /// Render a trace as an HTML page with a timeline and the conversations.
    ///
    /// The page is self-contained. It includes any secrets that are in the trace.
    Html(HtmlArgs),

    /// Replay one side of a trace and report what the other side does differently.
    ///
    /// With --as agent, a client starts this command instead of the agent. With --as client, the agent is
    /// started and sent the recorded client's messages. Redacted values are sent as they are in the trace,
    /// and are not compared.
    Replay(ReplayArgs),

    /// Show a trace in a browser while it is being recorded.
    ///
    /// With an agent command, an editor starts this command instead of the agent. It records like `acp trace`,
    /// and the page can also send messages by hand. Without one, the page shows FILE, which may still be growing.
    /// The page shows what is recorded: with --secrets, secrets too.
    ///
    /// The command ends with the connection. If you have started it at a terminal with an agent command, it stays
    /// until you close the page or press Ctrl-C.
    Live(Box<TraceLiveArgs>),

    /// Serve an agent over the network, and record a trace of each connection.
    ///
    /// Like `acp serve`. To record what passes between clients and an existing server, serve a remote agent:
    /// `--agent NAME`, or `-- acp connect URL`.
    #[command(
        override_usage = "acp trace serve [OPTIONS] DIR [-- AGENT COMMAND...]",
        after_long_help = SERVE_EXAMPLES
    )]
    Serve(Box<TraceServeArgs>),
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp trace live [OPTIONS] FILE\n       acp trace live [OPTIONS] [FILE] -- AGENT COMMAND...\n       acp trace live [OPTIONS] [FILE] --url URL",
    after_long_help = LIVE_EXAMPLES
)]
pub(crate) struct TraceLiveArgs {
    /// Trace file to show. With an agent command, the trace file to write.
    ///
    /// With an agent command, FILE may be left out. The trace is then in a private temporary directory, and is
    /// deleted when the command ends. If FILE is a directory, a file named after the current time is created in it.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) page: LivePageArgs,

    #[command(flatten)]
    pub(crate) recording: RecordingArgs,

    /// Command that starts the agent.
    #[arg(last = true, value_name = "AGENT COMMAND")]
    pub(crate) agent: Vec<String>,
}

// How the user learns the address of the page.
#[derive(Debug, clap::Args)]
pub(crate) struct LivePageArgs {
    /// Open the page in the default browser.
    #[arg(long)]
    pub(crate) open: bool,

    /// Also write the address of the page to this file.
    ///
    /// Editors often hide stderr, where the address is printed. Only you can read the file. An existing file is
    /// replaced. It is removed when the command ends.
    #[arg(long, value_name = "FILE")]
    pub(crate) address_file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TraceServeArgs {
    /// Directory for the traces.
    ///
    /// It is created if it does not exist. Each connection is recorded in a new file, named after the current
    /// time. Only you can read the files. With --sandbox, the agent can write to the directory.
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) directory: PathBuf,

    /// Record secrets, too.
    ///
    /// See `acp trace --help`.
    #[arg(long)]
    pub(crate) secrets: bool,

    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp trace replay [OPTIONS] FILE --as agent\n       acp trace replay [OPTIONS] FILE --as client -- AGENT COMMAND...\n       acp trace replay [OPTIONS] FILE --as client --url URL",
    after_long_help = REPLAY_EXAMPLES
)]
pub(crate) struct ReplayArgs {
    /// Trace file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Side to replay.
    #[arg(long = "as", value_name = "SIDE", value_enum)]
    pub(crate) side: SideArg,

    /// Keep the recorded delays between messages.
    ///
    /// The default is to send each message as soon as the other side has responded.
    #[arg(long)]
    pub(crate) pace: bool,

    /// Ignore this path when comparing messages.
    ///
    /// For example, `params.cwd` or `result.sessions.*.updatedAt`. Session, tool call, terminal and message ids
    /// are always ignored. Can be repeated.
    #[arg(long, value_name = "PATH")]
    pub(crate) ignore: Vec<IgnoredPath>,

    /// Seconds to wait for each message.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    #[command(flatten)]
    pub(crate) url: UrlArgs,

    /// Command that starts the agent.
    #[arg(last = true, value_name = "AGENT COMMAND")]
    pub(crate) agent: Vec<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = HTML_EXAMPLES)]
pub(crate) struct HtmlArgs {
    /// Trace file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// File to write the page to, or `-` for stdout.
    ///
    /// The default is FILE with the extension `.html`. An existing file is overwritten. Only you can read the
    /// page.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) out: Option<PathBuf>,
}

// Filters for the messages of a trace.
#[derive(Debug, clap::Args)]
pub(crate) struct TraceFilterArgs {
    /// Show only messages of this session.
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Show only messages with these methods or update types.
    ///
    /// For example, 'session/*' or 'tool_call*'. Includes the responses to these messages. Can be
    /// repeated.
    #[arg(long, value_name = "GLOB", value_parser = parse_glob)]
    method: Vec<GlobMatcher>,

    /// Show only messages from this side, or findings about it.
    #[arg(long, value_name = "SIDE", value_enum)]
    from: Option<SideArg>,
}

impl TraceFilterArgs {
    /// Returns `true` if the filters select a message from this side, in this session, and with one of these names.
    pub(crate) fn matches<'a>(
        &self,
        side: Option<Side>,
        session: Option<&str>,
        names: impl IntoIterator<Item = &'a str>,
    ) -> bool {
        let named = |name: &str| self.method.iter().any(|glob| glob.is_match(name));
        self.from.is_none_or(|from| side == Some(from.into()))
            && self.session.as_deref().is_none_or(|id| session == Some(id))
            && (self.method.is_empty() || names.into_iter().any(named))
    }

    /// Returns `true` if --session is given.
    pub(crate) fn has_session(&self) -> bool {
        self.session.is_some()
    }
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = SHOW_EXAMPLES)]
pub(crate) struct ShowArgs {
    /// Trace file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) filter: TraceFilterArgs,

    /// Show only errors.
    ///
    /// These are error responses, responses to unknown requests, invalid messages, and agents that failed or
    /// were terminated.
    #[arg(long)]
    pub(crate) errors: bool,

    /// Show the full JSON below each line.
    #[arg(long)]
    pub(crate) raw: bool,

    /// Keep printing messages as they are recorded.
    #[arg(long)]
    pub(crate) follow: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = LINT_EXAMPLES)]
pub(crate) struct LintArgs {
    /// Trace file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) filter: TraceFilterArgs,

    /// Also fail if a SHOULD rule is broken.
    #[arg(long)]
    pub(crate) strict: bool,

    /// Output format.
    ///
    /// JSON has one object per line; the last one has the totals.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LintFormat::Text)]
    pub(crate) format: LintFormat,
}

/// The output format of `acp trace lint`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LintFormat {
    Text,
    Json,
}

/// A side of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SideArg {
    Client,
    Agent,
}

impl std::convert::From<SideArg> for Side {
    fn from(side: SideArg) -> Self {
        match side {
            SideArg::Client => Self::Client,
            SideArg::Agent => Self::Agent,
        }
    }
}

pub(crate) fn parse_glob(pattern: &str) -> Result<GlobMatcher, globset::Error> {
    Ok(Glob::new(pattern)?.compile_matcher())
}

// How a connection is recorded, apart from the file and the agent's command.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordingArgs {
    /// Overwrite FILE if it exists.
    #[arg(long)]
    pub(crate) force: bool,

    /// Record secrets, too.
    ///
    /// By default, the trace redacts values of environment variables and HTTP headers, values of fields such as
    /// `apiKey`, `token` or `password`, and anything that looks like a key.
    #[arg(long)]
    pub(crate) secrets: bool,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    #[command(flatten)]
    pub(crate) url: UrlArgs,
}

// Required arguments are not required if there is a subcommand.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordArgs {
    /// Trace file to write.
    ///
    /// It has one JSON object per line. Only you can read it. If FILE is a directory, a file named after the
    /// current time is created in it.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) recording: RecordingArgs,

    /// Command that starts the agent.
    #[arg(
        last = true,
        required_unless_present = "url",
        value_name = "AGENT COMMAND"
    )]
    pub(crate) agent: Vec<String>,
}

const RECORD_EXAMPLES: &str = "\
Examples:
  acp trace today.trace -- gemini --acp              # instead of gemini --acp
  acp trace today.trace --url ws://127.0.0.1:7180/acp
  acp run Hello -- acp trace hello.trace -- acp agent
  acp trace show hello.trace
  acp trace lint hello.trace
  acp trace html hello.trace                         # write hello.html
  acp trace serve traces -- gemini --acp             # over the network

Exit codes:
    0  the client closed the connection
    1  FILE could not be written
    2  invalid command line, or FILE already exists
    3  the agent could not be started, or exited
  130  terminated by a signal, along with the agent";

const LIVE_EXAMPLES: &str = "\
Examples:
  acp trace live --open -- gemini --acp              # instead of gemini --acp
  acp trace live today.trace --address-file address -- gemini --acp
  acp trace live today.trace                         # recorded by another command, or finished
  acp run Hello -- acp trace live --open -- acp agent

Exit codes:
    0  the client closed the connection; without an agent command: terminated by a signal
    1  FILE could not be written, or the page could not be served
    2  invalid command line, FILE already exists, could not be read, or is not a trace
    3  the agent could not be started, or exited
  130  terminated by a signal, along with the agent";

const SERVE_EXAMPLES: &str = "\
Examples:
  acp trace serve traces -- gemini --acp
  acp trace serve traces --listen 127.0.0.1:7181 -- acp connect ws://127.0.0.1:7180/acp
  acp trace show traces/2026-11-25T10-00-00-4711.trace

Exit codes:
    0  shut down by a signal
    1  the server failed, or DIR could not be created
    2  invalid command line
    3  the agent's program was not found";

const SHOW_EXAMPLES: &str = "\
Examples:
  acp trace show today.trace
  acp trace show today.trace --method 'session/*' --from client
  acp trace show today.trace --follow --raw          # while it is being recorded

Exit codes:
    0  success
    2  invalid command line, FILE could not be read, or FILE is not a trace
  130  cancelled with Ctrl-C, or terminated by a signal";

const LINT_EXAMPLES: &str = "\
Examples:
  acp trace lint today.trace
  acp trace lint today.trace --from agent --strict --format json

Exit codes:
    0  no MUST rule is broken
    1  a MUST rule is broken (with --strict, also a SHOULD rule)
    2  invalid command line, FILE could not be read, or FILE is not a trace";

const HTML_EXAMPLES: &str = "\
Examples:
  acp trace html today.trace                         # write today.html
  acp trace html today.trace -o report.html

Exit codes:
    0  success
    1  the page could not be written
    2  invalid command line, FILE could not be read, or FILE is not a trace";

const REPLAY_EXAMPLES: &str = "\
Examples:
  acp trace replay today.trace --as client -- gemini --acp
  acp run Hello -- acp trace replay hello.trace --as agent

Exit codes:
    0  the other side behaved as recorded
    1  the other side behaved differently
    2  invalid command line, FILE could not be read, or FILE is not a trace
    3  the agent could not be started, or the connection failed
  130  cancelled with Ctrl-C, or terminated by a signal";
