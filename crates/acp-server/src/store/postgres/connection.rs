//! Connections to a PostgreSQL server, which are opened again when they were lost.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::task::AbortOnDropHandle;

use crate::store::LiveStoreError;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a statement may take. The server gives up first.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(8);

/// How long to wait before the notifications are listened to again.
const LISTEN_DELAY: Duration = Duration::from_millis(500);

/// The notification that sessions were given up.
pub(super) const CHANNEL: &str = "acp_live";

/// Where the server is, and how to connect to it.
#[derive(Debug, Clone)]
pub(super) struct PostgresServer {
    config: Config,
}

/// A connection, with its prepared statements.
pub(super) struct PostgresConnection {
    pub(super) client: Client,
    statements: HashMap<&'static str, Statement>,
    _driver: AbortOnDropHandle<()>,
}

/// A place for a connection, which one caller uses at a time.
#[derive(Default)]
pub(super) struct ConnectionSlot(Mutex<Option<PostgresConnection>>);

impl PostgresServer {
    pub(super) fn new(address: &str, password: Option<&str>) -> Result<Self, LiveStoreError> {
        let config: Config = address
            .parse()
            .map_err(|error| LiveStoreError::InvalidAddress(address_error(&error)))?;
        let mut config = config;
        if let Some(password) = password {
            config.password(password);
        }
        config.connect_timeout(CONNECT_TIMEOUT);
        config.keepalives_idle(Duration::from_secs(10));
        if config.get_application_name().is_none() {
            config.application_name("acp");
        }
        let timeouts = format!(
            "-c statement_timeout={0} -c idle_in_transaction_session_timeout={0}",
            STATEMENT_TIMEOUT.as_millis()
        );
        let options = match config.get_options() {
            Some(options) => format!("{timeouts} {options}"),
            None => timeouts,
        };
        config.options(options);
        Ok(Self { config })
    }

    /// Opens a connection. `received` is notified of the notifications that it listens to.
    pub(super) async fn connect(
        &self,
        received: Option<Arc<Notify>>,
    ) -> Result<PostgresConnection, LiveStoreError> {
        let connected = timeout(CONNECT_TIMEOUT, self.open(received));
        connected.await.map_err(|_| timed_out("connecting"))?
    }

    async fn open(
        &self,
        received: Option<Arc<Notify>>,
    ) -> Result<PostgresConnection, LiveStoreError> {
        // No TLS on Unix-domain sockets, and no certificates needed: there may be none on this machine.
        let is_local = self.config.get_hosts().iter().all(is_unix);
        let (client, driver) = match self.config.get_ssl_mode() {
            SslMode::Prefer if is_local => {
                let (client, connection) = self.config.connect(NoTls).await?;
                (client, tokio::spawn(drive(connection, received)))
            }
            SslMode::Disable => {
                let (client, connection) = self.config.connect(NoTls).await?;
                (client, tokio::spawn(drive(connection, received)))
            }
            _ => {
                let (client, connection) = self.config.connect(tls()?).await?;
                (client, tokio::spawn(drive(connection, received)))
            }
        };
        Ok(PostgresConnection {
            client,
            statements: HashMap::new(),
            _driver: AbortOnDropHandle::new(driver),
        })
    }

    /// Listens for notifications, and connects again when the connection is lost.
    pub(super) async fn listen(self, received: Arc<Notify>) {
        loop {
            match self.connect(Some(Arc::clone(&received))).await {
                Ok(connection) => {
                    let listen = format!("listen {CHANNEL}");
                    if connection.client.batch_execute(&listen).await.is_ok() {
                        while !connection.client.is_closed() {
                            sleep(LISTEN_DELAY).await;
                        }
                    }
                }
                Err(error) => tracing::debug!(%error, "cannot listen for notifications"),
            }
            sleep(LISTEN_DELAY).await;
        }
    }
}

fn is_unix(host: &Host) -> bool {
    !matches!(host, Host::Tcp(_))
}

