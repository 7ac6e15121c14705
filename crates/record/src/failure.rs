//! Every way an attempt can end badly, each with its own name, so that a result can say which.

crate::codes! {
/// Why an attempt failed. The names are stable: they are in `requests.parquet` and in the findings.
pub enum FailureKind {
    /// The host name did not resolve.
    Dns = "dns",
    /// Nobody listens there.
    Refused = "refused",
    /// No connection within the connect time-out.
    ConnectTimeout = "connect_timeout",
    /// The TLS handshake failed (certificate, protocol).
    Tls = "tls",
    /// The connection was reset.
    Reset = "reset",
    /// The server closed the connection before any byte of the response.
    ClosedBeforeResponse = "closed_before_response",
    /// No first token within its time-out.
    FirstTokenTimeout = "first_token_timeout",
    /// A gap between tokens outlasted its time-out.
    BetweenTokensTimeout = "between_tokens_timeout",
    /// The whole request outlasted its time-out.
    TotalTimeout = "total_timeout",
    /// 429.
    TooManyRequests = "too_many_requests",
    /// Another 4xx.
    ClientError = "client_error",
    /// 503.
    Unavailable = "unavailable",
    /// Another 5xx.
    ServerError = "server_error",
    /// A status outside 2xx, 4xx, 5xx.
    OddStatus = "odd_status",
    /// An error event inside a stream that began with 200.
    StreamError = "stream_error",
    /// The stream ended in the middle of the transfer.
    StreamCut = "stream_cut",
    /// The stream ended cleanly, but with neither `[DONE]` nor a finish reason.
    StreamIncomplete = "stream_incomplete",
    /// The stream ended well but carried no token.
    NoTokens = "no_tokens",
    /// Something other than JSON where JSON was expected (an HTML page, say).
    NotJson = "not_json",
    /// A violation of HTTP.
    Protocol = "protocol",
    /// The client could not open a socket: its file descriptors or local ports were used up.
    Local = "local",
    /// The run was stopped (Ctrl-C, end of `--duration`) before it ended.
    Cancelled = "cancelled",
    /// Imported from a tool that says only that it failed.
    Unknown = "unknown",
}
}

impl FailureKind {
    /// The server said that it has too much to do: 429 or 503.
    pub fn turned_away(self) -> bool {
        matches!(self, Self::TooManyRequests | Self::Unavailable)
    }
}
