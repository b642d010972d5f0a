//! Tests how the agent enforces the user's and the project's rules in each mode.

use crate::common::{
    ALL_CAPABILITIES, ALLOW, ALLOW_ALWAYS, AgentFixture, NO_CAPABILITIES, OfferedCapabilities,
    REJECT, call_text,
};
use acp::v1::*;
use acp_agent::{CodingAgent, OfflineModel, RuleFiles, ScriptedModel};
use acp_host::SandboxRules;
use serde_json::json;

/// Opens a session for a user who has these rules.
async fn start_with_rules(
    rules: &str,
    offers: OfferedCapabilities,
) -> (AgentFixture, tempfile::TempDir) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("permissions.toml");
    std::fs::write(&file, rules).unwrap();
    let agent =
        CodingAgent::with_model(OfflineModel::new()).rules(RuleFiles::new().user_rules(file));
    (AgentFixture::new(agent, offers).await, home)
}

const ALLOW_ECHO_RULES: &str = "[[rule]]\ndecision = \"allow\"\ncommand = \"echo *\"\n";

#[tokio::test]
async fn code_mode_runs_commands_the_rules_allow() {
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let (f, _home) = start_with_rules(ALLOW_ECHO_RULES, offers).await;
        f.session.set_mode("code").await.unwrap();
        assert!(
            f.prompt_for_text("/run echo one")
                .await
                .contains("exited with code 0")
        );
        assert!(f.permission_requests().is_empty());
        // The rules allow nothing else.
        f.queue_answers([REJECT]);
        f.prompt_for_text("/run echo one; touch two").await;
        assert!(!f.file_exists("two"));
    }
}

#[tokio::test]
async fn ask_mode_asks_even_for_commands_the_rules_allow() {
    let (f, _home) = start_with_rules(ALLOW_ECHO_RULES, NO_CAPABILITIES).await;
    f.queue_answers([ALLOW]);
    f.prompt_for_text("/run echo one").await;
    assert_eq!(f.permission_requests().len(), 1);
}

#[tokio::test]
async fn project_denials_apply_in_every_mode() {
    for mode in ["ask", "code"] {
        let (f, _home) = start_with_rules("", NO_CAPABILITIES).await;
        f.write_file(
            ".acp/permissions.toml",
            "[[rule]]\ndecision = \"deny\"\npath = \"secret/**\"\n",
        );
        f.write_file("secret/key.txt", "needle\n");
        f.write_file("open.txt", "needle\n");
        f.session.set_mode(mode).await.unwrap();
        for command in [
            "/read secret/key.txt",
            "/write secret/key.txt new",
            "/edit secret/key.txt\nneed\n===\nx",
        ] {
            let said = f.prompt_for_text(command).await;
            assert!(said.contains("permissions.toml, rule 1"), "{said}");
            assert!(
                !call_text(&f.last_tool_call()).contains("needle"),
                "{command}"
            );
        }
        assert_eq!(f.read_file("secret/key.txt"), "needle\n");
        // Matches in other files are shown, with a note that some were omitted.
        let said = f.prompt_for_text("/search needle").await;
        assert!(
            said.contains("open.txt:1") && !said.contains("key.txt"),
            "{said}"
        );
        assert!(
            said.contains("omitted due to permission rules: 1."),
            "{said}"
        );
        assert!(f.permission_requests().is_empty());
    }
}

#[tokio::test]
async fn unreadable_files_are_not_listed() {
    let looks = [
        ("list", json!({}), "open/"),
        ("list", json!({"path": "open"}), "plan.txt"),
        (
            "list",
            json!({"path": "secret"}),
            "omitted due to permission rules",
        ),
        ("glob", json!({"pattern": "**/*"}), "open/plan.txt"),
        ("search", json!({"pattern": "needle"}), "open/plan.txt:1"),
        ("list", json!({"path": "plain"}), "c.txt"),
    ];
    let calls: Vec<_> = looks
        .iter()
        .map(|(tool, arguments, _)| json!({"call": {"tool": tool, "arguments": arguments}}))
        .collect();
    let script = json!({ "turns": [calls] }).to_string();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("permissions.toml");
    let keys = "[[rule]]\ndecision = \"deny\"\nkind = \"read\"\npath = \"**/*.key\"\n";
    std::fs::write(&file, keys).unwrap();
    let agent = CodingAgent::with_model(ScriptedModel::parse(&script).unwrap());
    let f = AgentFixture::new(
        agent.rules(RuleFiles::new().user_rules(file)),
        NO_CAPABILITIES,
    )
    .await;
    f.write_file(
        ".acp/permissions.toml",
        "[[rule]]\ndecision = \"deny\"\npath = \"secret/**\"\n",
    );
    for file in ["secret/hidden.txt", "open/plan.txt", "open/a.key", "b.key"] {
        f.write_file(file, "needle\n");
    }
    f.write_file("plain/c.txt", "");
    f.prompt("Look around").await.unwrap();
    let calls = f.tool_calls();
    assert_eq!(calls.len(), looks.len());
    for (call, (tool, arguments, shown)) in calls.iter().zip(looks) {
        // For the user, for editors, and for programs.
        let all = format!(
            "{}{:?}{:?}",
            call_text(call),
            call.locations,
            call.raw_output
        );
        let look = format!("{tool} {arguments}: {all}");
        assert!(all.contains(shown), "{look}");
        for name in ["hidden.txt", "a.key", "b.key"] {
            assert!(!all.contains(name), "{look}");
        }
        // A note says that some were omitted, but only if that is true.
        let whole = shown == "c.txt";
        assert_eq!(
            !call_text(call).contains("omitted due to permission rules:"),
            whole,
            "{look}"
        );
    }
    assert!(f.permission_requests().is_empty());
}

