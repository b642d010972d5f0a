//! MCP servers in sessions of the agent: their tools called in turns, and all that can go wrong with them.

mod asked;
mod changes;
mod http;
mod lost;
mod server;
mod starts;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{
    ALLOW, ALLOW_ALWAYS, AgentFixture, NONE, REJECT, pid, runs, shows, texts, until,
};
use acp::agent::SessionSetup;
use acp::thread::ToolCallStatus;
use acp::v1::*;
use acp_agent::{CodingAgent, McpLimits, Model, RoundRequest, ScriptedModel, Steps};
use http::McpHttpServer;
use serde_json::{Value, json};
use server::process;

/// Not a test: the others start it, and it ends with them.
#[test]
#[ignore = "it is the server of the other tests"]
fn is_the_server_of_the_others() {
    server::serve();
}

fn model(turns: &Value) -> ScriptedModel {
    ScriptedModel::parse(&json!({ "turns": turns }).to_string()).unwrap()
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({"call": {"tool": tool, "arguments": arguments}})
}

/// An agent whose model makes these calls, each in a turn of its own, with servers of the user's own.
async fn calling(calls: &[Value], servers: Vec<McpServer>) -> AgentFixture {
    let turns: Vec<Value> = calls
        .iter()
        .map(|call| json!([call, {"say": "done"}]))
        .collect();
    let agent = CodingAgent::with_model(model(&json!(turns)));
    AgentFixture::new(agent.mcp_servers(servers), NONE).await
}

/// Runs a turn whose call is allowed, and gives the call.
async fn allowed(f: &AgentFixture) -> acp::thread::ThreadToolCall {
    f.answers([ALLOW]);
    assert_eq!(f.says("go").await, "done");
    f.call()
}

/// The tools of each round by their names, and what the model was told last.
type SeenRounds = Arc<Mutex<Vec<(Vec<String>, String)>>>;

/// A model that keeps what it is asked with.
struct SpyModel {
    plays: ScriptedModel,
    seen: SeenRounds,
}

impl Model for SpyModel {
    fn name(&self) -> &str {
        "spy"
    }

    fn respond<'a>(&'a self, request: RoundRequest<'a>) -> Steps<'a> {
        let names = request
            .tools
            .iter()
            .map(|tool| tool.name.to_string())
            .collect();
        let last = format!("{:?}", request.conversation.last());
        self.seen.lock().unwrap().push((names, last));
        self.plays.respond(request)
    }
}

#[tokio::test]
async fn a_tool_is_called_over_every_transport() {
    let (streamable, sse) = (McpHttpServer::start().await, McpHttpServer::start().await);
    for (server, keys) in [
        (process("ours", "usual"), None),
        (streamable.streamable("ours"), Some(&streamable.all.keys)),
        (sse.sse("ours"), Some(&sse.all.keys)),
    ] {
        let f = calling(
            &[call("ours__echo", json!({"text": "hello"}))],
            vec![server],
        )
        .await;
        f.answers([ALLOW]);
        assert_eq!(f.says("go").await, "done");
        let call = f.call();
        assert!(
            texts(&call).contains("You said: hello."),
            "{}",
            texts(&call)
        );
        assert_eq!(call.title, "ours: Echo");
        assert_eq!(call.kind, ToolKind::Read);
        assert_eq!(
            f.statuses(&call.id),
            ["pending", "in_progress", "completed"]
        );
        assert_eq!(call.raw_input, Some(json!({"text": "hello"})));
        if let Some(keys) = keys {
            let keys = keys.lock().unwrap();
            assert!(
                keys.len() > 2 && keys.iter().all(|key| key == "Bearer open sesame"),
                "{keys:?}"
            );
        }
    }
}

#[tokio::test]
async fn the_clients_servers_and_the_users_are_there_together() {
    let seen = SeenRounds::default();
    let plays = model(&json!([[{"say": "hi"}]]));
    let spy = SpyModel {
        plays,
        seen: Arc::clone(&seen),
    };
    let agent = CodingAgent::with_model(spy)
        .mcp_servers(vec![process("mine", "names"), process("both", "usual")]);
    let f = AgentFixture::new(agent, NONE).await;
    let setup = SessionSetup::new(f.cwd())
        .mcp_servers(vec![process("yours", "names"), process("both", "names")]);
    let session = f.agent.new_session(setup).await.unwrap();
    session.prompt("go").await.unwrap();
    let (names, _) = seen.lock().unwrap().pop().unwrap();
    for name in ["read", "mine__run", "yours__run", "both__run"] {
        assert!(names.iter().any(|given| given == name), "{name}: {names:?}");
    }
    // Of two with the same name, the client's.
    assert!(!names.iter().any(|name| name == "both__echo"), "{names:?}");
}

