//! Which files of a crate use which others.
//!
//! In: a crate's Rust files. Out: for each file, the files of the same crate that hold what it names, wherever that is
//! re-exported. Left out are code that only tests compile, and what a file uses of the modules below it: they are its parts.
//! Never: types. A method that is called on a value leads nowhere here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::source::Source;

/// How often a name may be re-exported before it counts as lost: two files may re-export from each other.
const MAX_HOPS: usize = 8;

/// The files of one crate, and which others each of them uses.
pub(crate) type Graph = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// The graph of the crate whose sources lie in `folder`, such as `xtask/src`.
pub(crate) fn graph(sources: &[Source], folder: &Path) -> Graph {
    let mut files: BTreeMap<Vec<String>, (PathBuf, Names)> = sources
        .iter()
        .filter_map(|source| {
            let module = module(source.path.strip_prefix(folder).ok()?);
            Some((module, (source.path.clone(), Names::of(source))))
        })
        .collect();
    let tests: Vec<Vec<String>> = files
        .iter()
        .flat_map(|(module, (_, names))| names.tests.iter().map(|test| child(module, test)))
        .collect();
    files.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
    let modules = Modules {
        files,
        library: library(folder),
    };
    let uses = |(module, (path, names)): (&Vec<String>, &(PathBuf, Names))| {
        let paths = names.private_uses().chain(&names.paths);
        let holders = paths.filter_map(|path| modules.holder(module, path));
        let others = holders.filter(|other| !other.starts_with(module));
        let used = others.filter_map(|other| Some(modules.files.get(&other)?.0.clone()));
        (path.clone(), used.collect())
    };
    modules.files.iter().map(uses).collect()
}

/// Name of the crate whose sources lie in `folder`, in paths of its own files that call it by name.
fn library(folder: &Path) -> &'static str {
    if folder.starts_with("profiler-common") {
        "profiler_common"
    } else if folder.starts_with("profiler-userspace") {
        "flame_bpf"
    } else {
        "crate"
    }
}

/// The module that a file of a crate holds; none of the names stands for the crate's root.
fn module(path: &Path) -> Vec<String> {
    let path = path.with_extension("");
    let names = path.iter().map(|name| name.to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    if let [root] = names.as_slice()
        && (root == "lib" || root == "main")
    {
        // A package with both has two crates; the smaller one is known by a name that no module has.
        return if root == "lib" {
            Vec::new()
        } else {
            vec!["main.rs".to_owned()]
        };
    }
    names.retain(|name| name != "mod");
    names
}

fn child(module: &[String], name: &str) -> Vec<String> {
    [module, &[name.to_owned()]].concat()
}

struct Modules {
    files: BTreeMap<Vec<String>, (PathBuf, Names)>,
    /// The crate's name in paths: that of another crate leads to nothing here.
    library: &'static str,
}

/// Where a path leads.
enum PathTarget {
    Module(Vec<String>),
    /// Something in this module, or in something of it.
    Item(Vec<String>),
}

impl Modules {
    /// The module that holds what `path` stands for in the module `here`. A whole module is held by nobody: what is used of it
    /// is another path.
    fn holder(&self, here: &[String], path: &[String]) -> Option<Vec<String>> {
        match self.place(here, path, MAX_HOPS)? {
            PathTarget::Module(_) => None,
            PathTarget::Item(module) => Some(module),
        }
    }

    fn place(&self, here: &[String], path: &[String], hops: usize) -> Option<PathTarget> {
        let hops = hops.checked_sub(1)?;
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            name if name == "crate" || name == self.library => {
                self.within(self.root(first, here), rest, hops)
            }
            "flame_bpf" | "profiler_common" => None,
            "self" => self.within(here.to_vec(), rest, hops),
            "super" => {
                let (_, parent) = here.split_last()?;
                let mut rest = rest.to_vec();
                rest.insert(0, "self".to_owned());
                self.place(parent, &rest, hops)
            }
            _ => self.member(here, first, rest, hops),
        }
    }

    fn root(&self, first: &str, here: &[String]) -> Vec<String> {
        let alone = vec!["main.rs".to_owned()];
        let is_binary = !self.files.contains_key(&Vec::new()) || here == alone;
        if first == "crate" && is_binary {
            alone
        } else {
            Vec::new()
        }
    }

    fn within(&self, module: Vec<String>, rest: &[String], hops: usize) -> Option<PathTarget> {
        let Some((next, behind)) = rest.split_first() else {
            return Some(PathTarget::Module(module));
        };
        if next == "self" || next == "super" {
            return self.place(&module, rest, hops);
        }
        self.member(&module, next, behind, hops)
            .or(Some(PathTarget::Item(module)))
    }

    /// The meaning of `name` in a module: a module below it, or an item that a `use` brings there.
    fn member(
        &self,
        module: &[String],
        name: &str,
        rest: &[String],
        hops: usize,
    ) -> Option<PathTarget> {
        let top: &[String] = if module == ["main.rs"] { &[] } else { module };
        let below = child(top, name);
        if self.files.contains_key(&below) {
            return self.within(below, rest, hops);
        }
        let names = &self.files.get(module)?.1;
        if names.items.contains(name) {
            return Some(PathTarget::Item(module.to_vec()));
        }
        for used in names.uses.iter().filter(|used| used.name == name) {
            let whole = [used.path.as_slice(), rest].concat();
            if let Some(place) = self.place(module, &whole, hops) {
                return Some(place);
            }
        }
        for glob in names.uses.iter().filter(|used| used.name == "*") {
            if let Some(PathTarget::Module(other)) = self.place(module, &glob.path, hops)
                && self
                    .files
                    .get(&other)
                    .is_some_and(|(_, names)| names.items.contains(name))
            {
                return Some(PathTarget::Item(other));
            }
        }
        None
    }
}

