//! The Rust files of the workspace, and the names that they use.
//!
//! In: files under the packages' folders. Out: their tokens and the names in them. Comments and the insides of strings are no
//! tokens; it never resolves what a name stands for.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use anyhow::{Result, anyhow};
use proc_macro2::{TokenStream, TokenTree};

use crate::files;

/// The folders that hold Rust code, from the workspace's root.
const FOLDERS: [&str; 5] = [
    "profiler-common",
    "profiler-ebpf",
    "profiler-userspace",
    "tests",
    "xtask",
];

/// One Rust file.
pub(crate) struct Source {
    /// From the workspace's root.
    pub(crate) path: PathBuf,
    /// All of it.
    pub(crate) text: String,
    tokens: TokenStream,
}

impl Source {
    /// Reads every Rust file of the workspace, in the order of their paths.
    pub(crate) fn all(root: &Path) -> Result<Vec<Self>> {
        let mut paths = Vec::new();
        for folder in FOLDERS {
            paths.extend(files::below(&root.join(folder), "rs")?);
        }
        paths.sort();
        let read = |path: PathBuf| {
            let text = files::read_text(&path)?;
            Self::new(path.strip_prefix(root)?, text)
        };
        paths.into_iter().map(read).collect()
    }

    /// Takes `text` for the file at `path`.
    pub(crate) fn new(path: &Path, text: String) -> Result<Self> {
        let tokens =
            TokenStream::from_str(&text).map_err(|error| anyhow!("{}: {error}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            text,
            tokens,
        })
    }

    /// Its tokens.
    pub(crate) fn tokens(&self) -> &TokenStream {
        &self.tokens
    }

    /// Every name in it, as often as it occurs.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut found = Vec::new();
        names_in(self.tokens.clone(), &mut found);
        found
    }

    /// Items that it defines, as keywords and names.
    pub(crate) fn definitions(&self) -> Vec<(String, String)> {
        let names = self.names();
        let pairs = names.windows(2);
        let pairs = pairs.filter(|pair| KEYWORDS.contains(&pair[0].as_str()));
        pairs
            .map(|pair| (pair[0].clone(), pair[1].clone()))
            .collect()
    }
}

/// Keywords with the name of an item behind them.
const KEYWORDS: [&str; 7] = [
    "struct", "enum", "union", "trait", "type", "const", "static",
];

fn names_in(tokens: TokenStream, found: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => found.push(name.to_string()),
            TokenTree::Group(group) => names_in(group.stream(), found),
            _ => {}
        }
    }
}
