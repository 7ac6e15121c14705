//! Stable names as types: an enum whose variants are written in files by name.

/// Declares an enum of stable names.
///
/// A variant is `Variant = "name"`; the name is what files hold, and never changes. The macro gives `ALL`, `name`,
/// `from_name`, `Display` and serde's two traits, all from that one word. A variant with `#[serde(other)]` takes every
/// name that this version does not know, so that a file of another version stays readable.
#[macro_export]
macro_rules! codes {
    ($(#[$about:meta])* pub enum $code:ident {
        $($(#[$doc:meta])* $variant:ident = $name:literal,)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize, ::serde::Deserialize)]
        pub enum $code { $($(#[$doc])* #[serde(rename = $name)] $variant,)* }

        impl $code {
            /// All of them, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The stable name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The one of a stable name, if it is known.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.name() == name)
            }
        }

        impl ::std::fmt::Display for $code {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::{FailureKind, WarningCode};

    #[test]
    fn names_and_serde_agree_and_lead_back() {
        for &kind in FailureKind::ALL {
            assert_eq!(FailureKind::from_name(kind.name()), Some(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        for &code in WarningCode::ALL {
            assert_eq!(serde_json::from_value::<WarningCode>(code.name().into()).unwrap(), code);
        }
        assert_eq!(FailureKind::from_name("no such failure"), None);
    }
}
