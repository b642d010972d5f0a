//! The HTTP clients. None is made before a model is asked: reading the system's certificates takes longer than all
//! else that starting an agent does.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::{Client, ClientBuilder, Url, redirect};
use rustls::crypto::ring;
use tokio::sync::OnceCell;

/// How long connecting may take, TLS included.
const CONNECT: Duration = Duration::from_secs(15);

/// The clients, which all models of an agent share, and with them their connections.
#[derive(Default)]
pub(super) struct Http {
    /// By whether the address is on this machine, and whether TLS is spoken there.
    clients: [OnceCell<Client>; 4],
    /// Makes requests of conversations, and steps of answers; it reaches no further than our relay.
    formats: OnceCell<genai::Client>,
}

impl Http {
    /// The client for an address. If there can be none, why.
    pub(super) async fn client(&self, address: &Url) -> Result<&Client, String> {
        let (here, tls) = (is_here(address), address.scheme() == "https");
        let [a, b, c, d] = &self.clients;
        let cell = match (here, tls) {
            (false, false) => a,
            (false, true) => b,
            (true, false) => c,
            (true, true) => d,
        };
        cell.get_or_try_init(|| async move {
            // It reads files.
            let built = tokio::task::spawn_blocking(move || build(here, tls)).await;
            built.map_err(|e| e.to_string())?
        })
        .await
    }

    /// What knows the providers' formats. If there can be none, why.
    pub(super) async fn formats(&self) -> Result<&genai::Client, String> {
        let build = || async {
            // Each connection is for one request, and who listens then is gone.
            let client = without_tls(Client::builder())?
                .no_proxy()
                .redirect(redirect::Policy::none())
                .pool_max_idle_per_host(0)
                .build();
            let client = client.map_err(|e| crate::causes::chain(&e))?;
            let client = genai::Client::builder().with_reqwest(client).build();
            client.map_err(|e| e.to_string())
        };
        self.formats.get_or_try_init(build).await
    }
}

fn build(here: bool, tls: bool) -> Result<Client, String> {
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
pub(super) fn is_here(address: &Url) -> bool {
    let host = address.host_str().unwrap_or_default();
    let number = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || number.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}
