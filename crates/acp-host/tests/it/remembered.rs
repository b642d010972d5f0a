//! Tests of the user's remembered answers.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use crate::common::one_session::OneSession;
use acp::ThreadHandle;
use acp::client::PermissionRequest;
use acp_host::{
    AlwaysEffect, DecisionSource, Host, PermissionNote, PermissionRules, Permissions, Policy,
    Prompter, RememberedAnswers, RememberedAnswersError, RememberedSubject,
};
use acp_wire::v1::{
    CreateTerminalRequest, EnvVariable, PermissionOption, PermissionOptionId, PermissionOptionKind,
    ToolCallLocation, ToolCallUpdate, ToolKind, WriteTextFileRequest,
};
use serde_json::json;

/// A prompter that gives this answer to every question and counts the questions.
struct CountingPrompter(&'static str, Arc<Mutex<usize>>);

impl Prompter for CountingPrompter {
    async fn ask(&self, _: &PermissionRequest) -> Option<PermissionOptionId> {
        *self.1.lock().unwrap() += 1;
        Some(self.0.into())
    }
}

struct RememberedAnswersFixture {
    dir: tempfile::TempDir,
    asked: Arc<Mutex<usize>>,
    notes: Arc<Mutex<Vec<PermissionNote>>>,
}

impl RememberedAnswersFixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("project")).unwrap();
        Self {
            dir,
            asked: Arc::default(),
            notes: Arc::default(),
        }
    }

    fn root(&self) -> PathBuf {
        std::fs::canonicalize(self.dir.path().join("project")).unwrap()
    }

    fn remembered(&self) -> RememberedAnswers {
        RememberedAnswers::new(self.dir.path().join("state/permissions"), &self.root())
    }

    /// Creates a new host that uses the stored answers, as a new run would.
    fn host_with_answer(&self, policy: Policy, says: &'static str) -> OneSession<CountingPrompter> {
        let permissions = Permissions::from(policy).remembered_answers(self.remembered());
        self.host_with_permissions(permissions, says)
    }

    fn host_with_permissions(
        &self,
        permissions: Permissions,
        says: &'static str,
    ) -> OneSession<CountingPrompter> {
        let person = CountingPrompter(says, Arc::clone(&self.asked));
        let notes = Arc::clone(&self.notes);
        let host = Host::new(permissions, person, [self.root()]).unwrap();
        let host = host.on_note(move |note| notes.lock().unwrap().push(note));
        OneSession::new(host, &ThreadHandle::new())
    }

    fn question_count(&self) -> usize {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    fn answers(&self) -> Vec<String> {
        let answers = self.remembered().answers().unwrap();
        answers
            .iter()
            .map(|a| format!("{} {a}", a.number))
            .collect()
    }
}

fn tool_call(kind: ToolKind) -> ToolCallUpdate {
    ToolCallUpdate::new("c").kind(kind)
}

fn command_call(line: &str) -> ToolCallUpdate {
    tool_call(ToolKind::Execute).raw_input(json!({ "command": line }))
}

async fn is_allowed(host: &OneSession<impl Prompter + Send + Sync>, call: ToolCallUpdate) -> bool {
    let option = PermissionOption::new;
    let options = vec![
        option("once", "Once", PermissionOptionKind::AllowOnce),
        option("always", "Always", PermissionOptionKind::AllowAlways),
        option("no", "No", PermissionOptionKind::RejectOnce),
        option("never", "Never", PermissionOptionKind::RejectAlways),
    ];
    let request = PermissionRequest::new("s", &call, options, ThreadHandle::new());
    let outcome = host.request_permission(&request).await.unwrap();
    let outcome = serde_json::to_value(outcome).unwrap();
    ["once", "always"].contains(&outcome["optionId"].as_str().unwrap())
}

