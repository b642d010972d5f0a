//! What is to be done, as far as rules can tell.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use acp::client::PermissionRequest;
use acp::thread::ThreadToolCallContent;
use acp_wire::v1::{CreateTerminalRequest, ToolKind};
use serde_json::Value;

use super::command::CommandLine;
use crate::roots::{PathError, Roots};
use crate::trusted_files::is_ordinary;

/// Variables that a command may be given without becoming another one: they say how it shows things.
const HARMLESS: [&str; 12] = [
    "CI",
    "CLAUDECODE",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "LINES",
    "NO_COLOR",
    "PYTHONUNBUFFERED",
    "TERM",
    "TZ",
];

/// What is to be done, for [`Permissions::decide`](super::Permissions::decide).
#[derive(Debug, Clone)]
pub struct Action {
    /// Of which kind it is, as the agent says, or as it is.
    pub(crate) kind: ToolKind,
    /// Which files it is about.
    pub(crate) paths: Vec<ActionPath>,
    /// What it runs.
    pub(crate) commands: Vec<CommandLine>,
    /// It has input that names a command in a way that cannot be understood.
    pub(crate) has_unreadable_command: bool,
    /// Commands run where the session's roots are, as far as is said.
    pub(crate) is_in_home: bool,
    /// The one directory in which all of its commands run, without symlinks. Absent if there are none, several, or
    /// one that is not there.
    pub(crate) directory: Option<PathBuf>,
    /// It changes files, whatever its kind: it has a diff.
    pub(crate) is_change: bool,
    /// It shows a terminal, and so runs something, whatever its kind.
    has_terminal: bool,
}

/// Where agents put the command in the input of a tool.
const COMMAND_KEYS: [&str; 6] = [
    "command",
    "cmd",
    "commandLine",
    "command_line",
    "script",
    "shell_command",
];

/// Where they put its arguments, if those stand apart, and the directory in which it runs.
const ARGUMENT_KEYS: [&str; 3] = ["args", "arguments", "argv"];
const DIRECTORY_KEYS: [&str; 4] = ["cwd", "workdir", "working_directory", "workingDirectory"];

/// Where they put the files that a tool works on.
const PATH_KEYS: [&str; 10] = [
    "path",
    "paths",
    "file",
    "files",
    "file_path",
    "filePath",
    "abs_path",
    "absolute_path",
    "notebook_path",
    "target_file",
];

/// A file that something is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActionPath {
    /// As it was named, absolute and without `.` and `..`.
    pub(crate) given_path: PathBuf,
    /// Where that leads; absent if that cannot be said.
    pub(crate) real_path: Option<PathBuf>,
    /// It is under the session's directories, and no other program obeys it. Looked at only for a file that an agent
    /// is about to change.
    pub(crate) is_ordinary: bool,
}

impl Action {
    /// What an agent asks permission for: the files of its tool call's locations, diffs and input, and the
    /// commands of its input.
    pub(crate) fn from_request(request: &PermissionRequest, roots: &Roots) -> Self {
        let call = &request.tool_call;
        let mut action = Self::of_kind(call.kind.clone());
        let mut paths: Vec<&str> = call.locations.iter().map(|l| l.path.as_str()).collect();
        for content in &call.content {
            match content {
                ThreadToolCallContent::Diff(diff) => {
                    action.is_change = true;
                    for change in &diff.changes {
                        paths.push(&change.path);
                        paths.extend(change.old_path.as_deref());
                    }
                }
                ThreadToolCallContent::Terminal(_) => action.has_terminal = true,
                _ => {}
            }
        }
        if let Some(subject) = &request.command {
            let mut command = CommandLine::from_line(&subject.command);
            command.cwd = Some(PathBuf::from(&subject.cwd));
            action.commands.push(command);
        }
        if let Some(input) = &call.raw_input {
            paths.extend(text_values(input, &PATH_KEYS));
            action.add_commands_of(input);
        }
        paths.retain(|path| !path.is_empty());
        paths.sort_unstable();
        paths.dedup();
        let targets = paths.into_iter().map(|path| action_path(path, roots));
        let mut targets: Vec<ActionPath> = targets.collect();
        // One file may be named in several ways, such as from the first root.
        targets.sort_unstable_by(|a, b| a.given_path.cmp(&b.given_path));
        targets.dedup();
        action.paths = targets;
        action.find_directory(roots);
        action
    }

