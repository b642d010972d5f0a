//! A program on a terminal, and what a person sees of it there.

use std::fs::File;
use std::io::{self, Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use crate::BenchError;

/// How long something that must be seen may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a program writes behind a drawing: the end of a synchronized update.
const DRAWN: &[u8] = b"\x1b[?2026l";

/// What it writes in front of one.
const BEGUN: &[u8] = b"\x1b[?2026h";

/// How large a terminal is, in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TerminalGrid {
    pub(crate) columns: u16,
    pub(crate) rows: u16,
}

fn to_nonzero(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN)
}

/// A program on a terminal. Without it the program ends.
pub(crate) struct PtyScreen {
    child: Child,
    terminal: File,
    parser: vt100::Parser,
    size: TerminalGrid,
    /// When the program was started.
    started_at: Instant,
    /// What was read, and when, and is not in the picture: that is taken as it is at the end of a drawing.
    unread: Vec<u8>,
    read_at: Instant,
    /// The picture is in the middle of a drawing.
    drawing: bool,
}

impl Drop for PtyScreen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl PtyScreen {
    /// Starts a program on a terminal of its own; `raw`: what is typed goes to it as it is, and nothing is echoed.
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
        // Of util-linux: in a session of its own whose terminal this is, so that it is told of another size. It
        // becomes the program, whose process is then the one that is started here.
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
            .map_err(|e| format!("setsid, of util-linux, cannot be started: {e}"))?;
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

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn begun(&self) -> Instant {
        self.started_at
    }

    pub(crate) fn picture(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    /// What a row shows, without the spaces at its end.
    pub(crate) fn row(&self, row: u16) -> String {
        let mut rows = self.parser.screen().rows(0, self.size.columns);
        let row = rows.nth(usize::from(row)).unwrap_or_default();
        row.trim_end().to_owned()
    }

    /// What the rows show from this one on, so many.
    pub(crate) fn rows(&self, from: u16, count: u16) -> Vec<String> {
        let rows = self.parser.screen().rows(0, self.size.columns);
        rows.skip(usize::from(from))
            .take(usize::from(count))
            .collect()
    }

    /// Types.
    pub(crate) fn key(&mut self, keys: &[u8]) -> io::Result<()> {
        self.terminal.write_all(keys)
    }

    /// Gives the terminal another size, of which the program is told.
    pub(crate) fn resize(&mut self, size: TerminalGrid) -> io::Result<()> {
        self.size = size;
        let picture = self.parser.screen_mut();
        picture.set_size(to_nonzero(size.rows), to_nonzero(size.columns));
        Ok(tcsetwinsize(&self.terminal, winsize(size))?)
    }

    /// Takes in what is printed within a time, and to its end what is drawn then.
    pub(crate) fn watch(&mut self, time: Duration) -> Result<(), BenchError> {
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            self.read_output(left)?;
        }
        while self.drawing {
            self.read_output(PATIENCE)?;
        }
        Ok(())
    }

    pub(crate) fn size(&self) -> TerminalGrid {
        self.size
    }

    /// Waits until nothing has been printed for so long.
    pub(crate) fn until_quiet(&mut self, quiet: Duration) -> Result<(), BenchError> {
        let begun = Instant::now();
        while self.has_output(quiet)? {
            self.read_output(Duration::ZERO)?;
            if begun.elapsed() > PATIENCE {
                let screen = self.rows(0, self.size.rows).join("\n");
                return Err(format!("it does not come to rest:\n{screen}").into());
            }
        }
        Ok(())
    }

    /// Whether something has been printed, or is within a time.
    fn has_output(&self, time: Duration) -> Result<bool, BenchError> {
        let time = Timespec::try_from(time)?;
        let mut fds = [PollFd::new(&self.terminal, PollFlags::IN)];
        Ok(poll(&mut fds, Some(&time))? > 0)
    }

    /// Waits for a drawing with which the screen is as it should be, and gives when it was whole.
    pub(crate) fn until(
        &mut self,
        what: &str,
        is: impl Fn(&Self) -> bool,
    ) -> Result<Instant, BenchError> {
        let begun = Instant::now();
        loop {
            if let Some(at) = self.read_output(PATIENCE)?
                && is(self)
            {
                return Ok(at);
            }
            if begun.elapsed() > PATIENCE {
                let screen = self.rows(0, self.size.rows).join("\n");
                return Err(format!("not seen within {PATIENCE:?}: {what}\n{screen}").into());
            }
        }
    }

    /// Takes in what is printed, up to the end of a drawing, and waits for it at most so long. Gives when that was
    /// there.
    fn read_output(&mut self, time: Duration) -> Result<Option<Instant>, BenchError> {
        if find(&self.unread, DRAWN).is_none() {
            if !self.has_output(time)? {
                return Ok(None);
            }
            let mut bytes = [0; 64 * 1024];
            // The end of the program is an error here (EIO).
            let n = self.terminal.read(&mut bytes).map_err(|e| {
                let screen = self.rows(0, self.size.rows).join("\n");
                format!("the program has ended ({e}); last seen:\n{screen}")
            })?;
            self.read_at = Instant::now();
            self.unread
                .extend_from_slice(bytes.get(..n).unwrap_or_default());
        }
        let end = find(&self.unread, DRAWN).map(|at| at + DRAWN.len());
        // What may be the beginning of a mark stays.
        let taken = end.unwrap_or_else(|| self.unread.len().saturating_sub(DRAWN.len() - 1));
        let bytes = self.unread.get(..taken).unwrap_or_default();
        self.drawing = end.is_none() && (self.drawing || find(bytes, BEGUN).is_some());
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
