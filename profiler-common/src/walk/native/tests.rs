extern crate std;
use super::*;
use crate::walk::arch::{FP as RBP, SAVED as RBX, SP as RSP};
use crate::walk::testing::{Words, words};
use proptest::{
    collection::vec,
    prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest},
};

const SP: u64 = 0x7000_0000;
const FP: u64 = SP + 0x100;
const CODE: u64 = 0x40_1000;

fn running() -> Frame {
    Frame::running(
        Registers {
            ip: 0x40_5000,
            sp: SP,
            fp: FP,
        },
        7,
    )
}

/// The registers of the first frame: each holds its number, but 10 and 11 point into the stack.
fn register(number: u8) -> Option<u64> {
    Some(match number {
        10 => SP + 0x40,
        11 => CODE,
        other => u64::from(other),
    })
}

fn run(rule: Rule, frame: Frame, memory: &Words) -> Step<Frame> {
    step(rule, &frame, register, memory)
}

/// The caller, which must be there.
fn follow(rule: Rule, memory: &Words) -> Frame {
    match run(rule, running(), memory) {
        Step::Caller(caller) => caller,
        Step::End(end) => panic!("{end:?}"),
    }
}

#[test]
fn a_frame_without_a_frame_pointer_is_unwound_by_its_size() {
    let rule = Rule::new(RuleKind::Offset, RSP, 24);
    let caller = follow(rule, &words([(SP + 16, CODE)]));
    assert_eq!((caller.ip, caller.sp), (CODE, SP + 24));
    assert_eq!((caller.fp, caller.saved), (Kept::value(FP), Kept::value(7)));
    assert_eq!(caller.lookup(), CODE - 1);
}

#[test]
fn saved_registers_are_read_only_when_needed() {
    let rule = Rule::new(RuleKind::Offset, RSP, 48).with_slots(Origin::Cfa, Slot(-3), Slot(-4));
    let mut memory = words([(SP + 40, CODE)]);
    let caller = follow(rule, &memory);
    assert_eq!(
        (caller.fp, caller.saved),
        (Kept::at(SP + 24), Kept::at(SP + 16))
    );
    assert_eq!(caller.registers(&memory), None);
    let next = Rule::new(RuleKind::Offset, RBP, 16);
    assert_eq!(run(next, caller, &memory), Step::End(StackEnd::Unreadable));
    memory.0.extend([(SP + 24, FP), (FP + 8, CODE + 1)]);
    assert_eq!(caller.registers(&memory).unwrap().fp, FP);
    let Step::Caller(next) = run(next, caller, &memory) else {
        panic!("the frame pointer is readable");
    };
    assert_eq!((next.ip, next.sp), (CODE + 1, FP + 16));
    assert_eq!(next.saved, Kept::at(SP + 16));
}

#[test]
fn a_frame_record_is_read_in_one_access() {
    let rule = Rule::new(RuleKind::Offset, RBP, 16).with_slots(Origin::Cfa, Slot(-2), Slot::SAME);
    let caller = follow(rule, &words([(FP, FP + 64), (FP + 8, CODE)]));
    assert_eq!(
        (caller.ip, caller.sp, caller.fp),
        (CODE, FP + 16, Kept::value(FP + 64))
    );
}

#[test]
fn a_realigned_frame_finds_its_caller_through_memory() {
    let rule = Rule::halves(RuleKind::Memory, RBP, -8, 0).with_slots(
        Origin::FramePointer,
        Slot(0),
        Slot(-3),
    );
    let memory = words([(FP - 8, FP + 0x80), (FP + 0x78, CODE), (FP, 99)]);
    let caller = follow(rule, &memory);
    assert_eq!((caller.ip, caller.sp), (CODE, FP + 0x80));
    assert_eq!((caller.fp, caller.saved), (Kept::at(FP), Kept::at(FP - 24)));
}

#[test]
fn a_saved_stack_pointer_is_read_from_the_frame() {
    let rule = Rule::halves(RuleKind::Memory, RSP, 56, 8).with_slots(
        Origin::StackPointer,
        Slot(2),
        Slot::LOST,
    );
    let caller = follow(rule, &words([(SP + 56, SP + 0x200), (SP + 0x200, CODE)]));
    assert_eq!((caller.ip, caller.sp), (CODE, SP + 0x208));
    assert_eq!((caller.fp, caller.saved), (Kept::at(SP + 16), Kept::LOST));
}

#[test]
fn a_stack_pointer_saved_at_a_computed_address_is_found() {
    let rule = Rule::halves(RuleKind::IndexedMemory, RSP, 8, 9 | 16 << 4);
    let caller = follow(
        rule,
        &words([(SP + 8 + 72, SP + 0x200), (SP + 0x208, CODE)]),
    );
    assert_eq!((caller.ip, caller.sp), (CODE, SP + 0x210));
}

