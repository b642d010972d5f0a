//! Decides what an agent may do, based on rules, remembered answers and a policy.
//!
//! The strictest decision wins. Among the user's own rules and remembered answers, the strictest match decides, and if
//! nothing matches, the policy does. The project's rules are applied last, and can only make the decision stricter.

mod action;
mod always_effect;
mod command;
mod command_parts;
mod decided;
mod gate;
mod grants;
mod patterns;
mod policy;
mod prefix;
mod project;
mod remembered;
mod rules;
mod shell;
mod wrappers;

use std::fmt;
use std::path::PathBuf;

pub use self::action::Action;
use self::action::ActionPath;
pub use self::always_effect::AlwaysEffect;
use self::command::CommandLine;
pub use self::decided::{ActionDecision, Denier};
pub(crate) use self::gate::PermissionGate;
pub(crate) use self::grants::{FileEdit, Grants};
pub(crate) use self::policy::select_answer;
pub use self::policy::{ParsePolicyError, Policy, PolicyDecision, Prompter};
pub use self::project::{Project, ProjectFile};
pub use self::remembered::{
    RememberedAnswer, RememberedAnswers, RememberedAnswersError, RememberedSubject,
};
pub use self::rules::{PermissionRule, PermissionRules, RuleEffect, RulesError};

/// The rules, remembered answers and policy that determine what a connection's agent may do.
#[derive(Debug, Clone)]
pub struct Permissions {
    policy: Policy,
    /// Whether a default in the user's rules overrides the policy.
    is_policy_default: bool,
    user: Option<PermissionRules>,
    project: Vec<PermissionRules>,
    remembered: Option<RememberedAnswers>,
}

impl From<Policy> for Permissions {
    /// Creates permissions that consist only of a policy.
    fn from(policy: Policy) -> Self {
        Self {
            policy,
            is_policy_default: false,
            user: None,
            project: Vec::new(),
            remembered: None,
        }
    }
}

impl Permissions {
    /// Creates permissions with a fallback policy, which applies only if the user's rules set no default.
    #[must_use]
    pub fn default_policy(policy: Policy) -> Self {
        Self {
            is_policy_default: true,
            ..policy.into()
        }
    }

    /// Adds the user's own rules, which can allow or deny actions.
    #[must_use]
    pub fn user_rules(mut self, rules: PermissionRules) -> Self {
        self.user = Some(rules);
        self
    }

    /// Adds the project's rules, which can only make decisions stricter.
    #[must_use]
    pub fn project_rules(mut self, rules: impl IntoIterator<Item = PermissionRules>) -> Self {
        self.project.extend(rules);
        self
    }

    /// Adds the user's remembered answers. New answers are stored there, too.
    #[must_use]
    pub fn remembered_answers(mut self, remembered: RememberedAnswers) -> Self {
        self.remembered = Some(remembered);
        self
    }

    /// Returns the policy for actions that no rule or answer matches.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Returns `true` if a default in the user's rules overrides the policy.
    #[must_use]
    pub fn is_policy_default(&self) -> bool {
        self.is_policy_default
    }

    /// Returns `true` if there is anything the agent may read.
    pub(crate) fn can_read(&self) -> bool {
        !self.forbids_all()
    }

    /// Returns `true` if there is anything the agent may change or run, even if only after asking the user.
    pub(crate) fn can_change(&self) -> bool {
        let allows = |rules: &PermissionRules| {
            let mut effects = rules
                .iter()
                .map(PermissionRule::effect)
                .chain(rules.default_effect());
            effects.any(|effect| effect != RuleEffect::Deny)
        };
        let remembers = || {
            let remembered = self.remembered.as_ref()?;
            Some(
                remembered
                    .answers()
                    .ok()?
                    .iter()
                    .any(|answer| answer.allowed),
            )
        };
        let policy = matches!(self.policy, Policy::All | Policy::Ask);
        !self.forbids_all()
            && (policy || self.user.as_ref().is_some_and(allows) || remembers() == Some(true))
    }

