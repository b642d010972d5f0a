//! Decides what is allowed without asking, based on the session's mode and the rules of the user and the project.
//! Clients read the same rules (`docs/decisions/0009-permissions.md`).

use std::path::{Path, PathBuf};

use acp::v1::ToolKind;
use acp_host::{
    Action, DecisionSource, PermissionDecision, PermissionRules, Permissions, Policy, Project,
    RememberedAnswers, Roots,
};

use super::action::ToolAction;
use super::context::PermissionContext;
use super::permit::Permit;
use crate::mode::Mode;
use crate::workspace::Workspace;
use crate::workspace::tool_failure::ToolFailure;

/// The files with the user's rules and remembered answers. The project's rules (`.acp/permissions.toml`) always apply.
///
/// The files are read again for each tool call, so changes take effect at once. If a file cannot be read, everything is
/// denied, because the file might have denied it.
#[derive(Debug, Clone, Default)]
pub struct RuleFiles {
    user: Option<PathBuf>,
    answers: Option<PathBuf>,
    is_enforced_by_client: bool,
    policy: Option<PolicyCeiling>,
}

/// The upper limit on what is allowed in every mode.
#[derive(Debug, Clone, Copy)]
struct PolicyCeiling {
    policy: Policy,
    /// Whether a default policy in the user's rules replaces this one.
    is_default: bool,
}

impl PolicyCeiling {
    /// Returns `true` if nothing is allowed, not even reading.
    fn rejects_all(self) -> bool {
        self.policy == Policy::None && !self.is_default
    }

    /// Returns permissions with this policy, or `None` if the policy leaves all decisions to the mode and the rules.
    fn to_permissions(self) -> Option<Permissions> {
        match self.policy {
            Policy::Ask | Policy::All => None,
            policy if self.is_default => Some(Permissions::default_policy(policy)),
            policy => Some(policy.into()),
        }
    }
}

/// The decision that the mode and the rules make about an action.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ActionDecision {
    Allow,
    Ask(PermissionQuestion),
    /// The action is denied. Contains the reason to show to the user.
    Deny(String),
}

/// The decision about a tool call.
pub(crate) enum CallDecision {
    Allow(Permit),
    /// Ask the user about this action.
    Ask(ToolAction, PermissionQuestion),
    /// Deny the call. Contains the reason to show to the user.
    Deny(String),
}

/// The properties of a permission request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PermissionQuestion {
    /// Whether a rule requires asking each time. If so, "always" is not offered.
    pub(crate) asks_each_time: bool,
    /// Whether the action changes a file that is outside the session's directories or that other programs run or trust.
    pub(crate) is_special: bool,
    /// Why the action is rejected regardless of the user's answer. The request then only informs the user.
    pub(crate) rejection: Option<String>,
}

impl RuleFiles {
    /// Creates an empty set of rule files.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the path of the user's rules file. The file may be missing.
    #[must_use]
    pub fn user_rules(mut self, file: impl Into<PathBuf>) -> Self {
        self.user = Some(file.into());
        self
    }

    /// Sets the directory that contains the user's remembered answers, one file per project. The agent only reads them.
    #[must_use]
    pub fn answers(mut self, directory: impl Into<PathBuf>) -> Self {
        self.answers = Some(directory.into());
        self
    }

