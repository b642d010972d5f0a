//! Attaches to the server of an agent and directory, or starts it.

use std::path::Path;

use acp_config::AgentChoice;
use acp_host::Policy;

use crate::confinement::Confinement;
#[cfg(not(unix))]
use crate::exit::CommandExit;

/// The environment variable that turns local servers off.
pub(crate) const NO_SERVER_VARIABLE: &str = "ACP_NO_SERVER";

/// The agent and directory that a server is for.
#[derive(Clone, Copy)]
#[cfg_attr(not(unix), allow(dead_code))]
pub(crate) struct LiveTarget<'a> {
    pub(crate) agent: &'a AgentChoice,
    pub(crate) cwd: &'a Path,
    pub(crate) confinement: Option<&'a Confinement>,
    /// The policy that implies the sandbox, if one does.
    pub(crate) policy: Option<Policy>,
}

/// When to attach to a server.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(unix), allow(dead_code))]
pub(crate) enum AttachMode<'a> {
    /// If a server is running and holds this session.
    IfLive { session: &'a str },
    /// If a server is running, whatever its options are.
    IfRunning,
    /// Always. If no server is running, starts one that exits after this many seconds without use.
    Start { keep: u64 },
}

/// A connection to a server, which keeps running as long as this exists.
#[derive(Debug)]
pub(crate) struct LiveAttachment {
    /// The URL of the server's socket.
    pub(crate) url: String,
    #[cfg(unix)]
    connection: super::control::ControlConnection,
}

impl LiveAttachment {
    /// Stops the agent and its server. With `force`, even if a turn is running or another client is connected. Otherwise
    /// returns the reason if it does not stop.
    pub(crate) fn stop(self, force: bool) -> std::io::Result<Result<(), String>> {
        #[cfg(unix)]
        return self.connection.stop(force);
        #[cfg(not(unix))]
        Ok(Err(format!("no local server (force: {force})")))
    }
}

impl LiveTarget<'_> {
    /// Returns `true` if a server can hold the agent. A remote agent has a server already. A server speaks version 1 to
    /// its agent.
    fn can_be_live(&self) -> bool {
        let is_off = std::env::var_os(NO_SERVER_VARIABLE).is_some_and(|value| !value.is_empty());
        cfg!(unix) && !is_off && self.agent.remote.is_none() && self.agent.protocol == 1
    }
}

#[cfg(not(unix))]
impl LiveTarget<'_> {
    /// Returns `None`: there are no local servers on this system.
    pub(crate) fn attach(
        &self,
        _mode: AttachMode<'_>,
    ) -> Result<Option<LiveAttachment>, CommandExit> {
        let _ = self.can_be_live();
        Ok(None)
    }

    /// Returns text that stands for the options of the agent.
    pub(crate) fn settings(&self) -> String {
        String::new()
    }
}

#[cfg(unix)]
mod unix {
    use std::ffi::OsString;
    use std::fs::File;
    use std::io::{self, BufRead, BufReader};
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    use acp_host::process_secrets;

    use super::super::control::ControlConnection;
    use super::super::directory::{LiveSocket, lock_directory};
    use super::super::unix_server::{BoundSocket, READY_LINE};
    use super::{AttachMode, LiveAttachment, LiveTarget};
    use crate::args::shared::option_arguments;
    use crate::confinement::Confinement;
    use crate::exit::CommandExit;
    use crate::settings_hash::SettingsHash;
    use crate::this_program::this_program;

    /// How often to connect again to a server that exits at this moment.
    const MAX_ATTEMPTS: usize = 3;

    impl LiveTarget<'_> {
        /// Attaches to the server, or starts it. Returns `None` if there is none, or if this agent has none.
        pub(crate) fn attach(
            &self,
            mode: AttachMode<'_>,
        ) -> Result<Option<LiveAttachment>, CommandExit> {
            if !self.can_be_live() {
                return Ok(None);
            }
            let socket = match LiveSocket::new(&self.agent.storage_key(), self.cwd) {
                Ok(socket) => socket,
                Err(error) => {
                    tracing::info!(%error, "cannot use a local server");
                    return Ok(None);
                }
            };
            let failed = |e: io::Error| {
                let path = socket.path().display();
                CommandExit::failed(format!("cannot use the local server at {path}: {e}"))
            };
            for _ in 0..MAX_ATTEMPTS {
                match self.attach_running(&socket, mode) {
                    Ok(Attempt::Attached(attachment)) => return Ok(Some(attachment)),
                    Ok(Attempt::Unsuitable) => return Ok(None),
                    // Another agent must not open a session that is live.
                    Ok(Attempt::OtherOptions) => match mode {
                        AttachMode::Start { .. } => break,
                        AttachMode::IfLive { .. } | AttachMode::IfRunning => {
                            return Err(other_options_exit("the session is live"));
                        }
                    },
                    Ok(Attempt::NotRunning) => match mode {
                        AttachMode::Start { .. } => break,
                        AttachMode::IfLive { .. } | AttachMode::IfRunning => return Ok(None),
                    },
                    Err(error) if is_disconnect(&error) => {}
                    Err(error) => return Err(failed(error)),
                }
            }
            let AttachMode::Start { keep } = mode else {
                return Ok(None);
            };
            match self.start_or_replace(&socket, keep) {
                Ok(attachment) => Ok(Some(attachment)),
                Err(StartError::Exit(exit)) => Err(exit),
                Err(StartError::Io(error)) => Err(failed(error)),
                // Some network file systems have no locks.
                Err(StartError::NoLock(error)) => {
                    tracing::warn!(%error, "cannot use a local server");
                    Ok(None)
                }
            }
        }

