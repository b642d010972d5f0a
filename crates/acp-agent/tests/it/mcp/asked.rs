//! Tests MCP servers that request input from the user, through a client that supports such requests.

use std::sync::{Arc, Mutex};

use acp::client::{AgentConnection, Client, Elicitation, PermissionRequest};
use acp::thread::ItemKind;
use acp::v1::*;
use acp_agent::CodingAgent;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::server::stdio_config;
use super::{call_step, scripted_model};
use crate::common::call_text;

/// A client that allows every permission request, and gives the same answer to every elicitation.
struct ElicitationTestClient {
    offers: ElicitationCapabilities,
    answer: Value,
    seen: Arc<Mutex<Vec<CreateElicitationRequest>>>,
    completed: mpsc::UnboundedSender<String>,
}

impl Client for ElicitationTestClient {
    type State = ();

    async fn request_permission(
        &self,
        (): &(),
        _: PermissionRequest,
    ) -> acp::Result<RequestPermissionOutcome> {
        Ok(RequestPermissionOutcome::selected("allow_once"))
    }

    fn elicitation(&self) -> Option<&impl Elicitation<()>> {
        let offers = &self.offers;
        (offers.form.is_some() || offers.url.is_some()).then_some(self)
    }

    async fn elicitation_completed(&self, id: &ElicitationId) {
        self.completed.send(id.to_string()).unwrap();
    }
}

impl Elicitation<()> for ElicitationTestClient {
    fn capabilities(&self) -> ElicitationCapabilities {
        self.offers.clone()
    }

    async fn create(
        &self,
        _: Option<&()>,
        request: CreateElicitationRequest,
    ) -> acp::Result<CreateElicitationResponse> {
        self.seen.lock().unwrap().push(request);
        Ok(serde_json::from_value(self.answer.clone()).unwrap())
    }
}

/// The result of calling the server's tool that requests input.
struct ElicitationCall {
    text: String,
    asked: Vec<CreateElicitationRequest>,
    completed: mpsc::UnboundedReceiver<String>,
    agent: AgentConnection,
}

async fn call_eliciting_tool(
    tool: &str,
    offers: ElicitationCapabilities,
    answer: Value,
) -> ElicitationCall {
    call_eliciting_tool_with_text(tool, "", offers, answer).await
}

async fn call_eliciting_tool_with_text(
    tool: &str,
    text: &str,
    offers: ElicitationCapabilities,
    answer: Value,
) -> ElicitationCall {
    let call = call_step(&format!("ours__{tool}"), json!({ "text": text }));
    let turns = json!([[call, {"say": "done"}]]);
    let agent = CodingAgent::with_model(scripted_model(&turns))
        .mcp_servers(vec![stdio_config("ours", "usual")]);
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = acp::transport::memory();
    acp::testing::start_agent(theirs, agent, acp::Options::new());
    let (completed, completions) = mpsc::unbounded_channel();
    let seen = Arc::<Mutex<Vec<_>>>::default();
    let client = ElicitationTestClient {
        offers,
        answer,
        seen: Arc::clone(&seen),
        completed,
    };
    let agent = acp::testing::start_client(ours, client, acp::Options::new())
        .await
        .unwrap();
    let session = agent.new_session(dir.path()).await.unwrap();
    session.prompt("go").await.unwrap();
    let text = session.thread().read(|thread| {
        let calls = thread.items().iter().filter_map(|item| match &item.kind {
            ItemKind::ToolCall(call) => Some(call_text(call)),
            _ => None,
        });
        calls.collect::<String>()
    });
    let asked = seen.lock().unwrap().clone();
    ElicitationCall {
        text,
        asked,
        completed: completions,
        agent,
    }
}

fn form_capabilities() -> ElicitationCapabilities {
    ElicitationCapabilities::new().form(ElicitationFormCapabilities::new())
}

fn url_capabilities() -> ElicitationCapabilities {
    ElicitationCapabilities::new().url(ElicitationUrlCapabilities::new())
}

#[tokio::test]
async fn elicitation_fails_without_client_support() {
    for (tool, offers) in [
        ("ask", ElicitationCapabilities::new()),
        ("ask", url_capabilities()),
        ("page", ElicitationCapabilities::new()),
        ("page", form_capabilities()),
    ] {
        let mut came = call_eliciting_tool(tool, offers, json!({"action": "accept"})).await;
        assert!(came.text.contains("Decline"), "{tool}: {}", came.text);
        assert!(!came.text.contains("offered:true"), "{}", came.text);
        assert!(came.asked.is_empty());
        // The client is not notified of the end of a page that it never opened.
        assert!(came.completed.try_recv().is_err());
    }
}

#[tokio::test]
async fn server_can_elicit_input_with_a_form() {
    let answer = json!({"action": "accept", "content": {"city": "Bern"}});
    let came = call_eliciting_tool("ask", form_capabilities(), answer).await;
    assert_eq!(
        came.asked[0].message,
        "The MCP server `ours` asks: Which city?"
    );
    assert!(
        came.text.contains("Accept") && came.text.contains("Bern"),
        "{}",
        came.text
    );
}

#[tokio::test]
async fn server_can_ask_the_user_to_open_a_url() {
    let mut came =
        call_eliciting_tool("page", url_capabilities(), json!({"action": "accept"})).await;
    let [asked] = &came.asked[..] else {
        panic!("{:?}", came.asked);
    };
    assert_eq!(asked.message, "The MCP server `ours` asks: Log in, please.");
    let ElicitationMode::Url {
        elicitation_id,
        url,
    } = &asked.mode
    else {
        panic!("{asked:?}");
    };
    assert_eq!(url, "https://login.example/7");
    let ElicitationScope::Session { tool_call_id, .. } = &asked.scope else {
        panic!("{asked:?}");
    };
    assert!(tool_call_id.is_some());
    assert!(
        came.text.contains("Accept") && came.text.contains("offered:true"),
        "{}",
        came.text
    );
    // The client is notified of the end of this page once, and of no other page.
    assert_eq!(
        came.completed.recv().await.unwrap(),
        elicitation_id.to_string()
    );
    came.agent.close();
    drop(came.agent);
    assert_eq!(came.completed.recv().await, None);
}

#[tokio::test]
async fn rejected_url_elicitation_is_declined() {
    for (answer, expected) in [("decline", "Decline"), ("cancel", "Cancel")] {
        let mut came =
            call_eliciting_tool("page", url_capabilities(), json!({ "action": answer })).await;
        assert!(came.text.contains(expected), "{}", came.text);
        assert!(came.completed.try_recv().is_err());
    }
}

#[tokio::test]
async fn non_web_url_elicitation_is_rejected() {
    for url in ["javascript:alert(1)", "file:///etc/passwd", "login"] {
        let came = call_eliciting_tool_with_text(
            "page",
            url,
            url_capabilities(),
            json!({"action": "accept"}),
        )
        .await;
        assert!(came.text.contains("not asked"), "{url}: {}", came.text);
        assert!(came.asked.is_empty(), "{url}");
    }
}