/// An item that a `use` brings into a file.
/// Every path in a file, tests' included, split into its names; a `use` of several things counts once for each.
pub(crate) fn paths(source: &Source) -> Vec<Vec<String>> {
    let mut names = Names {
        are_tests_read: true,
        ..Names::default()
    };
    names.read(source.tokens().clone(), 0);
    let used = names.uses.into_iter().map(|used| used.path);
    used.chain(names.paths).collect()
}

struct Use {
    path: Vec<String>,
    /// The name that it has there; `*` for all that is in `path`.
    name: String,
    is_public: bool,
}

/// The names that a file has and uses outside its tests.
#[derive(Default)]
struct Names {
    /// Whether code that only tests compile is read as well.
    are_tests_read: bool,
    uses: Vec<Use>,
    /// Paths of two names or more.
    paths: Vec<Vec<String>>,
    items: BTreeSet<String>,
    /// The modules that only tests compile.
    tests: BTreeSet<String>,
}

impl Names {
    fn of(source: &Source) -> Self {
        let mut names = Self::default();
        names.read(source.tokens().clone(), 0);
        names
    }

    fn private_uses(&self) -> impl Iterator<Item = &Vec<String>> {
        let private = self.uses.iter().filter(|used| !used.is_public);
        private.map(|used| &used.path)
    }

