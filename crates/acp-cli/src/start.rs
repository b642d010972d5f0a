//! Starts agents, and explains why an agent has failed.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use acp::Transport;
use acp::jsonrpc::{self, Incoming, RequestId};
use acp_config::{AgentChoice, AgentEnvironment, quote};
use acp_host::{AgentCommand, AgentProcess, Environment, Permissions, SpawnError, process_secrets};

use crate::args::run::RunFormat;
use crate::args::shared::{ProtocolArg, option_arguments};
use crate::exit::CommandExit;
use crate::live::{LiveAttachment, TurnOwner, turn_started};
use crate::remote_agent::{connect_command, connection_failure, connection_note};
use crate::screen::{TerminalScreen, print};
use crate::this_program::this_program;

/// How long to wait for a failed agent to exit, so that its exit code can be reported.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// How long an agent may take to exit after its stdin is closed, and again after it is asked to exit.
pub(crate) const EXIT_GRACE_PERIOD: Duration = Duration::from_secs(2);

/// How long to wait for a response before noting that the agent is slow.
pub(crate) const SLOW_START_DELAY: Duration = Duration::from_secs(5);

/// The note shown when the agent is slow.
pub(crate) const SLOW_NOTE: &str = "waiting for the agent to respond (Ctrl-C: exit)";

/// The chosen agent, and the directory to start it in.
#[derive(Clone, Copy)]
pub(crate) struct StartTarget<'a> {
    pub(crate) agent: &'a AgentChoice,
    /// The agent's working directory.
    pub(crate) cwd: &'a Path,
    /// The local server that holds the agent, if one does.
    pub(crate) live: Option<&'a LiveAttachment>,
}

impl StartTarget<'_> {
    /// Returns the command that starts the agent.
    pub(crate) fn command(&self) -> Result<AgentCommand, CommandExit> {
        let environment = self.agent.environment.environment();
        if let Some(live) = self.live {
            let command = AgentCommand::new(this_program()?).args(["connect", &live.url]);
            return Ok(command.cwd(self.cwd));
        }
        if let Some(remote) = &self.agent.remote {
            return Ok(connect_command(remote, environment)?.cwd(self.cwd));
        }
        let command = match self.agent.command.split_first() {
            Some((program, args)) => AgentCommand::new(program).args(args),
            None => {
                let protocol = format!("--protocol={}", self.agent.protocol);
                AgentCommand::new(this_program()?)
                    .args(["agent", &protocol, "--client-has-rules"])
                    .args(bundled_environment_arguments(&self.agent.environment))
            }
        };
        Ok(command.cwd(self.cwd).environment(environment))
    }

    /// Returns the command that starts the agent with these permissions. They are passed as arguments only to the
    /// bundled agent, since it performs some actions without asking the client.
    pub(crate) fn command_for(
        &self,
        permissions: &Permissions,
    ) -> Result<AgentCommand, CommandExit> {
        let command = self.command()?;
        if !self.agent.is_bundled() || self.live.is_some() {
            return Ok(command);
        }
        let command = command.args([format!("--allow={}", permissions.policy())]);
        Ok(match permissions.is_policy_default() {
            true => command.args(["--allow-gives-way"]),
            false => command,
        })
    }

    /// Starts the agent with this command, which may include extra arguments or a sandbox. If it is remote, shows changes
    /// in its connection state on the screen.
    pub(crate) fn spawn_command(
        &self,
        command: &AgentCommand,
        screen: &TerminalScreen,
    ) -> Result<AgentProcess, CommandExit> {
        let screen = self.agent.remote.is_some().then(|| screen.clone());
        let read = move |line: &str| match (&screen, connection_note(line)) {
            (Some(screen), Some(note)) => screen.note(note),
            _ => tracing::debug!(target: "agent", "{line}"),
        };
        AgentProcess::spawn_with(command, read).map_err(|e| {
            let install = match e {
                SpawnError::NotInPath { .. } => self.agent.install_hint(),
                _ => String::new(),
            };
            spawn_failure_exit(&e, &install)
        })
    }

    /// Returns a hint to append to an error message if the agent seems to lack an API key that is set in this process.
    /// `said` is the agent's error message.
    pub(crate) fn hint(&self, said: &str) -> String {
        let hint = self.agent.missing_key_hint(&self.agent.command, said);
        hint.map(|hint| format!("\n{hint}")).unwrap_or_default()
    }

    /// Like [`hint`](Self::hint), but returns the hint only if `said` mentions the key. Any other message may have a
    /// different cause.
    pub(crate) fn hint_if_key_is_mentioned(&self, said: &str) -> String {
        let hint = self.agent.missing_key_hint(&[], said);
        hint.map(|hint| format!("\n{hint}")).unwrap_or_default()
    }

    /// Returns a command line that runs `acp` with `arguments` and this agent.
    pub(crate) fn command_hint(self, arguments: &[&str]) -> String {
        let mut words = vec!["acp".to_owned()];
        words.extend(arguments.iter().map(|word| quote(word)));
        if self.agent.needs_protocol_arg {
            words.push(format!("--protocol {}", self.agent.protocol));
        }
        words.extend(self.agent.environment.to_args().iter().cloned());
        if let Some(name) = &self.agent.name {
            words.extend(
                option_arguments("--agent", name)
                    .iter()
                    .map(|word| quote(word)),
            );
        }
        if let Some(remote) = &self.agent.remote {
            words.extend(remote.to_args().iter().cloned());
        }
        if self.agent.name.is_none() && !self.agent.command.is_empty() {
            words.push("--".to_owned());
            words.extend(self.agent.command.iter().map(|word| quote(word)));
        }
        words.join(" ")
    }
}

