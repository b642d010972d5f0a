//! Moves a connection's messages over one socket. Handles frames in both directions, pings, acknowledgements and the
//! closing handshake.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::decode::{FrameDecoder, FrameEvent, FrameViolation};
use super::encode::FrameEncoder;
use crate::CloseStatus;
use crate::pipe::{DroppedHalves, IncomingPipe, OutgoingPipe};

/// The number of bytes to write at a time.
const MAX_BATCH_BYTES: usize = 64 * 1024;

/// The sizes of the read buffer, in bytes. Sockets that receive a lot of data use the large one.
const SMALL_READ_BYTES: usize = 4 * 1024;
const LARGE_READ_BYTES: usize = 64 * 1024;

/// The maximum size of the write buffer that an idle socket keeps, in bytes.
const MAX_IDLE_CAPACITY: usize = 8 * 1024;

/// The time limit for the peer to read earlier frames and answer a close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The prefix of the payload in pongs that belong to the extension. Peers ignore unsolicited pongs, which can be sent
/// between the fragments of a message.
const ACKNOWLEDGE_PREFIX: &str = "ack ";
const END_PAYLOAD: &str = "end";

/// The role of this side of a WebSocket. Only clients mask their frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkRole {
    Client,
    Server,
}

/// The two directions of a connection. They can outlive its socket.
#[derive(Debug)]
pub(crate) struct SocketPipes {
    pub(crate) incoming: Arc<IncomingPipe>,
    pub(crate) outgoing: Arc<OutgoingPipe>,
    pub(crate) gone: Arc<DroppedHalves>,
    /// Wakes the link when there is something to do.
    work: Arc<Notify>,
    /// The status with which this side is closing the connection, if any.
    closing: Mutex<Option<CloseStatus>>,
}

impl SocketPipes {
    /// Creates a connection that buffers up to `window` bytes in each direction.
    pub(crate) fn new(window: usize, role: LinkRole) -> Self {
        let work = Arc::new(Notify::new());
        let gone = Arc::new(DroppedHalves::default());
        let incoming = IncomingPipe::new(window, Arc::clone(&work), Arc::clone(&gone));
        let is_server = role == LinkRole::Server;
        let outgoing = OutgoingPipe::new(
            window,
            is_server,
            !is_server,
            Arc::clone(&work),
            Arc::clone(&gone),
        );
        Self {
            incoming: Arc::new(incoming),
            outgoing: Arc::new(outgoing),
            gone,
            work,
            closing: Mutex::default(),
        }
    }

    fn lock_closing(&self) -> MutexGuard<'_, Option<CloseStatus>> {
        self.closing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the connection with a status once everything written has been sent.
    pub(crate) fn close(&self, status: CloseStatus) {
        self.lock_closing().get_or_insert(status);
        self.work.notify_one();
    }

    /// Returns the status with which this side is closing the connection, if any.
    pub(crate) fn close_status(&self) -> Option<CloseStatus> {
        self.lock_closing().clone()
    }
}

/// The options of a link: its limits, timeouts and features.
#[derive(Debug, Clone)]
pub(crate) struct LinkOptions {
    pub(crate) role: LinkRole,
    /// Whether both sides support the extension.
    pub(crate) resumes: bool,
    pub(crate) max_message: usize,
    pub(crate) heartbeat: Duration,
    pub(crate) dead_after: Duration,
}

/// The reason why a link ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LinkEnd {
    /// The peer has closed the connection with this status.
    PeerClosed(CloseStatus),
    /// This side has closed the connection.
    Closed,
    /// The peer violated the protocol and was sent this close status.
    Violation(CloseStatus),
    /// The socket failed. The text is the reason.
    Cut(String),
}

/// A link that moves a connection's messages over one socket.
pub(crate) struct Link<'a> {
    wire: &'a SocketPipes,
    options: &'a LinkOptions,
    control: Mutex<ControlState>,
    /// Wakes the writer when `control` has changed.
    changed: Notify,
}

/// The reader's and the timer's instructions for the writer.
#[derive(Debug)]
struct ControlState {
    last_received: Instant,
    pong: Option<Vec<u8>>,
    ping_due: bool,
    acknowledge_all: bool,
    /// The status with which to close immediately, if any.
    close_now: Option<CloseStatus>,
    /// Whether the writer is waiting for the socket.
    is_writing: bool,
}

impl<'a> Link<'a> {
    pub(crate) fn new(wire: &'a SocketPipes, options: &'a LinkOptions) -> Self {
        Self {
            wire,
            options,
            control: Mutex::new(ControlState {
                last_received: Instant::now(),
                pong: None,
                ping_due: false,
                acknowledge_all: false,
                close_now: None,
                is_writing: false,
            }),
            changed: Notify::new(),
        }
    }

