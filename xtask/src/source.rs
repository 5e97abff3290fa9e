//! The Rust files of the workspace, and the names that they use.
//!
//! In: files under the packages' folders. Out: their tokens and the paths in them, such as `crate::kernel::Error`. Comments and
//! the insides of strings are no tokens; it never resolves what a name stands for.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use anyhow::{Context as _, Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

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
            collect(&root.join(folder), &mut paths)?;
        }
        paths.sort();
        let read = |path: PathBuf| {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
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

    /// Every path in it, split into its names; a `use` of several things counts once for each.
    pub(crate) fn paths(&self) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        paths_in(self.tokens.clone(), &mut found);
        found
    }
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                collect(&path, paths)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
    Ok(())
}

fn names_in(tokens: TokenStream, found: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => found.push(name.to_string()),
            TokenTree::Group(group) => names_in(group.stream(), found),
            _ => {}
        }
    }
}

fn paths_in(tokens: TokenStream, found: &mut Vec<Vec<String>>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Ident(_) => at = path_at(&tokens, at, &[], found),
            TokenTree::Group(group) => {
                paths_in(group.stream(), found);
                at += 1;
            }
            _ => at += 1,
        }
    }
}

/// Reads the path whose first name is at `at`, behind `prefix`; returns the place after it.
fn path_at(
    tokens: &[TokenTree],
    mut at: usize,
    prefix: &[String],
    found: &mut Vec<Vec<String>>,
) -> usize {
    let mut path = prefix.to_vec();
    while let Some(TokenTree::Ident(name)) = tokens.get(at) {
        path.push(name.to_string());
        at += 1;
        if !(is_colon(tokens.get(at)) && is_colon(tokens.get(at + 1))) {
            break;
        }
        at += 2;
        if let Some(TokenTree::Group(group)) = tokens.get(at)
            && group.delimiter() == Delimiter::Brace
        {
            branches(group.stream(), &path, found);
            return at + 1;
        }
    }
    found.push(path);
    at
}

/// The paths inside the braces of a `use`.
fn branches(tokens: TokenStream, prefix: &[String], found: &mut Vec<Vec<String>>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_comma =
        |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
    for branch in tokens.split(is_comma).filter(|branch| !branch.is_empty()) {
        path_at(branch, 0, prefix, found);
    }
}

fn is_colon(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == ':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let source = Source::new(Path::new("x.rs"), text.to_owned()).expect("Rust");
        source.paths().iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn a_use_counts_once_for_each_of_its_branches() {
        let found = paths("use crate::{kernel::{Error, load::Map as M}, plan, profile::*};");
        for wanted in [
            "crate::kernel::Error",
            "crate::kernel::load::Map",
            "crate::plan",
            "crate::profile",
        ] {
            assert!(
                found.iter().any(|path| path == wanted),
                "{wanted} is not in {found:?}"
            );
        }
    }

    #[test]
    fn paths_within_bodies_and_macros_count() {
        let found = paths("fn f() { g!(\"{}\", crate::kernel::X); aya::Ebpf::load(x) }");
        assert!(found.contains(&"crate::kernel::X".to_owned()));
        assert!(found.contains(&"aya::Ebpf::load".to_owned()));
    }

    #[test]
    fn paths_in_comments_and_strings_do_not_count() {
        let found = paths(
            "//! crate::kernel\n/* aya::x */ const A: &str = \"tokio::spawn\"; /// [`crate::cli`]\nstruct S;",
        );
        assert_eq!(found, ["doc", "const", "A", "str", "doc", "struct", "S"]);
    }
}
