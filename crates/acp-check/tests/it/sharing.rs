//! Tests of agents that several checks share. The agents are shell scripts that write down each time they start.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use acp_check::{
    AgentProgram, Check, CheckEvent, CheckOptions, CheckOutcome, ProcessUse, SchemaVersion,
    TranscriptEntry, Verdict,
};
use acp_host::AgentCommand;

/// The beginning of an agent, which handles one line after another. `$sessions` is the number of sessions.
const BEGIN_SCRIPT: &str = r#"
echo started >> "$0"
sessions=0
while IFS= read -r line; do
    id=$(printf '%s\n' "$line" | sed -nE 's/.*"id":("[^"]*"|[0-9]+).*/\1/p')
    [ -n "$id" ] || continue
    case $line in
    *'"method":"session/new"'*) sessions=$((sessions + 1)) ;;
    esac
    case $line in
"#;

/// The end of the agent: what it answers to every other line.
const END_SCRIPT: &str = r#"
    *'"method":"initialize"'*) answer='"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"close":{}}},"agentInfo":{"name":"sh","version":"1"}}' ;;
    *'"method":"session/new"'*) answer='"result":{"sessionId":"s'$$-$sessions'"}' ;;
    *'"method":"session/close"'*) answer='"result":{}' ;;
    *) answer='"error":{"code":-32601,"message":"Method not found"}' ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$answer"
done
"#;

/// Checks that may share an agent. The correct agent passes them.
const SHARED_IDS: [&str; 5] = [
    "v1/overview/1",
    "v1/overview/6",
    "v1/session-setup/1",
    "v1/session-setup/2",
    "v1/extensibility/1",
];

/// The outcomes of checks, and how often they started the agent.
struct SharingRun {
    outcomes: Vec<CheckOutcome>,
    start_count: usize,
}

impl SharingRun {
    fn outcome(&self, id: &str) -> &CheckOutcome {
        let mut outcomes = self.outcomes.iter();
        let outcome = outcomes.find(|outcome| outcome.check.id() == id);
        outcome.unwrap_or_else(|| panic!("{id} was not run"))
    }

    fn failed_ids(&self) -> Vec<String> {
        let outcomes = self.outcomes.iter();
        let failed = outcomes.filter(|outcome| outcome.verdict != Verdict::Pass);
        failed.map(|outcome| outcome.check.id()).collect()
    }
}

/// Runs checks with the agent that handles some lines in its own way.
async fn run_checks(ids: &[&str], special: &str, options: CheckOptions) -> SharingRun {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("starts");
    let script = format!("{BEGIN_SCRIPT}{special}{END_SCRIPT}");
    let command = AgentCommand::new("/bin/sh").args(["-c", &script]);
    let command = command.args([&log]);
    let target = Arc::new(AgentProgram::new(command));
    let all = acp_check::agent_checks(SchemaVersion::V1);
    let checks: Vec<Check> = ids
        .iter()
        .map(|id| *all.iter().find(|check| check.id() == *id).unwrap())
        .collect();
    let outcomes = acp_check::run_checks(target, &checks, options).await;
    SharingRun {
        outcomes,
        start_count: count_lines(&log),
    }
}

fn count_lines(file: &Path) -> usize {
    std::fs::read_to_string(file).unwrap().lines().count()
}

fn one_at_a_time() -> CheckOptions {
    CheckOptions {
        jobs: 1,
        ..CheckOptions::default()
    }
}

#[test]
fn each_check_of_an_agent_says_whether_it_may_share_the_agent() {
    for version in [SchemaVersion::V1, SchemaVersion::V2] {
        for check in acp_check::agent_checks(version) {
            let is_said = check.process_use != ProcessUse::Fresh("");
            assert!(is_said || check.judges_others(), "{}", check.id());
        }
    }
}

#[tokio::test]
async fn checks_that_use_only_their_own_sessions_share_one_agent() {
    let run = run_checks(&SHARED_IDS, "", one_at_a_time()).await;
    assert_eq!(run.failed_ids(), [""; 0]);
    assert_eq!(run.start_count, 1);

    let options = CheckOptions {
        shares_agents: false,
        ..one_at_a_time()
    };
    let run = run_checks(&SHARED_IDS, "", options).await;
    assert_eq!(run.failed_ids(), [""; 0]);
    assert_eq!(run.start_count, SHARED_IDS.len());
}

#[tokio::test]
async fn agent_that_cannot_close_sessions_is_replaced_after_a_few() {
    let special = r#"*'"method":"initialize"'*) answer='"result":{"protocolVersion":1}' ;;"#;
    let run = run_checks(&SHARED_IDS, special, one_at_a_time()).await;
    assert_eq!(run.failed_ids(), [""; 0]);
    // After the check that opens three sessions, five are open.
    assert_eq!(run.start_count, 2);
}

