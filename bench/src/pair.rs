//! Runs an agent and a client that are connected by pipes or over the network, and measures the resources that a workload
//! takes.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, ChildStdin, ChildStdout, Command as Process, Stdio};
use std::time::{Duration, Instant};

use bench_work::{ClientCommand, ClientReport};
use rustix::process::{Pid, Signal, kill_process};

use crate::BenchError;
use crate::machine::{self, ProcessMemory};
use crate::peers::{PeerLink, PeerProgram};

/// The maximum time for one workload.
const TIMEOUT: Duration = Duration::from_secs(180);

/// The time that a program has to exit when it is no longer needed. After that, it is killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// A guard for a child process, which kills the process when it is dropped.
struct ChildGuard {
    child: Child,
    /// Whether the process ends only when it is told to.
    is_server: bool,
}

impl ChildGuard {
    fn start(mut command: Process) -> io::Result<Self> {
        Ok(Self {
            child: command.spawn()?,
            is_server: false,
        })
    }

    /// Starts a server, and waits until it accepts connections.
    fn start_server(command: Process, port: u16) -> io::Result<Self> {
        let mut server = Self::start(command)?;
        server.is_server = true;
        let start = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if server.has_ended() || start.elapsed() > EXIT_TIMEOUT {
                return Err(io::Error::other("the server does not accept connections"));
            }
            // What another program does at a port cannot be waited for: this looks.
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(server)
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        if self.is_server {
            // Fails if it has ended by itself.
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        }
        let start = Instant::now();
        while !self.has_ended() {
            if start.elapsed() > EXIT_TIMEOUT {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            // Waiting for a child process has no time limit, so poll.
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A connected agent and client. The fields are dropped in order: the client exits without the socket, and everything
/// else exits without the client.
pub(crate) struct PeerPair {
    reports: BufReader<UnixStream>,
    client: ChildGuard,
    /// The program between a client on pipes and an agent on the network.
    _connector: Option<ChildGuard>,
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
        let mut client_command = client.command();
        client_command.arg(&path);
        let started = machine::run_on(processor, || match agent.link {
            PeerLink::Pipe => start_piped(agent.command(), client_command),
            link => start_remote(agent, client, client_command, link),
        });
        let StartedPair {
            mut agent,
            connector,
            mut client,
        } = started?;
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
            _connector: connector,
            agent,
            _directory: directory,
        };
        if pair.read_report()?.ready {
            Ok(pair)
        } else {
            Err("the client is not ready".into())
        }
    }

    /// Returns `true` if the agent is served over the network.
    pub(crate) fn is_remote(&self) -> bool {
        self.agent.is_server
    }

    /// Sends a command to the client, and measures what the work takes.
    pub(crate) fn run_command(&mut self, command: &ClientCommand) -> Result<TaskCost, BenchError> {
        let (agent, client) = (self.agent.child.id(), self.client.child.id());
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

/// The processes of a pair.
struct StartedPair {
    agent: ChildGuard,
    connector: Option<ChildGuard>,
    client: ChildGuard,
}

/// Starts two programs and connects them by pipes.
fn start_piped(mut agent: Process, mut client: Process) -> io::Result<StartedPair> {
    let (agent_reads, client_writes) = io::pipe()?;
    let (client_reads, agent_writes) = io::pipe()?;
    agent.stdin(agent_reads).stdout(agent_writes);
    client.stdin(client_reads).stdout(client_writes);
    Ok(StartedPair {
        agent: ChildGuard::start(agent)?,
        connector: None,
        client: ChildGuard::start(client)?,
    })
}

/// Starts an agent that is served over the network, and a client of it.
fn start_remote(
    agent: &PeerProgram,
    client: &PeerProgram,
    mut client_command: Process,
    link: PeerLink,
) -> io::Result<StartedPair> {
    // Nothing else uses the port, as long as the system gives others to those who ask for any.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port();
    let scheme = match link {
        PeerLink::Http => "http",
        PeerLink::Pipe | PeerLink::WebSocket => "ws",
    };
    let url = format!("{scheme}://127.0.0.1:{port}/acp");
    let mut agent = agent.server_command(port);
    agent.stdin(Stdio::null()).stdout(Stdio::null());
    let agent = ChildGuard::start_server(agent, port)?;
    let Some(connector) = &client.connector else {
        client_command.arg(url);
        client_command.stdin(Stdio::null()).stdout(Stdio::null());
        return Ok(StartedPair {
            agent,
            connector: None,
            client: ChildGuard::start(client_command)?,
        });
    };
    let mut connector = connector.command();
    connector.arg(url);
    let pair = start_piped(connector, client_command)?;
    Ok(StartedPair {
        agent,
        connector: Some(pair.agent),
        client: pair.client,
    })
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
        let child = &mut running.child;
        let pipes = child.stdin.take().zip(child.stdout.take());
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
    Ok(machine::process_memory(talking.child.child.id())?)
}
