//! Arguments of `acp compare`.

use std::path::PathBuf;

use acp_host::Policy;
use clap::ValueHint;

use super::agent_choice::EnvArgs;
use super::candidates;
use super::shared::{ListFormat, SessionArgs, parse_cost, parse_policy};

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp compare [OPTIONS] --agent NAME --agent NAME PROMPT...",
    after_long_help = EXAMPLES_AND_EXIT_CODES
)]
pub(crate) struct CompareArgs {
    /// Prompt to send to each agent, or `-` to read it from stdin.
    ///
    /// Piped input is appended to the prompt, as in `acp run`.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,

    /// Agent to compare, by name. Give it once for each agent.
    ///
    /// List agents with `acp agents`. An agent can be given several times, for example with different models. It is
    /// then called NAME, NAME-2, NAME-3 and so on.
    #[arg(long = "agent", value_name = "NAME", required = true, add = candidates::agent_names())]
    pub(crate) agents: Vec<String>,

    /// Read the prompt from a file.
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    pub(crate) file: Option<PathBuf>,

    /// Attach a text, image or audio file to the prompt.
    ///
    /// Can be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,

    /// Use this model, in all agents or only in AGENT.
    ///
    /// For example, `--agent claude --agent claude --model claude=opus --model claude-2=haiku`. Can be repeated.
    #[arg(long = "model", value_name = "[AGENT=]VALUE")]
    pub(crate) models: Vec<String>,

    /// Run this command in each copy when its agent has finished, and show whether it succeeds.
    ///
    /// The command runs in a shell, with the environment of the agent and in the sandbox of --sandbox.
    #[arg(long, value_name = "COMMAND", value_hint = ValueHint::CommandString)]
    pub(crate) test: Option<String>,

    /// Time limit for each --test, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, requires = "test", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) test_timeout: u64,

    /// Let this command score the results.
    ///
    /// It runs in a shell, and gets a JSON object on stdin: `prompt` and `results`, with `label`, `state`, `answer`,
    /// `diff` and `test` for each agent. It prints {"scores": {LABEL: NUMBER}, "reason": TEXT}.
    #[arg(long, value_name = "COMMAND", value_hint = ValueHint::CommandString)]
    pub(crate) judge: Option<String>,

    /// Number of agents that run at the same time.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) jobs: u16,

    /// Print the changes of each agent, side by side if there are two and the terminal is wide enough.
    #[arg(long)]
    pub(crate) diff: bool,

    /// Take over the changes of this agent, if its turn has ended.
    ///
    /// Without this option, you are asked on a terminal. Nothing is taken over if one of the files has changed in the
    /// meantime.
    #[arg(long, value_name = "AGENT")]
    pub(crate) apply: Option<String>,

    /// Do not delete the copies, and print where they are.
    #[arg(long)]
    pub(crate) keep: bool,

    /// What the agents may do: reads, all or none.
    ///
    /// The policy applies where none of your rules does (see `acp permissions`). The agents cannot ask, because
    /// several would ask at once. The default is the one in your permissions.toml, or else `reads`, with which an
    /// agent that asks for permission cannot change anything.
    ///
    /// If given, `reads` and `none` also run the agents in a read-only sandbox, as --sandbox=read-only does. With
    /// `all`, consider --sandbox: a copy keeps agents apart, but does not confine them.
    #[arg(long, value_name = "POLICY", value_parser = parse_policy, add = candidates::policy_names())]
    pub(crate) allow: Option<Policy>,

    /// Do not let the agents read and write files through acp.
    #[arg(long)]
    pub(crate) no_fs: bool,

    /// Do not let the agents run commands through acp.
    #[arg(long)]
    pub(crate) no_terminal: bool,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// Latest protocol version to offer: 1 or 2.
    ///
    /// The default is what is configured for each agent, or else 1.
    #[arg(long, value_name = "VERSION", value_parser = clap::value_parser!(u16).range(1..=2))]
    pub(crate) protocol: Option<u16>,

    #[command(flatten)]
    pub(crate) session_args: SessionArgs,

    /// Time limit for each agent, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 1800, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,

    /// Cancel the turn of an agent when it has cost more than this.
    ///
    /// It takes effect only for agents that report costs.
    #[arg(long, value_name = "AMOUNT", value_parser = parse_cost)]
    pub(crate) max_cost: Option<f64>,

    /// Start an agent again if it fails before it has said or done anything, at most this many times.
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=100))]
    pub(crate) retries: u32,

    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: ListFormat,
}

const EXAMPLES_AND_EXIT_CODES: &str = "\
Examples:
  acp compare --agent claude --agent codex --allow all --sandbox \"Fix the build\"
  acp compare --agent claude --agent goose --test 'cargo test' --diff --file task.md
  acp compare --agent claude --agent claude --model claude-2=haiku \"Explain this\"
  acp compare --agent a --agent b --judge ./score.py --apply a --format json \"Fix it\"

Exit codes:
    0  at least one agent finished its turn, and what should be taken over was
    1  no agent finished, or the changes could not be taken over
    2  invalid command line, not a git repository, or not supported by the agents
    3  no agent could be started, or all exited or closed the connection
  4-8  as in `acp run`, if all agents ended in this way
  130  cancelled with Ctrl-C, or terminated by a signal";
