//! The binary on a terminal of its own, with a picture of what a person sees there.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use super::Project;
use super::patient::Patient;

/// How long something that must be seen may take.
const PATIENCE: Duration = Duration::from_secs(60);

fn size(cells: u16) -> NonZeroU16 {
    NonZeroU16::new(cells).expect("a terminal has cells")
}

/// A program on a terminal, as `script` (of util-linux, and on every Debian) provides one.
pub(crate) struct Screen {
    child: Child,
    keys: ChildStdin,
    printed: Patient,
    picture: vt100::Parser,
    /// The terminal's file, by which its size is changed.
    tty: std::path::PathBuf,
}

/// Whoever fails leaves nothing that runs: without its terminal the program ends.
impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Screen {
    /// Starts a command line of the shell on a terminal with so many columns and rows.
    pub(crate) fn start(project: &Project, columns: u16, rows: u16, line: &str) -> Self {
        let tty = project.path().join(".tty");
        let line = format!(
            "stty rows {rows} cols {columns}; tty > {}; {line}",
            tty.display()
        );
        let mut child = project
            .program("script")
            .args(["--quiet", "--return", "--flush", "--command"])
            .arg(line)
            .arg("/dev/null")
            .env("TERM", "xterm-256color")
            .env("COLORTERM", "truecolor")
            .env_remove("NO_COLOR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script, of util-linux, is installed");
        let (keys, printed) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self {
            child,
            keys,
            printed: Patient::new(printed),
            picture: vt100::Parser::new(size(rows), size(columns), 0),
            tty,
        }
    }

    /// What is on the screen now, without the spaces at the ends of its lines.
    pub(crate) fn text(&self) -> String {
        let (_, columns) = self.picture.screen().size();
        let rows = self.picture.screen().rows(0, columns.get());
        let rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n")
    }

    pub(crate) fn picture(&self) -> &vt100::Screen {
        self.picture.screen()
    }

    /// Waits until the screen is as it should be.
    #[track_caller]
    pub(crate) fn until_it(&mut self, what: &str, is: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        let mut bytes = [0; 4096];
        while !is(&self.text()) {
            assert!(
                begun.elapsed() < PATIENCE,
                "not seen: {what}\n{}",
                self.text()
            );
            let n = self.printed.read(&mut bytes);
            let n = n.unwrap_or_else(|e| panic!("{e}, and not {what}:\n{}", self.text()));
            assert_ne!(n, 0, "ended before {what}:\n{}", self.text());
            self.picture.process(&bytes[..n]);
        }
    }

    /// Waits for as long as a person would before they take a picture of it.
    pub(crate) fn settle(&mut self) {
        std::thread::sleep(Duration::from_millis(700));
        while let Some(bytes) = self.printed.now() {
            self.picture.process(&bytes);
        }
    }

    /// Waits until this is on the screen.
    #[track_caller]
    pub(crate) fn until(&mut self, shown: &str) {
        self.until_it(shown, |text| text.contains(shown));
    }

    /// Waits until this is not on the screen any more.
    #[track_caller]
    pub(crate) fn until_gone(&mut self, shown: &str) {
        self.until_it(&format!("without {shown}"), |text| !text.contains(shown));
    }

    /// Types.
    pub(crate) fn key(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Types a line and sends it.
    pub(crate) fn say(&mut self, line: &str) {
        self.key(line);
        self.key("\r");
    }

    /// Gives the terminal another size.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        let tty = std::fs::read_to_string(&self.tty).unwrap();
        let set = Command::new("stty")
            .args(["-F", tty.trim(), "rows"])
            .arg(rows.to_string())
            .arg("cols")
            .arg(columns.to_string())
            .status()
            .unwrap();
        assert!(set.success());
        self.picture
            .screen_mut()
            .set_size(size(rows), size(columns));
    }

    /// The exit code, and all that was printed since the screen was looked at last.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut rest = Vec::new();
        self.printed.read_to_end(&mut rest).unwrap();
        self.picture.process(&rest);
        let code = self.child.wait().unwrap().code();
        (code, self.text())
    }
}
