//! A store in an SQLite file, which the servers of one machine can share.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use rusqlite::{
    Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior, named_params,
    params,
};
use tokio::time::sleep;

use super::error::LiveStoreError;
use super::live_store::{LiveStore, LiveStoreFuture, SessionClaim};
use super::record::{
    FencingToken, LiveSessionChange, LiveSessionFilter, LiveSessionKey, LiveSessionPage,
    LiveSessionSummary, LogPage, LoggedLine, MAX_ENDED_PROMPTS, NodeId, NodeInfo, PromptRecord,
    PromptState, SessionHead, StoreSummary, StoredLiveSession, list_cursor, parse_list_cursor,
};

/// The version of the tables.
const VERSION: u32 = 2;

/// The statements that lead from each version to the next one, from version 1.
const MIGRATIONS: [&str; 1] = ["
    alter table session add column creator text;
    create index session_by_creator on session (agent, creator, updated_at, number)
        where creator is not null;
"];

/// How long to wait for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How often to look for sessions that were given up: SQLite cannot notify other processes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

const SCHEMA: &str = "
    create table node (
        id text primary key,
        address text,
        lease_until integer not null
    ) strict;
    create table session (
        number integer primary key,
        agent text not null,
        id text not null,
        cwd text,
        title text,
        setup text not null,
        next_line integer not null,
        next_prompt integer not null,
        token integer not null,
        owner text,
        updated_at integer not null,
        unique (agent, id)
    ) strict;
    create index session_by_time on session (agent, updated_at, number);
    create table line (
        session integer not null references session on delete cascade,
        number integer not null,
        until integer not null,
        text text not null,
        primary key (session, number)
    ) strict, without rowid;
    create table prompt (
        session integer not null references session on delete cascade,
        number integer not null,
        key text not null,
        sender text,
        params text not null,
        state integer not null,
        position integer not null,
        response text,
        primary key (session, number)
    ) strict, without rowid;
    create index open_prompt on prompt (session) where state < 2;
";

/// The columns of a session.
const SESSION: &str = "number, token, owner, cwd, title, setup, next_line, next_prompt, creator";

/// A store of live sessions in an SQLite file.
///
/// Several processes on one machine can use the same file. What is written survives a crash of the process. A crash of
/// the machine may lose the latest changes.
#[derive(Debug)]
pub struct SqliteLiveStore {
    connection: Arc<Mutex<Connection>>,
}

impl SqliteLiveStore {
    /// Opens a file, and creates it if it does not exist, so that only the user can read it.
    ///
    /// # Errors
    /// The file cannot be opened, it is no database, or a newer version of this program has created it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LiveStoreError> {
        let path = path.as_ref();
        create_private(path).map_err(|error| LiveStoreError::Unavailable(error.into()))?;
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "normal")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.set_prepared_statement_cache_capacity(64);
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found: u32 = change.pragma_query_value(None, "user_version", |row| row.get(0))?;
        match found {
            ..VERSION => {
                if found == 0 {
                    change.execute_batch(SCHEMA)?;
                }
                // Other servers may be using the file. Those that know an older version ignore what was added.
                for migration in MIGRATIONS.iter().skip(found.max(1) as usize - 1) {
                    change.execute_batch(migration)?;
                }
                change.pragma_update(None, "user_version", VERSION)?;
            }
            VERSION => {}
            found => {
                return Err(LiveStoreError::Newer {
                    found,
                    known: VERSION,
                });
            }
        }
        change.commit()?;
        Ok(Self {
            connection: Arc::new(Mutex::new(connection)),
        })
    }

    /// Runs a change in a transaction, on a thread that may block. Waits for other processes that write.
    fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, LiveStoreError> + Send + 'static,
    ) -> LiveStoreFuture<'_, T> {
        self.run(TransactionBehavior::Immediate, change)
    }

    /// Reads in a transaction, on a thread that may block. Does not wait for other processes.
    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Transaction<'_>) -> Result<T, LiveStoreError> + Send + 'static,
    ) -> LiveStoreFuture<'_, T> {
        self.run(TransactionBehavior::Deferred, read)
    }

    fn run<T: Send + 'static>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, LiveStoreError> + Send + 'static,
    ) -> LiveStoreFuture<'_, T> {
        let connection = Arc::clone(&self.connection);
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || {
                let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
                let transaction = connection.transaction_with_behavior(behavior)?;
                let result = work(&transaction)?;
                transaction.commit()?;
                Ok(result)
            });
            done.await
                .map_err(|error| LiveStoreError::Failed(error.into()))?
        })
    }
}

