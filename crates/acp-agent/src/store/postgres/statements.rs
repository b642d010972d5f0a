//! The database statements: one function for each store operation.
//!
//! Each operation is a single statement, so it happens entirely or not at all, in one round trip. If the statement does
//! nothing, a second one finds out why. All operations can be repeated: a change that has been made already is
//! recognized by its random number.

use acp::v1::SessionId;
use acp_postgres::{PostgresConnection, Row, read_unsigned, to_bigint, without_nul};

use crate::store::entry::{StoreEntry, StoreEntryKind};
use crate::store::error::StoreError;
use crate::store::list_cursor::{list_cursor, parse_list_cursor, to_time};
use crate::store::stored_session::{
    EntryFilter, EntryPage, HistoryEnd, MAX_PAGE_BYTES, MAX_PAGE_ENTRIES, SessionFilter,
    SessionPage, SessionProperties, SessionRevision, StoredSession,
};

const CREATE: &str = "
    insert into acp_agent.session
        (id, cwd, archived, properties, created_at, updated_at, revision, next_entry, folded_until, change)
    values ($1, $2, $3, $4, date_trunc('milliseconds', clock_timestamp()),
        date_trunc('milliseconds', clock_timestamp()), 0, 0, 0, $5)
    on conflict (id) do nothing";

const FORK: &str = "
    with original as (
        select number, coalesce($8, next_entry) as next_entry,
            least(folded_until, coalesce($8, next_entry)) as folded_until
        from acp_agent.session where id = $6 and ($7::bigint is null or revision = $7)
    ),
    copy as (
        insert into acp_agent.session
            (id, cwd, archived, properties, created_at, updated_at, revision, next_entry, folded_until, change)
        select $1, $2, $3, $4, date_trunc('milliseconds', clock_timestamp()),
            date_trunc('milliseconds', clock_timestamp()), 0, next_entry, folded_until, $5
        from original
        on conflict (id) do nothing returning number
    )
    insert into acp_agent.entry (session, number, kind, body)
    select c.number, e.number, e.kind, e.body
    from copy c cross join original o
    join acp_agent.entry e on e.session = o.number and e.number < o.next_entry";

const FIND: &str = "
    select id, properties, created_at, updated_at, revision, next_entry, folded_until, change
    from acp_agent.session where id = $1";

const APPEND: &str = "
    with changed as (
        update acp_agent.session set
            revision = revision + 1,
            next_entry = next_entry + cardinality($5::text[]),
            updated_at = case cardinality($5::text[]) when 0 then updated_at
                else greatest(updated_at, date_trunc('milliseconds', clock_timestamp())) end,
            cwd = coalesce($6, cwd),
            archived = coalesce($7, archived),
            properties = coalesce($8, properties),
            change = $3
        where id = $1 and revision = $2
        returning number, next_entry - cardinality($5::text[]) as first
    ),
    added as (
        insert into acp_agent.entry (session, number, kind, body)
        select c.number, c.first + e.place - 1, e.kind, e.body
        from changed c cross join unnest($4::smallint[], $5::text[]) with ordinality as e (kind, body, place)
    )
    select 1 from changed";

/// The new entries replace those with the same numbers, so they are not among those that are deleted: within a
/// statement, it is undefined which part comes first.
const FOLD: &str = "
    with changed as (
        update acp_agent.session set revision = revision + 1, folded_until = $7, change = $3
        where id = $1 and revision = $2 and next_entry >= $7
        returning number
    ),
    removed as (
        delete from acp_agent.entry e using changed c
        where e.session = c.number and e.number >= $6::bigint + cardinality($5::text[]) and e.number < $7
    ),
    added as (
        insert into acp_agent.entry (session, number, kind, body)
        select c.number, $6::bigint + e.place - 1, e.kind, e.body
        from changed c cross join unnest($4::smallint[], $5::text[]) with ordinality as e (kind, body, place)
        on conflict (session, number) do update set kind = excluded.kind, body = excluded.body
    )
    select 1 from changed";

/// Leaves out what does not fit into a page: entries can be large. The first one that does not fit is there, too, since
/// it tells that there is another page.
const READ: &str = "
    select s.revision, e.number, e.kind, e.body
    from acp_agent.session s left join lateral (
        select number, kind, body from (
            select number, kind, body,
                sum(octet_length(body)) over (
                    order by number rows between unbounded preceding and 2 preceding
                ) as before
            from (
                select number, kind, body from acp_agent.entry
                where session = s.number and s.revision = $2 and number >= $3 and kind <> all ($4::smallint[])
                order by number limit $5
            ) entry
        ) entry where coalesce(before, 0) <= $6
    ) e on true
    where s.id = $1 order by e.number";

const LIST: &str = "
    select id, properties, created_at, updated_at, revision, next_entry, folded_until, change
    from acp_agent.session
    where next_entry > 0 and ($1::text is null or cwd = $1)
        and ($2::boolean is null or archived = $2)
        and ($3::timestamptz is null or updated_at < $3 or (updated_at = $3 and id > $4))
    order by updated_at desc, id limit $5";

