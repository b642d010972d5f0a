//! What the user and a project say of what agents may do, put together.

use std::path::{Path, PathBuf};

use acp_host::{Answer, Permissions, Policy, Project, Remembered, Rules, RulesError};

use crate::error::ConfigError;
use crate::places;

/// Where the user's rules are in their configuration directory.
const RULES: &str = "permissions.toml";

/// Where what they answered with "always" is, in the directory of what is kept from run to run.
const ANSWERS: &str = "permissions";

/// The file of the user's rules, if they have a place for it.
#[must_use]
pub fn rules_file() -> Option<PathBuf> {
    places::config().map(|config| config.join(RULES))
}

/// The directory of what the user has answered with "always", if there is a place for it.
#[must_use]
pub fn answers_directory() -> Option<PathBuf> {
    places::state().map(|state| state.join(ANSWERS))
}

/// All that says something about a project.
#[derive(Debug)]
#[non_exhaustive]
pub struct PermissionSources {
    /// The project.
    pub project: Project,
    /// The user's rules.
    pub user: Option<Rules>,
    /// The project's, which can only forbid.
    pub rules: Vec<Rules>,
    /// What the user has answered for always.
    pub remembered: Option<Remembered>,
}

impl PermissionSources {
    /// What there is about the project that `cwd` is in.
    ///
    /// # Errors
    /// Something of it is broken: without it more would be allowed than was said.
    pub fn about(cwd: &Path) -> Result<Self, ConfigError> {
        let project = Project::of(cwd)
            .map_err(|e| ConfigError::usage(format!("--cwd {}: {e}", cwd.display())))?;
        let broken = |e: RulesError| ConfigError::usage(e.to_string());
        let user = match rules_file() {
            Some(file) => Rules::read(&file, project.root()).map_err(broken)?,
            None => None,
        };
        let rules = project.rules().map_err(broken)?;
        let remembered =
            answers_directory().map(|answers| Remembered::new(answers, project.root()));
        Ok(Self {
            project,
            user,
            rules,
            remembered,
        })
    }

    /// What the user has answered for always.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn answers(&self) -> Result<Vec<Answer>, ConfigError> {
        match &self.remembered {
            Some(remembered) => remembered
                .answers()
                .map_err(|e| ConfigError::failure(e.to_string())),
            None => Ok(Vec::new()),
        }
    }

    /// What an agent may do there. `allow` is the policy that was chosen, if one was; else it is `otherwise` where no rule
    /// says it.
    ///
    /// # Errors
    /// What is remembered is broken, which is told now rather than by rejecting everything later.
    pub fn permissions(
        self,
        allow: Option<Policy>,
        otherwise: Policy,
    ) -> Result<Permissions, ConfigError> {
        self.answers()?;
        let mut permissions = match allow {
            Some(policy) => Permissions::from(policy),
            None => Permissions::policy_by_default(otherwise),
        };
        if let Some(rules) = self.user {
            permissions = permissions.user(rules);
        }
        if let Some(remembered) = self.remembered {
            permissions = permissions.remembered(remembered);
        }
        Ok(permissions.project(self.rules))
    }
}
