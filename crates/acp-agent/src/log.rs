//! A session's log: whatever must outlive the process goes through here.

use std::sync::Arc;

use acp::Update;
use acp::v1::SessionId;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::context::compaction::Compaction;
use crate::model::message::Message;
use crate::store::entry::Entry;
use crate::store::error::StoreError;
use crate::store::fold::Folder;
use crate::store::kept::{Kept, Properties, Version, Which};
use crate::store::session_store::SessionStore;

/// How many bytes of entries are folded together at most.
const FOLDED_AT_ONCE: usize = 8 * 1024 * 1024;

/// What a change of the properties does.
type Change = Box<dyn FnOnce(&mut Properties) + Send>;

/// The log of a session, or of one that is not kept.
pub(crate) struct Log(Option<Logged>);

#[derive(Clone)]
struct Logged {
    store: Arc<dyn SessionStore>,
    id: SessionId,
    state: Arc<Mutex<State>>,
}

struct State {
    version: Version,
    properties: Properties,
    /// What the model was not told before the process before this one ended. It goes ahead of whatever is
    /// kept next: opening a session alone changes nothing.
    missing: Vec<Message>,
}

impl Log {
    /// Of a session that is not kept.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    pub(crate) fn new(store: Arc<dyn SessionStore>, kept: Kept, missing: Vec<Message>) -> Self {
        let state = State {
            version: kept.version,
            properties: kept.properties,
            missing,
        };
        Self(Some(Logged {
            store,
            id: kept.id,
            state: Arc::new(Mutex::new(state)),
        }))
    }

    /// Keeps what the client is going to be shown. So many tool calls there have been.
    pub(crate) async fn shown(&self, update: &Update, calls: u64) -> Result<(), StoreError> {
        let Some(logged) = &self.0 else {
            return Ok(());
        };
        let begins = matches!(update, Update::ToolCallUpdate(call) if call.begins);
        let change: Option<Change> =
            begins.then(|| Box::new(move |p: &mut Properties| p.calls = calls) as Change);
        logged.keep(vec![Entry::shown(update)?], change).await
    }

    /// Keeps what the model is going to be told.
    pub(crate) async fn told(&self, message: &Message) -> Result<(), StoreError> {
        let Some(logged) = &self.0 else {
            return Ok(());
        };
        logged.keep(vec![Entry::message(message)?], None).await
    }

    /// Keeps how what the model was told is made shorter.
    pub(crate) async fn compacted(&self, compaction: &Compaction) -> Result<(), StoreError> {
        let Some(logged) = &self.0 else {
            return Ok(());
        };
        logged
            .keep(vec![Entry::compaction(compaction)?], None)
            .await
    }

    /// Keeps other properties.
    pub(crate) async fn change(
        &self,
        change: impl FnOnce(&mut Properties) + Send + 'static,
    ) -> Result<(), StoreError> {
        match &self.0 {
            Some(logged) => logged.keep(Vec::new(), Some(Box::new(change))).await,
            None => Ok(()),
        }
    }

    /// Makes it shorter.
    pub(crate) async fn fold(&self) -> Result<(), StoreError> {
        let Some(logged) = self.0.clone() else {
            return Ok(());
        };
        let state = Arc::clone(&logged.state).lock_owned().await;
        unless_dropped(async move { logged.fold(state).await }).await
    }
}

/// Does it to its end, also if whoever waits for it is dropped: the version that is known here and the one
/// that is kept must not differ.
async fn unless_dropped(
    work: impl Future<Output = Result<(), StoreError>> + Send + 'static,
) -> Result<(), StoreError> {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(e) => Err(StoreError::Failed(format!("it was not kept: {e}"))),
    }
}

impl Logged {
    async fn keep(&self, entries: Vec<Entry>, change: Option<Change>) -> Result<(), StoreError> {
        let mut state = Arc::clone(&self.state).lock_owned().await;
        let (store, id) = (Arc::clone(&self.store), self.id.clone());
        unless_dropped(async move {
            let missing = state.missing.iter().map(Entry::message);
            let mut all = missing.collect::<Result<Vec<_>, _>>()?;
            all.extend(entries);
            let properties = change.map(|change| {
                let mut properties = state.properties.clone();
                change(&mut properties);
                properties
            });
            let kept = store.append(id, state.version, all, properties.clone());
            state.version = kept.await?;
            state.missing.clear();
            if let Some(properties) = properties {
                state.properties = properties;
            }
            Ok(())
        })
        .await
    }

    async fn fold(self, mut state: OwnedMutexGuard<State>) -> Result<(), StoreError> {
        let kept = self.store.find(self.id.clone()).await?;
        let mut from = kept.folded;
        while from < kept.next {
            let mut folder = Folder::default();
            let mut at = Some(from);
            while let Some(next) = at.filter(|_| folder.bytes() < FOLDED_AT_ONCE) {
                let page = self
                    .store
                    .read(self.id.clone(), state.version, Which::All, next);
                let page = page.await?;
                for (_, entry) in &page.entries {
                    folder.push(entry)?;
                }
                at = page.next;
            }
            let to = at.unwrap_or(kept.next);
            let entries = folder.finish()?;
            let folded = self
                .store
                .fold(self.id.clone(), state.version, from, to, entries);
            state.version = folded.await?;
            from = to;
        }
        Ok(())
    }
}
