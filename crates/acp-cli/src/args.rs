//! What can be typed. What is told to a command, or to commands of a kind, has a file of its own, and so have
//! the arguments that several take: `shared.rs`, `which.rs`. Commands know their own file; this joins them, for `main.rs`.

pub(crate) mod agent;
pub(crate) mod agent_choice;
pub(crate) mod agents;
pub(crate) mod chat;
pub(crate) mod check;
pub(crate) mod login;
pub(crate) mod permissions;
pub(crate) mod relays;
pub(crate) mod run;
pub(crate) mod sessions;
pub(crate) mod shared;
pub(crate) mod trace;

use clap::{Parser, Subcommand, ValueEnum};
use tracing_subscriber::filter::LevelFilter;

use self::agent::AgentArgs;
use self::agents::AgentsArgs;
use self::chat::ChatArgs;
use self::check::CheckArgs;
use self::login::{LoginArgs, LogoutArgs};
use self::permissions::PermissionsArgs;
use self::relays::{BridgeArgs, CheckRelayArgs, McpProxyArgs};
use self::run::RunArgs;
use self::sessions::SessionsArgs;
use self::trace::TraceArgs;

/// Use and be agents of the Agent Client Protocol (ACP).
#[derive(Debug, Parser)]
#[command(
    name = "acp",
    version,
    about,
    propagate_version = true,
    max_term_width = 100
)]
pub(crate) struct CliArgs {
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
    pub(crate) command: CliCommand,
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
pub(crate) enum CliCommand {
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_list_of_commands_says_what_each_does() {
        let command = CliArgs::command();
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
        CliArgs::command().debug_assert();
    }
}
