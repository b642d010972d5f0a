//! The workloads: their tasks, the pairs that run them, and what is measured.

use std::path::Path;

use bench_work::ClientCommand;

use crate::BenchError;
use crate::metric::{Metric, Sample};
use crate::pair::{PeerPair, TaskCost, measure_start, memory_at_rest};
use crate::peers::{PeerId, Peers};

/// The text length for a line of 208 bytes, including the line feed, if there is no message id. Our agent and the floor
/// send an id, and thus more bytes.
pub(crate) const TEXT_BYTES: usize = 51;

/// The text length of a token, in bytes, for the workloads about memory, in which clients store a million tokens.
const TOKEN_BYTES: usize = 16;

/// The implementations of the agent and of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub(crate) struct PeerIds {
    pub(crate) agent: PeerId,
    pub(crate) client: PeerId,
}

impl PeerIds {
    /// Returns the pair with our programs replaced by those of the earlier build. `None` if a program uses another SDK,
    /// or if neither is ours.
    pub(crate) fn earlier_build(self) -> Option<Self> {
        use PeerId::{Python, Rust, RustHttp, RustWebSocket, StdioToWs, TypeScript};
        let is_others = |who| {
            matches!(
                who,
                Rust | RustWebSocket | RustHttp | TypeScript | StdioToWs | Python
            )
        };
        if is_others(self.agent) || is_others(self.client) {
            return None;
        }
        let before = Self {
            agent: self.agent.earlier_build().unwrap_or(self.agent),
            client: self.client.earlier_build().unwrap_or(self.client),
        };
        (before != self).then_some(before)
    }

    pub(crate) fn name(self) -> String {
        if self.agent == self.client {
            self.agent.name().to_owned()
        } else {
            format!(
                "{} agent, {} client",
                self.agent.adjective(),
                self.client.adjective()
            )
        }
    }
}

/// The work of a workload.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BenchWork {
    /// One turn that streams for about a second.
    Stream,
    /// One turn that streams at a given number of chunks per second, for two seconds.
    Pace(u64),
    /// A number of sessions that all stream a number of chunks at the same time.
    Sessions { sessions: usize, messages: u64 },
    /// Empty requests, one after another.
    Empty,
    /// Permission requests, one after another.
    Permission,
    /// A client that does not read for a number of milliseconds, while a million chunks are streamed.
    Stall(u64),
    /// A client whose handler takes a number of milliseconds for the first of a million chunks.
    Sleep(u64),
    /// One read of a file of 64 MiB.
    Read,
    /// The load of a session with a number of chunks.
    Load(u64),
    /// The start of a program, up to its response to `initialize`.
    Start,
    /// An idle agent with one open session.
    Idle,
    /// An agent with this many idle connections.
    Connections(usize),
}

/// A workload: its id and title, where it runs, and the pairs that run it.
pub(crate) struct BenchRow {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// Whether all processes run on one processor.
    pub(crate) pinned: bool,
    pub(crate) work: BenchWork,
    pub(crate) pairs: Vec<PeerIds>,
    /// The maximum number of repetitions, because some workloads take a long time.
    pub(crate) repeat: usize,
}

/// The size of the file to read, in bytes.
pub(crate) const FILE_BYTES: u64 = 64 * 1024 * 1024;

const fn peer_ids(agent: PeerId, client: PeerId) -> PeerIds {
    PeerIds { agent, client }
}

const fn same_peer(who: PeerId) -> PeerIds {
    peer_ids(who, who)
}

