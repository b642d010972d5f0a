//! Stores an open session's history and properties as they change.

use std::sync::Arc;

use acp::Update;
use acp::v1::SessionId;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::context::compaction::Compaction;
use crate::model::message::ModelMessage;
use crate::store::entry::StoreEntry;
use crate::store::error::StoreError;
use crate::store::fold::EntryMerger;
use crate::store::session_store::SessionStore;
use crate::store::stored_session::{
    EntryFilter, SessionProperties, SessionRevision, StoredSession,
};

/// The size, in bytes, at which a folded batch of entries is complete.
const MAX_FOLD_BYTES: usize = 8 * 1024 * 1024;

/// A change to the session's properties.
type PropertiesChange = Box<dyn FnOnce(&mut SessionProperties) + Send>;

/// The part of an open session that writes to the session store. For a session that is not stored, it does nothing.
pub(crate) struct SessionLog(Option<OpenLog>);

#[derive(Clone)]
struct OpenLog {
    store: Arc<dyn SessionStore>,
    id: SessionId,
    state: Arc<Mutex<SessionLogState>>,
}

struct SessionLogState {
    version: SessionRevision,
    properties: SessionProperties,
    /// Messages of the conversation that an earlier process did not store. They are stored just before the next entry,
    /// so that opening a session does not change it.
    missing_messages: Vec<ModelMessage>,
}

impl SessionLog {
    /// Creates the log of a session that is not stored.
    pub(crate) fn disabled() -> Self {
        Self(None)
    }

    pub(crate) fn new(
        store: Arc<dyn SessionStore>,
        kept: StoredSession,
        missing: Vec<ModelMessage>,
    ) -> Self {
        let state = SessionLogState {
            version: kept.revision,
            properties: kept.properties,
            missing_messages: missing,
        };
        Self(Some(OpenLog {
            store,
            id: kept.id,
            state: Arc::new(Mutex::new(state)),
        }))
    }

    /// Stores an update. Must be called before the update is sent to the client. `calls` is the number of tool calls so
    /// far.
    pub(crate) async fn record_update(
        &self,
        update: &Update,
        calls: u64,
    ) -> Result<(), StoreError> {
        let Some(logged) = &self.0 else {
            return Ok(());
        };
        let begins = matches!(update, Update::ToolCallUpdate(call) if call.is_new);
        let change: Option<PropertiesChange> = begins.then(|| {
            Box::new(move |p: &mut SessionProperties| p.calls = calls) as PropertiesChange
        });
        logged
            .append(vec![StoreEntry::from_update(update)?], change)
            .await
    }

    /// Stores a message. Must be called before the message is sent to the model.
    pub(crate) async fn record(&self, message: &ModelMessage) -> Result<(), StoreError> {
        let Some(logged) = &self.0 else {
            return Ok(());
        };
        logged
            .append(vec![StoreEntry::from_message(message)?], None)
            .await
    }

    /// Stores a compaction of the model's conversation.
    pub(crate) async fn record_compaction(
        &self,
        compaction: &Compaction,
    ) -> Result<(), StoreError> {
        let Some(logged) = &self.0 else {
            return Ok(());
        };
        logged
            .append(vec![StoreEntry::from_compaction(compaction)?], None)
            .await
    }

    /// Changes the session's properties and stores the new ones.
    pub(crate) async fn change_properties(
        &self,
        change: impl FnOnce(&mut SessionProperties) + Send + 'static,
    ) -> Result<(), StoreError> {
        match &self.0 {
            Some(logged) => logged.append(Vec::new(), Some(Box::new(change))).await,
            None => Ok(()),
        }
    }

    /// Folds the entries that have not been folded yet.
    pub(crate) async fn fold_history(&self) -> Result<(), StoreError> {
        let Some(logged) = self.0.clone() else {
            return Ok(());
        };
        let state = Arc::clone(&logged.state).lock_owned().await;
        run_to_completion(async move { logged.fold(state).await }).await
    }
}

/// Runs `work` to completion even if the caller is dropped, so that the revision in memory always matches the one in
/// the store.
async fn run_to_completion(
    work: impl Future<Output = Result<(), StoreError>> + Send + 'static,
) -> Result<(), StoreError> {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(e) => Err(StoreError::Failed(format!("cannot store the session: {e}"))),
    }
}

impl OpenLog {
    async fn append(
        &self,
        entries: Vec<StoreEntry>,
        change: Option<PropertiesChange>,
    ) -> Result<(), StoreError> {
        let mut state = Arc::clone(&self.state).lock_owned().await;
        let (store, id) = (Arc::clone(&self.store), self.id.clone());
        run_to_completion(async move {
            let missing = state.missing_messages.iter().map(StoreEntry::from_message);
            let mut all = missing.collect::<Result<Vec<_>, _>>()?;
            all.extend(entries);
            let properties = change.map(|change| {
                let mut properties = state.properties.clone();
                change(&mut properties);
                properties
            });
            let kept = store.append(id, state.version, all, properties.clone());
            state.version = kept.await?;
            state.missing_messages.clear();
            if let Some(properties) = properties {
                state.properties = properties;
            }
            Ok(())
        })
        .await
    }

    async fn fold(self, mut state: OwnedMutexGuard<SessionLogState>) -> Result<(), StoreError> {
        let kept = self.store.find(self.id.clone()).await?;
        let mut from = kept.folded_until;
        while from < kept.next_entry {
            let mut folder = EntryMerger::default();
            let mut at = Some(from);
            while let Some(next) = at.filter(|_| folder.bytes() < MAX_FOLD_BYTES) {
                let page = self
                    .store
                    .read(self.id.clone(), state.version, EntryFilter::All, next);
                let page = page.await?;
                for (_, entry) in &page.entries {
                    folder.push(entry)?;
                }
                at = page.next;
            }
            let to = at.unwrap_or(kept.next_entry);
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
