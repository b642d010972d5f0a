//! The outbox: a size-limited buffer for outgoing messages.
//!
//! A message is serialized directly into the buffer, and the writer takes the whole buffer. While the writer is busy,
//! messages collect and are sent in one write. When it is idle, they are sent immediately. Senders that find the buffer
//! full wait in a queue. When a sender's turn comes, it can send a few kilobytes before the next sender: with thousands
//! of streams, waking one sender per message costs more than the message.
//!
//! A message that contains a large file is inserted in pieces as capacity allows, so that the peer can read its start
//! while its end is still being written. No other message goes between the pieces.

use std::sync::{Mutex, MutexGuard, PoisonError};

use acp_wire::text::escape_into;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use crate::error::CloseReason;

/// The maximum capacity, in bytes, of a buffer that is reused after a write.
const MAX_REUSED_CAPACITY: usize = 1024 * 1024;

/// The number of bytes of a large text to insert at a time. A piece of this size fits into a pipe and into the CPU
/// cache.
const PIECE_BYTES: usize = 64 * 1024;

/// The number of bytes that a sender may send after it has waited, before it must wait again.
const SENDER_TURN_BYTES: usize = 8 * 1024;

/// The buffer in which messages wait to be written.
#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<OutboxState>,
    /// Wakes the writer when there are bytes to write or the outbox has been closed.
    buffered: Notify,
    /// Wakes the first waiting sender when the writer has taken the buffered messages.
    drained: Notify,
    /// Keeps waiting senders in order of arrival.
    sender_queue: tokio::sync::Mutex<()>,
    limit: usize,
    reserve: usize,
}

#[derive(Debug, Default)]
struct OutboxState {
    buf: Vec<u8>,
    /// The number of waiting senders. While there are any, other senders can use only the bytes left over from the last
    /// sender's turn.
    waiting_senders: usize,
    /// The number of bytes left over from the last sender's turn.
    turn_bytes: usize,
    close_reason: Option<CloseReason>,
    /// Whether a message is being inserted in pieces. Until it is complete, messages that cannot wait go to `deferred`.
    has_large_text: bool,
    deferred: Vec<u8>,
}

impl OutboxState {
    fn len(&self) -> usize {
        self.buf.len() + self.deferred.len()
    }
}

/// A message with a large text, as three parts of its JSON.
#[derive(Debug)]
pub(crate) struct LargeTextMessage {
    /// The JSON before the text, including its opening quote.
    pub(crate) prefix: Vec<u8>,
    /// The text, not yet escaped.
    pub(crate) text: String,
    /// The JSON after the text, including its closing quote.
    pub(crate) suffix: Vec<u8>,
}

/// A message that is being inserted in pieces. Dropping it inserts the rest at once, because the peer may already have
/// received the start.
struct OutboxInsertion<'a> {
    outbox: &'a Outbox,
    text: &'a str,
    suffix: &'a [u8],
}

impl OutboxInsertion<'_> {
    /// Inserts the next piece, with at most `most` bytes of text. Returns `true` after the last piece.
    fn write_piece(&mut self, state: &mut OutboxState, most: usize) -> bool {
        let mut most = most.min(self.text.len());
        while !self.text.is_char_boundary(most) {
            most -= 1;
        }
        let (piece, rest) = self.text.split_at(most);
        self.text = rest;
        escape_into(&mut state.buf, piece);
        if rest.is_empty() {
            state
                .buf
                .extend_from_slice(std::mem::take(&mut self.suffix));
            state.buf.append(&mut state.deferred);
            state.has_large_text = false;
        }
        self.outbox.buffered.notify_one();
        rest.is_empty()
    }
}

impl Drop for OutboxInsertion<'_> {
    fn drop(&mut self) {
        if !self.suffix.is_empty() {
            self.write_piece(&mut self.outbox.lock(), usize::MAX);
        }
    }
}

/// A guard that counts as a waiting sender until dropped.
struct WaitingSender<'a>(&'a Outbox);

impl<'a> WaitingSender<'a> {
    fn new(outbox: &'a Outbox) -> Self {
        outbox.lock().waiting_senders += 1;
        Self(outbox)
    }
}

impl Drop for WaitingSender<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting_senders -= 1;
    }
}

