//! A relay that connects a client program to a check. The client starts the relay as its agent, and the relay connects
//! to the check and passes bytes on.
//!
//! The check listens on a private endpoint. A file contains the endpoint's address and a token. The relay gets only the
//! name of that file, so it also works if the client clears the environment.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use acp::Transport;
use acp_host::{AgentCommand, AgentProcess};
use acp_local::{
    Endpoint, Listener, ListenerEndpoint as Meeting, LocalToken, accept_handshake, send_handshake,
};
use serde::{Deserialize, Serialize};
use tempfile::TempPath;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::target::{CheckTarget, TargetProcess};
use crate::check_directory::CheckDirectory;

/// The placeholder in the client's command for the relay's command line.
const AGENT_PLACEHOLDER: &str = "{agent}";

/// Like [`AGENT_PLACEHOLDER`], but always replaced with a single string, even if it is a whole argument.
const AGENT_LINE_PLACEHOLDER: &str = "{agent-line}";

/// How long a client may take to start its agent, unless the target overrides it.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The size of the copy buffer, in bytes.
const BUFFER_SIZE: usize = 64 * 1024;

/// A client under test that is started by a command.
#[derive(Debug, Clone)]
pub struct ClientProgram {
    command: AgentCommand,
    relay: Vec<OsString>,
    patience: Duration,
}

/// The error for a client command without a placeholder for the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPlaceholder;

impl std::fmt::Display for MissingPlaceholder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the client command must contain {AGENT_PLACEHOLDER}, which is replaced with the agent command"
        )
    }
}

impl std::error::Error for MissingPlaceholder {}

impl ClientProgram {
    /// Creates a target for the client started by `command`. Its working directory is the check's project.
    ///
    /// `run_relay` is a command line that calls [`run_relay`] with the file that is appended to it. It replaces
    /// `{agent}` in the client's arguments: with several arguments if `{agent}` is a whole argument, or quoted for a
    /// shell if `{agent}` is a part of one. `{agent-line}` always gives the quoted form.
    ///
    /// # Errors
    /// No argument contains a placeholder.
    pub fn new(
        command: AgentCommand,
        relay: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Self, MissingPlaceholder> {
        let has = |arg: &OsString| {
            let arg = arg.to_string_lossy();
            arg.contains(AGENT_PLACEHOLDER) || arg.contains(AGENT_LINE_PLACEHOLDER)
        };
        if !command.args.iter().any(has) {
            return Err(MissingPlaceholder);
        }
        Ok(Self {
            command,
            relay: relay.into_iter().map(Into::into).collect(),
            patience: START_TIMEOUT,
        })
    }

    /// Sets how long the client may take to start its agent. The default is 60 seconds.
    #[must_use]
    pub fn start_timeout(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Returns the client's command, with the placeholders replaced.
    fn command(&self, file: &Path, cwd: &Path) -> AgentCommand {
        let mut relay = self.relay.clone();
        relay.push(file.into());
        let args = self.command.args.iter();
        let args = args.flat_map(|arg| substitute_relay(arg, &relay)).collect();
        let mut command = self.command.clone().cwd(cwd);
        command.args = args;
        command
    }

    async fn start_client(&self, place: &CheckDirectory) -> Result<TargetProcess, String> {
        let cannot = |e: io::Error| format!("cannot listen for the client: {e}");
        let (listener, meeting) = Listener::bind().map_err(cannot)?;
        let token = LocalToken::random();
        let file = write_address_file(&meeting, &token).map_err(cannot)?;
        let command = self.command(&file, place.project());
        let process =
            AgentProcess::spawn(&command).map_err(|e| format!("cannot start the client: {e}"))?;
        let process = Arc::new(process);
        if let Some((stdin, stdout)) = process.take_stdio() {
            // There is no user at the terminal, so the client must not wait for one.
            drop(stdin);
            tokio::spawn(drain(stdout));
        }
        let connected = tokio::select! {
            biased;
            connected = accept_relay(&listener, &token) => connected,
            exit = process.wait() => {
                let exit = format!("the client exited ({exit}) without starting the agent");
                return Err(exit + &process.stderr_excerpt());
            }
            () = tokio::time::sleep(self.patience) => {
                let why = format!("timed out after {:?} waiting for the client to start the agent", self.patience);
                return Err(why + &process.stderr_excerpt());
            }
        };
        let transport = connected.map_err(cannot)?;
        Ok(TargetProcess {
            transport,
            process: Some(process),
        })
    }
}

impl CheckTarget for ClientProgram {
    fn start<'a>(
        &'a self,
        place: &'a CheckDirectory,
    ) -> Pin<Box<dyn Future<Output = Result<TargetProcess, String>> + Send + 'a>> {
        Box::pin(self.start_client(place))
    }
}

