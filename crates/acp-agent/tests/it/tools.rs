//! Tests edge cases of the tools' output for the model and the user, both through the client and with direct access.

use crate::common;
use crate::common::hears::RequestRecorder;
use crate::common::{
    ALL_CAPABILITIES, ALLOW, AgentFixture, NO_CAPABILITIES, OfferedCapabilities, call_diff,
    call_text,
};
use acp::thread::{ThreadToolCall, ThreadToolCallContent, ToolCallStatus};
use acp::v1::*;
use serde_json::{Value, json};

/// Runs these calls in a session in code mode.
async fn run_calls(offers: OfferedCapabilities, calls: &[Value]) -> AgentFixture {
    let calls: Vec<Value> = calls
        .iter()
        .map(|call| {
            let (tool, arguments) = call.as_object().unwrap().iter().next().unwrap();
            json!({ "call": { "tool": tool, "arguments": arguments } })
        })
        .collect();
    let f = AgentFixture::start_scripted(&json!({ "turns": [calls] }).to_string(), offers).await;
    f.session.set_mode("code").await.unwrap();
    f
}

/// Runs the turn and returns its only call.
async fn only_call(f: &AgentFixture) -> ThreadToolCall {
    f.prompt("go").await.unwrap();
    let [call] = &f.tool_calls()[..] else {
        panic!()
    };
    call.clone()
}

fn failure_text(call: &ThreadToolCall) -> String {
    assert_eq!(call.status, ToolCallStatus::Failed, "{call:?}");
    call_text(call)
}

fn success_text(call: &ThreadToolCall) -> String {
    assert_eq!(call.status, ToolCallStatus::Completed, "{call:?}");
    call_text(call)
}

#[tokio::test]
async fn long_file_is_read_in_parts() {
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let f = run_calls(
            offers,
            &[
                json!({"read": {"path": "long.txt"}}),
                json!({"read": {"path": "long.txt", "line": 2001}}),
                json!({"read": {"path": "long.txt", "line": 9000}}),
                json!({"read": {"path": "wide.txt"}}),
                json!({"read": {"path": "empty.txt"}}),
            ],
        )
        .await;
        let lines: String = (1..=2500).map(|n| format!("line {n}\n")).collect();
        f.write_file("long.txt", &lines);
        f.write_file("wide.txt", &("x".repeat(300_000) + "\nend\n"));
        f.write_file("empty.txt", "");
        f.prompt("go").await.unwrap();
        let calls = f.tool_calls();
        let [first, second, third, wide, empty] = &calls[..] else {
            panic!()
        };
        let shown = success_text(first);
        assert!(
            shown.contains("line 2000\n") && !shown.contains("line 2001"),
            "{shown}"
        );
        assert!(shown.contains("Truncated."));
        assert_eq!(first.raw_output.as_ref().unwrap()["lines"], 2000);
        let shown = success_text(second);
        assert!(shown.contains("line 2001\n") && shown.contains("line 2500\n"));
        assert!(!shown.contains("Truncated"));
        assert_eq!(second.locations[0].line, Some(2001));
        assert!(success_text(third).contains("ends before line 9000"));
        let shown = success_text(wide);
        assert!(
            shown.len() < 20_000
                && shown.contains("more bytes on this line")
                && shown.contains("\nend\n")
        );
        assert!(success_text(empty).contains("The file is empty"));
    }
}

#[tokio::test]
async fn model_gets_line_numbers_and_user_gets_plain_text() {
    const SCRIPT: &str = r#"{"turns": [[
        {"read": {"path": "a.txt", "line": 2, "limit": 2}},
        {"say": "done"}
    ]]}"#;
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let heard = RequestRecorder::default();
        let f = AgentFixture::new(heard.scripted_agent(SCRIPT), offers).await;
        f.write_file("a.txt", "one\n\ttwo\nthree");
        let shown = success_text(&only_call(&f).await);
        assert!(
            shown.contains("\ttwo\nthree") && !shown.contains("2\t"),
            "{shown}"
        );
        let results = heard.last_request().result_texts();
        assert_eq!(results, ["2\t\ttwo\n3\tthree"]);
    }
}

#[tokio::test]
async fn images_are_shown_and_binary_files_are_reported() {
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let f = run_calls(
            offers,
            &[
                json!({"read": {"path": "a.png"}}),
                json!({"read": {"path": "a.bin"}}),
            ],
        )
        .await;
        std::fs::write(f.path("a.png"), b"\x89PNG\r\n\x1a\n and so on").unwrap();
        std::fs::write(f.path("a.bin"), [0_u8, 1, 2, 3]).unwrap();
        f.prompt("go").await.unwrap();
        let calls = f.tool_calls();
        let image = calls[0].content.iter().find_map(|content| match content {
            ThreadToolCallContent::Content(ContentBlock::Image(image)) => Some(image),
            _ => None,
        });
        let image = image.expect("it is shown");
        assert_eq!(image.mime_type, "image/png");
        assert!(image.data.starts_with("iVBORw0KGgo"), "{}", image.data);
        let why = failure_text(&calls[1]);
        assert!(why.contains("binary file of 4 bytes"), "{why}");
    }
}