/// Returns the arguments with which the bundled agent gives its commands the variables that were requested or configured
/// for agents. Their values are in its environment.
pub(crate) fn bundled_environment_arguments(environment: &AgentEnvironment) -> Vec<String> {
    let requests = environment.requests();
    let requested = requests.map(|(request, _)| {
        let name = request.split_once('=').map_or(request, |(name, _)| name);
        name.to_owned()
    });
    let variables = process_secrets::variables().filter_map(|(name, _)| name.into_string().ok());
    let (given, usual) = (environment.environment(), Environment::new());
    let passed = variables.filter(|name| given.includes(name) && !usual.includes(name));
    let names: BTreeSet<String> = requested.chain(passed).collect();
    names.iter().map(|name| format!("--env={name}")).collect()
}

fn spawn_failure_exit(error: &SpawnError, what_to_do: &str) -> CommandExit {
    CommandExit::agent_failed(format!("cannot start the agent: {error}{what_to_do}"))
}

/// Returns the options that all connections share. Handlers run on a separate runtime thread so that they do not delay
/// reading.
pub(crate) fn default_connection_options() -> acp::Options {
    acp::Options::new().spawn_work(|task| {
        tokio::spawn(task);
    })
}

/// Returns the options for the connection to this agent. Noise is collected for error messages.
pub(crate) fn connection_options(agent: &AgentChoice, process: &AgentProcess) -> acp::Options {
    let options = ProtocolArg::for_agent(agent).apply(default_connection_options());
    options.on_noise(process.noise_handler())
}

/// Turns the agent's stdin and stdout into a transport.
pub(crate) fn transport(process: &AgentProcess) -> Result<Transport, CommandExit> {
    let (stdin, stdout) = process
        .take_stdio()
        .ok_or_else(|| CommandExit::agent_failed("cannot open the agent's stdin and stdout"))?;
    Ok(Transport::pipes(stdout, stdin))
}

/// Turns the agent's stdin and stdout into the transport for a turn. With `--format json`, prints each message received
/// about the session. If the session is `resumed`, prints only messages received after it was opened. If it is `live`, prints
/// only messages received after the turn has started: before, other clients may have turns.
pub(crate) fn turn_transport(
    process: &AgentProcess,
    format: RunFormat,
    resumed: bool,
    live: bool,
) -> Result<Transport, CommandExit> {
    let transport = transport(process)?;
    if format != RunFormat::Json {
        return Ok(transport);
    }
    let mut past = resumed;
    let mut waits_for_start = live;
    Ok(transport.inspect(move |line| {
        // The response to `initialize`, the first request, is not about the session. The second request opens the
        // session; updates before its response are the replay of a loaded one.
        let about_session = match jsonrpc::parse(line) {
            Ok(Incoming::Response { id, .. }) => {
                past &= id != RequestId::Number(1);
                id != RequestId::Number(0)
            }
            Ok(Incoming::Notification { method, params }) => {
                waits_for_start &= turn_started(&method, params) != Some(TurnOwner::ThisClient);
                !past && !waits_for_start
            }
            Ok(_) => true,
            Err(_) => false,
        };
        if about_session {
            // Print each line in one write. If stdout is closed, the turn continues, and the exit code reports it.
            let mut bytes = Vec::with_capacity(line.len() + 1);
            bytes.extend_from_slice(line);
            bytes.push(b'\n');
            print(&bytes);
        }
    }))
}

/// Returns `true` if the agent's error means "not found" (specification: Overview, "Error Handling").
pub(crate) fn is_not_found(error: &acp::Error) -> bool {
    matches!(error, acp::Error::Rpc(error) if error.code == jsonrpc::Error::RESOURCE_NOT_FOUND)
}

