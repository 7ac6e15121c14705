//! What the client had in flight and what it received, over time.

use super::thin::thin;
use super::{Line, Timeline};
use crate::client::ClientPart;
use crate::window::Window;

/// Fills the client's lines.
pub(crate) fn draw(timeline: &mut Timeline, client: &ClientPart, window: Window, points: usize) {
    timeline.window_s = Some((0.0, window.seconds()));
    let mut in_flight = Line::default();
    let mut before = 0;
    for &(time, number) in &client.in_flight.steps {
        // Two points a step: a number holds until the next.
        in_flight.push(window.at(time), Some(before as f64));
        in_flight.push(window.at(time), Some(number as f64));
        before = number;
    }
    timeline.in_flight = thin(in_flight, points);
    output_rate(timeline, client, window, points);
}

/// Output tokens per second in even bins of the window: 1, 2 or 5 times a power of ten seconds wide, no narrower
/// than a tenth of a second. Where an event's tokens are unknown, it counts as one.
fn output_rate(timeline: &mut Timeline, client: &ClientPart, window: Window, points: usize) {
    let seconds = window.seconds();
    if client.streams.len() == 0 {
        return;
    }
    let least = (seconds / points.clamp(2, 400) as f64).max(0.1);
    let power = 10_f64.powf(least.log10().floor());
    let width = [1.0, 2.0, 5.0, 10.0].map(|step| step * power).into_iter().find(|&width| width >= least);
    let width = width.unwrap_or(least);
    let bins = (seconds / width).ceil() as usize;
    let mut tokens = vec![0_u64; bins];
    for (time, carried) in client.streams.events() {
        if time >= window.from && time <= window.to {
            let bin = (window.at(time) / width) as usize;
            tokens[bin.min(bins - 1)] += u64::from(carried.max(1));
        }
    }
    for (bin, &tokens) in tokens.iter().enumerate() {
        let from = bin as f64 * width;
        // The last bin ends with the window.
        let lasts = (seconds - from).min(width);
        timeline.output_rate.push(from + lasts / 2.0, Some(tokens as f64 / lasts));
    }
    timeline.output_rate_bin_s = Some(width);
}

#[cfg(test)]
mod tests {
    use super::{ClientPart, Timeline, draw};
    use crate::{Options, client, window::Window};
    use precipice_record::{ChunkRow, Ns, RequestRow, Run};

    #[test]
    fn the_rate_integrates_to_the_tokens() {
        let mut run = Run::default();
        let ns = |ms: u64| Ns(ms * 1_000_000);
        run.requests.push(RequestRow { sent: Some(ns(0)), end: ns(1250), ..RequestRow::default() });
        for ms in (5..=1250).step_by(5) {
            run.chunks.push(ChunkRow { request: 0, attempt: 0, time: ns(ms), tokens: 1, events_in_read: 1 });
        }
        let window = Window::of(&run).unwrap();
        let part: ClientPart = client::analyze(&run, Some(window), &Options::default());
        let mut timeline = Timeline::default();
        draw(&mut timeline, &part, window, 2000);
        let width = timeline.output_rate_bin_s.unwrap();
        let tokens: f64 = timeline
            .output_rate
            .t_s
            .iter()
            .zip(&timeline.output_rate.value)
            .map(|(middle, rate)| rate.unwrap() * width.min(2.0 * (window.seconds() - middle)))
            .sum();
        assert!((tokens - 250.0).abs() < 1e-6, "{tokens}");
        assert_eq!(timeline.in_flight.value.iter().flatten().copied().fold(0.0, f64::max), 1.0);
    }
}
