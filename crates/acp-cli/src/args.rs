//! What can be typed.

use std::path::PathBuf;

use acp_host::Policy;
use acp_mcp::Endpoint;
use clap::{Parser, Subcommand, ValueEnum};
use tracing_subscriber::filter::LevelFilter;

use crate::agents::WhichArgs;
use crate::agents::args::AgentsArgs;
use crate::check::CheckArgs;
use crate::environment::EnvArgs;
use crate::exit::Exit;
use crate::names::SessionName;
use crate::sessions::args::SessionsArgs;
use crate::trace::TraceArgs;

/// Use and be agents of the Agent Client Protocol (ACP).
#[derive(Debug, Parser)]
#[command(
    name = "acp",
    version,
    about,
    propagate_version = true,
    max_term_width = 100
)]
pub(crate) struct Args {
    /// What to log to stderr.
    #[arg(
        long,
        value_enum,
        value_name = "LEVEL",
        default_value = "error",
        global = true
    )]
    pub(crate) log: LogLevel,

    #[command(subcommand)]
    pub(crate) command: Command,
}

// What can be told to a command is put together only when it is the one that was typed. Its own help stands here
// and not at its arguments, because the list of commands has it, too; nor do arguments that several commands share
// have any, which would stand in its place.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one, for as long as the program runs"
)]
pub(crate) enum Command {
    /// Run one turn of an agent: send a prompt, show what it does, and end when it has ended.
    Run(RunArgs),

    /// Talk with an agent in the terminal.
    ///
    /// One key is enough to begin: ? shows all others, and Ctrl-P everything that can be done. For scripts there is
    /// `acp run`.
    Chat(ChatArgs),

    /// Be an agent: serve an editor or another client on stdin and stdout.
    ///
    /// This is what an editor is told to start. Which model it asks is said with --model, or in `[agent]` of
    /// config.toml in your configuration directory; else it is one of a provider that you have a key for, in the
    /// environment or by `acp agent login`. With none of these it is no AI, and carries out typed commands such as
    /// /test, /read or /edit; /help lists them.
    Agent(AgentArgs),

    /// Log in to an agent, by one of the ways that it names.
    ///
    /// Without --method the agent must name one way only; if it names several, they are listed. What the agent
    /// wants to know is asked on the terminal. A way that needs the agent's own program is run in this terminal.
    Login(LoginArgs),

    /// Log out of an agent.
    Logout(LogoutArgs),

    /// List the sessions that an agent keeps, with the names you gave them; name, forget and export them.
    ///
    /// `acp run --session NAME` goes on with one by its name, `acp run --resume` by its id.
    Sessions(SessionsArgs),

    /// List the agents that can be named: yours, the project's and well-known ones, and which are installed.
    ///
    /// Yours are in `[agents.NAME]` of config.toml in your configuration directory. A project's are in
    /// .acp/config.toml, and are used when you have said yes to what that file says. Nothing is started.
    Agents(AgentsArgs),

    /// Say what agents may do in a project: your rules, what you said for always, and the project's rules.
    ///
    /// The stricter wins: deny, then ask, then allow. Your rules are in permissions.toml in your configuration
    /// directory, a project's in .acp/permissions.toml; what a project says can only forbid.
    Permissions(PermissionsArgs),

    /// Be an MCP server that passes everything on to a client with tools of its own.
    ///
    /// Agents start this, as their client tells them to; there is no use for it by hand. It speaks MCP on
    /// stdin and stdout, and needs the client's token in the environment variable ACP_MCP_TOKEN. It ends
    /// when either side does: with 0 when the agent closes stdin, with 2 without a token, with 3 when the
    /// client cannot be reached, does not take the token or is gone.
    #[command(hide = true)]
    McpProxy(McpProxyArgs),

    /// Check whether an agent or a client keeps to the specification, and show what it says where it does not.
    #[command(subcommand)]
    Check(CheckArgs),

    /// Be the agent that a client under check starts: connect it to the check.
    ///
    /// `acp check client` puts this into the client's command; there is no use for it by hand.
    #[command(hide = true)]
    CheckRelay(CheckRelayArgs),

