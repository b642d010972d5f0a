//! Runs the binary on a terminal and reproduces the screen as the user would see it.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use super::TestProject;
use super::patient::TimedReader;

/// The maximum time to wait for something to appear on the screen.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The style of a page that shows the screen. Fixes each cell's position regardless of the font.
const PAGE_STYLE: &str = "body{margin:0;background:#16181d}pre{margin:8px;font:15px/18px 'DejaVu Sans Mono',monospace}\
    b{display:inline-block;width:9px;height:18px;font-weight:normal;white-space:pre;vertical-align:top}.w{width:18px}";

/// The colors of the terminal's 16-color palette.
const COLOR_PALETTE: [&str; 16] = [
    "#2e3440", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d4d4d8",
    "#7f848e", "#ff7a85", "#b5e890", "#ffd479", "#8ac6ff", "#e39bff", "#7fe0ea", "#ffffff",
];

fn css_color(color: vt100::Color, otherwise: &str) -> String {
    match color {
        vt100::Color::Idx(n) if n < 16 => COLOR_PALETTE[usize::from(n)].to_owned(),
        vt100::Color::Rgb(r, g, b) => format!("rgb({r},{g},{b})"),
        _ => otherwise.to_owned(),
    }
}

fn to_nonzero(cells: u16) -> NonZeroU16 {
    NonZeroU16::new(cells).expect("a terminal has cells")
}

/// What the program has told the terminal beside the text on the screen.
#[derive(Default)]
struct TerminalEvents {
    title: String,
    bells: usize,
    /// How often the program has asked for the background.
    background_queries: usize,
    /// The other operating system commands that are not about the title, each with its parameters joined by `;`.
    commands: Vec<String>,
}

impl vt100::Callbacks for TerminalEvents {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.bells += 1;
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, params: &[&[u8]]) {
        if params == [b"11".as_slice(), b"?"] {
            self.background_queries += 1;
            return;
        }
        let params = params.iter().map(|param| String::from_utf8_lossy(param));
        self.commands.push(params.collect::<Vec<_>>().join(";"));
    }

    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.title = String::from_utf8_lossy(title).into_owned();
    }
}

/// A program on a terminal provided by `script` (part of util-linux, and installed on every Debian system).
pub(crate) struct ChatScreen {
    child: Child,
    keys: ChildStdin,
    printed: TimedReader,
    picture: vt100::Parser<TerminalEvents>,
    /// The path of the terminal device, for changing its size.
    tty: std::path::PathBuf,
}

/// Ends the program even if a test fails, since it exits when it loses its terminal.
impl Drop for ChatScreen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl ChatScreen {
    /// Runs a shell command line on a terminal of this size.
    pub(crate) fn start(project: &TestProject, columns: u16, rows: u16, line: &str) -> Self {
        let tty = project.path().join(".tty");
        let line = format!(
            "stty rows {rows} cols {columns}; tty > {}; {line}",
            tty.display()
        );
        let mut child = project
            .program_command("script")
            .args(["--quiet", "--return", "--flush", "--command"])
            .arg(line)
            .arg("/dev/null")
            .env("TERM", "xterm-256color")
            .env("COLORTERM", "truecolor")
            .env_remove("NO_COLOR")
            .env_remove("COLORFGBG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script, of util-linux, is installed");
        let (keys, printed) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self {
            child,
            keys,
            printed: TimedReader::new(printed),
            picture: vt100::Parser::new_with_callbacks(
                to_nonzero(rows),
                to_nonzero(columns),
                0,
                TerminalEvents::default(),
            ),
            tty,
        }
    }

    /// Returns the text on the screen, without trailing spaces.
    pub(crate) fn text(&self) -> String {
        let (_, columns) = self.picture.screen().size();
        let rows = self.picture.screen().rows(0, columns.get());
        let rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n")
    }

    pub(crate) fn screen(&self) -> &vt100::Screen {
        self.picture.screen()
    }

    /// Returns the title that the program has set for the terminal window.
    pub(crate) fn title(&self) -> &str {
        &self.picture.callbacks().title
    }

    /// Returns how often the program has rung the bell.
    pub(crate) fn bells(&self) -> usize {
        self.picture.callbacks().bells
    }

