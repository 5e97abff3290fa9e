//! Source that outputs show beside what was counted in it.
//!
//! In: lines of files, by the paths that functions have. Out: the same lines, one or all of a file.
//! Never: reads a file.

use std::collections::BTreeMap;

/// Lines of source files, by the paths that functions have, as readers see these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceText(BTreeMap<String, SourceFile>);

/// Lines of a source file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFile {
    /// The file that was read.
    pub found_at: String,
    /// Whether it was written after the recording began, so that its lines may be others.
    pub is_newer: bool,
    /// Runs of lines, in order and without overlaps.
    pub runs: Vec<SourceRun>,
}

/// Lines that follow one another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceRun {
    /// The number of the first one, from 1.
    pub first: u32,
    /// Their texts: printable characters, without line breaks.
    pub lines: Vec<String>,
}

impl SourceText {
    /// Adds the file of functions that have this path.
    pub fn insert(&mut self, path: String, file: SourceFile) {
        self.0.insert(path, file);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All files, by the paths that functions have.
    pub fn files(&self) -> impl Iterator<Item = (&str, &SourceFile)> {
        self.0.iter().map(|(path, file)| (&**path, file))
    }

    /// The text of a line, if it is here.
    pub fn line(&self, path: &str, number: u32) -> Option<&str> {
        let runs = &self.0.get(path)?.runs;
        let behind = runs.partition_point(|run| run.first <= number);
        let run = runs[..behind].last()?;
        let line = run.lines.get((number - run.first) as usize)?;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_their_numbers_alone() {
        let run = |first, lines: &[&str]| SourceRun {
            first,
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        };
        let mut text = SourceText::default();
        let file = SourceFile {
            runs: vec![run(3, &["three", "four"]), run(9, &["nine"])],
            ..SourceFile::default()
        };
        text.insert("/a.c".to_owned(), file);
        let found: Vec<_> = (0..12).filter_map(|at| text.line("/a.c", at)).collect();
        assert_eq!(found, ["three", "four", "nine"]);
        assert_eq!(text.line("/a.c", 9), Some("nine"));
        assert_eq!(text.line("/b.c", 9), None);
    }
}
