//! The rows of the table: what work is done, by whom, and what is measured of it.

use std::path::Path;

use bench_work::Command;

use crate::Failure;
use crate::metric::{Metric, Sample};
use crate::pair::{Pair, Took, at_rest, start_of};
use crate::peers::{Peers, Who};

/// The text of a chunk of 208 bytes, line end included, without a message id. Our agent gives each chunk
/// one, and sends more bytes for it; so does the floor.
pub(crate) const TEXT: usize = 51;

/// What a model's token has, for the rows about memory: their clients keep a million of them.
const TOKEN: usize = 16;

/// Who works with whom: the agent and the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub(crate) struct Sides {
    pub(crate) agent: Who,
    pub(crate) client: Who,
}

impl Sides {
    pub(crate) fn name(self) -> String {
        if self.agent == self.client {
            self.agent.name().to_owned()
        } else {
            format!("{} agent, {} client", self.agent.name(), self.client.name())
        }
    }
}

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    /// One turn that streams for about a second.
    Stream,
    /// One turn that streams so many chunks a second, for two seconds.
    Pace(u64),
    /// So many sessions that stream so many chunks each at once.
    Sessions { sessions: usize, messages: u64 },
    /// Empty requests, one after the other.
    Empty,
    /// Requests for permission, one after the other.
    Ask,
    /// A client that reads nothing for so long, in milliseconds, while a million chunks are streamed.
    Stall(u64),
    /// A client whose handler of the first of a million chunks takes so long.
    Sleep(u64),
    /// A file of 64 MiB.
    Read,
    /// A session with so many chunks is loaded.
    Load(u64),
    /// A program is started.
    Start,
    /// An agent has a session open and nothing to do.
    Rest,
}

/// A row: its id, what it is, where it runs, who takes part.
pub(crate) struct Row {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// All processes on one processor.
    pub(crate) pinned: bool,
    pub(crate) work: Work,
    pub(crate) pairs: Vec<Sides>,
    /// How often at most: what takes long is not repeated as often as asked for.
    pub(crate) repeat: usize,
}

/// How large a file is read, in bytes.
pub(crate) const FILE: u64 = 64 * 1024 * 1024;

const fn pair(agent: Who, client: Who) -> Sides {
    Sides { agent, client }
}

const fn both(who: Who) -> Sides {
    pair(who, who)
}

