//! Runs the binary on a terminal provided by `script` (part of util-linux, and installed on every Debian system).

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Stdio};

use super::TestProject;
use super::patient::TimedReader;

/// A command running on a terminal.
pub(crate) struct CommandTerminal {
    child: Child,
    keys: ChildStdin,
    screen: TimedReader,
    pub(crate) seen: String,
}

impl CommandTerminal {
    /// Runs a shell command line in the project. A test that presses Ctrl-C and asserts the exit code starts the line with
    /// `exec`: the signal reaches the shell too, and would end it before the command.
    pub(crate) fn start(project: &TestProject, line: &str) -> Self {
        let mut child = project
            .program_command("script")
            .args(["--quiet", "--return", "--flush", "--command"])
            .arg(line)
            .arg("/dev/null")
            .env("TERM", "xterm")
            // `script` uses the user's shell, and shells differ in whether they wait for an interrupted command.
            .env("SHELL", "/bin/sh")
            .env_remove("NO_COLOR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script, of util-linux, is installed");
        let (keys, screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let screen = TimedReader::new(screen);
        Self {
            child,
            keys,
            screen,
            seen: String::new(),
        }
    }

    /// Waits until this text has appeared.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, shown: &str) {
        let mut bytes = [0; 1024];
        while !self.seen.contains(shown) {
            let n = self.screen.read(&mut bytes);
            let n = n.unwrap_or_else(|e| panic!("{e}, and not {shown:?}: {}", self.seen));
            assert_ne!(n, 0, "ended before {shown:?}: {}", self.seen);
            self.seen.push_str(&String::from_utf8_lossy(&bytes[..n]));
        }
    }

    /// Waits until this text has appeared, types `keys`, and clears the collected output.
    #[track_caller]
    pub(crate) fn answer(&mut self, shown: &str, keys: &str) {
        self.wait_for(shown);
        self.seen.clear();
        self.send_keys(keys);
    }

    pub(crate) fn send_keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits for the program to exit, and returns the exit code and the collected output.
    pub(crate) fn wait_for_exit(mut self) -> (Option<i32>, String) {
        let mut rest = Vec::new();
        self.screen.read_to_end(&mut rest).unwrap();
        self.seen.push_str(&String::from_utf8_lossy(&rest));
        (self.child.wait().unwrap().code(), self.seen)
    }

    /// Asserts that the program exits with this code, and returns the collected output.
    #[track_caller]
    pub(crate) fn expect_exit(self, code: i32) -> String {
        let (ended, screen) = self.wait_for_exit();
        assert_eq!(ended, Some(code), "{screen}");
        screen
    }
}