#[tokio::test]
async fn always_answer_applies_to_exactly_its_subject() {
    let bench = RememberedAnswersFixture::new();
    let host = bench.host_with_answer(Policy::Ask, "always");
    assert!(is_allowed(&host, command_call("make test")).await);
    assert!(
        !is_allowed(
            &bench.host_with_answer(Policy::Ask, "never"),
            command_call("rm x")
        )
        .await
    );
    let path = bench.root().join("a");
    let locations = |kind| {
        let location = ToolCallLocation::new(path.to_str().unwrap());
        tool_call(kind).locations(vec![location])
    };
    assert!(is_allowed(&host, locations(ToolKind::Edit)).await);
    assert_eq!(bench.question_count(), 3);
    let edit = format!("3 allow edit {}", path.display());
    assert_eq!(
        bench.answers(),
        [
            "1 allow execute `make test`",
            "2 deny execute `rm x`",
            &edit
        ]
    );

    // In another run, the answer applies without asking, even if there is no user to ask.
    let host = bench.host_with_answer(Policy::Reads, "no");
    assert!(host.can_change_files());
    assert!(is_allowed(&host, command_call("make test")).await);
    assert!(is_allowed(&host, command_call("sh -c 'make test'")).await);
    assert!(is_allowed(&host, locations(ToolKind::Edit)).await);
    let write = WriteTextFileRequest::new("s", path.to_str().unwrap(), "x");
    host.write(write).await.unwrap();
    assert!(
        !is_allowed(
            &bench.host_with_answer(Policy::All, "once"),
            command_call("rm x")
        )
        .await
    );
    // The answer does not cover another command, kind, file or environment.
    assert!(!is_allowed(&host, command_call("make test2")).await);
    assert!(!is_allowed(&host, command_call("make test; x")).await);
    assert!(!is_allowed(&host, locations(ToolKind::Delete)).await);
    assert!(!is_allowed(&host, tool_call(ToolKind::Edit)).await);
    let create = CreateTerminalRequest::new("s", "make").args(["test".to_owned()]);
    let create = create.env([EnvVariable::new("PATH", "/evil")]);
    assert!(host.create(create).await.is_err());
    assert_eq!(bench.question_count(), 0);

    // The latest answer counts, and no answer overrides the policy `none`.
    assert_eq!(
        bench.remembered().revoke(2).unwrap().unwrap().subject,
        RememberedSubject::Command("rm x".into())
    );
    assert!(
        is_allowed(
            &bench.host_with_answer(Policy::Ask, "always"),
            command_call("rm x")
        )
        .await
    );
    assert_eq!(bench.answers()[2], "4 allow execute `rm x`");
    assert!(
        !is_allowed(
            &bench.host_with_answer(Policy::None, "once"),
            command_call("rm x")
        )
        .await
    );
    assert_eq!(bench.remembered().revoke_all().unwrap(), 3);
    assert_eq!(bench.remembered().revoke(1).unwrap(), None);
    assert!(bench.answers().is_empty());
}

#[tokio::test]
async fn ambiguous_action_is_not_remembered() {
    let bench = RememberedAnswersFixture::new();
    let host = bench.host_with_answer(Policy::Ask, "always");
    for call in [
        tool_call(ToolKind::Fetch),
        tool_call(ToolKind::Execute).title("make test"),
        tool_call(ToolKind::Execute).raw_input(json!({ "command": "make", "cwd": "/" })),
        command_call(&"x".repeat(5000)),
    ] {
        assert!(is_allowed(&host, call).await);
    }
    assert_eq!(bench.question_count(), 4);
    assert!(bench.answers().is_empty());
    assert!(!bench.remembered().file().exists());
}

