//! Profiles that come with the program.

use super::profile::Profile;

/// Name and text of each; `docs/cost-model.md` says how each is made.
const SHIPPED: [(&str, &str); 1] =
    [("h200-qwen2.5-7b", include_str!("../../../../profiles/h200-qwen2.5-7b.toml"))];

impl Profile {
    /// Names of the profiles that come with the program.
    pub fn shipped_names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// The profile of that name that comes with the program.
    pub fn shipped(name: &str) -> Option<Self> {
        let (_, text) = SHIPPED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Self::from_toml(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::Profile;

    #[test]
    fn every_shipped_profile_can_be_read() {
        for name in Profile::shipped_names() {
            assert_eq!(Profile::shipped(name).unwrap().name, name);
        }
    }
}
