//! Interface of the kernel half's tables, as the loader needs it.
//!
//! In: rows, rules, and which files they are for. Out: nothing. The kernel half's side of it is in `kernel`, which knows this
//! module; this module does not know `kernel`.

use profiler_common::abi::{CodeKey, PageRows, Rule, TableRow};
use profiler_common::runtime::DESCRIPTOR_WORDS;
use std::fs::File;

/// Unwind tables in the kernel.
pub trait TableStore: Send + 'static {
    /// One object's rows in the kernel.
    type ObjectRows: Send;
    /// Why a table cannot be stored.
    type Error;

    /// Memory limit of the tables in the kernel, in bytes.
    fn limit(&self) -> u64;
    /// Memory of the tables in the kernel, in bytes.
    fn bytes(&self) -> u64;
    /// Takes no more memory than now: what is stored from here on takes the place of what was not used for the longest time.
    fn stop_growing(&mut self);
    /// Begins to make room for a table of about so many bytes. Does not wait for it.
    fn reserve(&mut self, bytes: u64);
    /// Makes rules known, the first of them under the number `from`. To be done before rows that name
    /// them are published.
    fn set_rules(&self, from: usize, rules: &[Rule]);
    /// Stores an object's rows; none if there is no room. Row numbers in `pages` are places in `rows`.
    fn store(
        &mut self,
        pages: &[PageRows],
        rows: &[TableRow],
    ) -> Result<Option<Self::ObjectRows>, Self::Error>;
    /// Makes the descriptor of a runtime known. Returns its number; none if there is no room.
    fn add_runtime(&mut self, words: &[u64; DESCRIPTOR_WORDS]) -> Option<u8>;
    /// Lets the kernel half see a file's code. `table`: where the pages of its segments are stored. `runtime`: the number of the
    /// descriptor of the runtime in it, or zero. Returns for how many segments the index had no room.
    fn publish(
        &self,
        key: CodeKey,
        table: Option<&Self::ObjectRows>,
        segments: &[CodeSegment],
        runtime: u8,
    ) -> usize;
    /// The rows of one page of a table, by its number among those stored.
    fn rows(&mut self, table: &Self::ObjectRows, page: u32) -> Result<Vec<TableRow>, Self::Error>;
    /// Puts others in the place of the rows of some pages of a table, which is published for `keys`; false if there is no room, and
    /// nothing is changed. No walk sees some of these pages as they were and others as they are.
    fn replace(
        &mut self,
        table: &mut Self::ObjectRows,
        keys: &[CodeKey],
        pages: &[(u32, Vec<TableRow>)],
    ) -> Result<bool, Self::Error>;
    /// When a walk last came to the file's code, in [`used_clock`](profiler_common::abi::used_clock)'s
    /// terms; zero if none did.
    fn last_used(&self, key: CodeKey) -> u64;
    /// Takes files out of the kernel half's sight. When this returns, nobody uses them.
    fn withdraw(&self, keys: &[CodeKey]) -> Result<(), Self::Error>;
    /// Frees a table's memory, after [`withdraw`](Self::withdraw) of all files that it was published for.
    fn release(&mut self, table: Self::ObjectRows);
    /// Gives memory back to the kernel that no table is in.
    fn give_back(&mut self) -> Result<(), Self::Error>;
}

/// Source of the keys by which the kernel half knows code.
pub trait CodeKeys {
    /// The key of an open file.
    fn code_key(&mut self, file: &File) -> Option<CodeKey>;
    /// The key of what is mapped at an address of this process.
    fn code_key_at(&mut self, address: u64) -> Option<CodeKey>;
}

/// A segment of a file that is mapped as code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSegment {
    /// Where it begins in the file, in bytes.
    pub start: u64,
    /// Where it ends in the file, in bytes.
    pub end: u64,
    /// Shift from a position in the file to the object's own address.
    pub shift: u64,
    /// The page of its first address, and where that page's rows are among those stored; none for code
    /// that has no table and is walked by frame pointers.
    pub first_page: Option<(u64, u32)>,
}

impl CodeSegment {
    /// All of a file that has no table.
    pub const NO_TABLE: Self = Self {
        start: 0,
        // More than any file has, and little enough that no sum with an address overflows.
        end: 1 << 56,
        shift: 0,
        first_page: None,
    };
}
