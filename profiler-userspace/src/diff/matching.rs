//! Which function of one build is which of another.
//!
//! In: a frame's name. Out: the part of it that stays the same when the program is built again: compilers number what they
//! copy, split and hash. Code without a name is known by its module, and by its offset if that was not built again;
//! a script or class that was renamed by the functions in it.
//! Never: a guess from where a function is called.

use crate::profile::{Frame, FrameKind, Profile};
use profiler_common::runtime::RuntimeKind;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Suffixes that compilers and linkers add to the name of a part or a copy of a function, each
/// perhaps with a number.
const PARTS: [&str; 6] = ["isra", "constprop", "part", "cold", "lto_priv", "llvm"];

/// Classes of frames, which are told apart even if their names are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// A process or thread.
    Owner,
    /// Code of the program, its libraries, or what a runtime made of it, inlined or not.
    User,
    /// Code of the kernel.
    Kernel,
    /// A mark: it stands for no function.
    Mark,
}

impl Class {
    /// That of a kind of frame.
    pub fn of(kind: FrameKind) -> Self {
        match kind {
            FrameKind::Process | FrameKind::Label => Self::Owner,
            FrameKind::User | FrameKind::Jit | FrameKind::Inlined | FrameKind::Interpreted(_) => {
                Self::User
            }
            FrameKind::Kernel => Self::Kernel,
            FrameKind::Mark | FrameKind::State(_) => Self::Mark,
        }
    }

    /// The kind of frame that stands for it.
    pub fn frame_kind(self) -> FrameKind {
        match self {
            Self::Owner => FrameKind::Process,
            Self::User => FrameKind::User,
            Self::Kernel => FrameKind::Kernel,
            Self::Mark => FrameKind::Mark,
        }
    }

    /// Whether it is of functions.
    pub fn is_code(self) -> bool {
        matches!(self, Self::User | Self::Kernel)
    }
}

/// Facts of both sides by which frames are matched.
#[derive(Debug, Default)]
pub(super) struct Matching {
    /// The modules that both sides ran in the same builds, as their build IDs say.
    same_builds: HashSet<String>,
    /// Source files and classes of interpreted functions that are called differently before, by their names after.
    files: HashMap<String, String>,
}

impl Matching {
    /// That of both sides.
    pub(super) fn new(sides: &[Vec<Profile>; 2]) -> Self {
        Self {
            same_builds: same_builds(sides),
            files: renamed(sides),
        }
    }

    /// The name that a frame is matched by on both sides.
    pub(super) fn stable<'a>(&self, frame: &'a Frame) -> Cow<'a, str> {
        let name = &frame.name;
        match Class::of(frame.kind) {
            Class::Owner => owner(name),
            Class::Mark => Cow::Borrowed(name),
            // A file tells what has no name of its own: `<module> (a.py:1)`.
            _ if frame.kind == JAVA => self.method(name),
            _ if matches!(frame.kind, FrameKind::Interpreted(_)) => self.interpreted(name),
            _ if unnamed(name).is_some_and(|module| self.same_builds.contains(module)) => {
                Cow::Borrowed(name)
            }
            _ => code(name),
        }
    }

    /// `A.f` of `B.f (B.java:12)`, where the class is called `A` on the other side.
    fn method<'a>(&self, name: &'a str) -> Cow<'a, str> {
        let name = without_line(name);
        let renamed = split_class(name).and_then(|(class, method)| {
            let class = self.files.get(class)?;
            Some(format!("{class}.{method}"))
        });
        renamed.map_or(Cow::Borrowed(name), Cow::Owned)
    }

    /// `f (a.py)` of `f (a.py:12)`, where the file may have another name on the other side.
    fn interpreted<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match split_line(name) {
            Some((function, file)) => {
                let file = self.files.get(file).map_or(file, |file| &**file);
                Cow::Owned(format!("{function} ({file})"))
            }
            None => Cow::Borrowed(name),
        }
    }
}

/// Modules of one build on both sides.
fn same_builds(sides: &[Vec<Profile>; 2]) -> HashSet<String> {
    let [before, after] = sides.each_ref().map(|profiles| {
        let mut builds: HashMap<&str, HashSet<&[u8]>> = HashMap::new();
        for mapping in profiles.iter().flat_map(Profile::mappings) {
            let ids = builds.entry(&mapping.module).or_default();
            ids.insert(&mapping.build_id);
        }
        builds
    });
    let is_same = |module: &str, ids: &HashSet<&[u8]>| {
        after.get(module) == Some(ids) && ids.len() == 1 && ids.iter().all(|id| !id.is_empty())
    };
    before
        .iter()
        .filter(|(module, ids)| is_same(module, ids))
        .map(|(module, _)| (*module).to_owned())
        .collect()
}