pub(crate) fn rows() -> Vec<BenchRow> {
    use PeerId::{
        AcpAgent, Connected, Floor, FloorEach, FloorWebSocket, Least, Ours, OursHttp,
        OursWebSocket, Python, Raw, Rust, RustHttp, RustWebSocket, Served, StdioToWs, Traced,
        TypeScript,
    };
    let all = [
        same_peer(Ours),
        same_peer(Rust),
        same_peer(TypeScript),
        peer_ids(Python, Ours),
        same_peer(Floor),
    ];
    let mixed = [
        peer_ids(Ours, Rust),
        peer_ids(Rust, Ours),
        peer_ids(Ours, TypeScript),
        peer_ids(TypeScript, Ours),
        peer_ids(FloorEach, Floor),
        same_peer(Raw),
    ];
    let everyone = all.into_iter().chain(mixed).collect::<Vec<_>>();
    let symmetric = vec![
        same_peer(Ours),
        same_peer(Rust),
        same_peer(TypeScript),
        same_peer(Floor),
    ];
    let row = |id, title, pinned, work, pairs: &[PeerIds]| BenchRow {
        id,
        title,
        pinned,
        work,
        pairs: pairs.to_vec(),
        repeat: usize::MAX,
    };
    let seldom = |row: BenchRow| BenchRow { repeat: 2, ..row };
    let thousand = BenchWork::Sessions {
        sessions: 1000,
        messages: 200,
    };
    let ten_thousand = BenchWork::Sessions {
        sessions: 10_000,
        messages: 100,
    };
    let agents = [Ours, Rust, TypeScript, Python];
    let stalled: Vec<PeerIds> = agents.map(|who| peer_ids(who, Floor)).to_vec();
    let clients = [Ours, Rust, TypeScript];
    let slow: Vec<PeerIds> = clients.map(|who| peer_ids(Ours, who)).to_vec();
    let started = [Least, Floor, Ours, AcpAgent, Rust, TypeScript, Python].map(same_peer);
    let traced = [same_peer(Ours), peer_ids(Traced, Ours)];
    let remote = [
        Ours,
        OursWebSocket,
        OursHttp,
        RustWebSocket,
        RustHttp,
        FloorWebSocket,
    ]
    .map(same_peer);
    let asked_remotely: Vec<PeerIds> = remote
        .into_iter()
        .chain([peer_ids(OursWebSocket, Connected)])
        .collect();
    let served = [OursWebSocket, Served, StdioToWs].map(|who| peer_ids(who, OursWebSocket));
    let servers = [OursWebSocket, Served, RustWebSocket, StdioToWs];
    let stalled_remotely = servers.map(|who| peer_ids(who, FloorWebSocket));
    let connected = [OursWebSocket, RustWebSocket].map(|who| peer_ids(who, OursWebSocket));
    let resting = [Ours, AcpAgent, Rust, TypeScript, Python].map(same_peer);
    vec![
        row(
            "stream-pinned",
            "Streaming, one core",
            true,
            BenchWork::Stream,
            &everyone,
        ),
        row(
            "stream",
            "Streaming, two cores",
            false,
            BenchWork::Stream,
            &everyone,
        ),
        row(
            "empty-pinned",
            "Request and response, one core",
            true,
            BenchWork::Empty,
            &all,
        ),
        row(
            "empty",
            "Request and response, two cores",
            false,
            BenchWork::Empty,
            &all,
        ),
        row(
            "ask-pinned",
            "Permission inside a turn, one core",
            true,
            BenchWork::Permission,
            &all,
        ),
        row(
            "ask",
            "Permission inside a turn, two cores",
            false,
            BenchWork::Permission,
            &all,
        ),
        seldom(row(
            "stall",
            "The agent streams a million chunks while the client reads nothing for 5 s",
            false,
            BenchWork::Stall(5000),
            &stalled,
        )),
        seldom(row(
            "sleep",
            "The agent streams a million chunks while the client's handler takes 5 s",
            false,
            BenchWork::Sleep(5000),
            &slow,
        )),
        row(
            "read-pinned",
            "A 64 MiB file through `fs/read_text_file`, one core",
            true,
            BenchWork::Read,
            &symmetric,
        ),
        row(
            "read",
            "A 64 MiB file through `fs/read_text_file`, two cores",
            false,
            BenchWork::Read,
            &symmetric,
        ),
        row(
            "load-pinned",
            "Replay of 100,000 chunks, one core",
            true,
            BenchWork::Load(100_000),
            &symmetric,
        ),
        row(
            "load",
            "Replay of 100,000 chunks, two cores",
            false,
            BenchWork::Load(100_000),
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
            "Streaming, with and without `acp trace`, two cores",
            false,
            BenchWork::Stream,
            &traced,
        ),
        row(
            "trace-paced",
            "Streaming 50,000 messages/s, with and without `acp trace`, two cores",
            false,
            BenchWork::Pace(50_000),
            &traced,
        ),
        row(
            "trace",
            "Request and response, with and without `acp trace`, two cores",
            false,
            BenchWork::Empty,
            &traced,
        ),
        row(
            "start",
            "From process start to the response to `initialize`, one core",
            true,
            BenchWork::Start,
            &started,
        ),
        row(
            "rest",
            "An idle agent with one open session",
            false,
            BenchWork::Idle,
            &resting,
        ),
        row(
            "remote-stream-pinned",
            "Streaming over the network, one core",
            true,
            BenchWork::Stream,
            &remote,
        ),
        row(
            "remote-stream",
            "Streaming over the network, two cores",
            false,
            BenchWork::Stream,
            &remote,
        ),
        row(
            "remote-empty-pinned",
            "Request and response over the network, one core",
            true,
            BenchWork::Empty,
            &asked_remotely,
        ),
        row(
            "remote-empty",
            "Request and response over the network, two cores",
            false,
            BenchWork::Empty,
            &asked_remotely,
        ),
        row(
            "serve-stream",
            "Streaming from an agent behind a server, two cores",
            false,
            BenchWork::Stream,
            &served,
        ),
        seldom(row(
            "remote-stall",
            "A million chunks over the network while the client reads nothing for 5 s",
            false,
            BenchWork::Stall(5000),
            &stalled_remotely,
        )),
        row(
            "remote-idle",
            "1,000 idle connections",
            false,
            BenchWork::Connections(1000),
            &connected,
        ),
    ]
}

