//! The correct client. It opens a session, sends prompts, offers everything it supports, uses old sessions, and then
//! exits.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use acp::client::{
    AgentConnection, Client, ClientSession, ClientState, Elicitation, PermissionRequest,
    ReadTextFile, SessionSetup, Terminals, Update, UpdateContext, WriteTextFile,
};
use acp::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationCapabilities, Implementation,
    ListSessionsRequest, McpServer, PermissionOptionId, RequestPermissionOutcome,
    SessionConfigOption, SessionId, StopReason,
};
use acp::{Result, ThreadHandle, Transport};
use acp_check::{CANCEL_REQUEST_TEXT, WAIT_REQUEST_TEXT};
use acp_host::{Host, HostSession, Permissions, Policy, Prompter};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// How long to wait for the list of old sessions. A later response is ignored.
const LIST_LIFETIME: Duration = Duration::from_millis(200);

/// Runs a client with all capabilities on this connection to an agent.
pub(crate) fn start_client(transport: Transport) {
    tokio::spawn(async move {
        let directory = tempfile::Builder::new()
            .prefix("acp-right-")
            .tempdir()
            .unwrap();
        let cwd = directory.path().canonicalize().unwrap();
        let host = Host::new(Permissions::from(Policy::All), CheckPrompter, [cwd.clone()]).unwrap();
        let host = Arc::new(host);
        let cancel = Arc::new(Notify::new());
        let client = CorrectClient {
            host: Arc::clone(&host),
            cancel: Arc::clone(&cancel),
        };
        // If the agent makes something impossible, the client exits.
        let _ = use_agent(transport, client, &cancel, SessionSetup::new(&cwd)).await;
        host.close().await;
    });
}

/// Runs a client without capabilities on this connection to an agent.
pub(crate) fn start_minimal_client(transport: Transport) {
    tokio::spawn(async move {
        let Ok(agent) =
            acp::testing::start_client(transport, MinimalCheckClient, acp::Options::new()).await
        else {
            return;
        };
        if let Ok(session) = agent.new_session("/").await {
            let _ = session.prompt("Do it.").await;
        }
        agent.close();
    });
}

async fn use_agent(
    transport: Transport,
    client: CorrectClient,
    cancel: &Notify,
    setup: SessionSetup,
) -> Result<()> {
    let agent = acp::testing::start_client(transport, client, acp::Options::new()).await?;
    let used = open_and_use(&agent, cancel, &setup).await;
    agent.close();
    used
}

async fn open_and_use(
    agent: &AgentConnection,
    cancel: &Notify,
    setup: &SessionSetup,
) -> Result<()> {
    let session = match agent.new_session(setup.clone()).await {
        Err(error) if error.is_auth_required() => {
            let method = agent.auth_methods().first();
            let method = method.and_then(|method| method.id_and_name());
            let Some((id, _)) = method else {
                return Err(error);
            };
            agent.authenticate(id).await?;
            agent.new_session(setup.clone()).await?
        }
        session => session?,
    };
    run_turn(&session, cancel, "Do it.").await?;
    set_all_options(&session).await?;
    run_turn(&session, cancel, "And the rest of it.").await?;
    use_old_sessions(agent, &session, setup).await
}

/// Runs a turn. The user cancels it if asked to.
async fn run_turn(session: &ClientSession, cancel: &Notify, text: &str) -> Result<StopReason> {
    let mut prompting = std::pin::pin!(session.prompt(text));
    tokio::select! {
        ended = &mut prompting => return ended,
        () = cancel.notified() => {}
    }
    session.cancel().await?;
    prompting.await
}

/// Sets every option to another value.
async fn set_all_options(session: &ClientSession) -> Result<()> {
    let options: Vec<SessionConfigOption> = session
        .thread()
        .read(|thread| thread.config_options().to_vec());
    for option in options {
        let told = serde_json::to_value(&option).unwrap();
        let values = told["options"].as_array().into_iter().flatten();
        let mut values = values.filter_map(|of| of["value"].as_str());
        let other = values.find(|value| told["currentValue"] != *value);
        if let Some(other) = other {
            session.set_config_option(&option.id, other).await?;
        }
    }
    Ok(())
}

