//! Remembered answers: the user's "always" answers, stored per project until revoked.
//!
//! The name of a project's file is a hash of the project's path. The file also contains the path.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use acp_wire::v1::ToolKind;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::action::Action;
use super::prefix::prefix_covers;
use super::rules::RuleEffect;
use crate::state_file::{StateFile, StateFileError};

/// The maximum size of an answers file, in bytes.
const MAX_FILE_SIZE: u64 = 4 * 1024 * 1024;

/// The maximum number of remembered answers in a project.
const MAX_ANSWERS: usize = 10_000;

/// The maximum length of a remembered command or path, in bytes.
const MAX_SUBJECT_BYTES: usize = 4096;

/// The remembered answers of a project.
#[derive(Debug, Clone)]
pub struct RememberedAnswers {
    file: StateFile,
    project: PathBuf,
}

/// An "always" answer that the user gave to a permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RememberedAnswer {
    /// The answer's number in the project. Numbers are never reused.
    pub number: u64,
    /// Whether the answer allows the tool call.
    pub allowed: bool,
    /// The kind of tool call that the answer covers, as in the protocol.
    pub kind: String,
    /// The command or file that the answer covers.
    #[serde(flatten)]
    pub subject: RememberedSubject,
    /// The command's working directory, without symlinks, if it is not the project's root. Only "allow" answers have
    /// one, since a rejection applies everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The time of the answer, in seconds since 1970.
    pub at: u64,
}

/// The command or file that a remembered answer is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RememberedSubject {
    /// A command, identified by its exact line.
    Command(String),
    /// All commands that match a pattern, such as `cargo test *`. Only "allow" answers have one.
    Commands(String),
    /// A file, identified by its real path.
    Path(PathBuf),
}

#[derive(Serialize, Deserialize)]
struct RememberedContents {
    project: PathBuf,
    /// The number that the next answer will get.
    next: u64,
    answers: Vec<RememberedAnswer>,
}

