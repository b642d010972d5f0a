//! `acp connect`: makes a remote agent available on stdin and stdout.
//!
//! ```text
//!   stdin  ──▶ upload ──▶ transport ──▶ server
//!   stdout ◀── download ◀── transport ◀── server
//! ```
//!
//! Bytes are passed on as they come, or message by message if paths are replaced. If one side does not read, nothing
//! more is read from the other.

use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use acp::transport;
use acp_config::{RemoteAgent, RemoteOptions, TokenHeader};
use acp_remote::client::{
    ConnectError, ConnectOptions, ConnectionStatus, TokenStyle, Trust, connect as connect_to,
};
use acp_remote::{CloseStatus, Token};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};

use crate::args::connect::ConnectArgs;
use crate::exit::CommandExit;
use crate::path_mapper::{MessageDirection, PathMapper};
use crate::remote_agent::RECONNECT_NOTE;
use crate::signals::Signals;

/// The maximum number of bytes to read at a time.
const READ_CHUNK_SIZE: usize = 64 * 1024;

/// How long to keep relaying messages after the client has closed stdin.
const GRACE_AFTER_STDIN_CLOSES: Duration = Duration::from_secs(2);

/// How long to wait for the server to be notified that the connection has ended.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The maximum number of notes waiting to be printed. Further notes are dropped.
const MAX_NOTES: usize = 16;

pub(crate) async fn connect(args: ConnectArgs) -> CommandExit {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(e) => return CommandExit::failed(format!("cannot listen for signals: {e}")),
    };
    let options = RemoteOptions {
        paths: args.paths.map,
        ..args.remote.options()
    };
    let remote = match RemoteAgent::from_url(&args.url, &options) {
        Ok(remote) => remote,
        Err(e) => return e.into(),
    };
    for note in &remote.notes {
        write_to_stderr(&format!("acp: {note}"));
    }
    let options = match connect_options(&remote) {
        Ok(options) => options,
        Err(exit) => return exit,
    };
    let (status, ended) = match StatusNotes::start(&remote) {
        Ok(started) => started,
        Err(e) => return CommandExit::failed(format!("cannot start a thread: {e}")),
    };
    let closed = Arc::clone(&status.closed);
    let options = options.on_status(move |change| status.report(change));
    let end = tokio::select! {
        end = relay(&remote, options) => Some(end),
        _ = signals.next() => None,
    };
    // The relay was dropped, and with it both ends of the transport. The server is told in the background.
    tokio::select! {
        _ = timeout(DISCONNECT_TIMEOUT, ended) => {}
        _ = signals.next() => {}
    }
    let closed = closed.lock().unwrap_or_else(PoisonError::into_inner).take();
    match end {
        None => CommandExit::CANCELLED,
        Some(ConnectRelayEnd::ClientClosed) => CommandExit::SUCCESS,
        Some(ConnectRelayEnd::ClientFailed(e)) => {
            CommandExit::agent_failed(format!("connection to the client failed: {e}"))
        }
        Some(ConnectRelayEnd::ServerClosed) => CommandExit::agent_failed(match closed {
            Some(status) if !status.reason.is_empty() => {
                format!("the server closed the connection: {}", status.reason)
            }
            _ => "the server closed the connection".to_owned(),
        }),
        Some(ConnectRelayEnd::Failed(error)) => failure_exit(&error, &remote),
        Some(ConnectRelayEnd::SocketFailed(e)) => {
            let url = remote.url.key();
            CommandExit::agent_failed(format!("connection to {url} lost: {e}"))
        }
    }
}

fn connect_options(remote: &RemoteAgent) -> Result<ConnectOptions, CommandExit> {
    let mut options = ConnectOptions::new().token_style(match remote.token_header {
        TokenHeader::XSecretKey => TokenStyle::SecretKey,
        _ => TokenStyle::Bearer,
    });
    if let Some(token) = &remote.token {
        let token = Token::new(token.expose()).map_err(|e| CommandExit::usage(e.to_string()))?;
        options = options.token(token);
    }
    if let Some(pin) = &remote.pin {
        let trust =
            Trust::from_pin(pin).ok_or_else(|| CommandExit::usage("invalid fingerprint"))?;
        options = options.trust(trust);
    }
    Ok(options)
}

/// How a relay ended.
enum ConnectRelayEnd {
    /// The client closed stdin, or no longer reads stdout.
    ClientClosed,
    /// Reading from or writing to the client failed.
    ClientFailed(io::Error),
    /// The server closed the connection.
    ServerClosed,
    /// Connecting failed, or the connection was lost.
    Failed(ConnectError),
    /// The socket of a `tcp:` or `unix:` URL failed.
    SocketFailed(io::Error),
}

impl ConnectRelayEnd {
    fn from_server_error(error: io::Error) -> Self {
        match error.downcast::<ConnectError>() {
            Ok(error) => Self::Failed(error),
            Err(error) => Self::SocketFailed(error),
        }
    }

    fn from_client_error(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::ClientClosed,
            _ => Self::ClientFailed(error),
        }
    }
}

