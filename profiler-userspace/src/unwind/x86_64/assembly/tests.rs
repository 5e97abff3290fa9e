//! Tests of rows that are read from code.

use super::describe;
use crate::code::Undescribed;
use crate::object::ElfAddress;
use crate::unwind::found::UnwindFindings;
use crate::unwind::{UnwindTable, compact, show};
use proptest::prelude::*;

/// Where test code begins.
const START: u64 = 0x1000;

/// The table of undescribed code, in which functions begin at some offsets.
fn table(code: &[u8], certain: &[u64], likely: &[u64]) -> UnwindTable {
    let at = |offsets: &[u64]| offsets.iter().map(|offset| START + offset).collect();
    let code = Undescribed {
        parts: vec![(START, code.to_vec())],
        certain: at(certain),
        likely: at(likely),
        started: None,
    };
    let mut found = UnwindFindings::default();
    describe(&code, &mut found);
    found.sort();
    let end = START + code.parts[0].1.len() as u64;
    let mut table = compact::lay_out(std::slice::from_ref(&(START..end)), &found);
    table.rules = found.rules.into_rules();
    table
}

/// The rules at some offsets of a function, in words.
fn rules(code: &[u8], offsets: &[u64]) -> Vec<String> {
    words(&table(code, &[0], &[]), offsets)
}

fn words(table: &UnwindTable, offsets: &[u64]) -> Vec<String> {
    let rule = |offset: &u64| table.rule_at(ElfAddress(START + offset)).unwrap();
    offsets.iter().map(|at| show::describe(rule(at))).collect()
}

#[test]
fn pushes_and_pops_are_followed() {
    // push rbp; push rbx; sub rsp, 24; call; add rsp, 24; pop rbx; pop rbp; ret
    let code = b"\x55\x53\x48\x83\xec\x18\xe8\xf5\xff\xff\xff\x48\x83\xc4\x18\x5b\x5d\xc3";
    assert_eq!(
        rules(code, &[0, 1, 2, 6, 10, 11, 15, 16, 17]),
        [
            "cfa=rsp+8",
            "cfa=rsp+16 rbp=[cfa-16]",
            "cfa=rsp+24 rbp=[cfa-16] rbx=[cfa-24]",
            "cfa=rsp+48 rbp=[cfa-16] rbx=[cfa-24]",
            "cfa=rsp+48 rbp=[cfa-16] rbx=[cfa-24]",
            "cfa=rsp+48 rbp=[cfa-16] rbx=[cfa-24]",
            "cfa=rsp+24 rbp=[cfa-16] rbx=[cfa-24]",
            "cfa=rsp+16 rbp=[cfa-16]",
            "cfa=rsp+8"
        ]
    );
}

#[test]
fn a_frame_is_found_by_a_register_that_the_called_function_does_not_write() {
    // 0: mov rcx, rsp; and rsp, -32; call 32; nop; mov rsp, rcx; ret
    let caller = b"\x48\x89\xe1\x48\x83\xe4\xe0\xe8\x14\0\0\0\x90\x48\x89\xcc\xc3";
    let rules = |helper: &[u8]| {
        let padding = [0xcc; 15];
        let table = table(&[&caller[..], &padding, helper].concat(), &[0, 32], &[]);
        words(&table, &[7, 12, 16])
    };
    // xor eax, eax; jne; inc edx; ret
    let by_register = ["cfa=rcx+8", "cfa=rcx+8", "cfa=rsp+8"];
    assert_eq!(rules(b"\x31\xc0\x75\x02\xff\xc2\xc3"), by_register);
    let unknown = ["no unwind info"; 3];
    // xor cl, cl; ret
    assert_eq!(rules(b"\x30\xc9\xc3"), unknown);
    // It calls, makes a system call, or leads elsewhere: syscall; ret / call; ret / jmp rax / jmp to nowhere
    for helper in [
        &b"\x0f\x05\xc3"[..],
        b"\xe8\xdb\xff\xff\xff\xc3",
        b"\xff\xe0",
        b"\xe9\0\x01\0\0",
    ] {
        assert_eq!(rules(helper), unknown, "{helper:x?}");
    }
}

