//! The read loops of a bridge, one for each side. A loop reads a line, translates it and buffers the output before it
//! reads the next line.

use std::io;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};

use tokio::io::AsyncReadExt;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::json::BridgeOutput;
use super::negotiate::BridgeState;
use super::writer::BridgeWriter;
use super::{BridgeEnd, BridgeNoiseHandler, BridgeSide};
use crate::connection::Limits;
use crate::connection::frame::{Frame, Framer};
use crate::connection::outline::read_outline;
use crate::transport::{Transport, TransportReader};

pub(super) struct Pump {
    state: Mutex<BridgeState>,
    to_client: BridgeWriter,
    to_agent: BridgeWriter,
    /// Wakes the client's read loop when the agent has responded to `initialize` or exited.
    negotiated: Notify,
    limits: Limits,
    noise: Mutex<(u64, BridgeNoiseHandler)>,
}

impl Pump {
    pub(super) fn new(core: BridgeState, limits: Limits, on_noise: BridgeNoiseHandler) -> Self {
        Self {
            state: Mutex::new(core),
            to_client: BridgeWriter::default(),
            to_agent: BridgeWriter::default(),
            negotiated: Notify::new(),
            limits,
            noise: Mutex::new((0, on_noise)),
        }
    }

    /// Runs the bridge until one side has ended and the other has had time to finish.
    pub(super) async fn run(self, client: Transport, agent: Transport) -> BridgeEnd {
        let mut client_in = pin!(self.read_input(client.reader, BridgeSide::Client));
        let mut agent_in = pin!(self.read_input(agent.reader, BridgeSide::Agent));
        let mut client_out = pin!(self.to_client.drain(client.writer));
        let mut agent_out = pin!(self.to_agent.drain(agent.writer));
        // The streams that have already ended.
        let (mut no_client_in, mut no_agent_in) = (false, false);
        let (mut no_client_out, mut no_agent_out) = (false, false);
        let mut end = PumpEnd::default();
        loop {
            if no_agent_in && no_client_out {
                break;
            }
            tokio::select! {
                failed = &mut client_in, if !no_client_in => {
                    no_client_in = true;
                    end.set_first(BridgeSide::Client, failed, &self.limits);
                    self.handle_client_closed();
                }
                failed = &mut agent_in, if !no_agent_in => {
                    no_agent_in = true;
                    end.set_first(BridgeSide::Agent, failed, &self.limits);
                    end.extend_deadline(&self.limits);
                    self.handle_agent_closed();
                }
                done = &mut client_out, if !no_client_out => {
                    no_client_out = true;
                    if let Err(error) = done {
                        // The client no longer reads, so its messages no longer matter.
                        no_client_in = true;
                        end.set_first(BridgeSide::Client, Some(error), &self.limits);
                        self.handle_client_closed();
                    }
                }
                done = &mut agent_out, if !no_agent_out => {
                    no_agent_out = true;
                    if let Err(error) = done {
                        end.set_first(BridgeSide::Agent, Some(error), &self.limits);
                    }
                }
                () = sleep_until(end.deadline.unwrap_or_else(Instant::now)), if end.deadline.is_some() => {
                    if no_agent_in {
                        break;
                    }
                    no_agent_in = true;
                    end.extend_deadline(&self.limits);
                    self.handle_agent_closed();
                }
            }
        }
        let noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner).0;
        BridgeEnd {
            first: end.first.unwrap_or(BridgeSide::Client),
            error: end.error,
            noise,
        }
    }

    fn lock_state(&self) -> std::sync::MutexGuard<'_, BridgeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles the end of the client's input. Closes the agent's input once the buffered bytes are written.
    fn handle_client_closed(&self) {
        self.lock_state().client_closed();
        self.to_agent.close();
    }

    /// Handles the end of the agent's output. Closes the client's input once the buffered bytes are written.
    fn handle_agent_closed(&self) {
        let mut out = BridgeOutput::default();
        self.lock_state().agent_closed(&mut out);
        self.to_client.push(&out.client);
        self.to_client.close();
        self.to_agent.close();
        self.negotiated.notify_one();
    }

    /// Reads one side until the end of its input, and returns the error if reading fails.
    async fn read_input(&self, mut input: TransportReader, from: BridgeSide) -> Option<io::Error> {
        let mut framer = Framer::new(self.limits.message);
        let mut ended: Option<Option<io::Error>> = None;
        loop {
            if from == BridgeSide::Client && self.lock_state().is_waiting() {
                // Lines cannot be handled yet, but the end of the input must be noticed.
                let room = ended.is_none() && framer.buffered_len() < self.limits.outbox;
                tokio::select! {
                    () = self.negotiated.notified() => {}
                    end = fill_framer(&mut input, &mut framer), if room => ended = end,
                    () = tokio::time::sleep(self.limits.linger), if ended.is_some() => {
                        return ended.flatten();
                    }
                }
            } else if let Some(frame) = framer.next() {
                self.handle_frame(from, frame);
                self.wait_for_capacity(from).await;
            } else if let Some(failed) = ended {
                if let Some(frame) = framer.finish() {
                    self.handle_frame(from, frame);
                }
                return failed;
            } else {
                ended = fill_framer(&mut input, &mut framer).await;
            }
        }
    }

    fn handle_frame(&self, from: BridgeSide, frame: Frame<'_>) {
        let mut out = BridgeOutput::default();
        let mut core = self.lock_state();
        let waited = core.is_waiting();
        match frame {
            Frame::Line(line) => {
                if core.handle_line(from, line, &mut out) {
                    self.report_noise(line);
                }
            }
            // The bridge passes on whole lines, so its framer does not extract large strings.
            Frame::LargeText(_) => {}
            Frame::Oversized { head, tail, length } => {
                core.handle_oversized(from, read_outline(head, tail), length, &mut out);
            }
        }
        let negotiated = waited && !core.is_waiting();
        // Push while the lock is held, so that output is written in the order in which it was produced.
        self.to_client.push(&out.client);
        self.to_agent.push(&out.agent);
        drop(core);
        if negotiated {
            self.negotiated.notify_one();
        }
    }

    /// Waits until the buffers to both sides have capacity for the next line. The limit on the other side's buffer
    /// provides back-pressure. The limit on the sender's own buffer is four times as large, because a sender that does
    /// not read the bridge's responses must still be able to send other messages, such as a cancel.
    async fn wait_for_capacity(&self, from: BridgeSide) {
        let (other, own) = match from {
            BridgeSide::Client => (&self.to_agent, &self.to_client),
            BridgeSide::Agent => (&self.to_client, &self.to_agent),
        };
        other.wait_for_capacity(self.limits.outbox).await;
        own.wait_for_capacity(self.limits.outbox.saturating_mul(4))
            .await;
    }

    fn report_noise(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        tracing::debug!(line = %text.chars().take(200).collect::<String>(), "ignoring a line that is not a message");
        let mut noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner);
        noise.0 += 1;
        (noise.1)(&text);
    }
}

/// How the bridge ended: which side ended first, and why.
#[derive(Default)]
struct PumpEnd {
    first: Option<BridgeSide>,
    error: Option<io::Error>,
    /// When to stop waiting for the other side.
    deadline: Option<Instant>,
}

impl PumpEnd {
    fn set_first(&mut self, side: BridgeSide, failed: Option<io::Error>, limits: &Limits) {
        if self.first.is_none() {
            self.first = Some(side);
            self.error = failed;
            self.extend_deadline(limits);
        }
    }

    fn extend_deadline(&mut self, limits: &Limits) {
        self.deadline = Some(Instant::now() + limits.linger);
    }
}

/// Reads available bytes into the framer. At the end of the input, returns `Some` with the read error, if any.
async fn fill_framer(
    input: &mut TransportReader,
    framer: &mut Framer,
) -> Option<Option<io::Error>> {
    match input.read_buf(framer.spare_capacity()).await {
        Ok(0) => Some(None),
        Ok(_) => None,
        Err(e) if e.kind() == io::ErrorKind::Interrupted => None,
        Err(e) => Some(Some(e)),
    }
}
