//! What the user and a project say of what agents may do, put together.

use std::path::{Path, PathBuf};

use acp_host::{
    PermissionRules, Permissions, Policy, Project, RememberedAnswer, RememberedAnswers, RulesError,
};

use crate::error::ConfigError;
use crate::paths;

/// Where the user's rules are in their configuration directory.
const RULES: &str = "permissions.toml";

/// Where what they answered with "always" is, in the directory of what is kept from run to run.
const ANSWERS: &str = "permissions";

/// The file of the user's rules, if they have a place for it.
#[must_use]
pub fn rules_file() -> Option<PathBuf> {
    paths::config_dir().map(|config| config.join(RULES))
}

/// The directory of what the user has answered with "always", if there is a place for it.
#[must_use]
pub fn answers_directory() -> Option<PathBuf> {
    paths::state_dir().map(|state| state.join(ANSWERS))
}

/// All that says something about a project.
#[derive(Debug)]
#[non_exhaustive]
pub struct PermissionSources {
    /// The project.
    pub project: Project,
    /// The user's rules.
    pub user_rules: Option<PermissionRules>,
    /// The project's, which can only forbid.
    pub project_rules: Vec<PermissionRules>,
    /// What the user has answered for always.
    pub remembered_answers: Option<RememberedAnswers>,
}

impl PermissionSources {
    /// What there is about the project that `cwd` is in.
    ///
    /// # Errors
    /// Something of it is broken: without it more would be allowed than was said.
    pub fn for_directory(cwd: &Path) -> Result<Self, ConfigError> {
        let project = Project::of(cwd)
            .map_err(|e| ConfigError::usage(format!("--cwd {}: {e}", cwd.display())))?;
        let broken = |e: RulesError| ConfigError::usage(e.to_string());
        let user = match rules_file() {
            Some(file) => PermissionRules::read(&file, project.root()).map_err(broken)?,
            None => None,
        };
        let rules = project.rules().map_err(broken)?;
        let remembered =
            answers_directory().map(|answers| RememberedAnswers::new(answers, project.root()));
        Ok(Self {
            project,
            user_rules: user,
            project_rules: rules,
            remembered_answers: remembered,
        })
    }

    /// What the user has answered for always.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn answers(&self) -> Result<Vec<RememberedAnswer>, ConfigError> {
        match &self.remembered_answers {
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
            None => Permissions::default_policy(otherwise),
        };
        if let Some(rules) = self.user_rules {
            permissions = permissions.user(rules);
        }
        if let Some(remembered) = self.remembered_answers {
            permissions = permissions.remembered(remembered);
        }
        Ok(permissions.project(self.project_rules))
    }
}
