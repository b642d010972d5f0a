use std::sync::Arc;
use std::time::Duration;

use acp::agent::{Prompt, SessionOpened, SessionSetup, Turn};
use acp::client::Session;
use acp::v1::{PermissionOption, PermissionOptionKind, StopReason, ToolCallUpdate};
use acp_host::{AgentCommand, Permissions, Policy};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tokio::sync::Notify;

use super::tab::Phase;
use super::{AgentKey, App, Effect, Event, Stamp, TabKey};
use crate::agent::{Cure, Gone, Link, Notes, Surroundings, Trouble, spawn};
use crate::setup::{AgentSpec, Open, Setup};
use crate::{Background, Colors, Theme};

/// An agent that opens sessions and lets nobody wait.
struct Ready;

impl acp::Agent for Ready {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: SessionSetup,
    ) -> acp::Result<SessionOpened> {
        Ok(SessionOpened::new())
    }

    async fn prompt(&self, (): &(), _: Turn, _: Prompt) -> acp::Result<StopReason> {
        Ok(StopReason::EndTurn)
    }
}

/// A chat with two agents, of which neither was started: what is to be done is looked at, and not done.
fn app() -> (App, Vec<Effect>) {
    let command = AgentCommand::new("cat");
    let permissions = Permissions::policy_by_default(Policy::Ask);
    let first = AgentSpec::new("first", command.clone());
    let mut setup = Setup::new(first, "/", permissions);
    setup.agents.push(AgentSpec::new("second", command));
    setup.theme = Theme::new(Background::Dark, Colors::None);
    App::new(setup, Arc::new(Notify::new()))
}

/// A connection with an agent of this process. Its program is another, which does nothing.
async fn link(app: &App) -> Link {
    let spec = AgentSpec::new("first", AgentCommand::new("cat"));
    let process = spawn(&spec, std::path::Path::new("/"), &Notes::default()).unwrap();
    let (ours, theirs) = acp::transport::memory();
    let _serving = acp::testing::start_agent(theirs, Ready, acp::Options::new());
    struct Plain;
    impl acp::Client for Plain {
        type State = ();

        async fn request_permission(
            &self,
            (): &(),
            _: acp::client::PermissionRequest,
        ) -> acp::Result<acp::v1::RequestPermissionOutcome> {
            std::future::pending().await
        }
    }
    let connection = acp::testing::start_client(ours, Plain, acp::Options::new())
        .await
        .unwrap();
    let around: &Surroundings = app.around();
    let asks = crate::agent::Desk::new(Arc::clone(&around.wake));
    let host = acp_host::Host::new(
        around.permissions.clone(),
        crate::agent::Ask(asks),
        ["/".into()],
    );
    Link {
        process,
        connection,
        host: Arc::new(host.unwrap()),
    }
}