/// The programs and directories with which workloads run.
pub(crate) struct RowSetting<'a> {
    pub(crate) peers: &'a Peers,
    pub(crate) processor: usize,
    /// Whether to test only that everything runs.
    pub(crate) quick: bool,
    pub(crate) file: &'a Path,
}

impl RowSetting<'_> {
    fn scale(&self, count: u64) -> u64 {
        if self.quick {
            count.div_ceil(100)
        } else {
            count
        }
    }

    fn processor_for(&self, pinned: bool) -> Option<usize> {
        pinned.then_some(self.processor)
    }

    /// Starts two programs. Fails if one of them is not available.
    pub(crate) fn start_pair(&self, who: PeerIds, pinned: bool) -> Result<PeerPair, BenchError> {
        let (agent, client) = (self.peers.agent(who.agent), self.peers.client(who.client));
        match (agent, client) {
            (Some(agent), Some(client)) => {
                PeerPair::start(agent, client, self.processor_for(pinned))
            }
            _ => Err("the program is not available".into()),
        }
    }

    /// Runs a workload once.
    pub(crate) fn run(&self, row: &BenchRow, who: PeerIds) -> Result<Sample, BenchError> {
        let start = || self.start_pair(who, row.pinned);
        match row.work {
            BenchWork::Stream => {
                let mut pair = start()?;
                let messages = self.calibrate_message_count(&mut pair, TEXT_BYTES)?;
                let took = pair.run_command(&stream_command(messages, TEXT_BYTES))?;
                Ok(with_trace_cpu(rate_sample(&took, messages), who))
            }
            BenchWork::Pace(rate) => {
                let mut pair = start()?;
                let paced = |messages| ClientCommand::Stream {
                    messages,
                    bytes: TEXT_BYTES,
                    sleep_ms: None,
                    stall_ms: None,
                    rate: Some(rate),
                };
                pair.run_command(&paced(self.scale(rate / 5)))?;
                let messages = self.scale(rate * 2);
                let took = pair.run_command(&paced(messages))?;
                Ok(with_trace_cpu(rate_sample(&took, messages), who))
            }
            BenchWork::Sessions { sessions, messages } => {
                self.measure_sessions(&mut start()?, who, sessions, messages)
            }
            BenchWork::Empty => {
                let command = |requests| ClientCommand::Empty { requests };
                let sample = self.measure_requests(&mut start()?, command)?;
                Ok(with_trace_cpu(sample, who))
            }
            BenchWork::Permission => {
                let command = |requests| ClientCommand::Ask { requests };
                self.measure_requests(&mut start()?, command)
            }
            BenchWork::Stall(ms) => self.measure_stalled(&mut start()?, None, Some(ms)),
            BenchWork::Sleep(ms) => self.measure_stalled(&mut start()?, Some(ms), None),
            BenchWork::Read => self.measure_read(&mut start()?),
            BenchWork::Load(messages) => {
                let mut pair = start()?;
                pair.run_command(&load_command(self.scale(1000)))?;
                let messages = self.scale(messages);
                let took = pair.run_command(&load_command(messages))?;
                Ok(rate_sample(&took, messages))
            }
            BenchWork::Start => self.measure_start(who, row.pinned),
            BenchWork::Connections(connections) => {
                self.measure_connections(&mut start()?, connections)
            }
            BenchWork::Idle => {
                let program = self
                    .peers
                    .agent(who.agent)
                    .ok_or("the program is not available")?;
                let memory = to_megabytes(memory_at_rest(program)?.now);
                Ok(Sample::from([(Metric::AgentRest, memory)]))
            }
        }
    }

    /// Measures how long a program takes to start: the median of several starts.
    fn measure_start(&self, who: PeerIds, pinned: bool) -> Result<Sample, BenchError> {
        let program = self
            .peers
            .agent(who.agent)
            .ok_or("the program is not available")?;
        let mut times = Vec::new();
        for _ in 0..self.scale(30) {
            times.push(measure_start(program, self.processor_for(pinned))?);
        }
        times.sort_unstable();
        let median = times
            .get(times.len() / 2)
            .ok_or("the program was not started")?;
        Ok(Sample::from([(Metric::Start, median.as_secs_f64() * 1e3)]))
    }

    /// Finds out how many chunks take about a second. This warms up agent and client.
    pub(crate) fn calibrate_message_count(
        &self,
        pair: &mut PeerPair,
        bytes: usize,
    ) -> Result<u64, BenchError> {
        let mut messages = self.scale(2000);
        for time in [0.3, 1.0] {
            let took = pair.run_command(&stream_command(messages, bytes))?;
            #[allow(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss
            )]
            if !self.quick {
                let rate = messages as f64 / took.report.ns.max(1) as f64 * 1e9;
                messages = (rate * time) as u64;
            }
            messages = messages.clamp(2, 2_000_000);
        }
        Ok(messages)
    }

    fn measure_requests(
        &self,
        pair: &mut PeerPair,
        command: impl Fn(u64) -> ClientCommand,
    ) -> Result<Sample, BenchError> {
        let requests = self.scale(3000);
        pair.run_command(&command(requests))?;
        let took = pair.run_command(&command(requests))?;
        let mut sample = rate_sample(&took, requests);
        let mut each = took.report.each_ns;
        each.sort_unstable();
        let mut quantile = |metric, of: usize| {
            let at = (each.len() * of / 100).min(each.len().saturating_sub(1));
            if let Some(&ns) = each.get(at) {
                sample.insert(metric, to_micros(ns));
            }
        };
        quantile(Metric::P50, 50);
        quantile(Metric::P99, 99);
        sample.remove(&Metric::Rate);
        Ok(sample)
    }

    fn measure_stalled(
        &self,
        pair: &mut PeerPair,
        sleep_ms: Option<u64>,
        stall_ms: Option<u64>,
    ) -> Result<Sample, BenchError> {
        let shorter = |ms: u64| if self.quick { ms / 50 } else { ms };
        let open = pair.run_command(&ClientCommand::Open { sessions: 1 })?;
        let took = pair.run_command(&ClientCommand::Stream {
            messages: self.scale(1_000_000),
            bytes: TOKEN_BYTES,
            sleep_ms: sleep_ms.map(shorter),
            stall_ms: stall_ms.map(shorter),
            rate: None,
        })?;
        let mut sample = peak_sample(&took);
        if pair.is_remote() {
            let growth = took.agent.memory.peak.saturating_sub(open.agent.memory.now);
            sample.insert(Metric::ServerGrowth, to_megabytes(growth));
        }
        Ok(sample)
    }

    fn measure_read(&self, pair: &mut PeerPair) -> Result<Sample, BenchError> {
        let bytes = self.file.metadata()?.len();
        let took = pair.run_command(&ClientCommand::Read {
            path: self.file.to_string_lossy().into_owned(),
            bytes,
        })?;
        let mut sample = peak_sample(&took);
        let rate = bytes as f64 / took.report.ns.max(1) as f64 * 1e3;
        sample.insert(Metric::Throughput, rate);
        Ok(sample)
    }

    fn measure_connections(
        &self,
        pair: &mut PeerPair,
        connections: usize,
    ) -> Result<Sample, BenchError> {
        let connections = usize::try_from(self.scale(connections as u64))?;
        // So that what a server takes that has seen a few connections is not counted as the connections'.
        let before = pair.run_command(&ClientCommand::Connect { connections: 10 })?;
        let after = pair.run_command(&ClientCommand::Connect { connections })?;
        let (before, after) = (before.agent.memory.now, after.agent.memory.now);
        let each = after.saturating_sub(before) as f64 / 1e3 / connections as f64;
        Ok(Sample::from([(Metric::ServerConnection, each)]))
    }

    fn measure_sessions(
        &self,
        pair: &mut PeerPair,
        who: PeerIds,
        sessions: usize,
        messages: u64,
    ) -> Result<Sample, BenchError> {
        let sessions = usize::try_from(self.scale(sessions as u64))?;
        // Open one session first, so that what the first session takes is not attributed to the others.
        pair.run_command(&ClientCommand::Open { sessions: 1 })?;
        let before = pair.run_command(&stream_command(10, TEXT_BYTES))?;
        let open = pair.run_command(&ClientCommand::Open { sessions })?;
        let took = pair.run_command(&stream_command(messages, TEXT_BYTES))?;
        let mut sample = rate_sample(&took, messages * sessions as u64);
        let grown =
            |after: u64, before: u64| after.saturating_sub(before) as f64 / 1e3 / sessions as f64;
        let (agent, client) = (before.agent.memory, before.client.memory);
        let agent = grown(open.agent.memory.now, agent.now);
        let client = grown(open.client.memory.now, client.now);
        sample.insert(Metric::AgentSession, agent);
        // The floor stores only ids.
        if who.client != PeerId::Floor {
            sample.insert(Metric::ClientSession, client);
        }
        Ok(sample)
    }
}

