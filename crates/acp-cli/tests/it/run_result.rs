//! Tests of what `acp run` promises to scripts: the result file, answers that match a schema, limits and retries.

use serde_json::{Value, json};

use crate::common::{CommandResult, TestProject};

/// An agent that counts its starts and prompts. For prompt N, it prints the lines of the file `turn-N`, and then ends
/// the turn, unless that file does not exist. It writes what it receives to `received`.
const AGENT: &str = r#"
echo start >> starts
n=0
end() { printf '{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"%s"}}\n' "$prompt" "$1"; }
while read -r line; do
  printf '%s\n' "$line" >> received
  case $line in
    *'"initialize"'*)
      [ "$(wc -l < starts)" -gt "$(cat failures 2> /dev/null || echo 0)" ] || exit 1
      echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"scripted","version":"1"}}}';;
    *'"session/new"'*) printf '{"jsonrpc":"2.0","id":1,"result":%s}\n' "$(cat session 2> /dev/null || echo '{"sessionId":"s"}')";;
    *'"session/prompt"'*)
      n=$((n + 1))
      prompt=$(printf '%s' "$line" | sed 's/^.*"id":\([0-9]*\),"method".*$/\1/')
      if [ -e "turn-$n" ]; then cat "turn-$n"; [ -e waits ] || end end_turn; else exit 1; fi;;
    *'"session/cancel"'*) end cancelled;;
    *'"session/set_config_option"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"configOptions":[]}}';;
    *'"id":"q1"'*) cat second;;
    *'"id":"q2"'*) end end_turn;;
  esac
done
"#;

struct ScriptedRun {
    project: TestProject,
}

impl ScriptedRun {
    fn new() -> Self {
        let project = TestProject::new();
        project.write_file("agent.sh", AGENT);
        Self { project }
    }

    /// Sets the updates of a turn.
    fn turn(&self, number: usize, updates: &[Value]) -> &Self {
        let lines: String = updates
            .iter()
            .map(|update| {
                let params = json!({"sessionId": "s", "update": update});
                let message =
                    json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
                format!("{message}\n")
            })
            .collect();
        self.project.write_file(&format!("turn-{number}"), &lines);
        self
    }

    fn run(&self, args: &[&str]) -> CommandResult {
        let agent = ["--", "sh", "agent.sh"];
        self.project
            .run(&[&["--output", "result.json"], args, &["go"], &agent].concat())
    }

    fn result(&self) -> Value {
        read_result(&self.project)
    }

    fn received(&self) -> String {
        std::fs::read_to_string(self.project.file("received")).unwrap()
    }
}

