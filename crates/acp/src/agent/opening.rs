//! Sessions that are being opened: new, old or copied ones.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use acp_wire::v1::{
    self, ForkSessionRequest, ForkSessionResponse, LoadSessionResponse, McpServer,
    NewSessionResponse, ResumeSessionResponse, SessionConfigOption, SessionId,
};
use acp_wire::{Request, jsonrpc, v2};
use serde::Serialize;

use super::initialize::offered_system_prompt;
use super::methods::{ForkSession, LoadSession, ResumeSession};
use super::session::{Session, SessionOpened};
use super::side::{AgentSide, SessionEntry};
use super::{Agent, config};
use crate::capabilities::missing_for_server;
use crate::connection::{Connection, Responder};
use crate::dialect;
use crate::error::{Error, Result};
use crate::session_setup::{LONGEST_ID, SessionSetup, SystemPromptError};

/// How an old session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reopen {
    /// Replayed (`session/load`; in version 2 `replayFrom` the start).
    Load,
    /// Not replayed.
    Resume,
}

/// The answer to what opened a session, in the words of the version that is spoken.
#[derive(Serialize)]
#[serde(untagged)]
enum SessionAnswer {
    V1(v1::AgentResponse),
    V2(v2::AgentResponse),
}

/// A session that is being opened. Unless that succeeds, things are as they were before.
pub(crate) struct Opening<A: Agent> {
    side: Arc<AgentSide<A>>,
    pub(crate) session: Session,
    /// The session of this id that was open already.
    before: Option<SessionEntry<A>>,
    succeeded: bool,
}

impl<A: Agent> Opening<A> {
    /// Keeps what the agent has of the session, and gives the rest.
    fn keep(&self, opened: SessionOpened<A::State>) -> SessionOpened {
        let state = Arc::new(opened.state);
        let mut sessions = self.side.sessions();
        // It may have been closed meanwhile, or opened once more.
        if let Some(entry) = sessions.get_mut(self.session.id())
            && entry.session.is_same(&self.session)
        {
            self.session.set_state::<A>(&state);
            entry.state = Some(state);
        }
        SessionOpened {
            state: (),
            config_options: opened.config_options,
            meta: opened.meta,
        }
    }

    fn succeeded(mut self) -> Session {
        self.succeeded = true;
        self.session.clone()
    }
}

impl<A: Agent> Drop for Opening<A> {
    fn drop(&mut self) {
        match (self.succeeded, self.before.take()) {
            (true, None) => {}
            // Its client can no longer cancel what runs in it.
            (true, Some(before)) => before.session.cancel(),
            // What is dropped of the agent's is dropped when the lock is free.
            (false, None) => {
                let failed = self.side.sessions().remove(self.session.id());
                drop(failed);
            }
            (false, Some(before)) => {
                let id = before.session.id().clone();
                let failed = self.side.sessions().insert(id, before);
                drop(failed);
            }
        }
    }
}

/// How a session was opened, for the answer.
#[derive(Clone, Copy)]
enum How {
    New,
    Fork,
    Old(Reopen),
}

impl<A: Agent> AgentSide<A> {
    /// `session/new`.
    pub(crate) async fn new_session(self: Arc<Self>, setup: SessionSetup, responder: Responder) {
        let id = self.agent.new_session_id();
        match self.open(id, &setup, responder.connection()) {
            Ok(opening) => {
                // A prompt that comes too early waits.
                let mine = opening.session.my_turn().await;
                let opened = self.agent.new_session(&opening.session, setup).await;
                let opened = opened.map(|opened| opening.keep(opened));
                drop(mine);
                self.opened(opening, opened, responder, How::New).await;
            }
            Err(error) => responder.answer(Err::<(), _>(error)).await,
        }
    }