/// Says why an address is invalid. An unknown option is not named: it can be a part of the password, if that contains
/// an `@`.
fn address_error(error: &tokio_postgres::Error) -> String {
    let text = error_text(error);
    match text.find("unknown option") {
        Some(_) => "it has an unknown option. Encode special characters of the password".to_owned(),
        None => text,
    }
}

/// Runs a connection until it ends.
async fn drive<S, T>(
    mut connection: tokio_postgres::Connection<S, T>,
    received: Option<Arc<Notify>>,
) where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    loop {
        match std::future::poll_fn(|context| connection.poll_message(context)).await {
            Some(Ok(AsyncMessage::Notification(_))) => {
                if let Some(received) = &received {
                    received.notify_waiters();
                }
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(error = error_text(&error), "connection to PostgreSQL lost");
                return;
            }
            None => return,
        }
    }
}

fn tls() -> Result<MakeRustlsConnect, LiveStoreError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let failed = |error: rustls::Error| LiveStoreError::Failed(error.into());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_platform_verifier()
        .map_err(failed)?
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

impl ConnectionSlot {
    /// Calls the database. Connects first if there is no connection. One that fails or does not respond is closed.
    pub(super) async fn call<T>(
        &self,
        server: &PostgresServer,
        call: impl for<'c> FnOnce(
            &'c mut PostgresConnection,
        ) -> BoxFuture<'c, Result<T, LiveStoreError>>
        + Send,
    ) -> Result<T, LiveStoreError> {
        // Includes the time that other callers take.
        let deadline = Instant::now() + CALL_TIMEOUT;
        let mut slot = timeout_at(deadline, self.0.lock())
            .await
            .map_err(|_| timed_out("waiting for the connection"))?;
        // Taken out of the slot, so that it is closed if the caller does not wait for the end.
        let mut connection = match slot.take().filter(|open| !open.client.is_closed()) {
            Some(connection) => connection,
            None => server.connect(None).await?,
        };
        let called = timeout_at(deadline, call(&mut connection)).await;
        let result = called.map_err(|_| timed_out("a statement"))?;
        let is_usable = !matches!(result, Err(LiveStoreError::Unavailable(_)));
        if is_usable && !connection.client.is_closed() {
            *slot = Some(connection);
        }
        result
    }
}

impl PostgresConnection {
    /// Runs a statement, which is prepared once.
    pub(super) async fn query(
        &mut self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, LiveStoreError> {
        let statement = match self.statements.get(sql) {
            Some(statement) => statement.clone(),
            None => {
                let statement = self.client.prepare(sql).await?;
                self.statements.insert(sql, statement.clone());
                statement
            }
        };
        Ok(self.client.query(&statement, params).await?)
    }

    /// Runs several statements in a transaction. If it fails, nothing is changed.
    pub(super) async fn begin(&self) -> Result<(), LiveStoreError> {
        Ok(self.client.batch_execute("begin").await?)
    }

    /// Ends a transaction: keeps its changes if the result is a success.
    pub(super) async fn end<T>(
        &self,
        result: Result<T, LiveStoreError>,
    ) -> Result<T, LiveStoreError> {
        match result {
            Ok(result) => {
                self.client.batch_execute("commit").await?;
                Ok(result)
            }
            Err(error) => {
                // If this fails, too, the connection is closed, which has the same effect.
                let _ = self.client.batch_execute("rollback").await;
                Err(error)
            }
        }
    }
}

fn timed_out(what: &str) -> LiveStoreError {
    LiveStoreError::Unavailable(format!("PostgreSQL: {what} timed out").into())
}

/// Returns what happened, with the server's message.
fn error_text(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return format!("PostgreSQL: {} ({})", error.message(), error.code().code());
    }
    match std::error::Error::source(error) {
        Some(source) => format!("PostgreSQL: {error}: {source}"),
        None => format!("PostgreSQL: {error}"),
    }
}

impl From<tokio_postgres::Error> for LiveStoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        let text = error_text(&error).into();
        // Without a code, the connection failed. Otherwise, the classes are: connection, resources, operator
        // intervention, and transactions that collided.
        let is_temporary = match error.code() {
            None => error.is_closed() || std::error::Error::source(&error).is_some(),
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
