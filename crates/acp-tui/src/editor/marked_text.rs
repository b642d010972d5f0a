//! Represents text in which some ranges, called marks, stand for other content.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The content that a mark stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MarkContent {
    /// Pasted text. The label shows its length.
    Paste(Arc<str>),
    /// The output of a command of the user. The label shows the command.
    CommandOutput(Arc<str>),
    /// A file or directory, by its absolute path. The label is `@` and its path in the project.
    File(PathBuf),
}

impl MarkContent {
    /// Returns the text that the label stands for, or `None` for a file.
    pub(crate) fn hidden_text(&self) -> Option<&Arc<str>> {
        match self {
            Self::Paste(text) | Self::CommandOutput(text) => Some(text),
            Self::File(_) => None,
        }
    }
}

/// A marked range of text. It is never empty, contains no line breaks, and never has the cursor inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextMark {
    /// The marked range, in bytes.
    pub(crate) range: Range<usize>,
    pub(crate) content: MarkContent,
}

/// Text with marks. The marks are sorted and do not overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MarkedText {
    pub(super) text: String,
    pub(super) marks: Vec<TextMark>,
}

impl From<&str> for MarkedText {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<String> for MarkedText {
    fn from(text: String) -> Self {
        let marks = Vec::new();
        Self { text, marks }
    }
}

impl MarkedText {
    /// Creates text that consists of a single mark.
    pub(crate) fn from_mark(label: impl Into<String>, stands: MarkContent) -> Self {
        let text = label.into();
        let range = 0..text.len();
        let marks = vec![TextMark {
            range,
            content: stands,
        }];
        Self { text, marks }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn marks(&self) -> &[TextMark] {
        &self.marks
    }

    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns the mark that contains a position, or that starts or ends there.
    pub(crate) fn mark_at(&self, at: usize) -> Option<&TextMark> {
        let mut marks = self.marks.iter();
        marks.find(|mark| mark.range.start <= at && at <= mark.range.end)
    }

    /// Returns the mark that contains the character at a position, if any.
    pub(crate) fn mark_containing(&self, at: usize) -> Option<&TextMark> {
        let next = self.marks.partition_point(|mark| mark.range.end <= at);
        let mark = self.marks.get(next)?;
        (mark.range.start <= at).then_some(mark)
    }

    /// Returns the memory used by the text and its marks' content, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let pasted = self.marks.iter().map(|mark| match &mark.content {
            MarkContent::Paste(text) | MarkContent::CommandOutput(text) => text.len(),
            MarkContent::File(path) => path.as_os_str().len(),
        });
        self.text.len() + pasted.sum::<usize>()
    }

    /// Returns the text with hidden text in full. File marks stay as displayed.
    pub(crate) fn to_full_text(&self) -> String {
        let mut expanded = String::with_capacity(self.memory_bytes());
        let mut from = 0;
        for mark in &self.marks {
            if let Some(text) = mark.content.hidden_text() {
                expanded.push_str(&self.text[from..mark.range.start]);
                expanded.push_str(text);
                from = mark.range.end;
            }
        }
        expanded.push_str(&self.text[from..]);
        expanded
    }

    /// Returns the position after the labels of outputs at the beginning, with the space that follows each.
    pub(crate) fn outputs_end(&self) -> usize {
        let mut end = 0;
        for mark in &self.marks {
            let is_output = matches!(mark.content, MarkContent::CommandOutput(_));
            if !is_output || mark.range.start != end {
                break;
            }
            end = mark.range.end;
            if self.text[end..].starts_with(' ') {
                end += 1;
            }
        }
        end
    }

    /// Returns the text of a range, extended to include each mark that it overlaps.
    pub(super) fn slice(&self, range: Range<usize>) -> Self {
        let range = self.extend_to_marks(range);
        self.clone().replace(range, &Self::default())
    }

    /// Extends the range to include each mark that it overlaps.
    pub(super) fn extend_to_marks(&self, range: Range<usize>) -> Range<usize> {
        let mut whole = range.clone();
        for mark in &self.marks {
            if mark.range.start < range.end && range.start < mark.range.end {
                whole.start = whole.start.min(mark.range.start);
                whole.end = whole.end.max(mark.range.end);
            }
        }
        whole
    }

    /// Replaces a range with `with`, and returns the replaced text. The range must not split a mark.
    pub(super) fn replace(&mut self, range: Range<usize>, with: &Self) -> Self {
        let before = self.marks.partition_point(|m| m.range.end <= range.start);
        let after = self.marks.partition_point(|m| m.range.start < range.end);
        let after = after.max(before);
        let mut removed = Self::from(&self.text[range.clone()]);
        for mark in &self.marks[before..after] {
            removed.marks.push(shift_mark(mark, 0, range.start));
        }
        let added = with
            .marks
            .iter()
            .map(|mark| shift_mark(mark, range.start, 0));
        self.marks.splice(before..after, added);
        for mark in &mut self.marks[before + with.marks.len()..] {
            *mark = shift_mark(mark, with.len(), range.len());
        }
        self.text.replace_range(range, &with.text);
        removed
    }

    pub(crate) fn push(&mut self, more: &Self) {
        self.replace(self.len()..self.len(), more);
    }
}

fn shift_mark(mark: &TextMark, up: usize, down: usize) -> TextMark {
    TextMark {
        range: mark.range.start + up - down..mark.range.end + up - down,
        content: mark.content.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pasted_text(label: &str, text: &str) -> MarkedText {
        MarkedText::from_mark(label, MarkContent::Paste(text.into()))
    }

    #[test]
    fn marks_move_with_surrounding_edits() {
        let mut marked = MarkedText::from("see  and ");
        marked.replace(9..9, &pasted_text("[b]", "BBB"));
        marked.replace(4..4, &pasted_text("[a]", "AAA"));
        assert_eq!(marked.text(), "see [a] and [b]");
        assert_eq!(marked.to_full_text(), "see AAA and BBB");

        let removed = marked.replace(0..7, &MarkedText::from("now"));
        assert_eq!(removed.to_full_text(), "see AAA");
        assert_eq!(marked.to_full_text(), "now and BBB");
        marked.replace(0..3, &removed);
        assert_eq!(marked.to_full_text(), "see AAA and BBB");
        assert_eq!(marked.extend_to_marks(5..6), 4..7);
        assert_eq!(marked.extend_to_marks(3..4), 3..4);
    }
}
