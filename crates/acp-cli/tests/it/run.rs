//! `acp run` over real pipes: two processes, real files, real commands.

use std::io::Write;
use std::process::Stdio;

use crate::common::{ACP, CommandResult, TestProject};

#[test]
fn an_edit_changes_the_file_and_shows_the_diff() {
    let project = TestProject::new();
    project
        .run(&["--allow", "all", "/edit notes.txt\nsecond\n===\n2nd"])
        .code(0)
        .shows(&[
            "notes.txt",
            " first\n",
            "-second\n",
            "+2nd\n",
            " third\n",
            "completed",
        ]);
    assert_eq!(project.read("notes.txt"), "first\n2nd\nthird\n");
}

#[test]
fn what_is_not_allowed_is_not_done_and_the_turn_still_ends() {
    for policy in ["none", "reads"] {
        let project = TestProject::new();
        project
            .run(&["--allow", policy, "/edit notes.txt\nsecond\n===\n2nd"])
            .code(0)
            .shows(&["failed"])
            .says(&format!("rejected by --allow {policy}"));
        assert_eq!(project.read("notes.txt"), "first\nsecond\nthird\n");
    }
}

#[test]
fn without_a_terminal_only_reading_is_allowed() {
    let project = TestProject::new();
    project
        .run(&["/read notes.txt:2-2"])
        .code(0)
        .shows(&["second", "completed"]);
    project
        .run(&["/run touch made"])
        .code(0)
        .says("rejected by --allow reads");
    assert!(!project.file("made").exists());
    project
        .run(&["--allow", "ask", "/help"])
        .code(2)
        .says("--allow ask requires a terminal");
}

#[test]
fn a_command_is_shown_with_its_output_and_exit_code() {
    let project = TestProject::new();
    project
        .run(&["--allow", "all", "/run echo one; echo two >&2; exit 3"])
        .code(0)
        .shows(&["$ ", "| one\n", "| two\n", "failed: exit code 3"]);
}

#[test]
fn the_project_s_own_tests_are_found_and_run() {
    let project = TestProject::new();
    project.write("Makefile", "test:\n\t@echo testing; exit 1\n");
    project.run(&["--allow", "all", "/test"]).code(0).shows(&[
        "Plan",
        "make test",
        "| testing",
        "failed: exit code 2",
    ]);
}

