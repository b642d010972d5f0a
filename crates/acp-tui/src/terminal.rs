//! The person's terminal: taken for as long as the chat lasts, and given back whatever happens.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use acp_config::Images;
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture, Event,
    KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::terminal::{self, EnterAlternateScreen, LeaveAlternateScreen, SetTitle};
use crossterm::{cursor, execute, queue};
use ratatui::backend::CrosstermBackend;

use crate::images::{ImageCanvas, ImageSupport, PixelSize, detect, is_guarded, kitty, query};
use crate::key_reader::KeyReader;
use crate::theme::Colors;

/// What was changed about the terminal, so that a panic can undo it.
static TAKEN: AtomicBool = AtomicBool::new(false);

static HOOK: Once = Once::new();

/// How much of a drawing is written at once, in bytes.
const DRAWING: usize = 32 * 1024;

/// The terminal, with ratatui's picture of it.
pub(crate) struct ChatTerminal {
    terminal: ratatui::Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    key_reader: KeyReader,
    /// What is known of how it shows images.
    image_support: ImageSupport,
    /// How large it has said that its cells are.
    cell_size: Option<PixelSize>,
    mouse: bool,
    title: String,
}

impl ChatTerminal {
    /// Takes the terminal. What is typed is not read before [`Self::listen`].
    pub(crate) fn take(mouse: bool, images: Images, colors: Colors) -> io::Result<Self> {
        HOOK.call_once(|| {
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
        let images = detect(images, colors, cell_size(), |name| std::env::var(name).ok());
        if matches!(
            images,
            ImageSupport::QuerySixel(_) | ImageSupport::QueryCellSize(_)
        ) {
            query::ask(&mut io::stdout())?;
        }
        // A drawing is one write, or a few, rather than one for each kilobyte.
        let out = BufWriter::with_capacity(DRAWING, io::stdout());
        let terminal = ratatui::Terminal::new(CrosstermBackend::new(out));
        match terminal {
            Ok(terminal) => Ok(Self {
                terminal,
                key_reader: KeyReader::none(),
                image_support: images,
                cell_size: None,
                mouse,
                title: String::new(),
            }),
            Err(e) => {
                restore_terminal();
                Err(e)
            }
        }
    }

    /// Begins to read what is typed; gives what images are drawn on. For a moment it waits for what the terminal says,
    /// if it was asked.
    pub(crate) async fn listen(&mut self) -> Option<ImageCanvas> {
        let asked = matches!(
            self.image_support,
            ImageSupport::QuerySixel(_) | ImageSupport::QueryCellSize(_)
        );
        let heard = match asked {
            true => tokio::task::spawn_blocking(query::listen).await,
            false => Ok(Default::default()),
        };
        // It does not panic; a chat whose runtime ends has nothing to show any more.
        let (answer, typed) = heard.unwrap_or_default();
        self.key_reader = KeyReader::read(typed);
        self.image_support = self.image_support.answered(answer);
        self.cell_size = answer.cell;
        self.canvas()
    }

    /// What images are drawn on, now that the terminal may have another size, or another font.
    pub(crate) fn canvas(&self) -> Option<ImageCanvas> {
        match self.image_support {
            ImageSupport::Known(way) => {
                way.map(|way| ImageCanvas::new(way, cell_size().or(self.cell_size)))
            }
            ImageSupport::QuerySixel(_) | ImageSupport::QueryCellSize(_) => None,
        }
    }

    /// Draws, with what the terminal is told in between kept together, so that nothing flickers.
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

    /// Draws everything again, for the terminal shows something else.
    ///
    /// `clear` of ratatui asks the terminal where its cursor is, and fails if the answer is read as something typed.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        kitty::forget_all(&mut io::stdout())?;
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
        self.key_reader.stop().await;
        restore_terminal();
    }

    /// Takes it again.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        set_up_terminal(self.mouse)?;
        self.key_reader = KeyReader::read(Vec::new());
        self.forget()
    }

    /// What is typed next; `None` if nothing will be any more.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.key_reader.next().await
    }

    /// What has been typed already.
    pub(crate) fn next_now(&mut self) -> Option<Event> {
        self.key_reader.next_now()
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

impl Drop for ChatTerminal {
    fn drop(&mut self) {
        restore_terminal();
    }
}

/// Many terminals send the arrow keys in place of a wheel that nobody listens to, where nothing scrolls by itself
/// (mode 1007): a turn of the wheel walked through what was written before. Whether they do is kept before it is
/// turned off.
const KEEP_WHEEL: &[u8] = b"\x1b[?1007s\x1b[?1007l";

/// Those that cannot keep it mostly begin with it on.
const GIVE_WHEEL: &[u8] = b"\x1b[?1007h\x1b[?1007r";

fn set_up_terminal(mouse: bool) -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    terminal::enable_raw_mode()?;
    let mut out = io::stdout();
    execute!(out, EnterAlternateScreen, EnableBracketedPaste)?;
    // Shift-Enter can be told from Enter then. Terminals that do not know it ignore it.
    execute!(
        out,
        PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES)
    )?;
    out.write_all(KEEP_WHEEL)?;
    if mouse {
        execute!(out, EnableMouseCapture)?;
    }
    out.flush()
}

/// Puts the terminal into the state it was found in. Does nothing the second time.
fn restore_terminal() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    let _ = kitty::forget_all(&mut out);
    // Each by itself: where one does not work the others still may.
    let _ = execute!(out, DisableMouseCapture);
    let _ = execute!(out, PopKeyboardEnhancementFlags);
    let _ = out.write_all(GIVE_WHEEL);
    let _ = execute!(
        out,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = terminal::disable_raw_mode();
}

/// How large a cell is, as far as the system knows.
fn cell_size() -> Option<PixelSize> {
    let size = terminal::window_size().ok()?;
    let pixels = |all: u16, cells: u16| all.checked_div(cells).filter(|pixels| *pixels > 0);
    Some(PixelSize {
        width: pixels(size.width, size.columns)?.into(),
        height: pixels(size.height, size.rows)?.into(),
    })
}
