//! Straight lines.

/// An ordinary least-squares line y = intercept + slope · x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// Value at x = 0.
    pub intercept: f64,
    /// Slope: change in y per unit of x.
    pub slope: f64,
    /// Share of the variance that the line explains.
    pub r2: f64,
}

/// The least-squares line through the points; absent below two points, or where all x are the same.
pub fn least_squares(points: impl Iterator<Item = (f64, f64)> + Clone) -> Option<Fit> {
    let n = points.clone().count() as f64;
    if n < 2.0 {
        return None;
    }
    let (sum_x, sum_y) = points.clone().fold((0.0, 0.0), |(sx, sy), (x, y)| (sx + x, sy + y));
    let (mean_x, mean_y) = (sum_x / n, sum_y / n);
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in points {
        let (dx, dy) = (x - mean_x, y - mean_y);
        xx += dx * dx;
        xy += dx * dy;
        yy += dy * dy;
    }
    if xx <= 0.0 {
        return None;
    }
    let slope = xy / xx;
    // A constant y is explained whole by a level line.
    let r2 = if yy > 0.0 { xy * xy / (xx * yy) } else { 1.0 };
    Some(Fit { intercept: mean_y - slope * mean_x, slope, r2 })
}

#[cfg(test)]
mod tests {
    use super::least_squares;

    #[test]
    fn agrees_with_scipy() {
        // scipy.stats.linregress([0, 1, 2, 4, 7], [1, 3, 2, 5, 9])
        let points = [(0.0, 1.0), (1.0, 3.0), (2.0, 2.0), (4.0, 5.0), (7.0, 9.0)];
        let fit = least_squares(points.into_iter()).unwrap();
        assert!((fit.slope - 1.103_896_103_896_104).abs() < 1e-12);
        assert!((fit.intercept - 0.909_090_909_090_909_2).abs() < 1e-12);
        assert!((fit.r2 - 0.938_311_688_311_688_4).abs() < 1e-12);
    }

    #[test]
    fn no_line_through_one_point_or_a_vertical() {
        assert_eq!(least_squares([(1.0, 1.0)].into_iter()), None);
        assert_eq!(least_squares([(1.0, 1.0), (1.0, 2.0)].into_iter()), None);
    }
}
