//! How many fit, where the cliff is, what to set.
