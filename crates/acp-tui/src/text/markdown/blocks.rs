//! The blocks of one unit as lines.

use pulldown_cmark::{BlockQuoteKind, CodeBlockKind, Event, HeadingLevel, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::code::Waiting;
use super::inline::{Inline, address};
use super::table::Table;
use super::{code, options};
use crate::text::wrap::{Indent, width_of, wrap_into};
use crate::theme::Theme;

/// Lists and quotations within each other that are indented. Deeper ones stand as far in as these.
const MAX_DEPTH: usize = 12;

/// What became of a unit.
pub(super) struct LaidOut {
    pub(super) lines: Vec<Line<'static>>,
    /// The code among it, its rows counted from the first of the lines.
    pub(super) waiting: Vec<Waiting>,
}

/// The lines of `text` in `width` columns. Code in it gets its colours if the text is `settled`.
pub(super) fn lay_out(text: &str, width: u16, theme: &Theme, settled: bool) -> LaidOut {
    let parser = Parser::new_ext(text, options());
    let mut definitions: Vec<(usize, String)> = parser
        .reference_definitions()
        .iter()
        .map(|(label, definition)| {
            let to = address(&definition.dest);
            (definition.span.start, format!("[{label}]: {to}"))
        })
        .collect();
    definitions.sort_unstable_by(|a, b| b.cmp(a));
    let mut writer = Writer::new(width, theme, settled);
    let mut depth = 0usize;
    for (event, range) in parser.into_offset_iter() {
        if depth == 0 && !matches!(event, Event::End(_)) {
            while let Some((_, definition)) = definitions.pop_if(|(start, _)| *start < range.start)
            {
                writer.definition(definition);
            }
            writer.blank |= writer.defined;
            writer.defined = false;
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        writer.event(event);
    }
    writer.flush();
    while let Some((_, definition)) = definitions.pop() {
        writer.definition(definition);
    }
    LaidOut {
        lines: writer.out,
        waiting: writer.waiting,
    }
}

struct Writer<'a> {
    theme: &'a Theme,
    width: u16,
    out: Vec<Line<'static>>,
    /// The lists, quotations and notes that what follows stands in.
    levels: Vec<Level>,
    /// The number of the next item of each list, if they have one.
    lists: Vec<Option<u64>>,
    inline: Inline<'a>,
    /// An empty line goes before the next.
    blank: bool,
    /// What stands there last is a definition.
    defined: bool,
    /// Code or HTML that is being gathered.
    literal: Option<(Literal, String)>,
    table: Option<Table>,
    settled: bool,
    waiting: Vec<Waiting>,
}

enum Literal {
    Code(String),
    Html,
}

struct Level {
    indent: Indent,
    /// Something stands in it.
    begun: bool,
    /// It is an item between which and its neighbours there is an empty line.
    loose: bool,
}

impl<'a> Writer<'a> {
    fn new(width: u16, theme: &'a Theme, settled: bool) -> Self {
        Self {
            theme,
            width,
            out: Vec::new(),
            levels: Vec::new(),
            lists: Vec::new(),
            inline: Inline::new(theme),
            blank: false,
            defined: false,
            literal: None,
            table: None,
            settled,
            waiting: Vec::new(),
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.literal {
                Some((_, gathered)) => gathered.push_str(&text),
                None => self.inline.text(&text),
            },
            Event::Code(code) => self.inline.code(&code),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.inline.text(&text),
            Event::Html(html) => match &mut self.literal {
                Some((_, gathered)) => gathered.push_str(&html),
                None => self.inline.html(&html),
            },
            Event::InlineHtml(html) => self.inline.html(&html),
            Event::FootnoteReference(label) => self.inline.text(&format!("[^{label}]")),
            Event::SoftBreak => self.inline.text(" "),
            Event::HardBreak => self.inline.hard_break(),
            Event::Rule => {
                self.flush();
                let rule = "─".repeat(self.room());
                self.put(&Line::styled(rule, self.theme.border));
                self.blank = true;
            }
            Event::TaskListMarker(done) => {
                let (mark, style) = if done {
                    ("[x] ", self.theme.good)
                } else {
                    ("[ ] ", self.theme.text)
                };
                if let Some(level) = self.levels.last_mut().filter(|level| !level.begun) {
                    level.indent = hanging(mark, style);
                }
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Emphasis => self.inline.push_modifier(Modifier::ITALIC),
            Tag::Strong => self.inline.push(self.theme.strong),
            Tag::Strikethrough => self.inline.push_modifier(Modifier::CROSSED_OUT),
            Tag::Superscript | Tag::Subscript => self.inline.push(Style::new()),
            Tag::Link { dest_url, .. } => self.inline.begin_link(&dest_url),
            Tag::Image { dest_url, .. } => self.inline.begin_image(&dest_url),
            Tag::TableHead | Tag::TableRow | Tag::TableCell => {}
            block => {
                self.flush();
                self.start_block(block);
            }
        }
    }

    fn start_block(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => self.inline.push(self.heading(level)),
            Tag::BlockQuote(kind) => {
                let bar = vec![Span::styled("▎ ", self.theme.border)];
                self.enter(Indent {
                    first: bar.clone(),
                    rest: bar,
                });
                if let Some(kind) = kind {
                    self.put(&self.alert(kind));
                }
                self.inline.push(self.theme.quote);
            }
            Tag::CodeBlock(kind) => {
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.literal = Some((Literal::Code(info), String::new()));
            }
            Tag::HtmlBlock => self.literal = Some((Literal::Html, String::new())),
            Tag::List(first) => self.lists.push(first),
            Tag::Item => {
                let depth = self.lists.len();
                let indent = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let indent = hanging(&format!("{number}. "), self.theme.dim);
                        *number = number.saturating_add(1);
                        indent
                    }
                    _ => hanging(["– ", "• ", "◦ "][depth % 3], self.theme.dim),
                };
                self.enter(indent);
            }
            Tag::FootnoteDefinition(label) => {
                let label = format!("[^{label}]: ");
                self.enter(Indent {
                    first: vec![Span::styled(label, self.theme.dim)],
                    rest: vec![Span::raw("  ")],
                });
            }
            Tag::Table(alignments) => self.table = Some(Table::new(alignments)),
            Tag::Paragraph if !self.lists.is_empty() => {
                if let Some(level) = self.levels.last_mut() {
                    level.loose = true;
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript => self.inline.pop(),
            TagEnd::Link => self.inline.end_link(),
            TagEnd::Image => self.inline.end_image(),
            TagEnd::TableCell => {
                let cell = self.inline.take();
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    for line in table.lines(self.room(), self.theme) {
                        self.put(&line);
                    }
                }
                self.blank = true;
            }
            TagEnd::Paragraph => {
                self.flush();
                self.blank = true;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.inline.pop();
                self.blank = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.inline.pop();
                self.leave();
                self.blank = true;
            }
            TagEnd::CodeBlock | TagEnd::HtmlBlock => {
                self.literal();
                self.blank = true;
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.blank = true;
            }
            TagEnd::Item => {
                self.flush();
                let loose = self.leave();
                self.blank = loose;
            }
            TagEnd::FootnoteDefinition => {
                self.flush();
                self.leave();
                self.blank = true;
            }
            _ => {}
        }
    }

    fn heading(&self, level: HeadingLevel) -> Style {
        match level {
            HeadingLevel::H1 => self.theme.heading.add_modifier(Modifier::UNDERLINED),
            HeadingLevel::H2 => self.theme.heading,
            _ => self.theme.heading.add_modifier(Modifier::ITALIC),
        }
    }

    fn alert(&self, kind: BlockQuoteKind) -> Line<'static> {
        let (name, style) = match kind {
            BlockQuoteKind::Note => ("Note", self.theme.accent),
            BlockQuoteKind::Tip => ("Tip", self.theme.good),
            BlockQuoteKind::Important => ("Important", self.theme.accent),
            BlockQuoteKind::Warning => ("Warning", self.theme.warn),
            BlockQuoteKind::Caution => ("Caution", self.theme.bad),
        };
        Line::styled(name, style.add_modifier(Modifier::BOLD))
    }

    fn enter(&mut self, indent: Indent) {
        self.levels.push(Level {
            indent,
            begun: false,
            loose: false,
        });
    }

    /// Whether it was loose. What has nothing in it still has its bullet or bar.
    fn leave(&mut self) -> bool {
        if self.levels.last().is_some_and(|level| !level.begun) {
            self.put(&Line::default());
        }
        self.levels.pop().is_some_and(|level| level.loose)
    }

    /// The text that was gathered.
    fn flush(&mut self) {
        for line in self.inline.take() {
            self.put(&line);
        }
    }

    fn literal(&mut self) {
        let Some((kind, text)) = self.literal.take() else {
            return;
        };
        match kind {
            Literal::Html => {
                for line in text.lines() {
                    self.put(&Line::styled(line.to_owned(), self.theme.dim));
                }
            }
            Literal::Code(info) => {
                self.put(&code::top(&info, self.theme));
                let edge = code::edge(self.theme);
                let mut waiting = None;
                if self.settled {
                    // Behind the first line each stands in the same place.
                    waiting = Waiting::new(&info, self.indent(&edge), self.theme);
                }
                for line in text.lines() {
                    let from = self.out.len();
                    self.put_in(&Line::from(line), &edge);
                    if let Some(waiting) = &mut waiting {
                        waiting.push(line, from, self.out.len());
                    }
                }
                self.waiting.extend(waiting);
                self.put(&code::bottom(self.theme));
            }
        }
    }

    /// Where a reference leads.
    fn definition(&mut self, text: String) {
        self.blank &= !self.defined;
        self.put(&Line::styled(text, self.theme.dim));
        self.defined = true;
    }

    fn put(&mut self, line: &Line<'_>) {
        self.put_in(line, &Indent::default());
    }

    /// Puts a line where it belongs, with `inner` in front of it.
    fn put_in(&mut self, line: &Line<'_>, inner: &Indent) {
        if std::mem::take(&mut self.blank) && !self.out.is_empty() {
            let mut bars: Vec<Span<'static>> = self
                .levels
                .iter()
                .take(MAX_DEPTH)
                .take_while(|level| level.begun)
                .flat_map(|level| level.indent.rest.iter().cloned())
                .collect();
            while bars.pop_if(|bar| bar.content.trim().is_empty()).is_some() {}
            let indent = Indent {
                first: bars,
                rest: Vec::new(),
            };
            wrap_into(&Line::default(), self.width, &indent, &mut self.out);
        }
        let indent = self.indent(inner);
        for level in &mut self.levels {
            level.begun = true;
        }
        wrap_into(line, self.width, &indent, &mut self.out);
    }

    /// What stands in front of the next line, and of what of it has no room.
    fn indent(&self, inner: &Indent) -> Indent {
        let mut indent = Indent::default();
        for level in self.levels.iter().take(MAX_DEPTH) {
            let first = if level.begun {
                &level.indent.rest
            } else {
                &level.indent.first
            };
            indent.first.extend_from_slice(first);
            indent.rest.extend_from_slice(&level.indent.rest);
        }
        indent.first.extend_from_slice(&inner.first);
        indent.rest.extend_from_slice(&inner.rest);
        indent
    }

    /// Columns that are left for what stands here, at least 1.
    fn room(&self) -> usize {
        let taken: usize = self
            .levels
            .iter()
            .take(MAX_DEPTH)
            .flat_map(|level| &level.indent.rest)
            .map(|span| width_of(&Line::from(span.clone())))
            .sum();
        usize::from(self.width).saturating_sub(taken).max(1)
    }
}

/// A mark in front of the first line, and as much space in front of the others.
fn hanging(mark: &str, style: Style) -> Indent {
    let space = " ".repeat(width_of(&Line::from(mark)));
    Indent {
        first: vec![Span::styled(mark.to_owned(), style)],
        rest: vec![Span::raw(space)],
    }
}
