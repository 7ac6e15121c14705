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

/// A parsed URL: scheme, host, port, a path without a trailing slash, and a query. Shown, its query keeps its names alone:
/// values may be keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// `https`
    pub tls: bool,
    /// Name or address, brackets of IPv6 removed.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path, empty or beginning with a slash.
    pub path: String,
    /// What stands behind `?`.
    pub query: Option<String>,
}

impl Url {
    /// Parses a URL.
    ///
    /// # Errors
    /// [`TargetError::Scheme`] and [`TargetError::Url`].
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let text = text.trim();
        let bad = |what| TargetError::Url { url: without_secrets(text), what };
        // `host:port` alone is how people write it.
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(TargetError::Scheme { url: without_secrets(text) }),
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
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned()).filter(|query| !query.is_empty())),
            None => (path, None),
        };
        let path = path.trim_end_matches('/').to_owned();
        Ok(Self { tls, host: host.to_owned(), port, path, query })
    }

    /// Path and query of a request below this URL.
    fn below(&self, path: &str) -> String {
        match &self.query {
            Some(query) => format!("{path}?{query}"),
            None => path.to_owned(),
        }
    }

    /// The server's own path, that of its API, and the endpoint where the URL ends in one.
    ///
    /// An API lives below a version (`/v1`, `/v3`, `/v1beta`); a URL that ends in an endpoint says where that is, and
    /// anything else is a base that `/v1` is added to.
    fn locate(&self) -> (String, String, Option<Endpoint>) {
        let tails = [
            ("/chat/completions", Some(Endpoint::Chat)),
            ("/completions", Some(Endpoint::Completions)),
            ("/models", None),
        ];
        let tail = tails.iter().find_map(|(tail, endpoint)| Some((self.path.strip_suffix(tail)?, *endpoint)));
        let (path, endpoint) = tail.unwrap_or((&self.path, None));
        let (parent, last) = path.rsplit_once('/').unwrap_or(("", path));
        let version =
            last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        match (version, tail) {
            (true, _) => (parent.to_owned(), path.to_owned(), endpoint),
            (false, Some(_)) => (path.to_owned(), path.to_owned(), endpoint),
            (false, None) => (path.to_owned(), format!("{path}/v1"), endpoint),
        }
    }

    /// `host:port` as in a `Host` field; the scheme's own port is left out.
    fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == if self.tls { 443 } else { 80 } { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", if self.tls { "https" } else { "http" }, self.authority(), self.path)?;
        match &self.query {
            Some(query) => write!(f, "?{}", shown_query(query)),
            None => Ok(()),
        }
    }
}

/// A query with the values left out that may be keys.
fn shown_query(query: &str) -> String {
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name @ "api-version", value)) => format!("{name}={value}"),
        Some((name, _)) => format!("{name}=***"),
        None => "***".to_owned(),
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// A URL as it was given, without name, password and the values of its query.
pub fn without_secrets(url: &str) -> String {
    let (base, query) = url.split_once('?').map_or((url, None), |(base, query)| (base, Some(query)));
    let start = base.find("://").map_or(0, |at| at + 3);
    let end = base[start..].find('/').map_or(base.len(), |at| start + at);
    let base = match base[start..end].rfind('@') {
        Some(at) => format!("{}***{}", &base[..start], &base[start + at..]),
        None => base.to_owned(),
    };
    match query {
        Some(query) => format!("{base}?{}", shown_query(query)),
        None => base,
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
    /// `--insecure`: whoever answers is taken for the server.
    pub insecure: bool,
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
    /// What is never to be stored or shown, also when the server repeats it.
    secrets: Arc<[String]>,
}

/// Shorter values are words that a message may hold anyway.
const SHORTEST_SECRET: usize = 6;

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
        let tls = if url.tls { Some(tls::Peer::new(&url.host, options)?) } else { None };
        let fields = fields(&url, options)?.into();
        let mut secrets: Vec<String> =
            options.headers.iter().map(|(_, value)| value.trim().to_owned()).collect();
        // `Bearer abc`: the scheme is no secret, what follows is.
        let bare = |value: &String| value.split_once(' ').map(|(_, rest)| rest.trim().to_owned());
        secrets.extend(options.headers.iter().filter_map(|(_, value)| bare(value)));
        secrets.extend(options.api_key.iter().map(|key| key.0.trim().to_owned()));
        let query = url.query.iter().flat_map(|query| query.split('&'));
        secrets.extend(query.filter_map(|pair| match pair.split_once('=') {
            Some(("api-version", _)) | None => None,
            Some((_, value)) => Some(value.to_owned()),
        }));
        secrets.retain(|secret| secret.len() >= SHORTEST_SECRET);
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Ok(Self { url, addresses, tls, fields, secrets: secrets.into() })
    }

    /// A text of the server, without the secrets that it may repeat.
    pub(crate) fn redact(&self, text: String) -> String {
        self.secrets.iter().fold(text, |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret.as_str(), "***") } else { text }
        })
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
    // A header that was written down is meant: it takes precedence over the key of the environment.
    let given = options.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    let bearer = options
        .api_key
        .as_ref()
        .filter(|_| !given)
        .map(|key| ("Authorization".to_owned(), format!("Bearer {}", key.0.trim())));
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
    /// The server's own base; its API is at or below it.
    pub origin: Origin,
    /// Path of the API, `/v1` as a rule.
    pub(crate) api: String,
    /// Which API is driven.
    pub endpoint: Endpoint,
}

