//! An agent's actions, to which permission rules are applied.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use acp::client::PermissionRequest;
use acp::thread::ThreadToolCallContent;
use acp_wire::v1::{CreateTerminalRequest, ToolKind};
use serde_json::Value;

use super::command::CommandLine;
use crate::roots::{PathError, Roots};
use crate::trusted_files::is_ordinary;

/// Environment variables that affect only a command's output, not which command is run.
const HARMLESS_VARIABLES: [&str; 12] = [
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

/// Something that an agent wants to do, such as run a command or change a file.
/// [`Permissions::decide`](super::Permissions::decide) decides whether it is allowed.
#[derive(Debug, Clone)]
pub struct Action {
    /// The kind of tool call, as reported by the agent or as implied by the method.
    pub(crate) kind: ToolKind,
    /// The files that the action accesses.
    pub(crate) paths: Vec<ActionPath>,
    /// The command lines that the action runs.
    pub(crate) commands: Vec<CommandLine>,
    /// Whether the tool's input contains a command that could not be parsed.
    pub(crate) has_unreadable_command: bool,
    /// Whether all commands are known to run under the session's roots.
    pub(crate) is_in_roots: bool,
    /// The directory that all commands run in, without symlinks. `None` if there are no commands, if they run in
    /// different directories, or if the directory does not exist.
    pub(crate) directory: Option<PathBuf>,
    /// Whether the action changes files. An action with a diff does, regardless of its kind.
    pub(crate) is_change: bool,
    /// Whether the tool call has a terminal, and therefore runs a command regardless of its kind.
    has_terminal: bool,
}

/// Keys that agents use in a tool's input for the command.
const COMMAND_KEYS: [&str; 6] = [
    "command",
    "cmd",
    "commandLine",
    "command_line",
    "script",
    "shell_command",
];

/// Keys that agents use in a tool's input for separate command arguments.
const ARGUMENT_KEYS: [&str; 3] = ["args", "arguments", "argv"];

/// Keys that agents use in a tool's input for the command's working directory.
const DIRECTORY_KEYS: [&str; 4] = ["cwd", "workdir", "working_directory", "workingDirectory"];

/// Keys that agents use in a tool's input for the files that the tool accesses.
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

/// A file that an action accesses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActionPath {
    /// The path as given, but absolute and without `.` and `..`.
    pub(crate) given_path: PathBuf,
    /// The path without symlinks. `None` if unknown.
    pub(crate) real_path: Option<PathBuf>,
    /// Whether the file is under the session's roots and other programs neither run nor trust it. Checked only for
    /// files that the agent is about to change.
    pub(crate) is_ordinary: bool,
}

