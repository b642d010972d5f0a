//! Asks the user questions at the terminal.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard, watch};

use crate::line_input::{self, TypedLines};
use crate::screen::{ScreenOutput, ScreenQuestion, TerminalScreen, wrap_question};

#[cfg(unix)]
const TERMINAL_PATH: &str = "/dev/tty";
#[cfg(not(unix))]
const TERMINAL_PATH: &str = "CONIN$";

/// How long the keyboard must be idle after a question is shown before a line counts as the answer. Earlier input was
/// meant for something else, since the user had not yet seen the question. `acp chat` uses the same duration.
const SETTLE_TIME: Duration = Duration::from_millis(300);

/// The note shown when earlier input was ignored.
const EARLY_INPUT_NOTE: &str = "  (ignored the input that was typed before the question appeared)";

/// Returns `true` if there is a user who can answer. Questions are shown on stderr and answered at the terminal, which
/// leaves stdin and stdout free for other uses.
pub(crate) fn can_ask() -> bool {
    std::io::stderr().is_terminal() && File::open(TERMINAL_PATH).is_ok_and(|tty| tty.is_terminal())
}

/// The maximum length of the answer to a yes-or-no question, in bytes.
const MAX_ANSWER_BYTES: u64 = 1024;

/// Asks a yes-or-no question before anything is started, and returns `true` for yes. Ctrl-C simply terminates the
/// program.
pub(crate) fn confirm(question: &str) -> bool {
    let Ok(terminal) = File::open(TERMINAL_PATH) else {
        return false;
    };
    let mut early = line_input::discard(&terminal);
    eprint!("{} ", wrap_question(question));
    loop {
        std::thread::sleep(SETTLE_TIME);
        if !line_input::discard(&terminal) {
            break;
        }
        early = true;
    }
    if early {
        eprintln!("\n{EARLY_INPUT_NOTE}");
    }
    eprint!("[y/N] ");
    let mut answer = String::new();
    let read = BufReader::new(terminal.take(MAX_ANSWER_BYTES)).read_line(&mut answer);
    let answer = answer.trim().to_lowercase();
    read.is_ok() && (answer == "y" || answer == "yes")
}

/// The user at the terminal. Asks one question at a time.
pub(crate) struct TerminalUser {
    screen: TerminalScreen,
    /// A lock that is held while a question is open, so that other questions wait.
    question_lock: Mutex<()>,
    /// Whether all questions have been cancelled.
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

    /// Cancels the open question and all later ones. Called on Ctrl-C.
    pub(crate) fn cancel_questions(&self) {
        self.questions_cancelled.send_replace(true);
    }

    /// Returns `true` if a question is open.
    pub(crate) fn has_open_question(&self) -> bool {
        self.question_lock.try_lock().is_err()
    }

    /// Shows a question as soon as no other question is open. Discards input typed before the user could read the
    /// question. Returns `None` if no answer is possible.
    pub(crate) async fn ask(&self, draw: impl FnOnce(&mut ScreenOutput)) -> Option<UserDialog<'_>> {
        let mut left = self.questions_cancelled.subscribe();
        let turn = tokio::select! {
            biased;
            _ = left.wait_for(|left| *left) => return None,
            turn = self.question_lock.lock() => turn,
        };
        // Each question opens the terminal for itself, so a line for one never goes to another.
        let mut lines = TypedLines::open()?;
        let early = lines.discard();
        let mut dialog = UserDialog {
            _question: self.screen.question(draw),
            _question_lock: turn,
            lines,
            questions_cancelled: left,
            is_waiting: false,
        };
        dialog.settle(early).await?;
        Some(dialog)
    }
}

/// An open question. Can print more text and read answers.
pub(crate) struct UserDialog<'a> {
    _question: ScreenQuestion,
    _question_lock: MutexGuard<'a, ()>,
    lines: TypedLines,
    questions_cancelled: watch::Receiver<bool>,
    /// Whether the dialog is waiting for input.
    is_waiting: bool,
}

impl UserDialog<'_> {
    /// Waits until the user has stopped typing input that was meant for something else.
    async fn settle(&mut self, mut early: bool) -> Option<()> {
        self.is_waiting = true;
        loop {
            tokio::select! {
                biased;
                _ = self.questions_cancelled.wait_for(|left| *left) => {
                    self.is_waiting = false;
                    return None;
                }
                () = tokio::time::sleep(SETTLE_TIME) => {}
            }
            if !self.lines.discard() {
                break;
            }
            early = true;
        }
        self.is_waiting = false;
        if early {
            self.print_question_text(&format!("\n{EARLY_INPUT_NOTE}"));
        }
        Some(())
    }

    /// Shows text that belongs to the question.
    pub(crate) fn print_question_text(&self, text: &str) {
        eprintln!("{}", wrap_question(text));
    }

    /// Shows `prompt`, reads a line and trims it. Returns `None` if no line can be read.
    pub(crate) async fn answer(&mut self, prompt: &str) -> Option<String> {
        eprint!("{prompt}");
        self.is_waiting = true;
        let line = tokio::select! {
            biased;
            _ = self.questions_cancelled.wait_for(|left| *left) => None,
            line = self.lines.next() => line,
        };
        self.is_waiting = false;
        if line.is_none() {
            // End the line that the user did not.
            eprintln!();
        }
        Some(line?.trim().to_owned())
    }
}

impl Drop for UserDialog<'_> {
    fn drop(&mut self) {
        if self.is_waiting {
            eprintln!("\n  (the agent withdrew this question)");
        }
    }
}
