//! Tests of rules: how they are parsed, what they match, and which one is decisive.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::common::one_session::OneSession;
use acp::ThreadHandle;
use acp::client::PermissionRequest;
use acp_host::{
    Host, PermissionNote, PermissionRules, Permissions, Policy, Project, Prompter, RuleEffect,
    RulesError,
};
use acp_wire::v1::{
    CreateTerminalRequest, Diff, EnvVariable, PermissionOption, PermissionOptionId,
    PermissionOptionKind, ReadTextFileRequest, RequestPermissionOutcome, ToolCallLocation,
    ToolCallUpdate, ToolKind, WriteTextFileRequest,
};
use serde_json::json;

/// A repository with a few files, and a user who gives the same answer to every question.
struct RulesFixture {
    dir: tempfile::TempDir,
    permissions: Option<Permissions>,
    answer: Option<&'static str>,
    asked: Arc<Mutex<Vec<String>>>,
    notes: Arc<Mutex<Vec<PermissionNote>>>,
}

struct RulesPrompter {
    answer: Option<&'static str>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Prompter for RulesPrompter {
    async fn ask(&self, request: &PermissionRequest) -> Option<PermissionOptionId> {
        self.asked.lock().unwrap().push(request.title.clone());
        self.answer.map(PermissionOptionId::from)
    }

    fn can_ask(&self) -> bool {
        self.answer.is_some()
    }
}

/// The outcome of an action.
#[derive(Debug, PartialEq)]
enum RuleOutcome {
    Allowed,
    Asked,
    Rejected,
}
use RuleOutcome::{Allowed, Asked, Rejected};

