//! A client that is built on the official Rust SDK. It starts an agent, or connects to one, runs one turn,
//! provides real files, terminals, responds to permission requests, and prints each event as one line of JSON.
//!
//!     official-client [OPTIONS] PROMPT -- AGENT COMMAND...
//!     official-client [OPTIONS] --url URL PROMPT

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AuthenticateRequest, CancelNotification, ClientCapabilities, CloseSessionRequest, ContentBlock,
    CreateTerminalRequest, CreateTerminalResponse, FileSystemCapabilities, Implementation,
    InitializeRequest, KillTerminalRequest, KillTerminalResponse, LoadSessionRequest,
    NewSessionRequest, PermissionOptionKind, PromptRequest, ReadTextFileRequest,
    ReadTextFileResponse, ReleaseTerminalRequest, ReleaseTerminalResponse,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SelectedPermissionOutcome, SessionId, SessionNotification, SessionUpdate,
    SetSessionModeRequest, TerminalExitStatus, TerminalId, TerminalOutputRequest,
    TerminalOutputResponse, WaitForTerminalExitRequest, WaitForTerminalExitResponse,
    WriteTextFileRequest, WriteTextFileResponse,
};
use agent_client_protocol::{
    AcpAgent, AcpAgentConfig, Agent, Client, ConnectTo, Error, Result, UntypedMessage,
    on_receive_notification, on_receive_request,
};
use agent_client_protocol_http::HttpClient;
use clap::{Parser, ValueEnum};
use interop::{QuestionNotification, QuestionRequest, QuestionResponse};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::{Notify, watch};

#[derive(Parser)]
struct OfficialClientArgs {
    /// The prompt.
    prompt: String,
    /// The command that starts the agent.
    #[arg(last = true, required_unless_present = "url")]
    agent: Vec<String>,
    /// Connect to this server instead: `ws://` for WebSocket, `http://` for streamable HTTP.
    #[arg(long, conflicts_with = "agent")]
    url: Option<String>,
    /// The working directory of the session.
    #[arg(long, default_value = ".")]
    cwd: PathBuf,
    /// Reject every permission request.
    #[arg(long)]
    reject: bool,
    /// Cancel the turn when this happens.
    #[arg(long, value_enum)]
    cancel_at: Option<CancelPoint>,
    /// Load this session instead of opening a new one.
    #[arg(long)]
    load: Option<String>,
    /// Set this mode before the turn.
    #[arg(long)]
    mode: Option<String>,
    /// Log in with this auth method before opening a session.
    #[arg(long)]
    authenticate: Option<String>,
    /// Call this method before the turn, and print the response.
    #[arg(long)]
    call: Vec<String>,
    /// Send `_interop/ask` and `_interop/told` before the turn.
    #[arg(long)]
    extension: bool,
    /// Close the session after the turn.
    #[arg(long)]
    close: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CancelPoint {
    /// The agent sends a message.
    Message,
    /// The agent requests permission.
    Permission,
    /// A command of the agent prints something.
    Output,
}

/// The state that the handlers share.
struct OfficialClientState {
    reject: bool,
    cancel_at: Option<CancelPoint>,
    terminals: Mutex<HashMap<TerminalId, Arc<OfficialTerminal>>>,
    created_count: AtomicUsize,
}

impl OfficialClientState {
    fn terminals(&self) -> MutexGuard<'_, HashMap<TerminalId, Arc<OfficialTerminal>>> {
        self.terminals
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn terminal(&self, id: &TerminalId) -> Result<Arc<OfficialTerminal>> {
        self.terminals()
            .get(id)
            .cloned()
            .ok_or_else(|| not_found_error(&id.0))
    }