#[test]
fn a_plt_entry_is_unwound_before_and_after_its_push() {
    let rule = Rule::halves(RuleKind::Linkage, RSP, 8, 11);
    let memory = words([(SP, CODE), (SP + 8, CODE + 64)]);
    for (position, ip) in [(0, CODE), (10, CODE), (11, CODE + 64), (15, CODE + 64)] {
        let mut frame = running();
        frame.ip += position;
        let Step::Caller(caller) = run(rule, frame, &memory) else {
            panic!("both words are readable");
        };
        assert_eq!(caller.ip, ip, "at {position}");
    }
}

#[test]
fn a_signal_frame_restores_every_register_and_the_exact_address() {
    let rule = Rule::new(RuleKind::Signal, RSP, 160);
    let memory = words([
        (SP + 160, 0x1234_5670),
        (SP + 168, CODE),
        (SP + 120, 11),
        (SP + 128, 12),
    ]);
    let caller = follow(rule, &memory);
    assert_eq!((caller.ip, caller.sp), (CODE, 0x1234_5670));
    assert_eq!(caller.lookup(), CODE);
    assert_eq!(caller.registers(&memory).unwrap().fp, 11);
    assert_eq!(caller.saved.read(&memory), Ok(12));
    let caller = follow(Rule::new(RuleKind::Switch, RSP, 160), &memory);
    assert_eq!(caller.lookup(), CODE - 1);
}

#[test]
fn a_return_address_can_be_in_a_register() {
    let rule = Rule::halves(RuleKind::InRegister, RSP, 0, 11);
    let caller = follow(rule, &words([]));
    assert_eq!((caller.ip, caller.sp), (CODE, SP));
}

#[test]
fn a_frame_can_begin_at_a_register_that_only_the_first_frame_has() {
    let rule = Rule::new(RuleKind::Offset, 10, 8).with_slots(Origin::Register, Slot(9), Slot(8));
    let memory = words([(SP + 0x40, CODE)]);
    let caller = follow(rule, &memory);
    assert_eq!((caller.ip, caller.sp), (CODE, SP + 0x48));
    assert_eq!((caller.fp, caller.saved), (Kept::value(9), Kept::value(8)));
    for reached in [Reached::Called, Reached::Interrupted] {
        let frame = Frame {
            reached,
            ..running()
        };
        assert_eq!(run(rule, frame, &memory), Step::End(StackEnd::BadRow));
    }
}

#[test]
fn a_frame_can_begin_at_rbx() {
    let rule = Rule::new(RuleKind::Offset, RBX, 24);
    let memory = words([(SP + 0x40, SP + 0x80), (SP + 0x90, CODE)]);
    let frame = Frame {
        saved: Kept::at(SP + 0x40),
        reached: Reached::Called,
        ..running()
    };
    let Step::Caller(caller) = run(rule, frame, &memory) else {
        panic!("rbx was saved");
    };
    assert_eq!((caller.ip, caller.sp), (CODE, SP + 0x98));
    let frame = Frame::called(frame.registers(&memory).unwrap());
    assert_eq!(run(rule, frame, &memory), Step::End(StackEnd::BadRow));
}

#[test]
fn a_frame_without_a_caller_has_a_reason() {
    for (rule, end) in [
        (Rule::ROOT, StackEnd::Root),
        (Rule::MISSING, StackEnd::NoRow),
        (Rule::UNSUPPORTED, StackEnd::BadRow),
        (Rule(15 << 36), StackEnd::BadRow),
        (Rule::new(RuleKind::Offset, RSP, 800), StackEnd::Unreadable),
        (
            Rule::halves(RuleKind::Memory, RSP, 800, 0),
            StackEnd::Unreadable,
        ),
        (Rule::new(RuleKind::Signal, RSP, 800), StackEnd::Unreadable),
        (Rule::new(RuleKind::Offset, RSP, 0), StackEnd::Implausible),
        (Rule::new(RuleKind::Offset, RSP, 12), StackEnd::Implausible),
        (
            Rule::new(RuleKind::Offset, RSP, -8192),
            StackEnd::Implausible,
        ),
    ] {
        assert_eq!(run(rule, running(), &words([])), Step::End(end), "{rule:?}");
    }
    let rule = Rule::new(RuleKind::Offset, RSP, 8);
    for (word, end) in [
        (0, StackEnd::Root),
        (1, StackEnd::Implausible),
        (0xffff_ffff_8100_0000, StackEnd::Implausible),
    ] {
        assert_eq!(run(rule, running(), &words([(SP, word)])), Step::End(end));
    }
}

