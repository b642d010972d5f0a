//! Names that the user has given to sessions of agents, so that a script begins what a person goes on with.
//!
//! A name is one of an agent in a directory: the same name can mean another session elsewhere.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use acp::v1::SessionId;
use acp_host::{KeptError, KeptFile, clean};
use acp_tui::SessionNames;
use serde::{Deserialize, Serialize};

use crate::exit::Exit;
use crate::places;

/// The largest file of names, in bytes.
const MAX_FILE: u64 = 8 * 1024 * 1024;

/// How many names are kept at most.
const MOST: usize = 10_000;

/// The longest name, in characters.
const LONGEST: usize = 100;

/// The longest id of a session that is kept, in bytes.
const LONGEST_ID: usize = 4096;

/// A name for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionName(String);

impl FromStr for SessionName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let shown = clean::line(name);
        if name.trim().is_empty() || name.trim() != name || shown != name {
            return Err("a name is a line of text, without spaces around it".to_owned());
        }
        if name.chars().count() > LONGEST {
            return Err(format!("a name has at most {LONGEST} characters"));
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
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A session that has a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Named {
    pub(crate) name: String,
    /// By what the agent is remembered (`Chosen::key`).
    agent: String,
    /// Where the session works.
    pub(crate) cwd: String,
    /// The session, as the agent calls it.
    pub(crate) id: String,
    /// When it was given the name, in seconds since 1970.
    at: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Contents {
    sessions: Vec<Named>,
}

/// The names of an agent's sessions in a directory.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    kept: Option<KeptFile>,
    agent: String,
    cwd: String,
}

impl Names {
    /// Those of the agent that is remembered by `agent`, in `cwd`, a path without symlinks.
    pub(crate) fn of(agent: String, cwd: &Path) -> Self {
        let file = places::state().map(|state| state.join("session-names.json"));
        Self {
            kept: file.map(|file| KeptFile::new(file, MAX_FILE)),
            agent,
            cwd: cwd.to_string_lossy().into_owned(),
        }
    }

    /// Those of the agent's sessions in all directories, the first that was given first.
    pub(crate) fn everywhere(&self) -> Result<Vec<Named>, Exit> {
        let Some(kept) = &self.kept else {
            return Ok(Vec::new());
        };
        let contents: Contents = kept.read().map_err(failed)?.unwrap_or_default();
        let mut sessions = contents.sessions;
        sessions.retain(|named| named.agent == self.agent);
        Ok(sessions)
    }

    /// The session of this name.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Named>, Exit> {
        let all = self.everywhere()?;
        let is_it = |named: &Named| self.has(named) && named.name == name;
        Ok(all.into_iter().find(is_it))
    }

    /// Gives the name to a session. What has it already keeps it, unless it is `instead` of that; gives what has the
    /// name then.
    pub(crate) fn give(
        &self,
        name: &SessionName,
        id: &str,
        instead: Option<&str>,
    ) -> Result<String, Exit> {
        let Some(kept) = &self.kept else {
            let message = "there is no directory in which names could be kept";
            return Err(Exit::usage(message));
        };
        if id.len() > LONGEST_ID {
            let message =
                format!("the agent's id of the session is longer than {LONGEST_ID} bytes");
            return Err(Exit::failed(message));
        }
        let at = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let change = |contents: Option<Contents>| {
            let mut contents = contents.unwrap_or_default();
            let sessions = &mut contents.sessions;
            let is_it = |named: &Named| self.has(named) && named.name == name.as_str();
            if let Some(named) = sessions.iter().find(|named| is_it(named))
                && instead != Some(named.id.as_str())
            {
                let id = named.id.clone();
                return Ok((contents, id));
            }
            sessions.retain(|named| !is_it(named));
            if sessions.len() >= MOST {
                return Err(Refused(Exit::failed(format!(
                    "{MOST} sessions have names already; forget some with `acp sessions forget`"
                ))));
            }
            sessions.push(Named {
                name: name.to_string(),
                agent: self.agent.clone(),
                cwd: self.cwd.clone(),
                id: id.to_owned(),
                at,
            });
            Ok((contents, id.to_owned()))
        };
        kept.change(change).map_err(|Refused(exit)| exit)
    }

    /// Takes the name away; the session stays. Gives which one had it.
    pub(crate) fn forget(&self, name: &str) -> Result<Option<String>, Exit> {
        // So that nothing is written where there is nothing to forget.
        let (Some(kept), Some(_)) = (&self.kept, self.find(name)?) else {
            return Ok(None);
        };
        let change = |contents: Option<Contents>| {
            let mut contents = contents.unwrap_or_default();
            let is_it = |named: &Named| self.has(named) && named.name == name;
            let at = contents.sessions.iter().position(is_it);
            let forgotten = at.map(|at| contents.sessions.remove(at).id);
            Ok::<_, KeptError>((contents, forgotten))
        };
        kept.change(change).map_err(failed)
    }

    fn has(&self, named: &Named) -> bool {
        named.agent == self.agent && named.cwd == self.cwd
    }
}

