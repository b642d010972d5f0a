//! Taking more of the machine than one agent may have: processes and memory.

use serde_json::{Value, json};

use super::*;

const MIB: usize = 1024 * 1024;

/// A step that tells the most memory that the client has had.
fn peak() -> Value {
    agent::shell("grep VmHWM: /proc/$(awk '/^PPid:/ { print $2 }' /proc/$PPID/status)/status")
}

/// What the step told, in bytes. It is printed for whoever looks at the log.
#[allow(clippy::print_stdout)]
fn told(answers: &[Value]) -> usize {
    let mut shells = answers.iter().filter_map(|answer| answer["shell"].as_str());
    let line = shells.next_back().unwrap();
    let kib = line.split_whitespace().nth(1).unwrap();
    let bytes = kib.parse::<usize>().unwrap() * 1024;
    println!("{} MiB of memory at most", bytes / MIB);
    bytes
}

#[test]
fn sessions_that_the_client_did_not_open_have_no_terminals() {
    let project = TestProject::new();
    let steps: Vec<Value> = (0..100)
        .map(|n| {
            let params =
                json!({"sessionId": format!("made up {n}"), "command": "sleep", "args": ["1000"]});
            agent::request("terminal/create", params)
        })
        .collect();
    agent::run(&project, &["--allow", "all"], &steps);
    let answers = agent::answers(&project);
    assert_eq!(answers.len(), 100);
    let started = answers.iter().filter(|answer| answer["result"].is_object());
    assert_eq!(started.count(), 0);
    let error = answers[0]["error"]["message"].as_str().unwrap();
    assert!(error.contains("session made up 0"), "{error}");
}

#[test]
fn what_is_read_and_not_taken_does_not_fill_memory() {
    let project = TestProject::new();
    project.write("large", &"some text\n".repeat(12 * MIB / 10));
    let read = |name: &str, id: usize| {
        let path = project.file(name);
        let params = json!({"sessionId": agent::SESSION, "path": path, "id": id});
        json!({"send": {"id": id, "method": "fs/read_text_file", "params": params}})
    };
    let mut steps: Vec<Value> = (0..40).map(|id| read("large", id)).collect();
    // Its turn comes when the others have been read.
    let params = json!({"sessionId": agent::SESSION, "path": project.file("notes.txt")});
    steps.extend([agent::request("fs/read_text_file", params), peak()]);
    agent::run(&project, &["--allow", "reads"], &steps);
    let answers = agent::answers(&project);
    let refused = answers.iter().filter(|answer| answer["error"].is_object());
    let most = told(&answers);
    println!(
        "{} of {} answers were refused",
        refused.count(),
        answers.len()
    );
    assert!(most < 320 * MIB, "{} MiB", most / MIB);
}

#[test]
fn a_file_is_as_large_as_it_is_when_it_is_written_down() {
    let project = TestProject::new();
    // Each of them takes six bytes in a message.
    project.write("controls", &"\0".repeat(12 * MIB));
    let params = json!({"sessionId": agent::SESSION, "path": project.file("controls")});
    let steps = [agent::request("fs/read_text_file", params), peak()];
    agent::run(&project, &["--allow", "reads"], &steps);
    let answers = agent::answers(&project);
    assert!(answers[0]["error"].is_object(), "it was read");
    let most = told(&answers);
    assert!(most < 160 * MIB, "{} MiB", most / MIB);
}
