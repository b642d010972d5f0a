//! Handles pasted content: text, or the paths that a terminal pastes when files are dropped on it.

use std::path::{Path, PathBuf};

/// The maximum size of a paste, in bytes.
pub(crate) const MAX_PASTE_BYTES: usize = 1024 * 1024;
/// The maximum number of lines of pasted text to show in full. Longer text is shown as a label.
const MAX_INLINE_LINES: usize = 10;
/// The maximum number of characters of pasted text to show in full. Longer text is shown as a label.
const MAX_INLINE_CHARS: usize = 2_000;
/// The maximum length of text to check for paths, in bytes.
const MAX_PATHS_BYTES: usize = 16 * 1024;

/// Removes escape sequences from text, and normalizes its line endings.
pub(crate) fn normalize_line_endings(text: &str) -> String {
    // Terminals send a line end as the Enter key sends it.
    let ended = text.replace("\r\n", "\n").replace('\r', "\n");
    acp_host::terminal_text::clean_text(&ended)
}

/// Returns the label to show instead of long text, or `None` for short text.
pub(crate) fn paste_label(text: &str) -> Option<String> {
    let lines = text.lines().count();
    if lines > MAX_INLINE_LINES {
        return Some(format!("[pasted {lines} lines]"));
    }
    // Count no more characters than necessary.
    let long = text.chars().nth(MAX_INLINE_CHARS).is_some();
    long.then(|| format!("[pasted {} characters]", text.chars().count()))
}

/// Returns the paths if the text is nothing but absolute paths of existing files, on one or more lines. A path may be
/// plain, quoted, shell-escaped, or a `file://` URL.
pub(crate) fn parse_paths(text: &str) -> Option<Vec<PathBuf>> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_PATHS_BYTES {
        return None;
    }
    if let Some(path) = parse_path(text) {
        return Some(vec![path]);
    }
    if text.contains('\n')
        && let Some(paths) = text.lines().map(|line| parse_path(line.trim())).collect()
    {
        return Some(paths);
    }
    let words = shell_words::split(text).ok()?;
    let paths: Option<Vec<_>> = words.iter().map(|word| parse_path(word)).collect();
    paths.filter(|paths| !paths.is_empty())
}

fn parse_path(word: &str) -> Option<PathBuf> {
    let path = match word.strip_prefix("file://") {
        Some(address) => {
            // The name of this machine may precede the path.
            let at = address.find('/')?;
            PathBuf::from(percent_decode(&address[at..])?)
        }
        None => PathBuf::from(word),
    };
    (path.is_absolute() && has_file_name(&path) && path.exists()).then_some(path)
}

/// Returns whether a path has a file name. A root such as `/` cannot be attached.
fn has_file_name(path: &Path) -> bool {
    path.file_name().is_some()
}

/// Decodes the percent-encoding in a URL.
fn percent_decode(address: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = address.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            let digits = std::str::from_utf8(&digits).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_text_gets_a_label() {
        assert_eq!(paste_label("one line"), None);
        assert_eq!(paste_label(&"x\n".repeat(10)), None);
        assert_eq!(
            paste_label(&"x\n".repeat(240)),
            Some("[pasted 240 lines]".into())
        );
        let long = "你".repeat(2_001);
        assert_eq!(paste_label(&long), Some("[pasted 2001 characters]".into()));
        assert_eq!(
            normalize_line_endings("a\r\rb\r\nc\u{1b}[31m\u{202e}d"),
            "a\n\nb\ncd"
        );
    }

    #[test]
    #[cfg(unix)]
    fn file_paths_are_parsed_in_every_terminal_notation() {
        let directory = tempfile::tempdir().unwrap();
        let one = directory.path().join("my picture.png");
        let two = directory.path().join("ü.txt");
        std::fs::write(&one, "").unwrap();
        std::fs::write(&two, "").unwrap();
        let root = directory.path().display();
        for written in [
            format!("{root}/my picture.png"),
            format!("{root}/my\\ picture.png "),
            format!("'{root}/my picture.png'"),
            format!("\"{root}/my picture.png\"\n"),
            format!("file://{root}/my%20picture.png"),
            format!("file://localhost{root}/my%20picture.png"),
        ] {
            assert_eq!(parse_paths(&written), Some(vec![one.clone()]), "{written}");
        }
        let both = Some(vec![one.clone(), two.clone()]);
        assert_eq!(
            parse_paths(&format!("{root}/my\\ picture.png {root}/ü.txt")),
            both
        );
        let lines = format!("{root}/my picture.png\nfile://{root}/%C3%BC.txt");
        assert_eq!(parse_paths(&lines), both);
        for other in ["", "/", "relative.txt", "see /tmp", "it's", "file://%zz/"] {
            assert_eq!(parse_paths(other), None, "{other}");
        }
        assert_eq!(parse_paths(&format!("{root}/gone.txt")), None);
    }
}
