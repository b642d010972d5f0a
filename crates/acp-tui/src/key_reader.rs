//! What is typed.
//!
//! It is read on a thread of its own, and not by a task: where the terminal is gone, crossterm tries to read from it for
//! ever without letting go of the thread, and nothing else that the runtime has given to that thread would be done, nor
//! would the runtime end. A thread of our own ends with the process.

use std::time::Duration;

use crossterm::event::{Event, EventStream};
use futures_util::StreamExt;
use tokio::sync::{mpsc, oneshot};

/// How much that was typed waits at most.
const WAITING: usize = 256;

/// How long reading may take to end. It takes longer only if there is nothing left to be read from.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is typed, which can be looked at without waiting for it.
pub(crate) struct KeyReader {
    events: mpsc::Receiver<Event>,
    /// Dropped to end it.
    stop: Option<oneshot::Sender<()>>,
    /// Told when it has ended.
    stopped: oneshot::Receiver<()>,
}

impl KeyReader {
    /// Nothing is read.
    pub(crate) fn none() -> Self {
        Self {
            events: mpsc::channel(1).1,
            stop: None,
            stopped: oneshot::channel().1,
        }
    }

    /// Reads what is typed, behind what was typed before. Without a thread to read it, it has ended at once.
    pub(crate) fn read(before: Vec<Event>) -> Self {
        let (sender, events) = mpsc::channel(WAITING);
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

    /// What is typed next; `None` if nothing will be any more.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// What has been typed already.
    pub(crate) fn next_now(&mut self) -> Option<Event> {
        self.events.try_recv().ok()
    }

    /// Reads no more; when this returns, what is typed is for others.
    pub(crate) async fn stop(&mut self) {
        self.stop = None;
        let _ = tokio::time::timeout(PATIENCE, &mut self.stopped).await;
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
