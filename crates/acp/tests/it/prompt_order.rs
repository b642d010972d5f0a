//! Tests of prompts sent without waiting for each other.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use acp::agent::{Prompt, Turn, default_limits};
use acp::v1::{ContentBlock, PromptRequest, StopReason};
use acp::{Agent, Client, Options, Result, v2};

use crate::common::with_timeout;

/// An agent that records its prompts.
#[derive(Clone, Default)]
struct PromptOrderAgent(Arc<Mutex<Vec<String>>>);

impl Agent for PromptOrderAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(&self, (): &(), _: Turn, prompt: Prompt) -> Result<StopReason> {
        self.0.lock().unwrap().push(prompt.text());
        Ok(StopReason::EndTurn)
    }
}

struct PromptOrderClient;
impl Client for PromptOrderClient {
    type State = ();
}

const PROMPT_COUNT: usize = 200;

async fn check_prompt_order(options: fn() -> Options) {
    let worker = PromptOrderAgent::default();
    let (ours, theirs) = acp::transport::memory();
    let mut limits = default_limits();
    limits.prompts = PROMPT_COUNT;
    let _agent = acp::testing::start_agent(theirs, worker.clone(), options().limits(limits));
    let agent = acp::testing::start_client(ours, PromptOrderClient, options())
        .await
        .unwrap();
    let session = agent.new_session("/work").await.unwrap();
    let speaks_v2 = agent.version() == acp::v1::ProtocolVersion::V2;
    let texts: Vec<String> = (0..PROMPT_COUNT).map(|number| number.to_string()).collect();
    let mut answers = Vec::new();
    for text in &texts {
        let content = vec![ContentBlock::text(text)];
        let (connection, id) = (agent.connection().clone(), session.id().clone());
        let mut answer = Box::pin(async move {
            if speaks_v2 {
                let request = v2::PromptRequest::new(&id, content);
                connection.request(&request).await.map(drop)
            } else {
                let request = PromptRequest::new(&id, content);
                connection.request(&request).await.map(drop)
            }
        });
        // The prompt is sent at once, and may already have its response here.
        match poll_fn(|cx| Poll::Ready(answer.as_mut().poll(cx))).await {
            Poll::Ready(answered) => answered.unwrap(),
            Poll::Pending => answers.push(answer),
        }
    }
    for answer in answers {
        with_timeout("it is answered", answer).await.unwrap();
    }
    // In version 2, the response to the last prompt comes before the agent has worked on it.
    let worked = worker.0.lock().unwrap().clone();
    assert_eq!(worked[..PROMPT_COUNT - 1], texts[..PROMPT_COUNT - 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn version_1_prompts_run_in_order() {
    check_prompt_order(Options::new).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn version_2_prompts_run_in_order() {
    check_prompt_order(|| Options::new().draft_version_2()).await;
}