    fn lock_control(&self) -> MutexGuard<'_, ControlState> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves messages over the socket until it ends.
    pub(crate) async fn run<S: AsyncRead + AsyncWrite + Unpin>(&self, socket: S) -> LinkEnd {
        let (mut reader, mut writer) = tokio::io::split(socket);
        let mut decoder = FrameDecoder::new(
            self.options.role == LinkRole::Server,
            self.options.max_message,
        );
        let mut encoder = FrameEncoder::new(self.options.role == LinkRole::Client);
        let end = {
            let reading = self.read_frames(&mut reader, &mut decoder);
            let writing = self.write_frames(&mut writer, &mut encoder);
            let watching = self.watch_peer();
            tokio::pin!(reading, writing, watching);
            tokio::select! {
                end = &mut reading => end,
                written = &mut writing => match written {
                    // The close frame was sent. Frames that the peer sends before its own close frame still count.
                    Ok(()) => match timeout(CLOSE_TIMEOUT, &mut reading).await {
                        Ok(LinkEnd::Violation(status)) => LinkEnd::Violation(status),
                        _ => LinkEnd::Closed,
                    },
                    Err(error) => {
                        // The peer may have sent a reason.
                        match timeout(Duration::from_millis(200), &mut reading).await {
                            Ok(end @ LinkEnd::PeerClosed(_)) => end,
                            _ => LinkEnd::Cut(error.to_string()),
                        }
                    }
                },
                reason = &mut watching => LinkEnd::Cut(reason),
            }
        };
        // Answer a close frame, or send the reason for closing.
        let last = match &end {
            LinkEnd::PeerClosed(status) => Some(CloseStatus::new(status.code, "")),
            LinkEnd::Violation(status) => Some(status.clone()),
            LinkEnd::Closed | LinkEnd::Cut(_) => None,
        };
        let is_violation = matches!(end, LinkEnd::Violation(_));
        let ending = async {
            if let Some(status) = last {
                let mut out = Vec::new();
                encoder.encode_close(&status, &mut out);
                writer.write_all(&out).await?;
            }
            writer.shutdown().await?;
            if is_violation {
                // Closing a socket with unread input would reset it, and the peer would not see the status.
                let mut rest = [0; 4096];
                while reader.read(&mut rest).await? > 0 {}
            }
            Ok::<_, std::io::Error>(())
        };
        if !matches!(end, LinkEnd::Cut(_)) {
            // The end is known, whether or not the peer is notified.
            let _ = timeout(CLOSE_TIMEOUT, ending).await;
        }
        end
    }

    /// Reads and handles frames until the socket ends.
    async fn read_frames(
        &self,
        reader: &mut (impl AsyncRead + Unpin),
        decoder: &mut FrameDecoder,
    ) -> LinkEnd {
        let mut buf = BytesMut::new();
        let mut size = SMALL_READ_BYTES;
        loop {
            match self.handle_frames(&mut buf, decoder).await {
                Ok(None) => {}
                Ok(Some(end)) => return end,
                Err(violation) => return LinkEnd::Violation(violation),
            }
            buf.reserve(size);
            let before = buf.len();
            match reader.read_buf(&mut buf).await {
                Ok(0) => return LinkEnd::Cut("the peer closed the socket".to_owned()),
                Ok(_) => {}
                Err(error) => return LinkEnd::Cut(error.to_string()),
            }
            let is_busy = buf.len() - before >= SMALL_READ_BYTES;
            if is_busy {
                size = LARGE_READ_BYTES;
            } else if size == LARGE_READ_BYTES && buf.len() < SMALL_READ_BYTES {
                // Release the large buffer.
                size = SMALL_READ_BYTES;
                buf = BytesMut::from(&*buf);
            }
            self.lock_control().last_received = Instant::now();
        }
    }

    /// Handles all complete frames in the buffer. Waits while the library is not reading.
    async fn handle_frames(
        &self,
        buf: &mut BytesMut,
        decoder: &mut FrameDecoder,
    ) -> Result<Option<LinkEnd>, FrameViolation> {
        let incoming = &self.wire.incoming;
        while let Some(event) = decoder.next(buf)? {
            match event {
                FrameEvent::Payload {
                    length,
                    ends_message,
                } => {
                    if !incoming.has_room() {
                        incoming.wait_for_room().await;
                    }
                    if let Some(payload) = buf.get_mut(..length) {
                        // A line feed between the tokens of a message would end its line.
                        replace_line_feeds(payload);
                        incoming.push_message(payload, ends_message);
                    }
                    buf.advance(length);
                }
                FrameEvent::Ping(payload) => {
                    self.lock_control().pong = Some(payload);
                    self.changed.notify_one();
                }
                FrameEvent::Pong(payload) if self.options.resumes => {
                    self.handle_extension(&payload)?
                }
                FrameEvent::Pong(_) => {}
                FrameEvent::Close(status) => return Ok(Some(LinkEnd::PeerClosed(status))),
            }
        }
        Ok(None)
    }

