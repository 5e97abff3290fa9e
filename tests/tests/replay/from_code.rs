//! Callers by rows that were read from code, in stacks that perf copied of OpenSSL at work: its assembly has unwind
//! instructions, so what the walk finds without them can be compared with what it finds with them. Wants perf and openssl.

use flame_bpf_tests::native_walk::RIP;
use flame_bpf_tests::require;
use profiler_common::abi::StackEnd;

use crate::perf::{copies, copy_stacks};
use crate::walk;

/// Bytes of stack that are copied with each sample: more than OpenSSL uses.
const STACK_BYTES: u32 = 8192;

/// Work that is done in assembly: ciphers, hashes, elliptic curves, long numbers.
const WORK: &str = "for work in sha256 sha512 'rsa2048' ecdsap256 ed25519 '-evp aes-128-gcm' '-evp aes-256-cbc' \
    '-evp chacha20-poly1305' '-evp sha3-256'; do openssl speed -seconds SECONDS -bytes 1024 $work || exit; done";

/// Says of at least so many stacks that none is wrong and that no more than so many in a thousand end early.
fn compare(rate: u32, seconds: &str, least: usize, most_short: usize) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = WORK.replace("SECONDS", seconds);
    copy_stacks(folder.path(), rate, STACK_BYTES, &["sh", "-c", &work])?;
    let (copies, mut mapped) = copies(&folder.path().join("perf.data"));
    let is_crypto = |path: &str| path.contains("/libcrypto.so");
    if !mapped.iter().any(|object| is_crypto(&object.path)) {
        return Err("openssl (Debian: openssl) did not run, or has no libcrypto.so".to_owned());
    }
    let described = copies.values();
    let described = described.map(|(registers, stack)| walk(registers, stack, &mapped));
    let described: Vec<_> = described.collect();
    for object in &mut mapped {
        if is_crypto(&object.path) {
            *object = object.read_from_code();
        }
    }
    let (mut compared, mut same, mut short, mut wrong) = (0, 0, 0, 0);
    for ((registers, stack), (truth, end)) in copies.values().zip(&described) {
        let used = std::iter::once(&registers[RIP]).chain(truth);
        let is_read = |address: u64| {
            let object = mapped.iter().find(|object| object.code.contains(&address));
            object.is_some_and(|object| object.is_read_from_code(address))
        };
        if *end != StackEnd::Root || !used.copied().any(is_read) {
            continue;
        }
        compared += 1;
        let (callers, end) = walk(registers, stack, &mapped);
        if callers == *truth && end == StackEnd::Root {
            same += 1;
        } else if truth.starts_with(&callers) && end != StackEnd::Root {
            short += 1;
        } else {
            wrong += 1;
            println!("at {:#x}: {callers:x?}, not {truth:x?}", registers[RIP]);
        }
    }
    println!("of {compared} stacks {same} are the same, {short} end early, {wrong} are wrong");
    assert!(compared >= least, "{compared} of {}", copies.len());
    assert_eq!(wrong, 0);
    assert!(
        short * 1000 <= compared * most_short,
        "{short} of {compared} end early"
    );
    Ok(())
}

#[test]
fn callers_by_rows_read_from_code_are_those_of_unwind_instructions() {
    // About 4 end early, and some more by chance.
    require!(compare(499, "1", 1000, 10));
}

/// As many as take a minute and hundreds of megabytes.
#[test]
#[ignore = "copies hundreds of megabytes"]
fn ten_thousand_stacks_by_rows_read_from_code_have_the_right_callers() {
    require!(compare(1999, "3", 10_000, 5));
}
