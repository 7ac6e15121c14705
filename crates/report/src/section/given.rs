//! What a run was given on its command line or in a file, as its manifest keeps it.

use precipice_record::Manifest;
use serde_json::{Map, Value};

/// Where a setting must have come from to be one that was given; all others are defaults.
const GIVEN: [&str; 2] = ["command line", "config file"];

/// Settings by the names of their flags. Empty where the producer keeps none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given<'a>(Option<&'a Map<String, Value>>);

impl<'a> Given<'a> {
    /// Of a run.
    pub(crate) fn of(manifest: &'a Manifest) -> Self {
        Self(manifest.plan.get("settings").and_then(Value::as_object))
    }

    /// Whether the producer keeps its settings at all.
    pub(crate) fn kept(self) -> bool {
        self.0.is_some()
    }

    /// Whether this one was given.
    pub(crate) fn has(self, name: &str) -> bool {
        self.one(name).is_some()
    }

    /// Its value, the first where it was given several times.
    pub(crate) fn one(self, name: &str) -> Option<&'a str> {
        values(self.0?.get(name)?)?.first()?.as_str()
    }

    /// All that were given, by name, a value each; a switch has none.
    pub(crate) fn all(self) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
        let settings = self.0.into_iter().flatten();
        settings.flat_map(|(name, setting)| {
            let values = values(setting).into_iter().flatten().filter_map(Value::as_str);
            // A switch that a file turns off is not there.
            values.filter(|&value| value != "false").map(move |value| {
                let switch = value == "true";
                (name.as_str(), Some(value).filter(|_| !switch))
            })
        })
    }
}

/// Values of a setting that was given.
fn values(setting: &Value) -> Option<&Vec<Value>> {
    let from = setting["from"].as_str()?;
    GIVEN.contains(&from).then(|| setting["value"].as_array()).flatten()
}

#[cfg(test)]
mod tests {
    use super::Given;
    use precipice_record::Manifest;
    use serde_json::json;

    #[test]
    fn defaults_are_not_given_and_switches_have_no_value() {
        let plan = json!({"settings": {
            "header": {"value": ["A: ...", "B: ..."], "from": "command line"},
            "no-async-scheduling": {"value": ["true"], "from": "config file"},
            "no-metrics": {"value": ["false"], "from": "default"},
            "seed": {"value": ["0"], "from": "default"},
        }});
        let manifest = Manifest { plan, ..Manifest::default() };
        let given = Given::of(&manifest);
        let all: Vec<_> = given.all().collect();
        assert_eq!(
            all,
            [("header", Some("A: ...")), ("header", Some("B: ...")), ("no-async-scheduling", None)]
        );
        assert_eq!((given.one("header"), given.one("seed"), given.kept()), (Some("A: ..."), None, true));
        assert!(!Given::of(&Manifest::default()).kept());
    }
}
