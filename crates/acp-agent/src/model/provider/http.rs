//! The HTTP clients. None is made before a model is asked: reading the system's certificates takes longer than all
//! else that starting an agent does.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::{Client, ClientBuilder, Url, redirect};
use rustls::crypto::ring;
use tokio::sync::OnceCell;

use super::request::UnsupportedParameters;

/// How long connecting may take, TLS included.
const CONNECT: Duration = Duration::from_secs(15);

/// The clients, which all models of an agent share, and with them their connections.
#[derive(Default)]
pub(super) struct HttpClients {
    /// By whether the address is on this machine, and whether TLS is spoken there.
    clients: [OnceCell<Client>; 4],
    /// What models have refused, by what they call themselves.
    unsupported: Mutex<HashMap<String, UnsupportedParameters>>,
}

impl HttpClients {
    /// The client for an address. If there can be none, why.
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
            // It reads files.
            let built = tokio::task::spawn_blocking(move || build_client(here, tls)).await;
            built.map_err(|e| e.to_string())?
        })
        .await
    }

    /// What a model has refused so far.
    pub(super) fn unsupported_parameters(&self, model: &str) -> UnsupportedParameters {
        let refused = self.unsupported.lock();
        let refused = refused.unwrap_or_else(PoisonError::into_inner);
        refused.get(model).copied().unwrap_or_default()
    }

    /// Takes up that a model refuses a parameter. Gives whether it is worth asking once more without it.
    pub(super) fn learn_unsupported(&self, model: &str, parameter: &str) -> bool {
        let mut refused = self.unsupported_parameters(model);
        if !refused.learn(parameter) {
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
        .connect_timeout(CONNECT)
        // A key in a header of its own would be sent on to wherever the answer points.
        .redirect(redirect::Policy::none())
        // What comes is measured as it comes; a small answer must not become a huge one in here.
        .no_gzip();
    if here {
        client = client.no_proxy();
    }
    if tls {
        // If there is one already, it does as well.
        let _ = ring::default_provider().install_default();
    } else {
        // A model at home must not need the certificates of authorities, which small containers lack.
        client = without_tls(client)?;
    }
    client.build().map_err(|e| crate::causes::chain(&e))
}

/// Has it read no certificates, and trust none.
fn without_tls(client: ClientBuilder) -> Result<ClientBuilder, String> {
    let config = rustls::ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    Ok(client.tls_backend_preconfigured(config))
}

/// Whether the address is on this machine.
pub(super) fn is_loopback(address: &Url) -> bool {
    let host = address.host_str().unwrap_or_default();
    let number = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || number.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}
