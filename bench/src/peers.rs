//! The measured programs: their paths, and how they are built and installed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::BenchError;

/// The implementation of a measured program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PeerId {
    /// Our agent or client, on this library.
    Ours,
    /// This library, recorded by `acp trace`.
    Traced,
    /// The bundled agent, `acp agent`.
    AcpAgent,
    /// An earlier build of this project.
    Before,
    /// The earlier build, recorded by its own `acp trace`.
    BeforeTraced,
    /// The bundled agent of the earlier build.
    BeforeAcpAgent,
    /// The agent or client on the official Rust SDK.
    Rust,
    /// The agent or client on the official TypeScript SDK.
    TypeScript,
    /// The agent on the Python SDK.
    Python,
    /// The smallest program that can do the work.
    Floor,
    /// The floor, but with one write per message.
    FloorEach,
    /// Programs that send raw bytes, which nobody parses.
    Raw,
    /// The smallest process that responds to `initialize`.
    Least,
    /// This library, over WebSocket.
    OursWebSocket,
    /// This library, over HTTP.
    OursHttp,
    /// Our agent behind `acp serve`, over WebSocket.
    Served,
    /// Our client behind `acp connect`, over WebSocket.
    Connected,
    /// The official Rust SDK, over WebSocket.
    RustWebSocket,
    /// The official Rust SDK, over HTTP.
    RustHttp,
    /// The smallest program that can do the work over WebSocket.
    FloorWebSocket,
    /// Our agent behind `stdio-to-ws`.
    StdioToWs,
}

/// How a program is connected to its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerLink {
    /// By its stdin and stdout.
    Pipe,
    WebSocket,
    /// By HTTP/2, with server-sent events.
    Http,
}

impl PeerId {
    /// Returns the corresponding program of the earlier build, if the program is ours.
    pub(crate) fn earlier_build(self) -> Option<Self> {
        match self {
            Self::Ours => Some(Self::Before),
            Self::Traced => Some(Self::BeforeTraced),
            Self::AcpAgent => Some(Self::BeforeAcpAgent),
            _ => None,
        }
    }

    /// Returns the implementation's name, in the form that precedes "agent" or "client".
    pub(crate) fn adjective(self) -> &'static str {
        match self {
            Self::Ours => "our",
            Self::OursWebSocket => "our WebSocket",
            Self::OursHttp => "our HTTP",
            Self::FloorWebSocket => "WebSocket floor",
            Self::Served => "`acp serve` as",
            Self::StdioToWs => "`stdio-to-ws` as",
            other => other.name(),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Traced => "ours behind `acp trace`",
            Self::AcpAgent => "`acp agent`",
            Self::Before => "before",
            Self::BeforeTraced => "before, behind `acp trace`",
            Self::BeforeAcpAgent => "`acp agent` before",
            Self::Rust => "Rust SDK",
            Self::TypeScript => "TypeScript SDK",
            Self::Python => "Python SDK",
            Self::Floor => "floor",
            Self::FloorEach => "unbuffered floor",
            Self::Raw => "raw bytes, unbuffered",
            Self::Least => "smallest process",
            Self::OursWebSocket => "ours, WebSocket",
            Self::OursHttp => "ours, HTTP",
            Self::Served => "`acp serve`",
            Self::Connected => "`acp connect`",
            Self::RustWebSocket => "Rust SDK, WebSocket",
            Self::RustHttp => "Rust SDK, HTTP",
            Self::FloorWebSocket => "floor, WebSocket",
            Self::StdioToWs => "`stdio-to-ws`",
        }
    }
}

/// A program to measure, with its arguments and environment.
#[derive(Debug, Clone)]
pub(crate) struct PeerProgram {
    pub(crate) program: PathBuf,
    /// In the arguments of an agent that is served over the network, `{port}` stands for its port.
    pub(crate) args: Vec<String>,
    pub(crate) link: PeerLink,
    /// Whether what it writes to stderr is no error.
    pub(crate) is_noisy: bool,
    /// A program between a client on pipes and an agent on the network. The URL is its last argument.
    pub(crate) connector: Option<Box<PeerProgram>>,
}

