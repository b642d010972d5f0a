//! Lays out the Markdown blocks of one unit.

use pulldown_cmark::{BlockQuoteKind, CodeBlockKind, Event, HeadingLevel, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::code::PendingCode;
use super::inline::{InlineText, format_url};
use super::table::MarkdownTable;
use super::{code, parser_options};
use crate::text::wrap::{LineIndent, line_width, wrap_line_into};
use crate::theme::Theme;

/// The maximum nesting depth up to which lists and quotations are indented. Deeper levels get the same indent.
const MAX_NESTING_DEPTH: usize = 12;

/// A unit of Markdown that has been laid out.
pub(super) struct RenderedUnit {
    pub(super) lines: Vec<Line<'static>>,
    /// The unit's code. Its row numbers are relative to the unit's first line.
    pub(super) pending_code: Vec<PendingCode>,
}

/// Lays out `text` in `width` columns, and highlights its code if the text is `settled`.
pub(super) fn layout_unit(text: &str, width: u16, theme: &Theme, settled: bool) -> RenderedUnit {
    let parser = Parser::new_ext(text, parser_options());
    let mut definitions: Vec<(usize, String)> = parser
        .reference_definitions()
        .iter()
        .map(|(label, definition)| {
            let to = format_url(&definition.dest);
            (definition.span.start, format!("[{label}]: {to}"))
        })
        .collect();
    definitions.sort_unstable_by(|a, b| b.cmp(a));
    let mut writer = BlockRenderer::new(width, theme, settled);
    let mut depth = 0usize;
    for (event, range) in parser.into_offset_iter() {
        if depth == 0 && !matches!(event, Event::End(_)) {
            while let Some((_, definition)) = definitions.pop_if(|(start, _)| *start < range.start)
            {
                writer.push_definition(definition);
            }
            writer.needs_blank_line |= writer.ends_with_definition;
            writer.ends_with_definition = false;
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        writer.handle_event(event);
    }
    writer.flush();
    while let Some((_, definition)) = definitions.pop() {
        writer.push_definition(definition);
    }
    RenderedUnit {
        lines: writer.out,
        pending_code: writer.pending_code,
    }
}

struct BlockRenderer<'a> {
    theme: &'a Theme,
    width: u16,
    out: Vec<Line<'static>>,
    /// The lists, quotations and footnotes around the current position.
    levels: Vec<BlockLevel>,
    /// For each list, the number of the next item if the list is numbered.
    lists: Vec<Option<u64>>,
    inline: InlineText<'a>,
    /// Whether to insert an empty line before the next line.
    needs_blank_line: bool,
    /// Whether the last line is a definition.
    ends_with_definition: bool,
    /// The code or HTML being collected.
    literal: Option<(LiteralBlock, String)>,
    table: Option<MarkdownTable>,
    settled: bool,
    pending_code: Vec<PendingCode>,
}

enum LiteralBlock {
    Code(String),
    Html,
}

struct BlockLevel {
    indent: LineIndent,
    /// Whether the level already has content.
    has_content: bool,
    /// Whether the level is an item of a loose list, one with empty lines between its items.
    is_loose: bool,
}

impl<'a> BlockRenderer<'a> {
    fn new(width: u16, theme: &'a Theme, settled: bool) -> Self {
        Self {
            theme,
            width,
            out: Vec::new(),
            levels: Vec::new(),
            lists: Vec::new(),
            inline: InlineText::new(theme),
            needs_blank_line: false,
            ends_with_definition: false,
            literal: None,
            table: None,
            settled,
            pending_code: Vec::new(),
        }
    }

    fn handle_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start_tag(tag),
            Event::End(tag) => self.end_tag(tag),
            Event::Text(text) => match &mut self.literal {
                Some((_, gathered)) => gathered.push_str(&text),
                None => self.inline.push_text(&text),
            },
            Event::Code(code) => self.inline.push_code(&code),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.inline.push_text(&text),
            Event::Html(html) => match &mut self.literal {
                Some((_, gathered)) => gathered.push_str(&html),
                None => self.inline.push_html(&html),
            },
            Event::InlineHtml(html) => self.inline.push_html(&html),
            Event::FootnoteReference(label) => self.inline.push_text(&format!("[^{label}]")),
            Event::SoftBreak => self.inline.push_text(" "),
            Event::HardBreak => self.inline.hard_break(),
            Event::Rule => {
                self.flush();
                let rule = "─".repeat(self.available_width());
                self.push_line(&Line::styled(rule, self.theme.border));
                self.needs_blank_line = true;
            }
            Event::TaskListMarker(done) => {
                let (mark, style) = if done {
                    ("[x] ", self.theme.good)
                } else {
                    ("[ ] ", self.theme.text)
                };
                if let Some(level) = self.levels.last_mut().filter(|level| !level.has_content) {
                    level.indent = hanging_indent(mark, style);
                }
            }
        }
    }

    fn start_tag(&mut self, tag: Tag<'_>) {
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
            Tag::Heading { level, .. } => self.inline.push(self.heading_style(level)),
            Tag::BlockQuote(kind) => {
                let bar = vec![Span::styled("▎ ", self.theme.border)];
                self.enter_level(LineIndent {
                    first: bar.clone(),
                    rest: bar,
                });
                if let Some(kind) = kind {
                    self.push_line(&self.render_alert(kind));
                }
                self.inline.push(self.theme.quote);
            }
            Tag::CodeBlock(kind) => {
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.literal = Some((LiteralBlock::Code(info), String::new()));
            }
            Tag::HtmlBlock => self.literal = Some((LiteralBlock::Html, String::new())),
            Tag::List(first) => self.lists.push(first),
            Tag::Item => {
                let depth = self.lists.len();
                let indent = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let indent = hanging_indent(&format!("{number}. "), self.theme.dim);
                        *number = number.saturating_add(1);
                        indent
                    }
                    _ => hanging_indent(["– ", "• ", "◦ "][depth % 3], self.theme.dim),
                };
                self.enter_level(indent);
            }
            Tag::FootnoteDefinition(label) => {
                let label = format!("[^{label}]: ");
                self.enter_level(LineIndent {
                    first: vec![Span::styled(label, self.theme.dim)],
                    rest: vec![Span::raw("  ")],
                });
            }
            Tag::Table(alignments) => self.table = Some(MarkdownTable::new(alignments)),
            Tag::Paragraph if !self.lists.is_empty() => {
                if let Some(level) = self.levels.last_mut() {
                    level.is_loose = true;
                }
            }
            _ => {}
        }
    }

    fn end_tag(&mut self, tag: TagEnd) {
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
                    table.push_cell(cell);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    for line in table.render(self.available_width(), self.theme) {
                        self.push_line(&line);
                    }
                }
                self.needs_blank_line = true;
            }
            TagEnd::Paragraph => {
                self.flush();
                self.needs_blank_line = true;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.inline.pop();
                self.needs_blank_line = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.inline.pop();
                self.leave_level();
                self.needs_blank_line = true;
            }
            TagEnd::CodeBlock | TagEnd::HtmlBlock => {
                self.flush_literal();
                self.needs_blank_line = true;
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.needs_blank_line = true;
            }
            TagEnd::Item => {
                self.flush();
                let loose = self.leave_level();
                self.needs_blank_line = loose;
            }
            TagEnd::FootnoteDefinition => {
                self.flush();
                self.leave_level();
                self.needs_blank_line = true;
            }
            _ => {}
        }
    }

    fn heading_style(&self, level: HeadingLevel) -> Style {
        match level {
            HeadingLevel::H1 => self.theme.heading.add_modifier(Modifier::UNDERLINED),
            HeadingLevel::H2 => self.theme.heading,
            _ => self.theme.heading.add_modifier(Modifier::ITALIC),
        }
    }

    fn render_alert(&self, kind: BlockQuoteKind) -> Line<'static> {
        let (name, style) = match kind {
            BlockQuoteKind::Note => ("Note", self.theme.accent),
            BlockQuoteKind::Tip => ("Tip", self.theme.good),
            BlockQuoteKind::Important => ("Important", self.theme.accent),
            BlockQuoteKind::Warning => ("Warning", self.theme.warn),
            BlockQuoteKind::Caution => ("Caution", self.theme.bad),
        };
        Line::styled(name, style.add_modifier(Modifier::BOLD))
    }

    fn enter_level(&mut self, indent: LineIndent) {
        self.levels.push(BlockLevel {
            indent,
            has_content: false,
            is_loose: false,
        });
    }

    /// Leaves a level and returns whether it was loose. Even an empty level gets its bullet or bar.
    fn leave_level(&mut self) -> bool {
        if self.levels.last().is_some_and(|level| !level.has_content) {
            self.push_line(&Line::default());
        }
        self.levels.pop().is_some_and(|level| level.is_loose)
    }

    /// Lays out the text that has been collected so far.
    fn flush(&mut self) {
        for line in self.inline.take() {
            self.push_line(&line);
        }
    }

    fn flush_literal(&mut self) {
        let Some((kind, text)) = self.literal.take() else {
            return;
        };
        match kind {
            LiteralBlock::Html => {
                for line in text.lines() {
                    self.push_line(&Line::styled(line.to_owned(), self.theme.dim));
                }
            }
            LiteralBlock::Code(info) => {
                self.push_line(&code::render_top(&info, self.theme));
                let edge = code::line_indent(self.theme);
                let mut waiting = None;
                if self.settled {
                    // All lines after the first have the same indentation.
                    waiting = PendingCode::new(&info, self.indent(&edge), self.theme);
                }
                for line in text.lines() {
                    let from = self.out.len();
                    self.push_indented(&Line::from(line), &edge);
                    if let Some(waiting) = &mut waiting {
                        waiting.push(line, from, self.out.len());
                    }
                }
                self.pending_code.extend(waiting);
                self.push_line(&code::render_bottom(self.theme));
            }
        }
    }

    /// Adds a line that shows a reference definition.
    fn push_definition(&mut self, text: String) {
        self.needs_blank_line &= !self.ends_with_definition;
        self.push_line(&Line::styled(text, self.theme.dim));
        self.ends_with_definition = true;
    }

    fn push_line(&mut self, line: &Line<'_>) {
        self.push_indented(line, &LineIndent::default());
    }

    /// Adds a line at the current level, indented by `inner` as well.
    fn push_indented(&mut self, line: &Line<'_>, inner: &LineIndent) {
        if std::mem::take(&mut self.needs_blank_line) && !self.out.is_empty() {
            let mut bars: Vec<Span<'static>> = self
                .levels
                .iter()
                .take(MAX_NESTING_DEPTH)
                .take_while(|level| level.has_content)
                .flat_map(|level| level.indent.rest.iter().cloned())
                .collect();
            while bars.pop_if(|bar| bar.content.trim().is_empty()).is_some() {}
            let indent = LineIndent {
                first: bars,
                rest: Vec::new(),
            };
            wrap_line_into(&Line::default(), self.width, &indent, &mut self.out);
        }
        let indent = self.indent(inner);
        for level in &mut self.levels {
            level.has_content = true;
        }
        wrap_line_into(line, self.width, &indent, &mut self.out);
    }

    /// Returns the indent of the next line and of its continuation rows.
    fn indent(&self, inner: &LineIndent) -> LineIndent {
        let mut indent = LineIndent::default();
        for level in self.levels.iter().take(MAX_NESTING_DEPTH) {
            let first = if level.has_content {
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

    /// Returns the number of columns available for text at the current level, at least 1.
    fn available_width(&self) -> usize {
        let taken: usize = self
            .levels
            .iter()
            .take(MAX_NESTING_DEPTH)
            .flat_map(|level| &level.indent.rest)
            .map(|span| line_width(&Line::from(span.clone())))
            .sum();
        usize::from(self.width).saturating_sub(taken).max(1)
    }
}

/// Returns an indent with `mark` on the first line, and equally wide spaces on the others.
fn hanging_indent(mark: &str, style: Style) -> LineIndent {
    let space = " ".repeat(line_width(&Line::from(mark)));
    LineIndent {
        first: vec![Span::styled(mark.to_owned(), style)],
        rest: vec![Span::raw(space)],
    }
}
