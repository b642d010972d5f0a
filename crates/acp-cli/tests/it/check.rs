//! Tests of `acp check` with real agents: the bundled one and some faulty ones.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::local_sessions::wait_for_file;

const ACP: &str = env!("CARGO_BIN_EXE_acp");

/// Runs `acp check agent` with its own state and configuration directories.
fn run_check(home: &Path, args: &[&str]) -> Output {
    Command::new(ACP)
        .args(["check", "agent"])
        .args(args)
        .env("XDG_STATE_HOME", home.join("state"))
        .env("XDG_CONFIG_HOME", home.join("config"))
        .output()
        .unwrap()
}

fn stdout_text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Arguments for the bundled agent that make it execute typed commands instead of using a model.
const BUNDLED_AGENT_ARGS: &[&str] = &[
    "--prompt-for",
    "read=/read notes.txt",
    "--prompt-for",
    "answer=/help",
    "--",
    ACP,
    "agent",
];

fn bundled_agent_args<'a>(options: &[&'a str]) -> Vec<&'a str> {
    options.iter().chain(BUNDLED_AGENT_ARGS).copied().collect()
}

#[test]
fn passing_checks_are_reported_in_json() {
    let home = tempfile::tempdir().unwrap();
    let only = ["--only", "v1/initialization/*", "--format", "json"];
    let output = run_check(home.path(), &bundled_agent_args(&only));
    assert_eq!(output.status.code(), Some(0), "{}", stdout_text(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["side"], "agent");
    assert_eq!(report["summary"]["fail"], 0);
    let checks = report["checks"].as_array().unwrap();
    assert!(
        checks.iter().all(|check| check["verdict"] == "pass"),
        "{report:#}"
    );
    assert!(
        checks
            .iter()
            .any(|check| check["id"] == "v1/initialization/1")
    );
}

#[test]
fn failing_agent_is_reported_with_its_messages() {
    let home = tempfile::tempdir().unwrap();
    let agent = home.path().join("agent.sh");
    // It answers whatever it is asked with a version that nobody speaks.
    std::fs::write(
        &agent,
        r#"while read -r line; do echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":7}}'; done"#,
    )
    .unwrap();
    let agent = agent.to_str().unwrap();
    let only = ["--only", "v1/initialization/2", "--", "sh", agent];
    let output = run_check(home.path(), &only);
    let text = stdout_text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("requested protocol version 1, but the response has 7"),
        "{text}"
    );
    assert!(text.contains(r#""protocolVersion":7"#), "{text}");
    assert!(text.contains("1 check: 0 passed, 1 failed"), "{text}");

    // What is known does not fail the run.
    let known = home.path().join("known");
    std::fs::write(&known, "v1/initialization/2  # on its way\n").unwrap();
    let baseline = ["--baseline", known.to_str().unwrap()];
    let output = run_check(home.path(), &[&baseline, &only[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stdout_text(&output));

    // In XML it is a failure, with the evidence.
    let output = run_check(home.path(), &[&["--format", "junit"], &only[..]].concat());
    let xml = stdout_text(&output);
    assert_eq!(output.status.code(), Some(1), "{xml}");
    assert!(
        xml.contains(r#"failures="1""#)
            && xml.contains("requested protocol version 1, but the response has 7"),
        "{xml}"
    );

    let page = home.path().join("page.html");
    let out = ["--format", "html", "--out", page.to_str().unwrap()];
    let output = run_check(home.path(), &[&out, &only[..]].concat());
    assert_eq!(
        (output.status.code(), stdout_text(&output).as_str()),
        (Some(1), "")
    );
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains("requested protocol version 1, but the response has 7"),
        "{page}"
    );
}

/// Returns the fields that the tables in a part of `docs/check.md` list, table by table.
fn documented_json_fields() -> Vec<Vec<String>> {
    let page = include_str!("../../../../docs/check.md");
    let (_, part) = page.split_once("## The JSON report").unwrap();
    let tables = part.split("| field | meaning |").skip(1);
    let fields = |table: &str| {
        let rows = table.lines().filter(|line| line.starts_with("| `"));
        let names = rows.flat_map(|row| row.split('|').nth(1).unwrap().split(','));
        names
            .map(|name| name.trim().trim_matches('`').to_owned())
            .collect()
    };
    tables.map(fields).collect()
}

#[test]
fn fields_of_the_json_report_are_documented() {
    let home = tempfile::tempdir().unwrap();
    // A failure, which the baseline lists.
    let agent = r#"while read -r line; do echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":7}}'; done"#;
    let known = home.path().join("known");
    std::fs::write(&known, "v1/initialization/2\n").unwrap();
    let options = ["--format", "json", "--baseline", known.to_str().unwrap()];
    let only = ["--only", "v1/initialization/2", "--", "sh", "-c", agent];
    let output = run_check(home.path(), &[&options[..], &only].concat());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    let [mut of_report, mut of_check] = documented_json_fields().try_into().unwrap();
    // Only an agent that keeps something between sessions has such a result.
    of_check.retain(|name| name != "shared_result");
    let check = &report["checks"][0];
    for (documented, value) in [(&mut of_report, &report), (&mut of_check, check)] {
        let mut reported = names(value);
        documented.sort();
        reported.sort();
        assert_eq!(&reported, documented);
    }
    assert_eq!(names(&check["evidence"][0]).len(), 3);
}

#[test]
fn common_cause_of_many_failures_is_reported_once() {
    let home = tempfile::tempdir().unwrap();
    let agent = home.path().join("agent.sh");
    // It answers `initialize`, and has nothing else.
    std::fs::write(
        &agent,
        r#"while read -r line; do
id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
case $line in
*'"initialize"'*) rest='"result":{"protocolVersion":1}' ;;
*) rest='"error":{"code":-32601,"message":"not here"}' ;;
esac
echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$rest}"
done"#,
    )
    .unwrap();
    let agent = agent.to_str().unwrap();
    let only = ["--only", "v1/session-modes/*", "--", "sh", agent];
    let output = run_check(home.path(), &only);
    assert_eq!(output.status.code(), Some(1), "{}", stdout_text(&output));
    let said = stdout_text(&output);
    let once = "7 checks with the same result: `session/new` failed with error -32601: not here";
    assert_eq!(said.matches(once).count(), 1, "{said}");
}

/// An agent that passes the checks of `v1/initialization`, except for the one about its name.
#[cfg(unix)]
const NAMELESS_AGENT: &str = r#"while read -r line; do
id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{}}}"
done"#;