impl Action {
    /// Returns the action that a permission request is about. It covers the files in the tool call's locations, diffs
    /// and input, and the commands in its input.
    pub(crate) fn from_request(request: &PermissionRequest, roots: &Roots) -> Self {
        let call = &request.tool_call;
        let mut action = Self::with_kind(call.kind.clone());
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
            action.add_commands_from(input);
        }
        paths.retain(|path| !path.is_empty());
        paths.sort_unstable();
        paths.dedup();
        let targets = paths
            .into_iter()
            .map(|path| resolve_action_path(path, roots));
        let mut targets: Vec<ActionPath> = targets.collect();
        // The same file may be given in several ways, for example with an absolute path and with one relative to the
        // first root.
        targets.sort_unstable_by(|a, b| a.given_path.cmp(&b.given_path));
        targets.dedup();
        action.paths = targets;
        action.find_directory(roots);
        action
    }

    /// Adds the commands in a tool's input.
    fn add_commands_from(&mut self, input: &Value) {
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

    /// Returns the action that reads (kind `read`) or changes (kind `edit`) a file. A relative path is resolved against
    /// the first root.
    #[must_use]
    pub fn for_file(kind: ToolKind, path: &str, roots: &Roots) -> Self {
        let changes = kind == ToolKind::Edit;
        let mut target = resolve_action_path(path, roots);
        // Check the path as given: `link/..` may lead elsewhere.
        target.is_ordinary = changes && is_ordinary(&make_absolute(path, roots), roots);
        Self {
            is_change: changes,
            paths: vec![target],
            ..Self::with_kind(kind)
        }
    }

    /// Returns the action that runs a shell command line in the directory `cwd`.
    #[must_use]
    pub fn for_command(line: &str, cwd: &Path, roots: &Roots) -> Self {
        let mut command = CommandLine::from_line(line);
        command.cwd = Some(cwd.to_owned());
        let mut action = Self {
            commands: vec![command],
            ..Self::with_kind(ToolKind::Execute)
        };
        action.find_directory(roots);
        action
    }

    /// Returns an action of this kind without any files or commands.
    #[must_use]
    pub fn with_kind(kind: ToolKind) -> Self {
        Self {
            kind,
            paths: Vec::new(),
            commands: Vec::new(),
            has_unreadable_command: false,
            is_in_roots: true,
            directory: None,
            is_change: false,
            has_terminal: false,
        }
    }

    /// Returns the action that a `terminal/create` request is about.
    pub(crate) fn for_terminal(request: &CreateTerminalRequest, roots: &Roots) -> Self {
        let mut command = CommandLine::from_terminal_request(&request.command, &request.args);
        command.cwd = request.cwd.as_ref().map(PathBuf::from);
        let env = request.env.iter();
        command.add_variables(env.map(|v| (v.name.clone(), v.value.clone())).collect());
        let mut action = Self {
            commands: vec![command],
            ..Self::with_kind(ToolKind::Execute)
        };
        action.find_directory(roots);
        action
    }

    /// Returns `true` if the action runs anything.
    pub(crate) fn runs_commands(&self) -> bool {
        !self.commands.is_empty() || self.has_unreadable_command || self.has_terminal
    }

    /// Returns the kinds of the action: the reported kind, and the kinds implied by its content.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &ToolKind> {
        let executes = self.runs_commands().then_some(&ToolKind::Execute);
        let edits = self.is_change.then_some(&ToolKind::Edit);
        std::iter::once(&self.kind).chain(executes).chain(edits)
    }

    /// Determines the directory in which the commands run. The default is the first root, against which relative
    /// directories are resolved.
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
        (self.is_in_roots, self.directory) = (at_home, directory);
    }
}

impl CommandLine {
    /// Sets those of the command's environment variables that could change which command runs.
    fn add_variables(&mut self, variables: Vec<(String, String)>) {
        self.env = variables;
        self.env.retain(|(name, value)| {
            let shows_all = ["PAGER", "GIT_PAGER"].contains(&name.as_str()) && value == "cat";
            !shows_all && !HARMLESS_VARIABLES.contains(&name.as_str())
        });
        self.env.sort_unstable();
    }
}

/// Parses the command in a tool's input, along with any separate arguments. Returns `None` if the command is neither a
/// line nor a list of words.
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

/// Returns the strings under these keys. Each value may be a string or a list of strings.
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

/// Parses environment variables, given as an object or as a list in the protocol's format. Returns `None` for anything
/// else.
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

/// Makes a path absolute. A relative path is resolved against the first root.
fn make_absolute(path: &str, roots: &Roots) -> PathBuf {
    let first = roots.paths().next().unwrap_or(Path::new(""));
    first.join(path)
}

/// Returns both the given and the real form of a path. A relative path is resolved against the first root.
fn resolve_action_path(path: &str, roots: &Roots) -> ActionPath {
    let path = make_absolute(path, roots);
    ActionPath {
        given_path: normalize_path(&path),
        real_path: resolve_path(&path, roots),
        is_ordinary: false,
    }
}

/// Resolves the symlinks in a path, even if the path is outside the roots or does not exist yet.
fn resolve_path(path: &Path, roots: &Roots) -> Option<PathBuf> {
    match roots.resolve(path) {
        Ok(place) => return Some(place.absolute_path()),
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
            // `..` after a part that does not exist leads nowhere.
            Err(_) => behind.push(above.file_name()?.to_owned()),
        }
        if !above.pop() {
            return None;
        }
    }
}

/// Removes `.` and `..` from the path without following symlinks.
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
