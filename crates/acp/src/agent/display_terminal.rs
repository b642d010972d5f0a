//! Display terminals, which the agent runs and the client shows.
//!
//! They are part of version 2. Some clients of version 1 also show them. They declare this in the `_meta` of their
//! capabilities, and read the output from the `_meta` of the tool call that contains the terminal.

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

/// A terminal whose command the agent runs and whose output the client shows.
#[derive(Debug)]
pub struct DisplayTerminal {
    session: Session,
    id: TerminalId,
    tool_call: ToolCallId,
    /// Decodes the output as UTF-8 for version 1, which accepts only text.
    utf8_pieces: Utf8Pieces,
}

impl Session {
    /// Shows a new display terminal. `command` and `cwd` (an absolute path) are shown to the user. To show the terminal
    /// in a tool call, add [`as_content`](DisplayTerminal::as_content) to the call's content.
    ///
    /// # Errors
    /// The client does not show display terminals
    /// ([`ClientInfo::supports_display_terminals`](super::ClientInfo::supports_display_terminals)), or the connection
    /// has ended.
    pub async fn show_display_terminal(
        &self,
        tool_call: impl Into<ToolCallId>,
        command: &str,
        cwd: Option<&str>,
    ) -> Result<DisplayTerminal> {
        if !self.client().supports_display_terminals() {
            return Err(Self::client_capability_error("_meta.terminal_output"));
        }
        static NEXT_TERMINAL_NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NEXT_TERMINAL_NUMBER.fetch_add(1, Ordering::Relaxed);
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
    /// Returns the id of the terminal, which is unique in its session.
    #[must_use]
    pub fn id(&self) -> &TerminalId {
        &self.id
    }

    /// Returns content that shows this terminal in a tool call.
    #[must_use]
    pub fn as_content(&self) -> ToolCallContent {
        self.id.clone().into()
    }

    /// Appends to the command's output. The bytes can end in the middle of a character. For version 1 clients, which
    /// accept only text, they are decoded as UTF-8.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn append_output(&mut self, bytes: &[u8]) -> Result<()> {
        let id = self.id.clone();
        let chunk = || {
            let chunk = v2::TerminalOutputChunk::new(id, STANDARD.encode(bytes));
            Update::TerminalOutputChunk(chunk)
        };
        if self.session.client().is_v2() {
            return self.session.send_update(chunk()).await;
        }
        let text = self.utf8_pieces.push(bytes);
        let output = json!({"terminal_id": self.id.as_str(), "data": text});
        let output = (!text.is_empty()).then_some(output);
        let meta_update = output.map(|output| self.new_meta_update("terminal_output", output));
        self.session.record_and_send(chunk, meta_update).await
    }

    /// Reports the exit status of the command. The output stays visible.
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

    /// Sends an update for the terminal. In version 1, the update is sent in `_meta`, which some clients read. The
    /// recorder always gets the version 2 form, because using `_meta` is only a convention among a few programs.
    async fn send_update(&self, update: Update, what: &str, value: Value) -> Result<()> {
        if self.session.client().is_v2() {
            return self.session.send_update(update).await;
        }
        let meta_update = self.new_meta_update(what, value);
        self.session
            .record_and_send(|| update, Some(meta_update))
            .await
    }

    fn new_meta_update(&self, what: &str, value: Value) -> Update {
        let mut meta = Meta::new();
        meta.insert(what.to_owned(), value);
        let mut update = ToolCallPatch::new(&self.tool_call);
        update.meta = Some(Some(meta));
        Update::ToolCallUpdate(update.into())
    }
}

/// A unique part of generated ids, which changes each time a session is opened.
pub(crate) type OpeningId = Arc<str>;
