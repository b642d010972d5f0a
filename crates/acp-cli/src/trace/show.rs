//! `acp trace show`: prints a trace in readable form.

use std::io::{BufRead, IsTerminal};
use std::time::Duration;

use acp_host::terminal_text;
use acp_trace::{
    EntryBuilder, RecordBody, Side, TraceEntry, TraceEntryKind, TraceEvent, TraceReader,
};
use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::args::trace::ShowArgs;
use crate::exit::CommandExit;
use crate::screen::{self, Styles};
use crate::trace::words::{format_duration, pretty_print, to_seconds};

/// How often to check for new records in a trace that is still being recorded.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The total width of the columns to the left of the summary.
const PREFIX_WIDTH: usize = 9 + 1 + 9 + 1 + 1 + 1 + NAME_WIDTH + 1 + DURATION_WIDTH + 1;

/// The width of the name column.
const NAME_WIDTH: usize = 26;

/// The width of the response time column.
const DURATION_WIDTH: usize = 9;

/// The minimum width for a summary to be shown beside the other columns. If there is less space, it goes below them.
const MIN_SUMMARY_WIDTH: usize = 40;

/// The maximum number of lines to show of a summary.
const MAX_SUMMARY_LINES: usize = 6;

/// The maximum width of a summary, in columns, if the line width is unlimited.
const MAX_SUMMARY_WIDTH: usize = 2000;

/// The number of spaces before the JSON of a message.
const RAW_MARGIN: usize = 4;

/// How many bytes of output to buffer before printing them.
const PRINT_THRESHOLD_BYTES: usize = 64 * 1024;

pub(super) async fn show_trace(args: &ShowArgs) -> CommandExit {
    let of_file =
        |e: &dyn std::fmt::Display| CommandExit::usage(format!("{}: {e}", args.file.display()));
    let mut reader = match TraceReader::open(&args.file) {
        Ok(reader) => reader,
        Err(e) => return of_file(&e),
    };
    let mut view = TraceOutput::new(args);
    view.push_header(&reader);
    let mut ended = false;
    loop {
        for record in reader.by_ref() {
            match record {
                Ok(record) => {
                    ended |= matches!(record.body, RecordBody::Event(TraceEvent::End));
                    view.push_record(record);
                }
                Err(e) if e.is_line_error() => view.push_note(&e.to_string()),
                Err(e) => return of_file(&e),
            }
            if !view.print(PRINT_THRESHOLD_BYTES) {
                return CommandExit::STDOUT_CLOSED;
            }
        }
        // Show everything read so far before waiting for more, even if it is only the start of a text.
        view.flush_entry();
        if !view.print(0) {
            return CommandExit::STDOUT_CLOSED;
        }
        if ended || !args.follow {
            break;
        }
        tokio::select! {
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            _ = tokio::signal::ctrl_c() => return CommandExit::CANCELLED,
        }
    }
    view.push_end(ended, reader.has_partial_line());
    if view.print(0) {
        CommandExit::SUCCESS
    } else {
        CommandExit::STDOUT_CLOSED
    }
}

/// Buffers the output for a trace and prints it in blocks.
struct TraceOutput<'a> {
    args: &'a ShowArgs,
    show: EntryBuilder,
    styles: Styles,
    /// The maximum width of a line, if limited.
    width: Option<usize>,
    /// An entry that is held back because the next entry may be merged into it.
    pending_entry: Option<TraceEntry>,
    /// The time of the last entry shown.
    last_time: u64,
    out: String,
}

impl<'a> TraceOutput<'a> {
    fn new(args: &'a ShowArgs) -> Self {
        Self {
            args,
            show: EntryBuilder::new(),
            styles: Styles::for_stdout(),
            width: line_width(),
            pending_entry: None,
            last_time: 0,
            out: String::new(),
        }
    }

    fn push_header<R: BufRead>(&mut self, reader: &TraceReader<R>) {
        let header = reader.header();
        let line = format!(
            "{}, {}, secrets {}: {}",
            header.started,
            header.by,
            match header.secrets {
                acp_trace::Secrets::Kept => "kept",
                acp_trace::Secrets::Redacted => "redacted",
            },
            header.command.join(" ")
        );
        self.push_styled(self.styles.dim, &terminal_text::clean_line(&line));
        self.out.push('\n');
    }