#[test]
fn stacks_that_were_set_apart_have_the_words_that_both_stored() {
    // mov rax, rsp; test edi, edi; je; and rsp, -64; jmp; and rsp, -128; then for both: mov [rsp+8], rax; jne back to
    // the second `and`; xor eax, eax; mov rsp, [rsp+8]; ret
    let code = b"\x48\x89\xe0\x85\xff\x74\x06\x48\x83\xe4\xc0\xeb\x04\x48\x83\xe4\x80\
        \x48\x89\x44\x24\x08\x75\xf5\x31\xc0\x48\x8b\x64\x24\x08\xc3";
    assert_eq!(
        rules(code, &[13, 17, 22, 24, 26, 31]),
        [
            "cfa=rax+8",
            "cfa=rax+8",
            "cfa=[rsp+8]+8",
            "cfa=[rsp+8]+8",
            "cfa=[rsp+8]+8",
            "cfa=rsp+8"
        ]
    );
}

#[test]
fn a_register_is_found_where_it_was_saved() {
    // mov [rsp-8], rbx; xor ebx, ebx; mov rbx, [rsp-8]; ret
    let code = b"\x48\x89\x5c\x24\xf8\x31\xdb\x48\x8b\x5c\x24\xf8\xc3";
    assert_eq!(
        rules(code, &[5, 7, 12]),
        ["cfa=rsp+8", "cfa=rsp+8 rbx=[cfa-16]", "cfa=rsp+8"]
    );
}

#[test]
fn an_aligned_frame_is_found_by_the_stack_pointer_that_it_keeps() {
    // push rbx; mov r9, rsp; sub rsp, 88; and rsp, -32; mov [rsp+80], r9; xor ebx, ebx; mov rsp, [rsp+80]; pop rbx; ret
    let code = b"\x53\x49\x89\xe1\x48\x83\xec\x58\x48\x83\xe4\xe0\x4c\x89\x4c\x24\x50\x31\xdb\x48\x8b\x64\x24\x50\x5b\xc3";
    assert_eq!(
        rules(code, &[8, 12, 17, 19, 24, 25]),
        [
            "cfa=rsp+104 rbx=[cfa-16]",
            "cfa=r9+16 rbx=[cfa-16]",
            "cfa=[rsp+80]+16 rbx=[cfa-16]",
            "cfa=[rsp+80]+16 rbx=[cfa-16]",
            "cfa=rsp+16 rbx=[cfa-16]",
            "cfa=rsp+8"
        ]
    );
}

#[test]
fn a_frame_that_has_called_is_not_found_by_a_register_that_walks_do_not_follow() {
    // mov rax, rsp; mov r12, rsp; and rsp, -32; call; mov rsp, r12; ret
    let code = b"\x48\x89\xe0\x49\x89\xe4\x48\x83\xe4\xe0\xe8\xf1\xff\xff\xff\x4c\x89\xe4\xc3";
    assert_eq!(
        rules(code, &[10, 15, 18]),
        ["no unwind info", "cfa=r12+8", "cfa=rsp+8"]
    );
    // mov rbx, rsp; and rsp, -32; call
    let code = b"\x48\x89\xe3\x48\x83\xe4\xe0\xe8\xf4\xff\xff\xff";
    assert_eq!(rules(code, &[7]), ["cfa=rbx+8 rbx lost"]);
}

#[test]
fn a_frame_of_unknown_size_is_found_by_its_pointer() {
    // push rbp; mov rbp, rsp; sub rsp, rdi; push rax; leave; ret
    let code = b"\x55\x48\x89\xe5\x48\x29\xfc\x50\xc9\xc3";
    assert_eq!(
        rules(code, &[4, 7, 8, 9]),
        [
            "cfa=rbp+16 rbp=[cfa-16]",
            "cfa=rbp+16 rbp=[cfa-16]",
            "cfa=rbp+16 rbp=[cfa-16]",
            "cfa=rsp+8"
        ]
    );
}