#[tokio::test]
async fn ask_rule_does_not_offer_an_always_answer() {
    let rules = "[[rule]]\ndecision = \"ask\"\npath = \"a.txt\"\nkind = \"edit\"\n";
    let (f, _home) = start_with_rules(rules, NO_CAPABILITIES).await;
    f.session.set_mode("code").await.unwrap();
    for n in ["1", "2"] {
        f.queue_answers([ALLOW]);
        f.prompt_for_text(format!("/write a.txt {n}")).await;
        let kinds: Vec<_> = f.permission_requests()[0]
            .options
            .iter()
            .map(|o| o.kind.clone())
            .collect();
        assert_eq!(
            kinds,
            [
                PermissionOptionKind::AllowOnce,
                PermissionOptionKind::RejectOnce
            ]
        );
    }
    f.prompt_for_text("/write b.txt 1").await;
    assert!(f.permission_requests().is_empty());
}

#[tokio::test]
async fn code_mode_asks_before_changing_trusted_files() {
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let (f, _home) = start_with_rules("", offers).await;
        f.session.set_mode("code").await.unwrap();
        f.write_file(".git/config", "[core]\n");
        f.queue_answers([REJECT]);
        f.prompt_for_text("/write .git/hooks/pre-commit evil").await;
        assert!(!f.file_exists(".git/hooks/pre-commit"));
        // An answer for one of these files does not apply to another, nor to all other files.
        f.queue_answers([ALLOW_ALWAYS]);
        f.prompt_for_text("/write .git/config new").await;
        let always = &f.permission_requests()[0].options[1].name;
        assert!(
            always.contains("changes to `") && always.contains(".git/config"),
            "{always}"
        );
        f.prompt_for_text("/write .git/config newer").await;
        assert!(f.permission_requests().is_empty());
        f.queue_answers([REJECT]);
        f.prompt_for_text("/write .git/hooks/pre-commit evil").await;
    }
}

/// Checks that an "always" answer for files in the project does not apply to files outside it.
#[tokio::test]
async fn always_answer_for_edits_covers_only_ordinary_files() {
    let (f, _home) = start_with_rules("", NO_CAPABILITIES).await;
    f.queue_answers([ALLOW_ALWAYS]);
    f.prompt_for_text("/write a.txt 1").await;
    assert_eq!(
        f.permission_requests()[0].options[1].name,
        "Always allow writing project files"
    );
    f.queue_answers([REJECT]);
    f.prompt_for_text("/write .envrc evil").await;
    assert!(!f.file_exists(".envrc"));
}

#[tokio::test]
async fn unreadable_rules_allow_nothing() {
    let (f, _home) = start_with_rules("[[rule]]\ndecision = \"perhaps\"\n", NO_CAPABILITIES).await;
    f.session.set_mode("code").await.unwrap();
    f.write_file("a.txt", "old");
    for command in ["/write a.txt new", "/read a.txt", "/search old"] {
        let said = f.prompt_for_text(command).await;
        assert!(
            said.contains("cannot read the permission rules") && said.contains("permissions.toml"),
            "{said}"
        );
    }
    assert_eq!(f.read_file("a.txt"), "old");
    assert!(f.permission_requests().is_empty());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn code_mode_runs_sandboxed_commands_unless_a_rule_denies_them() {
    let model = OfflineModel::new();
    let Ok(agent) = CodingAgent::with_model(model).sandbox(SandboxRules::new()) else {
        eprintln!("no sandbox here");
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("permissions.toml");
    std::fs::write(
        &file,
        "[[rule]]\ndecision = \"deny\"\ncommand = \"touch*\"\n",
    )
    .unwrap();
    let f = AgentFixture::new(
        agent.rules(RuleFiles::new().user_rules(file)),
        NO_CAPABILITIES,
    )
    .await;
    f.session.set_mode("code").await.unwrap();
    f.prompt_for_text("/run echo one > two").await;
    assert_eq!(f.read_file("two"), "one\n");
    let said = f.prompt_for_text("/run touch three").await;
    assert!(said.contains("rule 1"), "{said}");
    assert!(!f.file_exists("three") && f.permission_requests().is_empty());
}
