//! The program that is tested.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use acp::{Transport, transport};
use acp_host::{AgentCommand, AgentProcess};

use crate::check_directory::CheckDirectory;

/// How long a program may take to end after its input was closed, before it is made to.
const GRACE: Duration = Duration::from_secs(2);

/// What is tested: how it is started, once for each check.
pub trait CheckTarget: Send + Sync + 'static {
    /// Starts it, with a project of its own in `place`.
    ///
    /// # Errors
    /// It cannot be started, and why.
    fn start<'a>(
        &'a self,
        place: &'a CheckDirectory,
    ) -> Pin<Box<dyn Future<Output = Result<TargetProcess, String>> + Send + 'a>>;
}

/// A program that was started.
#[derive(Debug)]
pub struct TargetProcess {
    /// Its end of the connection.
    pub transport: Transport,
    /// The process, unless it is part of this one.
    pub process: Option<Arc<AgentProcess>>,
}

/// An agent that is a command.
#[derive(Debug, Clone)]
pub struct AgentProgram {
    command: AgentCommand,
}

impl AgentProgram {
    /// The agent that `command` starts. It is run in the check's project.
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

/// A program that is part of this one: given its end of a connection, it serves it in a task.
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
    /// Ends the process, if it still runs.
    pub(super) async fn end(process: Option<Arc<AgentProcess>>) {
        if let Some(process) = process {
            process.shutdown(GRACE).await;
        }
    }
}
