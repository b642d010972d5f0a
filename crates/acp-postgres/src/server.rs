//! Where a database is, and how to connect to it.

use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{AsyncMessage, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::task::AbortOnDropHandle;

use crate::error::error_text;
use crate::{PostgresConnection, PostgresError};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the server may take for a statement.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(8);

/// How long to wait before the notifications are listened to again.
const LISTEN_DELAY: Duration = Duration::from_millis(500);

/// Where a database is, and how to connect to it.
#[derive(Debug, Clone)]
pub struct PostgresServer {
    config: Config,
}

impl PostgresServer {
    /// Takes the URL of a database: `postgres://USER:PASSWORD@HOST/DATABASE`. The password can also be given
    /// separately.
    ///
    /// # Errors
    /// The URL is invalid ([`PostgresError::InvalidAddress`]).
    pub fn new(address: &str, password: Option<&str>) -> Result<Self, PostgresError> {
        let mut config = parse(address)?;
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

    /// Splits the password off a URL, so that the URL can be shown or be on a command line.
    ///
    /// # Errors
    /// The URL is invalid ([`PostgresError::InvalidAddress`]).
    pub fn split_password(address: &str) -> Result<(String, Option<String>), PostgresError> {
        let invalid = || PostgresError::InvalidAddress("it has no valid password".to_owned());
        let Some(password) = parse(address)?.get_password().map(<[u8]>::to_vec) else {
            return Ok((address.to_owned(), None));
        };
        let password = String::from_utf8(password).map_err(|_| invalid())?;
        let (scheme, rest) = address.split_once("://").ok_or_else(invalid)?;
        let rest = match rest.split_once('@') {
            Some((user, host)) => {
                let user = user.split(':').next().unwrap_or_default();
                format!("{user}@{host}")
            }
            None => rest.to_owned(),
        };
        let rest = match rest.split_once('?') {
            Some((path, options)) => {
                let options = options.split('&');
                let kept = options.filter(|option| !option.starts_with("password="));
                format!("{path}?{}", kept.collect::<Vec<_>>().join("&"))
            }
            None => rest,
        };
        let without = format!("{scheme}://{}", rest.trim_end_matches('?'));
        match parse(&without)?.get_password() {
            None => Ok((without, Some(password))),
            Some(_) => Err(invalid()),
        }
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// The database cannot be reached, or rejects the user.
    pub async fn connect(&self) -> Result<PostgresConnection, PostgresError> {
        self.connect_notified(None).await
    }

    /// Opens a connection. `received` is notified of the notifications that it listens to.
    async fn connect_notified(
        &self,
        received: Option<Arc<Notify>>,
    ) -> Result<PostgresConnection, PostgresError> {
        let connected = timeout(CONNECT_TIMEOUT, self.open(received));
        connected
            .await
            .map_err(|_| PostgresError::timed_out("connecting"))?
    }

    async fn open(
        &self,
        received: Option<Arc<Notify>>,
    ) -> Result<PostgresConnection, PostgresError> {
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
        Ok(PostgresConnection::new(
            client,
            AbortOnDropHandle::new(driver),
        ))
    }

    /// Listens for the notifications of a channel, and connects again when the connection is lost. Never returns.
    pub async fn listen(self, channel: &'static str, received: Arc<Notify>) {
        loop {
            match self.connect_notified(Some(Arc::clone(&received))).await {
                Ok(mut connection) => {
                    if connection.run(&format!("listen {channel}")).await.is_ok() {
                        while connection.is_usable() {
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

fn parse(address: &str) -> Result<Config, PostgresError> {
    address
        .parse()
        .map_err(|error| PostgresError::InvalidAddress(address_error(&error)))
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

fn tls() -> Result<MakeRustlsConnect, PostgresError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let failed = |error: rustls::Error| PostgresError::Failed(error.to_string());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_platform_verifier()
        .map_err(failed)?
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_split_off() {
        for (url, without, password) in [
            ("postgres://acp@db/acp", "postgres://acp@db/acp", None),
            (
                "postgres://acp:a%40b@db/acp?sslmode=require",
                "postgres://acp@db/acp?sslmode=require",
                Some("a@b"),
            ),
            (
                "postgres:///acp?password=x&host=/run&user=acp",
                "postgres:///acp?host=/run&user=acp",
                Some("x"),
            ),
            (
                "postgres://db/acp?password=x",
                "postgres://db/acp",
                Some("x"),
            ),
        ] {
            let split = PostgresServer::split_password(url).unwrap();
            assert_eq!(split, (without.to_owned(), password.map(str::to_owned)));
        }
    }

    #[test]
    fn invalid_url_does_not_show_its_password() {
        for url in [
            "postgres://user:a@b?secret=1@host/db",
            "postgres://acp@db/acp?pass%77ord=secret",
        ] {
            let error = PostgresServer::split_password(url).unwrap_err();
            assert!(matches!(error, PostgresError::InvalidAddress(_)));
            assert!(!format!("{error} {error:?}").contains("secret"));
        }
    }
}