pub(crate) fn rows() -> Vec<Row> {
    use Who::{AcpAgent, Floor, FloorEach, Least, Ours, Python, Raw, Rust, Traced, TypeScript};
    let all = [
        both(Ours),
        both(Rust),
        both(TypeScript),
        pair(Python, Ours),
        both(Floor),
    ];
    let mixed = [
        pair(Ours, Rust),
        pair(Rust, Ours),
        pair(Ours, TypeScript),
        pair(TypeScript, Ours),
        pair(FloorEach, Floor),
        both(Raw),
    ];
    let everyone = all.into_iter().chain(mixed).collect::<Vec<_>>();
    let symmetric = vec![both(Ours), both(Rust), both(TypeScript), both(Floor)];
    let row = |id, title, pinned, work, pairs: &[Sides]| Row {
        id,
        title,
        pinned,
        work,
        pairs: pairs.to_vec(),
        repeat: usize::MAX,
    };
    let seldom = |row: Row| Row { repeat: 2, ..row };
    let thousand = Work::Sessions {
        sessions: 1000,
        messages: 200,
    };
    let ten_thousand = Work::Sessions {
        sessions: 10_000,
        messages: 100,
    };
    let agents = [Ours, Rust, TypeScript, Python];
    let stalled: Vec<Sides> = agents.map(|who| pair(who, Floor)).to_vec();
    let clients = [Ours, Rust, TypeScript];
    let slow: Vec<Sides> = clients.map(|who| pair(Ours, who)).to_vec();
    let started = [Least, Floor, Ours, AcpAgent, Rust, TypeScript, Python].map(both);
    let traced = [both(Ours), pair(Traced, Ours)];
    let resting = [Ours, AcpAgent, Rust, TypeScript, Python].map(both);
    vec![
        row(
            "stream-pinned",
            "Streaming, one core",
            true,
            Work::Stream,
            &everyone,
        ),
        row(
            "stream",
            "Streaming, two cores",
            false,
            Work::Stream,
            &everyone,
        ),
        row(
            "empty-pinned",
            "Request and answer, one core",
            true,
            Work::Empty,
            &all,
        ),
        row(
            "empty",
            "Request and answer, two cores",
            false,
            Work::Empty,
            &all,
        ),
        row(
            "ask-pinned",
            "Permission inside a turn, one core",
            true,
            Work::Ask,
            &all,
        ),
        row(
            "ask",
            "Permission inside a turn, two cores",
            false,
            Work::Ask,
            &all,
        ),
        seldom(row(
            "stall",
            "The client reads nothing for 5 s, the agent streams a million chunks",
            false,
            Work::Stall(5000),
            &stalled,
        )),
        seldom(row(
            "sleep",
            "The client's handler takes 5 s, the agent streams a million chunks",
            false,
            Work::Sleep(5000),
            &slow,
        )),
        row(
            "read-pinned",
            "A file of 64 MiB through `fs/read_text_file`, one core",
            true,
            Work::Read,
            &symmetric,
        ),
        row(
            "read",
            "A file of 64 MiB through `fs/read_text_file`, two cores",
            false,
            Work::Read,
            &symmetric,
        ),
        row(
            "load-pinned",
            "Replay of 100,000 chunks, one core",
            true,
            Work::Load(100_000),
            &symmetric,
        ),
        row(
            "load",
            "Replay of 100,000 chunks, two cores",
            false,
            Work::Load(100_000),
            &symmetric,
        ),
        row(
            "sessions-1000",
            "1,000 sessions × 200 chunks, two cores",
            false,
            thousand,
            &symmetric,
        ),
        seldom(row(
            "sessions-10000",
            "10,000 sessions × 100 chunks, one core",
            true,
            ten_thousand,
            &symmetric,
        )),
        row(
            "trace-stream",
            "Streaming, with and without `acp trace` in between, two cores",
            false,
            Work::Stream,
            &traced,
        ),
        row(
            "trace-paced",
            "Streaming 50,000 messages/s, with and without `acp trace` in between, two cores",
            false,
            Work::Pace(50_000),
            &traced,
        ),
        row(
            "trace",
            "Request and answer, with and without `acp trace` in between, two cores",
            false,
            Work::Empty,
            &traced,
        ),
        row(
            "start",
            "From starting a program to its answer to `initialize`, one core",
            true,
            Work::Start,
            &started,
        ),
        row(
            "rest",
            "An agent with a session open and nothing to do",
            false,
            Work::Rest,
            &resting,
        ),
    ]
}

/// Where and how much.
pub(crate) struct Setting<'a> {
    pub(crate) peers: &'a Peers,
    pub(crate) processor: usize,
    /// Hardly anything is done: only whether it can be.
    pub(crate) quick: bool,
    pub(crate) file: &'a Path,
}

