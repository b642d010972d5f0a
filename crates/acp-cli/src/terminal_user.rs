//! Asking the person at the terminal.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard, watch};

use crate::line_input::{self, TypedLines};
use crate::screen::{ScreenOutput, ScreenQuestion, TerminalScreen, wrapped};

#[cfg(unix)]
const TERMINAL: &str = "/dev/tty";
#[cfg(not(unix))]
const TERMINAL: &str = "CONIN$";

/// How long nothing must have been typed since a question was shown before a line counts as its answer: whoever was
/// about to answer another one, or typed ahead, has not seen it. `acp chat` waits as long.
const SETTLE: Duration = Duration::from_millis(300);

/// What is said when something was typed before that.
const EARLY: &str = "  (input typed before the question was ignored)";

/// Whether there is someone to ask: questions are shown on stderr and answered on the terminal, so
/// that stdin and stdout are free for other things.
pub(crate) fn can_ask() -> bool {
    std::io::stderr().is_terminal() && File::open(TERMINAL).is_ok_and(|tty| tty.is_terminal())
}

/// The longest answer to a question of yes or no, in bytes.
const LONGEST_YES: u64 = 1024;

/// Asks something before anything is started: whether they say yes. Ctrl-C ends the program, as nothing runs yet.
pub(crate) fn confirm(question: &str) -> bool {
    let Ok(terminal) = File::open(TERMINAL) else {
        return false;
    };
    let mut early = line_input::discard(&terminal);
    eprint!("{} ", wrapped(question));
    loop {
        std::thread::sleep(SETTLE);
        if !line_input::discard(&terminal) {
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
pub(crate) struct TerminalUser {
    screen: TerminalScreen,
    /// One question at a time: the next one waits here.
    question_lock: Mutex<()>,
    /// They want no more questions.
    questions_cancelled: watch::Sender<bool>,
}

impl TerminalUser {
    pub(crate) fn new(screen: TerminalScreen) -> Arc<Self> {
        Arc::new(Self {
            screen,
            question_lock: Mutex::default(),
            questions_cancelled: watch::Sender::new(false),
        })
    }

    pub(crate) fn screen(&self) -> &TerminalScreen {
        &self.screen
    }

    /// Ctrl-C: the question that is open, if any, and all that follow have no answer.
    pub(crate) fn cancel_questions(&self) {
        self.questions_cancelled.send_replace(true);
    }

    /// Whether a question is open.
    pub(crate) fn is_asked(&self) -> bool {
        self.question_lock.try_lock().is_err()
    }

    /// Shows a question, when those before it are answered; `None` if there is no answer to expect. What was typed
    /// before the person could read it is dropped.
    pub(crate) async fn ask(&self, draw: impl FnOnce(&mut ScreenOutput)) -> Option<UserDialog<'_>> {
        let mut left = self.questions_cancelled.subscribe();
        let turn = tokio::select! {
            biased;
            _ = left.wait_for(|left| *left) => return None,
            turn = self.question_lock.lock() => turn,
        };
        // Each question reads for itself: a line that was typed for one never gets to another.
        let mut lines = TypedLines::open()?;
        let early = lines.discard();
        let mut dialog = UserDialog {
            _question: self.screen.question(draw),
            _question_lock: turn,
            lines,
            questions_cancelled: left,
            waits: false,
        };
        dialog.settle(early).await?;
        Some(dialog)
    }
}

/// A question that is open.
pub(crate) struct UserDialog<'a> {
    _question: ScreenQuestion,
    _question_lock: MutexGuard<'a, ()>,
    lines: TypedLines,
    questions_cancelled: watch::Receiver<bool>,
    /// An answer is expected.
    waits: bool,
}

impl UserDialog<'_> {
    /// Waits until nothing is typed that was meant for something else.
    async fn settle(&mut self, mut early: bool) -> Option<()> {
        self.waits = true;
        loop {
            tokio::select! {
                biased;
                _ = self.questions_cancelled.wait_for(|left| *left) => {
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
            _ = self.questions_cancelled.wait_for(|left| *left) => None,
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

impl Drop for UserDialog<'_> {
    fn drop(&mut self) {
        if self.waits {
            eprintln!("\n  (the agent withdrew this question)");
        }
    }
}
