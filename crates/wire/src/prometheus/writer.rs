//! Writing a page in the layout of Python's `prometheus_client`, which vLLM uses.

use super::Family;
use std::borrow::Cow;
use std::fmt::Write as _;

/// A counter of one set of labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CounterSeries<'a> {
    /// Name and value of each label, in any order.
    pub labels: &'a [(&'a str, &'a str)],
    /// What it counted.
    pub value: f64,
    /// When it was made, in seconds since the Unix epoch.
    pub created: f64,
}

/// A histogram of one set of labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HistogramSeries<'a> {
    /// Name and value of each label, `le` left out, in any order.
    pub labels: &'a [(&'a str, &'a str)],
    /// Upper bounds of the buckets, ascending, +Inf left out.
    pub bounds: &'a [f64],
    /// Samples in each bucket (not cumulative), the one up to +Inf last: one more than there are bounds.
    pub counts: &'a [u64],
    /// Sum of the samples.
    pub sum: f64,
    /// When it was made, in seconds since the Unix epoch.
    pub created: f64,
}

/// A page in the making.
#[derive(Debug, Clone, Default)]
pub struct PageWriter {
    page: String,
}

impl PageWriter {
    /// The content type of the page.
    pub const CONTENT_TYPE: &'static str = "text/plain; version=1.0.0; charset=utf-8";

    /// An empty page.
    pub fn new() -> Self {
        Self::default()
    }

    /// The page.
    pub fn finish(self) -> String {
        self.page
    }

    /// Forgets the content, keeps the memory.
    pub fn clear(&mut self) {
        self.page.clear();
    }

    /// The page so far.
    pub fn as_str(&self) -> &str {
        &self.page
    }

    /// `# HELP` and `# TYPE`.
    pub fn header(&mut self, name: &str, help: &str, family: Family) {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a string cannot fail.
        let _written = write!(self.page, "# HELP {name} {help}\n# TYPE {name} {}\n", family.name());
    }

    /// One line. Labels are put in order of their names.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.line(name, "", labels, None, value);
    }

    /// A gauge with all its series.
    pub fn gauge(&mut self, name: &str, help: &str, series: &[(&[(&str, &str)], f64)]) {
        self.header(name, help, Family::Gauge);
        for (labels, value) in series {
            self.sample(name, labels, *value);
        }
    }

    /// A counter with all its series; `name` without `_total`, which is appended as the client library does.
    pub fn counter(&mut self, name: &str, help: &str, series: &[CounterSeries<'_>]) {
        self.header(&format!("{name}_total"), help, Family::Counter);
        for one in series {
            self.line(name, "_total", one.labels, None, one.value);
        }
        self.created(name, help, series.iter().map(|one| (one.labels, one.created)));
    }

    /// A histogram with all its series.
    pub fn histogram(&mut self, name: &str, help: &str, series: &[HistogramSeries<'_>]) {
        self.header(name, help, Family::Histogram);
        for one in series {
            let mut total = 0;
            let bounds = one.bounds.iter().copied().chain([f64::INFINITY]);
            for (bound, count) in bounds.zip(one.counts) {
                total += count;
                self.line(name, "_bucket", one.labels, Some(&go_float(bound)), total as f64);
            }
            self.line(name, "_count", one.labels, None, total as f64);
            self.line(name, "_sum", one.labels, None, one.sum);
        }
        self.created(name, help, series.iter().map(|one| (one.labels, one.created)));
    }

    fn created<'a>(
        &mut self,
        name: &str,
        help: &str,
        series: impl Iterator<Item = (&'a [(&'a str, &'a str)], f64)>,
    ) {
        self.header(&format!("{name}_created"), help, Family::Gauge);
        for (labels, created) in series {
            self.line(name, "_created", labels, None, created);
        }
    }

    fn line(&mut self, name: &str, suffix: &str, labels: &[(&str, &str)], le: Option<&str>, value: f64) {
        self.page.push_str(name);
        self.page.push_str(suffix);
        let mut all: Vec<(&str, &str)> = labels.to_vec();
        all.extend(le.map(|le| ("le", le)));
        all.sort_unstable();
        for (place, (label, text)) in all.iter().enumerate() {
            self.page.push(if place == 0 { '{' } else { ',' });
            let _written = write!(self.page, "{label}=\"{}\"", escape(text));
        }
        if !all.is_empty() {
            self.page.push('}');
        }
        let _written = writeln!(self.page, " {}", go_float(value));
    }
}

fn escape(text: &str) -> Cow<'_, str> {
    if text.contains(['\\', '"', '\n']) {
        Cow::Owned(text.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\""))
    } else {
        Cow::Borrowed(text)
    }
}

/// A number as `prometheus_client.utils.floatToGoString` writes it: Python's `repr`, and an exponent from
/// 1000000 on.
pub fn go_float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let repr = python_repr(value);
    match repr.find('.') {
        Some(dot) if value > 0.0 && dot > 6 => {
            let digits = format!("{}.{}{}", &repr[..1], &repr[1..dot], &repr[dot + 1..]);
            format!("{}e+{:02}", digits.trim_end_matches(['0', '.']), dot - 1)
        }
        _ => repr,
    }
}

/// Python's `repr` of a finite float: the shortest digits that read back, an exponent outside 1e-4..1e16.
fn python_repr(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{value}");
        if plain.contains('.') { plain } else { plain + ".0" }
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{mantissa}e{sign}{:02}", exponent.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prometheus::{Line, parse};
    use proptest::prelude::*;

    #[test]
    fn numbers_as_python_writes_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.3, "0.3"),
            (999_999.0, "999999.0"),
            (1_000_000.0, "1e+06"),
            (1_234_567.5, "1.2345675e+06"),
            (4_638_449_664.0, "4.638449664e+09"),
            (383_563_449_344.0, "3.83563449344e+11"),
            (1.8470e16, "1.847e+16"),
            (1e15, "1e+15"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e300, "1e+300"),
            (-12_345_678.0, "-12345678.0"),
            (f64::INFINITY, "+Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(go_float(value), text, "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            value in any::<f64>().prop_filter("NaN is not equal to itself", |value| !value.is_nan()),
            labels in prop::collection::btree_map("[a-z_]{1,5}", "\\PC{0,12}|[\\n\\\\\"]{0,4}", 0..4),
        ) {
            let pairs: Vec<(&str, &str)> = labels.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            let mut writer = PageWriter::new();
            writer.gauge("a:b", "Help\nwith \\ lines.", &[(&pairs, value)]);
            let page = writer.finish();
            let mut seen = 0;
            parse(page.as_bytes(), |line| {
                if let Line::Sample(sample) = line {
                    let back: Vec<(&str, String)> =
                        sample.labels.into_iter().map(|(name, text)| (name, text.into_owned())).collect();
                    assert_eq!(back, pairs.iter().map(|(n, t)| (*n, (*t).to_owned())).collect::<Vec<_>>());
                    assert_eq!(sample.value, value);
                    seen += 1;
                }
            })
            .unwrap();
            prop_assert_eq!(seen, 1);
        }
    }
}
