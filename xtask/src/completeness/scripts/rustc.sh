# rustc: checking, and compiling by LLVM, of generic code.
prepare() {
    awk 'BEGIN {
        print "use std::collections::{BTreeMap, HashMap}; use std::fmt::Debug;"
        for (f = 0; f < 150; f++) {
            print "#[derive(Clone, Debug, PartialEq, PartialOrd, Hash, Eq, Ord)] pub struct S" f " { pub a: Vec<u" (f % 2 ? 32 : 64) ">, pub b: String, pub c: Option<Box<Self>> }"
            print "pub fn f" f "<T: Debug + Clone>(map: &mut HashMap<String, Vec<S" f ">>, with: &[T]) -> BTreeMap<String, usize> {"
            print " let mut out = BTreeMap::new(); for (key, all) in map.iter_mut() { all.sort(); all.retain(|s| s.a.len() > " f ");"
            print " for thing in with { out.insert(format!(\"{key} {thing:?} {:?}\", all.first()), all.iter().map(|s| s.b.len()).sum()); } } out }"
            print "pub fn g" f "(x: &str) -> usize { f" f "(&mut HashMap::new(), &x.split(\",\").map(|p| p.parse::<u64>()).collect::<Vec<_>>()).len() }"
        }
    }' > much.rs
}
work() { while :; do "$RUSTC" --edition 2021 --crate-type lib --emit obj -O -C debuginfo=1 much.rs -o much.o; done; }
