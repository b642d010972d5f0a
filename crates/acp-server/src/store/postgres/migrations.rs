//! Creates the tables of a PostgreSQL database, and brings them up to date.

use tokio_postgres::Client;

use crate::store::LiveStoreError;

/// The statements that lead from each version to the next one.
const MIGRATIONS: [&str; 2] = [include_str!("0001.sql"), include_str!("0002.sql")];

/// The version of the tables that this program uses.
#[allow(clippy::cast_possible_truncation)]
pub(super) const VERSION: u32 = MIGRATIONS.len() as u32;

/// Identifies the advisory lock that a migration holds. The number has no meaning.
const LOCK: i64 = 0x6163_705f_6c69_7665;

/// Checks the version of the tables. Creates them if there are none.
pub(super) async fn prepare(client: &mut Client) -> Result<(), LiveStoreError> {
    match version(client).await? {
        0 => migrate(client).await.map(drop),
        VERSION => Ok(()),
        found if found > VERSION => Err(LiveStoreError::Newer {
            found,
            known: VERSION,
        }),
        found => Err(LiveStoreError::Older {
            found,
            known: VERSION,
        }),
    }
}

/// Brings the tables up to date. Returns the version before.
pub(super) async fn migrate(client: &mut Client) -> Result<u32, LiveStoreError> {
    // Several servers may start at the same time. The lock comes before the transaction, which otherwise might not see the
    // tables that another server has just created. If anything fails, it ends with the connection.
    client
        .execute("select pg_advisory_lock($1)", &[&LOCK])
        .await?;
    let change = client.transaction().await?;
    let before = version(change.client()).await?;
    if before > VERSION {
        return Err(LiveStoreError::Newer {
            found: before,
            known: VERSION,
        });
    }
    if before == 0 {
        let schema = "create schema if not exists acp;
             create table acp.version (version integer not null);
             insert into acp.version values (0);";
        change.batch_execute(schema).await?;
    }
    for migration in MIGRATIONS.iter().skip(before as usize) {
        change.batch_execute(migration).await?;
    }
    let after = i32::try_from(VERSION).unwrap_or(i32::MAX);
    change
        .execute("update acp.version set version = $1", &[&after])
        .await?;
    change.commit().await?;
    client
        .execute("select pg_advisory_unlock($1)", &[&LOCK])
        .await?;
    Ok(before)
}

/// Returns the version of the tables, or 0 if there are none.
pub(super) async fn version(client: &Client) -> Result<u32, LiveStoreError> {
    let exists = "select to_regclass('acp.version') is not null";
    let exists: bool = client.query_one(exists, &[]).await?.try_get(0)?;
    if !exists {
        return Ok(0);
    }
    let row = client
        .query_one("select version from acp.version", &[])
        .await?;
    let version: i32 = row.try_get(0)?;
    Ok(u32::try_from(version).unwrap_or_default())
}