fn key(app: &mut App, code: KeyCode) -> Vec<Effect> {
    app.update(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn ctrl(app: &mut App, letter: char) -> Vec<Effect> {
    let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
    app.update(Event::Key(key))
}

fn say(app: &mut App, line: &str) -> Vec<Effect> {
    for letter in line.chars() {
        key(app, KeyCode::Char(letter));
    }
    key(app, KeyCode::Enter)
}

fn screen(app: &mut App, width: u16, height: u16) -> String {
    app.collect();
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
    assert!(screen.contains(text), "{text} is not on\n{screen}");
}

/// What is said in these effects.
fn said(effects: &[Effect]) -> Vec<String> {
    let said = effects.iter().filter_map(|effect| match effect {
        Effect::Prompt { draft, .. } => Some(draft.shown().to_owned()),
        _ => None,
    });
    said.collect()
}

/// Brings the first agent to where its session is open.
async fn opened(app: &mut App) -> (Session, Vec<Effect>) {
    let link = link(app).await;
    let session = link
        .connection
        .new_session(acp::client::SessionSetup::new("/"))
        .await
        .unwrap();
    let agent = AgentKey(0);
    let stamp = Stamp(1);
    let opens = app.update(Event::Connected { agent, stamp, link });
    assert!(matches!(opens[..], [Effect::Open { tab: TabKey(0), .. }]));
    let tab = TabKey(0);
    let result = Ok(session.clone());
    let name = None;
    (session, app.update(Event::Opened { tab, result, name }))
}

fn ended(app: &mut App, stamp: Stamp) -> Vec<Effect> {
    let trouble = Trouble::Gone(Gone {
        what: "ended: exit code 1".to_owned(),
        tail: "out of memory".to_owned(),
        cure: Cure::Unknown,
    });
    let agent = AgentKey(0);
    app.update(Event::Ended {
        agent,
        stamp,
        trouble,
    })
}

#[tokio::test]
async fn what_is_said_before_the_session_is_there_is_said_in_it() {
    let (mut app, effects) = app();
    assert!(matches!(effects[..], [Effect::Start { .. }]));
    assert!(say(&mut app, "one").is_empty());
    assert!(say(&mut app, "two").is_empty());
    shows(&mut app, "↳ one");
    let (_session, effects) = opened(&mut app).await;
    // One at a time: the other waits for its turn.
    assert_eq!(said(&effects), ["one"]);
    let tab = TabKey(0);
    let result = Ok(StopReason::EndTurn);
    assert_eq!(said(&app.update(Event::TurnEnded { tab, result })), ["two"]);
}

#[tokio::test]
async fn whoever_cancels_says_the_next_themselves() {
    let (mut app, _) = app();
    let (_session, _) = opened(&mut app).await;
    assert_eq!(said(&say(&mut app, "one")), ["one"]);
    assert!(say(&mut app, "two").is_empty());
    assert!(matches!(
        key(&mut app, KeyCode::Esc)[..],
        [Effect::Cancel { .. }]
    ));
    let tab = TabKey(0);
    let result = Ok(StopReason::Cancelled);
    assert!(app.update(Event::TurnEnded { tab, result }).is_empty());
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
            Effect::Start {
                stamp: Stamp(2),
                ..
            }
        ]
    ));
    let (agent, stamp) = (AgentKey(0), Stamp(1));
    let effects = app.update(Event::Connected {
        agent,
        stamp,
        link: late,
    });
    assert!(matches!(effects[..], [Effect::End { .. }]));
    // Nor does its end count.
    assert!(ended(&mut app, Stamp(1)).is_empty());
    shows(&mut app, "starting first");
    ended(&mut app, Stamp(2));
    shows(&mut app, "first ended: exit code 1");
    shows(&mut app, "out of memory");
}

#[tokio::test]
async fn a_session_whose_tab_was_closed_meanwhile_is_closed() {
    let (mut app, _) = app();
    let (session, _) = opened(&mut app).await;
    let effects = ctrl(&mut app, 't');
    assert!(matches!(effects[..], [Effect::Open { tab: TabKey(1), .. }]));
    let alt = KeyEvent::new(KeyCode::Char('w'), KeyModifiers::ALT);
    app.update(Event::Key(alt));
    let (tab, result, name) = (TabKey(1), Ok(session), None);
    let effects = app.update(Event::Opened { tab, result, name });
    assert!(matches!(effects[..], [Effect::Close { .. }]));
    assert!(!app.is_done());
}