impl PeerProgram {
    fn new(program: impl Into<PathBuf>, args: &[&str]) -> Self {
        Self {
            program: program.into(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            link: PeerLink::Pipe,
            is_noisy: false,
            connector: None,
        }
    }

    fn over(self, link: PeerLink) -> Self {
        Self { link, ..self }
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args);
        command
    }

    /// Returns the command that serves an agent at a port of this machine.
    pub(crate) fn server_command(&self, port: u16) -> Command {
        let mut command = Command::new(&self.program);
        let port = port.to_string();
        command.args(self.args.iter().map(|arg| arg.replace("{port}", &port)));
        if self.is_noisy {
            command.stderr(Stdio::null());
        }
        command
    }
}

/// The programs that are available to measure.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    agents: BTreeMap<PeerId, PeerProgram>,
    clients: BTreeMap<PeerId, PeerProgram>,
    /// The directory of our own programs.
    directory: PathBuf,
    /// The peers that are not available, each with the reason.
    pub(crate) missing: BTreeMap<PeerId, String>,
}

impl Peers {
    pub(crate) fn agent(&self, who: PeerId) -> Option<&PeerProgram> {
        self.agents.get(&who)
    }

    pub(crate) fn client(&self, who: PeerId) -> Option<&PeerProgram> {
        self.clients.get(&who)
    }

    /// Returns the path of the `acp` command.
    pub(crate) fn acp(&self) -> PathBuf {
        self.directory.join("acp")
    }

    /// Returns the path of the agent with a long conversation, for `acp chat`.
    pub(crate) fn chat_agent(&self) -> PathBuf {
        self.directory.join("bench-chat-agent")
    }

    /// Returns the path of the program that is the floor on a terminal.
    pub(crate) fn echo(&self) -> PathBuf {
        self.directory.join("bench-echo")
    }

    /// Builds our own programs and the floor.
    ///
    /// All programs are built with the profile of this program: `dist` or `release`, or `dev` if `quick`. With `quick`,
    /// the whole workspace is built as it is for the tests, since speed does not matter.
    pub(crate) fn prepare(state: &Path, quick: bool) -> Result<Self, BenchError> {
        let this = std::env::current_exe()?;
        let directory = this
            .parent()
            .ok_or("the path of this program has no parent directory")?;
        let (profile, target) = build_profile(directory, quick)?;
        if quick {
            // One build, which is that of the tests.
            build(target, profile, &["--workspace", "--all-targets"])?;
        }
        let build = |what: &[&str]| match quick {
            true => Ok(()),
            false => build(target, profile, what),
        };
        let mut peers = Self {
            directory: directory.to_owned(),
            ..Self::default()
        };
        build(&["-p", "bench", "--bins"])?;
        build(&["-p", "acp-toolkit"])?;
        let binary = |name: &str| directory.join(name);
        let floor = binary("bench-floor");
        peers.agents.extend([
            (
                PeerId::Ours,
                PeerProgram::new(binary("bench-our-agent"), &[]),
            ),
            (PeerId::AcpAgent, acp_agent_program(binary("acp"), state)?),
            (
                PeerId::Traced,
                traced_agent_program(binary("acp"), state, &binary("bench-our-agent")),
            ),
            (PeerId::Floor, PeerProgram::new(&floor, &["agent"])),
            (
                PeerId::FloorEach,
                PeerProgram::new(&floor, &["--each", "agent"]),
            ),
            (PeerId::Raw, PeerProgram::new(&floor, &["--raw", "agent"])),
            (PeerId::Least, PeerProgram::new(binary("bench-least"), &[])),
        ]);
        peers.clients.extend([
            (
                PeerId::Ours,
                PeerProgram::new(binary("bench-our-client"), &[]),
            ),
            (PeerId::Floor, PeerProgram::new(&floor, &["client"])),
            (PeerId::Raw, PeerProgram::new(&floor, &["--raw", "client"])),
        ]);
        peers.add_remote(directory);
        Ok(peers)
    }

