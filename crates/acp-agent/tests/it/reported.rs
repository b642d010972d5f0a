//! What is reported of a tool call: what changed, always with its status, and first of all what it is about.

use crate::common;
use std::time::Duration;

use crate::common::{ALL, ALLOW, AgentFixture, NONE, diff, shows, texts};
use acp::thread::ToolCallStatus;
use acp::v1::*;
use acp_agent::store::{MemoryStore, SqliteStore};
use acp_agent::{
    CodingAgent, Model, ModelConfig, ModelMessage, RoundRequest, Step, Steps, ToolRequest,
};
use serde_json::{Value, json};

/// What was reported of tool calls, as it went over the wire.
fn reported(f: &AgentFixture) -> Vec<Value> {
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
async fn an_update_has_what_changed_and_always_the_status() {
    for offers in [ALL, NONE] {
        for mode in ["ask", "code"] {
            for command in [
                "/write a.txt new",
                "/edit b.txt\nold\n===\nnew",
                "/run echo one; echo two",
                "/read b.txt",
                "/read missing.txt",
            ] {
                let f = AgentFixture::offline(offers).await;
                f.put("b.txt", "old\n");
                f.session.set_mode(mode).await.unwrap();
                let asks = match mode {
                    "ask" => !command.starts_with("/read"),
                    _ => command.starts_with("/run"),
                };
                f.answers(asks.then_some(ALLOW));
                f.says(command).await;
                let all = reported(&f);
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
                // One for what is asked about or begun, one for the end; and what a command prints.
                let most = if command.starts_with("/run") { 6 } else { 4 };
                assert!(all.len() <= most, "{mode} {command}: {all:#?}");
                assert!(["completed", "failed"].contains(&told["status"].as_str().unwrap()));
            }
        }
    }
}

#[tokio::test]
async fn a_cancelled_command_keeps_what_it_has_shown() {
    let f = AgentFixture::offline(NONE).await;
    f.answers([ALLOW]);
    let ended = f
        .cancel_when("/run echo shown; sleep 60", |thread| {
            shows(thread, ToolCallStatus::InProgress, "shown")
        })
        .await;
    assert_eq!(ended, StopReason::Cancelled);
    let call = f.call();
    assert_eq!(call.status, ToolCallStatus::Failed);
    let said = texts(&call);
    assert!(
        said.contains("shown\n") && said.ends_with("Cancelled."),
        "{said}"
    );
}

#[tokio::test]
async fn what_a_restored_call_has_produced_comes_once_and_in_an_update() {
    let store = tempfile::tempdir().unwrap();
    let agent = || {
        let store = SqliteStore::open(store.path()).unwrap();
        let agent = CodingAgent::new(&ModelConfig::Offline).unwrap();
        agent.keep_sessions(store)
    };
    let f = AgentFixture::new(agent(), NONE).await;
    f.put("a.txt", "old\n");
    f.answers([ALLOW]);
    f.says("/write a.txt new").await;
    f.answers([ALLOW]);
    f.says("/run echo printed").await;
    let before = f.calls();
    let id = f.session.id().clone();
    f.session.close().await.unwrap();

    let g = AgentFixture::new(agent(), NONE).await;
    g.seen.updates.lock().unwrap().clear();
    let again = g.agent.load_session(id, f.cwd()).await.unwrap();
    let all = reported(&g);
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
    assert_eq!(diff(&before[0]).unwrap().new_text, "new");
}

/// A model that begins to write the call of a tool, waits, and writes the rest.
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

/// The titles of its call, in the order in which they were told.
async fn titles(waits: Duration) -> Vec<String> {
    let agent = CodingAgent::with_model(SlowWritingModel(waits)).keep_sessions(MemoryStore::new());
    let f = AgentFixture::new(agent, NONE).await;
    f.answers([common::REJECT]);
    assert_eq!(f.prompt("Go").await.unwrap(), StopReason::EndTurn);
    let all = reported(&f);
    assert_eq!(all[0]["sessionUpdate"], "tool_call");
    let titles = all.iter().filter_map(|update| update["title"].as_str());
    titles.map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn the_first_title_says_what_is_done_unless_it_takes_a_second_to_know() {
    let within = Duration::from_millis(999);
    assert_eq!(titles(within).await, ["Run `make`"]);
    let beyond = Duration::from_millis(1001);
    assert_eq!(titles(beyond).await, ["Run a command", "Run `make`"]);
}
