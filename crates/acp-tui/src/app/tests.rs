use std::sync::Arc;
use std::time::Duration;

use acp::agent::{OpenedSession, Prompt, SessionSetup, Turn};
use acp::client::ClientSession;
use acp::v1::{PermissionOption, PermissionOptionKind, StopReason, ToolCallUpdate};
use acp_host::{AgentCommand, Permissions, Policy};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tokio::sync::Notify;

use super::tab::TabPhase;
use super::{AgentKey, AgentStart, App, ChatEffect, ChatEvent, TabKey};
use crate::agent::{
    AgentExit, AgentFailure, ChatEnvironment, ChatNotes, Remedy, RunningAgent, spawn,
};
use crate::setup::{AgentSpec, ChatSetup, SessionSource};
use crate::{Background, Colors, Theme};

/// An agent that opens sessions and ends every turn at once.
struct ReadyAgent;

impl acp::Agent for ReadyAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: SessionSetup,
    ) -> acp::Result<OpenedSession> {
        Ok(OpenedSession::new())
    }

    async fn prompt(&self, (): &(), _: Turn, _: Prompt) -> acp::Result<StopReason> {
        Ok(StopReason::EndTurn)
    }
}

/// Creates a chat with two agents, neither of which has been started. Tests inspect its effects instead of performing
/// them.
fn app() -> (App, Vec<ChatEffect>) {
    let command = AgentCommand::new("cat");
    let permissions = Permissions::default_policy(Policy::Ask);
    let first = AgentSpec::new("first", command.clone());
    let mut setup = ChatSetup::new(first, "/", permissions);
    setup.agents.push(AgentSpec::new("second", command));
    setup.theme = Theme::new(Background::Dark, Colors::None);
    App::new(setup, Arc::new(Notify::new()))
}

/// Connects to an agent in this process. Its child process is unrelated and does nothing.
async fn link(app: &App) -> RunningAgent {
    let spec = AgentSpec::new("first", AgentCommand::new("cat"));
    let process = spawn(&spec, std::path::Path::new("/"), &ChatNotes::default()).unwrap();
    let (ours, theirs) = acp::transport::memory();
    let _serving = acp::testing::start_agent(theirs, ReadyAgent, acp::Options::new());
    struct PlainClient;
    impl acp::Client for PlainClient {
        type State = ();

        async fn request_permission(
            &self,
            (): &(),
            _: acp::client::PermissionRequest,
        ) -> acp::Result<acp::v1::RequestPermissionOutcome> {
            std::future::pending().await
        }
    }
    let connection = acp::testing::start_client(ours, PlainClient, acp::Options::new())
        .await
        .unwrap();
    let environment: &ChatEnvironment = app.environment();
    let asks = crate::agent::QuestionQueue::new(Arc::clone(&environment.wake));
    let host = acp_host::Host::new(
        environment.permissions.clone(),
        crate::agent::ChatPrompter(asks),
        ["/".into()],
    );
    RunningAgent {
        process,
        connection,
        host: Arc::new(host.unwrap()),
    }
}

