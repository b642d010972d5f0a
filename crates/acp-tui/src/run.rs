//! Runs the main loop, which receives events, updates the state, performs effects and redraws when necessary.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::Event;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::app::{App, ChatEffect, ChatEvent};
use crate::effects::EffectWorker;
use crate::key_reader::TerminalInput;
use crate::setup::{ChatSetup, ResumableSession};
use crate::terminal::ChatTerminal;
use crate::text::highlight;

/// The capacity of the event channel. Senders wait while it is full.
const EVENT_CAPACITY: usize = 256;

/// The minimum time between frames, except for changes caused by user input.
const FRAME_INTERVAL: Duration = Duration::from_millis(16);

/// The delay between a frame and laying out more of a long text. It leaves time for other work.
const LAYOUT_DELAY: Duration = Duration::from_millis(4);

/// The interval between two animation steps.
const TICK_INTERVAL: Duration = Duration::from_millis(100);

/// The maximum number of events to handle before redrawing the screen.
const MAX_EVENTS_PER_FRAME: usize = 64;

/// An error that ended the chat or prevented it from starting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The terminal cannot be used.
    #[error("cannot use the terminal: {0}")]
    Terminal(#[from] io::Error),
    /// No agent is configured.
    #[error("no agent configured")]
    NoAgent,
}

/// Runs a chat until the user quits or the terminal is closed. Returns the sessions that can be continued.
///
/// # Errors
/// Fails if the terminal cannot be used or no agent is configured.
pub async fn run_chat(setup: ChatSetup) -> Result<Vec<ResumableSession>, ChatError> {
    if setup.agents.is_empty() {
        return Err(ChatError::NoAgent);
    }
    let wake = Arc::new(Notify::new());
    let (sender, mut events) = mpsc::channel(EVENT_CAPACITY);
    let mut screen = ChatTerminal::take(&setup)?;
    let (mut app, effects) = App::new(setup, Arc::clone(&wake));
    let mut resized = ResizeListener::listen()?;
    let mut worker = EffectWorker::new(sender, Arc::clone(app.environment()));
    for effect in effects {
        worker.perform(effect, &mut screen).await?;
    }
    let mut ended = listen_for_signals()?;
    let mut begun = false;
    let mut drawn = Instant::now();
    // The first drawing is due at once.
    let mut due = Some(drawn);
    let mut tick = tokio::time::interval(TICK_INTERVAL);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while !app.should_quit() {
        if due.is_some_and(|due| due <= Instant::now()) {
            for effect in app.collect_notes_and_questions() {
                worker.perform(effect, &mut screen).await?;
            }
            draw(&mut app, &mut screen)?;
            drawn = Instant::now();
            due = None;
            for task in app.take_decode_tasks() {
                worker
                    .perform(ChatEffect::DecodeImage(task), &mut screen)
                    .await?;
            }
            // Wait only after the first frame, which must not be delayed.
            if !std::mem::replace(&mut begun, true) {
                let background = screen.start_input().await;
                app.set_canvas(screen.canvas());
                if let Some(background) = background {
                    app.update(ChatEvent::BackgroundReported(background));
                    due = Some(Instant::now());
                }
            }
            if app.is_unfinished() && due.is_none() {
                due = Some(drawn + LAYOUT_DELAY);
            }
        }
        let moving = app.is_animated();
        let event = tokio::select! {
            biased;
            () = ended.recv() => Some(ChatEvent::Quit),
            input = screen.next() => match input {
                Some(input) => to_chat_event(input),
                // The input has ended.
                None => Some(ChatEvent::Quit),
            },
            () = resized.recv() => Some(ChatEvent::Resized),
            event = events.recv() => event,
            () = sleep_until_due(due) => None,
            () = wake.notified() => Some(ChatEvent::Woken),
            () = highlight::wait_for_highlights() => Some(ChatEvent::Woken),
            _ = tick.tick(), if moving => Some(ChatEvent::Tick),
        };
        let Some(event) = event else { continue };
        if matches!(event, ChatEvent::Resized) {
            app.set_canvas(screen.canvas());
        }
        let typed = matches!(
            event,
            ChatEvent::Key(_) | ChatEvent::Paste(_) | ChatEvent::Mouse(_) | ChatEvent::Resized
        );
        let soon = if typed {
            Instant::now()
        } else {
            drawn + FRAME_INTERVAL
        };
        due = Some(due.map_or(soon, |due| due.min(soon)));
        let mut effects = app.update(event);
        effects.extend(update_with_pending_input(&mut app, &mut screen));
        for effect in effects {
            worker.perform(effect, &mut screen).await?;
        }
    }
    // The user gets the terminal back before the agents have exited.
    drop(screen);
    let sessions = app.resumable_sessions();
    worker.end(&app).await;
    Ok(sessions)
}