    /// Builds and installs the other implementations, as far as that is possible here. Call this after
    /// [`Self::prepare`].
    pub(crate) fn add_others(&mut self, quick: bool) -> Result<(), BenchError> {
        let directory = self.directory.clone();
        let (profile, target) = build_profile(&directory, quick)?;
        let binary = |name: &str| directory.join(name);
        let official = match quick {
            true => Ok(()),
            false => build(target, profile, &["-p", "bench-official"]),
        };
        match official {
            Ok(()) => {
                let program = PeerProgram::new(binary("bench-official-agent"), &[]);
                self.agents.insert(PeerId::Rust, program);
                let program = PeerProgram::new(binary("bench-official-client"), &[]);
                self.clients.insert(PeerId::Rust, program);
            }
            Err(why) => self.mark_missing(PeerId::Rust, &why),
        }
        match build_official_remote(&target.join("bench/official-remote"), profile, quick) {
            Ok(at) => {
                let agent = PeerProgram::new(at.join("bench-official-remote-agent"), &[ADDRESS]);
                let client = PeerProgram::new(at.join("bench-official-remote-client"), &[]);
                for (who, link) in [
                    (PeerId::RustWebSocket, PeerLink::WebSocket),
                    (PeerId::RustHttp, PeerLink::Http),
                ] {
                    self.agents.insert(who, agent.clone().over(link));
                    self.clients.insert(who, client.clone().over(link));
                }
            }
            Err(why) => {
                self.mark_missing(PeerId::RustWebSocket, &why);
                self.mark_missing(PeerId::RustHttp, &why);
            }
        }
        match install_typescript(&target.join("bench/typescript")) {
            Ok(at) => {
                let relay = stdio_to_ws_program(&at, &binary("bench-our-agent"));
                self.agents.insert(PeerId::StdioToWs, relay);
                let program =
                    |name: &str| PeerProgram::new("node", &[&at.join(name).to_string_lossy()]);
                self.agents.insert(PeerId::TypeScript, program("agent.mjs"));
                self.clients
                    .insert(PeerId::TypeScript, program("client.mjs"));
            }
            Err(why) => {
                self.mark_missing(PeerId::TypeScript, &why);
                self.mark_missing(PeerId::StdioToWs, &why);
            }
        }
        match install_python(&target.join("bench/python")) {
            Ok(program) => {
                self.agents.insert(PeerId::Python, program);
            }
            Err(why) => self.mark_missing(PeerId::Python, &why),
        }
        Ok(())
    }

    /// Adds our programs that are connected by the network, and the floor.
    fn add_remote(&mut self, directory: &Path) {
        let binary = |name: &str| directory.join(name);
        let agent = PeerProgram::new(binary("bench-our-remote-agent"), &[ADDRESS]);
        let client = PeerProgram::new(binary("bench-our-remote-client"), &[]);
        for (who, link) in [
            (PeerId::OursWebSocket, PeerLink::WebSocket),
            (PeerId::OursHttp, PeerLink::Http),
        ] {
            self.agents.insert(who, agent.clone().over(link));
            self.clients.insert(who, client.clone().over(link));
        }
        let floor =
            |args: &[&str]| PeerProgram::new(binary("bench-floor"), args).over(PeerLink::WebSocket);
        let who = PeerId::FloorWebSocket;
        self.agents.insert(who, floor(&["agent", ADDRESS]));
        self.clients.insert(who, floor(&["client"]));
        let served = PeerProgram {
            is_noisy: true,
            ..served_agent_program(binary("acp"), &binary("bench-our-agent"))
        };
        self.agents.insert(PeerId::Served, served);
        let connected = PeerProgram {
            connector: Some(Box::new(PeerProgram::new(binary("acp"), &["connect"]))),
            ..PeerProgram::new(binary("bench-our-client"), &[])
        };
        self.clients.insert(PeerId::Connected, connected);
    }

