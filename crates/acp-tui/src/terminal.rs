//! The person's terminal: taken for as long as the chat lasts, and given back whatever happens.

use std::io::{self, Stdout, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture, Event,
    EventStream, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags,
    PushKeyboardEnhancementFlags,
};
use crossterm::terminal::{self, EnterAlternateScreen, LeaveAlternateScreen, SetTitle};
use crossterm::{cursor, execute, queue};
use futures_util::StreamExt;
use ratatui::backend::CrosstermBackend;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// What was changed about the terminal, so that a panic can undo it.
static TAKEN: AtomicBool = AtomicBool::new(false);

static HOOK: Once = Once::new();

/// How much that was typed waits at most.
const TYPED: usize = 256;

/// The terminal, with ratatui's picture of it.
pub(crate) struct Screen {
    terminal: ratatui::Terminal<CrosstermBackend<Stdout>>,
    typed: Typed,
    mouse: bool,
    title: String,
}

impl Screen {
    /// Takes the terminal.
    pub(crate) fn take(mouse: bool) -> io::Result<Self> {
        HOOK.call_once(|| {
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                report(panic);
            }));
        });
        enter(mouse)?;
        let terminal = ratatui::Terminal::new(CrosstermBackend::new(io::stdout()));
        match terminal {
            Ok(terminal) => Ok(Self {
                terminal,
                typed: Typed::read(),
                mouse,
                title: String::new(),
            }),
            Err(e) => {
                give_back();
                Err(e)
            }
        }
    }

    /// Draws, with what the terminal is told in between kept together, so that nothing flickers.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut ratatui::Frame<'_>)) -> io::Result<()> {
        queue!(io::stdout(), terminal::BeginSynchronizedUpdate)?;
        let drawn = self.terminal.draw(draw).map(drop);
        execute!(io::stdout(), terminal::EndSynchronizedUpdate)?;
        drawn
    }

    /// Draws everything again, for the terminal shows something else.
    ///
    /// `clear` of ratatui asks the terminal where its cursor is, and fails if the answer is read as something typed.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        execute!(io::stdout(), terminal::Clear(terminal::ClearType::All))?;
        // The picture to compare with becomes an empty one.
        self.terminal.swap_buffers();
        Ok(())
    }

    /// The title of the terminal's window.
    pub(crate) fn set_title(&mut self, title: &str) -> io::Result<()> {
        if self.title != title {
            title.clone_into(&mut self.title);
            execute!(io::stdout(), SetTitle(title))?;
        }
        Ok(())
    }

    /// Gives the terminal back for a while: another program reads what is typed.
    pub(crate) async fn leave(&mut self) {
        self.typed.stop().await;
        give_back();
    }

    /// Takes it again.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        enter(self.mouse)?;
        self.typed = Typed::read();
        self.forget()
    }

    /// What is typed next; `None` if nothing will be any more.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.typed.events.recv().await
    }

    /// What has been typed already.
    pub(crate) fn next_now(&mut self) -> Option<Event> {
        self.typed.events.try_recv().ok()
    }

    /// Rings.
    pub(crate) fn bell(&mut self) -> io::Result<()> {
        let mut out = io::stdout();
        out.write_all(b"\x07")?;
        out.flush()
    }

    /// Puts text on the clipboard, where the terminal lets programs do so (OSC 52).
    pub(crate) fn copy(&mut self, text: &str) -> io::Result<()> {
        execute!(
            io::stdout(),
            crossterm::clipboard::CopyToClipboard::to_clipboard_from(text)
        )
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// What is typed, read by a task of its own: so it can be looked at without waiting for it.
struct Typed {
    events: mpsc::Receiver<Event>,
    task: JoinHandle<()>,
}

impl Typed {
    fn read() -> Self {
        let (sender, events) = mpsc::channel(TYPED);
        let task = tokio::spawn(async move {
            let mut stream = EventStream::new();
            while let Some(Ok(event)) = stream.next().await {
                if sender.send(event).await.is_err() {
                    return;
                }
            }
        });
        Self { events, task }
    }

    /// Reads no more; when this returns, what is typed is for others.
    async fn stop(&mut self) {
        self.task.abort();
        // That it was aborted is what was wanted.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Typed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn enter(mouse: bool) -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    terminal::enable_raw_mode()?;
    let mut out = io::stdout();
    execute!(out, EnterAlternateScreen, EnableBracketedPaste)?;
    // Shift-Enter can be told from Enter then. Terminals that do not know it ignore it.
    execute!(
        out,
        PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES)
    )?;
    if mouse {
        execute!(out, EnableMouseCapture)?;
    }
    Ok(())
}

/// Puts the terminal into the state it was found in. Does nothing the second time.
fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    // Each by itself: where one does not work the others still may.
    let _ = execute!(out, DisableMouseCapture);
    let _ = execute!(out, PopKeyboardEnhancementFlags);
    let _ = execute!(
        out,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = terminal::disable_raw_mode();
}
