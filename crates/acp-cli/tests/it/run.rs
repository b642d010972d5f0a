//! Tests of `acp run` over real pipes, with real files and commands.

use std::io::Write;
use std::process::Stdio;

use crate::common::{ACP, CommandResult, TestProject};

#[test]
fn edit_changes_the_file_and_shows_the_diff() {
    let project = TestProject::new();
    project
        .run(&["--allow", "all", "/edit notes.txt\nsecond\n===\n2nd"])
        .expect_code(0)
        .expect_stdout(&[
            "notes.txt",
            " first\n",
            "-second\n",
            "+2nd\n",
            " third\n",
            "completed",
        ]);
    assert_eq!(project.read_file("notes.txt"), "first\n2nd\nthird\n");
}

#[test]
fn rejected_action_is_skipped_and_the_turn_ends() {
    for policy in ["none", "reads"] {
        let project = TestProject::new();
        project
            .run(&["--allow", policy, "/edit notes.txt\nsecond\n===\n2nd"])
            .expect_code(8)
            .expect_stdout(&["failed"])
            .expect_stderr(&format!("rejected by --allow {policy}"));
        assert_eq!(project.read_file("notes.txt"), "first\nsecond\nthird\n");
    }
}

#[test]
fn only_reads_are_allowed_without_a_terminal() {
    let project = TestProject::new();
    project
        .run(&["/read notes.txt:2-2"])
        .expect_code(0)
        .expect_stdout(&["second", "completed"]);
    project
        .run(&["/run touch made"])
        .expect_code(8)
        .expect_stderr("rejected by --allow reads");
    assert!(!project.file("made").exists());
    project
        .run(&["--allow", "ask", "/help"])
        .expect_code(2)
        .expect_stderr("--allow ask requires a terminal");
}

#[test]
fn command_is_shown_with_output_and_exit_code() {
    let project = TestProject::new();
    project
        .run(&["--allow", "all", "/run echo one; echo two >&2; exit 3"])
        .expect_code(0)
        .expect_stdout(&["$ ", "| one\n", "| two\n", "failed: exit code 3"]);
}

#[test]
fn project_tests_are_detected_and_run() {
    let project = TestProject::new();
    project.write_file("Makefile", "test:\n\t@echo testing; exit 1\n");
    project
        .run(&["--allow", "all", "/test"])
        .expect_code(0)
        .expect_stdout(&["Plan", "make test", "| testing", "failed: exit code 2"]);
}

#[test]
fn command_output_is_equal_in_both_versions() {
    let project = TestProject::new();
    project.write_file(
        "Makefile",
        "test:\n\t@echo one; sleep 0.2; echo two; exit 1\n",
    );
    // In version 1 in a terminal of the client's, in version 2 in one of the agent's.
    let shown = ["1", "2"].map(|version| {
        let ended = project
            .run(&["--protocol", version, "--allow", "all", "/test"])
            .expect_code(0);
        let from = ended.stdout.find("* Run `make test`").unwrap();
        let to = ended.stdout.find("failed: exit code 2").unwrap();
        ended.stdout[from..to].to_owned()
    });
    assert_eq!(shown[0], shown[1]);
    assert!(
        shown[0].contains("  $ sh -c 'make test'\n  | one\n  | two\n"),
        "{}",
        shown[0]
    );
}

#[test]
fn growing_text_is_shown_once() {
    let project = TestProject::new();
    // Reports all that was printed each time, as agents do that have no terminals.
    let agent = r#"update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}\n' "$1"; }
        printed() { update '{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"'$1'","content":[{"type":"content","content":{"type":"text","text":"```\n'$2'\n```"}}]}'; }
        while read -r line; do case $line in
          *'"initialize"'*) printf '%s\n' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}';;
          *'"session/new"'*) printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}';;
          *'"session/prompt"'*)
            update '{"sessionUpdate":"tool_call","toolCallId":"c","title":"Run it"}'
            printed in_progress 'one'; sleep 0.2
            printed in_progress 'one\ntwo'; sleep 0.2
            printed completed 'one\ntwo\nthree'
            printf '%s\n' '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}';;
        esac; done"#;
    let ended = project.run(&["go", "--", "sh", "-c", agent]).expect_code(0);
    assert!(
        ended
            .stdout
            .ends_with("  one\n  two\n  three\n  completed\n"),
        "{ended:#?}"
    );
    assert_eq!(ended.stdout.matches("one").count(), 1, "{ended:#?}");
}