#[tokio::test]
async fn names_are_unambiguous_and_such_as_all_providers_take() {
    let seen = SeenRounds::default();
    let plays = model(&json!([[{"say": "hi"}]]));
    let spy = SpyModel {
        plays,
        seen: Arc::clone(&seen),
    };
    let agent = CodingAgent::with_model(spy);
    let agent = agent.mcp_servers(vec![
        process("my server!", "names"),
        process("my server?", "names"),
    ]);
    let f = AgentFixture::new(agent, NONE).await;
    f.says("go").await;
    let (names, _) = seen.lock().unwrap().pop().unwrap();
    let theirs: Vec<&String> = names.iter().filter(|name| name.contains("__")).collect();
    assert_eq!(theirs.len(), 10, "{names:?}");
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    assert!(
        names
            .iter()
            .all(|name| name.len() <= 64 && name.chars().all(plain)),
        "{names:?}"
    );
    let different: std::collections::HashSet<&String> = names.iter().collect();
    assert_eq!(different.len(), names.len(), "{names:?}");
    // Each is the server's tool that it stands for.
    let long = theirs.iter().find(|name| name.contains("aaaa")).unwrap();
    let f = calling(
        &[call(long, json!({}))],
        vec![process("my server!", "names")],
    )
    .await;
    assert!(texts(&allowed(&f).await).contains("I am 101"));
}

#[tokio::test]
async fn the_person_is_asked_for_each_tool_as_the_mode_says() {
    let calls = [
        call("ours__echo", json!({"text": "1"})),
        call("ours__echo", json!({"text": "2"})),
        call("ours__change", json!({})),
        call("ours__echo", json!({"text": "3"})),
        call("ours__change", json!({})),
        call("ours__change", json!({})),
    ];
    let f = calling(&calls, vec![process("ours", "usual")]).await;
    // Also what says of itself that it only reads.
    f.answers([ALLOW_ALWAYS]);
    f.says("go").await;
    assert_eq!(f.asked().len(), 1);
    f.says("go").await;
    assert!(f.asked().is_empty());
    // That was for one tool.
    f.answers([REJECT]);
    f.says("go").await;
    assert_eq!(f.call().status, ToolCallStatus::Failed);
    assert!(!texts(&f.call()).contains("Changed."));
    // In architect mode what only reads, by its server's word, can be allowed; nothing else can.
    f.session.set_mode("architect").await.unwrap();
    f.says("go").await;
    assert!(texts(&f.call()).contains("You said: 3"));
    f.answers([REJECT]);
    f.says("go").await;
    assert_eq!(f.mode(), "architect");
    assert_eq!(f.call().status, ToolCallStatus::Failed);
    // In code mode, too: no rule says anything of it, and what a server does is not confined.
    f.session.set_mode("code").await.unwrap();
    f.answers([ALLOW]);
    f.says("go").await;
    assert_eq!(f.asked().len(), 1);
    assert!(texts(&f.call()).contains("Changed."));
}

#[tokio::test]
async fn what_a_tool_gives_back_is_shown() {
    let calls = [
        call("ours__picture", json!({})),
        call("ours__fail", json!({})),
    ];
    let f = calling(&calls, vec![process("ours", "usual")]).await;
    let picture = allowed(&f).await;
    assert!(texts(&picture).contains("Here it is."));
    let shown = format!("{:?}", picture.content);
    assert!(
        shown.contains("image/png") && shown.contains("note://one"),
        "{shown}"
    );
    let failed = allowed(&f).await;
    assert_eq!(failed.status, ToolCallStatus::Failed);
    assert!(texts(&failed).contains("No such city."));
}

#[tokio::test]
async fn a_server_that_does_not_start_is_shown_and_costs_only_itself() {
    let none = McpServer::Stdio(McpServerStdio::new(
        "none",
        "no-such-program",
        vec![],
        vec![],
    ));
    let servers = vec![process("broken", "broken"), none, process("ours", "usual")];
    let calls = [
        call("ours__echo", json!({"text": "hello"})),
        call("broken__echo", json!({})),
    ];
    let f = calling(&calls, servers).await;
    f.answers([ALLOW]);
    assert_eq!(f.says("go").await, "done");
    let all = f.calls();
    let failed: Vec<String> = all
        .iter()
        .filter(|call| call.status == ToolCallStatus::Failed)
        .map(|call| format!("{}: {}", call.title, texts(call)))
        .collect();
    assert_eq!(failed.len(), 2, "{failed:?}");
    let broken = failed
        .iter()
        .find(|told| told.contains("`broken`"))
        .unwrap();
    // What became of it, and what it said itself.
    assert!(
        broken.contains("exit code 7") && broken.contains("there is no cheese"),
        "{broken}"
    );
    let none = failed.iter().find(|told| told.contains("`none`")).unwrap();
    assert!(
        none.contains(
            "command not found: `no-such-program`; check that it is installed and in PATH"
        ),
        "{none}"
    );
    assert!(texts(&f.call()).contains("You said: hello."));
    // It is told once. The model is told each time.
    assert_eq!(f.says("go").await, "done");
    assert_eq!(f.calls().len(), all.len() + 1);
    assert!(
        texts(&f.call()).contains("did not start"),
        "{}",
        texts(&f.call())
    );
}

