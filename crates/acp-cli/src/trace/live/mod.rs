//! `acp trace live`: a page of a trace while it is being recorded.
//!
//! The server listens on loopback only. It reads the trace from its file, and keeps only what a page shows. An open page
//! is a stream of server-sent events. Each has a scan of its own (`scan.rs`), so filters are applied here and the browser
//! gets only what it shows.
//!
//! | path | |
//! |---|---|
//! | `GET /` | the page, without any data |
//! | `GET /page.css`, `GET /page.js` | style and script |
//! | `POST /sign-in` | returns the token for a code, which can be used once |
//! | `GET /events?FILTER` | the messages, and then each new one, as server-sent events |
//! | `GET /rows?before=LINE&FILTER` | the last messages before a line of the trace |
//! | `GET /message?at=POSITION` | a message in full |
//! | `POST /send` | sends a message by hand |
//!
//! What is where:
//!
//! | file | subject |
//! |---|---|
//! | `access.rs` | who may see the page: token, host and origin |
//! | `routes.rs` | the handlers of the paths |
//! | `events.rs` | the events of an open page |
//! | `scan.rs` | reading a trace from its start, through a filter |
//! | `filter.rs` | which messages a page shows |
//! | `row.rs` | a message in the table, and in full |
//! | `findings.rs` | broken rules, found in the background |
//! | `hand.rs` | messages that the user sends by hand |
//! | `state.rs` | what the handlers share |
//! | `open.rs` | telling the user the address of the page |
//! | `page/` | HTML, style and script |

mod access;
mod events;
mod filter;
mod findings;
mod hand;
mod open;
mod routes;
mod row;
mod scan;
mod state;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use acp_remote::Token;
use acp_trace::{InjectableRelays, TraceReader, TraceRecorder};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::record::{RecordedConnection, trace_file};
use crate::args::trace::{LivePageArgs, TraceLiveArgs};
use crate::exit::CommandExit;
use crate::signals::Signals;
use access::PageAccess;
use hand::HandSender;
use open::announce_page;
use routes::trace_page_router;
use state::TracePage;

pub(super) async fn show_live(args: TraceLiveArgs) -> CommandExit {
    let has_agent = !args.agent.is_empty() || args.recording.url.url.is_some();
    match (has_agent, &args.file) {
        (true, _) => record_and_show(args).await,
        (false, Some(file)) => show_file(file, &args.page).await,
        (false, None) => CommandExit::usage("neither a trace nor an agent command is given"),
    }
}

/// Shows a file until a signal ends the command.
async fn show_file(file: &Path, args: &LivePageArgs) -> CommandExit {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(e) => return CommandExit::failed(format!("cannot listen for signals: {e}")),
    };
    if let Err(e) = TraceReader::open(file) {
        return CommandExit::usage(format!("{}: {e}", file.display()));
    }
    let server = match PageServer::start(file.to_owned(), None, args).await {
        Ok(server) => server,
        Err(exit) => return exit,
    };
    signals.next().await;
    drop(server);
    CommandExit::SUCCESS
}

/// Records a connection, and shows the trace until the connection ends.
async fn record_and_show(args: TraceLiveArgs) -> CommandExit {
    // The directory is deleted when this is dropped.
    let (file, _directory) = match &args.file {
        Some(file) => (trace_file(file), None),
        None => match private_directory() {
            Ok(directory) => (directory.path().join("live.trace"), Some(directory)),
            Err(e) => {
                return CommandExit::failed(format!("cannot create a temporary directory: {e}"));
            }
        },
    };
    let connection = match RecordedConnection::open(&args.recording, &args.agent, &file) {
        Ok(connection) => connection,
        Err(exit) => return exit,
    };
    let sender = Arc::new(HandSender::default());
    let server = match PageServer::start(file, Some(Arc::clone(&sender)), &args.page).await {
        Ok(server) => server,
        Err(exit) => return exit,
    };
    let relays = |recorder: &TraceRecorder, to_agent, to_client| {
        // Part of a token is random enough, and keeps ids short.
        let nonce: String = Token::random().expose().chars().take(12).collect();
        let InjectableRelays {
            client,
            agent,
            to_agent,
            to_client,
            ..
        } = recorder.injectable_relays(to_agent, to_client, &nonce);
        sender.connect(to_agent, to_client);
        (client, agent)
    };
    let exit = connection.relay_messages(relays).await;
    drop(server);
    exit
}

/// Creates a temporary directory that only its owner can use.
fn private_directory() -> std::io::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("acp-trace-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o700));
    }
    builder.tempdir()
}

/// The running server of a page. It stops when this is dropped.
struct PageServer {
    task: JoinHandle<()>,
    /// The file with the address, to be removed.
    address_file: Option<PathBuf>,
}

impl PageServer {
    /// Starts the server, and tells the user the address of the page.
    async fn start(
        trace: PathBuf,
        sender: Option<Arc<HandSender>>,
        args: &LivePageArgs,
    ) -> Result<Self, CommandExit> {
        let failed = |e: std::io::Error| CommandExit::failed(format!("cannot serve the page: {e}"));
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let access = PageAccess::new(listener.local_addr().map_err(failed)?);
        announce_page(&access, args)?;
        let page = TracePage::new(trace, access, sender);
        let router = trace_page_router(Arc::new(page));
        let task = tokio::spawn(async move {
            // Accepting connections never fails for good.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            task,
            address_file: args.address_file.clone(),
        })
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        self.task.abort();
        if let Some(file) = &self.address_file {
            // The user may have removed it already.
            let _ = std::fs::remove_file(file);
        }
    }
}