    /// Reads code that lies `depth` modules deep in the file.
    fn read(&mut self, tokens: TokenStream, depth: usize) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        let mut is_public = false;
        while let Some(token) = tokens.get(at) {
            let word = match token {
                TokenTree::Ident(word) => word.to_string(),
                TokenTree::Group(group) => {
                    self.read(group.stream(), depth);
                    at += 1;
                    continue;
                }
                TokenTree::Punct(mark)
                    if mark.as_char() == '#'
                        && !self.are_tests_read
                        && is_test(tokens.get(at + 1)) =>
                {
                    at = self.skip_test(&tokens, at + 2);
                    continue;
                }
                _ => {
                    at += 1;
                    continue;
                }
            };
            match word.as_str() {
                "pub" => {
                    is_public = true;
                    at += 1 + usize::from(is_group(tokens.get(at + 1), Delimiter::Parenthesis));
                    continue;
                }
                "use" => at = self.read_use(&tokens, at + 1, is_public, depth),
                "mod" if is_group(tokens.get(at + 2), Delimiter::Brace) => {
                    if let Some(TokenTree::Group(group)) = tokens.get(at + 2) {
                        self.read(group.stream(), depth + 1);
                    }
                    at += 3;
                }
                "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static" => {
                    if let Some(TokenTree::Ident(name)) = tokens.get(at + 1) {
                        self.items.insert(name.to_string());
                    }
                    at += 1;
                }
                _ => at = self.read_path(&tokens, at, depth),
            }
            is_public = false;
        }
    }

    /// Passes what stands behind `#[cfg(test)]`; returns the place after it.
    fn skip_test(&mut self, tokens: &[TokenTree], mut at: usize) -> usize {
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Ident(word) if word == "mod" => {
                    if let Some(TokenTree::Ident(name)) = tokens.get(at + 1) {
                        self.tests.insert(name.to_string());
                    }
                }
                TokenTree::Punct(mark) if matches!(mark.as_char(), ';' | ',') => return at + 1,
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return at + 1,
                _ => {}
            }
            at += 1;
        }
        at
    }

    fn read_use(
        &mut self,
        tokens: &[TokenTree],
        at: usize,
        is_public: bool,
        depth: usize,
    ) -> usize {
        let rest = tokens.get(at..).unwrap_or_default();
        let is_end =
            |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ';');
        let end = rest.iter().position(is_end).unwrap_or(rest.len());
        let mut found = Vec::new();
        branch(&rest[..end], Vec::new(), &mut found);
        for (path, name) in found {
            let path = lifted(path, depth);
            self.uses.push(Use {
                path,
                name,
                is_public,
            });
        }
        at + end
    }

    fn read_path(&mut self, tokens: &[TokenTree], mut at: usize, depth: usize) -> usize {
        let mut path = Vec::new();
        while let Some(TokenTree::Ident(name)) = tokens.get(at) {
            path.push(name.to_string());
            at += 1;
            if !are_colons(&tokens[at..]) {
                break;
            }
            at += 2;
        }
        if path.len() > 1 {
            self.paths.push(lifted(path, depth));
        }
        at
    }
}

/// Reads one branch of a `use`, behind `path`.
fn branch(tokens: &[TokenTree], mut path: Vec<String>, found: &mut Vec<(Vec<String>, String)>) {
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Ident(word) if word == "as" => {
                if let Some(name) = tokens.get(at + 1) {
                    found.push((path, name.to_string()));
                }
                return;
            }
            TokenTree::Ident(word) => path.push(word.to_string()),
            TokenTree::Punct(mark) if mark.as_char() == '*' => {
                found.push((path, "*".to_owned()));
                return;
            }
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ',');
                for one in inner.split(is_comma).filter(|one| !one.is_empty()) {
                    branch(one, path.clone(), found);
                }
                return;
            }
            _ => {}
        }
        at += 1;
    }
    if path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    if let Some(name) = path.last().cloned() {
        found.push((path, name));
    }
}

/// A path from `depth` modules deep in a file, as the file itself would write it.
fn lifted(mut path: Vec<String>, depth: usize) -> Vec<String> {
    let ups = path
        .iter()
        .take_while(|name| *name == "super")
        .count()
        .min(depth);
    path.drain(..ups);
    if ups > 0 && path.first().is_none_or(|name| name != "super") {
        path.insert(0, "self".to_owned());
    }
    path
}

fn are_colons(tokens: &[TokenTree]) -> bool {
    let is_colon =
        |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ':');
    tokens.len() >= 2 && tokens[..2].iter().all(is_colon)
}

fn is_group(token: Option<&TokenTree>, delimiter: Delimiter) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == delimiter)
}

/// Whether an attribute's brackets hold `cfg(test)`.
fn is_test(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.stream().to_string().replace(' ', "") == "cfg(test)")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::new(Path::new("x.rs"), text.to_owned()).expect("Rust")
    }

    fn shown(text: &str) -> Vec<String> {
        let found = paths(&source(text));
        found.iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn a_use_counts_once_for_each_of_its_branches() {
        let found = shown("use crate::{kernel::{Error, load::Map as M}, plan, profile::*};");
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
        let found = shown("fn f() { g!(\"{}\", crate::kernel::X); aya::Ebpf::load(x) }");
        assert!(found.contains(&"crate::kernel::X".to_owned()));
        assert!(found.contains(&"aya::Ebpf::load".to_owned()));
    }

    #[test]
    fn paths_in_comments_and_strings_do_not_count() {
        let text = "//! crate::kernel\n/* aya::x */ const A: &str = \"tokio::spawn\"; /// [`crate::cli`]\nstruct S;";
        assert_eq!(shown(text), Vec::<String>::new());
        let names = ["doc", "const", "A", "str", "doc", "struct", "S"];
        assert_eq!(source(text).names(), names);
    }
}