    /// Adds the programs of an earlier build, which are in `directory`.
    pub(crate) fn add_before(&mut self, directory: &Path, state: &Path) -> Result<(), BenchError> {
        let directory = directory.canonicalize()?;
        let binary = |name: &str| {
            let program = directory.join(name);
            if program.is_file() {
                Ok(program)
            } else {
                Err(format!("{} is missing", program.display()))
            }
        };
        let agent = binary("bench-our-agent")?;
        let traced = traced_agent_program(binary("acp")?, state, &agent);
        self.agents.extend([
            (PeerId::Before, PeerProgram::new(agent, &[])),
            (PeerId::BeforeTraced, traced),
            (
                PeerId::BeforeAcpAgent,
                acp_agent_program(binary("acp")?, state)?,
            ),
        ]);
        let client = PeerProgram::new(binary("bench-our-client")?, &[]);
        self.clients.insert(PeerId::Before, client);
        Ok(())
    }

    fn mark_missing(&mut self, who: PeerId, why: &BenchError) {
        eprintln!("bench: skipping the {}: {why}", who.name());
        self.missing.insert(who, why.to_string());
    }
}

/// Returns the bundled agent as an editor starts it, but with a separate state directory.
fn acp_agent_program(program: PathBuf, state: &Path) -> io::Result<PeerProgram> {
    fs::create_dir_all(state)?;
    let sessions = state.to_string_lossy();
    Ok(PeerProgram::new(
        program,
        &["agent", "--sessions", &sessions],
    ))
}

/// Returns an agent behind `acp trace`, which writes its file next to the bundled agent's state.
fn traced_agent_program(program: PathBuf, state: &Path, agent: &Path) -> PeerProgram {
    let (file, agent) = (state.join("trace"), agent.to_string_lossy());
    let file = file.to_string_lossy();
    PeerProgram::new(program, &["trace", "--force", &file, "--", &agent])
}

/// The address that an agent on the network listens on.
const ADDRESS: &str = "127.0.0.1:{port}";

/// Returns an agent behind `acp serve`.
fn served_agent_program(program: PathBuf, agent: &Path) -> PeerProgram {
    let agent = agent.to_string_lossy();
    let args = ["serve", "--no-token", "--cwd", "/", "--listen", ADDRESS];
    let args: Vec<&str> = args.into_iter().chain(["--", &agent]).collect();
    PeerProgram::new(program, &args).over(PeerLink::WebSocket)
}

/// Returns an agent behind `stdio-to-ws`, which is installed with the TypeScript SDK.
fn stdio_to_ws_program(at: &Path, agent: &Path) -> PeerProgram {
    let program = at.join("node_modules/stdio-to-ws/dist/main.js");
    let (program, agent) = (program.to_string_lossy(), agent.to_string_lossy());
    let agent = format!("'{agent}'");
    let args = [&program, "--quiet", "--port", "{port}", &agent];
    PeerProgram::new("node", &args).over(PeerLink::WebSocket)
}

/// Builds the peer on the official crate for HTTP and WebSocket. It is not a member of the workspace, because it builds
/// a TLS library in C that nothing else here needs. That takes minutes, so `quick` leaves it out.
fn build_official_remote(target: &Path, profile: &str, quick: bool) -> Result<PathBuf, BenchError> {
    if quick {
        return Err("not built with --quick, because that takes minutes".into());
    }
    let manifest = "bench/official-remote/Cargo.toml";
    build(target, profile, &["--manifest-path", manifest])?;
    Ok(target.join(profile))
}

