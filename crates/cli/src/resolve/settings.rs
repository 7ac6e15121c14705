//! Every setting of a run: what was given, what clap adds, and what follows from these.

use crate::config::Setting;
use precipice_flags::{FLAGS, Flag, Group, Origin, WithUrl};
use precipice_record::{LoadFacts, Manifest, ServerFacts};

/// The settings with those that no flag gave, as the load and the server have them in the end. `origin` says where such a
/// value came from.
pub(crate) fn resolved(
    settings: &[Setting],
    load: &LoadFacts,
    server: &ServerFacts,
    origin: impl Fn(&str) -> (Origin, Option<String>),
) -> Vec<Setting> {
    let end = Manifest { load: load.clone(), server: server.clone(), ..Manifest::default() };
    let given = |name: &str| settings.iter().any(|setting| setting.name == name && setting.origin.is_given());
    let mut all: Vec<Setting> = Vec::new();
    for flag in FLAGS {
        if let Some(setting) = settings.iter().find(|setting| setting.name == flag.name) {
            all.push(setting.clone());
        } else if let Some(value) = flag.known(&end, given) {
            let (origin, detail) = origin(flag.name);
            all.push(Setting {
                name: flag.name.to_owned(),
                values: vec![value.into()],
                switch: flag.switch,
                origin,
                detail,
            });
        }
    }
    all.extend(settings.iter().filter(|setting| Flag::named(&setting.name).is_none()).cloned());
    all
}

/// The settings of a run on a real server: defaults of the built-in engine are none of it.
pub(crate) fn of_real_server(settings: &[Setting], load: &LoadFacts) -> Vec<Setting> {
    let built_in = |setting: &Setting| {
        Flag::named(&setting.name).is_some_and(|flag| flag.group == Group::Engine)
            && !setting.origin.is_given()
    };
    let settings: Vec<Setting> = settings.iter().filter(|setting| !built_in(setting)).cloned().collect();
    resolved(&settings, load, &ServerFacts::default(), |_| (Origin::Default, None))
}

/// Given flags that are about the built-in engine alone and would do nothing with `--url`.
pub(crate) fn refused(settings: &[Setting]) -> Vec<&Setting> {
    let refuses = |setting: &&Setting| {
        let flag = Flag::named(&setting.name);
        setting.origin.is_given() && flag.is_some_and(|flag| flag.with_url == WithUrl::Refused)
    };
    settings.iter().filter(refuses).collect()
}
