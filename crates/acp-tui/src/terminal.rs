//! Takes over the user's terminal while the chat runs, and always restores it.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};

use acp_config::Background;
use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste,
    EnableFocusChange, EnableMouseCapture, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags,
    PushKeyboardEnhancementFlags,
};
use crossterm::terminal::{self, EnterAlternateScreen, LeaveAlternateScreen, SetTitle};
use crossterm::{cursor, execute, queue};
use ratatui::backend::CrosstermBackend;

use crate::background_report::{BACKGROUND_QUERY, PendingReply};
use crate::images::{ImageCanvas, ImageSupport, PixelSize, detect_support, is_guarded, kitty};
use crate::key_reader::{KeyReader, TerminalInput};
use crate::notification::{DesktopNotification, Notifier};
use crate::setup::ChatSetup;
use crate::terminal_query::{self, TerminalQueries};
use crate::theme::Colors;

/// Whether the panic hook must restore the terminal because its state has been changed.
static TERMINAL_NEEDS_RESTORE: AtomicBool = AtomicBool::new(false);

static PANIC_HOOK: Once = Once::new();

/// The size of the output buffer, in bytes.
const OUTPUT_BUFFER_SIZE: usize = 32 * 1024;

/// The user's terminal while the chat runs, including ratatui's copy of its contents.
pub(crate) struct ChatTerminal {
    terminal: ratatui::Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    key_reader: KeyReader,
    /// The terminal's image support, as far as known.
    image_support: ImageSupport,
    /// The cell size that the terminal reported.
    cell_size: Option<PixelSize>,
    mouse: bool,
    /// What the terminal was asked at the start.
    queries: TerminalQueries,
    /// Whether the terminal has reported its background.
    reports_background: bool,
    pending_reply: Arc<PendingReply>,
    notifier: Notifier,
    title: String,
}

impl ChatTerminal {
    /// Takes over the terminal. Call [`Self::start_input`] to start reading input.
    pub(crate) fn take(setup: &ChatSetup) -> io::Result<Self> {
        let (mouse, colors) = (
            setup.mouse,
            setup.themes.for_background(setup.background).colors,
        );
        PANIC_HOOK.call_once(|| {
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                if is_guarded() {
                    return;
                }
                restore_terminal();
                report(panic);
            }));
        });
        set_up_terminal(mouse)?;
        let variable = |name: &str| std::env::var(name).ok();
        let images = detect_support(setup.images, colors, cell_size(), variable);
        let queries = TerminalQueries {
            background: can_query(colors, variable("TERM").as_deref()),
            images: matches!(
                images,
                ImageSupport::QuerySixel(_) | ImageSupport::QueryCellSize(_)
            ),
        };
        queries.send(&mut io::stdout())?;
        // Draws with one large write or a few, rather than with one per kilobyte.
        let out = BufWriter::with_capacity(OUTPUT_BUFFER_SIZE, io::stdout());
        let terminal = ratatui::Terminal::new(CrosstermBackend::new(out));
        match terminal {
            Ok(terminal) => Ok(Self {
                terminal,
                key_reader: KeyReader::empty(),
                image_support: images,
                cell_size: None,
                mouse,
                queries,
                reports_background: false,
                pending_reply: Arc::default(),
                notifier: Notifier::detect(setup.notify, variable),
                title: String::new(),
            }),
            Err(e) => {
                restore_terminal();
                Err(e)
            }
        }
    }

    /// Starts reading input and returns the terminal's background, if it has reported one. The canvas for images is then
    /// known, too.
    ///
    /// If the terminal was sent queries, waits briefly for the replies.
    pub(crate) async fn start_input(&mut self) -> Option<Background> {
        let heard = match self.queries.is_any() {
            true => tokio::task::spawn_blocking(terminal_query::read_replies).await,
            false => Ok(Default::default()),
        };
        // The task does not panic, and a runtime that is shutting down has nothing left to show.
        let (answer, typed) = heard.unwrap_or_default();
        if self.queries.background && !answer.is_complete {
            // Over a slow network, the replies may still come.
            self.pending_reply.expect();
        }
        self.reports_background = answer.background.is_some();
        self.key_reader = KeyReader::start(typed, Arc::clone(&self.pending_reply));
        self.image_support = self.image_support.with_reply(answer);
        self.cell_size = answer.cell;
        answer.background
    }

    /// Asks the terminal for its background, if it has reported it before. The report arrives as input.
    pub(crate) fn ask_background(&mut self) -> io::Result<()> {
        if !self.reports_background {
            return Ok(());
        }
        self.pending_reply.expect();
        let mut out = io::stdout();
        out.write_all(BACKGROUND_QUERY)?;
        out.flush()
    }

    /// Returns the canvas for images. Call this again when the terminal's size or font may have changed.
    pub(crate) fn canvas(&self) -> Option<ImageCanvas> {
        match self.image_support {
            ImageSupport::Known(way) => {
                way.map(|way| ImageCanvas::new(way, cell_size().or(self.cell_size)))
            }
            ImageSupport::QuerySixel(_) | ImageSupport::QueryCellSize(_) => None,
        }
    }

    /// Draws a frame inside a synchronized update, which avoids flicker.
    pub(crate) fn draw(
        &mut self,
        draw: impl FnOnce(&mut ratatui::Frame<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        queue!(
            self.terminal.backend_mut(),
            terminal::BeginSynchronizedUpdate
        )?;
        let drawn = self.terminal.try_draw(draw).map(drop);
        execute!(self.terminal.backend_mut(), terminal::EndSynchronizedUpdate)?;
        drawn
    }

    /// Clears the screen so that the next frame redraws everything.
    ///
    /// ratatui's `clear` queries the cursor's position, and fails if the key reader reads the response.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        kitty::delete_all_images(&mut io::stdout())?;
        execute!(io::stdout(), terminal::Clear(terminal::ClearType::All))?;
        // The buffer to compare with becomes an empty buffer.
        self.terminal.swap_buffers();
        Ok(())
    }

    /// Sets the title of the terminal window.
    pub(crate) fn set_title(&mut self, title: &str) -> io::Result<()> {
        if self.title != title {
            title.clone_into(&mut self.title);
            execute!(io::stdout(), SetTitle(title))?;
        }
        Ok(())
    }

    /// Temporarily restores the terminal, so that another program can use it and read its input.
    pub(crate) async fn suspend(&mut self) {
        self.key_reader.stop().await;
        restore_terminal();
    }

    /// Takes over the terminal again after [`suspend`](Self::suspend).
    pub(crate) fn resume(&mut self) -> io::Result<()> {
        set_up_terminal(self.mouse)?;
        self.key_reader = KeyReader::start(Vec::new(), Arc::clone(&self.pending_reply));
        self.clear()
    }

    /// Returns the next input event, or `None` at the end of the input.
    pub(crate) async fn next(&mut self) -> Option<TerminalInput> {
        let input = self.key_reader.next().await;
        self.note_report(input.as_ref());
        input
    }

    /// Returns an input event that has already been read, if any.
    pub(crate) fn try_next(&mut self) -> Option<TerminalInput> {
        let input = self.key_reader.try_next();
        self.note_report(input.as_ref());
        input
    }

    /// Remembers that the terminal reports its background, so that it can be asked again.
    fn note_report(&mut self, input: Option<&TerminalInput>) {
        self.reports_background |= matches!(input, Some(TerminalInput::Background(_)));
    }

    /// Calls the user back to the terminal.
    pub(crate) fn notify(&mut self, notification: &DesktopNotification) -> io::Result<()> {
        let mut out = io::stdout();
        out.write_all(&self.notifier.render(notification))?;
        out.flush()
    }

    /// Rings the bell.
    pub(crate) fn ring_bell(&mut self) -> io::Result<()> {
        let mut out = io::stdout();
        out.write_all(b"\x07")?;
        out.flush()
    }

    /// Copies text to the clipboard, if the terminal allows it (OSC 52).
    pub(crate) fn copy_to_clipboard(&mut self, text: &str) -> io::Result<()> {
        execute!(
            io::stdout(),
            crossterm::clipboard::CopyToClipboard::to_clipboard_from(text)
        )
    }
}

