//! Numbers as people read them: units, thousands separators, and a dash for what is not known.

/// What stands for a figure that cannot be known.
pub(crate) const UNKNOWN: &str = "—";

/// Formats a known value, or gives the dash.
pub(crate) fn known<T>(value: Option<T>, format: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), format)
}

/// `value` with `decimals` places and a comma between groups of three digits: `120,064`, `1,994.5`.
pub(crate) fn decimal(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return UNKNOWN.to_owned();
    }
    let plain = format!("{value:.decimals$}");
    let (sign, digits) = plain.strip_prefix('-').map_or(("", plain.as_str()), |rest| ("−", rest));
    let (whole, fraction) =
        digits.split_once('.').map_or((digits, None), |(whole, rest)| (whole, Some(rest)));
    let mut out = String::with_capacity(plain.len() + 4);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    let is_zero = out.bytes().all(|byte| matches!(byte, b'0' | b'.' | b','));
    if is_zero { out } else { format!("{sign}{out}") }
}

/// A count.
pub(crate) fn count(value: u64) -> String {
    decimal(value as f64, 0)
}

/// About four significant digits, none after the point of a whole number: `16`, `0.260`, `15.65`, `532.4`, `16,495`.
pub(crate) fn figure(value: f64) -> String {
    let size = value.abs();
    let places = if size >= 10_000.0 || value.fract() == 0.0 {
        0
    } else if size >= 100.0 {
        1
    } else if size >= 1.0 {
        2
    } else {
        3
    };
    decimal(value, places)
}

/// A latency given in milliseconds, in the unit that reads best: `6.75 ms`, `984.3 ms`, `13.78 s`, `169.0 s`.
pub(crate) fn latency_ms(ms: f64) -> String {
    let size = ms.abs();
    if size >= 100_000.0 {
        format!("{} s", decimal(ms / 1e3, 1))
    } else if size >= 1_000.0 {
        format!("{} s", decimal(ms / 1e3, 2))
    } else if size >= 100.0 {
        format!("{} ms", decimal(ms, 1))
    } else {
        format!("{} ms", decimal(ms, 2))
    }
}

/// A stretch of time given in seconds.
pub(crate) fn seconds(value: f64) -> String {
    let places = if value.abs() >= 1_000.0 {
        0
    } else if value.abs() >= 10.0 {
        1
    } else {
        2
    };
    format!("{} s", decimal(value, places))
}

/// A share of 0..1 as per cent, with a decimal place.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", decimal(share * 100.0, 1))
}

/// A share of 0..1 as per cent, with two decimal places (the KV pool lives between 99 and 100).
pub(crate) fn percent_fine(share: f64) -> String {
    format!("{} %", decimal(share * 100.0, 2))
}

/// A ratio: `4.4×`.
pub(crate) fn times(ratio: f64) -> String {
    format!("{}×", decimal(ratio, if ratio.abs() >= 10.0 { 1 } else { 2 }))
}

/// Bytes in binary units.
pub(crate) fn bytes(value: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut scaled = value;
    let mut unit = 0;
    while scaled.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    let places = if unit == 0 || (scaled.fract() == 0.0 && scaled < 1024.0) { 0 } else { 2 };
    format!("{} {}", decimal(scaled, places), UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_read_as_in_the_report() {
        assert_eq!(decimal(120_064.0, 0), "120,064");
        assert_eq!(decimal(-1_234.56, 1), "−1,234.6");
        assert_eq!(decimal(-0.01, 1), "0.0", "a negative zero is no figure");
        assert_eq!(decimal(f64::NAN, 1), UNKNOWN);
        assert_eq!(figure(1994.53), "1,994.5");
        assert_eq!(figure(15.654), "15.65");
        assert_eq!(figure(0.2603), "0.260");
        assert_eq!(latency_ms(6.752), "6.75 ms");
        assert_eq!(latency_ms(984.31), "984.3 ms");
        assert_eq!(latency_ms(13_778.0), "13.78 s");
        assert_eq!(latency_ms(169_000.0), "169.0 s");
        assert_eq!(percent(0.9585), "95.9 %");
        assert_eq!(times(4.367), "4.37×");
        assert_eq!(bytes(448.0 * 1024.0 * 1024.0), "448 MiB");
        assert_eq!(bytes(6_884_950_016.0), "6.41 GiB");
        assert_eq!(known(None, figure), UNKNOWN);
    }

    proptest! {
        #[test]
        fn separators_do_not_change_the_number(value in -1e12_f64..1e12, places in 0_usize..4) {
            let read: f64 = decimal(value, places).replace(',', "").replace('−', "-").parse().unwrap();
            prop_assert!((read - value).abs() <= 0.5 * 10_f64.powi(-(places as i32)) + 1e-3);
        }
    }
}
