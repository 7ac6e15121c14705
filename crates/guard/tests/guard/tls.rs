//! TLS on both sides, and HTTP/2 to clients.

use crate::client::{body, send, until};
use crate::server::{FIRST, Told, config, guard, server};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpStream;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guard/certs").join(name)
}

fn connector(protocol: &[u8]) -> tokio_rustls::TlsConnector {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("ca.pem")).unwrap()).unwrap();
    let mut config =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    tokio_rustls::TlsConnector::from(Arc::new(config))
}

#[tokio::test]
async fn streams_pass_over_tls_and_http_2() {
    let told = Told::new(true);
    let upstream = server(&told, None).await;
    let mut inner = config(upstream.address, 100);
    inner.tls = Some((file("cert.pem"), file("key.pem")));
    let inner = guard(inner).await;
    // A guard before a guard: its server speaks TLS.
    let mut outer = config(inner.address, 100);
    outer.urls = vec![format!("https://localhost:{}", inner.address.port())];
    outer.ca_cert = Some(file("ca.pem"));
    let outer = guard(outer).await;
    let mut socket = send(outer.address, "/v1/completions", "", body(1, 4, 2).as_bytes()).await;
    assert!(until(&mut socket, "[DONE]").await.contains(FIRST));

    let socket = TcpStream::connect(inner.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = connector(b"h2").connect(name, socket).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut client, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for seed in 0..3 {
        let request = hyper::Request::post("https://localhost/v1/completions")
            .body(Full::new(bytes::Bytes::from(body(seed, 4, 2))))
            .unwrap();
        let response = client.send_request(request).await.unwrap();
        assert_eq!((response.status().as_u16(), response.version()), (200, hyper::Version::HTTP_2));
        let text = response.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&text).contains("[DONE]"));
    }
}

#[test]
fn files_that_are_no_certificates_are_named() {
    let mut wrong = config("127.0.0.1:1".parse().unwrap(), 1);
    wrong.tls = Some((file("README.md"), file("key.pem")));
    let error = precipice_guard::Guard::bind(wrong).err().unwrap().to_string();
    assert!(error.contains("--tls-cert") && error.contains("README.md"), "{error}");
    for url in ["127.0.0.1:8000", "ftp://a", "http://"] {
        let error = precipice_guard::Guard::bind(precipice_guard::GuardConfig::new(url)).err().unwrap();
        assert!(error.to_string().contains("--url"), "{error}");
    }
}
