//! A program on a pseudo-terminal, and the screen that a user would see.

use std::fs::File;
use std::io::{self, Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use crate::BenchError;

/// The maximum time to wait until something appears on the screen.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The sequence after each drawing: the end of a synchronized update.
const DRAW_END: &[u8] = b"\x1b[?2026l";

/// The sequence before each drawing.
const DRAW_START: &[u8] = b"\x1b[?2026h";

/// The size of a terminal, in rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TerminalGrid {
    pub(crate) columns: u16,
    pub(crate) rows: u16,
}

fn to_nonzero(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN)
}

/// A program on a pseudo-terminal. Dropping it kills the program.
pub(crate) struct PtyScreen {
    child: Child,
    terminal: File,
    parser: vt100::Parser,
    size: TerminalGrid,
    /// The time when the program was started.
    started_at: Instant,
    /// Output that was read but is not on the screen yet. The screen is updated at the end of each drawing.
    unread: Vec<u8>,
    read_at: Instant,
    /// Whether a drawing is in progress.
    drawing: bool,
}

impl Drop for PtyScreen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl PtyScreen {
    /// Starts a program on a new pseudo-terminal. If `raw` is set, input reaches the program unchanged and is not
    /// echoed.
    pub(crate) fn start(
        command: &Command,
        size: TerminalGrid,
        raw: bool,
    ) -> Result<Self, BenchError> {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&terminal)?;
        unlockpt(&terminal)?;
        tcsetwinsize(&terminal, winsize(size))?;
        let inner = ioctl_tiocgptpeer(
            &terminal,
            OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC,
        )?;
        if raw {
            let mut settings = tcgetattr(&inner)?;
            settings.make_raw();
            tcsetattr(&inner, OptionalActions::Now, &settings)?;
        }
        // `setsid` of util-linux gives the program a session whose terminal this is, so that it is notified when the
        // size changes. It replaces itself with the program, so the process started here is the program's.
        let mut started = Command::new("setsid");
        started
            .arg("--ctty")
            .arg(command.get_program())
            .args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => started.env(name, value),
                None => started.env_remove(name),
            };
        }
        if let Some(directory) = command.get_current_dir() {
            started.current_dir(directory);
        }
        let clone = || inner.try_clone();
        started.stdin(clone()?).stdout(clone()?).stderr(clone()?);
        let begun = Instant::now();
        let child = started
            .spawn()
            .map_err(|e| format!("cannot start setsid (part of util-linux): {e}"))?;
        Ok(Self {
            child,
            terminal: File::from(terminal),
            parser: vt100::Parser::new(to_nonzero(size.rows), to_nonzero(size.columns), 0),
            size,
            started_at: begun,
            unread: Vec::new(),
            read_at: begun,
            drawing: false,
        })
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn started_at(&self) -> Instant {
        self.started_at
    }

    pub(crate) fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    /// Returns the text of a row, without trailing spaces.
    pub(crate) fn row(&self, row: u16) -> String {
        let mut rows = self.parser.screen().rows(0, self.size.columns);
        let row = rows.nth(usize::from(row)).unwrap_or_default();
        row.trim_end().to_owned()
    }

    /// Returns the text of `count` rows, starting at `from`.
    pub(crate) fn rows(&self, from: u16, count: u16) -> Vec<String> {
        let rows = self.parser.screen().rows(0, self.size.columns);
        rows.skip(usize::from(from))
            .take(usize::from(count))
            .collect()
    }

    /// Sends keys to the program, as if a user had typed them.
    pub(crate) fn send_keys(&mut self, keys: &[u8]) -> io::Result<()> {
        self.terminal.write_all(keys)
    }

    /// Resizes the terminal and notifies the program.
    pub(crate) fn resize(&mut self, size: TerminalGrid) -> io::Result<()> {
        self.size = size;
        let picture = self.parser.screen_mut();
        picture.set_size(to_nonzero(size.rows), to_nonzero(size.columns));
        Ok(tcsetwinsize(&self.terminal, winsize(size))?)
    }

    /// Reads output for a while, and then until the end of the drawing in progress.
    pub(crate) fn read_for(&mut self, time: Duration) -> Result<(), BenchError> {
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            self.read_output(left)?;
        }
        while self.drawing {
            self.read_output(TIMEOUT)?;
        }
        Ok(())
    }

    pub(crate) fn size(&self) -> TerminalGrid {
        self.size
    }

    /// Waits until nothing has been printed for the given time.
    pub(crate) fn wait_until_quiet(&mut self, quiet: Duration) -> Result<(), BenchError> {
        let begun = Instant::now();
        while self.has_output(quiet)? {
            self.read_output(Duration::ZERO)?;
            if begun.elapsed() > TIMEOUT {
                let screen = self.rows(0, self.size.rows).join("\n");
                return Err(format!("the program does not stop printing:\n{screen}").into());
            }
        }
        Ok(())
    }

    /// Returns `true` if output is available, or becomes available within the given time.
    fn has_output(&self, time: Duration) -> Result<bool, BenchError> {
        let time = Timespec::try_from(time)?;
        let mut fds = [PollFd::new(&self.terminal, PollFlags::IN)];
        Ok(poll(&mut fds, Some(&time))? > 0)
    }

    /// Waits until the screen matches a predicate at the end of a drawing. Returns the time when the drawing was
    /// complete.
    pub(crate) fn wait_until(
        &mut self,
        what: &str,
        is: impl Fn(&Self) -> bool,
    ) -> Result<Instant, BenchError> {
        let begun = Instant::now();
        loop {
            if let Some(at) = self.read_output(TIMEOUT)?
                && is(self)
            {
                return Ok(at);
            }
            if begun.elapsed() > TIMEOUT {
                let screen = self.rows(0, self.size.rows).join("\n");
                return Err(format!("not seen within {TIMEOUT:?}: {what}\n{screen}").into());
            }
        }
    }

    /// Reads output up to the end of a drawing, for at most `time`. Returns the time when the drawing was complete.
    fn read_output(&mut self, time: Duration) -> Result<Option<Instant>, BenchError> {
        if find(&self.unread, DRAW_END).is_none() {
            if !self.has_output(time)? {
                return Ok(None);
            }
            let mut bytes = [0; 64 * 1024];
            // On a terminal, the end of the program is an error (EIO).
            let n = self.terminal.read(&mut bytes).map_err(|e| {
                let screen = self.rows(0, self.size.rows).join("\n");
                format!("the program has ended ({e}); the last screen:\n{screen}")
            })?;
            self.read_at = Instant::now();
            self.unread
                .extend_from_slice(bytes.get(..n).unwrap_or_default());
        }
        let end = find(&self.unread, DRAW_END).map(|at| at + DRAW_END.len());
        // Keep the bytes that can be the start of a mark.
        let taken = end.unwrap_or_else(|| self.unread.len().saturating_sub(DRAW_END.len() - 1));
        let bytes = self.unread.get(..taken).unwrap_or_default();
        self.drawing = end.is_none() && (self.drawing || find(bytes, DRAW_START).is_some());
        self.parser.process(bytes);
        self.unread.drain(..taken);
        Ok(end.map(|_| self.read_at))
    }
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, mark)
}

fn winsize(size: TerminalGrid) -> Winsize {
    Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}
