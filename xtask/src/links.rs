//! Links from the documents to files of this repository.
//!
//! In: `README.md`, `CONTRIBUTING.md` and `docs/**/*.md`. Out: the links that lead nowhere. It never asks the network.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::files;

/// Marks before a link's target in Markdown and in the HTML that Markdown may hold, and its ends.
const OPENINGS: [(&str, &[char]); 3] =
    [("](", &[')', ' ']), ("src=\"", &['"']), ("href=\"", &['"'])];

/// Every link to a file that is not there, one sentence each.
pub(crate) fn broken(root: &Path) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    for document in documents(root)? {
        let text = files::read_text(&document)?;
        let folder = document.parent().unwrap_or(root);
        for target in targets(&text) {
            if !folder.join(&target).exists() {
                let shown = document.strip_prefix(root).unwrap_or(&document).display();
                broken.push(format!("{shown} links to {target}, which is not there"));
            }
        }
    }
    Ok(broken)
}

/// The documents at the root and those in `docs` and its folders, in the order of their paths.
pub(crate) fn documents(root: &Path) -> Result<Vec<PathBuf>> {
    let mut documents = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    documents.extend(files::below(&root.join("docs"), "md")?);
    documents.sort();
    Ok(documents)
}

/// The files that a document links to, without the places inside them.
fn targets(text: &str) -> Vec<String> {
    let mut targets = Vec::new();
    for (opening, ends) in OPENINGS {
        for rest in text.split(opening).skip(1) {
            let target = rest.split(ends).next().unwrap_or_default();
            let file = target.split('#').next().unwrap_or_default();
            if !(file.is_empty()
                || file.contains("://")
                || file.starts_with("mailto:")
                || file.contains('\n'))
            {
                targets.push(file.to_owned());
            }
        }
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_repository_are_targets() {
        let text = "[a](docs/a.md#part) [b](https://x.org/y) [c](#here) ![d](d.svg \"title\") <img src=\"e.png\">";
        assert_eq!(targets(text), ["docs/a.md", "d.svg", "e.png"]);
    }
}
