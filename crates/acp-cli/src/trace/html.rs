//! `acp trace html`: a trace as one page.

use std::io::Write as _;
use std::path::Path;

use acp_trace::{Finding, Lint, Page, PageError, Problem, Reader, page};

use crate::args::trace::HtmlArgs;
use crate::exit::Exit;
use crate::screen;

/// How many findings the page has at most. A trace that is wrong everywhere is shown to be so by these.
const FINDINGS: usize = 10_000;

pub(super) fn html(args: &HtmlArgs) -> Exit {
    let reader = match Reader::open(&args.file) {
        Ok(reader) => reader,
        Err(e) => return Exit::usage(format!("{} {e}", args.file.display())),
    };
    let findings = findings(&args.file);
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| args.file.with_extension("html"));
    if out == Path::new("-") {
        return to_stdout(reader, &findings);
    }
    match to_file(reader, &findings, &out) {
        Ok(page) => {
            let notes = match page.notes {
                0 => String::new(),
                notes => format!(", {notes} lines of the trace are no records"),
            };
            let line = format!("{}: {} records{notes}\n", out.display(), page.records);
            // What is done is done, whether or not it is read.
            screen::print(line.as_bytes());
            Exit::SUCCESS
        }
        Err(e) => failed(
            &e,
            format!("{} to {}: {e}", args.file.display(), out.display()),
        ),
    }
}

/// A trace that cannot be read to its end has the code of one that cannot be read at all.
fn failed(error: &PageError, message: String) -> Exit {
    match error {
        PageError::Read(_) => Exit::usage(message),
        _ => Exit::failed(message),
    }
}

/// Written beside its place first, so that there is never half a page. You alone can read it, as the trace.
fn to_file(
    reader: Reader<std::io::BufReader<std::fs::File>>,
    findings: &[Finding],
    out: &Path,
) -> Result<Page, PageError> {
    let directory = match out.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let file = tempfile::NamedTempFile::new_in(directory)?;
    let mut writer = std::io::BufWriter::with_capacity(256 * 1024, file);
    let page = page(reader, findings, &mut writer)?;
    let file = writer.into_inner().map_err(|e| e.into_error())?;
    file.persist(out).map_err(|e| e.error)?;
    Ok(page)
}

/// What `acp trace lint` finds. A trace that cannot be read to its end has what is found up to there; the page says what
/// is wrong with the rest.
fn findings(file: &Path) -> Vec<Finding> {
    let Ok(reader) = Reader::open(file) else {
        return Vec::new();
    };
    let mut lint = Lint::new();
    let mut findings = Vec::new();
    let mut add = |problems: Vec<Problem>| {
        let room = FINDINGS - findings.len();
        findings.extend(problems.into_iter().take(room).map(|problem| Finding {
            line: problem.line,
            level: problem.level.to_string(),
            who: Some(problem.side),
            rule: problem.rule.to_owned(),
            text: problem.text,
        }));
    };
    for record in reader {
        match record {
            Ok(record) => add(lint.record(record)),
            Err(e) if e.is_of_a_line() => lint.unreadable(),
            Err(_) => break,
        }
    }
    add(lint.end());
    findings
}

fn to_stdout(reader: Reader<std::io::BufReader<std::fs::File>>, findings: &[Finding]) -> Exit {
    let mut out = std::io::BufWriter::with_capacity(256 * 1024, std::io::stdout().lock());
    let written = page(reader, findings, &mut out).and_then(|_| Ok(out.flush()?));
    match written {
        Ok(()) => Exit::SUCCESS,
        Err(PageError::Write(e)) if e.kind() == std::io::ErrorKind::BrokenPipe => Exit::UNREAD,
        Err(e) => failed(&e, e.to_string()),
    }
}