impl Drop for ChatTerminal {
    fn drop(&mut self) {
        restore_terminal();
    }
}

/// The sequence that saves the state of alternate scroll (mode 1007) and turns the mode off.
///
/// If the mode is on and the program does not use the mouse, many terminals send arrow keys for the wheel on the
/// alternate screen. The wheel would then move through the prompt history.
const SAVE_ALTERNATE_SCROLL: &[u8] = b"\x1b[?1007s\x1b[?1007l";

/// The sequence that turns alternate scroll on and then restores its saved state.
///
/// Most terminals that cannot save the state start with it on.
const RESTORE_ALTERNATE_SCROLL: &[u8] = b"\x1b[?1007h\x1b[?1007r";

fn set_up_terminal(mouse: bool) -> io::Result<()> {
    TERMINAL_NEEDS_RESTORE.store(true, Ordering::SeqCst);
    terminal::enable_raw_mode()?;
    let mut out = io::stdout();
    execute!(
        out,
        EnterAlternateScreen,
        EnableBracketedPaste,
        EnableFocusChange
    )?;
    // Allows the chat to distinguish Shift-Enter from Enter. Terminals that do not support this ignore it.
    execute!(
        out,
        PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES)
    )?;
    out.write_all(SAVE_ALTERNATE_SCROLL)?;
    if mouse {
        execute!(out, EnableMouseCapture)?;
    }
    out.flush()
}

/// Restores the terminal to its original state, unless that has been done already.
fn restore_terminal() {
    if !TERMINAL_NEEDS_RESTORE.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    let _ = kitty::delete_all_images(&mut out);
    // Each step is on its own, so that the others may still succeed if one fails.
    let _ = execute!(out, DisableMouseCapture);
    let _ = execute!(out, DisableFocusChange);
    let _ = execute!(out, PopKeyboardEnhancementFlags);
    let _ = out.write_all(RESTORE_ALTERNATE_SCROLL);
    let _ = execute!(
        out,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = terminal::disable_raw_mode();
}

/// Returns whether to ask the terminal for its background. Without colors, it does not matter. The Linux console and
/// terminals that are called `dumb` do not understand the query.
fn can_query(colors: Colors, term: Option<&str>) -> bool {
    cfg!(unix) && colors != Colors::None && !matches!(term, None | Some("linux" | "dumb"))
}

/// Returns the size of a cell in pixels, if the system reports it.
fn cell_size() -> Option<PixelSize> {
    let size = terminal::window_size().ok()?;
    let pixels = |all: u16, cells: u16| all.checked_div(cells).filter(|pixels| *pixels > 0);
    Some(PixelSize {
        width: pixels(size.width, size.columns)?.into(),
        height: pixels(size.height, size.rows)?.into(),
    })
}