/// Replaces the placeholder in one argument of the client's command with the command line of the relay.
fn substitute_relay(arg: &OsStr, relay: &[OsString]) -> Vec<OsString> {
    if arg == AGENT_PLACEHOLDER {
        return relay.to_vec();
    }
    match arg.to_str() {
        Some(text) if text.contains(AGENT_PLACEHOLDER) || text.contains(AGENT_LINE_PLACEHOLDER) => {
            let line: Vec<String> = relay.iter().map(|word| quote_word(word)).collect();
            let line = line.join(" ");
            vec![
                text.replace(AGENT_PLACEHOLDER, &line)
                    .replace(AGENT_LINE_PLACEHOLDER, &line)
                    .into(),
            ]
        }
        _ => vec![arg.to_owned()],
    }
}

/// Quotes a word for the shell.
fn quote_word(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into_owned();
    }
    if cfg!(windows) {
        return format!("\"{word}\"");
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

async fn drain(mut from: impl AsyncRead + Unpin) {
    let mut piece = vec![0; BUFFER_SIZE];
    while from.read(&mut piece).await.is_ok_and(|read| read > 0) {}
}

/// The endpoint that the relay connects to, and the token that it must present. Both are stored in the file that is
/// passed to the relay.
#[derive(Debug, Serialize, Deserialize)]
struct RelayAddress {
    connect: String,
    token: String,
}

/// Writes the file that tells the relay where to connect. Only the current user can read it. It is removed when the
/// returned path is dropped.
fn write_address_file(meeting: &Meeting, token: &LocalToken) -> io::Result<TempPath> {
    let reported = RelayAddress {
        connect: meeting.endpoint().to_string(),
        token: token.reveal(),
    };
    let file = tempfile::Builder::new()
        .prefix("acp-relay-")
        .suffix(".json")
        .tempfile()?;
    serde_json::to_writer(&file, &reported)?;
    Ok(file.into_temp_path())
}

/// Reads the file written by [`write_address_file`].
async fn read_address_file(file: &Path) -> io::Result<(Endpoint, LocalToken)> {
    let RelayAddress { connect, token } = serde_json::from_slice(&tokio::fs::read(file).await?)?;
    let endpoint = connect.parse().map_err(io::Error::other)?;
    Ok((endpoint, token.parse().map_err(io::Error::other)?))
}

/// Accepts connections until one presents the token, and returns it.
async fn accept_relay(listener: &Listener, token: &LocalToken) -> io::Result<Transport> {
    loop {
        let stream = listener.accept().await?;
        if let Ok(known) = accept_handshake(stream, token).await {
            return Ok(Transport::new(known.reader, known.writer));
        }
    }
}

/// Runs the relay: connects this process's stdin and stdout to the check described in `file`, until the client closes
/// stdin.
///
/// When the check closes its side, stdout is closed, as an agent does when it exits. Bytes that the client still sends
/// are passed on.
///
/// # Errors
/// The file cannot be read, or the check cannot be reached.
pub async fn run_relay(file: &Path) -> io::Result<()> {
    let (endpoint, token) = read_address_file(file).await?;
    let (input, output) = acp::transport::stdio()?.into_split();
    let known = send_handshake(endpoint.connect().await?, &token).await;
    let known = known.map_err(io::Error::other)?;
    let saying = copy_stream(input, known.writer);
    // Dropping the output closes it.
    let hearing = copy_stream(known.reader, output);
    tokio::pin!(saying, hearing);
    tokio::select! {
        said = &mut saying => said,
        heard = &mut hearing => match heard {
            Ok(()) => saying.await,
            Err(e) => Err(e),
        },
    }
}

/// Copies bytes from one stream to another until the end, then closes the output.
async fn copy_stream(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut piece = vec![0; BUFFER_SIZE];
    loop {
        let read = from.read(&mut piece).await?;
        let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else {
            return to.shutdown().await;
        };
        to.write_all(bytes).await?;
        to.flush().await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command_line(args: &[&str]) -> Vec<String> {
        let command = AgentCommand::new("client").args(args);
        let client = ClientProgram::new(command, ["/bin/my acp", "check-relay"]).unwrap();
        let command = client.command(Path::new("/tmp/x/relay.json"), Path::new("/"));
        let args = command.args.iter();
        args.map(|arg| arg.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn relay_replaces_the_agent_placeholder() {
        let words = ["/bin/my acp", "check-relay", "/tmp/x/relay.json"];
        assert_eq!(command_line(&["run", "--", "{agent}"])[2..], words);
        if cfg!(unix) {
            let line = "'/bin/my acp' check-relay /tmp/x/relay.json";
            assert_eq!(
                command_line(&["--agent={agent}"]),
                [format!("--agent={line}")]
            );
            assert_eq!(command_line(&["--agent", "{agent-line}"])[1], line);
        }
    }

    #[test]
    fn command_without_a_placeholder_is_rejected() {
        let command = AgentCommand::new("client").args(["run"]);
        assert_eq!(
            ClientProgram::new(command, ["acp"]).err(),
            Some(MissingPlaceholder)
        );
    }
}
