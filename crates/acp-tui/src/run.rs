//! The loop: events in, state changed, effects out, and a drawing when there is a reason for one.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::Event as Input;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::app::{App, Effect, Event};
use crate::setup::Setup;
use crate::terminal::Screen;
use crate::text::highlight;
use crate::worker::Worker;

/// How many events wait at most. Who has another one waits.
const EVENTS: usize = 256;

/// How long a drawing stays at least, where what changed is not what the person has typed.
const FRAME: Duration = Duration::from_millis(16);

/// How soon after a drawing more is laid out of what was too long to be laid out at once. As much time is left to
/// others.
const SLICE: Duration = Duration::from_millis(4);

/// How often what moves by itself moves.
const TICK: Duration = Duration::from_millis(100);

/// How many events are taken before what they changed is drawn.
const BATCH: usize = 64;

/// Why a chat could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The terminal cannot be used.
    #[error("the terminal cannot be used: {0}")]
    Terminal(#[from] io::Error),
    /// There is no agent to talk to.
    #[error("there is no agent to talk to")]
    NoAgent,
}

/// Runs a chat until the person ends it, or the terminal is closed.
///
/// # Errors
/// The terminal cannot be used.
pub async fn run(setup: Setup) -> Result<(), ChatError> {
    if setup.agents.is_empty() {
        return Err(ChatError::NoAgent);
    }
    let wake = Arc::new(Notify::new());
    let (sender, mut events) = mpsc::channel(EVENTS);
    let mut screen = Screen::take(setup.mouse, setup.images, setup.theme.colors)?;
    let (mut app, effects) = App::new(setup, Arc::clone(&wake));
    let mut resized = Resized::listen()?;
    let mut worker = Worker::new(sender, Arc::clone(app.around()));
    for effect in effects {
        worker.perform(effect, &mut screen).await?;
    }
    let mut ended = ended_from_outside()?;
    let mut begun = false;
    let mut drawn = Instant::now();
    // The first drawing has the best reason there is.
    let mut due = Some(drawn);
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while !app.is_done() {
        if due.is_some_and(|due| due <= Instant::now()) {
            app.collect();
            draw(&mut app, &mut screen)?;
            drawn = Instant::now();
            due = None;
            for task in app.images_wanted() {
                worker.perform(Effect::Decode(task), &mut screen).await?;
            }
            // Behind the first drawing, which must not wait for it.
            if !std::mem::replace(&mut begun, true) {
                app.set_canvas(screen.listen().await);
            }
            if app.is_unfinished() {
                due = Some(drawn + SLICE);
            }
        }
        let moving = app.is_moving();
        let event = tokio::select! {
            biased;
            () = ended.recv() => Some(Event::Quit),
            input = screen.next() => match input {
                Some(input) => event(input),
                // Nobody will type any more.
                None => Some(Event::Quit),
            },
            () = resized.recv() => Some(Event::Resized),
            event = events.recv() => event,
            () = at(due) => None,
            () = wake.notified() => Some(Event::Woken),
            () = highlight::news() => Some(Event::Woken),
            _ = tick.tick(), if moving => Some(Event::Tick),
        };
        let Some(event) = event else { continue };
        if matches!(event, Event::Resized) {
            app.set_canvas(screen.canvas());
        }
        let typed = matches!(
            event,
            Event::Key(_) | Event::Paste(_) | Event::Mouse(_) | Event::Resized
        );
        let soon = if typed { Instant::now() } else { drawn + FRAME };
        due = Some(due.map_or(soon, |due| due.min(soon)));
        let mut effects = app.update(event);
        // What has come in the meantime is drawn together with it.
        for _ in 0..BATCH {
            let Some(input) = screen.next_now() else {
                break;
            };
            if let Some(event) = crate::run::event(input) {
                if matches!(event, Event::Resized) {
                    app.set_canvas(screen.canvas());
                }
                effects.extend(app.update(event));
            }
        }
        for effect in effects {
            worker.perform(effect, &mut screen).await?;
        }
    }
    // The person has their terminal back before what runs has ended.
    drop(screen);
    worker.end(&app).await;
    Ok(())
}

fn draw(app: &mut App, screen: &mut Screen) -> io::Result<()> {
    let title = app.window_title();
    screen.set_title(&title)?;
    screen.draw(|frame| {
        let area = frame.area();
        let cursor = app.draw(area, frame.buffer_mut());
        if let Some(cursor) = cursor {
            frame.set_cursor_position(cursor);
        }
        // Before the cells that show them.
        app.images().send(&mut io::stdout())
    })
}

/// What the terminal says, as an event; nothing for what is not of interest.
fn event(input: Input) -> Option<Event> {
    match input {
        Input::Key(key) => Some(Event::Key(key)),
        Input::Paste(text) => Some(Event::Paste(text)),
        Input::Mouse(mouse) => Some(Event::Mouse(mouse)),
        Input::Resize(..) => Some(Event::Resized),
        Input::FocusGained | Input::FocusLost => None,
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// That the terminal has another size. What reads keys tells of it as well, but not if a key was pressed in the same
/// moment: it reads that, and then waits for a signal that has been.
struct Resized {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
}

impl Resized {
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

/// The end that is asked for by signals rather than by keys.
struct Ended {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
    #[cfg(unix)]
    gone: tokio::sync::oneshot::Receiver<()>,
}

fn ended_from_outside() -> io::Result<Ended> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Ended {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            gone: terminal_gone(),
        })
    }
    #[cfg(not(unix))]
    Ok(Ended {})
}

/// Told when the terminal is gone, which not everybody is told by a signal: only who belongs to its session.
#[cfg(unix)]
fn terminal_gone() -> tokio::sync::oneshot::Receiver<()> {
    use rustix::event::{PollFd, PollFlags, poll};

    let (gone, told) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().name("terminal".to_owned());
    let begun = thread.spawn(move || {
        let stdin = rustix::stdio::stdin();
        // Nothing is asked for: an end and an error are always told.
        let mut watched = [PollFd::new(&stdin, PollFlags::empty())];
        loop {
            match poll(&mut watched, None) {
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                // A system that cannot watch terminals.
                Err(_) => std::thread::park(),
            }
        }
        let _ = gone.send(());
    });
    if let Err(error) = begun {
        tracing::warn!(%error, "the end of the terminal is only told by a signal");
    }
    told
}

impl Ended {
    async fn recv(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
            Ok(()) = &mut self.gone => {}
        }
        #[cfg(not(unix))]
        std::future::pending::<()>().await;
    }
}