const DELETE: &str = "delete from acp_agent.session where id = $1 returning 1";

/// The number of a change, so that it is recognized when it is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChangeNumber(i64);

impl ChangeNumber {
    pub(super) fn random() -> Self {
        Self(fastrand::i64(..))
    }
}

/// A change of a session at an expected revision.
pub(super) struct ExpectedChange {
    pub(super) id: SessionId,
    pub(super) expected: SessionRevision,
    pub(super) change: ChangeNumber,
}

/// A session with the number of its last change.
struct FoundSession {
    stored: StoredSession,
    change: ChangeNumber,
}

pub(super) async fn create(
    db: &mut PostgresConnection,
    id: &SessionId,
    properties: &SessionProperties,
    change: ChangeNumber,
) -> Result<StoredSession, StoreError> {
    let columns = PropertyColumns::new(properties)?;
    let PropertyColumns {
        cwd,
        archived,
        json,
    } = &columns;
    db.query(
        CREATE,
        &[&without_nul(id.as_str()), cwd, archived, json, &change.0],
    )
    .await?;
    created(db, id, change).await
}

pub(super) async fn fork(
    db: &mut PostgresConnection,
    from: &SessionId,
    id: &SessionId,
    properties: &SessionProperties,
    end: Option<HistoryEnd>,
    change: ChangeNumber,
) -> Result<StoredSession, StoreError> {
    let columns = PropertyColumns::new(properties)?;
    let PropertyColumns {
        cwd,
        archived,
        json,
    } = &columns;
    let revision = end.map(|end| to_bigint(end.revision.0));
    let next_entry = end.map(|end| to_bigint(end.next_entry));
    let (id_text, from_text) = (without_nul(id.as_str()), without_nul(from.as_str()));
    db.query(
        FORK,
        &[
            &id_text,
            cwd,
            archived,
            json,
            &change.0,
            &from_text,
            &revision,
            &next_entry,
        ],
    )
    .await?;
    match created(db, id, change).await {
        Err(StoreError::NotFound(_)) => {
            // There is such a session, but at another revision.
            find_session(db, from).await?;
            Err(StoreError::Conflict(from.clone()))
        }
        created => created,
    }
}

/// Returns a session that this change has created.
async fn created(
    db: &mut PostgresConnection,
    id: &SessionId,
    change: ChangeNumber,
) -> Result<StoredSession, StoreError> {
    let found = find_session(db, id).await?;
    match found.change == change {
        true => Ok(found.stored),
        false => Err(StoreError::Exists(id.clone())),
    }
}

pub(super) async fn find(
    db: &mut PostgresConnection,
    id: &SessionId,
) -> Result<StoredSession, StoreError> {
    Ok(find_session(db, id).await?.stored)
}

async fn find_session(
    db: &mut PostgresConnection,
    id: &SessionId,
) -> Result<FoundSession, StoreError> {
    let rows = db.query(FIND, &[&without_nul(id.as_str())]).await?;
    match rows.first() {
        Some(row) => Ok(FoundSession {
            stored: stored_session(row)?,
            change: ChangeNumber(row.try_get(7)?),
        }),
        None => Err(StoreError::NotFound(id.clone())),
    }
}

pub(super) async fn append(
    db: &mut PostgresConnection,
    to: &ExpectedChange,
    entries: &[StoreEntry],
    properties: Option<&SessionProperties>,
) -> Result<SessionRevision, StoreError> {
    let columns = properties.map(PropertyColumns::new).transpose()?;
    let (cwd, archived, json) = match columns {
        Some(columns) => (
            Some(columns.cwd),
            Some(columns.archived),
            Some(columns.json),
        ),
        None => (None, None, None),
    };
    let (kinds, bodies) = entry_columns(entries);
    let id = without_nul(to.id.as_str());
    let expected = to_bigint(to.expected.0);
    let changed = db
        .query(
            APPEND,
            &[
                &id,
                &expected,
                &to.change.0,
                &kinds,
                &bodies,
                &cwd,
                &archived,
                &json,
            ],
        )
        .await?;
    match changed.is_empty() {
        false => Ok(SessionRevision(to.expected.0 + 1)),
        true => repeated(db, to).await,
    }
}

/// Returns the revision of a change that was made before its connection was lost.
async fn repeated(
    db: &mut PostgresConnection,
    to: &ExpectedChange,
) -> Result<SessionRevision, StoreError> {
    let found = find_session(db, &to.id).await?;
    match found.change == to.change {
        true => Ok(found.stored.revision),
        false => Err(StoreError::Conflict(to.id.clone())),
    }
}

