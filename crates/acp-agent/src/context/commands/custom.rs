//! User-defined commands, read from `.acp/commands/NAME.md` in the session's directories.
//!
//! A file contains a prompt. It may start with lines between `---` that set its `description` and `argument-hint`.

use std::path::Path;

use acp_host::Roots;

use crate::context::commands::reserved::{COMPACT_COMMAND, HELP_COMMAND};
use crate::context::files;
use crate::text::first_line;

/// The path of the directory that contains command files, relative to a session directory.
const COMMANDS_DIRECTORY: &str = ".acp/commands";

/// The maximum number of commands in a session.
const MAX_COMMANDS: usize = 100;

/// The maximum number of directory entries to read.
const MAX_ENTRIES: usize = 1000;

/// The maximum size of a command file, in bytes.
const MAX_FILE_BYTES: usize = 32 * 1024;

/// The maximum size of an expanded prompt, in bytes.
const MAX_PROMPT_BYTES: usize = 1024 * 1024;

/// The maximum length of a command's name, in bytes.
const MAX_NAME_LEN: usize = 64;

/// A slash command that the user has defined in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CustomCommand {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) hint: Option<String>,
    pub(super) prompt: String,
}

/// The custom commands found in a session's directories.
#[derive(Debug, Default)]
pub(crate) struct CustomCommands {
    pub(super) commands: Vec<CustomCommand>,
    /// Errors found in command files, to show to the user.
    pub(super) problems: Vec<String>,
}

impl CustomCommands {
    /// Finds the commands in a session's directories. If several commands have the same name, the one in the first
    /// directory takes precedence. May block.
    pub(crate) fn find_in(roots: &Roots) -> Self {
        let mut found = Self::default();
        for root in roots.paths() {
            found.read_directory(roots, &root.join(COMMANDS_DIRECTORY));
        }
        found.commands.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    fn read_directory(&mut self, roots: &Roots, directory: &Path) {
        let entries = match roots.open_dir(directory) {
            Ok(directory) => directory.entries(),
            Err(refusal) if files::is_missing(&refusal) => return,
            Err(refusal) => return self.problems.push(roots.error_message(directory, &refusal)),
        };
        let entries = match entries {
            Ok(entries) => entries,
            Err(e) => return self.problems.push(format!("{}: {e}", directory.display())),
        };
        let names = entries.take(MAX_ENTRIES).filter_map(Result::ok);
        let mut names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        names.sort();
        for file in names {
            let file = file.to_string_lossy();
            let Some(name) = file.strip_suffix(".md") else {
                continue;
            };
            if self.commands.len() + self.problems.len() >= MAX_COMMANDS {
                let most = format!(
                    "{}: too many commands (limit: {MAX_COMMANDS}); the rest are ignored",
                    directory.display()
                );
                return self.problems.push(most);
            }
            let path = directory.join(&*file);
            match read_command(roots, &path, name) {
                Ok(command) if self.commands.iter().any(|other| other.name == command.name) => {}
                Ok(command) => self.commands.push(command),
                Err(why) => self.problems.push(format!("{}: {why}", path.display())),
            }
        }
    }
}

/// Returns `true` if this is a valid command name. Clients send the name as one word after a slash.
pub(super) fn is_valid_name(name: &str) -> bool {
    let all = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= MAX_NAME_LEN && name.chars().all(all)
}

fn read_command(roots: &Roots, path: &Path, name: &str) -> Result<CustomCommand, String> {
    if !is_valid_name(name) {
        return Err(format!(
            "command names must consist of at most {MAX_NAME_LEN} letters, digits, `-` and `_`"
        ));
    }
    if [HELP_COMMAND, COMPACT_COMMAND].contains(&name) {
        return Err(format!(
            "`/{name}` is a built-in command and cannot be replaced"
        ));
    }
    let file = files::read_file_head(roots, path, MAX_FILE_BYTES)?.ok_or("file not found")?;
    if file.is_truncated {
        return Err(format!("file larger than {MAX_FILE_BYTES} bytes"));
    }
    parse_command(name, &file.text)
}

/// Parses a command file. Doesn't parse the front matter as YAML, which would read `argument-hint: [FILE]` as a list
/// rather than the string that users mean.
fn parse_command(name: &str, text: &str) -> Result<CustomCommand, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let (mut description, mut hint, mut prompt) = (None, None, text);
    if lines.next().is_some_and(|line| line.trim_end() == "---") {
        let mut at = text.find('\n').map_or(text.len(), |end| end + 1);
        loop {
            let line = lines
                .next()
                .ok_or("unterminated front matter: no closing `---`")?;
            at += line.len();
            if line.trim_end() == "---" {
                break;
            }
            // Other lines may be meant for other programs.
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let value = first_line(unquote(value.trim()));
            let value = (!value.is_empty()).then_some(value);
            match key {
                "description" => description = value,
                "argument-hint" => hint = value,
                _ => {}
            }
        }
        prompt = text.get(at..).unwrap_or_default();
    }
    let prompt = prompt.trim();
    if prompt.is_empty() {
        return Err("the prompt is missing".to_owned());
    }
    Ok(CustomCommand {
        name: name.to_owned(),
        description: description.unwrap_or_else(|| first_line(prompt)),
        hint,
        prompt: prompt.to_owned(),
    })
}

