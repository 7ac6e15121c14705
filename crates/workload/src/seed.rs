//! One seed, many independent streams of randomness.

use crate::hash;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The root of everything random in a plan.
///
/// Each purpose has a generator of its own, named in its key. Drawing more for one purpose, or leaving it out,
/// changes no number of another: two plans that differ in their rate alone have the same lengths, and two that
/// differ in their lengths alone have the same arrival times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeedTree {
    seed: u64,
    part: Part,
}

/// Warm-up requests draw from streams of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Measured = 0,
    Warmup = 1,
}

/// What a generator is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Gaps between arrivals.
    Arrivals = 1,
    /// Prompt lengths.
    InputTokens = 2,
    /// Output lengths.
    OutputTokens = 3,
    /// Which shared prefix a prompt begins with.
    Prefixes = 4,
    /// Priority classes.
    Priorities = 5,
    /// Order of the entries of a data set.
    Order = 6,
}

impl SeedTree {
    pub(crate) fn new(seed: u64, part: Part) -> Self {
        Self { seed, part }
    }

    /// The generator for `purpose`, from its start. The key holds seed, part and purpose as they are, so no two
    /// can be the same.
    pub(crate) fn generator(self, purpose: Purpose) -> ChaCha8Rng {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..16].copy_from_slice(&(purpose as u64).to_le_bytes());
        key[16..24].copy_from_slice(&(self.part as u64).to_le_bytes());
        key[24..].copy_from_slice(b"workload");
        ChaCha8Rng::from_seed(key)
    }

    /// Root of the token streams: the only place where the salt enters.
    pub(crate) fn content(self, salt: Option<&str>) -> u64 {
        let seed = hash::mix(hash::mix(hash::text("content"), self.seed), self.part as u64);
        salt.map_or(seed, |salt| hash::mix(seed, hash::text(salt)))
    }
}
