//! Tool calls that the model is still writing. They are shown from their name on, as `pending`, which is the status
//! of a call whose input still comes: Tool calls, "Status".

use std::collections::BTreeMap;

use acp::agent::ToolCallHandle;
use acp::v1::{ToolCall, ToolCallUpdate};
use serde_json::json;

use super::Running;
use crate::mcp::Servers;
use crate::model::ToolSpec;
use crate::tools::{self, About};
use crate::workspace::Workspace;

/// As long as arguments are no longer than this, in bytes, each piece of them is looked at for what a person would
/// see. Beyond it they are looked at, and shown, each time they have doubled: so a long file that is written costs
/// twice its length, and not its square.
const EACH_PIECE: usize = 1024;

/// How many calls of a round are shown while they are written. Further ones are shown when they are carried out; no
/// model writes so many, but a broken one might.
const MOST: usize = 64;

/// The calls of a round that are shown and not carried out yet.
#[derive(Default)]
pub(super) struct Written(BTreeMap<usize, Writing>);

/// A call that is being written.
struct Writing {
    handle: ToolCallHandle,
    tool: String,
    arguments: String,
    title: String,
    /// Which file it says it works on, and from which line on.
    location: Option<(String, Option<u32>)>,
    /// How long the arguments were when they were looked at last.
    looked: usize,
    /// How long they were when they were shown last.
    shown: usize,
}

impl Running<'_> {
    /// The model begins to write a call: it is shown, unless it is one that never is.
    pub(super) async fn begins(
        &self,
        written: &mut Written,
        call: usize,
        tool: String,
    ) -> acp::Result<()> {
        // Some give the name later; then it is shown when it is whole.
        if tool.is_empty() || written.0.len() >= MOST || written.0.contains_key(&call) {
            return Ok(());
        }
        let Workspace { turn, state } = self.workspace;
        let Some(about) = about(&state.servers, self.tools, &tool) else {
            return Ok(());
        };
        let report = ToolCall::new(state.next_call_id(), &about.title).kind(about.kind);
        let writing = Writing {
            handle: turn.tool_call(report).await?,
            tool,
            arguments: String::new(),
            title: about.title,
            location: None,
            looked: 0,
            shown: EACH_PIECE / 2,
        };
        written.0.insert(call, writing);
        Ok(())
    }

    /// It writes on. The person is told of what they would see.
    pub(super) async fn writes(
        &self,
        written: &mut Written,
        call: usize,
        arguments: &str,
    ) -> acp::Result<()> {
        let Some(writing) = written.0.get_mut(&call) else {
            return Ok(());
        };
        writing.arguments.push_str(arguments);
        match writing.change(self.workspace) {
            Some(change) => writing.handle.update(change).await,
            None => Ok(()),
        }
    }
}

impl Writing {
    /// What a person would see of it now that they do not see yet.
    fn change(&mut self, workspace: &Workspace) -> Option<ToolCallUpdate> {
        let length = self.arguments.len();
        if length > EACH_PIECE && length < self.looked.saturating_mul(2) {
            return None;
        }
        self.looked = length;
        let members = tools::whole_members(&self.arguments);
        let about = tools::about_written(&self.tool, members, workspace);
        let about =
            about.filter(|about| about.title != self.title || place(about) != self.location);
        let grown = length >= self.shown.saturating_mul(2);
        if about.is_none() && !grown {
            return None;
        }
        self.shown = self.shown.max(length);
        let mut change = self.handle.change();
        if let Some(about) = about {
            self.location = place(&about);
            self.title.clone_from(&about.title);
            change = change.title(about.title).locations(about.locations);
        }
        Some(change.raw_input(tools::so_far(&self.arguments)))
    }
}

/// What there is to say of a call of this tool before there are arguments.
fn about(servers: &Servers, own: &[ToolSpec], tool: &str) -> Option<About> {
    match servers.call(own, tool, &json!({})) {
        Some(Ok(call)) => Some(call.about()),
        Some(Err(_)) | None => tools::about_begun(tool),
    }
}

fn place(about: &About) -> Option<(String, Option<u32>)> {
    let location = about.locations.first()?;
    Some((location.path.clone(), location.line))
}

impl Written {
    /// Takes a call that is whole, if it is shown. Whoever takes it shows its end, too.
    pub(super) fn take(&mut self, call: usize) -> Option<ToolCallHandle> {
        self.0.remove(&call).map(|writing| writing.handle)
    }

    /// Nothing comes of those that are left, and why. None stays as if it were still to be done.
    pub(super) async fn end(&mut self, why: &Unfinished) -> acp::Result<()> {
        let mut told = Ok(());
        for writing in std::mem::take(&mut self.0).into_values() {
            // All of them, also if one cannot be told.
            told = told.and(why.tell(&writing.handle).await);
        }
        told
    }
}

/// Why nothing comes of a call that was shown.
pub(super) enum Unfinished {
    /// The turn was cancelled.
    Cancelled,
    /// What happened, for the person.
    Failed(&'static str),
}

impl Unfinished {
    /// What this end of a round means for calls that were not carried out.
    pub(super) fn of<T>(ended: &acp::Result<T>) -> Self {
        match ended {
            Err(acp::Error::Cancelled) => Self::Cancelled,
            Err(_) => Self::Failed("The turn failed before this was done. Nothing was done."),
            Ok(_) => Self::Failed("The answer ended before this was whole. Nothing was done."),
        }
    }

    pub(super) async fn tell(&self, handle: &ToolCallHandle) -> acp::Result<()> {
        match self {
            Self::Cancelled => handle.cancel(Vec::new()).await,
            Self::Failed(why) => handle.fail(*why).await,
        }
    }
}
