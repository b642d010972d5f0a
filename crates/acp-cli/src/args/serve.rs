//! Arguments of `acp serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use acp_host::Policy;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{ValueEnum, ValueHint};

use super::agent_choice::EnvArgs;
use super::candidates;
use super::shared::{SandboxArgs, parse_policy};
use super::store_address::StoreChoice;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp serve [OPTIONS] [-- AGENT COMMAND...]",
    after_long_help = EXAMPLES_AND_EXIT_CODES
)]
pub(crate) struct ServeArgs {
    /// Agent to serve, by name.
    ///
    /// List agents with `acp agents`. The default is the bundled agent. Can be repeated: each agent then has the
    /// path /acp/NAME.
    #[arg(long, value_name = "NAME", conflicts_with = "agent_command", add = candidates::agent_names())]
    pub(crate) agent: Vec<String>,

    /// Command that starts the agent, as an alternative to --agent.
    #[arg(last = true, value_name = "AGENT COMMAND")]
    pub(crate) agent_command: Vec<String>,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// Address to listen on.
    ///
    /// With port 0, the system chooses a free port. An address that other machines can reach requires TLS or
    /// --insecure. `unix:PATH` is a Unix-domain socket, which only you can connect to; it needs no token.
    #[arg(
        long,
        value_name = "ADDRESS:PORT|unix:PATH",
        default_value = "127.0.0.1:7180"
    )]
    pub(crate) listen: ListenAddress,

    /// Directory that clients may open, including everything below it.
    ///
    /// Can be repeated. The default is the current directory.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Vec<PathBuf>,

    /// File that contains the token that clients must send.
    ///
    /// If it does not exist, it is created with a random token. Only you may be able to read it. The default is
    /// serve.token in acp's state directory. The token can also be given in the variable ACP_SERVE_TOKEN.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "no_token")]
    pub(crate) token_file: Option<PathBuf>,

    /// File that stores users with tokens of their own.
    ///
    /// Manage it with `acp users`. It is read again when it changes. The default is serve-users.toml in acp's state
    /// directory.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "no_token")]
    pub(crate) users: Option<PathBuf>,

    /// File to which it is appended what clients do: who sent which prompt, and who answered what.
    ///
    /// Each line is a JSON object. What cannot be recorded is not done.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "live")]
    pub(crate) audit_log: Option<PathBuf>,

    /// Allow anyone who can reach the address to use the agent.
    ///
    /// An agent can usually read your files and run commands. Every user and program of this machine can reach
    /// a loopback address.
    #[arg(long)]
    pub(crate) no_token: bool,

    /// PEM file with the TLS certificate and its chain.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// PEM file with the private key for --tls-cert.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Use a self-signed TLS certificate.
    ///
    /// It is created once and stored in acp's state directory. Clients trust it by its fingerprint, which is
    /// printed and is part of the URL.
    #[arg(long, conflicts_with = "tls_cert")]
    pub(crate) tls_self_signed: bool,

    /// Allow listening on an address that other machines can reach, even without TLS or a token.
    ///
    /// Everyone on the network path can then read the token and all messages, and act as the client.
    #[arg(long)]
    pub(crate) insecure: bool,

    /// Host name that clients may use in the URL, in addition to loopback names.
    ///
    /// Other names are rejected, so that a web page cannot reach the agent by changing what its own name
    /// resolves to. An address given with --listen is allowed. Can be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,

    /// Origin from which web pages may connect, such as `https://example.com`.
    ///
    /// Pages from a loopback address of this machine are allowed. Can be repeated.
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) origin: Vec<String>,

    /// Share one process of the agent, and its sessions, among all connections.
    ///
    /// Sessions and their turns go on when a client disconnects. Other clients can join a session by loading or
    /// resuming it. They see everything that happens there, and can answer questions.
    #[arg(long)]
    pub(crate) live: bool,

    /// Seconds until a shared process that is not in use is ended.
    ///
    /// It is in use while a client is connected, a turn is running, or a question is open. It is started again when a
    /// client opens one of its sessions.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, requires = "live")]
    pub(crate) keep: u64,

    /// Where to store the logs of live sessions: a file, a PostgreSQL database, or `none` to store none.
    ///
    /// Stored sessions survive the server. The default is a file in acp's state directory for these agents and
    /// directories. A file is an SQLite database, which is created if it does not exist. With
    /// `postgres://USER@HOST/DATABASE`, servers of several machines share their sessions: a client can connect to any of
    /// them, and if one stops, another continues with its sessions. The bundled agent stores its sessions there, too. The
    /// password is read from the variable ACP_STORE_PASSWORD.
    #[arg(long, value_name = "FILE|URL|none", requires = "live", value_parser = OsStringValueParser::new().try_map(StoreChoice::from_os))]
    pub(crate) store: Option<StoreChoice>,

    /// Seconds after which other servers continue with the sessions of one that has stopped.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, requires = "store", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) lease: u64,

    /// URL at which the other servers of the store reach this one.
    ///
    /// They pass clients on to it whose sessions it owns, with this server's token, so all servers must have the
    /// same one. The default is the address given with --listen.
    #[arg(long, value_name = "URL", requires = "store")]
    pub(crate) advertise: Option<String>,

    /// Maximum number of connections per agent.
    ///
    /// Without --live, each connection starts a process of the agent. Further clients are rejected with status 503.
    #[arg(long, value_name = "COUNT", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max_connections: u32,

    /// Seconds to wait for running turns to finish on shutdown.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) drain_timeout: u64,

    /// Format of the log on stderr.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,

    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,

    /// The policy that implies a read-only sandbox. Only for a local server.
    #[arg(long, hide = true, value_name = "POLICY", value_parser = parse_policy)]
    pub(crate) implied_sandbox: Option<Policy>,

    /// Be a local server, which exits when it is not used. The value stands for its options.
    #[arg(long, hide = true, value_name = "SETTINGS", requires = "live")]
    pub(crate) session_server: Option<String>,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListenAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("unix:") {
            Some("") => Err("the path is missing".to_owned()),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text
                .parse()
                .map(Self::Tcp)
                .map_err(|_| "expected an IP address and a port, or unix:PATH".to_owned()),
        }
    }
}

/// The format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Human-readable lines.
    Text,
    /// One JSON object per line.
    Json,
}

const EXAMPLES_AND_EXIT_CODES: &str = "\
Examples:
  acp serve                                          # the bundled agent, on this machine
  acp serve -- gemini --acp                          # any other agent
  acp serve --agent claude --agent codex             # at /acp/claude and /acp/codex
  acp serve --live                                   # sessions that several clients share
  acp serve --live --store postgres://acp@db/acp     # one of several servers
  acp serve --listen unix:/run/user/1000/agent.sock  # no network, no token
  acp serve --listen 192.0.2.7:7180 --tls-self-signed
  acp serve --cwd /srv/project --sandbox --log info --log-format json

Connect with:
  acp run --url URL \"Why does the build fail?\"
  acp connect URL                                    # in an editor, as the agent's command

SIGTERM and Ctrl-C shut the server down: it accepts no new connections, waits for running
turns, and then closes all connections. A second signal closes them immediately.

Exit codes:
    0  shut down by a signal
    1  the server failed
    2  invalid command line
    3  the agent's program was not found";