    /// `session/load`, `session/resume`.
    pub(crate) async fn reopen(
        self: Arc<Self>,
        id: SessionId,
        setup: SessionSetup,
        way: Reopen,
        method: &str,
        responder: Responder,
    ) {
        let opened = match self.way(&id, way, method) {
            Ok(With::Nothing) => return self.stays_open(&id, &setup, responder).await,
            Ok(with) => self
                .open(id, &setup, responder.connection())
                .map(|opening| (opening, with)),
            Err(error) => Err(error),
        };
        let (opening, with) = match opened {
            Ok(opened) => opened,
            Err(error) => return responder.answer(Err::<(), _>(error)).await,
        };
        let session = &opening.session;
        let recorded = session.recording().is_some();
        if let (true, Some(before)) = (recorded, &opening.before) {
            // What is replayed must be all that was shown.
            before.session.cancel();
            drop(before.session.my_turn().await);
        }
        // A prompt that comes too early waits for the end of the past, and for the agent's state.
        let mine = session.my_turn().await;
        let opened = match (with, self.agent.load_session(), self.agent.resume_session()) {
            (With::Load { muted }, Some(load), _) => {
                session.mute(muted);
                session.replay(true);
                let opened = load.load(session, setup).await;
                session.replay(false);
                session.mute(false);
                opened
            }
            (With::Resume, _, Some(resume)) => resume.resume(session, setup).await,
            _ => Err(Error::internal("it is opened in a way that is not offered")),
        };
        let opened = opened.map(|opened| opening.keep(opened));
        drop(mine);
        if let (Ok(_), Some(before), true) =
            (&opened, &opening.before, session.client().speaks_v2())
        {
            // The state that is told is that of the session, whoever opened it: nothing runs in it.
            before.session.cancel();
            drop(before.session.my_turn().await);
        }
        self.opened(opening, opened, responder, How::Old(way)).await;
    }

    /// `session/resume` of a session that is open, with an agent of version 2 that cannot open old ones: it
    /// stays as it is, and what runs in it goes on.
    async fn stays_open(&self, id: &SessionId, setup: &SessionSetup, responder: Responder) {
        let open = self.check_setup(setup).and_then(|()| self.open_session(id));
        let (session, state) = match open {
            Ok(open) => open,
            Err(error) => return responder.answer(Err::<(), _>(error)).await,
        };
        let told = session.state_update(session.doing()).await;
        let options = session.config_options();
        let how = How::Old(Reopen::Resume);
        let answer = told.map(|()| answer_v2(&session, options, None, how));
        responder.answer(answer).await;
        self.agent.session_opened(&state, session).await;
    }

    /// `session/fork`.
    pub(crate) async fn fork(
        self: Arc<Self>,
        id: SessionId,
        setup: SessionSetup,
        responder: Responder,
    ) {
        let Some(fork) = self.agent.fork_session() else {
            let error = Error::Rpc(jsonrpc::Error::method_not_found(ForkSessionRequest::METHOD));
            return responder.answer(Err::<(), _>(error)).await;
        };
        let new = self.agent.new_session_id();
        match self.open(new, &setup, responder.connection()) {
            Ok(opening) => {
                let mine = opening.session.my_turn().await;
                let opened = fork.fork(&id, &opening.session, setup).await;
                let opened = opened.map(|opened| opening.keep(opened));
                drop(mine);
                self.opened(opening, opened, responder, How::Fork).await;
            }
            Err(error) => responder.answer(Err::<(), _>(error)).await,
        }
    }

    /// By which of the agent's ways an old session is opened. In version 1 the client asks for one that
    /// was offered; in version 2 every agent resumes, as well as it can.
    fn way(&self, id: &SessionId, way: Reopen, method: &str) -> Result<With> {
        let v2 = self.client()?.speaks_v2();
        let (load, resume) = (
            self.agent.load_session().is_some(),
            self.agent.resume_session().is_some(),
        );
        Ok(match way {
            Reopen::Load if load => With::Load { muted: false },
            Reopen::Load if v2 => {
                return Err(Error::invalid_params("this agent does not replay sessions"));
            }
            Reopen::Resume if resume => With::Resume,
            // Replayed to nobody.
            Reopen::Resume if v2 && load => With::Load { muted: true },
            Reopen::Resume if v2 => {
                self.session(id)?;
                With::Nothing
            }
            _ => return Err(Error::Rpc(jsonrpc::Error::method_not_found(method))),
        })
    }

    /// Makes a session known, so that whatever arrives next finds it.
    fn open(
        self: &Arc<Self>,
        id: SessionId,
        setup: &SessionSetup,
        conn: &Connection,
    ) -> Result<Opening<A>> {
        self.check_setup(setup)?;
        if id.as_str().len() > LONGEST_ID {
            return Err(Error::invalid_params(format!(
                "the id of a session has {LONGEST_ID} bytes at most"
            )));
        }
        let client = self.client()?;
        let session = Session::new(id.clone(), setup, conn.clone(), client, self.recording());
        let before = {
            let mut sessions = self.sessions();
            let limit = conn.0.limits.sessions;
            if sessions.len() >= limit && !sessions.contains_key(&id) {
                let text = format!("more than {limit} sessions are open; close some of them");
                return Err(Error::internal(text));
            }
            let entry = SessionEntry {
                session: session.clone(),
                state: None,
            };
            sessions.insert(id, entry)
        };
        let side = Arc::clone(self);
        Ok(Opening {
            side,
            session,
            before,
            succeeded: false,
        })
    }

