//! Parses command lines as shells do, in order to distinguish literal text from characters that a shell interprets.
//!
//! A rule that allows a command must know everything that will run. So any character is marked if a common shell
//! (POSIX, bash, zsh, ksh, fish; on Windows `cmd` and PowerShell) could read it as anything other than a part of a
//! literal word in a simple command. No wildcard matches marked characters.

use std::iter::Peekable;
use std::str::Chars;

/// The mark placed before each character that a shell may interpret. A line that already contains this character is not
/// parsed.
pub(super) const LITERAL_MARK: char = '\0';

/// A command line, parsed as a shell would parse it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShellLine {
    /// The line, with a [`LITERAL_MARK`] before every character that is not a quote, a blank or the literal text of a
    /// word.
    pub(super) marked: String,
    /// The words, if the line is a single simple command consisting only of literal words.
    pub(super) words: Option<Vec<String>>,
}

/// Parses a line according to the shells on this system. Returns `None` if the line is incomplete, for example because
/// a quote is not closed.
pub(super) fn parse_line(line: &str) -> Option<ShellLine> {
    match cfg!(windows) {
        true => parse_windows_line(line),
        false => parse_unix_line(line),
    }
}

/// Marks every character, so that wildcards match none of them.
pub(super) fn escape_wildcards(line: &str) -> String {
    line.chars().flat_map(|c| [LITERAL_MARK, c]).collect()
}

/// Parses a line for POSIX shells and, where it differs, for fish.
fn parse_unix_line(line: &str) -> Option<ShellLine> {
    if line.contains(LITERAL_MARK) {
        return None;
    }
    let mut reader = ShellReader::new(line);
    while let Some(c) = reader.chars.next() {
        reader.read_character(c)?;
    }
    Some(reader.finish())
}

/// The state of the parser for POSIX shells and fish.
struct ShellReader<'a> {
    chars: Peekable<Chars<'a>>,
    marked: String,
    words: Vec<String>,
    word: Option<String>,
    previous: Option<char>,
    /// Whether nothing has been marked so far.
    is_literal: bool,
    /// Whether all remaining characters are marked, because it is unclear where words and quotes end.
    is_unclear: bool,
    /// Whether the next word may be the name of a command or a variable assignment before it.
    is_at_command: bool,
    /// Whether the current word is a variable assignment.
    is_assignment: bool,
    /// Whether the current word is the target of a redirection.
    is_target: bool,
}

impl<'a> ShellReader<'a> {
    fn new(line: &'a str) -> Self {
        Self {
            chars: line.chars().peekable(),
            marked: String::with_capacity(line.len()),
            words: Vec::new(),
            word: None,
            previous: None,
            is_literal: true,
            is_unclear: false,
            is_at_command: true,
            is_assignment: false,
            is_target: false,
        }
    }

    fn finish(mut self) -> ShellLine {
        self.end_word();
        let literal = self.is_literal && !self.words.is_empty();
        ShellLine {
            marked: self.marked,
            words: literal.then_some(self.words),
        }
    }

    /// Adds a character that is neither literal text nor a blank.
    fn push_special(&mut self, c: char) {
        self.is_literal = false;
        self.marked.extend([LITERAL_MARK, c]);
    }

    /// Adds a character, and marks both it and everything that follows.
    fn push_unclear(&mut self, c: char) {
        self.push_special(c);
        self.is_unclear = true;
    }

    /// Adds a character of literal text.
    fn push_literal(&mut self, c: char) {
        if self.is_unclear || is_control(c) {
            return self.push_unclear(c);
        }
        self.marked.push(c);
        self.word.get_or_insert_default().push(c);
    }

