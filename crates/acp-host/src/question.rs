//! Splits a permission request into the parts that all front ends show, in order.
//!
//! Front ends must show all parts. Nothing is truncated here, and no front end may truncate anything. For special
//! characters, see [`literal`](mod@crate::literal).

mod text;

use std::ops::Range;
use std::path::{Component, Path};

use acp::client::PermissionRequest;
use acp::thread::{FileTexts, ThreadDiff, ThreadToolCall, ThreadToolCallContent};
use acp_wire::v1::{
    ContentBlock, EmbeddedResourceResource, PermissionOption, PermissionOptionKind, TerminalId,
    ToolCallLocation,
};
use serde_json::{Map, Value};
use similar::TextDiff;

use crate::permissions::{AlwaysEffect, RememberedSubject};

pub use text::{QUESTION_BAR, question_text};

/// The number of unchanged lines to show around each change in a diff. A front end must not show fewer, because the
/// user is assumed to have seen the text in these lines.
pub const CONTEXT_LINES: usize = 3;

/// The maximum total size of the texts in a diff, in bytes. A larger diff is assumed not to show all of a text.
const MAX_DIFF_BYTES: usize = 64 * 1024;

/// Keys that agents use in a tool's input for a command line or its words.
const COMMAND_KEYS: [&str; 2] = ["command", "cmd"];

/// Keys that agents use in a tool's input for the command's working directory.
const DIRECTORY_KEYS: [&str; 2] = ["cwd", "workdir"];

/// Keys that agents use in a tool's input for the command's environment variables.
const VARIABLE_KEYS: [&str; 2] = ["env", "environment"];

/// Keys that agents use in a tool's input for the old or new text of an edit. A diff may already show this text.
const EDIT_KEYS: [&str; 9] = [
    "search",
    "replace",
    "replacement",
    "old",
    "new",
    "old_string",
    "new_string",
    "old_str",
    "new_str",
];

