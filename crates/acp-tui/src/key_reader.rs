//! Reads the terminal's input on a separate thread.
//!
//! A task would not do: when the terminal has been closed, crossterm tries to read from it forever and blocks the
//! thread. Other tasks of the runtime on that thread would not run, and the runtime would not shut down. A separate
//! thread ends with the process.

use std::time::Duration;

use crossterm::event::{Event, EventStream};
use futures_util::StreamExt;
use tokio::sync::{mpsc, oneshot};

/// The capacity of the event buffer.
const EVENT_CAPACITY: usize = 256;

/// The time limit for stopping the reader. It is exceeded only if the terminal has been closed.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// A reader of the terminal's input events.
pub(crate) struct KeyReader {
    events: mpsc::Receiver<Event>,
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

    /// Starts reading input. Returns the events in `before` first.
    ///
    /// If no thread can be started, the input ends at once.
    pub(crate) fn start(before: Vec<Event>) -> Self {
        let (sender, events) = mpsc::channel(EVENT_CAPACITY);
        let (stop, stopping) = oneshot::channel::<()>();
        let (ended, stopped) = oneshot::channel();
        let reading = async move {
            tokio::select! {
                _ = stopping => {}
                () = forward_events(before, sender) => {}
            }
        };
        let thread = std::thread::Builder::new().name("typed".to_owned());
        let begun = thread.spawn(move || {
            if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() {
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
    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// Returns an event that has already been read, if any. Never waits.
    pub(crate) fn try_next(&mut self) -> Option<Event> {
        self.events.try_recv().ok()
    }

    /// Stops reading, and waits for the thread to end so that other programs can read the input.
    pub(crate) async fn stop(&mut self) {
        self.stop = None;
        let _ = tokio::time::timeout(STOP_TIMEOUT, &mut self.stopped).await;
    }
}

async fn forward_events(before: Vec<Event>, sender: mpsc::Sender<Event>) {
    for event in before {
        if sender.send(event).await.is_err() {
            return;
        }
    }
    let mut stream = EventStream::new();
    while let Some(Ok(event)) = stream.next().await {
        if sender.send(event).await.is_err() {
            return;
        }
    }
}
