//! `acp login` and `acp logout` (specification: Authentication).

use std::io::IsTerminal;
use std::path::Path;

use acp::client::AgentConnection;
use acp::v1::{AuthMethod, AuthMethodTerminal, ProtocolVersion};
use acp_config::AgentChoice;
use acp_host::terminal_text;

use crate::agent_session::with_agent;
use crate::args::agent_choice::AgentChoiceArgs;
use crate::args::login::{LoginArgs, LogoutArgs};
use crate::args::shared::option_arguments;
use crate::exit::CommandExit;
use crate::screen::{TerminalScreen, print};
use crate::signals::{ExitSignal, Signals};
use crate::start::{StartFailure, StartTarget};

pub(crate) async fn run_login(args: LoginArgs) -> CommandExit {
    let cwd = match std::env::current_dir() {
        Ok(cwd) => cwd,
        Err(e) => return CommandExit::usage(format!("working directory not found: {e}")),
    };
    let agent = match choose_agent(&args.agent_choice, &cwd) {
        Ok(agent) => agent,
        Err(exit) => return exit,
    };
    let target = StartTarget {
        agent: &agent,
        cwd: &cwd,
        live: None,
    };
    let wanted = args.method.as_deref();
    let work = async |agent: &AgentConnection, screen: &TerminalScreen| {
        let method = choose_method(target, agent, wanted)?;
        let methods = methods_json(std::slice::from_ref(method));
        if let Some(hint) = target.agent.missing_key_hint(&[], &methods) {
            screen.note(&hint);
        }
        authenticate(agent, screen, method).await
    };
    let name = match with_agent(target, work).await {
        Ok(LoginOutcome::LoggedIn(name)) => name,
        // The agent has exited, so its program has the terminal to itself.
        Ok(LoginOutcome::InTerminal(method)) => match log_in_in_terminal(target, &method).await {
            Ok(()) => method.name,
            Err(exit) => return exit,
        },
        Err(exit) => return exit,
    };
    print(format!("logged in: {}\n", terminal_text::clean_line(&name)).as_bytes());
    CommandExit::SUCCESS
}

pub(crate) async fn run_logout(args: LogoutArgs) -> CommandExit {
    let cwd = match std::env::current_dir() {
        Ok(cwd) => cwd,
        Err(e) => return CommandExit::usage(format!("working directory not found: {e}")),
    };
    let agent = match choose_agent(&args.agent_choice, &cwd) {
        Ok(agent) => agent,
        Err(exit) => return exit,
    };
    let target = StartTarget {
        agent: &agent,
        cwd: &cwd,
        live: None,
    };
    let work = async |agent: &AgentConnection, _: &TerminalScreen| {
        agent.logout().await?;
        Ok(())
    };
    match with_agent(target, work).await {
        Ok(()) => {
            print(b"logged out\n");
            CommandExit::SUCCESS
        }
        Err(exit) => exit,
    }
}

/// Returns the chosen agent. It must be given on the command line or be a configured default, so that users do not log
/// in to an agent by accident.
fn choose_agent(args: &AgentChoiceArgs, cwd: &Path) -> Result<AgentChoice, CommandExit> {
    let agent = args.choose(cwd)?;
    if agent.name.is_none() && !args.is_given() {
        return Err(CommandExit::usage(
            "no agent given: use --agent NAME, --url URL or -- AGENT COMMAND...; to store an API key for the bundled agent, use `acp agent login`",
        ));
    }
    Ok(agent)
}

/// The outcome of the login requests sent to the agent.
enum LoginOutcome {
    /// The user is logged in. Contains the name of the auth method.
    LoggedIn(String),
    /// The user has to complete the login in the terminal.
    InTerminal(AuthMethodTerminal),
}

/// Prints the agent's auth methods, and returns the one requested by the user, or the only one if none is requested.
fn choose_method<'a>(
    target: StartTarget<'_>,
    agent: &'a AgentConnection,
    wanted: Option<&str>,
) -> Result<&'a AuthMethod, CommandExit> {
    let methods = agent.auth_methods();
    if methods.is_empty() {
        return Err(CommandExit::usage(
            "the agent offers no auth methods; it may not need a login, or it may have its own login command",
        ));
    }
    print(render_methods(methods).as_bytes());
    let is_wanted = |method: &&AuthMethod| {
        let id = method.id_and_name().map(|(id, _)| id);
        id.is_some_and(|id| wanted == Some(id.as_str()))
    };
    match (wanted, methods) {
        (None, [method]) => Ok(method),
        (Some(wanted), _) => methods
            .iter()
            .find(is_wanted)
            .ok_or_else(|| CommandExit::usage(format!("unknown auth method `{wanted}`"))),
        (None, _) => Err(CommandExit::usage(format!(
            "the agent offers several auth methods; choose one:{}",
            login_commands(&target, agent)
        ))),
    }
}