#[test]
fn a_command_looks_the_same_in_both_versions() {
    let project = TestProject::new();
    project.write(
        "Makefile",
        "test:\n\t@echo one; sleep 0.2; echo two; exit 1\n",
    );
    // In version 1 in a terminal of the client's, in version 2 in one of the agent's.
    let shown = ["1", "2"].map(|version| {
        let ended = project
            .run(&["--protocol", version, "--allow", "all", "/test"])
            .code(0);
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
fn text_that_grows_is_shown_once() {
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
    let ended = project.run(&["go", "--", "sh", "-c", agent]).code(0);
    assert!(
        ended
            .stdout
            .ends_with("  one\n  two\n  three\n  completed\n"),
        "{ended:#?}"
    );
    assert_eq!(ended.stdout.matches("one").count(), 1, "{ended:#?}");
}

#[test]
fn a_call_is_named_when_it_is_known_what_it_does() {
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
            printf '%s\n' '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}';;
        esac; done"#;
    let ended = project.run(&["go", "--", "sh", "-c", agent]).code(0);
    let printed = &ended.stdout;
    assert!(!printed.contains("Read a file"), "{ended:#?}");
    for named in ["* Read `a.txt` (other)", "* Never done (other)"] {
        // One that stays as it was is named all the same, in the end.
        assert_eq!(printed.matches(named).count(), 1, "{ended:#?}");
    }
    assert!(!printed.contains("\n\n\n"), "{ended:#?}");
}

#[test]
fn what_a_subagent_does_is_shown_below_what_it_is_for() {
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
        .code(0);
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

#[test]
fn quiet_prints_what_the_agent_says_and_nothing_else() {
    let project = TestProject::new();
    let turn = r#"{"think": "hm"}, {"read": {"path": "notes.txt"}}, {"say": ["Do", "ne."]}"#;
    let ended = project.play(&["--format", "quiet"], turn).code(0);
    assert_eq!(
        (ended.stdout.as_str(), ended.stderr.as_str()),
        ("Done.\n", "")
    );
}

#[test]
fn json_prints_the_messages_of_the_session_and_nothing_else() {
    let project = TestProject::new();
    let turn = r#"{"say": "Hello"}, {"write": {"path": "new.txt", "text": "x"}}"#;
    let ended = project
        .play(&["--allow", "all", "--format", "json"], turn)
        .code(0);
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
    assert_eq!(project.read("new.txt"), "x");
}

#[test]
fn the_exit_code_says_how_the_turn_ended() {
    let project = TestProject::new();
    for (stop, code) in [
        ("end_turn", 0),
        ("refusal", 4),
        ("max_tokens", 5),
        ("max_turn_requests", 5),
    ] {
        project
            .play(&[], &format!(r#"{{"say": "x"}}, {{"stop": "{stop}"}}"#))
            .code(code);
    }
    project
        .play(&[], r#"{"error": "the model fell over"}"#)
        .code(1)
        .says("the model fell over");
}

#[test]
fn a_timeout_cancels_the_turn() {
    let project = TestProject::new();
    project
        .play(&["--timeout", "1"], r#"{"say": "waiting"}, {"hang": true}"#)
        .code(6)
        .shows(&["waiting"])
        .says("--timeout");
    // An agent that never answers at all.
    project
        .run(&["--timeout", "1", "hi", "--", "sh", "-c", "exec sleep 1000"])
        .code(6)
        .says("the agent did not open a session");
}

#[test]
fn an_agent_that_cannot_be_started_is_named() {
    let project = TestProject::new();
    project
        .run(&["hi", "--", "no-such-agent"])
        .code(3)
        .says("command not found: `no-such-agent`");
    project
        .run(&["hi", "--", "no such agent"])
        .code(3)
        .says("separately");
    project
        .run(&["hi", "--", "sh", "-c", "echo no config >&2; exit 7"])
        .code(3)
        .says("the agent exited: exit code 7")
        .says("no config");
}

#[test]
fn an_agent_that_dies_in_the_middle_of_a_turn_is_an_error_with_its_last_words() {
    let project = TestProject::new();
    let script = project
        .script(r#"{"say": "so far"}, {"run": {"command": "echo bye >&2; kill -9 $(cat pid)"}}"#);
    // The command of the turn kills the agent itself, which is what `sh` becomes.
    let agent = format!("echo boom >&2; echo $$ > pid; exec {ACP} agent --script {script}");
    project
        .run(&["--allow", "all", "go", "--", "sh", "-c", &agent])
        .code(3)
        .shows(&["so far"])
        .says("the agent exited: signal SIGKILL")
        .says("boom");
}

#[test]
fn noise_on_the_agent_s_stdout_is_skipped_and_told() {
    let project = TestProject::new();
    let agent = format!("echo Welcome; echo '{{not json'; exec {ACP} agent");
    project
        .run(&["/read notes.txt", "--", "sh", "-c", &agent])
        .code(0)
        .shows(&["first"])
        .says("ignored 2 lines on the agent's stdout that are not messages");
}

#[test]
fn what_an_agent_says_after_its_answer_is_shown() {
    let project = TestProject::new();
    let agent = r#"while read -r line; do case $line in
          *'"initialize"'*) printf '%s\n' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}';;
          *'"session/new"'*) printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}';;
          *'"session/prompt"'*)
            printf '%s\n' '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}'
            printf '%s\n' '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"P.S."}}}}';;
        esac; done"#;
    let ended = project.run(&["go", "--", "sh", "-c", agent]).code(0);
    assert_eq!(ended.stdout, "P.S.\n");
}

#[test]
fn the_prompt_comes_from_arguments_a_file_or_stdin() {
    let project = TestProject::new();
    project.write("prompt.txt", "/read notes.txt:3-3");
    project
        .run(&["--file", "prompt.txt"])
        .code(0)
        .shows(&["third"]);
    project
        .run(&["/read", "notes.txt:3-3"])
        .code(0)
        .shows(&["third"]);

    let mut child = project
        .command(&["-"])
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
    CommandResult::of(child.wait_with_output().unwrap())
        .code(0)
        .shows(&["third"]);

    project.run(&[]).code(2).says("no prompt given");
    project
        .run(&["--file", "missing.txt"])
        .code(2)
        .says("missing.txt");
    project.run(&["--format", "yaml", "hi"]).code(2);
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
        .code(0);
    assert!(!project.file("new.txt").exists());
    project
        .run(&["--set", "mode=code", "--allow", "all", "/write new.txt\nx"])
        .code(0);
    assert!(project.file("new.txt").exists());
    project
        .run(&["--mode", "turbo", "/help"])
        .code(2)
        .says("turbo");
    project
        .run(&["--set", "speed=fast", "/help"])
        .code(2)
        .says("speed");
    project.run(&["--set", "nonsense", "/help"]).code(2);
}

#[test]
fn attachments_go_with_the_prompt_or_are_refused_before_anything_is_said() {
    let project = TestProject::new();
    project
        .run(&["--attach", "notes.txt", "What is this?"])
        .code(0)
        .shows(&["notes.txt"]);
    project.write("picture.png", "\u{1}");
    project
        .run(&["--attach", "picture.png", "What is this?"])
        .code(2)
        .says("does not accept images");
    project
        .run(&["--attach", "missing", "What is this?"])
        .code(2)
        .says("missing");
}

#[test]
fn mcp_servers_are_read_before_anything_is_started() {
    let project = TestProject::new();
    project.write("mcp.json", r#"{"mcpServers": {"x": {"command": "true"}}}"#);
    project.run(&["--mcp", "mcp.json", "/help"]).code(0);
    project.write("mcp.json", "nonsense");
    project
        .run(&["--mcp", "mcp.json", "/help"])
        .code(2)
        .says("mcp.json");
    // One that cannot be reached costs itself, and the person sees why.
    project.write(
        "mcp.json",
        r#"{"mcpServers": {"x": {"url": "http://localhost:1"}}}"#,
    );
    project
        .run(&["--mcp", "mcp.json", "/help"])
        .code(0)
        .shows(&[
            "The MCP server `x` did not start",
            "http://localhost:1",
            "refused",
        ]);
}

#[test]
fn output_that_nobody_reads_ends_the_run() {
    let project = TestProject::new();
    let script = project.script(r#"{"say": "x\n"}, {"run": {"command": "yes"}}"#);
    let args = [
        "--allow", "all", "go", "--", ACP, "agent", "--script", &script,
    ];
    let mut child = project
        .command(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // As `head` does it: the reading end is closed while there is more to come.
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(141));
}

#[test]
fn there_are_no_colors_where_nobody_sees_them() {
    let project = TestProject::new();
    let ended = project
        .run(&["--allow", "all", "/edit notes.txt\nsecond\n===\n2nd"])
        .code(0);
    assert!(!ended.stdout.contains('\u{1b}'), "{ended:?}");
}

#[test]

fn the_model_is_told_what_the_person_says_of_it() {
    let project = TestProject::new();
    let script = r#"{"turns": [[{"expect": "Speak of plants."}, {"say": "As you wish."}]]}"#;
    std::fs::write(project.file("script.json"), script).unwrap();
    let agent = "acp agent --script script.json";
    for flag in ["--append-system-prompt", "--system-prompt"] {
        project
            .shell(&format!(
                "acp run {flag} 'Speak of plants.' hello -- {agent}"
            ))
            .code(0)
            .shows(&["As you wish."]);
    }
    // Without it the model is not told.
    project.shell(&format!("acp run hello -- {agent}")).code(1);
    let other = project.agent("");
    project
        .shell(&format!(
            "acp run --system-prompt 'Speak of plants.' hello -- {other}"
        ))
        .code(2)
        .says("systemPrompt");
}