/// Methods, which are known by their class; its file may have any name.
const JAVA: FrameKind = FrameKind::Interpreted(RuntimeKind::HotSpot);

/// The files and classes of one side, each with its functions.
type Files<'p> = BTreeMap<&'p str, HashSet<&'p str>>;

/// Files and classes that only one side has, taken for one with a file that only the other has: those that share most functions by name,
/// and at least half of them. From the name after to the name before.
fn renamed(sides: &[Vec<Profile>; 2]) -> HashMap<String, String> {
    let [before, after] = sides.each_ref().map(|profiles| files(profiles));
    let alone = |one: &Files<'_>, other: &Files<'_>| -> Vec<String> {
        let names = one.keys().filter(|name| !other.contains_key(*name));
        names.map(|name| (*name).to_owned()).collect()
    };
    let (only_before, only_after) = (alone(&before, &after), alone(&after, &before));
    let mut with: HashMap<&str, Vec<&str>> = HashMap::new();
    for new in &only_after {
        for function in &after[&**new] {
            with.entry(*function).or_default().push(new);
        }
    }
    // One name, as `<module>`, says something only where there is no choice.
    let least = match [only_before.len(), only_after.len()] {
        [1, 1] => 1,
        _ => 2,
    };
    let mut pairs: Vec<(usize, &str, &str)> = Vec::new();
    for old in &only_before {
        let functions = &before[&**old];
        let mut shared: BTreeMap<&str, usize> = BTreeMap::new();
        for new in functions
            .iter()
            .filter_map(|function| with.get(function))
            .flatten()
        {
            *shared.entry(*new).or_default() += 1;
        }
        let of_smaller = |new: &str| functions.len().min(after[new].len());
        let alike = shared
            .into_iter()
            .filter(|(new, shared)| *shared >= least && *shared * 2 >= of_smaller(new));
        pairs.extend(alike.map(|(new, shared)| (shared, &**old, new)));
    }
    // The most first, and then by name.
    pairs.sort_by_key(|(shared, old, new)| (Reverse(*shared), *old, *new));
    let mut taken: HashSet<&str> = HashSet::new();
    let mut renamed = HashMap::new();
    for (_, old, new) in pairs {
        if !renamed.contains_key(new) && taken.insert(old) {
            renamed.insert(new.to_owned(), old.to_owned());
        }
    }
    renamed
}

/// Source files of interpreted functions, without directories, as names have them; of methods, classes.
fn files(profiles: &[Profile]) -> Files<'_> {
    let mut files = Files::new();
    for profile in profiles {
        let all = profile.locations().iter();
        let interpreted = all.filter(|location| matches!(location.kind, FrameKind::Interpreted(_)));
        let lines = |location| profile.lines_at(location).iter();
        let lines = interpreted.flat_map(|location| {
            let is_java = location.kind == JAVA;
            lines(location).map(move |line| (line, is_java))
        });
        for (line, is_java) in lines {
            let function = profile.function_at(line.function);
            if is_java {
                // Each class has these.
                let says = |method: &str| !["<init>", "<clinit>"].contains(&method);
                let split = split_class(without_line(&function.name));
                if let Some((class, method)) = split.filter(|(_, method)| says(method)) {
                    files.entry(class).or_default().insert(method);
                }
                continue;
            }
            let of_name = split_line(&function.name);
            let name = of_name.map_or(&*function.name, |(name, _)| name);
            let path = function.file.rsplit('/').next().unwrap_or_default();
            let file = of_name.map_or(path, |(_, file)| file);
            if !file.is_empty() {
                files.entry(file).or_default().insert(name);
            }
        }
    }
    files
}

/// Threads of a pool are numbered in any order: `worker-3` is `worker-0`.
fn owner(name: &str) -> Cow<'_, str> {
    if let Some(rest) = name.strip_prefix("kworker/")
        && !rest.is_empty()
    {
        return Cow::Borrowed("kworker");
    }
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let stem = &name[..name.len() - digits];
    match digits > 0 && stem.ends_with(['-', '/', '#', ':', '_', ' ']) {
        true => Cow::Owned(format!("{stem}0")),
        false => Cow::Borrowed(name),
    }
}

fn code(name: &str) -> Cow<'_, str> {
    if let Some(module) = unnamed(name) {
        return Cow::Owned(format!("[{}]", without_version(module)));
    }
    let name = without_line(name);
    let mut stem = without_parts(name);
    if let Some((path, hash)) = stem.rsplit_once("::h")
        && hash.len() == 16
        && hash.bytes().all(|b| b.is_ascii_hexdigit())
    {
        stem = path;
    }
    match stem.contains('#') {
        true => Cow::Owned(without_numbers(stem)),
        false => Cow::Borrowed(stem),
    }
}

