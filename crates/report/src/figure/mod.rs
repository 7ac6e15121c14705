//! Figures as data for plotly.js: no language and no colour is fixed in them.
//!
//! A text is an object `{en, zh}`, a colour is `"$name"` for the style sheet's `--c-name`; the page's script
//! resolves both, so that a switch of language or theme needs no second copy of the data. Colours follow Okabe
//! and Ito, and series differ in dash, fill or marker as well, so that none is told by its colour alone.

mod calibration;
mod capacity;
mod control_loop;
mod latency;
mod regimes;
mod series;
mod timeline;
mod ttft;
mod wall_clock;

pub(crate) use calibration::flops_calibration;
pub(crate) use capacity::demand;
pub(crate) use control_loop::{sawtooth, staircase};
pub(crate) use latency::latencies;
pub(crate) use regimes::name as regime;
pub(crate) use series::{panels, residents, ttft_parts_series};
pub(crate) use timeline::{output_rate, stacked, waveform};
pub(crate) use ttft::ttft_parts;
pub(crate) use wall_clock::wall_clock;

use crate::document::{Line, Table, fill};
use crate::lang::Lang;
use crate::text::Text;
use serde_json::{Value, json};

/// A plot with its caption and its data as a table.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    /// Unique in the page.
    pub(crate) id: String,
    /// What to see in it.
    pub(crate) caption: Line,
    /// Traces.
    pub(crate) data: Value,
    /// Axes and shapes.
    pub(crate) layout: Value,
    /// Group of figures that share a time axis.
    pub(crate) time: Option<String>,
    /// Height in pixels.
    pub(crate) height: u16,
    /// On a phone: this height, with this in the place of parts of the layout.
    pub(crate) narrow: Option<(u16, Value)>,
    /// The same as a table.
    pub(crate) table: Option<Table>,
}

impl Figure {
    /// The part that the script reads.
    pub(crate) fn plot(&self) -> Value {
        let narrow =
            self.narrow.as_ref().map(|(height, layout)| json!({ "height": height, "layout": layout }));
        json!({ "data": self.data, "layout": self.layout, "time": self.time, "height": self.height, "narrow": narrow })
    }
}

/// A text in both languages.
pub(crate) fn both(text: Text) -> Value {
    both_with(text, &[])
}

/// A text in both languages with its names filled in.
pub(crate) fn both_with(text: Text, values: &[(&str, String)]) -> Value {
    json!({ "en": fill(text.say(Lang::En), values), "zh": fill(text.say(Lang::Zh), values) })
}

/// A user's text for plotly.js, which reads some tags in labels.
pub(crate) fn label(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Numbers with as many digits as a plot can show; what is unknown or not finite breaks the line.
pub(crate) fn numbers(values: impl IntoIterator<Item = Option<f64>>) -> Value {
    values.into_iter().map(|value| value.filter(|v| v.is_finite()).map(five_digits)).collect()
}

/// Moments to a millisecond.
pub(crate) fn moments(values: &[f64]) -> Value {
    values.iter().map(|t| (t * 1e3).round() / 1e3).collect()
}

fn five_digits(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let scale = 10_f64.powi(4 - value.abs().log10().floor() as i32);
    let rounded = (value * scale).round() / scale;
    if rounded.is_finite() { rounded } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_breaks_the_line() {
        let values = numbers([
            Some(1.234_567),
            Some(f64::NAN),
            None,
            Some(f64::INFINITY),
            Some(0.0),
            Some(-120_064.4),
        ]);
        assert_eq!(values, json!([1.2346, null, null, null, 0.0, -120_060.0]));
    }

    #[test]
    fn plotly_sees_no_tag_in_a_name() {
        assert_eq!(label("<a href='x'>&"), "&lt;a href='x'&gt;&amp;");
    }
}
