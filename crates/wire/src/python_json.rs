//! JSON as Python writes it: with numbers that JSON has not.

use std::borrow::Cow;

/// Python's bare `NaN`, `Infinity` and `-Infinity` as JSON. The column of an error moves by one for each `NaN`
/// before it in its line.
pub fn plain(file: &[u8]) -> Cow<'_, [u8]> {
    const WORDS: [(&[u8], &[u8]); 3] =
        [(b"-Infinity", b"\"-inf\"   "), (b"Infinity", b"\"inf\"   "), (b"NaN", b"null")];
    if [b"NaN".as_slice(), b"Infinity"].iter().all(|word| memchr::memmem::find(file, word).is_none()) {
        return file.into();
    }
    let mut json = Vec::with_capacity(file.len() + 64);
    let mut at = 0;
    while at < file.len() {
        let word = match file[at] {
            b'"' => {
                let end = end_of_string(file, at);
                json.extend_from_slice(&file[at..end]);
                at = end;
                continue;
            }
            b'N' | b'I' | b'-' => WORDS.iter().find(|(word, _)| file[at..].starts_with(word)),
            _ => None,
        };
        if let Some((word, plain)) = word {
            json.extend_from_slice(plain);
            at += word.len();
        } else {
            json.push(file[at]);
            at += 1;
        }
    }
    json.into()
}

fn end_of_string(json: &[u8], quote: usize) -> usize {
    let mut at = quote + 1;
    while let Some(found) = json.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if json[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    json.len()
}
