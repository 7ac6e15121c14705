//! Literals of Python: dictionaries, lists, tuples, strings, numbers, `None`, `True`, `False`.
//!
//! What is none of these (`<Mode.FULL: 3>`, `Config(a=1)`, `torch.bfloat16`) becomes a string of its own text.

use serde_json::{Map, Number, Value};

/// Nesting beyond this is not read.
const MAX_DEPTH: usize = 64;

/// Reads one literal that is the whole of `text`.
pub fn literal(text: &str) -> Option<Value> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.blank();
    (reader.at == text.len()).then_some(value)
}

/// Reads `name=literal, name=literal, ...` as far as it can be read.
pub fn assignments(text: &str) -> Map<String, Value> {
    let mut reader = Reader { text, at: 0 };
    let mut fields = Map::new();
    loop {
        reader.blank();
        let name = reader.until(|c| !(c.is_alphanumeric() || c == '_')).to_owned();
        if name.is_empty() || !reader.take('=') {
            return fields;
        }
        let Some(value) = reader.value(0) else { return fields };
        fields.insert(name, value);
        reader.blank();
        if !reader.take(',') {
            return fields;
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn blank(&mut self) {
        self.until(|c| !c.is_whitespace());
    }

    fn take(&mut self, expected: char) -> bool {
        let found = self.rest().starts_with(expected);
        if found {
            self.at += expected.len_utf8();
        }
        found
    }

    fn until(&mut self, stop: impl FnMut(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(stop).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.blank();
        match self.rest().chars().next()? {
            '{' => self.dictionary(depth),
            '[' => self.list(']', depth),
            '(' => self.list(')', depth),
            '\'' | '"' => self.string().map(Value::String),
            _ => self.word(),
        }
    }

    fn dictionary(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut fields = Map::new();
        loop {
            self.blank();
            if self.take('}') {
                return Some(Value::Object(fields));
            }
            let key = match self.value(depth + 1)? {
                Value::String(key) => key,
                other => other.to_string(),
            };
            self.blank();
            if !self.take(':') {
                return None;
            }
            let value = self.value(depth + 1)?;
            fields.insert(key, value);
            self.blank();
            if !self.take(',') && !self.rest().starts_with('}') {
                return None;
            }
        }
    }

    fn list(&mut self, close: char, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut values = Vec::new();
        loop {
            self.blank();
            if self.take(close) {
                return Some(Value::Array(values));
            }
            values.push(self.value(depth + 1)?);
            self.blank();
            if !self.take(',') && !self.rest().starts_with(close) {
                return None;
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        let quote = self.rest().chars().next()?;
        self.at += 1;
        let mut plain = String::new();
        loop {
            plain.push_str(self.until(|c| c == quote || c == '\\'));
            if self.take(quote) {
                return Some(plain);
            }
            if !self.take('\\') {
                return None;
            }
            let escaped = self.rest().chars().next()?;
            self.at += escaped.len_utf8();
            match escaped {
                'n' => plain.push('\n'),
                't' => plain.push('\t'),
                'r' => plain.push('\r'),
                '\\' | '\'' | '"' => plain.push(escaped),
                other => plain.extend(['\\', other]),
            }
        }
    }

    /// A number, a constant, or anything else up to the comma that ends it, brackets balanced.
    fn word(&mut self) -> Option<Value> {
        let start = self.at;
        let mut open = 0_usize;
        while let Some(c) = self.rest().chars().next() {
            match c {
                '\'' | '"' => {
                    self.string()?;
                    continue;
                }
                '(' | '[' | '{' | '<' => open += 1,
                ')' | ']' | '}' | '>' if open > 0 => open -= 1,
                ')' | ']' | '}' | ',' | ':' if open == 0 => break,
                _ => {}
            }
            self.at += c.len_utf8();
        }
        let word = self.text[start..self.at].trim();
        Some(match word {
            "" => return None,
            "None" => Value::Null,
            "True" => Value::Bool(true),
            "False" => Value::Bool(false),
            _ => number(word).map_or_else(|| Value::from(word), Value::Number),
        })
    }
}

fn number(word: &str) -> Option<Number> {
    if let Ok(whole) = word.parse::<i64>() {
        return Some(whole.into());
    }
    let digits = word.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
    word.parse().ok().filter(|_| digits).and_then(Number::from_f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn what_vllm_prints() {
        assert_eq!(
            literal(
                "{'model': 'a\\'b', 'n': 8192, 'x': 0.92, 'on': True, 'off': None, 'l': ['q', (1, 2)], 'e': {}}"
            ),
            Some(
                json!({"model": "a'b", "n": 8192, "x": 0.92, "on": true, "off": null, "l": ["q", [1, 2]], "e": {}})
            )
        );
        assert_eq!(
            assignments(
                "model='m', dtype=torch.bfloat16, c=Config(a=[1, 2], b='x, y'), d={'mode': <Mode.FULL: (2, 1)>}, s=0"
            ),
            *json!({"model": "m", "dtype": "torch.bfloat16", "c": "Config(a=[1, 2], b='x, y')",
                    "d": {"mode": "<Mode.FULL: (2, 1)>"}, "s": 0})
            .as_object()
            .unwrap()
        );
    }

    #[test]
    fn what_is_cut_or_odd_is_not_read() {
        for text in ["", "{'a': ", "{'a'", "['a'", "'a", "{'a': 1} x", "[1 2", "'\\"] {
            assert_eq!(literal(text), None, "{text}");
        }
        assert_eq!(literal(&"[".repeat(100_000)), None);
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "([\\[\\]{}()<>,:='\"\\\\ ]|a|é|1|None){0,32}") {
            let _value = literal(&text);
            let _fields = assignments(&text);
        }
    }
}
