//! Implements a session store in a PostgreSQL database, which the agents of several machines can share.

mod statements;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use acp::v1::SessionId;
use acp_postgres::{ConnectionSlot, PostgresConnection, PostgresSchema, PostgresServer};
use futures_util::future::BoxFuture;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

use self::statements::{ChangeNumber, ExpectedChange};
use super::entry::StoreEntry;
use super::error::StoreError;
use super::session_store::{SessionStore, StoreFuture};
use super::stored_session::{
    EntryFilter, EntryPage, HistoryEnd, SessionFilter, SessionPage, SessionProperties,
    SessionRevision, StoredSession,
};

/// The tables. The number of the lock has no meaning.
const SCHEMA: PostgresSchema = PostgresSchema {
    name: "acp_agent",
    migrations: &[include_str!("postgres/0001.sql")],
    lock: 0x6163_705f_6167_6e74,
};

/// How long a call is repeated while the database cannot be reached. It may be restarting.
const RETRY_TIME: Duration = Duration::from_secs(10);

/// How long to wait before a call is repeated.
const RETRY_DELAY: Duration = Duration::from_millis(250);

const COUNT: &str = "select count(*) from acp_agent.session";

/// A session store in a PostgreSQL database, of version 14 or newer.
///
/// The tables are in a schema of their own, `acp_agent`. Any number of processes on any number of machines can use one
/// database. A connection that is lost is opened again, and what was not completed is repeated.
pub struct PostgresStore {
    server: PostgresServer,
    connection: ConnectionSlot,
    /// Set when the tables were found to be there.
    prepared: OnceCell<()>,
}

/// What is in a [`PostgresStore`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PostgresStoreSummary {
    /// The version of the tables.
    pub version: u32,
    /// The number of sessions.
    pub sessions: u64,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Takes the URL of a database: `postgres://USER:PASSWORD@HOST/DATABASE`. The password can also be given
    /// separately. Connects when the store is first used, and then creates the tables if there are none. If the
    /// database cannot be reached or has tables of another version, that use fails.
    ///
    /// # Errors
    /// The URL is invalid.
    pub fn new(address: &str, password: Option<&str>) -> Result<Self, StoreError> {
        Ok(Self {
            server: PostgresServer::new(address, password)?,
            connection: ConnectionSlot::default(),
            prepared: OnceCell::new(),
        })
    }

    /// Creates the tables, or brings them up to date. Returns their version before and after.
    ///
    /// # Errors
    /// The URL is invalid, the database cannot be reached ([`StoreError::Unavailable`]), or a newer version of this
    /// program has created its tables ([`StoreError::Newer`]).
    pub async fn migrate(address: &str, password: Option<&str>) -> Result<(u32, u32), StoreError> {
        let mut connection = PostgresServer::new(address, password)?.connect().await?;
        let before = SCHEMA.migrate(&mut connection).await?;
        Ok((before, SCHEMA.known_version()))
    }

    /// Returns what is in a database, or `None` if it does not contain the tables.
    ///
    /// # Errors
    /// The URL is invalid, or the database cannot be read.
    pub async fn summary(
        address: &str,
        password: Option<&str>,
    ) -> Result<Option<PostgresStoreSummary>, StoreError> {
        let mut connection = PostgresServer::new(address, password)?.connect().await?;
        let version = SCHEMA.version(&mut connection).await?;
        if version == 0 {
            return Ok(None);
        }
        let rows = connection.query(COUNT, &[]).await?;
        let sessions: i64 = match rows.first() {
            Some(row) => row.try_get(0)?,
            None => 0,
        };
        Ok(Some(PostgresStoreSummary {
            version,
            sessions: u64::try_from(sessions).unwrap_or_default(),
        }))
    }

    /// Calls the database, and repeats the call if the database cannot be reached.
    fn call<A: Send + Sync + 'static, T: Send + 'static>(
        &self,
        args: A,
        call: for<'c> fn(&'c mut PostgresConnection, &'c A) -> BoxFuture<'c, Result<T, StoreError>>,
    ) -> StoreFuture<'_, T> {
        let args = Arc::new(args);
        Box::pin(async move {
            let deadline = Instant::now() + RETRY_TIME;
            loop {
                let result = self.call_once(Arc::clone(&args), call).await;
                if !matches!(result, Err(StoreError::Unavailable(_))) || Instant::now() > deadline {
                    return result;
                }
                sleep(RETRY_DELAY).await;
            }
        })
    }

    async fn call_once<A: Send + Sync + 'static, T: Send + 'static>(
        &self,
        args: Arc<A>,
        call: for<'c> fn(&'c mut PostgresConnection, &'c A) -> BoxFuture<'c, Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let prepare = || {
            self.connection.call(&self.server, |db| {
                Box::pin(async move { SCHEMA.prepare(db).await.map_err(StoreError::from) })
            })
        };
        self.prepared.get_or_try_init(prepare).await?;
        self.connection
            .call(&self.server, move |db| {
                Box::pin(async move { call(db, &args).await })
            })
            .await
    }
}

