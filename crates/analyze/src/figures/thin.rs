//! Fewer points that look the same.

use super::Line;

/// At most about `most` points. The time axis is cut into even buckets, and of each bucket the first, smallest,
/// largest and last point stay, so that no extreme and no break is lost.
pub(crate) fn thin(line: Line, most: usize) -> Line {
    let most = most.max(8);
    if line.len() <= most {
        return line;
    }
    let (Some(&first), Some(&last)) = (line.t_s.first(), line.t_s.last()) else { return line };
    let buckets = most / 4;
    let width = (last - first) / buckets as f64;
    let bucket = |index: usize| (((line.t_s[index] - first) / width) as usize).min(buckets - 1);
    let mut kept = Line::default();
    let mut from = 0;
    while from < line.len() {
        let to = (from..line.len()).find(|&index| bucket(index) != bucket(from)).unwrap_or(line.len());
        let known = || (from..to).filter_map(|index| Some((index, line.value[index]?)));
        let mut chosen = vec![from, to - 1];
        chosen.extend(known().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(index, _)| index));
        chosen.extend(known().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(index, _)| index));
        chosen.extend((from..to).find(|&index| line.value[index].is_none()));
        chosen.sort_unstable();
        chosen.dedup();
        for index in chosen {
            kept.push(line.t_s[index], line.value[index]);
        }
        from = to;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::{Line, thin};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn extremes_ends_and_order_survive(
            values in prop::collection::vec(-1e3_f64..1e3, 1..2000),
            most in 8_usize..200,
        ) {
            let t_s: Vec<f64> = (0..values.len()).map(|index| index as f64 * 0.1).collect();
            let line = Line { t_s, value: values.iter().copied().map(Some).collect() };
            let thinned = thin(line.clone(), most);
            prop_assert!(thinned.len() <= most.max(8) + 4);
            prop_assert!(thinned.t_s.is_sorted());
            prop_assert_eq!(thinned.t_s.first(), line.t_s.first());
            prop_assert_eq!(thinned.t_s.last(), line.t_s.last());
            let extremes = |line: &Line| {
                let known = || line.value.iter().flatten().copied();
                (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max))
            };
            prop_assert_eq!(extremes(&thinned), extremes(&line));
        }
    }
}