    /// Put an agent of one version of the protocol behind a client of the other.
    ///
    /// A client starts this instead of the agent and talks to it on stdin and stdout. Where both turn out to
    /// speak the same version, nothing is changed. What the agent prints to stderr goes to stderr.
    Bridge(BridgeArgs),

    /// Record what a client and an agent say to each other.
    ///
    /// A client starts this instead of the agent and talks to it on stdin and stdout. Everything is passed on at
    /// once and unchanged, and recorded with its time in FILE: messages, what the agent prints to stderr, and what
    /// becomes of its process. Secrets are replaced in what is recorded, unless --secrets is given.
    Trace(TraceArgs),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Off => Self::OFF,
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}

// Which language model; not documented, or it would be the text of whatever it is put into.
#[derive(Debug, clap::Args)]
pub(crate) struct ModelArgs {
    /// The language model to use: `anthropic`, `openai` or `gemini`, a slash, and the name that the model has
    /// there; or `offline` for none. Its key is taken from ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or
    /// is the one that `acp agent login` has kept.
    #[arg(
        long = "model",
        value_name = "PROVIDER/NAME",
        conflicts_with = "script"
    )]
    pub(crate) name: Option<String>,

    /// Where the model is, if it is not at its provider's: any server that speaks as one of them, for example
    /// http://127.0.0.1:11434/v1 with `openai` for Ollama. A key that is set is sent there; none is needed.
    #[arg(long, value_name = "URL", requires = "name")]
    pub(crate) base_url: Option<String>,

    /// How many tokens fit into the model's window, where that is not known of it.
    #[arg(long, value_name = "TOKENS", requires = "name", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) context_window: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AgentArgs {
    #[command(subcommand)]
    pub(crate) command: Option<AgentCommand>,

    /// Play the turns of this file instead of answering; for tests.
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) model: ModelArgs,

    /// Where to keep sessions, a directory of yours alone; `none` keeps them nowhere. By default `acp` in
    /// $XDG_STATE_HOME, which is ~/.local/state if it is not set.
    #[arg(long, value_name = "DIR")]
    pub(crate) sessions: Option<PathBuf>,

    /// The client goes by the rules of permissions.toml itself, as `acp run` does, and tells what it refuses: ask
    /// it, and go by them only in what it does not see.
    #[arg(long)]
    pub(crate) client_has_rules: bool,

    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,

    #[command(flatten)]
    pub(crate) protocol: ProtocolArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Type the key of a provider, for the bundled agent. It is kept in a file that you alone can read.
    Login(AccountArgs),

    /// Forget the keys that were typed, or one of them.
    Logout(AccountArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct AccountArgs {
    /// Whose key it is: `anthropic`, `openai` or `gemini`. By default, to log in, that of the configured model, and to
    /// log out, all of them.
    #[arg(value_name = "PROVIDER")]
    pub(crate) provider: Option<String>,

    /// Where it is for, if not for the provider's own address: any server that speaks as it does. It is sent to no
    /// other.
    #[arg(long, value_name = "URL", requires = "provider")]
    pub(crate) at: Option<String>,
}

// Where what is started may write.
#[derive(Debug, clap::Args)]
pub(crate) struct SandboxArgs {
    /// Let commands, and agents other than the bundled one, read everything and write only where the session
    /// works, in a temporary directory of their own, and to what --writable adds. Takes Linux 6.2 or later;
    /// where it is not possible, nothing is started.
    #[arg(long)]
    pub(crate) sandbox: bool,

    /// Let them write here, too; can be given several times. Agents that keep something in the home
    /// directory need this.
    #[arg(long, value_name = "DIR", requires = "sandbox")]
    pub(crate) writable: Vec<PathBuf>,
}

impl SandboxArgs {
    /// What --writable names, as it is called from everywhere; `None` without --sandbox.
    pub(crate) fn writable(&self) -> Result<Option<Vec<PathBuf>>, Exit> {
        let called = |path: &PathBuf| {
            std::fs::canonicalize(path)
                .map_err(|e| Exit::usage(format!("--writable {}: {e}", path.display())))
        };
        let writable: Result<_, _> = self.writable.iter().map(called).collect();
        Ok(self.sandbox.then_some(writable?))
    }
}

// Which version of the protocol is spoken.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct ProtocolArg {
    /// The latest version of the protocol to speak; what the other side speaks decides. Version 2 is a
    /// draft.
    #[arg(long, value_name = "VERSION", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=2))]
    pub(crate) protocol: u16,
}

