//! Runs programs for a comparison: their output is bounded, they have a time limit, and everything they start ends with
//! them.

use std::time::{Duration, Instant};

use acp_host::{AgentCommand, AgentProcess, ProcessExit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::stop::StopSignal;

/// The shell and its option for running a command line.
const SHELL_AND_OPTION: (&str, &str) = if cfg!(windows) {
    ("cmd", "/C")
} else {
    ("sh", "-c")
};

/// How long to read the output of a program that has exited. What it has left running may keep the output open.
const DRAIN_TIME: Duration = Duration::from_millis(500);

/// A program to run to its end.
pub(super) struct BoundedCommand {
    pub(super) command: AgentCommand,
    /// What the program reads from stdin.
    pub(super) input: Vec<u8>,
    pub(super) timeout: Duration,
    /// How much of stdout is kept, in bytes.
    pub(super) max_output: usize,
    /// Whether the end of the output is kept if there is more. Otherwise, the beginning is.
    pub(super) keeps_end: bool,
    /// How long the program may take to exit after it is asked to, because of a signal.
    pub(super) grace: Duration,
}

/// How a program has ended.
pub(super) struct BoundedResult {
    /// The exit, or `None` if the program was ended because of its time limit or a signal.
    pub(super) exit: Option<ProcessExit>,
    pub(super) is_timeout: bool,
    pub(super) output: Vec<u8>,
    pub(super) is_truncated: bool,
    /// The end of stderr.
    pub(super) stderr: String,
    pub(super) duration: Duration,
}

/// Returns a command that runs a line in the shell.
pub(super) fn shell_command(line: &str) -> AgentCommand {
    let (shell, option) = SHELL_AND_OPTION;
    AgentCommand::new(shell).args([option, line])
}

/// Returns a command that runs a line in the shell, with stderr in its stdout.
pub(super) fn merged_shell_command(line: &str) -> AgentCommand {
    match cfg!(windows) {
        true => shell_command(&format!("({line}) 2>&1")),
        false => shell_command(&format!("exec 2>&1\n{line}")),
    }
}

impl BoundedCommand {
    /// Runs the program. Ends it early if `stop` is requested.
    ///
    /// # Errors
    /// The program cannot be started.
    pub(super) async fn run(self, stop: &StopSignal) -> Result<BoundedResult, String> {
        let begun = Instant::now();
        let process = AgentProcess::spawn(&self.command).map_err(|e| e.to_string())?;
        let mut kept = KeptOutput::new(self.max_output, self.keeps_end);
        let (exit, is_timeout) = self.talk(&process, &mut kept, stop).await;
        process.shutdown(Duration::ZERO).await;
        Ok(BoundedResult {
            exit,
            is_timeout,
            is_truncated: kept.is_truncated,
            output: kept.bytes,
            stderr: process.output_tail(),
            duration: begun.elapsed(),
        })
    }

    /// Writes the program's input and reads its output until it exits. Returns its exit, or `None` if it must be ended,
    /// and whether that is because of the time limit.
    async fn talk(
        &self,
        process: &AgentProcess,
        kept: &mut KeptOutput,
        stop: &StopSignal,
    ) -> (Option<ProcessExit>, bool) {
        let stdio = process.take_stdio();
        let talk = async {
            let Some((mut stdin, mut stdout)) = stdio else {
                return;
            };
            let write = async {
                // A program that does not want all of its input has its reasons.
                let _ = stdin.write_all(&self.input).await;
                drop(stdin);
            };
            let read = async {
                let mut bytes = vec![0; 16 * 1024];
                while let Ok(n @ 1..) = stdout.read(&mut bytes).await {
                    kept.push(bytes.get(..n).unwrap_or_default());
                }
            };
            tokio::join!(write, read);
        };
        let mut talk = std::pin::pin!(talk);
        let mut is_closed = false;
        let mut is_asked = false;
        let mut deadline = tokio::time::Instant::now() + self.timeout;
        let exit = loop {
            tokio::select! {
                biased;
                () = &mut talk, if !is_closed => is_closed = true,
                exit = process.wait() => break exit,
                () = stop.requested(), if !is_asked => {
                    is_asked = true;
                    deadline = tokio::time::Instant::now() + self.grace;
                    ask_to_exit(process);
                }
                () = stop.repeated(), if is_asked => return (None, false),
                () = tokio::time::sleep_until(deadline) => return (None, !is_asked),
            }
        };
        if !is_closed {
            // The last of the output may still be on its way.
            let _ = tokio::time::timeout(DRAIN_TIME, talk).await;
        }
        (Some(exit), false)
    }
}

#[cfg(unix)]
fn ask_to_exit(process: &AgentProcess) {
    use rustix::process::{Pid, Signal, kill_process};
    let id = i32::try_from(process.id()).ok().and_then(Pid::from_raw);
    if let Some(id) = id
        && process.try_wait().is_none()
    {
        let _ = kill_process(id, Signal::TERM);
    }
}

/// Does nothing: on this system, the process is ended after the grace period.
#[cfg(not(unix))]
fn ask_to_exit(_: &AgentProcess) {}

/// The beginning or the end of an output.
struct KeptOutput {
    bytes: Vec<u8>,
    max: usize,
    keeps_end: bool,
    is_truncated: bool,
}

impl KeptOutput {
    fn new(max: usize, keeps_end: bool) -> Self {
        Self {
            bytes: Vec::new(),
            max,
            keeps_end,
            is_truncated: false,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let excess = self.bytes.len().saturating_sub(self.max);
        if excess == 0 {
            return;
        }
        self.is_truncated = true;
        match self.keeps_end {
            true => drop(self.bytes.drain(..excess)),
            false => self.bytes.truncate(self.max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_bounded() {
        let kept = |keeps_end| {
            let mut kept = KeptOutput::new(5, keeps_end);
            for part in ["ab", "cde", "fghijklm", "n"] {
                kept.push(part.as_bytes());
            }
            assert!(kept.is_truncated);
            String::from_utf8(kept.bytes).unwrap()
        };
        assert_eq!(kept(true), "jklmn");
        assert_eq!(kept(false), "abcde");
    }
}
