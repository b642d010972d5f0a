//! The TLS configuration of a server.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};

/// A server certificate with its chain and private key.
pub struct TlsIdentity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity").finish_non_exhaustive()
    }
}

/// The error for an unusable certificate or key.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(String);

impl TlsIdentity {
    /// Reads a certificate chain and a private key in PEM format.
    ///
    /// # Errors
    /// There is no certificate or no key, or one of them is malformed.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(certificates)
            .collect::<Result<_, _>>()
            .map_err(|error| TlsError(format!("cannot read the certificate: {error}")))?;
        if chain.is_empty() {
            return Err(TlsError("no certificate found; expected PEM".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| TlsError(format!("cannot read the private key: {error}")))?;
        Ok(Self { chain, key })
    }

    /// Creates a self-signed certificate for the given host names. Clients can trust it by its
    /// [`fingerprint`](Self::fingerprint). Returns the identity, along with the certificate and key in PEM format for
    /// storage.
    ///
    /// # Errors
    /// A name is invalid.
    #[cfg(feature = "self-signed")]
    pub fn self_signed(names: &[String]) -> Result<(Self, String, String), TlsError> {
        let failed =
            |error: rcgen::Error| TlsError(format!("cannot create a certificate: {error}"));
        let made = rcgen::generate_simple_self_signed(names.to_vec()).map_err(failed)?;
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let identity = Self::from_pem(certificate.as_bytes(), key.as_bytes())?;
        Ok((identity, certificate, key))
    }

    /// Returns the SHA-256 fingerprint of the certificate, for [`Trust::Pinned`](crate::client::Trust::Pinned).
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 32] {
        let first = self.chain.first().map(AsRef::as_ref);
        Sha256::digest(first.unwrap_or_default()).into()
    }

    /// Returns the fingerprint as text: `sha256:` and 64 hexadecimal digits.
    #[must_use]
    pub fn fingerprint_text(&self) -> String {
        let digits: String = self
            .fingerprint()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("sha256:{digits}")
    }

    /// Converts the identity to a configuration for [`ServeOptions::tls`](super::ServeOptions::tls). It supports TLS
    /// 1.2 and 1.3, and negotiates HTTP/2 or HTTP/1.1 by ALPN.
    ///
    /// # Errors
    /// The key does not belong to the certificate.
    pub fn server_config(self) -> Result<Arc<rustls::ServerConfig>, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder
                    .with_no_client_auth()
                    .with_single_cert(self.chain, self.key)
            })
            .map_err(|error| TlsError(format!("cannot use the certificate: {error}")))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl From<TlsError> for io::Error {
    fn from(error: TlsError) -> Self {
        Self::new(io::ErrorKind::InvalidInput, error)
    }
}
