//! Tests of what users of other programs type: the errors say what to use here.

use crate::common::TestProject;

/// Runs a command line that is an error, and returns what it prints.
fn error_of(project: &TestProject, line: &str) -> String {
    let ended = project.run_shell(&format!("acp {line} < /dev/null"));
    ended.expect_code(2).stderr
}

#[test]
fn errors_name_the_option_or_command_to_use() {
    let project = TestProject::new();
    for (line, tip) in [
        ("run --output-format json hello", "acp run --output FILE"),
        ("run --output-format=json hello", "acp run --output FILE"),
        ("run --approve-all hello", "acp run --allow all"),
        (
            "chat --dangerously-skip-permissions",
            "acp chat --allow all",
        ),
        ("run --max-budget-usd 3 hello", "acp run --max-cost AMOUNT"),
        ("run -p hello", "acp run \"PROMPT\""),
        ("-p hello", "acp run \"PROMPT\""),
        ("exec hello", "acp run \"PROMPT\""),
        ("'fix the build'", "acp chat \"PROMPT\""),
        ("codex hello", "acp run --agent codex \"PROMPT\""),
        ("resume", "acp chat --continue"),
        ("status", "acp sessions status"),
        ("sessions new --name build", "acp run --session NAME --new"),
        ("sessions close build", "acp sessions archive ID"),
    ] {
        let error = error_of(&project, line);
        let shown = error
            .lines()
            .find(|shown| shown.trim_start().starts_with("tip:"));
        assert!(
            shown.is_some_and(|shown| shown.contains(tip)),
            "{line}: {error}"
        );
        // After `--`, the command of an agent would begin.
        assert!(!error.contains("'-- -"), "{line}: {error}");
        assert_eq!(error.matches("tip:").count(), 1, "{line}: {error}");
    }
}

/// A word that nobody knows gets no tip that is wrong, and a misspelled one still gets the right spelling.
#[test]
fn unknown_words_get_no_tip() {
    let project = TestProject::new();
    for line in ["run --zzyzx hello", "zzyzx", "sessions zzyzx"] {
        let error = error_of(&project, line);
        assert!(!error.contains("tip:"), "{line}: {error}");
    }
    let error = error_of(&project, "run --resum x hello");
    assert!(error.contains("'--resume'"), "{error}");
}

#[test]
fn values_that_would_be_misread_are_errors_and_nothing_is_started() {
    let project = TestProject::new();
    let agent = "sh -c 'touch started'";
    for (line, expected) in [
        (
            "run --sandbox read-only fix",
            "the value of --sandbox follows after `=`: --sandbox=read-only",
        ),
        ("run --sandbox workspace-write fix", "--sandbox=workspace"),
        (
            "run -s read-only fix",
            "-s is short for --session; to run the agent in a sandbox, use --sandbox=read-only",
        ),
        (
            "run -c 'model=\"o3\"' fix",
            "-c is short for --continue; to set an option of the session, use --set model=\"o3\"",
        ),
    ] {
        let error = error_of(&project, &format!("{line} -- {agent}"));
        assert!(error.contains(expected), "{line}: {error}");
        assert!(!project.file("started").exists(), "{line}");
    }
}
