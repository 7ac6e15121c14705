//! Where a value came from.

use std::fmt;

/// Where the value of a setting came from, in the words of `--print-config` and of the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The program's own choice.
    Default,
    /// The values of `--preset`, which is one even where it is not named.
    Preset,
    /// Follows from other settings, or from a data sheet.
    Derived,
    /// An environment variable.
    Environment,
    /// The file of `--config`.
    File,
    /// The command line.
    CommandLine,
}

impl Origin {
    const ALL: [Self; 6] =
        [Self::Default, Self::Preset, Self::Derived, Self::Environment, Self::File, Self::CommandLine];

    /// The words for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Preset => "preset",
            Self::Derived => "derived",
            Self::Environment => "environment",
            Self::File => "config file",
            Self::CommandLine => "command line",
        }
    }

    /// The origin of this name, as a manifest keeps it.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|origin| origin.name() == name)
    }

    /// The user gave it.
    pub const fn is_given(self) -> bool {
        matches!(self, Self::CommandLine | Self::File)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