/// The module of `[module+0x1f]`.
fn unnamed(name: &str) -> Option<&str> {
    let inside = name.strip_prefix('[')?.strip_suffix(']')?;
    let (module, offset) = inside.rsplit_once("+0x")?;
    let is_offset = !offset.is_empty() && offset.bytes().all(|b| b.is_ascii_hexdigit());
    is_offset.then_some(module)
}

/// `libssl.so.3` is `libssl.so`.
fn without_version(module: &str) -> &str {
    match module.find(".so.") {
        Some(at) => &module[..at + 3],
        None => module,
    }
}

/// Without ` (file.c:12)`.
fn without_line(name: &str) -> &str {
    split_line(name).map_or(name, |(function, _)| function)
}

/// Function and file of `f (file.c:12)`.
fn split_line(name: &str) -> Option<(&str, &str)> {
    let (function, place) = name.strip_suffix(')')?.rsplit_once(" (")?;
    let (file, number) = place.rsplit_once(':')?;
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    is_number.then_some((function, file))
}

/// The class and the name of a method, `shop.Cart` and `add(int)` of `shop.Cart.add(int)`.
fn split_class(method: &str) -> Option<(&str, &str)> {
    let end = method.find('(').unwrap_or(method.len());
    let dot = method[..end].rfind('.')?;
    Some((&method[..dot], &method[dot + 1..]))
}

/// Without `.isra.0`, `.cold` and the like, as linkers write them or as demanglers do: ` [clone .isra.0]`.
fn without_parts(name: &str) -> &str {
    let mut stem = name;
    loop {
        let shorter = match stem.strip_suffix(']') {
            Some(cloned) => cloned
                .rsplit_once(" [clone .")
                .filter(|(_, part)| is_part(part))
                .map(|(function, _)| function),
            None => without_part(stem),
        };
        match shorter.filter(|shorter| !shorter.is_empty()) {
            Some(shorter) => stem = shorter,
            None => return stem,
        }
    }
}

fn without_part(name: &str) -> Option<&str> {
    let (stem, last) = name.rsplit_once('.')?;
    if is_part(last) {
        return Some(stem);
    }
    let is_number = !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit());
    let (stem, part) = stem.rsplit_once('.')?;
    (is_number && is_part(part)).then_some(stem)
}

