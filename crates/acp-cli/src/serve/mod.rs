//! `acp serve`: serves agents over the network.

mod access;
mod roots;
mod store;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use acp_config::{AgentEnvironment, AgentSelector};
use acp_host::AgentCommand;
use acp_remote::server::UserTokens;
#[cfg(unix)]
use acp_remote::server::{ServerConfig, ServerLimits};
use acp_server::users::{AuditLog, Users};
use acp_server::{AgentServer, AllowedRoots, DrainOptions, ServedAgent};
use futures_util::future::join_all;
use tokio::net::TcpListener;

use self::access::ServerAccess;
use self::roots::served_roots;
use self::store::join_store;
use crate::args::serve::{ListenAddress, LogFormat, ServeArgs};
use crate::args::store_address::{StoreAddress, StoreChoice};
use crate::confinement::Confinement;
use crate::exit::CommandExit;
use crate::live::LiveTarget;
#[cfg(unix)]
use crate::live::unix_server::{self, BoundSocket};
use crate::signals::Signals;
use crate::start::{StartTarget, bundled_environment_arguments};
use crate::store::share_with_agent;
use crate::this_program::this_program;
use crate::{config, terminal_user};

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
    let roots = served_roots(args)?;
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
    store: Option<&StoreChoice>,
) -> Result<AgentCommand, CommandExit> {
    let mut command = AgentCommand::new(this_program()?)
        .args(["agent"])
        .args(bundled_environment_arguments(environment));
    if let Some(StoreChoice::At(StoreAddress::Postgres(url))) = store {
        command = share_with_agent(command, url)?;
    }
    Ok(command.cwd(cwd).environment(environment.environment()))
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
