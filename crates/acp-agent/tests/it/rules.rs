//! Rules of the user and of the project, which the agent keeps by itself in each of its modes.

use crate::common::{ALL, ALLOW, ALLOW_ALWAYS, AgentFixture, ClientOffers, NONE, REJECT, texts};
use acp::v1::*;
use acp_agent::{CodingAgent, OfflineModel, RuleFiles, ScriptedModel};
use acp_host::SandboxRules;
use serde_json::json;

/// A session of a user who has these rules.
async fn ruled(rules: &str, offers: ClientOffers) -> (AgentFixture, tempfile::TempDir) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("permissions.toml");
    std::fs::write(&file, rules).unwrap();
    let agent =
        CodingAgent::with_model(OfflineModel::new()).rules(RuleFiles::new().user_rules(file));
    (AgentFixture::new(agent, offers).await, home)
}

const ECHO: &str = "[[rule]]\ndecision = \"allow\"\ncommand = \"echo *\"\n";

#[tokio::test]
async fn code_mode_runs_what_the_rules_allow() {
    for offers in [ALL, NONE] {
        let (f, _home) = ruled(ECHO, offers).await;
        f.session.set_mode("code").await.unwrap();
        assert!(f.says("/run echo one").await.contains("exited with code 0"));
        assert!(f.asked().is_empty());
        // And no more than that.
        f.answers([REJECT]);
        f.says("/run echo one; touch two").await;
        assert!(!f.there("two"));
    }
}

#[tokio::test]
async fn ask_mode_asks_also_for_what_the_rules_allow() {
    let (f, _home) = ruled(ECHO, NONE).await;
    f.answers([ALLOW]);
    f.says("/run echo one").await;
    assert_eq!(f.asked().len(), 1);
}

#[tokio::test]
async fn what_the_project_forbids_is_forbidden_in_every_mode() {
    for mode in ["ask", "code"] {
        let (f, _home) = ruled("", NONE).await;
        f.put(
            ".acp/permissions.toml",
            "[[rule]]\ndecision = \"deny\"\npath = \"secret/**\"\n",
        );
        f.put("secret/key.txt", "needle\n");
        f.put("open.txt", "needle\n");
        f.session.set_mode(mode).await.unwrap();
        for command in [
            "/read secret/key.txt",
            "/write secret/key.txt new",
            "/edit secret/key.txt\nneed\n===\nx",
        ] {
            let said = f.says(command).await;
            assert!(said.contains("permissions.toml, rule 1"), "{said}");
            assert!(!texts(&f.call()).contains("needle"), "{command}");
        }
        assert_eq!(f.text("secret/key.txt"), "needle\n");
        // What is found elsewhere is shown, and it is said that this is not all.
        let said = f.says("/search needle").await;
        assert!(
            said.contains("open.txt:1") && !said.contains("key.txt"),
            "{said}"
        );
        assert!(
            said.contains("omitted due to permission rules: 1."),
            "{said}"
        );
        assert!(f.asked().is_empty());
    }
}

#[tokio::test]
async fn what_must_not_be_read_is_not_named_either() {
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
    let f = AgentFixture::new(agent.rules(RuleFiles::new().user_rules(file)), NONE).await;
    f.put(
        ".acp/permissions.toml",
        "[[rule]]\ndecision = \"deny\"\npath = \"secret/**\"\n",
    );
    for file in ["secret/hidden.txt", "open/plan.txt", "open/a.key", "b.key"] {
        f.put(file, "needle\n");
    }
    f.put("plain/c.txt", "");
    f.prompt("Look around").await.unwrap();
    let calls = f.calls();
    assert_eq!(calls.len(), looks.len());
    for (call, (tool, arguments, shown)) in calls.iter().zip(looks) {
        // For the person, for editors, and for programs.
        let all = format!("{}{:?}{:?}", texts(call), call.locations, call.raw_output);
        let look = format!("{tool} {arguments}: {all}");
        assert!(all.contains(shown), "{look}");
        for name in ["hidden.txt", "a.key", "b.key"] {
            assert!(!all.contains(name), "{look}");
        }
        // It is said that this is not all, where it is not.
        let whole = shown == "c.txt";
        assert_eq!(
            !texts(call).contains("omitted due to permission rules:"),
            whole,
            "{look}"
        );
    }
    assert!(f.asked().is_empty());
}

#[tokio::test]
async fn what_a_rule_has_asked_each_time_has_no_always() {
    let rules = "[[rule]]\ndecision = \"ask\"\npath = \"a.txt\"\nkind = \"edit\"\n";
    let (f, _home) = ruled(rules, NONE).await;
    f.session.set_mode("code").await.unwrap();
    for n in ["1", "2"] {
        f.answers([ALLOW]);
        f.says(format!("/write a.txt {n}")).await;
        let kinds: Vec<_> = f.asked()[0]
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
    f.says("/write b.txt 1").await;
    assert!(f.asked().is_empty());
}

#[tokio::test]
async fn code_mode_asks_for_files_that_other_programs_obey() {
    for offers in [ALL, NONE] {
        let (f, _home) = ruled("", offers).await;
        f.session.set_mode("code").await.unwrap();
        f.put(".git/config", "[core]\n");
        f.answers([REJECT]);
        f.says("/write .git/hooks/pre-commit evil").await;
        assert!(!f.there(".git/hooks/pre-commit"));
        // What is answered for one of them says nothing of another, nor of all other files.
        f.answers([ALLOW_ALWAYS]);
        f.says("/write .git/config new").await;
        let always = &f.asked()[0].options[1].name;
        assert!(
            always.contains("changes to `") && always.contains(".git/config"),
            "{always}"
        );
        f.says("/write .git/config newer").await;
        assert!(f.asked().is_empty());
        f.answers([REJECT]);
        f.says("/write .git/hooks/pre-commit evil").await;
    }
}

/// The answer for the project's files does not reach what is not one of them.
#[tokio::test]
async fn always_for_writing_is_about_ordinary_files() {
    let (f, _home) = ruled("", NONE).await;
    f.answers([ALLOW_ALWAYS]);
    f.says("/write a.txt 1").await;
    assert_eq!(
        f.asked()[0].options[1].name,
        "Always allow writing project files in this session"
    );
    f.answers([REJECT]);
    f.says("/write .envrc evil").await;
    assert!(!f.there(".envrc"));
}

#[tokio::test]
async fn rules_that_cannot_be_read_allow_nothing() {
    let (f, _home) = ruled("[[rule]]\ndecision = \"perhaps\"\n", NONE).await;
    f.session.set_mode("code").await.unwrap();
    f.put("a.txt", "old");
    for command in ["/write a.txt new", "/read a.txt", "/search old"] {
        let said = f.says(command).await;
        assert!(
            said.contains("cannot read the permission rules") && said.contains("permissions.toml"),
            "{said}"
        );
    }
    assert_eq!(f.text("a.txt"), "old");
    assert!(f.asked().is_empty());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn code_mode_runs_what_is_sandboxed_unless_a_rule_forbids_it() {
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
    let f = AgentFixture::new(agent.rules(RuleFiles::new().user_rules(file)), NONE).await;
    f.session.set_mode("code").await.unwrap();
    f.says("/run echo one > two").await;
    assert_eq!(f.text("two"), "one\n");
    let said = f.says("/run touch three").await;
    assert!(said.contains("rule 1"), "{said}");
    assert!(!f.there("three") && f.asked().is_empty());
}
