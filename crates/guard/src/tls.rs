//! Certificates of both sides.

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::{TlsAcceptor, TlsConnector};

fn certificates(flag: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |what: String| format!("{flag} {}: {what}", path.display());
    let read = CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
    let read = read.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(error.to_string()))?;
    if read.is_empty() { Err(wrong("no certificate in PEM form".to_owned())) } else { Ok(read) }
}

/// How servers are spoken to: with the system's roots and those of the file.
pub(crate) fn client(ca_cert: Option<&Path>) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_cert {
        for certificate in certificates("--ca-cert", path)? {
            roots.add(certificate).map_err(|error| format!("--ca-cert {}: {error}", path.display()))?;
        }
    }
    if roots.is_empty() {
        return Err("this system has no root certificates: give --ca-cert FILE.pem".to_owned());
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// How clients are spoken to.
pub(crate) fn server(certificate: &Path, key: &Path) -> Result<TlsAcceptor, String> {
    let chain = certificates("--tls-cert", certificate)?;
    let wrong = |what: String| format!("--tls-key {}: {what}", key.display());
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(error.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| wrong(error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