impl Setting<'_> {
    fn of(&self, count: u64) -> u64 {
        if self.quick {
            count.div_ceil(100)
        } else {
            count
        }
    }

    fn place(&self, pinned: bool) -> Option<usize> {
        pinned.then_some(self.processor)
    }

    /// Starts two programs; an error if one of them is not there.
    pub(crate) fn pair(&self, who: Sides, pinned: bool) -> Result<Pair, Failure> {
        let (agent, client) = (self.peers.agent(who.agent), self.peers.client(who.client));
        match (agent, client) {
            (Some(agent), Some(client)) => Pair::start(agent, client, self.place(pinned)),
            _ => Err("not here".into()),
        }
    }

    /// Does the work of a row once.
    pub(crate) fn run(&self, row: &Row, who: Sides) -> Result<Sample, Failure> {
        let start = || self.pair(who, row.pinned);
        match row.work {
            Work::Stream => {
                let mut pair = start()?;
                let messages = self.calibrated(&mut pair, TEXT)?;
                let took = pair.tell(&stream(messages, TEXT))?;
                Ok(of_trace(rated(&took, messages), who))
            }
            Work::Pace(rate) => {
                let mut pair = start()?;
                let paced = |messages| Command::Stream {
                    messages,
                    bytes: TEXT,
                    sleep_ms: None,
                    stall_ms: None,
                    rate: Some(rate),
                };
                pair.tell(&paced(self.of(rate / 5)))?;
                let messages = self.of(rate * 2);
                let took = pair.tell(&paced(messages))?;
                Ok(of_trace(rated(&took, messages), who))
            }
            Work::Sessions { sessions, messages } => {
                self.sessions(&mut start()?, who, sessions, messages)
            }
            Work::Empty => {
                let command = |requests| Command::Empty { requests };
                let sample = self.requests(&mut start()?, command)?;
                Ok(of_trace(sample, who))
            }
            Work::Ask => {
                let command = |requests| Command::Ask { requests };
                self.requests(&mut start()?, command)
            }
            Work::Stall(ms) => self.held_up(&mut start()?, None, Some(ms)),
            Work::Sleep(ms) => self.held_up(&mut start()?, Some(ms), None),
            Work::Read => self.read(&mut start()?),
            Work::Load(messages) => {
                let mut pair = start()?;
                pair.tell(&load(self.of(1000)))?;
                let messages = self.of(messages);
                let took = pair.tell(&load(messages))?;
                Ok(rated(&took, messages))
            }
            Work::Start => self.started(who, row.pinned),
            Work::Rest => {
                let program = self.peers.agent(who.agent).ok_or("not here")?;
                let memory = mega(at_rest(program)?.now);
                Ok(Sample::from([(Metric::AgentRest, memory)]))
            }
        }
    }

    /// How long a program takes to be there; the median of several starts.
    fn started(&self, who: Sides, pinned: bool) -> Result<Sample, Failure> {
        let program = self.peers.agent(who.agent).ok_or("not here")?;
        let mut times = Vec::new();
        for _ in 0..self.of(30) {
            times.push(start_of(program, self.place(pinned))?);
        }
        times.sort_unstable();
        let median = times.get(times.len() / 2).ok_or("not started")?;
        Ok(Sample::from([(Metric::Start, median.as_secs_f64() * 1e3)]))
    }

    /// How many chunks take about a second. What is done to know it warms both up.
    pub(crate) fn calibrated(&self, pair: &mut Pair, bytes: usize) -> Result<u64, Failure> {
        let mut messages = self.of(2000);
        for time in [0.3, 1.0] {
            let took = pair.tell(&stream(messages, bytes))?;
            #[allow(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss
            )]
            if !self.quick {
                let rate = messages as f64 / took.answer.ns.max(1) as f64 * 1e9;
                messages = (rate * time) as u64;
            }
            messages = messages.clamp(2, 2_000_000);
        }
        Ok(messages)
    }

    fn requests(
        &self,
        pair: &mut Pair,
        command: impl Fn(u64) -> Command,
    ) -> Result<Sample, Failure> {
        let requests = self.of(3000);
        pair.tell(&command(requests))?;
        let took = pair.tell(&command(requests))?;
        let mut sample = rated(&took, requests);
        let mut each = took.answer.each_ns;
        each.sort_unstable();
        let mut quantile = |metric, of: usize| {
            let at = (each.len() * of / 100).min(each.len().saturating_sub(1));
            if let Some(&ns) = each.get(at) {
                sample.insert(metric, micro(ns));
            }
        };
        quantile(Metric::P50, 50);
        quantile(Metric::P99, 99);
        sample.remove(&Metric::Rate);
        Ok(sample)
    }

    fn held_up(
        &self,
        pair: &mut Pair,
        sleep_ms: Option<u64>,
        stall_ms: Option<u64>,
    ) -> Result<Sample, Failure> {
        let shorter = |ms: u64| if self.quick { ms / 50 } else { ms };
        pair.tell(&Command::Open { sessions: 1 })?;
        let took = pair.tell(&Command::Stream {
            messages: self.of(1_000_000),
            bytes: TOKEN,
            sleep_ms: sleep_ms.map(shorter),
            stall_ms: stall_ms.map(shorter),
            rate: None,
        })?;
        Ok(peaks(&took))
    }

    fn read(&self, pair: &mut Pair) -> Result<Sample, Failure> {
        let bytes = self.file.metadata()?.len();
        let took = pair.tell(&Command::Read {
            path: self.file.to_string_lossy().into_owned(),
            bytes,
        })?;
        let mut sample = peaks(&took);
        let rate = bytes as f64 / took.answer.ns.max(1) as f64 * 1e3;
        sample.insert(Metric::Throughput, rate);
        Ok(sample)
    }

    fn sessions(
        &self,
        pair: &mut Pair,
        who: Sides,
        sessions: usize,
        messages: u64,
    ) -> Result<Sample, Failure> {
        let sessions = usize::try_from(self.of(sessions as u64))?;
        // So that what a process takes that has seen one session is not counted as the sessions'.
        pair.tell(&Command::Open { sessions: 1 })?;
        let before = pair.tell(&stream(10, TEXT))?;
        let open = pair.tell(&Command::Open { sessions })?;
        let took = pair.tell(&stream(messages, TEXT))?;
        let mut sample = rated(&took, messages * sessions as u64);
        let grown =
            |after: u64, before: u64| after.saturating_sub(before) as f64 / 1e3 / sessions as f64;
        let (agent, client) = (before.agent.memory, before.client.memory);
        let agent = grown(open.agent.memory.now, agent.now);
        let client = grown(open.client.memory.now, client.now);
        sample.insert(Metric::AgentSession, agent);
        // The floor keeps nothing but ids.
        if who.client != Who::Floor {
            sample.insert(Metric::ClientSession, client);
        }
        Ok(sample)
    }
}

