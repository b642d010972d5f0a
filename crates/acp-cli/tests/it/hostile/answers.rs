//! Getting more out of a person's answer than it was given for.

use serde_json::{Value, json};

use super::*;

/// Waits for the next question and chooses the first option with this in its name.
fn choose(terminal: &mut CommandTerminal, name: &str) {
    terminal.until("answer [1-");
    let mut options = terminal.seen.lines().filter_map(|line| {
        let (number, option) = line.trim().split_once([')', '.'])?;
        number.parse::<u8>().ok().map(|number| (number, option))
    });
    let option = options.find(|(_, option)| option.contains(name));
    let (number, _) = option.unwrap_or_else(|| panic!("no option {name:?}: {}", terminal.seen));
    terminal.seen.clear();
    terminal.key(&format!("{number}\n"));
}

fn command(line: &str) -> Value {
    json!({"toolCallId": "c", "title": "Run it", "kind": "execute", "rawInput": {"command": line}})
}

fn create(params: Value) -> Value {
    let mut all = json!({"sessionId": agent::SESSION});
    all.as_object_mut()
        .unwrap()
        .extend(params.as_object().unwrap().clone());
    agent::request("terminal/create", all)
}

fn write(path: &str, content: &str) -> Value {
    agent::request(
        "fs/write_text_file",
        json!({"sessionId": agent::SESSION, "path": path, "content": content}),
    )
}

/// What was answered to the last request.
fn last(project: &TestProject) -> Value {
    agent::answers(project).pop().unwrap_or_default()
}

#[test]
fn a_yes_to_reading_allows_no_command() {
    let project = TestProject::new();
    let read = json!({"toolCallId": "r", "title": "Read notes.txt", "kind": "read",
        "locations": [{"path": project.file("notes.txt")}]});
    let steps = [agent::ask(read), agent::terminal("touch", &["stolen"])];
    let mut terminal = agent::run_on_terminal(&project, "--allow ask", &steps);
    choose(&mut terminal, "Allow");
    choose(&mut terminal, "Reject");
    terminal.ends(0);
    assert!(!project.file("stolen").exists());
    assert!(last(&project)["error"].is_object());
}

#[test]
fn a_yes_covers_the_command_that_was_shown_and_covers_it_once() {
    let project = TestProject::new();
    let steps = [
        agent::ask(command("echo one >> runs")),
        create(json!({"command": "sh", "args": ["-c", "echo one >> runs"]})),
        agent::wait_for("runs"),
        create(json!({"command": "sh", "args": ["-c", "echo one >> runs"]})),
    ];
    let mut terminal = agent::run_on_terminal(&project, "--allow ask", &steps);
    choose(&mut terminal, "Allow");
    choose(&mut terminal, "Reject");
    terminal.ends(0);
    assert_eq!(project.read("runs"), "one\n");
}

#[test]
fn a_yes_covers_no_other_directory_and_no_other_variables() {
    let project = TestProject::new();
    std::fs::create_dir(project.file("evil")).unwrap();
    project.write("evil/ls", "#!/bin/sh\ntouch stolen\n");
    let ls = project.file("evil/ls");
    std::fs::set_permissions(&ls, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for differs in [
        json!({"env": [{"name": "PATH", "value": project.file("evil")}]}),
        json!({"cwd": project.file("evil")}),
        json!({"env": [{"name": "LD_PRELOAD", "value": "evil.so"}]}),
    ] {
        let mut params = differs.clone();
        params["command"] = json!("ls");
        let steps = [agent::ask(command("ls")), create(params)];
        let mut terminal = agent::run_on_terminal(&project, "--allow ask", &steps);
        choose(&mut terminal, "Allow");
        // What is different is part of the question.
        terminal.until("evil");
        choose(&mut terminal, "Reject");
        terminal.ends(0);
        assert!(!project.file("stolen").exists(), "{differs}");
        assert!(last(&project)["error"].is_object(), "{differs}");
    }
}

#[test]
fn a_yes_to_one_edit_covers_no_other_file_and_no_other_text() {
    let project = TestProject::new();
    let notes = project.file("notes.txt");
    let notes = notes.to_str().unwrap();
    let other = project.file("other.txt");
    let edit = json!({"toolCallId": "e", "title": "Edit notes.txt", "kind": "edit", "content": [
        {"type": "diff", "path": notes, "oldText": "second", "newText": "2nd"}]});
    let steps = [
        agent::ask(edit),
        write(other.to_str().unwrap(), "stolen"),
        write(notes, "first\n2nd\nthird\nstolen\n"),
        write(notes, "first\n2nd\nthird\n"),
    ];
    let mut terminal = agent::run_on_terminal(&project, "--allow ask", &steps);
    choose(&mut terminal, "Allow");
    choose(&mut terminal, "Reject");
    choose(&mut terminal, "Reject");
    terminal.ends(0);
    assert!(!other.exists());
    assert_eq!(project.read("notes.txt"), "first\n2nd\nthird\n");
}

#[test]
fn a_yes_ends_with_its_tool_call() {
    let project = TestProject::new();
    let done =
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"});
    let steps = [
        agent::ask(command("touch stolen")),
        agent::update(done),
        agent::terminal("touch", &["stolen"]),
    ];
    let mut terminal = agent::run_on_terminal(&project, "--allow ask", &steps);
    choose(&mut terminal, "Allow");
    choose(&mut terminal, "Reject");
    terminal.ends(0);
    assert!(!project.file("stolen").exists());
}

#[test]
fn two_options_with_one_id_are_refused() {
    let project = TestProject::new();
    let ask = agent::request(
        "session/request_permission",
        json!({"sessionId": agent::SESSION, "toolCall": command("touch stolen"), "options": [
            {"optionId": "x", "name": "Reject", "kind": "reject_once"},
            {"optionId": "x", "name": "Allow", "kind": "allow_always"},
        ]}),
    );
    for allow in ["all", "reads", "none"] {
        let ended = agent::run(&project, &["--allow", allow], std::slice::from_ref(&ask));
        let ended = ended.code(0);
        assert!(
            ended.stderr.contains("malformed permission request"),
            "{ended:#?}"
        );
        assert_eq!(last(&project)["error"]["code"], -32602, "{allow}");
    }
    let steps = [ask, agent::terminal("touch", &["stolen"])];
    let mut terminal = agent::run_on_terminal(&project, "--allow ask", &steps);
    choose(&mut terminal, "Reject");
    terminal.ends(0);
    assert!(!project.file("stolen").exists());
}

#[test]
fn what_a_request_contains_counts_and_not_what_it_is_called() {
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
        agent::run(&project, &["--allow", "reads"], &[agent::ask(call.clone())]).code(0);
        let answer = last(&project);
        assert_eq!(
            answer["result"]["outcome"]["optionId"], "reject_once",
            "{call}: {answer}"
        );
    }
    let call = json!({"toolCallId": "c", "title": "Read a file", "kind": "read"});
    agent::run(&project, &["--allow", "reads"], &[agent::ask(call)]).code(0);
    assert_eq!(
        last(&project)["result"]["outcome"]["optionId"],
        "allow_once"
    );
}

