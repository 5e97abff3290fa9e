use super::*;
use crate::unwind::Depth;
use profiler_common::abi::{PageRows, Rule};
use profiler_common::runtime::DESCRIPTOR_WORDS;
use std::cell::RefCell;
use std::convert::Infallible;
use std::fs::File;

/// Tables that are only counted.
#[derive(Default)]
struct Counted {
    /// When each file's code was used.
    used: HashMap<CodeKey, u64>,
    visible: RefCell<HashSet<CodeKey>>,
    stored: usize,
    given_back: usize,
}

impl TableStore for Counted {
    type ObjectRows = ();
    type Error = Infallible;

    fn limit(&self) -> u64 {
        u64::MAX
    }

    fn bytes(&self) -> u64 {
        self.stored as u64
    }

    fn stop_growing(&mut self) {}

    fn reserve(&mut self, _: u64) {}

    fn set_rules(&self, _: usize, _: &[Rule]) {}

    fn store(&mut self, _: &[PageRows], _: &[TableRow]) -> Result<Option<()>, Infallible> {
        self.stored += 1;
        Ok(Some(()))
    }

    fn add_runtime(&mut self, _: &[u64; DESCRIPTOR_WORDS]) -> Option<u8> {
        None
    }

    fn publish(&self, key: CodeKey, _: Option<&()>, _: &[CodeSegment], _: u8) -> usize {
        self.visible.borrow_mut().insert(key);
        0
    }

    fn rows(&mut self, (): &(), _: u32) -> Result<Vec<TableRow>, Infallible> {
        Ok(Vec::new())
    }

    fn replace(
        &mut self,
        (): &mut (),
        _: &[CodeKey],
        _: &[(u32, Vec<TableRow>)],
    ) -> Result<bool, Infallible> {
        Ok(true)
    }

    fn last_used(&self, key: CodeKey) -> u64 {
        self.used.get(&key).copied().unwrap_or(0)
    }

    fn withdraw(&self, keys: &[CodeKey]) -> Result<(), Infallible> {
        for key in keys {
            self.visible.borrow_mut().remove(key);
        }
        Ok(())
    }

    fn release(&mut self, (): ()) {
        self.stored -= 1;
    }

    fn give_back(&mut self) -> Result<(), Infallible> {
        self.given_back += 1;
        Ok(())
    }
}

fn key(inode: u64) -> CodeKey {
    CodeKey {
        device: 1,
        inode,
        modified: 1,
    }
}

/// Puts a table in place for each file, or none for those from ten on.
fn cache_of(inodes: &[u64]) -> TableCache<Counted> {
    let mut cache = TableCache::new(Counted::default());
    let file = File::open(std::env::current_exe().unwrap()).unwrap();
    let table = UnwindTable::read_expecting(&file, Depth::Described, None, |_| ()).unwrap();
    for &inode in inodes {
        assert!(cache.claim(key(inode)));
        let mut table = table.clone();
        // Each has contents of its own.
        table.rows[0].low = inode as u16;
        let made = if inode < 10 {
            Ok(table)
        } else {
            Err(unwind::Error::TooLarge)
        };
        cache.insert(key(inode), made, 0, Instant::now());
    }
    cache
}

#[test]
fn what_was_not_used_for_long_is_given_back_and_loaded_again() {
    let mut cache = cache_of(&[1, 2, 10, 11, 12]);
    let present = now() + 2 * LONG;
    for (inode, used) in [
        (2, present - 1),
        (10, present - 1),
        (11, present - LONG - 1),
    ] {
        cache.store.used.insert(key(inode), used);
    }
    cache.give_back(present);
    // A file without a table that no walk came to yet was only just met.
    let kept = [2, 10, 12].map(key);
    assert_eq!(*cache.store.visible.borrow(), HashSet::from(kept));
    assert_eq!((cache.store.stored, cache.store.given_back), (1, 1));
    assert_eq!((cache.loaded.given_back, cache.loaded.evicted), (1, 0));
    assert_eq!(cache.loaded.bytes, 1);
    assert!([1, 11].into_iter().all(|inode| cache.claim(key(inode))));
    assert!(!kept.into_iter().any(|key| cache.claim(key)));
}

#[test]
fn new_tables_and_those_of_moved_text_are_kept() {
    let mut cache = cache_of(&[1, 2]);
    cache.give_back(now() + LONG / 2);
    assert_eq!(cache.store.stored, 2);
    let copy = CodeCopy {
        key: key(3),
        range: 0..1,
        offset: 0,
    };
    cache.add_copy(key(1), copy);
    cache.give_back(now() + 2 * LONG);
    assert_eq!((cache.store.stored, cache.store.given_back), (1, 1));
    assert!(!cache.claim(key(1)));
}
