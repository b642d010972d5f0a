//! Reads the terminal's input on a separate thread.
//!
//! A task would not do: when the terminal has been closed, crossterm tries to read from it forever and blocks the
//! thread. Other tasks of the runtime on that thread would not run, and the runtime would not shut down. A separate
//! thread ends with the process.

use std::sync::Arc;
use std::time::Duration;

use acp_config::Background;
use crossterm::event::{Event, EventStream};
use futures_util::StreamExt;
use tokio::sync::{mpsc, oneshot};

use crate::background_report::{FilterOutcome, HOLD_TIMEOUT, PendingReply, ReportFilter};

/// The capacity of the event buffer.
const EVENT_CAPACITY: usize = 256;

/// The time limit for stopping the reader. It is exceeded only if the terminal has been closed.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// What the terminal has sent.
#[derive(Debug)]
pub(crate) enum TerminalInput {
    /// A key, or another event.
    Event(Event),
    /// A report of the terminal's background.
    Background(Background),
}

/// A reader of the terminal's input events.
pub(crate) struct KeyReader {
    events: mpsc::Receiver<TerminalInput>,
    /// A channel that stops the thread when its sender is dropped.
    stop: Option<oneshot::Sender<()>>,
    /// A receiver that resolves when the thread has stopped.
    stopped: oneshot::Receiver<()>,
}

impl KeyReader {
    /// Creates a reader that never reads anything.
    pub(crate) fn empty() -> Self {
        Self {
            events: mpsc::channel(1).1,
            stop: None,
            stopped: oneshot::channel().1,
        }
    }

    /// Starts reading input. Returns the events in `before` first. `pending` tells whether the terminal may still report
    /// its background.
    ///
    /// If no thread can be started, the input ends at once.
    pub(crate) fn start(before: Vec<Event>, pending: Arc<PendingReply>) -> Self {
        let (sender, events) = mpsc::channel(EVENT_CAPACITY);
        let (stop, stopping) = oneshot::channel::<()>();
        let (ended, stopped) = oneshot::channel();
        let reading = async move {
            tokio::select! {
                _ = stopping => {}
                () = forward_events(before, sender, &pending) => {}
            }
        };
        let thread = std::thread::Builder::new().name("typed".to_owned());
        let begun = thread.spawn(move || {
            if let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
            {
                runtime.block_on(reading);
            }
            let _ = ended.send(());
        });
        if let Err(error) = begun {
            tracing::warn!(%error, "cannot read keyboard input");
        }
        Self {
            events,
            stop: Some(stop),
            stopped,
        }
    }

    /// Returns the next event, or `None` at the end of the input.
    pub(crate) async fn next(&mut self) -> Option<TerminalInput> {
        self.events.recv().await
    }

    /// Returns an event that has already been read, if any. Never waits.
    pub(crate) fn try_next(&mut self) -> Option<TerminalInput> {
        self.events.try_recv().ok()
    }

    /// Stops reading, and waits for the thread to end so that other programs can read the input.
    pub(crate) async fn stop(&mut self) {
        self.stop = None;
        let _ = tokio::time::timeout(STOP_TIMEOUT, &mut self.stopped).await;
    }
}

async fn forward_events(
    before: Vec<Event>,
    sender: mpsc::Sender<TerminalInput>,
    pending: &PendingReply,
) {
    let send = |event| sender.send(TerminalInput::Event(event));
    for event in before {
        if send(event).await.is_err() {
            return;
        }
    }
    let mut stream = EventStream::new();
    let mut filter = ReportFilter::default();
    loop {
        let next = match filter.is_holding() {
            true => tokio::time::timeout(HOLD_TIMEOUT, stream.next()).await,
            false => Ok(stream.next().await),
        };
        let keys = match next {
            Ok(Some(Ok(event))) => match filter.push(event, pending) {
                FilterOutcome::Held => Vec::new(),
                FilterOutcome::Keys(keys) => keys,
                FilterOutcome::Report(background) => {
                    let report = TerminalInput::Background(background);
                    if sender.send(report).await.is_err() {
                        return;
                    }
                    Vec::new()
                }
            },
            Ok(Some(Err(_)) | None) => return,
            Err(_) => filter.release(),
        };
        for key in keys {
            if send(key).await.is_err() {
                return;
            }
        }
    }
}
