//! A store in a PostgreSQL database, which the servers of several machines can share.

mod write;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use acp_postgres::{
    ConnectionSlot, PostgresConnection, PostgresSchema, PostgresServer, Row, ToSql, read_unsigned,
    to_bigint,
};
use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::error::LiveStoreError;
use super::live_store::{LiveStore, LiveStoreFuture, SessionClaim};
use super::record::{
    FencingToken, LiveSessionChange, LiveSessionFilter, LiveSessionKey, LiveSessionPage,
    LiveSessionSummary, LogPage, LoggedLine, MAX_ENDED_PROMPTS, NodeId, NodeInfo, PromptRecord,
    PromptState, SessionHead, StoreSummary, StoredLiveSession, list_cursor, parse_list_cursor,
};

/// The tables. The number of the lock has no meaning.
const SCHEMA: PostgresSchema = PostgresSchema {
    name: "acp",
    migrations: &[include_str!("0001.sql"), include_str!("0002.sql")],
    lock: 0x6163_705f_6c69_7665,
};

/// The notification that sessions were given up.
const CHANNEL: &str = "acp_live";

/// How long to wait for a notification before sessions are looked for all the same.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(1);

/// The latest time in a cursor: the end of the year 9999, in microseconds since 1970.
const MAX_CURSOR_TIME: i64 = 253_402_300_799_999_999;

/// The number of lines to read at once.
const LINES_PER_READ: i64 = 4096;

const JOIN: &str = "
    with old as (delete from acp.node where lease_until < now() - interval '1 day')
    insert into acp.node (id, address, lease_until)
    values ($1, $2, clock_timestamp() + $3 * interval '1 millisecond')";

const RENEW: &str = "
    update acp.node set lease_until = clock_timestamp() + $2 * interval '1 millisecond'
    where id = $1 and lease_until > clock_timestamp() returning 1";

const DISOWN: &str = "update acp.session set owner = null where owner = $1";

const REMOVE_NODE: &str = "delete from acp.node where id = $1";

const NOTIFY: &str = "select pg_notify($1, '')";

const SESSION: &str = "
    select number, token, cwd, title, setup, next_line, next_prompt, creator from acp.session
    where agent = $1 and id = $2";

/// Locks a session until the end of the transaction. A change of it either comes before, or is rejected.
const LOCK_SESSION: &str = "
    select owner from acp.session where agent = $1 and id = $2 for update";

const VALID_NODE: &str = "
    select id, address from acp.node where id = $1 and lease_until > clock_timestamp()";

/// Waits for a renewal that has begun before the lease expired: it counts, so the node still owns its sessions.
const LOCK_OWNER: &str = "
    select id, address, lease_until > clock_timestamp() from acp.node where id = $1 for share";

const CLAIM: &str = "
    update acp.session set owner = $3, token = token + 1 where agent = $1 and id = $2";

/// A batch that ends several prompts deletes older ones only with the next batch, so they are left out here.
const PROMPTS: &str = "
    select number, key, sender, params, state, position, response from (
        (select * from acp.prompt where session = $1 and state < 2)
        union all
        (select * from acp.prompt where session = $1 and state = 2 order by number desc limit $2)
    ) p order by state = 2, position, number";

const RELEASE: &str = "
    update acp.session s set owner = null
    from unnest($2::text[], $3::text[], $4::bigint[]) as r (agent, id, token)
    where s.agent = r.agent and s.id = r.id and s.token = r.token and s.owner = $1";

/// Leaves out what does not fit into a page: lines can be long. The first line that does not fit is there, too.
const LINES: &str = "
    select number, until, text from (
        select number, until, text,
            sum(octet_length(text)) over (order by number rows unbounded preceding)
                - octet_length(text) - lag(octet_length(text), 1, 0) over (order by number) as before
        from (
            select l.number, l.until, l.text from acp.line l
            join acp.session s on s.number = l.session
            where s.agent = $1 and s.id = $2 and l.number >= $3
            order by l.number limit $4
        ) line
    ) line where before < $5 order by number";

const AGENTS: &str = "select distinct agent from acp.session order by 1";

const LIST: &str = "
    select id, cwd, title, (extract(epoch from updated_at) * 1000000)::bigint, number
    from acp.session
    where agent = $1 and ($2::text is null or cwd = $2)
        and ($3::bigint is null or (updated_at, number) <
            (timestamptz 'epoch' + $3 * interval '1 microsecond', $4::bigint))
        and ($6::text is null or creator = $6)
    order by updated_at desc, number desc limit $5";

const ABANDONED: &str = "
    select s.id from acp.session s
    where s.agent = $1
        and exists (select from acp.prompt p where p.session = s.number and p.state < 2)
        and not exists (
            select from acp.node n where n.id = s.owner and n.lease_until > clock_timestamp()
        )
    limit $2";