impl RulesFixture {
    /// Creates a fixture with a policy, the user's rules and the project's rules.
    fn new(policy: Policy, user: &str, project: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("project");
        for directory in [".git", ".acp", "src"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        for file in ["src/a.rs", "notes", ".env"] {
            std::fs::write(root.join(file), "text").unwrap();
        }
        std::fs::write(dir.path().join("outside"), "text").unwrap();
        std::fs::write(root.join(".acp/permissions.toml"), project).unwrap();
        let bench = Self {
            dir,
            permissions: None,
            answer: Some("no"),
            asked: Arc::default(),
            notes: Arc::default(),
        };
        let brings = Project::find(&bench.root()).unwrap();
        let user = PermissionRules::parse(user, Path::new("user.toml"), brings.root()).unwrap();
        let permissions = Permissions::from(policy);
        let permissions = permissions
            .user_rules(user)
            .project_rules(brings.read_rules().unwrap());
        Self {
            permissions: Some(permissions),
            ..bench
        }
    }

    fn with_user_rules(policy: Policy, rules: &str) -> Self {
        Self::new(policy, rules, "")
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    fn host(&self) -> OneSession<RulesPrompter> {
        let person = RulesPrompter {
            answer: self.answer,
            asked: Arc::clone(&self.asked),
        };
        let permissions = self.permissions.clone().unwrap();
        let notes = Arc::clone(&self.notes);
        let host = Host::new(permissions, person, [self.root()]).unwrap();
        let host = host.on_note(move |note| notes.lock().unwrap().push(note));
        OneSession::new(host, &ThreadHandle::new())
    }

    fn notes(&self) -> String {
        let notes = self.notes.lock().unwrap();
        let notes: Vec<String> = notes.iter().map(ToString::to_string).collect();
        notes.join("\n")
    }

    fn outcome(&self, allowed: bool) -> RuleOutcome {
        let asked = !std::mem::take(&mut *self.asked.lock().unwrap()).is_empty();
        match (asked, allowed) {
            (true, _) => Asked,
            (false, true) => Allowed,
            (false, false) => Rejected,
        }
    }

    /// Makes the agent request permission.
    async fn request_permission(&self, call: ToolCallUpdate) -> RuleOutcome {
        let options = vec![
            PermissionOption::new("always", "Always", PermissionOptionKind::AllowAlways),
            PermissionOption::new("yes", "Yes", PermissionOptionKind::AllowOnce),
            PermissionOption::new("no", "No", PermissionOptionKind::RejectOnce),
        ];
        let request = PermissionRequest::new("s", &call, options, ThreadHandle::new());
        let outcome = self.host().request_permission(&request).await.unwrap();
        // Never more than was asked for.
        assert_ne!(outcome, RequestPermissionOutcome::selected("always"));
        self.outcome(outcome == RequestPermissionOutcome::selected("yes"))
    }

    async fn run_command(&self, line: &str) -> RuleOutcome {
        let call = ToolCallUpdate::new("c").kind(ToolKind::Execute);
        self.request_permission(call.raw_input(json!({ "command": line })))
            .await
    }

    async fn edit_file(&self, path: impl AsRef<Path>) -> RuleOutcome {
        let path = self.root().join(path);
        let diff = Diff::new(path.to_str().unwrap(), "new");
        let call = ToolCallUpdate::new("c").kind(ToolKind::Edit);
        self.request_permission(call.content(vec![diff.into()]))
            .await
    }

    /// Makes the agent write a file without asking.
    async fn write_file(&self, path: impl AsRef<Path>) -> RuleOutcome {
        let path = self.root().join(path);
        let request = WriteTextFileRequest::new("s", path.to_str().unwrap(), "new");
        let done = self.host().write(request).await;
        self.outcome(done.is_ok())
    }

    async fn read_file(&self, path: impl AsRef<Path>) -> RuleOutcome {
        let path = self.root().join(path);
        let request = ReadTextFileRequest::new("s", path.to_str().unwrap());
        let done = self.host().read(request).await;
        self.outcome(done.is_ok())
    }

    async fn run_argument_list(&self, words: &[&str]) -> RuleOutcome {
        let args: Vec<String> = words[1..].iter().map(|&word| word.to_owned()).collect();
        self.create_terminal(CreateTerminalRequest::new("s", words[0]).args(args))
            .await
    }

    async fn create_terminal(&self, request: CreateTerminalRequest) -> RuleOutcome {
        let done = self.host().create(request).await;
        self.outcome(done.is_ok())
    }
}

#[tokio::test]
async fn strictest_user_rule_wins_and_the_policy_is_the_fallback() {
    let rules = r#"
        [[rule]]
        decision = "allow"
        command = "git *"
        [[rule]]
        decision = "ask"
        command = "git push*"
        [[rule]]
        decision = "deny"
        command = "git push *--force*"
    "#;
    for (policy, other) in [
        (Policy::All, Allowed),
        (Policy::Ask, Asked),
        (Policy::Reads, Rejected),
    ] {
        let bench = RulesFixture::with_user_rules(policy, rules);
        assert_eq!(bench.run_command("git status").await, Allowed, "{policy}");
        assert_eq!(bench.run_command("git push").await, Asked, "{policy}");
        assert_eq!(
            bench.run_command("git push origin --force").await,
            Rejected,
            "{policy}"
        );
        assert!(
            bench.notes().contains("user.toml, rule 3"),
            "{}",
            bench.notes()
        );
        assert_eq!(bench.run_command("make").await, other, "{policy}");
    }
    // No answer overrides the policy `none`.
    let bench = RulesFixture::with_user_rules(Policy::None, rules);
    assert_eq!(bench.run_command("git status").await, Rejected);
    assert!(!bench.host().can_read_files() && !bench.host().can_change_files());
}

#[tokio::test]
async fn project_cannot_allow_itself_anything() {
    let everything = "default = \"allow\"\n[[rule]]\ndecision = \"allow\"\ncommand = \"*\"\n";
    for (policy, then) in [
        (Policy::Ask, Asked),
        (Policy::Reads, Rejected),
        (Policy::None, Rejected),
    ] {
        let bench = RulesFixture::new(policy, "", everything);
        assert_eq!(bench.run_command("make").await, then, "{policy}");
        assert_eq!(bench.edit_file("src/a.rs").await, then, "{policy}");
        assert_eq!(bench.host().can_change_files(), policy == Policy::Ask);
    }
}

#[tokio::test]
async fn project_can_deny_what_the_user_allows() {
    let project = r#"
        default = "ask"
        [[rule]]
        decision = "allow"
        command = "make *"
        [[rule]]
        decision = "deny"
        path = [".env", "secrets/"]
    "#;
    let user = "[[rule]]\ndecision = \"allow\"\nkind = [\"execute\", \"edit\"]";
    let bench = RulesFixture::new(Policy::All, user, project);
    assert_eq!(bench.run_command("make test").await, Allowed);
    assert_eq!(bench.run_command("cargo test").await, Asked);
    assert_eq!(bench.edit_file(".env").await, Rejected);
    assert!(
        bench.notes().contains(".acp/permissions.toml, rule 2"),
        "{}",
        bench.notes()
    );
    assert_eq!(bench.edit_file("secrets/a/b").await, Rejected);
}

#[tokio::test]
async fn user_default_applies_only_if_no_policy_was_chosen() {
    let rules =
        PermissionRules::parse("default = \"deny\"", Path::new("u"), Path::new("/")).unwrap();
    let mut bench = RulesFixture::with_user_rules(Policy::All, "");
    let permissions = [
        (Permissions::from(Policy::All), Allowed),
        (Permissions::default_policy(Policy::All), Rejected),
    ];
    for (permissions, then) in permissions {
        bench.permissions = Some(permissions.user_rules(rules.clone()));
        assert_eq!(bench.run_command("make").await, then);
    }
}

#[tokio::test]
async fn allow_requires_all_paths_and_deny_any_path() {
    let rules = r#"
        [[rule]]
        decision = "allow"
        kind = "edit"
        path = "src/**"
        [[rule]]
        decision = "deny"
        path = "**/.env"
    "#;
    let bench = RulesFixture::with_user_rules(Policy::Ask, rules);
    assert_eq!(bench.edit_file("src/a.rs").await, Allowed);
    assert_eq!(bench.edit_file("notes").await, Asked);
    assert_eq!(bench.edit_file("src/../notes").await, Asked);
    let both = |one: &str, other: &str| {
        let location = |path| ToolCallLocation::new(bench.root().join(path).to_str().unwrap());
        ToolCallUpdate::new("c")
            .kind(ToolKind::Edit)
            .locations(vec![location(one), location(other)])
    };
    assert_eq!(
        bench
            .request_permission(both("src/a.rs", "src/new/b.rs"))
            .await,
        Allowed
    );
    assert_eq!(
        bench.request_permission(both("src/a.rs", "notes")).await,
        Asked
    );
    assert_eq!(
        bench.request_permission(both("src/a.rs", ".env")).await,
        Rejected
    );
    // The kind is part of the rule, and a rule with a path does not match a call without one.
    let call = |kind| ToolCallUpdate::new("c").kind(kind);
    assert_eq!(bench.request_permission(call(ToolKind::Edit)).await, Asked);
    assert_eq!(
        bench
            .request_permission(both("src/a.rs", "src/a.rs").kind(ToolKind::Delete))
            .await,
        Asked
    );
}

#[cfg(unix)]
#[tokio::test]
async fn path_is_matched_by_its_target() {
    use std::os::unix::fs::symlink;
    let rules = r#"
        [[rule]]
        decision = "allow"
        kind = ["edit", "read"]
        path = "src/**"
        [[rule]]
        decision = "deny"
        path = "notes"
    "#;
    let bench = RulesFixture::with_user_rules(Policy::Reads, rules);
    let src = bench.root().join("src");
    symlink("../notes", src.join("to-notes")).unwrap();
    symlink(bench.root().join(".env"), src.join("to-env")).unwrap();
    symlink(bench.dir.path(), src.join("out")).unwrap();
    symlink("a.rs", src.join("to-a")).unwrap();
    symlink("src", bench.root().join("alias")).unwrap();
    assert_eq!(bench.write_file("src/to-a").await, Allowed);
    assert_eq!(bench.write_file("alias/a.rs").await, Allowed);
    for denied in [
        "src/to-notes",
        "src/to-env",
        "src/out/outside",
        "src/../notes",
    ] {
        assert_eq!(bench.write_file(denied).await, Rejected, "{denied}");
        assert_eq!(bench.edit_file(denied).await, Rejected, "{denied}");
    }
    assert_eq!(bench.read_file("src/to-notes").await, Rejected);
    // A pattern does not follow a symlink of the project.
    symlink(bench.dir.path(), bench.root().join("lib")).unwrap();
    let bench_root = bench.root();
    let rules = PermissionRules::parse(
        "[[rule]]\ndecision = \"allow\"\npath = \"lib/**\"",
        Path::new("u"),
        &bench_root,
    );
    let bench = RulesFixture {
        permissions: Some(Permissions::from(Policy::Reads).user_rules(rules.unwrap())),
        ..bench
    };
    assert_eq!(bench.edit_file("lib/outside").await, Rejected);
}

#[tokio::test]
async fn commands_are_allowed_as_a_whole_and_denied_by_any_part() {
    let rules = r#"
        [[rule]]
        decision = "allow"
        command = ["cargo test*", "cd web && npm *"]
        [[rule]]
        decision = "deny"
        command = "rm *"
    "#;
    let bench = RulesFixture::with_user_rules(Policy::Ask, rules);
    assert_eq!(bench.run_command("cargo test -p x").await, Allowed);
    assert_eq!(bench.run_command("cd web && npm test").await, Allowed);
    assert_eq!(bench.run_command("cargo test && make").await, Asked);
    assert_eq!(bench.run_command("cargo test > out").await, Asked);
    assert_eq!(
        bench.run_command("cargo test && /bin/rm -r x").await,
        Rejected
    );
    assert_eq!(bench.run_command("bash -lc \"cd x; rm y\"").await, Rejected);
    let input = |input| {
        ToolCallUpdate::new("c")
            .kind(ToolKind::Execute)
            .raw_input(input)
    };
    for (raw, then) in [
        (json!({ "command": ["bash", "-lc", "cargo test"] }), Allowed),
        (json!({ "command": ["cargo", "test"] }), Allowed),
        (json!({ "cmd": "cargo test" }), Allowed),
        (json!({ "command": "cargo test", "cmd": "make" }), Asked),
        (json!({ "command": "cargo test", "cwd": "/" }), Asked),
        (
            json!({ "command": ["bash", "-lc", "cargo test; rm x"] }),
            Rejected,
        ),
        (json!({ "command": ["rm", "x"] }), Rejected),
        (json!({ "command": 1 }), Asked),
        (json!({ "description": "cargo test" }), Asked),
    ] {
        assert_eq!(
            bench.request_permission(input(raw.clone())).await,
            then,
            "{raw}"
        );
    }
    // Neither the name of the tool call nor the kind that the agent reports matters.
    assert_eq!(
        bench
            .request_permission(ToolCallUpdate::new("c").title("cargo test"))
            .await,
        Asked
    );
    let read = ToolCallUpdate::new("c").kind(ToolKind::Read);
    assert_eq!(
        bench
            .request_permission(read.raw_input(json!({ "command": "rm x" })))
            .await,
        Rejected
    );
}

#[tokio::test]
async fn file_rule_allows_no_command() {
    let rules = "[[rule]]\ndecision = \"allow\"\npath = \"src/**\"";
    let bench = RulesFixture::with_user_rules(Policy::Ask, rules);
    assert_eq!(bench.edit_file("src/a.rs").await, Allowed);
    let location = ToolCallLocation::new(bench.root().join("src/a.rs").to_str().unwrap());
    let call = ToolCallUpdate::new("c")
        .kind(ToolKind::Execute)
        .locations(vec![location]);
    let call = call.raw_input(json!({ "command": "make" }));
    assert_eq!(bench.request_permission(call).await, Asked);
}

#[tokio::test]
async fn agent_cannot_change_its_own_permissions() {
    for rule in ["kind = \"edit\"", "path = \"**\"", "path = \"/**\""] {
        let bench = RulesFixture::with_user_rules(
            Policy::Ask,
            &format!("[[rule]]\ndecision = \"allow\"\n{rule}"),
        );
        assert_eq!(bench.edit_file("notes").await, Allowed, "{rule}");
        assert_eq!(
            bench.edit_file(".acp/permissions.toml").await,
            Asked,
            "{rule}"
        );
        assert_eq!(
            bench.write_file(".acp/permissions.toml").await,
            Asked,
            "{rule}"
        );
    }
    let bench = RulesFixture::with_user_rules(
        Policy::Ask,
        "[[rule]]\ndecision = \"allow\"\npath = \".acp/*\"",
    );
    assert_eq!(bench.edit_file(".acp/permissions.toml").await, Allowed);
}

#[tokio::test]
async fn unrequested_action_is_checked_by_its_content() {
    let rules = r#"
        [[rule]]
        decision = "allow"
        command = "true *"
        [[rule]]
        decision = "deny"
        path = ".env"
        [[rule]]
        decision = "allow"
        kind = "edit"
        path = "src/*"
    "#;
    let bench = RulesFixture::with_user_rules(Policy::Reads, rules);
    assert!(bench.host().can_change_files());
    assert_eq!(bench.run_argument_list(&["true", "x"]).await, Allowed);
    assert_eq!(bench.run_argument_list(&["true x"]).await, Allowed);
    assert_eq!(
        bench.run_argument_list(&["sh", "-c", "true x"]).await,
        Allowed
    );
    assert_eq!(
        bench.run_argument_list(&["sh", "-c", "true; echo"]).await,
        Rejected
    );
    assert_eq!(bench.run_argument_list(&["echo"]).await, Rejected);
    assert!(
        bench.notes().contains("the policy `reads`: Run echo"),
        "{}",
        bench.notes()
    );
    // The same words with another `PATH`, or in another directory, are not the same command.
    let request = || CreateTerminalRequest::new("s", "true");
    let env = |name| vec![EnvVariable::new(name, "x")];
    assert_eq!(
        bench.create_terminal(request().env(env("PATH"))).await,
        Rejected
    );
    assert_eq!(
        bench.create_terminal(request().env(env("NO_COLOR"))).await,
        Allowed
    );
    assert_eq!(bench.create_terminal(request().cwd("/")).await, Rejected);
    let src = bench.root().join("src");
    assert_eq!(
        bench
            .create_terminal(request().cwd(src.to_str().unwrap()))
            .await,
        Allowed
    );

    assert_eq!(bench.read_file(".env").await, Rejected);
    assert_eq!(bench.read_file("notes").await, Allowed);
    assert_eq!(bench.write_file("src/new").await, Allowed);
    assert_eq!(bench.write_file("notes").await, Rejected);
    assert_eq!(
        std::fs::read_to_string(bench.root().join("notes")).unwrap(),
        "text"
    );
}

#[tokio::test]
async fn ask_rule_is_not_satisfied_by_an_earlier_grant() {
    let rules = "[[rule]]\ndecision = \"ask\"\ncommand = \"true *\"";
    let mut bench = RulesFixture::with_user_rules(Policy::All, rules);
    bench.answer = Some("yes");
    let host = bench.host();
    let options = vec![PermissionOption::new(
        "yes",
        "Yes",
        PermissionOptionKind::AllowOnce,
    )];
    let ask = async |command: &str| {
        let call = ToolCallUpdate::new("c").kind(ToolKind::Execute);
        let call = call.raw_input(json!({ "command": command }));
        let request = PermissionRequest::new("s", &call, options.clone(), ThreadHandle::new());
        host.request_permission(&request).await.unwrap()
    };
    let run = async |argument: &str| {
        let request = CreateTerminalRequest::new("s", "true").args(vec![argument.to_owned()]);
        host.create(request).await.is_ok()
    };
    let asked = || std::mem::take(&mut *bench.asked.lock().unwrap()).len();
    assert_eq!(
        ask("true a").await,
        RequestPermissionOutcome::selected("yes")
    );
    assert_eq!(asked(), 1);
    // The agent has asked for this one. It has not asked for the other, and "yes" is not one of the host's own options.
    assert!(run("a").await);
    assert_eq!(asked(), 0);
    assert!(!run("b").await);
    assert_eq!(asked(), 1);
    host.turn_ended(None);
    assert!(!run("a").await);
    assert_eq!(asked(), 1);
}

#[tokio::test]
async fn question_is_rejected_with_a_note_if_nobody_can_be_asked() {
    let rules = "[[rule]]\ndecision = \"ask\"\nkind = [\"execute\", \"read\"]";
    let mut bench = RulesFixture::with_user_rules(Policy::Ask, rules);
    bench.answer = None;
    assert_eq!(bench.run_command("make").await, Rejected);
    assert_eq!(bench.run_argument_list(&["true"]).await, Rejected);
    assert_eq!(bench.read_file("notes").await, Rejected);
    assert_eq!(bench.write_file("notes").await, Rejected);
    let notes = bench.notes();
    assert_eq!(
        notes.matches("there is no one to ask").count(),
        4,
        "{notes}"
    );
    assert_eq!(notes.matches("user.toml, rule 1").count(), 3, "{notes}");
}

fn parse_error(text: &str) -> String {
    let parsed = PermissionRules::parse(text, Path::new("rules.toml"), Path::new("/"));
    parsed.unwrap_err().to_string()
}

#[test]
fn invalid_rule_is_reported_with_its_line() {
    for (text, line, says) in [
        ("defualt = \"ask\"", 1, "`defualt`"),
        (
            "\n[[rule]]\ndecision = \"allow\"\ncomand = \"x\"",
            4,
            "`comand`",
        ),
        ("[[rules]]\n", 1, "`rules`"),
        ("default = \"maybe\"", 1, "`maybe`"),
        (
            "\n\n[[rule]]\ndecision = \"allow\"",
            3,
            "rule has no conditions",
        ),
        ("[[rule]]\nkind = \"read\"", 1, "`decision`"),
        (
            "[[rule]]\ndecision = \"deny\"\nkind = [\"read\", \"raed\"]",
            3,
            "`kind`: unknown kind `raed`",
        ),
        (
            "[[rule]]\ndecision = \"deny\"\npath = \"../x\"",
            3,
            "`path`: patterns cannot contain `..`",
        ),
        ("[[rule]]\ndecision = \"deny\"\npath = \"a[\"", 3, "`path`"),
        (
            "[[rule]]\ndecision = \"deny\"\ncommand = \"\"",
            3,
            "`command`",
        ),
        (
            "[[rule]]\ndecision = \"deny\"\ncommand = []",
            3,
            "`command`: empty list",
        ),
        (
            "[[rule]]\ndecision = \"deny\"\ncommand = 1",
            3,
            "a string or a list of strings",
        ),
        ("[[rule]]\ndecision = ", 2, ""),
    ] {
        let error = parse_error(text);
        let place = format!("rules.toml, line {line}: ");
        assert!(
            error.starts_with(&place) && error.contains(says),
            "{text}: {error}"
        );
    }
}

#[test]
fn parsed_rules_are_displayed_as_text() {
    let text = r#"
        default = "deny"
        [[rule]]
        decision = "allow"
        kind = ["edit", "read"]
        path = ["src/**", "~/notes"]
        [[rule]]
        decision = "ask"
        command = "git push*"
    "#;
    let rules = PermissionRules::parse(text, Path::new("r"), Path::new("/")).unwrap();
    assert_eq!(rules.default_effect(), Some(RuleEffect::Deny));
    let shown: Vec<String> = rules.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "allow edit, read in `src/**` or `~/notes`",
            "ask `git push*`"
        ]
    );
}

