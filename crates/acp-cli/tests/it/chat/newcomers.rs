//! Tests of agents that do not work on the first try. The chat must show what is wrong and what to do about it.

use super::*;

/// Starts a chat with a shell script as the agent. In the script, `$line` is the message, `$id` is its id, and `answer`
/// responds to it.
fn start_with_script(project: &TestProject, columns: u16, rows: u16, script: &str) -> ChatScreen {
    let helpers = r#"
        answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
        refuse() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"%s"}}\n' "$id" "$1" "$2"; }
        says() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n' "$1"; }
        hear() { read -r line || exit 0; id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); }
    "#;
    project.write_file("agent.sh", &format!("{helpers}\n{script}"));
    start_chat_with_args(project, columns, rows, "-- sh agent.sh")
}

/// An agent that supports only what the specification requires it to.
const MINIMAL_AGENT_SCRIPT: &str = r#"
    while hear; do case $line in
        *'"initialize"'*) answer '{"protocolVersion":1}';;
        *'"session/new"'*) answer '{"sessionId":"s"}';;
        *'"session/prompt"'*'"die"'*) echo 'out of memory' >&2; exit 3;;
        *'"session/prompt"'*) says 'hello yourself'; answer '{"stopReason":"end_turn"}';;
        *'"id":'*) refuse -32601 'Method not found';;
    esac; done"#;

const CTRL_O: &str = "\u{f}";
const CTRL_Q: &str = "\u{11}";
const F4: &str = "\u{1b}OS";

#[test]
fn missing_agent_is_reported_with_install_instructions() {
    let project = TestProject::new();
    let mut screen = start_chat_with_args(&project, 80, 24, "-- no-such-agent");
    screen.wait_for("no-such-agent could not be started: command not found: `no-such-agent`");
    screen.wait_for("F5: retry");
    drop(screen);
    let mut screen = start_chat_with_args(&project, 80, 24, "--agent mistral-vibe");
    screen.wait_for("could not be started");
    screen.wait_for("install it with: uv tool install mistral-vibe");
}

#[test]
fn hanging_agent_is_reported_with_its_output() {
    let project = TestProject::new();
    let hangs = "echo loading the model >&2; echo ready; sleep 1000";
    let mut screen = start_with_script(&project, 80, 24, hangs);
    screen.wait_for("starting sh");
    screen.wait_for("sh has not responded yet. Does it speak ACP on stdin and stdout?");
    // They are broken over two lines here.
    screen.wait_for_matching_text("F5: restart agent   Ctrl-Q: quit", |text| {
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ").contains("F5: restart agent Ctrl-Q: quit")
    });
    screen.wait_for("loading the model");
    screen.wait_for("ready");
    // What was written meanwhile is kept, and so is the way out.
    screen.send_keys("something");
    screen.send_keys(F5);
    screen.wait_until_gone("has not responded yet");
    screen.wait_for("sh has not responded yet");
    screen.wait_for("│something");
    screen.send_keys(CTRL_Q);
    assert_eq!(screen.wait_for_exit().0, Some(0));
}

#[test]
fn failure_to_open_a_session_is_reported() {
    let project = TestProject::new();
    let hangs = r#"hear; answer '{"protocolVersion":1}'; hear; sleep 1000"#;
    let mut screen = start_with_script(&project, 80, 24, hangs);
    screen.wait_for("opening the session");
    screen.wait_for("sh is still opening the session.");
    screen.wait_for("F5: restart agent   Ctrl-Q: quit");
}

#[test]
fn usage_message_of_an_agent_is_shown() {
    for (to, code) in [("", 0), (">&2", 2)] {
        let project = TestProject::new();
        let usage = format!("echo 'usage: agent [--acp]' {to}; exit {code}");
        let mut screen = start_with_script(&project, 80, 24, &usage);
        screen.wait_for(&format!("sh exited before responding: exit code {code}"));
        screen.wait_for("usage: agent [--acp]");
        screen.wait_for("F5: retry");
    }
}

#[test]
fn program_that_is_not_an_agent_is_reported() {
    let project = TestProject::new();
    // It sends back what it is sent.
    let mut screen = start_chat_with_args(&project, 80, 24, "-- cat");
    screen.wait_for("cat does not speak ACP: unknown method `initialize`");
    screen.wait_for("F5: retry");
}

#[test]
fn agent_with_noise_on_stdout_works() {
    let project = TestProject::new();
    let noisy = format!(
        "echo 'Welcome to Noisy 3!'; echo; printf '\\033[31mDEBUG\\033[0m on\\n'\n{MINIMAL_AGENT_SCRIPT}"
    );
    let mut screen = start_with_script(&project, 80, 24, &noisy);
    screen.wait_for("ignoring agent output on stdout that is not a message: Welcome");
    screen.send_line("hello");
    screen.wait_for("hello yourself");
    screen.wait_until_gone("Esc: cancel");
    screen.send_keys(F4);
    screen.wait_for("Agent log");
    screen.wait_for("│ Welcome to Noisy 3!");
    screen.wait_for("│ DEBUG on");
    screen.send_keys(ESCAPE);
    screen.wait_until_gone("Agent log");
}

