//! Renders a tool call as text: its title, changes, output and result.

use std::time::Duration;

use acp::Thread;
use acp::thread::{
    FileChange, FileTexts, ThreadDiff, ThreadToolCall, ThreadToolCallContent, ToolCallStatus,
};
use acp::v1::{ContentBlock, TerminalId};
use acp_host::terminal_text::{self, TextCleaner};
use similar::TextDiff;

use super::placeholder::placeholder;
use crate::screen::ScreenOutput;

/// The maximum number of lines to show of a tool's text. Command output is shown in full while the command runs.
const MAX_OUTPUT_LINES: usize = 12;

/// How long a diff may take to compute before a coarser one is used.
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);

/// How many bytes at the end of one text must match the beginning of another for it to count as a continuation.
const MIN_OVERLAP_BYTES: usize = 80;

/// Returns `true` if the model may still be writing the tool call. Such a call is not printed yet, since its title may
/// still change, and printed output cannot be changed. Content, locations or raw input show that the tool call is
/// complete (specification: Tool calls, "Status").
pub(super) fn may_be_unfinished(call: &ThreadToolCall) -> bool {
    let says_more =
        !call.content.is_empty() || !call.locations.is_empty() || call.raw_input.is_some();
    call.status == ToolCallStatus::Pending && !says_more && !call.is_cancelled
}

/// How much of a tool call has been shown so far.
#[derive(Default)]
pub(super) struct ShownToolCall {
    /// Whether any part of the tool call has been shown.
    has_begun: bool,
    title: String,
    content: Vec<ThreadToolCallContent>,
    terminals: Vec<ShownTerminal>,
    finished: bool,
}

struct ShownTerminal {
    id: TerminalId,
    shown_bytes: u64,
    clean: TextCleaner,
    at_line_start: bool,
    command: bool,
}

impl ShownToolCall {
    /// Returns `true` if a terminal of the tool call may have more output.
    pub(super) fn has_terminal(&self) -> bool {
        !self.terminals.is_empty()
    }

    /// Returns `true` if no part of the tool call has been shown yet.
    pub(super) fn is_new(&self) -> bool {
        !self.has_begun
    }

    /// Shows everything new, and returns `true` if there was anything. `again` is true if something else has been shown
    /// since the last call.
    pub(super) fn update(
        &mut self,
        call: &ThreadToolCall,
        thread: &Thread,
        out: &mut ScreenOutput,
        again: bool,
    ) -> bool {
        self.has_begun = true;
        let mut part = ToolCallPart {
            call,
            out,
            heading: again,
            again,
            shown: false,
        };
        // An agent may send the title later; until then there is no heading to show.
        let is_first = self.title.is_empty() && (!call.title.is_empty() || call.is_finished());
        // It may also name the tool first, and say what the tool does when it starts.
        let is_changed = !self.title.is_empty()
            && call.status != ToolCallStatus::Pending
            && title(call) != self.title;
        if is_first || is_changed {
            self.title = title(call);
            part.heading = true;
            part.begin();
        }
        // In the order of the content: the output of a terminal comes before a text about how it ended.
        for content in &call.content {
            if let ThreadToolCallContent::Terminal(id) = content {
                self.terminal_mut(id).update(thread, &mut part);
            } else if !self.content.contains(content) {
                for terminal in &mut self.terminals {
                    terminal.end_line(&mut part);
                }
                part.render_content(content, &self.content);
            }
        }
        if self.content != call.content {
            self.content.clone_from(&call.content);
        }
        // Including terminals that are no longer part of the content.
        for terminal in &mut self.terminals {
            terminal.update(thread, &mut part);
        }
        if call.is_finished() && !self.finished {
            self.finished = true;
            for terminal in &mut self.terminals {
                terminal.end_line(&mut part);
            }
            part.render_final_status(thread);
        }
        part.shown
    }

    /// Returns the record of how much of a terminal has been shown.
    fn terminal_mut(&mut self, id: &TerminalId) -> &mut ShownTerminal {
        let known = self.terminals.iter().position(|known| known.id == *id);
        let at = known.unwrap_or(self.terminals.len());
        if known.is_none() {
            self.terminals.push(ShownTerminal::new(id));
        }
        &mut self.terminals[at]
    }
}

impl ShownTerminal {
    fn new(id: &TerminalId) -> Self {
        Self {
            id: id.clone(),
            shown_bytes: 0,
            clean: TextCleaner::default(),
            at_line_start: true,
            command: false,
        }
    }

    fn update(&mut self, thread: &Thread, part: &mut ToolCallPart<'_, '_>) {
        let Some(terminal) = thread.terminal(&self.id) else {
            return;
        };
        if let (false, Some(command)) = (self.command, &terminal.command) {
            self.command = true;
            part.begin();
            let style = part.out.styles.dim;
            part.out.push_styled(
                style,
                &format!("  $ {}\n", terminal_text::clean_value(command)),
            );
        }
        if terminal.total_bytes() == self.shown_bytes {
            return;
        }
        let printed = self
            .clean
            .clean_piece(&terminal.output_since(self.shown_bytes));
        self.shown_bytes = terminal.total_bytes();
        if printed.is_empty() {
            return;
        }
        part.begin();
        for line in printed.split_inclusive('\n') {
            if self.at_line_start {
                let style = part.out.styles.dim;
                part.out.push_styled(style, "  | ");
            }
            part.out.push_text(line);
            self.at_line_start = line.ends_with('\n');
        }
    }

