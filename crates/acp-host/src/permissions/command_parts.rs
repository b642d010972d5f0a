//! Splits command lines into the commands that "ask" and "deny" rules can match.
//!
//! The result may contain text that a shell would not run as a command, for example after `sudo` or in quotes after
//! `bash -c`. It must never be used to allow anything.

use std::collections::HashSet;
use std::sync::Arc;

use super::wrappers;

/// The maximum number of parts in a line.
const MAX_PARTS: usize = 64 * 1024;

/// The maximum total size of the parts of a line, in bytes.
const MAX_TOTAL_BYTES: usize = 64 * 1024 * 1024;

/// A placeholder for a blank inside a word.
const INNER_BLANK: &str = "\u{1}";

/// A part of a command line that could be a command.
#[derive(Debug, Clone)]
pub(super) struct CommandPart {
    text: Arc<str>,
    /// The part's text, in which blanks inside words are replaced so that the remaining blanks separate words.
    words: Arc<str>,
    /// The byte offset at which the command starts, in both `text` and `words`.
    start: usize,
}

impl CommandPart {
    /// Returns the command's text, with blanks between words.
    pub(super) fn text(&self) -> &str {
        self.text.get(self.start..).unwrap_or_default()
    }

    /// Returns the command's text, in which blanks inside words are replaced so that the remaining blanks separate
    /// words.
    pub(super) fn words(&self) -> &str {
        self.words.get(self.start..).unwrap_or_default()
    }
}

/// Returns all parts of the line that could be a command, or `None` if there are too many.
pub(super) fn split_command(line: &str) -> Option<Vec<CommandPart>> {
    let mut apart = CommandParts::default();
    apart.add_parts(line.into(), line.into(), [0])?;
    apart.split_line(line, false)?;
    Some(apart.parts)
}

#[derive(Default)]
struct CommandParts {
    parts: Vec<CommandPart>,
    /// Lines that have already been split.
    split_lines: HashSet<String>,
    /// The total size of the parts, in bytes.
    size: usize,
}

impl CommandParts {
    /// Adds to the total size of the parts. Returns `None` if the new total exceeds a limit.
    fn add_size(&mut self, size: usize) -> Option<()> {
        self.size += size;
        (self.size <= MAX_TOTAL_BYTES && self.parts.len() <= MAX_PARTS).then_some(())
    }

    fn add_parts(
        &mut self,
        text: Arc<str>,
        words: Arc<str>,
        starts: impl IntoIterator<Item = usize>,
    ) -> Option<()> {
        for start in starts {
            self.add_size(text.len() - start)?;
            self.parts.push(CommandPart {
                text: text.clone(),
                words: words.clone(),
                start,
            });
        }
        Some(())
    }

    /// Splits a line. `is_code` is true if the line is code for an interpreter.
    fn split_line(&mut self, line: &str, is_code: bool) -> Option<()> {
        let line = line.replace("\\\r\n", "").replace("\\\n", "");
        let line = line.replace("${IFS}", " ").replace("$IFS", " ");
        if !self.split_lines.insert(format!("{is_code} {line}")) {
            return Some(());
        }
        self.add_size(line.len())?;
        if line.contains('{') && line.contains(',') {
            let expanded = line.replace(['{', '}'], "").replace(',', " ");
            self.split_line(&expanded, is_code)?;
        }
        let mut commands = split_shell_line(&line);
        commands.extend(line.split(ends_command).map(split_roughly));
        // `echo TEXT | sh` also runs the text.
        let is_code = is_code
            || commands
                .iter()
                .flatten()
                .any(|word| wrappers::SHELL_PROGRAMS.contains(&bare_name(word)));
        for words in &commands {
            self.split_command_words(words, is_code)?;
        }
        Some(())
    }

    /// Adds the parts of a command that has already been split into words.
    fn split_command_words(&mut self, words: &[String], is_code: bool) -> Option<()> {
        let skipped = words.iter().take_while(|word| is_assignment(word)).count();
        let words = words.get(skipped..).unwrap_or_default();
        let Some(program) = words.first() else {
            return Some(());
        };
        let wrapped =
            wrappers::wrapped_command_start(bare_name(program), words.get(1..).unwrap_or_default());

        let mut text = String::new();
        let mut spaced = String::new();
        let mut starts = vec![0];
        for (index, word) in words.iter().enumerate() {
            if index > 0 {
                text.push(' ');
                spaced.push(' ');
            }
            let at = text.len();
            let is_program = index == 0 || wrapped.is_some_and(|from| index > from);
            if is_program {
                starts.push(at + word.len() - file_name(word).len());
                if index > 0 {
                    starts.push(at);
                    starts.extend(option_value_starts(word).map(|value| at + value));
                }
            }
            text.push_str(word);
            spaced.push_str(&word.replace(char::is_whitespace, INNER_BLANK));
        }
        starts.sort_unstable();
        starts.dedup();
        // Use the plain text if a blank had several bytes: the offsets would differ.
        let spaced = match spaced.len() == text.len() {
            true => spaced,
            false => text.clone(),
        };
        self.add_parts(text.into(), spaced.into(), starts)?;
        if let Some(stem) = program_stem(program) {
            let mut text = stem.to_owned();
            for word in words.get(1..).unwrap_or_default() {
                text.push(' ');
                text.push_str(word);
            }
            let text: Arc<str> = text.into();
            self.add_parts(text.clone(), text, [0])?;
        }

        if wrapped.is_some() || is_code {
            for word in words.iter().filter(|word| word.contains(is_syntax)) {
                self.split_line(word, true)?;
                for value in option_value_starts(word) {
                    self.split_line(word.get(value..).unwrap_or_default(), true)?;
                }
            }
        }
        let runs_git = words.iter().any(|word| bare_name(word) == "git");
        for alias in words
            .iter()
            .filter_map(|word| git_alias_value(word))
            .filter(|_| runs_git)
        {
            match alias.strip_prefix('!') {
                Some(line) => self.split_line(line, true)?,
                None => self.split_line(&format!("git {alias}"), false)?,
            }
        }
        Some(())
    }
}

