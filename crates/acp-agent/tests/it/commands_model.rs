//! Slash commands for a model that understands words, and the user's own.

use crate::common::hears::HeardRequests;
use crate::common::{AgentFixture, NONE, until};
use acp::thread::ItemKind;
use acp::v1::{AvailableCommand, ContentBlock};
use acp::{Options, Thread};
use acp_agent::store::MemoryStore;

fn turns(n: usize) -> String {
    format!(
        r#"{{"turns": [{}]}}"#,
        vec![r#"[{"say": "ok"}]"#; n].join(",")
    )
}

/// The commands as a person sees them.
fn announced(thread: &Thread) -> Vec<String> {
    let line = |command: &AvailableCommand| match &command.input {
        Some(input) => format!("{} {}", command.name, input.hint),
        None => command.name.clone(),
    };
    thread.commands().iter().map(line).collect()
}

fn prompt(heard: &HeardRequests) -> String {
    let prompt = heard.last().prompt();
    let texts = prompt.iter().filter_map(ContentBlock::as_text);
    texts.collect::<Vec<_>>().join("\n")
}

/// What the person said, as the client shows it.
fn said_by_person(thread: &Thread) -> Vec<String> {
    let items = thread.items().iter();
    let said = items.filter_map(|item| match &item.kind {
        ItemKind::User(message) => Some(message.text()),
        _ => None,
    });
    said.collect()
}

#[tokio::test]
async fn commands_are_prompts_and_what_was_typed_stays_the_persons_words() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        let heard = HeardRequests::default();
        let agent = heard.agent(&turns(6)).keep_sessions(MemoryStore::new());
        let f = AgentFixture::speaking(options, agent, NONE).await;
        let names = [
            "plan GOAL",
            "test [WHAT]",
            "compact [WHAT TO KEEP]",
            "init",
            "review [WHAT]",
            "help",
        ];
        f.session
            .thread()
            .read(|thread| assert_eq!(announced(thread), names));

        f.says("/review src/a.rs & friends").await;
        let told = prompt(&heard);
        assert!(
            told.contains("`/review`") && told.contains("src/a.rs & friends"),
            "{told}"
        );
        assert!(told.contains("git diff"), "{told}");
        for (typed, means) in [
            ("/plan a garden", "a garden"),
            ("/test", "run its tests"),
            ("/init", "AGENTS.md"),
        ] {
            f.says(typed).await;
            assert!(prompt(&heard).contains(means), "{}", prompt(&heard));
        }
        f.says("/etc/hosts is what?").await;
        assert_eq!(prompt(&heard), "/etc/hosts is what?");

        let typed = [
            "/review src/a.rs & friends",
            "/plan a garden",
            "/test",
            "/init",
            "/etc/hosts is what?",
        ];
        f.session.thread().read(|thread| {
            assert_eq!(said_by_person(thread), typed);
            assert_eq!(thread.title(), Some(typed[0]));
        });
        let id = f.session.id().clone();
        let again = f.agent.load_session(id, f.cwd()).await.unwrap();
        again.thread().read(|thread| {
            assert_eq!(said_by_person(thread), typed);
            assert_eq!(thread.title(), Some(typed[0]));
        });
    }
}

#[tokio::test]
async fn help_is_the_agents_own_answer() {
    let heard = HeardRequests::default();
    let f = AgentFixture::new(heard.agent(&turns(2)), NONE).await;
    let help = f.says("/help").await;
    for part in ["`/plan GOAL`", "`/compact [WHAT TO KEEP]`", ".acp/commands"] {
        assert!(help.contains(part), "{part}: {help}");
    }
    assert!(heard.all().is_empty());
    f.says("thanks").await;
    assert_eq!(heard.last().lines()[0], "user /help");
    assert!(heard.last().is_well_formed());
}

#[tokio::test]
async fn the_users_own_commands_are_files() {
    let heard = HeardRequests::default();
    let f = AgentFixture::new(heard.agent(&turns(5)), NONE).await;
    f.put(
        ".acp/commands/fix.md",
        "---\ndescription: Fix an issue\nargument-hint: [ISSUE] [HOW]\n---\nFix $1 ($ARGUMENTS), by $2.\n",
    );
    f.put(".acp/commands/test.md", "Run `make check`.");
    f.put(".acp/commands/help.md", "No.");
    f.put(".acp/commands/bad name.md", "No.");
    f.put(".acp/commands/empty.md", "---\ndescription: x\n---\n");
    f.put(".acp/commands/huge.md", &"x".repeat(100_000));
    f.put(".acp/commands/notes.txt", "Nothing to do with it.");
    let session = f.agent.new_session(f.path("")).await.unwrap();
    let both = |thread: &Thread| announced(thread).contains(&"fix [ISSUE] [HOW]".to_owned());
    until(session.thread(), both).await;
    let names = [
        "plan GOAL",
        "compact [WHAT TO KEEP]",
        "init",
        "review [WHAT]",
        "help",
        "fix [ISSUE] [HOW]",
        "test",
    ];
    session
        .thread()
        .read(|thread| assert_eq!(announced(thread), names));

    session.prompt("/fix 12 'great care'").await.unwrap();
    let told = prompt(&heard);
    assert!(
        told.ends_with("Fix 12 (12 'great care'), by great care."),
        "{told}"
    );
    session.prompt("/test quickly").await.unwrap();
    assert!(
        prompt(&heard).ends_with("Run `make check`.\n\nquickly"),
        "{}",
        prompt(&heard)
    );

    // What is wrong with the others is told once.
    let told = session.thread().read(|thread| {
        let items = thread.items().iter();
        let thoughts = items.filter_map(|item| match &item.kind {
            ItemKind::Thought(message) => Some(message.text()),
            _ => None,
        });
        thoughts.collect::<Vec<_>>().concat()
    });
    for why in [
        "help.md: `/help` is a built-in command",
        "bad name.md: command names must consist of",
        "empty.md: the prompt is missing",
        "huge.md: file larger than",
    ] {
        assert_eq!(told.matches(why).count(), 1, "{why}: {told}");
    }
    assert!(!told.contains("notes.txt"), "{told}");

    // One that comes later is there with the next turn.
    f.put(".acp/commands/later.md", "Later.");
    session.prompt("/later").await.unwrap();
    assert!(prompt(&heard).ends_with("Later."), "{}", prompt(&heard));
    session
        .thread()
        .read(|thread| assert!(announced(thread).contains(&"later".to_owned())));
}

#[cfg(unix)]
#[tokio::test]
async fn a_command_does_not_come_from_outside() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("x.md"), "The secret.").unwrap();
    let heard = HeardRequests::default();
    let f = AgentFixture::new(heard.agent(&turns(1)), NONE).await;
    f.put(".acp/commands/a.md", "A.");
    std::os::unix::fs::symlink(outside.path().join("x.md"), f.path(".acp/commands/x.md")).unwrap();
    f.says("/x").await;
    assert_eq!(prompt(&heard), "/x");
}
