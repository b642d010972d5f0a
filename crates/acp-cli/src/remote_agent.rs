//! Runs `acp connect` in place of a remote agent, and interprets its output.

use acp_config::{RemoteAgent, TOKEN_VARIABLE};
use acp_host::{AgentCommand, AgentProcess, Environment, ProcessExit};

use crate::args::remote::UrlArgs;
use crate::exit::CommandExit;
use crate::this_program::this_program;

/// The prefix of the notes in which `acp connect` reports that it is reconnecting or has reconnected.
pub(crate) const RECONNECT_NOTE: &str = "acp: reconnect";

/// Returns the command that relays messages to a remote agent. Passes the token only in the environment.
pub(crate) fn connect_command(
    remote: &RemoteAgent,
    environment: Environment,
) -> Result<AgentCommand, CommandExit> {
    // Without a token, the variable is empty: a token of this process may be meant for another server.
    let token = remote.token.as_ref().map(|token| token.expose());
    let environment = environment.set(TOKEN_VARIABLE, token.unwrap_or_default());
    let command = AgentCommand::new(this_program()?).args(remote.connect_args());
    Ok(command.environment(environment))
}

/// The agent to relay to or check: a local command or a remote agent.
pub(crate) struct RelayedAgent {
    pub(crate) command: AgentCommand,
    /// The program and arguments, as shown to the user.
    pub(crate) words: Vec<String>,
    is_remote: bool,
}

impl RelayedAgent {
    /// Returns the agent given on the command line. Prints any warnings.
    pub(crate) fn from_args(
        words: &[String],
        url: &UrlArgs,
        environment: Environment,
    ) -> Result<Self, CommandExit> {
        if let Some(remote) = url.agent()? {
            for note in &remote.notes {
                eprintln!("acp: {note}");
            }
            let mut words = vec!["acp".to_owned()];
            words.extend(remote.connect_args());
            return Ok(Self {
                command: connect_command(&remote, environment)?,
                words,
                is_remote: true,
            });
        }
        let Some((program, rest)) = words.split_first() else {
            return Err(CommandExit::usage("no agent command given"));
        };
        let command = AgentCommand::new(program).args(rest);
        Ok(Self {
            command: command.environment(environment),
            words: words.to_owned(),
            is_remote: false,
        })
    }

    /// Returns the `CommandExit` for an agent that exited on its own. The user has already seen its stderr.
    pub(crate) fn exit(&self, exit: &ProcessExit) -> CommandExit {
        match self.is_remote && is_connect_exit_code(exit.code) {
            // `acp connect` has said why.
            true => CommandExit {
                code: CommandExit::AGENT_FAILED,
                message: None,
            },
            false => CommandExit::agent_failed(format!("the agent exited: {exit}")),
        }
    }
}

/// Returns `true` if `acp connect` exits with this code after printing a message.
fn is_connect_exit_code(code: Option<i32>) -> bool {
    let own = [CommandExit::AGENT_FAILED, CommandExit::USAGE];
    own.iter().any(|own| Some(i32::from(*own)) == code)
}

/// Returns the note in a line printed by `acp connect`, if there is one.
pub(crate) fn connection_note(line: &str) -> Option<&str> {
    line.starts_with(RECONNECT_NOTE)
        .then(|| line.strip_prefix("acp: "))?
}

/// Returns the failure reason that `acp connect` printed.
pub(crate) fn connection_failure(process: &AgentProcess, exit: &ProcessExit) -> Option<String> {
    connect_failure_in(exit.code, &process.output_tail())
}

fn connect_failure_in(code: Option<i32>, output: &str) -> Option<String> {
    let line = output
        .lines()
        .rev()
        .find(|line| line.starts_with("acp: "))?;
    let message = line.strip_prefix("acp: ")?.to_owned();
    (is_connect_exit_code(code) && connection_note(line).is_none()).then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_failure_is_read_from_the_last_message() {
        let output = "acp: reconnecting to ws://h/: reset\nacp: connection lost: reset";
        assert_eq!(
            connect_failure_in(Some(3), output).unwrap(),
            "connection lost: reset"
        );
        assert_eq!(connect_failure_in(Some(1), output), None);
        assert_eq!(
            connect_failure_in(Some(3), "acp: reconnecting to ws://h/: reset"),
            None
        );
        assert_eq!(connect_failure_in(Some(3), ""), None);
        assert_eq!(
            connection_note("acp: reconnected to x"),
            Some("reconnected to x")
        );
    }
}
