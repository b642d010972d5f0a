//! Tool calls that the model is still writing. They are shown as `pending`, which is the status of a call whose input
//! still comes (Tool calls, "Status"), as soon as it is known what they are about. Some clients keep to the first title
//! that they see, so that a call is held back until then, for a second at most.

use std::collections::BTreeMap;

use acp::v1::ToolCall;
use serde_json::json;
use tokio::time::{Duration, Instant};

use super::active::ActiveTurn;
use crate::mcp::servers::SessionMcpServers;
use crate::model::interface::ToolSpec;
use crate::reported_call::ReportedCall;
use crate::tools::draft_description::{describe_begun, describe_partial, will_describe_more};
use crate::tools::partial::{so_far, whole_members};
use crate::tools::tool::CallDescription;
use crate::workspace::Workspace;

/// As long as arguments are no longer than this, in bytes, each piece of them is looked at for what a person would
/// see. Beyond it they are looked at, and shown, each time they have doubled: so a long file that is written costs
/// twice its length, and not its square.
const EACH_PIECE: usize = 1024;

/// How long a call is held back at most of which only the tool is known.
const HELD_BACK: Duration = Duration::from_secs(1);

/// How many calls of a round are shown while they are written. Further ones are shown when they are carried out; no
/// model writes so many, but a broken one might.
const MOST: usize = 64;

/// The calls of a round that are shown and not carried out yet.
#[derive(Default)]
pub(super) struct DraftCalls(BTreeMap<usize, DraftCall>);

/// A call that is being written.
struct DraftCall {
    /// Absent while it is held back.
    handle: Option<ReportedCall>,
    /// When it is shown at the latest.
    next_update: Instant,
    tool: String,
    arguments: String,
    description: CallDescription,
    /// How long the arguments were when they were looked at last.
    described_bytes: usize,
    /// How long they were when they were shown last.
    shown_bytes: usize,
}

impl ActiveTurn<'_> {
    /// The model begins to write a call: it is shown, unless it is one that never is.
    pub(super) async fn begin_draft(
        &self,
        written: &mut DraftCalls,
        call: usize,
        tool: String,
    ) -> acp::Result<()> {
        // Some give the name later; then it is shown when it is whole.
        if tool.is_empty() || written.0.len() >= MOST || written.0.contains_key(&call) {
            return Ok(());
        }
        let Some(about) = describe_tool(&self.state.servers, self.tools, &tool) else {
            return Ok(());
        };
        let held_back = will_describe_more(&tool);
        let mut writing = DraftCall {
            handle: None,
            next_update: Instant::now() + HELD_BACK,
            tool,
            arguments: String::new(),
            description: about,
            described_bytes: 0,
            shown_bytes: EACH_PIECE / 2,
        };
        if !held_back {
            writing.announce(self.workspace).await?;
        }
        written.0.insert(call, writing);
        Ok(())
    }

    /// It writes on. The person is told of what they would see.
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

    /// Shows the calls that were held back for long enough.
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
    /// Shows it for the first time.
    async fn announce(&mut self, workspace: &Workspace) -> acp::Result<()> {
        let report = ToolCall::new(workspace.memory.next_call_id(), &self.description.title)
            .kind(self.description.kind.clone())
            .locations(self.description.locations.clone());
        let report = match self.arguments.is_empty() {
            true => report,
            false => report.raw_input(so_far(&self.arguments)),
        };
        self.handle = Some(ReportedCall::begin(&workspace.turn, report).await?);
        Ok(())
    }

    /// Shows what a person would see of it now that they do not see yet.
    async fn show(&mut self, workspace: &Workspace) -> acp::Result<()> {
        let length = self.arguments.len();
        if length > EACH_PIECE && length < self.described_bytes.saturating_mul(2) {
            return Ok(());
        }
        self.described_bytes = length;
        let members = whole_members(&self.arguments);
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
                    .raw_input(so_far(&self.arguments));
                self.shown_bytes = self.shown_bytes.max(length);
                handle.update(change).await
            }
            _ => Ok(()),
        }
    }
}

/// What there is to say of a call of this tool before there are arguments.
fn describe_tool(
    servers: &SessionMcpServers,
    own: &[ToolSpec],
    tool: &str,
) -> Option<CallDescription> {
    match servers.call(own, tool, &json!({})) {
        Some(Ok(call)) => Some(call.about_call()),
        Some(Err(_)) | None => describe_begun(tool),
    }
}

impl DraftCalls {
    /// Takes a call that is whole, if it is shown. Whoever takes it shows its end, too.
    pub(super) fn take(&mut self, call: usize) -> Option<ReportedCall> {
        self.0.remove(&call)?.handle
    }

    /// When the next of those that are held back is to be shown.
    pub(super) fn due(&self) -> Option<Instant> {
        let held_back = self.0.values().filter(|writing| writing.handle.is_none());
        held_back.map(|writing| writing.next_update).min()
    }

    /// Nothing comes of those that are left, and why. None stays as if it were still to be done.
    pub(super) async fn end(&mut self, why: &DraftInterruption) -> acp::Result<()> {
        let mut told = Ok(());
        let written = std::mem::take(&mut self.0).into_values();
        for handle in written.filter_map(|writing| writing.handle) {
            // All of them, also if one cannot be told.
            told = told.and(why.tell(&handle).await);
        }
        told
    }
}

/// Why nothing comes of a call that was shown.
pub(super) enum DraftInterruption {
    /// The turn was cancelled.
    Cancelled,
    /// What happened, for the person.
    Failed(&'static str),
}

impl DraftInterruption {
    /// What this end of a round means for calls that were not carried out.
    pub(super) fn of<T>(ended: &acp::Result<T>) -> Self {
        match ended {
            Err(acp::Error::Cancelled) => Self::Cancelled,
            Err(_) => Self::Failed("Not run: the turn failed first."),
            Ok(_) => {
                Self::Failed("The response ended before this call was complete. Nothing was done.")
            }
        }
    }

    pub(super) async fn tell(&self, handle: &ReportedCall) -> acp::Result<()> {
        match self {
            Self::Cancelled => handle.cancel().await,
            Self::Failed(why) => handle.fail(*why).await,
        }
    }
}