#[test]
fn a_frame_pointer_may_change_stacks_but_not_loop() {
    let rule = Rule::new(RuleKind::Offset, RBP, 16);
    let leading_to = |fp: u64| {
        let mut frame = running();
        frame.fp = Kept::value(fp);
        run(rule, frame, &words([(fp + 8, CODE)]))
    };
    assert!(matches!(leading_to(SP - 0x10_0000), Step::Caller(_)));
    assert_eq!(leading_to(SP - 16), Step::End(StackEnd::Implausible));
    assert_eq!(leading_to(SP - 64), Step::End(StackEnd::Implausible));
}

proptest! {
    /// Whatever the rule and the registers, a step ends, and only code that a process can have comes out.
    #[test]
    fn every_rule_is_applied_or_refused(rule: u64, kind in 0u64..10, sp: u64, fp: u64, near in any::<bool>(), content: u64) {
        struct Everywhere(u64);
        impl Memory for Everywhere {
            fn read<const N: usize>(&self, _: u64) -> Option<[u64; N]> {
                Some([self.0; N])
            }
        }
        let rule = Rule(rule & !(15 << 36) | kind << 36);
        let sp = if near { SP } else { sp };
        let frame = Frame::running(Registers { ip: CODE, sp, fp }, fp);
        if let Step::Caller(caller) = step(rule, &frame, register, &Everywhere(content)) {
            prop_assert!(is_user_address(caller.ip));
        }
    }
}

/// Some registers of a frame: known, saved or lost.
fn any_register() -> impl Strategy<Value = Kept> {
    (0u64..3, 0u64..64).prop_map(|(how, word)| Kept::from_parts(how, SP + 8 * word))
}

/// A slot near the CFA, or one of the special values.
fn any_slot() -> impl Strategy<Value = Slot> {
    prop_oneof![
        Just(Slot::SAME),
        Just(Slot::LOST),
        (-8i16..2).prop_map(Slot)
    ]
}

proptest! {
    #[test]
    fn a_plain_rule_is_followed_as_any_other(
        base in prop_oneof![Just(RSP), Just(RBP)],
        operand in -64i32..128, fp_slot in any_slot(), bx_slot in any_slot(),
        fp in any_register(), saved in any_register(), is_first in any::<bool>(),
        stack in vec(prop_oneof![Just(CODE), Just(0), Just(1), (0u64..64).prop_map(|word| SP + 8 * word)], 64),
    ) {
        let memory = Words((SP..).step_by(8).zip(stack).collect());
        let rule = Rule::new(RuleKind::Offset, base, operand & !3).with_slots(Origin::Cfa, fp_slot, bx_slot);
        prop_assert!(rule.is_plain());
        let reached = if is_first { Reached::CalledFirst } else { Reached::Called };
        let frame = Frame { sp: SP + 64, fp, saved, reached, ..running() };
        let mut caller = frame;
        let outcome = match advance_plain(rule, &mut caller, &memory) {
            Ok(()) => Step::Caller(caller),
            Err(end) => {
                prop_assert_eq!(caller, frame);
                Step::End(end)
            }
        };
        prop_assert_eq!(outcome, run(rule, frame, &memory));
    }
}

#[test]
fn a_task_in_a_system_call_is_looked_up_at_that_instruction() {
    let registers = running().registers(&words([])).unwrap();
    let frame = Frame::waiting(registers, 3);
    assert_eq!(frame.lookup(), frame.ip - 1);
    assert_eq!(frame.shown(), frame.ip);
    assert_eq!(Frame::from_words(frame.words()), frame);
    // Nothing else about it is lost.
    let rule = Rule::new(RuleKind::Offset, 10, 8);
    let memory = words([(SP + 0x40, CODE)]);
    assert!(matches!(run(rule, frame, &memory), Step::Caller(_)));
}

#[test]
fn an_unmentioned_register_is_preserved_one_call_deep() {
    let first = Rule::new(RuleKind::Offset, 7, 0x20);
    let memory = words([(SP + 0x18, CODE), (SP + 0x40, CODE), (SP + 0x38, CODE)]);
    let second = follow(first, &memory);
    assert_eq!(second.reached, Reached::CalledFirst);
    // OpenSSL's AES-GCM finds its frame by rax, here 10, while its own helpers run.
    let by_register = Rule::new(RuleKind::Offset, 10, 8);
    let Step::Caller(third) = run(by_register, second, &memory) else {
        panic!("the register is as it was")
    };
    assert_eq!((third.sp, third.reached), (SP + 0x48, Reached::Called));
    // Two calls deep it may be anything.
    assert_eq!(
        run(by_register, third, &memory),
        Step::End(StackEnd::BadRow)
    );
}
