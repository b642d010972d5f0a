//! The command line. Each command or group of commands defines its arguments in its own file, and `shared.rs` and
//! `agent_choice.rs` define arguments that several commands use. This file combines them for `main.rs`.

pub(crate) mod agent;
pub(crate) mod agent_choice;
pub(crate) mod agents;
pub(crate) mod candidates;
pub(crate) mod chat;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod connect;
pub(crate) mod inspect;
pub(crate) mod login;
pub(crate) mod other_programs;
pub(crate) mod permissions;
pub(crate) mod relays;
pub(crate) mod remote;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod shared;
pub(crate) mod store;
pub(crate) mod store_address;
pub(crate) mod trace;
pub(crate) mod users;

use clap::{Parser, Subcommand, ValueEnum};
use tracing_subscriber::filter::LevelFilter;

use self::agent::AgentArgs;
use self::agents::AgentsArgs;
use self::chat::ChatArgs;
use self::check::CheckArgs;
use self::compare::CompareArgs;
use self::completions::{CompletionsArgs, ManArgs};
use self::connect::ConnectArgs;
use self::inspect::InspectArgs;
use self::login::{LoginArgs, LogoutArgs};
use self::permissions::PermissionsArgs;
use self::relays::{BridgeArgs, CheckRelayArgs, McpProxyArgs};
use self::run::RunArgs;
use self::serve::ServeArgs;
use self::sessions::SessionsArgs;
use self::store::StoreArgs;
use self::trace::TraceArgs;
use self::users::UsersArgs;

/// Run, chat with, serve and debug Agent Client Protocol (ACP) agents.
#[derive(Debug, Parser)]
#[command(
    name = "acp",
    version,
    propagate_version = true,
    max_term_width = 100,
    after_long_help = EXAMPLES
)]
pub(crate) struct CliArgs {
    /// Log level for stderr.
    #[arg(
        long,
        value_enum,
        value_name = "LEVEL",
        default_value = "error",
        global = true
    )]
    pub(crate) log: LogLevel,

    /// The command to run. Without one, `acp` starts `acp chat` if run in a terminal, and prints its help otherwise.
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

// `defer` builds a command's arguments only if that command is used. So a command's description is here and not on
// its arguments: the list of commands needs it before they are built. Structs of shared arguments have no doc comment,
// because clap would use it in place of the command's description.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
#[allow(
    clippy::large_enum_variant,
    reason = "only one value exists per process"
)]
pub(crate) enum CliCommand {
    /// Run one turn: send a prompt to an agent and print what it does.
    ///
    /// The agent is the bundled one, unless --agent, --url or a command after `--` selects another. Permission is
    /// requested on the terminal; without a terminal, the agent may only read. For a conversation, use
    /// `acp chat`, or continue a session with --session.
    Run(RunArgs),

    /// Chat with an agent in the terminal.
    ///
    /// Press ? for help and Ctrl-P for the command palette. In scripts, use `acp run`.
    Chat(ChatArgs),

    /// Give one prompt to several agents, and compare what they do.
    ///
    /// Each agent works in its own copy of the project's git repository, with your uncommitted changes. A table shows
    /// how each has ended, what it cost and which files it has changed. Your files stay as they are, unless you take
    /// over the changes of one agent. On a terminal, you are asked.
    Compare(CompareArgs),

    /// Run the bundled coding agent on stdin and stdout.
    ///
    /// Configure your editor to start this command. Choose the model with --model or in `[agent]` of
    /// config.toml in your configuration directory. Otherwise a model is chosen from a provider you have a
    /// key for, from the environment or `acp agent login`.
    ///
    /// Without a model, only slash commands such as /test, /read or /edit work; /help lists them.
    Agent(AgentArgs),

    /// Serve agents over the network.
    ///
    /// Each connection gets a process of its own. Clients connect over WebSocket or streamable HTTP, with a token
    /// that is created on first use; `acp connect` makes such an agent available to any editor. By default, only
    /// this machine can connect, and only to sessions in the current directory.
    Serve(ServeArgs),

    /// Show, migrate or copy the stores in which `acp serve` keeps live sessions.
    Store(StoreArgs),

    /// Add, list or remove users of `acp serve`, who have tokens of their own.
    Users(UsersArgs),

    /// Make a remote agent available on stdin and stdout.
    ///
    /// Configure your editor to start this command as its agent. Messages are passed on over WebSocket, streamable
    /// HTTP or a plain socket, unchanged except for --map. If a connection to `acp serve` is cut, it is restored
    /// without loss.
    Connect(ConnectArgs),

