//! Tests of users of `acp serve`, who have tokens of their own.

use acp::client::{ClientSession, SessionSetup};
use acp::v1::{ListSessionsRequest, StopReason};
use acp_remote::Token;
use acp_remote::client::{ConnectOptions, connect};
use serde_json::Value;

use crate::common::{CommandResult, TestProject};
use crate::serve::{Server, connect_client, within_timeout};
use crate::serve_live::{connect_silent, wait_for_text};

/// Runs `acp users`.
fn users(project: &TestProject, args: &[&str]) -> CommandResult {
    let mut command = project.acp_command(&["users"]);
    CommandResult::from_output(command.args(args).output().unwrap())
}

/// Adds a user, and returns the token that is printed.
pub(crate) fn add_user(project: &TestProject, args: &[&str]) -> Token {
    let added = users(project, &[&["add"], args].concat());
    Token::new(&added.expect_code(0).stdout).unwrap()
}

async fn open(server: &Server, project: &TestProject, token: &Token) -> ClientSession {
    let agent = connect_client(server.plain_url(), token.clone()).await;
    let opened = agent.new_session(SessionSetup::new(project.path()));
    within_timeout(opened).await.unwrap()
}

async fn load(
    server: &Server,
    project: &TestProject,
    token: &Token,
    of: &ClientSession,
) -> acp::Result<ClientSession> {
    let agent = connect_client(server.plain_url(), token.clone()).await;
    within_timeout(agent.load_session(of.id(), SessionSetup::new(project.path()))).await
}

fn audit_records(project: &TestProject) -> Vec<Value> {
    let text = std::fs::read_to_string(project.path_outside("data").join("audit.jsonl")).unwrap();
    let records = text.lines().map(|line| serde_json::from_str(line).unwrap());
    records.collect()
}

/// Starts a server with an audit log.
fn start(project: &TestProject, args: &[&str]) -> Server {
    let log = project.path_outside("data").join("audit.jsonl");
    let log = log.to_str().unwrap();
    Server::start(project, &[&["--live", "--audit-log", log], args].concat())
}

/// Lets a user start a turn on one server, and checks on another that observers only see it, and that whoever answers is
/// recorded.
async fn check_scopes(project: &TestProject, asked: &Server, answering: &Server) {
    let watcher = add_user(project, &["watcher", "--can", "look"]);
    let answerer = add_user(project, &["bob", "--can", "answer"]);
    let prompter = add_user(project, &["carol", "--can", "prompt"]);
    let list = users(project, &["list"]).expect_code(0);
    assert!(
        list.stdout.contains("bob: look, answer\n"),
        "{}",
        list.stdout
    );
    // The servers read the file again.
    let agent = within_timeout(async {
        loop {
            let options = ConnectOptions::new().token(prompter.clone());
            if connect(answering.plain_url(), options).await.is_ok() {
                break connect_silent(asked, prompter.clone()).await;
            }
        }
    })
    .await;
    let session = agent.new_session(SessionSetup::new(project.path()));
    let session = within_timeout(session).await.unwrap();
    let turn = session.prompt("/run echo output $((40 + 2))");
    let (turn, ()) = tokio::join!(within_timeout(turn), async {
        // This client would allow everything, but is not asked.
        let watching = load(answering, project, &watcher, &session).await.unwrap();
        wait_for_text(&watching, "echo output").await;
        let error = within_timeout(watching.prompt("/help")).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("needs the scope `prompt`"), "{text}");
        let error = within_timeout(watching.set_mode("code")).await.unwrap_err();
        assert!(error.to_string().contains("needs the scope"), "{error}");
        let new = watching
            .agent()
            .new_session(SessionSetup::new(project.path()));
        within_timeout(new).await.unwrap_err();
        let answered = load(answering, project, &answerer, &session).await.unwrap();
        wait_for_text(&answered, "output 42").await;
        wait_for_text(&watching, "output 42").await;
        within_timeout(answered.prompt("/help")).await.unwrap_err();
    });
    assert_eq!(turn.unwrap(), StopReason::EndTurn);
    let records = audit_records(project);
    let of = |event: &'static str| {
        let records = records.iter();
        records.filter(move |record| record["event"] == event)
    };
    let answers: Vec<&Value> = of("answered").collect();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0]["user"], "bob");
    assert_eq!(answers[0]["session"], session.id().as_str());
    let question = answers[0]["question"]["toolCall"].to_string();
    assert!(question.contains("echo output $((40 + 2))"), "{question}");
    let answer = answers[0]["answer"].to_string();
    assert!(answer.contains("selected"), "{answer}");
    let prompted = of("sent").find(|record| record["method"] == "session/prompt");
    assert_eq!(prompted.unwrap()["user"], "carol");
    let denied = of("denied").find(|record| record["method"] == "session/prompt");
    assert_eq!(denied.unwrap()["user"], "watcher");
}