pub(crate) fn stream(messages: u64, bytes: usize) -> Command {
    Command::Stream {
        messages,
        bytes,
        sleep_ms: None,
        stall_ms: None,
        rate: None,
    }
}

pub(crate) fn load(messages: u64) -> Command {
    let bytes = TEXT;
    Command::Load { messages, bytes }
}

fn micro(ns: u64) -> f64 {
    ns as f64 / 1e3
}

fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn peaks(took: &Took) -> Sample {
    Sample::from([
        (Metric::AgentPeak, mega(took.agent.memory.peak)),
        (Metric::ClientPeak, mega(took.client.memory.peak)),
    ])
}

/// What is measured as the agent is `acp trace`, where it stands in the agent's place; nothing is known of the agent
/// behind it.
fn of_trace(mut sample: Sample, who: Sides) -> Sample {
    if who.agent == Who::Traced
        && let Some(cpu) = sample.remove(&Metric::AgentCpu)
    {
        sample.insert(Metric::TraceCpu, cpu);
    }
    sample
}

fn rated(took: &Took, messages: u64) -> Sample {
    let messages = messages.max(1) as f64;
    let mut sample = peaks(took);
    let rate = messages / took.answer.ns.max(1) as f64 * 1e9;
    sample.insert(Metric::Rate, rate);
    let each = |cost: &crate::pair::Cost| cost.cpu.as_secs_f64() * 1e6 / messages;
    sample.insert(Metric::AgentCpu, each(&took.agent));
    sample.insert(Metric::ClientCpu, each(&took.client));
    sample
}
