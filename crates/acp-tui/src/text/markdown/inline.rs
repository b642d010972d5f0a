//! Lays out the inline content of a paragraph: styles, links and breaks.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::theme::{Colors, Theme};

/// The maximum number of characters to show of the data in a `data:` URL.
const MAX_DATA_URL_CHARS: usize = 64;

/// The inline content of a paragraph while it is being collected.
pub(super) struct InlineText<'a> {
    theme: &'a Theme,
    /// The lines collected so far. Each hard break starts a new line.
    lines: Vec<Line<'static>>,
    styles: Vec<Style>,
    links: Vec<InlineLink>,
}

struct InlineLink {
    url: String,
    /// The text of the link.
    text: String,
}

impl<'a> InlineText<'a> {
    pub(super) fn new(theme: &'a Theme) -> Self {
        Self {
            theme,
            lines: Vec::new(),
            styles: vec![theme.text],
            links: Vec::new(),
        }
    }

    /// Takes the collected lines and starts over.
    pub(super) fn take(&mut self) -> Vec<Line<'static>> {
        let mut lines = std::mem::take(&mut self.lines);
        for line in &mut lines {
            if line.spans.iter().any(|span| span.content.contains("://")) {
                self.mark_urls(line);
            }
        }
        lines
    }

    /// Styles the bare URLs in a line as links.
    fn mark_urls(&self, line: &mut Line<'static>) {
        for span in std::mem::take(&mut line.spans) {
            let mut rest = span.content.as_ref();
            // The target that is shown after a link must not stand out more than the link itself.
            let dim = self.theme.dim;
            let is_dim = dim != Style::new() && span.style.patch(dim) == span.style;
            while !is_dim && let Some(at) = find_url(rest) {
                let (before, from) = rest.split_at(at);
                let (found, after) = from.split_at(url_len(from));
                if !before.is_empty() {
                    line.spans.push(Span::styled(before.to_owned(), span.style));
                }
                let style = span.style.patch(self.theme.link);
                line.spans.push(Span::styled(found.to_owned(), style));
                rest = after;
            }
            if !rest.is_empty() {
                line.spans.push(Span::styled(rest.to_owned(), span.style));
            }
        }
    }

    fn current_style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    /// Starts text in `style`, on top of the current style.
    pub(super) fn push(&mut self, style: Style) {
        self.styles.push(self.current_style().patch(style));
    }

    pub(super) fn push_modifier(&mut self, modifier: Modifier) {
        self.push(Style::new().add_modifier(modifier));
    }

    pub(super) fn pop(&mut self) {
        if self.styles.len() > 1 {
            self.styles.pop();
        }
    }

    pub(super) fn push_text(&mut self, text: &str) {
        if let Some(link) = self.links.last_mut() {
            link.text.push_str(text);
        }
        self.push_span(text, self.current_style());
    }

    pub(super) fn push_code(&mut self, code: &str) {
        if let Some(link) = self.links.last_mut() {
            link.text.push_str(code);
        }
        let style = self.current_style().patch(self.theme.code);
        if self.theme.colors == Colors::None {
            // Without colors or styles, nothing else would distinguish the code from the text around it.
            self.push_span("`", style);
            self.push_span(code, style);
            self.push_span("`", style);
        } else {
            self.push_span(code, style);
        }
    }

    /// Adds an HTML tag. Shows the tag as written unless it is a line break.
    pub(super) fn push_html(&mut self, html: &str) {
        let name = html.trim_matches(['<', '>', '/', ' ']).to_ascii_lowercase();
        if name == "br" {
            self.hard_break();
        } else {
            self.push_span(html, self.current_style().patch(self.theme.dim));
        }
    }

    pub(super) fn hard_break(&mut self) {
        if self.lines.is_empty() {
            self.lines.push(Line::default());
        }
        self.lines.push(Line::default());
    }

    pub(super) fn begin_link(&mut self, address: &str) {
        self.links.push(InlineLink {
            url: address.to_owned(),
            text: String::new(),
        });
        self.push(self.theme.link);
    }

    pub(super) fn begin_image(&mut self, address: &str) {
        self.push_span("[image: ", self.current_style().patch(self.theme.accent));
        self.begin_link(address);
        self.pop();
        self.push(self.theme.accent);
    }

    pub(super) fn end_image(&mut self) {
        self.push_span("]", self.current_style());
        self.end_link();
    }

    /// Ends a link. Shows the target after the text if they differ.
    pub(super) fn end_link(&mut self) {
        self.pop();
        let Some(link) = self.links.pop() else {
            return;
        };
        if let Some(outer) = self.links.last_mut() {
            outer.text.push_str(&link.text);
        }
        let said =
            link.url == link.text || link.url.strip_prefix("mailto:") == Some(link.text.as_str());
        if !said && !link.url.is_empty() {
            let behind = format!(" ({})", format_url(&link.url));
            self.push_span(&behind, self.current_style().patch(self.theme.dim));
        }
    }

    fn push_span(&mut self, text: &str, style: Style) {
        if self.lines.is_empty() {
            self.lines.push(Line::default());
        }
        let Some(line) = self.lines.last_mut() else {
            return;
        };
        match line.spans.last_mut() {
            Some(span) if span.style == style => span.content.to_mut().push_str(text),
            _ => line.spans.push(Span::styled(text.to_owned(), style)),
        }
    }
}

/// Returns the length in bytes of the URL at the start of a text. It is at least the length of the URL's scheme.
///
/// The URL excludes punctuation that ends the sentence, and a bracket around it.
fn url_len(text: &str) -> usize {
    let end = text
        .find(|c: char| !c.is_ascii_graphic() || matches!(c, '<' | '>' | '"' | '`'))
        .unwrap_or(text.len());
    let whole = text.get(..end).unwrap_or(text);
    let open = whole.contains('(');
    whole
        .trim_end_matches(|c| {
            matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '\'') || (c == ')' && !open)
        })
        .len()
        .max("http".len())
}

/// Returns the web addresses in a text.
pub(crate) fn find_urls(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let at = find_url(rest)?;
        let from = rest.get(at..)?;
        let (url, after) = from.split_at_checked(url_len(from))?;
        rest = after;
        Some(url)
    })
}

/// Returns where the first web address of a text begins.
fn find_url(text: &str) -> Option<usize> {
    let starts = ["https://", "http://"].iter();
    starts.filter_map(|start| text.find(start)).min()
}

/// Formats a URL for display, abbreviating long data.
pub(super) fn format_url(address: &str) -> String {
    match address.split_once(',') {
        Some((kind, data)) if kind.starts_with("data:") && data.len() > MAX_DATA_URL_CHARS => {
            format!("{kind}, {} bytes", data.len())
        }
        _ => address.to_owned(),
    }
}
