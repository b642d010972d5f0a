//! Highlights the syntax of code.
//!
//! Highlighting is slow: half a megabyte per second, and a tenth of a second for the first line in a language. So it
//! runs on a separate thread ([`HighlightedCode`]), and code is shown plain until it is done.

mod highlight_thread;
mod palette;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::OnceLock;

use ratatui::text::{Line, Span};
use syntect::highlighting::{self, HighlightIterator, HighlightState};
use syntect::parsing::{ParseState, ScopeStack, SyntaxReference, SyntaxSet};

#[cfg(test)]
pub(crate) use self::highlight_thread::wait_until_idle;
pub(crate) use self::highlight_thread::{
    HighlightedCode, highlight_count, highlighted_lines, wait_for_highlights, with_pending_flag,
};
use self::palette::element_theme;
use crate::theme::SyntaxStyles;

/// The maximum number of lines to highlight per text. The rest are shown plain.
pub(crate) const MAX_LINES: usize = 2_000;
/// The maximum amount of text to highlight, in bytes.
pub(crate) const MAX_BYTES: usize = 200_000;
/// The maximum length of a line to highlight, in bytes.
///
/// Nothing after a longer line is highlighted, because the parser's state at its end is unknown.
pub(crate) const MAX_LINE_BYTES: usize = 1_000;

/// The language of a text, or a file path to derive it from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language<'a> {
    /// The name of the language as written after a code fence: `rust`, `c++`, `sh`.
    Name(&'a str),
    /// The path of the file. If it does not determine the language, the first line does.
    Path(&'a Path),
}

/// A line-by-line syntax highlighter.
///
/// The text of each line stays the same, byte for byte, so that callers can add marks; [`wrap`](super::wrap) makes it
/// safe to show.
struct Highlighter {
    /// The state of the highlighter, or `None` if the language is unknown or the limits are exceeded.
    state: Option<LineHighlighter>,
    lines: usize,
    bytes: usize,
}

struct LineHighlighter {
    assets: &'static HighlightAssets,
    styles: SyntaxStyles,
    parse: ParseState,
    highlight: HighlightState,
    line: String,
}

impl Highlighter {
    /// Creates a highlighter for text whose first line is `first`. Unpacks the syntax definitions if necessary.
    fn new(language: Language<'_>, first: &str, styles: SyntaxStyles) -> Self {
        let loaded = highlight_assets();
        let state = loaded
            .syntax(language, first)
            .map(|syntax| LineHighlighter {
                assets: loaded,
                styles,
                parse: ParseState::new(syntax),
                highlight: HighlightState::new(&loaded.highlighter, ScopeStack::new()),
                line: String::new(),
            });
        Self {
            state,
            lines: 0,
            bytes: 0,
        }
    }

    /// Highlights the next line, given without a line feed.
    fn highlight_line(&mut self, line: &str) -> Line<'static> {
        self.lines += 1;
        self.bytes += line.len();
        if line.len() > MAX_LINE_BYTES || self.lines > MAX_LINES || self.bytes > MAX_BYTES {
            self.state = None;
        }
        let spans = self
            .state
            .as_mut()
            .and_then(|state| state.highlight_line(line));
        match spans {
            Some(spans) => Line::from(spans),
            None => {
                self.state = None;
                Line::from(line.to_owned())
            }
        }
    }
}

impl LineHighlighter {
    /// Highlights a line, or returns `None` if the syntax definition is invalid.
    fn highlight_line(&mut self, line: &str) -> Option<Vec<Span<'static>>> {
        self.line.clear();
        self.line.push_str(line);
        self.line.push('\n');
        let changes = self
            .parse
            .parse_line(&self.line, &self.assets.syntaxes)
            .ok()?;
        let pieces = HighlightIterator::new(
            &mut self.highlight,
            &changes,
            &self.line,
            &self.assets.highlighter,
        );
        let mut spans: Vec<Span<'static>> = Vec::new();
        for (style, text) in pieces {
            let text = text.strip_suffix('\n').unwrap_or(text);
            let style = self.styles.style_for(style.foreground);
            match spans.last_mut() {
                _ if text.is_empty() => {}
                Some(span) if span.style == style => span.content.to_mut().push_str(text),
                _ => spans.push(Span::styled(text.to_owned(), style)),
            }
        }
        Some(spans)
    }
}

fn highlight_assets() -> &'static HighlightAssets {
    static ASSETS: OnceLock<HighlightAssets> = OnceLock::new();
    ASSETS.get_or_init(HighlightAssets::new)
}

struct HighlightAssets {
    syntaxes: SyntaxSet,
    highlighter: highlighting::Highlighter<'static>,
}

impl HighlightAssets {
    fn new() -> Self {
        static THEME: OnceLock<highlighting::Theme> = OnceLock::new();
        Self {
            syntaxes: two_face::syntax::extra_newlines(),
            highlighter: highlighting::Highlighter::new(THEME.get_or_init(element_theme)),
        }
    }

    fn syntax(&self, language: Language<'_>, first: &str) -> Option<&SyntaxReference> {
        match language {
            Language::Name(name) => self.syntax_by_name(name),
            Language::Path(path) => {
                let part = |part: Option<&std::ffi::OsStr>| {
                    let part = part?.to_str()?;
                    self.syntaxes
                        .find_syntax_by_extension(part)
                        .or_else(|| self.syntaxes.find_syntax_by_extension(syntax_alias(part)?))
                };
                part(path.file_name())
                    .or_else(|| part(path.extension()))
                    .or_else(|| {
                        let first = (first.len() <= MAX_LINE_BYTES).then_some(first)?;
                        self.syntaxes.find_syntax_by_first_line(first)
                    })
            }
        }
    }

    fn syntax_by_name(&self, name: &str) -> Option<&SyntaxReference> {
        // More text may follow the name after a fence: `rust,ignore`, `js {1,3}`, `12:40:src/main.rs`.
        let name = name
            .split([',', ' ', '\t', '{'])
            .next()?
            .trim_start_matches('.');
        let name = name.to_ascii_lowercase();
        if matches!(name.as_str(), "" | "text" | "txt" | "plain" | "plaintext") {
            return None;
        }
        self.syntaxes
            .find_syntax_by_token(syntax_alias(&name).unwrap_or(&name))
            .or_else(|| {
                let path = Path::new(name.rsplit(':').next()?);
                let extension = path.extension().or_else(|| path.file_name())?;
                self.syntaxes.find_syntax_by_extension(extension.to_str()?)
            })
    }
}

/// Returns the syntax for a language name that models use but the syntax definitions lack.
fn syntax_alias(name: &str) -> Option<&'static str> {
    Some(match name {
        "shell" | "console" | "shellsession" | "shell-session" | "terminal" | "zsh" | "ksh" => "sh",
        "jsonc" | "json5" | "jsonl" | "ndjson" => "json",
        "golang" => "go",
        "python3" | "pycon" => "py",
        "node" | "jsx" | "mjs" | "cjs" => "js",
        "mts" | "cts" => "ts",
        "csharp" | "c#" => "cs",
        "f#" => "fs",
        "objective-c" => "m",
        "docker" => "dockerfile",
        "rustscript" => "rs",
        "patch" => "diff",
        "hcl" => "tf",
        _ => return None,
    })
}
