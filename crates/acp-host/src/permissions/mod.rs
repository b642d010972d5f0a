//! What an agent may do: who says what, and whose word counts.
//!
//! The stricter wins. Within what the user says, by rules and by answers that are remembered, the strictest
//! of all that match counts, and without one the policy. What the project says is laid over it and can only
//! make it stricter.

mod action;
mod always;
mod command;
mod gate;
mod grants;
mod matching;
mod parts;
mod policy;
mod project;
mod remembered;
mod rules;
mod shell;
mod wrappers;

use std::fmt;
use std::path::PathBuf;

pub use self::action::Action;
use self::action::Target;
pub use self::always::Always;
use self::command::CommandLine;
pub(crate) use self::gate::Gate;
pub(crate) use self::grants::{FileChange, Grants};
pub(crate) use self::policy::answer;
pub use self::policy::{Decision, ParsePolicyError, Policy, Prompter};
pub use self::project::{Project, ProjectFile};
pub use self::remembered::{Answer, Remembered, RememberedError, Subject};
pub use self::rules::{Effect, Rule, Rules, RulesError};

/// All that says what the agent of a connection may do.
#[derive(Debug, Clone)]
pub struct Permissions {
    policy: Policy,
    /// The policy gives way to the default of the user's rules.
    gives_way: bool,
    user: Option<Rules>,
    project: Vec<Rules>,
    remembered: Option<Remembered>,
}

impl From<Policy> for Permissions {
    /// The policy alone.
    fn from(policy: Policy) -> Self {
        Self {
            policy,
            gives_way: false,
            user: None,
            project: Vec::new(),
            remembered: None,
        }
    }
}

impl Permissions {
    /// The policy counts only where the user's rules have no default: nobody has chosen it.
    #[must_use]
    pub fn policy_by_default(policy: Policy) -> Self {
        Self {
            gives_way: true,
            ..policy.into()
        }
    }

    /// Adds the user's own rules, which allow and forbid.
    #[must_use]
    pub fn user(mut self, rules: Rules) -> Self {
        self.user = Some(rules);
        self
    }

    /// Adds the project's rules, which can only forbid.
    #[must_use]
    pub fn project(mut self, rules: impl IntoIterator<Item = Rules>) -> Self {
        self.project.extend(rules);
        self
    }

