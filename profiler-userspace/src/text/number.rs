//! Numbers as people read them.

use std::time::Duration;

/// `1 sample`, `2,000 samples`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let plural = match (count, noun.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{} {noun}{plural}", grouped(count))
}

/// A number with a comma between every three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = groups.map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// A share in percent. What was counted at all is never `0.0%`.
pub(crate) fn share(part: f64, all: f64) -> String {
    let percent = part * 100.0 / all.max(f64::MIN_POSITIVE);
    match part > 0.0 && percent < 0.05 {
        true => "<0.1%".to_owned(),
        false => format!("{percent:.1}%"),
    }
}

/// A time for people.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

/// A number of bytes for people.
pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_in_threes() {
        let read = [0, 999, 1_000, 1_234_567].map(grouped);
        assert_eq!(read, ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn what_was_counted_is_never_nothing() {
        assert_eq!(share(1.0, 1e6), "<0.1%");
        assert_eq!(share(0.0, 10.0), "0.0%");
        assert_eq!(share(10.0, 10.0), "100.0%");
        assert_eq!(share(0.0, 0.0), "0.0%");
    }
}