#[tokio::test(flavor = "multi_thread")]
async fn users_do_what_their_scopes_allow_and_the_log_says_who_answered() {
    let project = TestProject::new();
    let server = start(&project, &[]);
    check_scopes(&project, &server, &server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_hold_on_a_server_that_does_not_own_the_session() {
    let project = TestProject::new();
    let store = project.path_outside("data").join("live.db");
    let store = ["--store", store.to_str().unwrap()];
    let owner = start(&project, &store);
    let other = start(&project, &store);
    check_scopes(&project, &owner, &other).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn user_with_own_sessions_does_not_see_those_of_others() {
    let project = TestProject::new();
    let own = [
        "--can",
        "prompt,answer",
        "--own-sessions",
        "--max-sessions",
        "1",
    ];
    let anna = add_user(&project, &[&["anna"][..], &own].concat());
    let store = project.path_outside("data").join("live.db");
    let mut token = None;
    for with_store in [true, false] {
        let args = ["--store", store.to_str().unwrap()];
        let server = start(&project, if with_store { &args } else { &[] });
        // It is printed only by the server that creates it.
        let token = token.get_or_insert_with(|| server.token()).clone();
        let others = open(&server, &project, &token).await;
        let annas = open(&server, &project, &anna).await;
        within_timeout(annas.prompt("/help")).await.unwrap();
        let all = ListSessionsRequest::new();
        let listed = annas.agent().list_sessions(&all);
        let listed = within_timeout(listed).await.unwrap().sessions;
        let ids: Vec<&str> = listed.iter().map(|info| info.session_id.as_str()).collect();
        assert!(!ids.contains(&others.id().as_str()), "{ids:?}");
        assert!(ids.contains(&annas.id().as_str()), "{ids:?}");
        let error = load(&server, &project, &anna, &others).await.unwrap_err();
        assert!(error.to_string().contains("not found"), "{error}");
        // Whoever has the server's token sees all.
        load(&server, &project, &token, &annas).await.unwrap();
        let second = annas.agent().new_session(SessionSetup::new(project.path()));
        let error = within_timeout(second).await.unwrap_err().to_string();
        assert!(
            error.contains("too many open sessions of user anna"),
            "{error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_user_is_disconnected_and_cannot_connect_again() {
    let project = TestProject::new();
    let anna = add_user(
        &project,
        &["anna", "--can", "prompt", "--max-connections", "1"],
    );
    let server = Server::start(&project, &["--live"]);
    let session = open(&server, &project, &anna).await;
    let refused = Box::pin(load(&server, &project, &server.token(), &session)).await;
    refused.unwrap();
    users(&project, &["remove", "anna"]).expect_code(0);
    let reason = within_timeout(session.agent().closed()).await.to_string();
    assert!(reason.contains("token was changed or removed"), "{reason}");
    let options = ConnectOptions::new().token(anna);
    let error = within_timeout(connect(server.plain_url(), options)).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("token"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_of_one_client_needs_a_user_who_may_prompt_and_answer() {
    let project = TestProject::new();
    let watcher = add_user(&project, &["watcher", "--can", "look"]);
    let full = add_user(&project, &["anna", "--can", "prompt,answer"]);
    let server = Server::start(&project, &[]);
    open(&server, &project, &full).await;
    let options = ConnectOptions::new().token(watcher);
    let transport = within_timeout(connect(server.plain_url(), options)).await;
    let client = acp::client::connect(transport.unwrap(), crate::serve_live::SilentClient);
    tokio::spawn(client.1);
    let error = within_timeout(client.0).await.unwrap_err().to_string();
    assert!(error.contains("permission denied"), "{error}");
}

#[test]
fn tokens_are_stored_as_hashes_and_mistakes_are_named() {
    let project = TestProject::new();
    let token = add_user(&project, &["anna", "--can", "look"]);
    let again = users(&project, &["add", "anna", "--can", "look"]);
    again
        .expect_code(2)
        .expect_stderr("user already exists: anna");
    let bad = users(&project, &["add", "a b", "--can", "look"]);
    bad.expect_code(2).expect_stderr("invalid user name");
    let bad = users(&project, &["add", "bob", "--can", "fly"]);
    bad.expect_code(2).expect_stderr("unknown scope: fly");
    let none = users(&project, &["remove", "bob"]);
    none.expect_code(2).expect_stderr("user not found: bob");
    let file = find_file(
        project.home_variables().map(|(_, path)| path),
        "serve-users.toml",
    );
    let text = std::fs::read_to_string(file).unwrap();
    assert!(
        text.contains("anna") && !text.contains(token.expose()),
        "{text}"
    );
}

/// Finds a file by its name below these directories.
fn find_file(
    directories: impl IntoIterator<Item = std::path::PathBuf>,
    name: &str,
) -> std::path::PathBuf {
    let mut rest: Vec<_> = directories.into_iter().collect();
    while let Some(directory) = rest.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.path() {
                path if path.is_dir() => rest.push(path),
                path if path.ends_with(name) => return path,
                _ => {}
            }
        }
    }
    panic!("{name} not found");
}
