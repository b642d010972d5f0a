//! Attacks that try to use the user's answer for more than it allowed.

use serde_json::{Value, json};

use super::*;

/// Waits for the next question and chooses the first option whose name contains this text.
fn choose_option(terminal: &mut CommandTerminal, name: &str) {
    terminal.wait_for("answer [1-");
    let mut options = terminal.seen.lines().filter_map(|line| {
        // The letter of an answer, such as `[y]`, stands before its number.
        let numbered = line
            .trim()
            .split_once("] ")
            .map_or(line.trim(), |(_, rest)| rest);
        let (number, option) = numbered.split_once(')')?;
        number.parse::<u8>().ok().map(|number| (number, option))
    });
    let option = options.find(|(_, option)| option.contains(name));
    let (number, _) = option.unwrap_or_else(|| panic!("no option {name:?}: {}", terminal.seen));
    terminal.seen.clear();
    terminal.send_keys(&format!("{number}\n"));
}

fn command_call(line: &str) -> Value {
    json!({"toolCallId": "c", "title": "Run it", "kind": "execute", "rawInput": {"command": line}})
}

fn create_terminal_step(params: Value) -> Value {
    let mut all = json!({"sessionId": agent::SESSION_ID});
    all.as_object_mut()
        .unwrap()
        .extend(params.as_object().unwrap().clone());
    agent::request_step("terminal/create", all)
}

fn write_file_step(path: &str, content: &str) -> Value {
    agent::request_step(
        "fs/write_text_file",
        json!({"sessionId": agent::SESSION_ID, "path": path, "content": content}),
    )
}

/// Returns the response to the last request.
fn last_response(project: &TestProject) -> Value {
    agent::read_responses(project).pop().unwrap_or_default()
}

#[test]
fn allowing_a_read_does_not_allow_commands() {
    let project = TestProject::new();
    let read = json!({"toolCallId": "r", "title": "Read notes.txt", "kind": "read",
        "locations": [{"path": project.file("notes.txt")}]});
    let steps = [
        agent::permission_step(read),
        agent::terminal_step("touch", &["stolen"]),
    ];
    let mut terminal = agent::run_on_terminal(&project, "--allow ask", &steps);
    choose_option(&mut terminal, "Allow");
    choose_option(&mut terminal, "Reject");
    terminal.expect_exit(0);
    assert!(!project.file("stolen").exists());
    assert!(last_response(&project)["error"].is_object());
}

#[test]
fn allowing_a_command_covers_it_once() {
    let project = TestProject::new();
    let steps = [
        agent::permission_step(command_call("echo one >> runs")),
        create_terminal_step(json!({"command": "sh", "args": ["-c", "echo one >> runs"]})),
        agent::wait_step("runs"),
        create_terminal_step(json!({"command": "sh", "args": ["-c", "echo one >> runs"]})),
    ];
    let mut terminal = agent::run_on_terminal(&project, "--allow ask", &steps);
    choose_option(&mut terminal, "Allow");
    choose_option(&mut terminal, "Reject");
    terminal.expect_exit(0);
    assert_eq!(project.read_file("runs"), "one\n");
}

