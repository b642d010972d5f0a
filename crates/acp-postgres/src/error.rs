//! Errors of PostgreSQL.

use std::error::Error;

use tokio_postgres::error::SqlState;

/// The error of a call of a PostgreSQL database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresError {
    /// The URL of the database is invalid.
    #[error("{0}")]
    InvalidAddress(String),
    /// The database cannot be reached, or does not respond. Trying again may help. The statement may have been run.
    #[error("{0}")]
    Unavailable(String),
    /// The tables were created by a newer version of this program.
    #[error("the tables have version {found}, but this program knows versions up to {known}")]
    Newer {
        /// The version of the tables.
        found: u32,
        /// The latest version that this program knows.
        known: u32,
    },
    /// The tables were created by an older version of this program, which others may still be running.
    #[error("the tables have version {found}, but this program needs version {known}")]
    Older {
        /// The version of the tables.
        found: u32,
        /// The version that this program needs.
        known: u32,
    },
    /// The database has rejected a statement, or contains something unexpected.
    #[error("{0}")]
    Failed(String),
}

impl PostgresError {
    pub(crate) fn timed_out(what: &str) -> Self {
        Self::Unavailable(format!("PostgreSQL: {what} timed out"))
    }
}

impl From<tokio_postgres::Error> for PostgresError {
    fn from(error: tokio_postgres::Error) -> Self {
        let text = error_text(&error);
        // Without a code, the connection has failed, or a value has another type than expected. Otherwise, the classes
        // are: connection, resources, operator intervention, and transactions that collided.
        let is_temporary = match error.code() {
            None => error.is_closed() || error.source().is_some_and(|e| e.is::<std::io::Error>()),
            Some(code) => {
                let class = code.code().get(..2).unwrap_or_default();
                matches!(class, "08" | "53" | "57")
                    || *code == SqlState::T_R_SERIALIZATION_FAILURE
                    || *code == SqlState::T_R_DEADLOCK_DETECTED
                    || *code == SqlState::LOCK_NOT_AVAILABLE
            }
        };
        match is_temporary {
            true => Self::Unavailable(text),
            false => Self::Failed(text),
        }
    }
}

/// Returns what happened, with the server's message.
pub(crate) fn error_text(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return format!("PostgreSQL: {} ({})", error.message(), error.code().code());
    }
    match error.source() {
        Some(source) => format!("PostgreSQL: {error}: {source}"),
        None => format!("PostgreSQL: {error}"),
    }
}
