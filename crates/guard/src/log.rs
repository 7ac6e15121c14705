//! One JSON object a line.

use crate::config::LogSink;
use serde_json::{Map, Value};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Clone)]
pub(crate) struct Log {
    pub(crate) sink: Option<LogSink>,
    pub(crate) all: bool,
}

impl Log {
    /// Writes an object with the time and the event's name in front.
    pub(crate) fn line(&self, event: &str, fields: Value) {
        let Some(sink) = &self.sink else { return };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        let mut line = Map::new();
        line.insert("time".to_owned(), Value::from((now * 1000.0).round() / 1000.0));
        line.insert("event".to_owned(), Value::from(event));
        if let Value::Object(fields) = fields {
            line.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
        }
        sink(&Value::Object(line).to_string());
    }
}
