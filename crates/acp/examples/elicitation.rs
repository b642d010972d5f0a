//! An agent that requests input from the user with a form.
//!
//! ```sh
//! cargo run -p acp-sdk --example elicitation
//! ```

// Clippy warns about printing, which is this program's purpose.
#![allow(clippy::print_stdout)]

use acp::agent::{Agent, OpenedSession, Prompt, Session, SessionSetup, Turn};
use acp::client::{Client, Elicitation, connect};
use acp::transport;
use acp::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAcceptAction,
    ElicitationAction, ElicitationCapabilities, ElicitationContentValue,
    ElicitationFormCapabilities, ElicitationMode, ElicitationPropertySchema, ElicitationSchema,
    StopReason, StringPropertySchema,
};

struct ElicitingAgent;

impl Agent for ElicitingAgent {
    type State = ();

    async fn new_session(&self, _: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
        Ok(OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> acp::Result<StopReason> {
        let name = StringPropertySchema::new().title("Your name");
        let name = ElicitationPropertySchema::String(name);
        let form = ElicitationSchema::new()
            .properties([("name".to_owned(), name)])
            .required(vec!["name".to_owned()]);
        let form = ElicitationMode::Form {
            requested_schema: form,
        };
        // If the client does not support forms, this returns `Error::Unsupported` and nothing is sent.
        match turn.elicit("What is your name?", form, None).await? {
            ElicitationAction::Accept(accepted) => {
                let fields = accepted.content.unwrap_or_default();
                let Some(ElicitationContentValue::String(name)) = fields.get("name") else {
                    return Err(acp::Error::invalid_params("the name is missing"));
                };
                turn.send_message(format!("Hello, {name}!")).await?;
            }
            ElicitationAction::Decline(_) => turn.send_message("No problem.").await?,
            _ => return Ok(StopReason::Cancelled),
        }
        Ok(StopReason::EndTurn)
    }
}

/// A simulated user who always gives the name Ada.
struct ScriptedUser;

impl Elicitation<()> for ScriptedUser {
    fn capabilities(&self) -> ElicitationCapabilities {
        ElicitationCapabilities::new().form(ElicitationFormCapabilities::new())
    }

    async fn create(
        &self,
        _: Option<&()>,
        request: CreateElicitationRequest,
    ) -> acp::Result<CreateElicitationResponse> {
        println!("{}", request.message);
        let ElicitationMode::Form { requested_schema } = &request.mode else {
            return Err(acp::Error::invalid_params(
                "this client supports only forms",
            ));
        };
        let fields = requested_schema.properties.keys();
        let ada = || ElicitationContentValue::String("Ada".to_owned());
        let filled_in = fields.map(|field| (field.clone(), ada()));
        let accepted = ElicitationAcceptAction::new(filled_in.collect());
        let action = ElicitationAction::Accept(accepted);
        Ok(CreateElicitationResponse::new(action))
    }
}

struct ElicitationClient {
    user: ScriptedUser,
}

impl Client for ElicitationClient {
    type State = ();

    fn elicitation(&self) -> Option<&impl Elicitation<()>> {
        Some(&self.user)
    }

    async fn update(&self, (): &(), _: &acp::client::UpdateContext, update: &acp::Update) {
        println!("{}", update.message_text().unwrap_or_default());
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> acp::Result<()> {
    let (client_transport, agent_transport) = transport::memory();
    let (_, driver) = acp::agent::start(agent_transport, ElicitingAgent, acp::Options::new());
    tokio::spawn(driver);
    let (handshake, driver) = connect(client_transport, ElicitationClient { user: ScriptedUser });
    tokio::spawn(driver);
    let agent = handshake.await?;
    agent.new_session("/").await?.prompt("Hello.").await?;
    Ok(())
}