    /// Sets an upper limit on what is allowed in any mode. [`Policy::None`] allows nothing. [`Policy::Reads`] allows
    /// only reading and what the user's rules allow. [`Policy::Ask`] and [`Policy::All`] leave the decision to the mode
    /// and the rules.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        let gives_way = false;
        self.policy = Some(PolicyCeiling {
            policy,
            is_default: gives_way,
        });
        self
    }

    /// Sets an upper limit like [`policy`](Self::policy). If the user's rules contain a default policy, it replaces
    /// this limit.
    #[must_use]
    pub fn default_policy(mut self, policy: Policy) -> Self {
        let gives_way = true;
        self.policy = Some(PolicyCeiling {
            policy,
            is_default: gives_way,
        });
        self
    }

    /// Declares that the client enforces all of these rules itself, both for permission requests and for actions that
    /// go through the client. The client also shows the user which rule denied an action, so the agent sends permission
    /// requests even for actions that it denies.
    #[must_use]
    pub fn enforced_by_client(mut self) -> Self {
        self.is_enforced_by_client = true;
        self
    }

    /// Decides whether an action is allowed in this session. A call without an action is always allowed.
    pub(crate) async fn decide(
        &self,
        workspace: &Workspace,
        tool_action: Option<ToolAction>,
    ) -> Result<CallDecision, ToolFailure> {
        let Some(tool_action) = tool_action else {
            return Ok(CallDecision::Allow(Permit::new(None)));
        };
        let judged = tool_action.clone();
        let session = PermissionContext::from_workspace(workspace);
        let files = self.clone();
        let judged = tokio::task::spawn_blocking(move || files.decide_action(&session, &judged));
        let judged = workspace.run_unless_cancelled(judged).await?;
        let judged = judged
            .map_err(|e| ToolFailure::failed(format!("cannot apply the permission rules: {e}")))?;
        Ok(match judged {
            ActionDecision::Allow => CallDecision::Allow(Permit::new(Some(tool_action))),
            ActionDecision::Ask(question) => CallDecision::Ask(tool_action, question),
            ActionDecision::Deny(why) => CallDecision::Deny(why),
        })
    }

    /// Returns the permissions that restrict which files may be read, or `None` if there are no restrictions. May
    /// block.
    pub(crate) fn read_permissions(
        &self,
        session: &PermissionContext,
    ) -> Result<Option<Permissions>, String> {
        let said = self
            .read_rule_set(session)
            .map_err(|why| unreadable_rules_message(&why))?;
        let any = said.user.is_some() || !said.project.is_empty() || said.remembered.is_some();
        let policy = said.policy.clone();
        let restricts = any || policy.is_some();
        Ok(restricts.then(|| said.with_rules(policy.unwrap_or_else(|| Policy::All.into()))))
    }

    /// Returns `true` if no file of the project may be read.
    pub(crate) fn forbids_reading(&self) -> bool {
        self.policy.is_some_and(PolicyCeiling::rejects_all)
    }

    fn decide_action(
        &self,
        session: &PermissionContext,
        tool_action: &ToolAction,
    ) -> ActionDecision {
        let judged = match self.read_rule_set(session) {
            Ok(said) => said.decide_action(session, tool_action),
            Err(why) => ActionDecision::Deny(unreadable_rules_message(&why)),
        };
        match judged {
            ActionDecision::Deny(why)
                if self.is_enforced_by_client && session.client_reports_rejections(tool_action) =>
            {
                ActionDecision::Ask(PermissionQuestion {
                    asks_each_time: true,
                    is_special: false,
                    rejection: Some(why),
                })
            }
            judged => judged,
        }
    }

    fn read_rule_set(&self, session: &PermissionContext) -> Result<RuleSet, String> {
        let project = match &session.tree {
            Some(_) => Some(Project::find(&session.cwd).map_err(|e| e.to_string())?),
            // The project's files are not accessible here, so no rules of the project apply.
            None => None,
        };
        let root = project
            .as_ref()
            .map_or(Path::new(std::path::MAIN_SEPARATOR_STR), Project::root);
        let user = match &self.user {
            Some(file) => PermissionRules::read(file, root).map_err(|e| e.to_string())?,
            None => None,
        };
        let rules = match &project {
            Some(project) => project.read_rules().map_err(|e| e.to_string())?,
            None => Vec::new(),
        };
        let answers = self.answers.as_ref().filter(|_| project.is_some());
        let remembered = answers.map(|directory| RememberedAnswers::new(directory.clone(), root));
        Ok(RuleSet {
            user,
            project: rules,
            remembered,
            policy: self.policy.and_then(PolicyCeiling::to_permissions),
        })
    }
}

/// Returns `true` if the rules allow a file's name to be shown. If the file may not be read, its name is hidden too.
pub(crate) fn can_show_name(may: Option<&Permissions>, path: &Path, roots: &Roots) -> bool {
    may.is_none_or(|may| {
        let action = Action::for_file(ToolKind::Read, &path.to_string_lossy(), roots);
        !matches!(may.decide(&action), PermissionDecision::Deny(_))
    })
}

