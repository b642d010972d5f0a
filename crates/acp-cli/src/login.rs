//! `acp login` and `acp logout`: the specification's page Authentication.

use std::io::IsTerminal;
use std::path::Path;

use acp::client::AgentConnection;
use acp::v1::{AuthMethod, AuthMethodTerminal, ProtocolVersion};
use acp_config::AgentChoice;
use acp_host::clean;

use crate::args::login::{LoginArgs, LogoutArgs};
use crate::args::which::WhichArgs;
use crate::exit::Exit;
use crate::screen::{Screen, print};
use crate::signals::{Signal, Signals};
use crate::start::{Failure, Target, option};
use crate::visit::visit;

pub(crate) async fn login(args: LoginArgs) -> Exit {
    let cwd = match std::env::current_dir() {
        Ok(cwd) => cwd,
        Err(e) => return Exit::usage(format!("the working directory is not there: {e}")),
    };
    let agent = match which(&args.which, &cwd) {
        Ok(agent) => agent,
        Err(exit) => return exit,
    };
    let target = Target {
        agent: &agent,
        cwd: &cwd,
    };
    let wanted = args.method.as_deref();
    let work = async |agent: &AgentConnection, screen: &Screen| {
        let method = choose(target, agent, wanted)?;
        if let Some(hint) = target
            .agent
            .given
            .hint(&[], &in_words(std::slice::from_ref(method)))
        {
            screen.note(&hint);
        }
        authenticate(agent, screen, method).await
    };
    let name = match visit(target, work).await {
        Ok(Login::Done(name)) => name,
        // The agent does not run any more: its program has the terminal for itself.
        Ok(Login::InTerminal(method)) => match in_terminal(target, &method).await {
            Ok(()) => method.name,
            Err(exit) => return exit,
        },
        Err(exit) => return exit,
    };
    print(format!("logged in: {}\n", clean::line(&name)).as_bytes());
    Exit::SUCCESS
}

pub(crate) async fn logout(args: LogoutArgs) -> Exit {
    let cwd = match std::env::current_dir() {
        Ok(cwd) => cwd,
        Err(e) => return Exit::usage(format!("the working directory is not there: {e}")),
    };
    let agent = match which(&args.which, &cwd) {
        Ok(agent) => agent,
        Err(exit) => return exit,
    };
    let target = Target {
        agent: &agent,
        cwd: &cwd,
    };
    let work = async |agent: &AgentConnection, _: &Screen| {
        agent.logout().await?;
        Ok(())
    };
    match visit(target, work).await {
        Ok(()) => {
            print(b"logged out\n");
            Exit::SUCCESS
        }
        Err(exit) => exit,
    }
}

/// The agent that is meant. Nobody has to guess to whom a login goes.
fn which(args: &WhichArgs, cwd: &Path) -> Result<AgentChoice, Exit> {
    let agent = args.choose(cwd)?;
    if agent.name.is_none() && !args.says() {
        return Err(Exit::usage(
            "which agent? --agent NAME, or -- AGENT COMMAND...; keys of the bundled agent are typed with `acp agent login`",
        ));
    }
    Ok(agent)
}

/// How far a login has come with the agent itself.
enum Login {
    /// By the method of this name.
    Done(String),
    /// The rest is done in the terminal.
    InTerminal(AuthMethodTerminal),
}

/// The method that is wanted, or the only one. All of them are shown.
fn choose<'a>(
    target: Target<'_>,
    agent: &'a AgentConnection,
    wanted: Option<&str>,
) -> Result<&'a AuthMethod, Exit> {
    let methods = agent.auth_methods();
    if methods.is_empty() {
        return Err(Exit::usage(
            "the agent names no way to log in: it may need none, or have a command of its own for it",
        ));
    }
    print(shown(methods).as_bytes());
    let is_wanted = |method: &&AuthMethod| {
        let id = method.id_and_name().map(|(id, _)| id);
        id.is_some_and(|id| wanted == Some(id.as_str()))
    };
    match (wanted, methods) {
        (None, [method]) => Ok(method),
        (Some(wanted), _) => methods
            .iter()
            .find(is_wanted)
            .ok_or_else(|| Exit::usage(format!("the agent names no way to log in `{wanted}`"))),
        (None, _) => Err(Exit::usage(format!(
            "the agent names several ways to log in; choose one:{}",
            commands(&target, agent)
        ))),
    }
}

