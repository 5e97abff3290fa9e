//! Student's distribution.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// More degrees of freedom make no difference, and the distribution's functions no more precise.
const MAX_FREEDOM: f64 = 1e6;

fn with(freedom: f64) -> StudentsT {
    let freedom = freedom.clamp(1.0, MAX_FREEDOM);
    StudentsT::new(0.0, 1.0, freedom).expect("a scale of one and some freedom")
}

/// How probable a value at least so far from zero is, on either side.
pub(super) fn two_sided(t: f64, freedom: f64) -> f64 {
    match t.is_finite() {
        true => (2.0 * with(freedom).cdf(-t.abs())).clamp(0.0, 1.0),
        false => 0.0,
    }
}

/// How far from zero the middle part of the distribution ends that leaves out `alpha`, half of it on each side.
pub(super) fn quantile(alpha: f64, freedom: f64) -> f64 {
    with(freedom).inverse_cdf(1.0 - alpha.clamp(1e-12, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_printed_tables() {
        for (freedom, alpha, value) in [
            (1.0, 0.05, 12.706),
            (9.0, 0.05, 2.262),
            (30.0, 0.01, 2.750),
            (1e9, 0.05, 1.960),
            (4.0, 0.001, 8.610),
        ] {
            let found = quantile(alpha, freedom);
            assert!((found - value).abs() < 0.001, "{freedom} {alpha}: {found}");
            assert!((two_sided(value, freedom) - alpha).abs() < 1e-4);
            assert!((two_sided(-value, freedom) - alpha).abs() < 1e-4);
        }
        assert!((two_sided(0.0, 5.0) - 1.0).abs() < 1e-12);
        assert!(two_sided(f64::INFINITY, 5.0) < 1e-300);
        assert!(quantile(1e-9, 18.0).is_finite());
    }
}
