//! The slash commands of the offline model, and their parser. See "Slash Commands" in the specification.

use acp::v1::{AvailableCommand, UnstructuredCommandInput};

/// A slash command of the offline model, with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OfflineCommand {
    Help,
    List {
        dir: Option<String>,
    },
    Read {
        path: String,
        /// The first line and, optionally, the last line, both counted from 1.
        lines: Option<(u32, Option<u32>)>,
    },
    Search {
        pattern: String,
        glob: Option<String>,
    },
    Write {
        path: String,
        text: String,
    },
    Edit {
        path: String,
        search: String,
        replacement: String,
    },
    Run {
        command: String,
    },
    Test,
    Plan {
        goal: String,
    },
}

/// User input, parsed as a possible slash command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OfflineInput {
    Command(OfflineCommand),
    /// A known command with missing or invalid arguments. The string describes the expected arguments.
    Incomplete(String),
    /// The name of a command that does not exist.
    Unknown(String),
    /// Text that is not a slash command.
    Text,
}

/// The name and help text of a command.
struct OfflineCommandInfo {
    name: &'static str,
    description: &'static str,
    hint: Option<&'static str>,
    /// Additional help, beyond the hint. May be empty.
    details: &'static str,
}

const OFFLINE_COMMANDS: [OfflineCommandInfo; 9] = [
    OfflineCommandInfo {
        name: "help",
        description: "List the available commands",
        hint: None,
        details: "",
    },
    OfflineCommandInfo {
        name: "list",
        description: "List a directory",
        hint: Some("[DIR]"),
        details: "",
    },
    OfflineCommandInfo {
        name: "read",
        description: "Show a file or a range of its lines",
        hint: Some("PATH[:LINE[-LINE]]"),
        details: "",
    },
    OfflineCommandInfo {
        name: "search",
        description: "Search files for a regular expression",
        hint: Some("PATTERN [GLOB]"),
        details: "Quote patterns that contain spaces. Hidden files and files ignored by `.gitignore` are skipped.",
    },
    OfflineCommandInfo {
        name: "write",
        description: "Write a file",
        hint: Some("PATH, then the text, on the same line or on the lines below"),
        details: "Quote a path with spaces if text follows on the same line.",
    },
    OfflineCommandInfo {
        name: "edit",
        description: "Replace text in a file",
        hint: Some(
            "PATH, then on the lines below: the text to replace, a line that contains only ===, and the replacement",
        ),
        details: "The text must match the file exactly and occur only once.",
    },
    OfflineCommandInfo {
        name: "run",
        description: "Run a command line in the shell",
        hint: Some("COMMAND"),
        details: "",
    },
    OfflineCommandInfo {
        name: "test",
        description: "Detect the project's test command and run it",
        hint: None,
        details: "Supports cargo, npm, pytest, go and make.",
    },
    OfflineCommandInfo {
        name: "plan",
        description: "Survey the workspace and draft a plan",
        hint: Some("GOAL"),
        details: "",
    },
];

/// Returns the commands to announce to a client.
pub(crate) fn available_commands() -> Vec<AvailableCommand> {
    OFFLINE_COMMANDS
        .iter()
        .map(|about| {
            let command = AvailableCommand::new(about.name, about.description);
            match about.hint {
                Some(hint) => command.input(UnstructuredCommandInput::new(hint)),
                None => command,
            }
        })
        .collect()
}

/// Returns a Markdown list of the commands.
pub(crate) fn help_text() -> String {
    let mut text = String::new();
    for about in &OFFLINE_COMMANDS {
        text.push_str("- `/");
        text.push_str(about.name);
        text.push('`');
        if let Some(hint) = about.hint {
            text.push_str(&format!(" `{hint}`"));
        }
        text.push_str(": ");
        text.push_str(about.description);
        text.push('.');
        if !about.details.is_empty() {
            text.push(' ');
            text.push_str(about.details);
        }
        text.push('\n');
    }
    text
}

/// Returns a comma-separated list of the command names, for use in messages.
pub(crate) fn command_names() -> String {
    let names: Vec<String> = OFFLINE_COMMANDS
        .iter()
        .map(|about| format!("`/{}`", about.name))
        .collect();
    names.join(", ")
}