/// The methods as a list.
fn shown(methods: &[AuthMethod]) -> String {
    let mut text = String::from("Ways to log in:\n");
    for method in methods {
        let Some((id, name)) = method.id_and_name() else {
            continue;
        };
        let (id, name) = (clean::line(id.as_str()), clean::line(&name));
        let (how, description) = match method {
            AuthMethod::Terminal(method) => {
                let how = " (in the terminal)".to_owned();
                (how, method.description.clone())
            }
            AuthMethod::Agent(method) => (String::new(), method.description.clone()),
            AuthMethod::Unknown(method) => {
                let kind: String = method.field("type").unwrap_or_default();
                let how = format!(" (of the type {}, unknown here)", clean::line(&kind));
                (how, method.field("description"))
            }
            _ => (String::new(), None),
        };
        text.push_str(&format!("  {id}: {name}{how}\n"));
        for line in clean::clean(&description.unwrap_or_default()).lines() {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text
}

/// What can be typed to log in, each on a line of its own.
fn commands(target: &Target<'_>, agent: &AgentConnection) -> String {
    let mut text = String::new();
    let methods = agent.auth_methods();
    if target.agent.is_bundled() {
        // Its keys are typed by a command of their own, one for each provider.
        for (id, name) in methods.iter().filter_map(AuthMethod::id_and_name) {
            if id.as_str().parse::<acp_agent::Provider>().is_ok() {
                text.push_str(&format!(
                    "\n  acp agent login {id}  # {}",
                    clean::line(&name)
                ));
            }
        }
        return text;
    }
    for method in methods.iter().filter(|method| can(agent, method)) {
        let Some((id, name)) = method.id_and_name() else {
            continue;
        };
        let command = match methods {
            [_] => target.to_type(&["login"]),
            _ => {
                let method = option("--method", id.as_str());
                let words = std::iter::once("login").chain(method.iter().map(String::as_str));
                target.to_type(&words.collect::<Vec<_>>())
            }
        };
        text.push_str(&format!("\n  {command}  # {}", clean::line(&name)));
    }
    text
}

/// Whether it is known here how to log in by it. A type unknown here is left to the agent in version 1,
/// which had no types at first; version 2 forbids it.
fn can(agent: &AgentConnection, method: &AuthMethod) -> bool {
    let known = matches!(method, AuthMethod::Agent(_) | AuthMethod::Terminal(_));
    known || agent.version() == ProtocolVersion::V1
}

/// All that the agent says of these ways, the names of variables included.
fn in_words(methods: &[AuthMethod]) -> String {
    serde_json::to_string(methods).unwrap_or_default()
}

/// What one can do about `auth_required`.
pub(crate) fn needed(target: &Target<'_>, agent: &AgentConnection, error: &acp::Error) -> Exit {
    let commands = commands(target, agent);
    let help = if commands.is_empty() {
        "the agent names no way to log in: see its own documentation".to_owned()
    } else {
        format!("log in first:{commands}")
    };
    let said = format!("{error} {}", in_words(agent.auth_methods()));
    let hint = target.hint(&said);
    Exit::failed(format!(
        "the agent answered with an error: {error}; {help}{hint}"
    ))
}

async fn authenticate(
    agent: &AgentConnection,
    screen: &Screen,
    method: &AuthMethod,
) -> Result<Login, Failure> {
    match method {
        AuthMethod::Terminal(method) => {
            let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
            if !stdin.is_terminal() || !stdout.is_terminal() {
                let message = format!(
                    "`{}` runs the agent's own program, which needs a terminal",
                    method.id
                );
                return Err(Exit::usage(message).into());
            }
            Ok(Login::InTerminal(method.clone()))
        }
        method => {
            let known = method.id_and_name().filter(|_| can(agent, method));
            let Some((id, name)) = known else {
                return Err(Exit::usage("this way to log in is of a type unknown here").into());
            };
            screen.note("the agent logs in; Ctrl-C gives up");
            agent.authenticate(id).await?;
            Ok(Login::Done(name))
        }
    }
}

/// Runs the agent's program with what the method adds to it, until it ends.
async fn in_terminal(target: Target<'_>, method: &AuthMethodTerminal) -> Result<(), Exit> {
    let mut signals =
        Signals::listen().map_err(|e| Exit::failed(format!("cannot listen for signals: {e}")))?;
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
                // The program has got it, too, and decides.
                Signal::Interrupt => interrupted = true,
                Signal::Terminate => return Err(Exit::CANCELLED),
            },
        }
    };
    match ended {
        Ok(exit) if exit.success() => Ok(()),
        // Its end may be seen before the signal is.
        Ok(exit) if interrupted || exit.signal.as_deref() == Some("SIGINT") => Err(Exit::CANCELLED),
        Ok(exit) => Err(Exit::failed(format!(
            "not logged in: the agent's program ended with {exit}"
        ))),
        Err(e) => Err(Exit::broken(format!(
            "the agent's program could not be started: {e}"
        ))),
    }
}