    /// Adds the commands that the input of a tool names.
    fn add_commands_of(&mut self, input: &Value) {
        let first = |keys: &[&str]| {
            let found = keys.iter().find_map(|key| input.get(key));
            found.filter(|value| !value.is_null())
        };
        let cwd = first(&DIRECTORY_KEYS);
        let (env, known_env) = match first(&["env", "environment"]) {
            None => (Vec::new(), true),
            Some(value) => parse_variables(value).map_or((Vec::new(), false), |env| (env, true)),
        };
        for value in COMMAND_KEYS.iter().filter_map(|key| input.get(key)) {
            if value.is_null() || value.as_str().is_some_and(|line| line.trim().is_empty()) {
                continue;
            }
            let Some(mut command) = parse_command(value, first(&ARGUMENT_KEYS)) else {
                self.has_unreadable_command = true;
                continue;
            };
            match cwd.map(Value::as_str) {
                None => {}
                Some(Some(cwd)) => command.cwd = Some(PathBuf::from(cwd)),
                Some(None) => self.has_unreadable_command = true,
            }
            self.has_unreadable_command |= !known_env;
            command.add_variables(env.clone());
            self.commands.push(command);
        }
        self.commands.dedup();
    }

    /// A file that is read (kind `read`) or changed (kind `edit`). A relative path is meant from the first root.
    #[must_use]
    pub fn for_file(kind: ToolKind, path: &str, roots: &Roots) -> Self {
        let changes = kind == ToolKind::Edit;
        let mut target = action_path(path, roots);
        // As it was named: `link/..` need not lead back.
        target.is_ordinary = changes && is_ordinary(&absolute_path(path, roots), roots);
        Self {
            is_change: changes,
            paths: vec![target],
            ..Self::of_kind(kind)
        }
    }

    /// A line that a shell runs in the directory `cwd`.
    #[must_use]
    pub fn for_command(line: &str, cwd: &Path, roots: &Roots) -> Self {
        let mut command = CommandLine::from_line(line);
        command.cwd = Some(cwd.to_owned());
        let mut action = Self {
            commands: vec![command],
            ..Self::of_kind(ToolKind::Execute)
        };
        action.find_directory(roots);
        action
    }

    /// Something of which no more is known than its kind.
    #[must_use]
    pub fn of_kind(kind: ToolKind) -> Self {
        Self {
            kind,
            paths: Vec::new(),
            commands: Vec::new(),
            has_unreadable_command: false,
            is_in_home: true,
            directory: None,
            is_change: false,
            has_terminal: false,
        }
    }

    /// A command that an agent runs through the client.
    pub(crate) fn for_terminal(request: &CreateTerminalRequest, roots: &Roots) -> Self {
        let mut command = CommandLine::from_terminal_request(&request.command, &request.args);
        command.cwd = request.cwd.as_ref().map(PathBuf::from);
        let env = request.env.iter();
        command.add_variables(env.map(|v| (v.name.clone(), v.value.clone())).collect());
        let mut action = Self {
            commands: vec![command],
            ..Self::of_kind(ToolKind::Execute)
        };
        action.find_directory(roots);
        action
    }

    /// Whether it runs anything.
    pub(crate) fn executes(&self) -> bool {
        !self.commands.is_empty() || self.has_unreadable_command || self.has_terminal
    }

    /// The kinds it is of: as the agent says, and what can be seen.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &ToolKind> {
        let executes = self.executes().then_some(&ToolKind::Execute);
        let edits = self.is_change.then_some(&ToolKind::Edit);
        std::iter::once(&self.kind).chain(executes).chain(edits)
    }

    /// Finds out where the commands run. What says nothing of it runs in the first root, and a relative directory is
    /// meant from there.
    fn find_directory(&mut self, roots: &Roots) {
        let first = roots.paths().next().unwrap_or(Path::new(""));
        let mut at_home = true;
        let mut directory = None;
        for (index, command) in self.commands.iter_mut().enumerate() {
            let named = match &command.cwd {
                None => first.to_owned(),
                Some(cwd) => {
                    let named = first.join(cwd);
                    at_home &= roots.resolve(&named).is_ok();
                    named
                }
            };
            let real = std::fs::canonicalize(&named).ok();
            command.cwd = Some(real.clone().unwrap_or(named));
            match index {
                0 => directory = real,
                _ if directory != real => directory = None,
                _ => {}
            }
        }
        (self.is_in_home, self.directory) = (at_home, directory);
    }
}

