//! An agent's program as a person runs it: in the terminal.

use std::process::Stdio;

use crate::agent_process::{AgentCommand, SpawnError};
use crate::process::ProcessExit;
use crate::sys;

impl AgentCommand {
    /// Runs the program in the terminal of this process and waits for its end: for authentication methods
    /// of type `terminal`. Needs a tokio runtime.
    ///
    /// It has this process's standard input, output and error, and is in its process group, without which
    /// it could not read from the terminal. So Ctrl-C reaches both: a caller that wants the program to
    /// decide must not end by it. Nothing else may read from the terminal meanwhile.
    ///
    /// Dropping the future ends the program at once, and not what it has started. It is the person's own,
    /// so that it does not end if this process is killed.
    ///
    /// # Errors
    /// It cannot be started; see [`SpawnError`].
    pub async fn run_in_terminal(&self) -> Result<ProcessExit, SpawnError> {
        let (file, mut command) = self.command()?;
        command
            .stdin(Stdio::inherit())
            .stdout(Stdio::inherit())
            .stderr(Stdio::inherit());
        let sandbox = self.sandbox.as_ref();
        if let Some(sandbox) = sandbox {
            sandbox.prepare(&mut command);
        }
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(true);
        let ended = async {
            let mut child = match sandbox {
                Some(sandbox) => {
                    let runtime = tokio::runtime::Handle::current();
                    sandbox.run(move || {
                        let _inside = runtime.enter();
                        command.spawn()
                    })??
                }
                None => command.spawn()?,
            };
            child.wait().await
        };
        ended
            .await
            .map(sys::exit_of)
            .map_err(|source| SpawnError::System { file, source })
    }
}