#[test]
fn project_rules_are_found_in_parents_and_all_apply() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("repo");
    let below = root.join("a/b");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::create_dir(root.join(".git")).unwrap();
    let put = |at: &Path, text: &str| {
        std::fs::create_dir_all(at.join(".acp")).unwrap();
        std::fs::write(at.join(".acp/permissions.toml"), text).unwrap();
    };
    let rule = "[[rule]]\ndecision = \"deny\"\npath = \"x\"";
    // Rules outside the repository have no effect.
    put(dir.path(), "nonsense");
    put(&root, rule);
    put(&below, rule);
    let project = Project::find(&below).unwrap();
    assert_eq!(project.root(), std::fs::canonicalize(&root).unwrap());
    let rules = project.read_rules().unwrap();
    let files: Vec<&Path> = rules.iter().map(PermissionRules::file).collect();
    let file = |at: &Path| std::fs::canonicalize(at.join(".acp/permissions.toml")).unwrap();
    assert_eq!(files, [file(&root), file(&below)]);
    put(&root, "nonsense");
    assert!(matches!(
        project.read_rules(),
        Err(RulesError::Invalid { line: Some(1), .. })
    ));
    put(&root, &"#".repeat(70_000));
    assert!(matches!(
        project.read_rules(),
        Err(RulesError::TooLarge { .. })
    ));
    // Without a repository, the project is the directory itself.
    std::fs::remove_dir(root.join(".git")).unwrap();
    assert_eq!(
        Project::find(&below).unwrap().read_rules().unwrap().len(),
        1
    );
}

