//! What can be typed behind `acp trace`.

use std::path::PathBuf;

use acp_trace::{IgnoredPath, Side};
use clap::{Subcommand, ValueEnum};
use globset::{Glob, GlobMatcher};

use super::agent_choice::EnvArgs;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp trace [OPTIONS] FILE -- AGENT COMMAND...\n       acp trace show [OPTIONS] FILE\n       acp trace lint [OPTIONS] FILE\n       acp trace html FILE [-o OUT]\n       acp trace replay [OPTIONS] FILE --as SIDE",
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_long_help = EXIT_CODES,
    after_help = "See --help for the exit codes."
)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    pub(crate) command: Option<TraceSubcommand>,

    #[command(flatten)]
    pub(crate) record: RecordArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceSubcommand {
    /// Show a trace: who said what and when, and how long each answer took.
    Show(ShowArgs),

    /// Say who is wrong in a trace: messages of a wrong shape, and what breaks the rules of a conversation.
    ///
    /// Each line says where it is in the trace, which rule is broken by whom, and how. MUST are the rules that are
    /// binding, SHOULD those that may be broken for a good reason.
    Lint(LintArgs),

    /// Make one page of a trace, for a browser: messages on a time axis, and each session as a person saw it.
    ///
    /// The page needs no network and no other file. Whatever secrets are in the trace are in the page.
    Html(HtmlArgs),

    /// Be one side of a trace again, and say what the other side does differently now.
    ///
    /// With --as agent a client starts this instead of an agent. With --as client an agent is started, and is told
    /// what the recorded client said. What was redacted in the trace is said so, and not compared.
    Replay(ReplayArgs),
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp trace replay [OPTIONS] FILE --as agent\n       acp trace replay [OPTIONS] FILE --as client -- AGENT COMMAND...",
    after_long_help = REPLAY_EXIT_CODES,
    after_help = "See --help for the exit codes."
)]
pub(crate) struct ReplayArgs {
    /// The trace.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Which side to be.
    #[arg(long = "as", value_name = "SIDE", value_enum)]
    pub(crate) side: SideArg,

    /// Wait between messages as long as was recorded; otherwise everything is as fast as the other side.
    #[arg(long)]
    pub(crate) pace: bool,

    /// Do not compare what is here, such as `params.cwd` or `result.sessions.*.updatedAt`; can be given several times.
    /// Ids of sessions, tool calls, terminals and messages never are.
    #[arg(long, value_name = "PATH")]
    pub(crate) ignore: Vec<IgnoredPath>,

    /// How long the other side may take for a message.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// The agent to run, with its arguments.
    #[arg(last = true, value_name = "AGENT COMMAND")]
    pub(crate) agent: Vec<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = HTML_EXIT_CODES, after_help = "See --help for the exit codes.")]
pub(crate) struct HtmlArgs {
    /// The trace.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The page to write, `-` for stdout; one that is there is written over. Without this it stands beside FILE, with
    /// the ending `.html`. You alone can read it.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) out: Option<PathBuf>,
}

// What of a trace is looked at.
#[derive(Debug, clap::Args)]
pub(crate) struct TraceFilterArgs {
    /// Only what belongs to this session.
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Only these methods, or updates of a session, and the answers to them: `session/*`, `tool_call*`; can be given
    /// several times.
    #[arg(long, value_name = "GLOB", value_parser = parse_glob)]
    method: Vec<GlobMatcher>,

    /// Only what this side said, or did wrong.
    #[arg(long, value_name = "SIDE", value_enum)]
    from: Option<SideArg>,
}

impl TraceFilterArgs {
    /// Whether it is looked at: what this side said in this session, by these names.
    pub(crate) fn wants<'a>(
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

    /// Whether a session is named.
    pub(crate) fn is_of_a_session(&self) -> bool {
        self.session.is_some()
    }
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = SHOW_EXIT_CODES, after_help = "See --help for the exit codes.")]
pub(crate) struct ShowArgs {
    /// The trace.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) filter: TraceFilterArgs,

    /// Only what went wrong: answers that are errors or that nobody asked for, what is no message, an agent that
    /// failed or had to be ended.
    #[arg(long)]
    pub(crate) errors: bool,

    /// Show messages whole, as JSON, below each line.
    #[arg(long)]
    pub(crate) raw: bool,

    /// Go on while it is being recorded, up to its end.
    #[arg(long)]
    pub(crate) follow: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = LINT_EXIT_CODES, after_help = "See --help for the exit codes.")]
pub(crate) struct LintArgs {
    /// The trace.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) filter: TraceFilterArgs,

    /// Fail for a broken SHOULD, too.
    #[arg(long)]
    pub(crate) strict: bool,

    /// How to print it. `json` has an object a line, the last one with the sums.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LintFormat::Text)]
    pub(crate) format: LintFormat,
}

/// How findings are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LintFormat {
    Text,
    Json,
}

/// Who said it.
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

fn parse_glob(pattern: &str) -> Result<GlobMatcher, globset::Error> {
    Ok(Glob::new(pattern)?.compile_matcher())
}

// What is required is not where a subcommand stands in its place.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordArgs {
    /// The file to record into, one JSON object a line. You alone can read it.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) file: Option<PathBuf>,

    /// Write over FILE if it is there.
    #[arg(long)]
    pub(crate) force: bool,

    /// Record secrets, too. Otherwise values of environment variables and of HTTP headers, what stands under names
    /// such as `apiKey`, `token` or `password`, and what looks like a key are replaced in what is recorded.
    #[arg(long)]
    pub(crate) secrets: bool,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// The agent to run, with its arguments.
    #[arg(last = true, required = true, value_name = "AGENT COMMAND")]
    pub(crate) agent: Vec<String>,
}

const EXIT_CODES: &str = "\
Exit codes:
    0  the client has closed the connection
    1  FILE cannot be written
    2  wrong usage, or FILE is there already
    3  the agent could not be started, or has ended by itself
  130  ended by a signal, and the agent with it";

const SHOW_EXIT_CODES: &str = "\
Exit codes:
    0  it was shown
    2  wrong usage, or FILE cannot be read or is no trace
  130  ended by Ctrl-C";

const LINT_EXIT_CODES: &str = "\
Exit codes:
    0  no MUST is broken
    1  a MUST is broken; with --strict, or a SHOULD
    2  wrong usage, or FILE cannot be read or is no trace";

const HTML_EXIT_CODES: &str = "\
Exit codes:
    0  the page was written
    1  the page cannot be written
    2  wrong usage, or FILE cannot be read or is no trace";

const REPLAY_EXIT_CODES: &str = "\
Exit codes:
    0  the other side did all as recorded
    1  it did something differently
    2  wrong usage, or FILE cannot be read or is no trace
    3  the agent could not be started, or the connection failed
  130  ended by a signal";
