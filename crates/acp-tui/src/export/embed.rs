//! Makes Markdown from messages safe to embed in the exported document.

use std::cmp::Reverse;
use std::ops::Range;

use acp_host::terminal_text;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag};

use super::fenced_block;

/// The maximum number of attempts before the text is shown verbatim.
const MAX_ATTEMPTS: usize = 8;

/// Makes Markdown safe to embed in the exported document.
///
/// Its headings are below the three levels of the document's own, it has no HTML, and each block it opens is closed at
/// its end. Text that cannot be made safe is shown verbatim.
pub(super) fn embed_markdown(text: &str) -> String {
    let mut text = terminal_text::clean_text(text)
        .trim_matches('\n')
        .to_owned();
    for _ in 0..MAX_ATTEMPTS {
        let edits: Vec<Replacement> = markdown_options()
            .into_iter()
            .flat_map(|dialect| find_replacements(&text, dialect))
            .collect();
        if edits.is_empty() {
            break;
        }
        apply_replacements(&mut text, edits);
    }
    if !markdown_options()
        .into_iter()
        .all(|dialect| is_self_contained(&text, dialect))
    {
        return fenced_block("", &text);
    }
    text
}

/// Returns the parser options for the Markdown dialects that different viewers use.
///
/// What is HTML or a heading in one of them is not in another, and the result must be safe in all.
fn markdown_options() -> [Options; 3] {
    let github = Options::ENABLE_TABLES
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_GFM;
    [github | Options::ENABLE_FOOTNOTES, github, Options::empty()]
}

/// A byte range of the text and its replacement.
type Replacement = (Range<usize>, String);

/// Finds the ranges to replace, and what to replace them with.
fn find_replacements(text: &str, dialect: Options) -> Vec<Replacement> {
    let mut edits: Vec<Replacement> = Vec::new();
    let mut depth = 0usize;
    for (event, range) in Parser::new_ext(text, dialect).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                edits.extend(demote_heading(text, range, level));
            }
            Event::Html(_) | Event::InlineHtml(_) => {
                edits.extend(escape_html(text, range));
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) if depth == 0 => {
                edits.extend(close_open_fence(text, range));
                depth += 1;
            }
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    edits
}

/// Applies replacements from the end of the text to its start so that earlier positions remain valid.
///
/// Overlapping replacements are left for the next attempt.
fn apply_replacements(text: &mut String, mut edits: Vec<Replacement>) {
    edits.sort_by_key(|(range, _)| Reverse((range.start, range.end)));
    let mut from = usize::MAX;
    for (range, new) in edits {
        // Several dialects often ask for the same replacement.
        if range.end <= from && range.start < from {
            from = range.start;
            text.replace_range(range, &new);
        }
    }
}

/// Demotes a heading if its level is reserved for the document's own headings.
fn demote_heading(text: &str, range: Range<usize>, level: HeadingLevel) -> Option<Replacement> {
    if level > HeadingLevel::H3 {
        return None;
    }
    let source = text.get(range.clone())?;
    let lower = "#".repeat((level as usize + 3).min(6));
    let marks = source.len() - source.trim_start_matches('#').len();
    if marks > 0 {
        return Some((range.start..range.start + marks, lower));
    }
    // The underline of a heading is escaped, so that the text is kept but is not a heading.
    let (words, line) = source.trim_end().rsplit_once('\n')?;
    let quoted = line.len() - line.trim_start_matches([' ', '\t', '>']).len();
    let at = range.start + words.len() + 1 + quoted;
    Some((at..at, "\\".to_owned()))
}

/// Escapes HTML so that it is displayed as text.
fn escape_html(text: &str, range: Range<usize>) -> Vec<Replacement> {
    let source = text.get(range.clone()).unwrap_or_default();
    let edit = |(at, _): (usize, &str)| {
        let at = range.start + at;
        (at..at + 1, "&lt;".to_owned())
    };
    source.match_indices('<').map(edit).collect()
}

/// Closes a code fence that is still open at the end of the text.
fn close_open_fence(text: &str, range: Range<usize>) -> Option<Replacement> {
    if range.end < text.trim_end().len() {
        return None;
    }
    let source = text.get(range)?;
    let first = source.lines().next()?.trim_start();
    let mark = first.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let fence: String = first.chars().take_while(|c| *c == mark).collect();
    let last = source.lines().skip(1).last().map(str::trim);
    let closed =
        last.is_some_and(|last| last.len() >= fence.len() && last.chars().all(|c| c == mark));
    (!closed).then(|| (text.len()..text.len(), format!("\n{fence}")))
}

/// Returns `true` if the text is self-contained. It must not affect what follows, or look like part of the document's
/// own structure.
fn is_self_contained(text: &str, dialect: Options) -> bool {
    const PROBE_HEADING: &str = "behind";
    let document = format!("{text}\n\n## {PROBE_HEADING}\n");
    let mut depth = 0usize;
    let mut ours = 0;
    let mut at_top = false;
    for event in Parser::new_ext(&document, dialect) {
        match event {
            Event::Html(_) | Event::InlineHtml(_) => return false,
            Event::Start(tag) => {
                if let Tag::Heading { level, .. } = tag
                    && level <= HeadingLevel::H3
                {
                    ours += 1;
                    at_top = depth == 0;
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    ours == 1 && at_top
}