impl ProtocolArg {
    /// The version in the options of a connection.
    pub(crate) fn set(self, options: acp::Options) -> acp::Options {
        if self.protocol == 2 {
            options.draft_version_2()
        } else {
            options
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct McpProxyArgs {
    /// Where the client listens: unix:PATH or tcp:127.0.0.1:PORT.
    #[arg(long, value_name = "ENDPOINT")]
    pub(crate) connect: Endpoint,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckRelayArgs {
    /// Where the check has written how it is reached.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp bridge --to VERSION -- AGENT COMMAND...",
    after_long_help = BRIDGE_EXIT_CODES,
    after_help = "See --help for the exit codes."
)]
pub(crate) struct BridgeArgs {
    /// The version the client is to find: `2` puts an agent of version 1 behind a client of version 2,
    /// `1` the other way round.
    #[arg(long, value_name = "VERSION", value_enum)]
    pub(crate) to: Version,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// The agent to run, with its arguments.
    #[arg(last = true, required = true, value_name = "AGENT COMMAND")]
    pub(crate) agent: Vec<String>,
}

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Version {
    #[value(name = "1")]
    V1,
    #[value(name = "2")]
    V2,
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp run [OPTIONS] PROMPT... [-- AGENT COMMAND...]",
    after_long_help = EXIT_CODES,
    after_help = "See --help for the exit codes."
)]
pub(crate) struct RunArgs {
    /// What to say to the agent; `-` reads it from stdin.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,

    #[command(flatten)]
    pub(crate) which: WhichArgs,

    /// Read what to say from a file.
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    pub(crate) file: Option<PathBuf>,

    /// Where the agent works.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,

    /// Go on with an old session of the agent's, by its id; `acp sessions` lists them. What was said in it
    /// before is not shown again.
    #[arg(long, value_name = "SESSION ID")]
    pub(crate) resume: Option<String>,

    /// Go on with the session of this name, or begin it if there is none yet. The name is one of this agent in
    /// this directory. Takes an agent that keeps its sessions.
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    pub(crate) session: Option<SessionName>,

    /// Begin another session under the name, also if there is one.
    #[arg(long, requires = "session")]
    pub(crate) new: bool,

    /// What the agent may do where no rule of yours says it (see `acp permissions`): `ask` asks you each
    /// time, `reads` allows what only looks and rejects the rest, `all` allows everything, `none` rejects
    /// everything, whatever your rules say. By default `ask` on a terminal and `reads` elsewhere.
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    pub(crate) allow: Option<Policy>,

    /// The mode to work in, by its id. By default, in a new session, what is configured of the agent.
    #[arg(long, value_name = "ID")]
    pub(crate) mode: Option<String>,

    /// Set a config option of the agent's; can be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) options: Vec<(String, String)>,

    /// Give the agent a file with the prompt: text, image or sound; can be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,

    /// MCP servers for the agent, as a JSON file: a list of servers as the protocol writes them, or
    /// {"mcpServers": {NAME: {...}}} as editors do.
    #[arg(long, value_name = "JSON FILE")]
    pub(crate) mcp: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,

    /// Give up after this time.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: Option<u64>,

    /// What to print: `text` for people; `json` for programs, the messages received from the agent,
    /// one a line; `quiet` the text of the agent's message alone.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

#[derive(Debug, clap::Args)]
#[command(override_usage = "acp chat [OPTIONS] [PROMPT]... [-- AGENT COMMAND...]")]
pub(crate) struct ChatArgs {
    /// What to say first.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,

    #[command(flatten)]
    pub(crate) which: WhichArgs,

    /// Where the agent works.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,

    /// Go on with an old session of the agent's, by its id; `acp sessions` lists them.
    #[arg(long, value_name = "SESSION ID")]
    pub(crate) resume: Option<String>,

    /// Go on with the session of this name, that `acp run --session` has begun or `acp sessions name` has named.
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    pub(crate) session: Option<SessionName>,

    /// What the agent may do where no rule of yours says it (see `acp permissions`): `ask` asks you each
    /// time, `reads` allows what only looks and rejects the rest, `all` allows everything, `none` rejects
    /// everything, whatever your rules say. By default `ask`.
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    pub(crate) allow: Option<Policy>,

    /// The mode to work in, by its id. By default what is configured of the agent.
    #[arg(long, value_name = "ID")]
    pub(crate) mode: Option<String>,

    /// Set a config option of the agent's; can be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) options: Vec<(String, String)>,

    /// MCP servers for the agent, as a JSON file: a list of servers as the protocol writes them, or
    /// {"mcpServers": {NAME: {...}}} as editors do.
    #[arg(long, value_name = "JSON FILE")]
    pub(crate) mcp: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,

    /// Colours for a dark or a light terminal. By default what is configured, or what the terminal says.
    #[arg(long, value_enum)]
    pub(crate) theme: Option<Theming>,

    /// Scroll with the mouse's wheel. Text is then selected with Shift held down.
    #[arg(long)]
    pub(crate) mouse: bool,
}

/// What the colours are to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Theming {
    Dark,
    Light,
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp login [OPTIONS] [-- AGENT COMMAND...]",
    after_long_help = LOGIN_EXIT_CODES,
    after_help = "See --help for the exit codes."
)]
pub(crate) struct LoginArgs {
    #[command(flatten)]
    pub(crate) which: WhichArgs,

