//! Opens direct access to the files of a session.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use acp_host::{Environment, Files, Roots, Sandbox, SandboxRules};

use super::tree::DirectoryTree;

/// Direct access to the files of a session, without the client.
#[derive(Clone)]
pub(crate) struct WorkspaceAccess {
    pub(crate) files: Files,
    pub(crate) tree: Arc<DirectoryTree>,
    /// The sandbox for commands, or `None` if commands are not sandboxed.
    pub(crate) sandbox: Option<Sandbox>,
    /// The environment for commands.
    pub(crate) environment: Environment,
}

impl WorkspaceAccess {
    /// Opens direct access to these roots. If that is not possible, returns the reason. `rules` are the sandbox's
    /// rules, or `None` if there is no sandbox. `environment` is for commands.
    pub(crate) async fn open(
        roots: &[String],
        rules: Option<SandboxRules>,
        environment: Environment,
    ) -> Result<Self, String> {
        let roots: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
        let opened = tokio::task::spawn_blocking(move || -> io::Result<Self> {
            let sandbox = rules.map(|rules| {
                Sandbox::from_rules(rules.for_roots(roots.iter().cloned()))
                    .map_err(io::Error::other)
            });
            // Open the directories once, so that all tools use the same ones.
            let roots = Roots::open(roots)?;
            Ok(Self {
                files: Files::with_roots(roots.clone()),
                tree: Arc::new(DirectoryTree::new(roots)),
                sandbox: sandbox.transpose()?,
                environment,
            })
        });
        match opened.await {
            Ok(own) => own.map_err(|e| e.to_string()),
            Err(e) => Err(e.to_string()),
        }
    }
}
