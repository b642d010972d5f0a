//! What an agent keeps of a session.
//!
//! All of it is in memory. The two places where something lasting changes are
//! [`Sessions`], where sessions come and go, and [`Conversation::push`], through which every message
//! goes: a store that outlives the process belongs there.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp::agent::CloseSession;
use acp::v1::SessionId;
use acp_host::{Files, Roots, Sandbox};

use crate::mode::Mode;
use crate::model::Message;
use crate::permission::Subject;
use crate::workspace::Tree;

/// The sessions that are open.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<SessionId, Arc<SessionState>>>);

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<SessionState>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn open(&self, id: &SessionId, state: SessionState) {
        self.lock().insert(id.clone(), Arc::new(state));
    }

    pub(crate) fn get(&self, id: &SessionId) -> acp::Result<Arc<SessionState>> {
        let state = self.lock().get(id).cloned();
        state.ok_or_else(|| acp::Error::internal(format!("session {id} is not open")))
    }
}

impl CloseSession for Sessions {
    async fn close_session(&self, session: &SessionId) -> acp::Result<()> {
        self.lock().remove(session);
        Ok(())
    }
}

/// A session.
pub(crate) struct SessionState {
    /// Its directories as this process sees them; if it does not, why.
    own: Result<Own, String>,
    /// Whether commands must run in a sandbox.
    pub(crate) sandboxed: bool,
    changing: Mutex<Changing>,
    /// Held by the turn that runs.
    pub(crate) conversation: tokio::sync::Mutex<Conversation>,
}

/// The agent's own access to the files of a session.
#[derive(Clone)]
pub(crate) struct Own {
    pub(crate) files: Files,
    pub(crate) tree: Arc<Tree>,
    /// In which commands run.
    pub(crate) sandbox: Option<Sandbox>,
}

#[derive(Default)]
struct Changing {
    mode: Mode,
    /// What the person answered with "always".
    always: HashMap<Subject, bool>,
    /// How many tool calls there have been.
    calls: u64,
}

impl SessionState {
    /// The state of a session with these roots. If commands are confined, `writable` is where they may write
    /// beside the roots.
    pub(crate) async fn open(roots: &[String], writable: Option<Vec<PathBuf>>) -> Self {
        let sandboxed = writable.is_some();
        let roots: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
        let opened = tokio::task::spawn_blocking(move || -> io::Result<Own> {
            let sandbox = writable.map(|writable| {
                Sandbox::new(roots.iter().cloned().chain(writable)).map_err(io::Error::other)
            });
            // Opened once, so that all tools have the same directories.
            let roots = Roots::open(roots)?;
            Ok(Own {
                files: Files::under(roots.clone()),
                tree: Arc::new(Tree::new(roots)),
                sandbox: sandbox.transpose()?,
            })
        });
        let own = match opened.await {
            Ok(own) => own.map_err(|e| e.to_string()),
            Err(e) => Err(e.to_string()),
        };
        Self {
            own,
            sandboxed,
            changing: Mutex::default(),
            conversation: tokio::sync::Mutex::default(),
        }
    }

    fn changing(&self) -> MutexGuard<'_, Changing> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn own(&self) -> Result<&Own, &str> {
        self.own.as_ref().map_err(String::as_str)
    }

    pub(crate) fn mode(&self) -> Mode {
        self.changing().mode
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        self.changing().mode = mode;
    }

    /// What was answered with "always" before.
    pub(crate) fn always(&self, subject: &Subject) -> Option<bool> {
        self.changing().always.get(subject).copied()
    }

    pub(crate) fn remember(&self, subject: Subject, allowed: bool) {
        self.changing().always.insert(subject, allowed);
    }

    /// An id for a tool call that no other of the session has.
    pub(crate) fn next_call_id(&self) -> String {
        let mut changing = self.changing();
        changing.calls += 1;
        format!("call_{}", changing.calls)
    }
}

/// What was said and done in a session.
#[derive(Default)]
pub(crate) struct Conversation(Vec<Message>);

impl Conversation {
    pub(crate) fn push(&mut self, message: Message) {
        self.0.push(message);
    }

    pub(crate) fn messages(&self) -> &[Message] {
        &self.0
    }
}