/// Connects, and relays until one side ends the connection.
async fn relay(remote: &RemoteAgent, options: ConnectOptions) -> ConnectRelayEnd {
    let client = match transport::stdio() {
        Ok(client) => client,
        Err(e) => return ConnectRelayEnd::ClientFailed(e),
    };
    let (from_client, to_client) = client.into_split();
    let mapper = PathMapper::new(&remote.paths);
    let mut from_client = MessageSource::new(from_client, &mapper, MessageDirection::ToAgent);
    let connecting = connect_to(remote.url.as_str(), options);
    tokio::pin!(connecting);
    let connected = tokio::select! {
        connected = &mut connecting => connected,
        ended = from_client.has_ended() => match ended {
            // The client has gone, but whoever started it should still learn that there is no server.
            Ok(true) => match timeout(GRACE_AFTER_STDIN_CLOSES, &mut connecting).await {
                Ok(connected) => connected,
                Err(_) => return ConnectRelayEnd::ClientClosed,
            },
            Ok(false) => connecting.await,
            Err(e) => return ConnectRelayEnd::from_client_error(e),
        },
    };
    let (from_server, to_server) = match connected {
        Ok(transport) => transport.into_split(),
        Err(e) => return ConnectRelayEnd::Failed(e),
    };
    let from_server = MessageSource::new(from_server, &mapper, MessageDirection::ToClient);
    let has_ended = Notify::new();
    let is_over = AtomicBool::new(false);
    let uploading = async {
        let failed = upload(from_client, to_server, || {
            is_over.store(true, Ordering::Relaxed);
            has_ended.notify_one();
        });
        failed.await
    };
    let grace = async {
        has_ended.notified().await;
        sleep(GRACE_AFTER_STDIN_CLOSES).await;
    };
    tokio::select! {
        end = download(from_server, to_client) => match end {
            // A server that has nothing left to do closes the connection.
            ConnectRelayEnd::ServerClosed | ConnectRelayEnd::SocketFailed(_)
                if is_over.load(Ordering::Relaxed) => ConnectRelayEnd::ClientClosed,
            end => end,
        },
        e = uploading => ConnectRelayEnd::from_client_error(e),
        () = grace => ConnectRelayEnd::ClientClosed,
    }
}

/// Input from one side, split into the pieces to pass on.
struct MessageSource<'m, R> {
    reader: BufReader<R>,
    /// Replaces the paths in messages.
    mapper: Option<(&'m PathMapper, MessageDirection)>,
    /// The number of bytes in `reader` that were returned as the last piece.
    returned: usize,
    /// The message that was returned last, if paths are replaced.
    message: Vec<u8>,
}

impl<'m, R: AsyncRead + Unpin> MessageSource<'m, R> {
    fn new(reader: R, mapper: &'m Option<PathMapper>, direction: MessageDirection) -> Self {
        Self {
            reader: BufReader::with_capacity(READ_CHUNK_SIZE, reader),
            mapper: mapper.as_ref().map(|mapper| (mapper, direction)),
            returned: 0,
            message: Vec::new(),
        }
    }

    /// Waits for input, and returns `true` at the end of input. No input is lost if the future is dropped.
    async fn has_ended(&mut self) -> io::Result<bool> {
        Ok(self.reader.fill_buf().await?.is_empty())
    }

    /// Reads the next piece: a whole message with its paths replaced or, without a mapper, the bytes that are
    /// available. The piece is empty at the end of input.
    async fn next(&mut self) -> io::Result<&[u8]> {
        let Some((mapper, direction)) = self.mapper else {
            self.reader.consume(self.returned);
            let bytes = self.reader.fill_buf().await?;
            self.returned = bytes.len();
            return Ok(bytes);
        };
        self.message.clear();
        // A large message does not keep its memory.
        self.message.shrink_to(READ_CHUNK_SIZE);
        let limit = acp::Limits::default().message;
        let mut limited = (&mut self.reader).take(limit as u64 + 1);
        limited.read_until(b'\n', &mut self.message).await?;
        if self.message.len() > limit {
            return Err(io::Error::other(format!(
                "message too large for --map: more than {limit} bytes"
            )));
        }
        if let Some(mapped) = mapper.map_message(&self.message, direction) {
            self.message = mapped;
        }
        Ok(&self.message)
    }
}

/// Sends the client's input to the server until the client closes stdin. Then calls `on_end` and waits forever, since
/// the other direction detects the end of the connection. Returns only if reading fails.
async fn upload(
    mut from_client: MessageSource<'_, impl AsyncRead + Unpin>,
    mut to_server: impl AsyncWrite + Unpin,
    on_end: impl Fn(),
) -> io::Error {
    let mut is_reading = true;
    loop {
        let piece = match from_client.next().await {
            Ok([]) => break,
            Ok(piece) => piece,
            Err(e) => return e,
        };
        // A server that does not read any more may still send messages, and then says why the connection ended.
        // Meanwhile, the client may end it.
        if is_reading {
            let sent = async {
                to_server.write_all(piece).await?;
                to_server.flush().await
            };
            is_reading = sent.await.is_ok();
        }
    }
    on_end();
    let _ = to_server.shutdown().await;
    std::future::pending().await
}