    fn push_record(&mut self, record: acp_trace::TraceRecord) {
        let Some(entry) = self
            .show
            .build_entry(record)
            .filter(|entry| self.passes_filter(entry))
        else {
            return;
        };
        let next = match &mut self.pending_entry {
            // With `--raw`, each entry is shown with its own message.
            Some(open) if !self.args.raw => match open.merge(entry) {
                Ok(()) => return,
                Err(next) => *next,
            },
            _ => entry,
        };
        self.flush_entry();
        self.pending_entry = Some(next);
    }

    fn passes_filter(&self, entry: &TraceEntry) -> bool {
        let names = [Some(entry.method.as_str()), entry.update.as_deref()];
        let filter = &self.args.filter;
        filter.matches(
            entry.from,
            entry.session.as_deref(),
            names.into_iter().flatten(),
        ) && (entry.is_error || !self.args.errors)
    }

    /// Shows the pending entry, if there is one.
    fn flush_entry(&mut self) {
        if let Some(entry) = self.pending_entry.take() {
            self.push_entry(&entry);
        }
    }

    fn push_styled(&mut self, style: Style, text: &str) {
        self.out.push_str(&format!("{style}{text}{style:#}"));
    }

    fn push_entry(&mut self, entry: &TraceEntry) {
        let styles = self.styles;
        let since = entry
            .time_us
            .saturating_sub(std::mem::replace(&mut self.last_time, entry.time_us));
        let time = format!("{:>9}", format!("{:.3}", to_seconds(entry.time_us)));
        self.push_styled(
            styles.dim,
            &format!("{time} {:>9}", format!("+{}", format_duration(since))),
        );
        let (arrow, color) = match (entry.kind, entry.from) {
            (TraceEntryKind::Stderr, _) => ("!", styles.dim),
            (TraceEntryKind::Event, _) => ("·", styles.dim),
            (_, Some(Side::Client)) => ("→", styles.accent),
            _ => ("←", styles.good),
        };
        let color = if entry.is_error { styles.bad } else { color };
        let mut name = terminal_text::clean_line(entry.name());
        if let Some(id) = &entry.id {
            let id = truncate_to_width(&terminal_text::clean_line(&id.to_string()), 10);
            let answer = matches!(entry.kind, TraceEntryKind::Response | TraceEntryKind::Error);
            name = truncate_to_width(&name, NAME_WIDTH - 2 - id.width());
            name.push_str(if answer { " =" } else { " #" });
            name.push_str(&id);
        } else if entry.records > 1 {
            let times = format!(" ×{}", entry.records);
            name = truncate_to_width(&name, NAME_WIDTH - times.width());
            name.push_str(&times);
        }
        self.out.push(' ');
        self.push_styled(
            color,
            &format!(
                "{arrow} {}",
                pad(&truncate_to_width(&name, NAME_WIDTH), NAME_WIDTH)
            ),
        );
        let took = entry.duration_us.map(format_duration).unwrap_or_default();
        self.out.push_str(&format!(" {took:>DURATION_WIDTH$} "));
        let mut summary = terminal_text::clean_text(&entry.summary);
        if entry.is_by_hand {
            summary = format!("(by hand) {summary}");
        }
        if let Some(session) = entry
            .session
            .as_ref()
            .filter(|_| !self.args.filter.has_session())
        {
            let session = truncate_to_width(&terminal_text::clean_line(session), 12);
            summary = format!("{session}: {summary}");
        }
        let style = if entry.is_error {
            styles.bad
        } else {
            Style::new()
        };
        self.push_summary(style, &summary);
        if let Some(message) = entry.message.as_ref().filter(|_| self.args.raw) {
            self.out.push_str(&terminal_text::clean_text(&pretty_print(
                message.get(),
                RAW_MARGIN,
            )));
            self.out.push('\n');
        }
    }

