//! Manages a running process, including its process group, output and exit.

use std::fmt;
use std::io::{self, PipeReader};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use acp_wire::v1::TerminalExitStatus;
use tokio::sync::watch;

use crate::output::Utf8Decoder;
use crate::sandbox::Sandbox;
use crate::sys::{ChildPipes, OutputPipe, ProcessGroup};
use crate::undo::UndoWatch;

/// How a process exited: with an exit code or because of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessExit {
    /// The exit code, or `None` if a signal terminated the process.
    pub code: Option<i32>,
    /// The signal that terminated the process, such as `SIGKILL`.
    pub signal: Option<String>,
}

impl ProcessExit {
    /// Returns the value to use if the exit status is unknown.
    pub(crate) fn unknown() -> Self {
        Self {
            code: None,
            signal: None,
        }
    }

    /// Returns `true` if the exit code is 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }
}

impl fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, &self.signal) {
            (Some(code), _) => write!(f, "exit code {code}"),
            (None, Some(signal)) => write!(f, "signal {signal}"),
            (None, None) => f.write_str("unknown exit status"),
        }
    }
}

impl From<&ProcessExit> for TerminalExitStatus {
    fn from(exit: &ProcessExit) -> Self {
        let mut status = Self::new();
        // Windows exit codes are unsigned and may exceed the signed range.
        status.exit_code = exit.code.map(i32::cast_unsigned);
        status.signal.clone_from(&exit.signal);
        status
    }
}

