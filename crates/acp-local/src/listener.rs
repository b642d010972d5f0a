//! Listens on a private endpoint.

use std::io;

use crate::endpoint::{Endpoint, LocalStream};

/// A listener for connections from programs of the same user.
#[derive(Debug)]
pub struct Listener(ListenerKind);

#[derive(Debug)]
enum ListenerKind {
    #[cfg(unix)]
    Unix(tokio::net::UnixListener),
    #[cfg(any(not(unix), test))]
    Tcp(tokio::net::TcpListener),
}

/// A listener's endpoint. Dropping it removes the socket file and its directory.
#[derive(Debug)]
pub struct ListenerEndpoint {
    endpoint: Endpoint,
    #[cfg(unix)]
    _directory: Option<tempfile::TempDir>,
}

impl ListenerEndpoint {
    /// Returns the endpoint for other programs to connect to.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl Listener {
    /// Starts listening on an endpoint that no other user can access: a Unix-domain socket in its own directory, or a
    /// loopback port if Unix-domain sockets are not available. Must be called from within a Tokio runtime with I/O
    /// enabled.
    ///
    /// # Errors
    /// The directory or the socket cannot be created.
    pub fn bind() -> io::Result<(Self, ListenerEndpoint)> {
        #[cfg(unix)]
        return bind_unix(&std::env::temp_dir());
        #[cfg(not(unix))]
        return bind_tcp();
    }

    /// Accepts the next connection.
    ///
    /// # Errors
    /// The connection failed, or the process has too many open files.
    pub async fn accept(&self) -> io::Result<LocalStream> {
        match &self.0 {
            #[cfg(unix)]
            ListenerKind::Unix(listener) => Ok(listener.accept().await?.0.into()),
            #[cfg(any(not(unix), test))]
            ListenerKind::Tcp(listener) => listener.accept().await?.0.try_into(),
        }
    }
}

/// Listens on a socket in a new directory under `parent`, or under `/tmp` if the path would not be a valid socket
/// address.
#[cfg(unix)]
fn bind_unix(parent: &std::path::Path) -> io::Result<(Listener, ListenerEndpoint)> {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::SocketAddr;

    let directory_in = |parent: &std::path::Path| {
        tempfile::Builder::new()
            .prefix("acp-")
            // Some systems ignore the mode of the socket, but all check the mode of the directory.
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir_in(parent)
    };
    const SOCKET_NAME: &str = "socket";
    let mut directory = directory_in(parent)?;
    // A socket address can contain only about a hundred bytes, and JSON can contain only Unicode.
    let path = directory.path().join(SOCKET_NAME);
    if SocketAddr::from_pathname(&path).is_err() || path.to_str().is_none() {
        directory = directory_in("/tmp".as_ref())?;
    }
    let path = directory.path().join(SOCKET_NAME);
    let listener = Listener(ListenerKind::Unix(tokio::net::UnixListener::bind(&path)?));
    let place = ListenerEndpoint {
        endpoint: Endpoint::unix(path),
        _directory: Some(directory),
    };
    Ok((listener, place))
}

#[cfg(any(not(unix), test))]
fn bind_tcp() -> io::Result<(Listener, ListenerEndpoint)> {
    let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let place = ListenerEndpoint {
        endpoint: Endpoint::tcp(listener.local_addr()?),
        #[cfg(unix)]
        _directory: None,
    };
    let listener = tokio::net::TcpListener::from_std(listener)?;
    Ok((Listener(ListenerKind::Tcp(listener)), place))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Asserts that bytes, and the end of the stream, arrive in both directions.
    async fn assert_carries_bytes((listener, place): (Listener, ListenerEndpoint)) {
        // The other program parses the endpoint in the same way.
        let endpoint: Endpoint = place.endpoint().to_string().parse().unwrap();
        let (mut theirs, mut ours) =
            tokio::try_join!(endpoint.connect(), listener.accept()).unwrap();
        theirs.writer.write_all(b"ping").await.unwrap();
        theirs.writer.shutdown().await.unwrap();
        let mut read = Vec::new();
        ours.reader.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, b"ping");
        ours.writer.write_all(b"pong").await.unwrap();
        drop(ours);
        read.clear();
        theirs.reader.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, b"pong");
    }

    #[tokio::test]
    async fn platform_listener_carries_bytes() {
        assert_carries_bytes(Listener::bind().unwrap()).await;
    }

    #[tokio::test]
    async fn tcp_listener_carries_bytes() {
        assert_carries_bytes(bind_tcp().unwrap()).await;
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn overlong_socket_path_is_not_used() {
        let parent = tempfile::Builder::new()
            .prefix(&"long".repeat(30))
            .tempdir()
            .unwrap();
        assert_carries_bytes(bind_unix(parent.path()).unwrap()).await;
        // The attempt leaves nothing behind.
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
