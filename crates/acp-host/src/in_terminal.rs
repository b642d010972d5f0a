//! Runs an agent's program in the user's terminal.

use std::process::Stdio;

use crate::agent_process::{AgentCommand, SpawnError};
use crate::process::ProcessExit;
use crate::sys;

impl AgentCommand {
    /// Runs the program in this process's terminal, and waits for it to exit. Used for auth methods of type `terminal`.
    /// Requires a tokio runtime.
    ///
    /// The program shares this process's standard input, output and error. It is in the process group of this process,
    /// because otherwise it could not read from the terminal. So Ctrl-C reaches both processes: a caller that lets the
    /// program handle it must not exit because of it. In the meantime, nothing else may read from the terminal.
    ///
    /// Dropping the future kills the program at once, but not the processes that it has started. If this process is
    /// killed, the program keeps running, because the user is working with it.
    ///
    /// # Errors
    /// The program cannot be started; see [`SpawnError`].
    pub async fn run_in_terminal(&self) -> Result<ProcessExit, SpawnError> {
        let (file, mut command) = self.to_command()?;
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
                    sandbox.run_confined(move || {
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
            .map(sys::to_process_exit)
            .map_err(|source| SpawnError::System { file, source })
    }
}