/// Returns the profile of this program, which all programs are built with, and cargo's target directory.
fn build_profile(directory: &Path, quick: bool) -> Result<(&'static str, &Path), BenchError> {
    let profile = match directory.file_name().and_then(OsStr::to_str) {
        Some("dist") => "dist",
        // Nearly as fast, and built in a fraction of the time.
        Some("release") => "release",
        Some("debug") if quick => "dev",
        _ => return Err("measurements require `cargo run --profile dist`, or release".into()),
    };
    let target = directory
        .parent()
        .ok_or("the path of this program has no parent directory")?;
    Ok((profile, target))
}

/// Builds packages of the workspace. The packages of other peers are built separately, so that the features that they
/// enable in shared dependencies do not affect ours.
fn build(target: &Path, profile: &str, what: &[&str]) -> Result<(), BenchError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .current_dir(workspace_root())
        .args(["build", "--profile", profile, "--locked", "--quiet"])
        .arg("--target-dir")
        .arg(target)
        .args(what);
    // Remove the variables that cargo sets for programs that it runs. Some build scripts depend on them, and would run
    // again, with everything that depends on their output, whenever the variables appear or disappear.
    for (name, _) in std::env::vars_os() {
        let of_package = |name: &str| {
            name.starts_with("CARGO_PKG_")
                || name.starts_with("CARGO_MANIFEST_")
                || matches!(
                    name,
                    "CARGO_BIN_NAME" | "CARGO_CRATE_NAME" | "CARGO_PRIMARY_PACKAGE"
                )
        };
        if name.to_str().is_some_and(of_package) {
            command.env_remove(name);
        }
    }
    run(&mut command)
}

/// Returns the root directory of the workspace.
fn workspace_root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

fn install_typescript(to: &Path) -> Result<PathBuf, BenchError> {
    run(Command::new("node").arg("--version"))?;
    let lock = "package-lock.json";
    let files = ["package.json", lock, "agent.mjs", "client.mjs"];
    install_once("typescript", &files, to, |to| {
        let mut npm = Command::new("npm");
        npm.current_dir(to)
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .args(["--prefer-offline", "--fetch-retries=1"]);
        run(&mut npm)
    })?;
    Ok(to.to_owned())
}

fn install_python(to: &Path) -> Result<PeerProgram, BenchError> {
    let python = to.join("venv/bin/python");
    install_once("python", &["requirements.txt", "agent.py"], to, |to| {
        run(Command::new("python3")
            .args(["-m", "venv"])
            .arg(to.join("venv")))?;
        let mut pip = Command::new(&python);
        pip.current_dir(to)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
            ])
            .args(["-r", "requirements.txt"]);
        run(&mut pip)
    })?;
    let agent = to.join("agent.py").to_string_lossy().into_owned();
    Ok(PeerProgram::new(python, &[&agent]))
}

/// Copies a peer's sources out of the source tree, in which nothing must be installed, and installs their dependencies.
/// Does nothing if that has been done.
fn install_once(
    from: &str,
    files: &[&str],
    to: &Path,
    install: impl FnOnce(&Path) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(from);
    fs::create_dir_all(to)?;
    let mut wanted = Vec::new();
    for file in files {
        let content = fs::read(from.join(file))?;
        fs::write(to.join(file), &content)?;
        if !file.starts_with("agent") && !file.starts_with("client") {
            wanted.extend(content);
        }
    }
    // The mark is written at the end, so that an interrupted installation is repeated.
    let mark = to.join(".installed");
    if !fs::read(&mark).is_ok_and(|installed| installed == wanted) {
        install(to)?;
        fs::write(mark, wanted)?;
    }
    Ok(())
}

/// Runs a program until it exits. If it fails, the error contains its output.
fn run(command: &mut Command) -> Result<(), BenchError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("cannot start {name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let tail: Vec<&str> = said.lines().rev().take(5).collect();
    let tail = tail.into_iter().rev().collect::<Vec<_>>().join("\n");
    Err(format!("{name} failed ({}): {tail}", output.status).into())
}
