//! The `acp` command: parses arguments, joins the crates below it, holds no logic of its own.

mod agent;
mod agent_login;
mod agents;
mod args;
mod ask;
mod bridge;
mod chat;
mod check;
mod check_relay;
mod config;
mod confinement;
mod elicit;
mod exit;
mod login;
mod mcp_proxy;
mod models;
mod permissions;
mod run;
mod screen;
mod sessions;
mod signals;
mod start;
mod trace;
mod typing;
mod visit;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::agent::AgentCommand;
use crate::args::{Args, Command};
use crate::exit::Exit;

fn main() -> ExitCode {
    // Before there is a thread, and before anything is started: agents and what they run must not find here what they
    // were not given.
    acp_host::own_process::protect();
    let args = Args::parse();
    log_to_stderr(args.log);
    let exit = match args.command {
        Command::Agents(args) => agents::agents(&args),
        Command::Bridge(args) => finish(bridge::bridge(args)),
        Command::CheckRelay(args) => finish(check_relay::check_relay(args)),
        Command::Agent(mut args) => match args.command.take() {
            Some(AgentCommand::Login(account)) => finish(agent_login::login(account, args.model)),
            Some(AgentCommand::Logout(account)) => agent_login::logout(account),
            None => match agent::Prepared::new(args) {
                Ok(agent) => finish(agent.serve()),
                Err(exit) => exit,
            },
        },
        Command::Chat(args) => finish(chat::chat(args)),
        Command::Check(args) => finish(check::check(args)),
        Command::Login(args) => finish(login::login(args)),
        Command::Logout(args) => finish(login::logout(args)),
        Command::McpProxy(args) => finish(mcp_proxy::mcp_proxy(args)),
        Command::Permissions(args) => permissions::permissions(&args),
        Command::Run(args) => finish(run::run(args)),
        Command::Sessions(args) => finish(sessions::sessions(args)),
        Command::Trace(args) => finish(trace::trace(args)),
    };
    exit.report()
}

/// Does the work of a command that waits for others.
// Not within its caller, or the stack would have room for the work of all commands at once.
#[inline(never)]
fn finish(work: impl Future<Output = Exit>) -> Exit {
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
        Err(e) => Exit::failed(format!("cannot start: {e}")),
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
