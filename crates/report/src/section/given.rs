//! What a run was given on its command line or in a file, as its manifest keeps it.

use precipice_flags::Origin;
use precipice_record::Manifest;
use serde_json::{Map, Value};

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

    /// Its values, in the order in which they were given; a switch has `true` or, where a file turns it off, `false`.
    pub(crate) fn values(self, name: &str) -> Vec<&'a str> {
        let given = self.0.and_then(|settings| values(settings.get(name)?));
        given.into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// Values of a setting that was given.
fn values(setting: &Value) -> Option<&Vec<Value>> {
    let from = Origin::named(setting["from"].as_str()?)?;
    from.is_given().then(|| setting["value"].as_array()).flatten()
}

#[cfg(test)]
mod tests {
    use super::Given;
    use precipice_record::Manifest;
    use serde_json::json;

    #[test]
    fn defaults_are_not_given() {
        let plan = json!({"settings": {
            "header": {"value": ["A: ...", "B: ..."], "from": "command line"},
            "no-async-scheduling": {"value": ["true"], "from": "config file"},
            "no-metrics": {"value": ["false"], "from": "default"},
            "seed": {"value": ["0"], "from": "default"},
        }});
        let manifest = Manifest { plan, ..Manifest::default() };
        let given = Given::of(&manifest);
        assert_eq!(given.values("header"), ["A: ...", "B: ..."]);
        assert_eq!(given.values("no-async-scheduling"), ["true"]);
        assert!(given.values("no-metrics").is_empty());
        assert_eq!((given.one("header"), given.one("seed"), given.kept()), (Some("A: ..."), None, true));
        assert!(!Given::of(&Manifest::default()).kept());
    }
}
