//! Which warnings void a result.

use crate::Findings;
use precipice_record::{Warning, WarningCode};

/// Warnings after which the run's figures must not be used as they are.
const VOID: &[WarningCode] = &[
    WarningCode::ClientBottleneck,
    WarningCode::LateSends,
    WarningCode::OtherTraffic,
    WarningCode::CounterReset,
    WarningCode::LocalFailures,
    WarningCode::NotStreamed,
    WarningCode::OutputsLonger,
    WarningCode::OutputsShorter,
    WarningCode::PromptsCut,
    WarningCode::UsageContradicts,
];

/// Warnings of which this analysis has the last word: what a recorder of an older version said of the same is left out.
const JUDGED: &[WarningCode] = &[
    WarningCode::CoalescedReads,
    WarningCode::CounterReset,
    WarningCode::EventsAndTokensDiffer,
    WarningCode::HiddenQueue,
    WarningCode::OtherTraffic,
    WarningCode::ScrapeGaps,
    WarningCode::TokenMismatch,
];

/// Whether a warning voids the result: `--strict` fails on it, and it stands above every figure.
pub fn voids(code: WarningCode) -> bool {
    VOID.contains(&code)
}

impl Findings {
    /// The warnings that void the result; none of a run that can be believed.
    pub fn void(&self) -> impl Iterator<Item = &Warning> {
        self.warnings.iter().filter(|warning| voids(warning.code))
    }
}

/// The recorder's warnings and those that the rows gave, each said once.
pub(crate) fn warnings(recorded: &[Warning], found: impl Iterator<Item = Warning>) -> Vec<Warning> {
    let mut warnings: Vec<Warning> =
        recorded.iter().filter(|warning| !JUDGED.contains(&warning.code)).cloned().collect();
    let said: Vec<WarningCode> = warnings.iter().map(|warning| warning.code).collect();
    warnings.extend(found.filter(|warning| !said.contains(&warning.code)));
    warnings
}
