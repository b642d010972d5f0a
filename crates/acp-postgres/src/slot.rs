//! A connection that is opened again when it was lost.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use crate::{PostgresConnection, PostgresError, PostgresServer};

/// How long a call may take, with the time that other callers take. The server gives up first.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// A place for a connection, which one caller uses at a time.
#[derive(Debug, Default)]
pub struct ConnectionSlot(Mutex<Option<PostgresConnection>>);

impl ConnectionSlot {
    /// Calls the database. Connects first if there is no connection. One that fails or does not respond is closed.
    ///
    /// # Errors
    /// The database cannot be reached or does not respond in time, or `call` fails.
    pub async fn call<T, E: From<PostgresError>>(
        &self,
        server: &PostgresServer,
        call: impl for<'c> FnOnce(&'c mut PostgresConnection) -> BoxFuture<'c, Result<T, E>> + Send,
    ) -> Result<T, E> {
        let deadline = Instant::now() + CALL_TIMEOUT;
        let mut slot = timeout_at(deadline, self.0.lock())
            .await
            .map_err(|_| PostgresError::timed_out("waiting for the connection"))?;
        // Taken out of the slot, so that it is closed if the caller does not wait for the end.
        let mut connection = match slot.take().filter(PostgresConnection::is_usable) {
            Some(connection) => connection,
            None => server.connect().await?,
        };
        let called = timeout_at(deadline, call(&mut connection)).await;
        let result = called.map_err(|_| PostgresError::timed_out("a statement"))?;
        if connection.is_usable() {
            *slot = Some(connection);
        }
        result
    }
}