/// A part of a permission request to show to the user.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum QuestionPart<'r> {
    /// A command, shown as `$ …`.
    Command(String),
    /// The command's working directory, shown as `in …`.
    Directory(&'r str),
    /// An environment variable of the command, shown as `with NAME=VALUE`.
    Variable(&'r str, &'r str),
    /// Content that the tool call has produced or will produce.
    Content(&'r ThreadToolCallContent),
    /// A file that the tool call accesses.
    File(&'r ToolCallLocation),
    /// Any other field of the tool's input, shown as `key: value`. Values that are not strings are shown as JSON.
    Field(&'r str, String),
}

/// Returns the title of the request and, if it differs, the title of the tool call. Returns at least one title.
#[must_use]
pub fn titles(request: &PermissionRequest) -> Vec<&str> {
    let call = &request.tool_call;
    let mut titles: Vec<&str> = Vec::new();
    for title in [&*request.title, &*call.title] {
        if !title.trim().is_empty() && !titles.contains(&title) {
            titles.push(title);
        }
    }
    if titles.is_empty() {
        titles.push(call.id.as_str());
    }
    titles
}

/// Returns the parts of the request, commands first. If the request comes from a subagent, its name precedes everything
/// else. Omits text that another part already shows in full. Paths are relative to `cwd`, the session's directory.
#[must_use]
pub fn parts<'r>(request: &'r PermissionRequest, cwd: &Path) -> Vec<QuestionPart<'r>> {
    let call = &request.tool_call;
    let mut parts = Vec::new();
    if let Some(name) = &request.subagent {
        parts.push(QuestionPart::Field("subagent", name.clone()));
    }
    if let Some(command) = &request.command {
        parts.push(QuestionPart::Command(command.command.clone()));
        parts.push(QuestionPart::Directory(&command.cwd));
    }
    let mut fields = Vec::new();
    match &call.raw_input {
        None | Some(Value::Null) => {}
        Some(Value::Object(input)) => fields = take_command(input, &mut parts),
        Some(other) => fields.push(("input", other)),
    }
    let commands: Vec<String> = commands(&parts).map(str::to_owned).collect();
    for content in &call.content {
        let text = match content {
            ThreadToolCallContent::Content(block) => block.as_text(),
            // Some agents announce the display terminal of a command before they ask whether they may run it.
            ThreadToolCallContent::Terminal(id)
                if !commands.is_empty() && is_blank_terminal(request, id) =>
            {
                continue;
            }
            _ => None,
        };
        if text.is_none_or(|text| !commands.iter().any(|command| command == text)) {
            parts.push(QuestionPart::Content(content));
        }
    }
    let changed = |path: &String| {
        let changes = diffs(call).flat_map(|diff| &diff.changes);
        changes.into_iter().any(|change| change.path == *path)
    };
    let files = call.locations.iter().filter(|file| !changed(&file.path));
    parts.extend(files.map(QuestionPart::File));
    for (key, value) in fields {
        match value {
            Value::String(text) if is_shown(key, text, request, cwd) => {}
            Value::String(text) => parts.push(QuestionPart::Field(key, text.clone())),
            value => parts.push(QuestionPart::Field(key, value.to_string())),
        }
    }
    parts
}

/// Returns `true` if nothing is known about a terminal yet, neither a command nor output.
fn is_blank_terminal(request: &PermissionRequest, id: &TerminalId) -> bool {
    request.thread.read(|thread| {
        thread
            .terminal(id)
            .is_some_and(|terminal| terminal.command.is_none() && terminal.total_bytes() == 0)
    })
}

/// Returns the command lines among the parts.
pub fn commands<'a>(parts: &'a [QuestionPart<'_>]) -> impl Iterator<Item = &'a str> {
    parts.iter().filter_map(|part| match part {
        QuestionPart::Command(line) => Some(&**line),
        _ => None,
    })
}

/// Returns a content block's label, if the block is not text or has a name, and its text, if it has any.
#[must_use]
pub fn describe_block(block: &ContentBlock) -> (Option<String>, Option<&str>) {
    let named = |name: String| (Some(format!("[{name}]")), None);
    match block {
        ContentBlock::Text(text) => (None, Some(&text.text)),
        ContentBlock::Image(image) => named(format!("image: {}", image.mime_type)),
        ContentBlock::Audio(audio) => named(format!("sound: {}", audio.mime_type)),
        ContentBlock::ResourceLink(link) => {
            let title = link.title.as_deref().map(|title| format!("{title}, "));
            let name = format!("{}{}: {}", title.unwrap_or_default(), link.name, link.uri);
            (Some(format!("[{name}]")), link.description.as_deref())
        }
        ContentBlock::Resource(embedded) => match &embedded.resource {
            EmbeddedResourceResource::Text(text) => {
                (Some(format!("[{}]", text.uri)), Some(&text.text))
            }
            EmbeddedResourceResource::Blob(blob) => {
                named(format!("{}, {} bytes of base64", blob.uri, blob.blob.len()))
            }
            _ => named("resource".to_owned()),
        },
        _ => named("unknown content type".to_owned()),
    }
}

/// Returns `true` if the request is complete. If parts were dropped because it was too large, the user cannot see them
/// and therefore cannot allow it.
#[must_use]
pub fn is_complete(request: &PermissionRequest) -> bool {
    !request.tool_call.is_truncated
}

/// Describes the effect of choosing an option, whatever the option is called. `cwd` is the session's
/// directory. The description is empty for the client's own options. Returns `None` if the kind is unknown.
#[must_use]
pub fn describe_answer(
    option: &PermissionOption,
    always: &AlwaysEffect,
    request: &PermissionRequest,
    cwd: &Path,
) -> Option<String> {
    if let Some(pattern) = always.option_prefix(option) {
        return Some(format!(
            "allow in this project, until you revoke it: {}",
            describe_pattern(pattern)
        ));
    }
    let yes = match option.kind {
        PermissionOptionKind::AllowOnce => return Some("allow once".to_owned()),
        PermissionOptionKind::RejectOnce => return Some("reject once".to_owned()),
        PermissionOptionKind::AllowAlways => true,
        PermissionOptionKind::RejectAlways => false,
        _ => return None,
    };
    let word = if yes { "allow" } else { "reject" };
    Some(match always {
        AlwaysEffect::Remembered { kind, subjects, .. } => {
            let parts = parts(request, cwd);
            let shown: Vec<&str> = commands(&parts).collect();
            // Agents that ask about a file often stop asking about others as well, which nobody but they can know.
            let is_file =
                |subject: &RememberedSubject| matches!(subject, RememberedSubject::Path(_));
            let more = match subjects.iter().any(is_file) {
                true => "; the agent may apply it to more files",
                false => "",
            };
            let subjects = subjects.iter().map(|subject| match subject {
                RememberedSubject::Command(line) if shown == [line] => {
                    "exactly this command".to_owned()
                }
                RememberedSubject::Command(line) => format!("exactly the command {line}"),
                RememberedSubject::Commands(pattern) => describe_pattern(pattern),
                RememberedSubject::Path(path) => {
                    let path = path.strip_prefix(cwd).unwrap_or(path);
                    format!("any {} of {}", kind.as_str(), path.display())
                }
            });
            let subjects: Vec<String> = subjects.collect();
            format!(
                "{word} in this project, until you revoke it: {}{more}",
                subjects.join("; ")
            )
        }
        AlwaysEffect::LeftToAgent => {
            format!("{word} for as long as the agent remembers it; not remembered by acp")
        }
        AlwaysEffect::AskEachTime(by) => {
            format!("{word} this time only: {by} requires asking each time")
        }
        AlwaysEffect::OwnOptions => String::new(),
    })
}

/// Says which commands a pattern such as `cargo test *` covers.
fn describe_pattern(pattern: &str) -> String {
    let prefix = pattern.strip_suffix(" *").unwrap_or(pattern);
    format!("every command that begins with {prefix}, with any arguments")
}

/// Returns the letter that chooses each option, or `None` if several options have the same effect.
#[must_use]
pub fn answer_letters(options: &[PermissionOption], always: &AlwaysEffect) -> Vec<Option<char>> {
    let kinds: Vec<(&PermissionOptionKind, bool)> = options
        .iter()
        .map(|option| (&option.kind, always.option_prefix(option).is_some()))
        .collect();
    let letter = |this: &(&PermissionOptionKind, bool)| {
        if kinds.iter().filter(|other| *other == this).count() > 1 {
            return None;
        }
        match this {
            (_, true) => Some('p'),
            (PermissionOptionKind::AllowOnce, _) => Some('y'),
            (PermissionOptionKind::AllowAlways, _) => Some('a'),
            (PermissionOptionKind::RejectOnce, _) => Some('n'),
            (PermissionOptionKind::RejectAlways, _) => Some('x'),
            _ => None,
        }
    };
    kinds.iter().map(letter).collect()
}

/// Moves the command, its directory and its variables from a tool's input to `parts`. Returns the remaining fields.
fn take_command<'r>(
    input: &'r Map<String, Value>,
    parts: &mut Vec<QuestionPart<'r>>,
) -> Vec<(&'r str, &'r Value)> {
    let mut rest = Vec::new();
    let (mut directories, mut variables) = (Vec::new(), Vec::new());
    let mut with_arguments = false;
    for (key, value) in input {
        let line = match COMMAND_KEYS.contains(&&**key) {
            true => command_line(value),
            false => None,
        };
        if let Some(mut line) = line {
            let arguments = input.get("args").and_then(parse_words);
            if let (true, Some(program), Some(arguments)) =
                (key == "command", value.as_str(), arguments)
                && !arguments.is_empty()
            {
                with_arguments = true;
                line = shell_words::join([program].into_iter().chain(arguments));
            }
            if !commands(parts).any(|known| known == line) {
                parts.push(QuestionPart::Command(line));
            }
        } else if let (true, Some(cwd)) = (DIRECTORY_KEYS.contains(&&**key), value.as_str()) {
            let cwd = QuestionPart::Directory(cwd);
            if !parts.contains(&cwd) && !directories.contains(&cwd) {
                directories.push(cwd);
            }
        } else if let (true, Some(pairs)) = (VARIABLE_KEYS.contains(&&**key), variable_pairs(value))
        {
            variables.extend(
                pairs
                    .into_iter()
                    .map(|(name, value)| QuestionPart::Variable(name, value)),
            );
        } else {
            rest.push((&**key, value));
        }
    }
    if with_arguments {
        rest.retain(|(key, _)| *key != "args");
    }
    parts.append(&mut directories);
    parts.append(&mut variables);
    rest
}

/// Returns the command line in a JSON value, which is a string or a list of words.
fn command_line(value: &Value) -> Option<String> {
    if let Some(line) = value.as_str() {
        return Some(line.to_owned());
    }
    parse_words(value)
        .filter(|words| !words.is_empty())
        .map(shell_words::join)
}

fn parse_words(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

/// Returns the variables in an object, or in a list of names and values. Returns `None` for anything else.
fn variable_pairs(value: &Value) -> Option<Vec<(&str, &str)>> {
    fn parse_pair(pair: &Value) -> Option<(&str, &str)> {
        let pair = pair.as_object().filter(|pair| pair.len() == 2)?;
        Some((pair.get("name")?.as_str()?, pair.get("value")?.as_str()?))
    }
    match value {
        Value::Object(pairs) => {
            let pairs = pairs
                .iter()
                .map(|(name, value)| Some((&**name, value.as_str()?)));
            pairs.collect()
        }
        Value::Array(pairs) => pairs.iter().map(parse_pair).collect(),
        _ => None,
    }
}

fn diffs(call: &ThreadToolCall) -> impl Iterator<Item = &ThreadDiff> {
    call.content.iter().filter_map(|content| match content {
        ThreadToolCallContent::Diff(diff) => Some(diff),
        _ => None,
    })
}

/// Returns `true` if another part of the request shows exactly this text.
fn is_shown(key: &str, text: &str, request: &PermissionRequest, cwd: &Path) -> bool {
    let call = &request.tool_call;
    let plain = |c: Component<'_>| matches!(c, Component::Normal(_));
    let inside = Path::new(text).components().all(plain) && !text.is_empty();
    let is_path = |path: &str| path == text || inside && cwd.join(text) == Path::new(path);
    let in_content = call.content.iter().any(|content| match content {
        ThreadToolCallContent::Content(block) => block.as_text() == Some(text),
        ThreadToolCallContent::Diff(diff) => diff.changes.iter().any(|change| {
            let texts = change.texts.as_ref();
            is_path(&change.path) || texts.is_some_and(|texts| diff_shows_all(texts, key, text))
        }),
        _ => false,
    });
    in_content
        || request.description.as_deref() == Some(text)
        || call.locations.iter().any(|file| is_path(&file.path))
        || titles(request).contains(&text)
}

/// Returns `true` if a diff of these texts shows all of `text`. A diff omits most unchanged lines, showing only a few
/// around each change.
fn diff_shows_all(texts: &FileTexts, key: &str, text: &str) -> bool {
    let old = texts.old.as_deref().unwrap_or_default();
    let new = &*texts.new;
    let part = EDIT_KEYS.contains(&key);
    if text.is_empty() {
        return part;
    }
    let found = |whole: &str| text == whole || part && whole.contains(text);
    if !found(old) && !found(new) {
        return false;
    }
    if old.is_empty() || new.is_empty() {
        return true;
    }
    if old.len() + new.len() > MAX_DIFF_BYTES {
        return false;
    }
    let compared = TextDiff::from_lines(old, new);
    let lines = |text: &str, range: Range<usize>| -> String {
        let lines = text.split_inclusive('\n').skip(range.start);
        lines.take(range.len()).collect()
    };
    compared
        .grouped_ops(CONTEXT_LINES)
        .into_iter()
        .any(|group| {
            let (Some(first), Some(last)) = (group.first(), group.last()) else {
                return false;
            };
            let was = lines(old, first.old_range().start..last.old_range().end);
            let is = lines(new, first.new_range().start..last.new_range().end);
            found(&was) || found(&is)
        })
}