#[cfg(unix)]
#[test]
fn unreadable_or_outside_project_rules_are_an_error() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("permissions.toml"), "default = \"allow\"").unwrap();
    let root = dir.path().join("repo");
    let acp = root.join(".acp");
    let file = acp.join("permissions.toml");
    std::fs::create_dir_all(&acp).unwrap();
    let rules = || Project::find(&root).unwrap().read_rules();
    assert!(rules().unwrap().is_empty());

    symlink("../../permissions.toml", &file).unwrap();
    assert!(
        matches!(rules(), Err(RulesError::Outside { .. })),
        "{:?}",
        rules()
    );
    std::fs::remove_file(&file).unwrap();
    symlink("../gone", &file).unwrap();
    assert!(
        matches!(rules(), Err(RulesError::Io { .. })),
        "{:?}",
        rules()
    );
    std::fs::remove_file(&file).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &file,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    assert!(
        matches!(rules(), Err(RulesError::NotAFile { .. })),
        "{:?}",
        rules()
    );
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert!(rules().is_err());
    std::fs::remove_dir_all(&acp).unwrap();
    symlink(dir.path(), &acp).unwrap();
    assert!(
        matches!(rules(), Err(RulesError::Outside { .. })),
        "{:?}",
        rules()
    );
    std::fs::remove_file(&acp).unwrap();
    // Inside the project, symlinks are followed.
    std::fs::create_dir(root.join("config")).unwrap();
    std::fs::write(root.join("config/permissions.toml"), "default = \"ask\"").unwrap();
    symlink("config", &acp).unwrap();
    assert_eq!(rules().unwrap().len(), 1);
}
