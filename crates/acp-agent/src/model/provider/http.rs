//! Creates the HTTP clients for models. This happens on the first request, because reading the system's certificates
//! takes longer than starting the rest of the agent.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::{Client, ClientBuilder, Url, redirect};
use rustls::crypto::ring;
use tokio::sync::OnceCell;

use super::request::UnsupportedParameters;

/// The timeout for connecting, including TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// The HTTP clients of an agent, which all of its models share.
#[derive(Default)]
pub(super) struct HttpClients {
    /// The clients: one for each combination of whether the URL refers to this machine and whether it uses TLS.
    clients: [OnceCell<Client>; 4],
    /// The parameters that each model has rejected, keyed by the model and its URL.
    unsupported: Mutex<HashMap<String, UnsupportedParameters>>,
}

impl HttpClients {
    /// Returns the client for a URL. If it cannot be created, returns the reason.
    pub(super) async fn client(&self, address: &Url) -> Result<&Client, String> {
        let (here, tls) = (is_loopback(address), address.scheme() == "https");
        let [a, b, c, d] = &self.clients;
        let cell = match (here, tls) {
            (false, false) => a,
            (false, true) => b,
            (true, false) => c,
            (true, true) => d,
        };
        cell.get_or_try_init(|| async move {
            // This blocks, because it reads files.
            let built = tokio::task::spawn_blocking(move || build_client(here, tls)).await;
            built.map_err(|e| e.to_string())?
        })
        .await
    }

    /// Returns the parameters that a model has rejected so far.
    pub(super) fn unsupported_parameters(&self, model: &str) -> UnsupportedParameters {
        let refused = self.unsupported.lock();
        let refused = refused.unwrap_or_else(PoisonError::into_inner);
        refused.get(model).copied().unwrap_or_default()
    }

    /// Records that a model rejects a parameter. Returns `true` if a retry without the parameter may succeed.
    pub(super) fn record_unsupported(&self, model: &str, parameter: &str) -> bool {
        let mut refused = self.unsupported_parameters(model);
        if !refused.record_rejected(parameter) {
            return false;
        }
        tracing::info!(
            model,
            parameter,
            "unsupported parameter; omitting it from now on"
        );
        let all = self.unsupported.lock();
        let mut all = all.unwrap_or_else(PoisonError::into_inner);
        all.insert(model.to_owned(), refused);
        true
    }
}

fn build_client(here: bool, tls: bool) -> Result<Client, String> {
    let mut client = Client::builder()
        .user_agent(concat!("acp-agent/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        // `reqwest` would send a key in a header such as `x-api-key` to any server to which a redirect leads.
        .redirect(redirect::Policy::none())
        // The size limits apply to bytes as received, so a small response must not be decompressed into a huge one.
        .no_gzip();
    if here {
        client = client.no_proxy();
    }
    if tls {
        // This fails if a provider is installed already, which is fine too.
        let _ = ring::default_provider().install_default();
    } else {
        // A local model must work without CA certificates, which small containers lack.
        client = without_tls(client)?;
    }
    client.build().map_err(|e| crate::causes::error_chain(&e))
}

/// Configures a client that loads no certificates and trusts none.
fn without_tls(client: ClientBuilder) -> Result<ClientBuilder, String> {
    let config = rustls::ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    Ok(client.tls_backend_preconfigured(config))
}

/// Returns `true` if the host of the URL is this machine.
pub(super) fn is_loopback(address: &Url) -> bool {
    let host = address.host_str().unwrap_or_default();
    let number = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || number.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}
