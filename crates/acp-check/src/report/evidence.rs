//! Formats the lines of a transcript so that they are safe to print.

use std::fmt::Write as _;

use acp_rules::schema::Direction;

use crate::transcript::{Transcript, TranscriptEntry};

/// A line of evidence in a report: a message or another event.
pub(super) struct EvidenceLine {
    /// The time in seconds since the start of the check.
    pub(super) at: f64,
    /// The side that sent the message: `client` or `agent`. Empty for other events.
    pub(super) from: &'static str,
    pub(super) text: String,
}

/// Formats a transcript as lines, without terminal control sequences.
pub(super) fn evidence_lines(transcript: &Transcript) -> Vec<EvidenceLine> {
    let lines = transcript.entries().iter().map(|entry| match entry {
        TranscriptEntry::Line {
            at,
            direction,
            text,
            length,
        } => {
            let mut shown = strip_controls(text);
            if *length > text.len() {
                let _ = write!(shown, "… ({length} bytes)");
            }
            EvidenceLine {
                at: at.as_secs_f64(),
                from: direction.sender(),
                text: shown,
            }
        }
        TranscriptEntry::Event {
            at,
            description: what,
        } => EvidenceLine {
            at: at.as_secs_f64(),
            from: "",
            text: strip_controls(what),
        },
    });
    let mut lines: Vec<EvidenceLine> = lines.collect();
    let omitted = match transcript.omitted_count() {
        0 => return lines,
        1 => "… and 1 more line".to_owned(),
        count => format!("… and {count} more lines"),
    };
    lines.push(EvidenceLine {
        at: 0.0,
        from: "",
        text: omitted,
    });
    lines
}

/// Returns an arrow that shows the direction of a line.
pub(super) fn direction_arrow(from: &str) -> &'static str {
    if from == Direction::ToAgent.sender() {
        "→ agent "
    } else if from == Direction::ToClient.sender() {
        "← agent "
    } else {
        "        "
    }
}

/// Removes control characters, and characters that change the direction of text.
pub(super) fn strip_controls(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
            let _ = write!(shown, "{}", c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}