    fn end_line(&mut self, part: &mut ToolCallPart<'_, '_>) {
        if !self.at_line_start {
            part.out.end_line();
            self.at_line_start = true;
        }
    }
}

/// The part of a tool call that is being shown.
struct ToolCallPart<'a, 'o> {
    call: &'a ThreadToolCall,
    out: &'o mut ScreenOutput,
    /// Whether to show the heading before anything else.
    heading: bool,
    /// Whether something else has been shown since the last part.
    again: bool,
    shown: bool,
}

impl ToolCallPart<'_, '_> {
    fn begin(&mut self) {
        self.shown = true;
        if std::mem::take(&mut self.heading) {
            self.render_title();
            self.out.push_styled(
                self.out.styles.dim,
                &format!(
                    " ({})\n",
                    terminal_text::clean_value(self.call.kind.as_str())
                ),
            );
        }
    }

    fn render_title(&mut self) {
        self.out.end_line();
        if std::mem::take(&mut self.again) {
            self.out.push_text("\n");
        }
        self.out.push_styled(self.out.styles.accent, "* ");
        self.out
            .push_styled(self.out.styles.bold, &title(self.call));
    }

    fn render_content(
        &mut self,
        content: &ThreadToolCallContent,
        before: &[ThreadToolCallContent],
    ) {
        match content {
            ThreadToolCallContent::Diff(diff) => {
                self.begin();
                render_diff(diff, self.out);
            }
            ThreadToolCallContent::Content(content) => match content {
                ContentBlock::Text(text) => {
                    let text = strip_fence(&text.text);
                    let grown = before.iter().find_map(|old| match old {
                        ThreadToolCallContent::Content(old) => {
                            appended_text(strip_fence(old.as_text()?), text)
                        }
                        _ => None,
                    });
                    self.render_text(grown.unwrap_or(text));
                }
                other => {
                    self.begin();
                    self.out.push_text(&format!("  {}\n", placeholder(other)));
                }
            },
            _ => {}
        }
    }

    fn render_text(&mut self, text: &str) {
        let text = terminal_text::clean_text(text);
        if text.trim().is_empty() {
            return;
        }
        self.begin();
        let lines: Vec<&str> = text.trim_end().lines().collect();
        for line in lines.iter().take(MAX_OUTPUT_LINES) {
            self.out
                .push_styled(self.out.styles.dim, &format!("  {line}\n"));
        }
        if lines.len() > MAX_OUTPUT_LINES {
            let more = lines.len() - MAX_OUTPUT_LINES;
            let s = if more == 1 { "" } else { "s" };
            self.out
                .push_styled(self.out.styles.dim, &format!("  ... {more} more line{s}\n"));
        }
    }

    fn render_final_status(&mut self, thread: &Thread) {
        let (style, how) = match (&self.call.status, self.call.is_cancelled) {
            (ToolCallStatus::Completed, _) => (self.out.styles.good, "completed"),
            (ToolCallStatus::Failed, _) => (self.out.styles.bad, "failed"),
            (ToolCallStatus::Cancelled, _) => (self.out.styles.dim, "cancelled"),
            (_, true) => (self.out.styles.dim, "cancelled"),
            _ => return,
        };
        if std::mem::take(&mut self.heading) {
            // Nothing else is new, so one line is enough.
            self.render_title();
            self.out.push_text(": ");
        } else {
            self.begin();
            self.out.end_line();
            self.out.push_text("  ");
        }
        self.shown = true;
        let exit = self.call.content.iter().find_map(|content| match content {
            ThreadToolCallContent::Terminal(id) => {
                let status = thread.terminal(id)?.exit_status.clone()?;
                Some(match (status.exit_code, status.signal) {
                    (Some(code), _) => format!(": exit code {code}"),
                    (None, Some(signal)) => {
                        format!(": terminated by {}", terminal_text::clean_value(&signal))
                    }
                    (None, None) => String::new(),
                })
            }
            _ => None,
        });
        self.out
            .push_styled(style, &format!("{how}{}", exit.unwrap_or_default()));
        self.out.push_text("\n");
    }
}

/// Removes the code fence if the whole text is a single code block, as in the output of many tools.
fn strip_fence(text: &str) -> &str {
    let trimmed = text.trim_end();
    let inside = || {
        let ticks = trimmed.bytes().take_while(|byte| *byte == b'`').count();
        let fence = trimmed.get(..ticks).filter(|_| ticks >= 3)?;
        let (_, block) = trimmed.split_once('\n')?;
        let block = block.strip_suffix(fence)?;
        (block.is_empty() || block.ends_with('\n')).then_some(block)
    };
    inside().unwrap_or(text)
}

