//! Lays out Markdown text that is still being received.
//!
//! A message is divided into units, each parsed on its own. A unit starts at a top-level block after an empty line, or
//! at a fence. Once the first line of the next unit has arrived, a unit cannot change any more, and is never parsed
//! again. In a fence at the top level, each line is settled when it ends. So the cost of an append depends only on the
//! last unit, which is at most [`MAX_UNIT_BYTES`] long: a longer one is split, and the rest is laid out as if a unit
//! started there.
//!
//! The price: a reference whose definition is in another unit is not resolved, but shown as it was written. Definitions
//! are shown where they are, so that no URL is hidden.

mod blocks;
mod code;
mod inline;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use self::inline::find_urls;
use std::time::Instant;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};
use ratatui::text::Line;

use self::code::{CodeFence, PendingCode};
use super::highlight;
use super::wrap::sanitize;
use crate::theme::Theme;

/// The maximum length of a unit, in bytes.
const MAX_UNIT_BYTES: usize = 32 * 1024;
/// The number of bytes to lay out between checks of the clock.
const SLICE_BYTES: usize = 8 * 1024;
/// The maximum length of text to sanitize at once, in bytes.
const MAX_PIECE_BYTES: usize = 8 * 1024;

fn parser_options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM
}

/// The text of a message that may still grow, and its laid-out lines.
#[derive(Default)]
pub(crate) struct MarkdownView {
    /// The width and theme for which the lines were laid out.
    layout_key: Option<(u16, Theme)>,
    /// The text that was laid out, kept to detect whether new text only extends it.
    source: String,
    /// The number of bytes of `source` whose sanitized form is final.
    cleaned_len: usize,
    /// The sanitized text that is not settled yet.
    text: String,
    /// The number of bytes of `text` that are final. The other bytes come from `source` after `cleaned_len`.
    fixed_len: usize,
    /// The number of bytes of `text` that have been searched for the end of a unit.
    searched_len: usize,
    /// The open top-level fence at the start of `text`, if any.
    fence: Option<CodeFence>,
    lines: Vec<Line<'static>>,
    /// The number of lines that are final.
    settled_lines: usize,
    /// Settled code that is not fully highlighted yet.
    pending_code: Vec<PendingCode>,
    /// The highlighting counter when results were last taken.
    highlight_count: u64,
    /// Whether the deadline passed before the whole text was laid out.
    unfinished: bool,
    /// The total number of bytes parsed or highlighted so far.
    #[cfg(test)]
    work_done: usize,
}

impl MarkdownView {
    /// Lays out `source` in lines of at most `width` columns.
    ///
    /// This takes little time if `source` has only grown. If the text, `width` or `theme` has changed in any other way,
    /// everything is laid out again. `until` is the deadline: a long text is laid out in several calls
    /// ([`is_unfinished`](Self::is_unfinished)).
    pub(crate) fn lines(
        &mut self,
        source: &str,
        width: u16,
        theme: &Theme,
        until: Instant,
    ) -> &[Line<'static>] {
        let same = self
            .layout_key
            .as_ref()
            .is_some_and(|(of_width, of_theme)| *of_width == width && of_theme == theme);
        if !same || !source.starts_with(&self.source) {
            *self = Self {
                layout_key: Some((width, theme.clone())),
                #[cfg(test)]
                work_done: self.work_done,
                ..Self::default()
            };
        }
        if source.len() > self.source.len() {
            loop {
                let more = source.get(self.source.len()..).unwrap_or_default();
                let more = truncate_to(more, SLICE_BYTES);
                self.source.push_str(more);
                self.clean_source();
                self.lines.truncate(self.settled_lines);
                self.settle(width, theme);
                self.settled_lines = self.lines.len();
                self.unfinished = self.source.len() < source.len();
                if !self.unfinished || Instant::now() >= until {
                    break;
                }
            }
            self.layout_rest(width, theme);
        }
        self.apply_highlights(width);
        &self.lines
    }

