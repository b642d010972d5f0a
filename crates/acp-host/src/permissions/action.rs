//! What is to be done, as far as rules can tell.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use acp::client::PermissionRequest;
use acp::thread::ToolCallContent;
use acp_wire::v1::{CreateTerminalRequest, ToolKind};
use serde_json::Value;

use super::command::CommandLine;
use crate::roots::{Refusal, Roots};

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

/// What is to be done, for [`Permissions::judge`](super::Permissions::judge).
#[derive(Debug, Clone)]
pub struct Action {
    /// Of which kind it is, as the agent says, or as it is.
    pub(crate) kind: ToolKind,
    /// Which files it is about.
    pub(crate) paths: Vec<Target>,
    /// What it runs.
    pub(crate) commands: Vec<CommandLine>,
    /// Commands run where the session's roots are, as far as is said.
    pub(crate) at_home: bool,
    /// It changes files, whatever its kind.
    changes: bool,
}

/// A file that something is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// As it was named, absolute and without `.` and `..`.
    pub(crate) given: PathBuf,
    /// Where that leads; absent if that cannot be said.
    pub(crate) real: Option<PathBuf>,
}

impl Action {
    /// What an agent asks permission for: the files of its tool call's locations and diffs, and the commands
    /// of its input.
    pub(crate) fn asked(request: &PermissionRequest, roots: &Roots) -> Self {
        let call = &request.tool_call;
        let mut paths: Vec<&str> = call.locations.iter().map(|l| l.path.as_str()).collect();
        let mut changes = false;
        for content in &call.content {
            let ToolCallContent::Diff(diff) = content else {
                continue;
            };
            changes = true;
            for change in &diff.changes {
                paths.push(&change.path);
                paths.extend(change.old_path.as_deref());
            }
        }
        paths.retain(|path| !path.is_empty());
        paths.sort_unstable();
        paths.dedup();

        let mut commands = Vec::new();
        if let Some(subject) = &request.command {
            let mut command = CommandLine::of_line(&subject.command);
            command.cwd = Some(PathBuf::from(&subject.cwd));
            commands.push(command);
        }
        if let Some(input) = &call.raw_input {
            let mut cwd = ["cwd", "workdir"].into_iter();
            let cwd = cwd.find_map(|key| Some(PathBuf::from(input.get(key)?.as_str()?)));
            for key in ["command", "cmd"] {
                if let Some(mut command) = input.get(key).and_then(command_of) {
                    command.cwd.clone_from(&cwd);
                    commands.push(command);
                }
            }
        }
        commands.dedup();
        let mut action = Self {
            kind: call.kind.clone(),
            paths: paths.into_iter().map(|path| target(path, roots)).collect(),
            commands,
            at_home: true,
            changes,
        };
        action.at_home = action.is_at_home(roots);
        action
    }

    /// A file that is read (kind `read`) or changed (kind `edit`). A relative path is meant from the first root.
    #[must_use]
    pub fn file(kind: ToolKind, path: &str, roots: &Roots) -> Self {
        Self {
            changes: kind == ToolKind::Edit,
            kind,
            paths: vec![target(path, roots)],
            commands: Vec::new(),
            at_home: true,
        }
    }

    /// A line that a shell runs in the directory `cwd`.
    #[must_use]
    pub fn command(line: &str, cwd: &Path, roots: &Roots) -> Self {
        let mut command = CommandLine::of_line(line);
        command.cwd = Some(cwd.to_owned());
        let mut action = Self {
            commands: vec![command],
            ..Self::of_kind(ToolKind::Execute)
        };
        action.at_home = action.is_at_home(roots);
        action
    }

    /// Something of which no more is known than its kind.
    #[must_use]
    pub fn of_kind(kind: ToolKind) -> Self {
        Self {
            kind,
            paths: Vec::new(),
            commands: Vec::new(),
            at_home: true,
            changes: false,
        }
    }

    /// A command that an agent runs through the client.
    pub(crate) fn terminal(request: &CreateTerminalRequest, roots: &Roots) -> Self {
        let mut command = match request.args.is_empty() {
            // It is run by a shell if there is no such program.
            true => CommandLine::of_line(&request.command),
            false => {
                let words = std::iter::once(&request.command).chain(&request.args);
                CommandLine::of_words(&words.collect::<Vec<_>>())
            }
        };
        command.cwd = request.cwd.as_ref().map(PathBuf::from);
        command.changed = request.env.iter().any(|variable| {
            let pager =
                ["PAGER", "GIT_PAGER"].contains(&&*variable.name) && variable.value == "cat";
            !pager && !HARMLESS.contains(&&*variable.name)
        });
        let mut action = Self {
            kind: ToolKind::Execute,
            paths: Vec::new(),
            commands: vec![command],
            at_home: true,
            changes: false,
        };
        action.at_home = action.is_at_home(roots);
        action
    }

    /// The kinds it is of: as the agent says, and what can be seen.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &ToolKind> {
        let executes = (!self.commands.is_empty()).then_some(&ToolKind::Execute);
        let edits = self.changes.then_some(&ToolKind::Edit);
        std::iter::once(&self.kind).chain(executes).chain(edits)
    }

    fn is_at_home(&self, roots: &Roots) -> bool {
        let mut elsewhere = self
            .commands
            .iter()
            .filter_map(|command| command.cwd.as_ref());
        elsewhere.all(|cwd| match cwd.is_absolute() {
            true => roots.follow(cwd).is_ok(),
            false => !cwd.components().any(|c| c == Component::ParentDir),
        })
    }
}

/// The command that an agent gives as input of its tool.
fn command_of(value: &Value) -> Option<CommandLine> {
    match value {
        Value::String(line) if !line.trim().is_empty() => Some(CommandLine::of_line(line)),
        Value::Array(words) if !words.is_empty() => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            Some(CommandLine::of_words(&words?))
        }
        _ => None,
    }
}

/// The file of this name, and where it leads. A relative name is meant from the first root.
fn target(path: &str, roots: &Roots) -> Target {
    let first = roots.paths().next().unwrap_or(Path::new(""));
    let path = first.join(path);
    Target {
        given: tidy(&path),
        real: real(&path, roots),
    }
}

/// Where the path leads, also outside of the roots and where nothing is yet.
fn real(path: &Path, roots: &Roots) -> Option<PathBuf> {
    match roots.follow(path) {
        Ok(place) => return Some(place.name()),
        Err(Refusal::Outside) => {}
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
fn tidy(path: &Path) -> PathBuf {
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
