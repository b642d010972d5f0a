//! Tests slash commands, including custom ones, with a model that understands language.

use crate::common::hears::RequestRecorder;
use crate::common::{AgentFixture, NO_CAPABILITIES, wait_for_thread};
use acp::thread::ItemKind;
use acp::v1::{AvailableCommand, ContentBlock};
use acp::{Options, Thread};
use acp_agent::store::MemoryStore;

fn script_of_turns(n: usize) -> String {
    format!(
        r#"{{"turns": [{}]}}"#,
        vec![r#"[{"say": "ok"}]"#; n].join(",")
    )
}

/// Returns the commands, as a user sees them.
fn announced_commands(thread: &Thread) -> Vec<String> {
    let line = |command: &AvailableCommand| match &command.input {
        Some(input) => format!("{} {}", command.name, input.hint),
        None => command.name.clone(),
    };
    thread.commands().iter().map(line).collect()
}

fn last_prompt_text(heard: &RequestRecorder) -> String {
    let prompt = heard.last_request().prompt();
    let texts = prompt.iter().filter_map(ContentBlock::as_text);
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns the user's messages as the client shows them.
fn user_texts(thread: &Thread) -> Vec<String> {
    let items = thread.items().iter();
    let said = items.filter_map(|item| match &item.kind {
        ItemKind::User(message) => Some(message.text()),
        _ => None,
    });
    said.collect()
}

#[tokio::test]
async fn command_expands_for_the_model_and_stays_as_typed_in_the_thread() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        let heard = RequestRecorder::default();
        let agent = heard
            .scripted_agent(&script_of_turns(6))
            .keep_sessions(MemoryStore::new());
        let f = AgentFixture::start_with_options(options, agent, NO_CAPABILITIES).await;
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
            .read(|thread| assert_eq!(announced_commands(thread), names));

        f.prompt_for_text("/review src/a.rs & friends").await;
        let told = last_prompt_text(&heard);
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
            f.prompt_for_text(typed).await;
            assert!(
                last_prompt_text(&heard).contains(means),
                "{}",
                last_prompt_text(&heard)
            );
        }
        f.prompt_for_text("/etc/hosts is what?").await;
        assert_eq!(last_prompt_text(&heard), "/etc/hosts is what?");

        let typed = [
            "/review src/a.rs & friends",
            "/plan a garden",
            "/test",
            "/init",
            "/etc/hosts is what?",
        ];
        f.session.thread().read(|thread| {
            assert_eq!(user_texts(thread), typed);
            assert_eq!(thread.title(), Some(typed[0]));
        });
        let id = f.session.id().clone();
        let again = f.agent.load_session(id, f.cwd()).await.unwrap();
        again.thread().read(|thread| {
            assert_eq!(user_texts(thread), typed);
            assert_eq!(thread.title(), Some(typed[0]));
        });
    }
}

#[tokio::test]
async fn help_is_answered_without_the_model() {
    let heard = RequestRecorder::default();
    let f = AgentFixture::new(heard.scripted_agent(&script_of_turns(2)), NO_CAPABILITIES).await;
    let help = f.prompt_for_text("/help").await;
    for part in ["`/plan GOAL`", "`/compact [WHAT TO KEEP]`", ".acp/commands"] {
        assert!(help.contains(part), "{part}: {help}");
    }
    assert!(heard.all_requests().is_empty());
    f.prompt_for_text("thanks").await;
    assert_eq!(heard.last_request().message_lines()[0], "user /help");
    assert!(heard.last_request().is_well_formed());
}

#[tokio::test]
async fn custom_commands_are_read_from_files() {
    let heard = RequestRecorder::default();
    let f = AgentFixture::new(heard.scripted_agent(&script_of_turns(5)), NO_CAPABILITIES).await;
    f.write_file(
        ".acp/commands/fix.md",
        "---\ndescription: Fix an issue\nargument-hint: [ISSUE] [HOW]\n---\nFix $1 ($ARGUMENTS), by $2.\n",
    );
    f.write_file(".acp/commands/test.md", "Run `make check`.");
    f.write_file(".acp/commands/help.md", "No.");
    f.write_file(".acp/commands/bad name.md", "No.");
    f.write_file(".acp/commands/empty.md", "---\ndescription: x\n---\n");
    f.write_file(".acp/commands/huge.md", &"x".repeat(100_000));
    f.write_file(".acp/commands/notes.txt", "Nothing to do with it.");
    let session = f.agent.new_session(f.path("")).await.unwrap();
    let both =
        |thread: &Thread| announced_commands(thread).contains(&"fix [ISSUE] [HOW]".to_owned());
    wait_for_thread(session.thread(), both).await;
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
        .read(|thread| assert_eq!(announced_commands(thread), names));

    session.prompt("/fix 12 'great care'").await.unwrap();
    let told = last_prompt_text(&heard);
    assert!(
        told.ends_with("Fix 12 (12 'great care'), by great care."),
        "{told}"
    );
    session.prompt("/test quickly").await.unwrap();
    assert!(
        last_prompt_text(&heard).ends_with("Run `make check`.\n\nquickly"),
        "{}",
        last_prompt_text(&heard)
    );

    // The problems with the other files are reported once.
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

    // A file that is created later is available in the next turn.
    f.write_file(".acp/commands/later.md", "Later.");
    session.prompt("/later").await.unwrap();
    assert!(
        last_prompt_text(&heard).ends_with("Later."),
        "{}",
        last_prompt_text(&heard)
    );
    session
        .thread()
        .read(|thread| assert!(announced_commands(thread).contains(&"later".to_owned())));
}

#[cfg(unix)]
#[tokio::test]
async fn command_files_outside_the_roots_are_ignored() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("x.md"), "The secret.").unwrap();
    let heard = RequestRecorder::default();
    let f = AgentFixture::new(heard.scripted_agent(&script_of_turns(1)), NO_CAPABILITIES).await;
    f.write_file(".acp/commands/a.md", "A.");
    std::os::unix::fs::symlink(outside.path().join("x.md"), f.path(".acp/commands/x.md")).unwrap();
    f.prompt_for_text("/x").await;
    assert_eq!(last_prompt_text(&heard), "/x");
}