/// Handles the event, and all input that has arrived since, so that a single frame shows every change.
fn update_with_pending_input(app: &mut App, screen: &mut ChatTerminal) -> Vec<ChatEffect> {
    let mut effects = Vec::new();
    for _ in 0..MAX_EVENTS_PER_FRAME {
        let Some(input) = screen.try_next() else {
            break;
        };
        if let Some(event) = to_chat_event(input) {
            if matches!(event, ChatEvent::Resized) {
                app.set_canvas(screen.canvas());
            }
            effects.extend(app.update(event));
        }
    }
    effects
}

fn draw(app: &mut App, screen: &mut ChatTerminal) -> io::Result<()> {
    let title = app.window_title();
    screen.set_title(&title)?;
    screen.draw(|frame| {
        let area = frame.area();
        let cursor = app.draw(area, frame.buffer_mut());
        if let Some(cursor) = cursor {
            frame.set_cursor_position(cursor);
        }
        // Images are sent before the cells that show them.
        app.images().send(&mut io::stdout())
    })
}

/// Converts terminal input to an event. Returns `None` for input that the chat does not use.
fn to_chat_event(input: TerminalInput) -> Option<ChatEvent> {
    let event = match input {
        TerminalInput::Background(background) => {
            return Some(ChatEvent::BackgroundReported(background));
        }
        TerminalInput::Event(event) => event,
    };
    match event {
        Event::Key(key) => Some(ChatEvent::Key(key)),
        Event::Paste(text) => Some(ChatEvent::Paste(text)),
        Event::Mouse(mouse) => Some(ChatEvent::Mouse(mouse)),
        Event::Resize(..) => Some(ChatEvent::Resized),
        Event::FocusGained => Some(ChatEvent::FocusChanged { is_focused: true }),
        Event::FocusLost => Some(ChatEvent::FocusChanged { is_focused: false }),
    }
}

async fn sleep_until_due(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// A listener for changes in the terminal's size.
///
/// The key reader also reports them, but not if a key was pressed at the same time: it reads the key, and then waits
/// for a signal that has already arrived.
struct ResizeListener {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
}

impl ResizeListener {
    fn listen() -> io::Result<Self> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let signal = signal(SignalKind::window_change())?;
            Ok(Self { signal })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    async fn recv(&mut self) {
        #[cfg(unix)]
        if self.signal.recv().await.is_some() {
            return;
        }
        std::future::pending::<()>().await;
    }
}

/// A listener for the signals that ask the process to terminate.
struct SignalListener {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminal_closed: tokio::sync::oneshot::Receiver<()>,
}

fn listen_for_signals() -> io::Result<SignalListener> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(SignalListener {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            terminal_closed: watch_terminal_close(),
        })
    }
    #[cfg(not(unix))]
    Ok(SignalListener {})
}

/// Returns a receiver that resolves when the terminal is closed. It is needed because only processes in the terminal's
/// session get a signal for that.
#[cfg(unix)]
fn watch_terminal_close() -> tokio::sync::oneshot::Receiver<()> {
    use rustix::event::{PollFd, PollFlags, poll};

    let (gone, told) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().name("terminal".to_owned());
    let begun = thread.spawn(move || {
        let stdin = rustix::stdio::stdin();
        // No events are requested, because hangups and errors are always reported.
        let mut watched = [PollFd::new(&stdin, PollFlags::empty())];
        loop {
            match poll(&mut watched, None) {
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                // This system cannot poll terminals.
                Err(_) => std::thread::park(),
            }
        }
        let _ = gone.send(());
    });
    if let Err(error) = begun {
        tracing::warn!(%error, "cannot detect when the terminal is closed; relying on signals");
    }
    told
}

impl SignalListener {
    async fn recv(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
            Ok(()) = &mut self.terminal_closed => {}
        }
        #[cfg(not(unix))]
        std::future::pending::<()>().await;
    }
}
