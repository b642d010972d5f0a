//! Changes of files, as they are asked about.

use std::time::Duration;

use acp::thread::{Diff, FileChange, FileTexts};
use ratatui::text::{Line, Span};
use similar::{ChangeTag, TextDiff};

use super::lines::{Break, exact, wrap};
use crate::look::Look;

/// How long a diff may be worked on before it is made coarser.
const DIFFING: Duration = Duration::from_millis(200);

/// All changes, whole: each with a line that names the file.
pub(super) fn lines(diff: &Diff, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
    let theme = look.theme;
    let mut lines = Vec::new();
    for change in &diff.changes {
        lines.extend(name(change, width, look));
        if let Some(texts) = &change.texts {
            lines.extend(show_texts(texts, width, look));
        }
    }
    for line in diff.patch.iter().flat_map(|patch| patch.text.lines()) {
        let style = match line.as_bytes().first() {
            _ if line.starts_with("---") || line.starts_with("+++") => theme.strong,
            Some(b'+') => theme.added,
            Some(b'-') => theme.removed,
            Some(b'@') => theme.accent,
            _ => theme.text,
        };
        let spans = exact(line, style, theme);
        lines.extend(wrap(&spans, Break::Anywhere, 2, width));
    }
    lines
}

fn name(change: &FileChange, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
    let theme = look.theme;
    let shown = |path: &str| {
        let inside = std::path::Path::new(path).strip_prefix(look.cwd).ok();
        let inside = inside.and_then(std::path::Path::to_str);
        inside.unwrap_or(path).replace('\n', "\\n")
    };
    let what = format!("{} ", change.operation.as_str().replace('\n', " "));
    let mut spans = exact(&what, theme.dim, theme);
    if let Some(old) = &change.old_path {
        spans.extend(exact(&shown(old), theme.strong, theme));
        spans.push(Span::styled(" to ", theme.dim));
    }
    spans.extend(exact(&shown(&change.path), theme.strong, theme));
    wrap(&spans, Break::Anywhere, 2, width)
}

fn show_texts(texts: &FileTexts, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
    let theme = look.theme;
    let old = texts.old.as_deref().unwrap_or_default();
    let diff = TextDiff::configure()
        .timeout(DIFFING)
        .diff_lines(old, &texts.new);
    // Where both end their lines alike, how they do says nothing.
    let alike = texts.old.is_none() || old.contains("\r\n") == texts.new.contains("\r\n");
    let mut lines = Vec::new();
    let mut last = 0;
    for group in diff.grouped_ops(3) {
        let first = group.first().map_or(0, |op| op.old_range().start);
        if first > last {
            let unchanged = format!("  ⋯ {} unchanged lines", first - last);
            lines.push(Line::styled(unchanged, theme.dim));
        }
        last = group.last().map_or(last, |op| op.old_range().end);
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (sign, style) = match change.tag() {
                ChangeTag::Insert => ("+ ", theme.added),
                ChangeTag::Delete => ("- ", theme.removed),
                ChangeTag::Equal => ("  ", theme.dim),
            };
            let mut spans = vec![Span::styled(sign, style)];
            let text = change.value().trim_end_matches('\n');
            let text = text.strip_suffix('\r').filter(|_| alike).unwrap_or(text);
            spans.extend(exact(text, style, theme));
            lines.extend(wrap(&spans, Break::Anywhere, 2, width));
            if change.missing_newline() {
                lines.push(Line::styled("  (no newline at the end)", theme.dim));
            }
        }
    }
    if lines.is_empty() {
        lines.push(Line::styled("  no change", theme.dim));
    }
    lines
}
