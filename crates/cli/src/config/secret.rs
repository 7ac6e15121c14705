//! What may be kept and shown of a command line.

use precipice_report::shell_word;
use std::ffi::OsString;

/// The command line as typed, for the manifest and the report. No secret is in it: keys come from the environment,
/// and values of headers are left out.
pub(crate) fn command_line(args: impl IntoIterator<Item = String>) -> String {
    let words: Vec<OsString> = args.into_iter().map(OsString::from).collect();
    let words = shown(&words).into_iter().enumerate();
    words
        .map(|(place, word)| if place == 0 { "precipice".to_owned() } else { shell_word(&word) })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Words of a command line as they may be kept: without the values of headers, and without a command that may hold
/// anything.
pub(crate) fn shown<'a>(words: impl IntoIterator<Item = &'a OsString>) -> Vec<String> {
    let mut hidden: Option<&str> = None;
    words
        .into_iter()
        .map(|word| {
            let word = word.to_string_lossy();
            if let Some(flag) = hidden.take() {
                return without_value(flag, &word);
            }
            for flag in HIDDEN {
                match word.strip_prefix(flag) {
                    Some("") => hidden = Some(flag),
                    Some(rest) if rest.starts_with('=') => {
                        return format!("{flag}={}", without_value(flag, &rest[1..]));
                    }
                    _ => {}
                }
            }
            word.into_owned()
        })
        .collect()
}

/// Flags whose values may hold secrets.
pub(super) const HIDDEN: &[&str] = &["--header", "--restart-cmd", "--url", "--metrics-url"];

/// The name of a header is no secret, nor is most of a URL.
pub(super) fn without_value(flag: &str, value: &str) -> String {
    match (flag, value.split_once(':')) {
        ("--header", Some((name, _))) => format!("{name}: ..."),
        ("--url" | "--metrics-url", _) => precipice_drive::without_secrets(value),
        _ => "...".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::command_line;

    #[test]
    fn what_may_be_secret_is_left_out_of_a_kept_command_line() {
        let line =
            ["p", "run", "--header", "X-Key: a", "--header=X-Key: b", "--restart-cmd", "K=c go", "-c", "2"];
        let kept = command_line(line.map(str::to_owned));
        let url = ["p", "run", "--url", "http://me:pass@host/v1?key=abc&api-version=2"];
        assert_eq!(
            command_line(url.map(str::to_owned)),
            "precipice run --url 'http://***@host/v1?key=***&api-version=2'"
        );
        assert_eq!(kept, "precipice run --header 'X-Key: ...' '--header=X-Key: ...' --restart-cmd ... -c 2");
    }
}
