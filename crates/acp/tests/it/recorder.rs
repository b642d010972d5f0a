//! Tests of recorders. In both versions, updates are recorded before they are sent, and in the same order.

use std::sync::{Arc, Mutex};

use acp::agent::{LoadSession, OpenedSession, Prompt, Recorder, Session, SessionSetup, Turn};
use acp::v1::{
    AvailableCommand, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionConfigOption,
    SessionConfigSelect, SessionConfigSelectOption, StopReason, TerminalExitStatus, ToolCall,
};
use acp::{Agent, Connection, Error, Limits, Options, Result, Update};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::common::{PIPE_CAPACITY, TestPeer, connect_pipes};

/// The recorded updates, serialized.
type RecordedValues = Arc<Mutex<Vec<Value>>>;

/// A recorder that stores an update only when the test allows it.
struct SlowRecorder {
    kept: RecordedValues,
    /// The number of updates that may be stored.
    may: Arc<Semaphore>,
    /// The number of updates that can be stored before storing fails.
    full: usize,
}

impl Recorder for SlowRecorder {
    async fn record(&self, (): &(), _: &Session, update: &Update) -> Result<()> {
        self.may.acquire().await.unwrap().forget();
        // Lets another sender try to overtake.
        tokio::task::yield_now().await;
        let mut kept = self.kept.lock().unwrap();
        if kept.len() >= self.full {
            return Err(Error::internal("the disk is full"));
        }
        kept.push(match update.clone().into_v1() {
            Some(update) => json!({"v1": update}),
            None => json!({"v2": update.clone().into_v2().unwrap()}),
        });
        Ok(())
    }
}

struct RecordingAgent<F> {
    prompt: F,
    keeps: SlowRecorder,
}

impl<F, Fut> Agent for RecordingAgent<F>
where
    F: Fn(Turn) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<StopReason>> + Send,
{
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> Result<StopReason> {
        (self.prompt)(turn).await
    }

    async fn session_opened(&self, (): &(), session: Session) {
        let command = AvailableCommand::new("help", "Helps");
        session.set_commands(vec![command]).await.unwrap();
    }

    fn load_session(&self) -> Option<&impl LoadSession> {
        Some(self)
    }

    fn recorder(&self) -> Option<&impl Recorder> {
        Some(&self.keeps)
    }
}

impl<F: Send + Sync> LoadSession for RecordingAgent<F> {
    async fn load(&self, session: &Session, _: SessionSetup) -> Result<OpenedSession> {
        session.replay_user_message("old question").await?;
        session.send_message("old answer").await?;
        Ok(OpenedSession::new())
    }
}

struct RecorderFixture {
    _conn: Connection,
    peer: TestPeer,
    session: String,
    kept: RecordedValues,
    may: Arc<Semaphore>,
    version: u16,
}

/// Opens a session with a client of the given version. After `full` updates, storing fails.
async fn start<F, Fut>(version: u16, full: usize, prompt: F) -> RecorderFixture
where
    F: Fn(Turn) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<StopReason>> + Send + 'static,
{
    let (kept, may) = (RecordedValues::default(), Arc::new(Semaphore::new(0)));
    let keeps = SlowRecorder {
        kept: Arc::clone(&kept),
        may: Arc::clone(&may),
        full,
    };
    let (transport, mut peer) = connect_pipes(PIPE_CAPACITY);
    let options = Options::from(Limits::default()).draft_version_2();
    let conn = acp::testing::start_agent(transport, RecordingAgent { prompt, keeps }, options);
    let params = json!({"protocolVersion": version, "info": {"name": "c", "version": "1"},
        "clientCapabilities": {"_meta": {"terminal_output": true}}});
    peer.send_request("init", "initialize", params).await;
    assert_eq!(peer.expect_result("init").await["protocolVersion"], version);
    let session = peer.new_session().await;
    let commands = peer.expect_notification("session/update").await;
    assert_eq!(
        commands["update"]["sessionUpdate"],
        "available_commands_update"
    );
    RecorderFixture {
        _conn: conn,
        peer,
        session,
        kept,
        may,
        version,
    }
}

