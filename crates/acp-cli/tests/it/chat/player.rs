//! An agent that plays steps given by a test, and records what the client sends.
//!
//! `play FILE` has it play the steps in that file, one after the other; anything else it is told goes into
//! [`RECORD_FILE`], as the content blocks it came in.

use std::sync::Mutex;
use std::time::Duration;

use acp::agent::{OpenedSession, Prompt, Session, SessionSetup, Turn};
use acp::v1::*;
use acp::{Agent, Error, Options, Result};
use serde::Deserialize;
use serde_json::{Value, json};

/// The file in the agent's working directory where it records what the client sends.
pub(crate) const RECORD_FILE: &str = "heard";

/// A step of the agent's script.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum PlayerStep {
    /// Sends an update.
    Update(Box<SessionUpdate>),
    /// Sends an update in another session.
    In(Box<SessionNotification>),
    /// Waits until a file with this name appears.
    Wait(String),
    /// Sends a permission request, and records the outcome.
    Ask(Box<PlayerPermission>),
    /// Sends a permission request in another session.
    AskIn(SessionId, Box<PlayerPermission>),
    /// Asks the user to open this URL, and records the response.
    Visit(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlayerPermission {
    tool_call: ToolCallUpdate,
    options: Vec<PermissionOption>,
}

/// Runs the agent with these flags on stdin and stdout.
pub(crate) fn run_player(flags: &[String]) {
    let has = |flag: &str| flags.iter().any(|known| known == flag);
    let takes = PromptCapabilities::new()
        .image(has("--images"))
        .embedded_context(has("--embedded"));
    let options = match has("--options") {
        true => serde_json::from_value(config_options()).unwrap(),
        false => Vec::new(),
    };
    let player = PlayerAgent {
        takes,
        options: Mutex::new(options),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let served = runtime.unwrap().block_on(async {
        acp::agent::serve_with(acp::transport::stdio()?, player, Options::new()).await
    });
    served.unwrap();
}

struct PlayerAgent {
    takes: PromptCapabilities,
    options: Mutex<Vec<SessionConfigOption>>,
}

/// Returns a config option of each type, not in alphabetical order.
fn config_options() -> Value {
    json!([
        {"id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": "write", "options": [
            {"value": "write", "name": "Write", "description": "changes files"},
            {"value": "look", "name": "Look", "description": "reads only"},
            {"value": "guide", "name": "Guide", "description": "says how you would do it"}]},
        {"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "swift", "options": [
            {"group": "quick", "name": "Quick", "options": [
                {"value": "swift", "name": "Swift 3", "description": "answers at once"},
                {"value": "brief", "name": "Brief 2"}]},
            {"group": "able", "name": "Able", "options": [
                {"value": "deep", "name": "Deep 9", "description": "for what is hard"}]}]},
        {"id": "effort", "name": "Effort", "category": "thought_level", "type": "select", "currentValue": "some",
            "options": [{"value": "some", "name": "Some"}, {"value": "much", "name": "Much"}]},
        {"id": "web", "name": "Search the web", "type": "boolean", "currentValue": false},
        {"id": "color", "name": "A color", "category": "_fun", "type": "select", "currentValue": "red",
            "options": [{"value": "red", "name": "Red"}, {"value": "blue", "name": "Blue"}]}
    ])
}

fn record(what: &impl serde::Serialize) {
    // Whole or not at all: who reads it may be quick.
    std::fs::write(".heard", serde_json::to_string(what).unwrap()).unwrap();
    std::fs::rename(".heard", RECORD_FILE).unwrap();
}

impl Agent for PlayerAgent {
    type State = ();

    fn info(&self) -> Option<Implementation> {
        Some(Implementation::new("player", "1.0").title("Player"))
    }

    fn prompt_capabilities(&self) -> PromptCapabilities {
        self.takes.clone()
    }

    async fn new_session(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        let options = self.options.lock().unwrap().clone();
        Ok(OpenedSession::new().config_options(options))
    }

    async fn set_config_option(
        &self,
        (): &(),
        _: &Session,
        option: &SessionConfigId,
        value: SessionConfigOptionValue,
    ) -> Result<Vec<SessionConfigOption>> {
        let mut options = self.options.lock().unwrap();
        for known in options.iter_mut().filter(|known| known.id == *option) {
            match (&mut known.kind, &value) {
                (SessionConfigKind::Select(select), SessionConfigOptionValue::Id(id)) => {
                    select.current_value = id.clone();
                }
                (
                    SessionConfigKind::Boolean { current_value },
                    SessionConfigOptionValue::Boolean(set),
                ) => *current_value = *set,
                other => return Err(Error::internal(format!("{other:?}"))),
            }
        }
        let heard = match &value {
            SessionConfigOptionValue::Id(id) => json!(id),
            SessionConfigOptionValue::Boolean(set) => json!(set),
        };
        record(&json!({"option": option, "value": heard}));
        Ok(options.clone())
    }

    async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> Result<StopReason> {
        let text = prompt.text();
        let Some(file) = text.strip_prefix("play ") else {
            record(&prompt.content);
            turn.send_message(format!("heard {} blocks", prompt.content.len()))
                .await?;
            return Ok(StopReason::EndTurn);
        };
        let steps = std::fs::read_to_string(file).unwrap();
        let steps: Vec<PlayerStep> = serde_json::from_str(&steps).unwrap();
        for step in steps {
            match step {
                PlayerStep::Update(update) => turn.send_update(*update).await?,
                PlayerStep::In(told) => turn.connection().notify(&*told).await?,
                PlayerStep::Wait(file) => turn.or_cancelled(wait_for_file(&file)).await?,
                PlayerStep::Ask(asks) => {
                    let outcome = turn
                        .request_permission(asks.tool_call, asks.options)
                        .await?;
                    record(&outcome);
                }
                PlayerStep::AskIn(session, asks) => {
                    let PlayerPermission { tool_call, options } = *asks;
                    let request = RequestPermissionRequest::new(session, tool_call, options);
                    let answer = turn.connection().request(&request).await?;
                    record(&answer.outcome);
                }
                PlayerStep::Visit(url) => {
                    let elicitation_id = "page".into();
                    let page = ElicitationMode::Url {
                        elicitation_id,
                        url,
                    };
                    let message = "Please confirm the device.";
                    record(&turn.elicit(message, page, None).await?);
                }
            }
        }
        Ok(StopReason::EndTurn)
    }
}

/// Waits until a file exists. The tests have no other way to tell the agent to continue.
async fn wait_for_file(file: &str) -> Result<()> {
    while !std::path::Path::new(file).exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}