    /// Returns `true` if part of the text is not laid out yet.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.unfinished
    }

    /// Returns `true` if the highlighting of some code is pending.
    ///
    /// If it is, call [`lines`](Self::lines) again after
    /// [`wait_for_highlights`](super::highlight::wait_for_highlights).
    pub(crate) fn is_waiting(&self) -> bool {
        let fence = self
            .fence
            .as_ref()
            .and_then(|fence| fence.pending_code.as_ref());
        !self.pending_code.is_empty() || fence.is_some_and(|waiting| !waiting.is_done())
    }

    /// Applies new highlighting to the code.
    fn apply_highlights(&mut self, width: u16) {
        // Read the counter first, so that results that arrive in the meantime are handled next time.
        let painted = highlight::highlight_count();
        if std::mem::replace(&mut self.highlight_count, painted) == painted {
            return;
        }
        let lines = self.lines.get_mut(..self.settled_lines).unwrap_or_default();
        let fence = self
            .fence
            .as_mut()
            .and_then(|fence| fence.pending_code.as_mut());
        for waiting in self.pending_code.iter_mut().chain(fence) {
            waiting.paint(width, lines);
        }
        self.pending_code.retain(|waiting| !waiting.is_done());
    }

    /// Returns the lines from the last call to [`lines`](Self::lines).
    pub(crate) fn last_lines(&self) -> &[Line<'static>] {
        &self.lines
    }

    /// Sanitizes the new part of `source`.
    ///
    /// An escape sequence ends with its line at the latest, so that an unterminated one does not swallow the message.
    fn clean_source(&mut self) {
        self.text.truncate(self.fixed_len);
        let mut rest = self.source.get(self.cleaned_len..).unwrap_or_default();
        while !rest.is_empty() {
            let window = truncate_to(rest, MAX_PIECE_BYTES);
            let (piece, complete) = match window.find('\n') {
                Some(end) => (window.get(..=end).unwrap_or(window), true),
                None => (window, rest.len() >= MAX_PIECE_BYTES),
            };
            let clean = sanitize(piece);
            self.text.push_str(&clean);
            if piece.ends_with('\n') && !clean.ends_with('\n') {
                self.text.push('\n');
            }
            if complete {
                self.cleaned_len += piece.len();
                self.fixed_len = self.text.len();
            }
            rest = rest.get(piece.len()..).unwrap_or_default();
        }
    }

    /// Lays out all complete units.
    fn settle(&mut self, width: u16, theme: &Theme) {
        loop {
            let done = match self.fence.take() {
                Some(fence) => self.settle_code(fence, width, theme),
                None => self.settle_units(width, theme),
            };
            if done {
                return;
            }
        }
    }

    /// Lays out the complete lines of a fence. Returns `true` if nothing more can be laid out for now.
    fn settle_code(&mut self, mut fence: CodeFence, width: u16, theme: &Theme) -> bool {
        let mut at = 0;
        let closed = loop {
            let rest = self.text.get(at..self.fixed_len).unwrap_or_default();
            let window = truncate_to(rest, MAX_UNIT_BYTES);
            let (line, next) = match window.find('\n') {
                Some(end) => (window.get(..end).unwrap_or(window), end + 1),
                None if rest.len() > MAX_UNIT_BYTES => (window, window.len()),
                None => break false,
            };
            #[cfg(test)]
            {
                self.work_done += line.len();
            }
            at += next;
            if fence.is_closed_by(line) {
                fence.push_bottom(width, theme, &mut self.lines);
                self.add_pending_code(fence.pending_code.take());
                break true;
            }
            fence.push_line(line, width, theme, &mut self.lines);
        };
        self.drop_text(at);
        if !closed {
            self.fence = Some(fence);
        }
        !closed
    }

    /// Lays out the complete units. Returns `true` if nothing more can be laid out for now.
    fn settle_units(&mut self, width: u16, theme: &Theme) -> bool {
        let text = self.text.get(..self.fixed_len).unwrap_or_default();
        let window = truncate_to(text, MAX_UNIT_BYTES);
        let too_long = window.len() < text.len();
        let complete = window.rfind('\n').map_or(0, |end| end + 1);
        if complete <= self.searched_len && !too_long {
            return true;
        }
        let lines = window.get(..complete).unwrap_or_default();
        #[cfg(test)]
        {
            self.work_done += lines.len();
        }
        let UnitStarts { units, fence } = UnitStarts::find(lines);
        let mut ends = units;
        ends.extend(fence.as_ref().map(|(at, _)| *at));
        if ends.is_empty() && too_long {
            ends.push(if complete > 0 { complete } else { window.len() });
        }
        let mut begin = 0;
        for end in ends {
            let unit = self.text.get(begin..end).unwrap_or_default().to_owned();
            self.layout_unit(&unit, width, theme, true);
            begin = end;
        }
        if let Some((_, opening)) = fence {
            let line = self.text.get(begin..).unwrap_or_default();
            let line = line.split_inclusive('\n').next().unwrap_or_default();
            begin += line.len();
            let fence = CodeFence::open(line, &opening, theme);
            self.push_gap();
            fence.push_top(width, theme, &mut self.lines);
            self.fence = Some(fence);
        }
        self.drop_text(begin);
        if begin == 0 {
            self.searched_len = complete;
        }
        begin == 0
    }

    /// Lays out the unsettled rest of the text in its current form.
    fn layout_rest(&mut self, width: u16, theme: &Theme) {
        if let Some(fence) = &self.fence {
            #[cfg(test)]
            {
                self.work_done += self.text.len();
            }
            if fence.is_closed_by(&self.text) {
                fence.push_bottom(width, theme, &mut self.lines);
                return;
            }
            // A line that may become the end of the fence is not shown as code until it is complete.
            if !self.text.is_empty() && !fence.may_be_closed_by(&self.text) {
                for line in self.text.lines() {
                    fence.push_partial_line(line, width, theme, &mut self.lines);
                }
            }
            fence.push_bottom(width, theme, &mut self.lines);
        } else {
            let text = std::mem::take(&mut self.text);
            self.layout_unit(&text, width, theme, false);
            self.text = text;
        }
    }

    fn layout_unit(&mut self, unit: &str, width: u16, theme: &Theme, settled: bool) {
        #[cfg(test)]
        {
            self.work_done += unit.len();
        }
        let made = blocks::layout_unit(unit, width, theme, settled);
        if !made.lines.is_empty() {
            self.push_gap();
            let begin = self.lines.len();
            self.lines.extend(made.lines);
            let waiting = made
                .pending_code
                .into_iter()
                .map(|waiting| waiting.shift(begin));
            self.add_pending_code(waiting);
        }
    }

    /// Adds code whose highlighting is pending. Skips code with nothing left to highlight.
    fn add_pending_code(&mut self, code: impl IntoIterator<Item = PendingCode>) {
        let code = code.into_iter().filter(|waiting| !waiting.is_done());
        self.pending_code.extend(code);
    }

    /// Adds an empty line between blocks.
    fn push_gap(&mut self) {
        if !self.lines.is_empty() {
            self.lines.push(Line::default());
        }
    }

    fn drop_text(&mut self, bytes: usize) {
        self.text.drain(..bytes);
        self.fixed_len -= bytes;
        if bytes > 0 {
            self.searched_len = 0;
        }
    }
}

