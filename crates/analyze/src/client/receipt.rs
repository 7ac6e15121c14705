//! The plan against the receipt: what the server was asked for, and what it says that it did.

use super::View;
use precipice_record::{Doubt, FailureKind, RequestRow, Source, Warning};

/// A prompt is taken for cut where the server counts this share less than was sent: words are not exactly as many
/// tokens as planned, and a few special tokens come or go.
const CUT: f64 = 0.1;

/// A contradiction between two columns of the same row.
type Contradicts = fn(&RequestRow) -> bool;

/// Each contradiction once, with the number of its requests.
pub(super) fn warnings(view: &View<'_>) -> Vec<Warning> {
    let manifest = &view.run.manifest;
    if manifest.source != Source::Live {
        return Vec::new();
    }
    let rows = || view.measured.iter().map(|&row| &view.run.requests[row]);
    let completed = || rows().filter(|row| row.completed());
    let of = completed().count();
    let count = |contradicts: Contradicts| {
        Some(completed().filter(|row| contradicts(row)).count()).filter(|&count| count > 0)
    };
    let forced = manifest.load.ignore_eos == Some(true);
    let local =
        Some(rows().filter(|row| row.failure == Some(FailureKind::Local)).count()).filter(|&count| count > 0);
    [
        count(shorter).filter(|_| forced).map(|count| Doubt::OutputsShorter { count, of }),
        count(longer).map(|count| Doubt::OutputsLonger { count, of }),
        count(cut).map(|count| Doubt::PromptsCut { count, of }),
        count(not_streamed).map(|count| Doubt::NotStreamed { count, of }),
        count(no_count).map(|count| Doubt::UsageContradicts { count, of }),
        local.map(|count| Doubt::LocalFailures { count }),
    ]
    .into_iter()
    .flatten()
    .map(Warning::from)
    .collect()
}

fn shorter(row: &RequestRow) -> bool {
    row.output().zip(row.output_tokens_asked).is_some_and(|(got, asked)| got < asked)
}

fn longer(row: &RequestRow) -> bool {
    row.output().zip(row.output_tokens_asked).is_some_and(|(got, asked)| got > asked)
}

fn cut(row: &RequestRow) -> bool {
    let counted = row.prompt_tokens_usage.filter(|&tokens| tokens > 0);
    counted
        .zip(row.prompt_tokens)
        .is_some_and(|(counted, sent)| f64::from(counted) < f64::from(sent) * (1.0 - CUT))
}

fn not_streamed(row: &RequestRow) -> bool {
    row.first_event.is_none() && row.output().is_some_and(|tokens| tokens > 0)
}

fn no_count(row: &RequestRow) -> bool {
    row.output_tokens_usage == Some(0) && row.first_token.is_some()
}

#[cfg(test)]
mod tests {
    use super::{cut, longer, no_count, not_streamed, shorter};
    use precipice_record::{Ns, RequestRow};

    #[test]
    fn a_row_that_keeps_to_the_plan_contradicts_nothing() {
        let good = RequestRow {
            prompt_tokens: Some(100),
            prompt_tokens_usage: Some(96),
            output_tokens_asked: Some(32),
            output_tokens: Some(32),
            output_tokens_usage: Some(32),
            first_event: Some(Ns(1)),
            first_token: Some(Ns(1)),
            ..RequestRow::default()
        };
        let contradictions = [shorter, longer, cut, not_streamed, no_count];
        assert!(contradictions.iter().all(|contradicts| !contradicts(&good)));
        let of = |row: &RequestRow| contradictions.map(|contradicts| contradicts(row));
        let none = [false; 5];
        let with = |place: usize| {
            let mut expected = none;
            expected[place] = true;
            expected
        };
        let base = || good.clone();
        assert_eq!(of(&RequestRow { output_tokens_usage: Some(11), ..base() }), with(0));
        assert_eq!(of(&RequestRow { output_tokens_usage: Some(64), ..base() }), with(1));
        assert_eq!(of(&RequestRow { prompt_tokens_usage: Some(64), ..base() }), with(2));
        assert_eq!(of(&RequestRow { first_event: None, first_token: None, ..base() }), with(3));
        assert_eq!(of(&RequestRow { output_tokens_usage: Some(0), ..base() }), with(4));
    }
}
