//! Tests of the environment variables passed to agents and commands.

use std::collections::BTreeMap;
use std::process::Command;

use acp_host::{AgentCommand, AgentProcess, Environment, HostTerminals};
use acp_wire::v1::{CreateTerminalRequest, TerminalOutputRequest, WaitForTerminalExitRequest};
use tokio::io::AsyncReadExt;

/// The environment variable that marks this process as started by a test with its own environment.
const ROLE_VARIABLE: &str = "ACP_TEST_ROLE";

/// Starts this test program again with only these environment variables and makes `test` run in its special role. This
/// is necessary because a process cannot change its own environment while other threads read it.
fn rerun_test(test: &str, variables: &[(&str, &str)]) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = format!("environment::{test}");
    command.args([&test, "--exact", "--nocapture"]).env_clear();
    // Instrumented builds of a test need these variables.
    for name in [
        "PATH",
        "HOME",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "LLVM_PROFILE_FILE",
    ] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let status = command
        .env(ROLE_VARIABLE, "1")
        .envs(variables.iter().copied())
        .status()
        .unwrap();
    assert!(status.success());
}

fn is_rerun() -> bool {
    std::env::var_os(ROLE_VARIABLE).is_some()
}

fn parse_environment(env: &str) -> BTreeMap<String, String> {
    let pairs = env.lines().filter_map(|line| line.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Returns the environment of an agent that this command starts.
async fn agent_environment(command: AgentCommand) -> BTreeMap<String, String> {
    let agent = AgentProcess::spawn(&command).unwrap();
    let (_, mut stdout) = agent.take_stdio().unwrap();
    let mut text = String::new();
    stdout.read_to_string(&mut text).await.unwrap();
    parse_environment(&text)
}

/// Returns the environment of a command run by an agent.
async fn command_environment(terminals: HostTerminals) -> BTreeMap<String, String> {
    let terminals = terminals.session("/", |_| ());
    let created = terminals
        .create(&CreateTerminalRequest::new("s", "env"))
        .await
        .unwrap();
    let id = created.terminal_id;
    let request = WaitForTerminalExitRequest::new("s", &id);
    terminals.wait_for_exit(&request).await.unwrap();
    let output = terminals
        .output(&TerminalOutputRequest::new("s", &id))
        .await
        .unwrap();
    parse_environment(&output.output)
}

#[cfg(unix)]
#[tokio::test]
async fn secrets_are_not_passed_on() {
    let secrets = [
        ("ANTHROPIC_API_KEY", "secret-1"),
        ("AWS_SECRET_ACCESS_KEY", "secret-2"),
        ("AWS_PROFILE", "secret-3"),
        ("GITHUB_TOKEN", "secret-4"),
        ("SSH_AUTH_SOCK", "/secret-5"),
        ("DATABASE_URL", "secret-6"),
        ("HTTPS_PROXY", "http://me:secret-7@proxy"),
        ("npm_config__authToken", "secret-8"),
        ("LC", "secret-9"),
        ("MY_PATH", "secret-10"),
    ];
    let needed = [
        ("LANG", "C.UTF-8"),
        ("LC_TIME", "C"),
        ("TERM", "dumb"),
        ("XDG_RUNTIME_DIR", "/run"),
        ("http_proxy", "http://proxy:8080"),
        ("SSL_CERT_FILE", "/certs"),
        ("CARGO_HOME", "/cargo"),
        ("RUSTUP_HOME", "/rustup"),
        ("JAVA_HOME", "/java"),
    ];
    if !is_rerun() {
        let variables = [&secrets[..], &needed[..]].concat();
        return rerun_test("secrets_are_not_passed_on", &variables);
    }
    let agent = || AgentCommand::new("env");
    let terminals = HostTerminals::new;
    for got in [
        agent_environment(agent()).await,
        command_environment(terminals()).await,
    ] {
        for (name, _) in secrets {
            assert!(!got.contains_key(name), "{name}: {got:?}");
        }
        for (name, value) in needed {
            assert_eq!(
                got.get(name).map(String::as_str),
                Some(value),
                "{name}: {got:?}"
            );
        }
        assert!(
            got.contains_key("PATH") && got.contains_key("HOME"),
            "{got:?}"
        );
    }

    // Only the requested variable is passed on.
    let asked = || {
        let asked = Environment::new()
            .pass_variable("AWS_*")
            .and_then(|e| e.pass_variable("HTTPS_PROXY"));
        asked
            .unwrap()
            .set("GITHUB_TOKEN", "another")
            .set("NEW", "x=y")
    };
    let expected = [
        ("AWS_SECRET_ACCESS_KEY", Some("secret-2")),
        ("AWS_PROFILE", Some("secret-3")),
        ("HTTPS_PROXY", Some("http://me:secret-7@proxy")),
        ("GITHUB_TOKEN", Some("another")),
        ("NEW", Some("x=y")),
        ("ANTHROPIC_API_KEY", None),
    ];
    let gots = [
        agent_environment(agent().environment(asked())).await,
        command_environment(terminals().environment(asked())).await,
    ];
    for got in gots {
        for (name, value) in expected {
            assert_eq!(got.get(name).map(String::as_str), value, "{name}: {got:?}");
            assert_eq!(asked().includes(name), value.is_some(), "{name}");
        }
    }

    let all = agent_environment(
        agent()
            .environment(Environment::inherit())
            .env("GITHUB_TOKEN", "mine"),
    )
    .await;
    assert_eq!(all["ANTHROPIC_API_KEY"], "secret-1");
    assert_eq!(all["GITHUB_TOKEN"], "mine");
}

#[cfg(unix)]
#[tokio::test]
async fn programs_are_searched_for_in_the_given_path() {
    let dir = tempfile::tempdir().unwrap();
    let tool = dir.path().join("my-tool");
    std::fs::copy("/bin/sh", &tool).unwrap();
    let environment = Environment::new().set("PATH", dir.path());
    let command = AgentCommand::new("my-tool").args(["-c", "echo FOUND=1"]);
    let got = agent_environment(command.environment(environment)).await;
    assert_eq!(got["FOUND"], "1");
}

#[test]
fn values_are_not_printed() {
    let environment = Environment::new()
        .set("KEY", "hush")
        .pass_variable("TOKEN")
        .unwrap();
    let command = AgentCommand::new("agent")
        .env("OTHER", "quiet")
        .environment(environment);
    let shown = format!("{command:?} {command:#?}");
    for name in ["KEY", "TOKEN", "OTHER"] {
        assert!(shown.contains(name), "{shown}");
    }
    assert!(
        !shown.contains("hush") && !shown.contains("quiet"),
        "{shown}"
    );
}

#[test]
fn invalid_variable_name_is_rejected() {
    for name in ["", "A=B", "*A", "A*B", "A\0"] {
        assert!(Environment::new().pass_variable(name).is_err(), "{name:?}");
    }
    assert!(Environment::new().pass_variable("*").is_ok());
}
