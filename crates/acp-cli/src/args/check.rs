//! What can be told to `acp check`.

use std::path::PathBuf;

use acp_check::AgentTask;
use clap::{Subcommand, ValueEnum};

use super::agent_choice::EnvArgs;

const EXIT_CODES: &str = "\
Exit codes:
    0  every MUST is kept, or expected to be broken by --baseline
    1  a MUST is broken (with --strict also a SHOULD), or the baseline does not hold any more
    2  the command line is wrong
    3  the program could not be started, or does not answer
  130  interrupted";

#[derive(Debug, Subcommand)]
pub(crate) enum CheckArgs {
    /// Check an agent: each check starts it anew, in a project of the check's own, and plays the client.
    ///
    /// It works with any agent. One that asks a language model is given short tasks in plain words; what it does not
    /// do is skipped. Its tools change nothing but files in temporary directories.
    #[command(
        after_long_help = EXIT_CODES,
        after_help = "See --help for the exit codes.",
        override_usage = "acp check agent [OPTIONS] -- AGENT COMMAND..."
    )]
    Agent(CheckAgentArgs),

    /// Check a client: each check has it start our scripted agent, and plays that agent.
    ///
    /// Where the client's command has `{agent}`, it is told how its agent is started: as several arguments where
    /// `{agent}` is one by itself, else as one line quoted for a shell, which `{agent-line}` always is. The client has to
    /// open a session and prompt once, whatever it says; what it does beyond that is checked as well. It should allow what
    /// it is asked, in the directory that it is started in.
    #[command(
        after_long_help = EXIT_CODES,
        after_help = "See --help for the exit codes.",
        override_usage = "acp check client [OPTIONS] -- CLIENT COMMAND..."
    )]
    Client(CheckClientArgs),
}

// What both sides are checked with.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckCommonArgs {
    /// How to tell what came of it.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: CheckFormat,

    /// Write it to this file instead of stdout.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Carry out only the checks whose id matches, such as 'v1/prompt-turn/*'; can be given several times.
    #[arg(long, value_name = "GLOB")]
    pub(crate) only: Vec<String>,

    /// List the checks, and carry out none.
    #[arg(long)]
    pub(crate) list: bool,

    /// Fail for a SHOULD that is broken, too.
    #[arg(long)]
    pub(crate) strict: bool,

    /// The ids of checks that are expected to fail, one a line; one that does not fail any more is an error.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,

    /// Show all that was said in every check.
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// The version whose checks are carried out. By default those that the program speaks.
    #[arg(long, value_enum, value_name = "VERSION", default_value = "all")]
    pub(crate) protocol: CheckedVersions,

    /// How long an answer may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,

    /// How many checks to carry out at once.
    #[arg(long, value_name = "NUMBER", default_value = "4", value_parser = parse_jobs)]
    pub(crate) jobs: usize,

    #[command(flatten)]
    pub(crate) env: EnvArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckAgentArgs {
    #[command(flatten)]
    pub(crate) common: CheckCommonArgs,

    /// What to say to the agent where anything will do.
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,

    /// What to say so that the agent does a certain thing: `answer` in words, `read` notes.txt, `edit` it (beta becomes
    /// delta), `run` the command `echo checked`, make a `plan`, `delegate` to a subagent, or do something `long` that can
    /// be cancelled. By default it is asked in plain words; can be given several times.
    #[arg(long, value_name = "TASK=TEXT", value_parser = parse_task)]
    pub(crate) prompt_for: Vec<(AgentTask, String)>,

    /// How long a turn may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) turn_timeout: u64,

    /// Log in by this method if the agent wants a login.
    #[arg(long, value_name = "METHOD")]
    pub(crate) login: Option<String>,

    /// The agent to check, with its arguments.
    #[arg(last = true, value_name = "AGENT COMMAND")]
    pub(crate) agent: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckClientArgs {
    #[command(flatten)]
    pub(crate) common: CheckCommonArgs,

    /// How long the client may take until it starts its agent, and until it prompts, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) prompt_timeout: u64,

    /// The client to check, with its arguments: for example `acp run --allow all Hello -- {agent}`.
    #[arg(last = true, value_name = "CLIENT COMMAND")]
    pub(crate) client: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// For a person.
    Text,
    /// For a program.
    Json,
    /// For a CI service.
    Junit,
    /// One page for a browser.
    Html,
}

/// The versions that are checked.
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