/// Renders the auth methods as a list.
fn render_methods(methods: &[AuthMethod]) -> String {
    let mut text = String::from("Auth methods:\n");
    for method in methods {
        let Some((id, name)) = method.id_and_name() else {
            continue;
        };
        let (id, name) = (
            terminal_text::clean_line(id.as_str()),
            terminal_text::clean_line(&name),
        );
        let (how, description) = match method {
            AuthMethod::Terminal(method) => {
                let how = " (in this terminal)".to_owned();
                (how, method.description.clone())
            }
            AuthMethod::Agent(method) => (String::new(), method.description.clone()),
            AuthMethod::Unknown(method) => {
                let kind: String = method.field("type").unwrap_or_default();
                let how = format!(" (unsupported type {})", terminal_text::clean_line(&kind));
                (how, method.field("description"))
            }
            _ => (String::new(), None),
        };
        text.push_str(&format!("  {id}: {name}{how}\n"));
        for line in terminal_text::clean_text(&description.unwrap_or_default()).lines() {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text
}

/// Returns the commands to log in to the agent, one per line.
fn login_commands(target: &StartTarget<'_>, agent: &AgentConnection) -> String {
    let mut text = String::new();
    let methods = agent.auth_methods();
    if target.agent.is_bundled() {
        // Its keys are entered with a separate command for each provider.
        for (id, name) in methods.iter().filter_map(AuthMethod::id_and_name) {
            if id.as_str().parse::<acp_agent::Provider>().is_ok() {
                text.push_str(&format!(
                    "\n  acp agent login {id}  # {}",
                    terminal_text::clean_line(&name)
                ));
            }
        }
        return text;
    }
    for method in methods.iter().filter(|method| is_supported(agent, method)) {
        let Some((id, name)) = method.id_and_name() else {
            continue;
        };
        let command = match methods {
            [_] => target.command_hint(&["login"]),
            _ => {
                let method = option_arguments("--method", id.as_str());
                let words = std::iter::once("login").chain(method.iter().map(String::as_str));
                target.command_hint(&words.collect::<Vec<_>>())
            }
        };
        text.push_str(&format!(
            "\n  {command}  # {}",
            terminal_text::clean_line(&name)
        ));
    }
    text
}

/// Returns `true` if this client supports the auth method. Auth methods originally had no types in version 1, so there
/// a method of unknown type is left to the agent. Version 2 does not allow that.
fn is_supported(agent: &AgentConnection, method: &AuthMethod) -> bool {
    let known = matches!(method, AuthMethod::Agent(_) | AuthMethod::Terminal(_));
    known || agent.version() == ProtocolVersion::V1
}

/// Returns the agent's auth methods as JSON, with all details.
fn methods_json(methods: &[AuthMethod]) -> String {
    serde_json::to_string(methods).unwrap_or_default()
}

/// Returns the `CommandExit` for an `auth_required` error. It lists the commands to log in.
pub(crate) fn login_required_exit(
    target: &StartTarget<'_>,
    agent: &AgentConnection,
    error: &acp::Error,
) -> CommandExit {
    let commands = login_commands(target, agent);
    let help = if commands.is_empty() {
        "the agent offers no auth methods; see its documentation".to_owned()
    } else {
        format!("log in first:{commands}")
    };
    let said = format!("{error} {}", methods_json(agent.auth_methods()));
    let hint = target.hint(&said);
    CommandExit::failed(format!("agent error: {error}; {help}{hint}"))
}

async fn authenticate(
    agent: &AgentConnection,
    screen: &TerminalScreen,
    method: &AuthMethod,
) -> Result<LoginOutcome, StartFailure> {
    match method {
        AuthMethod::Terminal(method) => {
            let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
            if !stdin.is_terminal() || !stdout.is_terminal() {
                let message = format!(
                    "auth method `{}` runs the agent's own program and requires a terminal",
                    method.id
                );
                return Err(CommandExit::usage(message).into());
            }
            Ok(LoginOutcome::InTerminal(method.clone()))
        }
        method => {
            let known = method.id_and_name().filter(|_| is_supported(agent, method));
            let Some((id, name)) = known else {
                return Err(CommandExit::usage("unsupported auth method type").into());
            };
            screen.note("waiting for the agent to log in (Ctrl-C: cancel)");
            agent.authenticate(id).await?;
            Ok(LoginOutcome::LoggedIn(name))
        }
    }
}

/// Runs the agent's program in the terminal until it exits, with the auth method's arguments and environment variables.
async fn log_in_in_terminal(
    target: StartTarget<'_>,
    method: &AuthMethodTerminal,
) -> Result<(), CommandExit> {
    let mut signals = Signals::listen()
        .map_err(|e| CommandExit::failed(format!("cannot listen for signals: {e}")))?;
    let mut command = target.command()?.args(&method.args);
    for (name, value) in &method.env {
        command = command.env(name, value);
    }
    let mut interrupted = false;
    let running = command.run_in_terminal();
    tokio::pin!(running);
    let ended = loop {
        tokio::select! {
            ended = &mut running => break ended,
            signal = signals.next() => match signal {
                // The program received the signal, too, and decides what to do.
                ExitSignal::Interrupt => interrupted = true,
                ExitSignal::Terminate => return Err(CommandExit::CANCELLED),
            },
        }
    };
    match ended {
        Ok(exit) if exit.success() => Ok(()),
        // Its exit may be noticed before the signal.
        Ok(exit) if interrupted || exit.signal.as_deref() == Some("SIGINT") => {
            Err(CommandExit::CANCELLED)
        }
        Ok(exit) => Err(CommandExit::failed(format!(
            "login failed: the agent's login program failed ({exit})"
        ))),
        Err(e) => Err(CommandExit::agent_failed(format!(
            "cannot start the agent's login program: {e}"
        ))),
    }
}
