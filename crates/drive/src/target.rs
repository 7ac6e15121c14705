//! The server under test: where it is, how to reach it, and what to say to it in every request.

use crate::tls;
use precipice_wire::openai::Endpoint;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// Why a target cannot be used. Each text names the flag that mends it.
#[derive(Debug, Error)]
pub enum TargetError {
    /// No scheme, or one that is not HTTP.
    #[error("--url {url}: the scheme must be http:// or https://")]
    Scheme {
        /// As given.
        url: String,
    },
    /// Host or port is missing or malformed.
    #[error("--url {url}: {what}")]
    Url {
        /// As given.
        url: String,
        /// What is wrong.
        what: &'static str,
    },
    /// The name does not resolve.
    #[error("--url: the host name {host} does not resolve ({source})")]
    Dns {
        /// The name.
        host: String,
        /// The resolver's words.
        source: std::io::Error,
    },
    /// A header cannot be sent.
    #[error("--header {name}: a name is letters, digits and dashes, and a value is one line of text")]
    Header {
        /// Its name (values may be secrets).
        name: String,
    },
    /// The certificates cannot be used.
    #[error("--ca-cert: {0}")]
    CaCert(String),
    /// The system has no certificates.
    #[error("no root certificates on this system ({0}): give one with --ca-cert FILE")]
    NoRoots(String),
}

/// Something that is never printed, stored or logged.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Wraps it.
    pub fn new(value: String) -> Self {
        Self(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// A parsed URL: scheme, host, port, and a path without a trailing slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// `https`
    pub tls: bool,
    /// Name or address, brackets of IPv6 removed.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path, empty or beginning with a slash, query included.
    pub path: String,
}

impl Url {
    /// Parses a URL.
    ///
    /// # Errors
    /// [`TargetError::Scheme`] and [`TargetError::Url`].
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let bad = |what| TargetError::Url { url: text.to_owned(), what };
        let (scheme, rest) =
            text.split_once("://").ok_or_else(|| TargetError::Scheme { url: text.to_owned() })?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(TargetError::Scheme { url: text.to_owned() }),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(bad("a name and password do not belong in the URL; use an API key or --header"));
        }
        let (host, port) = if let Some(bracketed) = authority.strip_prefix('[') {
            let (host, port) =
                bracketed.split_once(']').ok_or_else(|| bad("the ] of an IPv6 address is missing"))?;
            (host, port.strip_prefix(':'))
        } else {
            match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            }
        };
        if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(bad("the host is missing or malformed"));
        }
        let port = match port {
            None => {
                if tls {
                    443
                } else {
                    80
                }
            }
            Some(port) => port
                .parse::<u16>()
                .ok()
                .filter(|port| *port > 0)
                .ok_or_else(|| bad("the port must be a number from 1 to 65535"))?,
        };
        let path = path.split('#').next().unwrap_or_default();
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(bad("the path holds a character that must be percent-encoded"));
        }
        Ok(Self { tls, host: host.to_owned(), port, path: path.trim_end_matches('/').to_owned() })
    }

    /// The base of an OpenAI-compatible API: `/v1` and what follows it is cut off.
    fn base(mut self) -> Self {
        for tail in ["/v1", "/v1/completions", "/v1/chat/completions", "/v1/models"] {
            if let Some(prefix) = self.path.strip_suffix(tail) {
                self.path.truncate(prefix.len());
                break;
            }
        }
        self
    }

    /// `host:port` as in a `Host` field; the scheme's own port is left out.
    fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == if self.tls { 443 } else { 80 } { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", if self.tls { "https" } else { "http" }, self.authority(), self.path)
    }
}

/// What a [`Target`] is made from.
#[derive(Debug, Clone, Default)]
pub struct TargetOptions {
    /// `--url`
    pub url: String,
    /// `--endpoint`
    pub endpoint: Endpoint,
    /// `--header`, name and value.
    pub headers: Vec<(String, String)>,
    /// Read by the caller from an environment variable; sent as a bearer token.
    pub api_key: Option<Secret>,
    /// `--ca-cert`: PEM certificates that are trusted beside the system's.
    pub ca_cert: Option<PathBuf>,
}

/// One host that answers HTTP, resolved, with everything that a request to it begins with.
#[derive(Clone)]
pub struct Origin {
    /// Where.
    pub url: Url,
    /// Its addresses, in the resolver's order.
    pub addresses: Vec<SocketAddr>,
    /// How to speak TLS to it.
    pub(crate) tls: Option<tls::Peer>,
    /// The fixed header fields, secrets included: never printed.
    fields: Arc<str>,
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origin")
            .field("url", &self.url)
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

impl Origin {
    /// Resolves a URL.
    ///
    /// # Errors
    /// [`TargetError`], each naming its flag.
    pub fn resolve(url: Url, options: &TargetOptions) -> Result<Self, TargetError> {
        let dns = |source| TargetError::Dns { host: url.host.clone(), source };
        let addresses: Vec<_> = (url.host.as_str(), url.port).to_socket_addrs().map_err(dns)?.collect();
        if addresses.is_empty() {
            return Err(dns(std::io::Error::other("no address")));
        }
        let tls = if url.tls { Some(tls::Peer::new(&url.host, options.ca_cert.as_deref())?) } else { None };
        let fields = fields(&url, options)?.into();
        Ok(Self { url, addresses, tls, fields })
    }