impl Outbox {
    /// Creates an outbox with a capacity of `limit` bytes, which a single message may exceed, and a reserve of
    /// `reserve` bytes for messages that cannot wait.
    pub(crate) fn new(limit: usize, reserve: usize) -> Self {
        Self {
            state: Mutex::default(),
            buffered: Notify::new(),
            drained: Notify::new(),
            sender_queue: tokio::sync::Mutex::new(()),
            limit,
            reserve,
        }
    }

    fn lock(&self) -> MutexGuard<'_, OutboxState> {
        // If writing a message panics, `jsonrpc::write_*` removes the partial message.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends the message that `write` produces once there is capacity.
    pub(crate) async fn push<T>(
        &self,
        mut write: impl FnMut(&mut Vec<u8>) -> T,
    ) -> Result<T, CloseReason> {
        // A task that sends without a pause must let others run, above all the reader, which handles cancellation.
        tokio::task::coop::consume_budget().await;
        {
            let mut state = self.lock();
            let may = state.waiting_senders == 0 || state.turn_bytes > 0;
            if may && state.len() < self.limit || state.close_reason.is_some() {
                return self.append(&mut state, &mut write);
            }
        }
        let _waiting = WaitingSender::new(self);
        let _turn = self.sender_queue.lock().await;
        loop {
            // Register before checking, so that no notification is missed in between.
            let emptied = self.drained.notified();
            {
                let mut state = self.lock();
                if state.len() < self.limit || state.close_reason.is_some() {
                    state.turn_bytes = SENDER_TURN_BYTES;
                    return self.append(&mut state, &mut write);
                }
            }
            emptied.await;
        }
    }

    /// Appends the message that `write` produces, without waiting. Returns `None` if even the reserve is full.
    pub(crate) fn push_now<T>(
        &self,
        mut write: impl FnMut(&mut Vec<u8>) -> T,
    ) -> Option<Result<T, CloseReason>> {
        let mut state = self.lock();
        if state.close_reason.is_none() && state.len() >= self.limit + self.reserve {
            return None;
        }
        Some(self.append(&mut state, &mut write))
    }

    /// Appends a message, or defers it while another message is being inserted in pieces.
    fn append<T>(
        &self,
        state: &mut OutboxState,
        write: &mut impl FnMut(&mut Vec<u8>) -> T,
    ) -> Result<T, CloseReason> {
        if let Some(reason) = &state.close_reason {
            return Err(reason.clone());
        }
        if state.has_large_text {
            return Ok(write(&mut state.deferred));
        }
        let before = state.buf.len();
        let written = write(&mut state.buf);
        state.turn_bytes = state.turn_bytes.saturating_sub(state.buf.len() - before);
        if before == 0 {
            self.buffered.notify_one();
        }
        Ok(written)
    }

    /// Appends a message in pieces, as capacity becomes available. Calls `last` before the last piece.
    pub(crate) async fn push_in_pieces(
        &self,
        message: &LargeTextMessage,
        last: impl FnOnce(),
    ) -> Result<(), CloseReason> {
        let _waiting = WaitingSender::new(self);
        let _turn = self.sender_queue.lock().await;
        let mut putting: Option<OutboxInsertion<'_>> = None;
        let mut last = Some(last);
        loop {
            let emptied = self.drained.notified();
            {
                let mut state = self.lock();
                let closing = state.close_reason.clone();
                // A message that was started is still written, like everything sent before the close.
                let most = if closing.is_some() {
                    usize::MAX
                } else {
                    PIECE_BYTES
                };
                if let (Some(reason), None) = (&closing, &putting) {
                    return Err(reason.clone());
                }
                if state.len() < self.limit || closing.is_some() {
                    let putting = putting.get_or_insert_with(|| {
                        // This sender counts as waiting, so only a sender with a turn could insert a message in
                        // between.
                        state.turn_bytes = 0;
                        state.has_large_text = true;
                        state.buf.extend_from_slice(&message.prefix);
                        OutboxInsertion {
                            outbox: self,
                            text: &message.text,
                            suffix: &message.suffix,
                        }
                    });
                    if putting.text.len() <= most
                        && let Some(last) = last.take()
                    {
                        last();
                    }
                    if putting.write_piece(&mut state, most) {
                        return Ok(());
                    }
                    continue;
                }
            }
            emptied.await;
        }
    }