    fn forbids_all(&self) -> bool {
        self.policy == Policy::None && !self.is_policy_default
    }

    /// Decides whether the action is allowed. Accesses the file system to resolve paths and read remembered answers.
    #[must_use]
    pub fn decide(&self, action: &Action) -> PermissionDecision {
        let mut verdict = self.user_decision(action);
        for rules in &self.project {
            verdict = verdict.stricter(
                from_rules(rules, action)
                    .unwrap_or_else(|| PermissionDecision::from_default(rules)),
            );
        }
        verdict
    }

    fn user_decision(&self, action: &Action) -> PermissionDecision {
        if self.forbids_all() {
            return PermissionDecision::Deny(DecisionSource::Policy(self.policy));
        }
        let mut verdict = self
            .user
            .as_ref()
            .and_then(|rules| from_rules(rules, action));
        if let Some(remembered) = &self.remembered {
            match remembered.answers() {
                Ok(answers) => {
                    if let Some((effect, answer)) = remembered.effect_on(&answers, action) {
                        let by = DecisionSource::Remembered {
                            number: answer.number,
                        };
                        let also = match effect {
                            RuleEffect::Deny => PermissionDecision::Deny(by),
                            _ => PermissionDecision::Allow,
                        };
                        verdict = Some(match verdict {
                            Some(verdict) => verdict.stricter(also),
                            None => also,
                        });
                    }
                }
                // The file may contain a rejection.
                Err(e) => {
                    return PermissionDecision::Deny(DecisionSource::UnreadableAnswers(
                        e.to_string(),
                    ));
                }
            }
        }
        if let Some(verdict) = verdict {
            return verdict;
        }
        match &self.user {
            Some(rules) if self.is_policy_default && rules.default_effect().is_some() => {
                PermissionDecision::from_default(rules)
            }
            // The strictest effect counts: of the kind that the agent reports, and of those that the content shows.
            _ => {
                let effects = action.kinds().map(|kind| self.policy.effect(Some(kind)));
                match effects.max().unwrap_or(RuleEffect::Deny) {
                    RuleEffect::Allow => PermissionDecision::Allow,
                    RuleEffect::Ask => PermissionDecision::Ask,
                    RuleEffect::Deny => {
                        PermissionDecision::Deny(DecisionSource::Policy(self.policy))
                    }
                }
            }
        }
    }

    /// Stores an "always" answer. Returns `None` if that is not possible, because the action's commands or files are
    /// not exactly known, or because no directory for answers is configured.
    pub(crate) fn remember(
        &self,
        action: &Action,
        allowed: bool,
    ) -> Option<Result<Vec<RememberedAnswer>, RememberedAnswersError>> {
        let remembered = self.remembered.as_ref()?;
        remembered::can_be_remembered(action).then(|| remembered.remember(action, allowed))
    }

    /// Stores an "always" answer that allows all commands of this pattern, such as `cargo test *`.
    pub(crate) fn remember_prefix(
        &self,
        action: &Action,
        pattern: &str,
    ) -> Option<Result<Vec<RememberedAnswer>, RememberedAnswersError>> {
        let remembered = self.remembered.as_ref()?;
        Some(remembered.remember_prefix(action, pattern))
    }

    /// Returns the pattern of commands that an "always" answer about this action can cover beside the exact command.
    pub(crate) fn command_prefix(&self, action: &Action) -> Option<String> {
        self.remembered.as_ref()?;
        prefix::command_prefix(action)
    }

    /// Returns `true` if an "always" answer about this action would be remembered.
    pub(crate) fn can_remember(&self, action: &Action) -> bool {
        self.remembered.is_some() && remembered::can_be_remembered(action)
    }
}

