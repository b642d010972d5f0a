//! Redacts secrets in command lines, such as `curl -u user:password`, `mysql -ppassword` and `token=x make`.
//!
//! Which arguments are secret depends on the program, so a line is split into words and looked up in a table of
//! programs. The words may be part of a text (a title, a terminal's output, a model's response) or a list by
//! themselves. What the shell inserts later (`$TOKEN`) is not a secret and stays.

use std::ops::Range;

use acp_rules::REDACTED;

use super::names;
use super::programs::{
    CURL_SWITCHES, FlagForm, SecretPart, SecretProgram, find_program, name_pattern,
};
use super::words::{ShellToken, ShellWords};
use FlagForm::{Attached, Next};
use SecretPart::{After, All, Cookie, Form, Header};

/// The maximum depth of nested command lines to search: `ssh host "bash -c 'curl …'"`.
const MAX_NESTING_DEPTH: usize = 4;

/// A finder for secrets in the arguments of one command. Arguments must be passed in order.
#[derive(Debug, Default)]
struct SecretArguments {
    program: Option<&'static SecretProgram>,
    has_subcommand: bool,
    /// The secret part of the next argument, if the previous argument was a flag that takes a secret.
    next_part: Option<SecretPart>,
    /// Whether the arguments are known to form a command. If so, variable assignments count regardless of the case of
    /// their names.
    is_command: bool,
}

impl SecretArguments {
    fn new(is_command: bool) -> Self {
        Self {
            is_command,
            ..Self::default()
        }
    }

    /// Returns the ranges of secrets in the next argument.
    fn find_secrets_in_argument(&mut self, word: &str) -> Vec<Range<usize>> {
        if let Some(part) = self.next_part.take() {
            return find_secrets(part, word, 0);
        }
        if let Some(program) = find_program(word) {
            self.program = Some(program);
            self.has_subcommand = program.subcommand.is_none();
            return Vec::new();
        }
        if let Some(program) = self.program {
            if Some(word) == program.subcommand {
                self.has_subcommand = true;
            } else if word.starts_with('-') && self.has_subcommand {
                for &(flag, part, with) in program.flags {
                    if let Some(found) = self.match_flag(word, flag, part, with) {
                        return found;
                    }
                }
            }
        }
        if self.is_command {
            return find_secrets(Form, word, 0);
        }
        Vec::new()
    }

    /// Returns the ranges of secrets in an argument, or `None` if the argument is not this flag.
    fn match_flag(
        &mut self,
        word: &str,
        flag: &str,
        part: SecretPart,
        with: FlagForm,
    ) -> Option<Vec<Range<usize>>> {
        let mut rest = word.strip_prefix(flag);
        if rest.is_none()
            && let Some(letter) = flag.strip_prefix('-').filter(|letter| letter.len() == 1)
            && self
                .program
                .is_some_and(|program| program.names.contains(&"curl"))
            && let Some((switches, behind)) = word.get(1..)?.split_once(letter)
            && switches.chars().all(|c| CURL_SWITCHES.contains(c))
        {
            rest = Some(behind);
        }
        let rest = rest?;
        if rest.is_empty() {
            if with != Attached {
                self.next_part = Some(part);
            }
            return (with != Attached).then(Vec::new);
        }
        let at = word.len() - rest.len();
        if flag.starts_with("--") || with == Next {
            let value = rest.strip_prefix('=')?;
            return Some(find_secrets(part, value, at + 1));
        }
        Some(find_secrets(part, rest, at))
    }
}

/// Returns the ranges of secrets in a value that starts at `at`.
fn find_secrets(part: SecretPart, value: &str, at: usize) -> Vec<Range<usize>> {
    let behind = |start: usize| {
        let rest = value.get(start..).unwrap_or_default();
        let blanks = rest.len() - rest.trim_start().len();
        let kept = rest.trim().is_empty() || is_placeholder(rest.trim());
        (!kept).then(|| at + start + blanks..at + value.trim_end().len())
    };
    let behind_first = |c: char| value.find(c).and_then(|found| behind(found + c.len_utf8()));
    match part {
        All => Vec::from_iter(behind(0)),
        After(c) => Vec::from_iter(behind_first(c)),
        Cookie => Vec::from_iter(value.contains('=').then(|| behind(0)).flatten()),
        Header => {
            let name = value.split(':').next().unwrap_or_default();
            let tells =
                names::is_secret_name(name.trim()) || name.to_ascii_lowercase().contains("auth");
            Vec::from_iter(tells.then(|| behind_first(':')).flatten())
        }
        Form => {
            let mut found = Vec::new();
            let mut start = 0;
            for field in value.split('&') {
                if let Some((name, value)) = field.split_once('=')
                    && is_name(name)
                    && names::is_secret_name(name)
                    && !value.is_empty()
                    && !is_placeholder(value)
                {
                    let from = start + name.len() + 1;
                    found.push(at + from..at + start + field.len());
                }
                start += field.len() + 1;
            }
            found
        }
    }
}