#[test]
fn where_two_ways_meet_only_what_both_know_is_known() {
    // test edi, edi; je 1f; push rax; 1: nop; pop rax; ret
    let code = b"\x85\xff\x74\x01\x50\x90\x58\xc3";
    assert_eq!(
        rules(code, &[0, 4, 5, 6, 7]),
        [
            "cfa=rsp+8",
            "cfa=rsp+8",
            "no unwind info",
            "no unwind info",
            "no unwind info"
        ]
    );
}

#[test]
fn a_stack_that_grows_in_a_loop_is_found_by_what_is_stored_behind_it() {
    // push r12; mov rax, rsp; 1: lea rsp, [rsp-4096]; cmp rsp, rdi; ja 1b; mov [rsp+8], rax; nop; mov rax, [rsp+8];
    // mov rsp, rax; pop r12; ret
    let code = b"\x41\x54\x48\x89\xe0\x48\x8d\xa4\x24\x00\xf0\xff\xff\x48\x39\xfc\x77\xf3\x48\x89\x44\x24\x08\x90\x48\x8b\x44\x24\x08\x48\x89\xc4\x41\x5c\xc3";
    assert_eq!(
        rules(code, &[2, 5, 18, 23, 29, 32, 34]),
        [
            "cfa=rsp+16",
            "cfa=rax+16",
            "cfa=rax+16",
            "cfa=[rsp+8]+16",
            "cfa=[rsp+8]+16",
            "cfa=rsp+16",
            "cfa=rsp+8"
        ]
    );
}

#[test]
fn what_a_computed_jump_leads_to_has_the_frame_of_the_jump() {
    // push rbx; jmp rax; nop; 1: mov ebx, 1; pop rbx; ret; 2: pop rbx; ret
    let code = b"\x53\xff\xe0\x90\xbb\x01\x00\x00\x00\x5b\xc3\x5b\xc3";
    assert_eq!(
        rules(code, &[1, 3, 4, 9, 10, 11, 12]),
        [
            "cfa=rsp+16 rbx=[cfa-16]",
            "no unwind info",
            "cfa=rsp+16 rbx=[cfa-16]",
            "cfa=rsp+16 rbx=[cfa-16]",
            "cfa=rsp+8",
            "cfa=rsp+16 rbx=[cfa-16]",
            "cfa=rsp+8"
        ]
    );
}

#[test]
fn a_call_that_never_returns_leads_to_nothing() {
    // sub rsp, 8; call 2f; g: push rbx; pop rbx; ret; 2: ud2
    let code = b"\x48\x83\xec\x08\xe8\x03\x00\x00\x00\x53\x5b\xc3\x0f\x0b";
    assert_eq!(
        words(&table(code, &[0], &[]), &[4, 9, 10, 11]),
        [
            "cfa=rsp+16",
            "no unwind info",
            "no unwind info",
            "no unwind info"
        ]
    );
    assert_eq!(
        words(&table(code, &[0, 9], &[]), &[4, 9, 10, 11]),
        [
            "cfa=rsp+16",
            "cfa=rsp+8",
            "cfa=rsp+16 rbx=[cfa-16]",
            "cfa=rsp+8"
        ]
    );
}

#[test]
fn a_place_in_the_middle_of_a_function_is_not_taken_for_a_beginning() {
    // xor eax, eax; ret; 1: pop rbx; ret; 2: push rax; pop rcx; ret
    let code = b"\x31\xc0\xc3\x5b\xc3\x50\x59\xc3";
    assert_eq!(
        words(&table(code, &[0], &[3, 5]), &[2, 3, 4, 5, 6, 7]),
        [
            "cfa=rsp+8",
            "no unwind info",
            "no unwind info",
            "cfa=rsp+8",
            "cfa=rsp+16",
            "cfa=rsp+8"
        ]
    );
}