fn key(app: &mut App, code: KeyCode) -> Vec<ChatEffect> {
    app.update(ChatEvent::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn ctrl(app: &mut App, letter: char) -> Vec<ChatEffect> {
    let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
    app.update(ChatEvent::Key(key))
}

fn say(app: &mut App, line: &str) -> Vec<ChatEffect> {
    for letter in line.chars() {
        key(app, KeyCode::Char(letter));
    }
    key(app, KeyCode::Enter)
}

fn screen(app: &mut App, width: u16, height: u16) -> String {
    app.collect_news();
    let area = Rect::new(0, 0, width, height);
    let mut buf = Buffer::empty(area);
    app.draw(area, &mut buf);
    let rows = (0..height).map(|y| {
        let row: String = (0..width).map(|x| buf[(x, y)].symbol()).collect();
        row.trim_end().to_owned()
    });
    rows.collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn shows(app: &mut App, text: &str) {
    let screen = screen(app, 80, 24);
    assert!(screen.contains(text), "{text} is missing from\n{screen}");
}

/// Returns the texts of the prompts that these effects send.
fn said(effects: &[ChatEffect]) -> Vec<String> {
    let said = effects.iter().filter_map(|effect| match effect {
        ChatEffect::SendPrompt { draft, .. } => Some(draft.display_text().to_owned()),
        _ => None,
    });
    said.collect()
}

/// Opens a session of the first agent.
async fn opened(app: &mut App) -> (ClientSession, Vec<ChatEffect>) {
    let link = link(app).await;
    let session = link
        .connection
        .new_session(acp::client::SessionSetup::new("/"))
        .await
        .unwrap();
    let agent = AgentKey(0);
    let stamp = AgentStart(1);
    let opens = app.update(ChatEvent::AgentConnected { agent, stamp, link });
    assert!(matches!(
        opens[..],
        [ChatEffect::OpenSession { tab: TabKey(0), .. }]
    ));
    let tab = TabKey(0);
    let result = Ok(session.clone());
    let name = None;
    (
        session,
        app.update(ChatEvent::SessionOpened { tab, result, name }),
    )
}

fn ended(app: &mut App, stamp: AgentStart) -> Vec<ChatEffect> {
    let failure = AgentFailure::Exited(AgentExit {
        description: "ended: exit code 1".to_owned(),
        output_tail: "out of memory".to_owned(),
        remedy: Remedy::Unknown,
    });
    let agent = AgentKey(0);
    app.update(ChatEvent::AgentEnded {
        agent,
        stamp,
        failure,
    })
}

#[tokio::test]
async fn what_is_said_before_the_session_is_there_is_said_in_it() {
    let (mut app, effects) = app();
    assert!(matches!(effects[..], [ChatEffect::StartAgent { .. }]));
    assert!(say(&mut app, "one").is_empty());
    assert!(say(&mut app, "two").is_empty());
    shows(&mut app, "↳ one");
    let (_session, effects) = opened(&mut app).await;
    // One at a time: the other prompt is queued.
    assert_eq!(said(&effects), ["one"]);
    let tab = TabKey(0);
    let result = Ok(StopReason::EndTurn);
    assert_eq!(
        said(&app.update(ChatEvent::TurnEnded { tab, result })),
        ["two"]
    );
}

#[tokio::test]
async fn whoever_cancels_says_the_next_themselves() {
    let (mut app, _) = app();
    let (_session, _) = opened(&mut app).await;
    assert_eq!(said(&say(&mut app, "one")), ["one"]);
    assert!(say(&mut app, "two").is_empty());
    assert!(matches!(
        key(&mut app, KeyCode::Esc)[..],
        [ChatEffect::CancelTurn { .. }]
    ));
    let tab = TabKey(0);
    let result = Ok(StopReason::Cancelled);
    assert!(app.update(ChatEvent::TurnEnded { tab, result }).is_empty());
    shows(&mut app, "↳ two");
    key(&mut app, KeyCode::Up);
    shows(&mut app, "│two");
    assert_eq!(said(&key(&mut app, KeyCode::Enter)), ["two"]);
}

#[tokio::test]
async fn an_agent_that_was_given_up_is_ended_when_it_answers_after_all() {
    let (mut app, _) = app();
    let late = link(&app).await;
    let effects = key(&mut app, KeyCode::F(5));
    assert!(matches!(
        effects[..],
        [
            ..,
            ChatEffect::StartAgent {
                stamp: AgentStart(2),
                ..
            }
        ]
    ));
    let (agent, stamp) = (AgentKey(0), AgentStart(1));
    let effects = app.update(ChatEvent::AgentConnected {
        agent,
        stamp,
        link: late,
    });
    assert!(matches!(effects[..], [ChatEffect::StopAgent { .. }]));
    // The end of an earlier start does not count either.
    assert!(ended(&mut app, AgentStart(1)).is_empty());
    shows(&mut app, "starting first");
    ended(&mut app, AgentStart(2));
    shows(&mut app, "first ended: exit code 1");
    shows(&mut app, "out of memory");
}

#[tokio::test]
async fn a_session_whose_tab_was_closed_meanwhile_is_closed() {
    let (mut app, _) = app();
    let (session, _) = opened(&mut app).await;
    let effects = ctrl(&mut app, 't');
    assert!(matches!(
        effects[..],
        [ChatEffect::OpenSession { tab: TabKey(1), .. }]
    ));
    let alt = KeyEvent::new(KeyCode::Char('w'), KeyModifiers::ALT);
    app.update(ChatEvent::Key(alt));
    let (tab, result, name) = (TabKey(1), Ok(session), None);
    let effects = app.update(ChatEvent::SessionOpened { tab, result, name });
    assert!(matches!(effects[..], [ChatEffect::CloseSession { .. }]));
    assert!(!app.should_quit());
}

#[tokio::test]
async fn a_prompt_that_wanted_a_login_is_said_again_before_all_others() {
    let (mut app, _) = app();
    let (_session, _) = opened(&mut app).await;
    say(&mut app, "one");
    say(&mut app, "two");
    key(&mut app, KeyCode::Char('x'));
    let tab = TabKey(0);
    let result = Err(AgentFailure::LoginRequired("who are you?".to_owned()));
    assert!(app.update(ChatEvent::TurnEnded { tab, result }).is_empty());
    shows(&mut app, "first says: who are you?");
    // The text in the editor does not disable the keys, and is not lost.
    shows(&mut app, "F5: try again");
    let (agent, result) = (AgentKey(0), Ok(()));
    assert_eq!(
        said(&app.update(ChatEvent::LoggedIn { agent, result })),
        ["one"]
    );
    shows(&mut app, "│x");
}

#[tokio::test]
async fn an_agent_that_works_is_not_ended_by_one_key() {
    let (mut app, _) = app();
    let (_session, _) = opened(&mut app).await;
    say(&mut app, "one");
    assert!(key(&mut app, KeyCode::F(5)).is_empty());
    shows(&mut app, "press F5 again to restart it");
    let effects = key(&mut app, KeyCode::F(5));
    assert!(matches!(
        effects[..],
        [
            ChatEffect::StopAgent { .. },
            ChatEffect::UnwatchThread { .. },
            ChatEffect::StartAgent { .. }
        ]
    ));
    // The agent cannot load sessions, so a new session is opened instead.
    assert!(matches!(app.tabs[0].session_source, SessionSource::New));
    assert!(matches!(app.tabs[0].phase, TabPhase::Starting));
}

#[tokio::test]
async fn a_question_goes_with_its_agent_and_others_are_not_touched() {
    let (mut app, _) = app();
    let (session, _) = opened(&mut app).await;
    let effects = app.new_tab(AgentKey(1), SessionSource::New);
    assert!(matches!(
        effects[..],
        [ChatEffect::StartAgent {
            agent: AgentKey(1),
            ..
        }]
    ));
    let option = PermissionOption::new("yes", "Yes", PermissionOptionKind::AllowOnce);
    let request = acp::client::PermissionRequest::new(
        session.id().clone(),
        &ToolCallUpdate::new("call"),
        vec![option],
        session.thread().clone(),
    );
    let questions = Arc::clone(&app.agents[0].questions);
    let question = crate::agent::ChatQuestion::Permission(
        Box::new(request),
        acp_host::AlwaysEffect::LeftToAgent,
    );
    let asking = tokio::spawn(async move { questions.ask(question).await });
    while app.agents[0].questions.open().is_empty() {
        tokio::task::yield_now().await;
    }
    // The question appears in its own tab, which is marked.
    shows(&mut app, " 1 ? ");
    shows(&mut app, "starting second");
    let alt = KeyEvent::new(KeyCode::Char('1'), KeyModifiers::ALT);
    app.update(ChatEvent::Key(alt));
    shows(&mut app, "needs your answer");
    ended(&mut app, AgentStart(1));
    shows(&mut app, "first ended");
    shows(&mut app, "2 ◌ second");
    asking.abort();
}

#[test]
fn ctrl_c_ends_the_chat_only_if_it_is_pressed_twice() {
    let (mut app, _) = app();
    key(&mut app, KeyCode::Char('x'));
    ctrl(&mut app, 'c');
    shows(&mut app, "│Type a prompt");
    ctrl(&mut app, 'c');
    shows(&mut app, "Press Ctrl-C again to quit");
    key(&mut app, KeyCode::Char('x'));
    key(&mut app, KeyCode::Backspace);
    ctrl(&mut app, 'c');
    assert!(!app.should_quit());
    ctrl(&mut app, 'c');
    assert!(app.should_quit());
}

#[test]
fn notes_go_by_themselves() {
    let (mut app, _) = app();
    app.update(ChatEvent::Note("saved".to_owned()));
    shows(&mut app, "saved");
    assert!(app.is_animated());
    app.notes[0].expires_at = std::time::Instant::now() - Duration::from_millis(1);
    assert!(!screen(&mut app, 80, 24).contains("saved"));
}

/// An event of a randomly generated sequence.
#[derive(Debug, Clone)]
enum TestEvent {
    Key(KeyEvent),
    Paste(String),
    Said(String),
    Ended,
    Size(u16, u16),
}

fn happens() -> impl Strategy<Value = TestEvent> {
    let code = prop_oneof![
        4 => "[a-z@/?\\\\你 ]".prop_map(|text| KeyCode::Char(text.chars().next().unwrap_or('x'))),
        4 => prop::sample::select(vec![
            KeyCode::Enter, KeyCode::Esc, KeyCode::Tab, KeyCode::Up, KeyCode::Down, KeyCode::Left,
            KeyCode::Backspace, KeyCode::PageUp, KeyCode::End, KeyCode::F(1), KeyCode::F(2), KeyCode::F(5),
        ]),
    ];
    let modifiers = prop::sample::select(vec![
        KeyModifiers::NONE,
        KeyModifiers::NONE,
        KeyModifiers::CONTROL,
        KeyModifiers::ALT,
        KeyModifiers::SHIFT,
    ]);
    prop_oneof![
        12 => (code, modifiers).prop_map(|(code, modifiers)| TestEvent::Key(KeyEvent::new(code, modifiers))),
        1 => "\\PC{0,200}".prop_map(TestEvent::Paste),
        1 => "\\PC{0,200}".prop_map(TestEvent::Said),
        1 => Just(TestEvent::Ended),
        2 => (0u16..140, 0u16..50).prop_map(|(width, height)| TestEvent::Size(width, height)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Checks that the chat draws a screen and has an active tab, whatever keys are pressed and whatever the screen
    /// size is.
    #[test]
    fn any_keys_at_any_size_leave_a_chat(all in prop::collection::vec(happens(), 0..60)) {
        let (mut app, _) = app();
        let (mut width, mut height) = (80, 24);
        for happens in all {
            match happens {
                TestEvent::Key(key) => drop(app.update(ChatEvent::Key(key))),
                TestEvent::Paste(text) => drop(app.update(ChatEvent::Paste(text))),
                TestEvent::Said(text) => drop(app.update(ChatEvent::Note(text))),
                TestEvent::Ended => drop(ended(&mut app, AgentStart(1))),
                TestEvent::Size(w, h) => (width, height) = (w, h),
            }
            screen(&mut app, width, height);
            prop_assert!(app.active < app.tabs.len());
        }
    }
}
