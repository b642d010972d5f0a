//! `acp run --format trace`: prints the messages of both sides as a trace.

use std::sync::{Arc, Mutex, PoisonError};

use acp::Transport;
use acp::transport::LineDirection;
use acp_config::AgentChoice;
use acp_trace::{LineRecorder, Side};

use crate::exit::CommandExit;
use crate::screen::print;

/// The trace on stdout.
pub(super) struct TraceOutput(Arc<Mutex<LineRecorder>>);

impl TraceOutput {
    /// Prints the first line.
    pub(super) fn start(agent: &AgentChoice) -> Result<Self, CommandExit> {
        let command = match agent.is_bundled() {
            true => vec!["acp".to_owned(), "agent".to_owned()],
            false => agent.command.clone(),
        };
        let by = concat!("acp ", env!("CARGO_PKG_VERSION"));
        let (recorder, header) = LineRecorder::start(&command, by)
            .map_err(|e| CommandExit::failed(format!("cannot start the trace: {e}")))?;
        print(&header);
        Ok(Self(Arc::new(Mutex::new(recorder))))
    }

    /// Prints each message that is sent and received from now on. If stdout is closed, the turn continues, and the exit
    /// code reports it.
    pub(super) fn attach(&self, transport: Transport) -> Transport {
        let recorder = Arc::clone(&self.0);
        transport.inspect_both(move |direction, line| {
            let from = match direction {
                LineDirection::Sent => Side::Client,
                _ => Side::Agent,
            };
            let mut recorder = recorder.lock().unwrap_or_else(PoisonError::into_inner);
            print(&recorder.record(from, line));
        })
    }

    /// Prints the last line.
    pub(super) fn end(&self) {
        let mut recorder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        print(&recorder.end());
    }
}