#[tokio::test]
async fn failed_edit_reports_the_nearest_match() {
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let f = run_calls(
            offers,
            &[json!({"edit": {"path": "a.rs", "search": "fn one() {\n    let a = 1;\n}", "replacement": "x"}})],
        )
        .await;
        f.write_file("a.rs", "mod x;\n\nfn one() {\n\tlet a = 1;\n}\n");
        let why = failure_text(&only_call(&f).await);
        assert!(why.contains("starts on line 3"), "{why}");
        assert!(why.contains("line 4 differs only in whitespace"), "{why}");
        assert!(why.contains("|\\tlet a = 1;|"), "{why}");
        assert!(f.read_file("a.rs").contains("\tlet a"));
    }
}

#[tokio::test]
async fn edit_can_replace_all_matches() {
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let f = run_calls(
            offers,
            &[
                json!({"edit": {"path": "a.txt", "search": "one", "replacement": "1"}}),
                json!({"edit": {"path": "a.txt", "search": "one", "replacement": "1", "replace_all": true}}),
            ],
        )
        .await;
        f.write_file("a.txt", "zero\none two\none\n");
        f.prompt("go").await.unwrap();
        let calls = f.tool_calls();
        let why = failure_text(&calls[0]);
        assert!(
            why.contains("2 times, starting on lines 2, 3") && why.contains("`replace_all`"),
            "{why}"
        );
        assert_eq!(f.read_file("a.txt"), "zero\n1 two\n1\n");
        assert_eq!(call_diff(&calls[1]).unwrap().new_text, "zero\n1 two\n1\n");
        assert_eq!(calls[1].locations[0].line, Some(2));
    }
}

/// Models write `\n`, regardless of the file's line endings.
#[tokio::test]
async fn multiline_edit_matches_other_line_endings() {
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let f = run_calls(
            offers,
            &[json!({"edit": {"path": "a.txt", "search": "one\ntwo", "replacement": "1\n2\n3"}})],
        )
        .await;
        f.write_file("a.txt", "one\r\ntwo\r\n");
        success_text(&only_call(&f).await);
        assert_eq!(f.read_file("a.txt"), "1\r\n2\r\n3\r\n");
    }
}

#[tokio::test]
async fn glob_lists_newest_first_and_respects_gitignore() {
    let f = run_calls(
        NO_CAPABILITIES,
        &[
            json!({"glob": {"pattern": "*.rs"}}),
            json!({"glob": {"pattern": "src/**/*.{rs,md}"}}),
            json!({"glob": {"pattern": ".github/**"}}),
            json!({"glob": {"pattern": "*.none"}}),
            json!({"glob": {"pattern": "a["}}),
        ],
    )
    .await;
    for name in [
        "old.rs",
        "src/deep/new.rs",
        "src/a.md",
        "ignored/b.rs",
        ".github/ci.yml",
        ".git/x.rs",
    ] {
        f.write_file(name, "x");
    }
    f.write_file(".gitignore", "ignored\n");
    let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    let old = std::fs::File::options()
        .write(true)
        .open(f.path("old.rs"))
        .unwrap();
    old.set_modified(hour_ago).unwrap();
    f.prompt("go").await.unwrap();
    let calls = f.tool_calls();
    assert_eq!(success_text(&calls[0]), "```\nsrc/deep/new.rs\nold.rs\n```");
    let places: Vec<&str> = calls[0].locations.iter().map(|l| l.path.as_str()).collect();
    assert_eq!(places, [f.path("src/deep/new.rs"), f.path("old.rs")]);
    assert_eq!(calls[0].kind, ToolKind::Search);
    let found = success_text(&calls[1]);
    assert!(
        found.contains("src/deep/new.rs") && found.contains("src/a.md") && !found.contains("old")
    );
    assert_eq!(success_text(&calls[2]), "```\n.github/ci.yml\n```");
    assert_eq!(success_text(&calls[3]), "No files match.");
    assert!(failure_text(&calls[4]).contains("Invalid glob pattern"));
}

