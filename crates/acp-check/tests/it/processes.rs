//! Tests of the checks that only an agent in its own process can fail. The agents are shell scripts: one correct and
//! several faulty.

use std::sync::Arc;
use std::time::Duration;

use acp_check::SchemaVersion;
use acp_check::{AgentProgram, Check, CheckOptions, CheckTarget, Verdict};
use acp_host::AgentCommand;

/// How long to wait for the correct agent.
const TIMEOUT: Duration = Duration::from_secs(20);

/// How long to wait for a message that a faulty agent fails to send.
const SHORT_TIMEOUT: Duration = Duration::from_secs(1);

/// An agent that opens sessions, answers every other request with an error, and exits when its input ends.
const SERVE_SCRIPT: &str = r#"
while IFS= read -r line; do
    id=$(printf '%s\n' "$line" | sed -nE 's/.*"id":("[^"]*"|[0-9]+).*/\1/p')
    [ -n "$id" ] || continue
    case $line in
    *'"method":"initialize"'*) answer='"result":{"protocolVersion":1,"agentCapabilities":{}}' ;;
    *'"method":"session/new"'*) answer='"result":{"sessionId":"s"}' ;;
    *) answer='"error":{"code":-32601,"message":"Method not found"}' ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$answer"
done
"#;

fn shell_agent(script: &str) -> Arc<dyn CheckTarget> {
    let command = AgentCommand::new("/bin/sh").args(["-c", script]);
    Arc::new(AgentProgram::new(command))
}

fn checks_with_ids(ids: &[&str]) -> Vec<Check> {
    let all = acp_check::agent_checks(SchemaVersion::V1).into_iter();
    let found: Vec<Check> = all
        .filter(|check| ids.contains(&check.id().as_str()))
        .collect();
    assert_eq!(found.len(), ids.len(), "there is one of each of {ids:?}");
    found
}

fn options_with_timeout(patience: Duration) -> CheckOptions {
    CheckOptions {
        timeout: patience,
        turn_timeout: patience,
        ..CheckOptions::default()
    }
}

async fn run_check(id: &str, script: &str) -> Verdict {
    let mut outcomes = acp_check::run_checks(
        shell_agent(script),
        &checks_with_ids(&[id]),
        options_with_timeout(SHORT_TIMEOUT),
    )
    .await;
    outcomes.swap_remove(0).verdict
}

#[tokio::test]
async fn correct_process_passes() {
    let ids = [
        "v1/transports/4",
        "v1/transports/5",
        "v1/transports/7",
        "v1/transports/12",
        "v1/transports/14",
        "v1/transports/17",
        "v1/transports/19",
        "v1/transports/20",
    ];
    for outcome in acp_check::run_checks(
        shell_agent(SERVE_SCRIPT),
        &checks_with_ids(&ids),
        options_with_timeout(TIMEOUT),
    )
    .await
    {
        assert_eq!(outcome.verdict, Verdict::Pass, "{}", outcome.check.id());
    }
}

#[tokio::test]
async fn process_that_does_not_exit_fails_the_check() {
    let stays = format!("{SERVE_SCRIPT}\nexec sleep 600");
    let verdict = run_check("v1/transports/19", &stays).await;
    assert!(
        matches!(&verdict, Verdict::Warn(why) if why.contains("the process did not exit")),
        "{verdict}"
    );
}

#[tokio::test]
async fn leftover_child_process_fails_the_check() {
    let leaves = format!("sleep 600 >/dev/null 2>&1 &\n{SERVE_SCRIPT}");
    let verdict = run_check("v1/transports/20", &leaves).await;
    assert!(
        matches!(&verdict, Verdict::Warn(why) if why.contains("a child process is still running")),
        "{verdict}"
    );
}