pub(crate) fn stream_command(messages: u64, bytes: usize) -> ClientCommand {
    ClientCommand::Stream {
        messages,
        bytes,
        sleep_ms: None,
        stall_ms: None,
        rate: None,
    }
}

pub(crate) fn load_command(messages: u64) -> ClientCommand {
    let bytes = TEXT_BYTES;
    ClientCommand::Load { messages, bytes }
}

fn to_micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}

fn to_megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn peak_sample(took: &TaskCost) -> Sample {
    Sample::from([
        (Metric::AgentPeak, to_megabytes(took.agent.memory.peak)),
        (Metric::ClientPeak, to_megabytes(took.client.memory.peak)),
    ])
}

/// Attributes the agent's CPU time to `acp trace` if that runs in the agent's place. The agent itself is not measured.
fn with_trace_cpu(mut sample: Sample, who: PeerIds) -> Sample {
    if who.agent == PeerId::Traced
        && let Some(cpu) = sample.remove(&Metric::AgentCpu)
    {
        sample.insert(Metric::TraceCpu, cpu);
    }
    sample
}

fn rate_sample(took: &TaskCost, messages: u64) -> Sample {
    let messages = messages.max(1) as f64;
    let mut sample = peak_sample(took);
    let rate = messages / took.report.ns.max(1) as f64 * 1e9;
    sample.insert(Metric::Rate, rate);
    let each = |cost: &crate::pair::ProcessCost| cost.cpu.as_secs_f64() * 1e6 / messages;
    sample.insert(Metric::AgentCpu, each(&took.agent));
    sample.insert(Metric::ClientCpu, each(&took.client));
    sample
}