    /// Handles a pong, which may belong to the extension.
    fn handle_extension(&self, payload: &[u8]) -> Result<(), FrameViolation> {
        let text = std::str::from_utf8(payload).unwrap_or_default();
        if text == END_PAYLOAD {
            self.wire.incoming.finish(None);
        } else if let Some(position) = text.strip_prefix(ACKNOWLEDGE_PREFIX) {
            let is_valid = position
                .parse()
                .is_ok_and(|position| self.wire.outgoing.acknowledge(position));
            if !is_valid {
                let reason = "received an invalid acknowledgement";
                return Err(CloseStatus::new(CloseStatus::PROTOCOL_ERROR, reason));
            }
        }
        Ok(())
    }

    /// Writes frames until a close frame has been sent.
    async fn write_frames(
        &self,
        writer: &mut (impl AsyncWrite + Unpin),
        encoder: &mut FrameEncoder,
    ) -> std::io::Result<()> {
        let mut out = Vec::new();
        let mut end_sent = false;
        loop {
            let is_over = self.collect_frames(encoder, &mut out, &mut end_sent);
            if out.is_empty() {
                tokio::select! {
                    () = self.wire.work.notified() => {}
                    () = self.changed.notified() => {}
                }
                continue;
            }
            self.lock_control().is_writing = true;
            writer.write_all(&out).await?;
            writer.flush().await?;
            self.lock_control().is_writing = false;
            if is_over {
                return Ok(());
            }
            out.clear();
            if out.capacity() > MAX_IDLE_CAPACITY && self.wire.outgoing.is_idle() {
                out = Vec::new();
            }
        }
    }

    /// Collects the next frames to send. Returns `true` if the last one is a close frame.
    fn collect_frames(
        &self,
        encoder: &mut FrameEncoder,
        out: &mut Vec<u8>,
        end_sent: &mut bool,
    ) -> bool {
        let incoming = &self.wire.incoming;
        let (pong, ping, acknowledge_all, close_now) = {
            let mut control = self.lock_control();
            (
                control.pong.take(),
                std::mem::take(&mut control.ping_due),
                std::mem::take(&mut control.acknowledge_all),
                control.close_now.take(),
            )
        };
        if let Some(payload) = pong {
            encoder.encode_pong(&payload, out);
        }
        if ping {
            encoder.encode_ping(b"acp", out);
        }
        if self.options.resumes {
            let step = if acknowledge_all {
                1
            } else {
                incoming.acknowledgement_step()
            };
            if let Some(position) = incoming.take_acknowledgement(step) {
                encoder.encode_pong(format!("{ACKNOWLEDGE_PREFIX}{position}").as_bytes(), out);
            }
        }
        if let Some(status) = close_now {
            encoder.encode_close(&status, out);
            return true;
        }
        let in_pieces = self.wire.outgoing.is_full();
        let progress = self.wire.outgoing.send_with(|first, second| {
            encoder.encode_messages(first, second, MAX_BATCH_BYTES, in_pieces, out)
        });
        if !progress.is_sent {
            return false;
        }
        if self.options.role == LinkRole::Client
            && (self.wire.gone.are_both_dropped() || progress.is_finished && !self.options.resumes)
        {
            self.wire.close(CloseStatus::normal());
        }
        // A server that is done closes the connection, and sends the reason.
        let is_client = self.options.role == LinkRole::Client;
        if is_client && progress.is_finished && self.options.resumes && !*end_sent {
            *end_sent = true;
            encoder.encode_pong(END_PAYLOAD.as_bytes(), out);
        }
        match self.wire.close_status() {
            Some(status) => {
                encoder.encode_close(&status, out);
                true
            }
            None => false,
        }
    }

    /// Sends pings until the peer is considered dead, and returns the reason.
    async fn watch_peer(&self) -> String {
        let options = self.options;
        loop {
            tokio::time::sleep(options.heartbeat).await;
            let mut control = self.lock_control();
            let silent = control.last_received.elapsed();
            // A peer that does not read does not see pings, either. That is allowed, unless the window keeps enough
            // space free.
            let may_be_slow = !options.resumes && control.is_writing;
            if silent >= options.dead_after && !may_be_slow {
                return format!("no response to pings for {} s", silent.as_secs());
            }
            control.ping_due = silent >= options.heartbeat / 2;
            control.acknowledge_all = true;
            drop(control);
            self.changed.notify_one();
        }
    }
}

/// Replaces line feeds with spaces. JSON allows them only between tokens, where they have the same meaning.
pub(crate) fn replace_line_feeds(message: &mut [u8]) {
    if memchr::memchr(b'\n', message).is_some() {
        for byte in message.iter_mut().filter(|byte| **byte == b'\n') {
            *byte = b' ';
        }
    }
}
