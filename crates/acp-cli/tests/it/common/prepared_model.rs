//! A model for the agents of tests, which gives prepared answers and records what it is sent.

use acp_agent::{Provider, WireFormat};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::ACP;
use crate::full_task::provider::{AnswerPiece, ProviderReply, ProviderServer};

/// A model that gives prepared answers, on a runtime of its own.
pub(crate) struct PreparedModel {
    runtime: Runtime,
    server: ProviderServer,
}

impl PreparedModel {
    pub(crate) fn new(answers: &[&'static str]) -> Self {
        Self::with_replies(answers.iter().map(|text| say(text)).collect())
    }

    pub(crate) fn with_replies(replies: Vec<ProviderReply>) -> Self {
        Self::with_format(Provider::OpenAi, replies)
    }

    /// Starts a model whose server speaks this wire format.
    pub(crate) fn with_format(format: impl Into<WireFormat>, replies: Vec<ProviderReply>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let server = runtime.block_on(ProviderServer::new(format, replies));
        Self { runtime, server }
    }

    /// Returns the base URL of the model.
    pub(crate) fn url(&self) -> String {
        format!("{}/v1", self.origin())
    }

    /// Returns the URL of the model's server.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// Returns the command line of an agent that uses the model.
    pub(crate) fn agent(&self) -> String {
        let url = self.url();
        format!("{ACP} agent --model openai/prepared --base-url {url}")
    }

    /// Returns the messages of the last request, without the instructions: who said what.
    pub(crate) fn last_messages(&self, count: usize) -> Vec<String> {
        self.runtime.block_on(self.server.wait_for_requests(count));
        let requests = self.server.requests();
        assert_eq!(requests.len(), count);
        let messages = requests[count - 1].body["messages"].as_array().unwrap();
        let messages = messages
            .iter()
            .filter(|message| message["role"] != "system" && message["role"] != "developer");
        messages
            .map(|message| {
                format!(
                    "{}: {}",
                    message["role"].as_str().unwrap(),
                    content(message)
                )
            })
            .collect()
    }
}

/// Returns the text of a message in a request.
fn content(message: &Value) -> String {
    match &message["content"] {
        Value::Array(parts) => parts
            .iter()
            .map(|part| part["text"].as_str().unwrap_or("?"))
            .collect(),
        content => content.as_str().unwrap_or_default().to_owned(),
    }
}

/// Returns the reply of a model that says something.
pub(crate) fn say(text: &'static str) -> ProviderReply {
    ProviderReply::Says(vec![AnswerPiece::Text(text)])
}
