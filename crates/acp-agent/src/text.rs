//! Shortens and quotes text.

/// Returns the first line of a text, truncated to 120 characters. Appends ` …` if anything was omitted.
pub(crate) fn first_line(text: &str) -> String {
    const MAX_LINE_CHARS: usize = 120;
    let mut line = text.lines().next().unwrap_or_default().trim_end();
    let mut cut = line.len() < text.trim_end().len();
    if let Some((end, _)) = line.char_indices().nth(MAX_LINE_CHARS) {
        (line, cut) = (line.get(..end).unwrap_or_default(), true);
    }
    if cut {
        format!("{line} …")
    } else {
        line.to_owned()
    }
}

/// Formats text as a Markdown code block.
pub(crate) fn to_code_block(text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{fence}\n{text}{end}{fence}")
}

/// Returns the start of a text: at most `most` bytes, without splitting a character.
pub(crate) fn truncate_to_head(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// Returns the end of a text: at most `most` bytes, without splitting a character.
pub(crate) fn truncate_to_tail(text: &str, most: usize) -> &str {
    let mut start = text.len().saturating_sub(most);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_longer_than_fences_in_the_text() {
        assert_eq!(to_code_block("a"), "```\na\n```");
        assert_eq!(to_code_block("a ``` b\n"), "````\na ``` b\n````");
    }

    #[test]
    fn text_is_truncated_at_char_boundaries() {
        assert_eq!(
            (truncate_to_head("aéb", 2), truncate_to_tail("aéb", 2)),
            ("a", "b")
        );
        assert_eq!(
            (truncate_to_head("aé", 9), truncate_to_tail("aé", 9)),
            ("aé", "aé")
        );
    }
}
