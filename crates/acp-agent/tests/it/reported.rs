//! Tests how tool calls are reported: each update contains only the status and the changed fields, and the first title
//! is descriptive.

use crate::common;
use std::time::Duration;

use crate::common::{
    ALL_CAPABILITIES, ALLOW, AgentFixture, NO_CAPABILITIES, call_diff, call_text, has_call_showing,
};
use acp::thread::ToolCallStatus;
use acp::v1::*;
use acp_agent::store::{MemoryStore, SqliteStore};
use acp_agent::{
    CodingAgent, Model, ModelConfig, ModelMessage, RoundRequest, Step, Steps, ToolRequest,
};
use serde_json::{Value, json};

/// Returns all reports of tool calls, as sent over the wire.
fn reported_updates(f: &AgentFixture) -> Vec<Value> {
    let updates = f.seen.updates.lock().unwrap();
    updates
        .iter()
        .filter(|update| {
            matches!(
                update,
                SessionUpdate::ToolCall(_) | SessionUpdate::ToolCallUpdate(_)
            )
        })
        .map(|update| serde_json::to_value(update).unwrap())
        .collect()
}

#[tokio::test]
async fn update_contains_the_changed_fields_and_the_status() {
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        for mode in ["ask", "code"] {
            for command in [
                "/write a.txt new",
                "/edit b.txt\nold\n===\nnew",
                "/run echo one; echo two",
                "/read b.txt",
                "/read missing.txt",
            ] {
                let f = AgentFixture::start_offline(offers).await;
                f.write_file("b.txt", "old\n");
                f.session.set_mode(mode).await.unwrap();
                let asks = match mode {
                    "ask" => !command.starts_with("/read"),
                    _ => command.starts_with("/run"),
                };
                f.queue_answers(asks.then_some(ALLOW));
                f.prompt_for_text(command).await;
                let all = reported_updates(&f);
                let mut told = all[0].clone();
                for update in &all[1..] {
                    let update = update.as_object().unwrap();
                    assert!(update.contains_key("status"), "{command}: {update:?}");
                    for (name, value) in update {
                        let repeats = told.get(name) == Some(value);
                        let may =
                            ["sessionUpdate", "toolCallId", "status"].contains(&name.as_str());
                        assert!(may || !repeats, "{mode} {command}: {name} in {all:#?}");
                        told[name] = value.clone();
                    }
                }
                // One update for the permission request or the start, one for the end, and updates for the output of a
                // command.
                let most = if command.starts_with("/run") { 6 } else { 4 };
                assert!(all.len() <= most, "{mode} {command}: {all:#?}");
                assert!(["completed", "failed"].contains(&told["status"].as_str().unwrap()));
            }
        }
    }
}

#[tokio::test]
async fn cancelled_command_keeps_its_output() {
    let f = AgentFixture::start_offline(NO_CAPABILITIES).await;
    f.queue_answers([ALLOW]);
    let ended = f
        .cancel_when("/run echo shown; sleep 60", |thread| {
            has_call_showing(thread, ToolCallStatus::InProgress, "shown")
        })
        .await;
    assert_eq!(ended, StopReason::Cancelled);
    let call = f.last_tool_call();
    assert_eq!(call.status, ToolCallStatus::Failed);
    let said = call_text(&call);
    assert!(
        said.contains("shown\n") && said.ends_with("Cancelled."),
        "{said}"
    );
}

#[tokio::test]
async fn replayed_call_output_is_sent_once_in_an_update() {
    let store = tempfile::tempdir().unwrap();
    let agent = || {
        let store = SqliteStore::open(store.path()).unwrap();
        let agent = CodingAgent::new(&ModelConfig::Offline).unwrap();
        agent.keep_sessions(store)
    };
    let f = AgentFixture::new(agent(), NO_CAPABILITIES).await;
    f.write_file("a.txt", "old\n");
    f.queue_answers([ALLOW]);
    f.prompt_for_text("/write a.txt new").await;
    f.queue_answers([ALLOW]);
    f.prompt_for_text("/run echo printed").await;
    let before = f.tool_calls();
    let id = f.session.id().clone();
    f.session.close().await.unwrap();

    let g = AgentFixture::new(agent(), NO_CAPABILITIES).await;
    g.seen.updates.lock().unwrap().clear();
    let again = g.agent.load_session(id, f.cwd()).await.unwrap();
    let all = reported_updates(&g);
    assert_eq!(all.len(), 4, "{all:#?}");
    for pair in all.chunks(2) {
        let [call, update] = pair else { panic!() };
        assert_eq!(call["sessionUpdate"], "tool_call");
        assert!(call.get("content").is_none(), "{call}");
        assert_eq!(update["sessionUpdate"], "tool_call_update");
        assert_eq!(update["toolCallId"], call["toolCallId"]);
        assert_eq!(update["status"], "completed");
    }
    assert_eq!(all[1]["content"][0]["newText"], "new");
    assert!(all[3]["content"].to_string().contains("printed"));
    let after = again.thread().read(|thread| thread.items().len());
    assert_eq!(
        after,
        f.session.thread().read(|thread| thread.items().len())
    );
    assert_eq!(call_diff(&before[0]).unwrap().new_text, "new");
}

/// A model that starts to write a tool call, waits, and writes the rest.
struct SlowWritingModel(Duration);

impl Model for SlowWritingModel {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn respond<'a>(&'a self, request: RoundRequest<'a>) -> Steps<'a> {
        if !matches!(request.conversation.last(), Some(ModelMessage::User(_))) {
            return Box::pin(futures_util::stream::empty());
        }
        let arguments = json!({"command": "make"});
        let begins = Step::CallStarted {
            call: 0,
            tool: "run".to_owned(),
        };
        let writes = Step::CallDelta {
            call: 0,
            arguments: arguments.to_string(),
        };
        let call = Step::Call(ToolRequest::new("one", "run", arguments));
        let first = futures_util::stream::iter([Ok(begins)]);
        let (wait, mut rest) = (self.0, vec![writes, call].into_iter());
        let rest = futures_util::stream::unfold(true, move |waits| {
            let step = rest.next();
            async move {
                if waits {
                    tokio::time::sleep(wait).await;
                }
                Some((Ok(step?), false))
            }
        });
        Box::pin(futures_util::StreamExt::chain(first, rest))
    }
}

/// Returns the titles of the call, in the order reported.
async fn shown_titles(waits: Duration) -> Vec<String> {
    let agent = CodingAgent::with_model(SlowWritingModel(waits)).keep_sessions(MemoryStore::new());
    let f = AgentFixture::new(agent, NO_CAPABILITIES).await;
    f.queue_answers([common::REJECT]);
    assert_eq!(f.prompt("Go").await.unwrap(), StopReason::EndTurn);
    let all = reported_updates(&f);
    assert_eq!(all[0]["sessionUpdate"], "tool_call");
    let titles = all.iter().filter_map(|update| update["title"].as_str());
    titles.map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn first_title_is_descriptive_unless_arguments_arrive_slowly() {
    let within = Duration::from_millis(999);
    assert_eq!(shown_titles(within).await, ["Run `make`"]);
    let beyond = Duration::from_millis(1001);
    assert_eq!(shown_titles(beyond).await, ["Run a command", "Run `make`"]);
}