#[test]
fn what_does_as_no_function_may_is_a_label() {
    let rules = |code: &[u8], trust: [&[u64]; 2]| {
        let code = [b"\x31\xc0\xc3", code].concat();
        words(&table(&code, trust[0], trust[1]), &[3])
    };
    let labels: [&[u8]; 4] = [
        b"\x8b\x03\xc3",     // mov eax, [rbx]; ret
        b"\xff\xd0\xc3",     // call rax, with a stack that is not aligned; ret
        b"\x31\xdb\xc3",     // xor ebx, ebx; ret
        b"\x31\xdb\xff\xe0", // xor ebx, ebx; jmp rax
    ];
    for code in labels {
        assert_eq!(rules(code, [&[0], &[3]]), ["no unwind info"], "{code:x?}");
        // Functions that are certain may do as they like.
        assert_eq!(rules(code, [&[0, 3], &[]]), ["cfa=rsp+8"], "{code:x?}");
    }
    let functions: [&[u8]; 3] = [
        b"\x50\xff\xd0\x59\xc3",     // push rax; call rax; pop rcx; ret
        b"\x53\x31\xdb\x5b\xc3",     // push rbx; xor ebx, ebx; pop rbx; ret
        b"\xe8\xf8\xff\xff\xff\xc3", // call 0; ret
    ];
    for code in functions {
        assert_eq!(rules(code, [&[0], &[3]]), ["cfa=rsp+8"], "{code:x?}");
    }
}

#[test]
fn the_first_function_of_a_program_has_no_caller() {
    let code = Undescribed {
        // xor ebp, ebp; hlt
        parts: vec![(START, b"\x31\xed\xf4".to_vec())],
        started: Some(START),
        ..Undescribed::default()
    };
    let mut found = UnwindFindings::default();
    describe(&code, &mut found);
    let rules = found.rules.into_rules();
    let first = rules[usize::from(found.changes[0].rule)];
    assert_eq!(show::describe(first), "the outermost frame");
    assert_eq!(found.stretches[0].addresses, START..START + 3);
}

/// Bytes among which those of instructions for the stack are frequent.
fn code() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop_oneof![
        proptest::collection::vec(any::<u8>(), 1..6),
        prop_oneof![
            Just(b"\x55\x48\x89\xe5".to_vec()),
            Just(b"\x48\x83\xec\x18".to_vec()),
            Just(b"\x48\x83\xe4\xe0".to_vec()),
            Just(b"\x48\x89\x64\x24\x10".to_vec()),
            Just(b"\x48\x8b\x64\x24\x10".to_vec()),
            Just(b"\x48\x8d\xa4\x24\x00\x00\x00\x80".to_vec()),
            Just(b"\x75\xf0".to_vec()),
            Just(b"\xeb\x05".to_vec()),
            Just(b"\xe8\xf0\xff\xff\xff".to_vec()),
            Just(b"\xff\xe0".to_vec()),
            Just(b"\x48\x94".to_vec()),
            Just(b"\xc9".to_vec()),
            Just(b"\xc3".to_vec()),
        ],
    ];
    proptest::collection::vec(pieces, 1..80).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_code_is_read_without_a_panic(
        code in code(), address: u64,
        certain in proptest::collection::vec(0u64..300, 0..4),
        likely in proptest::collection::vec(0u64..300, 0..4),
    ) {
        let address = address.min(u64::MAX - code.len() as u64);
        let at = |offsets: Vec<u64>| offsets.into_iter().map(|at| address.saturating_add(at)).collect();
        let end = address + code.len() as u64;
        let code = Undescribed {
            parts: vec![(address, code)],
            certain: at(certain),
            likely: at(likely),
            started: None,
        };
        let mut found = UnwindFindings::default();
        describe(&code, &mut found);
        prop_assert!(found.statistics.read_bytes <= found.statistics.undescribed_bytes);
        for stretch in &found.stretches {
            prop_assert!(stretch.addresses.start >= address && stretch.addresses.end <= end);
        }
        for pair in found.stretches.windows(2) {
            prop_assert!(pair[0].addresses.end <= pair[1].addresses.start);
        }
    }
}