#[test]
fn tool_call_is_titled_once_its_arguments_are_known() {
    let project = TestProject::new();
    // Its title comes with its arguments; the pause is for what is printed too early.
    let agent = r#"update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}\n' "$1"; }
        while read -r line; do case $line in
          *'"initialize"'*) printf '%s\n' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}';;
          *'"session/new"'*) printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}';;
          *'"session/prompt"'*)
            update '{"sessionUpdate":"tool_call","toolCallId":"c","title":"Read a file"}'
            update '{"sessionUpdate":"tool_call","toolCallId":"d","title":"Never done"}'
            update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Soon."}}'; sleep 0.2
            update '{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"Read `a.txt`"}'
            update '{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress"}'; sleep 0.2
            update '{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}'
            update '{"sessionUpdate":"tool_call","toolCallId":"e","title":"bash","rawInput":{}}'; sleep 0.2
            update '{"sessionUpdate":"tool_call_update","toolCallId":"e","status":"in_progress","title":"rm -rf x"}'
            printf '%s\n' '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}';;
        esac; done"#;
    let ended = project.run(&["go", "--", "sh", "-c", agent]).expect_code(0);
    let printed = &ended.stdout;
    assert!(!printed.contains("Read a file"), "{ended:#?}");
    // Some agents say only later what a tool does.
    let (before, after) = printed.split_once("* rm -rf x (other)").unwrap();
    assert!(before.contains("* bash (other)"), "{ended:#?}");
    assert!(!after.contains("bash"), "{ended:#?}");
    for named in ["* Read `a.txt` (other)", "* Never done (other)"] {
        // One that stays as it was is named all the same, in the end.
        assert_eq!(printed.matches(named).count(), 1, "{ended:#?}");
    }
    assert!(!printed.contains("\n\n\n"), "{ended:#?}");
}

#[test]
fn subagent_activity_is_shown_below_its_task() {
    let project = TestProject::new();
    let agent = r#"to() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s","update":%s}}\n' "$1" "$2"; }
        says() { to "$1" '{"sessionUpdate":"agent_message_chunk","messageId":"'$2'","content":{"type":"text","text":"'"$3"'"}}'; }
        while read -r line; do case $line in
          *'"initialize"'*) printf '%s\n' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}';;
          *'"session/new"'*) printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}';;
          *'"session/prompt"'*)
            says s 1 'I have it looked at.'
            to s '{"sessionUpdate":"subagent_update","sessionId":"c","title":"Look around\u001b[2J","state":{"state":"running"}}'
            says c 1 'Here is a file.\nAnd one more.'
            to c '{"sessionUpdate":"tool_call","toolCallId":"r","title":"Read it","kind":"read","status":"completed"}'
            printf '%s\n' '{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"c","toolCall":{"toolCallId":"r"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}';;
          *'"optionId":"y"'*)
            to s '{"sessionUpdate":"subagent_update","sessionId":"c","state":{"state":"idle","stopReason":"end_turn"}}'
            says s 2 'It was looked at.'
            printf '%s\n' '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}';;
        esac; done"#;
    let ended = project
        .run(&["--allow", "all", "go", "--", "sh", "-c", agent])
        .expect_code(0);
    let shown = [
        "I have it looked at.",
        "Subagent: Look around\n",
        "│ Here is a file.",
        "│ And one more.",
        "│ * Read it (read)",
        "│ (end_turn)",
        "It was looked at.",
    ];
    let mut rest = ended.stdout.as_str();
    for text in shown {
        let Some((_, after)) = rest.split_once(text) else {
            panic!("no {text:?} in {ended:#?}");
        };
        rest = after;
    }
}