/// Parses text that the user typed as a slash command.
pub(crate) fn parse(typed: &str) -> OfflineInput {
    let Some(rest) = typed.trim_start().strip_prefix('/') else {
        return OfflineInput::Text;
    };
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    // Text may start with an absolute path.
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        return OfflineInput::Text;
    }
    let Some(about) = OFFLINE_COMMANDS.iter().find(|about| about.name == name) else {
        return OfflineInput::Unknown(name.to_owned());
    };
    match parse_arguments(name, rest) {
        Some(command) => OfflineInput::Command(command),
        None => OfflineInput::Incomplete(format!(
            "`/{name}` takes {}. {}",
            about
                .hint
                .map_or_else(|| "no arguments".to_owned(), |hint| format!("`{hint}`")),
            about.details
        )),
    }
}

/// Parses the arguments of a command. `rest` is everything after its name.
fn parse_arguments(name: &str, rest: &str) -> Option<OfflineCommand> {
    let line = rest.trim();
    match name {
        "help" => Some(OfflineCommand::Help),
        "test" => Some(OfflineCommand::Test),
        "list" => Some(OfflineCommand::List {
            dir: (!line.is_empty()).then(|| unquote(line).to_owned()),
        }),
        "read" => parse_read(line),
        "search" => parse_search(line),
        "write" => parse_write(rest),
        "edit" => parse_edit(rest),
        "run" if !line.is_empty() => Some(OfflineCommand::Run {
            command: line.to_owned(),
        }),
        "plan" if !line.is_empty() => Some(OfflineCommand::Plan {
            goal: line.to_owned(),
        }),
        _ => None,
    }
}

fn parse_read(line: &str) -> Option<OfflineCommand> {
    let (mut path, mut lines) = (line, None);
    // Compilers print `PATH:LINE:COLUMN`. The column does not matter here.
    while let Some((before, after)) = path.rsplit_once(':') {
        let Some(range) = parse_line_range(after).filter(|_| !before.is_empty()) else {
            break;
        };
        (path, lines) = (before, Some(range));
    }
    let path = unquote(path);
    let valid =
        lines.is_none_or(|(first, last)| first > 0 && last.is_none_or(|last| last >= first));
    (!path.is_empty() && valid).then(|| OfflineCommand::Read {
        path: path.to_owned(),
        lines,
    })
}

fn parse_line_range(text: &str) -> Option<(u32, Option<u32>)> {
    match text.split_once('-') {
        Some((first, last)) => Some((first.parse().ok()?, Some(last.parse().ok()?))),
        None => Some((text.parse().ok()?, None)),
    }
}

fn parse_search(line: &str) -> Option<OfflineCommand> {
    let (pattern, rest) = split_word(line)?;
    let glob = match split_word(rest) {
        None => None,
        Some((glob, rest)) if rest.trim().is_empty() => Some(glob.to_owned()),
        // There are too many words to tell which of them are the pattern.
        Some(_) => return None,
    };
    Some(OfflineCommand::Search {
        pattern: pattern.to_owned(),
        glob,
    })
}

fn parse_write(rest: &str) -> Option<OfflineCommand> {
    let rest = rest.trim_start_matches([' ', '\t']);
    let (first, below) = match rest.split_once('\n') {
        Some((first, below)) => (first.trim_end_matches('\r'), Some(below)),
        None => (rest, None),
    };
    let (path, after) = split_word(first)?;
    // One space separates path and text; any further space belongs to the text.
    let beside = after.strip_prefix([' ', '\t']).unwrap_or(after);
    let text = if beside.trim().is_empty() {
        // A path without text may be a mistake, so it does not write an empty file.
        below?
    } else {
        rest.get(first.len() - beside.len()..)?
    };
    Some(OfflineCommand::Write {
        path: path.to_owned(),
        text: text.to_owned(),
    })
}

fn parse_edit(rest: &str) -> Option<OfflineCommand> {
    let (path, body) = rest.split_once('\n')?;
    let path = unquote(path.trim());
    let mut search_end = 0;
    let mut replacement = None;
    for line in body.split_inclusive('\n') {
        if line.trim_end_matches(['\n', '\r']) == "===" {
            replacement = body.get(search_end + line.len()..);
            break;
        }
        search_end += line.len();
    }
    // The old and the new text consist of lines. The last line break of each belongs to the marker after it.
    let search = trim_line_end(body.get(..search_end)?);
    let replacement = trim_line_end(replacement?);
    (!path.is_empty() && !search.is_empty()).then(|| OfflineCommand::Edit {
        path: path.to_owned(),
        search: search.to_owned(),
        replacement: replacement.to_owned(),
    })
}