impl LiveStore for SqliteLiveStore {
    fn join(&self, node: NodeInfo, lease: Duration) -> LiveStoreFuture<'_, ()> {
        self.change(move |db| {
            let now = now();
            // Nobody asks for a node that stopped a day ago.
            let day = 24 * 60 * 60 * 1000;
            db.execute("delete from node where lease_until < ?", [now - day])?;
            db.execute(
                "insert into node (id, address, lease_until) values (?, ?, ?)",
                params![node.id.0, node.address, now + millis(lease)],
            )?;
            Ok(())
        })
    }

    fn renew(&self, node: NodeId, lease: Duration) -> LiveStoreFuture<'_, ()> {
        self.change(move |db| {
            let now = now();
            let renewed = db.execute(
                "update node set lease_until = ? where id = ? and lease_until > ?",
                params![now + millis(lease), node.0, now],
            )?;
            match renewed {
                0 => Err(LiveStoreError::LeaseExpired),
                _ => Ok(()),
            }
        })
    }

    fn leave(&self, node: NodeId) -> LiveStoreFuture<'_, ()> {
        self.change(move |db| {
            db.execute("update session set owner = null where owner = ?", [&node.0])?;
            db.execute("delete from node where id = ?", [&node.0])?;
            Ok(())
        })
    }

    fn claim(&self, session: LiveSessionKey, node: NodeId) -> LiveStoreFuture<'_, SessionClaim> {
        self.change(move |db| {
            if find_node(db, &node.0)?.is_none() {
                return Err(LiveStoreError::LeaseExpired);
            }
            let Some((row, owner, mut stored)) = find_session(db, &session)? else {
                return Ok(SessionClaim::Unknown);
            };
            if let Some(owner) = owner
                && owner != node.0
                && let Some(owner) = find_node(db, &owner)?
            {
                return Ok(SessionClaim::Held(owner));
            }
            stored.token.0 += 1;
            db.execute(
                "update session set owner = ?, token = ? where number = ?",
                params![node.0, stored.token.0, row],
            )?;
            Ok(SessionClaim::Granted(Box::new(stored)))
        })
    }

    fn release(
        &self,
        sessions: Vec<(LiveSessionKey, FencingToken)>,
        node: NodeId,
    ) -> LiveStoreFuture<'_, ()> {
        self.change(move |db| {
            let mut release = db.prepare_cached(
                "update session set owner = null
                 where agent = ? and id = ? and token = ? and owner = ?",
            )?;
            for (key, token) in sessions {
                release.execute(params![key.agent, key.session, token.0, node.0])?;
            }
            Ok(())
        })
    }

    fn write(
        &self,
        node: NodeId,
        changes: Vec<LiveSessionChange>,
    ) -> LiveStoreFuture<'_, Vec<LiveSessionKey>> {
        self.change(move |db| {
            let mut lost = Vec::new();
            for change in changes {
                match update_session(db, &node, &change)? {
                    Some(row) => write_change(db, row, change)?,
                    None => lost.push(change.key),
                }
            }
            Ok(lost)
        })
    }

    fn find(&self, session: LiveSessionKey) -> LiveStoreFuture<'_, Option<StoredLiveSession>> {
        self.read(move |db| Ok(find_session(db, &session)?.map(|(_, _, stored)| stored)))
    }

    fn read_log(
        &self,
        session: LiveSessionKey,
        from: u64,
        max_bytes: usize,
    ) -> LiveStoreFuture<'_, LogPage> {
        self.read(move |db| {
            let mut select = db.prepare_cached(
                "select line.number, line.until, line.text from line
                 join session on session.number = line.session
                 where session.agent = ? and session.id = ? and line.number >= ?
                 order by line.number",
            )?;
            let mut rows = select.query(params![session.agent, session.session, from])?;
            let mut page = LogPage::default();
            let mut bytes = 0;
            while let Some(row) = rows.next()? {
                let number = row.get(0)?;
                if bytes >= max_bytes && !page.lines.is_empty() {
                    page.next = Some(number);
                    break;
                }
                let line: String = row.get(2)?;
                bytes += line.len();
                page.lines.push(LoggedLine {
                    number,
                    until: row.get(1)?,
                    line: line.into(),
                });
            }
            Ok(page)
        })
    }

    fn agents(&self) -> LiveStoreFuture<'_, Vec<String>> {
        self.read(|db| {
            let mut select = db.prepare_cached("select distinct agent from session order by 1")?;
            let rows = select.query_map([], |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn list(
        &self,
        agent: String,
        filter: LiveSessionFilter,
        cursor: Option<String>,
        limit: usize,
    ) -> LiveStoreFuture<'_, LiveSessionPage> {
        self.read(move |db| {
            let (time, number) = match cursor {
                Some(cursor) => parse_list_cursor(&cursor)?,
                None => (i64::MAX, i64::MAX),
            };
            let mut select = db.prepare_cached(
                "select id, cwd, title, updated_at, number from session
                 where agent = :agent and (:cwd is null or cwd = :cwd)
                   and (:creator is null or creator = :creator)
                   and (updated_at, number) < (:time, :number)
                 order by updated_at desc, number desc limit :limit",
            )?;
            let mut rows = select.query(named_params! {
                ":agent": agent, ":cwd": filter.cwd, ":creator": filter.creator,
                ":time": time, ":number": number, ":limit": limit + 1,
            })?;
            let mut page = LiveSessionPage::default();
            let mut last = None;
            while let Some(row) = rows.next()? {
                if page.sessions.len() == limit {
                    page.next = last;
                    break;
                }
                let updated_at = row.get(3)?;
                last = Some(list_cursor(updated_at, row.get(4)?));
                page.sessions.push(LiveSessionSummary {
                    key: LiveSessionKey {
                        agent: agent.clone(),
                        session: row.get(0)?,
                    },
                    cwd: row.get(1)?,
                    title: row.get(2)?,
                    updated_at,
                });
            }
            Ok(page)
        })
    }

    fn abandoned(&self, agent: String, limit: usize) -> LiveStoreFuture<'_, Vec<LiveSessionKey>> {
        self.read(move |db| {
            let mut select = db.prepare_cached(
                "select id from session where agent = :agent
                 and exists (select 1 from prompt where session = session.number and state < 2)
                 and not exists (select 1 from node where id = owner and lease_until > :now)
                 limit :limit",
            )?;
            let rows = select.query_map(
                named_params! { ":agent": agent, ":now": now(), ":limit": limit },
                |row| {
                    Ok(LiveSessionKey {
                        agent: agent.clone(),
                        session: row.get(0)?,
                    })
                },
            )?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn delete(&self, session: LiveSessionKey, node: NodeId) -> LiveStoreFuture<'_, ()> {
        self.change(move |db| {
            db.execute(
                "delete from session where agent = ? and id = ? and owner = ?",
                params![session.agent, session.session, node.0],
            )?;
            Ok(())
        })
    }

    fn summary(&self) -> LiveStoreFuture<'_, StoreSummary> {
        self.read(|db| {
            let now = now();
            let count = |sql: &str| db.query_row(sql, [], |row| row.get(0));
            let mut nodes =
                db.prepare_cached("select id, address from node where lease_until > ? order by id")?;
            let nodes = nodes.query_map([now], node_info)?;
            Ok(StoreSummary {
                version: VERSION,
                nodes: nodes.collect::<Result<_, _>>()?,
                sessions: count("select count(*) from session")?,
                owned: db.query_row(
                    "select count(*) from session join node on node.id = owner where lease_until > ?",
                    [now],
                    |row| row.get(0),
                )?,
                prompts: count("select count(*) from prompt where state < 2")?,
                lines: count("select count(*) from line")?,
            })
        })
    }

    fn sessions_released(&self) -> BoxFuture<'_, ()> {
        Box::pin(sleep(POLL_INTERVAL))
    }
}

