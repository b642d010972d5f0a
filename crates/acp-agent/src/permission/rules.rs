//! What may be done without a question: as the session's mode has it, and the rules of the user and of the
//! project, which are the same that clients read (`docs/decisions/0009-permissions.md`).

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

/// Where the user's rules and answers are. The project's rules (`.acp/permissions.toml`) are read in any case.
///
/// They are read anew for each tool call, so that what is changed there holds at once. What cannot be read
/// allows nothing: there may be a no in it.
#[derive(Debug, Clone, Default)]
pub struct RuleFiles {
    user: Option<PathBuf>,
    answers: Option<PathBuf>,
    is_enforced_by_client: bool,
    policy: Option<PolicyCeiling>,
}

/// What may be done at most, in every mode.
#[derive(Debug, Clone, Copy)]
struct PolicyCeiling {
    policy: Policy,
    /// The default of the user's rules takes its place.
    is_default: bool,
}

impl PolicyCeiling {
    /// Nothing at all, not even reading.
    fn rejects_all(self) -> bool {
        self.policy == Policy::None && !self.is_default
    }

    /// What it forbids; `None` for a policy that leaves all to the mode and to the rules.
    fn to_permissions(self) -> Option<Permissions> {
        match self.policy {
            Policy::Ask | Policy::All => None,
            policy if self.is_default => Some(Permissions::default_policy(policy)),
            policy => Some(policy.into()),
        }
    }
}

/// What mode and rules say to a deed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ActionDecision {
    Allow,
    Ask(PermissionQuestion),
    /// And why, for people.
    Deny(String),
}

/// What is said to a call.
pub(crate) enum CallDecision {
    Allow(Permit),
    /// And how, about what.
    Ask(ToolAction, PermissionQuestion),
    /// And why, for people.
    Deny(String),
}

/// What kind of question it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PermissionQuestion {
    /// A rule wants it asked each time, so that "always" is no answer.
    pub(crate) asks_each_time: bool,
    /// It is about a file outside of the session's directories, or one that other programs obey.
    pub(crate) is_special: bool,
    /// It is refused, for this reason, whatever is answered: the client is asked so that it tells the person.
    pub(crate) rejection: Option<String>,
}

impl RuleFiles {
    /// None of the user's.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The user's rules are in this file, if it is there.
    #[must_use]
    pub fn user(mut self, file: impl Into<PathBuf>) -> Self {
        self.user = Some(file.into());
        self
    }

    /// What the user has answered with "always" in a client is in files in this directory, one for each
    /// project. Nothing is added to them.
    #[must_use]
    pub fn answers(mut self, directory: impl Into<PathBuf>) -> Self {
        self.answers = Some(directory.into());
        self
    }

