//! Creates the tables of a schema, and brings them up to date.

use crate::{PostgresConnection, PostgresError};

/// A schema with versioned tables. Its table `version` contains their version.
#[derive(Debug, Clone, Copy)]
pub struct PostgresSchema {
    /// The name of the schema: a plain word, which is part of statements.
    pub name: &'static str,
    /// The statements that lead from each version to the next one. Those of a release never change.
    pub migrations: &'static [&'static str],
    /// Identifies the advisory lock that a migration holds. Each schema has a number of its own, which has no meaning.
    pub lock: i64,
}

impl PostgresSchema {
    /// Returns the version of the tables that this program uses.
    #[must_use]
    pub fn known_version(&self) -> u32 {
        u32::try_from(self.migrations.len()).unwrap_or(u32::MAX)
    }

    /// Checks the version of the tables. Creates them if there are none.
    ///
    /// # Errors
    /// The tables have another version ([`PostgresError::Newer`], [`PostgresError::Older`]), or cannot be created.
    pub async fn prepare(&self, connection: &mut PostgresConnection) -> Result<(), PostgresError> {
        let known = self.known_version();
        match self.version(connection).await? {
            0 => self.migrate(connection).await.map(drop),
            found if found > known => Err(PostgresError::Newer { found, known }),
            found if found < known => Err(PostgresError::Older { found, known }),
            _ => Ok(()),
        }
    }

    /// Creates the tables, or brings them up to date. Returns the version before, or 0 if there were none.
    ///
    /// # Errors
    /// The tables are newer than this program ([`PostgresError::Newer`]), or cannot be changed.
    pub async fn migrate(&self, connection: &mut PostgresConnection) -> Result<u32, PostgresError> {
        // Several programs may start at the same time. The lock comes before the transaction, which otherwise might not
        // see the tables that another one has just created.
        connection
            .run(&format!("select pg_advisory_lock({})", self.lock))
            .await?;
        connection.begin().await?;
        let migrated = self.migrate_locked(connection).await;
        let migrated = connection.end(migrated).await;
        let unlocked = connection
            .run(&format!("select pg_advisory_unlock({})", self.lock))
            .await;
        let before = migrated?;
        unlocked?;
        Ok(before)
    }

    async fn migrate_locked(
        &self,
        connection: &mut PostgresConnection,
    ) -> Result<u32, PostgresError> {
        let known = self.known_version();
        let found = self.version(connection).await?;
        if found > known {
            return Err(PostgresError::Newer { found, known });
        }
        let name = self.name;
        if found == 0 {
            let schema = format!(
                "create schema if not exists {name};
                 create table {name}.version (version integer not null);
                 insert into {name}.version values (0);"
            );
            connection.run(&schema).await?;
        }
        for migration in self.migrations.iter().skip(found as usize) {
            connection.run(migration).await?;
        }
        connection
            .run(&format!("update {name}.version set version = {known}"))
            .await?;
        Ok(found)
    }

    /// Returns the version of the tables, or 0 if there are none.
    ///
    /// # Errors
    /// The version cannot be read.
    pub async fn version(&self, connection: &mut PostgresConnection) -> Result<u32, PostgresError> {
        let table = format!("{}.version", self.name);
        let exists = "select to_regclass($1) is not null";
        let rows = connection.query(exists, &[&table]).await?;
        let exists = match rows.first() {
            Some(row) => row.try_get(0)?,
            None => false,
        };
        if !exists {
            return Ok(0);
        }
        // The name of a table cannot be a parameter.
        let rows = connection
            .query_once(&format!("select version from {table}"))
            .await?;
        let version: i32 = match rows.first() {
            Some(row) => row.try_get(0)?,
            None => 0,
        };
        Ok(u32::try_from(version).unwrap_or_default())
    }
}
