//! What an agent has of a session that is open.
//!
//! What of it must outlive the process goes through its [`Log`] first.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp::Update;
use acp::v1::{ContentBlock, SessionConfigOption, SessionId};
use acp_host::{Files, Roots, Sandbox, SandboxRules};

use crate::choice::{Asked, Choice, Chosen};
use crate::context::commands::Commands;
use crate::context::{Compaction, Conversation};
use crate::log::Log;
use crate::mcp::Servers;
use crate::mode::{self, Mode};
use crate::model::error::failure;
use crate::model::message::Message;
use crate::permission::Subject;
use crate::store::{Always, Properties, StoreError};
use crate::workspace::Tree;

/// A session.
pub(crate) struct SessionState {
    /// Its directories as this process sees them; if it does not, why.
    own: Result<Own, String>,
    log: Log,
    /// Its directories, the working directory first.
    roots: Vec<String>,
    /// The agent's models.
    choice: Arc<Choice>,
    /// Whether commands must run in a sandbox.
    pub(crate) sandboxed: bool,
    changing: Mutex<Changing>,
    pub(crate) servers: Servers,
    /// Held by the turn that runs.
    pub(crate) conversation: tokio::sync::Mutex<Conversation>,
    /// What can be typed with a slash.
    pub(crate) commands: tokio::sync::Mutex<Commands>,
}

/// The agent's own access to the files of a session.
#[derive(Clone)]
pub(crate) struct Own {
    pub(crate) files: Files,
    pub(crate) tree: Arc<Tree>,
    /// In which commands run.
    pub(crate) sandbox: Option<Sandbox>,
}

impl Own {
    /// The access to these roots; if there is none, why. If commands are confined, `rules` says how.
    pub(crate) async fn open(
        roots: &[String],
        rules: Option<SandboxRules>,
    ) -> Result<Self, String> {
        let roots: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
        let opened = tokio::task::spawn_blocking(move || -> io::Result<Self> {
            let sandbox = rules.map(|rules| {
                Sandbox::with(rules.in_roots(roots.iter().cloned())).map_err(io::Error::other)
            });
            // Opened once, so that all tools have the same directories.
            let roots = Roots::open(roots)?;
            Ok(Self {
                files: Files::under(roots.clone()),
                tree: Arc::new(Tree::new(roots)),
                sandbox: sandbox.transpose()?,
            })
        });
        match opened.await {
            Ok(own) => own.map_err(|e| e.to_string()),
            Err(e) => Err(e.to_string()),
        }
    }
}

#[derive(Default)]
struct Changing {
    mode: Mode,
    chosen: Chosen,
    /// What the person answered with "always".
    always: HashMap<Subject, bool>,
    /// How many tool calls there have been.
    calls: u64,
    /// What it is about, for people.
    title: Option<String>,
    /// What it has cost so far, in billionths of a US dollar.
    spent: u64,
}

