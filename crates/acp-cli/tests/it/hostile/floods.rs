//! Attacks that try to exceed an agent's limits on processes or memory.

use serde_json::{Value, json};

use super::*;

const MIB: usize = 1024 * 1024;

/// Returns a step that prints the client's peak memory use.
fn peak_memory_step() -> Value {
    agent::shell_step("grep VmHWM: /proc/$(awk '/^PPid:/ { print $2 }' /proc/$PPID/status)/status")
}

/// Returns the peak memory use in bytes, as given in the response, and prints it for the log.
#[allow(clippy::print_stdout)]
fn peak_memory_bytes(answers: &[Value]) -> usize {
    let mut shells = answers.iter().filter_map(|answer| answer["shell"].as_str());
    let line = shells.next_back().unwrap();
    let kib = line.split_whitespace().nth(1).unwrap();
    let bytes = kib.parse::<usize>().unwrap() * 1024;
    println!("{} MiB of memory at most", bytes / MIB);
    bytes
}

#[test]
fn terminal_request_for_an_unknown_session_is_rejected() {
    let project = TestProject::new();
    let steps: Vec<Value> = (0..100)
        .map(|n| {
            let params =
                json!({"sessionId": format!("made up {n}"), "command": "sleep", "args": ["1000"]});
            agent::request_step("terminal/create", params)
        })
        .collect();
    agent::run_steps(&project, &["--allow", "all"], &steps);
    let answers = agent::read_responses(&project);
    assert_eq!(answers.len(), 100);
    let started = answers.iter().filter(|answer| answer["result"].is_object());
    assert_eq!(started.count(), 0);
    let error = answers[0]["error"]["message"].as_str().unwrap();
    assert!(error.contains("session made up 0"), "{error}");
}

#[test]
fn unread_responses_do_not_fill_memory() {
    let project = TestProject::new();
    project.write_file("large", &"some text\n".repeat(12 * MIB / 10));
    let read = |name: &str, id: usize| {
        let path = project.file(name);
        let params = json!({"sessionId": agent::SESSION_ID, "path": path, "id": id});
        json!({"send": {"id": id, "method": "fs/read_text_file", "params": params}})
    };
    let mut steps: Vec<Value> = (0..40).map(|id| read("large", id)).collect();
    // Its turn comes when the others have been read.
    let params = json!({"sessionId": agent::SESSION_ID, "path": project.file("notes.txt")});
    steps.extend([
        agent::request_step("fs/read_text_file", params),
        peak_memory_step(),
    ]);
    agent::run_steps(&project, &["--allow", "reads"], &steps);
    let answers = agent::read_responses(&project);
    let refused = answers.iter().filter(|answer| answer["error"].is_object());
    let most = peak_memory_bytes(&answers);
    println!(
        "{} of {} answers were refused",
        refused.count(),
        answers.len()
    );
    assert!(most < 320 * MIB, "{} MiB", most / MIB);
}

#[test]
fn file_size_limit_applies_to_the_escaped_text() {
    let project = TestProject::new();
    // Each of them takes six bytes in a message.
    project.write_file("controls", &"\0".repeat(12 * MIB));
    let params = json!({"sessionId": agent::SESSION_ID, "path": project.file("controls")});
    let steps = [
        agent::request_step("fs/read_text_file", params),
        peak_memory_step(),
    ];
    agent::run_steps(&project, &["--allow", "reads"], &steps);
    let answers = agent::read_responses(&project);
    assert!(answers[0]["error"].is_object(), "it was read");
    let most = peak_memory_bytes(&answers);
    assert!(most < 160 * MIB, "{} MiB", most / MIB);
}
