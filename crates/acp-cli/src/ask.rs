//! Asking the person at the terminal.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::sync::{Arc, OnceLock};

use tokio::sync::{Mutex, MutexGuard, mpsc, watch};

use crate::screen::{Out, Question, Screen};
use crate::typing;

#[cfg(unix)]
const TERMINAL: &str = "/dev/tty";
#[cfg(not(unix))]
const TERMINAL: &str = "CONIN$";

/// Whether there is someone to ask: questions are shown on stderr and answered on the terminal, so
/// that stdin and stdout are free for other things.
pub(crate) fn possible() -> bool {
    std::io::stderr().is_terminal() && File::open(TERMINAL).is_ok_and(|tty| tty.is_terminal())
}

/// The longest answer to a question of yes or no, in bytes.
const LONGEST_YES: u64 = 1024;

/// Asks something before anything is started: whether they say yes. Ctrl-C ends the program, as nothing runs yet.
pub(crate) fn says_yes(question: &str) -> bool {
    let Ok(terminal) = File::open(TERMINAL) else {
        return false;
    };
    typing::forget(&terminal);
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    let read = BufReader::new(terminal.take(LONGEST_YES)).read_line(&mut answer);
    let answer = answer.trim().to_lowercase();
    read.is_ok() && (answer == "y" || answer == "yes")
}

/// The person at the terminal, who is asked one thing after the other.
pub(crate) struct Person {
    screen: Screen,
    /// What is typed. One question at a time: the next one waits here.
    lines: Mutex<OnceLock<mpsc::Receiver<String>>>,
    /// They want no more questions.
    left: watch::Sender<bool>,
}

impl Person {
    pub(crate) fn new(screen: Screen) -> Arc<Self> {
        Arc::new(Self {
            screen,
            lines: Mutex::default(),
            left: watch::Sender::new(false),
        })
    }

    pub(crate) fn screen(&self) -> &Screen {
        &self.screen
    }

    /// Ctrl-C: the question that is open, if any, and all that follow have no answer.
    pub(crate) fn leave(&self) {
        self.left.send_replace(true);
    }

    /// Whether a question is open.
    pub(crate) fn is_asked(&self) -> bool {
        self.lines.try_lock().is_err()
    }

    /// Shows a question, when those before it are answered; `None` if there is no answer to expect.
    pub(crate) async fn ask(&self, draw: impl FnOnce(&mut Out)) -> Option<Dialog<'_>> {
        let mut left = self.left.subscribe();
        let mut lines = tokio::select! {
            biased;
            _ = left.wait_for(|left| *left) => return None,
            lines = self.lines.lock() => lines,
        };
        lines.get_or_init(typed);
        // What was typed before the question was shown does not answer it.
        while lines.get_mut()?.try_recv().is_ok() {}
        Some(Dialog {
            _question: self.screen.question(draw),
            lines,
            left,
        })
    }
}

/// A question that is open.
pub(crate) struct Dialog<'a> {
    _question: Question,
    lines: MutexGuard<'a, OnceLock<mpsc::Receiver<String>>>,
    left: watch::Receiver<bool>,
}

impl Dialog<'_> {
    /// Says something that belongs to the question.
    pub(crate) fn say(&self, text: &str) {
        eprintln!("{text}");
    }

    /// What is typed behind `prompt`, without the spaces around it; `None` if nothing will be.
    pub(crate) async fn answer(&mut self, prompt: &str) -> Option<String> {
        eprint!("{prompt}");
        let lines = self.lines.get_mut()?;
        let line = tokio::select! {
            biased;
            _ = self.left.wait_for(|left| *left) => None,
            line = lines.recv() => line,
        };
        if line.is_none() {
            // The line that they did not end.
            eprintln!();
        }
        Some(line?.trim().to_owned())
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
