//! Tests of the chat in tmux.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::*;
use crate::local_sessions::wait_for;

/// If this variable is set, a missing tmux is a failure rather than a reason to skip.
const REQUIRE_VARIABLE: &str = "ACP_REQUIRE_TMUX";

const FOCUS_LOST: &str = "\u{1b}[O";
const FOCUS_GAINED: &str = "\u{1b}[I";

/// A chat in a tmux with a server of its own, which ends with this.
struct TmuxChat {
    screen: ChatScreen,
    socket: PathBuf,
}

impl Drop for TmuxChat {
    fn drop(&mut self) {
        let _ = tmux(&self.socket).arg("kill-server").output();
    }
}

fn tmux(socket: &Path) -> Command {
    let mut command = Command::new("tmux");
    command.arg("-S").arg(socket).stdin(Stdio::null());
    command
}

fn has_tmux() -> bool {
    let version = Command::new("tmux").arg("-V").output();
    let is_there = version.is_ok_and(|output| output.status.success());
    assert!(
        is_there || std::env::var_os(REQUIRE_VARIABLE).is_none(),
        "{REQUIRE_VARIABLE} is set, but there is no tmux"
    );
    if !is_there {
        eprintln!("skipped: there is no tmux");
    }
    is_there
}

impl TmuxChat {
    /// Starts a chat in tmux, in a terminal like Ghostty.
    fn start(project: &TestProject, settings: &str) -> Self {
        let socket = project.path_outside("tmux").join("socket");
        project.write_file("tmux.conf", &format!("set -g status off\n{settings}"));
        let line = format!(
            "env -u TMUX -u STY GHOSTTY_RESOURCES_DIR=/ghostty \
             tmux -u -S {} -f tmux.conf new-session {ACP} chat",
            socket.display()
        );
        let mut screen = ChatScreen::start(project, 80, 24, &line);
        screen.wait_for("Ask");
        Self { screen, socket }
    }

    /// Waits until tmux knows whether its terminal has the focus. It has told the chat then.
    fn wait_for_focus(&self, expected: bool) {
        wait_for("the focus in tmux", || {
            let flags = tmux(&self.socket)
                .args(["list-clients", "-F", "#{client_flags}"])
                .output()
                .unwrap();
            let flags = String::from_utf8(flags.stdout).unwrap();
            (flags.contains("focused") == expected).then_some(())
        });
    }
}

#[test]
fn notification_reaches_the_terminal_around_tmux() {
    if !has_tmux() {
        return;
    }
    let project = TestProject::new();
    let settings = "set -g allow-passthrough on\nset -g focus-events on\n";
    let mut chat = TmuxChat::start(&project, settings);
    chat.screen.send_keys(FOCUS_GAINED);
    chat.wait_for_focus(true);
    chat.screen.send_line("/read notes.txt");
    chat.screen.wait_for("third");
    chat.screen.wait_until_gone("Esc: cancel");
    let notifications = |screen: &ChatScreen| {
        let commands = screen.commands().iter();
        let notifications = commands.filter(|command| command.starts_with("777;"));
        notifications.cloned().collect::<Vec<_>>()
    };
    assert!(notifications(&chat.screen).is_empty(), "the user was there");
    chat.screen.send_keys(FOCUS_LOST);
    chat.wait_for_focus(false);
    chat.screen.send_line("/run echo two");
    chat.screen
        .wait_for_matching_screen("a notification", |screen| !notifications(screen).is_empty());
    assert_eq!(
        notifications(&chat.screen),
        ["777;notify;/read notes.txt;has a question"]
    );
    // tmux marks the window of the bell, too.
    chat.screen
        .wait_for_matching_screen("a bell", |screen| screen.bells() > 0);
}

/// By default, tmux passes no sequences on, and none appears on the screen.
#[test]
fn bell_rings_where_tmux_passes_nothing_on() {
    if !has_tmux() {
        return;
    }
    let project = TestProject::new();
    let mut chat = TmuxChat::start(&project, "set -g focus-events on\n");
    chat.screen.send_keys(FOCUS_LOST);
    chat.wait_for_focus(false);
    chat.screen.send_line("/run echo two");
    chat.screen.wait_for("ACP Agent wants to: Run");
    chat.screen
        .wait_for_matching_screen("a bell", |screen| screen.bells() > 0);
    let text = chat.screen.text();
    assert!(!text.contains("777;"), "{text}");
}
