//! Arguments of `acp check`.

use std::path::PathBuf;

use acp_check::AgentTask;
use acp_config::TypedUrl;
use clap::{Subcommand, ValueEnum};

use super::agent_choice::EnvArgs;
use super::remote::{RemoteArgs, UrlArgs};

pub(crate) const EXAMPLES: &str = "\
Examples:
  acp check agent -- gemini --acp
  acp check client -- acp run --allow all Hello -- {agent}
  acp check server http://127.0.0.1:7180/acp         # the remote transport
  acp check agent --list                             # list the checks";

/// Appends the exit codes, which both commands share, to a command's examples.
macro_rules! with_exit_codes {
    ($examples:literal) => {
        concat!(
            $examples,
            "

Exit codes:
    0  no MUST check fails, apart from those in --baseline
    1  a MUST check fails (with --strict, also a SHOULD check), or the
       baseline is out of date
    2  invalid command line
    3  the program could not be started, or did not respond
  130  cancelled with Ctrl-C, or terminated by a signal"
        )
    };
}

const AGENT_EXAMPLES: &str = with_exit_codes!(
    "\
Examples:
  acp check agent -- gemini --acp
  acp check agent --only 'v1/prompt-turn/*' -v -- gemini --acp
  acp check agent --quiet -- gemini --acp            # only what fails
  acp check agent --format junit --out acp.xml -- gemini --acp
  acp check agent --url ws://127.0.0.1:7180/acp      # a remote agent
  acp check agent --list                             # list the checks"
);

const CLIENT_EXAMPLES: &str = with_exit_codes!(
    "\
Examples:
  acp check client -- acp run --allow all Hello -- {agent}
  acp check client --strict -- acp run --allow all Hello -- {agent}
  acp check client --list                            # list the checks"
);

const SERVER_EXAMPLES: &str = with_exit_codes!(
    "\
Examples:
  acp check server http://127.0.0.1:7180/acp --token-file ~/.local/state/acp/serve.token
  acp check server https://agents.example.com/acp --cwd /srv/project
  acp check server --only 'remote/websocket/*' -v ws://127.0.0.1:7180/acp
  acp check server --list                            # list the checks"
);

const REMOTE_CLIENT_EXAMPLES: &str = with_exit_codes!(
    "\
Examples:
  acp check remote-client -- my-client --connect {url} --prompt Hello
  acp check remote-client --only 'remote/streams/*' -v -- my-client {url}
  acp check remote-client --list                     # list the checks"
);

#[derive(Debug, Subcommand)]
pub(crate) enum CheckArgs {
    /// Check an agent.
    ///
    /// The checks start the agent in temporary projects and act as its client. Only files in temporary
    /// directories are changed.
    ///
    /// Works with any agent. Agents that use a language model are given short tasks in plain language; checks
    /// that depend on a task the agent does not carry out are skipped.
    #[command(
        after_long_help = AGENT_EXAMPLES,
        override_usage = "acp check agent [OPTIONS] -- AGENT COMMAND...\n       acp check agent [OPTIONS] --url URL"
    )]
    Agent(CheckAgentArgs),

    /// Check a client.
    ///
    /// In each check, the client starts a scripted agent, which the check controls.
    ///
    /// `{agent}` in the client's command is replaced with the command that starts the agent: with several
    /// arguments if `{agent}` is an argument of its own, otherwise with one line quoted for a shell.
    /// `{agent-line}` is always replaced with one line.
    ///
    /// The client has to open a session and send one prompt; anything else it does is checked as well. It should
    /// allow permission requests in the directory it is started in.
    #[command(
        after_long_help = CLIENT_EXAMPLES,
        override_usage = "acp check client [OPTIONS] -- CLIENT COMMAND..."
    )]
    Client(CheckClientArgs),

    /// Check a server of the remote transport.
    ///
    /// Each check connects to the server, which must be running, over WebSocket or streamable HTTP. These
    /// checks cover the transport, as the draft defines it. To check the agent behind it, use `acp check agent`.
    ///
    /// Checks open sessions and send short prompts. They reject every permission request.
    #[command(after_long_help = SERVER_EXAMPLES)]
    Server(CheckServerArgs),

    /// Check a client of the remote transport.
    ///
    /// In each check, the client connects to a scripted server, which the check controls.
    ///
    /// `{url}` in the client's command is replaced with the URL to connect to. It starts with http for streamable
    /// HTTP, and with ws for WebSocket. The client has to open a session, send one prompt, and exit.
    #[command(
        after_long_help = REMOTE_CLIENT_EXAMPLES,
        override_usage = "acp check remote-client [OPTIONS] -- CLIENT COMMAND..."
    )]
    RemoteClient(CheckRemoteClientArgs),
}

// Options for checking either side of the protocol.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckCommonArgs {
    #[command(flatten)]
    pub(crate) run: CheckRunArgs,

    /// Protocol version to check.
    ///
    /// `all` checks every version that the program speaks.
    #[arg(long, value_enum, value_name = "VERSION", default_value = "all")]
    pub(crate) protocol: CheckedVersions,

    #[command(flatten)]
    pub(crate) env: EnvArgs,
}