    /// What may be done at most, in every mode: nothing with [`Policy::None`]; with [`Policy::Reads`] only looking,
    /// and what a rule of the user's allows. [`Policy::Ask`] and [`Policy::All`] leave it to the mode and the rules.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        let gives_way = false;
        self.policy = Some(PolicyCeiling {
            policy,
            is_default: gives_way,
        });
        self
    }

    /// The same, but the default of the user's rules takes the policy's place if they have one.
    #[must_use]
    pub fn policy_by_default(mut self, policy: Policy) -> Self {
        let gives_way = true;
        self.policy = Some(PolicyCeiling {
            policy,
            is_default: gives_way,
        });
        self
    }

    /// The client goes by all of these rules itself, in what it is asked and in what is done through it, and tells
    /// the person which rule has refused something. So it is asked also about what is refused here.
    #[must_use]
    pub fn enforced_by_client(mut self) -> Self {
        self.is_enforced_by_client = true;
        self
    }

    /// What is said to the deed in this session. What has none is what nobody forbids.
    pub(crate) async fn decide(
        &self,
        workspace: &Workspace,
        deed: Option<ToolAction>,
    ) -> Result<CallDecision, ToolFailure> {
        let Some(deed) = deed else {
            return Ok(CallDecision::Allow(Permit::new(None)));
        };
        let judged = deed.clone();
        let session = PermissionContext::of(workspace);
        let files = self.clone();
        let judged = tokio::task::spawn_blocking(move || files.decide_action(&session, &judged));
        let judged = workspace.unless_cancelled(judged).await?;
        let judged = judged
            .map_err(|e| ToolFailure::failed(format!("the rules could not be applied: {e}")))?;
        Ok(match judged {
            ActionDecision::Allow => CallDecision::Allow(Permit::new(Some(deed))),
            ActionDecision::Ask(question) => CallDecision::Ask(deed, question),
            ActionDecision::Deny(why) => CallDecision::Deny(why),
        })
    }

    /// What says which files may be looked at; `None` if nothing restricts that. For threads that may block.
    pub(crate) fn read_permissions(
        &self,
        session: &PermissionContext,
    ) -> Result<Option<Permissions>, String> {
        let said = self.read(session).map_err(|why| unreadable_message(&why))?;
        let any = said.user.is_some() || !said.project.is_empty() || said.remembered.is_some();
        let policy = said.policy.clone();
        let restricts = any || policy.is_some();
        Ok(restricts.then(|| said.with_rules(policy.unwrap_or_else(|| Policy::All.into()))))
    }

    /// Whether nothing of the project may be looked at.
    pub(crate) fn forbids_reading(&self) -> bool {
        self.policy.is_some_and(PolicyCeiling::rejects_all)
    }

    fn decide_action(&self, session: &PermissionContext, deed: &ToolAction) -> ActionDecision {
        let judged = match self.read(session) {
            Ok(said) => said.decide_action(session, deed),
            Err(why) => ActionDecision::Deny(unreadable_message(&why)),
        };
        match judged {
            ActionDecision::Deny(why)
                if self.is_enforced_by_client && session.client_reports_refusals(deed) =>
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

    fn read(&self, session: &PermissionContext) -> Result<RuleSet, String> {
        let project = match &session.tree {
            Some(_) => Some(Project::of(&session.cwd).map_err(|e| e.to_string())?),
            // Its files are not here, and so are no rules of its own.
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
            Some(project) => project.rules().map_err(|e| e.to_string())?,
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

/// Whether rules let a file's name be shown: where it must not be read, not even that it is there is told.
pub(crate) fn can_show_name(may: Option<&Permissions>, path: &Path, roots: &Roots) -> bool {
    may.is_none_or(|may| {
        let action = Action::for_file(ToolKind::Read, &path.to_string_lossy(), roots);
        !matches!(may.decide(&action), PermissionDecision::Deny(_))
    })
}

/// That something is left out, for the model and the person; nothing, if nothing is.
pub(crate) fn left_out_note(what: &str, count: usize) -> Option<String> {
    (count > 0).then(|| format!("{what} left out, as rules want it: {count}."))
}

fn unreadable_message(why: &str) -> String {
    format!("Rejected, since the rules of what may be done cannot be read: {why}")
}

/// All that is said by rules.
#[derive(Default)]
struct RuleSet {
    user: Option<PermissionRules>,
    project: Vec<PermissionRules>,
    remembered: Option<RememberedAnswers>,
    /// What may be done at most.
    policy: Option<Permissions>,
}

impl RuleSet {
    /// With a policy for what none of them decides.
    fn with_rules(&self, mut permissions: Permissions) -> Permissions {
        if let Some(rules) = &self.user {
            permissions = permissions.user(rules.clone());
        }
        if let Some(remembered) = &self.remembered {
            permissions = permissions.remembered(remembered.clone());
        }
        permissions.project(self.project.iter().cloned())
    }

    fn decide_action(&self, session: &PermissionContext, deed: &ToolAction) -> ActionDecision {
        let judged = session.with_roots(|roots| self.weigh(session, roots, deed));
        judged
            .unwrap_or_else(|| ActionDecision::Deny(unreadable_message("there are no directories")))
    }

    fn weigh(
        &self,
        session: &PermissionContext,
        roots: &Roots,
        deed: &ToolAction,
    ) -> ActionDecision {
        let file = |kind, path: &str| Action::for_file(kind, path, roots);
        let mut special = false;
        // And whether the mode allows it, and whether it only looks.
        let (action, allowed, looks) = match deed {
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
            ToolAction::Other(kind) => (Action::of_kind(kind.clone()), false, false),
        };
        let refused = |by: DecisionSource| {
            ActionDecision::Deny(match by {
                DecisionSource::Policy(policy) => format!("Rejected by `--allow {policy}`."),
                by => format!("Rejected by {by}."),
            })
        };
        if let Some(policy) = &self.policy
            && let PermissionDecision::Deny(by) = self.with_rules(policy.clone()).decide(&action)
        {
            return refused(by);
        }
        // What must not be read is not changed either: an edit that fails says what is there.
        if let ToolAction::Change(path) = deed {
            let read = self.with_rules(Policy::All.into());
            if let PermissionDecision::Deny(by) = read.decide(&file(ToolKind::Read, path)) {
                return refused(by);
            }
        }
        // What the mode allows is allowed, unless a rule forbids it. All else is asked, unless a rule allows it. Only
        // in code mode: the others ask also for what rules would allow.
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

    fn stand(files: &RuleFiles, session: &PermissionContext, deed: &ToolAction) -> ActionDecision {
        files.decide_action(session, deed)
    }

    const ASKED: ActionDecision = ActionDecision::Ask(PermissionQuestion {
        asks_each_time: false,
        is_special: false,
        rejection: None,
    });
    const ASKED_EACH_TIME: ActionDecision = ActionDecision::Ask(PermissionQuestion {
        asks_each_time: true,
        is_special: false,
        rejection: None,
    });
    const SPECIAL: ActionDecision = ActionDecision::Ask(PermissionQuestion {
        asks_each_time: false,
        is_special: true,
        rejection: None,
    });

    #[test]
    fn code_mode_changes_ordinary_files_and_asks_for_all_else() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path();
        for directory in [".git/hooks", "bare/objects", "bare/refs"] {
            std::fs::create_dir_all(cwd.join(directory)).unwrap();
        }
        let change = |path: &str| {
            let deed = ToolAction::Change(cwd.join(path).to_str().unwrap().to_owned());
            stand(&RuleFiles::new(), &session(Mode::Code, cwd), &deed)
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
            assert_eq!(change(special), SPECIAL, "{special}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(".git/hooks", cwd.join("hooks")).unwrap();
            assert_eq!(change("hooks/pre-commit"), SPECIAL);
        }
        let run = ToolAction::Run("ls".to_owned());
        let mut session = session(Mode::Code, cwd);
        assert_eq!(stand(&RuleFiles::new(), &session, &run), ASKED);
        session.is_sandboxed = true;
        assert_eq!(
            stand(&RuleFiles::new(), &session, &run),
            ActionDecision::Allow
        );
    }

    #[test]
    fn rules_allow_in_code_mode_and_forbid_in_all() {
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
        let files = RuleFiles::new().user(&file);
        let run =
            |mode, line: &str| stand(&files, &session(mode, &cwd), &ToolAction::Run(line.into()));
        assert_eq!(run(Mode::Code, "cargo test --lib"), ActionDecision::Allow);
        assert_eq!(run(Mode::Ask, "cargo test --lib"), ASKED);
        assert_eq!(run(Mode::Code, "cargo test; rm x"), ASKED);
        assert_eq!(run(Mode::Code, "cargo test --release"), ASKED_EACH_TIME);
        for mode in Mode::ALL {
            let ActionDecision::Deny(why) = run(mode, "cd x && git push -f") else {
                panic!("{mode}")
            };
            assert!(why.contains("permissions.toml, rule 2"), "{why}");
        }
        // What must not be read is not changed either.
        let path = cwd.join("secret").to_str().unwrap().to_owned();
        for deed in [ToolAction::Read(path.clone()), ToolAction::Change(path)] {
            let stands = stand(&files, &session(Mode::Code, &cwd), &deed);
            assert!(matches!(stands, ActionDecision::Deny(_)), "{deed:?}");
        }
        // The client is asked so that it tells the person, and its answer changes nothing.
        let client = files.clone().enforced_by_client();
        let session = session(Mode::Code, &cwd);
        let push = ToolAction::Run("git push".to_owned());
        let ActionDecision::Ask(question) = stand(&client, &session, &push) else {
            panic!("it is not asked about");
        };
        assert!(question.rejection.is_some());
        std::fs::write(&file, "rule = 3").unwrap();
        assert!(files.read(&session).is_err());
    }

    #[test]
    fn a_policy_binds_every_mode() {
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
            let stand = |files: &RuleFiles, deed: &ToolAction| files.decide_action(&session, deed);
            let refuses = |files: &RuleFiles, deed: &ToolAction| {
                let why = match stand(files, deed) {
                    ActionDecision::Deny(why) => why,
                    other => panic!("{mode}: {deed:?}: {other:?}"),
                };
                assert!(why.starts_with("Rejected by `--allow "), "{why}");
            };
            let none = RuleFiles::new().user(&file).policy(Policy::None);
            for deed in looks.iter().chain(&does).chain([&ls]) {
                refuses(&none, deed);
            }
            let reads = RuleFiles::new().user(&file).policy(Policy::Reads);
            does.iter().for_each(|deed| refuses(&reads, deed));
            for deed in &looks {
                assert_eq!(stand(&reads, deed), ActionDecision::Allow);
            }
            // A rule allows it, which leaves it to the mode.
            let free = RuleFiles::new().user(&file);
            assert_eq!(stand(&reads, &ls), stand(&free, &ls));
            for policy in [Policy::Ask, Policy::All] {
                let files = free.clone().policy(policy);
                for deed in looks.iter().chain(&does) {
                    assert_eq!(
                        stand(&files, deed),
                        stand(&free, deed),
                        "{policy}: {deed:?}"
                    );
                }
            }
            // What nobody has typed gives way to the user's default.
            let lenient = dir.path().join("lenient.toml");
            std::fs::write(&lenient, "default = \"ask\"\n").unwrap();
            let files = RuleFiles::new().user(&lenient);
            let by_default = files.clone().policy_by_default(Policy::Reads);
            for deed in &does {
                assert_eq!(stand(&by_default, deed), stand(&files, deed));
                refuses(&files.clone().policy(Policy::Reads), deed);
            }
        }
    }
}
