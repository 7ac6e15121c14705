//! Numbers as people read them: units, thousands separators, and a dash for what is not known.

/// What stands for a figure that cannot be known.
pub const UNKNOWN: &str = "—";

/// Formats a known value, or gives the dash.
pub fn known<T>(value: Option<T>, format: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), format)
}

/// `value` with `decimals` places and a comma between groups of three digits: `120,064`, `1,994.5`.
pub fn decimal(value: f64, decimals: usize) -> String {
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
pub fn count(value: u64) -> String {
    decimal(value as f64, 0)
}

/// About four significant digits, none after the point of a whole number: `16`, `0.260`, `15.65`, `532.4`, `16,495`.
pub fn figure(value: f64) -> String {
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

/// A time given in milliseconds, in the unit that reads best: `6.75 ms`, `984.3 ms`, `13.78 s`, `169.0 s`; whole
/// seconds below a hundred, such as a budget, are `10 s`.
pub fn latency_ms(ms: f64) -> String {
    let (value, unit) = if ms.abs() >= 1_000.0 { (ms / 1e3, "s") } else { (ms, "ms") };
    let places = match value.abs() {
        size if unit == "s" && size < 100.0 && value.fract() == 0.0 => 0,
        size if size >= 10_000.0 => 0,
        size if size >= 100.0 => 1,
        _ => 2,
    };
    format!("{} {unit}", decimal(value, places))
}

/// A time given in seconds, written as [`latency_ms`] writes it: one time reads the same wherever it stands.
pub fn seconds(value: f64) -> String {
    latency_ms(value * 1e3)
}

/// A share of 0..1 as per cent: one decimal place, two where it is within 1 % of nothing or of all (a full KV pool lives
/// between 99 % and 100 %), none for a whole number.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    // Products of a decimal fraction and 100 are rarely whole to the last bit.
    let whole = (value - value.round()).abs() < 1e-9;
    let near_an_end = value.abs() < 1.0 || (99.0..100.0).contains(&value);
    let places = if whole {
        0
    } else if near_an_end {
        2
    } else {
        1
    };
    format!("{}%", decimal(value, places))
}

/// A ratio: `4.4×`.
pub fn times(ratio: f64) -> String {
    format!("{}×", decimal(ratio, if ratio.abs() >= 10.0 { 1 } else { 2 }))
}

/// Bytes in binary units.
pub fn bytes(value: f64) -> String {
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
        assert_eq!(percent(0.9585), "95.9%");
        assert_eq!(percent(0.5), "50%");
        assert_eq!(percent(0.9985), "99.85%");
        assert_eq!(percent(0.0004), "0.04%");
        assert_eq!(seconds(13.778), latency_ms(13_778.0), "one time, one way to write it");
        assert_eq!(seconds(10.0), "10 s");
        assert_eq!(seconds(12_345.6), "12,346 s");
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