pub(super) async fn read(
    db: &mut PostgresConnection,
    id: &SessionId,
    expected: SessionRevision,
    which: EntryFilter,
    from: u64,
) -> Result<EntryPage, StoreError> {
    // Entries of unknown kinds are read, because they must be reported rather than skipped.
    let excluded: Vec<i16> = [
        StoreEntryKind::UpdateV1,
        StoreEntryKind::UpdateV2,
        StoreEntryKind::Message,
        StoreEntryKind::Compaction,
    ]
    .into_iter()
    .filter(|kind| !which.includes(*kind))
    .map(kind_number)
    .collect();
    let most = to_bigint(MAX_PAGE_ENTRIES).saturating_add(1);
    let expected_number = to_bigint(expected.0);
    let rows = db
        .query(
            READ,
            &[
                &without_nul(id.as_str()),
                &expected_number,
                &to_bigint(from),
                &excluded,
                &most,
                &to_bigint(MAX_PAGE_BYTES),
            ],
        )
        .await?;
    let Some(first) = rows.first() else {
        return Err(StoreError::NotFound(id.clone()));
    };
    let revision: i64 = first.try_get(0)?;
    if revision != expected_number {
        return Err(StoreError::Conflict(id.clone()));
    }
    // Without entries, there is a row for the session.
    let no_entries = first.try_get::<_, Option<i64>>(1)?.is_none();
    let rows = rows.iter().filter(|_| !no_entries);
    EntryPage::from_entries(rows.map(stored_entry))
}

fn stored_entry(row: &Row) -> Result<(u64, StoreEntry), StoreError> {
    let kind: i16 = row.try_get(2)?;
    let kind = StoreEntryKind::from_number(kind.into())
        .ok_or_else(|| StoreError::Corrupt(format!("unknown entry kind {kind}")))?;
    let body: String = row.try_get(3)?;
    Ok((read_unsigned(row, 1)?, StoreEntry { kind, body }))
}

pub(super) async fn fold(
    db: &mut PostgresConnection,
    to: &ExpectedChange,
    (from, until): (u64, u64),
    entries: &[StoreEntry],
) -> Result<SessionRevision, StoreError> {
    let grows = || StoreError::Failed("folding would increase the number of entries".to_owned());
    if entries.len() as u64 > until.saturating_sub(from) {
        return Err(grows());
    }
    let (kinds, bodies) = entry_columns(entries);
    let (id, expected) = (without_nul(to.id.as_str()), to_bigint(to.expected.0));
    let (from, until) = (to_bigint(from), to_bigint(until));
    let changed = db
        .query(
            FOLD,
            &[&id, &expected, &to.change.0, &kinds, &bodies, &from, &until],
        )
        .await?;
    if !changed.is_empty() {
        return Ok(SessionRevision(to.expected.0 + 1));
    }
    let found = find(db, &to.id).await?;
    match found.revision == to.expected && to_bigint(found.next_entry) < until {
        true => Err(grows()),
        false => repeated(db, to).await,
    }
}

pub(super) async fn list(
    db: &mut PostgresConnection,
    filter: &SessionFilter,
    cursor: Option<&str>,
    most: usize,
) -> Result<SessionPage, StoreError> {
    let after = cursor.map(parse_list_cursor).transpose()?;
    let (updated, after) = after
        .map(|(updated, id)| (to_time(updated), without_nul(&id)))
        .unzip();
    let cwd = filter.cwd.as_deref().map(without_nul);
    let limit = to_bigint(most).saturating_add(1);
    let rows = db
        .query(LIST, &[&cwd, &filter.archived, &updated, &after, &limit])
        .await?;
    let mut page = SessionPage::default();
    for row in &rows {
        if page.sessions.len() == most {
            page.cursor = page.sessions.last().map(list_cursor);
            break;
        }
        page.sessions.push(stored_session(row)?);
    }
    Ok(page)
}

/// Deletes a session. Returns `false` if there is none.
pub(super) async fn delete(
    db: &mut PostgresConnection,
    id: &SessionId,
) -> Result<bool, StoreError> {
    let deleted = db.query(DELETE, &[&without_nul(id.as_str())]).await?;
    Ok(!deleted.is_empty())
}

/// The properties as columns.
struct PropertyColumns {
    cwd: String,
    archived: bool,
    json: String,
}

impl PropertyColumns {
    fn new(properties: &SessionProperties) -> Result<Self, StoreError> {
        let json = serde_json::to_string(properties);
        Ok(Self {
            cwd: without_nul(&properties.cwd),
            archived: properties.archived,
            json: json.map_err(|e| StoreError::Failed(format!("cannot serialize: {e}")))?,
        })
    }
}

fn entry_columns(entries: &[StoreEntry]) -> (Vec<i16>, Vec<&str>) {
    let columns = entries
        .iter()
        .map(|entry| (kind_number(entry.kind), entry.body.as_str()));
    columns.unzip()
}

fn stored_session(row: &Row) -> Result<StoredSession, StoreError> {
    let properties: &str = row.try_get(1)?;
    let properties = serde_json::from_str(properties);
    Ok(StoredSession {
        id: row.try_get::<_, String>(0)?.into(),
        properties: properties.map_err(|e| StoreError::Corrupt(e.to_string()))?,
        created_at: row.try_get(2)?,
        updated_at: row.try_get(3)?,
        revision: SessionRevision(read_unsigned(row, 4)?),
        next_entry: read_unsigned(row, 5)?,
        folded_until: read_unsigned(row, 6)?,
    })
}

fn kind_number(kind: StoreEntryKind) -> i16 {
    kind as i16
}
