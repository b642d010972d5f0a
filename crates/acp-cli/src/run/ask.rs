//! Asking the person at the terminal.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal};
use std::sync::OnceLock;

use acp::client::PermissionRequest;
use acp::v1::PermissionOptionId;
use acp_host::Prompter;
use tokio::sync::{Mutex, mpsc};

use super::render::Screen;

#[cfg(unix)]
const TERMINAL: &str = "/dev/tty";
#[cfg(not(unix))]
const TERMINAL: &str = "CONIN$";

/// Whether there is someone to ask: questions are shown on stderr and answered on the terminal, so
/// that stdin and stdout are free for other things.
pub(super) fn possible() -> bool {
    std::io::stderr().is_terminal() && File::open(TERMINAL).is_ok_and(|tty| tty.is_terminal())
}

pub(super) struct Ask {
    screen: Screen,
    /// What is typed. One question at a time: the next one waits here.
    lines: Mutex<OnceLock<mpsc::Receiver<String>>>,
}

impl Ask {
    pub(super) fn new(screen: Screen) -> Self {
        Self {
            screen,
            lines: Mutex::default(),
        }
    }
}

/// Reads lines from the terminal, on a thread of its own: reading one cannot be given up half-way,
/// so a question that is withdrawn leaves the reading to the next one.
fn typed() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        let Ok(terminal) = File::open(TERMINAL) else {
            return;
        };
        for line in BufReader::new(terminal).lines() {
            let Ok(line) = line else { return };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

impl Prompter for Ask {
    async fn ask(&self, request: &PermissionRequest) -> Option<PermissionOptionId> {
        let mut lines = self.lines.lock().await;
        lines.get_or_init(typed);
        let lines = lines.get_mut()?;
        // What was typed before the question was shown does not answer it.
        while lines.try_recv().is_ok() {}
        let _question = self.screen.question(request);
        loop {
            self.screen.ask(request.options.len());
            let line = lines.recv().await?;
            let answer = line.trim();
            let chosen = answer
                .parse::<usize>()
                .ok()
                .and_then(|n| request.options.get(n.checked_sub(1)?));
            if let Some(option) = chosen {
                return Some(option.option_id.clone());
            }
        }
    }
}
