//! The `acp` command: parses arguments, joins the crates below it, holds no logic of its own.

mod agent;
mod args;
mod ask;
mod bridge;
mod clean;
mod config;
mod elicit;
mod environment;
mod exit;
mod login;
mod mcp_proxy;
mod permissions;
mod places;
mod run;
mod screen;
mod sessions;
mod signals;
mod start;
mod visit;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};
use crate::exit::Exit;

fn main() -> ExitCode {
    let args = Args::parse();
    log_to_stderr(args.log);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // One to read and write, one to go on meanwhile: what runs here waits far more than it works.
        .worker_threads(2)
        .enable_all()
        .build();
    let exit = match runtime {
        Ok(runtime) => {
            let exit = match args.command {
                Command::Bridge(args) => runtime.block_on(bridge::bridge(args)),
                Command::Agent(args) => runtime.block_on(agent::agent(args)),
                Command::Login(args) => runtime.block_on(login::login(args)),
                Command::Logout(args) => runtime.block_on(login::logout(args)),
                Command::McpProxy(args) => runtime.block_on(mcp_proxy::mcp_proxy(args)),
                Command::Permissions(args) => permissions::permissions(&args),
                Command::Run(args) => runtime.block_on(run::run(args)),
                Command::Sessions(args) => runtime.block_on(sessions::sessions(args)),
            };
            // A thread that waits for someone to type must not keep the process.
            runtime.shutdown_background();
            exit
        }
        Err(e) => Exit::failed(format!("cannot start: {e}")),
    };
    exit.report()
}

/// Logs go to stderr: stdout is for the protocol, or for what was asked for.
fn log_to_stderr(level: args::LogLevel) {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_max_level(level)
        .init();
}
