//! The releases of vLLM whose decisions are known, and what each of them changed.
//!
//! A rule that a release brought is one method here, named after what it does, and is asked in one place of the
//! scheduler. Each was read in the releases' sources and is held by traces of both sides (`docs/engine.md`).

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A release of vLLM, without its patch number: no patch release of these changed a decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VllmVersion {
    /// 0.27.1, and what came before it as far as it was compared: the iterations of a 0.26.0 server are the same.
    V0_27,
    /// 0.28.0.
    V0_28,
    /// 0.29.0.
    V0_29,
    /// 0.30.0.
    V0_30,
    /// 0.31.0.
    V0_31,
    /// 0.32.0.
    V0_32,
    /// 0.33.0.
    #[default]
    V0_33,
}

/// A version that no trace was made with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a release of vLLM that this engine knows: it knows {known}", known = VllmVersion::names())]
pub struct UnknownVersion(String);

/// The rules for a server that says what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nearest {
    /// The release whose rules are nearest.
    pub version: VllmVersion,
    /// The server's own release is one of those that were traced; otherwise nothing is exact.
    pub traced: bool,
}

impl VllmVersion {
    /// All of them, oldest first.
    pub const ALL: [Self; 7] =
        [Self::V0_27, Self::V0_28, Self::V0_29, Self::V0_30, Self::V0_31, Self::V0_32, Self::V0_33];

    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::V0_27 => "0.27",
            Self::V0_28 => "0.28",
            Self::V0_29 => "0.29",
            Self::V0_30 => "0.30",
            Self::V0_31 => "0.31",
            Self::V0_32 => "0.32",
            Self::V0_33 => "0.33",
        }
    }

    /// The release that the traces were made with.
    pub fn release(self) -> &'static str {
        match self {
            Self::V0_27 => "0.27.1",
            Self::V0_28 => "0.28.0",
            Self::V0_29 => "0.29.0",
            Self::V0_30 => "0.30.0",
            Self::V0_31 => "0.31.0",
            Self::V0_32 => "0.32.0",
            Self::V0_33 => "0.33.0",
        }
    }

    fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// The rules for what a server says in `/version`: `0.33.0`, `0.33.1.dev5+g0123`, `v0.26.0`. A release before
    /// the first gets the first's, one after the last the last's. Absent: the text is no version.
    pub fn nearest(text: &str) -> Option<Nearest> {
        let minor = minor(text)?;
        let exact = Self::ALL.into_iter().find(|version| self::minor(version.name()) == Some(minor));
        Some(match exact {
            Some(version) => Nearest { version, traced: true },
            None if minor < (0, 27) => Nearest { version: Self::V0_27, traced: false },
            None => Nearest { version: Self::default(), traced: false },
        })
    }
}

/// What the releases changed.
impl VllmVersion {
    /// 0.28: when a victim stood before the request that is being served, the cursor moves back by one, whether or
    /// not the victim had tokens in this step. Before, a victim without tokens made the next request lose its turn.
    pub(crate) fn cursor_follows_every_victim(self) -> bool {
        self >= Self::V0_28
    }

    /// 0.28: without a prefix cache, freed blocks are the next to be taken. Before, they were the last.
    pub(crate) fn reuses_uncached_blocks_first(self) -> bool {
        self >= Self::V0_28
    }

    /// 0.28: GPUs with 160 GiB and more get steps of 16,384 tokens by default.
    pub(crate) fn steps_longer_on_the_largest(self) -> bool {
        self >= Self::V0_28
    }

    /// 0.29: the start-up check counts the null block, so a pool of exactly one window is refused.
    pub(crate) fn start_counts_the_null_block(self) -> bool {
        self >= Self::V0_29
    }

    /// 0.30: `/metrics` has `vllm:request_num_preemptions`.
    pub(crate) fn counts_preemptions_by_request(self) -> bool {
        self >= Self::V0_30
    }

    /// 0.31: `long_prefill_token_threshold` does not bind a request that is alone in the engine.
    pub(crate) fn spares_a_lone_prefill(self) -> bool {
        self >= Self::V0_31
    }

    /// 0.32: `/metrics` has `vllm:admission_rejections_total` and `vllm:prompt_tokens_cached_by_source_total`.
    pub(crate) fn counts_rejections_and_cache_tiers(self) -> bool {
        self >= Self::V0_32
    }

    /// 0.33: under the priority policy, a request that threw itself out does not end the pass over the running
    /// queue: more urgent requests behind it are still served.
    pub(crate) fn goes_on_after_throwing_itself_out(self) -> bool {
        self >= Self::V0_33
    }

    /// 0.33: a GB10 (DGX Spark) gets the defaults of small GPUs.
    pub(crate) fn counts_gb10_as_small(self) -> bool {
        self >= Self::V0_33
    }

    /// 0.33: `prefill_schedule_interval` works in an engine of its own too. Before, only data parallelism heeded it.
    pub(crate) fn spaces_prefills_alone(self) -> bool {
        self >= Self::V0_33
    }
}

/// Major and minor number.
fn minor(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.trim().trim_start_matches('v').split('.');
    let major = parts.next()?.parse().ok()?;
    let minor: String = parts.next()?.chars().take_while(char::is_ascii_digit).collect();
    Some((major, minor.parse().ok()?))
}

impl FromStr for VllmVersion {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        match Self::nearest(text) {
            Some(Nearest { version, traced: true }) => Ok(version),
            _ => Err(UnknownVersion(text.to_owned())),
        }
    }
}

impl fmt::Display for VllmVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for VllmVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for VllmVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::{Nearest, VllmVersion};

    #[test]
    fn a_server_gets_the_rules_of_its_release_or_of_the_nearest() {
        for (text, version, traced) in [
            ("0.33.0", VllmVersion::V0_33, true),
            ("0.31", VllmVersion::V0_31, true),
            ("v0.27.1", VllmVersion::V0_27, true),
            ("0.32.0+cpu", VllmVersion::V0_32, true),
            ("0.28.1.dev12+g0123456", VllmVersion::V0_28, true),
            ("0.26.0", VllmVersion::V0_27, false),
            ("0.34.0rc1", VllmVersion::V0_33, false),
            ("1.0", VllmVersion::V0_33, false),
        ] {
            assert_eq!(VllmVersion::nearest(text), Some(Nearest { version, traced }), "{text}");
        }
        for text in ["", "dev", "0", "0.x", "b11434"] {
            assert_eq!(VllmVersion::nearest(text), None, "{text}");
        }
    }

    #[test]
    fn a_version_that_was_not_traced_is_refused_with_those_that_were() {
        let error = "0.26".parse::<VllmVersion>().unwrap_err().to_string();
        assert!(error.contains("`0.26`") && error.contains("0.27, 0.28"), "{error}");
        for version in VllmVersion::ALL {
            assert_eq!(version.name().parse(), Ok(version));
            assert_eq!(version.release().parse(), Ok(version));
        }
        assert_eq!(VllmVersion::default(), VllmVersion::ALL[6]);
    }
}
