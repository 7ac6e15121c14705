//! `--print-config`.

use super::Setting;
use std::fmt::Write as _;

/// `name = value` lines with the origin of each as a comment: itself a valid `--config` file.
pub(crate) fn print(settings: &[Setting]) -> String {
    let mut text = String::new();
    for setting in settings {
        let value = match setting.shown().as_slice() {
            [one] => literal(one),
            many => format!("[{}]", many.iter().map(|v| literal(v)).collect::<Vec<_>>().join(", ")),
        };
        let line = format!("{} = {value}", setting.name);
        let detail = setting.detail.as_ref().map_or_else(String::new, |detail| format!(": {detail}"));
        writeln!(text, "{line:<48} # {}{detail}", setting.origin).expect("writing to a String cannot fail");
    }
    text
}

fn literal(value: &str) -> String {
    if value == "true" || value == "false" || value.parse::<i64>().is_ok() {
        value.to_owned()
    } else {
        toml::Value::from(value).to_string()
    }
}
