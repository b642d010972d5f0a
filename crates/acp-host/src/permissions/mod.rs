//! What an agent may do: who says what, and whose word counts.
//!
//! The stricter wins. Within what the user says, by rules and by answers that are remembered, the strictest
//! of all that match counts, and without one the policy. What the project says is laid over it and can only
//! make it stricter.

mod action;
mod always_effect;
mod command;
mod command_parts;
mod gate;
mod grants;
mod patterns;
mod policy;
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
pub(crate) use self::gate::PermissionGate;
pub(crate) use self::grants::{FileEdit, Grants};
pub(crate) use self::policy::answer;
pub use self::policy::{ParsePolicyError, Policy, PolicyDecision, Prompter};
pub use self::project::{Project, ProjectFile};
pub use self::remembered::{
    RememberedAnswer, RememberedAnswers, RememberedAnswersError, RememberedSubject,
};
pub use self::rules::{PermissionRule, PermissionRules, RuleEffect, RulesError};

/// All that says what the agent of a connection may do.
#[derive(Debug, Clone)]
pub struct Permissions {
    policy: Policy,
    /// The policy gives way to the default of the user's rules.
    is_policy_default: bool,
    user: Option<PermissionRules>,
    project: Vec<PermissionRules>,
    remembered: Option<RememberedAnswers>,
}

impl From<Policy> for Permissions {
    /// The policy alone.
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
    /// The policy counts only where the user's rules have no default: nobody has chosen it.
    #[must_use]
    pub fn default_policy(policy: Policy) -> Self {
        Self {
            is_policy_default: true,
            ..policy.into()
        }
    }

    /// Adds the user's own rules, which allow and forbid.
    #[must_use]
    pub fn user(mut self, rules: PermissionRules) -> Self {
        self.user = Some(rules);
        self
    }

    /// Adds the project's rules, which can only forbid.
    #[must_use]
    pub fn project(mut self, rules: impl IntoIterator<Item = PermissionRules>) -> Self {
        self.project.extend(rules);
        self
    }