fn trim_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// Splits text into its first word, which may be quoted, and the rest.
fn split_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    for quote in ['"', '\''] {
        if let Some((word, rest)) = text.strip_prefix(quote).and_then(|t| t.split_once(quote)) {
            return (!word.is_empty()).then_some((word, rest));
        }
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn unquote(text: &str) -> &str {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_command(typed: &str) -> OfflineCommand {
        match parse(typed) {
            OfflineInput::Command(command) => command,
            other => panic!("{typed}: {other:?}"),
        }
    }

    #[test]
    fn plain_text_is_not_a_command() {
        for text in ["hello", "", "/", "/etc/hosts is odd", "a /test", "/ test"] {
            assert_eq!(parse(text), OfflineInput::Text, "{text}");
        }
        assert_eq!(parse("/frob x"), OfflineInput::Unknown("frob".into()));
    }

    #[test]
    fn read_accepts_line_ranges() {
        let read = |path: &str, lines| OfflineCommand::Read {
            path: path.into(),
            lines,
        };
        assert_eq!(parse_command("/read a b.rs"), read("a b.rs", None));
        assert_eq!(
            parse_command("/read \"a b.rs\":7"),
            read("a b.rs", Some((7, None)))
        );
        assert_eq!(
            parse_command("/read a.rs:7-9"),
            read("a.rs", Some((7, Some(9))))
        );
        assert_eq!(
            parse_command("/read a.rs:7:21"),
            read("a.rs", Some((7, None)))
        );
        assert_eq!(parse_command(r"/read C:\a.rs"), read(r"C:\a.rs", None));
        for wrong in ["/read", "/read a:0", "/read a:9-7"] {
            assert!(
                matches!(parse(wrong), OfflineInput::Incomplete(_)),
                "{wrong}"
            );
        }
    }

    #[test]
    fn search_accepts_quoted_arguments() {
        let search = |pattern: &str, glob: Option<&str>| OfflineCommand::Search {
            pattern: pattern.into(),
            glob: glob.map(Into::into),
        };
        assert_eq!(parse_command("/search fn"), search("fn", None));
        assert_eq!(
            parse_command("/search 'fn main' *.rs"),
            search("fn main", Some("*.rs"))
        );
        assert!(matches!(
            parse("/search fn main *.rs"),
            OfflineInput::Incomplete(_)
        ));
    }

    #[test]
    fn write_accepts_text_on_the_same_line_and_below() {
        let write = |path: &str, text: &str| OfflineCommand::Write {
            path: path.into(),
            text: text.into(),
        };
        assert_eq!(
            parse_command("/write a.txt one two"),
            write("a.txt", "one two")
        );
        assert_eq!(
            parse_command("/write a.txt\none\n two\n"),
            write("a.txt", "one\n two\n")
        );
        assert_eq!(
            parse_command("/write a.txt one\ntwo"),
            write("a.txt", "one\ntwo")
        );
        assert_eq!(
            parse_command("/write a.txt one\r\ntwo"),
            write("a.txt", "one\r\ntwo")
        );
        assert_eq!(
            parse_command("/write 'a b.txt'   x"),
            write("a b.txt", "  x")
        );
        assert_eq!(parse_command("/write a.txt\n"), write("a.txt", ""));
        for wrong in ["/write", "/write a.txt"] {
            assert!(
                matches!(parse(wrong), OfflineInput::Incomplete(_)),
                "{wrong}"
            );
        }
    }

    #[test]
    fn edit_accepts_multiple_lines() {
        let edit = |search: &str, replacement: &str| OfflineCommand::Edit {
            path: "a.txt".into(),
            search: search.into(),
            replacement: replacement.into(),
        };
        assert_eq!(
            parse_command("/edit a.txt\nold\n===\nnew"),
            edit("old", "new")
        );
        assert_eq!(
            parse_command("/edit a.txt\n  o\nld\n===\nn\n\new\n"),
            edit("  o\nld", "n\n\new")
        );
        assert_eq!(
            parse_command("/edit a.txt\r\nold\r\n===\r\nnew\r\n"),
            edit("old", "new")
        );
        assert_eq!(parse_command("/edit a.txt\nold\n==="), edit("old", ""));
        for wrong in [
            "/edit a.txt",
            "/edit a.txt\nold\nnew",
            "/edit a.txt\n===\nnew",
        ] {
            assert!(
                matches!(parse(wrong), OfflineInput::Incomplete(_)),
                "{wrong}"
            );
        }
    }
}