impl CommandLine {
    /// The variables that the command is started with. Only those that could make it another command are kept.
    fn add_variables(&mut self, variables: Vec<(String, String)>) {
        self.env = variables;
        self.env.retain(|(name, value)| {
            let shows_all = ["PAGER", "GIT_PAGER"].contains(&name.as_str()) && value == "cat";
            !shows_all && !HARMLESS.contains(&name.as_str())
        });
        self.env.sort_unstable();
    }
}

/// The command that an agent gives as input of its tool, with arguments that stand apart. `None` if it is neither
/// a line nor a list of words.
fn parse_command(value: &Value, arguments: Option<&Value>) -> Option<CommandLine> {
    let words = |value: &Value| -> Option<Vec<String>> {
        let words = value.as_array()?.iter();
        words.map(|word| Some(word.as_str()?.to_owned())).collect()
    };
    let arguments = match arguments {
        None => Vec::new(),
        Some(arguments) => words(arguments)?,
    };
    match value {
        Value::String(line) if arguments.is_empty() => Some(CommandLine::from_line(line)),
        Value::String(program) => {
            let all = std::iter::once(program.clone()).chain(arguments);
            Some(CommandLine::from_words(&all.collect::<Vec<_>>()))
        }
        value => {
            let mut all = words(value)?;
            all.extend(arguments);
            (!all.is_empty()).then(|| CommandLine::from_words(&all))
        }
    }
}

/// The texts under these keys, be they texts or lists of texts.
fn text_values<'a>(input: &'a Value, keys: &[&str]) -> Vec<&'a str> {
    let mut texts = Vec::new();
    for value in keys.iter().filter_map(|key| input.get(key)) {
        match value {
            Value::String(text) => texts.push(text.as_str()),
            Value::Array(values) => texts.extend(values.iter().filter_map(Value::as_str)),
            _ => {}
        }
    }
    texts
}

/// Environment variables, as an object or as the protocol's list. `None` if they are written in no way that is known.
fn parse_variables(value: &Value) -> Option<Vec<(String, String)>> {
    match value {
        Value::Object(variables) => variables
            .iter()
            .map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect(),
        Value::Array(variables) => variables
            .iter()
            .map(|variable| {
                let text = |key| variable.get(key)?.as_str().map(str::to_owned);
                Some((text("name")?, text("value")?))
            })
            .collect(),
        _ => None,
    }
}

/// The path, which is meant from the first root if it is relative.
fn absolute_path(path: &str, roots: &Roots) -> PathBuf {
    let first = roots.paths().next().unwrap_or(Path::new(""));
    first.join(path)
}

/// The file of this name, and where it leads. A relative name is meant from the first root.
fn action_path(path: &str, roots: &Roots) -> ActionPath {
    let path = absolute_path(path, roots);
    ActionPath {
        given_path: normalize_path(&path),
        real_path: resolve_path(&path, roots),
        is_ordinary: false,
    }
}

/// Where the path leads, also outside of the roots and where nothing is yet.
fn resolve_path(path: &Path, roots: &Roots) -> Option<PathBuf> {
    match roots.resolve(path) {
        Ok(place) => return Some(place.name()),
        Err(PathError::Outside) => {}
        Err(_) => return None,
    }
    let mut behind: Vec<OsString> = Vec::new();
    let mut above = path.to_owned();
    loop {
        match std::fs::canonicalize(&above) {
            Ok(mut real) => {
                real.extend(behind.iter().rev());
                return Some(real);
            }
            // `..` behind what is not there leads nowhere.
            Err(_) => behind.push(above.file_name()?.to_owned()),
        }
        if !above.pop() {
            return None;
        }
    }
}

/// The path without `.`, and with `..` taken for one step up.
fn normalize_path(path: &Path) -> PathBuf {
    let mut tidied = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                tidied.pop();
            }
            other => tidied.push(other),
        }
    }
    tidied
}
