//! Unwind tables in the kernel: how much of them fits, and how room is made.

use flame_bpf::kernel::{Kernel, Request, StoredTable, Support, Tables};
use flame_bpf::probe::Probe;
use flame_bpf::unwind::loader::{CodeSegment, TableStore as _};
use flame_bpf_tests::{BOTH, Invocation, Program, kernel_test, request, require, walks_by_tables};
use profiler_common::abi::{CodeKey, PageRows, Switches, TableRow, TargetKind};

/// Rows of a table that takes two fifths of a slab.
const ROWS: u32 = 100_000;

/// Tables in two slabs.
fn tables(support: &Support) -> (Kernel, Tables) {
    tables_within(support, 2 << 20)
}

fn tables_within(support: &Support, limit: u64) -> (Kernel, Tables) {
    let switches = BOTH.with(Switches::UNWIND_ROWS);
    let request = Request {
        unwind_memory: limit,
        cgroups: None,
        ..request(vec![Probe::OnCpu], switches, TargetKind::All)
    };
    let mut kernel = Kernel::load(request, support).expect("the programs load");
    let tables = kernel.take_tables().expect("rows were asked for");
    (kernel, tables)
}

fn store(tables: &mut Tables) -> Option<StoredTable> {
    let half = ROWS / 2;
    let pages = [0, half].map(|first| PageRows { first, count: half });
    let rows: Vec<TableRow> = (0..ROWS)
        .map(|row| TableRow {
            low: (row % half) as u16,
            rule: 0,
        })
        .collect();
    tables.store(&pages, &rows).expect("slabs can be made")
}

#[kernel_test]
fn table_memory_is_limited_and_reused() {
    let (_kernel, mut tables) = tables(&require!(walks_by_tables()));
    let empty = tables.bytes();
    assert_eq!(tables.limit(), 2 << 20);
    let mut stored: Vec<StoredTable> = std::iter::from_fn(|| store(&mut tables)).collect();
    assert_eq!(stored.len(), 4, "two in each slab");
    assert_eq!(
        tables.bytes() - empty,
        1 << 20,
        "the first slab is there from the beginning"
    );
    let key = CodeKey {
        device: 1,
        inode: 2,
        modified: 3,
    };
    let part = CodeSegment {
        start: 0,
        end: 0x2_0000,
        shift: 0,
        first_page: Some((0, 0)),
    };
    let table = stored.pop().expect("four were stored");
    assert_eq!(tables.publish(key, Some(&table), &[part], 0), 0);
    assert_eq!(tables.last_used(key), 0);
    tables.withdraw(&[key]).expect("no firing is under way");
    tables.release(table);
    assert!(store(&mut tables).is_some(), "room was given back");
    assert!(store(&mut tables).is_none());
}

#[kernel_test]
fn preallocated_slabs_hold_the_next_tables() {
    let (_kernel, mut tables) = tables(&require!(walks_by_tables()));
    // More than the limit allows, and asked for twice.
    tables.reserve(9 << 20);
    tables.reserve(u64::MAX);
    let most = tables.bytes();
    let stored: Vec<StoredTable> = std::iter::from_fn(|| store(&mut tables)).collect();
    assert_eq!(stored.len(), 4, "two in each slab");
    assert_eq!(tables.bytes(), most);
}

#[kernel_test]
fn freed_slabs_are_reused_before_new_ones_are_made() {
    let (_kernel, mut tables) = tables_within(&require!(walks_by_tables()), 8 << 20);
    let table = store(&mut tables).expect("there is room");
    tables.release(table);
    let before = tables.bytes();
    tables.reserve(3 << 20);
    assert_eq!(tables.bytes() - before, 2 << 20, "one of three was free");
}

#[kernel_test]
fn a_full_index_rejects_tables_and_counts_them() {
    let (_kernel, tables) = tables(&require!(walks_by_tables()));
    let key = CodeKey {
        device: 9,
        inode: 9,
        modified: 9,
    };
    let parts = vec![CodeSegment::NO_TABLE; 40];
    assert_eq!(
        tables.publish(key, None, &parts, 0),
        8,
        "32 slots are looked at"
    );
    tables.withdraw(&[key]).expect("no firing is under way");
    assert_eq!(tables.publish(key, None, &parts, 0), 8);
}

#[kernel_test]
fn a_table_limit_that_is_too_small_is_reported() {
    let busy = Program::c("shares").start(&[]);
    let run = Invocation::new("-v --max-unwind-memory 1 -f")
        .flag("-p", busy.pid())
        .flag("-d", 1)
        .run()
        .expect_code(0);
    assert!(run.folded().total() > 0);
    run.balance().assert_even();
}