    /// Which way to log in, by its id.
    #[arg(long, value_name = "ID")]
    pub(crate) method: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp logout [OPTIONS] [-- AGENT COMMAND...]",
    after_long_help = LOGIN_EXIT_CODES,
    after_help = "See --help for the exit codes."
)]
pub(crate) struct LogoutArgs {
    #[command(flatten)]
    pub(crate) which: WhichArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    Text,
    Json,
}

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct PermissionsArgs {
    #[command(flatten)]
    pub(crate) list: ListPermissionsArgs,

    #[command(subcommand)]
    pub(crate) command: Option<PermissionsCommand>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListPermissionsArgs {
    /// The project, or a directory in it.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,

    /// What to print: `text` for people; `json` for programs, all in one object.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: ListFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PermissionsCommand {
    Revoke(RevokeArgs),
}

/// Forget something that you said for always in a project.
#[derive(Debug, clap::Args)]
pub(crate) struct RevokeArgs {
    /// Its number, as `acp permissions` lists it.
    #[arg(
        value_name = "NUMBER",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub(crate) number: Option<u64>,

    /// Forget all of it.
    #[arg(long)]
    pub(crate) all: bool,

    /// The project, or a directory in it.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,
}

const LOGIN_EXIT_CODES: &str = "\
Exit codes:
    0  logged in, or out
    1  the agent answered with an error, or its program did not end with 0
    2  wrong usage, a way the agent does not offer, or no terminal where one is needed
    3  the agent could not be started, or broke the connection
  130  cancelled by Ctrl-C";

const EXIT_CODES: &str = "\
Exit codes:
    0  the agent has finished (end_turn)
    1  the agent answered with an error
    2  wrong usage, or something the agent does not offer or take
    3  the agent could not be started, or broke the connection
    4  the agent refused (refusal)
    5  a limit of the agent's was reached (max_tokens, max_turn_requests)
    6  --timeout was reached
  130  cancelled: Ctrl-C cancels the turn, a second one ends everything at once";

const BRIDGE_EXIT_CODES: &str = "\
Exit codes:
    0  the client has closed the connection
    2  wrong usage
    3  the agent could not be started, or has ended by itself
  130  ended by a signal, and the agent with it";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    Quiet,
}

fn policy(name: &str) -> Result<Policy, acp_host::ParsePolicyError> {
    name.parse()
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_list_of_commands_says_what_each_does() {
        let command = Args::command();
        for listed in command.get_subcommands() {
            let name = listed.get_name();
            let about = listed.get_about().map(ToString::to_string);
            // It is the same in the command's own help, where its arguments are known.
            let mut built = command.clone();
            built.build();
            let own = built.find_subcommand(name).unwrap().get_about();
            assert_eq!(about, own.map(ToString::to_string), "{name}");
            assert!(about.is_some(), "{name}");
        }
    }

    #[test]
    fn the_commands_are_well_formed() {
        Args::command().debug_assert();
    }
}
