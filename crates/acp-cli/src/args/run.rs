//! Arguments of `acp run`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use acp::v1::{ContentBlock, SystemPrompt, SystemPromptMode};
use acp_config::SessionName;
use acp_host::Policy;
use clap::{ValueEnum, ValueHint};

use super::agent_choice::AgentChoiceArgs;
use super::candidates;
use super::shared::{
    DirectoryArgs, ForkArgs, LocalServerArgs, SessionArgs, parse_cost, parse_policy,
};

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp run [OPTIONS] PROMPT... [-- AGENT COMMAND...]",
    after_long_help = EXAMPLES_AND_EXIT_CODES
)]
pub(crate) struct RunArgs {
    /// Prompt to send, or `-` to read it from stdin.
    ///
    /// Piped input is appended to the prompt. If no input arrives within 3 seconds, the prompt is sent without
    /// it (use `< /dev/null` to avoid waiting).
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Read the prompt from a file, or from stdin if FILE is -.
    #[arg(long, short, value_name = "FILE", conflicts_with = "prompt")]
    pub(crate) file: Option<PathBuf>,

    /// Continue a session by its id.
    ///
    /// The history is not printed. List sessions with `acp sessions`.
    #[arg(long, short, value_name = "ID")]
    pub(crate) resume: Option<String>,

    /// Continue the session with this name, or start it.
    ///
    /// Names are per agent and directory. The session is live: other commands with this name can join it while the
    /// turn is running, and the agent stays ready for the next prompt for a while (see --keep).
    #[arg(long, short, value_name = "NAME", conflicts_with = "resume", add = candidates::session_names())]
    pub(crate) session: Option<SessionName>,

    /// Continue the latest session of this directory.
    ///
    /// It is the session that changed last, or one whose turn is running. If it has a name, this is the same as
    /// --session with that name, otherwise as --resume with its id. The agent must support listing sessions. It is
    /// started once more to list them, unless it is running already.
    #[arg(long = "continue", short = 'c', conflicts_with_all = ["session", "resume", "new"])]
    pub(crate) continue_latest: bool,

    #[command(flatten)]
    pub(crate) fork: ForkArgs,

    /// Start a new session with this name, even if the name is already in use.
    #[arg(long, requires = "session")]
    pub(crate) new: bool,

    #[command(flatten)]
    pub(crate) server: LocalServerArgs,

    /// Start the turn, and exit without waiting for it to end.
    ///
    /// Show it with `acp sessions watch`. Permission requests that neither your rules nor --allow decide wait until
    /// you answer them, for example in `acp chat --session NAME`.
    #[arg(long, requires = "session", conflicts_with_all = ["no_server", "timeout"])]
    pub(crate) no_wait: bool,

    /// Be the process that carries on the turn for --no-wait.
    #[arg(long, hide = true, requires = "no_wait")]
    pub(crate) detached: bool,

    /// Look up the agent's name in this directory instead of the working directory.
    #[arg(long, hide = true, value_name = "DIR")]
    pub(crate) agents_of: Option<PathBuf>,

    /// What the agent may do: ask, reads, all or none.
    ///
    /// The policy applies where none of your rules does (see `acp permissions`). `ask` asks each time. `reads`
    /// allows reading and rejects the rest. `all` allows everything. `none` rejects everything, whatever your
    /// rules say. The default is the one in your permissions.toml, or else `ask` on a terminal and `reads`
    /// elsewhere.
    ///
    /// If given, `reads` and `none` also run the agent in a read-only sandbox, as --sandbox=read-only does, or
    /// warn if sandboxing is not available; the default does not. --sandbox overrides this.
    #[arg(long, value_name = "POLICY", value_parser = parse_policy, add = candidates::policy_names())]
    pub(crate) allow: Option<Policy>,

    /// Attach a text, image or audio file to the prompt.
    ///
    /// Can be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,

