//! Terminals of the agent's own, shown by the client.
//!
//! A part of version 2. Clients of version 1 are known to show them through `_meta` of the tool call
//! that has the terminal, if they say so in their capabilities' `_meta`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use acp_wire::Meta;
use acp_wire::v1::{TerminalExitStatus, TerminalId, ToolCallContent, ToolCallId};
use acp_wire::v2;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::session::Session;
use crate::error::Result;
use crate::update::{ToolCallPatch, Update};
use crate::utf8::Utf8Pieces;

/// A terminal of the agent's own, which the client shows. What runs in it is the agent's business.
#[derive(Debug)]
pub struct DisplayTerminal {
    session: Session,
    id: TerminalId,
    tool_call: ToolCallId,
    /// Version 1 takes text only.
    utf8_pieces: Utf8Pieces,
}

impl Session {
    /// Shows a terminal of the agent's own: what runs in it, and where (an absolute path). It appears in
    /// a tool call when [`as_content`](DisplayTerminal::as_content) is made part of its content.
    ///
    /// # Errors
    /// The client shows none ([`ClientInfo::supports_display_terminals`](super::ClientInfo::supports_display_terminals)), or
    /// the connection has ended.
    pub async fn display_terminal(
        &self,
        tool_call: impl Into<ToolCallId>,
        command: &str,
        cwd: Option<&str>,
    ) -> Result<DisplayTerminal> {
        if !self.client().supports_display_terminals() {
            return Err(Self::client_capability_error("_meta.terminal_output"));
        }
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let terminal = DisplayTerminal {
            session: self.clone(),
            id: format!("term_{}_{number}", self.opening_id()).into(),
            tool_call: tool_call.into(),
            utf8_pieces: Utf8Pieces::default(),
        };
        let mut update = v2::TerminalUpdate::new(&terminal.id).command(command);
        update.cwd = cwd.map(|cwd| Some(cwd.to_owned()));
        let info = json!({"terminal_id": terminal.id.as_str(), "cwd": cwd});
        let update = Update::TerminalUpdate(update.into());
        terminal.send_update(update, "terminal_info", info).await?;
        Ok(terminal)
    }
}

impl DisplayTerminal {
    /// Its id, which is no other terminal's.
    #[must_use]
    pub fn id(&self) -> &TerminalId {
        &self.id
    }

    /// It, as content of its tool call.
    #[must_use]
    pub fn as_content(&self) -> ToolCallContent {
        self.id.clone().into()
    }

    /// Shows what was printed. The bytes may end within a character; for clients of
    /// version 1, which take text, they are read as UTF-8.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn output(&mut self, bytes: &[u8]) -> Result<()> {
        let id = self.id.clone();
        let chunk = || {
            let chunk = v2::TerminalOutputChunk::new(id, STANDARD.encode(bytes));
            Update::TerminalOutputChunk(chunk)
        };
        if self.session.client().is_v2() {
            return self.session.update(chunk()).await;
        }
        let text = self.utf8_pieces.push(bytes);
        let output = json!({"terminal_id": self.id.as_str(), "data": text});
        let output = (!text.is_empty()).then_some(output);
        let told = output.map(|output| self.new_meta_update("terminal_output", output));
        self.session.record_and_send(chunk, told).await
    }

    /// Shows how the command ended. What is shown stays.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn set_exited(self, status: TerminalExitStatus) -> Result<()> {
        let exit = json!({
            "terminal_id": self.id.as_str(),
            "exit_code": status.exit_code,
            "signal": status.signal,
        });
        let update = v2::TerminalUpdate::new(&self.id).exit_status(status);
        let update = Update::TerminalUpdate(update.into());
        self.send_update(update, "terminal_exit", exit).await
    }

    /// Tells it in version 2's words, or in what clients of version 1 are known to read. What is recorded is
    /// in those of version 2 either way: those of version 1 are an agreement of a few.
    async fn send_update(&self, update: Update, what: &str, value: Value) -> Result<()> {
        if self.session.client().is_v2() {
            return self.session.update(update).await;
        }
        let told = self.new_meta_update(what, value);
        self.session.record_and_send(|| update, Some(told)).await
    }

    fn new_meta_update(&self, what: &str, value: Value) -> Update {
        let mut meta = Meta::new();
        meta.insert(what.to_owned(), value);
        let mut update = ToolCallPatch::new(&self.tool_call);
        update.meta = Some(Some(meta));
        Update::ToolCallUpdate(update.into())
    }
}

/// What makes the ids of one opening of a session differ from those of any other.
pub(crate) type OpeningId = Arc<str>;