#[test]
fn allowing_a_command_covers_no_other_directory_or_environment() {
    let project = TestProject::new();
    std::fs::create_dir(project.file("evil")).unwrap();
    project.write_file("evil/ls", "#!/bin/sh\ntouch stolen\n");
    let ls = project.file("evil/ls");
    std::fs::set_permissions(&ls, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for differs in [
        json!({"env": [{"name": "PATH", "value": project.file("evil")}]}),
        json!({"cwd": project.file("evil")}),
        json!({"env": [{"name": "LD_PRELOAD", "value": "evil.so"}]}),
    ] {
        let mut params = differs.clone();
        params["command"] = json!("ls");
        let steps = [
            agent::permission_step(command_call("ls")),
            create_terminal_step(params),
        ];
        let mut terminal = agent::run_on_terminal(&project, "--allow ask", &steps);
        choose_option(&mut terminal, "Allow");
        // What is different is part of the question.
        terminal.wait_for("evil");
        choose_option(&mut terminal, "Reject");
        terminal.expect_exit(0);
        assert!(!project.file("stolen").exists(), "{differs}");
        assert!(last_response(&project)["error"].is_object(), "{differs}");
    }
}

#[test]
fn allowing_an_edit_covers_no_other_file_or_text() {
    let project = TestProject::new();
    let notes = project.file("notes.txt");
    let notes = notes.to_str().unwrap();
    let other = project.file("other.txt");
    let edit = json!({"toolCallId": "e", "title": "Edit notes.txt", "kind": "edit", "content": [
        {"type": "diff", "path": notes, "oldText": "second", "newText": "2nd"}]});
    let steps = [
        agent::permission_step(edit),
        write_file_step(other.to_str().unwrap(), "stolen"),
        write_file_step(notes, "first\n2nd\nthird\nstolen\n"),
        write_file_step(notes, "first\n2nd\nthird\n"),
    ];
    let mut terminal = agent::run_on_terminal(&project, "--allow ask", &steps);
    choose_option(&mut terminal, "Allow");
    choose_option(&mut terminal, "Reject");
    choose_option(&mut terminal, "Reject");
    terminal.expect_exit(0);
    assert!(!other.exists());
    assert_eq!(project.read_file("notes.txt"), "first\n2nd\nthird\n");
}

#[test]
fn grant_ends_with_its_tool_call() {
    let project = TestProject::new();
    let done =
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"});
    let steps = [
        agent::permission_step(command_call("touch stolen")),
        agent::update_step(done),
        agent::terminal_step("touch", &["stolen"]),
    ];
    let mut terminal = agent::run_on_terminal(&project, "--allow ask", &steps);
    choose_option(&mut terminal, "Allow");
    choose_option(&mut terminal, "Reject");
    terminal.expect_exit(0);
    assert!(!project.file("stolen").exists());
}

#[test]
fn duplicate_option_ids_are_rejected() {
    let project = TestProject::new();
    let ask = agent::request_step(
        "session/request_permission",
        json!({"sessionId": agent::SESSION_ID, "toolCall": command_call("touch stolen"), "options": [
            {"optionId": "x", "name": "Reject", "kind": "reject_once"},
            {"optionId": "x", "name": "Allow", "kind": "allow_always"},
        ]}),
    );
    for allow in ["all", "reads", "none"] {
        let ended = agent::run_steps(&project, &["--allow", allow], std::slice::from_ref(&ask));
        let ended = ended.expect_code(8);
        assert!(
            ended.stderr.contains("malformed permission request"),
            "{ended:#?}"
        );
        assert_eq!(last_response(&project)["error"]["code"], -32602, "{allow}");
    }
    let steps = [ask, agent::terminal_step("touch", &["stolen"])];
    let mut terminal = agent::run_on_terminal(&project, "--allow ask", &steps);
    choose_option(&mut terminal, "Reject");
    terminal.expect_exit(0);
    assert!(!project.file("stolen").exists());
}

#[test]
fn request_is_judged_by_its_content_not_its_title() {
    let project = TestProject::new();
    let diff =
        json!([{"type": "diff", "path": project.file("x"), "oldText": null, "newText": "x"}]);
    for call in [
        json!({"rawInput": {"command": "touch stolen"}}),
        json!({"rawInput": {"command": ["touch", "stolen"]}}),
        json!({"rawInput": {"command": 1}}),
        json!({"rawInput": {"script": "touch stolen"}}),
        json!({"content": diff}),
        json!({"content": [{"type": "terminal", "terminalId": "t"}]}),
    ] {
        let mut call = call;
        call["toolCallId"] = json!("c");
        call["title"] = json!("Read a file");
        call["kind"] = json!("read");
        agent::run_steps(
            &project,
            &["--allow", "reads"],
            &[agent::permission_step(call.clone())],
        )
        .expect_code(8);
        let answer = last_response(&project);
        assert_eq!(
            answer["result"]["outcome"]["optionId"], "reject_once",
            "{call}: {answer}"
        );
    }
    let call = json!({"toolCallId": "c", "title": "Read a file", "kind": "read"});
    agent::run_steps(
        &project,
        &["--allow", "reads"],
        &[agent::permission_step(call)],
    )
    .expect_code(0);
    assert_eq!(
        last_response(&project)["result"]["outcome"]["optionId"],
        "allow_once"
    );
}

#[test]
fn denied_command_cannot_be_wrapped() {
    let project = TestProject::new();
    let marked = |call: &mut Value, key: &str, value: Value| call["rawInput"][key] = value;
    // "Never" is among the client's own options, for what the agent did not ask for.
    let steps = [agent::terminal_step("touch", &["stolen"])];
    let mut terminal = agent::run_on_terminal(&project, "--allow ask", &steps);
    choose_option(&mut terminal, "Always reject exactly this in this project");
    terminal.expect_exit(0);

    let sub = project.file("sub");
    std::fs::create_dir(&sub).unwrap();
    let mut with_env = command_call("touch stolen");
    marked(&mut with_env, "env", json!({"X": "1"}));
    let mut elsewhere = command_call("touch stolen");
    marked(&mut elsewhere, "cwd", json!(sub));
    let mut as_other = command_call("touch stolen");
    as_other["kind"] = json!("other");
    for step in [
        agent::permission_step(with_env),
        agent::permission_step(elsewhere),
        agent::permission_step(as_other),
        agent::permission_step(command_call("true; touch stolen")),
    ] {
        agent::run_steps(&project, &["--allow", "all"], std::slice::from_ref(&step)).expect_code(8);
        let answer = last_response(&project);
        assert_eq!(
            answer["result"]["outcome"]["optionId"], "reject_once",
            "{step}: {answer}"
        );
    }
    for params in [
        json!({"command": "touch", "args": ["stolen"], "env": [{"name": "X", "value": "1"}]}),
        json!({"command": "touch", "args": ["stolen"], "cwd": sub}),
        json!({"command": "sh", "args": ["-c", "true; touch stolen"]}),
    ] {
        agent::run_steps(
            &project,
            &["--allow", "all"],
            &[create_terminal_step(params.clone())],
        )
        .expect_code(8);
        assert!(last_response(&project)["error"].is_object(), "{params}");
        assert!(
            !project.file("stolen").exists() && !sub.join("stolen").exists(),
            "{params}"
        );
    }
}

#[test]
fn always_answer_covers_the_directory_it_was_given_in() {
    let project = TestProject::new();
    let sub = project.file("sub");
    std::fs::create_dir(&sub).unwrap();
    let steps = [agent::permission_step(command_call("make all"))];
    let mut terminal = agent::run_on_terminal(&project, "--allow ask", &steps);
    choose_option(&mut terminal, "Always allow");
    terminal.expect_exit(0);
    let mut elsewhere = command_call("make all");
    elsewhere["rawInput"]["cwd"] = json!(sub);
    let mut with_diff = command_call("make all");
    with_diff["content"] =
        json!([{"type": "diff", "path": project.file("x"), "oldText": null, "newText": "x"}]);
    for (call, then) in [
        (command_call("make all"), "allow_once"),
        (elsewhere, "reject_once"),
        (with_diff, "reject_once"),
    ] {
        agent::run_steps(
            &project,
            &["--allow", "reads"],
            &[agent::permission_step(call.clone())],
        )
        .expect_code(if then == "allow_once" { 0 } else { 8 });
        let answer = last_response(&project);
        assert_eq!(
            answer["result"]["outcome"]["optionId"], then,
            "{call}: {answer}"
        );
    }
}

#[test]
fn chat_grant_covers_only_what_was_shown() {
    let project = TestProject::new();
    let read = json!({"toolCallId": "r", "title": "Read notes.txt", "kind": "read",
        "locations": [{"path": project.file("notes.txt")}]});
    let steps = [
        agent::permission_step(read),
        agent::terminal_step("touch", &["stolen"]),
        agent::permission_step(command_call("touch wanted")),
        agent::terminal_step("touch", &["wanted"]),
        agent::wait_step("wanted"),
    ];
    let mut screen = agent::start_chat(&project, 100, 40, &steps);
    screen.send_line("go");
    for (shown, key) in [
        ("Read notes.txt", "y"),
        ("touch stolen", "n"),
        ("touch wanted", "y"),
    ] {
        screen.wait_for_matching_text(shown, |text| {
            text.split_once("asks for permission")
                .is_some_and(|(_, question)| question.contains(shown))
        });
        // Keys count once the question was there for a moment.
        std::thread::sleep(std::time::Duration::from_millis(400));
        screen.send_keys(key);
    }
    screen.wait_until_gone("asks for permission");
    screen.wait_until_gone("Esc: cancel");
    assert!(!project.file("stolen").exists());
    assert!(project.file("wanted").exists());
    let answers = agent::read_responses(&project);
    assert!(answers[1]["error"].is_object(), "{answers:?}");
    assert!(
        answers[3]["result"]["terminalId"].is_string(),
        "{answers:?}"
    );
}