#[tokio::test]
async fn rules_are_stricter_than_remembered_answers() {
    let bench = RememberedAnswersFixture::new();
    assert!(
        is_allowed(
            &bench.host_with_answer(Policy::Ask, "always"),
            command_call("git push")
        )
        .await
    );
    bench.question_count();
    for (decision, asked) in [("ask", 1), ("deny", 0), ("allow", 0)] {
        let text = format!("[[rule]]\ndecision = \"{decision}\"\ncommand = \"git push*\"");
        let rules = PermissionRules::parse(&text, Path::new("r"), &bench.root()).unwrap();
        let permissions = Permissions::from(Policy::Ask).remembered_answers(bench.remembered());
        let host = bench.host_with_permissions(permissions.project_rules([rules]), "no");
        assert_eq!(
            is_allowed(&host, command_call("git push")).await,
            decision == "allow"
        );
        assert_eq!(bench.question_count(), asked, "{decision}");
    }
    // An action that is asked about each time is not remembered, and the user is told.
    let rules = "[[rule]]\ndecision = \"ask\"\ncommand = \"make\"";
    let rules = PermissionRules::parse(rules, Path::new("r"), &bench.root()).unwrap();
    let permissions = Permissions::from(Policy::Ask).remembered_answers(bench.remembered());
    let host = bench.host_with_permissions(permissions.user_rules(rules), "always");
    assert!(is_allowed(&host, command_call("make")).await);
    assert_eq!(bench.answers().len(), 1);
    let notes = bench.notes.lock().unwrap();
    assert!(
        matches!(notes.last(), Some(PermissionNote::NotRemembered { .. })),
        "{notes:?}"
    );
}

/// A prompter that rejects everything and records the effect that each "always" answer would have had.
struct RejectingPrompter(Arc<Mutex<Vec<AlwaysEffect>>>);

impl Prompter for RejectingPrompter {
    async fn ask(&self, _: &PermissionRequest) -> Option<PermissionOptionId> {
        Some("no".into())
    }

    async fn ask_with(
        &self,
        request: &PermissionRequest,
        always: &AlwaysEffect,
    ) -> Option<PermissionOptionId> {
        self.0.lock().unwrap().push(always.clone());
        self.ask(request).await
    }
}

/// The option that the client adds to those of the agent.
const PREFIX_OPTION: &str = "acp/allow-prefix";

#[tokio::test]
async fn prefix_answer_covers_commands_that_begin_the_same_and_nothing_else() {
    let bench = RememberedAnswersFixture::new();
    let host = bench.host_with_answer(Policy::Ask, PREFIX_OPTION);
    let request = |line| {
        let option = PermissionOption::new;
        let options = vec![
            option("always", "Always", PermissionOptionKind::AllowAlways),
            option("once", "Once", PermissionOptionKind::AllowOnce),
            option("no", "No", PermissionOptionKind::RejectOnce),
        ];
        PermissionRequest::new("s", &command_call(line), options, ThreadHandle::new())
    };
    let outcome = host.request_permission(&request("cargo test -p a")).await;
    let outcome = serde_json::to_value(outcome.unwrap()).unwrap();
    // The agent might remember more than that, so it learns nothing of "always".
    assert_eq!(outcome["optionId"], "once");
    assert_eq!(bench.answers(), ["1 allow execute `cargo test *`"]);
    assert_eq!(bench.question_count(), 1);

    let host = bench.host_with_answer(Policy::Ask, "no");
    for line in ["cargo test", "cargo test -p a", "cargo test -p b -- c::d"] {
        assert!(is_allowed(&host, command_call(line)).await, "{line}");
    }
    assert_eq!(bench.question_count(), 0);
    for line in [
        "cargo tests",
        "cargo build",
        "cargo test; rm -r .",
        "cargo test && rm x",
        "cargo test > x",
        "cargo test $(rm x)",
        "cargo test *.rs",
        "sudo cargo test",
        "X=1 cargo test",
    ] {
        assert!(!is_allowed(&host, command_call(line)).await, "{line}");
    }
    let elsewhere = tool_call(ToolKind::Execute)
        .raw_input(json!({ "command": "cargo test", "cwd": bench.dir.path() }));
    assert!(!is_allowed(&host, elsewhere).await);
    let with_file = command_call("cargo test").locations(vec![ToolCallLocation::new(
        bench.root().join(".acp/permissions.toml").to_str().unwrap(),
    )]);
    assert!(!is_allowed(&host, with_file).await);
    assert_eq!(bench.question_count(), 11);

    // A rejection of one command is stricter.
    let host = bench.host_with_answer(Policy::Ask, "never");
    bench.remembered().revoke(1).unwrap();
    assert!(!is_allowed(&host, command_call("cargo test -p b")).await);
    let host = bench.host_with_answer(Policy::Ask, PREFIX_OPTION);
    let outcome = host.request_permission(&request("cargo test")).await;
    assert_eq!(
        serde_json::to_value(outcome.unwrap()).unwrap()["optionId"],
        "once"
    );
    assert!(!is_allowed(&host, command_call("cargo test -p b")).await);
    assert!(is_allowed(&host, command_call("cargo test -p c")).await);
}

