//! The two languages of every output.

use std::fmt;
use std::str::FromStr;

/// Language of an output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Chinese (simplified).
    Zh,
}

impl Lang {
    /// Both.
    pub const ALL: [Self; 2] = [Self::En, Self::Zh];

    /// The tag of HTML: Chinese here is the simplified script.
    pub fn html(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Zh => "zh-Hans",
        }
    }

    /// The word of `--lang`.
    pub fn tag(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Zh => "zh",
        }
    }
}

impl fmt::Display for Lang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.tag())
    }
}

/// A language that there is no text in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no such language: {0:?}; --lang takes `en` or `zh`")]
pub struct UnknownLang(String);

impl FromStr for Lang {
    type Err = UnknownLang;

    /// `en` and `zh`, also with a region or an encoding behind them, as in `zh_CN.UTF-8`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let primary = text.split(['_', '-', '.']).next().unwrap_or_default();
        match primary.to_ascii_lowercase().as_str() {
            "en" => Ok(Self::En),
            "zh" | "cn" => Ok(Self::Zh),
            _ => Err(UnknownLang(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Lang;

    #[test]
    fn regions_and_encodings_are_no_obstacle() {
        assert_eq!("zh_CN.UTF-8".parse(), Ok(Lang::Zh));
        assert_eq!("en-GB".parse(), Ok(Lang::En));
        assert_eq!("zh".parse(), Ok(Lang::Zh));
        assert!("fr".parse::<Lang>().is_err());
        assert!("".parse::<Lang>().is_err());
    }
}
