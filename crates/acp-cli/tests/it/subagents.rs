//! Subagents with messages between sessions, reported as Claude's adapter reports them. `npm_agents/subagents.rs` has
//! tests with the adapter itself.

use crate::chat::{start_chat_with_args, wait_until_question_accepts_keys};
use crate::common::TestProject;

/// An agent whose subagent asks whether it may run a command. Its task appears in both sessions, and its report only in
/// the parent's. Session and subagent are `s` and `c`.
const DELEGATING_AGENT: &str = r#"
to() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s","update":%s}}\n' "$1" "$2"; }
says() { to "$1" '{"sessionUpdate":"agent_message_chunk","messageId":"'$2'","content":{"type":"text","text":"'"$3"'"}'"$4"'}'; }
message() { to "$1" '{"sessionUpdate":"session_message","messageId":"'$2'",'"$3"',"content":[{"type":"text","text":"'"$4"'"}]}'; }
state() { to s '{"sessionUpdate":"subagent_update","sessionId":"c",'"$1"'}'; }
call() { to c '{"toolCallId":"b",'"$1"',"_meta":{"claudeCode":{"toolName":"Bash","parentToolUseId":"t"},'"$2"'}}'; }
down='"senderSessionId":"s","recipientSessionId":"c"'
up='"senderSessionId":"c","recipientSessionId":"s"'
of=',"_meta":{"claudeCode":{"parentToolUseId":"t"}}'
while read -r line; do case $line in
  *'"initialize"'*) printf '%s\n' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}';;
  *'"session/new"'*) printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}';;
  *'"session/prompt"'*)
    id=$(printf '%s' "$line" | sed 's/^.*"id":\([0-9]*\),.*$/\1/')
    says s 1 'I delegate this.'
    state '"title":"Count files","description":"general","capabilities":{"cancel":{}},"state":{"state":"running"}'
    message s t "$down"',"recipientMessageId":"t"' 'Run the count'
    message c t "$down"',"senderMessageId":"t"' 'Run the count'
    says c 2 'I count now.' "$of"
    call '"sessionUpdate":"tool_call","title":"wc -l","kind":"execute","status":"pending","rawInput":{"command":"wc -l"},"content":[{"type":"terminal","terminalId":"b"}]' '"terminal_info":{"terminal_id":"b"}'
    state '"state":{"state":"requires_action"}'
    printf '%s\n' '{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"c","toolCall":{"toolCallId":"b","title":"wc -l","kind":"execute","rawInput":{"command":"wc -l"},"content":[{"type":"terminal","terminalId":"b"}]},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}}';;
  *'"optionId":"y"'*)
    state '"state":{"state":"running"}'
    call '"sessionUpdate":"tool_call_update"' '"terminal_output":{"terminal_id":"b","data":"7 files"}'
    call '"sessionUpdate":"tool_call_update","status":"completed"' '"terminal_exit":{"terminal_id":"b","exit_code":0,"signal":null}'
    says c 3 'The count is done.' "$of"
    message s t:reply "$up" 'There are seven.'
    state '"state":{"state":"idle","stopReason":"end_turn"}'
    says s 4 'The subagent has counted.'
    printf '{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}\n' "$id";;
esac; done"#;

#[test]
fn chat_shows_a_subagents_task_once_and_below_its_name() {
    let project = TestProject::new();
    project.write_file("agent.sh", DELEGATING_AGENT);
    let mut screen = start_chat_with_args(&project, 100, 40, "-- sh agent.sh");
    screen.send_line("go");
    screen.wait_for("subagent: Count files");
    screen.wait_for("$ wc -l");
    screen.wait_for("Subagent: Count files needs your answer");
    screen.wait_for("│ ✉ message from the parent session");
    screen.wait_for("│   Run the count");
    let text = screen.text();
    assert_eq!(text.matches("Run the count").count(), 1, "{text}");
    // The terminal has nothing to show yet.
    assert!(!text.contains("[terminal"), "{text}");
    // What is hidden takes no line: the question follows after the subagent.
    wait_until_question_accepts_keys();
    screen.send_keys("y");
    screen.wait_for("The subagent has counted.");
    screen.wait_for("■ Subagent: Count files done");
    screen.wait_for("✉ message from Count files");
    let text = screen.text();
    let rest = text.split_once("│ The count is done.\n").unwrap().1;
    let lines: Vec<&str> = rest.lines().map(str::trim).take(5).collect();
    let expected = [
        "",
        "✉ message from Count files",
        "There are seven.",
        "",
        "The subagent has counted.",
    ];
    assert_eq!(lines, expected, "{text}");
}

#[test]
fn acp_run_prints_a_subagents_task_once() {
    // The agent sends what follows the answer message by message, or all at once.
    let begin = "    state '\"state\":{\"state\":\"running\"}'\n";
    let end = "\"$id\";;\nesac";
    assert!(DELEGATING_AGENT.contains(begin) && DELEGATING_AGENT.contains(end));
    let burst = DELEGATING_AGENT
        .replace(begin, &format!("    burst=$({}", begin.trim_start()))
        .replace(end, "\"$id\"); printf '%s\\n' \"$burst\";;\nesac");
    for agent in [DELEGATING_AGENT, &burst] {
        let project = TestProject::new();
        project.write_file("agent.sh", agent);
        let args = ["--allow", "all", "go", "--", "sh", "agent.sh"];
        let ended = project.run(&args).expect_code(0);
        let printed = ended.stdout.clone();
        assert_eq!(printed.matches("Run the count").count(), 1, "{printed}");
        ended.expect_stdout(&[
            "I delegate this.\n",
            "(message to Count files)\n│ Run the count\n",
            "Subagent: Count files\n│ I count now.\n",
            "│ * wc -l (execute)\n",
            "│   | 7 files\n",
            "│ The count is done.\n",
            "(message from Count files)\n│ There are seven.\n",
            "The subagent has counted.",
        ]);
    }
}