/// A decision on whether an action is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionDecision {
    /// The action is allowed without asking the user.
    Allow,
    /// The user must decide, unless an earlier answer still applies.
    Ask,
    /// The user must decide each time, as required by this rule.
    AskEachTime(DecisionSource),
    /// The action is denied for this reason.
    Deny(DecisionSource),
}

impl PermissionDecision {
    /// Returns the stricter of the two decisions.
    fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (deny @ Self::Deny(_), _) | (_, deny @ Self::Deny(_)) => deny,
            (ask @ Self::AskEachTime(_), _) | (_, ask @ Self::AskEachTime(_)) => ask,
            (Self::Ask, _) | (_, Self::Ask) => Self::Ask,
            (Self::Allow, Self::Allow) => Self::Allow,
        }
    }

    /// Returns a permissions file's default decision, for actions that no rule matches.
    fn from_default(rules: &PermissionRules) -> Self {
        match rules.default_effect() {
            None | Some(RuleEffect::Allow) => Self::Allow,
            Some(RuleEffect::Ask) => Self::Ask,
            Some(RuleEffect::Deny) => Self::Deny(DecisionSource::Default {
                file: rules.file().to_owned(),
            }),
        }
    }
}

/// Returns the strictest decision of the matching rules, or `None` if no rule matches.
fn from_rules(rules: &PermissionRules, action: &Action) -> Option<PermissionDecision> {
    let mut verdict = None;
    for rule in rules.iter() {
        let by = || DecisionSource::Rule {
            file: rules.file().to_owned(),
            number: rule.number(),
            rule: rule.to_string(),
        };
        let says = match rule.effect() {
            RuleEffect::Allow if rule.matches_to_allow(action) => PermissionDecision::Allow,
            RuleEffect::Allow => continue,
            // The rule may match a command that could not be parsed. The user can see what it is.
            _ if !rule.matches_to_deny(action) => match rule.could_match_unreadable_command(action)
            {
                true => PermissionDecision::AskEachTime(by()),
                false => continue,
            },
            RuleEffect::Ask => PermissionDecision::AskEachTime(by()),
            RuleEffect::Deny => PermissionDecision::Deny(by()),
        };
        verdict = Some(match verdict {
            None => says,
            Some(verdict) => PermissionDecision::stricter(verdict, says),
        });
    }
    verdict
}

impl PermissionRule {
    /// Returns `true` if an "allow" rule matches the whole action.
    fn matches_to_allow(&self, action: &Action) -> bool {
        let kind = self.kinds.is_empty() || action.kinds().all(|kind| self.kinds.contains(kind));
        let paths = if self.paths.is_empty() {
            // Permission files are allowed only if a pattern names them.
            !action
                .paths
                .iter()
                .any(|target| patterns::is_permission_directory(&target.given_path))
        } else {
            !action.paths.is_empty()
                && action.paths.iter().all(|target| {
                    let real = target.real_path.as_ref();
                    real.is_some_and(|real| {
                        self.paths.iter().any(|path| path.matches_to_allow(real))
                    })
                })
        };
        let commands = if self.commands.is_empty() {
            // A rule about files does not cover commands, unless it names their kind.
            !action.runs_commands() || !self.kinds.is_empty()
        } else {
            let named = |command| {
                self.commands
                    .iter()
                    .any(|pattern| pattern.matches_to_allow(command))
            };
            action.is_in_roots
                && !action.has_unreadable_command
                && !action.commands.is_empty()
                && action.commands.iter().all(named)
        };
        kind && paths && commands
    }

