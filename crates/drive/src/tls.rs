//! TLS: the system's root certificates and those of `--ca-cert` beside them; unverified with `--insecure` alone.

use crate::target::{TargetError, TargetOptions};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// How to speak TLS to one host.
#[derive(Clone)]
pub(crate) struct Peer {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Peer {
    pub(crate) fn new(host: &str, options: &TargetOptions) -> Result<Self, TargetError> {
        let mut roots = RootCertStore::empty();
        let native = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(native.certs);
        let mut pinned = Vec::new();
        if let Some(path) = options.ca_cert.as_deref() {
            let bad =
                |what: &dyn std::fmt::Display| TargetError::CaCert(format!("{}: {what}", path.display()));
            for certificate in CertificateDer::pem_file_iter(path).map_err(|error| bad(&error))? {
                let certificate = certificate.map_err(|error| bad(&error))?;
                // One that can be no authority may still be the server's own.
                roots.add(certificate.clone()).ok();
                pinned.push(certificate);
            }
            if pinned.is_empty() {
                return Err(bad(&"no certificate in PEM form"));
            }
        }
        if roots.is_empty() && pinned.is_empty() && !options.insecure {
            let why = native.errors.first().map_or_else(|| "none found".to_owned(), ToString::to_string);
            return Err(TargetError::NoRoots(why));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let authorities = if roots.is_empty() {
            None
        } else {
            let built =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
            Some(built.map_err(|error| TargetError::CaCert(error.to_string()))?)
        };
        let verifier =
            Verifier { authorities, pinned, insecure: options.insecure, provider: Arc::clone(&provider) };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| TargetError::CaCert(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
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

/// Whom to take for the server: whoever an authority vouches for under its name; whoever shows the very certificate
/// that was given (openssl's self-signed certificates are authorities and often carry no name that counts, so no
/// verifier takes them for a server's); with `--insecure` anybody. That the server holds the key of its certificate is
/// checked in any case.
#[derive(Debug)]
struct Verifier {
    authorities: Option<Arc<WebPkiServerVerifier>>,
    pinned: Vec<CertificateDer<'static>>,
    insecure: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.insecure || self.pinned.iter().any(|pinned| pinned == end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        match &self.authorities {
            Some(known) => {
                known.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            }
            None => Err(rustls::CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