impl SessionStore for PostgresStore {
    fn create(
        &self,
        id: SessionId,
        properties: SessionProperties,
    ) -> StoreFuture<'_, StoredSession> {
        let args = (id, properties, ChangeNumber::random());
        self.call(args, |db, (id, properties, change)| {
            Box::pin(statements::create(db, id, properties, *change))
        })
    }

    fn fork(
        &self,
        from: SessionId,
        id: SessionId,
        properties: SessionProperties,
        end: Option<HistoryEnd>,
    ) -> StoreFuture<'_, StoredSession> {
        let args = (from, id, properties, end, ChangeNumber::random());
        self.call(args, |db, (from, id, properties, end, change)| {
            Box::pin(statements::fork(db, from, id, properties, *end, *change))
        })
    }

    fn find(&self, id: SessionId) -> StoreFuture<'_, StoredSession> {
        self.call(id, |db, id| Box::pin(statements::find(db, id)))
    }

    fn append(
        &self,
        id: SessionId,
        expected: SessionRevision,
        entries: Vec<StoreEntry>,
        properties: Option<SessionProperties>,
    ) -> StoreFuture<'_, SessionRevision> {
        let change = ChangeNumber::random();
        let to = ExpectedChange {
            id,
            expected,
            change,
        };
        self.call(
            (to, entries, properties),
            |db, (to, entries, properties)| {
                Box::pin(statements::append(db, to, entries, properties.as_ref()))
            },
        )
    }

    fn read(
        &self,
        id: SessionId,
        expected: SessionRevision,
        which: EntryFilter,
        from: u64,
    ) -> StoreFuture<'_, EntryPage> {
        self.call(
            (id, expected, which, from),
            |db, (id, expected, which, from)| {
                Box::pin(statements::read(db, id, *expected, *which, *from))
            },
        )
    }

    fn fold(
        &self,
        id: SessionId,
        expected: SessionRevision,
        from: u64,
        to: u64,
        entries: Vec<StoreEntry>,
    ) -> StoreFuture<'_, SessionRevision> {
        let change = ChangeNumber::random();
        let session = ExpectedChange {
            id,
            expected,
            change,
        };
        self.call(
            (session, (from, to), entries),
            |db, (session, range, entries)| {
                Box::pin(statements::fold(db, session, *range, entries))
            },
        )
    }

    fn list(
        &self,
        filter: SessionFilter,
        cursor: Option<String>,
        most: usize,
    ) -> StoreFuture<'_, SessionPage> {
        self.call((filter, cursor, most), |db, (filter, cursor, most)| {
            Box::pin(statements::list(db, filter, cursor.as_deref(), *most))
        })
    }

    fn delete(&self, id: SessionId) -> StoreFuture<'_, ()> {
        self.call((id, AtomicBool::new(false)), |db, (id, was_tried)| {
            Box::pin(async move {
                // If this is repeated, the session may have been deleted already.
                let may_be_gone = was_tried.swap(true, Ordering::Relaxed);
                match statements::delete(db, id).await? || may_be_gone {
                    true => Ok(()),
                    false => Err(StoreError::NotFound(id.clone())),
                }
            })
        })
    }
}