#[tokio::test]
async fn prefix_is_not_offered_if_the_agent_cannot_be_told_or_the_id_is_taken() {
    let bench = RememberedAnswersFixture::new();
    let heard: Arc<Mutex<Vec<AlwaysEffect>>> = Arc::default();
    let permissions = Permissions::from(Policy::Ask).remembered_answers(bench.remembered());
    let prompter = RejectingPrompter(Arc::clone(&heard));
    let host = Host::new(permissions, prompter, [bench.root()]).unwrap();
    let host = OneSession::new(host, &ThreadHandle::new());
    let option = PermissionOption::new;
    let no = || option("no", "No", PermissionOptionKind::RejectOnce);
    for options in [
        vec![no()],
        vec![
            option(PREFIX_OPTION, "Yes", PermissionOptionKind::AllowOnce),
            no(),
        ],
    ] {
        let call = command_call("cargo test");
        let request = PermissionRequest::new("s", &call, options, ThreadHandle::new());
        host.request_permission(&request).await.unwrap();
    }
    for effect in heard.lock().unwrap().iter() {
        let AlwaysEffect::Remembered { prefix, .. } = effect else {
            panic!("{effect:?}");
        };
        assert_eq!(*prefix, None);
    }
}

#[tokio::test]
async fn prompter_learns_the_effect_of_always() {
    let bench = RememberedAnswersFixture::new();
    let heard: Arc<Mutex<Vec<AlwaysEffect>>> = Arc::default();
    let host = |permissions: Permissions| {
        let host = Host::new(
            permissions,
            RejectingPrompter(Arc::clone(&heard)),
            [bench.root()],
        )
        .unwrap();
        OneSession::new(host, &ThreadHandle::new())
    };
    let remembering = Permissions::from(Policy::Ask).remembered_answers(bench.remembered());
    let host_of_rule = {
        let rules = "[[rule]]\ndecision = \"ask\"\ncommand = \"git push*\"";
        let rules = PermissionRules::parse(rules, Path::new("r"), &bench.root()).unwrap();
        host(remembering.clone().user_rules(rules))
    };
    assert!(!is_allowed(&host_of_rule, command_call("git push")).await);
    assert!(!is_allowed(&host_of_rule, command_call("make test")).await);
    assert!(!is_allowed(&host_of_rule, tool_call(ToolKind::Fetch)).await);
    assert!(!is_allowed(&host(Policy::Ask.into()), command_call("make test")).await);
    let path = bench.root().join("a");
    let write = WriteTextFileRequest::new("s", path.to_str().unwrap(), "x");
    host(remembering).write(write).await.unwrap_err();

    let heard = heard.lock().unwrap();
    let [rule, exact, vague, nowhere, unasked] = &heard[..] else {
        panic!("{heard:?}")
    };
    assert!(
        matches!(
            rule,
            AlwaysEffect::AskEachTime(DecisionSource::Rule { number: 1, .. })
        ),
        "{rule:?}"
    );
    let remembered = AlwaysEffect::Remembered {
        kind: ToolKind::Execute,
        subjects: vec![RememberedSubject::Command("make test".into())],
        prefix: Some("make test *".to_owned()),
    };
    assert_eq!(*exact, remembered);
    assert_eq!(*vague, AlwaysEffect::LeftToAgent);
    assert_eq!(*nowhere, AlwaysEffect::LeftToAgent);
    assert_eq!(*unasked, AlwaysEffect::OwnOptions);
}