    /// Adds what the user has said for always, and remembers there what they will say.
    #[must_use]
    pub fn remembered(mut self, remembered: Remembered) -> Self {
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
    pub fn policy_gives_way(&self) -> bool {
        self.gives_way
    }

    /// Whether anything at all may be read.
    pub(crate) fn may_read(&self) -> bool {
        !self.forbids_all()
    }

    /// Whether anything at all may be changed or run, maybe after a question.
    pub(crate) fn may_change(&self) -> bool {
        let allows = |rules: &Rules| {
            let mut effects = rules.iter().map(Rule::effect).chain(rules.default_effect());
            effects.any(|effect| effect != Effect::Deny)
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
        self.policy == Policy::None && !self.gives_way
    }

    /// What is said to the action. Looks at files: where paths lead, and what is remembered.
    #[must_use]
    pub fn judge(&self, action: &Action) -> Verdict {
        let mut verdict = self.user_says(action);
        for rules in &self.project {
            verdict =
                verdict.and(said(rules, action).unwrap_or_else(|| Verdict::by_default(rules)));
        }
        verdict
    }

    fn user_says(&self, action: &Action) -> Verdict {
        if self.forbids_all() {
            return Verdict::Deny(By::Policy(self.policy));
        }
        let mut verdict = self.user.as_ref().and_then(|rules| said(rules, action));
        if let Some(remembered) = &self.remembered {
            match remembered.answers() {
                Ok(answers) => {
                    if let Some((effect, answer)) = remembered.says(&answers, action) {
                        let by = By::Remembered {
                            number: answer.number,
                        };
                        let also = match effect {
                            Effect::Deny => Verdict::Deny(by),
                            _ => Verdict::Allow,
                        };
                        verdict = Some(match verdict {
                            Some(verdict) => verdict.and(also),
                            None => also,
                        });
                    }
                }
                // There may be a no in it.
                Err(e) => return Verdict::Deny(By::Unreadable(e.to_string())),
            }
        }
        if let Some(verdict) = verdict {
            return verdict;
        }
        match &self.user {
            Some(rules) if self.gives_way && rules.default_effect().is_some() => {
                Verdict::by_default(rules)
            }
            // Whatever the agent calls it, the strictest of what it can be seen to be counts.
            _ => {
                let effects = action.kinds().map(|kind| self.policy.effect(Some(kind)));
                match effects.max().unwrap_or(Effect::Deny) {
                    Effect::Allow => Verdict::Allow,
                    Effect::Ask => Verdict::Ask,
                    Effect::Deny => Verdict::Deny(By::Policy(self.policy)),
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
    ) -> Option<Result<Vec<Answer>, RememberedError>> {
        let remembered = self.remembered.as_ref()?;
        remembered::is_exact(action).then(|| remembered.remember(action, allowed))
    }

    /// Whether what a person says for always about this is remembered.
    pub(crate) fn can_remember(&self, action: &Action) -> bool {
        self.remembered.is_some() && remembered::is_exact(action)
    }
}

/// What is said to an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may be done.
    Allow,
    /// A person decides, and what they said before counts.
    Ask,
    /// A person decides each time, because this rule says so.
    AskEachTime(By),
    /// No.
    Deny(By),
}

impl Verdict {
    /// The stricter of both.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (deny @ Self::Deny(_), _) | (_, deny @ Self::Deny(_)) => deny,
            (ask @ Self::AskEachTime(_), _) | (_, ask @ Self::AskEachTime(_)) => ask,
            (Self::Ask, _) | (_, Self::Ask) => Self::Ask,
            (Self::Allow, Self::Allow) => Self::Allow,
        }
    }

    /// What the rules say to what none of them matches.
    fn by_default(rules: &Rules) -> Self {
        match rules.default_effect() {
            None | Some(Effect::Allow) => Self::Allow,
            Some(Effect::Ask) => Self::Ask,
            Some(Effect::Deny) => Self::Deny(By::Default {
                file: rules.file().to_owned(),
            }),
        }
    }
}

/// What the strictest of the rules says that match, if any does.
fn said(rules: &Rules, action: &Action) -> Option<Verdict> {
    let mut verdict = None;
    for rule in rules.iter() {
        let by = || By::Rule {
            file: rules.file().to_owned(),
            number: rule.number(),
            rule: rule.to_string(),
        };
        let says = match rule.effect() {
            Effect::Allow if rule.allows(action) => Verdict::Allow,
            Effect::Allow => continue,
            // The person can see what it is.
            _ if !rule.catches(action) => match rule.may_catch(action) {
                true => Verdict::AskEachTime(by()),
                false => continue,
            },
            Effect::Ask => Verdict::AskEachTime(by()),
            Effect::Deny => Verdict::Deny(by()),
        };
        verdict = Some(match verdict {
            None => says,
            Some(verdict) => Verdict::and(verdict, says),
        });
    }
    verdict
}

impl Rule {
    /// Whether all of the action is what the rule names.
    fn allows(&self, action: &Action) -> bool {
        let kind = self.kinds.is_empty() || action.kinds().all(|kind| self.kinds.contains(kind));
        let paths = if self.paths.is_empty() {
            // What says what an agent may do is not allowed by the way.
            !action
                .paths
                .iter()
                .any(|target| matching::is_own(&target.given))
        } else {
            !action.paths.is_empty()
                && action.paths.iter().all(|target| {
                    let real = target.real.as_ref();
                    real.is_some_and(|real| self.paths.iter().any(|path| path.allows(real)))
                })
        };
        let commands = if self.commands.is_empty() {
            // A rule about files does not speak of commands, unless it names their kind.
            !action.executes() || !self.kinds.is_empty()
        } else {
            let named = |command| self.commands.iter().any(|pattern| pattern.allows(command));
            action.at_home
                && !action.unreadable_command
                && !action.commands.is_empty()
                && action.commands.iter().all(named)
        };
        kind && paths && commands
    }

    /// Whether any of the action is what the rule names.
    fn catches(&self, action: &Action) -> bool {
        let kind = self.kinds.is_empty() || action.kinds().any(|kind| self.kinds.contains(kind));
        let path = |target: &Target| {
            let mut ways = std::iter::once(&target.given).chain(&target.real);
            ways.any(|way| self.paths.iter().any(|path| path.catches(way)))
        };
        let command = |command: &CommandLine| match command.parts() {
            // What cannot be looked at is taken for the worst.
            None => true,
            Some(parts) => parts
                .iter()
                .any(|part| self.commands.iter().any(|pattern| pattern.catches(part))),
        };
        kind && (self.paths.is_empty() || action.paths.iter().any(path))
            && (self.commands.is_empty() || action.commands.iter().any(command))
    }

    /// Whether it is about commands, and the action has one that cannot be understood.
    fn may_catch(&self, action: &Action) -> bool {
        !self.commands.is_empty() && action.unreadable_command
    }
}

/// Who has said something.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum By {
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
    Unreadable(String),
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(policy) => write!(f, "the policy `{policy}`"),
            Self::Rule { file, number, .. } => write!(f, "{}, rule {number}", file.display()),
            Self::Default { file } => write!(f, "the default of {}", file.display()),
            Self::Remembered { number } => {
                write!(f, "what you said for always (number {number})")
            }
            Self::Unreadable(why) => write!(f, "what is remembered, which cannot be read ({why})"),
        }
    }
}

/// What a person is to be told of permissions, beside what they are asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// Something was rejected without a question.
    Rejected {
        /// By whom.
        by: By,
        /// What, for people: maybe the agent's own words.
        what: String,
    },
    /// Something was rejected because there is nobody to ask.
    NobodyToAsk {
        /// What, for people: maybe the agent's own words.
        what: String,
        /// Whose question it would have been; the policy's, if absent.
        by: Option<By>,
    },
    /// Something would have been allowed, and the agent offers no answer that says so.
    NoYes {
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
    Remembered(Answer),
    /// An answer was to be remembered, and is not.
    NotRemembered {
        /// Why.
        why: String,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected { by, what } => write!(f, "rejected by {by}: {what}"),
            Self::NobodyToAsk { what, by: Some(by) } => {
                write!(
                    f,
                    "rejected, since nobody can be asked, as {by} wants: {what}"
                )
            }
            Self::NobodyToAsk { what, by: None } => {
                write!(f, "rejected, since nobody can be asked: {what}")
            }
            Self::NoYes { what } => write!(f, "the agent offers no yes to choose: {what}"),
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