#[tokio::test]
async fn search_shows_context_and_explains_invalid_patterns() {
    let f = run_calls(
        NO_CAPABILITIES,
        &[
            json!({"search": {"pattern": "needle", "context": 1}}),
            json!({"search": {"pattern": "foo(", "path": "a.txt"}}),
            json!({"search": {"pattern": "foo(", "path": "a.txt", "literal": true}}),
            json!({"search": {"pattern": "NEEDLE", "ignore_case": true, "glob": "*.txt"}}),
            json!({"search": {"pattern": "needle", "context": 11}}),
            json!({"search": {"pattern": "x", "path": "many"}}),
            json!({"search": {"pattern": "nowhere to be found"}}),
        ],
    )
    .await;
    f.write_file("a.txt", "1\nneedle\n3\n4\n5\n6\nneedle foo(\n");
    f.write_file("many/x.txt", &"x\n".repeat(300));
    f.prompt("go").await.unwrap();
    let calls = f.tool_calls();
    assert_eq!(
        success_text(&calls[0]),
        "```\na.txt-1- 1\na.txt:2: needle\na.txt-3- 3\n--\na.txt-6- 6\na.txt:7: needle foo(\n```"
    );
    assert_eq!(calls[0].raw_output.as_ref().unwrap()["matches"], 2);
    let lines: Vec<_> = calls[0].locations.iter().map(|l| l.line).collect();
    assert_eq!(lines, [Some(2), Some(7)]);
    let why = failure_text(&calls[1]);
    assert!(
        why.contains("unclosed group") && why.contains("`literal`"),
        "{why}"
    );
    assert!(success_text(&calls[2]).contains("a.txt:7: needle foo("));
    assert_eq!(calls[3].raw_output.as_ref().unwrap()["matches"], 2);
    assert!(failure_text(&calls[4]).contains("the maximum is 10"));
    let shown = success_text(&calls[5]);
    assert!(shown.contains("more lines omitted (limit: 200)"), "{shown}");
    assert_eq!(success_text(&calls[6]), "No matches.");
}

#[cfg(unix)]
#[tokio::test]
async fn command_that_times_out_is_killed_with_its_children() {
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let f = run_calls(
            offers,
            &[json!({"run": {"command": "echo begun; sleep 1000 & echo pid:$!; wait", "timeout": 1}})],
        )
        .await;
        f.queue_answers([ALLOW]);
        let call = only_call(&f).await;
        assert_eq!(call.status, ToolCallStatus::Failed);
        assert!(
            call_text(&call).contains("Timed out after 1 s"),
            "{}",
            call_text(&call)
        );
        let output = call.raw_output.as_ref().unwrap();
        assert_eq!(output["timedOut"], true);
        let printed = output["output"].as_str().unwrap();
        assert!(printed.starts_with("begun\n"), "{printed}");
        assert!(!common::is_running(common::parse_pid(printed).unwrap()));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn exit_status_of_a_command_is_reported() {
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let f = run_calls(
            offers,
            &[
                json!({"run": {"command": "kill -9 $$"}}),
                json!({"run": {"command": "exit 3"}}),
                json!({"run": {"command": "true", "timeout": 601}}),
            ],
        )
        .await;
        f.queue_answers([ALLOW, ALLOW, ALLOW]);
        f.prompt("go").await.unwrap();
        let calls = f.tool_calls();
        assert!(
            failure_text(&calls[0]).contains("SIGKILL"),
            "{}",
            call_text(&calls[0])
        );
        assert!(failure_text(&calls[1]).contains("Exit code 3"));
        assert!(failure_text(&calls[2]).contains("1 to 600"));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn long_output_keeps_its_head_and_tail() {
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let f = run_calls(
            offers,
            &[json!({"run": {"command": "echo first; yes 0123456789 | head -c 150000; echo; echo last"}})],
        )
        .await;
        f.queue_answers([ALLOW]);
        let call = only_call(&f).await;
        let output = call.raw_output.as_ref().unwrap();
        let printed = output["output"].as_str().unwrap();
        assert!(
            printed.starts_with("first\n") && printed.trim_end().ends_with("last"),
            "{printed}"
        );
        assert!(printed.len() < 40 * 1024 && printed.contains("omitted"));
        assert_eq!(output["truncated"], true);
    }
}

/// Users who are asked for permission must be able to see everything that they would allow.
#[cfg(unix)]
#[tokio::test]
async fn multiline_command_is_shown_in_full() {
    let command = "echo one\necho two";
    let f = run_calls(ALL_CAPABILITIES, &[json!({"run": {"command": command}})]).await;
    f.queue_answers([ALLOW]);
    only_call(&f).await;
    let asked = &f.permission_requests()[0];
    assert_eq!(asked.tool_call.title, "Run `echo one …`");
    assert!(call_text(&asked.tool_call).contains(command), "{asked:?}");
    let always = asked
        .options
        .iter()
        .find(|o| o.kind == PermissionOptionKind::AllowAlways);
    assert_eq!(
        always.unwrap().name,
        "Always allow exactly this 2-line command"
    );
}
