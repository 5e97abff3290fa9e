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

/// A number of what `noun` names, as people read it: times and bytes in a unit that suits them, with three digits.
pub(crate) fn amount(number: u64, noun: &str) -> String {
    const TIMES: [(u64, &str); 3] = [(1_000_000, "s"), (1_000, "ms"), (1, "µs")];
    const BYTES: [(u64, &str); 5] = [
        (1_000_000_000_000, "TB"),
        (1_000_000_000, "GB"),
        (1_000_000, "MB"),
        (1_000, "kB"),
        (1, "B"),
    ];
    let units: &[(u64, &str)] = match noun {
        "µs" => &TIMES,
        "bytes" => &BYTES,
        _ => &[],
    };
    let unit = units
        .iter()
        .find(|(size, _)| number >= *size)
        .or(units.last());
    let Some((size, unit)) = unit else {
        return of_noun(number, noun);
    };
    let value = number as f64 / *size as f64;
    let decimals = match value {
        _ if *size == 1 || value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    match decimals {
        0 => format!("{} {unit}", grouped(value.round() as u64)),
        _ => format!("{value:.decimals$} {unit}"),
    }
}

/// A number of what `noun` names, of one in the singular. Names of events stay as they are.
fn of_noun(number: u64, noun: &str) -> String {
    const PLURALS: [&str; 5] = ["samples", "calls", "operations", "waits", "bytes"];
    let noun = match number {
        1 if PLURALS.contains(&noun) => &noun[..noun.len() - 1],
        _ => noun,
    };
    format!("{} {noun}", grouped(number))
}

/// [`amount`], with the exact number behind it where that is another.
pub(crate) fn exact_amount(number: u64, noun: &str) -> String {
    let (amount, exact) = (amount(number, noun), of_noun(number, noun));
    match amount == exact {
        true => exact,
        false => format!("{amount} ({exact})"),
    }
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

    /// Numbers, what they are of, and how they read: those of `label.js` as well.
    const AMOUNTS: &str = include_str!("amounts.tsv");

    #[test]
    fn amounts_have_three_digits_and_a_unit_that_suits_them() {
        for line in AMOUNTS.lines() {
            let columns: Vec<&str> = line.split('\t').collect();
            let [number, noun, short, exact] = columns[..] else {
                panic!("four columns: {line}");
            };
            let number = number.parse().unwrap();
            assert_eq!(amount(number, noun), short, "{line}");
            assert_eq!(exact_amount(number, noun), exact, "{line}");
        }
    }

    #[test]
    fn what_was_counted_is_never_nothing() {
        assert_eq!(share(1.0, 1e6), "<0.1%");
        assert_eq!(share(0.0, 10.0), "0.0%");
        assert_eq!(share(10.0, 10.0), "100.0%");
        assert_eq!(share(0.0, 0.0), "0.0%");
    }
}