    /// Prefers the address at `index`: the one that a connection was made to.
    pub(crate) fn prefer(&mut self, address: SocketAddr) {
        if let Some(index) = self.addresses.iter().position(|known| *known == address) {
            self.addresses.swap(0, index);
        }
    }

    /// A whole request: head and body.
    pub fn request(&self, method: &str, path: &str, body: Option<&[u8]>) -> Vec<u8> {
        let fields = &self.fields;
        let length = body.map_or(0, <[u8]>::len);
        let mut bytes = Vec::with_capacity(path.len() + fields.len() + length + 128);
        bytes.extend_from_slice(format!("{method} {path} HTTP/1.1\r\n{fields}").as_bytes());
        if body.is_some() {
            bytes.extend_from_slice(
                format!("Content-Type: application/json\r\nContent-Length: {length}\r\n").as_bytes(),
            );
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body.unwrap_or_default());
        bytes
    }
}

fn fields(url: &Url, options: &TargetOptions) -> Result<String, TargetError> {
    let mut fields = format!(
        "Host: {}\r\nUser-Agent: precipice/{}\r\nAccept: */*\r\nAccept-Encoding: identity\r\n",
        url.authority(),
        env!("CARGO_PKG_VERSION")
    );
    let bearer =
        options.api_key.as_ref().map(|key| ("Authorization".to_owned(), format!("Bearer {}", key.0)));
    for (name, value) in options.headers.iter().chain(&bearer) {
        let named =
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        let one_line = value.bytes().all(|b| b >= b' ' && b != 0x7f || b == b'\t');
        if !named || !one_line {
            return Err(TargetError::Header { name: name.clone() });
        }
        fields.push_str(name);
        fields.push_str(": ");
        fields.push_str(value.trim());
        fields.push_str("\r\n");
    }
    Ok(fields)
}

/// The server under test.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its base, without `/v1`.
    pub origin: Origin,
    /// Which API is driven.
    pub endpoint: Endpoint,
}

impl Target {
    /// Parses, resolves and prepares.
    ///
    /// # Errors
    /// [`TargetError`], each naming its flag. Nothing is sent yet.
    pub fn new(options: &TargetOptions) -> Result<Self, TargetError> {
        let url = Url::parse(&options.url)?.base();
        Ok(Self { origin: Origin::resolve(url, options)?, endpoint: options.endpoint })
    }

    /// A path of the server below its base.
    pub fn path(&self, path: &str) -> String {
        format!("{}{path}", self.origin.url.path)
    }
}

#[cfg(test)]
mod tests {
    use super::{Secret, Target, TargetOptions, Url};
    use precipice_wire::openai::Endpoint;

    fn target(url: &str) -> Target {
        Target::new(&TargetOptions { url: url.to_owned(), ..TargetOptions::default() }).unwrap()
    }

    #[test]
    fn a_base_is_found_in_every_usual_spelling() {
        for url in [
            "http://127.0.0.1:8000",
            "http://127.0.0.1:8000/",
            "http://127.0.0.1:8000/v1/",
            "http://127.0.0.1:8000/v1/chat/completions",
        ] {
            assert_eq!(target(url).path(Endpoint::Completions.path()), "/v1/completions", "{url}");
        }
        assert_eq!(target("http://127.0.0.1/llm/a/v1").path("/metrics"), "/llm/a/metrics");
        assert_eq!(Url::parse("https://[::1]:8443/x").unwrap().to_string(), "https://[::1]:8443/x");
        assert_eq!(Url::parse("https://example.org").unwrap().port, 443);
    }

    #[test]
    fn a_bad_url_names_its_flag_and_its_fault() {
        let faults = [
            "127.0.0.1:8000",
            "ftp://x",
            "http://",
            "http://a:b@c",
            "http://x:0",
            "http://x:99999",
            "http://[::1",
            "http://x/a b",
        ]
        .map(|url| Url::parse(url).unwrap_err().to_string());
        assert!(faults.iter().all(|fault| fault.starts_with("--url ")), "{faults:?}");
        assert!(faults[1].contains("http:// or https://"));
    }

    #[test]
    fn a_secret_is_sent_and_never_shown() {
        let options = TargetOptions {
            url: "http://127.0.0.1:1".to_owned(),
            api_key: Some(Secret::new("hush".to_owned())),
            headers: vec![("X-Team".to_owned(), "hush".to_owned())],
            ..TargetOptions::default()
        };
        let target = Target::new(&options).unwrap();
        let request = String::from_utf8(target.origin.request("GET", "/", None)).unwrap();
        assert!(request.contains("Authorization: Bearer hush\r\n"));
        assert!(!format!("{:?} {:?}", options.api_key, target).contains("hush"));
    }

    #[test]
    fn a_header_cannot_smuggle_another() {
        let options = TargetOptions {
            url: "http://127.0.0.1:1".to_owned(),
            headers: vec![("X-A".to_owned(), "b\r\nX-C: d".to_owned())],
            ..TargetOptions::default()
        };
        assert!(Target::new(&options).unwrap_err().to_string().contains("--header X-A"));
    }
}