/// An agent whose subagents work in the session of their parent. It reports them as Claude Agent does.
const AGENT_WITH_NESTED_CALLS: &str = r#"
to() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}\n' "$1"; }
says() { to '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}'"$2"'}'; }
call() { to '{"sessionUpdate":"tool_call","toolCallId":"'$1'","title":"'"$2"'","kind":"read","status":"completed"'"$3"'}'; }
of() { echo ',"_meta":{"claudeCode":{"parentToolUseId":"'$1'"}}'; }
while read -r line; do case $line in
  *'"initialize"'*) printf '%s\n' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}';;
  *'"session/new"'*) printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}';;
  *'"session/prompt"'*)
    call a 'Look around'; call b 'Count files'
    call a1 'Read one' "$(of a)"; call b1 'List it' "$(of b)"
    says 'from ' "$(of a)"; says 'within' "$(of a)"
    call a2 'Read two' "$(of a)"; call a2x 'Read three' "$(of a2)"
    says 'That ' ''; says 'is all.' ''
    printf '%s\n' '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}';;
esac; done"#;

#[test]
fn nested_tool_calls_are_shown_below_their_parents() {
    let project = TestProject::new();
    let ended = project
        .run(&["go", "--", "sh", "-c", AGENT_WITH_NESTED_CALLS])
        .expect_code(0);
    let shown = [
        "* Look around (read)",
        "* Count files (read)",
        "\nSubagent: Look around\n│ * Read one (read)",
        "\nSubagent: Count files\n│ * List it (read)",
        "\nSubagent: Look around\n│ from within\n",
        "│ * Read two (read)",
        "│ │ * Read three (read)",
        "\nThat is all.\n",
    ];
    let mut rest = ended.stdout.as_str();
    for text in shown {
        let Some((_, after)) = rest.split_once(text) else {
            panic!("no {text:?} in {}", ended.stdout);
        };
        rest = after;
    }
}

