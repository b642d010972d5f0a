//! Names that users give to sessions, for example so that a script can continue a session that it has started.
//!
//! A name belongs to an agent and a directory. With another agent or in another directory, the same name can refer to
//! another session.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use acp_host::{StateFile, terminal_text};
use serde::{Deserialize, Serialize};

use crate::error::ConfigError;
use crate::paths;

/// The maximum size of the names file, in bytes.
const MAX_FILE_SIZE: u64 = 8 * 1024 * 1024;

/// The maximum number of named sessions to store.
const MAX_NAMES: usize = 10_000;

/// The maximum length of a session name, in characters.
const MAX_NAME_CHARS: usize = 100;

/// The maximum length of a stored session id, in bytes.
const MAX_ID_BYTES: usize = 4096;

/// A valid session name: one line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionName(String);

impl FromStr for SessionName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let shown = terminal_text::clean_line(name);
        if name.trim().is_empty() || name.trim() != name || shown != name {
            return Err(
                "invalid session name: use one line, without leading or trailing spaces".to_owned(),
            );
        }
        if name.chars().count() > MAX_NAME_CHARS {
            return Err(format!(
                "session name too long (limit: {MAX_NAME_CHARS} characters)"
            ));
        }
        Ok(Self(name.to_owned()))
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl SessionName {
    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A session name, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedSession {
    /// The name that the user has given the session.
    pub name: String,
    /// The key under which the agent's data is stored (`AgentChoice::storage_key`).
    agent: String,
    /// The session's working directory.
    pub cwd: String,
    /// The session id, used to open the session.
    pub id: String,
    /// The time when the session was named, in seconds since 1970.
    at: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct NamesContents {
    sessions: Vec<NamedSession>,
}

/// The names of an agent's sessions in one directory.
#[derive(Debug, Clone)]
pub struct SessionNames {
    file: Option<StateFile>,
    agent: String,
    cwd: String,
}

impl SessionNames {
    /// Opens the session names for an agent in `cwd`, a path without symlinks. `agent` is the agent's storage key.
    #[must_use]
    pub fn open(agent: String, cwd: &Path) -> Self {
        let file = paths::state_dir().map(|state| state.join("session-names.json"));
        Self {
            file: file.map(|file| StateFile::new(file, MAX_FILE_SIZE)),
            agent,
            cwd: cwd.to_string_lossy().into_owned(),
        }
    }

    /// Returns the agent's named sessions in all directories, in the order in which they were named.
    ///
    /// # Errors
    /// Fails if the names cannot be read.
    pub fn list_all(&self) -> Result<Vec<NamedSession>, ConfigError> {
        let Some(state_file) = &self.file else {
            return Ok(Vec::new());
        };
        let contents: NamesContents = state_file.read()?.unwrap_or_default();
        let mut sessions = contents.sessions;
        sessions.retain(|named| named.agent == self.agent);
        Ok(sessions)
    }

    /// Returns the agent's named sessions in the directory.
    ///
    /// # Errors
    /// Fails if the names cannot be read.
    pub fn list(&self) -> Result<Vec<NamedSession>, ConfigError> {
        let mut sessions = self.list_all()?;
        sessions.retain(|named| self.matches(named));
        Ok(sessions)
    }

    /// Finds a session by its name.
    ///
    /// # Errors
    /// Fails if the names cannot be read.
    pub fn find(&self, name: &str) -> Result<Option<NamedSession>, ConfigError> {
        let mut all = self.list()?.into_iter();
        Ok(all.find(|named| named.name == name))
    }

    /// Gives a name to a session unless the name is in use. Returns the id of the session that now has the name.
    ///
    /// If another session already has the name, that session keeps it, unless its id is `instead`.
    ///
    /// # Errors
    /// Fails if the name cannot be stored.
    pub fn assign(
        &self,
        name: &SessionName,
        id: &str,
        instead: Option<&str>,
    ) -> Result<String, ConfigError> {
        let Some(state_file) = &self.file else {
            let message = "cannot store session names: no state directory";
            return Err(ConfigError::usage(message));
        };
        if id.len() > MAX_ID_BYTES {
            let message = format!("session id too long (limit: {MAX_ID_BYTES} bytes)");
            return Err(ConfigError::failure(message));
        }
        let at = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let change = |contents: Option<NamesContents>| {
            let mut contents = contents.unwrap_or_default();
            let sessions = &mut contents.sessions;
            let is_match =
                |named: &NamedSession| self.matches(named) && named.name == name.as_str();
            if let Some(named) = sessions.iter().find(|named| is_match(named))
                && instead != Some(named.id.as_str())
            {
                let id = named.id.clone();
                return Ok((contents, id));
            }
            sessions.retain(|named| !is_match(named));
            if sessions.len() >= MAX_NAMES {
                return Err(ConfigError::failure(format!(
                    "too many named sessions (limit: {MAX_NAMES}); remove some names with `acp sessions forget`"
                )));
            }
            sessions.push(NamedSession {
                name: name.to_string(),
                agent: self.agent.clone(),
                cwd: self.cwd.clone(),
                id: id.to_owned(),
                at,
            });
            Ok((contents, id.to_owned()))
        };
        state_file.update(change)
    }

    /// Gives a name to a session unless another session already has that name. A session can have several names.
    ///
    /// # Errors
    /// Fails if another session has the name, or if the name is invalid or cannot be stored.
    pub fn assign_unless_taken(&self, name: &str, id: &str) -> Result<(), ConfigError> {
        let name: SessionName = name.parse().map_err(ConfigError::Usage)?;
        match self.assign(&name, id, None)? {
            has if has == id => Ok(()),
            _ => Err(ConfigError::usage(
                "another session already has this name; remove the name with `acp sessions forget`",
            )),
        }
    }

    /// Removes a name, but not the session itself. Returns the id of the session that had the name, if any.
    ///
    /// # Errors
    /// Fails if the names cannot be read or written.
    pub fn remove(&self, name: &str) -> Result<Option<String>, ConfigError> {
        // Write nothing if there is nothing to remove.
        let (Some(state_file), Some(_)) = (&self.file, self.find(name)?) else {
            return Ok(None);
        };
        let change = |contents: Option<NamesContents>| {
            let mut contents = contents.unwrap_or_default();
            let is_match = |named: &NamedSession| self.matches(named) && named.name == name;
            let at = contents.sessions.iter().position(is_match);
            let forgotten = at.map(|at| contents.sessions.remove(at).id);
            Ok((contents, forgotten))
        };
        state_file.update(change)
    }

    fn matches(&self, named: &NamedSession) -> bool {
        named.agent == self.agent && named.cwd == self.cwd
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session_names(directory: &Path, agent: &str, cwd: &str) -> SessionNames {
        SessionNames {
            file: Some(StateFile::new(directory.join("names.json"), MAX_FILE_SIZE)),
            agent: agent.to_owned(),
            cwd: cwd.to_owned(),
        }
    }

    #[test]
    fn name_belongs_to_an_agent_and_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        let build: SessionName = "build".parse().unwrap();
        let here = session_names(directory.path(), "goose", "/a");
        assert_eq!(here.assign(&build, "one", None).unwrap(), "one");
        for (agent, cwd) in [("goose", "/b"), ("claude", "/a")] {
            let other = session_names(directory.path(), agent, cwd);
            assert_eq!(other.find("build").unwrap(), None);
            assert_eq!(other.assign(&build, "two", None).unwrap(), "two");
        }
        assert_eq!(here.find("build").unwrap().unwrap().id, "one");
        assert_eq!(here.remove("build").unwrap().as_deref(), Some("one"));
        assert_eq!(here.remove("build").unwrap(), None);
        assert_eq!(here.list_all().unwrap().len(), 1);
        let other = session_names(directory.path(), "goose", "/b");
        assert_eq!(other.find("build").unwrap().unwrap().id, "two");
    }

    #[test]
    fn name_is_not_reassigned_unexpectedly() {
        let directory = tempfile::tempdir().unwrap();
        let names = session_names(directory.path(), "goose", "/a");
        let build: SessionName = "build".parse().unwrap();
        names.assign(&build, "one", None).unwrap();
        assert_eq!(names.assign(&build, "two", None).unwrap(), "one");
        assert_eq!(names.assign(&build, "two", Some("zero")).unwrap(), "one");
        assert_eq!(names.assign(&build, "two", Some("one")).unwrap(), "two");
        assert_eq!(names.list_all().unwrap().len(), 1);
    }

    #[test]
    fn name_is_a_single_line() {
        for name in ["build", "the build", "überarbeiten", "建", "-x"] {
            name.parse::<SessionName>().unwrap();
        }
        let long = "x".repeat(MAX_NAME_CHARS + 1);
        for name in ["", " ", " a", "a\nb", "a\u{1b}[2J", "a\u{202e}b", &long] {
            name.parse::<SessionName>().unwrap_err();
        }
    }
}