    /// Log in to an agent.
    ///
    /// Without --method, the agent's only auth method is used; if it has several, they are listed. Questions
    /// from the agent are asked on the terminal. Methods that need the agent's own program run it in this
    /// terminal. For the bundled agent, use `acp agent login`.
    Login(LoginArgs),

    /// Log out of an agent.
    ///
    /// For the bundled agent, use `acp agent logout`.
    Logout(LogoutArgs),

    /// List, name, archive and export an agent's sessions.
    ///
    /// Without a subcommand, list up to 10,000 sessions. Continue a session with `acp run --session NAME` or
    /// `acp run --resume ID`; `acp chat` has the same options.
    Sessions(SessionsArgs),

    /// List available agents: yours, the project's and well-known ones.
    ///
    /// Your agents are defined in `[agents.NAME]` in config.toml in your configuration directory. A project's
    /// agents are defined in .acp/config.toml, and are used only after you have allowed that file.
    ///
    /// No agent is started.
    Agents(AgentsArgs),

    /// Show what an agent is and what it can do.
    ///
    /// Prints the agent's program and protocol versions, its capabilities, its auth methods and, of a session, the
    /// modes, models, config options and slash commands. The session is closed and deleted again if the agent
    /// supports that. No prompt is sent.
    Inspect(InspectArgs),

    /// Show what agents may do in a project: your rules, remembered answers and project rules.
    ///
    /// The strictest rule wins: deny, then ask, then allow. Your rules are in permissions.toml in your
    /// configuration directory, a project's rules in .acp/permissions.toml. Project rules can only restrict.
    Permissions(PermissionsArgs),

    /// Relay MCP between an agent and a client that provides tools.
    ///
    /// Agents start this command on behalf of their client; it is not meant to be run by hand. It speaks MCP
    /// on stdin and stdout and reads the client's token from ACP_MCP_TOKEN. It exits with 0 when the agent
    /// closes stdin, with 2 if the token is missing, and with 3 if the client cannot be reached, rejects the
    /// token or disconnects.
    #[command(hide = true)]
    McpProxy(McpProxyArgs),

    /// Check whether an agent or client conforms to the specification.
    #[command(subcommand, after_long_help = check::EXAMPLES)]
    Check(CheckArgs),

    /// Connect a client under test to `acp check client`.
    ///
    /// `acp check client` inserts this into the client's command; it is not meant to be run by hand.
    #[command(hide = true)]
    CheckRelay(CheckRelayArgs),

    /// Connect an agent and a client that speak different protocol versions.
    ///
    /// The client starts this command instead of the agent and talks to it on stdin and stdout. If both speak
    /// the same version, messages are passed through unchanged. The agent's stderr is passed through.
    Bridge(BridgeArgs),

    /// Record and inspect the messages between a client and an agent.
    ///
    /// The client starts this command instead of the agent and talks to it on stdin and stdout. Everything is
    /// passed through unchanged and recorded with timestamps in FILE: messages, the agent's stderr and its
    /// exit status. Secrets are redacted in FILE unless --secrets is given.
    ///
    /// The subcommands print, check, render and replay recorded traces.
    Trace(TraceArgs),

    /// Print a script that completes `acp` commands in a shell.
    ///
    /// The script completes commands, options and their values, among them agents, sessions and modes. It asks
    /// this program each time, so it knows what you have configured. No agent is started.
    Completions(CompletionsArgs),

    /// Write the manual pages of all commands to a directory.
    ///
    /// There is one page per command, such as acp-run.1. This is meant for those who package acp.
    #[command(hide = true)]
    Man(ManArgs),
}

const EXAMPLES: &str = "\
Examples:
  acp run \"Why does the build fail?\"                 # one turn of the bundled agent
  acp run \"Fix the build\" -- gemini --acp            # any other agent
  acp chat --agent goose                             # a conversation
  acp agents                                         # agents that --agent knows
  acp check agent -- gemini --acp                    # does it conform to the specification?
  acp trace today.trace -- gemini --acp              # record its messages
  acp serve                                          # make an agent available over the network
  acp chat --url ws://127.0.0.1:7180/acp             # use it from elsewhere

Run `acp COMMAND --help` for the options and examples of one command.";

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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_list_describes_each_command() {
        let command = CliArgs::command();
        for listed in command.get_subcommands() {
            let name = listed.get_name();
            let about = listed.get_about().map(ToString::to_string);
            // The command's own help, with its arguments built, has the same description.
            let mut built = command.clone();
            built.build();
            let own = built.find_subcommand(name).unwrap().get_about();
            assert_eq!(about, own.map(ToString::to_string), "{name}");
            assert!(about.is_some(), "{name}");
        }
    }

    #[test]
    fn command_definitions_are_valid() {
        CliArgs::command().debug_assert();
    }
}