/// Returns a note for the model and the user about the number of omitted items, or `None` if nothing was omitted.
pub(crate) fn omission_note(what: &str, count: usize) -> Option<String> {
    (count > 0).then(|| format!("{what} omitted due to permission rules: {count}."))
}

fn unreadable_rules_message(why: &str) -> String {
    format!("Permission denied: cannot read the permission rules: {why}.")
}

/// The combined rules that apply in a session.
#[derive(Default)]
struct RuleSet {
    user: Option<PermissionRules>,
    project: Vec<PermissionRules>,
    remembered: Option<RememberedAnswers>,
    /// The upper limit on what is allowed.
    policy: Option<Permissions>,
}

impl RuleSet {
    /// Combines all rules with the permissions that apply where no rule matches.
    fn with_rules(&self, mut permissions: Permissions) -> Permissions {
        if let Some(rules) = &self.user {
            permissions = permissions.user_rules(rules.clone());
        }
        if let Some(remembered) = &self.remembered {
            permissions = permissions.remembered_answers(remembered.clone());
        }
        permissions.project_rules(self.project.iter().cloned())
    }

    fn decide_action(
        &self,
        session: &PermissionContext,
        tool_action: &ToolAction,
    ) -> ActionDecision {
        let judged = session.with_roots(|roots| self.decide_by_mode(session, roots, tool_action));
        judged.unwrap_or_else(|| {
            ActionDecision::Deny(unreadable_rules_message(
                "cannot open the session's directories",
            ))
        })
    }

