//! Shows tool calls that the model is still writing. As soon as a call can be described, it is shown as `pending`, the
//! status of a call whose input is still streaming (Tool Calls, "Status"). Some clients keep the first title that they
//! receive, so a call is held back for up to a second until its subject is known.

use std::collections::BTreeMap;

use acp::v1::ToolCall;
use serde_json::json;
use tokio::time::{Duration, Instant};

use super::active::ActiveTurn;
use crate::mcp::servers::SessionMcpServers;
use crate::model::interface::ToolSpec;
use crate::reported_call::ReportedCall;
use crate::tools::draft_description::{
    arguments_improve_description, describe_by_tool, describe_partial,
};
use crate::tools::partial::{complete_members, parse_partial};
use crate::tools::tool::CallDescription;
use crate::workspace::Workspace;

/// The maximum length of arguments that are parsed and shown after every chunk, in bytes.
///
/// Longer arguments are parsed and shown each time their length has doubled. So the cost of a long file is linear in
/// its length rather than quadratic.
const UPDATE_EACH_CHUNK_BYTES: usize = 1024;

/// How long a call is held back while nothing but its tool is known.
const MAX_HOLD_TIME: Duration = Duration::from_secs(1);

/// The maximum number of calls in a round to show while they are being written. Any others are shown when they run. A
/// model that works properly does not write this many.
const MAX_DRAFTS: usize = 64;

/// The calls of a round that are shown or held back but have not run yet.
#[derive(Default)]
pub(super) struct DraftCalls(BTreeMap<usize, DraftCall>);

/// A tool call that the model is still writing.
struct DraftCall {
    /// The handle of the reported call. `None` while the call is held back.
    handle: Option<ReportedCall>,
    /// When the call must be shown if it is held back.
    next_update: Instant,
    tool: String,
    arguments: String,
    description: CallDescription,
    /// The length of the arguments when they were last parsed, in bytes.
    described_bytes: usize,
    /// The length of the arguments when they were last shown, in bytes.
    shown_bytes: usize,
}

impl ActiveTurn<'_> {
    /// Handles the start of a call: shows it or holds it back, unless its tool is never shown.
    pub(super) async fn begin_draft(
        &self,
        written: &mut DraftCalls,
        call: usize,
        tool: String,
    ) -> acp::Result<()> {
        // Some models send the name later. Such a call is shown only when it is complete.
        if tool.is_empty() || written.0.len() >= MAX_DRAFTS || written.0.contains_key(&call) {
            return Ok(());
        }
        let Some(about) = describe_tool(&self.state.servers, self.tools, &tool) else {
            return Ok(());
        };
        let held_back = arguments_improve_description(&tool);
        let mut writing = DraftCall {
            handle: None,
            next_update: Instant::now() + MAX_HOLD_TIME,
            tool,
            arguments: String::new(),
            description: about,
            described_bytes: 0,
            shown_bytes: UPDATE_EACH_CHUNK_BYTES / 2,
        };
        if !held_back {
            writing.announce(self.workspace).await?;
        }
        written.0.insert(call, writing);
        Ok(())
    }

    /// Adds a chunk to the arguments of a call, and updates what the user sees.
    pub(super) async fn extend_draft(
        &self,
        written: &mut DraftCalls,
        call: usize,
        arguments: &str,
    ) -> acp::Result<()> {
        let Some(writing) = written.0.get_mut(&call) else {
            return Ok(());
        };
        writing.arguments.push_str(arguments);
        writing.show(self.workspace).await
    }

    /// Shows the held-back calls that have reached their deadline.
    pub(super) async fn announce_due(&self, written: &mut DraftCalls) -> acp::Result<()> {
        let now = Instant::now();
        for writing in written.0.values_mut() {
            if writing.handle.is_none() && writing.next_update <= now {
                writing.announce(self.workspace).await?;
            }
        }
        Ok(())
    }
}

impl DraftCall {
    /// Shows the call for the first time.
    async fn announce(&mut self, workspace: &Workspace) -> acp::Result<()> {
        let report = ToolCall::new(workspace.memory.next_call_id(), &self.description.title)
            .kind(self.description.kind.clone())
            .locations(self.description.locations.clone());
        let report = match self.arguments.is_empty() {
            true => report,
            false => report.raw_input(parse_partial(&self.arguments)),
        };
        self.handle = Some(ReportedCall::begin(&workspace.turn, report).await?);
        Ok(())
    }

    /// Updates the description that the user sees, if it has changed.
    async fn show(&mut self, workspace: &Workspace) -> acp::Result<()> {
        let length = self.arguments.len();
        if length > UPDATE_EACH_CHUNK_BYTES && length < self.described_bytes.saturating_mul(2) {
            return Ok(());
        }
        self.described_bytes = length;
        let members = complete_members(&self.arguments);
        let about = describe_partial(&self.tool, members, workspace);
        let about = about.filter(|about| {
            about.title != self.description.title || about.locations != self.description.locations
        });
        let grown = length >= self.shown_bytes.saturating_mul(2);
        let changed = about.is_some();
        if let Some(about) = about {
            self.description = about;
        }
        match &self.handle {
            None if changed => self.announce(workspace).await,
            Some(handle) if changed || grown => {
                let change = handle
                    .new_update()
                    .title(&self.description.title)
                    .locations(self.description.locations.clone())
                    .raw_input(parse_partial(&self.arguments));
                self.shown_bytes = self.shown_bytes.max(length);
                handle.update(change).await
            }
            _ => Ok(()),
        }
    }
}

/// Describes a call by its tool alone, before its arguments are known.
fn describe_tool(
    servers: &SessionMcpServers,
    own: &[ToolSpec],
    tool: &str,
) -> Option<CallDescription> {
    match servers.call(own, tool, &json!({})) {
        Some(Ok(call)) => Some(call.call_description()),
        Some(Err(_)) | None => describe_by_tool(tool),
    }
}

impl DraftCalls {
    /// Removes a call. If the call is shown, returns its handle, and the caller must report how it ends.
    pub(super) fn take(&mut self, call: usize) -> Option<ReportedCall> {
        self.0.remove(&call)?.handle
    }

    /// Returns the time by which the next held-back call must be shown.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let held_back = self.0.values().filter(|writing| writing.handle.is_none());
        held_back.map(|writing| writing.next_update).min()
    }

    /// Ends the remaining calls and reports the reason, so that none stays pending.
    pub(super) async fn end(&mut self, why: &DraftInterruption) -> acp::Result<()> {
        let mut result = Ok(());
        let written = std::mem::take(&mut self.0).into_values();
        for handle in written.filter_map(|writing| writing.handle) {
            // End each call, even if reporting the end of another one fails.
            result = result.and(why.report_to(&handle).await);
        }
        result
    }
}

/// Why a call that was shown did not run.
pub(super) enum DraftInterruption {
    /// The turn was cancelled.
    Cancelled,
    /// Another reason, as a message for the user.
    Failed(&'static str),
}

impl DraftInterruption {
    /// Returns why the remaining calls did not run, based on how the round ended.
    pub(super) fn from_result<T>(ended: &acp::Result<T>) -> Self {
        match ended {
            Err(acp::Error::Cancelled) => Self::Cancelled,
            Err(_) => Self::Failed("Not run: the turn failed before this call started."),
            Ok(_) => {
                Self::Failed("The response ended before this call was complete. Nothing was done.")
            }
        }
    }

    pub(super) async fn report_to(&self, handle: &ReportedCall) -> acp::Result<()> {
        match self {
            Self::Cancelled => handle.cancel().await,
            Self::Failed(why) => handle.fail(*why).await,
        }
    }
}