#[test]
fn never_is_not_evaded_by_what_is_put_around_the_command() {
    let project = TestProject::new();
    let marked = |call: &mut Value, key: &str, value: Value| call["rawInput"][key] = value;
    // "Never" is among the client's own options, for what the agent did not ask for.
    let steps = [agent::terminal("touch", &["stolen"])];
    let mut terminal = agent::run_on_terminal(&project, "--allow ask", &steps);
    choose(&mut terminal, "Always reject exactly this in this project");
    terminal.ends(0);

    let sub = project.file("sub");
    std::fs::create_dir(&sub).unwrap();
    let mut with_env = command("touch stolen");
    marked(&mut with_env, "env", json!({"X": "1"}));
    let mut elsewhere = command("touch stolen");
    marked(&mut elsewhere, "cwd", json!(sub));
    let mut as_other = command("touch stolen");
    as_other["kind"] = json!("other");
    for step in [
        agent::ask(with_env),
        agent::ask(elsewhere),
        agent::ask(as_other),
        agent::ask(command("true; touch stolen")),
    ] {
        agent::run(&project, &["--allow", "all"], std::slice::from_ref(&step)).code(0);
        let answer = last(&project);
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
        agent::run(&project, &["--allow", "all"], &[create(params.clone())]).code(0);
        assert!(last(&project)["error"].is_object(), "{params}");
        assert!(
            !project.file("stolen").exists() && !sub.join("stolen").exists(),
            "{params}"
        );
    }
}

#[test]
fn always_covers_the_directory_that_it_was_given_in() {
    let project = TestProject::new();
    let sub = project.file("sub");
    std::fs::create_dir(&sub).unwrap();
    let steps = [agent::ask(command("make all"))];
    let mut terminal = agent::run_on_terminal(&project, "--allow ask", &steps);
    choose(&mut terminal, "Always allow");
    terminal.ends(0);
    let mut elsewhere = command("make all");
    elsewhere["rawInput"]["cwd"] = json!(sub);
    let mut with_diff = command("make all");
    with_diff["content"] =
        json!([{"type": "diff", "path": project.file("x"), "oldText": null, "newText": "x"}]);
    for (call, then) in [
        (command("make all"), "allow_once"),
        (elsewhere, "reject_once"),
        (with_diff, "reject_once"),
    ] {
        agent::run(&project, &["--allow", "reads"], &[agent::ask(call.clone())]).code(0);
        let answer = last(&project);
        assert_eq!(
            answer["result"]["outcome"]["optionId"], then,
            "{call}: {answer}"
        );
    }
}

#[test]
fn in_the_chat_a_yes_covers_what_was_shown_and_nothing_else() {
    let project = TestProject::new();
    let read = json!({"toolCallId": "r", "title": "Read notes.txt", "kind": "read",
        "locations": [{"path": project.file("notes.txt")}]});
    let steps = [
        agent::ask(read),
        agent::terminal("touch", &["stolen"]),
        agent::ask(command("touch wanted")),
        agent::terminal("touch", &["wanted"]),
        agent::wait_for("wanted"),
    ];
    let mut screen = agent::chat(&project, 100, 40, &steps);
    screen.say("go");
    for (shown, key) in [
        ("Read notes.txt", "y"),
        ("touch stolen", "n"),
        ("touch wanted", "y"),
    ] {
        screen.until_it(shown, |text| {
            text.split_once("asks for permission")
                .is_some_and(|(_, question)| question.contains(shown))
        });
        // Keys count once the question was there for a moment.
        std::thread::sleep(std::time::Duration::from_millis(400));
        screen.key(key);
    }
    screen.until_gone("asks for permission");
    screen.until_gone("Esc: cancel");
    assert!(!project.file("stolen").exists());
    assert!(project.file("wanted").exists());
    let answers = agent::answers(&project);
    assert!(answers[1]["error"].is_object(), "{answers:?}");
    assert!(
        answers[3]["result"]["terminalId"].is_string(),
        "{answers:?}"
    );
}
