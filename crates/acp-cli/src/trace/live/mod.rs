//! `acp trace live`: a page of a trace while it is being recorded.
//!
//! The server listens on loopback only. It reads the trace from its file, and keeps only what a page shows. An open page
//! is a stream of server-sent events. Each has a scan of its own (`scan.rs`), which makes a list of the messages that the
//! filter selects (`list.rs`). The browser requests only those that it shows.
//!
//! | path | |
//! |---|---|
//! | `GET /` | the page, without any data |
//! | `GET /page.css`, `GET /page.js` | style and script |
//! | `POST /sign-in` | returns the token for a code, which can be used once |
//! | `GET /events?FILTER` | the number of messages that the filter selects, as server-sent events |
//! | `GET /rows?list=LIST&from=NUMBER&count=COUNT` | some of them |
//! | `GET /find?list=LIST&line=LINE` | the number of the message on a line of the trace |
//! | `GET /message?list=LIST&at=POSITION` | a message in full, with its request or response |
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
//! | `list.rs` | where the messages of a page are in the trace, and which request a response belongs to |
//! | `filter.rs` | which messages a page shows |
//! | `row.rs` | a message in the table, and in full |
//! | `findings.rs` | broken rules, found in the background |
//! | `hand.rs` | messages that the user sends by hand |
//! | `state.rs` | what the handlers share |
//! | `linger.rs` | staying for open pages when the connection has ended |
//! | `open.rs` | telling the user the address of the page |
//! | `page/` | HTML, style and script |

mod access;
mod events;
mod filter;
mod findings;
mod hand;
mod linger;
mod list;
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
use linger::{is_user_present, wait_for_pages};
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
    let server = match PageServer::start(file.to_owned(), None, args, false).await {
        Ok(server) => server,
        Err(exit) => return exit,
    };
    signals.next().await;
    drop(server);
    CommandExit::SUCCESS
}

/// Records a connection, and shows the trace until the connection ends, or until the user no longer looks at it.
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
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(e) => return CommandExit::failed(format!("cannot listen for signals: {e}")),
    };
    let connection = match RecordedConnection::open(&args.recording, &args.agent, &file) {
        Ok(connection) => connection,
        Err(exit) => return exit,
    };
    let sender = Arc::new(HandSender::default());
    // Before the relays take stdin.
    let is_user_present = is_user_present();
    let is_temporary = args.file.is_none();
    let started = PageServer::start(file, Some(Arc::clone(&sender)), &args.page, is_temporary);
    let server = match started.await {
        Ok(server) => server,
        Err(exit) => return exit,
    };
    let relays = |recorder: &TraceRecorder, to_agent, to_client| {
        // Ids should be short. Few characters are enough, because nobody else uses ids of this form.
        let nonce: String = Token::random().expose().chars().take(5).collect();
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
    if exit != CommandExit::CANCELLED && is_user_present {
        wait_for_pages(server.page.open_pages(), &mut signals).await;
    }
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
    page: Arc<TracePage>,
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
        is_temporary: bool,
    ) -> Result<Self, CommandExit> {
        let failed = |e: std::io::Error| CommandExit::failed(format!("cannot serve the page: {e}"));
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let access = PageAccess::new(listener.local_addr().map_err(failed)?);
        announce_page(&access, args)?;
        let page = Arc::new(TracePage::new(trace, access, sender, is_temporary));
        let router = trace_page_router(Arc::clone(&page));
        let task = tokio::spawn(async move {
            // Accepting connections never fails for good.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            page,
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