    /// Shows a summary, truncated to the available space.
    fn push_summary(&mut self, style: Style, text: &str) {
        let Some(width) = self.width else {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            self.push_styled(style, &truncate_to_width(&text, MAX_SUMMARY_WIDTH));
            self.out.push('\n');
            return;
        };
        let beside = width.saturating_sub(PREFIX_WIDTH) >= MIN_SUMMARY_WIDTH;
        let indent = if beside { PREFIX_WIDTH } else { 4 };
        let mut lines = wrap(text, width.saturating_sub(indent).max(16));
        let more = lines.len() > MAX_SUMMARY_LINES;
        lines.truncate(MAX_SUMMARY_LINES);
        if let (true, Some(last)) = (more, lines.last_mut()) {
            last.pop();
            last.push('…');
        }
        for (n, line) in lines.iter().enumerate() {
            if n > 0 || !beside {
                self.out.push('\n');
                self.out.push_str(&" ".repeat(indent));
            }
            self.push_styled(style, line);
        }
        self.out.push('\n');
    }

    fn push_note(&mut self, note: &str) {
        self.flush_entry();
        self.push_styled(self.styles.bad, &terminal_text::clean_line(note));
        self.out.push('\n');
    }

    fn push_end(&mut self, ended: bool, torn: bool) {
        if !ended {
            let torn = if torn {
                " in the middle of a record"
            } else {
                ""
            };
            let note = format!(
                "The trace ends here{torn}: recording is still in progress, or the file is truncated."
            );
            self.push_styled(self.styles.dim, &note);
            self.out.push('\n');
        }
    }

    /// Prints the buffered output if it is longer than `more_than` bytes. Returns `false` if the reader of stdout has
    /// closed it.
    fn print(&mut self, more_than: usize) -> bool {
        if self.out.len() <= more_than {
            return true;
        }
        let printed = screen::print(self.out.as_bytes());
        self.out.clear();
        printed
    }
}

/// Returns the maximum line width, from `COLUMNS` or the terminal. `None` means unlimited.
fn line_width() -> Option<usize> {
    let asked = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    let terminal = || {
        let out = std::io::stdout();
        let size = terminal_size::terminal_size().filter(|_| out.is_terminal());
        size.map(|(width, _)| usize::from(width.0))
    };
    asked.or_else(terminal).filter(|&width| width > 0)
}

/// Truncates a line to this many columns.
fn truncate_to_width(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut fits = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or_default();
        if used > width {
            break;
        }
        fits.push(c);
    }
    fits.push('…');
    fits
}

/// Pads text with spaces to this many columns.
fn pad(text: &str, width: usize) -> String {
    let blanks = width.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(blanks))
}

/// Wraps text to a width, preserving existing line breaks. Stops one line after the maximum, so that the caller can see
/// that there is more.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.trim_end().lines() {
        let line = line.replace('\t', "    ");
        let mut rest = line.as_str();
        while lines.len() <= MAX_SUMMARY_LINES {
            let end = fitting_len(rest, width);
            let (fit, behind) = rest.split_at(end);
            lines.push(fit.to_owned());
            rest = behind.trim_start();
            if rest.is_empty() {
                break;
            }
        }
        if lines.len() > MAX_SUMMARY_LINES {
            break;
        }
    }
    lines
}

/// Returns how many bytes of a line fit into a width, breaking at a space if possible.
fn fitting_len(line: &str, width: usize) -> usize {
    let (mut used, mut blank) = (0, None);
    for (at, c) in line.char_indices() {
        used += c.width().unwrap_or_default();
        if used > width {
            return blank
                .filter(|&blank| blank > at / 2)
                .unwrap_or(at.max(c.len_utf8()));
        }
        if c == ' ' {
            blank = Some(at + 1);
        }
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_breaks_at_words_and_counts_wide_characters_twice() {
        assert_eq!(wrap("one two three", 8), ["one two ", "three"]);
        assert_eq!(wrap("a\nb\n", 8), ["a", "b"]);
        assert_eq!(wrap("漢字漢字", 5), ["漢字", "漢字"]);
        assert_eq!(truncate_to_width("漢字漢字", 5), "漢字…");
        assert_eq!(wrap(&"x".repeat(100), 10).len(), MAX_SUMMARY_LINES + 1);
        assert_eq!(wrap("漢", 1), ["漢"]);
    }
}
