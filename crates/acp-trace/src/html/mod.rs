//! Renders a trace as a single self-contained HTML page with the messages on a time axis, the findings, and each
//! session as the user saw it.
//!
//! Everything that a peer sent is treated as hostile. The page contains it only as data that the browser never parses
//! as markup, and as text that maud escapes. Only the page's own script and style are used, because its content
//! security policy lists their digests. Nothing can be fetched.
//!
//! Messages are written as they are read, so a trace of any size needs only the memory of its index. In the page, they
//! are in blocks with one message per line. The script parses only the blocks that are viewed.

mod blocks;
mod index;
mod session;
mod sessions;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, Write};

use base64::Engine as _;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::entry::EntryBuilder;
use super::format::{RecordBody, Secrets, TraceEvent, TraceHeader, TraceRecord};
use super::read::{TraceReadError, TraceReader};
use acp_html::{THREAD_STYLE, text};
use acp_rules::Side;
use blocks::BlockWriter;
use index::PageIndex;
use sessions::TracedSessions;

/// The page's own style. It follows that of the threads.
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = concat!(
    "'use strict';\n(() => {\n",
    include_str!("script/data.js"),
    include_str!("script/timeline.js"),
    include_str!("script/axis.js"),
    include_str!("script/filter.js"),
    include_str!("script/inspector.js"),
    include_str!("script/page.js"),
    "})();\n",
);

/// A finding to show in the page. It concerns the message on one line of the trace, or a missing message that should
/// have followed it.
#[derive(Debug, Clone, Serialize)]
pub struct PageFinding {
    /// The number of the trace line that the finding is about.
    pub line: u64,
    /// The level of the requirement: `MUST`, `SHOULD` or `MAY`.
    pub level: String,
    /// The side that broke the rule, if there is one.
    pub who: Option<Side>,
    /// The name of the rule that is broken.
    pub rule: String,
    /// The problem, as a sentence.
    pub text: String,
}

/// The reason why a page could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// The trace could not be read.
    #[error("cannot read the trace: {0}")]
    Read(#[from] TraceReadError),
    /// The page could not be written.
    #[error("cannot write the page: {0}")]
    Write(#[from] io::Error),
}

/// A summary of a trace that was written as a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageSummary {
    /// The number of records in the trace.
    pub records: usize,
    /// The number of lines that are not records. Each appears as a note in the page.
    pub notes: usize,
    /// Whether the trace is complete.
    pub ended: bool,
}

/// Writes a trace as an HTML page to `out`.
///
/// # Errors
/// The trace could not be read, or the page could not be written. What was written so far is an incomplete page.
pub fn write_page<R: BufRead>(
    mut reader: TraceReader<R>,
    findings: &[PageFinding],
    out: &mut impl Write,
) -> Result<PageSummary, PageError> {
    out.write_all(render_head(reader.header()).into_string().as_bytes())?;
    let mut making = PageBuilder::default();
    let mut blocks = BlockWriter::new(out);
    for record in reader.by_ref() {
        match record {
            Ok(record) => making.add_record(record, &mut blocks)?,
            Err(error) if error.is_line_error() => making.notes.push(error.to_string()),
            Err(error) => return Err(error.into()),
        }
    }
    if !making.ended {
        let torn = if reader.has_partial_line() {
            " in the middle of a record"
        } else {
            ""
        };
        making.notes.push(format!(
            "The trace ends here{torn}: recording was still in progress, or the file is truncated."
        ));
    }
    let starts = blocks.finish()?;
    making.write_rest(&starts, findings, out)?;
    Ok(PageSummary {
        records: making.index.len(),
        notes: making.notes.len() - usize::from(!making.ended),
        ended: making.ended,
    })
}

/// The data collected from the trace so far.
#[derive(Default)]
struct PageBuilder {
    entry_builder: EntryBuilder,
    index: PageIndex,
    sessions: TracedSessions,
    notes: Vec<String>,
    ended: bool,
}

impl PageBuilder {
    fn add_record(
        &mut self,
        record: TraceRecord,
        blocks: &mut BlockWriter<'_, impl Write>,
    ) -> io::Result<()> {
        self.ended |= matches!(record.body, RecordBody::Event(TraceEvent::End));
        self.sessions.record_message(&record, self.index.len());
        let (length, redacted) = match &record.body {
            RecordBody::Message {
                length, redacted, ..
            } => (*length, *redacted),
            RecordBody::Noise { length, .. } | RecordBody::Oversized { length, .. } => (*length, 0),
            _ => (0, 0),
        };
        let said = plain_text(&record.body);
        let Some(entry) = self.entry_builder.build_entry(record) else {
            return Ok(());
        };
        match (&entry.message, said) {
            (Some(message), _) => blocks.write_json(message.get())?,
            (None, Some(text)) => blocks.write_text(&text)?,
            (None, None) => blocks.write_text(&entry.summary)?,
        }
        self.index.push(&entry, length, redacted);
        Ok(())
    }