impl SessionNames for Names {
    fn all(&self) -> Result<Vec<(String, SessionId)>, String> {
        let all = self
            .everywhere()
            .map_err(|exit| exit.message.unwrap_or_default())?;
        let here = all.into_iter().filter(|named| self.has(named));
        Ok(here.map(|named| (named.name, named.id.into())).collect())
    }

    fn give(&self, name: &str, session: &SessionId) -> Result<(), String> {
        let name: SessionName = name.parse()?;
        let given = Names::give(self, &name, session.as_str(), None);
        match given.map_err(|exit| exit.message.unwrap_or_default())? {
            has if has == session.as_str() => Ok(()),
            _ => Err(
                "another session has this name; `acp sessions forget` takes it from that"
                    .to_owned(),
            ),
        }
    }
}

/// Why a name was not given.
struct Refused(Exit);

impl From<KeptError> for Refused {
    fn from(error: KeptError) -> Self {
        Self(failed(error))
    }
}

fn failed(error: KeptError) -> Exit {
    Exit::failed(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path, agent: &str, cwd: &str) -> Names {
        Names {
            kept: Some(KeptFile::new(directory.join("names.json"), MAX_FILE)),
            agent: agent.to_owned(),
            cwd: cwd.to_owned(),
        }
    }

    #[test]
    fn a_name_is_one_of_an_agent_in_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        let build: SessionName = "build".parse().unwrap();
        let here = names(directory.path(), "goose", "/a");
        assert_eq!(here.give(&build, "one", None).unwrap(), "one");
        for (agent, cwd) in [("goose", "/b"), ("claude", "/a")] {
            let other = names(directory.path(), agent, cwd);
            assert_eq!(other.find("build").unwrap(), None);
            assert_eq!(other.give(&build, "two", None).unwrap(), "two");
        }
        assert_eq!(here.find("build").unwrap().unwrap().id, "one");
        assert_eq!(here.forget("build").unwrap().as_deref(), Some("one"));
        assert_eq!(here.forget("build").unwrap(), None);
        assert_eq!(here.everywhere().unwrap().len(), 1);
        let other = names(directory.path(), "goose", "/b");
        assert_eq!(other.find("build").unwrap().unwrap().id, "two");
    }

    #[test]
    fn a_name_is_not_taken_from_a_session_unseen() {
        let directory = tempfile::tempdir().unwrap();
        let names = names(directory.path(), "goose", "/a");
        let build: SessionName = "build".parse().unwrap();
        names.give(&build, "one", None).unwrap();
        assert_eq!(names.give(&build, "two", None).unwrap(), "one");
        assert_eq!(names.give(&build, "two", Some("zero")).unwrap(), "one");
        assert_eq!(names.give(&build, "two", Some("one")).unwrap(), "two");
        assert_eq!(names.everywhere().unwrap().len(), 1);
    }

    #[test]
    fn a_name_is_a_line_of_text() {
        for name in ["build", "the build", "überarbeiten", "建", "-x"] {
            name.parse::<SessionName>().unwrap();
        }
        let long = "x".repeat(LONGEST + 1);
        for name in ["", " ", " a", "a\nb", "a\u{1b}[2J", "a\u{202e}b", &long] {
            name.parse::<SessionName>().unwrap_err();
        }
    }
}
