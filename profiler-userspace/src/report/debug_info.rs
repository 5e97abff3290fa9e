//! Debug information that could not be used.
//!
//! In: what did not fit into the memory limit, and which files were missing. Out: findings with a number, a cause and a
//! remedy.

use super::findings::Finding;
use crate::profile::fold::visible;
use crate::symbolize::SkippedDebugInfo;
use crate::text::number::{counted, mebibytes};
use std::cmp::Reverse;

/// So many objects are named, those with the most places first.
const MAX_OBJECTS: usize = 3;

/// Findings on debug information, of which naming may hold so many bytes.
pub(crate) fn on_details(skipped: &SkippedDebugInfo, limit: u64) -> Vec<Finding> {
    let sentences = [on_memory(skipped, limit), on_missing(skipped)];
    sentences.into_iter().flatten().collect()
}

/// The finding on debug information that took more memory than that.
fn on_memory(skipped: &SkippedDebugInfo, limit: u64) -> Option<Finding> {
    let limit = mebibytes(limit);
    if skipped.left.is_empty() {
        return (skipped.again > 0).then(|| {
            Finding::note(format!(
                "debug information of {} did not fit into {limit} and was read in rounds; raise --max-symbol-memory",
                counted(skipped.again as u64, "object"),
            ))
        });
    }
    let mut modules: Vec<(&String, &usize)> = skipped.left.iter().collect();
    modules.sort_by_key(|(_, places)| Reverse(**places));
    let all: usize = skipped.left.values().sum();
    let named: Vec<&str> = modules
        .iter()
        .take(MAX_OBJECTS)
        .map(|(module, _)| module.as_str())
        .collect();
    let more = match modules.len().saturating_sub(named.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(Finding::new(
        "lines",
        format!(
            "{} in {}{more} have no lines or inlined functions: their debug information takes more than {limit}, or too much time; \
             raise --max-symbol-memory",
            counted(all as u64, "place"),
            named.join(", "),
        ),
    ))
}

/// The finding on split debug information that is missing.
fn on_missing(skipped: &SkippedDebugInfo) -> Option<Finding> {
    let all = skipped.missing.iter();
    let (module, (count, such_as)) = all.max_by_key(|(_, (count, _))| *count)?;
    let more = match skipped.missing.len() - 1 {
        0 => String::new(),
        1 => " (and of 1 other object)".to_owned(),
        more => format!(" (and of {more} other objects)"),
    };
    Some(Finding::new(
        "lines",
        format!(
            "{} of split debug information of {module}{more} missing, such as {}: no inlined functions there; keep the .dwo \
             files where they were built, or put {module}.dwp beside the program",
            counted(*count as u64, "file"),
            visible(&such_as.to_string_lossy()),
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(again: usize, left: &[(&str, usize)]) -> Option<String> {
        let left = left
            .iter()
            .map(|(module, places)| ((*module).to_owned(), *places));
        let skipped = SkippedDebugInfo {
            again,
            left: left.collect(),
            ..SkippedDebugInfo::default()
        };
        Some(on_memory(&skipped, 64 << 20)?.text)
    }

    #[test]
    fn debug_information_that_fits_is_not_mentioned() {
        assert_eq!(said(0, &[]), None);
    }

    #[test]
    fn rereads_are_counted() {
        let one = said(1, &[]).unwrap();
        assert!(
            one.starts_with("debug information of 1 object did not fit into 64.0 MiB"),
            "{one}"
        );
        let many = said(1234, &[]).unwrap();
        assert!(
            many.contains("1,234 objects") && many.contains("--max-symbol-memory"),
            "{many}"
        );
    }

    #[test]
    fn files_that_are_missing_are_counted_and_one_is_named() {
        let missing = |all: &[(&str, usize, &str)]| SkippedDebugInfo {
            missing: all
                .iter()
                .map(|(module, count, such_as)| ((*module).to_owned(), (*count, such_as.into())))
                .collect(),
            ..SkippedDebugInfo::default()
        };
        let said = |all| on_details(&missing(all), 1 << 20);
        assert!(said(&[]).is_empty());
        let one = said(&[("a", 1, "/src/a\n.dwo")]).remove(0).text;
        assert!(
            one.starts_with("1 file of split debug information of a missing"),
            "{one}"
        );
        assert!(
            one.contains("/src/a\\n.dwo") && one.contains("put a.dwp"),
            "{one}"
        );
        let two = said(&[("a", 1, "/src/a.dwo"), ("b", 2000, "/src/b.dwo")])
            .remove(0)
            .text;
        assert!(
            two.contains("2,000 files") && two.contains("of b (and of 1 other object)"),
            "{two}"
        );
    }

    #[test]
    fn skipped_debug_information_is_counted_and_named() {
        let left = [("a", 1), ("b", 2000), ("c", 3), ("d", 4), ("e", 5)];
        let text = said(2, &left).unwrap();
        assert!(
            text.starts_with("2,013 places in b, e, d and 2 more have no lines"),
            "{text}"
        );
        assert!(
            text.contains("64.0 MiB") && text.contains("--max-symbol-memory"),
            "{text}"
        );
        assert!(
            said(0, &[("a", 1)])
                .unwrap()
                .starts_with("1 place in a have no lines")
        );
    }
}
