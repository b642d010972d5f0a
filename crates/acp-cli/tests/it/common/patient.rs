//! Reads with a timeout, so that a test fails rather than waiting forever for output that never arrives.

use std::io::{Error, ErrorKind, Read, Result};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// The maximum time to wait for expected output.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A reader that fails if no data arrives for a while.
pub(crate) struct TimedReader {
    chunks: Receiver<Result<Vec<u8>>>,
    rest: Vec<u8>,
}

impl TimedReader {
    pub(crate) fn new(mut inner: impl Read + Send + 'static) -> Self {
        let (sender, chunks) = sync_channel(64);
        std::thread::spawn(move || {
            let mut bytes = [0; 8192];
            loop {
                let chunk = match inner.read(&mut bytes) {
                    Ok(0) => return,
                    Ok(n) => Ok(bytes[..n].to_vec()),
                    Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                    // Not the end: whoever reads must not take it for one.
                    Err(e) => Err(e),
                };
                let failed = chunk.is_err();
                if sender.send(chunk).is_err() || failed {
                    return;
                }
            }
        });
        Self {
            chunks,
            rest: Vec::new(),
        }
    }

    /// Returns data that has already arrived, if any.
    pub(crate) fn read_available(&mut self) -> Option<Vec<u8>> {
        if !self.rest.is_empty() {
            return Some(std::mem::take(&mut self.rest));
        }
        self.chunks.try_recv().ok()?.ok()
    }
}

impl Read for TimedReader {
    fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
        if self.rest.is_empty() {
            self.rest = match self.chunks.recv_timeout(TIMEOUT) {
                Ok(chunk) => chunk?,
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Error::new(ErrorKind::TimedOut, "nothing comes"));
                }
            };
        }
        let n = buf.len().min(self.rest.len());
        buf[..n].copy_from_slice(&self.rest[..n]);
        self.rest.drain(..n);
        Ok(n)
    }
}
