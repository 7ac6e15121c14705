//! The one mixing function behind streams of tokens. Its values are part of every recorded run, so it never changes.

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection of 64 bits.
const fn finish(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Mixes two numbers. For a fixed `root` it is a bijection of `leaf`: siblings never collide.
pub(crate) const fn mix(root: u64, leaf: u64) -> u64 {
    finish(finish(root.wrapping_add(GOLDEN)) ^ leaf)
}

/// 64 bits of a text (FNV-1a, then mixed).
pub fn text(text: &str) -> u64 {
    let fnv = text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    finish(fnv)
}

#[cfg(test)]
mod tests {
    use super::{mix, text};

    /// Computed by an independent implementation of SplitMix64 and FNV-1a.
    #[test]
    fn values_never_change() {
        assert_eq!(mix(0, 0), 0x4821_8226_FF3C_D4BF);
        assert_eq!(mix(42, 7), 0xAEBD_B1A5_611C_EE63);
        assert_eq!(text("salt"), 0xA0FA_A8DF_8268_ACD4);
    }
}