/// An event in the life of a process. Events occur in this order, except that processes left running can still print
/// text after the exit.
#[derive(Debug)]
pub(crate) enum ProcessEvent<'a> {
    /// The process has started. Reported before [`RunningProcess::start`] returns.
    Started,
    /// The process has printed this text, which is never empty.
    Text(&'a str),
    /// Changes made by the process have been undone. Contains the report for the user.
    UndoReport(&'a str),
    /// The process has exited, and all of its output has been reported.
    Exited(&'a ProcessExit),
    /// All processes in the group have ended. This is the last event.
    GroupEnded,
}

/// The size of the buffer for reading output, in bytes.
const READ_BUFFER_SIZE: usize = 16 * 1024;

/// The maximum size of a pipe for an unprivileged process, in bytes.
const MAX_PIPE_SIZE: usize = 1024 * 1024;

/// How long to wait for a killed process to exit before giving up.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// A running process. A task waits for it and reports its events. Dropping it kills the process and its group.
#[derive(Debug)]
pub(crate) struct RunningProcess {
    group: Arc<ProcessGroup>,
    /// Receives the exit status. Closed once the group has ended.
    exit_receiver: watch::Receiver<Option<ProcessExit>>,
    /// Tells the task to stop. Dropping the sender has the same effect.
    stop_sender: watch::Sender<bool>,
    watch: Option<Arc<UndoWatch>>,
}

impl RunningProcess {
    /// Starts `command`, in a sandbox if one is given, and reads its output from `output`. Passes events to `report`,
    /// which is called within a task and must not block. When the process has exited, undoes changes that `watch`
    /// finds. `command` must own all write ends of the pipe.
    pub(crate) fn start(
        command: Command,
        sandbox: Option<&Sandbox>,
        watch: Option<UndoWatch>,
        output: PipeReader,
        mut report: impl FnMut(ProcessEvent<'_>) + Send + 'static,
    ) -> io::Result<(Self, ChildPipes)> {
        let output = OutputPipe::new(output)?;
        let watch = watch.map(Arc::new);
        let (group, pipes) = ProcessGroup::spawn(command, sandbox)?;
        let group = Arc::new(group);
        report(ProcessEvent::Started);
        let (exits, exit) = watch::channel(None);
        let (stop, stopped) = watch::channel(false);
        let kept = watch.clone();
        tokio::spawn(follow_process(
            group.clone(),
            output,
            exits,
            stopped,
            kept,
            report,
        ));
        let running = Self {
            group,
            exit_receiver: exit,
            stop_sender: stop,
            watch,
        };
        Ok((running, pipes))
    }

    /// Undoes the process's changes to files that other programs run or trust, if its sandbox allows such changes.
    /// Returns a report if there is anything to report.
    pub(crate) fn undo(&self) -> impl Future<Output = Option<String>> + Send + use<> {
        undo(self.watch.clone())
    }

    /// Returns the process id of the group leader.
    pub(crate) fn id(&self) -> u32 {
        self.group.id()
    }

    /// Returns the exit status of the process, or `None` if it is still running.
    pub(crate) fn try_wait(&self) -> Option<ProcessExit> {
        self.exit_receiver.borrow().clone()
    }

    /// Waits until the process has exited and all of its output has been reported. Returns `None` if the exit status
    /// will never be known, because the runtime is shutting down or the process cannot be killed.
    pub(crate) fn wait(&self) -> impl Future<Output = Option<ProcessExit>> + Send + use<> {
        let mut exit = self.exit_receiver.clone();
        async move {
            exit.wait_for(Option::is_some)
                .await
                .ok()
                .and_then(|exit| exit.clone())
        }
    }

    /// Asks all processes in the group, and those that have left it, to exit.
    pub(crate) async fn terminate(&self) {
        self.group.terminate().await;
    }

    /// Kills the process group immediately, without waiting.
    pub(crate) fn kill(&self) {
        self.group.kill();
    }

    /// Waits until all processes in the group, and those that have left it, have exited, or until `patience` has
    /// elapsed. Returns `true` if all have exited.
    pub(crate) async fn wait_all(&self, patience: Duration) -> bool {
        self.group.wait_all(patience).await
    }

    /// Kills the group and the processes that have left it, and waits until they have exited or `patience` has elapsed.
    pub(crate) async fn kill_and_wait(&self, patience: Duration) {
        self.group.kill_and_wait(patience).await;
    }

    /// Kills the group without waiting for the rest of its output. The task finishes in the background. To wait for it,
    /// use [`wait_until_finished`](Self::wait_until_finished).
    pub(crate) fn stop(&self) {
        self.group.kill();
        self.stop_sender.send_replace(true);
    }

    /// Waits until the group has ended and all events have been reported.
    pub(crate) fn wait_until_finished(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut exit = self.exit_receiver.clone();
        async move { while exit.changed().await.is_ok() {} }
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        // The group is killed here and not only by the task, because the runtime may be shutting down.
        self.group.kill();
    }
}

async fn follow_process(
    group: Arc<ProcessGroup>,
    mut pipe: OutputPipe,
    exits: watch::Sender<Option<ProcessExit>>,
    mut stopped: watch::Receiver<bool>,
    watch: Option<Arc<UndoWatch>>,
    mut report: impl FnMut(ProcessEvent<'_>) + Send,
) {
    let mut buffer = vec![0; READ_BUFFER_SIZE];
    let mut text = String::new();
    let mut decoder = Utf8Decoder::default();
    let mut open = true;
    let mut runs = true;
    let mut stopping = false;
    {
        let exited = group.wait();
        tokio::pin!(exited);
        while runs || !stopping {
            tokio::select! {
                // In this order, so that endless output delays neither the exit nor a stop.
                biased;
                _ = stopped.changed(), if !stopping => {
                    stopping = true;
                    group.kill();
                }
                exit = &mut exited, if runs => {
                    runs = false;
                    // All output of the process is in the pipe by now. Do not wait for output of other processes, which can hold
                    // the pipe open forever.
                    let mut drained = 0;
                    while open && drained < MAX_PIPE_SIZE {
                        match pipe.read_available(&mut buffer).await {
                            Some(0) => open = false,
                            Some(read) => {
                                drained += read;
                                decode_output(&mut decoder, buffer.get(..read), &mut text, &mut report);
                            }
                            None => break,
                        }
                    }
                    finish_output(&mut decoder, &mut text, &mut report);
                    // Undo first, because a caller that waits for the exit may be about to run the changed files.
                    if let Some(undone) = undo(watch.clone()).await {
                        report(ProcessEvent::UndoReport(&undone));
                    }
                    report(ProcessEvent::Exited(&exit));
                    exits.send_replace(Some(exit));
                }
                read = pipe.read(&mut buffer), if open && !stopping => match read {
                    Ok(read) if read > 0 => {
                        decode_output(&mut decoder, buffer.get(..read), &mut text, &mut report);
                    }
                    _ => {
                        open = false;
                        finish_output(&mut decoder, &mut text, &mut report);
                    }
                },
                // The killed process hangs in the kernel. Give up.
                () = tokio::time::sleep(KILL_TIMEOUT), if stopping => break,
            }
        }
    }
    group.finish().await;
    // Other processes that it left running may have made further changes.
    if let Some(watch) = watch {
        let undone = tokio::task::spawn_blocking(move || watch.finish());
        if let Some(undone) = undone.await.unwrap_or_default() {
            report(ProcessEvent::UndoReport(&undone));
        }
    }
    report(ProcessEvent::GroupEnded);
}

async fn undo(watch: Option<Arc<UndoWatch>>) -> Option<String> {
    let watch = watch?;
    let undone = tokio::task::spawn_blocking(move || watch.undo());
    undone.await.unwrap_or_default()
}

fn decode_output(
    decoder: &mut Utf8Decoder,
    bytes: Option<&[u8]>,
    text: &mut String,
    report: &mut impl FnMut(ProcessEvent<'_>),
) {
    text.clear();
    decoder.decode(bytes.unwrap_or_default(), text);
    if !text.is_empty() {
        report(ProcessEvent::Text(text));
    }
}

fn finish_output(
    decoder: &mut Utf8Decoder,
    text: &mut String,
    report: &mut impl FnMut(ProcessEvent<'_>),
) {
    text.clear();
    decoder.finish(text);
    if !text.is_empty() {
        report(ProcessEvent::Text(text));
    }
}
