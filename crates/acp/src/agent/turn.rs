//! A turn: from a prompt to its stop reason.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use acp_wire::Meta;
use acp_wire::v1::{
    ContentBlock, CreateTerminalRequest, ReadTextFileRequest, WriteTextFileRequest,
};
use tokio_util::sync::CancellationToken;

use super::session::Session;
use super::terminal::{ClientTerminal, TerminalCommand};
use crate::connection::RequestOptions;
use crate::error::{Error, Result};

/// What the person said: Prompt turn, "User Message".
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Prompt {
    /// Its content, in order.
    pub content: Vec<ContentBlock>,
    /// Custom data.
    pub meta: Option<Meta>,
}

impl Prompt {
    /// All of its text, one block after the other, without what is embedded or linked.
    #[must_use]
    pub fn text(&self) -> String {
        self.content
            .iter()
            .filter_map(ContentBlock::as_text)
            .collect()
    }
}

/// A turn. It is its [`Session`], too: what is said in a turn is said in its session.
#[derive(Debug, Clone)]
pub struct Turn {
    session: Session,
    cancel_token: CancellationToken,
    cancellation_taken: Arc<AtomicBool>,
}

impl Deref for Turn {
    type Target = Session;
    fn deref(&self) -> &Session {
        &self.session
    }
}

impl Turn {
    pub(crate) fn new(session: Session, cancel: CancellationToken) -> Self {
        Self {
            session,
            cancel_token: cancel,
            cancellation_taken: Arc::default(),
        }
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Takes over the end of a cancelled turn: from here on [`Agent::prompt`](super::Agent::prompt) is
    /// not dropped when the client cancels, but has to notice by the token, stop what it does, send
    /// what is left to be said, and return. The turn ends as cancelled whatever it returns.
    #[must_use]
    pub fn take_cancellation(&self) -> CancellationToken {
        self.cancellation_taken.store(true, Ordering::Release);
        self.cancel_token.clone()
    }

    /// Whether the client has cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel_token.is_cancelled()
    }

    /// Waits until the client cancels; for ever if it does not. By itself this does not keep the turn from
    /// being dropped: see [`take_cancellation`](Self::take_cancellation).
    pub async fn cancelled(&self) {
        self.cancel_token.cancelled().await;
    }

    /// Waits until the turn is cancelled and nobody has taken that over.
    pub(crate) async fn cancelled_untaken(&self) {
        self.cancel_token.cancelled().await;
        if self.cancellation_taken.load(Ordering::Acquire) {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.cancel_token
    }

    /// Waits for the person's answer, `None` if the turn is cancelled first. Clients that are told what
    /// the agent does are told that it waits, and that it works on, whatever came of it: an answer, an
    /// error, or nothing, because the agent has dropped the question.
    pub(super) async fn wait_for_person<T>(
        &self,
        answer: impl Future<Output = Result<T>>,
    ) -> Result<Option<T>> {
        if self.is_cancelled() {
            return Ok(None);
        }
        let asking = self.session.begin_question(&self.cancel_token).await?;
        let answer = tokio::select! {
            biased;
            () = self.cancel_token.cancelled() => return Ok(None),
            answer = answer => answer,
        };
        let told = asking.finish().await;
        let answer = answer?;
        told.map(|()| Some(answer))
    }

    /// Reads a text file through the client, unsaved changes included: File system, "Reading Files".
    /// `path` is absolute, `line` counts from 1, `limit` is in lines; without them the whole file is read.
    ///
    /// # Errors
    /// The client does not offer it ([`Error::Unsupported`]), its error, a cancelled turn, or the end
    /// of the connection.
    pub async fn read_text_file(
        &self,
        path: &str,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String> {
        if !self.session.client().capabilities().fs.read_text_file {
            return Err(Session::client_capability_error("fs.readTextFile"));
        }
        let mut request = ReadTextFileRequest::new(self.session.id(), path);
        (request.line, request.limit) = (line, limit);
        let answer = self.session.connection().read_text_file(&request);
        Ok(self.or_cancelled(answer).await?.content)
    }

    /// Writes a text file through the client: File system, "Writing Files". `path` is absolute; a file that
    /// is not there is created. A write that has begun is not given up when the turn is cancelled.
    ///
    /// # Errors
    /// The client does not offer it ([`Error::Unsupported`]), its error, or the end of the connection.
    pub async fn write_text_file(&self, path: &str, content: &str) -> Result<()> {
        if !self.session.client().capabilities().fs.write_text_file {
            return Err(Session::client_capability_error("fs.writeTextFile"));
        }
        let request = WriteTextFileRequest::new(self.session.id(), path, content);
        // Not given up half-way: whether a file was written must be known.
        self.session.connection().request(&request).await.map(drop)
    }

    /// Starts a command in a terminal of the client's: Terminals, "Executing Commands". The terminal
    /// is released when the handle is dropped.
    ///
    /// # Errors
    /// The client does not offer it ([`Error::Unsupported`]), its error, or the end of the connection.
    pub async fn create_terminal(&self, command: TerminalCommand) -> Result<ClientTerminal> {
        if !self.session.client().capabilities().terminal {
            return Err(Session::client_capability_error("terminal"));
        }
        let request: CreateTerminalRequest = command.into_request(self.session.id());
        // Whoever comes to hold the terminal releases it: this future, or, if that is dropped, the
        // answer that comes too late.
        let place = Arc::new(Mutex::new(None));
        let (session, there) = (self.session.clone(), Arc::clone(&place));
        let ask = RequestOptions {
            cancel_on_drop: false,
            ..RequestOptions::default()
        };
        self.session
            .connection()
            .request_with(&request, ask, move |answer| {
                if let Ok(created) = answer {
                    let terminal = ClientTerminal::new(session, created.terminal_id.clone());
                    *there.lock().unwrap_or_else(PoisonError::into_inner) = Some(terminal);
                }
            })
            .await?;
        let terminal = place.lock().unwrap_or_else(PoisonError::into_inner).take();
        terminal.ok_or(Error::Cancelled)
    }

    /// Waits for `work`, but no longer than the turn lasts.
    ///
    /// # Errors
    /// [`Error::Cancelled`], or what `work` gives.
    pub async fn or_cancelled<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            () = self.cancel_token.cancelled() => Err(Error::Cancelled),
            result = work => result,
        }
    }
}
