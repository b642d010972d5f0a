use std::sync::Arc;
use std::time::{Duration, Instant};

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

/// An agent that opens sessions and immediately ends every turn.
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

/// Creates a chat with two agents, neither of them started. Tests inspect effects instead of performing them.
fn app_with_agent() -> (App, Vec<ChatEffect>) {
    let command = AgentCommand::new("cat");
    let permissions = Permissions::default_policy(Policy::Ask);
    let first = AgentSpec::new("first", command.clone());
    let mut setup = ChatSetup::new(first, "/", permissions);
    setup.agents.push(AgentSpec::new("second", command));
    setup.themes = Theme::new(Background::Dark, Colors::None).into();
    App::new(setup, Arc::new(Notify::new()))
}

/// Connects to an agent in this process. Its child process is unrelated and does nothing.
async fn connect_agent(app: &App) -> RunningAgent {
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

fn press_key(app: &mut App, code: KeyCode) -> Vec<ChatEffect> {
    app.update(ChatEvent::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn press_ctrl(app: &mut App, letter: char) -> Vec<ChatEffect> {
    let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
    app.update(ChatEvent::Key(key))
}

fn submit_line(app: &mut App, line: &str) -> Vec<ChatEffect> {
    for letter in line.chars() {
        press_key(app, KeyCode::Char(letter));
    }
    press_key(app, KeyCode::Enter)
}

fn render_screen(app: &mut App, width: u16, height: u16) -> String {
    app.collect_notes_and_questions();
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
fn assert_shows(app: &mut App, text: &str) {
    let screen = render_screen(app, 80, 24);
    assert!(screen.contains(text), "{text} is missing from\n{screen}");
}

/// Returns the texts of the prompts that these effects send.
fn sent_prompts(effects: &[ChatEffect]) -> Vec<String> {
    let said = effects.iter().filter_map(|effect| match effect {
        ChatEffect::SendPrompt { draft, .. } => Some(draft.display_text().to_owned()),
        _ => None,
    });
    said.collect()
}

/// Opens a session with the first agent.
async fn open_session(app: &mut App) -> (ClientSession, Vec<ChatEffect>) {
    let link = connect_agent(app).await;
    let session = link
        .connection
        .new_session(acp::client::SessionSetup::new("/"))
        .await
        .unwrap();
    let agent = AgentKey(0);
    let stamp = AgentStart(1);
    let opens = app.update(ChatEvent::AgentConnected { agent, stamp, link });
    let tab = TabKey(0);
    let event = ChatEvent::SessionOpened {
        tab,
        since: opening_since(&opens, tab),
        result: Ok(session.clone()),
        name: None,
    };
    (session, app.update(event))
}

/// Returns when the only effect, which opens a session in this tab, was created.
fn opening_since(effects: &[ChatEffect], expected: TabKey) -> Instant {
    match effects {
        [ChatEffect::OpenSession { tab, since, .. }] if *tab == expected => *since,
        _ => panic!("{} other effects", effects.len()),
    }
}

fn end_agent(app: &mut App, stamp: AgentStart) -> Vec<ChatEffect> {
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
async fn prompt_typed_before_the_session_opens_is_sent_afterwards() {
    let (mut app, effects) = app_with_agent();
    assert!(matches!(effects[..], [ChatEffect::StartAgent { .. }]));
    assert!(submit_line(&mut app, "one").is_empty());
    assert!(submit_line(&mut app, "two").is_empty());
    assert_shows(&mut app, "↳ one");
    let (_session, effects) = open_session(&mut app).await;
    // One at a time: the other prompt is queued.
    assert_eq!(sent_prompts(&effects), ["one"]);
    let tab = TabKey(0);
    let result = Ok(StopReason::EndTurn);
    assert_eq!(
        sent_prompts(&app.update(ChatEvent::TurnEnded { tab, result })),
        ["two"]
    );
}

#[tokio::test]
async fn queued_prompts_are_held_after_a_cancel() {
    let (mut app, _) = app_with_agent();
    let (_session, _) = open_session(&mut app).await;
    assert_eq!(sent_prompts(&submit_line(&mut app, "one")), ["one"]);
    assert!(submit_line(&mut app, "two").is_empty());
    assert!(matches!(
        press_key(&mut app, KeyCode::Esc)[..],
        [ChatEffect::CancelTurn { .. }]
    ));
    let tab = TabKey(0);
    let result = Ok(StopReason::Cancelled);
    assert!(app.update(ChatEvent::TurnEnded { tab, result }).is_empty());
    assert_shows(&mut app, "↳ two");
    press_key(&mut app, KeyCode::Up);
    assert_shows(&mut app, "│two");
    assert_eq!(sent_prompts(&press_key(&mut app, KeyCode::Enter)), ["two"]);
}

#[tokio::test]
async fn abandoned_agent_is_stopped_when_it_connects() {
    let (mut app, _) = app_with_agent();
    let late = connect_agent(&app).await;
    let effects = press_key(&mut app, KeyCode::F(5));
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
    assert!(end_agent(&mut app, AgentStart(1)).is_empty());
    assert_shows(&mut app, "starting first");
    end_agent(&mut app, AgentStart(2));
    assert_shows(&mut app, "first ended: exit code 1");
    assert_shows(&mut app, "out of memory");
}

#[tokio::test]
async fn session_of_a_closed_tab_is_closed() {
    let (mut app, _) = app_with_agent();
    let (session, _) = open_session(&mut app).await;
    let effects = press_ctrl(&mut app, 't');
    let since = opening_since(&effects, TabKey(1));
    let alt = KeyEvent::new(KeyCode::Char('w'), KeyModifiers::ALT);
    app.update(ChatEvent::Key(alt));
    let effects = app.update(ChatEvent::SessionOpened {
        tab: TabKey(1),
        since,
        result: Ok(session),
        name: None,
    });
    assert!(matches!(effects[..], [ChatEffect::CloseSession { .. }]));
    assert!(!app.should_quit());
}

#[tokio::test]
async fn prompt_rejected_for_login_is_sent_first_after_login() {
    let (mut app, _) = app_with_agent();
    let (_session, _) = open_session(&mut app).await;
    submit_line(&mut app, "one");
    submit_line(&mut app, "two");
    press_key(&mut app, KeyCode::Char('x'));
    let tab = TabKey(0);
    let result = Err(AgentFailure::LoginRequired("who are you?".to_owned()));
    assert!(app.update(ChatEvent::TurnEnded { tab, result }).is_empty());
    assert_shows(&mut app, "first says: who are you?");
    // The text in the editor does not disable the keys, and is not lost.
    assert_shows(&mut app, "F5: try again");
    let (agent, result) = (AgentKey(0), Ok(()));
    assert_eq!(
        sent_prompts(&app.update(ChatEvent::LoggedIn { agent, result })),
        ["one"]
    );
    assert_shows(&mut app, "│x");
}

#[tokio::test]
async fn working_agent_is_not_restarted_by_a_single_key() {
    let (mut app, _) = app_with_agent();
    let (_session, _) = open_session(&mut app).await;
    submit_line(&mut app, "one");
    assert!(press_key(&mut app, KeyCode::F(5)).is_empty());
    assert_shows(&mut app, "press F5 again to restart it");
    let effects = press_key(&mut app, KeyCode::F(5));
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
async fn question_is_withdrawn_when_its_agent_ends() {
    let (mut app, _) = app_with_agent();
    let (session, _) = open_session(&mut app).await;
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
    assert_shows(&mut app, " 1 ? ");
    assert_shows(&mut app, "starting second");
    let alt = KeyEvent::new(KeyCode::Char('1'), KeyModifiers::ALT);
    app.update(ChatEvent::Key(alt));
    assert_shows(&mut app, "needs your answer");
    end_agent(&mut app, AgentStart(1));
    assert_shows(&mut app, "first ended");
    assert_shows(&mut app, "2 ◌ second");
    asking.abort();
}

#[test]
fn ctrl_c_quits_only_if_pressed_twice() {
    let (mut app, _) = app_with_agent();
    press_key(&mut app, KeyCode::Char('x'));
    press_ctrl(&mut app, 'c');
    assert_shows(&mut app, "│Type a prompt");
    press_ctrl(&mut app, 'c');
    assert_shows(&mut app, "Press Ctrl-C again to quit");
    press_key(&mut app, KeyCode::Char('x'));
    press_key(&mut app, KeyCode::Backspace);
    press_ctrl(&mut app, 'c');
    assert!(!app.should_quit());
    press_ctrl(&mut app, 'c');
    assert!(app.should_quit());
}

#[test]
fn notes_expire() {
    let (mut app, _) = app_with_agent();
    app.update(ChatEvent::Note("saved".to_owned()));
    assert_shows(&mut app, "saved");
    assert!(app.is_animated());
    app.notes[0].expires_at = std::time::Instant::now() - Duration::from_millis(1);
    assert!(!render_screen(&mut app, 80, 24).contains("saved"));
}

/// An event in a randomly generated sequence.
#[derive(Debug, Clone)]
enum TestEvent {
    Key(KeyEvent),
    Paste(String),
    Said(String),
    Ended,
    Size(u16, u16),
}

fn arbitrary_event() -> impl Strategy<Value = TestEvent> {
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

    /// Checks that the chat draws a screen and has an active tab, regardless of the keys pressed and the screen size.
    #[test]
    fn chat_survives_arbitrary_keys_at_any_size(all in prop::collection::vec(arbitrary_event(), 0..60)) {
        let (mut app, _) = app_with_agent();
        let (mut width, mut height) = (80, 24);
        for happens in all {
            match happens {
                TestEvent::Key(key) => drop(app.update(ChatEvent::Key(key))),
                TestEvent::Paste(text) => drop(app.update(ChatEvent::Paste(text))),
                TestEvent::Said(text) => drop(app.update(ChatEvent::Note(text))),
                TestEvent::Ended => drop(end_agent(&mut app, AgentStart(1))),
                TestEvent::Size(w, h) => (width, height) = (w, h),
            }
            render_screen(&mut app, width, height);
            prop_assert!(app.active < app.tabs.len());
        }
    }
}
