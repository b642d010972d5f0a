//! Tests of the checks on a client program, which starts the relay as its agent.

use std::sync::Arc;
use std::time::Duration;

use acp_check::SchemaVersion;
use acp_check::relay::ClientProgram;
use acp_check::{self, Check, CheckDirectory, CheckOptions, CheckOutcome, CheckTarget, Verdict};
use acp_host::{AgentCommand, Environment};

const ACP: &str = env!("CARGO_BIN_EXE_acp");

/// The maximum time to wait for `acp run`, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

fn client_program(program: &str, args: &[&str]) -> ClientProgram {
    let command = AgentCommand::new(program)
        .args(args)
        .environment(Environment::new());
    ClientProgram::new(command, [ACP, "check-relay"]).unwrap()
}

fn acp_run_client() -> ClientProgram {
    client_program(ACP, &["run", "--allow", "all", "Do it.", "--", "{agent}"])
}

/// Runs the checks with these ids.
async fn run_checks(client: ClientProgram, ids: &[&str]) -> Vec<CheckOutcome> {
    let mut checks = acp_check::client_checks(SchemaVersion::V1);
    checks.retain(|check| ids.contains(&check.id().as_str()));
    assert_eq!(checks.len(), ids.len());
    let options = CheckOptions {
        timeout: TIMEOUT,
        jobs: 2,
        ..CheckOptions::default()
    };
    acp_check::run_checks(Arc::new(client), &checks, options).await
}

fn verdicts_by_id(outcomes: &[CheckOutcome]) -> Vec<(String, &Verdict)> {
    let told = |outcome: &'_ CheckOutcome| outcome.check.id();
    outcomes.iter().map(|o| (told(o), &o.verdict)).collect()
}

#[tokio::test]
async fn client_program_is_checked_through_its_agent() {
    let ids = [
        "v1/overview/102",
        "v1/transport/109",
        "v1/initialization/103",
        "v1/session-setup/101",
        "v1/prompt-turn/104",
        "v1/tool-calls/121",
        "v1/file-system/104",
        "v1/terminals/105",
    ];
    let outcomes = run_checks(acp_run_client(), &ids).await;
    for (id, verdict) in verdicts_by_id(&outcomes) {
        assert_eq!(*verdict, Verdict::Pass, "{id}");
    }
}

#[tokio::test]
#[ignore = "takes most of a minute: what is skipped is waited for"]
async fn acp_run_passes_or_skips_every_check() {
    let ids: Vec<String> = acp_check::client_checks(SchemaVersion::V1)
        .iter()
        .map(Check::id)
        .collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let outcomes = run_checks(acp_run_client(), &ids).await;
    let passed = outcomes.iter().filter(|o| o.verdict == Verdict::Pass);
    // What takes a person, a login or old sessions is skipped, and nothing else.
    assert!(passed.count() > 130);
    let wrong: Vec<_> = verdicts_by_id(&outcomes)
        .into_iter()
        .filter(|(_, verdict)| !matches!(verdict, Verdict::Pass | Verdict::Skip(_)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[cfg(unix)]
#[tokio::test]
async fn client_that_never_starts_its_agent_is_reported_with_its_output() {
    let place = CheckDirectory::new().unwrap();
    let line = "echo no such agent: \"$0\" >&2; exit 3";
    let silent = client_program("sh", &["-c", line, "{agent}"]);
    let why = silent.start(&place).await.unwrap_err();
    assert!(why.contains("without starting the agent"), "{why}");
    assert!(why.contains(&format!("no such agent: {ACP}")), "{why}");

    let slow =
        client_program("sleep", &["60", "{agent}"]).start_timeout(Duration::from_millis(200));
    let why = slow.start(&place).await.unwrap_err();
    assert!(
        why.contains("waiting for the client to start the agent") || why.contains("without"),
        "{why}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn client_that_exits_early_is_reported_with_its_exit_status() {
    let line = "\"$@\" < /dev/null; echo no key >&2; exit 4";
    let brief = client_program("sh", &["-c", line, "sh", "{agent}"]);
    let why = acp_check::detect_client_versions(&brief, &CheckOptions::default()).await;
    let why = why.unwrap_err();
    let told = "the client exited (exit code 4) before sending `initialize`";
    assert!(why.starts_with(told), "{why}");
    assert!(why.ends_with("\n  no key"), "{why}");
}

#[cfg(unix)]
#[tokio::test]
async fn relay_works_with_a_long_temp_directory_path() {
    // Longer than the address of a socket may be.
    let home = tempfile::Builder::new()
        .prefix(&"long".repeat(30))
        .tempdir()
        .unwrap();
    let output = std::process::Command::new(ACP)
        .args([
            "check",
            "client",
            "--only",
            "v1/session-setup/105",
            "--protocol",
            "1",
        ])
        .args([
            "--timeout",
            "20",
            "--",
            ACP,
            "run",
            "Do it.",
            "--",
            "{agent}",
        ])
        .env("TMPDIR", home.path())
        .env("XDG_CONFIG_HOME", home.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn relay_works_with_a_cleared_environment() {
    let cleared = client_program(
        "env",
        &["-i", ACP, "run", "Do it.", "--", "env", "-i", "{agent}"],
    );
    let outcomes = run_checks(cleared, &["v1/session-setup/105"]).await;
    let verdict = &outcomes.first().unwrap().verdict;
    assert_eq!(*verdict, Verdict::Pass);
}
