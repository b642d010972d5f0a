//! Two loops, one for each side: a line is read, looked at, and what comes of it is appended to what
//! waits to be written, before the next line is looked at.

use std::io;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};

use tokio::io::AsyncReadExt;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::json::Out;
use super::negotiate::Core;
use super::outlet::Outlet;
use super::{End, OnNoise, Side};
use crate::connection::Limits;
use crate::connection::frame::{Frame, Framer};
use crate::connection::outline::outline;
use crate::transport::{Reader, Transport};

pub(super) struct Pump {
    core: Mutex<Core>,
    to_client: Outlet,
    to_agent: Outlet,
    /// The agent has answered `initialize`, or never will.
    negotiated: Notify,
    limits: Limits,
    noise: Mutex<(u64, OnNoise)>,
}

impl Pump {
    pub(super) fn new(core: Core, limits: Limits, on_noise: OnNoise) -> Self {
        Self {
            core: Mutex::new(core),
            to_client: Outlet::default(),
            to_agent: Outlet::default(),
            negotiated: Notify::new(),
            limits,
            noise: Mutex::new((0, on_noise)),
        }
    }

    /// Runs until one side has ended and the other has had its last words.
    pub(super) async fn run(self, client: Transport, agent: Transport) -> End {
        let mut client_in = pin!(self.read(client.reader, Side::Client));
        let mut agent_in = pin!(self.read(agent.reader, Side::Agent));
        let mut client_out = pin!(self.to_client.drain(client.writer));
        let mut agent_out = pin!(self.to_agent.drain(agent.writer));
        // What is over already.
        let (mut no_client_in, mut no_agent_in) = (false, false);
        let (mut no_client_out, mut no_agent_out) = (false, false);
        let mut end = Ending::default();
        loop {
            if no_agent_in && no_client_out {
                break;
            }
            tokio::select! {
                failed = &mut client_in, if !no_client_in => {
                    no_client_in = true;
                    end.begin(Side::Client, failed, &self.limits);
                    self.client_closed();
                }
                failed = &mut agent_in, if !no_agent_in => {
                    no_agent_in = true;
                    end.begin(Side::Agent, failed, &self.limits);
                    end.again(&self.limits);
                    self.agent_closed();
                }
                done = &mut client_out, if !no_client_out => {
                    no_client_out = true;
                    if let Err(error) = done {
                        // It reads no more; what it says has no point any more either.
                        no_client_in = true;
                        end.begin(Side::Client, Some(error), &self.limits);
                        self.client_closed();
                    }
                }
                done = &mut agent_out, if !no_agent_out => {
                    no_agent_out = true;
                    if let Err(error) = done {
                        end.begin(Side::Agent, Some(error), &self.limits);
                    }
                }
                () = sleep_until(end.deadline.unwrap_or_else(Instant::now)), if end.deadline.is_some() => {
                    if no_agent_in {
                        break;
                    }
                    no_agent_in = true;
                    end.again(&self.limits);
                    self.agent_closed();
                }
            }
        }
        let noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner).0;
        End {
            first: end.first.unwrap_or(Side::Client),
            error: end.error,
            noise,
        }
    }

    fn core(&self) -> std::sync::MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What waits for the agent is still written, and then its input is closed.
    fn client_closed(&self) {
        self.core().client_closed();
        self.to_agent.close();
    }

    /// What waits for the client is still written, and then its input is closed.
    fn agent_closed(&self) {
        let mut out = Out::default();
        self.core().agent_closed(&mut out);
        self.to_client.push(&out.client);
        self.to_client.close();
        self.to_agent.close();
        self.negotiated.notify_one();
    }

    /// Reads one side until its end; gives the error, if reading failed.
    async fn read(&self, mut input: Reader, from: Side) -> Option<io::Error> {
        let mut framer = Framer::new(self.limits.message);
        let mut ended: Option<Option<io::Error>> = None;
        loop {
            if from == Side::Client && self.core().waiting() {
                // Nothing can be understood now, but an end must not go unseen.
                let room = ended.is_none() && framer.waiting() < self.limits.outbox;
                tokio::select! {
                    () = self.negotiated.notified() => {}
                    end = fill(&mut input, &mut framer), if room => ended = end,
                    () = tokio::time::sleep(self.limits.linger), if ended.is_some() => {
                        return ended.flatten();
                    }
                }
            } else if let Some(frame) = framer.next() {
                self.look_at(from, frame);
                self.room(from).await;
            } else if let Some(failed) = ended {
                if let Some(frame) = framer.finish() {
                    self.look_at(from, frame);
                }
                return failed;
            } else {
                ended = fill(&mut input, &mut framer).await;
            }
        }
    }

    fn look_at(&self, from: Side, frame: Frame<'_>) {
        let mut out = Out::default();
        let mut core = self.core();
        let waited = core.waiting();
        match frame {
            Frame::Line(line) => {
                if core.line(from, line, &mut out) {
                    self.noise(line);
                }
            }
            // Lines are handed on as they came: no text is taken out of them.
            Frame::LargeText(_) => {}
            Frame::TooLong { head, tail, length } => {
                core.too_long(from, outline(head, tail), length, &mut out);
            }
        }
        let negotiated = waited && !core.waiting();
        // While the lock is held: what was decided in one order is written in that order.
        self.to_client.push(&out.client);
        self.to_agent.push(&out.agent);
        drop(core);
        if negotiated {
            self.negotiated.notify_one();
        }
    }

    /// Waits for room for what the next line may bring about. The other side's is the back-pressure. A
    /// side's own is much more: answers of the bridge's to a side that takes none of them must not keep
    /// that side's other messages, such as a cancel, from getting through.
    async fn room(&self, from: Side) {
        let (other, own) = match from {
            Side::Client => (&self.to_agent, &self.to_client),
            Side::Agent => (&self.to_client, &self.to_agent),
        };
        other.room(self.limits.outbox).await;
        own.room(self.limits.outbox.saturating_mul(4)).await;
    }

    fn noise(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        tracing::debug!(line = %text.chars().take(200).collect::<String>(), "not a message");
        let mut noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner);
        noise.0 += 1;
        (noise.1)(&text);
    }
}

/// How it came to the end.
#[derive(Default)]
struct Ending {
    first: Option<Side>,
    error: Option<io::Error>,
    /// When the other side has had time enough.
    deadline: Option<Instant>,
}

impl Ending {
    fn begin(&mut self, side: Side, failed: Option<io::Error>, limits: &Limits) {
        if self.first.is_none() {
            self.first = Some(side);
            self.error = failed;
            self.again(limits);
        }
    }

    fn again(&mut self, limits: &Limits) {
        self.deadline = Some(Instant::now() + limits.linger);
    }
}

/// Reads what is there into the framer; at the end of the input, says so.
async fn fill(input: &mut Reader, framer: &mut Framer) -> Option<Option<io::Error>> {
    match input.read_buf(framer.room()).await {
        Ok(0) => Some(None),
        Ok(_) => None,
        Err(e) if e.kind() == io::ErrorKind::Interrupted => None,
        Err(e) => Some(Some(e)),
    }
}