    /// Closes the outbox to new messages. Buffered messages are still written.
    pub(crate) fn close(&self, reason: CloseReason) {
        self.lock().close_reason.get_or_insert(reason);
        self.buffered.notify_one();
        self.drained.notify_one();
    }

    /// Writes messages as they are appended, until the outbox is closed.
    pub(crate) async fn drain(&self, mut writer: impl AsyncWrite + Unpin) -> std::io::Result<()> {
        let mut taken = Vec::new();
        loop {
            let over = {
                let mut state = self.lock();
                std::mem::swap(&mut state.buf, &mut taken);
                state.close_reason.is_some() && !state.has_large_text
            };
            if taken.is_empty() {
                if over {
                    return Ok(());
                }
                self.buffered.notified().await;
                continue;
            }
            self.drained.notify_one();
            writer.write_all(&taken).await?;
            writer.flush().await?;
            taken.clear();
            if taken.capacity() > MAX_REUSED_CAPACITY {
                taken = Vec::new();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::io::AsyncReadExt;

    fn write_text(s: &str) -> impl FnMut(&mut Vec<u8>) + '_ {
        move |buf| buf.extend_from_slice(s.as_bytes())
    }

    #[tokio::test]
    async fn senders_wait_in_order_when_the_outbox_is_full() {
        let outbox = Arc::new(Outbox::new(10, 5));
        outbox.push(write_text("0123456789")).await.unwrap();
        let mut senders = Vec::new();
        for name in ["a", "b", "c"] {
            let mut sender = Box::pin({
                let outbox = Arc::clone(&outbox);
                async move { outbox.push(write_text(name)).await.unwrap() }
            });
            // Poll once, so that each sender is queued before the next one.
            assert!(poll_once(&mut sender).is_pending());
            senders.push(sender);
        }
        let (ours, mut theirs) = tokio::io::duplex(4);
        let writer = tokio::spawn({
            let outbox = Arc::clone(&outbox);
            async move { outbox.drain(ours).await }
        });
        let all = tokio::spawn(async move {
            let mut read = String::new();
            theirs.read_to_string(&mut read).await.unwrap();
            read
        });
        for sender in senders.into_iter().rev() {
            // The order of awaiting does not change whose turn it is.
            tokio::spawn(sender);
        }
        while outbox.lock().waiting_senders > 0 {
            tokio::task::yield_now().await;
        }
        outbox.close(CloseReason::Local);
        writer.await.unwrap().unwrap();
        assert_eq!(all.await.unwrap(), "0123456789abc");
    }

    #[tokio::test]
    async fn each_waiting_sender_gets_its_own_turn() {
        const MESSAGE_BYTES: usize = 1024;
        const MESSAGES_PER_SENDER: usize = 100;
        let outbox = Arc::new(Outbox::new(4 * MESSAGE_BYTES, 0));
        let senders: Vec<_> = ["a", "b", "c"]
            .map(|name| {
                let outbox = Arc::clone(&outbox);
                tokio::spawn(async move {
                    let message = name.repeat(MESSAGE_BYTES);
                    for _ in 0..MESSAGES_PER_SENDER {
                        outbox.push(write_text(&message)).await.unwrap();
                    }
                })
            })
            .into();
        let (ours, mut theirs) = tokio::io::duplex(MESSAGE_BYTES);
        let writer = tokio::spawn({
            let outbox = Arc::clone(&outbox);
            async move { outbox.drain(ours).await }
        });
        let all = tokio::spawn(async move {
            let mut read = Vec::new();
            theirs.read_to_end(&mut read).await.unwrap();
            read
        });
        for sender in senders {
            sender.await.unwrap();
        }
        outbox.close(CloseReason::Local);
        writer.await.unwrap().unwrap();
        let read = all.await.unwrap();
        assert_eq!(read.len(), 3 * MESSAGES_PER_SENDER * MESSAGE_BYTES);
        // While all senders have something to send, none sends more than a turn plus the message that crosses its end,
        // and each sends again only after the others.
        let runs: Vec<&[u8]> = read.chunk_by(|one, next| one == next).collect();
        let contended = &runs[1..runs.len() - 6];
        assert!(contended.len() > 20, "{}", runs.len());
        assert!(
            contended
                .iter()
                .all(|run| run.len() <= SENDER_TURN_BYTES + MESSAGE_BYTES)
        );
        assert!(contended.windows(3).all(|three| three[0][0] != three[2][0]));
    }

    #[tokio::test]
    async fn the_reserve_is_for_messages_that_cannot_wait_and_is_bounded() {
        let outbox = Outbox::new(4, 4);
        assert!(outbox.push_now(write_text("1234")).is_some());
        assert!(outbox.push_now(write_text("5678")).is_some());
        assert!(outbox.push_now(write_text("9")).is_none());
    }

    #[tokio::test]
    async fn closing_wakes_waiting_senders() {
        let outbox = Arc::new(Outbox::new(1, 0));
        outbox.push(write_text("x")).await.unwrap();
        let waiting = tokio::spawn({
            let outbox = Arc::clone(&outbox);
            async move { outbox.push(write_text("y")).await }
        });
        while outbox.lock().waiting_senders == 0 {
            tokio::task::yield_now().await;
        }
        outbox.close(CloseReason::Local);
        assert!(matches!(waiting.await.unwrap(), Err(CloseReason::Local)));
    }

    /// Returns a message of `count` quotes, each of which takes two bytes in JSON.
    fn message_of_quotes(count: usize) -> LargeTextMessage {
        LargeTextMessage {
            prefix: b"<".to_vec(),
            text: "\"".repeat(count),
            suffix: b">".to_vec(),
        }
    }

    #[tokio::test]
    async fn pieces_of_a_message_stay_together() {
        const OUTBOX_LIMIT: usize = 2 * PIECE_BYTES;
        let outbox = Arc::new(Outbox::new(OUTBOX_LIMIT, OUTBOX_LIMIT));
        let message = message_of_quotes(5 * PIECE_BYTES);
        let mut ended = false;
        let mut large = Box::pin(outbox.push_in_pieces(&message, || ended = true));
        assert!(poll_once(&mut large).is_pending());
        // The buffer contains at most as many bytes as its capacity, and the piece that exceeds it.
        assert!(outbox.lock().buf.len() <= OUTBOX_LIMIT + 2 * PIECE_BYTES);
        // One message that waits, and one that cannot wait.
        let mut waits = Box::pin(outbox.push(write_text("waits")));
        assert!(poll_once(&mut waits).is_pending());
        assert!(outbox.push_now(write_text("cannot wait")).is_some());

        let (ours, mut theirs) = tokio::io::duplex(1024);
        let writer = tokio::spawn({
            let outbox = Arc::clone(&outbox);
            async move { outbox.drain(ours).await }
        });
        let all = tokio::spawn(async move {
            let mut read = String::new();
            theirs.read_to_string(&mut read).await.unwrap();
            read
        });
        let (sent, _) = tokio::join!(large, async { waits.await.unwrap() });
        sent.unwrap();
        outbox.close(CloseReason::Local);
        writer.await.unwrap().unwrap();
        let whole = format!("<{}>cannot waitwaits", "\\\"".repeat(5 * PIECE_BYTES));
        assert!(all.await.unwrap() == whole);
        assert!(ended);
    }

    #[tokio::test]
    async fn a_dropped_insertion_is_completed() {
        let message = message_of_quotes(3 * PIECE_BYTES);
        let whole = format!("<{}>next", "\\\"".repeat(3 * PIECE_BYTES));
        for closes_first in [false, true] {
            let outbox = Outbox::new(PIECE_BYTES, 4 * PIECE_BYTES);
            let mut large = Box::pin(outbox.push_in_pieces(&message, || ()));
            assert!(poll_once(&mut large).is_pending());
            assert!(outbox.push_now(write_text("next")).is_some());
            let (ours, mut theirs) = tokio::io::duplex(1024);
            let mut all = String::new();
            let read = theirs.read_to_string(&mut all);
            if closes_first {
                outbox.close(CloseReason::Local);
                let (sent, written, _) = tokio::join!(large, outbox.drain(ours), read);
                sent.unwrap();
                written.unwrap();
            } else {
                drop(large);
                outbox.close(CloseReason::Local);
                tokio::join!(outbox.drain(ours), read).0.unwrap();
            }
            assert!(all == whole, "{closes_first}");
            // A message that was not started is rejected.
            assert!(outbox.push_in_pieces(&message, || ()).await.is_err());
        }
    }

    fn poll_once<F: Future + Unpin>(f: &mut F) -> std::task::Poll<F::Output> {
        std::pin::Pin::new(f).poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
    }
}
