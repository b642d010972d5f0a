//! An agent's program as a person runs it: in the terminal.

use std::process::Stdio;

use crate::agent_process::{AgentCommand, SpawnError};
use crate::process::Exit;
use crate::sys;

impl AgentCommand {
    /// Runs the program in the terminal of this process and waits for its end: for authentication methods
    /// of type `terminal`. Needs a tokio runtime.
    ///
    /// It has this process's standard input, output and error, and is in its process group, without which
    /// it could not read from the terminal. So Ctrl-C reaches both: a caller that wants the program to
    /// decide must not end by it. Nothing else may read from the terminal meanwhile.
    ///
    /// Dropping the future ends the program at once, and not what it has started.
    ///
    /// # Errors
    /// It cannot be started; see [`SpawnError`].
    pub async fn run_in_terminal(&self) -> Result<Exit, SpawnError> {
        let (file, mut command) = self.to_start()?;
        command
            .stdin(Stdio::inherit())
            .stdout(Stdio::inherit())
            .stderr(Stdio::inherit());
        let mut command = tokio::process::Command::from(command);
        let ended = command.kill_on_drop(true).status().await;
        ended
            .map(sys::exit_of)
            .map_err(|source| SpawnError::System { file, source })
    }
}