    /// Adds a character that is not part of a word's text, such as a quote.
    fn push_syntax(&mut self, c: char) {
        match self.is_unclear {
            true => self.push_special(c),
            false => self.marked.push(c),
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else {
            return;
        };
        self.words.push(word);
        if !std::mem::take(&mut self.is_target) {
            self.is_at_command &= std::mem::take(&mut self.is_assignment);
        }
    }

    /// Reads a character outside quotes. Returns `None` if the line ends too early.
    fn read_character(&mut self, c: char) -> Option<()> {
        let starts_word = self.word.is_none();
        match c {
            _ if self.is_unclear || is_control(c) => self.push_unclear(c),
            ' ' | '\t' => {
                self.push_syntax(c);
                self.end_word();
            }
            '\'' => self.read_single_quoted()?,
            '"' => self.read_double_quoted()?,
            '\\' => {
                self.push_syntax(c);
                match self.chars.next()? {
                    // In fish, this may start a character code.
                    next if next.is_alphanumeric() => self.push_unclear(next),
                    next => self.push_literal(next),
                }
            }
            // Inside these, quotes may mean something else.
            '`' | '(' | ')' | '{' | '}' => self.push_unclear(c),
            '$' | '<' => {
                let opens = |next: &char| "({['\"<".contains(*next);
                match self.chars.peek().is_some_and(opens) {
                    true => self.push_unclear(c),
                    false => self.push_special(c),
                }
                self.end_word_at_operator(c);
            }
            ';' | '&' | '|' | '>' => {
                self.push_special(c);
                self.end_word_at_operator(c);
            }
            // This starts a comment.
            '#' if starts_word => self.push_unclear(c),
            // Globs, history expansion (`!`, `^`), and the path of a command (`=ls`).
            '*' | '?' | '[' | '!' => self.push_expansion(c),
            '=' | '^' if starts_word => self.push_expansion(c),
            '=' if self.is_at_command && !self.is_target => {
                self.is_assignment = true;
                self.push_expansion(c);
            }
            '~' if starts_word || matches!(self.previous, Some('=' | ':')) => {
                self.push_expansion(c)
            }
            // Some systems treat these characters as blanks.
            c if c.is_whitespace() => self.push_expansion(c),
            c => self.push_literal(c),
        }
        self.previous = Some(c);
        Some(())
    }

    /// Adds a character that a shell may expand.
    fn push_expansion(&mut self, c: char) {
        self.push_special(c);
        self.word.get_or_insert_default().push(c);
    }

    fn end_word_at_operator(&mut self, c: char) {
        match c {
            '$' => {
                self.word.get_or_insert_default();
            }
            '<' | '>' => {
                self.end_word();
                self.is_target = true;
            }
            _ => {
                self.end_word();
                self.is_at_command = true;
            }
        }
    }

    fn read_single_quoted(&mut self) -> Option<()> {
        self.push_syntax('\'');
        self.word.get_or_insert_default();
        let mut before = None;
        loop {
            match self.chars.next()? {
                // In fish, this does not end the quotes.
                '\'' if before == Some('\\') => {
                    self.push_unclear('\'');
                    return Some(());
                }
                '\'' => {
                    self.push_syntax('\'');
                    return Some(());
                }
                c => {
                    self.push_literal(c);
                    before = Some(c);
                }
            }
        }
    }

    fn read_double_quoted(&mut self) -> Option<()> {
        self.push_syntax('"');
        self.word.get_or_insert_default();
        loop {
            match self.chars.next()? {
                '"' => {
                    self.push_syntax('"');
                    return Some(());
                }
                '\\' => match self.chars.peek()? {
                    '"' | '\\' | '$' | '`' => {
                        self.push_syntax('\\');
                        let escaped = self.chars.next()?;
                        self.push_literal(escaped);
                    }
                    _ => self.push_literal('\\'),
                },
                c @ ('$' | '`') => self.push_unclear(c),
                '!' => {
                    // A shell with a history also expands `!` inside these quotes.
                    let ends = |next: &char| next.is_whitespace() || *next == '"';
                    match self.chars.peek().is_some_and(ends) {
                        true => self.push_literal('!'),
                        false => self.push_special('!'),
                    }
                }
                c => self.push_literal(c),
            }
        }
    }
}

/// Returns `true` for control characters, since they may end a line or be used internally by shells.
fn is_control(c: char) -> bool {
    c.is_control() && c != '\t'
}

/// Characters that `cmd` or PowerShell interprets. They are treated as special even inside quotes, because the two
/// shells handle quotes differently.
const WINDOWS_SPECIAL_CHARS: &str =
    "&|<>()^%!'`$;{}[]*?~#@\u{2018}\u{2019}\u{201a}\u{201b}\u{201c}\u{201d}\u{201e}";

/// Parses a line for `cmd` and PowerShell, in which a backslash is part of a path.
fn parse_windows_line(line: &str) -> Option<ShellLine> {
    if line.contains(LITERAL_MARK) {
        return None;
    }
    let mut marked = String::with_capacity(line.len());
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let (mut is_quoted, mut is_literal, mut is_unclear) = (false, true, false);
    let mut before = None;
    for c in line.chars() {
        // To programs, `\"` is a quote in a word. To `cmd`, it ends a quoted word.
        is_unclear |= is_control(c) || (c == '"' && before == Some('\\'));
        let special = is_unclear
            || WINDOWS_SPECIAL_CHARS.contains(c)
            || (c.is_whitespace() && ![' ', '\t'].contains(&c));
        if special {
            is_literal = false;
            marked.push(LITERAL_MARK);
        }
        marked.push(c);
        match c {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            ' ' | '\t' if !is_quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
        before = Some(c);
    }
    words.extend(word);
    let words = (is_literal && !words.is_empty()).then_some(words);
    (!is_quoted).then_some(ShellLine { marked, words })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_words(line: &str) -> Option<Vec<String>> {
        parse_unix_line(line)?.words
    }

    #[test]
    fn literal_words_match_the_words_of_a_shell() {
        for (line, expected) in [
            ("git log -1", &["git", "log", "-1"][..]),
            ("  git\t log ", &["git", "log"]),
            (
                "git commit -m 'a; b > c'",
                &["git", "commit", "-m", "a; b > c"],
            ),
            (
                r#"git commit -m "Fix \"x\" & \$y!""#,
                &["git", "commit", "-m", "Fix \"x\" & $y!"],
            ),
            (r#"echo "a\b" '\n'"#, &["echo", r"a\b", r"\n"]),
            ("echo a''b \"\" ''", &["echo", "ab", "", ""]),
            (r"echo a\ b\;\*", &["echo", "a b;*"]),
            ("git show HEAD~1 HEAD^ a=b #", &[]),
            (
                "git show HEAD~1 HEAD^ a=b a#b 50%",
                &["git", "show", "HEAD~1", "HEAD^", "a=b", "a#b", "50%"],
            ),
            ("grep 'x$' 'è*' é", &["grep", "x$", "è*", "é"]),
        ] {
            let read = split_words(line).unwrap_or_default();
            assert_eq!(read, expected, "{line}");
        }
    }

    #[test]
    fn ambiguous_input_is_not_literal() {
        for line in [
            "",
            " ",
            "a;b",
            "a & b",
            "a|b",
            "a>b",
            "a<b",
            "a\nb",
            "a\rb",
            "a\u{b}b",
            "a\u{c}b",
            "a\u{85}b",
            "a\u{a0}b",
            "a\u{2028}b",
            "a 'b\nc'",
            "a \"b\nc\"",
            "a \\\nb",
            "a *",
            "a b?",
            "a [b]",
            "a {b,c}",
            "a ~",
            "a ~root",
            "a x=~",
            "a x:~",
            "a $b",
            "a \"$b\"",
            "a $(b)",
            "a `b`",
            "a \"`b`\"",
            "a $'b'",
            "a (b)",
            "(a)",
            "!a",
            "a !!",
            "a \"x!y\"",
            "a \"x\\!y\"",
            "^a^b",
            "a =b",
            "a #b",
            "a <<b",
            "A=1 b",
            "A=1 B=2 b",
            "A+=1 b",
            "a 'b\\' c",
            "a \\x41",
            "a 'b",
            "a \"b",
            "a \\",
            "a \u{1b}[0m",
            "a\0b",
            "!",
            "a <(b)",
        ] {
            assert_eq!(split_words(line), None, "{line:?}");
        }
    }

    #[test]
    fn wildcards_do_not_match_marked_characters() {
        let marked = |line| {
            parse_unix_line(line)
                .unwrap()
                .marked
                .replace(LITERAL_MARK, "¡")
        };
        for (line, expected) in [
            ("cd web && npm 'a && b'", "cd web ¡&¡& npm 'a && b'"),
            ("a=1 b=2 c d=3", "a¡=1 b¡=2 c d=3"),
            (">a b=1 c d=2", "¡>a b¡=1 c d=2"),
            ("a; b=1 c", "a¡; b¡=1 c"),
            ("a $b 'c'", "a ¡$b 'c'"),
            // Shells may read what follows these characters differently.
            ("a # 'b", "a ¡#¡ ¡'¡b"),
            ("a $'b", "a ¡$¡'¡b"),
            ("a\n'b", "a¡\n¡'¡b"),
            ("a 'b\\' c", "a 'b\\¡'¡ ¡c"),
        ] {
            assert_eq!(marked(line), expected, "{line:?}");
        }
    }

    #[test]
    fn windows_backslashes_are_literal_and_single_quotes_do_not_quote() {
        let words = |line| parse_windows_line(line).and_then(|reading| reading.words);
        assert_eq!(words(r#"dir C:\x "a b""#).unwrap(), ["dir", r"C:\x", "a b"]);
        for line in [
            "echo 'a & b'",
            "echo a & b",
            "echo \"a & b\"",
            "echo %PATH%",
            "echo ^& x",
            "echo $x",
            "echo `x",
            "echo \"a\\\" b\"",
            "echo \"a",
            "echo a\nb",
        ] {
            assert_eq!(words(line), None, "{line:?}");
        }
    }
}
