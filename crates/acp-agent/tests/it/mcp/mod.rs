//! Tests MCP servers in the agent's sessions: their tools, and everything that can go wrong during a turn.

mod asked;
mod changes;
mod http;
mod lost;
mod server;
mod starts;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{
    ALLOW, ALLOW_ALWAYS, AgentFixture, NO_CAPABILITIES, REJECT, call_text, has_call_showing,
    is_running, parse_pid, wait_for_thread,
};
use acp::agent::SessionSetup;
use acp::thread::ToolCallStatus;
use acp::v1::*;
use acp_agent::{CodingAgent, McpLimits, Model, RoundRequest, ScriptedModel, Steps};
use http::McpHttpServer;
use serde_json::{Value, json};
use server::stdio_config;

/// Not a test: runs this process as an MCP server for the tests that start it.
#[test]
#[ignore = "it is the server of the other tests"]
fn run_as_mcp_server() {
    server::run_server();
}

fn scripted_model(turns: &Value) -> ScriptedModel {
    ScriptedModel::parse(&json!({ "turns": turns }).to_string()).unwrap()
}

fn call_step(tool: &str, arguments: Value) -> Value {
    json!({"call": {"tool": tool, "arguments": arguments}})
}

/// Creates an agent with these user MCP servers and a model that makes each of these calls in a separate turn.
async fn run_calls(calls: &[Value], servers: Vec<McpServer>) -> AgentFixture {
    let turns: Vec<Value> = calls
        .iter()
        .map(|call| json!([call, {"say": "done"}]))
        .collect();
    let agent = CodingAgent::with_model(scripted_model(&json!(turns)));
    AgentFixture::new(agent.mcp_servers(servers), NO_CAPABILITIES).await
}

/// Runs a turn in which the user allows the call, and returns the call.
async fn allow_only_call(f: &AgentFixture) -> acp::thread::ThreadToolCall {
    f.queue_answers([ALLOW]);
    assert_eq!(f.prompt_for_text("go").await, "done");
    f.last_tool_call()
}

/// The tool names and the last message sent to the model in each round.
type SeenRounds = Arc<Mutex<Vec<(Vec<String>, String)>>>;