/// The reason why a command that uses an agent failed.
pub(crate) enum StartFailure {
    /// The agent or the connection failed.
    Agent(acp::Error),
    /// Any other failure.
    Exit(CommandExit),
}

impl From<acp::Error> for StartFailure {
    fn from(error: acp::Error) -> Self {
        Self::Agent(error)
    }
}

impl From<CommandExit> for StartFailure {
    fn from(exit: CommandExit) -> Self {
        Self::Exit(exit)
    }
}

impl StartFailure {
    /// Returns the `CommandExit` for the failure, with the end of the agent's stderr in the message.
    pub(crate) async fn exit(
        self,
        target: &StartTarget<'_>,
        process: &AgentProcess,
    ) -> CommandExit {
        use acp::Error::{Closed, InvalidRequest, InvalidResponse, Unsupported, Version};
        match self {
            Self::Exit(exit) => exit,
            Self::Agent(error @ (Closed(_) | Version { .. } | InvalidResponse { .. })) => {
                disconnect_exit(target, process, &error).await
            }
            // The agent of a live session has exited.
            Self::Agent(acp::Error::Rpc(error)) if is_agent_ended(&error) => {
                let hint = target.hint_if_key_is_mentioned(&error.message);
                CommandExit::agent_failed(format!("{}{hint}", error.message))
            }
            Self::Agent(error @ (Unsupported { .. } | InvalidRequest(_))) => {
                CommandExit::usage(error.to_string())
            }
            Self::Agent(error) => {
                let error = error.to_string();
                let hint = target.hint_if_key_is_mentioned(&error);
                CommandExit::failed(format!("agent error: {error}{hint}"))
            }
        }
    }
}

/// Returns `true` if a server responds with this error because its agent has ended.
fn is_agent_ended(error: &jsonrpc::Error) -> bool {
    let data = error.data.as_ref();
    data.is_some_and(|data| data["live"] == "agentEnded")
}

/// Returns the `CommandExit` for an agent that disconnected or sent something invalid.
async fn disconnect_exit(
    target: &StartTarget<'_>,
    process: &AgentProcess,
    error: &acp::Error,
) -> CommandExit {
    let ended = tokio::time::timeout(EXIT_TIMEOUT, process.wait()).await;
    let is_connected = target.agent.remote.is_some() || target.live.is_some();
    if let (true, Ok(exit)) = (is_connected, &ended)
        && let Some(message) = connection_failure(process, exit)
    {
        return CommandExit::agent_failed(message);
    }
    let mut message = match (error, ended) {
        (acp::Error::Closed(_), Ok(exit)) => format!("the agent exited: {exit}"),
        (acp::Error::Closed(reason), Err(_)) => {
            format!("the agent closed the connection: {reason}")
        }
        (error @ acp::Error::Version { theirs: 2, ours: 1 }, _) => {
            format!("{error}; use --protocol 2")
        }
        (error, _) => error.to_string(),
    };
    let tail = process.stderr_excerpt();
    message.push_str(&tail);
    message.push_str(&target.hint_if_key_is_mentioned(&tail));
    CommandExit::agent_failed(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent_choice(name: Option<&str>, protocol: u16, command: &[&str]) -> AgentChoice {
        AgentChoice {
            name: name.map(str::to_owned),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            remote: None,
            protocol,
            needs_protocol_arg: protocol != 1,
            environment: AgentEnvironment::default(),
            mode: None,
            options: Vec::new(),
            mcp_servers: Vec::new(),
            install: None,
            note: None,
        }
    }

    #[test]
    fn suggested_commands_can_be_typed() {
        let typed = |agent: AgentChoice, arguments: &[&str]| {
            let cwd = Path::new(".");
            let agent = &agent;
            StartTarget {
                agent,
                cwd,
                live: None,
            }
            .command_hint(arguments)
        };
        let command = ["my agent", "--key=it's", ""];
        assert_eq!(
            typed(
                agent_choice(None, 1, &command),
                &["login", "--method", "a b"]
            ),
            r"acp login --method 'a b' -- 'my agent' '--key=it'\''s' ''"
        );
        assert!(
            typed(agent_choice(None, 2, &command), &["login"])
                .starts_with("acp login --protocol 2 -- ")
        );
        assert_eq!(
            typed(
                agent_choice(Some("goose"), 1, &["goose", "acp"]),
                &["logout"]
            ),
            "acp logout --agent goose"
        );
        assert_eq!(
            typed(agent_choice(None, 1, &[]), &["sessions"]),
            "acp sessions"
        );
    }
}
