//! The agent's work on one prompt, which is called a turn.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use acp_wire::v1::{
    ContentBlock, CreateTerminalRequest, ReadTextFileRequest, WriteTextFileRequest,
};
use acp_wire::{Meta, Request};
use tokio_util::sync::CancellationToken;

use super::session::Session;
use super::terminal::{ClientTerminal, TerminalCommand};
use crate::connection::RequestOptions;
use crate::error::{Error, Result};

/// A prompt from the user. See "User Message" on the specification's page "Prompt Turn".
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Prompt {
    /// The content blocks of the user's message, in order.
    pub content: Vec<ContentBlock>,
    /// Custom data from the client (`_meta`).
    pub meta: Option<Meta>,
}

impl Prompt {
    /// Returns the text of all text blocks, concatenated. Embedded and linked resources are left out.
    #[must_use]
    pub fn text(&self) -> String {
        self.content
            .iter()
            .filter_map(ContentBlock::as_text)
            .collect()
    }
}

/// A running turn. It dereferences to its [`Session`], whose methods report the progress of the turn.
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

    /// Returns the session that the turn runs in.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Lets the agent handle cancellation itself. From now on, [`Agent::prompt`](super::Agent::prompt) is not dropped
    /// when the client cancels the turn. Instead, it must watch the returned token, stop its work, send its last
    /// updates, and return. The turn then counts as cancelled, whatever it returns.
    #[must_use]
    pub fn take_cancellation(&self) -> CancellationToken {
        self.cancellation_taken.store(true, Ordering::Release);
        self.cancel_token.clone()
    }

    /// Returns `true` if the client has cancelled the turn.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel_token.is_cancelled()
    }

    /// Waits until the client cancels the turn, which may never happen. By default, the turn is dropped when the client
    /// cancels it. To continue after a cancellation, call [`take_cancellation`](Self::take_cancellation) first.
    pub async fn cancelled(&self) {
        self.cancel_token.cancelled().await;
    }

    /// Waits until the turn is cancelled, or forever if the agent handles cancellation itself.
    pub(crate) async fn cancelled_by_default(&self) {
        self.cancel_token.cancelled().await;
        if self.cancellation_taken.load(Ordering::Acquire) {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.cancel_token
    }

    /// Waits for the user's answer, or returns `None` if the turn is cancelled first. Version 2 clients get a state
    /// update when the wait begins and another when the agent continues, whether it got an answer or an error, or
    /// dropped the question.
    pub(super) async fn wait_for_user<T>(
        &self,
        answer: impl Future<Output = Result<T>>,
    ) -> Result<Option<T>> {
        if self.is_cancelled() {
            return Ok(None);
        }
        let question = self.session.begin_question(&self.cancel_token).await?;
        let answer = tokio::select! {
            biased;
            () = self.cancel_token.cancelled() => return Ok(None),
            answer = answer => answer,
        };
        let finished = question.finish().await;
        let answer = answer?;
        finished.map(|()| Some(answer))
    }

    /// Reads a text file through the client, including unsaved changes. `path` is absolute, `line` counts from 1, and
    /// `limit` is a number of lines. Without `line` and `limit`, reads the whole file. See "Reading Files" on the
    /// specification's page "File System".
    ///
    /// # Errors
    /// The client does not support the method ([`Error::Unsupported`]), the client returned an error, the turn was
    /// cancelled, or the connection has ended.
    pub async fn read_text_file(
        &self,
        path: &str,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String> {
        self.session.client().require(ReadTextFileRequest::METHOD)?;
        let mut request = ReadTextFileRequest::new(self.session.id(), path);
        (request.line, request.limit) = (line, limit);
        let answer = self.session.connection().request_text(&request);
        Ok(self.or_cancelled(answer).await?.content)
    }

    /// Writes a text file through the client, which creates the file if it does not exist. `path` is absolute. Once the
    /// request is sent, the write continues even if the turn is cancelled. See "Writing Files" on the specification's
    /// page "File System".
    ///
    /// # Errors
    /// The client does not support the method ([`Error::Unsupported`]), the client returned an error, or the connection
    /// has ended.
    pub async fn write_text_file(&self, path: &str, content: &str) -> Result<()> {
        self.session
            .client()
            .require(WriteTextFileRequest::METHOD)?;
        let request = WriteTextFileRequest::new(self.session.id(), path, content);
        // Do not abort when the turn is cancelled: the agent must know whether the file was written.
        self.session.connection().request(&request).await.map(drop)
    }

    /// Starts a command in a client terminal. Dropping the returned handle releases the terminal. See "Executing
    /// Commands" on the specification's page "Terminals".
    ///
    /// # Errors
    /// The client does not support terminals ([`Error::Unsupported`]), the client returned an error, or the connection
    /// has ended.
    pub async fn create_terminal(&self, command: TerminalCommand) -> Result<ClientTerminal> {
        self.session
            .client()
            .require(CreateTerminalRequest::METHOD)?;
        let request: CreateTerminalRequest = command.into_request(self.session.id());
        // If this future is dropped early, the response handler still receives the terminal and releases it.
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

    /// Runs `work` to completion, or returns an error if the turn is cancelled first.
    ///
    /// # Errors
    /// The turn was cancelled ([`Error::Cancelled`]), or `work` failed.
    pub async fn or_cancelled<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            () = self.cancel_token.cancelled() => Err(Error::Cancelled),
            result = work => result,
        }
    }
}
