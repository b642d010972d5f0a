//! The `acp` command. Parses the arguments and calls the crates that do the work. Contains no other logic.

mod agent;
mod agent_login;
mod agent_session;
mod agents;
mod args;
mod bridge;
mod chat;
mod check;
mod check_relay;
mod compare;
mod completions;
mod config;
mod confinement;
mod connect;
mod elicit;
mod exit;
mod inspect;
mod latest_session;
mod line_input;
mod live;
mod login;
mod man;
mod mcp_proxy;
mod models;
mod output_file;
mod path_mapper;
mod permissions;
mod remote_agent;
mod run;
mod screen;
mod serve;
mod session_list;
mod sessions;
mod settings_hash;
mod signals;
mod start;
mod store;
mod terminal_user;
mod this_program;
mod trace;
mod users;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use tracing_subscriber::filter::LevelFilter;

use crate::args::agent::AgentSubcommand;
use crate::args::other_programs::parse_command_line;
use crate::args::serve::LogFormat;
use crate::args::{CliArgs, CliCommand};
use crate::exit::CommandExit;

fn main() -> ExitCode {
    // Before any thread or process starts: agents and the programs they run must not be able to read secrets from this
    // process that they were not given.
    acp_host::process_secrets::protect_secrets();
    match completions::complete_for_shell() {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => {}
        Err(e) => return CommandExit::failed(e.to_string()).report(),
    }
    let args = match parse_command_line() {
        Ok(args) => args,
        Err(error) => error.exit(),
    };
    let log_format = match &args.command {
        Some(CliCommand::Serve(args)) => args.log_format,
        _ => LogFormat::Text,
    };
    log_to_stderr(args.log, log_format);
    let Some(command) = args.command.or_else(default_command) else {
        eprint!("{}", CliArgs::command().render_help());
        return ExitCode::from(CommandExit::USAGE);
    };
    let exit = match command {
        CliCommand::Agents(args) => block_on(agents::run_agents(args)),
        CliCommand::Bridge(args) => block_on(bridge::run_bridge(args)),
        CliCommand::CheckRelay(args) => block_on(check_relay::run_check_relay(args)),
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
        CliCommand::Chat(args) => block_on(chat::run_chat(args)),
        CliCommand::Compare(args) => block_on(compare::run_compare(args)),
        CliCommand::Completions(args) => completions::print_completions(&args),
        CliCommand::Man(args) => man::print_man_pages(&args),
        CliCommand::Connect(args) => block_on(connect::connect(args)),
        CliCommand::Check(args) => block_on(check::run_check(args)),
        CliCommand::Inspect(args) => block_on(inspect::run_inspect(args)),
        CliCommand::Login(args) => block_on(login::run_login(args)),
        CliCommand::Logout(args) => block_on(login::run_logout(args)),
        CliCommand::McpProxy(args) => block_on(mcp_proxy::run_mcp_proxy(args)),
        CliCommand::Permissions(args) => permissions::run_permissions(&args),
        CliCommand::Run(args) => block_on(run::run_prompt(args)),
        CliCommand::Serve(args) => block_on(serve::serve(args, None)),
        CliCommand::Sessions(args) => block_on(sessions::run_sessions(args)),
        CliCommand::Store(args) => block_on(store::run_store(args)),
        CliCommand::Users(args) => users::run_users(&args),
        CliCommand::Trace(args) => block_on(trace::run_trace(args)),
    };
    exit.report()
}

/// Returns the command that `acp` runs when none is given: `acp chat`, if run in a terminal.
fn default_command() -> Option<CliCommand> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return None;
    }
    CliArgs::try_parse_from(["acp", "chat"]).ok()?.command
}

/// Runs an async command to completion on its own runtime.
// Not inlined: the caller's stack frame would have space for the futures of all commands at once.
#[inline(never)]
fn block_on(work: impl Future<Output = CommandExit>) -> CommandExit {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // One thread to read and write, one for everything else: what runs here mostly waits.
        .worker_threads(2)
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => {
            let exit = runtime.block_on(work);
            // A thread that waits for terminal input must not keep the process alive.
            runtime.shutdown_background();
            exit
        }
        Err(e) => CommandExit::failed(format!("cannot start the async runtime: {e}")),
    }
}

/// Writes logs to stderr. Stdout is for the protocol or the command's output.
fn log_to_stderr(level: args::LogLevel, format: LogFormat) {
    let level = LevelFilter::from(level);
    let lines = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_max_level(level);
    match format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
}
