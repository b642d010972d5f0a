//! Tests of the bundled agent on several servers that share its sessions through PostgreSQL, and no files.

use std::os::unix::fs::PermissionsExt;

use acp::client::SessionSetup;
use acp::v1::StopReason;
use acp_postgres::{PostgresServer, TestPostgres};
use acp_remote::Token;
use rustix::process::Signal;

use crate::common::TestProject;
use crate::model::{chat_response, start_server};
use crate::serve::{Server, connect_client, thread_debug_text, within_timeout};

const TOKEN: &str = "the-token-of-the-servers";

/// Starts a server whose user has other files than those of the other servers. Only the directory of the project is at
/// the same path.
fn start_node(user: &TestProject, cwd: &TestProject, store: &str) -> Server {
    let mut command = user.acp_command(&["serve", "--listen", "127.0.0.1:0", "--live"]);
    command
        .args(["--store", store, "--lease", "1", "--cwd"])
        .arg(cwd.path())
        .env("HOME", user.path_outside("home"))
        .env("ACP_SERVE_TOKEN", TOKEN);
    Server::from_command(command, 1)
}

fn configure_model(user: &TestProject, base_url: &str) {
    let config = format!("[agent]\nmodel = \"openai/qwen3:8b\"\nbase_url = \"{base_url}/v1\"\n");
    user.write_config("config.toml", &config);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_node_continues_a_conversation_from_the_database_alone() {
    let Some(postgres) = TestPostgres::shared() else {
        return;
    };
    let store = postgres.new_database();
    let cwd = TestProject::new();
    let (one, other) = (TestProject::new(), TestProject::new());
    let (first_model, first_request) = start_server(chat_response("The harbour is blue."));
    let (second_model, second_request) = start_server(chat_response("It was blue."));
    configure_model(&one, &first_model);
    configure_model(&other, &second_model);
    let token = Token::new(TOKEN).unwrap();

    let node = start_node(&one, &cwd, &store);
    let client = connect_client(node.url(), token.clone()).await;
    let session = client.new_session(SessionSetup::new(cwd.path()));
    let session = within_timeout(session).await.unwrap();
    let id = session.id().clone();
    let turn = within_timeout(session.prompt("Which colour has the harbour?"));
    assert_eq!(turn.await.unwrap(), StopReason::EndTurn);
    first_request.join().unwrap();
    node.signal(Signal::KILL);

    let node = start_node(&other, &cwd, &store);
    let client = connect_client(node.url(), token).await;
    let loaded = client.load_session(&id, SessionSetup::new(cwd.path()));
    let session = within_timeout(loaded).await.unwrap();
    let turn = within_timeout(session.prompt("Which colour was it?"));
    assert_eq!(turn.await.unwrap(), StopReason::EndTurn);
    let (_, request) = second_request.join().unwrap();
    let heard = request["messages"].to_string();
    for part in [
        "Which colour has the harbour?",
        "The harbour is blue.",
        "Which colour was it?",
    ] {
        assert!(heard.contains(part), "{part}: {heard}");
    }
    let shown = thread_debug_text(&session);
    for part in ["The harbour is blue.", "It was blue."] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // Neither agent has stored a session in a file.
    for user in [&one, &other] {
        assert!(!user.sessions_directory().join("sessions.db").exists());
    }
    other
        .run_shell(&format!("acp store status '{store}'"))
        .expect_code(0)
        .expect_stdout(&["sessions of the bundled agent: 1 (version 1)\n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_gets_the_password_but_its_commands_do_not() {
    let project = TestProject::new();
    let rules = project.path_outside("rules");
    let access = rules.join("pg_hba.conf");
    let lines = "local all postgres trust\nlocal all all scram-sha-256\n";
    std::fs::write(&access, lines).unwrap();
    // The server may be another user.
    let mut directory = Some(rules.as_path());
    while let Some(path) = directory.filter(|path| *path != std::env::temp_dir()) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        directory = path.parent();
    }
    let options = format!("-c fsync=off -c hba_file='{}'", access.display());
    let Some(postgres) = TestPostgres::start(&options) else {
        return;
    };
    let url = postgres.new_database();
    let admin = PostgresServer::new(&url, None).unwrap();
    let mut admin = admin.connect().await.unwrap();
    let role = "create role acp superuser login password 'the password'";
    admin.run(role).await.unwrap();
    let store = url.replace("postgres@", "acp@");
    let mut command = project.acp_command(&["serve", "--listen", "127.0.0.1:0", "--live"]);
    command
        .args(["--store", &store])
        .env("ACP_STORE_PASSWORD", "the password")
        .env("ACP_SERVE_TOKEN", TOKEN);
    let server = Server::from_command(command, 1);
    let agent = connect_client(server.url(), Token::new(TOKEN).unwrap()).await;
    let session = agent.new_session(SessionSetup::new(project.path()));
    let session = within_timeout(session).await.unwrap();
    let everything = "/run env; cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo the end";
    let turn = within_timeout(session.prompt(everything));
    assert_eq!(turn.await.unwrap(), StopReason::EndTurn);
    let text = thread_debug_text(&session);
    assert!(text.contains("the end") && text.contains("PATH="), "{text}");
    assert!(!text.contains("the password"), "{text}");
    // It has stored its session, so it had the password.
    let status = format!("ACP_STORE_PASSWORD='the password' acp store status '{store}'");
    project
        .run_shell(&status)
        .expect_code(0)
        .expect_stdout(&["sessions of the bundled agent: 1 (version 1)\n"]);
}

#[test]
fn agent_with_an_invalid_database_says_why() {
    let project = TestProject::new();
    project
        .run_shell("acp agent --sessions postgres://localhost:port/x")
        .expect_code(2)
        .expect_stderr("--sessions: invalid address");
}
