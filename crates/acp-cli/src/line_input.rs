//! Stdin and the terminal where something is typed: its settings while that is not shown, what was typed too early, lines,
//! and whether something is piped in.

/// The settings as they were. Whoever hides what is typed gives them back itself, but not where it is stopped.
#[cfg(unix)]
pub(crate) struct TerminalSettings {
    terminal: std::fs::File,
    saved: rustix::termios::Termios,
}

#[cfg(unix)]
impl TerminalSettings {
    /// Those of the terminal that this process has, if it has one.
    pub(crate) fn now() -> Option<Self> {
        let terminal = std::fs::File::open("/dev/tty").ok()?;
        let before = rustix::termios::tcgetattr(&terminal).ok()?;
        Some(Self {
            terminal,
            saved: before,
        })
    }

    /// Gives them back.
    pub(crate) fn restore(&self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        // A terminal that was closed has none to give back.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.saved);
    }
}

/// Nothing stops a process there while it reads, but what ends it at once.
#[cfg(not(unix))]
pub(crate) struct TerminalSettings;

#[cfg(not(unix))]
impl TerminalSettings {
    pub(crate) fn now() -> Option<Self> {
        None
    }

    pub(crate) fn restore(&self) {}
}

/// Drops what was typed and not yet read, also a line that is not ended; says whether there was anything.
#[cfg(unix)]
pub(crate) fn discard(terminal: &std::fs::File) -> bool {
    use rustix::termios::{
        LocalModes, OptionalActions, QueueSelector, tcflush, tcgetattr, tcsetattr,
    };
    // Of a terminal that is gone nothing will be read either.
    let Ok(before) = tcgetattr(terminal) else {
        return false;
    };
    // While lines are edited, nobody but the system knows of one that is not ended.
    let mut raw = before.clone();
    raw.local_modes.remove(LocalModes::ICANON);
    let _ = tcsetattr(terminal, OptionalActions::Now, &raw);
    let waiting = rustix::io::ioctl_fionread(terminal).unwrap_or_default();
    let _ = tcsetattr(terminal, OptionalActions::Flush, &before);
    let _ = tcflush(terminal, QueueSelector::IFlush);
    waiting > 0
}

/// What was typed early stays there.
#[cfg(not(unix))]
pub(crate) fn discard(_: &std::fs::File) -> bool {
    false
}

/// The longest line that is read, in bytes: terminals allow less.
const LONGEST: usize = 64 * 1024;

/// Lines that are typed at the terminal for one question. What comes after it is dropped stays where it is.
#[cfg(unix)]
pub(crate) struct TypedLines {
    terminal: std::fs::File,
    buffer: Vec<u8>,
}

#[cfg(unix)]
impl TypedLines {
    pub(crate) fn open() -> Option<Self> {
        use rustix::fs::{Mode, OFlags, open};
        // A read that can wait cannot be given up: it would take the line that answers the next question.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let terminal = open("/dev/tty", flags, Mode::empty()).ok()?;
        Some(Self {
            terminal: terminal.into(),
            buffer: Vec::new(),
        })
    }

    /// Drops what was typed so far; says whether there was anything.
    pub(crate) fn discard(&mut self) -> bool {
        let read = !self.buffer.is_empty();
        self.buffer.clear();
        discard(&self.terminal) || read
    }

    /// The next line; `None` if there will be none.
    pub(crate) async fn next(&mut self) -> Option<String> {
        use std::io::{ErrorKind, Read};
        let mut bytes = [0; 4096];
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(String::from_utf8_lossy(&line).into_owned());
            }
            match self.terminal.read(&mut bytes) {
                Ok(0) => return None,
                Ok(n) if self.buffer.len() + n <= LONGEST => {
                    self.buffer
                        .extend_from_slice(bytes.get(..n).unwrap_or_default());
                }
                Ok(_) => self.buffer.clear(),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // macOS cannot tell when there is something to be read from `/dev/tty`.
                Err(e) if e.kind() == ErrorKind::WouldBlock => tokio::time::sleep(LOOKING).await,
                Err(_) => return None,
            }
        }
    }
}

/// How often is looked whether a line was typed, while a question is open.
#[cfg(unix)]
const LOOKING: std::time::Duration = std::time::Duration::from_millis(20);

/// Lines that are typed at the console. One thread reads all of them, since a read cannot be given up.
#[cfg(not(unix))]
pub(crate) struct TypedLines(tokio::sync::MutexGuard<'static, tokio::sync::mpsc::Receiver<String>>);

#[cfg(not(unix))]
impl TypedLines {
    pub(crate) fn open() -> Option<Self> {
        use std::io::{BufRead, BufReader, Read};
        use std::sync::LazyLock;
        use tokio::sync::{Mutex, mpsc};
        static TYPED: LazyLock<Mutex<mpsc::Receiver<String>>> = LazyLock::new(|| {
            let (sender, receiver) = mpsc::channel(1);
            std::thread::spawn(move || {
                let Ok(console) = std::fs::File::open("CONIN$") else {
                    return;
                };
                let mut console = BufReader::new(console);
                loop {
                    let mut line = String::new();
                    let read = (&mut console).take(LONGEST as u64).read_line(&mut line);
                    if !read.is_ok_and(|n| n > 0) || sender.blocking_send(line).is_err() {
                        return;
                    }
                }
            });
            Mutex::new(receiver)
        });
        TYPED.try_lock().ok().map(Self)
    }

    /// Drops the lines that were typed so far; says whether there was any. One that is not ended stays.
    pub(crate) fn discard(&mut self) -> bool {
        let mut any = false;
        while self.0.try_recv().is_ok() {
            any = true;
        }
        any
    }

    /// The next line; `None` if there will be none.
    pub(crate) async fn next(&mut self) -> Option<String> {
        self.0.recv().await
    }
}

/// Whether stdin is a file or a pipe, and not a terminal, `/dev/null` or closed.
#[cfg(unix)]
pub(crate) fn is_piped() -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;
    let stdin = std::io::stdin().as_fd().try_clone_to_owned();
    let kind = stdin.and_then(|stdin| std::fs::File::from(stdin).metadata());
    let kind = kind.map(|metadata| metadata.file_type());
    kind.is_ok_and(|kind| kind.is_file() || kind.is_fifo() || kind.is_socket())
}

/// What is no terminal may be a pipe; `NUL` ends at once.
#[cfg(not(unix))]
pub(crate) fn is_piped() -> bool {
    use std::io::IsTerminal;
    !std::io::stdin().is_terminal()
}