impl Target {
    /// Parses, resolves and prepares.
    ///
    /// # Errors
    /// [`TargetError`], each naming its flag. Nothing is sent yet.
    pub fn new(options: &TargetOptions) -> Result<Self, TargetError> {
        let mut url = Url::parse(&options.url)?;
        let (base, api, endpoint) = url.locate();
        url.path = base;
        let endpoint = endpoint.unwrap_or(options.endpoint);
        Ok(Self { origin: Origin::resolve(url, options)?, api, endpoint })
    }

    /// A path of the server below its base.
    pub fn path(&self, path: &str) -> String {
        format!("{}{path}", self.origin.url.path)
    }

    /// A path of the API, such as `/models`, with the query of the URL.
    pub fn api_path(&self, path: &str) -> String {
        self.origin.url.below(&format!("{}{path}", self.api))
    }

    /// Where requests go.
    pub fn endpoint_path(&self) -> String {
        self.api_path(self.endpoint.path().trim_start_matches("/v1"))
    }

    /// The API is at the base itself, without a version.
    pub(crate) fn at_base(&self) -> Option<Self> {
        let base = &self.origin.url.path;
        (!base.is_empty() && self.api != *base).then(|| Self { api: base.clone(), ..self.clone() })
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
            assert_eq!(target(url).api_path("/completions"), "/v1/completions", "{url}");
        }
        for (url, path, endpoint) in [
            ("127.0.0.1:8000", "/v1/completions", Endpoint::Completions),
            ("http://127.0.0.1/v1/chat/completions", "/v1/chat/completions", Endpoint::Chat),
            ("http://127.0.0.1/ovms/v3", "/ovms/v3/completions", Endpoint::Completions),
            ("http://127.0.0.1/ovms/v3/chat/completions", "/ovms/v3/chat/completions", Endpoint::Chat),
            (
                "http://127.0.0.1/openai/deployments/d/chat/completions?api-version=2024-10-21",
                "/openai/deployments/d/chat/completions?api-version=2024-10-21",
                Endpoint::Chat,
            ),
            ("http://127.0.0.1/v1beta/openai/models", "/v1beta/openai/completions", Endpoint::Completions),
        ] {
            let target = target(url);
            assert_eq!((target.endpoint_path().as_str(), target.endpoint), (path, endpoint), "{url}");
        }
        assert_eq!(target("127.0.0.1/ovms/v3").path("/metrics"), "/ovms/metrics");
        assert_eq!(target("http://127.0.0.1/llm/a/v1").path("/metrics"), "/llm/a/metrics");
        assert_eq!(Url::parse("https://[::1]:8443/x").unwrap().to_string(), "https://[::1]:8443/x");
        assert_eq!(Url::parse("https://example.org").unwrap().port, 443);
    }

    #[test]
    fn a_bad_url_names_its_flag_and_its_fault() {
        let faults = [
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
        assert!(faults[0].contains("http:// or https://"));
        assert!(faults[2].contains("http://***@c") && !faults[2].contains("a:b"), "{}", faults[2]);
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
    fn what_a_server_repeats_of_a_secret_is_left_out() {
        let options = TargetOptions {
            url: "http://127.0.0.1:1/v1?key=token-in-query&api-version=1".to_owned(),
            api_key: Some(Secret::new("sk-hush-hush\n".to_owned())),
            headers: vec![("X-Auth".to_owned(), "Basic c2VjcmV0".to_owned())],
            ..TargetOptions::default()
        };
        let target = Target::new(&options).unwrap();
        let said = "no such key: sk-hush-hush, c2VjcmV0 or token-in-query".to_owned();
        assert_eq!(target.origin.redact(said), "no such key: ***, *** or ***");
        assert_eq!(target.origin.url.to_string(), "http://127.0.0.1:1?key=***&api-version=1");
        assert_eq!(target.endpoint_path(), "/v1/completions?key=token-in-query&api-version=1");
    }

    #[test]
    fn a_header_takes_precedence_over_the_key_whose_line_end_is_no_part_of_it() {
        let sent = |headers: &[(&str, &str)]| {
            let options = TargetOptions {
                url: "http://127.0.0.1:1".to_owned(),
                api_key: Some(Secret::new("from-a-file\n".to_owned())),
                headers: headers
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect(),
                ..TargetOptions::default()
            };
            let target = Target::new(&options).unwrap();
            String::from_utf8(target.origin.request("GET", "/", None)).unwrap()
        };
        assert!(sent(&[]).contains("Authorization: Bearer from-a-file\r\n"));
        let own = sent(&[("authorization", "Bearer mine")]);
        assert!(own.contains("authorization: Bearer mine\r\n") && !own.contains("from-a-file"), "{own}");
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
