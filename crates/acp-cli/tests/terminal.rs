//! `acp run` on a terminal: questions, colours, Ctrl-C as it is typed.

#![cfg(target_os = "linux")]
// Clippy takes only what is in a test function for a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use common::{ACP, Project};

/// A run on a terminal of its own, which `script` (of util-linux, and on every Debian) provides.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: ChildStdout,
    seen: String,
}

impl Terminal {
    fn run(project: &Project, args: &str) -> Self {
        let mut child = Command::new("script")
            .args(["--quiet", "--return", "--flush", "--command"])
            .arg(format!("{ACP} run {args}"))
            .arg("/dev/null")
            .current_dir(project.path())
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script, of util-linux, is installed");
        let (keys, screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self {
            child,
            keys,
            screen,
            seen: String::new(),
        }
    }

    /// Waits until this is on the screen.
    fn until(&mut self, shown: &str) {
        let mut bytes = [0; 1024];
        while !self.seen.contains(shown) {
            let n = self.screen.read(&mut bytes).unwrap();
            assert_ne!(n, 0, "ended before {shown:?}: {}", self.seen);
            self.seen.push_str(&String::from_utf8_lossy(&bytes[..n]));
        }
    }

    fn key(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// The exit code, and all that was on the screen.
    fn end(mut self) -> (Option<i32>, String) {
        let mut rest = Vec::new();
        self.screen.read_to_end(&mut rest).unwrap();
        self.seen.push_str(&String::from_utf8_lossy(&rest));
        (self.child.wait().unwrap().code(), self.seen)
    }
}

#[test]
fn a_question_shows_what_it_is_about_and_takes_an_answer() {
    let project = Project::new();
    project.write("prompt", "/edit notes.txt\nsecond\n===\n2nd");
    let mut terminal = Terminal::run(&project, "--file prompt");
    terminal.until("answer [1-4]: ");
    for part in ["-second", "+2nd", "1) ", "4) "] {
        assert!(terminal.seen.contains(part), "{part}: {}", terminal.seen);
    }
    assert_eq!(
        project.read("notes.txt"),
        "first\nsecond\nthird\n",
        "nothing happens before the answer"
    );
    terminal.key("what?\n");
    terminal.key("1\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(
        screen.contains("\u{1b}[32m+2nd"),
        "the diff is coloured: {screen:?}"
    );
    assert_eq!(project.read("notes.txt"), "first\n2nd\nthird\n");
}

#[test]
fn a_no_leaves_everything_as_it_is() {
    let project = Project::new();
    let mut terminal = Terminal::run(&project, "'/run touch made'");
    terminal.until("answer [1-4]: ");
    terminal.key("3\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!project.file("made").exists());
}

#[test]
fn ctrl_c_at_a_question_cancels_the_turn() {
    let project = Project::new();
    let mut terminal = Terminal::run(&project, "'/run touch made'");
    terminal.until("answer [1-4]: ");
    terminal.key("\u{3}");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.contains("acp: cancelled"), "{screen}");
    assert!(!project.file("made").exists());
}