#[test]
fn agent_without_optional_capabilities_works() {
    let project = TestProject::new();
    let mut screen = start_with_script(&project, 80, 24, MINIMAL_AGENT_SCRIPT);
    screen.wait_for("· sh");
    screen.send_line("hello");
    screen.wait_for("hello yourself");
    screen.wait_until_gone("Esc: cancel");
    screen.send_keys(CTRL_O);
    screen.wait_for("this agent cannot list sessions");
    screen.send_keys(SHIFT_TAB);
    screen.wait_for("this agent has no modes");
    // It ends, and cannot load what it has forgotten: that is said before the person begins anew.
    screen.send_line("die");
    screen.wait_for("sh ended: exit code 3");
    screen.wait_for("out of memory");
    screen.wait_for("F5: restart in a new session (this agent cannot load sessions);");
    screen.wait_for("hello yourself");
    screen.send_keys(F5);
    screen.wait_until_gone("sh ended");
    screen.wait_until_gone("hello yourself");
    screen.send_line("hello");
    screen.wait_for("hello yourself");
}

#[test]
fn version_2_agent_works_if_version_2_is_requested() {
    let draft = r#"
        while hear; do case $line in
            *'"initialize"'*) answer '{"protocolVersion":2,"info":{"name":"two","title":"Second","version":"1"},"capabilities":{"session":{}}}';;
            *'"session/new"'*) answer '{"sessionId":"s"}';;
        esac; done"#;
    let refusing = r#"
        while hear; do case $line in
            *'"initialize"'*'"protocolVersion":1'*) refuse -32602 'unsupported protocol version';;
            *'"initialize"'*) answer '{"protocolVersion":2,"info":{"name":"two","title":"Second","version":"1"},"capabilities":{"session":{}}}';;
            *'"session/new"'*) answer '{"sessionId":"s"}';;
        esac; done"#;
    for (script, told) in [
        (draft, "sh speaks protocol version 2, which is a draft"),
        (
            refusing,
            "sh rejected the connection: unsupported protocol version",
        ),
    ] {
        let project = TestProject::new();
        let mut screen = start_with_script(&project, 80, 24, script);
        screen.wait_for(told);
        screen.wait_for("F8: use protocol version 2 (draft)");
        screen.send_keys(F8);
        screen.wait_for("· Second");
    }
}

#[test]
fn login_requirement_without_methods_is_reported() {
    let project = TestProject::new();
    let closed = r#"
        while hear; do case $line in
            *'"initialize"'*) answer '{"protocolVersion":1}';;
            *'"session/new"'*) if test -e key; then answer '{"sessionId":"s"}'; else refuse -32000 'run `sh login` first'; fi;;
        esac; done"#;
    let mut screen = start_with_script(&project, 80, 24, closed);
    screen.wait_for("sh says: run `sh login` first");
    screen.wait_for("The agent offers no way to log in from here.");
    screen.wait_for("F5: try again");
    project.write_file("key", "");
    screen.send_keys(F5);
    screen.wait_for("· sh");
}

#[test]
fn failure_of_a_turn_can_be_read_in_full() {
    let project = TestProject::new();
    let words: Vec<String> = (1..60).map(|n| format!("reason{n}")).collect();
    let refusal = format!("refuse -32603 '{}'; : ", words.join(" "));
    let failing = MINIMAL_AGENT_SCRIPT.replace("says 'hello yourself'; answer", &refusal);
    let mut screen = start_with_script(&project, 80, 30, &failing);
    screen.wait_for("· sh");
    screen.send_line("hello");
    // It is in the conversation, where it stays and can be searched.
    screen.wait_for("! The turn has failed:");
    screen.wait_for("reason30");
    screen.wait_for("reason59");
    screen.send_keys(TAB);
    screen.send_keys("/");
    screen.wait_for("Search conversation");
    screen.send_line("reason42");
    screen.wait_until_gone("Search conversation");
    assert!(!screen.text().contains("not found"), "{}", screen.text());
}

#[test]
fn hanging_turn_is_ended_by_restarting_the_agent() {
    let project = TestProject::new();
    let deaf = MINIMAL_AGENT_SCRIPT.replace("says 'hello yourself'; answer", ": ; : ");
    let mut screen = start_with_script(&project, 80, 24, &deaf);
    screen.wait_for("· sh");
    screen.send_line("hello");
    // A prompt that was not sent yet would not be cancelled but taken back.
    screen.wait_for("▌ hello");
    screen.wait_for("Esc: cancel");
    screen.send_keys(F5);
    screen.wait_for("the agent is working; press F5 again to restart it");
    screen.send_keys(ESCAPE);
    screen.wait_for("cancelling… the agent has not stopped yet   F5: restart agent");
    screen.send_keys(F5);
    screen.wait_for("· sh");
    screen.wait_for("Type a prompt");
    screen.wait_until_gone("cancelling");
}

#[test]
fn unknown_command_is_sent_only_when_it_is_submitted_again() {
    let project = TestProject::new();
    let mut screen = start_chat(&project, 100, 24);
    screen.wait_for("Type a prompt");
    screen.send_line("/raed notes.txt");
    screen.wait_for("unknown command /raed; Enter again sends it to the agent");
    // It can still be corrected.
    screen.wait_for("│/raed notes.txt");
    screen.send_line("\u{15}/config");
    screen.wait_for("no command /config here: settings are in config.toml");
    screen.send_keys(ENTER);
    screen.wait_for("▌ /config");
    screen.wait_until_gone("│/config");
    screen.wait_until_gone("Esc: cancel");
    assert!(!screen.text().contains("▌ /raed"), "{}", screen.text());
}

#[test]
fn names_that_other_programs_use_work() {
    let project = TestProject::new();
    let mut screen = start_chat(&project, 100, 24);
    screen.wait_for("Type a prompt");
    screen.send_line("/models");
    screen.wait_for("this agent has no model option");
    screen.send_line("/exit");
    assert_eq!(screen.wait_for_exit().0, Some(0));
}