#[cfg(unix)]
#[test]
fn report_begins_with_the_summary_and_the_failures() {
    let home = tempfile::tempdir().unwrap();
    let only = ["--only", "v1/initialization/[126]", "--protocol", "1"];
    let agent = ["--", "sh", "-c", NAMELESS_AGENT];
    let output = run_check(home.path(), &[&only[..], &agent].concat());
    let text = stdout_text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let summary = text.lines().next().unwrap();
    assert!(
        summary.starts_with("3 checks: 2 passed, 0 failed, 1 warned in "),
        "{text}"
    );
    let position = |part: &str| {
        text.find(part)
            .unwrap_or_else(|| panic!("{part:?}: {text}"))
    };
    assert!(
        position("`agentInfo` with `name`") < position("✓"),
        "{text}"
    );

    let output = run_check(home.path(), &[&["--quiet"], &only[..], &agent].concat());
    let text = stdout_text(&output);
    assert!(text.contains("1 warned"), "{text}");
    assert!(text.contains("`agentInfo` with `name`"), "{text}");
    assert!(!text.contains('✓'), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn progress_is_shown_only_on_a_terminal() {
    use crate::common::TestProject;
    use crate::common::terminal::CommandTerminal;

    let project = TestProject::new();
    std::fs::write(project.file("agent.sh"), NAMELESS_AGENT).unwrap();
    let line = |quiet: &str| {
        let agent = project.file("agent.sh");
        format!(
            "{ACP} check agent {quiet} --jobs 1 --only 'v1/initialization/[12]' -- sh {}",
            agent.display()
        )
    };
    let screen = CommandTerminal::start(&project, &line("")).expect_exit(0);
    for shown in [
        "starting the agent",
        "0 of 2  v1/initialization/1",
        "1 of 2  v1/initialization/2",
        "2 of 2",
    ] {
        assert!(screen.contains(shown), "{shown:?}: {screen}");
    }
    // The line is erased before the report.
    let report = screen.rsplit("\u{1b}[K").next().unwrap();
    assert!(report.contains("2 checks: 2 passed"), "{screen}");

    let screen = CommandTerminal::start(&project, &line("--quiet")).expect_exit(0);
    assert!(!screen.contains(" of 2"), "{screen}");

    let output = project.shell_command(&line("")).output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[cfg(unix)]
#[test]
fn no_sharing_starts_an_agent_for_every_check() {
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("starts");
    let counted = format!("echo started >> {}; {NAMELESS_AGENT}", log.display());
    let only = ["--only", "v1/overview/1", "--only", "v1/overview/6"];
    let agent = ["--", "sh", "-c", &counted];
    let mut counts = Vec::new();
    for sharing in [&["--jobs", "1"][..], &["--jobs", "1", "--no-sharing"]] {
        let output = run_check(home.path(), &[sharing, &only, &agent].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stdout_text(&output));
        counts.push(std::fs::read_to_string(&log).unwrap().lines().count());
        std::fs::remove_file(&log).unwrap();
    }
    // Both find out first which versions the agent speaks.
    assert_eq!(counts[1], counts[0] + 1);
}

#[cfg(unix)]
#[test]
fn failure_that_depends_on_earlier_checks_is_reported_as_such() {
    let home = tempfile::tempdir().unwrap();
    // The second session of a process cannot be opened.
    let agent = r#"opened=; while read -r line; do
id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
case $line in
*'"initialize"'*) rest='"result":{"protocolVersion":1}' ;;
*'"session/new"'*)
    rest='"result":{"sessionId":"s"}'
    [ "$opened" ] && rest='"error":{"code":-32603,"message":"only one session"}'
    opened=yes ;;
*) rest='"error":{"code":-32601,"message":"not here"}' ;;
esac
echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$rest}"
done"#;
    let only = ["--jobs", "1", "--only", "v1/session-setup/1"];
    let only = [&only[..], &["--only", "v1/extensibility/1"]].concat();
    let output = run_check(
        home.path(),
        &[&only[..], &["--", "sh", "-c", agent]].concat(),
    );
    let text = stdout_text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.starts_with("2 checks: 2 passed, 0 failed"), "{text}");
    let told = "These checks failed only with an agent that had run other checks before. \
                Their verdicts are those of a new agent:\n  v1/extensibility/1: fail: ";
    assert!(text.contains(told), "{text}");
    assert!(text.contains("only one session"), "{text}");
}

