//! How much text a body holds, and which beginning it shares with others.

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Bytes of a piece of text: the grain in which common beginnings are found.
pub(crate) const PIECE_BYTES: u64 = 256;
/// Token ids of a piece: any block size that engines have is a multiple of it or divides it.
pub(crate) const PIECE_IDS: u64 = 16;
/// No more pieces are remembered: the beginning of a longer prompt is all that others will share.
const MOST_PIECES: usize = 8192;

/// Text or token ids, measured as they pass.
#[derive(Debug, Clone, Default)]
pub(crate) struct Measure {
    /// Bytes of text.
    pub(crate) bytes: u64,
    /// Token ids.
    pub(crate) ids: u64,
    /// Texts, or lists of ids.
    pub(crate) parts: u32,
    /// A hash of everything up to the end of each whole piece.
    pub(crate) chain: Vec<u64>,
    hash: u64,
    piece: u64,
}

fn mix(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// A hash of bytes, for telling equal ones from others.
pub(crate) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let whole = words.iter().fold(seed, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let tail = rest.iter().fold(rest.len() as u64, |tail, byte| tail << 8 | u64::from(*byte));
    mix(whole, tail)
}

impl Measure {
    /// Text that belongs to the prompt.
    fn text(&mut self, text: &str) {
        // Pictures and sound come as data in text, and are no text.
        if text.len() > 1024 && text.starts_with("data:") {
            self.hash = hash(self.hash, text.as_bytes());
            return;
        }
        self.bytes += text.len() as u64;
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let room = (PIECE_BYTES - self.piece) as usize;
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.hash = hash(self.hash, now);
            self.fill(now.len() as u64, PIECE_BYTES);
            rest = later;
        }
    }

    fn id(&mut self, id: u64) {
        self.ids += 1;
        self.hash = mix(self.hash, id);
        self.fill(1, PIECE_IDS);
    }

    fn fill(&mut self, more: u64, whole: u64) {
        self.piece += more;
        if self.piece >= whole {
            self.piece = 0;
            if self.chain.len() < MOST_PIECES {
                self.chain.push(self.hash);
            }
        }
    }

    /// The hashes, for a prompt that stands behind `before`.
    pub(crate) fn chain_after(&self, before: &Self, seed: u64) -> Vec<u64> {
        let own = self.chain.iter().map(|piece| mix(mix(*piece, before.hash), seed));
        before.chain.iter().map(|piece| mix(*piece, seed)).chain(own).collect()
    }
}

/// Measures any JSON: every string counts as text, and numbers only in lists, as token ids.
pub(crate) struct Any<'a> {
    pub(crate) measure: &'a mut Measure,
    /// In a list: a number is a token id.
    pub(crate) listed: bool,
    /// Elements of this list are parts of their own.
    pub(crate) top: bool,
}

impl Any<'_> {
    fn inner(&mut self, listed: bool) -> Any<'_> {
        Any { measure: self.measure, listed, top: false }
    }
}

impl<'de> DeserializeSeed<'de> for Any<'_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.measure.text(text);
        Ok(())
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<(), E> {
        if self.listed {
            self.measure.id(number);
        }
        Ok(())
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<(), E> {
        self.visit_u64(number.unsigned_abs())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let mut numbers = 0;
        loop {
            let before = self.measure.ids;
            if list.next_element_seed(self.inner(true))?.is_none() {
                break;
            }
            // A list of numbers is one prompt; every other element is one by itself.
            if self.top && self.measure.ids == before + 1 {
                numbers += 1;
            } else if self.top {
                self.measure.parts += 1;
            }
        }
        self.measure.parts += u32::from(numbers > 0);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            // What says the kind of a part is rendered as a token or two, or not at all.
            if matches!(key.as_ref(), "type" | "cache_control" | "detail") {
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value_seed(self.inner(false))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Any, Measure};
    use serde::de::DeserializeSeed as _;

    fn measure(json: &str) -> Measure {
        let mut measure = Measure::default();
        let mut reader = serde_json::Deserializer::from_str(json);
        Any { measure: &mut measure, listed: false, top: true }.deserialize(&mut reader).unwrap();
        measure
    }

    #[test]
    fn prompts_of_every_kind() {
        assert_eq!(measure("[1,2,3]").ids, 3);
        assert_eq!(measure("[1,2,3]").parts, 1);
        assert_eq!((measure("[[1,2],[3]]").ids, measure("[[1,2],[3]]").parts), (3, 2));
        assert_eq!((measure(r#"["ab","c"]"#).bytes, measure(r#"["ab","c"]"#).parts), (3, 2));
        assert_eq!(measure(r#"[{"role":"user","content":[{"type":"text","text":"hallo"}]}]"#).bytes, 9);
    }

    #[test]
    fn equal_beginnings_have_equal_pieces() {
        let text = |end: char| format!("\"{}{end}{}\"", "a".repeat(700), "b".repeat(400));
        let (one, other) = (measure(&text('x')), measure(&text('y')));
        let shared = one.chain.iter().zip(&other.chain).take_while(|(left, right)| left == right).count();
        assert_eq!((one.chain.len(), shared), (4, 2));
    }
}