    /// Writes the rest of the page, after the messages.
    fn write_rest(
        &self,
        starts: &[usize],
        findings: &[PageFinding],
        out: &mut impl Write,
    ) -> Result<(), PageError> {
        write_data(out, "index", &self.index.with_blocks(starts))?;
        write_data(out, "findings", &findings)?;
        write_data(out, "notes", &self.notes)?;
        let told: Vec<&str> = self
            .sessions
            .iter()
            .map(|session| session.id.as_str())
            .collect();
        write_data(out, "told-ids", &told)?;
        for session in self.sessions.iter() {
            let told = session::session_markup(session);
            // The contents of a template are not part of the document until they are viewed.
            let told = html! { template.session { (told) } };
            out.write_all(told.into_string().as_bytes())?;
        }
        if let Some(more) = self.sessions.omission_note() {
            let more = html! { template.session { p.left-out { (more) } } };
            out.write_all(more.into_string().as_bytes())?;
        }
        let script = html! { script { (PreEscaped(SCRIPT)) } };
        out.write_all(script.into_string().as_bytes())?;
        out.write_all(b"</body></html>\n")?;
        Ok(())
    }
}

/// Returns the full text of a record that is not a message. The record's summary may be only part of it.
fn plain_text(what: &RecordBody) -> Option<String> {
    match what {
        RecordBody::Noise { bytes, .. } => Some(String::from_utf8_lossy(bytes).into_owned()),
        RecordBody::Stderr(line) => Some(line.clone()),
        _ => None,
    }
}

/// Writes `data` as JSON into an element with this id, where the script looks for it.
fn write_data(out: &mut impl Write, id: &str, data: &impl Serialize) -> io::Result<()> {
    let json = serde_json::to_string(data)?;
    write!(out, "<script type=\"application/json\" id=\"{id}\">")?;
    out.write_all(blocks::escape_markup(&json).as_bytes())?;
    out.write_all(b"</script>")
}

/// Returns the hash that a content security policy uses to allow a script or a style.
fn csp_hash(text: &str) -> String {
    let digest = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!("'sha256-{digest}'")
}

/// Renders the page up to the messages, including the trace's header. This part does not depend on the records.
fn render_head(header: &TraceHeader) -> Markup {
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        csp_hash(SCRIPT),
        csp_hash(THREAD_STYLE) + " " + &csp_hash(STYLE)
    );
    let command = text::sanitize_line(&header.command.join(" "));
    let secrets = match header.secrets {
        Secrets::Redacted => "secrets redacted",
        Secrets::Kept => "secrets included",
    };
    html! {
        (DOCTYPE)
        (PreEscaped("<html lang=\"en\">"))
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(policy);
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="referrer" content="no-referrer";
            title { "acp trace: " (command) }
            style { (PreEscaped(THREAD_STYLE)) }
            style { (PreEscaped(STYLE)) }
        }
        (PreEscaped("<body>"))
        header {
            div.what {
                h1 { code title="The agent's command line" { (command) } }
                p.soft {
                    span { (text::sanitize_line(&header.started)) }
                    span { (text::sanitize_line(&header.by)) }
                    span.kept[header.secrets == Secrets::Kept] { (secrets) }
                    span #counts {}
                }
            }
            nav role="tablist" {
                button #tab-messages role="tab" aria-selected="true" { "Messages" }
                button #tab-sessions role="tab" aria-selected="false" { "Conversation" }
                button #tab-findings role="tab" aria-selected="false" { "Findings" }
            }
        }
        noscript { p { "Enable JavaScript to view the messages." } }
        main #messages {
            div #filters {
                input #search type="search" placeholder="Search all messages" aria-label="Search all messages" autocomplete="off" spellcheck="false";
                select #session aria-label="Session" { option value="" { "All sessions" } }
                select #method aria-label="Method" { option value="" { "All methods" } }
                select #from aria-label="Who" {
                    option value="" { "Both sides" }
                    option value="c" { "Client → agent" }
                    option value="a" { "Agent → client" }
                    option value="s" { "stderr" }
                    option value="v" { "Process" }
                }
                label { input #errors type="checkbox"; "Errors" }
                output #found {}
            }
            div #axis { canvas #density role="img" aria-label="Messages over time; click to jump" {} }
            div #split {
                section #timeline aria-label="Messages" {
                    div #lanes { span.time { "Time" } span { "Client" } span { "Agent" } }
                    div #list tabindex="0" { div #rows {} }
                }
                section #inspector aria-label="The message" { p.empty { "Select a message to view its JSON and the matching response." } }
            }
        }
        main #sessions hidden { nav #session-tabs {} div #told {} }
        main #findings-page hidden {}
    }
}
