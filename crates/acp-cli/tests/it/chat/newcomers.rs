//! Agents that someone tries for the first time, and that do not do what they should: what is the matter can be seen, and
//! what can be done about it.

use super::*;

/// A chat with an agent that is a script of the shell: `$id` is that of the request in `$line`, `answer` answers it.
fn with_script(project: &TestProject, columns: u16, rows: u16, script: &str) -> ChatScreen {
    let helpers = r#"
        answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
        refuse() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"%s"}}\n' "$id" "$1" "$2"; }
        says() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n' "$1"; }
        hear() { read -r line || exit 0; id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); }
    "#;
    project.write("agent.sh", &format!("{helpers}\n{script}"));
    begin(project, columns, rows, "-- sh agent.sh")
}

/// One that does what must be done and offers nothing else.
const PLAIN: &str = r#"
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
const F5: &str = "\u{1b}[15~";

#[test]
fn one_that_is_not_installed_is_told_with_how_to_install_it() {
    let project = TestProject::new();
    let mut screen = begin(&project, 80, 24, "-- no-such-agent");
    screen.until("no-such-agent could not be started: command not found: `no-such-agent`");
    screen.until("r: retry");
    drop(screen);
    let mut screen = begin(&project, 80, 24, "--agent mistral-vibe");
    screen.until("could not be started");
    screen.until("install it with: uv tool install mistral-vibe");
}

#[test]
fn one_that_hangs_at_its_start_is_told_with_what_it_has_printed() {
    let project = TestProject::new();
    let hangs = "echo loading the model >&2; echo ready; sleep 1000";
    let mut screen = with_script(&project, 80, 24, hangs);
    screen.until("starting sh");
    screen.until("sh has not responded yet. Does it speak ACP on stdin and stdout?");
    // They are broken over two lines here.
    screen.until_it("F5: restart agent   Ctrl-Q: quit", |text| {
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ").contains("F5: restart agent Ctrl-Q: quit")
    });
    screen.until("loading the model");
    screen.until("ready");
    // What was written meanwhile is kept, and so is the way out.
    screen.key("something");
    screen.key(F5);
    screen.until_gone("has not responded yet");
    screen.until("sh has not responded yet");
    screen.until("│something");
    screen.key(CTRL_Q);
    assert_eq!(screen.end().0, Some(0));
}

#[test]
fn one_that_opens_no_session_is_told() {
    let project = TestProject::new();
    let hangs = r#"hear; answer '{"protocolVersion":1}'; hear; sleep 1000"#;
    let mut screen = with_script(&project, 80, 24, hangs);
    screen.until("opening the session");
    screen.until("sh is still opening the session.");
    screen.until("F5: restart agent   Ctrl-Q: quit");
}

#[test]
fn one_that_only_says_how_it_is_used_is_told_with_that() {
    for (to, code) in [("", 0), (">&2", 2)] {
        let project = TestProject::new();
        let usage = format!("echo 'usage: agent [--acp]' {to}; exit {code}");
        let mut screen = with_script(&project, 80, 24, &usage);
        screen.until(&format!("sh exited before responding: exit code {code}"));
        screen.until("usage: agent [--acp]");
        screen.until("r: retry");
    }
}

#[test]
fn what_is_no_agent_at_all_is_told() {
    let project = TestProject::new();
    // It sends back what it is sent.
    let mut screen = begin(&project, 80, 24, "-- cat");
    screen.until("cat does not speak ACP: unknown method `initialize`");
    screen.until("r: retry");
}

#[test]
fn one_that_writes_noise_to_stdout_can_be_talked_to() {
    let project = TestProject::new();
    let noisy =
        format!("echo 'Welcome to Noisy 3!'; echo; printf '\\033[31mDEBUG\\033[0m on\\n'\n{PLAIN}");
    let mut screen = with_script(&project, 80, 24, &noisy);
    screen.until("ignoring agent output on stdout that is not a message: Welcome");
    screen.say("hello");
    screen.until("hello yourself");
    screen.until_gone("Esc: cancel");
    screen.key(F4);
    screen.until("Agent log");
    screen.until("│ Welcome to Noisy 3!");
    screen.until("│ DEBUG on");
    screen.key(ESCAPE);
    screen.until_gone("Agent log");
}

#[test]
fn one_without_any_optional_capability_can_be_talked_to() {
    let project = TestProject::new();
    let mut screen = with_script(&project, 80, 24, PLAIN);
    screen.until("· sh");
    screen.say("hello");
    screen.until("hello yourself");
    screen.until_gone("Esc: cancel");
    screen.key(CTRL_O);
    screen.until("this agent cannot list sessions");
    screen.key(SHIFT_TAB);
    screen.until("this agent has no modes");
    // It ends, and cannot load what it has forgotten: that is said before the person begins anew.
    screen.say("die");
    screen.until("sh ended: exit code 3");
    screen.until("out of memory");
    screen.until("r: restart in a new session (this agent cannot load sessions);");
    screen.until("hello yourself");
    screen.key("r");
    screen.until_gone("sh ended");
    screen.until_gone("hello yourself");
    screen.say("hello");
    screen.until("hello yourself");
}

#[test]
fn one_that_speaks_version_2_only_is_spoken_to_in_that_if_the_person_says_so() {
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
        let mut screen = with_script(&project, 80, 24, script);
        screen.until(told);
        screen.until("v: use protocol version 2 (draft)");
        screen.key("v");
        screen.until("· Second");
    }
}

#[test]
fn one_that_wants_a_login_and_names_no_way_is_told() {
    let project = TestProject::new();
    let closed = r#"
        while hear; do case $line in
            *'"initialize"'*) answer '{"protocolVersion":1}';;
            *'"session/new"'*) if test -e key; then answer '{"sessionId":"s"}'; else refuse -32000 'run `sh login` first'; fi;;
        esac; done"#;
    let mut screen = with_script(&project, 80, 24, closed);
    screen.until("sh says: run `sh login` first");
    screen.until("The agent offers no way to log in from here.");
    screen.until("r: try again");
    project.write("key", "");
    screen.key("r");
    screen.until("· sh");
}

#[test]
fn one_that_does_not_stop_can_be_started_again() {
    let project = TestProject::new();
    let deaf = PLAIN.replace("says 'hello yourself'; answer", ": ; : ");
    let mut screen = with_script(&project, 80, 24, &deaf);
    screen.until("· sh");
    screen.say("hello");
    screen.until("Esc: cancel");
    screen.key(F5);
    screen.until("the agent is working; press F5 again to restart it");
    screen.key(ESCAPE);
    screen.until("cancelling… the agent has not stopped yet   F5: restart agent");
    screen.key(F5);
    screen.until("· sh");
    screen.until("Type a prompt");
    screen.until_gone("cancelling");
}