#[test]
fn stale_baseline_fails() {
    let home = tempfile::tempdir().unwrap();
    let known = home.path().join("known");
    std::fs::write(&known, "v1/initialization/1\nv1/no-such-page/1\n").unwrap();
    let options = [
        "--only",
        "v1/initialization/1",
        "--baseline",
        known.to_str().unwrap(),
    ];
    let output = run_check(home.path(), &bundled_agent_args(&options));
    let text = stdout_text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("v1/initialization/1 passes but is listed in the baseline"),
        "{text}"
    );
    assert!(
        text.contains("unknown check in the baseline: v1/no-such-page/1"),
        "{text}"
    );
}

#[test]
fn program_that_is_not_an_agent_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let output = run_check(home.path(), &["--", "acp-no-such-agent"]);
    assert_eq!(output.status.code(), Some(3));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("acp-no-such-agent"), "{stderr}");

    let ends = ["--", "sh", "-c", "echo 'no key' >&2; exit 1"];
    let output = run_check(home.path(), &ends);
    assert_eq!(output.status.code(), Some(3));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("no key"), "{stderr}");
}

#[cfg(unix)]
#[test]
fn program_that_exits_at_once_is_reported_only_once() {
    let home = tempfile::tempdir().unwrap();
    let usage = "i=0; while [ $i -lt 40 ]; do echo usage $i >&2; i=$((i+1)); done; exit 2";
    let output = run_check(home.path(), &["--", "sh", "-c", usage]);
    assert_eq!(
        (output.status.code(), &*stdout_text(&output)),
        (Some(3), "")
    );
    let stderr = String::from_utf8(output.stderr).unwrap();
    let told = "the agent exited (exit code 2) before responding to `initialize`";
    assert_eq!(stderr.matches(told).count(), 1, "{stderr}");
    // The end of what it said, and not all of it.
    assert!(stderr.ends_with("  usage 39\n"), "{stderr}");
    assert!(!stderr.contains("usage 19\n"), "{stderr}");
}

