//! The examples of the official SDK, unchanged.

use acp::Thread;
use acp::thread::Activity;
use acp::v1::{ListSessionsRequest, ProtocolVersion, StopReason};

use crate::common::{
    InteropClient, InteropProject, acp_program, error_code, item_outline, run_prompt,
};
use crate::official_rust_v2::{OFFICIAL_AGENT, OUR_AGENT};

pub(crate) const SIMPLE_AGENT: &str = env!("CARGO_BIN_EXE_official-simple-agent-v2");
const ONE_SHOT_CLIENT: &str = env!("CARGO_BIN_EXE_official-one-shot-v2");
const COORDINATION_CLIENT: &str = env!("CARGO_BIN_EXE_official-coordination-v2");

#[tokio::test]
async fn our_client_uses_every_feature_of_the_example_agent() {
    let project = InteropProject::new();
    let person = InteropClient::for_version_2(&project);
    let (agent, _process) = person.start(&project, &[SIMPLE_AGENT]).await;
    assert_eq!(agent.version(), ProtocolVersion::V2);
    let session = agent.new_session(project.path()).await.unwrap();
    let ended = run_prompt(&session, "hello").await.unwrap();
    assert_eq!(ended, StopReason::EndTurn);
    let items =
        |thread: &Thread| -> Vec<String> { thread.items().iter().map(item_outline).collect() };
    // The example sends everything twice: in chunks, and then as a whole.
    let turn = ["user hello", "agent Echo: hello"];
    assert_eq!(session.thread().read(items), turn);
    let page = agent.list_sessions(&ListSessionsRequest::new()).await;
    let page = page.unwrap().sessions;
    let [listed] = &page[..] else {
        panic!("{page:?}")
    };
    assert_eq!(listed.session_id, *session.id());
    assert_eq!(listed.title.as_deref(), Some("Echo agent session"));

    // Close the session twice, and open it again, first without a replay and then with one.
    let id = session.id().clone();
    session.close().await.unwrap();
    let resumed = agent.resume_session(&id, project.path()).await.unwrap();
    assert_eq!(resumed.thread().read(items), [""; 0]);
    let title = |thread: &Thread| thread.title().map(str::to_owned);
    let title = resumed.thread().read(title);
    assert_eq!(title.as_deref(), Some("Echo agent session"));
    let replayed = agent.load_session(&id, project.path()).await.unwrap();
    assert_eq!(replayed.thread().read(items), turn);
    assert_eq!(replayed.thread().read(Thread::activity), Activity::Idle);
    run_prompt(&replayed, "again").await.unwrap();
    let both = [&turn[..], &["user again", "agent Echo: again"]].concat();
    assert_eq!(replayed.thread().read(items), both);
    // No turn is running. The cancel is sent nevertheless, and does not affect the next turn.
    replayed.cancel().await.unwrap();
    let ended = run_prompt(&replayed, "more").await.unwrap();
    assert_eq!(ended, StopReason::EndTurn);
    let unknown = agent.load_session("nothing", project.path()).await;
    assert_eq!(error_code(&unknown.unwrap_err()), -32002);
}

#[tokio::test]
async fn acp_run_completes_a_turn_with_the_example_agent() {
    let project = InteropProject::new();
    let run = ["run", "--protocol", "2", "hello", "--", SIMPLE_AGENT];
    let ended = project.run_program(acp_program(), run).await.expect_code(0);
    assert_eq!(ended.stdout, "Echo: hello\n");
    // The example stores its sessions, as every agent of version 2 does.
    assert!(
        ended
            .stderr
            .starts_with("continue with: acp run --resume echo-session-1"),
        "{ended:#?}"
    );
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:#?}");
}

/// The example rejects everything.
#[tokio::test]
async fn example_client_completes_a_turn_with_our_agents() {
    let project = InteropProject::new();
    let one_shot = async |agent: String, text| {
        let ended = project
            .run_program(ONE_SHOT_CLIENT, ["--command", &agent, text])
            .await;
        ended
            .expect_code(0)
            .expect_stderr(&["Prompt accepted", "Session is idle: Some(EndTurn)"])
    };
    let bundled = || format!("'{}' agent --protocol 2", acp_program());
    one_shot(bundled(), "/read note.txt")
        .await
        .expect_stdout(&["one\ntwo"]);
    let ended = one_shot(bundled(), "/write new.txt hello").await;
    ended
        .expect_stderr(&["rejecting it once"])
        .expect_stdout(&["Nothing was changed"]);
    assert!(!project.file("new.txt").exists());

    let ours = || format!("{OUR_AGENT} --protocol 2");
    let ended = one_shot(ours(), "work").await;
    ended
        .expect_stderr(&["rejecting it once"])
        .expect_stdout(&["Reading the note. I was not allowed to."]);
    assert_eq!(project.read_file("note.txt"), "one\ntwo\n");
}

/// The example opens an existing session twice concurrently, and a third time with a replay.
#[tokio::test]
async fn coordination_example_opens_sessions_of_our_agent() {
    let project = InteropProject::new();
    let open = async |agent: &str, id: &str| {
        let args = ["--command", agent, "--session-id", id];
        project.run_program(COORDINATION_CLIENT, args).await
    };
    // The replay has six updates, including the current state.
    let ours = format!("{OUR_AGENT} --protocol 2");
    let ended = open(&ours, "old-1").await;
    let expected = [
        "Shared replay: 6 updates",
        "code",
        "Fresh replay after close: 6 updates",
    ];
    ended.expect_code(0).expect_stdout(&expected);
    let ended = open(&ours, "new-1").await;
    ended.expect_code(1).expect_stderr(&["Resource not found"]);
    // The example fails in the same way with an agent on the official SDK.
    let ended = open(OFFICIAL_AGENT, "new-1").await;
    ended.expect_code(1).expect_stderr(&["Resource not found"]);
}
