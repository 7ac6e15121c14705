//! Calendar dates as times.

/// Nanoseconds since the Unix epoch of `2023-11-16 18:15:46.6805900`, with `T` for the blank and a zone (`Z`, `+01:00`)
/// or none (UTC) behind it. `None`: not a date of this form.
pub(super) fn unix_nanos(text: &str) -> Option<u64> {
    let text = text.trim();
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let mut parts = date.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    let (clock, offset_s) = zone(time)?;
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (whole(parts.next()?)?, whole(parts.next()?)?);
    let (second, fraction) =
        parts.next().unwrap_or("0").split_once('.').unwrap_or((clock.rsplit(':').next()?, ""));
    let second = if clock.matches(':').count() < 2 { 0 } else { whole(second)? };
    let fits =
        (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let nanos: i128 = digits.parse().ok().filter(|_| fraction.bytes().all(|digit| digit.is_ascii_digit()))?;
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset_s;
    u64::try_from(i128::from(seconds) * 1_000_000_000 + nanos).ok().filter(|_| fits)
}

fn whole(text: &str) -> Option<i64> {
    text.parse::<u32>().ok().map(i64::from)
}

/// The clock time, and the seconds by which its zone is ahead of UTC.
fn zone(time: &str) -> Option<(&str, i64)> {
    if let Some(clock) = time.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let Some(at) = time.rfind(['+', '-']) else { return Some((time, 0)) };
    let (clock, offset) = time.split_at(at);
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) =
        offset[1..].split_once(':').unwrap_or(offset[1..].split_at(offset.len().min(3) - 1));
    let minutes = if minutes.is_empty() { 0 } else { whole(minutes)? };
    Some((clock, sign * (whole(hours)? * 3_600 + minutes * 60)))
}

/// Days since 1970-01-01 in the Gregorian calendar (Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::unix_nanos;

    #[test]
    fn dates_of_public_traces_are_times() {
        assert_eq!(unix_nanos("1970-01-01 00:00:00"), Some(0));
        assert_eq!(unix_nanos("2023-11-16 18:15:46.6805900"), Some(1_700_158_546_680_590_000));
        assert_eq!(unix_nanos("2024-02-29T01:00:00+01:00"), unix_nanos("2024-02-29T00:00:00Z"));
        assert_eq!(unix_nanos("2024-05-10 00:00:00.009930+00:00"), Some(1_715_299_200_009_930_000));
        for odd in ["12.5", "2023-13-01 00:00:00", "soon", "2023-11-16", "2023-11-16 25:00:00"] {
            assert_eq!(unix_nanos(odd), None, "{odd}");
        }
    }
}
