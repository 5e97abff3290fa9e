//! Two columns: a stack, what was counted before, what was counted after. What draws differential graphs reads this.

use crate::diff::Comparison;
use crate::profile::{Frame, fold};
use std::io::{self, Write};

/// Writes a line for each stack.
pub(super) fn write(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let mut path: Vec<String> = Vec::new();
    for node in comparison.nodes.iter() {
        path.truncate(node.depth);
        let kind = node.class.frame_kind();
        let name = node.name.to_string();
        path.push(fold::frame_name(&Frame::new(name, kind), false).into_owned());
        let [before, after] = node.own_weights.map(|weight| comparison.unit.shown(weight));
        if before > 0 || after > 0 {
            writeln!(out, "{} {before} {after}", path.join(";"))?;
        }
    }
    Ok(())
}