const DELETE: &str = "delete from acp.session where agent = $1 and id = $2 and owner = $3";

const NODES: &str = "
    select id, address from acp.node where lease_until > clock_timestamp() order by id";

const COUNTS: &str = "
    select (select count(*) from acp.session),
        (select count(*) from acp.session s join acp.node n on n.id = s.owner
            where n.lease_until > clock_timestamp()),
        (select count(*) from acp.prompt where state < 2),
        (select count(*) from acp.line)";

/// A store of live sessions in a PostgreSQL database, of version 14 or newer.
///
/// The tables are in a schema of their own, `acp`. A connection that is lost is opened again with the next call.
pub struct PostgresLiveStore {
    server: PostgresServer,
    /// The connection for changes of sessions.
    writer: ConnectionSlot,
    /// The connection for renewing the lease, which must not wait for anything.
    renewal: ConnectionSlot,
    /// The connection for everything else.
    other: ConnectionSlot,
    /// Notified when sessions were given up.
    released: Arc<Notify>,
    _listener: AbortOnDropHandle<()>,
}

impl fmt::Debug for PostgresLiveStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresLiveStore").finish_non_exhaustive()
    }
}

impl PostgresLiveStore {
    /// Connects to a database by its URL: `postgres://USER:PASSWORD@HOST/DATABASE`. The password can also be given
    /// separately. Creates the tables if there are none.
    ///
    /// # Errors
    /// The URL is invalid, the database cannot be reached, or its tables have another version.
    pub async fn connect(address: &str, password: Option<&str>) -> Result<Self, LiveStoreError> {
        let server = PostgresServer::new(address, password)?;
        let mut connection = server.connect().await?;
        SCHEMA.prepare(&mut connection).await?;
        let released = Arc::new(Notify::new());
        let listener = tokio::spawn(server.clone().listen(CHANNEL, Arc::clone(&released)));
        Ok(Self {
            server,
            writer: ConnectionSlot::default(),
            renewal: ConnectionSlot::default(),
            other: ConnectionSlot::default(),
            released,
            _listener: AbortOnDropHandle::new(listener),
        })
    }

    /// Creates the tables, or brings them up to date. Returns their version before and after.
    ///
    /// # Errors
    /// The URL is invalid, the database cannot be reached, or a newer version of this program has created its tables.
    pub async fn migrate(
        address: &str,
        password: Option<&str>,
    ) -> Result<(u32, u32), LiveStoreError> {
        let server = PostgresServer::new(address, password)?;
        let mut connection = server.connect().await?;
        let before = SCHEMA.migrate(&mut connection).await?;
        Ok((before, SCHEMA.known_version()))
    }

    /// Calls the database on the connection for everything but changes of sessions.
    fn call<'a, T: Send + 'a>(
        &'a self,
        call: impl for<'c> FnOnce(
            &'c mut PostgresConnection,
        ) -> BoxFuture<'c, Result<T, LiveStoreError>>
        + Send
        + 'a,
    ) -> LiveStoreFuture<'a, T> {
        Box::pin(self.other.call(&self.server, call))
    }
}

