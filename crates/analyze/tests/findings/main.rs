//! Findings of small runs whose every figure can be checked by hand.

mod client;
mod made;
mod server;
