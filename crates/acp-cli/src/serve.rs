//! `acp serve`: serves agents over the network.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use acp_config::{AgentEnvironment, AgentSelector, paths};
use acp_host::AgentCommand;
use acp_remote::Token;
use acp_remote::server::{
    AllowedHosts, AllowedOrigins, ServerConfig, ServerLimits, TlsConfig, TlsIdentity, UserTokens,
};
use acp_server::users::{AuditLog, Users};
use acp_server::{
    AgentServer, AllowedRoots, DrainOptions, NodeOptions, SecretFileError, ServedAgent,
    self_signed_identity, token_from_file,
};
use futures_util::future::{BoxFuture, join_all};
use tokio::net::TcpListener;

use crate::args::serve::{ListenAddress, LogFormat, ServeArgs};
use crate::args::shared::absolute_directory;
use crate::args::store_address::StoreAddress;
use crate::confinement::Confinement;
use crate::exit::CommandExit;
use crate::live::LiveTarget;
#[cfg(unix)]
use crate::live::unix_server::{self, BoundSocket};
use crate::signals::Signals;
use crate::start::{StartTarget, bundled_environment_arguments};
use crate::this_program::this_program;
use crate::{config, store, terminal_user};

/// The name of the token file in the state directory.
const TOKEN_FILE: &str = "serve.token";

/// The variable that contains the token, for containers. Its name makes sure that agents do not get it.
const TOKEN_VARIABLE: &str = "ACP_SERVE_TOKEN";

/// The name of the file in the state directory that stores the self-signed certificate and its key.
const CERTIFICATE_FILE: &str = "serve-certificate.pem";

/// Settings for recording a trace of each connection.
pub(crate) struct RecordedConnections {
    /// The absolute path of the directory in which to store the traces.
    pub(crate) directory: PathBuf,
    /// Whether the traces contain secrets.
    pub(crate) secrets: bool,
}

impl RecordedConnections {
    /// Returns a command that starts the recorder in place of the agent.
    fn recorder(&self, agent: AgentCommand) -> Result<AgentCommand, CommandExit> {
        let mut args: Vec<OsString> = vec!["trace".into(), self.directory.clone().into()];
        if self.secrets {
            args.push("--secrets".into());
        }
        args.extend(["--".into(), agent.program]);
        args.extend(agent.args);
        let mut recorder = AgentCommand::new(this_program()?).args(args);
        recorder.environment = agent.environment;
        recorder.env = agent.env;
        recorder.cwd = agent.cwd;
        recorder.sandbox = agent.sandbox;
        Ok(recorder)
    }
}

/// Serves agents. With `recorded`, records a trace of each connection.
pub(crate) async fn serve(args: ServeArgs, recorded: Option<RecordedConnections>) -> CommandExit {
    match run_server(&args, recorded.as_ref()).await {
        Ok(()) => CommandExit::SUCCESS,
        Err(exit) => exit,
    }
}