#[cfg(unix)]
#[test]
fn agent_that_exits_on_a_later_version_is_checked() {
    let home = tempfile::tempdir().unwrap();
    let agent = r#"read -r line
        case $line in
            *'"protocolVersion":1'[,}]*) echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}' ;;
            *) exit 1 ;;
        esac
        cat > /dev/null"#;
    let only = ["--only", "v1/initialization/1", "--", "sh", "-c", agent];
    let output = run_check(home.path(), &only);
    let text = stdout_text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("does not speak v2"), "{text}");
}

#[test]
fn checks_are_listed_and_filtered() {
    let home = tempfile::tempdir().unwrap();
    let output = run_check(home.path(), &["--list", "--only", "v1/initialization/*"]);
    let text = stdout_text(&output);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        text.lines()
            .all(|line| line.starts_with("v1/initialization/")),
        "{text}"
    );
    assert!(text.lines().count() >= 6, "{text}");

    let output = run_check(home.path(), &["--list", "--only", "v9/*"]);
    assert_eq!(output.status.code(), Some(2));
}

/// Opens sessions, but never responds to a prompt.
const STUCK_AGENT: &str = r#"
while read -r line; do
    id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
    case $line in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}\n' "$id" ;;
    *'"session/new"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s"}}\n' "$id" ;;
    *'"session/prompt"'*) touch STUCK ;;
    esac
done
"#;

#[cfg(unix)]
#[test]
fn interrupted_run_reports_the_checks_that_have_ended() {
    use std::process::Stdio;
    let home = tempfile::tempdir().unwrap();
    let (script, stuck) = (home.path().join("agent.sh"), home.path().join("stuck"));
    let text = STUCK_AGENT.replace("STUCK", stuck.to_str().unwrap());
    std::fs::write(&script, text).unwrap();
    for (signal, format) in [("INT", "json"), ("TERM", "text")] {
        let _ = std::fs::remove_file(&stuck);
        let child = Command::new(ACP)
            .args(["check", "agent", "--protocol", "1", "--jobs", "1"])
            .args(["--timeout", "1000", "--format", format])
            .args(["--only", "v1/session-setup/1"])
            .args(["--only", "v1/session-setup/9", "--", "sh"])
            .arg(&script)
            .env("XDG_STATE_HOME", home.path().join("state"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        wait_for_file(&stuck);
        let kill = format!("kill -{signal} {}", child.id());
        assert!(
            Command::new("sh")
                .args(["-c", &kill])
                .status()
                .unwrap()
                .success()
        );
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(130));
        let text = stdout_text(&ended);
        if format == "json" {
            let report: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(report["unfinished"], 1, "{report:#}");
            assert_eq!(report["checks"][0]["id"], "v1/session-setup/1");
            assert_eq!(report["checks"].as_array().unwrap().len(), 1);
        } else {
            assert!(
                text.contains("Interrupted: 1 check has no result."),
                "{text}"
            );
        }
    }
}
