//! A log of a stream's bytes that have not been sent, or have been sent but not acknowledged.

use std::collections::VecDeque;

/// The maximum capacity that an empty buffer keeps, in bytes.
const MAX_IDLE_CAPACITY: usize = 64 * 1024;

/// How long to keep bytes after they have been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retention {
    /// Do not keep any bytes, because the peer cannot reconnect.
    None,
    /// Keep the last bytes, up to this number. The peer can reconnect, but does not acknowledge bytes.
    Last(usize),
    /// Keep the bytes until the peer acknowledges them.
    UntilAcknowledged,
}

/// A log of one stream's bytes that have not been sent, or that have been sent but not acknowledged. Positions are byte
/// offsets in the stream.
#[derive(Debug)]
pub(crate) struct SentLog {
    bytes: VecDeque<u8>,
    /// The position of the first byte in the log.
    start: u64,
    /// The position of the first byte that has not been sent.
    sent: u64,
    retention: Retention,
}

/// The error for a position outside the log: its bytes are no longer kept, or have not been written yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutOfWindow {
    /// The bytes are no longer kept.
    Dropped,
    /// The position is past the end of what has been written.
    Future,
}

impl SentLog {
    pub(crate) fn new(retention: Retention) -> Self {
        Self {
            bytes: VecDeque::new(),
            start: 0,
            sent: 0,
            retention,
        }
    }

    pub(crate) fn set_retention(&mut self, retention: Retention) {
        self.retention = retention;
    }

    /// Appends bytes at the end of the stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Returns the position after the last byte of the stream.
    pub(crate) fn end_position(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Returns the position of the first byte that has not been sent.
    pub(crate) fn sent_position(&self) -> u64 {
        self.sent
    }

    fn sent_len(&self) -> usize {
        // The kept bytes are in memory.
        usize::try_from(self.sent - self.start).unwrap_or(usize::MAX)
    }

    /// Returns the number of bytes that have not been sent.
    pub(crate) fn unsent_len(&self) -> usize {
        self.bytes.len() - self.sent_len()
    }

    /// Returns the number of bytes that count against the limit: those that the peer has yet to read or acknowledge.
    pub(crate) fn pending_len(&self) -> usize {
        match self.retention {
            Retention::UntilAcknowledged => self.bytes.len(),
            Retention::None | Retention::Last(_) => self.unsent_len(),
        }
    }

    /// Returns the bytes that have not been sent, in two pieces. If the first piece is empty, so is the second.
    pub(crate) fn unsent(&self) -> (&[u8], &[u8]) {
        let (first, second) = self.bytes.as_slices();
        let sent = self.sent_len();
        match first.get(sent..) {
            Some(rest) if !rest.is_empty() => (rest, second),
            _ => (second.get(sent - first.len()..).unwrap_or_default(), &[]),
        }
    }

    /// Marks the next `sent` bytes as sent.
    pub(crate) fn advance(&mut self, sent: usize) {
        self.sent += sent.min(self.unsent_len()) as u64;
        let excess = match self.retention {
            Retention::None => self.sent_len(),
            Retention::Last(most) => self.sent_len().saturating_sub(most),
            Retention::UntilAcknowledged => 0,
        };
        self.drop_front(excess);
    }

    /// Drops bytes up to an acknowledged position. Returns `false` if the position has not been sent yet.
    pub(crate) fn acknowledge(&mut self, position: u64) -> bool {
        if position > self.sent {
            return false;
        }
        let done = position.saturating_sub(self.start);
        self.drop_front(usize::try_from(done).unwrap_or(usize::MAX));
        true
    }

    /// Resumes sending from `position`, for a peer that has reconnected.
    pub(crate) fn rewind(&mut self, position: u64) -> Result<(), OutOfWindow> {
        if position > self.end_position() {
            return Err(OutOfWindow::Future);
        }
        if position < self.start {
            return Err(OutOfWindow::Dropped);
        }
        self.sent = position;
        Ok(())
    }

    /// Resumes sending from the first byte that has not been acknowledged.
    pub(crate) fn rewind_to_start(&mut self) {
        self.sent = self.start;
    }

    fn drop_front(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes.len());
        self.bytes.drain(..bytes);
        self.start += bytes as u64;
        if self.bytes.is_empty() && self.bytes.capacity() > MAX_IDLE_CAPACITY {
            self.bytes = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unsent_bytes(log: &SentLog) -> Vec<u8> {
        let (first, second) = log.unsent();
        [first, second].concat()
    }

    #[test]
    fn unacknowledged_bytes_can_be_sent_again() {
        let mut log = SentLog::new(Retention::UntilAcknowledged);
        log.push(b"hello");
        log.advance(5);
        assert_eq!((log.unsent_len(), log.pending_len()), (0, 5));
        assert!(!log.acknowledge(6));
        assert!(log.acknowledge(2));
        assert_eq!(log.rewind(1), Err(OutOfWindow::Dropped));
        assert_eq!(log.rewind(6), Err(OutOfWindow::Future));
        log.rewind(3).unwrap();
        assert_eq!(unsent_bytes(&log), b"lo");
        assert_eq!(log.end_position(), 5);
    }

    #[test]
    fn last_bytes_are_kept_without_acknowledgements() {
        let mut log = SentLog::new(Retention::Last(3));
        log.push(b"abcdef");
        log.advance(5);
        assert_eq!(log.pending_len(), 1);
        assert_eq!(log.rewind(1), Err(OutOfWindow::Dropped));
        log.rewind(2).unwrap();
        assert_eq!(unsent_bytes(&log), b"cdef");
        let mut none = SentLog::new(Retention::None);
        none.push(b"abc");
        none.advance(3);
        assert_eq!(none.start, 3);
    }

    #[test]
    fn slices_are_in_order_when_the_buffer_wraps() {
        let mut log = SentLog::new(Retention::UntilAcknowledged);
        let mut next = 0_u8;
        let mut wrapped = 0;
        for round in 0..2000_usize {
            let bytes: Vec<u8> = (0..round % 7)
                .map(|_| {
                    next = next.wrapping_add(1);
                    next
                })
                .collect();
            log.push(&bytes);
            let before = unsent_bytes(&log);
            assert!(!log.unsent().0.is_empty() || before.is_empty());
            assert!(before.ends_with(&bytes));
            wrapped += usize::from(!log.unsent().1.is_empty());
            let sent = before.len() / 2;
            log.advance(sent);
            assert_eq!(unsent_bytes(&log), before[sent..]);
            assert!(log.acknowledge(log.sent_position().saturating_sub(3)));
        }
        assert!(wrapped > 10, "{wrapped}");
    }
}
