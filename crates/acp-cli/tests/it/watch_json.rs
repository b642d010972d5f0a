//! Tests of `acp sessions watch --format json`: scripts that stop and go on.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout};

use serde_json::{Value, json};

use crate::common::{ACP, CommandResult, TestProject};
use crate::local_sessions::{WAIT_FOR_GO, status, wait_for_file};

/// A script that watches a session. It is killed at the end of the test.
pub(crate) struct WatchingScript {
    process: Child,
    lines: BufReader<ChildStdout>,
}

impl WatchingScript {
    /// Watches the session `build`.
    fn start(project: &TestProject, options: &str) -> Self {
        Self::start_with(project, &format!("build {options}"))
    }

    pub(crate) fn start_with(project: &TestProject, arguments: &str) -> Self {
        let line = format!("exec acp sessions watch --format json {arguments}");
        let mut process = project.shell_command(&line).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        Self { process, lines }
    }

    /// Reads messages until one of them matches. Returns them all.
    pub(crate) fn read_until(&mut self, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut read = Vec::new();
        loop {
            let mut line = String::new();
            let length = self.lines.read_line(&mut line).unwrap();
            if length == 0 {
                let mut stderr = String::new();
                let mut from = self.process.stderr.take().unwrap();
                from.read_to_string(&mut stderr).unwrap();
                panic!("the watch has ended: {stderr}, after {read:#?}");
            }
            let message: Value = serde_json::from_str(&line).unwrap();
            let is_enough = is_last(&message);
            read.push(message);
            if is_enough {
                return read;
            }
        }
    }
}

impl Drop for WatchingScript {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn is_method(method: &str) -> impl Fn(&Value) -> bool {
    move |message| message["method"] == method
}

/// Returns what has been said and done, however its text was cut into chunks.
pub(crate) fn history<'a>(messages: impl IntoIterator<Item = &'a Value>) -> Vec<(String, String)> {
    let mut history: Vec<(String, String)> = Vec::new();
    for message in messages {
        let update = &message["params"]["update"];
        let kind = match update["sessionUpdate"].as_str() {
            Some(kind) => kind.to_owned(),
            None => continue,
        };
        match (update["content"]["text"].as_str(), history.last_mut()) {
            (Some(text), Some((last, known))) if *last == kind => known.push_str(text),
            (Some(text), _) => history.push((kind, text.to_owned())),
            (None, _) => history.push((kind, update.to_string())),
        }
    }
    history
}

/// Stops after each of these messages, goes on, and asserts that nothing is missing and nothing comes twice.
fn go_on_after_each(project: &TestProject, options: &str, messages: &[Value]) {
    let all = history(messages);
    for (read, last) in messages.iter().enumerate() {
        let cursor = last["cursor"].as_str().unwrap();
        let mut again = WatchingScript::start(project, &format!("--since {cursor} {options}"));
        let rest = again.read_until(is_method("_live/status"));
        let both = messages[..=read].iter().chain(&rest);
        assert_eq!(history(both), all, "after {last}, {cursor}: {rest:#?}");
        // What is printed after the rest is new.
        let last = rest.last().unwrap()["cursor"].as_str().unwrap();
        let mut third = WatchingScript::start(project, &format!("--since {last} {options}"));
        assert_eq!(third.read_until(is_method("_live/status")).len(), 1);
    }
}