    /// Returns `true` if an "ask" or "deny" rule matches any part of the action.
    fn matches_to_deny(&self, action: &Action) -> bool {
        let kind = self.kinds.is_empty() || action.kinds().any(|kind| self.kinds.contains(kind));
        let path = |target: &ActionPath| {
            let mut ways = std::iter::once(&target.given_path).chain(&target.real_path);
            ways.any(|way| self.paths.iter().any(|path| path.matches_to_deny(way)))
        };
        let command = |command: &CommandLine| match command.parts() {
            // A command that is too long to examine is assumed to match.
            None => true,
            Some(parts) => parts.iter().any(|part| {
                self.commands
                    .iter()
                    .any(|pattern| pattern.matches_to_deny(part))
            }),
        };
        kind && (self.paths.is_empty() || action.paths.iter().any(path))
            && (self.commands.is_empty() || action.commands.iter().any(command))
    }

    /// Returns `true` if the rule has command patterns and one of the action's commands could not be parsed.
    fn could_match_unreadable_command(&self, action: &Action) -> bool {
        !self.commands.is_empty() && action.has_unreadable_command
    }
}

/// The source of a decision: a policy, a rule or an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecisionSource {
    /// The policy, because no rule or answer matched.
    Policy(Policy),
    /// A rule in a permissions file.
    Rule {
        /// The permissions file that contains the rule.
        file: PathBuf,
        /// The number of the rule in the file, counting from 1.
        number: usize,
        /// The text of the rule, to show to the user.
        rule: String,
    },
    /// The default in a permissions file.
    Default {
        /// The permissions file that sets the default.
        file: PathBuf,
    },
    /// An answer that the user gave earlier.
    Remembered {
        /// The answer's number in the project.
        number: u64,
    },
    /// Remembered answers that could not be read. Contains the reason.
    UnreadableAnswers(String),
}

impl fmt::Display for DecisionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(policy) => write!(f, "the policy `{policy}`"),
            Self::Rule { file, number, .. } => write!(f, "{}, rule {number}", file.display()),
            Self::Default { file } => write!(f, "the default in {}", file.display()),
            Self::Remembered { number } => {
                write!(f, "your remembered answer {number}")
            }
            Self::UnreadableAnswers(why) => {
                write!(f, "unreadable remembered answers ({why})")
            }
        }
    }
}

/// A note for the user about a permission decision.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PermissionNote {
    /// An action was rejected without asking the user.
    Rejected {
        /// The rule or policy that rejected the action.
        by: DecisionSource,
        /// A description of the action for the user. It may quote the agent.
        what: String,
    },
    /// An action was rejected because there is no user to ask.
    NoUserToAsk {
        /// A description of the action for the user. It may quote the agent.
        what: String,
        /// The rule that requires asking, or `None` if the policy does.
        by: Option<DecisionSource>,
    },
    /// An action would have been allowed, but the agent offers no option that allows it.
    NoAllowOption {
        /// A description of the action for the user. It may quote the agent.
        what: String,
    },
    /// A request was rejected because it was malformed, so any answer would have been ambiguous.
    Malformed {
        /// A description of the request for the user. It may quote the agent.
        what: String,
        /// The reason why the request is malformed.
        why: String,
    },
    /// An answer was remembered for the project.
    Remembered(RememberedAnswer),
    /// An answer could not be remembered.
    NotRemembered {
        /// The reason why the answer could not be remembered.
        why: String,
    },
}

impl fmt::Display for PermissionNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected { by, what } => write!(f, "rejected by {by}: {what}"),
            Self::NoUserToAsk { what, by: Some(by) } => {
                write!(
                    f,
                    "rejected: {by} requires asking, but there is no one to ask: {what}"
                )
            }
            Self::NoUserToAsk { what, by: None } => {
                write!(f, "rejected, because there is no one to ask: {what}")
            }
            Self::NoAllowOption { what } => {
                write!(f, "the agent offers no option that allows this: {what}")
            }
            Self::Malformed { what, why } => {
                write!(f, "rejected a malformed permission request ({why}): {what}")
            }
            Self::Remembered(answer) => {
                write!(
                    f,
                    "remembered for this project: {answer} (number {})",
                    answer.number
                )
            }
            Self::NotRemembered { why } => write!(f, "not remembered: {why}"),
        }
    }
}