/// Returns the part of `new` that continues `old`, or `None` if `new` is not a continuation. As text grows, an agent
/// may send all of it each time, or only the new part.
fn appended_text<'t>(old: &str, new: &'t str) -> Option<&'t str> {
    if old.trim().is_empty() {
        return None;
    }
    if let Some(more) = new.strip_prefix(old) {
        return Some(more);
    }
    // The start was truncated, so the new text starts with the end of the old one. An overlap of a few bytes may be
    // chance.
    let both = overlap_len(old.as_bytes(), new.as_bytes());
    new.get(both..).filter(|_| both >= MIN_OVERLAP_BYTES)
}

/// Returns the length of the longest prefix of `new` that is a suffix of `old`, in linear time (Knuth–Morris–Pratt
/// search).
fn overlap_len(old: &[u8], new: &[u8]) -> usize {
    // For each prefix of `new`, the length of its longest proper prefix that is also its suffix.
    let mut borders = vec![0; new.len()];
    let extend = |borders: &[usize], mut matched: usize, byte: u8| {
        while matched > 0 && new.get(matched) != Some(&byte) {
            matched = borders.get(matched - 1).copied().unwrap_or_default();
        }
        matched + usize::from(new.get(matched) == Some(&byte))
    };
    let mut matched = 0;
    for at in 1..new.len() {
        matched = extend(&borders, matched, new.get(at).copied().unwrap_or_default());
        if let Some(border) = borders.get_mut(at) {
            *border = matched;
        }
    }
    old.iter()
        .fold(0, |matched, byte| extend(&borders, matched, *byte))
}

fn title(call: &ThreadToolCall) -> String {
    let title = terminal_text::clean_value(&call.title);
    if title.trim().is_empty() {
        terminal_text::clean_value(call.id.as_str())
    } else {
        title
    }
}

/// Shows file changes as the agent's patch and unified diffs, or as a list of file names if there is neither.
fn render_diff(diff: &ThreadDiff, out: &mut ScreenOutput) {
    if let Some(patch) = &diff.patch {
        render_patch(&patch.text, out);
    }
    for change in &diff.changes {
        match &change.texts {
            Some(texts) => render_text_diff(change, texts, out),
            None if diff.patch.is_none() => {
                let path = terminal_text::clean_value(&change.path);
                let from = change.old_path.as_deref().map(terminal_text::clean_value);
                let from = from.map_or_else(String::new, |from| format!(" (from {from})"));
                let what = terminal_text::clean_value(change.operation.as_str());
                out.push_styled(out.styles.dim, &format!("  {what} {path}{from}\n"));
            }
            None => {}
        }
    }
}

fn render_text_diff(change: &FileChange, texts: &FileTexts, out: &mut ScreenOutput) {
    let path = terminal_text::clean_value(&change.path);
    let before = if texts.old.is_some() {
        path.as_str()
    } else {
        "/dev/null"
    };
    let lines = TextDiff::configure()
        .timeout(DIFF_TIMEOUT)
        .diff_lines(texts.old.as_deref().unwrap_or_default(), &texts.new);
    let unified = lines
        .unified_diff()
        .context_radius(3)
        .header(before, &path)
        .to_string();
    if unified.is_empty() {
        out.push_styled(out.styles.dim, &format!("  {path}: no changes\n"));
    }
    render_patch(&unified, out);
}

fn render_patch(patch: &str, out: &mut ScreenOutput) {
    for line in terminal_text::clean_text(patch).lines() {
        let style = match line.as_bytes().first() {
            _ if line.starts_with("---") || line.starts_with("+++") => out.styles.bold,
            _ if line.starts_with("diff ") => continue,
            Some(b'+') => out.styles.good,
            Some(b'-') => out.styles.bad,
            Some(b'@') => out.styles.accent,
            _ => out.styles.dim,
        };
        out.push_text("  ");
        out.push_styled(style, line);
        out.push_text("\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_text_of_a_growing_output_is_shown() {
        assert_eq!(appended_text("one\n", "one\ntwo\n"), Some("two\n"));
        assert_eq!(appended_text("one\n", "another\n"), None);
        assert_eq!(appended_text("", "one\n"), None);
        // The content without its fence.
        let fenced = |text: &str| format!("````sh\n{text}````\n");
        assert_eq!(strip_fence(&fenced("one\n```\n")), "one\n```\n");
        assert_eq!(strip_fence("```\n```"), "");
        for whole in ["```", "```\none", "one\n```", "```x```"] {
            assert_eq!(strip_fence(whole), whole);
        }
        let (before, after) = (fenced("one\n"), fenced("one\ntwo\n"));
        assert_eq!(
            appended_text(strip_fence(&before), strip_fence(&after)),
            Some("two\n")
        );
        // A sliding window: the last kilobyte of the output.
        let all: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        let window = |end: usize| &all[end - 1000..end];
        assert_eq!(
            appended_text(window(2000), window(2300)),
            Some(&all[2000..2300])
        );
        assert_eq!(appended_text(window(2000), window(4000)), None);
        let same = "y\n".repeat(500);
        assert_eq!(appended_text(&same, &same), Some(""));
    }
}
