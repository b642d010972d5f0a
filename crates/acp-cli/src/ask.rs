//! Asking the person at the terminal.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard, watch};

use crate::screen::{Out, Question, Screen, wrapped};
use crate::typing::{self, Lines};

#[cfg(unix)]
const TERMINAL: &str = "/dev/tty";
#[cfg(not(unix))]
const TERMINAL: &str = "CONIN$";

/// How long nothing must have been typed since a question was shown before a line counts as its answer: whoever was
/// about to answer another one, or typed ahead, has not seen it. `acp chat` waits as long.
const SETTLE: Duration = Duration::from_millis(300);

/// What is said when something was typed before that.
const EARLY: &str = "  (what was typed before the question could be read does not count)";

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
    let mut early = typing::discard(&terminal);
    eprint!("{} ", wrapped(question));
    loop {
        std::thread::sleep(SETTLE);
        if !typing::discard(&terminal) {
            break;
        }
        early = true;
    }
    if early {
        eprintln!("\n{EARLY}");
    }
    eprint!("[y/N] ");
    let mut answer = String::new();
    let read = BufReader::new(terminal.take(LONGEST_YES)).read_line(&mut answer);
    let answer = answer.trim().to_lowercase();
    read.is_ok() && (answer == "y" || answer == "yes")
}

/// The person at the terminal, who is asked one thing after the other.
pub(crate) struct Person {
    screen: Screen,
    /// One question at a time: the next one waits here.
    turn: Mutex<()>,
    /// They want no more questions.
    left: watch::Sender<bool>,
}

impl Person {
    pub(crate) fn new(screen: Screen) -> Arc<Self> {
        Arc::new(Self {
            screen,
            turn: Mutex::default(),
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
        self.turn.try_lock().is_err()
    }

    /// Shows a question, when those before it are answered; `None` if there is no answer to expect. What was typed
    /// before the person could read it is dropped.
    pub(crate) async fn ask(&self, draw: impl FnOnce(&mut Out)) -> Option<Dialog<'_>> {
        let mut left = self.left.subscribe();
        let turn = tokio::select! {
            biased;
            _ = left.wait_for(|left| *left) => return None,
            turn = self.turn.lock() => turn,
        };
        // Each question reads for itself: a line that was typed for one never gets to another.
        let mut lines = Lines::open()?;
        let early = lines.discard();
        let mut dialog = Dialog {
            _question: self.screen.question(draw),
            _turn: turn,
            lines,
            left,
            waits: false,
        };
        dialog.settle(early).await?;
        Some(dialog)
    }
}

/// A question that is open.
pub(crate) struct Dialog<'a> {
    _question: Question,
    _turn: MutexGuard<'a, ()>,
    lines: Lines,
    left: watch::Receiver<bool>,
    /// An answer is expected.
    waits: bool,
}

impl Dialog<'_> {
    /// Waits until nothing is typed that was meant for something else.
    async fn settle(&mut self, mut early: bool) -> Option<()> {
        self.waits = true;
        loop {
            tokio::select! {
                biased;
                _ = self.left.wait_for(|left| *left) => {
                    self.waits = false;
                    return None;
                }
                () = tokio::time::sleep(SETTLE) => {}
            }
            if !self.lines.discard() {
                break;
            }
            early = true;
        }
        self.waits = false;
        if early {
            self.say(&format!("\n{EARLY}"));
        }
        Some(())
    }

    /// Says something that belongs to the question.
    pub(crate) fn say(&self, text: &str) {
        eprintln!("{}", wrapped(text));
    }

    /// What is typed behind `prompt`, without the spaces around it; `None` if nothing will be.
    pub(crate) async fn answer(&mut self, prompt: &str) -> Option<String> {
        eprint!("{prompt}");
        self.waits = true;
        let line = tokio::select! {
            biased;
            _ = self.left.wait_for(|left| *left) => None,
            line = self.lines.next() => line,
        };
        self.waits = false;
        if line.is_none() {
            // The line that they did not end.
            eprintln!();
        }
        Some(line?.trim().to_owned())
    }
}

impl Drop for Dialog<'_> {
    fn drop(&mut self) {
        if self.waits {
            eprintln!("\n  (the agent has withdrawn this question)");
        }
    }
}