/// Updates the row of a session, or adds it. Returns `None` if the node does not own the session.
fn update_session(
    db: &Transaction<'_>,
    node: &NodeId,
    change: &LiveSessionChange,
) -> Result<Option<i64>, LiveStoreError> {
    let key = &change.key;
    if change.is_new {
        db.prepare_cached(
            "insert into session
             (agent, id, setup, next_line, next_prompt, token, owner, updated_at)
             values (?, ?, '{}', 0, 1, ?, ?, 0) on conflict do nothing",
        )?
        .execute(params![key.agent, key.session, change.token.0, node.0])?;
    }
    let row = db
        .prepare_cached(
            "update session set next_line = max(next_line, :next_line),
             next_prompt = max(next_prompt, :next_prompt), updated_at = :now
             where agent = :agent and id = :id and token = :token and owner = :owner
             returning number",
        )?
        .query_row(
            named_params! {
                ":next_line": change.next_line, ":next_prompt": change.next_prompt, ":now": now(),
                ":agent": key.agent, ":id": key.session, ":token": change.token.0, ":owner": node.0,
            },
            |row| row.get(0),
        )
        .optional()?;
    Ok(row)
}

fn write_change(
    db: &Transaction<'_>,
    row: i64,
    change: LiveSessionChange,
) -> Result<(), LiveStoreError> {
    if let Some(head) = change.head {
        db.prepare_cached(
            "update session set cwd = ?, title = ?, setup = ?, creator = ? where number = ?",
        )?
        .execute(params![head.cwd, head.title, head.setup, head.creator, row])?;
    }
    for (from, to) in change.replaced {
        db.prepare_cached("delete from line where session = ? and number >= ? and number < ?")?
            .execute(params![row, from, to])?;
    }
    let mut insert = db.prepare_cached(
        "insert into line (session, number, until, text) values (?, ?, ?, ?) on conflict do nothing",
    )?;
    for line in change.lines {
        insert.execute(params![row, line.number, line.until, line.line])?;
    }
    let has_ended = |prompt: &PromptRecord| prompt.state == PromptState::Ended;
    let trims = change.prompts.iter().any(has_ended);
    let mut upsert = db.prepare_cached(
        "insert into prompt (session, number, key, sender, params, state, position, response)
         values (?, ?, ?, ?, ?, ?, ?, ?)
         on conflict do update set params = excluded.params, state = excluded.state,
             position = excluded.position, response = excluded.response
         where state < 2",
    )?;
    for prompt in change.prompts {
        upsert.execute(params![
            row,
            prompt.number,
            prompt.key,
            prompt.sender,
            prompt.params,
            prompt.state.code(),
            prompt.position,
            prompt.response,
        ])?;
    }
    if trims {
        db.prepare_cached(
            "delete from prompt where session = :session and state = 2 and number <=
             (select number from prompt where session = :session and state = 2
              order by number desc limit 1 offset :kept)",
        )?
        .execute(named_params! { ":session": row, ":kept": MAX_ENDED_PROMPTS })?;
    }
    Ok(())
}