    /// Whether a session can be opened with this.
    fn check_setup(&self, setup: &SessionSetup) -> Result<()> {
        setup.check_paths().map_err(Error::invalid_params)?;
        let offered = offered_system_prompt(&*self.agent);
        setup
            .check_system_prompt(offered.as_ref())
            .map_err(|error| match error {
                SystemPromptError::NotOffered(name) => Error::invalid_params(format!(
                    "the system prompt needs {name}, which is not offered"
                )),
                SystemPromptError::Invalid(text) => Error::invalid_params(text),
            })?;
        self.check_servers(&setup.mcp_servers)
    }

    /// A client that asks for what was not offered is told so, instead of left to wonder.
    fn check_servers(&self, servers: &[McpServer]) -> Result<()> {
        let offered = self.agent.mcp_capabilities();
        let stdio = self.agent.mcp_stdio() || !self.client()?.speaks_v2();
        let missing = |server| Some((server, missing_for_server(&offered, stdio, server)?));
        match servers.iter().find_map(missing) {
            Some((server, missing)) => {
                let name = server.name().unwrap_or_default();
                Err(Error::invalid_params(format!(
                    "the MCP server {name:?} needs the MCP capability {missing}, which is not offered"
                )))
            }
            None => Ok(()),
        }
    }

    /// Answers what opened a session, then tells the agent that the client knows it.
    async fn opened(
        &self,
        opening: Opening<A>,
        opened: Result<SessionOpened>,
        responder: Responder,
        how: How,
    ) {
        let answer = match opened {
            Ok(opened) => self.opened_answer(&opening.session, opened, how).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(answer) => {
                responder.answer(Ok(answer)).await;
                let session = opening.succeeded();
                if let Some(state) = session.state_of::<A>() {
                    self.agent.session_opened(&state, session).await;
                }
            }
            Err(error) => {
                // First, so that whoever has seen the answer finds things as they are.
                drop(opening);
                responder.answer(Err::<(), _>(error)).await;
            }
        }
    }

    async fn opened_answer(
        &self,
        session: &Session,
        opened: SessionOpened,
        how: How,
    ) -> Result<SessionAnswer> {
        let SessionOpened {
            config_options,
            meta,
            ..
        } = opened;
        session.replace_config_options(config_options.clone());
        if session.client().speaks_v2() {
            if let How::Old(_) = how {
                // Whoever resumes must be told what the agent does.
                session
                    .state_update(v2::StateUpdate::Idle(v2::IdleStateUpdate::new()))
                    .await?;
            }
            return Ok(answer_v2(session, config_options, meta, how));
        }
        let modes = config::modes(&config_options);
        let shown = config::understood(config_options, session.client().takes_boolean_options());
        let config_options = (!shown.is_empty()).then_some(shown);
        macro_rules! answer {
            ($var:ident, $answer:expr) => {{
                let mut answer = $answer;
                answer.modes = modes;
                answer.config_options = config_options;
                answer.meta = meta;
                SessionAnswer::V1(v1::AgentResponse::$var(answer))
            }};
        }
        Ok(match how {
            How::New => answer!(NewSession, NewSessionResponse::new(session.id())),
            How::Fork => answer!(ForkSession, ForkSessionResponse::new(session.id())),
            How::Old(Reopen::Load) => answer!(LoadSession, LoadSessionResponse::new()),
            How::Old(Reopen::Resume) => answer!(ResumeSession, ResumeSessionResponse::new()),
        })
    }
}

/// How the agent is told to open an old session.
enum With {
    Load { muted: bool },
    Resume,
    Nothing,
}

fn answer_v2(
    session: &Session,
    config_options: Vec<SessionConfigOption>,
    meta: Option<acp_wire::Meta>,
    how: How,
) -> SessionAnswer {
    let options = dialect::options_to_v2(config_options);
    macro_rules! answer {
        ($var:ident, $answer:expr) => {{
            let mut answer = $answer.config_options(options);
            answer.meta = meta;
            SessionAnswer::V2(v2::AgentResponse::$var(answer))
        }};
    }
    match how {
        How::New => answer!(NewSession, v2::NewSessionResponse::new(session.id())),
        How::Fork => answer!(ForkSession, v2::ForkSessionResponse::new(session.id())),
        How::Old(_) => answer!(ResumeSession, v2::ResumeSessionResponse::new()),
    }
}

impl Session {
    /// What is sent from here on is sent to nobody, or again to the client.
    fn mute(&self, muted: bool) {
        self.muted().store(muted, Ordering::Release);
    }
}