impl SessionState {
    /// The state of a session that begins, or goes on.
    pub(crate) fn new(
        own: Result<Own, String>,
        sandboxed: bool,
        log: Log,
        roots: Vec<String>,
        choice: Arc<Choice>,
        properties: &Properties,
        conversation: Vec<Message>,
    ) -> Self {
        // What was answered elsewhere was about other files, and commands that do something else.
        let here = properties.always.iter();
        let here = here.filter(|answer| answer.roots == roots);
        let changing = Changing {
            // A mode that a later version had is none that allows more than is known here.
            mode: properties.mode.parse().unwrap_or_default(),
            chosen: Chosen::of(properties),
            always: here
                .map(|answer| (answer.subject.clone(), answer.allowed))
                .collect(),
            calls: properties.calls,
            title: properties.title.clone(),
            spent: properties.spent,
        };
        Self {
            own,
            sandboxed,
            log,
            roots,
            choice,
            changing: Mutex::new(changing),
            servers: Servers::default(),
            conversation: tokio::sync::Mutex::new(Conversation::of(conversation)),
            commands: tokio::sync::Mutex::default(),
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

    pub(crate) async fn set_mode(&self, mode: Mode) -> Result<(), StoreError> {
        self.log
            .change(move |properties| properties.mode = mode.to_string())
            .await?;
        self.changing().mode = mode;
        Ok(())
    }

    /// What was chosen in it.
    pub(crate) fn chosen(&self) -> Chosen {
        self.changing().chosen.clone()
    }

    pub(crate) async fn choose_model(&self, id: String) -> Result<(), StoreError> {
        let kept = id.clone();
        self.log
            .change(move |properties| properties.model = Some(kept))
            .await?;
        self.changing().chosen.model = Some(id);
        Ok(())
    }

    pub(crate) async fn choose_thought(&self, id: String) -> Result<(), StoreError> {
        let kept = id.clone();
        self.log
            .change(move |properties| properties.thought_level = Some(kept))
            .await?;
        self.changing().chosen.thought = Some(id);
        Ok(())
    }

    /// What its next round is asked of.
    pub(crate) fn asked(&self) -> acp::Result<Asked> {
        self.choice.asked(&self.chosen()).map_err(failure)
    }

    /// Whether its model understands what it is told in words.
    pub(crate) fn understands(&self) -> bool {
        self.choice.understands(&self.chosen())
    }

    /// Its config options, in the order of their importance: Session config options, "Option Ordering".
    pub(crate) fn options(&self) -> Vec<SessionConfigOption> {
        let mut options = vec![mode::option(self.mode())];
        options.extend(self.choice.options(&self.chosen()));
        options
    }

    /// What was answered with "always" before, in the session's directories.
    pub(crate) fn always(&self, subject: &Subject) -> Option<bool> {
        self.changing().always.get(subject).copied()
    }

    pub(crate) async fn remember(
        &self,
        subject: &Subject,
        allowed: bool,
    ) -> Result<(), StoreError> {
        let answer = Always::new(subject.clone(), allowed, self.roots.clone());
        self.log
            .change(move |properties| properties.always.push(answer))
            .await?;
        self.changing().always.insert(subject.clone(), allowed);
        Ok(())
    }

    /// An id for a tool call that no other of the session has.
    pub(crate) fn next_call_id(&self) -> String {
        let mut changing = self.changing();
        changing.calls += 1;
        format!("call_{}", changing.calls)
    }

    /// What it has cost so far, in billionths of a US dollar.
    pub(crate) fn spent(&self) -> u64 {
        self.changing().spent
    }

    /// Adds to what it has cost, and keeps it.
    pub(crate) async fn spend(&self, cost: u64) -> Result<(), StoreError> {
        let spent = self.spent().saturating_add(cost);
        self.log
            .change(move |properties| properties.spent = spent)
            .await?;
        self.changing().spent = spent;
        Ok(())
    }

    /// Keeps what the client is going to be shown.
    pub(crate) async fn record(&self, update: &Update) -> Result<(), StoreError> {
        let calls = self.changing().calls;
        self.log.shown(update, calls).await
    }

    /// Adds to the conversation, and keeps it.
    pub(crate) async fn tell(
        &self,
        conversation: &mut Conversation,
        message: Message,
    ) -> Result<(), StoreError> {
        let kept = self.log.told(&message).await;
        // Also if it cannot be kept: a call must have its result.
        conversation.push(message);
        kept
    }

    /// Makes the conversation shorter, and keeps that. If it cannot be kept, all stays as it was.
    pub(crate) async fn compact(
        &self,
        conversation: &mut Conversation,
        compaction: &Compaction,
    ) -> Result<(), StoreError> {
        self.log.compacted(compaction).await?;
        conversation.compact(compaction);
        Ok(())
    }

    /// Gives the session a title that has none yet, by what the person typed (`title.rs`). Gives it, for the client
    /// to be told.
    pub(crate) async fn name(&self, prompt: &[ContentBlock]) -> Result<Option<String>, StoreError> {
        if self.changing().title.is_some() {
            return Ok(None);
        }
        let Some(title) = crate::title::title(prompt) else {
            return Ok(None);
        };
        let kept = title.clone();
        self.log
            .change(move |properties| properties.title = Some(kept))
            .await?;
        self.changing().title = Some(title.clone());
        Ok(Some(title))
    }

    /// Gives the session the title that a person chose.
    pub(crate) async fn rename(&self, title: &str) -> Result<(), StoreError> {
        let kept = title.to_owned();
        self.log
            .change(move |properties| properties.title = Some(kept))
            .await?;
        self.changing().title = Some(title.to_owned());
        Ok(())
    }

    /// A turn has ended: what is kept of it becomes shorter.
    pub(crate) async fn turn_ended(&self, id: &SessionId) {
        if let Err(error) = self.log.fold().await {
            // It stays as it is, and nothing is lost.
            tracing::warn!(session = %id, %error, "what is kept of the session was not made shorter");
        }
    }
}