/// Uses old sessions in every way that the agent supports.
async fn use_old_sessions(
    agent: &AgentConnection,
    session: &ClientSession,
    setup: &SessionSetup,
) -> Result<()> {
    let offered = agent.capabilities().clone();
    if offered.session_capabilities.list.is_some() {
        let all = ListSessionsRequest::new();
        let listing = tokio::time::timeout(LIST_LIFETIME, agent.list_sessions(&all));
        let listed = match listing.await {
            Ok(listed) => listed?.sessions,
            // The response is no longer useful.
            Err(_) => Vec::new(),
        };
        for old in listed {
            if offered.load_session {
                agent.load_session(&old.session_id, setup.clone()).await?;
            }
            if offered.session_capabilities.resume.is_some() {
                agent.resume_session(&old.session_id, setup.clone()).await?;
            }
            if offered.session_capabilities.delete.is_some() {
                agent.delete_session(&old.session_id).await?;
            }
        }
    }
    if offered.session_capabilities.close.is_some() {
        session.close().await?;
    }
    if offered.auth.logout.is_some() {
        agent.logout().await?;
    }
    Ok(())
}

struct MinimalCheckClient;

impl Client for MinimalCheckClient {
    type State = ();

    fn info(&self) -> Option<Implementation> {
        Some(Implementation::new("least", "1.0.0"))
    }
}

/// A prompter that responds without asking a user.
struct CheckPrompter;

impl Prompter for CheckPrompter {
    async fn ask(&self, _: &PermissionRequest) -> Option<PermissionOptionId> {
        None
    }
}

struct CorrectClient {
    host: Arc<Host<CheckPrompter>>,
    /// Notified when the agent asks the user to cancel the turn.
    cancel: Arc<Notify>,
}

impl ClientState<CorrectClient> for HostSession {
    fn new(client: &CorrectClient, session: &SessionId, thread: &ThreadHandle) -> Self {
        client.host.session(session, thread)
    }

    fn turn_ended(&self, stop_reason: Option<&StopReason>) {
        HostSession::turn_ended(self, stop_reason);
    }

    fn closed(&self) {
        HostSession::closed(self);
    }
}

impl Client for CorrectClient {
    type State = HostSession;

    fn info(&self) -> Option<Implementation> {
        Some(Implementation::new("right", "1.0.0"))
    }

    fn mcp_servers(&self) -> Vec<McpServer> {
        let server = json!({"name": "tools", "command": "/bin/true", "args": [], "env": []});
        vec![serde_json::from_value(server).unwrap()]
    }

    async fn update(&self, _: &HostSession, _: &UpdateContext, update: &Update) {
        if update
            .message_text()
            .is_some_and(|text| text.contains(CANCEL_REQUEST_TEXT))
        {
            self.cancel.notify_one();
        }
    }

    async fn request_permission(
        &self,
        _: &HostSession,
        request: PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        if request.title == CANCEL_REQUEST_TEXT {
            self.cancel.notify_one();
        }
        if request.title == CANCEL_REQUEST_TEXT || request.title == WAIT_REQUEST_TEXT {
            return pending().await;
        }
        Ok(request.allow())
    }

    fn read_text_file(&self) -> Option<&impl ReadTextFile<HostSession>> {
        Some(&*self.host)
    }

    fn write_text_file(&self) -> Option<&impl WriteTextFile<HostSession>> {
        Some(&*self.host)
    }

    fn terminals(&self) -> Option<&impl Terminals<HostSession>> {
        Some(&*self.host)
    }

    fn elicitation(&self) -> Option<&impl Elicitation<HostSession>> {
        Some(self)
    }
}

impl Elicitation<HostSession> for CorrectClient {
    fn capabilities(&self) -> ElicitationCapabilities {
        serde_json::from_value(json!({"form": {}})).unwrap()
    }

    /// Fills in every field that the form requires.
    async fn create(
        &self,
        _: Option<&HostSession>,
        request: CreateElicitationRequest,
    ) -> Result<CreateElicitationResponse> {
        let asked = serde_json::to_value(&request).unwrap();
        let schema = &asked["requestedSchema"];
        let required = schema["required"].as_array().into_iter().flatten();
        let content: serde_json::Map<String, Value> = required
            .filter_map(Value::as_str)
            .map(|name| {
                let value = match schema["properties"][name]["type"].as_str() {
                    Some("boolean") => json!(true),
                    Some("integer" | "number") => json!(7),
                    Some("array") => json!([]),
                    _ => json!("checked"),
                };
                (name.to_owned(), value)
            })
            .collect();
        let answer = json!({"action": "accept", "content": content});
        Ok(serde_json::from_value(answer).unwrap())
    }
}
