//! What went wrong, from the text that Python's HTTP client left.

use precipice_record::FailureKind;

/// What is found in the text (lower case), and what it means. The first match counts.
const SIGNS: &[(&str, FailureKind, Option<u16>)] = &[
    ("too many requests", FailureKind::TooManyRequests, Some(429)),
    ("service unavailable", FailureKind::Unavailable, Some(503)),
    ("internal server error", FailureKind::ServerError, Some(500)),
    ("bad gateway", FailureKind::ServerError, Some(502)),
    ("gateway timeout", FailureKind::ServerError, Some(504)),
    ("gateway time-out", FailureKind::ServerError, Some(504)),
    ("bad request", FailureKind::ClientError, Some(400)),
    ("unauthorized", FailureKind::ClientError, Some(401)),
    ("forbidden", FailureKind::ClientError, Some(403)),
    ("not found", FailureKind::ClientError, Some(404)),
    ("unprocessable entity", FailureKind::ClientError, Some(422)),
    ("never received a valid chunk", FailureKind::NoTokens, None),
    ("payload is not completed", FailureKind::StreamCut, None),
    ("transferencodingerror", FailureKind::StreamCut, None),
    ("clientpayloaderror", FailureKind::StreamCut, None),
    ("jsondecodeerror", FailureKind::NotJson, None),
    ("connectiontimeouterror", FailureKind::ConnectTimeout, None),
    ("connection timeout to host", FailureKind::ConnectTimeout, None),
    ("timeouterror", FailureKind::TotalTimeout, None),
    ("timed out", FailureKind::TotalTimeout, None),
    ("getaddrinfo", FailureKind::Dns, None),
    ("name or service not known", FailureKind::Dns, None),
    ("clientconnectorcertificateerror", FailureKind::Tls, None),
    ("sslerror", FailureKind::Tls, None),
    ("connection reset", FailureKind::Reset, None),
    ("connectionreseterror", FailureKind::Reset, None),
    ("broken pipe", FailureKind::Reset, None),
    ("server disconnected", FailureKind::ClosedBeforeResponse, None),
    ("connect call failed", FailureKind::Refused, None),
    ("connection refused", FailureKind::Refused, None),
    ("cannot connect to host", FailureKind::Refused, None),
];

/// The kind of a status that is no success.
pub(super) fn of_status(status: u16) -> Option<FailureKind> {
    match status {
        200..=299 => None,
        429 => Some(FailureKind::TooManyRequests),
        400..=499 => Some(FailureKind::ClientError),
        503 => Some(FailureKind::Unavailable),
        500..=599 => Some(FailureKind::ServerError),
        _ => Some(FailureKind::OddStatus),
    }
}

/// Longest message that is kept, in characters.
const SHOWN: usize = 300;

/// Kind, status where the text names one, and the line that says it.
pub(super) fn read(text: &str) -> (FailureKind, Option<u16>, String) {
    // Of a traceback the last line says what happened; the lines above are code, which may hold any word.
    let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    let lower = last.to_lowercase();
    let found = SIGNS.iter().find(|(sign, ..)| lower.contains(sign));
    let (kind, status) = found.map_or((FailureKind::Unknown, None), |(_, kind, status)| (*kind, *status));
    (kind, status, last.chars().take(SHOWN).collect())
}

#[cfg(test)]
mod tests {
    use super::read;
    use precipice_record::FailureKind;

    #[test]
    fn the_last_line_decides() {
        let traceback = "Traceback (most recent call last):\n  File \"x.py\", line 1, in post\n    raise TimeoutError()\n\
                         aiohttp.client_exceptions.ServerDisconnectedError: Server disconnected\n";
        let (kind, status, message) = read(traceback);
        assert_eq!((kind, status), (FailureKind::ClosedBeforeResponse, None));
        assert_eq!(message, "aiohttp.client_exceptions.ServerDisconnectedError: Server disconnected");
    }

    #[test]
    fn reasons_have_kinds_and_strangers_none() {
        assert_eq!(read("Too Many Requests").0, FailureKind::TooManyRequests);
        assert_eq!(read("Service Unavailable").1, Some(503));
        assert_eq!(
            read("Cannot connect to host 127.0.0.1:4290 [Connect call failed]").0,
            FailureKind::Refused
        );
        assert_eq!(read("asyncio.exceptions.TimeoutError").0, FailureKind::TotalTimeout);
        assert_eq!(read("the dog ate it").0, FailureKind::Unknown);
        assert_eq!(read("").0, FailureKind::Unknown);
    }
}
