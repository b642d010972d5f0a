//! Runs a connected agent and client, and measures the resources that a workload takes.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, ChildStdin, ChildStdout, Command as Process, Stdio};
use std::time::{Duration, Instant};

use bench_work::{ClientCommand, ClientReport};

use crate::BenchError;
use crate::machine::{self, ProcessMemory};
use crate::peers::PeerProgram;

/// The maximum time for one workload.
const TIMEOUT: Duration = Duration::from_secs(180);

/// The time that a program has to exit when it is no longer needed. After that, it is killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// A guard for a child process, which kills the process when it is dropped.
struct ChildGuard(Child);

impl ChildGuard {
    fn start(mut command: Process) -> io::Result<Self> {
        command.spawn().map(Self)
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        let start = Instant::now();
        while !self.has_ended() {
            if start.elapsed() > EXIT_TIMEOUT {
                let _ = self.0.kill();
                let _ = self.0.wait();
                return;
            }
            // Waiting for a child process has no time limit, so poll.
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A connected agent and client. The fields are dropped in order: the client exits without the socket, and the agent
/// exits without the client.
pub(crate) struct PeerPair {
    reports: BufReader<UnixStream>,
    client: ChildGuard,
    agent: ChildGuard,
    _directory: tempfile::TempDir,
}

/// The resources that a workload took.
#[derive(Debug, Clone)]
pub(crate) struct TaskCost {
    pub(crate) report: ClientReport,
    pub(crate) agent: ProcessCost,
    pub(crate) client: ProcessCost,
}

/// The resources that the agent's or the client's process took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessCost {
    pub(crate) cpu: Duration,
    pub(crate) memory: ProcessMemory,
}

impl PeerPair {
    /// Starts an agent and a client, on the given processor if there is one, and waits until they are connected.
    pub(crate) fn start(
        agent: &PeerProgram,
        client: &PeerProgram,
        processor: Option<usize>,
    ) -> Result<Self, BenchError> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        let (agent_reads, client_writes) = io::pipe()?;
        let (client_reads, agent_writes) = io::pipe()?;
        let mut agent = agent.command();
        agent.stdin(agent_reads).stdout(agent_writes);
        let mut client = client.command();
        client.arg(&path).stdin(client_reads).stdout(client_writes);
        let (mut agent, mut client) = machine::run_on(processor, || {
            Ok((ChildGuard::start(agent)?, ChildGuard::start(client)?))
        })?;
        let start = Instant::now();
        let socket = loop {
            match listener.accept() {
                Ok((socket, _)) => break socket,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
            if agent.has_ended() || client.has_ended() || start.elapsed() > TIMEOUT {
                return Err("the agent and the client did not connect in time".into());
            }
            // Wait for the client, or for the end of either process, whichever comes first.
            std::thread::sleep(Duration::from_millis(1));
        };
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        let mut pair = Self {
            reports: BufReader::new(socket),
            client,
            agent,
            _directory: directory,
        };
        if pair.read_report()?.ready {
            Ok(pair)
        } else {
            Err("the client is not ready".into())
        }
    }

    /// Sends a command to the client, and measures what the work takes.
    pub(crate) fn run_command(&mut self, command: &ClientCommand) -> Result<TaskCost, BenchError> {
        let (agent, client) = (self.agent.0.id(), self.client.0.id());
        machine::reset_peak_memory(agent)?;
        machine::reset_peak_memory(client)?;
        let before = [machine::cpu_time(agent)?, machine::cpu_time(client)?];
        let mut line = serde_json::to_vec(command)?;
        line.push(b'\n');
        self.reports.get_mut().write_all(&line)?;
        let answer = self.read_report()?;
        let [agent_before, client_before] = before;
        Ok(TaskCost {
            report: answer,
            agent: measure_cost(agent, agent_before)?,
            client: measure_cost(client, client_before)?,
        })
    }

    fn read_report(&mut self) -> Result<ClientReport, BenchError> {
        let mut line = String::new();
        if self.reports.read_line(&mut line)? == 0 {
            return Err("the client has ended".into());
        }
        let answer: ClientReport = serde_json::from_str(&line)?;
        match answer.error {
            Some(error) => Err(error.into()),
            None => Ok(answer),
        }
    }
}

fn measure_cost(process: u32, before: Duration) -> io::Result<ProcessCost> {
    Ok(ProcessCost {
        cpu: machine::cpu_time(process)?.saturating_sub(before),
        memory: machine::process_memory(process)?,
    })
}

/// An agent process whose client is this program.
struct TalkingProcess {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    child: ChildGuard,
}

impl TalkingProcess {
    fn start(program: &PeerProgram) -> io::Result<Self> {
        let mut command = program.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut running = ChildGuard::start(command)?;
        let pipes = running.0.stdin.take().zip(running.0.stdout.take());
        let (input, output) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self {
            input,
            output: BufReader::new(output),
            child: running,
        })
    }

    /// Sends a request, and reads up to the response, which is the first line that contains `answer`.
    fn send_request(&mut self, request: &str, answer: &str) -> io::Result<()> {
        self.input.write_all(request.as_bytes())?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line)? == 0 {
                return Err(io::Error::other("the agent ended without a response"));
            }
            if line.contains(answer) {
                return Ok(());
            }
            if line.contains("\"error\"") {
                return Err(io::Error::other(line));
            }
        }
    }

    fn initialize(&mut self) -> io::Result<()> {
        let request = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\
            \"protocolVersion\":1,\"clientCapabilities\":{\"fs\":{\"readTextFile\":true,\"writeTextFile\":true}}}}\n";
        self.send_request(request, "\"protocolVersion\"")
    }
}

/// Starts a program and waits for its response to `initialize`. Returns how long that took.
pub(crate) fn measure_start(
    program: &PeerProgram,
    processor: Option<usize>,
) -> Result<Duration, BenchError> {
    let (took, ended) = machine::run_on(processor, || {
        let start = Instant::now();
        let mut talking = TalkingProcess::start(program)?;
        talking.initialize()?;
        Ok((start.elapsed(), talking))
    })?;
    // The end of the process is not measured.
    drop(ended);
    Ok(took)
}

/// Measures the memory of a program that has an open session and is idle.
pub(crate) fn memory_at_rest(program: &PeerProgram) -> Result<ProcessMemory, BenchError> {
    let mut talking = TalkingProcess::start(program)?;
    talking.initialize()?;
    let request = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/new\",\"params\":{\
        \"cwd\":\"/\",\"mcpServers\":[]}}\n";
    talking.send_request(request, "\"sessionId\"")?;
    Ok(machine::process_memory(talking.child.0.id())?)
}