    /// Cancels the turn if this is the point chosen on the command line.
    fn cancel_if_at(
        &self,
        what: CancelPoint,
        session: &SessionId,
        connection: &ConnectionTo<Agent>,
    ) -> Result<()> {
        if self.cancel_at == Some(what) {
            connection.send_notification(CancelNotification::new(session.clone()))?;
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = OfficialClientArgs::parse();
    if let Some(url) = &args.url {
        // The tests' servers are on this machine, where a proxy cannot reach them.
        let server = HttpClient::builder_with_endpoint(url)
            .configure_http(|http| http.no_proxy())
            .build()
            .map_err(Error::into_internal_error)?;
        return run(args, server).await;
    }
    let Some((program, arguments)) = args.agent.split_first() else {
        return Err(Error::invalid_params().data("no agent command"));
    };
    let agent = AcpAgent::new(AcpAgentConfig::new(program).args(arguments));
    run(args, agent).await
}

/// Runs the client with an agent, however that is reached.
async fn run(args: OfficialClientArgs, agent: impl ConnectTo<Client>) -> Result<()> {
    let state = Arc::new(OfficialClientState {
        reject: args.reject,
        cancel_at: args.cancel_at,
        terminals: Mutex::default(),
        created_count: AtomicUsize::new(0),
    });
    let [create, output, wait, kill, release, updated, asked] =
        [(); 7].map(|()| Arc::clone(&state));
    Client
        .v1()
        .name("official-client")
        .on_receive_notification(
            async move |notification: SessionNotification, connection: ConnectionTo<Agent>| {
                print("update", &notification.update)?;
                match notification.update {
                    SessionUpdate::AgentMessageChunk(_) => {
                        updated.cancel_if_at(CancelPoint::Message, &notification.session_id, &connection)
                    }
                    _ => Ok(()),
                }
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, connection: ConnectionTo<Agent>| {
                print("permission", &request)?;
                asked.cancel_if_at(CancelPoint::Permission, &request.session_id, &connection)?;
                responder.respond(RequestPermissionResponse::new(asked.choose_outcome(&request)))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ReadTextFileRequest, responder, _| {
                print("read", &request)?;
                responder.respond_with_result(read_file(&request))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: WriteTextFileRequest, responder, _| {
                print("write", &request)?;
                let written = std::fs::write(&request.path, &request.content);
                let written = written.map_err(Error::into_internal_error);
                responder.respond_with_result(written.map(|()| WriteTextFileResponse::new()))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: CreateTerminalRequest, responder, connection: ConnectionTo<Agent>| {
                print("create", &request)?;
                responder.respond_with_result(create.create_terminal(&request, &connection))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: TerminalOutputRequest, responder, _| {
                print("output", &request)?;
                responder.respond_with_result(output.terminal(&request.terminal_id).map(|t| t.output()))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: WaitForTerminalExitRequest, responder, connection: ConnectionTo<Agent>| {
                print("wait", &request)?;
                match wait.terminal(&request.terminal_id) {
                    // Handlers run in the task that reads messages, so waiting in a handler would stop everything.
                    Ok(terminal) => connection.spawn(async move {
                        responder.respond(WaitForTerminalExitResponse::new(terminal.wait().await))
                    }),
                    Err(error) => responder.respond_with_error(error),
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: KillTerminalRequest, responder, _| {
                print("kill", &request)?;
                let killed = kill.terminal(&request.terminal_id).map(|terminal| terminal.kill.notify_one());
                responder.respond_with_result(killed.map(|()| KillTerminalResponse::new()))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ReleaseTerminalRequest, responder, connection: ConnectionTo<Agent>| {
                print("release", &request)?;
                let Some(terminal) = release.terminals().remove(&request.terminal_id) else {
                    return responder.respond_with_error(not_found_error(&request.terminal_id.0));
                };
                terminal.kill.notify_one();
                connection.spawn(async move {
                    terminal.wait().await;
                    responder.respond(ReleaseTerminalResponse::new())
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: QuestionRequest, responder, _| {
                print("asked", &request)?;
                responder.respond(QuestionResponse { answer: format!("the official client heard {}", request.question) })
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |told: QuestionNotification, _| print("told", &told),
            on_receive_notification!(),
        )
        .connect_with(agent, async move |connection| {
            if let Err(error) = drive(&args, &connection).await {
                print("error", &json!({"code": i32::from(error.code), "message": error.message, "data": error.data}))?;
            }
            Ok(())
        })
        .await
}

/// Does everything from `initialize` to the stop reason.
async fn drive(args: &OfficialClientArgs, connection: &ConnectionTo<Agent>) -> Result<()> {
    let files = FileSystemCapabilities::new()
        .read_text_file(true)
        .write_text_file(true);
    let initialize = InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(ClientCapabilities::new().fs(files).terminal(true))
        .client_info(Implementation::new("official-client", "1.0"));
    print(
        "initialized",
        &connection.send_request(initialize).block_task().await?,
    )?;
    if let Some(method) = &args.authenticate {
        let request = AuthenticateRequest::new(method.clone());
        print(
            "authenticated",
            &connection.send_request(request).block_task().await?,
        )?;
    }
    for method in &args.call {
        match connection
            .send_request(UntypedMessage::new(method, json!({}))?)
            .block_task()
            .await
        {
            Ok(answer) => print("answer", &answer)?,
            Err(error) => print("refused", &json!({"code": i32::from(error.code)}))?,
        }
    }
    if args.extension {
        connection.send_notification(QuestionNotification {
            what: "hello".to_owned(),
        })?;
        let ask = QuestionRequest {
            question: "who are you".to_owned(),
        };
        print("answer", &connection.send_request(ask).block_task().await?)?;
    }
    let cwd = std::path::absolute(&args.cwd).map_err(Error::into_internal_error)?;
    let id = match &args.load {
        Some(id) => {
            let id = SessionId::new(id.as_str());
            let request = LoadSessionRequest::new(id.clone(), cwd);
            print(
                "loaded",
                &connection.send_request(request).block_task().await?,
            )?;
            id
        }
        None => {
            let opened = connection
                .send_request(NewSessionRequest::new(cwd))
                .block_task()
                .await?;
            print("opened", &opened)?;
            opened.session_id
        }
    };
    if let Some(mode) = &args.mode {
        let request = SetSessionModeRequest::new(id.clone(), mode.clone());
        print(
            "mode",
            &connection.send_request(request).block_task().await?,
        )?;
    }
    let prompt = vec![ContentBlock::from(args.prompt.as_str())];
    let ended = connection
        .send_request(PromptRequest::new(id.clone(), prompt))
        .block_task()
        .await?;
    print("ended", &ended)?;
    if args.close {
        let request = CloseSessionRequest::new(id);
        print(
            "closed",
            &connection.send_request(request).block_task().await?,
        )?;
    }
    Ok(())
}

/// Prints what happened and the message as one line of JSON.
fn print(what: &str, message: &impl serde::Serialize) -> Result<()> {
    let message = serde_json::to_value(message).map_err(Error::into_internal_error)?;
    let line = Value::Object([(what.to_owned(), message)].into_iter().collect());
    writeln!(std::io::stdout().lock(), "{line}").map_err(Error::into_internal_error)
}

fn not_found_error(what: &str) -> Error {
    agent_client_protocol::v1::schema::Error::resource_not_found(Some(what.to_owned())).into()
}

fn read_file(request: &ReadTextFileRequest) -> Result<ReadTextFileResponse> {
    let content = std::fs::read_to_string(&request.path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => not_found_error(&request.path.to_string_lossy()),
        _ => Error::into_internal_error(e),
    })?;
    let first = request
        .line
        .map_or(0, |line| line.saturating_sub(1) as usize);
    let count = request.limit.map_or(usize::MAX, |limit| limit as usize);
    let lines: String = content
        .split_inclusive('\n')
        .skip(first)
        .take(count)
        .collect();
    Ok(ReadTextFileResponse::new(lines))
}

impl OfficialClientState {
    fn choose_outcome(&self, request: &RequestPermissionRequest) -> RequestPermissionOutcome {
        // A client that cancels a turn responds to its pending permission requests with `cancelled`.
        if self.cancel_at == Some(CancelPoint::Permission) {
            return RequestPermissionOutcome::Cancelled;
        }
        let wanted = match self.reject {
            true => PermissionOptionKind::RejectOnce,
            false => PermissionOptionKind::AllowOnce,
        };
        let chosen = request.options.iter().find(|option| option.kind == wanted);
        chosen.map_or(RequestPermissionOutcome::Cancelled, |option| {
            let chosen = SelectedPermissionOutcome::new(option.option_id.clone());
            RequestPermissionOutcome::Selected(chosen)
        })
    }

    fn create_terminal(
        self: &Arc<Self>,
        request: &CreateTerminalRequest,
        connection: &ConnectionTo<Agent>,
    ) -> Result<CreateTerminalResponse> {
        let mut command = Command::new(&request.command);
        command
            .args(&request.args)
            .envs(
                request
                    .env
                    .iter()
                    .map(|variable| (&variable.name, &variable.value)),
            )
            .current_dir(request.cwd.as_deref().unwrap_or(Path::new(".")))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(Error::into_internal_error)?;
        let terminal = Arc::new(OfficialTerminal::default());
        let number = self.created_count.fetch_add(1, Ordering::Relaxed);
        let id = TerminalId::new(format!("terminal-{number}"));
        self.terminals().insert(id.clone(), Arc::clone(&terminal));
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (state, session, cancelling) = (
            Arc::clone(self),
            request.session_id.clone(),
            connection.clone(),
        );
        connection.spawn(async move {
            let printed = || state.cancel_if_at(CancelPoint::Output, &session, &cancelling);
            let reading = async {
                tokio::join!(
                    terminal.read_output(stdout, &printed),
                    terminal.read_output(stderr, &printed)
                )
            };
            let ending = async {
                tokio::select! {
                    status = child.wait() => return status,
                    () = terminal.kill.notified() => {}
                }
                child.kill().await?;
                child.wait().await
            };
            // The last output is available before the exit is reported.
            let (status, _) = tokio::join!(ending, reading);
            terminal.exit.send_replace(Some(exit_status(status)));
            Ok(())
        })?;
        Ok(CreateTerminalResponse::new(id))
    }
}

#[derive(Default)]
struct OfficialTerminal {
    output: Mutex<Vec<u8>>,
    exit: watch::Sender<Option<TerminalExitStatus>>,
    kill: Notify,
}

impl OfficialTerminal {
    async fn read_output(
        &self,
        pipe: Option<impl AsyncRead + Unpin>,
        printed: &impl Fn() -> Result<()>,
    ) -> Result<()> {
        let Some(mut pipe) = pipe else { return Ok(()) };
        let mut buffer = [0; 4096];
        loop {
            let read = pipe
                .read(&mut buffer)
                .await
                .map_err(Error::into_internal_error)?;
            if read == 0 {
                return Ok(());
            }
            let text = buffer.get(..read).unwrap_or_default();
            self.output
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend_from_slice(text);
            printed()?;
        }
    }

    fn output(&self) -> TerminalOutputResponse {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&output).into_owned();
        TerminalOutputResponse::new(text, false).exit_status(self.exit.borrow().clone())
    }

    async fn wait(&self) -> TerminalExitStatus {
        let mut exit = self.exit.subscribe();
        // `self` keeps the sender, so the sender is not dropped in the meantime.
        exit.wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|exit| exit.clone())
            .unwrap_or_default()
    }
}

fn exit_status(status: std::io::Result<std::process::ExitStatus>) -> TerminalExitStatus {
    let Ok(status) = status else {
        return TerminalExitStatus::new();
    };
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return TerminalExitStatus::new().signal(signal.to_string());
    }
    TerminalExitStatus::new().exit_code(status.code().and_then(|code| u32::try_from(code).ok()))
}
