//! Reads agents' permissions from the user's and the project's files.

use std::path::{Path, PathBuf};

use acp_host::{
    PermissionRules, Permissions, Policy, Project, RememberedAnswer, RememberedAnswers, RulesError,
};

use crate::error::ConfigError;
use crate::paths;

/// The name of the user's rules file in the configuration directory.
const RULES_FILE: &str = "permissions.toml";

/// The name of the directory in the state directory that contains remembered answers.
const ANSWERS_DIRECTORY: &str = "permissions";

/// Returns the path of the user's rules file, if there is a configuration directory.
#[must_use]
pub fn rules_file() -> Option<PathBuf> {
    paths::config_dir().map(|config| config.join(RULES_FILE))
}

/// Returns the directory that contains the user's remembered answers, if there is a state directory.
#[must_use]
pub fn answers_directory() -> Option<PathBuf> {
    paths::state_dir().map(|state| state.join(ANSWERS_DIRECTORY))
}

/// All sources of the permissions for a project.
#[derive(Debug)]
#[non_exhaustive]
pub struct PermissionSources {
    /// The project that the permissions are for.
    pub project: Project,
    /// The rules in the user's permissions file, if there is one.
    pub user_rules: Option<PermissionRules>,
    /// The rules from the project's permissions files. They can only make decisions stricter.
    pub project_rules: Vec<PermissionRules>,
    /// The user's "always" answers, stored per project.
    pub remembered_answers: Option<RememberedAnswers>,
}

impl PermissionSources {
    /// Reads the permissions for the project that contains `cwd`.
    ///
    /// # Errors
    /// Fails if a file is invalid, because ignoring it could allow too much.
    pub fn for_directory(cwd: &Path) -> Result<Self, ConfigError> {
        let project = Project::find(cwd)
            .map_err(|e| ConfigError::usage(format!("--cwd {}: {e}", cwd.display())))?;
        let broken = |e: RulesError| ConfigError::usage(e.to_string());
        let user = match rules_file() {
            Some(file) => PermissionRules::read(&file, project.root()).map_err(broken)?,
            None => None,
        };
        let rules = project.read_rules().map_err(broken)?;
        let remembered =
            answers_directory().map(|answers| RememberedAnswers::new(answers, project.root()));
        Ok(Self {
            project,
            user_rules: user,
            project_rules: rules,
            remembered_answers: remembered,
        })
    }

    /// Returns the user's remembered answers.
    ///
    /// # Errors
    /// Fails if the answers cannot be read.
    pub fn answers(&self) -> Result<Vec<RememberedAnswer>, ConfigError> {
        match &self.remembered_answers {
            Some(remembered) => remembered
                .answers()
                .map_err(|e| ConfigError::failure(e.to_string())),
            None => Ok(Vec::new()),
        }
    }

    /// Combines all sources into the permissions that agents have in the project.
    ///
    /// `allow` is the requested policy, if any. Otherwise, the policy `otherwise` applies to actions that no rule
    /// matches.
    ///
    /// # Errors
    /// Fails if the remembered answers are invalid. Reporting that now is better than rejecting everything later.
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
            permissions = permissions.user_rules(rules);
        }
        if let Some(remembered) = self.remembered_answers {
            permissions = permissions.remembered_answers(remembered);
        }
        Ok(permissions.project_rules(self.project_rules))
    }
}
