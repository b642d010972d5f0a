//! What of a session the rules go by.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use acp_host::{Roots, is_obeyed, is_ordinary};

use super::deed::Deed;
use crate::mode::Mode;
use crate::workspace::Workspace;
use crate::workspace::tree::Tree;

/// What of a session decides.
#[derive(Clone)]
pub(crate) struct Circumstances {
    pub(super) mode: Mode,
    pub(super) sandboxed: bool,
    pub(super) cwd: PathBuf,
    /// Its directories, if they are here.
    pub(super) tree: Option<Arc<Tree>>,
    /// Files are read through the client.
    pub(super) lent_reading: bool,
}

impl Circumstances {
    pub(crate) fn of(workspace: &Workspace) -> Self {
        let memory = &workspace.memory;
        let lent = workspace.turn.client().capabilities();
        Self {
            mode: memory.mode(),
            sandboxed: memory.is_sandboxed(),
            cwd: PathBuf::from(workspace.turn.cwd()),
            tree: memory.access().ok().map(|own| Arc::clone(&own.tree)),
            lent_reading: lent.fs.read_text_file,
        }
    }

    /// Whether the client, if it goes by the rules, would tell that it is refused.
    pub(super) fn client_tells(&self, deed: &Deed) -> bool {
        match deed {
            Deed::Read(_) => self.lent_reading,
            Deed::Look { .. } => false,
            Deed::Change(_) | Deed::Run(_) | Deed::Other(_) => true,
        }
    }

    pub(super) fn with_roots<T>(&self, look: impl FnOnce(&Roots) -> T) -> Option<T> {
        match &self.tree {
            Some(tree) => Some(look(tree.roots())),
            None => Roots::open([]).ok().map(|none| look(&none)),
        }
    }

    /// Whether the file is under the session's directories, and none that other programs obey.
    pub(super) fn is_ordinary(&self, path: &Path) -> bool {
        let Some(tree) = &self.tree else {
            let below = path.strip_prefix(&self.cwd);
            return below.is_ok_and(|below| {
                let mut parts = below.components();
                parts.all(|part| matches!(part, Component::Normal(_))) && !is_obeyed(below)
            });
        };
        is_ordinary(path, tree.roots())
    }
}
