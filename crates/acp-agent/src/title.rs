//! Derives session titles from the user's first prompt. See the `title` field of "SessionInfo" under "Session List" in
//! the specification.

use acp::v1::{ContentBlock, EmbeddedResourceResource};

use crate::text::{first_line, truncate_to_head};

/// How many bytes of a prompt to search for a title.
const MAX_SEARCHED_BYTES: usize = 16 * 1024;

/// Prompts that make useless titles. After one of them, the title comes from the next prompt.
const UNINFORMATIVE_PROMPTS: [&str; 2] = ["/help", "/compact"];

/// Returns a title for a session that starts with this prompt: the first line that contains words, without Markdown. If
/// there is no text, returns the name of an attachment.
pub(crate) fn title_from_prompt(prompt: &[ContentBlock]) -> Option<String> {
    let mut texts = prompt.iter().filter_map(ContentBlock::as_text).peekable();
    if let Some(text) = texts.peek()
        && UNINFORMATIVE_PROMPTS.contains(&text.trim())
    {
        return None;
    }
    texts
        .find_map(|text| {
            truncate_to_head(text, MAX_SEARCHED_BYTES)
                .lines()
                .find_map(title_words)
        })
        .or_else(|| prompt.iter().find_map(attachment_name))
        .map(|title| first_line(&title))
}

/// Cleans a title that the user chose. Returns `None` if nothing visible remains.
pub(crate) fn clean_user_title(title: &str) -> Option<String> {
    let title = clean_text(title);
    let title = title.trim();
    (!title.is_empty()).then(|| first_line(title))
}

/// Returns the text of a line without Markdown, or `None` if it contains no words.
fn title_words(line: &str) -> Option<String> {
    let line = line.trim();
    if line.starts_with("```") || line.starts_with("~~~") || is_tag(line) {
        return None;
    }
    let plain = strip_links(strip_markers(line));
    let plain = clean_text(&plain.replace("**", "").replace('`', ""));
    plain.chars().any(char::is_alphanumeric).then_some(plain)
}

/// Returns `true` if a line consists of a single tag. Editors wrap content that they add in such tags.
fn is_tag(line: &str) -> bool {
    let inside = line.strip_prefix('<').and_then(|it| it.strip_suffix('>'));
    inside.is_some_and(|inside| !inside.contains(['<', '>']))
}

/// Removes heading, quote and list markers from the start of a line.
fn strip_markers(mut line: &str) -> &str {
    loop {
        let mark = line.find(|c| !matches!(c, '#' | '>' | '-' | '*' | '+'));
        let numbered = line
            .find(|c: char| !c.is_ascii_digit())
            .filter(|end| *end > 0 && line.get(*end..).is_some_and(|rest| rest.starts_with(". ")));
        let end = match (mark, numbered) {
            (_, Some(end)) => end + 1,
            (Some(end), None) if end > 0 => end,
            _ => return line,
        };
        // A marker directly before a word is part of the word: `-v`, `#12`, `**bold**`.
        match line.get(end..).filter(|rest| rest.starts_with(' ')) {
            Some(rest) => line = rest.trim_start(),
            None => return line,
        }
    }
}

/// Replaces each link in a line with its text. Editors write mentions as `[@main.rs](file:///…)`.
fn strip_links(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line;
    while let Some(link) = MarkdownLink::find_first(rest) {
        let before = link.before.strip_suffix('!').unwrap_or(link.before);
        plain.push_str(before);
        plain.push_str(link.text);
        rest = link.after;
    }
    plain + rest
}

struct MarkdownLink<'a> {
    before: &'a str,
    text: &'a str,
    after: &'a str,
}

impl<'a> MarkdownLink<'a> {
    fn find_first(line: &'a str) -> Option<Self> {
        let middle = line.find("](")?;
        let (head, tail) = (line.get(..middle)?, line.get(middle + 2..)?);
        let (before, text) = head.rsplit_once('[')?;
        let (_, after) = tail.split_once(')')?;
        Some(Self {
            before,
            text,
            after,
        })
    }
}

/// Removes invisible characters and those that change the text direction, and collapses white space into single spaces.
fn clean_text(text: &str) -> String {
    let seen = |c: char| match c {
        '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}'
        | '\u{feff}' => false,
        c => c.is_whitespace() || !c.is_control(),
    };
    let text: String = text.chars().filter(|c| seen(*c)).collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// Returns the name of an attachment.
fn attachment_name(block: &ContentBlock) -> Option<String> {
    let name = match block {
        ContentBlock::ResourceLink(link) => link.title.as_deref().unwrap_or(&link.name),
        ContentBlock::Resource(embedded) => {
            let uri = match &embedded.resource {
                EmbeddedResourceResource::Text(text) => &text.uri,
                EmbeddedResourceResource::Blob(blob) => &blob.uri,
                _ => return None,
            };
            uri.trim_end_matches('/').rsplit('/').next()?
        }
        _ => return None,
    };
    let name = clean_text(truncate_to_head(name, MAX_SEARCHED_BYTES));
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use acp::v1::{EmbeddedResource, ResourceLink, TextResourceContents};

    use super::*;

    fn title_from_text(text: &str) -> Option<String> {
        title_from_prompt(&[ContentBlock::text(text)])
    }

    #[test]
    fn title_is_a_single_line_of_words() {
        for (typed, expected) in [
            ("fix the bug", "fix the bug"),
            ("\n\n  ## Fix **the** `bug`  \nplease", "Fix the bug"),
            ("> - 1. quoted", "quoted"),
            ("---\nFix it", "Fix it"),
            ("```rust\nfn main() {}\n```", "fn main() {}"),
            ("<context>\nwhat is this?", "what is this?"),
            (
                "see [@main.rs](file:///src/main.rs) and ![it](x)!",
                "see @main.rs and it!",
            ),
            ("what does f(a)[0](b do", "what does f(a)[0](b do"),
            ("-v does nothing, #12 too", "-v does nothing, #12 too"),
            ("a\u{202e}b\u{1b}[31m\tc", "ab[31m c"),
            ("/review src/main.rs\nnow", "/review src/main.rs"),
            ("1.5 is not 2", "1.5 is not 2"),
            ("日本語で", "日本語で"),
        ] {
            assert_eq!(
                title_from_text(typed).as_deref(),
                Some(expected),
                "{typed:?}"
            );
        }
        for nothing in ["", " \n ", "***\n```", "/help", " /compact\n"] {
            assert_eq!(title_from_text(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn title_length_is_limited() {
        let long = "wörd ".repeat(10_000);
        let title = title_from_text(&long).unwrap();
        assert!(
            title.chars().count() < 130 && title.ends_with('…'),
            "{title}"
        );
    }

    #[test]
    fn session_without_text_is_titled_after_its_attachment() {
        let link =
            ContentBlock::ResourceLink(ResourceLink::new("notes.md", "file:///a/notes.md").into());
        let text = TextResourceContents::new("# Secret", "file:///a/b/plan.md");
        let embedded = EmbeddedResource::new(EmbeddedResourceResource::Text(text));
        let embedded = ContentBlock::Resource(embedded.into());
        for (block, expected) in [(&link, "notes.md"), (&embedded, "plan.md")] {
            let block = std::slice::from_ref(block);
            assert_eq!(title_from_prompt(block).as_deref(), Some(expected));
        }
        let typed = ContentBlock::text("sum it up");
        assert_eq!(
            title_from_prompt(&[embedded, link, typed]).as_deref(),
            Some("sum it up")
        );
    }
}