/// Finds a session. Returns its row, its owner, and what is stored about it.
fn find_session(
    db: &Transaction<'_>,
    key: &LiveSessionKey,
) -> Result<Option<(i64, Option<String>, StoredLiveSession)>, LiveStoreError> {
    let sql = format!("select {SESSION} from session where agent = ? and id = ?");
    let found = db
        .prepare_cached(&sql)?
        .query_row(params![key.agent, key.session], |row| {
            let stored = StoredLiveSession {
                key: key.clone(),
                token: FencingToken(row.get(1)?),
                head: SessionHead {
                    cwd: row.get(3)?,
                    title: row.get(4)?,
                    setup: row.get(5)?,
                    creator: row.get(8)?,
                },
                next_line: row.get(6)?,
                next_prompt: row.get(7)?,
                prompts: Vec::new(),
            };
            Ok((row.get(0)?, row.get(2)?, stored))
        })
        .optional()?;
    let Some((row, owner, mut stored)) = found else {
        return Ok(None);
    };
    let mut select = db.prepare_cached(
        "select number, key, sender, params, state, position, response from prompt
         where session = ? order by state = 2, position, number",
    )?;
    let prompts = select.query_map([row], |row| {
        Ok(PromptRecord {
            number: row.get(0)?,
            key: row.get(1)?,
            sender: row.get(2)?,
            params: row.get(3)?,
            state: PromptState::from_code(row.get(4)?),
            position: row.get(5)?,
            response: row.get(6)?,
        })
    })?;
    stored.prompts = prompts.collect::<Result<_, _>>()?;
    Ok(Some((row, owner, stored)))
}

/// Returns a node if its lease is valid.
fn find_node(db: &Transaction<'_>, id: &str) -> Result<Option<NodeInfo>, LiveStoreError> {
    let sql = "select id, address from node where id = ? and lease_until > ?";
    let found = db
        .prepare_cached(sql)?
        .query_row(params![id, now()], node_info);
    Ok(found.optional()?)
}

fn node_info(row: &rusqlite::Row<'_>) -> Result<NodeInfo, rusqlite::Error> {
    Ok(NodeInfo {
        id: NodeId(row.get(0)?),
        address: row.get(1)?,
    })
}

/// Returns the time in milliseconds since 1970.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    millis(now.unwrap_or_default())
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Creates a file that only the user can read, if it does not exist.
fn create_private(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

impl From<rusqlite::Error> for LiveStoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::CannotOpen
                | ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure,
            ) => Self::Unavailable(error.into()),
            _ => Self::Failed(error.into()),
        }
    }
}
