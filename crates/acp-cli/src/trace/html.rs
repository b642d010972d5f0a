//! `acp trace html`: a trace as one page.

use std::io::Write as _;
use std::path::Path;

use acp_check::trace::{Page, PageError, Reader, page};

use super::args::HtmlArgs;
use crate::exit::Exit;
use crate::screen;

pub(super) fn html(args: &HtmlArgs) -> Exit {
    let reader = match Reader::open(&args.file) {
        Ok(reader) => reader,
        Err(e) => return Exit::failed(format!("{} {e}", args.file.display())),
    };
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| args.file.with_extension("html"));
    if out == Path::new("-") {
        return to_stdout(reader);
    }
    match to_file(reader, &out) {
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
        Err(e) => Exit::failed(format!("{} to {}: {e}", args.file.display(), out.display())),
    }
}

/// Written beside its place first, so that there is never half a page. You alone can read it, as the trace.
fn to_file(
    reader: Reader<std::io::BufReader<std::fs::File>>,
    out: &Path,
) -> Result<Page, PageError> {
    let directory = match out.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let file = tempfile::NamedTempFile::new_in(directory)?;
    let mut writer = std::io::BufWriter::with_capacity(256 * 1024, file);
    let page = page(reader, &[], &mut writer)?;
    let file = writer.into_inner().map_err(|e| e.into_error())?;
    file.persist(out).map_err(|e| e.error)?;
    Ok(page)
}

fn to_stdout(reader: Reader<std::io::BufReader<std::fs::File>>) -> Exit {
    let mut out = std::io::BufWriter::with_capacity(256 * 1024, std::io::stdout().lock());
    let written = page(reader, &[], &mut out).and_then(|_| Ok(out.flush()?));
    match written {
        Ok(()) => Exit::SUCCESS,
        Err(PageError::Write(e)) if e.kind() == std::io::ErrorKind::BrokenPipe => Exit::UNREAD,
        Err(e) => Exit::failed(e.to_string()),
    }
}