/// Whether a text is a part's name, perhaps with its number.
fn is_part(text: &str) -> bool {
    let word = text.split('.').next().unwrap_or_default();
    let behind = text[word.len()..].trim_start_matches('.');
    PARTS.contains(&word) && behind.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// Without the numbers of closures and the like, in the order of the source: `{closure#1}`, `{lambda()#2}`.
fn without_numbers(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((front, behind)) = rest.split_once('#') {
        let digits = behind.len()
            - behind
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .len();
        let is_number = digits > 0 && behind[digits..].starts_with('}');
        text.push_str(front);
        if !is_number {
            text.push('#');
            rest = behind;
            continue;
        }
        rest = &behind[digits..];
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::fold::parse;
    use crate::profile::{Mapping, Unit, Window};

    use proptest::prelude::*;

    #[test]
    fn what_a_build_numbers_is_left_out() {
        for (name, stable) in [
            ("parse_value.isra.0", "parse_value"),
            ("parse_value.constprop.0.isra.12", "parse_value"),
            ("parse_value.cold", "parse_value"),
            ("parse_value.part.3.cold", "parse_value"),
            ("parse_value.cold.7", "parse_value"),
            ("memo.lto_priv.0", "memo"),
            ("drop.llvm.1234567890", "drop"),
            ("foo(int) [clone .isra.0]", "foo(int)"),
            ("foo(int) [clone .part.0] [clone .cold]", "foo(int)"),
            ("core::fmt::write::h0123456789abcdef", "core::fmt::write"),
            ("a::b::{closure#12}", "a::b::{closure}"),
            (
                "f()::{lambda(int)#1}::operator()",
                "f()::{lambda(int)}::operator()",
            ),
            ("work (file.c:12)", "work"),
            ("[libssl.so.3+0x1f]", "[libssl.so]"),
            ("[redis-server+0xabc]", "[redis-server]"),
            // These mean what they say.
            ("partial.0", "partial.0"),
            ("a.party", "a.party"),
            (".cold", ".cold"),
            ("x::half", "x::half"),
            ("color#fff", "color#fff"),
            ("f(std::map<int>)", "f(std::map<int>)"),
            ("[unknown]", "[unknown]"),
        ] {
            assert_eq!(code(name), stable);
        }
    }

    #[test]
    fn interpreted_functions_keep_their_file() {
        let kind = FrameKind::Interpreted(RuntimeKind::CPython);
        let stable = |name: &str| {
            let frame = Frame::new(name, kind);
            Matching::default().stable(&frame).into_owned()
        };
        assert_eq!(stable("<module> (a.py:1)"), "<module> (a.py)");
        assert_eq!(stable("f.part.0 (b)"), "f.part.0 (b)");
    }

    /// The stable name of a function in two profiles, of a stack for each of these names.
    fn matched(runtime: RuntimeKind, sides: [[&str; 4]; 2]) -> impl Fn(&str) -> String {
        let short = runtime.short();
        let sides = sides.map(|names| {
            let lines = names.map(|name| format!("app;{name}_[{short}] 1\n"));
            vec![parse(lines.concat().as_bytes(), Unit::Samples).unwrap()]
        });
        let matching = Matching::new(&sides);
        let kind = FrameKind::Interpreted(runtime);
        move |name| matching.stable(&Frame::new(name, kind)).into_owned()
    }

    #[test]
    fn a_script_is_known_by_its_functions_where_its_name_has_changed() {
        let before = [
            "<module> (app.py:1)",
            "<genexpr> (app.py:7)",
            "<module> (lib.py:1)",
            "<module> (old.py:1)",
        ];
        let after = [
            "<module> (app2.py:1)",
            "<genexpr> (app2.py:9)",
            "<module> (lib.py:1)",
            "run (new.py:4)",
        ];
        let stable = matched(RuntimeKind::CPython, [before, after]);
        assert_eq!(stable("<module> (app2.py:1)"), "<module> (app.py)");
        assert_eq!(
            stable("<genexpr> (app2.py:9)"),
            stable("<genexpr> (app.py:7)")
        );
        // Nothing is in both of these.
        assert_eq!(stable("run (new.py:4)"), "run (new.py)");
        assert_eq!(stable("<module> (lib.py:1)"), "<module> (lib.py)");
    }

    #[test]
    fn a_class_is_known_by_its_methods_where_its_name_has_changed() {
        let before = ["Burn.main", "Burn.fib", "shop.Cart.add(int)", "A.<init>"];
        let after = ["Burn2.main", "Burn2.fib", "shop.Cart.add(int)", "B.<init>"];
        let stable = matched(RuntimeKind::HotSpot, [before, after]);
        for (after, before) in after.into_iter().zip(before).take(3) {
            assert_eq!(stable(after), before);
        }
        assert_eq!(stable("Burn2.fib (Burn2.java:7)"), "Burn.fib");
        assert_eq!(stable("B.<init>"), "B.<init>", "they may be anything");
    }

    #[test]
    fn code_without_a_name_keeps_its_offset_in_a_module_of_one_build() {
        let profile = |ids: [&[u8]; 3]| {
            let mut profile = Profile::new(Unit::Samples, Window::default());
            for (module, build_id) in ["libsame.so.1", "libnew.so.1", "libsilent.so.1"]
                .into_iter()
                .zip(ids)
            {
                profile.mapping(Mapping {
                    module: module.to_owned(),
                    build_id: build_id.into(),
                    ..Mapping::default()
                });
            }
            profile
        };
        let same = Matching::new(&[
            vec![profile([b"a", b"b", b""])],
            vec![profile([b"a", b"c", b""])],
        ]);
        for (name, stable) in [
            ("[libsame.so.1+0x1f]", "[libsame.so.1+0x1f]"),
            ("[libnew.so.1+0x1f]", "[libnew.so]"),
            ("[libsilent.so.1+0x1f]", "[libsilent.so]"),
        ] {
            let frame = Frame::new(name, FrameKind::User);
            assert_eq!(same.stable(&frame), stable);
        }
    }

    #[test]
    fn threads_of_a_pool_are_one() {
        for (name, stable) in [
            ("worker-3", "worker-0"),
            ("kworker/u4:2-ev", "kworker"),
            ("ksoftirqd/1", "ksoftirqd/0"),
            ("python3", "python3"),
            ("cc1", "cc1"),
            ("7", "7"),
        ] {
            assert_eq!(owner(name), stable);
        }
    }

    proptest! {
        #[test]
        fn any_name_has_a_stable_part_that_is_its_own(name in "(\\PC|\\.cold|\\.isra\\.[0-9]|#[0-9]\\}|\\[|\\+0x1|\\]|::h| \\(a:1\\)){0,9}") {
            let once = code(&name).into_owned();
            prop_assert_eq!(code(&name).is_empty(), name.is_empty() || once.is_empty());
            let again = owner(&name).into_owned();
            prop_assert_eq!(owner(&again), &*again);
        }
    }
}