/// Passes the server's output on to the client until the connection ends.
async fn download(
    mut from_server: MessageSource<'_, impl AsyncRead + Unpin>,
    mut to_client: impl AsyncWrite + Unpin,
) -> ConnectRelayEnd {
    loop {
        let piece = match from_server.next().await {
            Ok([]) => return ConnectRelayEnd::ServerClosed,
            Ok(piece) => piece,
            Err(e) => return ConnectRelayEnd::from_server_error(e),
        };
        let passed_on = async {
            to_client.write_all(piece).await?;
            to_client.flush().await
        };
        if let Err(e) = passed_on.await {
            return ConnectRelayEnd::from_client_error(e);
        }
    }
}

/// Prints a note whenever the connection's state changes. Owned by the connection and dropped when it ends.
struct StatusNotes {
    url: String,
    /// Sends notes to a thread for printing, so that a client that does not read stderr cannot block the connection.
    notes: SyncSender<String>,
    /// Whether the connection can be resumed if it is cut.
    resumes: AtomicBool,
    /// The close status that the server sent.
    closed: Arc<Mutex<Option<CloseStatus>>>,
}

impl StatusNotes {
    /// Starts the thread that prints notes. Also returns a receiver that completes once the `StatusNotes` has been
    /// dropped and all notes have been printed.
    fn start(remote: &RemoteAgent) -> io::Result<(Self, oneshot::Receiver<()>)> {
        let (notes, waiting) = sync_channel::<String>(MAX_NOTES);
        let (printed, ended) = oneshot::channel();
        let print = move || {
            for note in waiting {
                write_to_stderr(&note);
            }
            // Nobody waits if the process is about to exit.
            let _ = printed.send(());
        };
        std::thread::Builder::new().spawn(print)?;
        let notes = Self {
            url: remote.url.key().to_owned(),
            notes,
            resumes: AtomicBool::new(false),
            closed: Arc::default(),
        };
        Ok((notes, ended))
    }

    fn report(&self, status: &ConnectionStatus) {
        let resumes = self.resumes.load(Ordering::Relaxed);
        match status {
            ConnectionStatus::Connected { resumes_within, .. } => {
                self.resumes
                    .store(resumes_within.is_some(), Ordering::Relaxed);
            }
            ConnectionStatus::Lost { reason } if resumes => {
                self.print(format!("{RECONNECT_NOTE}ing to {}: {reason}", self.url));
            }
            ConnectionStatus::Restored if resumes => {
                self.print(format!("{RECONNECT_NOTE}ed to {}", self.url));
            }
            ConnectionStatus::Closed(status) => {
                *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = Some(status.clone());
            }
            _ => {}
        }
    }

    fn print(&self, note: String) {
        let _ = self.notes.try_send(note);
    }
}

/// Returns the `CommandExit` for a failed connection. Its message tells the user what to do.
fn failure_exit(error: &ConnectError, remote: &RemoteAgent) -> CommandExit {
    let url = remote.url.key();
    let cannot = |why: &str| CommandExit::agent_failed(format!("cannot connect to {url}: {why}"));
    match error {
        ConnectError::InvalidUrl { reason, .. } => {
            CommandExit::usage(format!("invalid URL `{url}`: {reason}"))
        }
        ConnectError::Unreachable { reason, .. } => cannot(&system_reason(reason)),
        ConnectError::Tls { reason, .. } if !reason.contains("invalid peer certificate") => {
            cannot(&format!("TLS failed: {reason}"))
        }
        ConnectError::Tls { .. } if remote.pin.is_some() => cannot(
            "its certificate has a different fingerprint; if the server has a new certificate, update the fingerprint",
        ),
        ConnectError::Tls { reason, .. } => cannot(&format!(
            "{reason}; if you know the certificate's fingerprint, use --pin"
        )),
        ConnectError::Unauthorized { .. } => cannot(match remote.token {
            None => {
                "the server requires a token; use --token-file, the variable ACP_TOKEN, or token_env in config.toml"
            }
            Some(_) => {
                "the server rejected the token; pass a valid one with --token-file or the variable ACP_TOKEN"
            }
        }),
        ConnectError::Status { .. } => cannot(&error.to_string()),
        error => CommandExit::agent_failed(error.to_string()),
    }
}

/// Returns a system error's text without the error number, starting in lower case, such as `connection refused`.
fn system_reason(reason: &str) -> String {
    let reason = match reason.rfind(" (os error ") {
        Some(end) => reason.get(..end).unwrap_or(reason),
        None => reason,
    };
    let mut chars = reason.chars();
    match (chars.next(), chars.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => reason.to_owned(),
    }
}

/// Writes a line to stderr. Ignores errors, since stderr may be closed.
fn write_to_stderr(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
