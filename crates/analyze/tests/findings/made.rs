//! Runs made by hand.

use precipice_record::{ChunkRow, Ns, RequestRow, Run, Series, SeriesId, Sink, UP};
use std::collections::BTreeMap;

pub(crate) fn ms(ms: u64) -> Ns {
    Ns(ms * 1_000_000)
}

pub(crate) fn series(run: &mut Run, source: u16, name: &str, labels: &[(&str, &str)]) -> SeriesId {
    let labels: BTreeMap<String, String> =
        labels.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    run.series(Series { name: name.to_owned(), labels, source })
}

/// One value a scrape, one scrape a second from `from` on, with `up`. NaN is a row that is left out.
pub(crate) fn scrape(run: &mut Run, source: u16, from: Ns, columns: &[(&str, &[f64])]) {
    let up = series(run, source, UP, &[]);
    let ids: Vec<SeriesId> =
        columns.iter().map(|column| series(run, source, column.0, &[("engine", "0")])).collect();
    let scrapes = columns.iter().map(|column| column.1.len()).max().unwrap_or(0);
    for tick in 0..scrapes {
        let time = from + ms(1000 * tick as u64);
        run.sample(time, up, 1.0);
        for (&id, (_, values)) in ids.iter().zip(columns) {
            if let Some(&value) = values.get(tick).filter(|value| !value.is_nan()) {
                run.sample(time, id, value);
            }
        }
    }
}

/// A completed request: sent at `sent`, an event of one token at each of `tokens` (all in ms).
pub(crate) fn request(run: &mut Run, request: u32, sent: u64, tokens: &[u64]) {
    for &time in tokens {
        run.chunk(ChunkRow { request, attempt: 0, time: ms(time), tokens: 1, events_in_read: 1 });
    }
    run.request(RequestRow {
        request,
        intended: ms(sent),
        sent: Some(ms(sent)),
        first_event: tokens.first().map(|&time| ms(time)),
        first_token: tokens.first().map(|&time| ms(time)),
        last_token: tokens.last().map(|&time| ms(time)),
        end: ms(tokens.last().map_or(sent, |&last| last)),
        prompt_tokens: Some(100),
        output_tokens_asked: Some(tokens.len() as u32),
        output_tokens: Some(tokens.len() as u32),
        ..RequestRow::default()
    });
}
