//! Collects the properties of a session that its permission rules depend on.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use acp_host::{Roots, is_ordinary, is_trusted_by_programs};

use super::action::ToolAction;
use crate::mode::Mode;
use crate::workspace::Workspace;
use crate::workspace::tree::DirectoryTree;

/// The properties of a session that its permission rules depend on.
#[derive(Clone)]
pub(crate) struct PermissionContext {
    pub(super) mode: Mode,
    pub(super) is_sandboxed: bool,
    pub(super) cwd: PathBuf,
    /// The session's directories, if this process can access them.
    pub(super) tree: Option<Arc<DirectoryTree>>,
    /// Whether files are read through the client.
    pub(super) client_lends_reading: bool,
}

impl PermissionContext {
    pub(crate) fn from_workspace(workspace: &Workspace) -> Self {
        let memory = &workspace.memory;
        let lent = workspace.turn.client().capabilities();
        Self {
            mode: memory.mode(),
            is_sandboxed: memory.is_sandboxed(),
            cwd: PathBuf::from(workspace.turn.cwd()),
            tree: memory.access().ok().map(|own| Arc::clone(&own.tree)),
            client_lends_reading: lent.fs.read_text_file,
        }
    }

    /// Returns `true` if the client applies the rules itself and would report that it rejected this action.
    pub(super) fn client_reports_rejections(&self, tool_action: &ToolAction) -> bool {
        match tool_action {
            ToolAction::Read(_) => self.client_lends_reading,
            ToolAction::Inspect { .. } => false,
            ToolAction::Change(_) | ToolAction::Run(_) | ToolAction::Other(_) => true,
        }
    }

    pub(super) fn with_roots<T>(&self, look: impl FnOnce(&Roots) -> T) -> Option<T> {
        match &self.tree {
            Some(tree) => Some(look(tree.roots())),
            None => Roots::open([]).ok().map(|none| look(&none)),
        }
    }

    /// Returns `true` if the file is in the session's directories and no other program runs or trusts it.
    pub(super) fn is_ordinary(&self, path: &Path) -> bool {
        let Some(tree) = &self.tree else {
            let below = path.strip_prefix(&self.cwd);
            return below.is_ok_and(|below| {
                let mut parts = below.components();
                parts.all(|part| matches!(part, Component::Normal(_)))
                    && !is_trusted_by_programs(below)
            });
        };
        is_ordinary(path, tree.roots())
    }
}