impl RecorderFixture {
    fn recorded(&self) -> Vec<Value> {
        self.kept.lock().unwrap().clone()
    }

    async fn next_update(&mut self) -> Value {
        self.peer.expect_notification("session/update").await["update"].take()
    }

    /// Starts a turn, and allows its prompt to be stored.
    async fn begin_turn(&mut self) {
        let session = self.session.clone();
        self.peer.send_prompt(1, &session, "go").await;
        // Nothing starts before the prompt is recorded.
        self.peer.expect_silence().await;
        assert_eq!(self.recorded(), [] as [Value; 0]);
        self.may.add_permits(1);
        if self.version == 2 {
            let answer = self.peer.expect_result(1).await;
            let told = self.next_update().await;
            assert_eq!(told["messageId"], answer["messageId"]);
            assert_eq!(told["content"][0]["text"], "go");
            assert_eq!(self.recorded()[0]["v1"]["messageId"], answer["messageId"]);
            assert_eq!(self.next_update().await["state"], "running");
        }
    }

    /// Returns all updates of the turn and the message that ends it, without other version 2 state updates.
    async fn read_until_turn_end(&mut self) -> (Vec<Value>, Value) {
        let mut updates = Vec::new();
        loop {
            let mut message = self.peer.next().await;
            if message["id"] == 1 {
                return (updates, message);
            }
            let update = message["params"]["update"].take();
            if update["state"] == "idle" {
                return (updates, update);
            }
            if update["sessionUpdate"] != "state_update" {
                updates.push(update);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn updates_are_recorded_before_they_are_sent() {
    for version in [1, 2] {
        let mut f = start(version, 99, async |turn: Turn| {
            turn.send_message("Hel").await?;
            turn.send_message("lo").await?;
            let call = turn.report_tool_call(ToolCall::new("c", "Call")).await?;
            call.complete().await?;
            Ok(StopReason::EndTurn)
        })
        .await;
        f.begin_turn().await;
        for n in 2..6 {
            f.peer.expect_silence().await;
            assert_eq!(f.recorded().len(), n - 1);
            f.may.add_permits(1);
            let update = f.next_update().await;
            let kept = &f.recorded()[n - 1]["v1"];
            if n < 4 {
                assert_eq!(&update, kept);
                assert!(update["messageId"].as_str().unwrap().starts_with("msg_"));
            } else {
                assert_eq!(update["toolCallId"], kept["toolCallId"]);
            }
        }
        f.read_until_turn_end().await;
        let kinds: Vec<Value> = f
            .recorded()
            .iter()
            .map(|kept| kept["v1"]["sessionUpdate"].clone())
            .collect();
        assert_eq!(
            kinds,
            [
                "user_message_chunk",
                "agent_message_chunk",
                "agent_message_chunk",
                "tool_call",
                "tool_call_update",
            ]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_update_that_cannot_be_recorded_is_not_sent() {
    for version in [1, 2] {
        let failed = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&failed);
        let mut f = start(version, 2, move |turn: Turn| {
            let seen = Arc::clone(&seen);
            async move {
                turn.send_message("kept").await?;
                let tries = [
                    turn.send_message("a").await,
                    turn.send_thought("b").await,
                    turn.set_plan(Vec::new()).await,
                    turn.report_tool_call(ToolCall::new("c", "Call"))
                        .await
                        .map(drop),
                    turn.send_message_content("d").await,
                ];
                *seen.lock().unwrap() = tries.map(|tried| tried.unwrap_err().to_string()).to_vec();
                turn.send_message("e").await?;
                Ok(StopReason::EndTurn)
            }
        })
        .await;
        f.may.add_permits(99);
        let session = f.session.clone();
        f.peer.send_prompt(1, &session, "go").await;
        if version == 2 {
            f.peer.expect_result(1).await;
            f.next_update().await;
        }
        let (updates, end) = f.read_until_turn_end().await;
        assert_eq!(updates.len(), 1, "{updates:?}");
        assert_eq!(updates[0]["content"]["text"], "kept");
        let why = "update not sent because it could not be recorded: the disk is full";
        assert_eq!(end["error"]["message"], why, "{end}");
        assert_eq!(*failed.lock().unwrap(), [why; 5]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_cannot_be_recorded_is_rejected() {
    for version in [1, 2] {
        let mut f = start(version, 0, async |_| panic!("it is worked on")).await;
        f.may.add_permits(99);
        let session = f.session.clone();
        f.peer.send_prompt(1, &session, "go").await;
        let (code, why) = f.peer.expect_error(1).await;
        assert_eq!(code, -32603);
        assert!(why.ends_with("the disk is full"), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_record_is_the_same_for_both_versions() {
    let mut kept = Vec::new();
    for version in [1, 2] {
        let mut f = start(version, 99, async |turn: Turn| {
            turn.send_thought("Hm").await?;
            let step = PlanEntry::new("Do", PlanEntryPriority::High, PlanEntryStatus::Pending);
            turn.set_plan(vec![step]).await?;
            turn.set_title("About it").await?;
            // The current state is not part of the history.
            let value =
                SessionConfigSelect::new("a", vec![SessionConfigSelectOption::new("a", "A")]);
            let option = SessionConfigOption::new("o", "O", value);
            turn.set_config_options(vec![option]).await?;
            let call = turn.report_tool_call(ToolCall::new("c", "Run")).await?;
            let mut terminal = turn.show_display_terminal("c", "ls", Some("/work")).await?;
            call.set_content(vec![terminal.as_content()]).await?;
            // The first two bytes of a character that has three.
            terminal.append_output(b"a\xe2\x82").await?;
            terminal.append_output(b"\xac\n").await?;
            terminal.set_exited(TerminalExitStatus::new()).await?;
            call.cancel(Vec::new()).await?;
            Ok(StopReason::EndTurn)
        })
        .await;
        f.may.add_permits(99);
        let session = f.session.clone();
        f.peer.send_prompt(1, &session, "go").await;
        if version == 2 {
            f.peer.expect_result(1).await;
        }
        f.read_until_turn_end().await;
        kept.push(f.recorded());
    }
    let kinds: Vec<(bool, &Value)> = kept[0]
        .iter()
        .map(|kept| match kept.get("v1") {
            Some(update) => (false, &update["sessionUpdate"]),
            None => (true, &kept["v2"]["sessionUpdate"]),
        })
        .collect();
    let kind = |v2: bool, kind: &str| (v2, json!(kind));
    let expected = [
        kind(false, "user_message_chunk"),
        kind(false, "agent_thought_chunk"),
        kind(false, "plan"),
        kind(false, "session_info_update"),
        kind(false, "tool_call"),
        kind(true, "terminal_update"),
        kind(false, "tool_call_update"),
        kind(true, "terminal_output_chunk"),
        kind(true, "terminal_output_chunk"),
        kind(true, "terminal_update"),
        kind(false, "tool_call_update"),
    ];
    let expected: Vec<(bool, &Value)> = expected.iter().map(|(v2, kind)| (*v2, kind)).collect();
    assert_eq!(kinds, expected);
    assert_eq!(kept[0][7]["v2"]["data"], "YeKC");
    // They differ in their ids, and in how they report a cancelled call.
    assert_eq!(kept[0].len(), kept[1].len());
    for (one, two) in kept[0].iter().zip(&kept[1]).take(10) {
        assert_eq!(one.get("v1").is_some(), two.get("v1").is_some());
        assert_eq!(
            one["v1"].get("messageId").is_some(),
            two["v1"].get("messageId").is_some()
        );
    }
    assert_eq!(kept[0][10]["v1"]["status"], "failed");
    assert_eq!(kept[1][10]["v1"]["status"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_replay_is_not_recorded() {
    for version in [1, 2] {
        let mut f = start(version, 99, async |turn: Turn| {
            turn.send_message("new").await?;
            Ok(StopReason::EndTurn)
        })
        .await;
        // If it were recorded, nothing would be sent.
        let params = json!({"sessionId": "old", "cwd": "/work", "mcpServers": []});
        if version == 1 {
            f.peer.send_request(5, "session/load", params).await;
        } else {
            let mut params = params;
            params["replayFrom"] = json!({"type": "start"});
            f.peer.send_request(5, "session/resume", params).await;
        }
        for text in ["old question", "old answer"] {
            assert_eq!(f.next_update().await["content"]["text"], text);
        }
        if version == 2 {
            assert_eq!(f.next_update().await["state"], "idle");
        }
        f.peer.expect_result(5).await;
        f.next_update().await;
        assert_eq!(f.recorded(), [] as [Value; 0]);
        // From here on, updates are recorded.
        f.may.add_permits(2);
        f.peer.send_prompt(1, "old", "go").await;
        if version == 2 {
            f.peer.expect_result(1).await;
        }
        f.read_until_turn_end().await;
        assert_eq!(f.recorded()[1]["v1"]["content"]["text"], "new");
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_senders_record_and_send_in_the_same_order() {
    for version in [1, 2] {
        let mut f = start(version, 999, async |turn: Turn| {
            let mut senders = Vec::new();
            for n in 0..4 {
                let turn = turn.clone();
                senders.push(tokio::spawn(async move {
                    let call = turn
                        .report_tool_call(ToolCall::new(format!("{n}"), "Call"))
                        .await?;
                    for i in 0..20 {
                        turn.send_message(format!("{n}-{i}")).await?;
                        turn.send_thought(format!("{n}-{i}")).await?;
                        call.send_update(call.new_update().title(format!("{n}-{i}")))
                            .await?;
                    }
                    Ok::<_, Error>(())
                }));
            }
            for sender in senders {
                sender.await.unwrap()?;
            }
            Ok(StopReason::EndTurn)
        })
        .await;
        f.may.add_permits(999);
        let session = f.session.clone();
        f.peer.send_prompt(1, &session, "go").await;
        if version == 2 {
            f.peer.expect_result(1).await;
            f.next_update().await;
        }
        let (sent, _) = f.read_until_turn_end().await;
        let what = |update: &Value| {
            let names = ["/title", "/content/text", "/messageId", "/toolCallId"];
            names.map(|name| update.pointer(name).cloned())
        };
        let sent: Vec<_> = sent.iter().map(what).collect();
        let kept = f.recorded();
        let kept: Vec<_> = kept.iter().skip(1).map(|kept| what(&kept["v1"])).collect();
        assert_eq!(sent.len(), 4 * 61);
        assert_eq!(sent, kept);
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_ends_before_its_session_is_reopened() {
    let mut f = start(1, 99, async |turn: Turn| {
        let cancelled = turn.take_cancellation();
        turn.send_message("working").await?;
        cancelled.cancelled().await;
        turn.send_message("last words").await?;
        Ok(StopReason::Cancelled)
    })
    .await;
    f.may.add_permits(99);
    let session = f.session.clone();
    f.peer.send_prompt(1, &session, "go").await;
    assert_eq!(f.next_update().await["content"]["text"], "working");
    let params = json!({"sessionId": session, "cwd": "/work", "mcpServers": []});
    f.peer.send_request(5, "session/load", params).await;
    // The end of the turn and the response come from two tasks.
    let mut said = Vec::new();
    let mut answered = false;
    while said.len() < 3 || !answered {
        let message = f.peer.next().await;
        match message["params"]["update"]["content"]["text"].as_str() {
            Some(text) => said.push(text.to_owned()),
            None => {
                assert_eq!(message["result"]["stopReason"], "cancelled", "{message}");
                answered = true;
            }
        }
    }
    assert_eq!(said, ["last words", "old question", "old answer"]);
    f.peer.expect_result(5).await;
}