impl LiveStore for PostgresLiveStore {
    fn join(&self, node: NodeInfo, lease: Duration) -> LiveStoreFuture<'_, ()> {
        self.call(move |db| {
            Box::pin(async move {
                let lease = millis(lease);
                db.query(JOIN, &[&node.id.0, &node.address, &lease]).await?;
                Ok(())
            })
        })
    }

    fn renew(&self, node: NodeId, lease: Duration) -> LiveStoreFuture<'_, ()> {
        let call = self.renewal.call(&self.server, move |db| {
            Box::pin(async move {
                let renewed = db.query(RENEW, &[&node.0, &millis(lease)]).await?;
                match renewed.is_empty() {
                    true => Err(LiveStoreError::LeaseExpired),
                    false => Ok(()),
                }
            })
        });
        Box::pin(call)
    }

    fn leave(&self, node: NodeId) -> LiveStoreFuture<'_, ()> {
        self.call(move |db| {
            Box::pin(async move {
                db.begin().await?;
                let left = async {
                    db.query(DISOWN, &[&node.0]).await?;
                    db.query(REMOVE_NODE, &[&node.0]).await?;
                    db.query(NOTIFY, &[&CHANNEL]).await?;
                    Ok(())
                };
                let left = left.await;
                db.end(left).await
            })
        })
    }

    fn claim(&self, session: LiveSessionKey, node: NodeId) -> LiveStoreFuture<'_, SessionClaim> {
        self.call(move |db| {
            Box::pin(async move {
                db.begin().await?;
                let claimed = claim(db, &session, &node).await;
                db.end(claimed).await
            })
        })
    }

    fn release(
        &self,
        sessions: Vec<(LiveSessionKey, FencingToken)>,
        node: NodeId,
    ) -> LiveStoreFuture<'_, ()> {
        self.call(move |db| {
            Box::pin(async move {
                let agents: Vec<&str> = sessions.iter().map(|(key, _)| &*key.agent).collect();
                let ids: Vec<&str> = sessions.iter().map(|(key, _)| &*key.session).collect();
                let tokens: Vec<i64> = sessions.iter().map(|(_, token)| token.0).collect();
                db.query(RELEASE, &[&node.0, &agents, &ids, &tokens])
                    .await?;
                db.query(NOTIFY, &[&CHANNEL]).await?;
                Ok(())
            })
        })
    }

    fn write(
        &self,
        node: NodeId,
        changes: Vec<LiveSessionChange>,
    ) -> LiveStoreFuture<'_, Vec<LiveSessionKey>> {
        let call = self.writer.call(&self.server, move |db| {
            Box::pin(async move { write::write(db, &node, changes).await })
        });
        Box::pin(call)
    }

    fn find(&self, session: LiveSessionKey) -> LiveStoreFuture<'_, Option<StoredLiveSession>> {
        self.call(move |db| Box::pin(async move { find(db, &session).await }))
    }

    fn read_log(
        &self,
        session: LiveSessionKey,
        from: u64,
        max_bytes: usize,
    ) -> LiveStoreFuture<'_, LogPage> {
        self.call(move |db| {
            Box::pin(async move {
                let mut page = LogPage::default();
                let (mut bytes, mut from) = (0, to_bigint(from));
                // The first line is read in any case.
                let most = i64::try_from(max_bytes.max(1)).unwrap_or(i64::MAX);
                loop {
                    let (agent, id) = (&session.agent, &session.session);
                    let rows = db
                        .query(LINES, &[agent, id, &from, &LINES_PER_READ, &most])
                        .await?;
                    let is_last = rows.is_empty();
                    for row in rows {
                        let line = logged_line(&row)?;
                        if bytes >= max_bytes && !page.lines.is_empty() {
                            page.next = Some(line.number);
                            return Ok(page);
                        }
                        bytes += line.line.len();
                        from = to_bigint(line.until);
                        page.lines.push(line);
                    }
                    if is_last {
                        return Ok(page);
                    }
                }
            })
        })
    }

    fn agents(&self) -> LiveStoreFuture<'_, Vec<String>> {
        self.call(|db| {
            Box::pin(async move {
                let rows = db.query(AGENTS, &[]).await?;
                let mut agents = Vec::with_capacity(rows.len());
                for row in rows {
                    agents.push(row.try_get(0)?);
                }
                Ok(agents)
            })
        })
    }

    fn list(
        &self,
        agent: String,
        filter: LiveSessionFilter,
        cursor: Option<String>,
        limit: usize,
    ) -> LiveStoreFuture<'_, LiveSessionPage> {
        self.call(move |db| {
            Box::pin(async move {
                let cursor = cursor.as_deref().map(parse_list_cursor).transpose()?;
                // PostgreSQL has no times that are much later.
                if cursor.is_some_and(|(time, _)| !(0..=MAX_CURSOR_TIME).contains(&time)) {
                    return Err(LiveStoreError::InvalidCursor);
                }
                let (time, row) = cursor.unzip();
                let most = to_bigint(limit).saturating_add(1);
                let LiveSessionFilter { cwd, creator } = filter;
                let rows = db
                    .query(LIST, &[&agent, &cwd, &time, &row, &most, &creator])
                    .await?;
                let mut page = LiveSessionPage::default();
                let mut last = None;
                for row in rows {
                    if page.sessions.len() == limit {
                        page.next = last;
                        break;
                    }
                    let micros: i64 = row.try_get(3)?;
                    last = Some(list_cursor(micros, row.try_get(4)?));
                    page.sessions.push(LiveSessionSummary {
                        key: LiveSessionKey {
                            agent: agent.clone(),
                            session: row.try_get(0)?,
                        },
                        cwd: row.try_get(1)?,
                        title: row.try_get(2)?,
                        updated_at: micros / 1000,
                    });
                }
                Ok(page)
            })
        })
    }

    fn abandoned(&self, agent: String, limit: usize) -> LiveStoreFuture<'_, Vec<LiveSessionKey>> {
        self.call(move |db| {
            Box::pin(async move {
                let limit = to_bigint(limit);
                let rows = db.query(ABANDONED, &[&agent, &limit]).await?;
                let mut keys = Vec::with_capacity(rows.len());
                for row in rows {
                    keys.push(LiveSessionKey {
                        agent: agent.clone(),
                        session: row.try_get(0)?,
                    });
                }
                Ok(keys)
            })
        })
    }

    fn delete(&self, session: LiveSessionKey, node: NodeId) -> LiveStoreFuture<'_, ()> {
        self.call(move |db| {
            Box::pin(async move {
                db.query(DELETE, &[&session.agent, &session.session, &node.0])
                    .await?;
                Ok(())
            })
        })
    }

    fn summary(&self) -> LiveStoreFuture<'_, StoreSummary> {
        self.call(|db| {
            Box::pin(async move {
                let version = SCHEMA.version(db).await?;
                let mut nodes = Vec::new();
                for row in db.query(NODES, &[]).await? {
                    nodes.push(node_info(&row)?);
                }
                let counts = db.query(COUNTS, &[]).await?;
                let count = |column: usize| -> Result<u64, LiveStoreError> {
                    let count: i64 = match counts.first() {
                        Some(row) => row.try_get(column)?,
                        None => 0,
                    };
                    Ok(u64::try_from(count).unwrap_or_default())
                };
                Ok(StoreSummary {
                    version,
                    nodes,
                    sessions: count(0)?,
                    owned: count(1)?,
                    prompts: count(2)?,
                    lines: count(3)?,
                })
            })
        })
    }

    fn sessions_released(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // A notification can be lost with the connection.
            let _ = timeout(NOTIFICATION_TIMEOUT, self.released.notified()).await;
        })
    }
}

