//! The open and the stored sessions.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v2::schema::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue,
    SessionConfigSelectGroup, SessionConfigSelectOption, SessionId, SessionUpdate,
};
use agent_client_protocol::{Error, Result};
use clap::Parser;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

#[derive(Parser)]
pub(crate) struct OfficialAgentV2Args {
    /// Open sessions only after `auth/login`.
    #[arg(long)]
    pub(crate) auth: bool,
    /// Store sessions in this file.
    #[arg(long)]
    pub(crate) store: Option<PathBuf>,
}

pub(crate) struct OfficialV2Session {
    pub(crate) cwd: PathBuf,
    pub(crate) settings: OfficialV2Settings,
    pub(crate) history: Vec<SessionUpdate>,
    pub(crate) title: Option<String>,
    /// The number of message and terminal ids so far.
    pub(crate) id_count: usize,
    /// The number of cancels so far. Each one cancels all turns that are running or waiting.
    pub(crate) cancel_count: watch::Sender<u64>,
    /// A lock that the running turn holds, so that turns run one after another.
    pub(crate) turn_lock: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Clone)]
pub(crate) struct OfficialV2Settings {
    pub(crate) mode: String,
    pub(crate) model: String,
    pub(crate) loud: bool,
}

impl OfficialV2Settings {
    /// Returns all config options with their current values.
    pub(crate) fn config_options(&self) -> Vec<SessionConfigOption> {
        let value = |id: &str| SessionConfigSelectOption::new(id, id);
        let modes = vec![value("ask"), value("code")];
        let models = ["small", "large"]
            .map(|id| SessionConfigSelectGroup::new(format!("{id} ones"), id, vec![value(id)]))
            .to_vec();
        vec![
            SessionConfigOption::select("mode", "Mode", self.mode.clone(), modes)
                .category(SessionConfigOptionCategory::Mode),
            SessionConfigOption::select("model", "Model", self.model.clone(), models)
                .category(SessionConfigOptionCategory::Model),
            SessionConfigOption::boolean("loud", "Loud", self.loud),
        ]
    }
}

/// A session in the form in which it is stored.
#[derive(Serialize, Deserialize)]
pub(crate) struct OfficialV2Stored {
    pub(crate) cwd: PathBuf,
    pub(crate) history: Vec<SessionUpdate>,
    pub(crate) title: Option<String>,
}

pub(crate) struct OfficialV2Sessions {
    pub(crate) args: OfficialAgentV2Args,
    pub(crate) authenticated: AtomicBool,
    opened_count: AtomicUsize,
    open_sessions: Mutex<HashMap<SessionId, OfficialV2Session>>,
}

impl OfficialV2Sessions {
    pub(crate) fn new(args: OfficialAgentV2Args) -> Self {
        Self {
            args,
            authenticated: AtomicBool::new(false),
            opened_count: AtomicUsize::new(0),
            open_sessions: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, OfficialV2Session>> {
        self.open_sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes an open session to a function, and returns the result.
    pub(crate) fn with_session<T>(
        &self,
        id: &SessionId,
        f: impl FnOnce(&mut OfficialV2Session) -> T,
    ) -> Option<T> {
        self.lock().get_mut(id).map(f)
    }

    pub(crate) fn may_open(&self) -> bool {
        !self.args.auth || self.authenticated.load(Ordering::Acquire)
    }

    pub(crate) fn new_id(&self) -> SessionId {
        let number = self.opened_count.fetch_add(1, Ordering::Relaxed);
        SessionId::new(format!("official-{}-{number}", std::process::id()))
    }

    pub(crate) fn open(
        &self,
        id: &SessionId,
        cwd: PathBuf,
        history: Vec<SessionUpdate>,
    ) -> Vec<SessionConfigOption> {
        let settings = OfficialV2Settings {
            mode: "ask".to_owned(),
            model: "small".to_owned(),
            loud: false,
        };
        let options = settings.config_options();
        let session = OfficialV2Session {
            cwd,
            settings,
            // Earlier processes have generated at most this many ids.
            id_count: history.len(),
            history,
            title: None,
            cancel_count: watch::Sender::new(0),
            turn_lock: Arc::default(),
        };
        self.lock().insert(id.clone(), session);
        options
    }

    /// Cancels all running and waiting turns of a session.
    pub(crate) fn cancel(&self, id: &SessionId) {
        self.with_session(id, |session| {
            session.cancel_count.send_modify(|count| *count += 1)
        });
    }

    /// Closes a session immediately. The future resolves when its turn has ended.
    pub(crate) fn close(&self, id: &SessionId) -> impl Future<Output = ()> + Send + 'static {
        let closed = self.lock().remove(id);
        async move {
            if let Some(session) = closed {
                session.cancel_count.send_modify(|count| *count += 1);
                drop(session.turn_lock.lock().await);
            }
        }
    }

    pub(crate) fn set(
        &self,
        id: &SessionId,
        option: &str,
        value: &SessionConfigOptionValue,
    ) -> Result<Vec<SessionConfigOption>> {
        let set = self.with_session(id, |session| {
            let settings = &mut session.settings;
            match (option, value) {
                ("mode", SessionConfigOptionValue::Id { value })
                    if ["ask", "code"].contains(&&*value.0) =>
                {
                    settings.mode = value.to_string();
                }
                ("model", SessionConfigOptionValue::Id { value })
                    if ["small", "large"].contains(&&*value.0) =>
                {
                    settings.model = value.to_string();
                }
                ("loud", SessionConfigOptionValue::Boolean { value }) => settings.loud = *value,
                _ => return None,
            }
            Some(settings.config_options())
        });
        set.flatten().ok_or_else(Error::invalid_params)
    }

    /// Returns all stored sessions by id.
    pub(crate) fn stored(&self) -> Result<HashMap<SessionId, OfficialV2Stored>> {
        let Some(file) = &self.args.store else {
            return Ok(HashMap::new());
        };
        match std::fs::read(file) {
            Ok(json) => serde_json::from_slice(&json).map_err(Error::into_internal_error),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(HashMap::new()),
            Err(e) => Err(Error::into_internal_error(e)),
        }
    }

    pub(crate) fn change_stored(
        &self,
        change: impl FnOnce(&mut HashMap<SessionId, OfficialV2Stored>),
    ) -> Result<()> {
        let Some(file) = &self.args.store else {
            return Ok(());
        };
        let mut stored = self.stored()?;
        change(&mut stored);
        let json = serde_json::to_vec(&stored).map_err(Error::into_internal_error)?;
        std::fs::write(file, json).map_err(Error::into_internal_error)
    }

    /// Stores the current state of a session.
    pub(crate) fn store(&self, id: &SessionId) -> Result<()> {
        let stored = self.with_session(id, |session| OfficialV2Stored {
            cwd: session.cwd.clone(),
            history: session.history.clone(),
            title: session.title.clone(),
        });
        match stored {
            Some(stored) => self.change_stored(|all| drop(all.insert(id.clone(), stored))),
            None => Ok(()),
        }
    }
}
