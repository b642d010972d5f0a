//! A client under test, which connects to a URL.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use acp_host::{AgentCommand, AgentProcess};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::check_directory::CheckDirectory;

/// The placeholder in the client's command for the URL to connect to.
const URL_PLACEHOLDER: &str = "{url}";

/// A future that starts a client. It resolves to the client's process, or to `None` if the client runs inside this
/// process.
pub type ClientStartFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Option<Arc<AgentProcess>>, String>> + Send + 'a>>;

/// A client of the remote transport. It is started once for each check.
pub trait RemoteClientTarget: Send + Sync + 'static {
    /// Starts the client, which must connect to `url`, open a session, send a prompt, and end the connection. `place`
    /// contains the project to use.
    ///
    /// # Errors
    /// The reason why the client cannot be started.
    fn start<'a>(&'a self, url: &'a str, place: &'a CheckDirectory) -> ClientStartFuture<'a>;
}

/// A client that is started by a command.
#[derive(Debug, Clone)]
pub struct RemoteClientProgram {
    command: AgentCommand,
}

/// The error for a client command without a placeholder for the URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingUrlPlaceholder;

impl fmt::Display for MissingUrlPlaceholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the client command must contain {URL_PLACEHOLDER}, which is replaced with the URL to connect to"
        )
    }
}

impl std::error::Error for MissingUrlPlaceholder {}

impl RemoteClientProgram {
    /// Creates a target for the client started by `command`. `{url}` in its arguments is replaced with the URL. The
    /// working directory is the check's project.
    ///
    /// # Errors
    /// No argument has the placeholder.
    pub fn new(command: AgentCommand) -> Result<Self, MissingUrlPlaceholder> {
        let mut args = command.args.iter();
        if args.any(|arg| arg.to_string_lossy().contains(URL_PLACEHOLDER)) {
            Ok(Self { command })
        } else {
            Err(MissingUrlPlaceholder)
        }
    }
}

impl RemoteClientTarget for RemoteClientProgram {
    fn start<'a>(&'a self, url: &'a str, place: &'a CheckDirectory) -> ClientStartFuture<'a> {
        Box::pin(async move {
            let mut command = self.command.clone().cwd(place.project());
            for arg in &mut command.args {
                if let Some(text) = arg.to_str() {
                    *arg = text.replace(URL_PLACEHOLDER, url).into();
                }
            }
            let process = AgentProcess::spawn(&command)
                .map_err(|e| format!("cannot start the client: {e}"))?;
            let process = Arc::new(process);
            if let Some((stdin, stdout)) = process.take_stdio() {
                // There is no user at the terminal; the client must not wait for one.
                drop(stdin);
                tokio::spawn(drain(stdout));
            }
            Ok(Some(process))
        })
    }
}

/// A client inside this process: a function that takes the URL and connects in a task.
impl<F> RemoteClientTarget for F
where
    F: Fn(String) + Send + Sync + 'static,
{
    fn start<'a>(&'a self, url: &'a str, _: &'a CheckDirectory) -> ClientStartFuture<'a> {
        Box::pin(async move {
            self(url.to_owned());
            Ok(None)
        })
    }
}

async fn drain(mut from: impl AsyncRead + Unpin) {
    let mut buf = vec![0; 64 * 1024];
    while from.read(&mut buf).await.is_ok_and(|read| read > 0) {}
}
