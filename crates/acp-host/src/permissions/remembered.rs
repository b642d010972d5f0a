//! What a person has said with "always", for each project: kept in a file of theirs until they revoke it.
//!
//! A project's file is named by a hash of the project's path and has the path in it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use acp_wire::v1::ToolKind;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::action::Action;
use super::rules::Effect;
use crate::kept::{KeptError, KeptFile};

/// The largest file, in bytes.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// How much is remembered for a project at most.
const MOST: usize = 10_000;

/// The longest command or path that is remembered, in bytes.
const LONGEST: usize = 4096;

/// What is remembered for a project.
#[derive(Debug, Clone)]
pub struct Remembered {
    kept: KeptFile,
    project: PathBuf,
}

/// Something that a person has said for always.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Answer {
    /// Its number in the project. None is given twice.
    pub number: u64,
    /// Whether it was a yes.
    pub allowed: bool,
    /// Of which kind the tool call was.
    pub kind: String,
    /// What it is about.
    #[serde(flatten)]
    pub subject: Subject,
    /// The directory in which the command runs, without symlinks, if it is not the project's own. Only a yes has
    /// it: a no holds everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// When, in seconds since 1970.
    pub at: u64,
}

/// What an answer is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Subject {
    /// This command line, exactly.
    Command(String),
    /// This file, by its real path.
    Path(PathBuf),
}

#[derive(Serialize, Deserialize)]
struct Contents {
    project: PathBuf,
    /// The number of the next answer.
    next: u64,
    answers: Vec<Answer>,
}

impl Remembered {
    /// What is remembered for the project at `project`, without symlinks, in `directory`. Nothing is
    /// created before there is something to remember.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>, project: &Path) -> Self {
        let name = Uuid::new_v5(&Uuid::NAMESPACE_URL, project.as_os_str().as_encoded_bytes());
        Self {
            kept: KeptFile::new(
                directory.into().join(format!("{}.json", name.simple())),
                MAX_FILE,
            ),
            project: project.to_owned(),
        }
    }

    /// The file that has it.
    #[must_use]
    pub fn file(&self) -> &Path {
        self.kept.file()
    }

    /// All answers, the oldest first.
    ///
    /// # Errors
    /// The file is there and cannot be read, or is not what was written.
    pub fn answers(&self) -> Result<Vec<Answer>, RememberedError> {
        Ok(self.read()?.answers)
    }

    fn read(&self) -> Result<Contents, RememberedError> {
        self.contents(self.kept.read()?)
    }

    /// What is kept in the file, if it is about this project.
    fn contents(&self, kept: Option<Contents>) -> Result<Contents, RememberedError> {
        let contents = kept.unwrap_or_else(|| Contents {
            project: self.project.clone(),
            next: 1,
            answers: Vec::new(),
        });
        if contents.project != self.project {
            let other = contents.project.display();
            return Err(RememberedError::Broken {
                file: self.file().to_owned(),
                what: format!("it is about another project, {other}"),
            });
        }
        Ok(contents)
    }

    /// Reads, changes, and writes, while nobody else does.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Contents) -> Result<T, RememberedError>,
    ) -> Result<T, RememberedError> {
        self.kept.change(|kept| {
            let mut contents = self.contents(kept)?;
            let changed = change(&mut contents)?;
            Ok((contents, changed))
        })
    }

    /// Remembers a yes or a no to what the action is about: each of its commands, or, if it has none, each
    /// of its files. Gives what is remembered: nothing if it cannot be said exactly what it is about.
    pub(crate) fn remember(
        &self,
        action: &Action,
        allowed: bool,
    ) -> Result<Vec<Answer>, RememberedError> {
        let Some(subjects) = subjects(action) else {
            return Ok(Vec::new());
        };
        let elsewhere = |cwd: &PathBuf| allowed && action.executes() && *cwd != self.project;
        let cwd = action.directory.clone().filter(elsewhere);
        let at = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        self.change(|contents| {
            let mut remembered = Vec::new();
            for subject in subjects {
                let kind = action.kind.as_str().to_owned();
                // The last word counts.
                contents.answers.retain(|old| {
                    let is_replaced = !allowed || !old.allowed || old.cwd == cwd;
                    old.kind != kind || old.subject != subject || !is_replaced
                });
                let answer = Answer {
                    number: contents.next,
                    allowed,
                    kind,
                    subject,
                    cwd: cwd.clone(),
                    at,
                };
                contents.next += 1;
                contents.answers.push(answer.clone());
                remembered.push(answer);
            }
            match contents.answers.len() > MOST {
                true => Err(RememberedError::Full {
                    file: self.file().to_owned(),
                }),
                false => Ok(remembered),
            }
        })
    }

    /// Forgets the answer with this number. Gives what it was, if there was one.
    ///
    /// # Errors
    /// As for [`answers`](Self::answers), or it cannot be written.
    pub fn revoke(&self, number: u64) -> Result<Option<Answer>, RememberedError> {
        if self.answers()?.iter().all(|answer| answer.number != number) {
            return Ok(None);
        }
        self.change(|contents| {
            let index = contents
                .answers
                .iter()
                .position(|answer| answer.number == number);
            Ok(index.map(|index| contents.answers.remove(index)))
        })
    }

    /// Forgets all answers. Gives how many there were.
    ///
    /// # Errors
    /// As for [`revoke`](Self::revoke).
    pub fn revoke_all(&self) -> Result<usize, RememberedError> {
        if self.answers()?.is_empty() {
            return Ok(0);
        }
        self.change(|contents| Ok(std::mem::take(&mut contents.answers).len()))
    }
}

