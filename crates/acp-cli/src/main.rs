//! The `acp` command: parses arguments, joins the crates below it, holds no logic of its own.

mod agent;
mod agent_login;
mod agent_session;
mod agents;
mod args;
mod bridge;
mod chat;
mod check;
mod check_relay;
mod config;
mod confinement;
mod elicit;
mod exit;
mod line_input;
mod login;
mod mcp_proxy;
mod models;
mod permissions;
mod run;
mod screen;
mod sessions;
mod signals;
mod start;
mod terminal_user;
mod trace;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::agent::AgentSubcommand;
use crate::args::{CliArgs, CliCommand};
use crate::exit::CommandExit;

fn main() -> ExitCode {
    // Before there is a thread, and before anything is started: agents and what they run must not find here what they
    // were not given.
    acp_host::process_secrets::protect();
    let args = CliArgs::parse();
    log_to_stderr(args.log);
    let exit = match args.command {
        CliCommand::Agents(args) => agents::agents(&args),
        CliCommand::Bridge(args) => block_on(bridge::bridge(args)),
        CliCommand::CheckRelay(args) => block_on(check_relay::check_relay(args)),
        CliCommand::Agent(mut args) => match args.command.take() {
            Some(AgentSubcommand::Login(account)) => {
                block_on(agent_login::login(account, args.model))
            }
            Some(AgentSubcommand::Logout(account)) => agent_login::logout(account),
            None => match agent::PreparedAgent::new(args) {
                Ok(agent) => block_on(agent.serve()),
                Err(exit) => exit,
            },
        },
        CliCommand::Chat(args) => block_on(chat::chat(args)),
        CliCommand::Check(args) => block_on(check::check(args)),
        CliCommand::Login(args) => block_on(login::login(args)),
        CliCommand::Logout(args) => block_on(login::logout(args)),
        CliCommand::McpProxy(args) => block_on(mcp_proxy::mcp_proxy(args)),
        CliCommand::Permissions(args) => permissions::permissions(&args),
        CliCommand::Run(args) => block_on(run::run(args)),
        CliCommand::Sessions(args) => block_on(sessions::sessions(args)),
        CliCommand::Trace(args) => block_on(trace::trace(args)),
    };
    exit.report()
}

/// Does the work of a command that waits for others.
// Not within its caller, or the stack would have room for the work of all commands at once.
#[inline(never)]
fn block_on(work: impl Future<Output = CommandExit>) -> CommandExit {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // One to read and write, one to go on meanwhile: what runs here waits far more than it works.
        .worker_threads(2)
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => {
            let exit = runtime.block_on(work);
            // A thread that waits for someone to type must not keep the process.
            runtime.shutdown_background();
            exit
        }
        Err(e) => CommandExit::failed(format!("cannot start the async runtime: {e}")),
    }
}

/// Logs go to stderr: stdout is for the protocol, or for what was asked for.
fn log_to_stderr(level: args::LogLevel) {
    let level = LevelFilter::from(level);
    // What goes wrong with a model the agent answers with, in its own words; this has whole pages of it, and what a
    // provider repeats of a key.
    let others = if level >= LevelFilter::DEBUG {
        level
    } else {
        LevelFilter::OFF
    };
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_max_level(level)
        .finish()
        .with(
            Targets::new()
                .with_default(level)
                .with_target("genai", others),
        )
        .init();
}
