//! The format of a registry: a JSON file that lists agents.
//!
//! Each agent is read for itself, so an agent that this version does not understand does not make the others unusable.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::RegistryError;
use crate::names::{check_id, check_version};

/// The agents in a registry.
#[derive(Debug, Default)]
pub struct RegistryIndex {
    /// The agents, in the order of the registry.
    pub agents: Vec<RegistryAgent>,
    /// Why other agents in the registry were left out, one line for each.
    pub notes: Vec<String>,
}

/// An agent in a registry.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct RegistryAgent {
    /// The id, by which the agent is chosen.
    pub id: String,
    /// The name for people.
    pub name: String,
    /// The version that the registry offers.
    pub version: String,
    /// What the agent is.
    pub description: String,
    /// The URL of the source code.
    pub repository: Option<String>,
    /// The URL of the agent's website.
    pub website: Option<String>,
    /// The authors.
    #[serde(default)]
    pub authors: Vec<String>,
    /// The license, as an SPDX identifier, or `proprietary`.
    pub license: Option<String>,
    /// The URL of the license's text.
    pub license_url: Option<String>,
    /// Where the agent's program comes from.
    #[serde(rename = "distribution")]
    pub distributions: DistributionKinds,
}

/// The ways to get an agent's program. An agent has at least one, which need not be one of these.
#[derive(Debug, Clone, Default, Deserialize)]
#[non_exhaustive]
pub struct DistributionKinds {
    /// Downloads for each platform.
    pub binary: Option<BTreeMap<String, BinaryTarget>>,
    /// A package of the npm registry.
    pub npx: Option<PackageTarget>,
    /// A package of PyPI.
    pub uvx: Option<PackageTarget>,
}

/// A download for one platform.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct BinaryTarget {
    /// The URL of the archive or program.
    pub archive: String,
    /// The SHA-256 hash of the download, in hexadecimal.
    pub sha256: Option<String>,
    /// The path of the program in the archive.
    pub cmd: String,
    /// The program's arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// The environment variables to set.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// A package that a package runner downloads and runs.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct PackageTarget {
    /// The package, usually with its version.
    pub package: String,
    /// The program in the package, if it is not called like the package.
    pub cmd: Option<String>,
    /// The program's arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// The environment variables to set.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// The outer part of the file.
#[derive(Deserialize)]
struct IndexFile<'a> {
    version: String,
    #[serde(borrow)]
    agents: Vec<&'a RawValue>,
}

/// The part of an agent that a note about it needs.
#[derive(Default, Deserialize)]
struct EntryName {
    #[serde(default)]
    id: String,
}

impl RegistryIndex {
    /// Parses a registry. `from` is its URL or file, for error messages.
    ///
    /// # Errors
    /// The text is not a registry, or of a later major version of the format.
    pub fn parse(text: &[u8], from: &str) -> Result<Self, RegistryError> {
        let invalid = |reason: String| RegistryError::InvalidRegistry {
            from: from.to_owned(),
            reason,
        };
        let file: IndexFile<'_> =
            serde_json::from_slice(text).map_err(|e| invalid(e.to_string()))?;
        if file.version.split('.').next() != Some("1") {
            return Err(invalid(format!(
                "the format has version {}, but this acp knows only version 1",
                file.version
            )));
        }
        let mut index = Self::default();
        let mut ids = BTreeSet::new();
        for (number, entry) in file.agents.into_iter().enumerate() {
            match RegistryAgent::parse(entry.get()) {
                Ok(agent) if !ids.insert(agent.id.clone()) => {
                    return Err(invalid(format!("two agents have the id {:?}", agent.id)));
                }
                Ok(agent) => index.agents.push(agent),
                Err(reason) => {
                    let name: EntryName = serde_json::from_str(entry.get()).unwrap_or_default();
                    let which = match name.id.as_str() {
                        "" => format!("agent {}", number + 1),
                        id => format!("agent {id:?}"),
                    };
                    index.notes.push(format!("ignoring {which}: {reason}"));
                }
            }
        }
        Ok(index)
    }

    /// Returns the agent with this id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&RegistryAgent> {
        self.agents.iter().find(|agent| agent.id == id)
    }

    /// Returns the agents whose id, name or description contains all of the words, regardless of case.
    pub fn search<'a>(&'a self, words: &'a [String]) -> impl Iterator<Item = &'a RegistryAgent> {
        let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        self.agents.iter().filter(move |agent| {
            let text = format!("{}\n{}\n{}", agent.id, agent.name, agent.description);
            let text = text.to_lowercase();
            words.iter().all(|word| text.contains(word))
        })
    }
}

impl RegistryAgent {
    fn parse(text: &str) -> Result<Self, String> {
        let agent: Self = serde_json::from_str(text).map_err(|e| e.to_string())?;
        check_id(&agent.id)?;
        check_version(&agent.version)?;
        Ok(agent)
    }
}

impl DistributionKinds {
    /// Returns the kinds of distributions that there are, as the registry calls them.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        let all = [
            ("binary", self.binary.is_some()),
            ("npx", self.npx.is_some()),
            ("uvx", self.uvx.is_some()),
        ];
        let present = all.iter().filter(|(_, is_present)| *is_present);
        present.map(|(name, _)| *name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_read_although_others_are_unknown_or_invalid() {
        let text = r#"{
            "version": "1.1.0",
            "extensions": [],
            "agents": [
                {"id": "one", "name": "One", "version": "1.0.0", "description": "The first", "icon": "x",
                 "distribution": {"uvx": {"package": "one==1.0.0", "args": ["acp"]}}},
                {"id": "later", "name": "Later", "version": "1.0.0", "description": "Of a later kind",
                 "distribution": {"container": {"image": "later"}}},
                {"id": "../up", "name": "Up", "version": "1.0.0", "description": "", "distribution": {}},
                {"id": "worse", "name": "Worse", "version": "1.0.0/..", "description": "", "distribution": {}},
                {"id": "wrong", "name": 1},
                7
            ]
        }"#;
        let index = RegistryIndex::parse(text.as_bytes(), "here").unwrap();
        let ids: Vec<&str> = index.agents.iter().map(|agent| agent.id.as_str()).collect();
        assert_eq!(ids, ["one", "later"]);
        assert_eq!(index.find("one").unwrap().distributions.names(), ["uvx"]);
        assert!(
            index
                .find("later")
                .unwrap()
                .distributions
                .names()
                .is_empty()
        );
        let notes = index.notes.join("\n");
        for note in ["\"../up\"", "\"worse\"", "\"wrong\"", "agent 6"] {
            assert!(notes.contains(note), "{notes}");
        }
        let words = ["FIRST".to_owned(), "one".to_owned()];
        assert_eq!(index.search(&words).count(), 1);
        assert_eq!(index.search(&[]).count(), 2);
    }

    #[test]
    fn registries_of_another_format_are_rejected() {
        let one = r#"{"id":"a","name":"A","version":"1.0.0","description":"","distribution":{}}"#;
        for (text, reason) in [
            (
                r#"{"version":"2.0.0","agents":[]}"#.to_owned(),
                "version 2.0.0",
            ),
            ("[]".to_owned(), "invalid length"),
            (
                r#"{"version":"1.0.0"}"#.to_owned(),
                "missing field `agents`",
            ),
            ("<html>".to_owned(), "expected value"),
            (
                format!(r#"{{"version":"1.0.0","agents":[{one},{one}]}}"#),
                "two agents have the id",
            ),
        ] {
            let error = RegistryIndex::parse(text.as_bytes(), "here").unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
