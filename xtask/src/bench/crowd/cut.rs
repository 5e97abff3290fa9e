//! Stacks that were cut, by flame-bpf's own JSON.
//!
//! In: a profile as JSON. Out: of the samples whose stack has a user part, the share that ends
//! with a mark in place of a root. What flame-bpf spent itself does not count.

use anyhow::{Context as _, Result};
use serde_json::Value;

/// The mark that stands for all stacks of flame-bpf itself.
const PROFILER: &str = "[profiler]";

/// In percent.
///
/// # Errors
/// When the text is no profile, or has no such samples.
pub(super) fn share(json: &str) -> Result<f64> {
    let profile: Value = serde_json::from_str(json).context("the profile is no JSON")?;
    let column = |of: &str, name: &str| -> Result<&Vec<Value>> {
        let column = profile[of][name].as_array();
        column.with_context(|| format!("the profile has no {name} of {of}"))
    };
    let (parents, frames) = (column("nodes", "parent")?, column("nodes", "frame")?);
    let (kinds, called) = (column("frames", "kind")?, column("frames", "name")?);
    let names = profile["names"].as_array();
    let names = names.context("the profile has no names")?;
    let counts = column("samples", "count")?;
    let place = |value: &Value| value.as_u64().and_then(|place| usize::try_from(place).ok());
    let (mut cut, mut all) = (0, 0);
    for (node, count) in column("samples", "node")?.iter().zip(counts) {
        let mut node = place(node).context("a sample has no node")?;
        while let Some(parent) = parents.get(node).and_then(place) {
            node = parent;
        }
        let frame = frames.get(node).and_then(place);
        let kind = frame.and_then(|frame| kinds.get(frame)?.as_str());
        let count = count.as_u64().context("a sample has no count")?;
        let name = frame.and_then(|frame| names.get(place(called.get(frame)?)?)?.as_str());
        if name == Some(PROFILER) {
            continue;
        }
        match kind.context("a node has no frame")? {
            "kernel" | "state" => {}
            "mark" => (cut, all) = (cut + count, all + count),
            _ => all += count,
        }
    }
    anyhow::ensure!(all > 0, "no sample is of user code");
    Ok(cut as f64 / all as f64 * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = r#"{
        "names": ["main", "[truncated]", "[profiler]"],
        "frames": {"kind": ["user", "mark", "kernel", "mark"], "name": [0, 1, 0, 2]},
        "nodes": {"parent": [null, 0, null, 2, null, null], "frame": [0, 2, 1, 0, 2, 3]},
        "samples": {"node": [1, 0, 3, 4, 5], "count": [5, 1, 2, 100, 7]}
    }"#;

    #[test]
    fn stacks_that_begin_with_a_mark_are_cut_and_kernel_threads_do_not_count() {
        assert!((share(PROFILE).expect("a profile") - 25.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_profile_is_refused() {
        assert!(share("{}").is_err() && share("no").is_err());
        let empty = PROFILE.replace("[5, 1, 2, 100, 7]", "[0, 0, 0, 100, 7]");
        assert!(share(&empty).is_err());
    }
}
