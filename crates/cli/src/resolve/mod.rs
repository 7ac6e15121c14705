//! Flags to validated plans. After this no code sees a flag.

pub(crate) mod engine;
pub(crate) mod load;
pub(crate) mod model;
pub(crate) mod profile;
pub(crate) mod subject;
pub(crate) mod sweep;
pub(crate) mod target;