    /// Append this text to the agent's system prompt.
    ///
    /// The agent must support it (systemPrompt). Some agents, including the bundled one, store the text with the
    /// session, so that it also applies when the session is resumed.
    #[arg(
        long,
        value_name = "TEXT",
        conflicts_with = "system_prompt",
        visible_alias = "append-system"
    )]
    pub(crate) append_system_prompt: Option<String>,

    /// Replace the agent's system prompt with this text.
    ///
    /// The agent must support it (systemPrompt.mode.override). It may store the text with the session.
    #[arg(long, value_name = "TEXT", visible_alias = "system")]
    pub(crate) system_prompt: Option<String>,

    /// Use this model.
    ///
    /// The value is one that the agent offers. The agent must offer a choice of models.
    #[arg(long, short, value_name = "VALUE")]
    pub(crate) model: Option<String>,

    /// Do not let the agent read and write files through acp.
    ///
    /// An agent that reads and writes files by itself still can; see --sandbox.
    #[arg(long)]
    pub(crate) no_fs: bool,

    /// Do not let the agent run commands through acp.
    ///
    /// An agent that runs commands by itself still can; see --sandbox.
    #[arg(long)]
    pub(crate) no_terminal: bool,

    #[command(flatten)]
    pub(crate) session_args: SessionArgs,

    #[command(flatten)]
    pub(crate) directories: DirectoryArgs,

    /// Give up after this many seconds.
    ///
    /// The default is to wait forever.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: Option<u64>,

    /// Let the bundled agent call its model at most this many times in a turn.
    ///
    /// The turn then ends with exit code 5. Not available for other agents, because the protocol does not tell when
    /// they call a model, and not in live sessions.
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_turns: Option<NonZeroUsize>,

    /// Cancel the turn when the run has cost more than this.
    ///
    /// The amount is in the currency of the agent, usually US dollars. It takes effect only if the agent reports
    /// costs, and when it does so.
    #[arg(long, value_name = "AMOUNT", value_parser = parse_cost)]
    pub(crate) max_cost: Option<f64>,

    /// Start again if the agent fails before it has said or done anything, at most this many times.
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=100))]
    pub(crate) retries: u32,

    /// Fail with exit code 8 if any action of the agent was denied.
    ///
    /// Without this option, that is an error only if no action was allowed.
    #[arg(long)]
    pub(crate) deny_fails: bool,

    /// Write the result to this file, as one JSON object.
    ///
    /// It has the answer, the stop reason, tool calls, denied actions, changed files, the cost and the session's id.
    /// An existing file is replaced. It is also written if the turn fails.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "no_wait")]
    pub(crate) output: Option<PathBuf>,

    /// Require an answer that is JSON and matches the JSON Schema in this file.
    ///
    /// The agent gets a tool for the answer, and the schema is appended to the prompt. If the answer does not match it,
    /// the agent is told why and asked again, at most twice. With --format quiet, only the JSON is printed.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "no_wait")]
    pub(crate) output_schema: Option<PathBuf>,

    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: RunFormat,
}

impl RunArgs {
    /// Returns the system prompt given on the command line, if any.
    pub(crate) fn system_prompt(&self) -> Option<SystemPrompt> {
        let (mode, text) = match (&self.system_prompt, &self.append_system_prompt) {
            (Some(text), _) => (SystemPromptMode::Override, text),
            (None, Some(text)) => (SystemPromptMode::Append, text),
            (None, None) => return None,
        };
        Some(SystemPrompt::new(mode, vec![ContentBlock::text(text)]))
    }
}

const EXAMPLES_AND_EXIT_CODES: &str = "\
Examples:
  acp run \"/read src/main.rs:1-20\"                   # the bundled agent
  acp run --agent goose \"Why does the build fail?\"   # another agent, by name
  acp run \"Why does the build fail?\" -- gemini --acp
  acp run --url ws://127.0.0.1:7180/acp \"Why does the build fail?\"
  git diff | acp run --format quiet --allow none \"Review this\" > review.md
  acp run --session build \"Fix the build\"           # start or continue a session
  acp run --continue \"And the tests?\"                # continue the latest session
  acp run --output result.json --output-schema schema.json \"List all TODOs\"

Exit codes:
    0  the agent finished (end_turn)
    1  the agent returned an error, or the output could not be written
    2  invalid command line, or not supported by the agent
    3  the agent could not be started, exited, or closed the connection
    4  the agent refused to continue (refusal)
    5  a limit was reached (max_tokens, max_turn_requests, --max-turns,
       --max-cost)
    6  --timeout was reached
    7  the answer does not match --output-schema
    8  all actions of the agent were denied or, with --deny-fails, any was
  130  cancelled with Ctrl-C, or terminated by a signal; the first Ctrl-C
       cancels the turn, a second one exits immediately";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    /// Human-readable text.
    Text,
    /// The agent's messages as JSON, one per line.
    Json,
    /// Only the text of the agent's messages.
    Quiet,
    /// The messages of both sides as a trace, which `acp trace` can read. Secrets are redacted.
    Trace,
}