/// Returns the start of a text, at most `bytes` bytes long, without splitting a character.
fn truncate_to(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

/// The positions where units start in a text of complete lines, except the first.
struct UnitStarts {
    units: Vec<usize>,
    /// The first top-level fence and its info string. The search ends there.
    fence: Option<(usize, String)>,
}

impl UnitStarts {
    fn find(text: &str) -> Self {
        let mut starts = Self {
            units: Vec::new(),
            fence: None,
        };
        let mut depth = 0usize;
        let mut covered = 0;
        for (event, range) in Parser::new_ext(text, parser_options()).into_offset_iter() {
            if depth == 0 && !matches!(event, Event::End(_)) {
                // The unit starts before the spaces of the line's indentation.
                let before = text.get(..range.start).unwrap_or_default();
                let start = before.rfind('\n').map_or(0, |end| end + 1);
                starts.find_definitions(text, covered, start);
                covered = range.end;
                if let Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) = &event {
                    starts.fence = Some((start, info.to_string()));
                    return starts;
                }
                starts.add_unit(text, start);
                if let Event::Start(Tag::List(_) | Tag::FootnoteDefinition(_)) = &event {
                    starts.find_trailing_definitions(text, start, range.end);
                }
            }
            match event {
                Event::Start(_) => depth += 1,
                Event::End(_) => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        starts.find_definitions(text, covered, text.len());
        starts
    }

    /// Adds link definitions. The parser emits no events for them, so this looks in the text between other blocks.
    fn find_definitions(&mut self, text: &str, from: usize, to: usize) {
        let mut start = from;
        for line in text.get(from..to).unwrap_or_default().split_inclusive('\n') {
            let begins = start == 0 || text.get(..start).is_some_and(|above| above.ends_with('\n'));
            if begins && line.trim_start().starts_with('[') {
                self.add_unit(text, start);
            }
            start += line.len();
        }
    }

    /// Finds definitions at the end of a block, which the parser counts as part of it.
    ///
    /// A definition that is not indented and follows an empty line is not part of the block.
    fn find_trailing_definitions(&mut self, text: &str, from: usize, to: usize) {
        let mut start = from;
        for line in text.get(from..to).unwrap_or_default().split_inclusive('\n') {
            if line.starts_with('[') && start > from {
                self.add_unit(text, start);
            }
            start += line.len();
        }
    }

    /// Starts a unit at `start`, the start of a block's line, if an empty line precedes it.
    fn add_unit(&mut self, text: &str, start: usize) {
        let above = text.get(..start).unwrap_or_default();
        let above = above.strip_suffix('\n').unwrap_or(above);
        let above = above.rsplit('\n').next().unwrap_or_default();
        if start > 0 && above.trim().is_empty() {
            self.units.push(start);
        }
    }
}