async fn run_server(
    args: &ServeArgs,
    recorded: Option<&RecordedConnections>,
) -> Result<(), CommandExit> {
    let mut signals = Signals::listen()
        .map_err(|e| CommandExit::failed(format!("cannot listen for signals: {e}")))?;
    let address = match &args.listen {
        ListenAddress::Tcp(address) => *address,
        ListenAddress::Unix(path) => return run_unix_server(args, recorded, path, signals).await,
    };
    check_exposure(args, address)?;
    let users = open_users(args)?;
    let served = served_agents(args, recorded, users.as_ref())?;
    let access = ServerAccess::prepare(args, address)?;
    let cannot_listen =
        |e: std::io::Error| CommandExit::failed(format!("cannot listen on {address}: {e}"));
    let listener = TcpListener::bind(address).await.map_err(cannot_listen)?;
    let address = listener.local_addr().map_err(cannot_listen)?;
    let mut config = access.config(args, address);
    config.users = users.clone().map(|users| users as Arc<dyn UserTokens>);
    let server = match &access.tls {
        Some(_) => AgentServer::new_secure(config, served.agents),
        None => AgentServer::new(config, served.agents),
    };
    let storing = join_store(args, &access, address, &server).await?;
    for path in server.paths() {
        access.announce(args, address, &path);
    }
    if let Some(path) = server.page_path() {
        access.announce_page(args, address, &path);
    }
    let serving = async {
        let local = served.local.iter().map(|local| local.serve(&server));
        let (served, _) = tokio::join!(server.serve(listener, access.tls.clone()), join_all(local));
        served
    };
    let serving = async {
        let (served, ()) = tokio::join!(serving, storing);
        served
    };
    tokio::pin!(serving);
    let failed = |e: std::io::Error| CommandExit::failed(format!("the server failed: {e}"));
    let follow_users = async {
        match &users {
            Some(users) => users.follow_file().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        served = &mut serving => return served.map_err(failed),
        () = follow_users => {}
        _ = signals.next() => {}
    }
    announce_shutdown(args, server.open_connections());
    // Responses of this time, such as those of the health check, are still sent.
    let (served, ()) = tokio::join!(&mut serving, drain(args, &server, &mut signals));
    served.map_err(failed)
}

/// Stores the server's sessions, if that is wanted. The returned future completes when the server has shut down.
async fn join_store(
    args: &ServeArgs,
    access: &ServerAccess,
    address: SocketAddr,
    server: &AgentServer,
) -> Result<BoxFuture<'static, ()>, CommandExit> {
    let Some(store_address) = &args.store else {
        return Ok(Box::pin(std::future::ready(())));
    };
    let store = store::open_store(store_address).await?;
    let mut options = NodeOptions::new(Duration::from_secs(args.lease));
    options.token = access.token.clone();
    options.address = args.advertise.clone().or_else(|| {
        let scheme = if access.tls.is_some() { "wss" } else { "ws" };
        // Servers that share a file are on one machine.
        let is_local = matches!(store_address, StoreAddress::File(_));
        match address.ip().is_unspecified() {
            true if is_local => Some(format!("{scheme}://127.0.0.1:{}", address.port())),
            true => None,
            false => Some(format!("{scheme}://{address}")),
        }
    });
    if options.address.is_none() {
        eprintln!(
            "acp: warning: other servers cannot reach this one; give its address with --advertise"
        );
    }
    let joined = server.join_store(store, options).await.map_err(|error| {
        CommandExit::failed(format!("store {}: {error}", store::display(store_address)))
    })?;
    Ok(Box::pin(joined))
}

/// Returns the users with tokens of their own.
fn open_users(args: &ServeArgs) -> Result<Option<Arc<Users>>, CommandExit> {
    if args.no_token {
        return Ok(None);
    }
    let Some(file) = args.users.clone().or_else(crate::users::default_file) else {
        return Ok(None);
    };
    let users = Users::open(&file).map_err(|e| CommandExit::usage(e.to_string()))?;
    Ok(Some(Arc::new(users)))
}

/// Shuts the server down. Another signal closes all connections immediately.
async fn drain(args: &ServeArgs, server: &AgentServer, signals: &mut Signals) {
    let patience = Duration::from_secs(args.drain_timeout);
    tokio::select! {
        () = server.drain(DrainOptions::new(patience)) => {}
        _ = signals.next() => server.drain(DrainOptions::new(Duration::ZERO)).await,
    }
}