#[cfg(unix)]
#[tokio::test]
async fn answers_file_is_private_to_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let bench = RememberedAnswersFixture::new();
    assert!(
        is_allowed(
            &bench.host_with_answer(Policy::Ask, "always"),
            command_call("make")
        )
        .await
    );
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let file = bench.remembered().file().to_owned();
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    for entry in std::fs::read_dir(file.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(bench.root().to_str().unwrap()), "{text}");
}

#[tokio::test]
async fn corrupt_file_allows_nothing_and_is_kept() {
    let bench = RememberedAnswersFixture::new();
    assert!(
        is_allowed(
            &bench.host_with_answer(Policy::Ask, "always"),
            command_call("make")
        )
        .await
    );
    let file = bench.remembered().file().to_owned();
    let whole = std::fs::read_to_string(&file).unwrap();
    let elsewhere = whole.replace("/project", "/elsewhere");
    for broken in ["", "{}", &whole[..whole.len() / 2], &elsewhere] {
        std::fs::write(&file, broken).unwrap();
        let error = bench.remembered().answers().unwrap_err();
        assert!(
            matches!(error, RememberedAnswersError::Invalid { .. }),
            "{error}"
        );
        assert!(
            !is_allowed(
                &bench.host_with_answer(Policy::All, "always"),
                command_call("make")
            )
            .await
        );
        assert!(bench.remembered().revoke_all().is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), broken);
    }
}

/// The environment variable that marks this process as one of several that remember answers.
const ROLE_VARIABLE: &str = "ACP_TEST_REMEMBERS";

#[test]
fn concurrent_processes_lose_no_answers() {
    const PROCESS_COUNT: usize = 4;
    const ANSWERS_PER_PROCESS: usize = 25;
    if let Some(role) = std::env::var_os(ROLE_VARIABLE) {
        let role = role.into_string().unwrap();
        let (number, dir) = role.split_once(':').unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let root = Path::new(dir).join("project");
            let remembered =
                RememberedAnswers::new(Path::new(dir).join("state/permissions"), &root);
            let permissions = Permissions::from(Policy::Ask).remembered_answers(remembered);
            let person = CountingPrompter("always", Arc::default());
            let host = Host::new(permissions, person, [root]).unwrap();
            let host = OneSession::new(host, &ThreadHandle::new());
            for n in 0..ANSWERS_PER_PROCESS {
                assert!(is_allowed(&host, command_call(&format!("make {number}-{n}"))).await);
            }
        });
        return;
    }
    let bench = RememberedAnswersFixture::new();
    let dir = std::fs::canonicalize(bench.dir.path()).unwrap();
    let start = |number: usize| {
        Command::new(std::env::current_exe().unwrap())
            .args([
                "remembered::concurrent_processes_lose_no_answers",
                "--exact",
            ])
            .env(ROLE_VARIABLE, format!("{number}:{}", dir.display()))
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..PROCESS_COUNT).map(start).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let answers = bench.remembered().answers().unwrap();
    assert_eq!(answers.len(), PROCESS_COUNT * ANSWERS_PER_PROCESS);
    let mut numbers: Vec<u64> = answers.iter().map(|answer| answer.number).collect();
    numbers.dedup();
    assert_eq!(
        numbers.len(),
        PROCESS_COUNT * ANSWERS_PER_PROCESS,
        "no number twice"
    );
}