// Options for all checks: which are run, and how, and the report.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckRunArgs {
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: CheckFormat,

    /// Write the report to a file instead of stdout.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Run only the checks whose ids match.
    ///
    /// For example, 'v1/prompt-turn/*'. Can be repeated.
    #[arg(long, value_name = "GLOB")]
    pub(crate) only: Vec<String>,

    /// List the checks without running them.
    #[arg(long)]
    pub(crate) list: bool,

    /// Also fail if a SHOULD requirement is not met.
    #[arg(long)]
    pub(crate) strict: bool,

    /// File that lists the checks that are expected to fail.
    ///
    /// It has one id per line. A listed check that passes is an error: the baseline is out of date.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,

    /// Show the messages of every check.
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// Show only the summary and the checks that did not pass.
    ///
    /// This is for the text format. No progress is shown on the terminal.
    #[arg(long, short, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Seconds to wait for each response.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,

    /// Number of checks to run in parallel, up to 64.
    ///
    /// The default is the number of processors, but at least 4 and at most 16.
    #[arg(long, value_name = "NUMBER", value_parser = parse_jobs)]
    pub(crate) jobs: Option<usize>,
}

impl CheckRunArgs {
    /// Returns the number of checks to run in parallel.
    pub(crate) fn jobs(&self) -> usize {
        // A program under test waits most of the time, so even one processor can run several.
        let default =
            || std::thread::available_parallelism().map_or(4, |count| count.get().clamp(4, 16));
        self.jobs.unwrap_or_else(default)
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckAgentArgs {
    #[command(flatten)]
    pub(crate) common: CheckCommonArgs,

    /// Prompt for checks that don't need a particular one.
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,

    /// Prompt for a particular task.
    ///
    /// TASK is one of these: `answer` in words, `read` notes.txt, `edit` it (beta becomes delta), `run` the
    /// command `echo checked`, make a `plan`, `delegate` to a subagent, or do something `long` that can be
    /// cancelled. The default is a prompt in plain language. Can be repeated.
    #[arg(long, value_name = "TASK=TEXT", value_parser = parse_task)]
    pub(crate) prompt_for: Vec<(AgentTask, String)>,

    /// Seconds to wait for each turn.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) turn_timeout: u64,

    /// Auth method to log in with, if the agent requires it.
    #[arg(long, value_name = "ID")]
    pub(crate) login: Option<String>,

    /// Start a new agent for every check.
    ///
    /// By default, checks that only use sessions of their own share an agent, which is faster. If such a check
    /// fails, it is repeated with a new agent.
    #[arg(long)]
    pub(crate) no_sharing: bool,

    #[command(flatten)]
    pub(crate) url: UrlArgs,

    /// Command that starts the agent.
    #[arg(last = true, value_name = "AGENT COMMAND")]
    pub(crate) agent: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckClientArgs {
    #[command(flatten)]
    pub(crate) common: CheckCommonArgs,

    /// Seconds to wait for the client to start its agent, and to send its prompt.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) prompt_timeout: u64,

    /// Command that starts the client, containing `{agent}` or `{agent-line}`.
    #[arg(last = true, value_name = "CLIENT COMMAND")]
    pub(crate) client: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckServerArgs {
    #[command(flatten)]
    pub(crate) run: CheckRunArgs,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,

    /// Session directory on the server.
    ///
    /// The default is a temporary directory on this machine, with a small project in it.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,

    /// Prompt for a particular task.
    ///
    /// TASK is one of these: `answer` in words, `run` a command that requires a permission, or do something
    /// `long` that can be cancelled. The default is a prompt in plain language. Can be repeated.
    #[arg(long, value_name = "TASK=TEXT", value_parser = parse_task)]
    pub(crate) prompt_for: Vec<(AgentTask, String)>,

    /// Seconds to wait for each turn.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) turn_timeout: u64,

    /// Auth method to log in with, if the agent requires it.
    #[arg(long, value_name = "ID")]
    pub(crate) login: Option<String>,

    /// URL of the server.
    ///
    /// Schemes are http, https, ws and wss. http and ws mean the same here, and so do https and wss.
    #[arg(value_name = "URL", required_unless_present = "list")]
    pub(crate) url: Option<TypedUrl>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckRemoteClientArgs {
    #[command(flatten)]
    pub(crate) run: CheckRunArgs,

    /// Seconds to wait for the client to send its prompt.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) prompt_timeout: u64,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// Command that starts the client, containing `{url}`.
    #[arg(last = true, value_name = "CLIENT COMMAND")]
    pub(crate) client: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// Human-readable text.
    Text,
    /// One JSON object.
    Json,
    /// JUnit XML, for CI services.
    Junit,
    /// An HTML page.
    Html,
}

/// The protocol versions to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckedVersions {
    #[value(name = "1")]
    V1,
    #[value(name = "2")]
    V2,
    All,
}

fn parse_jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(jobs @ 1..=64) => Ok(jobs),
        _ => Err("expected a number from 1 to 64".to_owned()),
    }
}

fn parse_task(text: &str) -> Result<(AgentTask, String), String> {
    let (task, text) = text.split_once('=').ok_or("expected TASK=TEXT")?;
    let task = match task {
        "answer" => AgentTask::Answer,
        "read" => AgentTask::Read,
        "edit" => AgentTask::Edit,
        "run" => AgentTask::Run,
        "long" => AgentTask::Long,
        "plan" => AgentTask::Plan,
        "delegate" => AgentTask::Delegate,
        _ => {
            let tasks = "expected one of answer, read, edit, run, long, plan, delegate";
            return Err(tasks.to_owned());
        }
    };
    Ok((task, text.to_owned()))
}