/// Serves an agent on a Unix-domain socket.
#[cfg(unix)]
async fn run_unix_server(
    args: &ServeArgs,
    recorded: Option<&RecordedConnections>,
    path: &Path,
    mut signals: Signals,
) -> Result<(), CommandExit> {
    let needless = [
        ("--tls-self-signed", args.tls_self_signed),
        ("--tls-cert", args.tls_cert.is_some()),
        ("--token-file", args.token_file.is_some()),
        ("--host", !args.host.is_empty()),
        ("--origin", !args.origin.is_empty()),
        ("--insecure", args.insecure),
        ("--store", args.store.is_some()),
        ("--users", args.users.is_some()),
    ];
    if let Some((option, _)) = needless.iter().find(|(_, is_given)| *is_given) {
        return Err(CommandExit::usage(format!(
            "{option} does not apply to a Unix-domain socket"
        )));
    }
    let agents = served_agents(args, recorded, None)?.agents;
    let [agent] = agents.as_slice() else {
        let message = "a Unix-domain socket serves one agent; remove the other --agent options";
        return Err(CommandExit::usage(message));
    };
    let name = agent.name().to_owned();
    let limits = ServerLimits::new()
        .connections(usize::try_from(args.max_connections).unwrap_or(usize::MAX));
    let server = AgentServer::new(ServerConfig::new().limits(limits), agents);
    let socket = BoundSocket::bind(path)?;
    let is_local = args.session_server.is_some();
    match (is_local, args.log_format) {
        (true, _) => unix_server::detach_and_report_ready(),
        (false, LogFormat::Json) => {
            tracing::info!(url = format!("unix:{}", path.display()), "listening")
        }
        (false, LogFormat::Text) => eprintln!("acp: serving unix:{}", path.display()),
    }
    let serving = server.serve_unix(&name, &socket.listener);
    tokio::pin!(serving);
    let unused = async {
        match is_local {
            true => unix_server::wait_until_unused(&server, &socket).await,
            false => std::future::pending().await,
        }
    };
    tokio::select! {
        () = &mut serving => return Ok(()),
        done = unused => {
            let log = path.with_extension("log");
            let _ = std::fs::remove_file(log);
            return done.map_err(|e| CommandExit::failed(format!("unix:{}: {e}", path.display())));
        }
        _ = signals.next() => {}
    }
    announce_shutdown(args, 0);
    tokio::join!(&mut serving, drain(args, &server, &mut signals));
    Ok(())
}

#[cfg(not(unix))]
async fn run_unix_server(
    _args: &ServeArgs,
    _recorded: Option<&RecordedConnections>,
    _path: &Path,
    _signals: Signals,
) -> Result<(), CommandExit> {
    Err(CommandExit::usage(
        "--listen unix: there are no Unix-domain sockets on this system",
    ))
}

/// Rejects a listen address that would let other machines eavesdrop on the connection or use the agent without a token.
fn check_exposure(args: &ServeArgs, address: SocketAddr) -> Result<(), CommandExit> {
    if address.ip().is_loopback() || args.insecure {
        return Ok(());
    }
    let has_tls = args.tls_self_signed || args.tls_cert.is_some();
    let missing = match (has_tls, args.no_token) {
        (true, false) => return Ok(()),
        (false, _) => {
            "other machines can reach this address; use --tls-self-signed or --tls-cert, or --insecure to send the token and all messages unencrypted"
        }
        (true, true) => {
            "other machines can reach this address; remove --no-token, or use --insecure to let everyone use the agent"
        }
    };
    Err(CommandExit::usage(format!("--listen {address}: {missing}")))
}

/// The agents to serve.
struct ServedAgents {
    agents: Vec<ServedAgent>,
    /// The sockets on which commands of this user find live agents.
    local: Vec<LocalSocket>,
}

/// The socket on which commands of this user find a live agent.
struct LocalSocket {
    #[cfg(unix)]
    agent: String,
    #[cfg(unix)]
    socket: BoundSocket,
}

impl LocalSocket {
    async fn serve(&self, server: &AgentServer) {
        #[cfg(unix)]
        server.serve_unix(&self.agent, &self.socket.listener).await;
        #[cfg(not(unix))]
        let _ = server;
    }
}

