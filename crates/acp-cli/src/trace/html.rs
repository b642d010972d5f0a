//! `acp trace html`: renders a trace as an HTML page.

use std::io::Write as _;
use std::path::Path;

use acp_trace::{
    LintFinding, PageError, PageFinding, PageSummary, TraceLinter, TraceReader, write_page,
};

use crate::args::trace::HtmlArgs;
use crate::exit::CommandExit;
use crate::output_file::OutputFile;
use crate::screen;
use crate::trace::lint::format_count;

/// The maximum number of findings to show on the page.
const MAX_FINDINGS: usize = 10_000;

pub(super) fn write_html(args: &HtmlArgs) -> CommandExit {
    let reader = match TraceReader::open(&args.file) {
        Ok(reader) => reader,
        Err(e) => return CommandExit::usage(format!("{}: {e}", args.file.display())),
    };
    let findings = collect_findings(&args.file);
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| args.file.with_extension("html"));
    if out == Path::new("-") {
        return write_stdout(reader, &findings);
    }
    match write_file(reader, &findings, &out) {
        Ok(page) => {
            let notes = match page.notes {
                0 => String::new(),
                1 => "; ignored 1 line that is not a record".to_owned(),
                notes => format!("; ignored {notes} lines that are not records"),
            };
            let records = format_count(page.records as u64, "record");
            let line = format!("{}: {records}{notes}\n", out.display());
            // The page is written, whether or not anyone reads this line.
            screen::print(line.as_bytes());
            CommandExit::SUCCESS
        }
        Err(e) => page_exit(
            &e,
            format!("{} to {}: {e}", args.file.display(), out.display()),
        ),
    }
}

/// Returns the `CommandExit` for a page that could not be written. A trace that cannot be read to the end has the same
/// exit code as one that cannot be opened.
fn page_exit(error: &PageError, message: String) -> CommandExit {
    match error {
        PageError::Read(_) => CommandExit::usage(message),
        _ => CommandExit::failed(message),
    }
}

/// Writes the page. Like a trace, a new page is readable only by its owner.
fn write_file(
    reader: TraceReader<std::io::BufReader<std::fs::File>>,
    findings: &[PageFinding],
    out: &Path,
) -> Result<PageSummary, PageError> {
    OutputFile::new(out)?.write(|file| {
        let mut writer = std::io::BufWriter::with_capacity(256 * 1024, file);
        let page = write_page(reader, findings, &mut writer)?;
        writer.flush()?;
        Ok(page)
    })
}

/// Returns the same findings as `acp trace lint`. If reading the trace fails partway through, returns the findings up
/// to that point. The page reports the error itself.
fn collect_findings(file: &Path) -> Vec<PageFinding> {
    let Ok(reader) = TraceReader::open(file) else {
        return Vec::new();
    };
    let mut lint = TraceLinter::new();
    let mut findings = Vec::new();
    let mut add = |problems: Vec<LintFinding>| {
        let room = MAX_FINDINGS - findings.len();
        findings.extend(problems.into_iter().take(room).map(|problem| PageFinding {
            line: problem.line,
            level: problem.level.to_string(),
            who: Some(problem.side),
            rule: problem.rule.to_owned(),
            text: problem.text,
        }));
    };
    for record in reader {
        match record {
            Ok(record) => add(lint.check_record(record)),
            Err(e) if e.is_line_error() => lint.skip_line(),
            Err(_) => break,
        }
    }
    add(lint.end());
    findings
}

fn write_stdout(
    reader: TraceReader<std::io::BufReader<std::fs::File>>,
    findings: &[PageFinding],
) -> CommandExit {
    let mut out = std::io::BufWriter::with_capacity(256 * 1024, std::io::stdout().lock());
    let written = write_page(reader, findings, &mut out).and_then(|_| Ok(out.flush()?));
    match written {
        Ok(()) => CommandExit::SUCCESS,
        Err(PageError::Write(e)) if e.kind() == std::io::ErrorKind::BrokenPipe => {
            CommandExit::STDOUT_CLOSED
        }
        Err(e) => page_exit(&e, e.to_string()),
    }
}
