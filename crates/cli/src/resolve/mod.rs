//! Flags to validated plans. After this no code sees a flag.

pub(crate) mod claims;
pub(crate) mod engine;
pub(crate) mod gpu;
pub(crate) mod guard;
pub(crate) mod load;
pub(crate) mod model;
pub(crate) mod preset;
pub(crate) mod profile;
pub(crate) mod settings;
pub(crate) mod subject;
pub(crate) mod suggest;
pub(crate) mod sweep;
pub(crate) mod target;