/// Returns the agents to serve, each with its command and the directories it lets clients open.
fn served_agents(
    args: &ServeArgs,
    recorded: Option<&RecordedConnections>,
    users: Option<&Arc<Users>>,
) -> Result<ServedAgents, CommandExit> {
    let audit_log = args.audit_log.as_deref().map(AuditLog::open).transpose();
    let audit_log = audit_log.map_err(|e| CommandExit::usage(format!("--audit-log: {e}")))?;
    let roots: Vec<PathBuf> = match args.cwd.as_slice() {
        [] => vec![absolute_directory(Path::new("."))?],
        roots => roots
            .iter()
            .map(|root| absolute_directory(root))
            .collect::<Result<_, _>>()?,
    };
    let allowed =
        AllowedRoots::new(&roots).map_err(|e| CommandExit::usage(format!("--cwd {e}")))?;
    let cwd = roots.first().cloned().unwrap_or_default();
    let confinement = Confinement::from_args(&args.sandbox, args.implied_sandbox, &roots)?;
    let names: Vec<Option<String>> = match args.agent.as_slice() {
        [] => vec![None],
        names => names.iter().cloned().map(Some).collect(),
    };
    let mut agents = Vec::with_capacity(names.len());
    #[cfg_attr(not(unix), allow(unused_mut))]
    let mut local = Vec::new();
    let listens_on_network = matches!(args.listen, ListenAddress::Tcp(_));
    for name in names {
        if contains_agent(&agents, name.as_deref()) {
            continue;
        }
        let selector = AgentSelector {
            name: name.clone(),
            command: args.agent_command.clone(),
            env: args.env.env.clone(),
            ..AgentSelector::default()
        };
        let ask: Option<&dyn Fn(&str) -> bool> = match terminal_user::can_ask() {
            true => Some(&terminal_user::confirm),
            false => None,
        };
        let choice = selector.choose(&config::read_user_config()?, &cwd, ask)?;
        let target = StartTarget {
            agent: &choice,
            cwd: &cwd,
            live: None,
        };
        let command = match choice.is_bundled() {
            // As an editor starts it. It applies the rules itself, and offers both protocol versions.
            true => bundled_command(&choice.environment, &cwd, args.store.as_ref())?,
            false => target.command()?,
        };
        command.find_executable().map_err(|e| {
            CommandExit::agent_failed(format!(
                "cannot start the agent: {e}{}",
                choice.install_hint()
            ))
        })?;
        let command = match &confinement {
            None => command,
            Some(confinement) => {
                let confined = confinement.confine(&choice, command)?;
                for note in confined.notes {
                    eprintln!("acp: {note}");
                }
                confined.command
            }
        };
        let command = match recorded {
            None => command,
            Some(connections) => connections.recorder(command)?,
        };
        let name = name
            .or(choice.name.clone())
            .unwrap_or_else(|| "agent".to_owned());
        let mut agent = ServedAgent::new(name.clone(), command).roots(allowed.clone());
        if let Some(users) = users {
            agent = agent.users(Arc::clone(users));
        }
        if let Some(log) = &audit_log {
            agent = agent.audit(Arc::clone(log));
        }
        if args.live {
            agent = agent.live(Duration::from_secs(args.keep));
        }
        if let Some(settings) = &args.session_server {
            agent = agent
                .settings(settings)
                .private()
                .roots(AllowedRoots::any());
        } else if args.live && listens_on_network && recorded.is_none() {
            let target = LiveTarget {
                agent: &choice,
                cwd: &cwd,
                confinement: confinement.as_ref(),
                policy: None,
            };
            agent = agent.settings(target.settings());
            #[cfg(unix)]
            local.extend(target.bind()?.map(|socket| LocalSocket {
                agent: name.clone(),
                socket,
            }));
        }
        agents.push((name, agent));
    }
    let agents = agents.into_iter().map(|(_, agent)| agent).collect();
    Ok(ServedAgents { agents, local })
}

fn contains_agent(agents: &[(String, ServedAgent)], name: Option<&str>) -> bool {
    agents.iter().any(|(other, _)| Some(other.as_str()) == name)
}