#[tokio::test]
async fn check_that_needs_its_own_agent_gets_one() {
    let ids = [
        "v1/overview/1",
        "v1/transports/4",
        "v1/overview/6",
        "v1/initialization/6",
    ];
    let run = run_checks(&ids, "", one_at_a_time()).await;
    assert_eq!(run.failed_ids(), [""; 0]);
    // The two that share an agent come first. The outcomes are in the order of the checks all the same.
    assert_eq!(run.start_count, 3);
    let reported = run.outcomes.iter().map(|outcome| outcome.check.id());
    assert_eq!(reported.collect::<Vec<_>>(), ids);
}

#[tokio::test]
async fn invalid_messages_come_after_other_checks() {
    // After an invalid request, this process opens no sessions.
    let special = r#"
    *'"method":1'*) broken=yes; answer='"error":{"code":-32600,"message":"Invalid request"}' ;;
    *'"method":"session/new"'*)
        if [ -n "$broken" ]; then
            answer='"error":{"code":-32603,"message":"confused"}'
        else
            answer='"result":{"sessionId":"s'$$'"}'
        fi ;;
"#;
    let ids = ["v1/overview/12", "v1/session-setup/1"];
    let run = run_checks(&ids, special, one_at_a_time()).await;
    assert_eq!(run.failed_ids(), [""; 0]);
    assert_eq!(run.start_count, 1);
}

#[tokio::test]
async fn check_is_skipped_without_an_agent_if_a_capability_is_missing() {
    let ids = ["v1/overview/1", "v1/providers/1", "v1/auth-status/1"];
    let run = run_checks(&ids, "", one_at_a_time()).await;
    assert_eq!(run.failed_ids(), ids[1..]);
    for (id, name) in [(ids[1], "providers"), (ids[2], "auth.status")] {
        let why = format!("the agent does not support `agentCapabilities.{name}`");
        assert_eq!(run.outcome(id).verdict, Verdict::Skip(why));
    }
    assert_eq!(run.start_count, 1);

    // Without other checks, nothing is known about the agent.
    let run = run_checks(&ids[1..2], "", one_at_a_time()).await;
    assert_eq!(run.failed_ids(), [ids[1]]);
    assert_eq!(run.start_count, 1);
}

#[tokio::test]
async fn skipped_checks_are_repeated_together() {
    let ids = [
        "v1/overview/6",
        "v1/session-setup/1",
        "v1/session-modes/1",
        "v1/session-list/1",
        "v1/slash-commands/1",
        "v1/session-config-options/1",
    ];
    let run = run_checks(&ids, "", one_at_a_time()).await;
    let skipped: Vec<&str> = run.outcomes[2..]
        .iter()
        .map(|o| o.verdict.as_str())
        .collect();
    assert_eq!(skipped, ["skip"; 4]);
    assert_eq!(run.failed_ids(), ids[2..]);
    // One agent, and another one for all repetitions.
    assert_eq!(run.start_count, 2);
}

#[tokio::test]
async fn skip_that_only_a_used_agent_shows_does_not_count() {
    // Only the first session of a process has modes.
    let special = r#"
    *'"method":"session/new"'*)
        if [ $sessions -gt 1 ]; then
            answer='"result":{"sessionId":"s'$$-$sessions'"}'
        else
            answer='"result":{"sessionId":"s'$$-$sessions'","modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A"}]}}'
        fi ;;
"#;
    let ids = ["v1/session-setup/1", "v1/session-modes/1"];
    let run = run_checks(&ids, special, one_at_a_time()).await;
    assert_eq!(run.failed_ids(), [""; 0]);
    assert_eq!(run.start_count, 2);
}

#[tokio::test]
async fn failure_that_only_a_used_agent_shows_is_repeated_with_a_new_one() {
    // The second session of a process cannot be opened. The checks open one session each.
    let special = r#"
    *'"method":"session/new"'*)
        if [ $sessions -gt 1 ]; then
            answer='"error":{"code":-32603,"message":"only one session"}'
        else
            answer='"result":{"sessionId":"s'$$'"}'
        fi ;;
"#;
    let ids = ["v1/session-setup/1", "v1/extensibility/1"];
    let run = run_checks(&ids, special, one_at_a_time()).await;
    assert_eq!(run.failed_ids(), [""; 0]);
    assert_eq!(run.start_count, 2);
    assert_eq!(run.outcome(ids[0]).shared_result, None);
    let repeated = run.outcome(ids[1]);
    let before = repeated.shared_result.as_deref().unwrap_or_default();
    assert!(before.contains("only one session"), "{before}");
    let notes = repeated.transcript.entries().iter();
    let mut notes = notes.filter_map(|entry| match entry {
        TranscriptEntry::Event { description, .. } => Some(description),
        _ => None,
    });
    assert!(
        notes.any(|note| note.contains("only one session")),
        "the transcript mentions the first run"
    );
}

