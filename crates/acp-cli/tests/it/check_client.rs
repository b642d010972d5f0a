//! A client that is a program, checked: it starts the relay as its agent.

use std::sync::Arc;
use std::time::Duration;

use acp_check::SchemaVersion;
use acp_check::relay::ClientProgram;
use acp_check::{self, Check, CheckDirectory, CheckOptions, CheckOutcome, CheckTarget, Verdict};
use acp_host::{AgentCommand, Environment};

const ACP: &str = env!("CARGO_BIN_EXE_acp");

/// How long `acp run` may take for anything, on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(20);

fn client(program: &str, args: &[&str]) -> ClientProgram {
    let command = AgentCommand::new(program)
        .args(args)
        .environment(Environment::new());
    ClientProgram::new(command, [ACP, "check-relay"]).unwrap()
}

fn acp_run() -> ClientProgram {
    client(ACP, &["run", "--allow", "all", "Do it.", "--", "{agent}"])
}

/// Carries out the checks that are named.
async fn check(client: ClientProgram, ids: &[&str]) -> Vec<CheckOutcome> {
    let mut checks = acp_check::client_checks(SchemaVersion::V1);
    checks.retain(|check| ids.contains(&check.id().as_str()));
    assert_eq!(checks.len(), ids.len());
    let options = CheckOptions {
        timeout: PATIENCE,
        jobs: 2,
        ..CheckOptions::default()
    };
    acp_check::run(Arc::new(client), &checks, options).await
}

fn verdicts(outcomes: &[CheckOutcome]) -> Vec<(String, &Verdict)> {
    let told = |outcome: &'_ CheckOutcome| outcome.check.id();
    outcomes.iter().map(|o| (told(o), &o.verdict)).collect()
}

#[tokio::test]
async fn a_client_that_is_a_program_is_played_with_through_its_agent() {
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
    let outcomes = check(acp_run(), &ids).await;
    for (id, verdict) in verdicts(&outcomes) {
        assert_eq!(*verdict, Verdict::Pass, "{id}");
    }
}

#[tokio::test]
#[ignore = "takes most of a minute: what is skipped is waited for"]
async fn acp_run_passes_or_skips_everything() {
    let ids: Vec<String> = acp_check::client_checks(SchemaVersion::V1)
        .iter()
        .map(Check::id)
        .collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let outcomes = check(acp_run(), &ids).await;
    let passed = outcomes.iter().filter(|o| o.verdict == Verdict::Pass);
    // What takes a person, a login or old sessions is skipped, and nothing else.
    assert!(passed.count() > 130);
    let wrong: Vec<_> = verdicts(&outcomes)
        .into_iter()
        .filter(|(_, verdict)| !matches!(verdict, Verdict::Pass | Verdict::Skip(_)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_client_that_never_starts_its_agent_is_told_with_what_it_said() {
    let place = CheckDirectory::new().unwrap();
    let line = "echo no such agent: \"$0\" >&2; exit 3";
    let silent = client("sh", &["-c", line, "{agent}"]);
    let why = silent.start(&place).await.unwrap_err();
    assert!(why.contains("without starting the agent"), "{why}");
    assert!(why.contains(&format!("no such agent: {ACP}")), "{why}");

    let slow = client("sleep", &["60", "{agent}"]).start_timeout(Duration::from_millis(200));
    let why = slow.start(&place).await.unwrap_err();
    assert!(
        why.contains("waiting for the client to start the agent") || why.contains("without"),
        "{why}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_client_that_ends_before_it_begins_is_told_with_its_exit() {
    let line = "\"$@\" < /dev/null; echo no key >&2; exit 4";
    let brief = client("sh", &["-c", line, "sh", "{agent}"]);
    let why = acp_check::detect_client_versions(&brief, &CheckOptions::default()).await;
    let why = why.unwrap_err();
    let told = "the client exited (exit code 4) before sending `initialize`";
    assert!(why.starts_with(told), "{why}");
    assert!(why.ends_with("\n  no key"), "{why}");
}

#[cfg(unix)]
#[tokio::test]
async fn the_relay_works_where_the_directory_for_temporary_files_has_a_long_name() {
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
async fn the_relay_works_where_the_environment_is_cleared() {
    let cleared = client(
        "env",
        &["-i", ACP, "run", "Do it.", "--", "env", "-i", "{agent}"],
    );
    let outcomes = check(cleared, &["v1/session-setup/105"]).await;
    let verdict = &outcomes.first().unwrap().verdict;
    assert_eq!(*verdict, Verdict::Pass);
}