/// Returns `true` if a value will be inserted by the shell, or is already redacted.
fn is_placeholder(value: &str) -> bool {
    value.starts_with(['$', '<', '%', '@']) || value.contains(REDACTED)
}

fn is_name(name: &str) -> bool {
    let name = name.trim_start_matches('-');
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
}

/// Redacts a list of arguments. If `program` is `None`, the first one may be the program. Returns the index and the new
/// text of each changed argument.
pub(super) fn redact_arguments(program: Option<&str>, args: &[&str]) -> Vec<(usize, String)> {
    let mut reading = SecretArguments::new(true);
    if let Some(program) = program {
        // The program may be a whole shell line.
        for word in program.split_whitespace() {
            reading.find_secrets_in_argument(word);
        }
    }
    let secrets = args.iter().enumerate().map(|(at, arg)| {
        (
            at,
            replace_ranges(arg, &reading.find_secrets_in_argument(arg)),
        )
    });
    secrets.filter_map(|(at, arg)| Some((at, arg?))).collect()
}

/// Redacts text that may contain command lines. `is_command` means that the whole text is a command line. Returns
/// `None` if there are no secrets.
pub(super) fn redact_text(text: &str, is_command: bool) -> Option<String> {
    let mut found = Vec::new();
    collect_secrets(text, 0, is_command, 0, &mut found);
    // An unrelated quote before a command can hide a part of it. So each command is searched once more, from the name
    // of its program to the next one.
    let mut names = name_pattern().find_iter(text).map(|name| name.start());
    let mut next = names.next();
    while let Some(start) = next {
        next = names.next();
        let line = text.get(start..next.unwrap_or(text.len()));
        collect_secrets(
            line.unwrap_or_default(),
            start,
            false,
            MAX_NESTING_DEPTH,
            &mut found,
        );
    }
    found.sort_by_key(|secret| (secret.start, secret.end));
    replace_ranges(text, &found)
}

fn replace_ranges(text: &str, secrets: &[Range<usize>]) -> Option<String> {
    if secrets.is_empty() {
        return None;
    }
    let (mut without, mut end) = (String::with_capacity(text.len()), 0);
    for secret in secrets {
        if secret.start < end {
            continue;
        }
        without.push_str(text.get(end..secret.start)?);
        without.push_str(REDACTED);
        end = secret.end;
    }
    without.push_str(text.get(end..)?);
    Some(without)
}