    /// Returns how often the program has asked the terminal for its background. This terminal never replies by itself.
    pub(crate) fn background_queries(&self) -> usize {
        self.picture.callbacks().background_queries
    }

    /// Returns the other operating system commands that are not about the title, each without its delimiters.
    pub(crate) fn commands(&self) -> &[String] {
        &self.picture.callbacks().commands
    }

    /// Returns an HTML page that shows the screen in color, for inspection.
    pub(crate) fn to_html(&self) -> String {
        let (rows, columns) = self.screen().size();
        let mut page = format!("<meta charset=utf-8><style>{PAGE_STYLE}</style><pre>");
        for row in 0..rows.get() {
            for column in 0..columns.get() {
                let cell = self.screen().cell(row, column).unwrap();
                if cell.is_wide_continuation() {
                    continue;
                }
                let (mut text, mut behind) = (
                    css_color(cell.fgcolor(), "#d4d4d8"),
                    css_color(cell.bgcolor(), "#16181d"),
                );
                if cell.inverse() {
                    std::mem::swap(&mut text, &mut behind);
                }
                if cell.dim() {
                    text = format!("color-mix(in srgb, {text} 60%, {behind})");
                }
                let mut style = format!("color:{text};background:{behind}");
                for (is, how) in [
                    (cell.bold(), "font-weight:bold"),
                    (cell.italic(), "font-style:italic"),
                    (cell.underline(), "text-decoration:underline"),
                ] {
                    if is {
                        style.push(';');
                        style.push_str(how);
                    }
                }
                let wide = if cell.is_wide() { " class=w" } else { "" };
                let shown = match cell.contents() {
                    "" => " ",
                    "<" => "&lt;",
                    "&" => "&amp;",
                    other => other,
                };
                page.push_str(&format!("<b{wide} style=\"{style}\">{shown}</b>"));
            }
            page.push('\n');
        }
        page
    }

    /// Waits until `is` returns true for the text on the screen.
    #[track_caller]
    pub(crate) fn wait_for_matching_text(&mut self, what: &str, is: impl Fn(&str) -> bool) {
        self.wait_for_matching_screen(what, |screen| is(&screen.text()));
    }

    /// Waits until `is` returns true for the screen.
    #[track_caller]
    pub(crate) fn wait_for_matching_screen(&mut self, what: &str, is: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        let mut bytes = [0; 4096];
        while !is(self) {
            assert!(
                begun.elapsed() < TIMEOUT,
                "not seen: {what}\n{}",
                self.text()
            );
            let n = self.printed.read(&mut bytes);
            let n = n.unwrap_or_else(|e| panic!("{e}, and not {what}:\n{}", self.text()));
            assert_ne!(n, 0, "ended before {what}:\n{}", self.text());
            self.picture.process(&bytes[..n]);
        }
    }

    /// Waits until the screen has settled and can be saved.
    pub(crate) fn settle(&mut self) {
        std::thread::sleep(Duration::from_millis(700));
        while let Some(bytes) = self.printed.read_available() {
            self.picture.process(&bytes);
        }
    }

    /// Waits until this text is on the screen.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, shown: &str) {
        self.wait_for_matching_text(shown, |text| text.contains(shown));
    }

    /// Waits until this text is no longer on the screen.
    #[track_caller]
    pub(crate) fn wait_until_gone(&mut self, shown: &str) {
        self.wait_for_matching_text(&format!("without {shown}"), |text| !text.contains(shown));
    }

    /// Types these keys.
    pub(crate) fn send_keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Types a line and presses Enter.
    pub(crate) fn send_line(&mut self, line: &str) {
        self.send_keys(line);
        self.send_keys("\r");
    }

    /// Resizes the terminal.
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
            .set_size(to_nonzero(rows), to_nonzero(columns));
    }

    /// Waits for the program to exit, and returns the exit code and the final text on the screen.
    pub(crate) fn wait_for_exit(mut self) -> (Option<i32>, String) {
        let mut rest = Vec::new();
        self.printed.read_to_end(&mut rest).unwrap();
        self.picture.process(&rest);
        let code = self.child.wait().unwrap().code();
        (code, self.text())
    }
}