    /// Adds what the user has said for always, and remembers there what they will say.
    #[must_use]
    pub fn remembered(mut self, remembered: RememberedAnswers) -> Self {
        self.remembered = Some(remembered);
        self
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Whether the policy counts only where the user's rules have no default.
    #[must_use]
    pub fn is_policy_default(&self) -> bool {
        self.is_policy_default
    }

    /// Whether anything at all may be read.
    pub(crate) fn may_read(&self) -> bool {
        !self.forbids_all()
    }

    /// Whether anything at all may be changed or run, maybe after a question.
    pub(crate) fn may_change(&self) -> bool {
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

    /// What is said to the action. Looks at files: where paths lead, and what is remembered.
    #[must_use]
    pub fn decide(&self, action: &Action) -> PermissionDecision {
        let mut verdict = self.user_decision(action);
        for rules in &self.project {
            verdict = verdict.stricter(
                rules_decision(rules, action)
                    .unwrap_or_else(|| PermissionDecision::rules_default(rules)),
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
            .and_then(|rules| rules_decision(rules, action));
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
                // There may be a no in it.
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
                PermissionDecision::rules_default(rules)
            }
            // Whatever the agent calls it, the strictest of what it can be seen to be counts.
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

    /// Remembers what a person has said for always. `None` if it is not remembered, since it cannot be said
    /// exactly what it is about, or since there is no place for it.
    pub(crate) fn remember(
        &self,
        action: &Action,
        allowed: bool,
    ) -> Option<Result<Vec<RememberedAnswer>, RememberedAnswersError>> {
        let remembered = self.remembered.as_ref()?;
        remembered::can_be_remembered(action).then(|| remembered.remember(action, allowed))
    }

    /// Whether what a person says for always about this is remembered.
    pub(crate) fn can_remember(&self, action: &Action) -> bool {
        self.remembered.is_some() && remembered::can_be_remembered(action)
    }
}

/// What is said to an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionDecision {
    /// It may be done.
    Allow,
    /// A person decides, and what they said before counts.
    Ask,
    /// A person decides each time, because this rule says so.
    AskEachTime(DecisionSource),
    /// No.
    Deny(DecisionSource),
}

impl PermissionDecision {
    /// The stricter of both.
    fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (deny @ Self::Deny(_), _) | (_, deny @ Self::Deny(_)) => deny,
            (ask @ Self::AskEachTime(_), _) | (_, ask @ Self::AskEachTime(_)) => ask,
            (Self::Ask, _) | (_, Self::Ask) => Self::Ask,
            (Self::Allow, Self::Allow) => Self::Allow,
        }
    }

    /// What the rules say to what none of them matches.
    fn rules_default(rules: &PermissionRules) -> Self {
        match rules.default_effect() {
            None | Some(RuleEffect::Allow) => Self::Allow,
            Some(RuleEffect::Ask) => Self::Ask,
            Some(RuleEffect::Deny) => Self::Deny(DecisionSource::Default {
                file: rules.file().to_owned(),
            }),
        }
    }
}

/// What the strictest of the rules says that match, if any does.
fn rules_decision(rules: &PermissionRules, action: &Action) -> Option<PermissionDecision> {
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
            // The person can see what it is.
            _ if !rule.matches_to_deny(action) => match rule.may_match_to_deny(action) {
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
    /// Whether all of the action is what the rule names.
    fn matches_to_allow(&self, action: &Action) -> bool {
        let kind = self.kinds.is_empty() || action.kinds().all(|kind| self.kinds.contains(kind));
        let paths = if self.paths.is_empty() {
            // What says what an agent may do is not allowed by the way.
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
            // A rule about files does not speak of commands, unless it names their kind.
            !action.executes() || !self.kinds.is_empty()
        } else {
            let named = |command| {
                self.commands
                    .iter()
                    .any(|pattern| pattern.matches_to_allow(command))
            };
            action.is_in_home
                && !action.has_unreadable_command
                && !action.commands.is_empty()
                && action.commands.iter().all(named)
        };
        kind && paths && commands
    }

    /// Whether any of the action is what the rule names.
    fn matches_to_deny(&self, action: &Action) -> bool {
        let kind = self.kinds.is_empty() || action.kinds().any(|kind| self.kinds.contains(kind));
        let path = |target: &ActionPath| {
            let mut ways = std::iter::once(&target.given_path).chain(&target.real_path);
            ways.any(|way| self.paths.iter().any(|path| path.matches_to_deny(way)))
        };
        let command = |command: &CommandLine| match command.parts() {
            // What cannot be looked at is taken for the worst.
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

    /// Whether it is about commands, and the action has one that cannot be understood.
    fn may_match_to_deny(&self, action: &Action) -> bool {
        !self.commands.is_empty() && action.has_unreadable_command
    }
}

/// Who has said something.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecisionSource {
    /// The policy.
    Policy(Policy),
    /// A rule.
    Rule {
        /// Its file.
        file: PathBuf,
        /// Its number in it, counted from 1.
        number: usize,
        /// The rule, for people.
        rule: String,
    },
    /// The default of a file of rules.
    Default {
        /// The file.
        file: PathBuf,
    },
    /// An answer that is remembered.
    Remembered {
        /// Its number.
        number: u64,
    },
    /// What is remembered, which cannot be read, and why.
    UnreadableAnswers(String),
}

impl fmt::Display for DecisionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(policy) => write!(f, "the policy `{policy}`"),
            Self::Rule { file, number, .. } => write!(f, "{}, rule {number}", file.display()),
            Self::Default { file } => write!(f, "the default of {}", file.display()),
            Self::Remembered { number } => {
                write!(f, "your remembered answer {number}")
            }
            Self::UnreadableAnswers(why) => {
                write!(f, "remembered answers that cannot be read ({why})")
            }
        }
    }
}

/// What a person is to be told of permissions, beside what they are asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PermissionNote {
    /// Something was rejected without a question.
    Rejected {
        /// By whom.
        by: DecisionSource,
        /// What, for people: maybe the agent's own words.
        what: String,
    },
    /// Something was rejected because there is nobody to ask.
    NoUserToAsk {
        /// What, for people: maybe the agent's own words.
        what: String,
        /// Whose question it would have been; the policy's, if absent.
        by: Option<DecisionSource>,
    },
    /// Something would have been allowed, and the agent offers no answer that says so.
    NoAllowOption {
        /// What, for people: maybe the agent's own words.
        what: String,
    },
    /// A request was refused because it is malformed: nobody could say what an answer to it means.
    Malformed {
        /// What, for people: maybe the agent's own words.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// An answer is remembered for the project.
    Remembered(RememberedAnswer),
    /// An answer was to be remembered, and is not.
    NotRemembered {
        /// Why.
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
                    "rejected: {by} requires asking, and there is no one to ask: {what}"
                )
            }
            Self::NoUserToAsk { what, by: None } => {
                write!(f, "rejected: there is no one to ask: {what}")
            }
            Self::NoAllowOption { what } => {
                write!(f, "the agent offers no option that allows this: {what}")
            }
            Self::Malformed { what, why } => {
                write!(f, "refused a malformed permission request, {why}: {what}")
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