        fn attach_running(&self, socket: &LiveSocket, mode: AttachMode<'_>) -> io::Result<Attempt> {
            let Some(mut connection) = ControlConnection::open(socket.path())? else {
                return Ok(Attempt::NotRunning);
            };
            let status = connection.status()?;
            let has_same_options = status.settings.as_deref() == Some(&self.settings());
            match mode {
                AttachMode::IfLive { session } if !status.has_session(session) => {
                    return Ok(Attempt::Unsuitable);
                }
                AttachMode::IfLive { .. } | AttachMode::Start { .. } if !has_same_options => {
                    return Ok(Attempt::OtherOptions);
                }
                AttachMode::IfLive { .. } | AttachMode::IfRunning | AttachMode::Start { .. } => {}
            }
            Ok(Attempt::Attached(attachment(socket, connection)))
        }

        /// Starts the server. Replaces one that was started with other options, unless it is in use.
        fn start_or_replace(
            &self,
            socket: &LiveSocket,
            keep: u64,
        ) -> Result<LiveAttachment, StartError> {
            let _lock = lock_directory(socket.path()).map_err(StartError::NoLock)?;
            // Another process may have started it while this one waited for the lock.
            match self.attach_running(socket, AttachMode::Start { keep }) {
                Ok(Attempt::Attached(attachment)) => return Ok(attachment),
                Ok(Attempt::OtherOptions) => {
                    if let Some(connection) = ControlConnection::open(socket.path())?
                        && let Err(reason) = connection.stop(false)?
                    {
                        return Err(StartError::Exit(other_options_exit(&reason)));
                    }
                }
                Ok(Attempt::NotRunning | Attempt::Unsuitable) => {}
                Err(error) if is_disconnect(&error) => {}
                Err(error) => return Err(error.into()),
            }
            remove_socket(socket)?;
            let mut server = self.spawn(socket, keep)?;
            if !wait_until_ready(&mut server)? {
                return Err(StartError::Exit(start_failure(&mut server, socket)));
            }
            match ControlConnection::open(socket.path())? {
                // The server outlives this process, which therefore does not wait for it.
                Some(connection) => Ok(attachment(socket, connection)),
                None => Err(StartError::Exit(start_failure(&mut server, socket))),
            }
        }

        /// Returns the arguments that start the server, without those that do not matter to clients.
        fn server_arguments(&self) -> Vec<OsString> {
            let mut words: Vec<OsString> = vec!["--cwd".into(), self.cwd.into()];
            words.extend(
                self.confinement
                    .iter()
                    .flat_map(|confined| Confinement::server_arguments(confined)),
            );
            if let (Some(_), Some(policy)) = (self.confinement, self.policy) {
                words.push(format!("--implied-sandbox={policy}").into());
            }
            for (request, _) in self.agent.environment.requests() {
                words.push(format!("--env={request}").into());
            }
            match &self.agent.name {
                Some(name) => {
                    words.extend(
                        option_arguments("--agent", name)
                            .into_iter()
                            .map(OsString::from),
                    );
                }
                None if self.agent.command.is_empty() => {}
                None => {
                    words.push("--".into());
                    words.extend(self.agent.command.iter().map(OsString::from));
                }
            }
            words
        }