impl Remembered {
    /// Whether the answer is about what happens in this directory: absent for files.
    fn is_in(&self, answer: &Answer, directory: Option<&Path>) -> bool {
        match &answer.subject {
            Subject::Path(_) => true,
            Subject::Command(_) => {
                Some(answer.cwd.as_deref().unwrap_or(&self.project)) == directory
            }
        }
    }

    /// What the answers say to an action: a no to any part of it, or a yes to all of it, and by which answer.
    ///
    /// A yes is for exactly what was shown. A no is for the command or the file, whatever the agent puts around it:
    /// another kind, another directory, variables, or more commands.
    pub(super) fn says<'a>(
        &self,
        answers: &'a [Answer],
        action: &Action,
    ) -> Option<(Effect, &'a Answer)> {
        if let Some(no) = answers.iter().find(|answer| rejects(answer, action)) {
            return Some((Effect::Deny, no));
        }
        let subjects = subjects(action)?;
        let directory = action.directory.as_deref();
        let of = |subject: &Subject| {
            answers.iter().find(|answer| {
                let kind = answer.tool_kind();
                answer.allowed
                    && action.kinds().all(|known| *known == kind)
                    && answer.subject == *subject
                    && self.is_in(answer, directory)
            })
        };
        let found: Option<Vec<&Answer>> = subjects.iter().map(of).collect();
        Some((Effect::Allow, found?.first()?))
    }
}

/// Whether the answer is a no to any part of the action.
fn rejects(answer: &Answer, action: &Action) -> bool {
    if answer.allowed {
        return false;
    }
    match &answer.subject {
        Subject::Command(line) => action.commands.iter().any(|command| {
            let parts = command.parts();
            // What is too long to be taken apart may hide it.
            command.line() == line
                || parts.is_none_or(|parts| parts.iter().any(|part| part.text() == line))
        }),
        Subject::Path(path) => {
            let kind = answer.tool_kind();
            action.kinds().any(|known| *known == kind)
                && action
                    .paths
                    .iter()
                    .any(|target| target.real.as_ref() == Some(path))
        }
    }
}

/// What the action is about, if that can be said exactly.
pub(super) fn subjects(action: &Action) -> Option<Vec<Subject>> {
    let fits = |subject: &Subject| match subject {
        Subject::Command(line) => line.len() <= LONGEST,
        Subject::Path(path) => path.as_os_str().len() <= LONGEST && path.to_str().is_some(),
    };
    let subjects: Vec<Subject> = if action.executes() {
        let is_exact = action.at_home
            && action.directory.is_some()
            && !action.unreadable_command
            // A change that comes with a command was shown, and no line can stand for it.
            && !action.changes
            && action.commands.iter().all(|command| command.env.is_empty());
        if !is_exact {
            return None;
        }
        let lines = action
            .commands
            .iter()
            .map(|command| command.line().to_owned());
        lines.map(Subject::Command).collect()
    } else {
        let real = action.paths.iter().map(|path| path.real.clone());
        let mut real = real.collect::<Option<Vec<_>>>()?;
        real.sort_unstable();
        real.dedup();
        real.into_iter().map(Subject::Path).collect()
    };
    (!subjects.is_empty() && subjects.iter().all(fits)).then_some(subjects)
}

/// Whether it could be remembered.
pub(super) fn is_exact(action: &Action) -> bool {
    subjects(action).is_some()
}

impl Answer {
    /// The kind, as the protocol has it.
    #[must_use]
    pub fn tool_kind(&self) -> ToolKind {
        ToolKind::from(self.kind.as_str())
    }
}

/// For people, such as "allow execute `cargo test`".
impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let effect = if self.allowed {
            Effect::Allow
        } else {
            Effect::Deny
        };
        match &self.subject {
            Subject::Command(line) => {
                write!(f, "{effect} {} `{line}`", self.kind)?;
                match &self.cwd {
                    Some(cwd) => write!(f, " in {}", cwd.display()),
                    None => Ok(()),
                }
            }
            Subject::Path(path) => write!(f, "{effect} {} {}", self.kind, path.display()),
        }
    }
}

/// Why what is remembered cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RememberedError {
    /// The system says no.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is not what was written.
    #[error("{}: {what}; remove it to forget what was said", file.display())]
    Broken {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// No more is remembered.
    #[error("{}: no more answers fit into it; revoke some", file.display())]
    Full {
        /// The file.
        file: PathBuf,
    },
}

impl From<KeptError> for RememberedError {
    fn from(error: KeptError) -> Self {
        match error {
            KeptError::Io { file, source } => Self::Io { file, source },
            KeptError::Broken { file, what } => Self::Broken { file, what },
            KeptError::Full { file, .. } => Self::Full { file },
        }
    }
}