fn bundled_command(
    environment: &AgentEnvironment,
    cwd: &Path,
    store: Option<&StoreAddress>,
) -> Result<AgentCommand, CommandExit> {
    let mut command = AgentCommand::new(this_program()?)
        .args(["agent"])
        .args(bundled_environment_arguments(environment));
    if let Some(StoreAddress::Postgres(url)) = store {
        command = store::share_with_agent(command, url)?;
    }
    Ok(command.cwd(cwd).environment(environment.environment()))
}

/// The information that clients need to connect: the token and the certificate.
struct ServerAccess {
    token: Option<Token>,
    /// The file that contains the token, and whether this server has just created it.
    token_file: Option<(PathBuf, bool)>,
    tls: Option<Arc<TlsConfig>>,
    /// The fingerprint of the certificate, if it is self-signed.
    pin: Option<String>,
}

impl ServerAccess {
    fn prepare(args: &ServeArgs, address: SocketAddr) -> Result<Self, CommandExit> {
        let failed = |e: SecretFileError| CommandExit::usage(e.to_string());
        let variable = acp_host::process_secrets::variable(TOKEN_VARIABLE);
        let (token, token_file) = match (args.no_token, &args.token_file, variable) {
            (true, _, _) => (None, None),
            (false, None, Some(text)) => {
                let token = text.to_str().map(Token::new);
                let token = token.and_then(Result::ok).ok_or_else(|| {
                    CommandExit::usage(format!("the variable {TOKEN_VARIABLE} is not a token"))
                })?;
                (Some(token), None)
            }
            (false, _, _) => {
                let file = match &args.token_file {
                    Some(file) => file.clone(),
                    None => state_file(TOKEN_FILE, "--token-file")?,
                };
                let (token, is_new) = token_from_file(&file).map_err(failed)?;
                (Some(token), Some((file, is_new)))
            }
        };
        let mut pin = None;
        let identity = match (&args.tls_cert, &args.tls_key) {
            (Some(certificate), Some(key)) => {
                let read = |flag: &str, file: &Path| {
                    std::fs::read(file)
                        .map_err(|e| CommandExit::usage(format!("{flag} {}: {e}", file.display())))
                };
                let certificate = read("--tls-cert", certificate)?;
                let key = read("--tls-key", key)?;
                let identity = TlsIdentity::from_pem(&certificate, &key);
                Some(identity.map_err(|e| CommandExit::usage(format!("--tls-cert: {e}")))?)
            }
            _ if args.tls_self_signed => {
                let mut names = vec!["localhost".to_owned(), address.ip().to_string()];
                names.extend(args.host.iter().cloned());
                let file = state_file(CERTIFICATE_FILE, "--tls-cert")?;
                let identity = self_signed_identity(&file, &names).map_err(failed)?;
                pin = Some(identity.fingerprint_text());
                Some(identity)
            }
            _ => None,
        };
        let tls = identity.map(TlsIdentity::server_config).transpose();
        Ok(Self {
            token,
            token_file,
            tls: tls.map_err(|e| CommandExit::usage(e.to_string()))?,
            pin,
        })
    }

    fn config(&self, args: &ServeArgs, address: SocketAddr) -> ServerConfig {
        let mut hosts = args.host.clone();
        let ip = address.ip();
        if !ip.is_unspecified() {
            hosts.push(match ip.is_ipv6() {
                true => format!("[{ip}]"),
                false => ip.to_string(),
            });
        }
        let limits = ServerLimits::new()
            .connections(usize::try_from(args.max_connections).unwrap_or(usize::MAX));
        let mut config = ServerConfig::new()
            .hosts(AllowedHosts::Named(hosts))
            .limits(limits);
        if !args.origin.is_empty() {
            config = config.origins(AllowedOrigins::Named(args.origin.clone()));
        }
        config.token = self.token.clone();
        config
    }