#[tokio::test]
async fn a_server_that_does_not_answer_keeps_nobody_waiting() {
    let mut limits = McpLimits::default();
    (limits.start, limits.first_prompt) = (Duration::from_secs(60), Duration::from_millis(50));
    let agent = CodingAgent::with_model(model(&json!([[{"say": "done"}], [{"say": "done"}]])));
    let agent = agent
        .mcp_limits(limits)
        .mcp_servers(vec![process("silent", "silent")]);
    let f = AgentFixture::new(agent, NONE).await;
    assert_eq!(f.says("go").await, "done");
    assert!(
        texts(&f.call()).contains("did not start within"),
        "{}",
        texts(&f.call())
    );
    // It is waited for once.
    f.says("go").await;
    assert_eq!(f.calls().len(), 1);
    // Nor does its end keep anyone waiting.
    f.session.close().await.unwrap();
}

#[tokio::test]
async fn a_server_that_never_starts_is_given_up() {
    let mut limits = McpLimits::default();
    limits.start = Duration::from_millis(300);
    let agent = CodingAgent::with_model(model(&json!([[{"say": "done"}]])));
    let agent = agent
        .mcp_limits(limits)
        .mcp_servers(vec![process("silent", "silent")]);
    let f = AgentFixture::new(agent, NONE).await;
    assert_eq!(f.says("go").await, "done");
    assert!(
        texts(&f.call()).contains("did not respond within"),
        "{}",
        texts(&f.call())
    );
    // With what it has said itself.
    assert!(texts(&f.call()).contains("pid:"));
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_is_told_and_the_session_goes_on() {
    let calls = [
        call("ours__die", json!({})),
        call("others__echo", json!({"text": "hello"})),
    ];
    let servers = vec![process("ours", "usual"), process("others", "usual")];
    let f = calling(&calls, servers).await;
    f.answers([ALLOW]);
    assert_eq!(f.says("go").await, "done");
    let died = f
        .calls()
        .into_iter()
        .find(|call| call.title == "ours: die")
        .unwrap();
    assert_eq!(died.status, ToolCallStatus::Failed);
    let said = texts(&died);
    assert!(
        said.contains("has ended") && said.contains("exit code 3") && said.contains("I die"),
        "{said}"
    );
    let other = allowed(&f).await;
    assert!(texts(&other).contains("You said: hello."));
}

#[tokio::test]
async fn a_call_that_is_not_answered_ends() {
    let mut limits = McpLimits::default();
    limits.call = Duration::from_millis(300);
    let turns = json!([[call("ours__hang", json!({})), {"say": "done"}]]);
    let agent = CodingAgent::with_model(model(&turns)).mcp_limits(limits);
    let f = AgentFixture::new(agent.mcp_servers(vec![process("ours", "usual")]), NONE).await;
    let hung = allowed(&f).await;
    assert_eq!(hung.status, ToolCallStatus::Failed);
    assert!(
        texts(&hung).contains("did not respond within"),
        "{}",
        texts(&hung)
    );
    // And the server is told that it need not.
    exists(&f, "cancelled").await;
}

#[tokio::test]
async fn a_cancelled_turn_cancels_the_call() {
    let calls = [call("ours__hang", json!({})), call("ours__echo", json!({}))];
    let f = calling(&calls, vec![process("ours", "usual")]).await;
    f.answers([ALLOW]);
    let turn = f.begin("go");
    exists(&f, "hangs").await;
    assert_eq!(f.cancelled(turn).await, StopReason::Cancelled);
    assert!(texts(&f.call()).contains("Cancelled"));
    exists(&f, "cancelled").await;
    // The server is as good as before.
    assert!(texts(&allowed(&f).await).contains("You said"));
}

#[tokio::test]
async fn progress_is_shown_while_it_is_made() {
    let f = calling(
        &[call("ours__steps", json!({}))],
        vec![process("ours", "usual")],
    )
    .await;
    f.answers([ALLOW]);
    let turn = f.begin("go");
    until(f.session.thread(), |thread| {
        shows(thread, ToolCallStatus::InProgress, "1 of 2: half way")
    })
    .await;
    f.put("seen", "");
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::EndTurn);
    assert!(texts(&f.call()).contains("All steps are done."));
}