    fn decide_by_mode(
        &self,
        session: &PermissionContext,
        roots: &Roots,
        tool_action: &ToolAction,
    ) -> ActionDecision {
        let file = |kind, path: &str| Action::for_file(kind, path, roots);
        let mut special = false;
        // Each row has the action, whether the mode allows it, and whether it only reads.
        let (action, allowed, looks) = match tool_action {
            ToolAction::Read(path) => (file(ToolKind::Read, path), true, true),
            ToolAction::Inspect { kind, path } => (file(kind.clone(), path), true, true),
            ToolAction::Change(path) => {
                special = !session.is_ordinary(Path::new(path));
                (file(ToolKind::Edit, path), !special, false)
            }
            ToolAction::Run(line) => {
                let action = Action::for_command(line, &session.cwd, roots);
                (action, session.is_sandboxed, false)
            }
            ToolAction::Other(kind) => (Action::with_kind(kind.clone()), false, false),
        };
        let refused = |by: DecisionSource| {
            ActionDecision::Deny(match by {
                DecisionSource::Policy(policy) => {
                    format!("Permission denied by `--allow {policy}`.")
                }
                by => format!("Permission denied by {by}."),
            })
        };
        if let Some(policy) = &self.policy
            && let PermissionDecision::Deny(by) = self.with_rules(policy.clone()).decide(&action)
        {
            return refused(by);
        }
        // A file that must not be read must not be changed either, because a failed edit reveals its content.
        if let ToolAction::Change(path) = tool_action {
            let read = self.with_rules(Policy::All.into());
            if let PermissionDecision::Deny(by) = read.decide(&file(ToolKind::Read, path)) {
                return refused(by);
            }
        }
        // Actions that the mode allows are allowed unless a rule denies them. For all others, the user is asked unless
        // a rule allows them. Such a rule counts only in code mode, because the other modes ask anyway.
        let policy = match allowed {
            true => Policy::All.into(),
            false => Permissions::default_policy(Policy::Ask),
        };
        let code = session.mode == Mode::Code;
        let question = |each_time| {
            ActionDecision::Ask(PermissionQuestion {
                asks_each_time: each_time,
                is_special: special,
                rejection: None,
            })
        };
        match self.with_rules(policy).decide(&action) {
            PermissionDecision::Allow if code || looks => ActionDecision::Allow,
            PermissionDecision::Allow | PermissionDecision::Ask => question(false),
            PermissionDecision::AskEachTime { .. } => question(true),
            PermissionDecision::Deny(by) => refused(by),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::workspace::tree::DirectoryTree;

    fn session(mode: Mode, cwd: &Path) -> PermissionContext {
        let roots = Roots::open([cwd.to_owned()]).unwrap();
        PermissionContext {
            mode,
            is_sandboxed: false,
            cwd: cwd.to_owned(),
            tree: Some(Arc::new(DirectoryTree::new(roots))),
            client_lends_reading: false,
        }
    }

    fn decide(
        files: &RuleFiles,
        session: &PermissionContext,
        tool_action: &ToolAction,
    ) -> ActionDecision {
        files.decide_action(session, tool_action)
    }

    const ASK_ONCE_OR_ALWAYS: ActionDecision = ActionDecision::Ask(PermissionQuestion {
        asks_each_time: false,
        is_special: false,
        rejection: None,
    });
    const ASK_EACH_TIME: ActionDecision = ActionDecision::Ask(PermissionQuestion {
        asks_each_time: true,
        is_special: false,
        rejection: None,
    });
    const ASK_FOR_SPECIAL_FILE: ActionDecision = ActionDecision::Ask(PermissionQuestion {
        asks_each_time: false,
        is_special: true,
        rejection: None,
    });

    #[test]
    fn code_mode_allows_ordinary_edits_and_asks_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path();
        for directory in [".git/hooks", "bare/objects", "bare/refs"] {
            std::fs::create_dir_all(cwd.join(directory)).unwrap();
        }
        let change = |path: &str| {
            let tool_action = ToolAction::Change(cwd.join(path).to_str().unwrap().to_owned());
            decide(&RuleFiles::new(), &session(Mode::Code, cwd), &tool_action)
        };
        assert_eq!(change("src/main.rs"), ActionDecision::Allow);
        assert_eq!(change(".github/workflows/ci.yml"), ActionDecision::Allow);
        for special in [
            ".git/hooks/pre-commit",
            ".GIT/config",
            "sub/.vscode/tasks.json",
            ".mcp.json",
            ".cargo/config.toml",
            "bare/HEAD",
            "../x",
        ] {
            assert_eq!(change(special), ASK_FOR_SPECIAL_FILE, "{special}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(".git/hooks", cwd.join("hooks")).unwrap();
            assert_eq!(change("hooks/pre-commit"), ASK_FOR_SPECIAL_FILE);
        }
        let run = ToolAction::Run("ls".to_owned());
        let mut session = session(Mode::Code, cwd);
        assert_eq!(
            decide(&RuleFiles::new(), &session, &run),
            ASK_ONCE_OR_ALWAYS
        );
        session.is_sandboxed = true;
        assert_eq!(
            decide(&RuleFiles::new(), &session, &run),
            ActionDecision::Allow
        );
    }

    #[test]
    fn rules_can_allow_in_code_mode_and_deny_in_every_mode() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().join("project");
        std::fs::create_dir_all(cwd.join(".acp")).unwrap();
        let file = dir.path().join("permissions.toml");
        std::fs::write(
            &file,
            r#"
            [[rule]]
            decision = "allow"
            command = "cargo test*"
            [[rule]]
            decision = "deny"
            command = "git push*"
            [[rule]]
            decision = "ask"
            command = "cargo test --release"
            "#,
        )
        .unwrap();
        std::fs::write(
            cwd.join(".acp/permissions.toml"),
            "[[rule]]\ndecision = \"deny\"\nkind = \"read\"\npath = \"secret\"\n",
        )
        .unwrap();
        let files = RuleFiles::new().user_rules(&file);
        let run =
            |mode, line: &str| decide(&files, &session(mode, &cwd), &ToolAction::Run(line.into()));
        assert_eq!(run(Mode::Code, "cargo test --lib"), ActionDecision::Allow);
        assert_eq!(run(Mode::Ask, "cargo test --lib"), ASK_ONCE_OR_ALWAYS);
        assert_eq!(run(Mode::Code, "cargo test; rm x"), ASK_ONCE_OR_ALWAYS);
        assert_eq!(run(Mode::Code, "cargo test --release"), ASK_EACH_TIME);
        for mode in Mode::ALL {
            let ActionDecision::Deny(why) = run(mode, "cd x && git push -f") else {
                panic!("{mode}")
            };
            assert!(why.contains("permissions.toml, rule 2"), "{why}");
        }
        // A file that must not be read must not be changed either.
        let path = cwd.join("secret").to_str().unwrap().to_owned();
        for tool_action in [ToolAction::Read(path.clone()), ToolAction::Change(path)] {
            let stands = decide(&files, &session(Mode::Code, &cwd), &tool_action);
            assert!(matches!(stands, ActionDecision::Deny(_)), "{tool_action:?}");
        }
        // The client is asked only so that it informs the user. The answer changes nothing.
        let client = files.clone().enforced_by_client();
        let session = session(Mode::Code, &cwd);
        let push = ToolAction::Run("git push".to_owned());
        let ActionDecision::Ask(question) = decide(&client, &session, &push) else {
            panic!("the client was not asked");
        };
        assert!(question.rejection.is_some());
        std::fs::write(&file, "rule = 3").unwrap();
        assert!(files.read_rule_set(&session).is_err());
    }

    #[test]
    fn policy_limits_every_mode() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().join("project");
        std::fs::create_dir(&cwd).unwrap();
        let file = dir.path().join("permissions.toml");
        let rule = "[[rule]]\ndecision = \"allow\"\ncommand = \"ls\"\n";
        std::fs::write(&file, rule).unwrap();
        let path = cwd.join("a").to_str().unwrap().to_owned();
        let look = ToolAction::Inspect {
            kind: ToolKind::Search,
            path: path.clone(),
        };
        let looks = [ToolAction::Read(path.clone()), look];
        let does = [
            ToolAction::Change(path),
            ToolAction::Run("pwd".to_owned()),
            ToolAction::Other(ToolKind::Fetch),
        ];
        let ls = ToolAction::Run("ls".to_owned());
        for mode in Mode::ALL {
            let mut session = session(mode, &cwd);
            session.is_sandboxed = true;
            let stand = |files: &RuleFiles, tool_action: &ToolAction| {
                files.decide_action(&session, tool_action)
            };
            let refuses = |files: &RuleFiles, tool_action: &ToolAction| {
                let why = match stand(files, tool_action) {
                    ActionDecision::Deny(why) => why,
                    other => panic!("{mode}: {tool_action:?}: {other:?}"),
                };
                assert!(why.starts_with("Permission denied by `--allow"), "{why}");
            };
            let none = RuleFiles::new().user_rules(&file).policy(Policy::None);
            for tool_action in looks.iter().chain(&does).chain([&ls]) {
                refuses(&none, tool_action);
            }
            let reads = RuleFiles::new().user_rules(&file).policy(Policy::Reads);
            does.iter()
                .for_each(|tool_action| refuses(&reads, tool_action));
            for tool_action in &looks {
                assert_eq!(stand(&reads, tool_action), ActionDecision::Allow);
            }
            // A rule allows the action, which leaves the decision to the mode.
            let free = RuleFiles::new().user_rules(&file);
            assert_eq!(stand(&reads, &ls), stand(&free, &ls));
            for policy in [Policy::Ask, Policy::All] {
                let files = free.clone().policy(policy);
                for tool_action in looks.iter().chain(&does) {
                    assert_eq!(
                        stand(&files, tool_action),
                        stand(&free, tool_action),
                        "{policy}: {tool_action:?}"
                    );
                }
            }
            // A policy that was not given by the user yields to the default policy in the user's rules.
            let lenient = dir.path().join("lenient.toml");
            std::fs::write(&lenient, "default = \"ask\"\n").unwrap();
            let files = RuleFiles::new().user_rules(&lenient);
            let by_default = files.clone().default_policy(Policy::Reads);
            for tool_action in &does {
                assert_eq!(stand(&by_default, tool_action), stand(&files, tool_action));
                refuses(&files.clone().policy(Policy::Reads), tool_action);
            }
        }
    }
}
