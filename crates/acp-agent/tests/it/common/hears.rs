//! A model that follows a script and records the requests it receives.

use std::sync::Arc;

use acp::v1::ContentBlock;
use acp_agent::{CodingAgent, Model, ModelMessage, RoundRequest, ScriptedModel, Steps, ToolStatus};
use tokio::sync::watch;

use super::TIMEOUT;

/// A request that the model received.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub instructions: String,
    pub conversation: Vec<ModelMessage>,
    pub tools: usize,
}

impl RecordedRequest {
    /// Returns the conversation, with one line for each message.
    pub fn message_lines(&self) -> Vec<String> {
        self.conversation.iter().map(message_line).collect()
    }

    /// Returns the texts of all tool results, as sent to the model.
    pub fn result_texts(&self) -> Vec<String> {
        let results = self
            .conversation
            .iter()
            .filter_map(|message| match message {
                ModelMessage::ToolResult(result) => Some(result.text.clone()),
                _ => None,
            });
        results.collect()
    }

    /// Returns the text blocks of the last prompt.
    pub fn prompt(&self) -> Vec<ContentBlock> {
        let prompts = self.conversation.iter().rev();
        let mut prompts = prompts.filter_map(|message| match message {
            ModelMessage::User(content) => Some(content.clone()),
            _ => None,
        });
        prompts.next().expect("there is a prompt")
    }

    /// Returns `true` if a provider would accept the conversation: no message is empty, and each call is followed by
    /// its result.
    pub fn is_well_formed(&self) -> bool {
        let mut open: Vec<&str> = Vec::new();
        let each = self.conversation.iter().all(|message| match message {
            ModelMessage::User(content) => open.is_empty() && !content.is_empty(),
            ModelMessage::Assistant { text, calls, .. } => {
                let done = open.is_empty();
                open.extend(calls.iter().map(|call| call.id.as_str()));
                done && !(text.is_empty() && calls.is_empty())
            }
            ModelMessage::ToolResult(result) => {
                let before = open.len();
                open.retain(|id| *id != result.id);
                open.len() + 1 == before
            }
            _ => false,
        });
        each && open.is_empty() && matches!(self.conversation.first(), Some(ModelMessage::User(_)))
    }
}

fn message_line(message: &ModelMessage) -> String {
    match message {
        ModelMessage::User(content) => {
            let texts: Vec<_> = content.iter().filter_map(ContentBlock::as_text).collect();
            format!("user {}", texts.join(" | "))
        }
        ModelMessage::Assistant { text, calls, .. } => {
            let tools: Vec<_> = calls.iter().map(|call| call.tool.as_str()).collect();
            format!("assistant {text} [{}]", tools.join(", "))
        }
        ModelMessage::ToolResult(result) if result.status == ToolStatus::Done => {
            format!("result of {} bytes", result.text.len())
        }
        ModelMessage::ToolResult(result) => format!("result {:?}", result.status),
        other => panic!("{other:?}"),
    }
}

/// Records the requests that a model receives, in order.
#[derive(Debug, Clone, Default)]
pub struct RequestRecorder(Arc<watch::Sender<Vec<RecordedRequest>>>);

impl RequestRecorder {
    /// Returns an agent whose model follows this script.
    pub fn scripted_agent(&self, script: &str) -> CodingAgent {
        CodingAgent::with_model(RecordingModel {
            script: ScriptedModel::parse(script).unwrap(),
            heard: self.clone(),
        })
    }

    pub fn all_requests(&self) -> Vec<RecordedRequest> {
        self.0.borrow().clone()
    }

    /// Waits until the model has received this many requests.
    pub async fn wait_for_requests(&self, times: usize) {
        let mut asked = self.0.subscribe();
        let asked = asked.wait_for(|asked| asked.len() >= times);
        let asked = tokio::time::timeout(TIMEOUT, asked).await;
        asked.expect("the model is asked").unwrap();
    }

    pub fn last_request(&self) -> RecordedRequest {
        self.all_requests().pop().expect("the model was asked")
    }
}

struct RecordingModel {
    script: ScriptedModel,
    heard: RequestRecorder,
}

impl Model for RecordingModel {
    fn name(&self) -> &str {
        "hears"
    }

    fn context_window(&self) -> Option<u64> {
        self.script.context_window()
    }

    fn respond<'a>(&'a self, request: RoundRequest<'a>) -> Steps<'a> {
        let asked = RecordedRequest {
            instructions: request.instructions.to_owned(),
            conversation: request.conversation.to_vec(),
            tools: request.tools.len(),
        };
        self.heard.0.send_modify(|all| all.push(asked));
        self.script.respond(request)
    }
}
