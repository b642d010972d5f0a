//! Options of TCP sockets.

use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// The time of silence after which the system probes a peer, and the time between probes.
const IDLE: Duration = Duration::from_secs(30);
const INTERVAL: Duration = Duration::from_secs(10);

/// Configures a socket, so that small messages are sent at once and the system notices when the peer's machine is gone.
pub(crate) fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(IDLE).with_interval(INTERVAL);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}
