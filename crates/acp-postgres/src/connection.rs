//! A connection to a PostgreSQL server, and the statements that run on it.

use std::collections::HashMap;
use std::fmt;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};
use tokio_util::task::AbortOnDropHandle;

use crate::PostgresError;

/// A connection, with its prepared statements.
pub struct PostgresConnection {
    client: Client,
    statements: HashMap<&'static str, Statement>,
    /// A statement failed in a way that can be the connection's fault.
    is_doubtful: bool,
    _driver: AbortOnDropHandle<()>,
}

impl PostgresConnection {
    pub(crate) fn new(client: Client, driver: AbortOnDropHandle<()>) -> Self {
        Self {
            client,
            statements: HashMap::new(),
            is_doubtful: false,
            _driver: driver,
        }
    }

    /// Returns `true` if the connection can be used for another call.
    pub(crate) fn is_usable(&self) -> bool {
        !self.is_doubtful && !self.client.is_closed()
    }

    /// Runs a statement, which is prepared once.
    ///
    /// # Errors
    /// The connection is lost, or the database rejects the statement.
    pub async fn query(
        &mut self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, PostgresError> {
        let statement = match self.statements.get(sql) {
            Some(statement) => statement.clone(),
            None => {
                let prepared = self.client.prepare(sql).await;
                let statement = self.checked(prepared)?;
                self.statements.insert(sql, statement.clone());
                statement
            }
        };
        let rows = self.client.query(&statement, params).await;
        self.checked(rows)
    }

    /// Runs a statement that is not run again.
    pub(crate) async fn query_once(&mut self, sql: &str) -> Result<Vec<Row>, PostgresError> {
        let rows = self.client.query(sql, &[]).await;
        self.checked(rows)
    }

    /// Runs statements that have no parameters and return nothing.
    ///
    /// # Errors
    /// As for [`query`](Self::query).
    pub async fn run(&mut self, sql: &str) -> Result<(), PostgresError> {
        let done = self.client.batch_execute(sql).await;
        self.checked(done)
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// As for [`query`](Self::query).
    pub async fn begin(&mut self) -> Result<(), PostgresError> {
        self.run("begin").await
    }

    /// Ends a transaction: keeps its changes if the result is a success.
    ///
    /// # Errors
    /// The result is an error, or the changes cannot be kept.
    pub async fn end<T, E: From<PostgresError>>(&mut self, result: Result<T, E>) -> Result<T, E> {
        match result {
            Ok(result) => {
                self.run("commit").await?;
                Ok(result)
            }
            Err(error) => {
                // If this fails, too, the connection is closed, which has the same effect.
                let _ = self.run("rollback").await;
                Err(error)
            }
        }
    }

    fn checked<T>(&mut self, result: Result<T, tokio_postgres::Error>) -> Result<T, PostgresError> {
        let result = result.map_err(PostgresError::from);
        self.is_doubtful |= matches!(result, Err(PostgresError::Unavailable(_)));
        result
    }
}

impl fmt::Debug for PostgresConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConnection").finish_non_exhaustive()
    }
}
