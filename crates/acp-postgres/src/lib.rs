//! Connections to PostgreSQL, for stores.
//!
//! | file | subject |
//! |---|---|
//! | `server.rs` | where a database is, and connecting to it |
//! | `connection.rs` | a connection and its statements |
//! | `slot.rs` | a connection that is opened again when it was lost |
//! | `schema.rs` | creates tables, and brings them up to date |
//! | `value.rs` | numbers and text as PostgreSQL stores them |
//! | `error.rs` | the errors |
//! | `testing.rs` | a server for tests |

mod connection;
mod error;
mod schema;
mod server;
mod slot;
#[cfg(feature = "testing")]
mod testing;
mod value;

pub use connection::PostgresConnection;
pub use error::PostgresError;
pub use schema::PostgresSchema;
pub use server::PostgresServer;
pub use slot::ConnectionSlot;
#[cfg(feature = "testing")]
pub use testing::TestPostgres;
pub use tokio_postgres::types::ToSql;
pub use tokio_postgres::{Error as DriverError, Row};
pub use value::{read_unsigned, to_bigint, without_nul};
