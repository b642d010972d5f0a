//! A proxy that delays connections, and cuts them after a given number of bytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The delay and the cut that a proxy applies to a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionFault {
    /// The total number of bytes, in both directions, after which the connection is cut.
    pub(crate) cut_after: usize,
    /// The time by which each chunk is delayed.
    pub(crate) delay: Duration,
}

impl ConnectionFault {
    /// No cut and no delay.
    pub(crate) const NONE: Self = Self {
        cut_after: usize::MAX,
        delay: Duration::ZERO,
    };
}

/// A proxy in front of a server. It delays and cuts connections, and never reorders bytes.
pub(crate) struct CuttingProxy {
    pub(crate) address: SocketAddr,
    /// The number of connections that were cut.
    pub(crate) cuts: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for CuttingProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl CuttingProxy {
    /// Starts a proxy. `next_fault` returns the fault to apply to the next connection.
    pub(crate) async fn start(
        server: SocketAddr,
        mut next_fault: impl FnMut() -> ConnectionFault + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let cuts = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&cuts);
        let task = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let fault = next_fault();
                let counted = Arc::clone(&counted);
                tokio::spawn(async move {
                    if relay_connection(client, server, fault).await {
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        Self {
            address,
            cuts,
            task,
        }
    }
}

/// Passes bytes between client and server. Returns `true` if the connection was cut.
async fn relay_connection(client: TcpStream, server: SocketAddr, fault: ConnectionFault) -> bool {
    let Ok(server) = TcpStream::connect(server).await else {
        return false;
    };
    let left = AtomicUsize::new(fault.cut_after);
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    // Whichever ends first ends both: halves of a connection that is cut do not stay.
    tokio::select! {
        cut = copy_until_cut(&mut from_client, &mut to_server, &left, fault.delay) => cut,
        cut = copy_until_cut(&mut from_server, &mut to_client, &left, fault.delay) => cut,
    }
}

async fn copy_until_cut(
    from: &mut tokio::net::tcp::OwnedReadHalf,
    to: &mut tokio::net::tcp::OwnedWriteHalf,
    left: &AtomicUsize,
    delay: Duration,
) -> bool {
    let mut buf = vec![0; 16 * 1024];
    loop {
        let Ok(read @ 1..) = from.read(&mut buf).await else {
            return false;
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let allowed = left.load(Ordering::Relaxed).min(read);
        if to.write_all(&buf[..allowed]).await.is_err() {
            return false;
        }
        if allowed < read {
            return true;
        }
        left.fetch_sub(allowed, Ordering::Relaxed);
    }
}
