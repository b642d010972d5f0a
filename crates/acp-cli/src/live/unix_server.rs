//! The server's side of a Unix-domain socket: binds it, and removes it when the server is no longer used.

use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use acp_server::AgentServer;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::net::UnixListener;

use super::directory::lock_directory;
use crate::exit::CommandExit;

/// The line that a local server prints when it is listening.
pub(crate) const READY_LINE: &str = "ready";

/// How long a local server waits for its first client.
const FIRST_CLIENT_TIMEOUT: Duration = Duration::from_secs(30);

/// A socket that this process listens on. Its file is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct BoundSocket {
    pub(crate) listener: UnixListener,
    path: PathBuf,
    /// The device and inode of the socket. The path may belong to another server by now.
    identity: (u64, u64),
}

impl BoundSocket {
    /// Binds a socket that only this user can connect to. Replaces a socket that nobody listens on.
    ///
    /// # Errors
    /// The path is in use.
    pub(crate) fn bind(path: &Path) -> Result<Self, CommandExit> {
        let failed = |e: io::Error| {
            CommandExit::failed(format!("cannot listen on unix:{}: {e}", path.display()))
        };
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
            Ok(metadata) if !metadata.file_type().is_socket() => {
                return Err(failed(io::Error::other(
                    "the file exists and is not a socket",
                )));
            }
            Ok(_) if UnixStream::connect(path).is_ok() => {
                return Err(failed(io::ErrorKind::AddrInUse.into()));
            }
            Ok(_) => std::fs::remove_file(path).map_err(failed)?,
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(path, private).map_err(failed)?;
        let metadata = std::fs::symlink_metadata(path).map_err(failed)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            identity: (metadata.dev(), metadata.ino()),
        })
    }

    /// Removes the socket, unless a client is connecting. Returns `true` if no client can connect any more.
    ///
    /// Whoever starts a server holds the lock, so no client can take the removed socket for a server that is not there
    /// and start another one, while this one goes on.
    fn remove_unless_used(&self, server: &AgentServer) -> io::Result<bool> {
        let _lock = lock_directory(&self.path)?;
        if !self.is_own()? {
            // Another server has taken the place of this one, which was stopped.
            return Ok(true);
        }
        let aside = self.path.with_extension("closing");
        std::fs::rename(&self.path, &aside)?;
        // From here on, nobody can connect. Whoever has connected before waits to be accepted.
        if server.is_used() || self.has_waiting_client()? {
            std::fs::rename(&aside, &self.path)?;
            return Ok(false);
        }
        std::fs::remove_file(&aside)?;
        Ok(true)
    }

    fn is_own(&self) -> io::Result<bool> {
        match std::fs::symlink_metadata(&self.path) {
            Ok(metadata) => Ok((metadata.dev(), metadata.ino()) == self.identity),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn has_waiting_client(&self) -> io::Result<bool> {
        let mut sockets = [PollFd::new(&self.listener, PollFlags::IN)];
        let ready = poll(&mut sockets, Some(&Timespec::default()))?;
        Ok(ready > 0)
    }
}

impl Drop for BoundSocket {
    fn drop(&mut self) {
        if self.is_own().unwrap_or(false)
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::debug!(%error, "cannot remove the socket");
        }
    }
}

/// Tells the process that has started this server that it is listening. Detaches from that process's terminal, so that
/// neither Ctrl-C nor closing the terminal ends the server.
pub(crate) fn detach_and_report_ready() {
    detach_from_terminal();
    let mut stdout = io::stdout().lock();
    if writeln!(stdout, "{READY_LINE}")
        .and_then(|()| stdout.flush())
        .is_err()
    {
        tracing::debug!("nobody waits for this server");
    }
}

/// Starts a session of processes without a terminal.
pub(crate) fn detach_from_terminal() {
    // This only fails if the process leads a session or a group already, which has no effect on the terminal.
    if let Err(error) = rustix::process::setsid() {
        tracing::debug!(%error, "cannot start a session");
    }
}

/// Serves a local server's clients until it is no longer used. Then nobody can connect to the socket any more.
pub(crate) async fn wait_until_unused(
    server: &AgentServer,
    socket: &BoundSocket,
) -> io::Result<()> {
    let first = tokio::time::timeout(FIRST_CLIENT_TIMEOUT, server.wait_until_used());
    if first.await.is_err() {
        tracing::info!("no client has connected");
    }
    loop {
        server.wait_until_unused().await;
        if tokio::task::block_in_place(|| socket.remove_unless_used(server))? {
            return Ok(());
        }
        server.wait_until_used().await;
    }
}