/// A model that records its requests.
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
async fn tool_can_be_called_over_every_transport() {
    let (streamable, sse) = (McpHttpServer::start().await, McpHttpServer::start().await);
    for (server, keys) in [
        (stdio_config("ours", "usual"), None),
        (
            streamable.streamable_config("ours"),
            Some(&streamable.all.keys),
        ),
        (sse.sse_config("ours"), Some(&sse.all.keys)),
    ] {
        let f = run_calls(
            &[call_step("ours__echo", json!({"text": "hello"}))],
            vec![server],
        )
        .await;
        f.queue_answers([ALLOW]);
        assert_eq!(f.prompt_for_text("go").await, "done");
        let call = f.last_tool_call();
        assert!(
            call_text(&call).contains("You said: hello."),
            "{}",
            call_text(&call)
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
async fn client_and_user_servers_are_combined() {
    let seen = SeenRounds::default();
    let plays = scripted_model(&json!([[{"say": "hi"}]]));
    let spy = SpyModel {
        plays,
        seen: Arc::clone(&seen),
    };
    let agent = CodingAgent::with_model(spy).mcp_servers(vec![
        stdio_config("mine", "names"),
        stdio_config("both", "usual"),
    ]);
    let f = AgentFixture::new(agent, NO_CAPABILITIES).await;
    let setup = SessionSetup::new(f.cwd()).mcp_servers(vec![
        stdio_config("yours", "names"),
        stdio_config("both", "names"),
    ]);
    let session = f.agent.new_session(setup).await.unwrap();
    session.prompt("go").await.unwrap();
    let (names, _) = seen.lock().unwrap().pop().unwrap();
    for name in ["read", "mine__run", "yours__run", "both__run"] {
        assert!(names.iter().any(|given| given == name), "{name}: {names:?}");
    }
    // If two servers have the same name, the client's is used.
    assert!(!names.iter().any(|name| name == "both__echo"), "{names:?}");
}

#[tokio::test]
async fn tool_names_are_unique_and_valid_for_all_providers() {
    let seen = SeenRounds::default();
    let plays = scripted_model(&json!([[{"say": "hi"}]]));
    let spy = SpyModel {
        plays,
        seen: Arc::clone(&seen),
    };
    let agent = CodingAgent::with_model(spy);
    let agent = agent.mcp_servers(vec![
        stdio_config("my server!", "names"),
        stdio_config("my server?", "names"),
    ]);
    let f = AgentFixture::new(agent, NO_CAPABILITIES).await;
    f.prompt_for_text("go").await;
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
    // Each name stands for the right server's tool.
    let long = theirs.iter().find(|name| name.contains("aaaa")).unwrap();
    let f = run_calls(
        &[call_step(long, json!({}))],
        vec![stdio_config("my server!", "names")],
    )
    .await;
    assert!(call_text(&allow_only_call(&f).await).contains("I am 101"));
}

#[tokio::test]
async fn tools_require_permission_according_to_the_mode() {
    let calls = [
        call_step("ours__echo", json!({"text": "1"})),
        call_step("ours__echo", json!({"text": "2"})),
        call_step("ours__change", json!({})),
        call_step("ours__echo", json!({"text": "3"})),
        call_step("ours__change", json!({})),
        call_step("ours__change", json!({})),
    ];
    let f = run_calls(&calls, vec![stdio_config("ours", "usual")]).await;
    // Permission is also required for a tool that claims only to read.
    f.queue_answers([ALLOW_ALWAYS]);
    f.prompt_for_text("go").await;
    assert_eq!(f.permission_requests().len(), 1);
    f.prompt_for_text("go").await;
    assert!(f.permission_requests().is_empty());
    // That answer was for a single tool.
    f.queue_answers([REJECT]);
    f.prompt_for_text("go").await;
    assert_eq!(f.last_tool_call().status, ToolCallStatus::Failed);
    assert!(!call_text(&f.last_tool_call()).contains("Changed."));
    // In architect mode, a tool that claims only to read can be allowed, but no other tool.
    f.session.set_mode("architect").await.unwrap();
    f.prompt_for_text("go").await;
    assert!(call_text(&f.last_tool_call()).contains("You said: 3"));
    f.queue_answers([REJECT]);
    f.prompt_for_text("go").await;
    assert_eq!(f.current_mode(), "architect");
    assert_eq!(f.last_tool_call().status, ToolCallStatus::Failed);
    // In code mode too, because no rule matches the tool, and servers are not sandboxed.
    f.session.set_mode("code").await.unwrap();
    f.queue_answers([ALLOW]);
    f.prompt_for_text("go").await;
    assert_eq!(f.permission_requests().len(), 1);
    assert!(call_text(&f.last_tool_call()).contains("Changed."));
}

#[tokio::test]
async fn tool_result_is_shown() {
    let calls = [
        call_step("ours__picture", json!({})),
        call_step("ours__fail", json!({})),
    ];
    let f = run_calls(&calls, vec![stdio_config("ours", "usual")]).await;
    let picture = allow_only_call(&f).await;
    assert!(call_text(&picture).contains("Here it is."));
    let shown = format!("{:?}", picture.content);
    assert!(
        shown.contains("image/png") && shown.contains("note://one"),
        "{shown}"
    );
    let failed = allow_only_call(&f).await;
    assert_eq!(failed.status, ToolCallStatus::Failed);
    assert!(call_text(&failed).contains("No such city."));
}

#[tokio::test]
async fn server_that_fails_to_start_is_reported_and_does_not_affect_others() {
    let none = McpServer::Stdio(McpServerStdio::new(
        "none",
        "no-such-program",
        vec![],
        vec![],
    ));
    let servers = vec![
        stdio_config("broken", "broken"),
        none,
        stdio_config("ours", "usual"),
    ];
    let calls = [
        call_step("ours__echo", json!({"text": "hello"})),
        call_step("broken__echo", json!({})),
    ];
    let f = run_calls(&calls, servers).await;
    f.queue_answers([ALLOW]);
    assert_eq!(f.prompt_for_text("go").await, "done");
    let all = f.tool_calls();
    let failed: Vec<String> = all
        .iter()
        .filter(|call| call.status == ToolCallStatus::Failed)
        .map(|call| format!("{}: {}", call.title, call_text(call)))
        .collect();
    assert_eq!(failed.len(), 2, "{failed:?}");
    let broken = failed
        .iter()
        .find(|told| told.contains("`broken`"))
        .unwrap();
    // The error has the exit status and the server's own output.
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
    assert!(call_text(&f.last_tool_call()).contains("You said: hello."));
    // The user is informed once. The model is informed each time.
    assert_eq!(f.prompt_for_text("go").await, "done");
    assert_eq!(f.tool_calls().len(), all.len() + 1);
    assert!(
        call_text(&f.last_tool_call()).contains("did not start"),
        "{}",
        call_text(&f.last_tool_call())
    );
}

#[tokio::test]
async fn unresponsive_server_does_not_block_prompts() {
    let mut limits = McpLimits::default();
    (limits.start, limits.first_prompt) = (Duration::from_secs(60), Duration::from_millis(50));
    let agent = CodingAgent::with_model(scripted_model(
        &json!([[{"say": "done"}], [{"say": "done"}]]),
    ));
    let agent = agent
        .mcp_limits(limits)
        .mcp_servers(vec![stdio_config("silent", "silent")]);
    let f = AgentFixture::new(agent, NO_CAPABILITIES).await;
    assert_eq!(f.prompt_for_text("go").await, "done");
    assert!(
        call_text(&f.last_tool_call()).contains("did not start within"),
        "{}",
        call_text(&f.last_tool_call())
    );
    // The turn waits for the server only once.
    f.prompt_for_text("go").await;
    assert_eq!(f.tool_calls().len(), 1);
    // The end of the session does not wait for it either.
    f.session.close().await.unwrap();
}

#[tokio::test]
async fn agent_gives_up_on_a_server_that_never_starts() {
    let mut limits = McpLimits::default();
    limits.start = Duration::from_millis(300);
    let agent = CodingAgent::with_model(scripted_model(&json!([[{"say": "done"}]])));
    let agent = agent
        .mcp_limits(limits)
        .mcp_servers(vec![stdio_config("silent", "silent")]);
    let f = AgentFixture::new(agent, NO_CAPABILITIES).await;
    assert_eq!(f.prompt_for_text("go").await, "done");
    assert!(
        call_text(&f.last_tool_call()).contains("did not respond within"),
        "{}",
        call_text(&f.last_tool_call())
    );
    // The error has the server's own output.
    assert!(call_text(&f.last_tool_call()).contains("pid:"));
}

#[tokio::test]
async fn server_crash_during_a_call_is_reported_and_the_session_continues() {
    let calls = [
        call_step("ours__die", json!({})),
        call_step("others__echo", json!({"text": "hello"})),
    ];
    let servers = vec![
        stdio_config("ours", "usual"),
        stdio_config("others", "usual"),
    ];
    let f = run_calls(&calls, servers).await;
    f.queue_answers([ALLOW]);
    assert_eq!(f.prompt_for_text("go").await, "done");
    let died = f
        .tool_calls()
        .into_iter()
        .find(|call| call.title == "ours: die")
        .unwrap();
    assert_eq!(died.status, ToolCallStatus::Failed);
    let said = call_text(&died);
    assert!(
        said.contains("has ended") && said.contains("exit code 3") && said.contains("I die"),
        "{said}"
    );
    let other = allow_only_call(&f).await;
    assert!(call_text(&other).contains("You said: hello."));
}

#[tokio::test]
async fn unanswered_call_times_out() {
    let mut limits = McpLimits::default();
    limits.call = Duration::from_millis(300);
    let turns = json!([[call_step("ours__hang", json!({})), {"say": "done"}]]);
    let agent = CodingAgent::with_model(scripted_model(&turns)).mcp_limits(limits);
    let f = AgentFixture::new(
        agent.mcp_servers(vec![stdio_config("ours", "usual")]),
        NO_CAPABILITIES,
    )
    .await;
    let hung = allow_only_call(&f).await;
    assert_eq!(hung.status, ToolCallStatus::Failed);
    assert!(
        call_text(&hung).contains("did not respond within"),
        "{}",
        call_text(&hung)
    );
    // The server is notified that the call was cancelled.
    wait_for_file(&f, "cancelled").await;
}

#[tokio::test]
async fn cancelling_the_turn_cancels_the_call() {
    let calls = [
        call_step("ours__hang", json!({})),
        call_step("ours__echo", json!({})),
    ];
    let f = run_calls(&calls, vec![stdio_config("ours", "usual")]).await;
    f.queue_answers([ALLOW]);
    let turn = f.start_prompt("go");
    wait_for_file(&f, "hangs").await;
    assert_eq!(f.cancel_turn(turn).await, StopReason::Cancelled);
    assert!(call_text(&f.last_tool_call()).contains("Cancelled"));
    wait_for_file(&f, "cancelled").await;
    // The server continues to work.
    assert!(call_text(&allow_only_call(&f).await).contains("You said"));
}

#[tokio::test]
async fn progress_is_shown_during_the_call() {
    let f = run_calls(
        &[call_step("ours__steps", json!({}))],
        vec![stdio_config("ours", "usual")],
    )
    .await;
    f.queue_answers([ALLOW]);
    let turn = f.start_prompt("go");
    wait_for_thread(f.session.thread(), |thread| {
        has_call_showing(thread, ToolCallStatus::InProgress, "1 of 2: half way")
    })
    .await;
    f.write_file("seen", "");
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::EndTurn);
    assert!(call_text(&f.last_tool_call()).contains("All steps are done."));
}

#[tokio::test]
async fn prompts_become_slash_commands() {
    let seen = SeenRounds::default();
    let turns = vec![json!([{"say": "done"}]); 3];
    let spy = SpyModel {
        plays: scripted_model(&json!(turns)),
        seen: Arc::clone(&seen),
    };
    let agent = CodingAgent::with_model(spy).mcp_servers(vec![stdio_config("our tools", "usual")]);
    let f = AgentFixture::new(agent, NO_CAPABILITIES).await;
    wait_for_thread(f.session.thread(), |thread| {
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
        // The server's tools are offered in addition to the agent's own.
        assert!(commands.iter().any(|command| command.name == "help"));
    });
    assert_eq!(
        f.prompt_for_text("/our_tools:weather 'New York' in verse")
            .await,
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
    // The missing argument is reported, and no model is called.
    let said = f.prompt_for_text("/our_tools:weather").await;
    assert!(said.contains("requires `city`"), "{said}");
    let said = f.prompt_for_text("/our_tools:wether x").await;
    assert!(said.contains("no prompt with that name"), "{said}");
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn resources_are_listed_and_read() {
    let calls = [
        call_step("list_resources", json!({})),
        call_step("read_resource", json!({"uri": "note://one"})),
        call_step("read_resource", json!({"uri": "note://two"})),
    ];
    let f = run_calls(
        &calls,
        vec![
            stdio_config("ours", "usual"),
            stdio_config("others", "names"),
        ],
    )
    .await;
    f.prompt_for_text("go").await;
    assert!(
        call_text(&f.last_tool_call()).contains("`note://one`: The first note"),
        "{}",
        call_text(&f.last_tool_call())
    );
    let read = allow_only_call(&f).await;
    assert!(format!("{:?}", read.content).contains("Buy cheese."));
    let missing = allow_only_call(&f).await;
    assert_eq!(missing.status, ToolCallStatus::Failed);
    assert!(
        call_text(&missing).contains("no such note"),
        "{}",
        call_text(&missing)
    );
}

#[tokio::test]
async fn roots_are_the_session_directories() {
    let f = run_calls(
        &[call_step("ours__roots", json!({}))],
        vec![stdio_config("ours", "usual")],
    )
    .await;
    let told = call_text(&allow_only_call(&f).await);
    assert_eq!(told, format!("file://{}", f.cwd()));
}

#[tokio::test]
async fn server_processes_end_with_the_session() {
    let calls = [call_step("ours__echo", json!({}))];
    // One session is closed, and the other is abandoned by the client.
    for closed in [true, false] {
        let f = run_calls(&calls, vec![stdio_config("ours", "usual")]).await;
        let id = parse_pid(&call_text(&allow_only_call(&f).await)).unwrap();
        assert!(is_running(id));
        if closed {
            f.session.close().await.unwrap();
            assert!(!is_running(id));
        } else {
            f.agent.close();
            let gone = async {
                while is_running(id) {
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
async fn supported_transports_are_advertised() {
    let f = run_calls(&[], vec![]).await;
    let mcp = f.agent.capabilities().mcp_capabilities.clone();
    assert!(mcp.http && mcp.sse);
}

/// Waits until a server has written this file.
async fn wait_for_file(f: &AgentFixture, name: &str) {
    let there = async {
        while !f.file_exists(name) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), there)
        .await
        .expect("it was not written");
}

#[tokio::test]
async fn version_2_client_can_configure_servers() {
    let turns = json!([[call_step("ours__echo", json!({"text": "hello"})), {"say": "done"}]]);
    let agent = CodingAgent::with_model(scripted_model(&turns));
    let options = acp::Options::new().draft_version_2();
    let mut f = AgentFixture::start_with_options(options, agent, NO_CAPABILITIES).await;
    let setup = SessionSetup::new(f.cwd()).mcp_servers(vec![stdio_config("ours", "usual")]);
    f.session = f.agent.new_session(setup).await.unwrap();
    assert!(call_text(&allow_only_call(&f).await).contains("You said: hello."));
}