#[test]
fn script_that_stops_and_goes_on_misses_and_repeats_nothing() {
    let project = TestProject::new();
    project.allow_commands();
    let wait = WAIT_FOR_GO.trim_start_matches("/run ");
    let turn = json!([
        { "think": ["Let me", " see", "."] },
        { "say": ["It", " is", " é", "asy. "] },
        { "run": { "command": wait } },
        { "say": ["Now", " it", " is", " done."] },
    ]);
    let turns = json!({ "turns": [turn, [{ "say": ["And", " on."] }]] });
    project.write_file("script.json", &turns.to_string());
    let agent = format!(
        "-- {ACP} agent --script {}",
        project.file("script.json").display()
    );
    let run = |options: &str| {
        project
            .run_shell(&format!(
                "acp run --session build --allow all {options} go {agent}"
            ))
            .expect_code(0)
    };
    run("--no-wait");
    wait_for_file(&project.file("begun"));
    let mut script = WatchingScript::start(&project, &agent);
    let mut messages = script.read_until(is_method("_live/status"));
    let is_running = &messages.last().unwrap()["params"]["turn"];
    assert!(is_running.is_object(), "{messages:#?}");
    messages.pop();
    // While the turn is running, the chunks are as the agent has sent them.
    go_on_after_each(&project, &agent, &messages);
    project.write_file("go", "");
    messages.extend(script.read_until(is_method("_live/turn_ended")));
    assert_eq!(messages.last().unwrap()["params"]["stopReason"], "end_turn");
    drop(script);
    // The next turn merges the chunks of this one.
    run("");
    let last = messages.last().unwrap()["cursor"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut script = WatchingScript::start(&project, &format!("--since {last} {agent}"));
    messages.extend(script.read_until(is_method("_live/status")));
    drop(script);
    messages.pop();
    let said = history(&messages);
    let is_said = |text: &str| said.iter().any(|(_, said)| said.contains(text));
    assert!(is_said("It is éasy. "), "{said:#?}");
    assert!(is_said("And on."), "{said:#?}");
    let cursors = messages.iter().map(|message| message["cursor"].to_string());
    assert!(
        cursors.filter(|cursor| cursor.contains('+')).count() > 8,
        "{messages:#?}"
    );
    go_on_after_each(&project, &agent, &messages);
    let mut anew = WatchingScript::start(&project, &agent);
    let merged = anew.read_until(is_method("_live/status"));
    assert!(
        merged.len() < messages.len(),
        "nothing was merged: {merged:#?}"
    );
    assert_eq!(history(&merged), said);
}

#[test]
fn questions_answers_and_ends_of_turns_are_shown() {
    let project = TestProject::new();
    project
        .run_shell("acp run --session build /help")
        .expect_code(0);
    let mut script = WatchingScript::start(&project, "");
    script.read_until(is_method("_live/status"));
    project
        .run_shell("acp run --session build --allow all '/run touch made'")
        .expect_code(0);
    let messages = script.read_until(is_method("_live/turn_ended"));
    let position = |method: &str| {
        let position = messages.iter().position(is_method(method));
        position.unwrap_or_else(|| panic!("no {method}: {messages:#?}"))
    };
    let (opened, closed) = (
        position("_live/question_opened"),
        position("_live/question_closed"),
    );
    assert!(
        position("_live/turn_started") < opened && opened < closed,
        "{messages:#?}"
    );
    let (opened, closed) = (&messages[opened]["params"], &messages[closed]["params"]);
    assert_eq!(opened["method"], "session/request_permission");
    assert!(
        opened["params"]["toolCall"]
            .to_string()
            .contains("touch made"),
        "{opened}"
    );
    assert_eq!(closed["question"], opened["question"]);
    assert_eq!(closed["answeredBy"], "acp run");
    assert!(
        messages.iter().all(|message| message["cursor"].is_string()),
        "{messages:#?}"
    );
    // A question that nobody answers waits, although it is shown to the script.
    project
        .run_shell("acp run --session build --no-wait '/run touch asked'")
        .expect_code(0);
    script.read_until(is_method("_live/question_opened"));
    assert_eq!(status(&project)["openQuestions"], 1);
    // It is shown to a script that comes later, too.
    let mut later = WatchingScript::start(&project, "");
    later.read_until(is_method("_live/question_opened"));
    project
        .run_shell("acp sessions cancel build")
        .expect_code(0);
    let ended = script.read_until(is_method("_live/turn_ended"));
    let closed = ended
        .iter()
        .find(|message| is_method("_live/question_closed")(message));
    assert_eq!(closed.unwrap()["params"]["isAnswered"], false);
    assert_eq!(ended.last().unwrap()["params"]["stopReason"], "cancelled");
}

#[test]
fn cursor_of_another_log_is_invalid() {
    let project = TestProject::new();
    let watch = |options: &str| project.run_shell(&format!("acp sessions watch build {options}"));
    for wrong in ["x", "12-", "5c0f+1+2", "''"] {
        watch(&format!("--format json --since {wrong}"))
            .expect_code(2)
            .expect_stderr("invalid cursor");
    }
    watch("--since 1")
        .expect_code(2)
        .expect_stderr("--since requires --format json");
    let begin = || {
        project
            .run_shell("acp run --session build '/read notes.txt'")
            .expect_code(0)
    };
    begin();
    let mut script = WatchingScript::start(&project, "");
    let messages = script.read_until(is_method("_live/status"));
    let cursor = messages.last().unwrap()["cursor"]
        .as_str()
        .unwrap()
        .to_owned();
    drop(script);
    let (log, _) = cursor.split_once('-').unwrap();
    watch(&format!("--format json --since {log}-9999"))
        .expect_code(1)
        .expect_stderr("invalid cursor");
    // The server stops. Another one has the same session, but another log.
    project.run_shell("acp sessions stop").expect_code(0);
    let gone = |result: CommandResult| {
        result
            .expect_code(1)
            .expect_stderr("invalid cursor")
            .expect_stderr("without --since")
    };
    gone(watch(&format!("--format json --since {cursor}")));
    begin();
    gone(watch(&format!("--format json --since {cursor}")));
}

#[test]
fn session_that_is_not_live_is_shown_without_cursors() {
    let project = TestProject::new();
    project
        .run_shell("acp run --no-server --session build '/read notes.txt'")
        .expect_code(0);
    let mut script = WatchingScript::start(&project, "");
    let messages = script.read_until(|message| message.to_string().contains("second"));
    assert!(
        messages
            .iter()
            .all(|message| message.get("cursor").is_none()),
        "{messages:#?}"
    );
    drop(script);
    project
        .run_shell("acp sessions watch none --format json")
        .expect_code(1)
        .expect_stderr("session not found");
}
