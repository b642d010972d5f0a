//! The program under test.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use acp::{Transport, transport};
use acp_host::{AgentCommand, AgentProcess};

use crate::check_directory::CheckDirectory;

/// How long a program may take to exit after its input is closed. Then it is killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// A program under test. Clients are started for each check. Agents can be shared by several checks.
pub trait CheckTarget: Send + Sync + 'static {
    /// Starts the program. `place` contains the project to use.
    ///
    /// # Errors
    /// The program cannot be started. The error is the reason.
    fn start<'a>(
        &'a self,
        place: &'a CheckDirectory,
    ) -> Pin<Box<dyn Future<Output = Result<TargetProcess, String>> + Send + 'a>>;
}

/// A running program under test, with its connection.
#[derive(Debug)]
pub struct TargetProcess {
    /// The connection to the program.
    pub transport: Transport,
    /// The program's process, or `None` if the program runs inside this process.
    pub process: Option<Arc<AgentProcess>>,
}

/// An agent under test that is started by a command.
#[derive(Debug, Clone)]
pub struct AgentProgram {
    command: AgentCommand,
}

impl AgentProgram {
    /// Creates a target for the agent started by `command`. The working directory is the check's project.
    #[must_use]
    pub fn new(command: AgentCommand) -> Self {
        Self { command }
    }
}

impl CheckTarget for AgentProgram {
    fn start<'a>(
        &'a self,
        place: &'a CheckDirectory,
    ) -> Pin<Box<dyn Future<Output = Result<TargetProcess, String>> + Send + 'a>> {
        Box::pin(async move {
            let command = self.command.clone().cwd(place.project());
            let process = AgentProcess::spawn(&command)
                .map_err(|e| format!("cannot start the program: {e}"))?;
            let (stdin, stdout) = process
                .take_stdio()
                .ok_or("cannot open the program's stdin and stdout")?;
            Ok(TargetProcess {
                transport: Transport::pipes(stdout, stdin),
                process: Some(Arc::new(process)),
            })
        })
    }
}

/// A program inside this process: a function that takes its end of a connection and serves it in a task.
impl<F> CheckTarget for F
where
    F: Fn(Transport) + Send + Sync + 'static,
{
    fn start<'a>(
        &'a self,
        _: &'a CheckDirectory,
    ) -> Pin<Box<dyn Future<Output = Result<TargetProcess, String>> + Send + 'a>> {
        Box::pin(async move {
            let (ours, theirs) = transport::memory();
            self(theirs);
            Ok(TargetProcess {
                transport: ours,
                process: None,
            })
        })
    }
}

impl TargetProcess {
    /// Ends the process if it is still running.
    pub(super) async fn end_process(process: Option<Arc<AgentProcess>>) {
        if let Some(process) = process {
            process.shutdown(EXIT_TIMEOUT).await;
        }
    }
}
