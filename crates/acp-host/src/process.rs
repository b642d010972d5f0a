//! A process that runs: its group, its output as it arrives, its end.

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

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessExit {
    /// Its exit code; absent when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it, such as `SIGKILL`.
    pub signal: Option<String>,
}

impl ProcessExit {
    /// It has ended, and nobody knows how.
    pub(crate) fn unknown() -> Self {
        Self {
            code: None,
            signal: None,
        }
    }

    /// Whether it ended with exit code 0.
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
        // Windows has exit codes beyond what is positive here, and means them unsigned.
        status.exit_code = exit.code.map(i32::cast_unsigned);
        status.signal.clone_from(&exit.signal);
        status
    }
}

/// What happens to a process, in this order, except that text may also come after the exit: from
/// processes that it has left running.
#[derive(Debug)]
pub(crate) enum ProcessEvent<'a> {
    /// It runs. Reported before [`RunningProcess::start`] returns.
    Started,
    /// It printed something. Never empty.
    Text(&'a str),
    /// Something that it did was undone: what there is to say of that.
    UndoReport(&'a str),
    /// It ended, and all that it printed was reported.
    Exited(&'a ProcessExit),
    /// Its whole group has ended, or been ended. Nothing follows.
    GroupEnded,
}

/// How much is read at once, in bytes.
const PIECE: usize = 16 * 1024;

/// No pipe holds more than that for a process without special rights, in bytes.
const LARGEST_PIPE: usize = 1024 * 1024;

/// How long a killed process may take to be seen as ended.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// A process that was started. One task follows it and reports what happens; dropping this ends the
/// process with its group.
#[derive(Debug)]
pub(crate) struct RunningProcess {
    group: Arc<ProcessGroup>,
    /// The exit; closed when the group has ended.
    exit_receiver: watch::Receiver<Option<ProcessExit>>,
    /// Ends it; being dropped does, too.
    stop_sender: watch::Sender<bool>,
    watch: Option<Arc<UndoWatch>>,
}

impl RunningProcess {
    /// Starts `command`, in a sandbox if there is one, whose output comes through `output`, and reports to
    /// `report`. What `watch` finds is undone when it has ended. That is called within a task: it must not block. `command` must hold every writing end of
    /// that pipe.
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

    /// Undoes what it has changed of the files that other programs obey, if it is in a sandbox where it could. What
    /// there is to say of that, if anything.
    pub(crate) fn undo(&self) -> impl Future<Output = Option<String>> + Send + use<> {
        undo(self.watch.clone())
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.group.id()
    }

    /// How it ended, if it has.
    pub(crate) fn try_exit(&self) -> Option<ProcessExit> {
        self.exit_receiver.borrow().clone()
    }

    /// Waits for its end, or rather until all that it printed before was reported. `None` if that will
    /// never be known: the runtime shuts down, or the process cannot be killed.
    pub(crate) fn wait(&self) -> impl Future<Output = Option<ProcessExit>> + Send + use<> {
        let mut exit = self.exit_receiver.clone();
        async move {
            exit.wait_for(Option::is_some)
                .await
                .ok()
                .and_then(|exit| exit.clone())
        }
    }

    /// Asks the group to end, and whoever has left it.
    pub(crate) async fn terminate(&self) {
        self.group.terminate().await;
    }

    /// Ends the group.
    pub(crate) fn kill(&self) {
        self.group.kill();
    }

    /// Waits, at most this long, until no process runs that is in the group or has left it. Returns
    /// whether that is so.
    pub(crate) async fn wait_empty(&self, patience: Duration) -> bool {
        self.group.wait_empty(patience).await
    }

    /// Ends the group and whoever has left it, and waits for that, at most this long.
    pub(crate) async fn kill_and_wait(&self, patience: Duration) {
        self.group.kill_and_wait(patience).await;
    }

    /// Ends the group and stops following it. The rest is done by the task, whatever happens to the
    /// caller; [`wait_finished`](Self::wait_finished) waits for it.
    pub(crate) fn stop(&self) {
        self.group.kill();
        self.stop_sender.send_replace(true);
    }

    /// Waits until the group is gone and all was reported.
    pub(crate) fn wait_finished(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut exit = self.exit_receiver.clone();
        async move { while exit.changed().await.is_ok() {} }
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        // Now, and not only when the task gets its turn: the runtime may be going away.
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
    let mut buffer = vec![0; PIECE];
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
                // In this order, so that endless output keeps neither the end nor a stop waiting.
                biased;
                _ = stopped.changed(), if !stopping => {
                    stopping = true;
                    group.kill();
                }
                exit = &mut exited, if runs => {
                    runs = false;
                    // All that it printed is in the pipe by now. What other processes may add to
                    // that is not waited for: they can hold the pipe open for ever.
                    let mut drained = 0;
                    while open && drained < LARGEST_PIPE {
                        match pipe.read_now(&mut buffer).await {
                            Some(0) => open = false,
                            Some(read) => {
                                drained += read;
                                decode_output(&mut decoder, buffer.get(..read), &mut text, &mut report);
                            }
                            None => break,
                        }
                    }
                    finish_output(&mut decoder, &mut text, &mut report);
                    // Whoever waits for the exit may be about to run what was changed.
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
                // It was killed and does not end: it hangs in the kernel, and is given up.
                () = tokio::time::sleep(KILL_PATIENCE), if stopping => break,
            }
        }
    }
    group.finish().await;
    // Others that it had left running may have gone on.
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