#[tokio::test]
async fn a_prompt_that_wanted_a_login_is_said_again_before_all_others() {
    let (mut app, _) = app();
    let (_session, _) = opened(&mut app).await;
    say(&mut app, "one");
    say(&mut app, "two");
    key(&mut app, KeyCode::Char('x'));
    let tab = TabKey(0);
    let result = Err(Trouble::Login("who are you?".to_owned()));
    assert!(app.update(Event::TurnEnded { tab, result }).is_empty());
    shows(&mut app, "first says: who are you?");
    // What is being written is not in the way, and is not lost.
    shows(&mut app, "F5: try again");
    let (agent, result) = (AgentKey(0), Ok(()));
    assert_eq!(
        said(&app.update(Event::LoggedIn { agent, result })),
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
    shows(&mut app, "F5 again ends it");
    let effects = key(&mut app, KeyCode::F(5));
    assert!(matches!(
        effects[..],
        [
            Effect::End { .. },
            Effect::Unwatch { .. },
            Effect::Start { .. }
        ]
    ));
    // It opens no session of before: one begins anew rather than ask it for that.
    assert!(matches!(app.tabs[0].open, Open::New));
    assert!(matches!(app.tabs[0].phase, Phase::Starting));
}

#[tokio::test]
async fn a_question_goes_with_its_agent_and_others_are_not_touched() {
    let (mut app, _) = app();
    let (session, _) = opened(&mut app).await;
    let effects = app.new_tab(AgentKey(1), Open::New);
    assert!(matches!(
        effects[..],
        [Effect::Start {
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
    let desk = Arc::clone(&app.agents[0].desk);
    let question = crate::agent::Question::Permission(Box::new(request), acp_host::Always::ByAgent);
    let asking = tokio::spawn(async move { desk.ask(question).await });
    while app.agents[0].desk.open().is_empty() {
        tokio::task::yield_now().await;
    }
    // It is asked in its own tab, which is marked.
    shows(&mut app, " 1 ? ");
    shows(&mut app, "starting second");
    let alt = KeyEvent::new(KeyCode::Char('1'), KeyModifiers::ALT);
    app.update(Event::Key(alt));
    shows(&mut app, "waiting for you");
    ended(&mut app, Stamp(1));
    shows(&mut app, "first ended");
    shows(&mut app, "2 ◌ second");
    asking.abort();
}

#[test]
fn ctrl_c_ends_the_chat_only_if_it_is_pressed_twice() {
    let (mut app, _) = app();
    key(&mut app, KeyCode::Char('x'));
    ctrl(&mut app, 'c');
    shows(&mut app, "│What is to be done?");
    ctrl(&mut app, 'c');
    shows(&mut app, "Ctrl-C again ends the chat");
    key(&mut app, KeyCode::Char('x'));
    key(&mut app, KeyCode::Backspace);
    ctrl(&mut app, 'c');
    assert!(!app.is_done());
    ctrl(&mut app, 'c');
    assert!(app.is_done());
}

#[test]
fn notes_go_by_themselves() {
    let (mut app, _) = app();
    app.update(Event::Said("saved".to_owned()));
    shows(&mut app, "saved");
    assert!(app.is_moving());
    app.notes[0].until = std::time::Instant::now() - Duration::from_millis(1);
    assert!(!screen(&mut app, 80, 24).contains("saved"));
}

/// What can happen to a chat, one after the other.
#[derive(Debug, Clone)]
enum Happens {
    Key(KeyEvent),
    Paste(String),
    Said(String),
    Ended,
    Size(u16, u16),
}

fn happens() -> impl Strategy<Value = Happens> {
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
        12 => (code, modifiers).prop_map(|(code, modifiers)| Happens::Key(KeyEvent::new(code, modifiers))),
        1 => "\\PC{0,200}".prop_map(Happens::Paste),
        1 => "\\PC{0,200}".prop_map(Happens::Said),
        1 => Just(Happens::Ended),
        2 => (0u16..140, 0u16..50).prop_map(|(width, height)| Happens::Size(width, height)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is pressed, at whatever size: there is a screen, and a tab that is shown.
    #[test]
    fn any_keys_at_any_size_leave_a_chat(all in prop::collection::vec(happens(), 0..60)) {
        let (mut app, _) = app();
        let (mut width, mut height) = (80, 24);
        for happens in all {
            match happens {
                Happens::Key(key) => drop(app.update(Event::Key(key))),
                Happens::Paste(text) => drop(app.update(Event::Paste(text))),
                Happens::Said(text) => drop(app.update(Event::Said(text))),
                Happens::Ended => drop(ended(&mut app, Stamp(1))),
                Happens::Size(w, h) => (width, height) = (w, h),
            }
            screen(&mut app, width, height);
            prop_assert!(app.active < app.tabs.len());
        }
    }
}