/// Claims a session, within a transaction.
async fn claim(
    db: &mut PostgresConnection,
    session: &LiveSessionKey,
    node: &NodeId,
) -> Result<SessionClaim, LiveStoreError> {
    let key: [&(dyn ToSql + Sync); 2] = [&session.agent, &session.session];
    let locked = db.query(LOCK_SESSION, &key).await?;
    if db.query(VALID_NODE, &[&node.0]).await?.is_empty() {
        return Err(LiveStoreError::LeaseExpired);
    }
    let Some(locked) = locked.first() else {
        return Ok(SessionClaim::Unknown);
    };
    let owner: Option<String> = locked.try_get(0)?;
    if let Some(owner) = owner.filter(|owner| *owner != node.0)
        && let Some(owner) = db.query(LOCK_OWNER, &[&owner]).await?.first()
        && owner.try_get(2)?
    {
        return Ok(SessionClaim::Held(node_info(owner)?));
    }
    db.query(CLAIM, &[&session.agent, &session.session, &node.0])
        .await?;
    Ok(match find(db, session).await? {
        Some(stored) => SessionClaim::Granted(Box::new(stored)),
        None => SessionClaim::Unknown,
    })
}

async fn find(
    db: &mut PostgresConnection,
    session: &LiveSessionKey,
) -> Result<Option<StoredLiveSession>, LiveStoreError> {
    let rows = db
        .query(SESSION, &[&session.agent, &session.session])
        .await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let session_number: i64 = row.try_get(0)?;
    let mut stored = StoredLiveSession {
        key: session.clone(),
        token: FencingToken(row.try_get(1)?),
        head: SessionHead {
            cwd: row.try_get(2)?,
            title: row.try_get(3)?,
            setup: row.try_get(4)?,
            creator: row.try_get(7)?,
        },
        next_line: read_unsigned(row, 5)?,
        next_prompt: read_unsigned(row, 6)?,
        prompts: Vec::new(),
    };
    let kept = to_bigint(MAX_ENDED_PROMPTS);
    for row in db.query(PROMPTS, &[&session_number, &kept]).await? {
        stored.prompts.push(PromptRecord {
            number: read_unsigned(&row, 0)?,
            key: row.try_get(1)?,
            sender: row.try_get(2)?,
            params: row.try_get(3)?,
            state: PromptState::from_code(row.try_get(4)?),
            position: read_unsigned(&row, 5)?,
            response: row.try_get(6)?,
        });
    }
    Ok(Some(stored))
}

fn logged_line(row: &Row) -> Result<LoggedLine, LiveStoreError> {
    let line: &str = row.try_get(2)?;
    Ok(LoggedLine {
        number: read_unsigned(row, 0)?,
        until: read_unsigned(row, 1)?,
        line: line.into(),
    })
}

fn node_info(row: &Row) -> Result<NodeInfo, LiveStoreError> {
    Ok(NodeInfo {
        id: NodeId(row.try_get(0)?),
        address: row.try_get(1)?,
    })
}

#[allow(clippy::cast_precision_loss)]
fn millis(duration: Duration) -> f64 {
    duration.as_millis() as f64
}