fn read_result(project: &TestProject) -> Value {
    let text = std::fs::read_to_string(project.file("result.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn says(text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
}

fn tool_call(kind: &str) -> Value {
    json!({
        "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Work", "kind": kind,
        "status": "completed", "locations": [{"path": "/a/b.rs"}],
    })
}

fn costs(amount: f64) -> Value {
    let cost = json!({"amount": amount, "currency": "USD"});
    json!({"sessionUpdate": "usage_update", "used": 1000, "size": 200_000, "cost": cost})
}

#[test]
fn result_file_says_what_the_turn_did() {
    let run = ScriptedRun::new();
    let updates = [
        says("I look."),
        tool_call("edit"),
        says("It is "),
        says("done."),
        costs(0.25),
    ];
    run.turn(1, &updates).run(&[]).expect_code(0);
    let mut result = run.result();
    assert!(result["durationMs"].is_u64());
    result["durationMs"].take();
    let call = json!({"id": "c", "kind": "edit", "title": "Work", "status": "completed", "files": ["/a/b.rs"]});
    assert_eq!(
        result,
        json!({
            "exitCode": 0,
            "stopReason": "end_turn",
            "error": null,
            "sessionId": "s",
            "agent": {"name": "scripted", "title": null, "version": "1"},
            "answer": "It is done.",
            "context": {"used": 1000, "size": 200_000},
            "cost": {"amount": 0.25, "currency": "USD"},
            "toolCalls": [call],
            "filesChanged": ["/a/b.rs"],
            "denials": [],
            "durationMs": null,
        })
    );
}

#[test]
fn result_file_is_also_written_if_the_agent_fails() {
    let run = ScriptedRun::new();
    run.project.write_file("result.json", "of an earlier run");
    run.run(&[]).expect_code(3);
    let result = run.result();
    assert_eq!(result["exitCode"], 3);
    assert_eq!(result["stopReason"], Value::Null);
    assert_eq!(result["sessionId"], "s");
    let error = result["error"].as_str().unwrap();
    assert!(error.contains("exited"), "{error}");
    run.project
        .run(&["--output", "missing/result.json", "go"])
        .expect_code(2)
        .expect_stderr("--output missing/result.json: its directory does not exist");
}

#[cfg(unix)]
#[test]
fn result_goes_through_links_and_into_pipes() {
    let run = ScriptedRun::new();
    let project = &run.project;
    project.write_file("target.json", "of an earlier run");
    std::os::unix::fs::symlink("target.json", project.file("link.json")).unwrap();
    let line = "mkfifo pipe; cat pipe > read & \
        for out in link.json pipe /dev/fd/3; do acp run --output $out go -- ./missing; done 3> third; \
        wait; acp run --output . go; acp run --output - go";
    let said = project.run_shell(line);
    for file in ["target.json", "read", "third"] {
        let result: Value = serde_json::from_str(&project.read_file(file)).unwrap();
        assert_eq!(result["exitCode"], 3, "{file}");
    }
    assert!(project.file("link.json").is_symlink());
    let metadata = std::fs::metadata(project.file("pipe")).unwrap();
    assert!(!metadata.is_file());
    // Before the agent starts.
    for error in [
        "--output .: is a directory",
        "--output -: the result goes to a file",
    ] {
        assert!(said.stderr.contains(error), "{said:?}");
    }
}

#[test]
fn run_in_which_everything_was_denied_fails() {
    let project = TestProject::new();
    let output = ["--output", "result.json"];
    project
        .run(&[&output[..], &["/run touch made"]].concat())
        .expect_code(8)
        .expect_stderr("all actions of the agent were denied (1)");
    let result = read_result(&project);
    assert_eq!(result["exitCode"], 8);
    assert_eq!(result["stopReason"], "end_turn");
    let denial = &result["denials"][0];
    assert_eq!(denial["by"], "--allow reads");
    assert!(denial["action"].as_str().unwrap().contains("touch made"));
}

#[test]
fn run_with_some_denied_actions_fails_only_if_it_is_told_to() {
    let run = ScriptedRun::new();
    run.project.write_config(
        "permissions.toml",
        "[[rule]]\ndecision = \"allow\"\ncommand = \"touch *\"\n",
    );
    let request = |id: &str, command: &str| {
        let options = json!([
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]);
        let call = json!({"toolCallId": id, "title": command, "kind": "execute", "rawInput": {"command": command}});
        let params = json!({"sessionId": "s", "toolCall": call, "options": options});
        let method = "session/request_permission";
        format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        )
    };
    run.project.write_file("waits", "");
    run.project.write_file("turn-1", &request("q1", "touch a"));
    run.project.write_file("second", &request("q2", "rm a"));
    run.run(&[]).expect_code(0);
    assert_eq!(run.result()["denials"].as_array().unwrap().len(), 1);
    run.run(&["--deny-fails"])
        .expect_code(8)
        .expect_stderr("denied actions: 1 (--deny-fails)");
    assert_eq!(run.result()["denials"][0]["action"], "rm a");
}

#[test]
fn answer_is_asked_for_again_until_it_matches_the_schema() {
    let run = ScriptedRun::new();
    let schema =
        r#"{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}"#;
    run.project.write_file("schema.json", schema);
    run.turn(1, &[says("The answer is one.")])
        .turn(2, &[says(r#"{"n": "one"}"#)])
        .turn(3, &[says("```json\n{\"n\": 1}\n```")]);
    let args = ["--output-schema", "schema.json", "--format", "quiet"];
    let ended = run.run(&args).expect_code(0);
    assert_eq!(ended.stdout, "{\"n\":1}\n");
    assert_eq!(run.result()["answerJson"], json!({"n": 1}));
    let received = run.received();
    for part in [r#"\"required\": [\"n\"]"#, "not JSON: ", "/n: "] {
        assert!(received.contains(part), "{part}: {received}");
    }

    run.turn(3, &[says("{}")]);
    run.run(&args)
        .expect_code(7)
        .expect_stderr("the answer does not match --output-schema: ");
    assert_eq!(run.result()["exitCode"], 7);
    assert_eq!(run.result()["answer"], "{}");
    for (text, error) in [("{", "EOF"), (r#"{"type": 1}"#, "invalid JSON Schema")] {
        run.project.write_file("schema.json", text);
        run.run(&args).expect_code(2).expect_stderr(error);
    }
}

#[test]
fn agent_that_fails_before_it_does_anything_is_started_again() {
    let run = ScriptedRun::new();
    let starts = || {
        let starts = std::fs::read_to_string(run.project.file("starts")).unwrap();
        std::fs::remove_file(run.project.file("starts")).unwrap();
        starts.lines().count()
    };
    run.project.write_file("failures", "2");
    run.turn(1, &[says("hello")]);
    run.run(&["--retries", "1"]).expect_code(3);
    assert_eq!(starts(), 2);
    run.run(&["--retries", "2"])
        .expect_code(0)
        .expect_stdout(&["hello"])
        .expect_stderr("starting again (2 of 2)");
    assert_eq!(starts(), 3);
    // In the second turn, which the schema requires, the agent exits.
    std::fs::remove_file(run.project.file("failures")).unwrap();
    run.project
        .write_file("schema.json", r#"{"type": "object"}"#);
    run.turn(1, &[tool_call("execute")]);
    run.run(&["--retries", "2", "--output-schema", "schema.json"])
        .expect_code(3);
    assert_eq!(starts(), 1);
}

#[test]
fn turn_that_costs_too_much_is_cancelled() {
    let run = ScriptedRun::new();
    run.project.write_file("waits", "");
    run.turn(1, &[costs(0.1), costs(0.6)]);
    run.run(&["--max-cost", "0.5"])
        .expect_code(5)
        .expect_stderr("the run has cost more than 0.5 (--max-cost)");
    assert_eq!(run.result()["stopReason"], "cancelled");
    assert!(run.received().contains("session/cancel"));
    for amount in ["0", "-1", "NaN", "much"] {
        let limit = format!("--max-cost={amount}");
        run.run(&[&limit])
            .expect_code(2)
            .expect_stderr("expected a positive amount");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn turn_ends_after_the_allowed_number_of_model_requests() {
    use crate::full_task::provider::{AnswerPiece, ProviderReply, ProviderServer};
    let look = || ProviderReply::Says(vec![AnswerPiece::Call("1", "list", json!({}))]);
    let replies = std::iter::repeat_with(look).take(5);
    let server = ProviderServer::new(acp_agent::Provider::Anthropic, replies).await;
    let project = TestProject::new();
    let config = format!(
        "[agent]\nmodel = \"anthropic/claude-sonnet-4-5\"\nbase_url = \"http://{}\"\n",
        server.address
    );
    project.write_config("config.toml", &config);
    let mut command = project.agent_command(&["--max-turns", "3", "--output", "result.json"]);
    command
        .args(["--env", "ANTHROPIC_API_KEY", "Look around."])
        .env("ANTHROPIC_API_KEY", "a-key");
    let ended = tokio::task::spawn_blocking(move || command.output().unwrap());
    CommandResult::from_output(ended.await.unwrap())
        .expect_code(5)
        .expect_stderr("maximum number of model requests per turn reached");
    assert_eq!(server.requests().len(), 3);
    let result = read_result(&project);
    assert_eq!(result["stopReason"], "max_turn_requests");
    assert_eq!(result["exitCode"], 5);
}

#[test]
fn number_of_model_requests_is_limited_only_where_it_is_known() {
    let run = ScriptedRun::new();
    run.run(&["--max-turns", "3"]).expect_code(2).expect_stderr(
        "--max-turns is not available for the agent `sh`: it does not report when it calls its model; use --timeout or --max-cost",
    );
    assert!(!run.project.file("starts").exists());
    run.project
        .run(&["--max-turns", "3", "--session", "build", "hi"])
        .expect_code(2)
        .expect_stderr("the session is live");
    let live = run.project.live_directory();
    assert!(!live.exists(), "no server was started");
    run.project.run(&["--max-turns", "0", "hi"]).expect_code(2);
}

#[test]
fn corrections_of_an_answer_count_towards_the_cost() {
    let run = ScriptedRun::new();
    run.project
        .write_file("schema.json", r#"{"type": "object"}"#);
    run.turn(1, &[costs(0.4), says("not JSON")]);
    run.turn(2, &[costs(0.8), says("still not JSON")]);
    run.run(&["--max-cost", "0.5", "--output-schema", "schema.json"])
        .expect_code(5)
        .expect_stderr("the run has cost more than 0.5 (--max-cost)");
    run.run(&["--max-cost", "0.9", "--output-schema", "schema.json"])
        .expect_code(3);
}

#[test]
fn files_and_terminals_are_offered_unless_that_is_forbidden() {
    let run = ScriptedRun::new();
    run.turn(1, &[]);
    let offered = |args: &[&str]| {
        let _ = std::fs::remove_file(run.project.file("received"));
        run.run(&[&["--allow", "all"], args].concat())
            .expect_code(0);
        let received = run.received();
        let first: Value = serde_json::from_str(received.lines().next().unwrap()).unwrap();
        let capabilities = &first["params"]["clientCapabilities"];
        let is_true = |pointer: &str| capabilities.pointer(pointer) == Some(&json!(true));
        (
            is_true("/fs/readTextFile"),
            is_true("/fs/writeTextFile"),
            is_true("/terminal"),
        )
    };
    assert_eq!(offered(&[]), (true, true, true));
    assert_eq!(offered(&["--no-fs"]), (false, false, true));
    assert_eq!(offered(&["--no-terminal"]), (true, true, false));
}

#[test]
fn model_is_chosen_by_the_option_of_that_category() {
    let run = ScriptedRun::new();
    run.run(&["--model", "small"])
        .expect_code(2)
        .expect_stderr("--model: the agent does not offer a choice of models");
    let values = json!([{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}]);
    let option = json!({
        "id": "llm", "name": "LLM", "category": "model", "type": "select",
        "currentValue": "large", "options": values,
    });
    let session = json!({"sessionId": "s", "configOptions": [option]});
    run.project.write_file("session", &session.to_string());
    run.turn(1, &[says("hello")]);
    run.run(&["--model", "small"]).expect_code(0);
    assert!(
        run.received()
            .contains(r#""configId":"llm","value":"small""#),
        "{}",
        run.received()
    );
    run.run(&["--model", "huge"]).expect_code(2);
}
