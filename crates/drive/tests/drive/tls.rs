//! TLS: verified, with an authority or a certificate of one's own where given, unless --insecure.

use crate::server::{Test, good};
use precipice_drive::{TargetOptions, Wants, preflight};
use precipice_record::FailureKind;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
}

/// Answers two requests a connection over TLS, as localhost.
fn serve() -> SocketAddr {
    serve_as("server")
}

fn serve_as(name: &str) -> SocketAddr {
    let chain = vec![CertificateDer::from_pem_file(data(&format!("{name}.pem"))).unwrap()];
    let key = PrivateKeyDer::from_pem_file(data(&format!("{name}.key"))).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for tcp in listener.incoming() {
            let session = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = rustls::StreamOwned::new(session, tcp.unwrap());
            thread::spawn(move || {
                let mut asked = Vec::new();
                let mut buffer = [0; 4096];
                // Ends when the client goes, or never trusted us.
                while let Ok(length) = stream.read(&mut buffer) {
                    asked.extend_from_slice(&buffer[..length]);
                    if length == 0 {
                        break;
                    }
                    if asked.ends_with(b"}") {
                        asked.clear();
                        stream.write_all(good(5).as_bytes()).ok();
                    }
                }
            });
        }
    });
    address
}

fn options(ca: Option<&str>, host: &str, port: u16) -> TargetOptions {
    TargetOptions { url: format!("https://{host}:{port}"), ca_cert: ca.map(data), ..TargetOptions::default() }
}

#[test]
fn a_stream_over_tls_is_a_stream() {
    let address = serve();
    let (run, _) = Test::closed(2, 6).run_to(&options(Some("ca.pem"), "127.0.0.1", address.port()));
    assert!(run.requests.iter().all(precipice_record::RequestRow::completed), "{:?}", run.requests);
    assert_eq!((run.requests.len(), run.chunks.len()), (6, 30));
    assert!(run.requests.iter().any(|row| row.reused));
}

#[test]
fn an_authority_that_is_not_ours_is_not_trusted() {
    let address = serve();
    // A certificate that is neither the server's nor its issuer's.
    let options = options(Some("self-signed.pem"), "127.0.0.1", address.port());
    let (run, _) = Test::closed(1, 1).run_to(&options);
    assert_eq!(run.requests[0].failure, Some(FailureKind::Tls), "{:?}", run.requests);
    let target = precipice_drive::Target::new(&options).unwrap();
    let said = preflight(&target, &Wants::default()).unwrap_err().to_string();
    assert!(said.contains("--ca-cert"), "{said}");
}

/// What `openssl req -x509` makes: an authority by default, without a name that counts.
#[test]
fn a_self_signed_certificate_that_was_given_is_the_servers() {
    let address = serve_as("self-signed");
    let (run, _) = Test::closed(1, 2).run_to(&options(Some("self-signed.pem"), "127.0.0.1", address.port()));
    assert!(run.requests.iter().all(precipice_record::RequestRow::completed), "{:?}", run.requests);
}

#[test]
fn anybody_is_taken_for_the_server_only_where_that_was_said() {
    let address = serve_as("self-signed");
    let verified = options(None, "127.0.0.1", address.port());
    let insecure = TargetOptions { insecure: true, ..verified };
    let (run, _) = Test::closed(1, 2).run_to(&insecure);
    assert!(run.requests.iter().all(precipice_record::RequestRow::completed), "{:?}", run.requests);
    let other = options(Some("ca.pem"), "127.0.0.1", address.port());
    let (run, _) = Test::closed(1, 1).run_to(&other);
    assert_eq!(run.requests[0].failure, Some(FailureKind::Tls), "{:?}", run.requests);
}