/// Returns the offsets where an option's value may start, as in `--command=VALUE`, `-cVALUE` and `-qcVALUE`.
fn option_value_starts(word: &str) -> impl Iterator<Item = usize> {
    let is_option = word.starts_with('-');
    let equals = word.find('=').map(|at| at + 1);
    let attached = (2..5).filter(|at| word.is_char_boundary(*at) && *at < word.len());
    let starts = equals.into_iter().chain(attached);
    starts
        .filter(move |_| is_option)
        .collect::<Vec<_>>()
        .into_iter()
}

/// Returns the value of a git alias set with `-c alias.NAME=VALUE`.
fn git_alias_value(word: &str) -> Option<&str> {
    let alias = word.find("alias.").and_then(|at| word.get(at..))?;
    alias.split_once('=').map(|(_, value)| value)
}

fn is_syntax(c: char) -> bool {
    c.is_whitespace() || ends_command(c)
}

fn ends_command(c: char) -> bool {
    ";|&<>`(){}\n\r".contains(c)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    })
}

/// Returns a program's name without its directory.
fn file_name(program: &str) -> &str {
    program.rsplit(['/', '\\']).next().unwrap_or(program)
}

/// Returns a program's name without its directory and its `.exe` suffix, or `None` if it has no such suffix.
fn program_stem(program: &str) -> Option<&str> {
    file_name(program).strip_suffix(".exe")
}

/// Returns a program's name without its directory and without any `.exe` suffix.
pub(super) fn bare_name(program: &str) -> &str {
    program_stem(program).unwrap_or(file_name(program))
}

/// Splits a fragment of a line into words. The fragment may start or end anywhere, even inside quotes.
fn split_roughly(piece: &str) -> Vec<String> {
    let piece = piece.trim().trim_end_matches('$').trim_end();
    shell_words::split(piece).unwrap_or_else(|_| {
        let bare = |word: &str| word.replace(['"', '\'', '\\'], "");
        piece.split_whitespace().map(bare).collect()
    })
}

/// Splits a line into commands as a shell would, but drops redirections.
fn split_shell_line(line: &str) -> Vec<Vec<String>> {
    let mut splitter = CommandSplitter::default();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                splitter.open_word();
                splitter
                    .text
                    .extend(chars.by_ref().take_while(|c| *c != '\''));
            }
            '"' => {
                splitter.open_word();
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    match c {
                        '\\' => splitter.text.extend(chars.next()),
                        c => splitter.text.push(c),
                    }
                }
            }
            '\\' => {
                splitter.open_word();
                splitter.text.extend(chars.next());
            }
            // `$'…'`, where a backslash escapes a quote, and `$"…"`.
            '$' if chars.peek() == Some(&'\'') => {
                chars.next();
                splitter.open_word();
                while let Some(c) = chars.next().filter(|c| *c != '\'') {
                    match c {
                        '\\' => splitter.text.extend(chars.next()),
                        c => splitter.text.push(c),
                    }
                }
            }
            '$' if matches!(chars.peek(), Some('"' | '(' | '{')) => {}
            '<' | '>' => splitter.redirect(),
            // `&>file`, and `>&1`.
            '&' if chars.peek() == Some(&'>') => splitter.redirect(),
            '&' | '|' if splitter.is_target && splitter.word.is_none() => {}
            ';' | '|' | '&' | '(' | ')' | '`' | '\n' | '\r' => splitter.end_command(),
            c if c.is_whitespace() => splitter.end_word(),
            c => splitter.push(c),
        }
        splitter.flush();
    }
    splitter.end_command();
    splitter.commands
}

#[derive(Default)]
struct CommandSplitter {
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    word: Option<String>,
    /// Text to append to the word.
    text: String,
    /// Whether the word is the target of a redirection.
    is_target: bool,
}

impl CommandSplitter {
    fn open_word(&mut self) {
        self.word.get_or_insert_default();
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.word.get_or_insert_default().push_str(&text);
        }
    }

    fn redirect(&mut self) {
        // The number of a file descriptor is part of the redirection.
        match &self.word {
            Some(word) if word.chars().all(|c| c.is_ascii_digit()) => self.word = None,
            _ => self.end_word(),
        }
        self.is_target = true;
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take() {
            match std::mem::take(&mut self.is_target) {
                // A here-string may be code.
                true if word.contains(char::is_whitespace) => self.commands.push(vec![word]),
                true => {}
                false => self.words.push(word),
            }
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.is_target = false;
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
    }
}

#[cfg(test)]
#[path = "command_parts_tests.rs"]
mod tests;