fn unquote(text: &str) -> &str {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(text)
}

/// Substitutes the arguments into a command's prompt: all of them for `$ARGUMENTS`, and a single word for `$1` to `$9`.
/// Appends them if the prompt has no placeholder. Returns `None` if the result is too long.
pub(super) fn expand(template: &str, arguments: &str) -> Option<String> {
    // Split the arguments like a shell. If a quote is not closed, treat quotes as ordinary characters.
    let words = shell_words::split(arguments)
        .unwrap_or_else(|_| arguments.split_whitespace().map(str::to_owned).collect());
    let mut prompt = String::new();
    let (mut rest, mut named) = (template, false);
    while let Some((before, after)) = rest.split_once('$') {
        prompt.push_str(before);
        let (put, left) = match parse_placeholder(after) {
            Some((Placeholder::All, left)) => (arguments, left),
            Some((Placeholder::Word(n), left)) => {
                (words.get(n - 1).map_or("", String::as_str), left)
            }
            None => {
                prompt.push('$');
                rest = after;
                continue;
            }
        };
        named = true;
        prompt.push_str(put);
        rest = left;
        if prompt.len() > MAX_PROMPT_BYTES {
            return None;
        }
    }
    prompt.push_str(rest);
    if !named && !arguments.is_empty() {
        prompt.push_str("\n\n");
        prompt.push_str(arguments);
    }
    (prompt.len() <= MAX_PROMPT_BYTES).then_some(prompt)
}

enum Placeholder {
    All,
    /// One word of the arguments, counted from 1.
    Word(usize),
}

/// Parses the text after a `$` as a placeholder. Returns the placeholder and the remaining text.
fn parse_placeholder(text: &str) -> Option<(Placeholder, &str)> {
    if let Some(rest) = text.strip_prefix("ARGUMENTS") {
        return Some((Placeholder::All, rest));
    }
    let digit = text
        .chars()
        .next()?
        .to_digit(10)
        .filter(|digit| *digit > 0)?;
    let rest = text.get(1..)?;
    // `$100` is an amount, not a placeholder.
    if rest.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    Some((Placeholder::Word(usize::try_from(digit).ok()?), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_describes_the_command() {
        let text = "---\ndescription: \"Fix an issue\"\nargument-hint: [ISSUE]\nmodel: x\n- y\n---\n\nFix $1.\n";
        let custom = parse_command("fix", text).unwrap();
        let expected = CustomCommand {
            name: "fix".to_owned(),
            description: "Fix an issue".to_owned(),
            hint: Some("[ISSUE]".to_owned()),
            prompt: "Fix $1.".to_owned(),
        };
        assert_eq!(custom, expected);
        let custom = parse_command("fix", &text.replace('\n', "\r\n")).unwrap();
        assert_eq!(custom.description, "Fix an issue");
        assert_eq!(custom.prompt, "Fix $1.");

        let custom = parse_command("a", "Do it.\nWell.").unwrap();
        assert_eq!((&*custom.description, custom.hint), ("Do it. …", None));
        for wrong in ["", "---\ndescription: x\n", "---\ndescription: x\n---\n\n"] {
            assert!(parse_command("a", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn placeholders_are_replaced_by_arguments() {
        let expand = |template, arguments| expand(template, arguments).unwrap();
        assert_eq!(expand("a $ARGUMENTS b", "x y"), "a x y b");
        assert_eq!(expand("$2, $1, $3.", "x 'y z'"), "y z, x, .");
        assert_eq!(expand("$1 and $ARGUMENTS", "$2 b"), "$2 and $2 b");
        assert_eq!(expand("it costs $100 or $", ""), "it costs $100 or $");
        assert_eq!(expand("look", "here"), "look\n\nhere");
        assert_eq!(expand("look", ""), "look");
        assert_eq!(expand("$1", "don't do"), "don't");
        let long = "x".repeat(MAX_PROMPT_BYTES / 2);
        assert_eq!(super::expand("$ARGUMENTS$ARGUMENTS$ARGUMENTS", &long), None);
    }
}
