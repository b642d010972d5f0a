//! Gives tools access to the files and processes of a session, through the client if it supports that, and directly
//! otherwise.

pub(crate) mod access;
pub(crate) mod process;
pub(crate) mod tool_failure;
pub(crate) mod tool_session;
pub(crate) mod tree;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use acp::agent::Turn;

use crate::permission::permit::Permit;
use access::WorkspaceAccess;
use tool_failure::ToolFailure;
use tool_session::ToolSession;
use tree::{CancelFlag, DirectoryTree};

/// How long a cancelled turn waits for work that must not be interrupted, such as writing a file or releasing a
/// terminal.
pub(crate) const CANCEL_GRACE_PERIOD: Duration = Duration::from_secs(5);

/// The files and processes that tools can use during a turn.
#[derive(Clone)]
pub(crate) struct Workspace {
    pub(crate) turn: Turn,
    pub(crate) memory: Arc<dyn ToolSession>,
}

impl Workspace {
    /// Makes a path absolute, as the protocol requires. A relative path is resolved against the working directory.
    pub(crate) fn absolute_path(&self, path: &str) -> String {
        resolve_path(self.turn.cwd(), path)
    }

    /// Formats a path for display. A path inside the working directory is shown relative to it.
    pub(crate) fn display_path(&self, path: &str) -> String {
        let cwd = Path::new(self.turn.cwd());
        match Path::new(path).strip_prefix(cwd) {
            Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
            Ok(rest) => rest.to_string_lossy().into_owned(),
            Err(_) => path.to_owned(),
        }
    }

    /// Returns direct access to the session's directories.
    pub(crate) fn access(&self) -> Result<&WorkspaceAccess, ToolFailure> {
        self.memory.access().map_err(|why| {
            ToolFailure::failed(format!(
                "the agent has no direct access to the session's directory: {why}"
            ))
        })
    }

    /// Fails if the turn is cancelled.
    pub(crate) fn check_cancelled(&self) -> Result<(), ToolFailure> {
        if self.turn.is_cancelled() {
            Err(ToolFailure::Stop(acp::Error::Cancelled))
        } else {
            Ok(())
        }
    }

    /// Runs work until it is done or the turn is cancelled. The work must be safe to drop at any point.
    pub(crate) async fn run_unless_cancelled<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, ToolFailure> {
        tokio::select! {
            biased;
            () = self.turn.cancelled() => Err(ToolFailure::Stop(acp::Error::Cancelled)),
            done = work => Ok(done),
        }
    }

    /// Runs work that must not be interrupted. Returns `None` if it takes longer than [`CANCEL_GRACE_PERIOD`] after the
    /// turn is cancelled.
    pub(crate) async fn finish_despite_cancel<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let given_up = async {
            self.turn.cancelled().await;
            tokio::time::sleep(CANCEL_GRACE_PERIOD).await;
        };
        tokio::select! {
            biased;
            done = work => Some(done),
            () = given_up => None,
        }
    }

    /// Reads a text file, or `limit` of its lines starting at `line`, counted from 1.
    pub(crate) async fn read_file(
        &self,
        path: &str,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String, ToolFailure> {
        if self.turn.client().capabilities().fs.read_text_file {
            return Ok(self.turn.read_text_file(path, line, limit).await?);
        }
        let read = self.access()?.files.read_text(Path::new(path), line, limit);
        Ok(self
            .run_unless_cancelled(read)
            .await?
            .map_err(acp::Error::Rpc)?)
    }

    /// Reads a whole text file. Returns `None` if it does not exist.
    pub(crate) async fn read_file_if_exists(
        &self,
        path: &str,
    ) -> Result<Option<String>, ToolFailure> {
        match self.read_file(path, None, None).await {
            Ok(text) => Ok(Some(text)),
            Err(ToolFailure::NotFound(_)) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Writes the text file that the permit was issued for. A write that has started is always completed, so that it is
    /// known whether the file was written.
    pub(crate) async fn write_file(&self, permit: &Permit, text: &str) -> Result<(), ToolFailure> {
        self.check_cancelled()?;
        let Some(path) = permit.file_to_change() else {
            return Err(ToolFailure::failed(
                "Permission denied: this call is not allowed to change files.",
            ));
        };
        let written = if self.turn.client().capabilities().fs.write_text_file {
            self.finish_despite_cancel(self.turn.write_text_file(path, text))
                .await
        } else {
            let write = self.access()?.files.write_text(Path::new(path), text);
            self.finish_despite_cancel(write)
                .await
                .map(|written| written.map_err(acp::Error::Rpc))
        };
        // The write was permitted even if commands must not change the file, so the sandbox must not revert it when a
        // command ends.
        let sandbox = self.access().ok().and_then(|own| own.sandbox.clone());
        if let Some(sandbox) = sandbox {
            let path = PathBuf::from(path);
            let _ = tokio::task::spawn_blocking(move || sandbox.accept_change(&path)).await;
        }
        match written {
            Some(written) => Ok(written?),
            None => Err(ToolFailure::failed(
                "Cancelled while writing the file; it may or may not have been written.",
            )),
        }
    }

    /// Runs `look` on the session's directories, on a thread that is allowed to block.
    pub(crate) async fn with_tree<T: Send + 'static>(
        &self,
        look: impl FnOnce(&DirectoryTree, &CancelFlag) -> Result<T, String> + Send + 'static,
    ) -> Result<T, ToolFailure> {
        let tree = Arc::clone(&self.access()?.tree);
        // This is dropped with the future, which cancels the work in the thread.
        let demand = CancelFlag::default();
        let seen = demand.clone_for_thread();
        let looked = tokio::task::spawn_blocking(move || look(&tree, &seen));
        let looked = self.run_unless_cancelled(looked).await?;
        drop(demand);
        looked
            .map_err(|e| ToolFailure::failed(format!("the search stopped: {e}")))?
            .map_err(ToolFailure::Failed)
    }
}

/// Resolves a relative path against `cwd`.
fn resolve_path(cwd: &str, path: &str) -> String {
    if path.starts_with('/') || Path::new(path).is_absolute() {
        return path.to_owned();
    }
    let path = path.strip_prefix("./").unwrap_or(path);
    if path.is_empty() || path == "." {
        return cwd.to_owned();
    }
    if Path::new(cwd).is_absolute() {
        return Path::new(cwd).join(path).to_string_lossy().into_owned();
    }
    // The client runs on a different operating system from the agent.
    format!("{}/{path}", cwd.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_are_resolved_against_the_working_directory() {
        for (path, expected) in [
            ("a/b", "/w/a/b"),
            ("./a", "/w/a"),
            (".", "/w"),
            ("", "/w"),
            ("/x/a", "/x/a"),
        ] {
            assert_eq!(resolve_path("/w", path), expected);
        }
    }
}