impl RememberedAnswers {
    /// Opens the answers for the project at `project`, a path without symlinks. They are stored in `directory`, where
    /// nothing is created until there is an answer to store.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>, project: &Path) -> Self {
        let name = Uuid::new_v5(&Uuid::NAMESPACE_URL, project.as_os_str().as_encoded_bytes());
        Self {
            file: StateFile::new(
                directory.into().join(format!("{}.json", name.simple())),
                MAX_FILE_SIZE,
            ),
            project: project.to_owned(),
        }
    }

    /// Returns the path of the file that stores the answers.
    #[must_use]
    pub fn file(&self) -> &Path {
        self.file.file()
    }

    /// Returns all answers remembered for the project, oldest first.
    ///
    /// # Errors
    /// The file exists but cannot be read, or its content is invalid.
    pub fn answers(&self) -> Result<Vec<RememberedAnswer>, RememberedAnswersError> {
        Ok(self.read()?.answers)
    }

    fn read(&self) -> Result<RememberedContents, RememberedAnswersError> {
        self.check_project(self.file.read()?)
    }

    /// Returns the file's contents, or an error if they belong to another project.
    fn check_project(
        &self,
        kept: Option<RememberedContents>,
    ) -> Result<RememberedContents, RememberedAnswersError> {
        let contents = kept.unwrap_or_else(|| RememberedContents {
            project: self.project.clone(),
            next: 1,
            answers: Vec::new(),
        });
        if contents.project != self.project {
            let other = contents.project.display();
            return Err(RememberedAnswersError::Invalid {
                file: self.file().to_owned(),
                what: format!("belongs to another project, {other}"),
            });
        }
        Ok(contents)
    }

    /// Reads, modifies and writes the file while holding a lock.
    fn update<T>(
        &self,
        change: impl FnOnce(&mut RememberedContents) -> Result<T, RememberedAnswersError>,
    ) -> Result<T, RememberedAnswersError> {
        self.file.update(|kept| {
            let mut contents = self.check_project(kept)?;
            let changed = change(&mut contents)?;
            Ok((contents, changed))
        })
    }

    /// Stores an answer for each of the action's commands or, if it has none, for each of its files. Returns the new
    /// answers, or none if the commands or files are not known exactly.
    pub(crate) fn remember(
        &self,
        action: &Action,
        allowed: bool,
    ) -> Result<Vec<RememberedAnswer>, RememberedAnswersError> {
        match remembered_subjects(action) {
            Some(subjects) => self.remember_subjects(action, subjects, allowed),
            None => Ok(Vec::new()),
        }
    }

    /// Stores an answer that allows all commands of this pattern.
    pub(crate) fn remember_prefix(
        &self,
        action: &Action,
        pattern: &str,
    ) -> Result<Vec<RememberedAnswer>, RememberedAnswersError> {
        let subject = RememberedSubject::Commands(pattern.to_owned());
        self.remember_subjects(action, vec![subject], true)
    }

    fn remember_subjects(
        &self,
        action: &Action,
        subjects: Vec<RememberedSubject>,
        allowed: bool,
    ) -> Result<Vec<RememberedAnswer>, RememberedAnswersError> {
        let elsewhere = |cwd: &PathBuf| allowed && action.runs_commands() && *cwd != self.project;
        let cwd = action.directory.clone().filter(elsewhere);
        let at = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        self.update(|contents| {
            let mut remembered = Vec::new();
            for subject in subjects {
                let kind = action.kind.as_str().to_owned();
                // Only the latest answer about a subject is kept.
                contents.answers.retain(|old| {
                    let is_replaced = !allowed || !old.allowed || old.cwd == cwd;
                    old.kind != kind || old.subject != subject || !is_replaced
                });
                let answer = RememberedAnswer {
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
            match contents.answers.len() > MAX_ANSWERS {
                true => Err(RememberedAnswersError::Full {
                    file: self.file().to_owned(),
                }),
                false => Ok(remembered),
            }
        })
    }

    /// Revokes the answer with this number. Returns it if it existed.
    ///
    /// # Errors
    /// Same as for [`answers`](Self::answers), or the file cannot be written.
    pub fn revoke(&self, number: u64) -> Result<Option<RememberedAnswer>, RememberedAnswersError> {
        if self.answers()?.iter().all(|answer| answer.number != number) {
            return Ok(None);
        }
        self.update(|contents| {
            let index = contents
                .answers
                .iter()
                .position(|answer| answer.number == number);
            Ok(index.map(|index| contents.answers.remove(index)))
        })
    }

    /// Revokes all answers and returns how many there were.
    ///
    /// # Errors
    /// Same as for [`revoke`](Self::revoke).
    pub fn revoke_all(&self) -> Result<usize, RememberedAnswersError> {
        if self.answers()?.is_empty() {
            return Ok(0);
        }
        self.update(|contents| Ok(std::mem::take(&mut contents.answers).len()))
    }
}

impl RememberedAnswers {
    /// Returns `true` if the answer applies in this directory. `directory` is `None` for actions on files.
    fn applies_in(&self, answer: &RememberedAnswer, directory: Option<&Path>) -> bool {
        match &answer.subject {
            RememberedSubject::Path(_) => true,
            RememberedSubject::Command(_) | RememberedSubject::Commands(_) => {
                Some(answer.cwd.as_deref().unwrap_or(&self.project)) == directory
            }
        }
    }

    /// Finds the answer that decides the action, and returns it along with its effect. An answer that rejects any part
    /// of the action takes precedence. For the action to be allowed, answers must cover all of it.
    ///
    /// Permission covers exactly what was shown. A rejection covers the command or the file even if the agent changes
    /// the kind, the directory or the variables, or adds more commands.
    pub(super) fn effect_on<'a>(
        &self,
        answers: &'a [RememberedAnswer],
        action: &Action,
    ) -> Option<(RuleEffect, &'a RememberedAnswer)> {
        if let Some(no) = answers.iter().find(|answer| is_rejected_by(answer, action)) {
            return Some((RuleEffect::Deny, no));
        }
        let subjects = remembered_subjects(action)?;
        let directory = action.directory.as_deref();
        let of = |subject: &RememberedSubject| {
            answers.iter().find(|answer| {
                let kind = answer.tool_kind();
                let covers = match &answer.subject {
                    RememberedSubject::Commands(pattern) => prefix_covers(pattern, action),
                    exact => exact == subject,
                };
                answer.allowed
                    && action.kinds().all(|known| *known == kind)
                    && covers
                    && self.applies_in(answer, directory)
            })
        };
        let found: Option<Vec<&RememberedAnswer>> = subjects.iter().map(of).collect();
        Some((RuleEffect::Allow, found?.first()?))
    }
}