#[test]
fn what_subagents_say_is_not_part_of_the_answer() {
    let project = TestProject::new();
    let args = [
        "--format",
        "quiet",
        "--output",
        "r.json",
        "go",
        "--",
        "sh",
        "-c",
        AGENT_WITH_NESTED_CALLS,
    ];
    let ended = project.run(&args).expect_code(0);
    assert_eq!(ended.stdout, "That is all.\n");
    let result: serde_json::Value = serde_json::from_str(&project.read_file("r.json")).unwrap();
    assert_eq!(result["answer"], "That is all.");
    let parents: Vec<_> = result["toolCalls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["parent"].as_str())
        .collect();
    let expected = [None, None, Some("a"), Some("b"), Some("a"), Some("a2")];
    assert_eq!(parents, expected);
}

#[test]
fn quiet_format_prints_only_agent_messages() {
    let project = TestProject::new();
    let turn = r#"{"think": "hm"}, {"read": {"path": "notes.txt"}}, {"say": ["Do", "ne."]}"#;
    let ended = project
        .run_script(&["--format", "quiet"], turn)
        .expect_code(0);
    assert_eq!(
        (ended.stdout.as_str(), ended.stderr.as_str()),
        ("Done.\n", "")
    );
}

#[test]
fn json_format_prints_only_session_messages() {
    let project = TestProject::new();
    let turn = r#"{"say": "Hello"}, {"write": {"path": "new.txt", "text": "x"}}"#;
    let ended = project
        .run_script(&["--allow", "all", "--format", "json"], turn)
        .expect_code(0);
    let messages: Vec<serde_json::Value> = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let methods: Vec<&str> = messages
        .iter()
        .filter_map(|m| m["method"].as_str())
        .collect();
    for method in [
        "session/update",
        "session/request_permission",
        "fs/write_text_file",
    ] {
        assert!(
            methods.contains(&method),
            "{method} is missing: {methods:?}"
        );
    }
    let said = messages
        .iter()
        .find(|m| m["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    assert_eq!(
        said.unwrap()["params"]["update"]["content"]["text"],
        "Hello"
    );
    assert_eq!(messages.last().unwrap()["result"]["stopReason"], "end_turn");
    assert!(
        messages
            .iter()
            .all(|m| m["result"]["protocolVersion"].is_null()),
        "{messages:#?}"
    );
    assert_eq!(project.read_file("new.txt"), "x");
}

#[test]
fn exit_code_reflects_the_stop_reason() {
    let project = TestProject::new();
    for (stop, code) in [
        ("end_turn", 0),
        ("refusal", 4),
        ("max_tokens", 5),
        ("max_turn_requests", 5),
    ] {
        project
            .run_script(&[], &format!(r#"{{"say": "x"}}, {{"stop": "{stop}"}}"#))
            .expect_code(code);
    }
    project
        .run_script(&[], r#"{"error": "the model fell over"}"#)
        .expect_code(1)
        .expect_stderr("the model fell over");
}

#[test]
fn timeout_cancels_the_turn() {
    let project = TestProject::new();
    project
        .run_script(&["--timeout", "1"], r#"{"say": "waiting"}, {"hang": true}"#)
        .expect_code(6)
        .expect_stdout(&["waiting"])
        .expect_stderr("--timeout");
    // An agent that never answers at all.
    project
        .run(&["--timeout", "1", "hi", "--", "sh", "-c", "exec sleep 1000"])
        .expect_code(6)
        .expect_stderr("the agent did not open a session");
}

#[test]
fn agent_start_failure_names_the_agent() {
    let project = TestProject::new();
    project
        .run(&["hi", "--", "no-such-agent"])
        .expect_code(3)
        .expect_stderr("command not found: `no-such-agent`");
    project
        .run(&["hi", "--", "no such agent"])
        .expect_code(3)
        .expect_stderr("separately");
    project
        .run(&["hi", "--", "sh", "-c", "echo no config >&2; exit 7"])
        .expect_code(3)
        .expect_stderr("the agent exited: exit code 7")
        .expect_stderr("no config");
}

#[test]
fn agent_crash_is_reported_with_its_last_output() {
    let project = TestProject::new();
    let script = project.write_turn_script(
        r#"{"say": "so far"}, {"run": {"command": "echo bye >&2; kill -9 $(cat pid)"}}"#,
    );
    // The command of the turn kills the agent itself, which is what `sh` becomes.
    let agent = format!("echo boom >&2; echo $$ > pid; exec {ACP} agent --script {script}");
    project
        .run(&["--allow", "all", "go", "--", "sh", "-c", &agent])
        .expect_code(3)
        .expect_stdout(&["so far"])
        .expect_stderr("the agent exited: signal SIGKILL")
        .expect_stderr("boom");
}

#[test]
fn noise_on_agent_stdout_is_skipped_and_reported() {
    let project = TestProject::new();
    let agent = format!("echo Welcome; echo '{{not json'; exec {ACP} agent");
    project
        .run(&["/read notes.txt", "--", "sh", "-c", &agent])
        .expect_code(0)
        .expect_stdout(&["first"])
        .expect_stderr("ignored 2 lines on the agent's stdout that are not messages");
}

#[test]
fn updates_after_the_response_are_shown() {
    let project = TestProject::new();
    let agent = r#"while read -r line; do case $line in
          *'"initialize"'*) printf '%s\n' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}';;
          *'"session/new"'*) printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}';;
          *'"session/prompt"'*)
            printf '%s\n' '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}'
            printf '%s\n' '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"P.S."}}}}';;
        esac; done"#;
    let ended = project.run(&["go", "--", "sh", "-c", agent]).expect_code(0);
    assert_eq!(ended.stdout, "P.S.\n");
}

#[test]
fn prompt_is_read_from_arguments_file_or_stdin() {
    let project = TestProject::new();
    project.write_file("prompt.txt", "/read notes.txt:3-3");
    project
        .run(&["--file", "prompt.txt"])
        .expect_code(0)
        .expect_stdout(&["third"]);
    project
        .run(&["/read", "notes.txt:3-3"])
        .expect_code(0)
        .expect_stdout(&["third"]);

    let mut child = project
        .agent_command(&["-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"/read notes.txt:3-3\n")
        .unwrap();
    CommandResult::from_output(child.wait_with_output().unwrap())
        .expect_code(0)
        .expect_stdout(&["third"]);

    project
        .run(&[])
        .expect_code(2)
        .expect_stderr("no prompt given");
    project
        .run(&["--file", "missing.txt"])
        .expect_code(2)
        .expect_stderr("missing.txt");
    project.run(&["--format", "yaml", "hi"]).expect_code(2);
}

#[test]
fn modes_and_options_are_set_before_the_prompt() {
    let project = TestProject::new();
    // Architect changes nothing: it asks to leave first, which is not allowed here.
    project
        .run(&[
            "--mode",
            "architect",
            "--allow",
            "none",
            "/write new.txt\nx",
        ])
        .expect_code(8);
    assert!(!project.file("new.txt").exists());
    project
        .run(&["--set", "mode=code", "--allow", "all", "/write new.txt\nx"])
        .expect_code(0);
    assert!(project.file("new.txt").exists());
    project
        .run(&["--mode", "turbo", "/help"])
        .expect_code(2)
        .expect_stderr("turbo");
    project
        .run(&["--set", "speed=fast", "/help"])
        .expect_code(2)
        .expect_stderr("speed");
    project.run(&["--set", "nonsense", "/help"]).expect_code(2);
}

#[test]
fn attachments_are_sent_or_rejected_up_front() {
    let project = TestProject::new();
    project
        .run(&["--attach", "notes.txt", "What is this?"])
        .expect_code(0)
        .expect_stdout(&["notes.txt"]);
    project.write_file("picture.png", "\u{1}");
    project
        .run(&["--attach", "picture.png", "What is this?"])
        .expect_code(2)
        .expect_stderr("does not accept images");
    project
        .run(&["--attach", "missing", "What is this?"])
        .expect_code(2)
        .expect_stderr("missing");
}

#[test]
fn mcp_servers_are_parsed_before_anything_starts() {
    let project = TestProject::new();
    project.write_file("mcp.json", r#"{"mcpServers": {"x": {"command": "true"}}}"#);
    project.run(&["--mcp", "mcp.json", "/help"]).expect_code(0);
    project.write_file("mcp.json", "nonsense");
    project
        .run(&["--mcp", "mcp.json", "/help"])
        .expect_code(2)
        .expect_stderr("mcp.json");
    // One that cannot be reached costs itself, and the person sees why.
    project.write_file(
        "mcp.json",
        r#"{"mcpServers": {"x": {"url": "http://localhost:1"}}}"#,
    );
    project
        .run(&["--mcp", "mcp.json", "/help"])
        .expect_code(0)
        .expect_stdout(&[
            "The MCP server `x` did not start",
            "http://localhost:1",
            "refused",
        ]);
}

#[test]
fn closed_output_ends_the_run() {
    let project = TestProject::new();
    let script = project.write_turn_script(r#"{"say": "x\n"}, {"run": {"command": "yes"}}"#);
    let args = [
        "--allow", "all", "go", "--", ACP, "agent", "--script", &script,
    ];
    let mut child = project
        .agent_command(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // As `head` does it: the reading end is closed while there is more to come.
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(141));
}

#[test]
fn colors_are_disabled_without_a_terminal() {
    let project = TestProject::new();
    let ended = project
        .run(&["--allow", "all", "/edit notes.txt\nsecond\n===\n2nd"])
        .expect_code(0);
    assert!(!ended.stdout.contains('\u{1b}'), "{ended:?}");
}

#[test]

fn system_prompt_argument_reaches_the_model() {
    let project = TestProject::new();
    let script = r#"{"turns": [[{"expect": "Speak of plants."}, {"say": "As you wish."}]]}"#;
    std::fs::write(project.file("script.json"), script).unwrap();
    let agent = "acp agent --script script.json";
    for flag in ["--append-system-prompt", "--system-prompt"] {
        project
            .run_shell(&format!(
                "acp run {flag} 'Speak of plants.' hello -- {agent}"
            ))
            .expect_code(0)
            .expect_stdout(&["As you wish."]);
    }
    // Without it the model is not told.
    project
        .run_shell(&format!("acp run hello -- {agent}"))
        .expect_code(1);
    let other = project.test_agent_command("");
    project
        .run_shell(&format!(
            "acp run --system-prompt 'Speak of plants.' hello -- {other}"
        ))
        .expect_code(2)
        .expect_stderr("systemPrompt");
}