/// Finds secrets in text that starts at `offset`, and in quoted text inside it. At the maximum depth, an unmatched
/// quote ends the text, because it closes the surrounding quote.
fn collect_secrets(
    text: &str,
    offset: usize,
    is_command: bool,
    depth: usize,
    found: &mut Vec<Range<usize>>,
) {
    let mut arguments = SecretArguments::new(is_command);
    let mut words = ShellWords {
        text,
        offset: 0,
        within_quotes: depth == MAX_NESTING_DEPTH,
    };
    while let Some(token) = words.next() {
        let ShellToken::Word { place, quoted } = token else {
            arguments = SecretArguments::new(is_command);
            continue;
        };
        let word = text.get(place.clone()).unwrap_or_default();
        let secrets = arguments.find_secrets_in_argument(word);
        if secrets.is_empty() && depth < MAX_NESTING_DEPTH {
            for inner in quoted {
                let line = text.get(inner.clone()).unwrap_or_default();
                if line.contains(' ') {
                    collect_secrets(line, offset + inner.start, is_command, depth + 1, found);
                }
            }
        }
        let start = offset + place.start;
        let secrets = secrets.into_iter();
        found.extend(secrets.map(|secret| start + secret.start..start + secret.end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_program_arguments_are_replaced() {
        for (line, expected) in [
            ("curl -u me:pw x", "curl -u me:[redacted] x"),
            ("curl -sSu 'me:p w' x", "curl -sSu 'me:[redacted]' x"),
            ("curl -ume:pw x", "curl -ume:[redacted] x"),
            (
                "/usr/bin/curl --user=me:pw",
                "/usr/bin/curl --user=me:[redacted]",
            ),
            (
                "curl -H 'X-Api-Key: k' -H 'Accept: a'",
                "curl -H 'X-Api-Key: [redacted]' -H 'Accept: a'",
            ),
            (
                "curl -d 'user=me&password=pw&x=1' u",
                "curl -d 'user=me&password=[redacted]&x=1' u",
            ),
            (
                "curl -b sid=1 -o cookie u",
                "curl -b [redacted] -o cookie u",
            ),
            ("mysql -u root -ppw db", "mysql -u root -p[redacted] db"),
            ("sshpass -p pw ssh h", "sshpass -p [redacted] ssh h"),
            ("redis-cli -a pw ping", "redis-cli -a [redacted] ping"),
            (
                "docker login -u me -p pw host",
                "docker login -u me -p [redacted] host",
            ),
            (
                "openssl rsa -passin pass:pw",
                "openssl rsa -passin pass:[redacted]",
            ),
            (
                "smbclient -U me%pw //h/s",
                "smbclient -U me%[redacted] //h/s",
            ),
            ("a; curl -u me:pw x && b", "a; curl -u me:[redacted] x && b"),
            ("Run `curl -u me:pw x`", "Run `curl -u me:[redacted] x`"),
            (
                "bash -lc \"curl -u me:pw x\"",
                "bash -lc \"curl -u me:[redacted] x\"",
            ),
            (
                "curl \\\n  -u me:pw \\\n  x",
                "curl \\\n  -u me:[redacted] \\\n  x",
            ),
            (
                "{\"command\":\"curl -u me:pw x\"}",
                "{\"command\":\"curl -u me:[redacted] x\"}",
            ),
        ] {
            assert_eq!(
                redact_text(line, false).as_deref(),
                Some(expected),
                "{line}"
            );
        }
        let line = "don't \"say sh -c 'curl --user \"me:pw\" host' more";
        assert!(!redact_text(line, false).unwrap().contains("pw"));
        let line = r#"don't "say sh -c 'curl --user "me:pw" host' more"#;
        let expected = r#"don't "say sh -c 'curl --user "me:[redacted]" host' more"#;
        assert_eq!(redact_text(line, false).as_deref(), Some(expected));
        let line = "token=x make PASSWORD=y A=b";
        let expected = "token=[redacted] make PASSWORD=[redacted] A=b";
        assert_eq!(redact_text(line, true).as_deref(), Some(expected));
    }

    #[test]
    fn ordinary_arguments_are_unchanged() {
        for line in [
            "curl -u me https://host:80/ -o out:put",
            "curl -u $USER:$PASSWORD x",
            "curl -X POST -d 'user=me&page=2' -H 'Accept: text/plain' u",
            "docker run -p 80:80 image",
            "mysql -p db -P 3306",
            "python -u main.py a:b",
            "sort -u a:b | tar -p x",
            "don't curl it: -u is for users",
            "it's zip -r a.zip b, isn't it",
            "let token=next(); // zip",
            "\\",
            "\"",
            "'\\",
            "curl -",
            "curl -u",
            "",
        ] {
            assert_eq!(redact_text(line, false), None, "{line}");
        }
    }

    #[test]
    fn argument_lists_are_redacted_like_command_lines() {
        let becomes = |program, args: &[&str]| redact_arguments(program, args);
        let user = [(1, "me:[redacted]".to_owned())];
        assert_eq!(becomes(Some("curl"), &["-u", "me:pw", "x"]), user);
        assert_eq!(
            becomes(None, &["curl", "-ume:pw"]),
            [(1, "-ume:[redacted]".to_owned())]
        );
        assert_eq!(becomes(Some("sort"), &["-u", "me:pw"]), []);
        let made = [(0, "TOKEN=[redacted]".to_owned())];
        assert_eq!(becomes(Some("make"), &["TOKEN=x", "A=b"]), made);
    }
}