/// Returns `true` if the answer rejects any part of the action.
fn is_rejected_by(answer: &RememberedAnswer, action: &Action) -> bool {
    if answer.allowed {
        return false;
    }
    match &answer.subject {
        RememberedSubject::Command(line) => action.commands.iter().any(|command| {
            let parts = command.parts();
            // A line that is too long to split may hide the command.
            command.line() == line
                || parts.is_none_or(|parts| parts.iter().any(|part| part.text() == line))
        }),
        // Never rejects.
        RememberedSubject::Commands(_) => false,
        RememberedSubject::Path(path) => {
            let kind = answer.tool_kind();
            action.kinds().any(|known| *known == kind)
                && action
                    .paths
                    .iter()
                    .any(|target| target.real_path.as_ref() == Some(path))
        }
    }
}

/// Returns the action's commands or files, if they are exactly known.
pub(super) fn remembered_subjects(action: &Action) -> Option<Vec<RememberedSubject>> {
    let fits = |subject: &RememberedSubject| match subject {
        RememberedSubject::Command(line) | RememberedSubject::Commands(line) => {
            line.len() <= MAX_SUBJECT_BYTES
        }
        RememberedSubject::Path(path) => {
            path.as_os_str().len() <= MAX_SUBJECT_BYTES && path.to_str().is_some()
        }
    };
    let subjects: Vec<RememberedSubject> = if action.runs_commands() {
        let is_exact = action.is_in_roots
            && action.directory.is_some()
            && !action.has_unreadable_command
            // The user saw a change together with the command, and a line cannot represent that.
            && !action.is_change
            && action.commands.iter().all(|command| command.env.is_empty());
        if !is_exact {
            return None;
        }
        let lines = action
            .commands
            .iter()
            .map(|command| command.line().to_owned());
        lines.map(RememberedSubject::Command).collect()
    } else {
        let real = action.paths.iter().map(|path| path.real_path.clone());
        let mut real = real.collect::<Option<Vec<_>>>()?;
        real.sort_unstable();
        real.dedup();
        real.into_iter().map(RememberedSubject::Path).collect()
    };
    (!subjects.is_empty() && subjects.iter().all(fits)).then_some(subjects)
}

/// Returns `true` if an answer about this action could be remembered.
pub(super) fn can_be_remembered(action: &Action) -> bool {
    remembered_subjects(action).is_some()
}

impl RememberedAnswer {
    /// Returns the kind of tool call that the answer covers, as in the protocol.
    #[must_use]
    pub fn tool_kind(&self) -> ToolKind {
        ToolKind::from(self.kind.as_str())
    }
}

/// Formats the answer for the user, for example as "allow execute `cargo test`".
impl std::fmt::Display for RememberedAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let effect = if self.allowed {
            RuleEffect::Allow
        } else {
            RuleEffect::Deny
        };
        match &self.subject {
            RememberedSubject::Command(line) | RememberedSubject::Commands(line) => {
                write!(f, "{effect} {} `{line}`", self.kind)?;
                match &self.cwd {
                    Some(cwd) => write!(f, " in {}", cwd.display()),
                    None => Ok(()),
                }
            }
            RememberedSubject::Path(path) => write!(f, "{effect} {} {}", self.kind, path.display()),
        }
    }
}

/// An error that occurred while reading or writing remembered answers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RememberedAnswersError {
    /// The file cannot be read or written.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file that cannot be read or written.
        file: PathBuf,
        /// The error from the operating system.
        source: io::Error,
    },
    /// The file's contents are invalid.
    #[error("{}: {what}; delete the file to forget all answers", file.display())]
    Invalid {
        /// The file with the invalid contents.
        file: PathBuf,
        /// A description of the problem.
        what: String,
    },
    /// The file is full, so no further answers can be stored.
    #[error("{}: too many remembered answers; revoke some with `acp permissions revoke`", file.display())]
    Full {
        /// The file that contains the maximum number of answers.
        file: PathBuf,
    },
}

impl From<StateFileError> for RememberedAnswersError {
    fn from(error: StateFileError) -> Self {
        match error {
            StateFileError::Io { file, source } => Self::Io { file, source },
            StateFileError::Invalid { file, what } => Self::Invalid { file, what },
            StateFileError::Full { file, .. } => Self::Full { file },
        }
    }
}
