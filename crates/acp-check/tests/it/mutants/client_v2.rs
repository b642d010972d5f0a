//! The correct client in version 2. It logs in if necessary, opens a session, sends prompts, cancels when asked to, and
//! uses the other features before exiting.

use std::sync::Arc;

use acp::client::{AgentConnection, Client, Elicitation, PermissionRequest, Update, UpdateContext};
use acp::v1::{
    AuthMethod, CreateElicitationRequest, CreateElicitationResponse, ElicitationAction,
    ElicitationCapabilities, ElicitationFormCapabilities, ElicitationMode, ElicitationNoContent,
    ListSessionsRequest, RequestPermissionOutcome,
};
use acp::{Options, Transport, jsonrpc};
use tokio::sync::Notify;

/// Runs a version 2 client on this connection to an agent.
pub(crate) fn start_client(transport: Transport) {
    tokio::spawn(async move {
        let told = Arc::new(Notify::new());
        let right = CorrectClientV2 {
            told: Arc::clone(&told),
        };
        let options = Options::new().draft_version_2();
        let Ok(agent) = acp::testing::start_client(transport, right, options).await else {
            return;
        };
        // If the agent rejects something, the client exits.
        let _ = use_agent(&agent, &told).await;
        agent.close();
    });
}

async fn use_agent(agent: &AgentConnection, told: &Notify) -> acp::Result<()> {
    let session = match agent.new_session("/").await {
        Err(acp::Error::Rpc(e)) if e.code == jsonrpc::Error::AUTH_REQUIRED => {
            let method = agent.auth_methods().iter().find_map(|method| match method {
                AuthMethod::Agent(method) => Some(method.id.clone()),
                _ => None,
            });
            let Some(method) = method else {
                return Ok(());
            };
            agent.authenticate(method).await?;
            agent.new_session("/").await?
        }
        opened => opened?,
    };
    let turn = session.prompt("Do it.");
    tokio::pin!(turn);
    loop {
        tokio::select! {
            end = &mut turn => {
                end?;
                break;
            }
            () = told.notified() => session.cancel().await?,
        }
    }
    // There may be no such option.
    let _ = session.set_config_option("loud", true).await;
    let request = ListSessionsRequest::new();
    // Drop one request, which sends `$/cancel_request`, and wait for another.
    tokio::select! {
        biased;
        _ = agent.list_sessions(&request) => {}
        () = std::future::ready(()) => {}
    }
    agent.list_sessions(&request).await?;
    session.close().await?;
    let id = session.id().clone();
    agent.load_session(id.clone(), "/").await?;
    if agent.capabilities().session_capabilities.delete.is_some() {
        agent.delete_session(&id).await?;
    }
    if !agent.auth_methods().is_empty() {
        agent.logout().await?;
    }
    Ok(())
}

struct CorrectClientV2 {
    told: Arc<Notify>,
}

impl Client for CorrectClientV2 {
    type State = ();

    async fn update(&self, (): &(), _: &UpdateContext, update: &Update) {
        if update
            .message_text()
            .is_some_and(|text| text.contains("Please cancel"))
        {
            self.told.notify_one();
        }
    }

    async fn request_permission(
        &self,
        (): &(),
        request: PermissionRequest,
    ) -> acp::Result<RequestPermissionOutcome> {
        match request.allow() {
            RequestPermissionOutcome::Selected(chosen) => {
                Ok(RequestPermissionOutcome::Selected(chosen))
            }
            // A request that cannot be allowed waits for a user, who never comes.
            _ => std::future::pending().await,
        }
    }

    fn elicitation(&self) -> Option<&impl Elicitation<()>> {
        Some(self)
    }
}

impl Elicitation<()> for CorrectClientV2 {
    fn capabilities(&self) -> ElicitationCapabilities {
        ElicitationCapabilities::new().form(ElicitationFormCapabilities::new())
    }

    async fn create(
        &self,
        _: Option<&()>,
        request: CreateElicitationRequest,
    ) -> acp::Result<CreateElicitationResponse> {
        match request.mode {
            ElicitationMode::Form { .. } => {
                let declined = ElicitationAction::Decline(ElicitationNoContent::default());
                Ok(CreateElicitationResponse::new(declined))
            }
            _ => Err(acp::Error::invalid_params("only forms are shown")),
        }
    }
}