#[tokio::test]
async fn check_during_which_the_agent_exits_is_the_only_one_that_fails() {
    let special = "*acp-check.example*) exit 7 ;;\n";
    let ids = [
        "v1/session-setup/1",
        "v1/extensibility/1",
        "v1/session-setup/2",
        "v1/overview/6",
    ];
    let run = run_checks(&ids, special, one_at_a_time()).await;
    assert_eq!(run.failed_ids(), ["v1/extensibility/1"]);
    // One for the first check, one for the repetition of the second, and one for the others.
    assert_eq!(run.start_count, 3);
}

#[tokio::test]
async fn check_during_which_the_agent_hangs_is_the_only_one_that_fails() {
    let special = "*acp-check.example*) exec sleep 600 ;;\n";
    let ids = [
        "v1/session-setup/1",
        "v1/extensibility/1",
        "v1/session-setup/2",
    ];
    let options = CheckOptions {
        timeout: std::time::Duration::from_secs(2),
        ..one_at_a_time()
    };
    let run = run_checks(&ids, special, options).await;
    assert_eq!(run.failed_ids(), ["v1/extensibility/1"]);
}

#[tokio::test]
async fn agent_that_fails_every_check_is_started_once_per_check() {
    let special =
        r#"*'"method":"session/new"'*) answer='"error":{"code":-32603,"message":"never"}' ;;"#;
    let ids = [
        "v1/session-setup/1",
        "v1/session-setup/2",
        "v1/extensibility/1",
    ];
    let run = run_checks(&ids, special, one_at_a_time()).await;
    assert_eq!(run.failed_ids(), ids);
    assert_eq!(run.start_count, ids.len());
}

#[tokio::test]
async fn fault_in_every_session_does_not_stop_the_sharing() {
    // `sessionId` is missing in a message that no check is about.
    let special = r#"*'"method":"session/new"'*)
        printf '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}}\n'
        answer='"result":{"sessionId":"s'$$-$sessions'"}' ;;
"#;
    let run = run_checks(&SHARED_IDS, special, one_at_a_time()).await;
    assert_eq!(run.failed_ids(), [""; 0]);
    assert_eq!(run.start_count, 1);
}

/// Runs all checks of the correct agent, and returns their verdicts and the number of agents that were started.
async fn run_all(
    version: SchemaVersion,
    shares_agents: bool,
) -> (BTreeMap<String, Verdict>, usize) {
    let starts = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&starts);
    let start = match version {
        SchemaVersion::V1 => crate::mutants::agent::start,
        SchemaVersion::V2 => crate::mutants::agent::start_v2,
    };
    let target = move |transport: acp::Transport| {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        start(transport);
    };
    let options = CheckOptions {
        shares_agents,
        auth_method: Some(crate::mutants::agent::LOGIN_METHOD_ID.to_owned()),
        prompts: crate::mutants::agent::task_prompts(),
        ..CheckOptions::default()
    };
    let checks = acp_check::agent_checks(version);
    let tell = |_: CheckEvent<'_>| {};
    let outcomes =
        acp_check::run_checks_with_progress(Arc::new(target), &checks, options, tell).await;
    let verdicts = outcomes
        .into_iter()
        .map(|outcome| (outcome.check.id(), outcome.verdict));
    (
        verdicts.collect(),
        starts.load(std::sync::atomic::Ordering::Relaxed),
    )
}

async fn assert_sharing_changes_no_verdict(version: SchemaVersion) {
    let (shared, few) = run_all(version, true).await;
    let (separate, many) = run_all(version, false).await;
    assert_eq!(shared, separate);
    let checks = acp_check::agent_checks(version);
    let needs_own = |check: &&Check| matches!(check.process_use, ProcessUse::Fresh(_));
    let own = checks.iter().filter(|check| !check.judges_others());
    let own = own.filter(needs_own).count();
    assert!(
        few < own + (many - own) / 2,
        "{few} of {many} starts, {own} of them needed"
    );
}

#[tokio::test]
async fn sharing_changes_no_verdict_of_version_1() {
    assert_sharing_changes_no_verdict(SchemaVersion::V1).await;
}

#[tokio::test]
async fn sharing_changes_no_verdict_of_version_2() {
    assert_sharing_changes_no_verdict(SchemaVersion::V2).await;
}