        /// Takes the place of a local server, for a server that is also reached in other ways. Stops a local server that
        /// nobody uses. Returns `None` if there are no local servers for this agent, or the place is taken.
        pub(crate) fn bind(&self) -> Result<Option<BoundSocket>, CommandExit> {
            if !self.can_be_live() {
                return Ok(None);
            }
            let socket = match LiveSocket::new(&self.agent.storage_key(), self.cwd) {
                Ok(socket) => socket,
                Err(error) => {
                    tracing::info!(%error, "cannot be a local server");
                    return Ok(None);
                }
            };
            let failed = |e: io::Error| {
                let path = socket.path().display();
                CommandExit::failed(format!("cannot use the local server at {path}: {e}"))
            };
            let _lock = lock_directory(socket.path()).map_err(failed)?;
            if let Some(connection) = ControlConnection::open(socket.path()).map_err(failed)? {
                let stopped = match connection.stop(false) {
                    Err(error) if is_disconnect(&error) => Ok(()),
                    stopped => stopped.map_err(failed)?,
                };
                if let Err(reason) = stopped {
                    eprintln!(
                        "acp: warning: --session uses another server in this directory, which cannot be replaced: {reason}; `acp sessions stop --force` stops it"
                    );
                    return Ok(None);
                }
                remove_socket(&socket).map_err(failed)?;
            }
            BoundSocket::bind(socket.path()).map(Some)
        }

        /// Returns what stands for the server's options. A client must not be given an agent with other options than it
        /// asks for, such as one outside of a sandbox.
        pub(crate) fn settings(&self) -> String {
            let requests = self.agent.environment.requests();
            let values: Vec<_> = requests.map(|(_, value)| value).collect();
            SettingsHash::new()
                .with_list(&[env!("CARGO_PKG_VERSION")])
                .with_list(&self.server_arguments())
                .with_list(&values)
                .into_hex(16)
        }

        fn spawn(&self, socket: &LiveSocket, keep: u64) -> Result<Child, StartError> {
            let program = this_program().map_err(StartError::Exit)?;
            let mut listen = OsString::from("--listen=unix:");
            listen.push(socket.path());
            let mut options = File::options();
            let log = options.create(true).write(true).truncate(true);
            let log = log.open(socket.log_file())?;
            let server = Command::new(program)
                .args(["serve", "--live", "--no-token", "--log-format=text"])
                .arg(format!("--keep={keep}"))
                .arg(format!("--session-server={}", self.settings()))
                .arg(listen)
                .args(self.server_arguments())
                .envs(process_secrets::variables())
                .current_dir(self.cwd)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(log)
                .spawn()?;
            Ok(server)
        }
    }

    /// The result of an attempt to attach to a running server.
    enum Attempt {
        Attached(LiveAttachment),
        NotRunning,
        /// It was started with other options.
        OtherOptions,
        /// It does not hold the session.
        Unsuitable,
    }

    enum StartError {
        Io(io::Error),
        /// The directory of the sockets cannot be locked.
        NoLock(io::Error),
        Exit(CommandExit),
    }

    impl From<io::Error> for StartError {
        fn from(error: io::Error) -> Self {
            Self::Io(error)
        }
    }

    /// Returns the `CommandExit` for a command that needs an agent with other options than the running one has.
    fn other_options_exit(reason: &str) -> CommandExit {
        CommandExit::usage(format!(
            "the agent is already running for another client, with another sandbox or environment ({reason}); use the same options, or --no-server for an agent of its own"
        ))
    }

    /// Removes a socket that nobody listens on any more.
    fn remove_socket(socket: &LiveSocket) -> io::Result<()> {
        match std::fs::remove_file(socket.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn attachment(socket: &LiveSocket, connection: ControlConnection) -> LiveAttachment {
        LiveAttachment {
            url: format!("unix:{}", socket.path().display()),
            connection,
        }
    }

    /// Returns `true` if the server closed the connection because it is exiting.
    fn is_disconnect(error: &io::Error) -> bool {
        matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::ConnectionReset
        )
    }

    /// Waits until the server is listening. Returns `false` if it has exited instead.
    fn wait_until_ready(server: &mut Child) -> io::Result<bool> {
        let Some(stdout) = server.stdout.take() else {
            return Ok(false);
        };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        Ok(line.trim_end() == READY_LINE)
    }

    /// Returns the `CommandExit` for a server that could not be started, which has written the reason to its log.
    fn start_failure(server: &mut Child, socket: &LiveSocket) -> CommandExit {
        let code = server.wait().ok().and_then(|status| status.code());
        let log = std::fs::read_to_string(socket.log_file()).unwrap_or_default();
        remove_log(&socket.log_file());
        let message = log.trim().strip_prefix("acp: ").unwrap_or(log.trim());
        CommandExit {
            code: code
                .and_then(|code| u8::try_from(code).ok())
                .unwrap_or(CommandExit::FAILED),
            message: Some(match message.is_empty() {
                true => "the local server could not be started".to_owned(),
                false => message.to_owned(),
            }),
        }
    }

    fn remove_log(log: &Path) {
        if let Err(error) = std::fs::remove_file(log) {
            tracing::debug!(%error, "cannot remove the log of a local server");
        }
    }
}
