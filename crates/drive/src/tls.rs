//! TLS: the system's root certificates, those of `--ca-cert` beside them, and verification always on.

use crate::target::TargetError;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::path::Path;
use std::sync::Arc;

/// How to speak TLS to one host.
#[derive(Clone)]
pub(crate) struct Peer {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Peer {
    pub(crate) fn new(host: &str, ca_cert: Option<&Path>) -> Result<Self, TargetError> {
        let mut roots = RootCertStore::empty();
        let native = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(native.certs);
        if let Some(path) = ca_cert {
            let bad =
                |what: &dyn std::fmt::Display| TargetError::CaCert(format!("{}: {what}", path.display()));
            let before = roots.len();
            for certificate in CertificateDer::pem_file_iter(path).map_err(|error| bad(&error))? {
                let certificate = certificate.map_err(|error| bad(&error))?;
                roots.add(certificate).map_err(|error| bad(&error))?;
            }
            if roots.len() == before {
                return Err(bad(&"no certificate in PEM form"));
            }
        }
        if roots.is_empty() {
            let why = native.errors.first().map_or_else(|| "none found".to_owned(), ToString::to_string);
            return Err(TargetError::NoRoots(why));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| TargetError::CaCert(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = ServerName::try_from(host.to_owned()).map_err(|_| TargetError::Url {
            url: host.to_owned(),
            what: "the host is no name that TLS can verify",
        })?;
        Ok(Self { config: Arc::new(config), name })
    }

    pub(crate) fn session(&self) -> Result<ClientConnection, rustls::Error> {
        ClientConnection::new(Arc::clone(&self.config), self.name.clone())
    }
}