#[tokio::test]
async fn prompts_are_commands() {
    let seen = SeenRounds::default();
    let turns = vec![json!([{"say": "done"}]); 3];
    let spy = SpyModel {
        plays: model(&json!(turns)),
        seen: Arc::clone(&seen),
    };
    let agent = CodingAgent::with_model(spy).mcp_servers(vec![process("our tools", "usual")]);
    let f = AgentFixture::new(agent, NONE).await;
    until(f.session.thread(), |thread| {
        thread
            .commands()
            .iter()
            .any(|command| command.name == "our_tools:weather")
    })
    .await;
    f.session.thread().read(|thread| {
        let commands = thread.commands();
        let weather = commands
            .iter()
            .find(|command| command.name.contains(':'))
            .unwrap();
        assert_eq!(weather.input.as_ref().unwrap().hint, "city [style]");
        assert!(weather.description.contains("Asks for the weather"));
        // Beside the agent's own.
        assert!(commands.iter().any(|command| command.name == "help"));
    });
    assert_eq!(
        f.says("/our_tools:weather 'New York' in verse").await,
        "done"
    );
    let (_, told) = seen.lock().unwrap().pop().unwrap();
    assert!(
        told.contains("How is the weather?")
            && told.contains("New York")
            && told.contains("in verse"),
        "{told}"
    );
    assert!(!told.contains("/our_tools"), "{told}");
    // What is missing is said, and no model is asked.
    let said = f.says("/our_tools:weather").await;
    assert!(said.contains("requires `city`"), "{said}");
    let said = f.says("/our_tools:wether x").await;
    assert!(said.contains("no prompt of that name"), "{said}");
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn resources_are_listed_and_read() {
    let calls = [
        call("list_resources", json!({})),
        call("read_resource", json!({"uri": "note://one"})),
        call("read_resource", json!({"uri": "note://two"})),
    ];
    let f = calling(
        &calls,
        vec![process("ours", "usual"), process("others", "names")],
    )
    .await;
    f.says("go").await;
    assert!(
        texts(&f.call()).contains("`note://one`: The first note"),
        "{}",
        texts(&f.call())
    );
    let read = allowed(&f).await;
    assert!(format!("{:?}", read.content).contains("Buy cheese."));
    let missing = allowed(&f).await;
    assert_eq!(missing.status, ToolCallStatus::Failed);
    assert!(
        texts(&missing).contains("no such note"),
        "{}",
        texts(&missing)
    );
}

#[tokio::test]
async fn the_roots_are_the_sessions_directories() {
    let f = calling(
        &[call("ours__roots", json!({}))],
        vec![process("ours", "usual")],
    )
    .await;
    let told = texts(&allowed(&f).await);
    assert_eq!(told, format!("file://{}", f.cwd()));
}

#[tokio::test]
async fn the_processes_end_with_the_session() {
    let calls = [call("ours__echo", json!({}))];
    // Closed, and given up by the client.
    for closed in [true, false] {
        let f = calling(&calls, vec![process("ours", "usual")]).await;
        let id = pid(&texts(&allowed(&f).await)).unwrap();
        assert!(runs(id));
        if closed {
            f.session.close().await.unwrap();
            assert!(!runs(id));
        } else {
            f.agent.close();
            let gone = async {
                while runs(id) {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(Duration::from_secs(30), gone)
                .await
                .expect("it still runs");
        }
    }
}

#[tokio::test]
async fn what_the_agent_can_connect_to_is_offered() {
    let f = calling(&[], vec![]).await;
    let mcp = f.agent.capabilities().mcp_capabilities.clone();
    assert!(mcp.http && mcp.sse);
}

/// Waits for a file that a server writes.
async fn exists(f: &AgentFixture, name: &str) {
    let there = async {
        while !f.there(name) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), there)
        .await
        .expect("it was not written");
}

#[tokio::test]
async fn a_client_of_version_2_has_its_servers_too() {
    let turns = json!([[call("ours__echo", json!({"text": "hello"})), {"say": "done"}]]);
    let agent = CodingAgent::with_model(model(&turns));
    let options = acp::Options::new().draft_version_2();
    let mut f = AgentFixture::speaking(options, agent, NONE).await;
    let setup = SessionSetup::new(f.cwd()).mcp_servers(vec![process("ours", "usual")]);
    f.session = f.agent.new_session(setup).await.unwrap();
    assert!(texts(&allowed(&f).await).contains("You said: hello."));
}