    /// Prints the address of the page. Where secrets are printed, it includes a code with which one browser can sign in.
    /// Otherwise, browsers sign in with the token.
    fn announce_page(&self, args: &ServeArgs, address: SocketAddr, path: &str) {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let site = format!("{scheme}://{}", authority(args, address));
        if args.log_format == LogFormat::Json {
            tracing::info!(url = format!("{site}/"), "page");
            return;
        }
        match self.shows_secrets() || self.token.is_none() {
            true => {
                let url = format!("{site}{path}");
                eprintln!("acp: in a browser: {url}");
                // A phone cannot reach a loopback address, and of several addresses, the right one is not known.
                let is_one_address = !address.ip().is_loopback() && !address.ip().is_unspecified();
                if (is_one_address || !args.host.is_empty())
                    && std::io::stderr().is_terminal()
                    && let Some(code) = qr_code(&url)
                {
                    eprintln!("{code}");
                }
            }
            false => eprintln!("acp: in a browser: {site}/"),
        }
    }

    /// Returns `true` if secrets are printed: stderr is a terminal, or the token has just been created. Otherwise, stderr
    /// is probably a log.
    fn shows_secrets(&self) -> bool {
        match &self.token_file {
            Some((_, is_new)) => *is_new || std::io::stderr().is_terminal(),
            None => false,
        }
    }

    /// Prints an agent's URL. The token is included where secrets are printed.
    fn announce(&self, args: &ServeArgs, address: SocketAddr, path: &str) {
        let scheme = if self.tls.is_some() { "wss" } else { "ws" };
        let mut url = format!("{scheme}://{}{path}", authority(args, address));
        if args.log_format == LogFormat::Json {
            tracing::info!(url, "listening");
            return;
        }
        let is_shown = self.shows_secrets();
        if let (Some(token), true) = (&self.token, is_shown) {
            url = format!("{url}?token={}", token.expose());
        }
        if let Some(pin) = &self.pin {
            url = format!("{url}#{pin}");
        }
        eprintln!("acp: serving {url}");
        match &self.token_file {
            Some((file, _)) if !is_shown => eprintln!(
                "acp: clients need the token in {}",
                paths::display_path(file)
            ),
            None if self.token.is_some() => {
                eprintln!("acp: clients need the token in the variable {TOKEN_VARIABLE}");
            }
            Some(_) => {}
            None => eprintln!(
                "acp: warning: no token: everyone who can reach this address can use the agent"
            ),
        }
        if args.insecure && self.tls.is_none() && !address.ip().is_loopback() {
            eprintln!(
                "acp: warning: no TLS: the token and all messages can be read on the network"
            );
        }
    }
}

/// Returns a QR code of a URL, to be scanned from the terminal by a phone.
fn qr_code(url: &str) -> Option<String> {
    use qrcode::render::unicode::Dense1x2;
    let code = qrcode::QrCode::new(url).ok()?;
    // Scanners expect dark squares on a light ground. Most terminals are dark.
    let image = code
        .render::<Dense1x2>()
        .dark_color(Dense1x2::Light)
        .light_color(Dense1x2::Dark)
        .build();
    Some(image)
}

/// Returns the host and port to show in URLs.
fn authority(args: &ServeArgs, address: SocketAddr) -> String {
    let port = address.port();
    match (args.host.first(), address.ip().is_unspecified()) {
        (Some(host), _) => format!("{host}:{port}"),
        (None, true) => format!("localhost:{port}"),
        (None, false) => address.to_string(),
    }
}

/// Returns the path of a file in the state directory.
fn state_file(name: &str, flag: &str) -> Result<PathBuf, CommandExit> {
    match paths::state_dir() {
        Some(state) => Ok(state.join(name)),
        None => Err(CommandExit::usage(format!(
            "cannot store {name}: there is no home directory; use {flag}"
        ))),
    }
}

fn announce_shutdown(args: &ServeArgs, connections: u64) {
    if args.log_format == LogFormat::Json {
        tracing::info!(connections, "shutting down");
    } else if connections > 0 {
        let noun = if connections == 1 {
            "connection"
        } else {
            "connections"
        };
        eprintln!("acp: shutting down; waiting for {connections} {noun} (Ctrl-C: close now)");
    }
}
