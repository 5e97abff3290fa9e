use super::*;

/// The state of most code: the CFA so far from rsp, the return address below it.
fn usual(offset: i64) -> State {
    let [fp, bx, sp, _] = State::EMPTY.saved;
    State {
        base: 7,
        offset,
        expression: None,
        saved: [fp, bx, sp, Saved::Offset(-8)],
    }
}

fn place(register: u16, offset: i64) -> Saved {
    Saved::At(Expression::Place { register, offset })
}

#[test]
fn cfi_states_become_equivalent_rules() {
    let mut state = usual(48);
    state.saved[0] = Saved::Offset(-16);
    state.saved[1] = Saved::Offset(-24);
    let expected = Rule::new(RuleKind::Offset, 7, 48).with_slots(Origin::Cfa, Slot(-2), Slot(-3));
    assert_eq!(rule(&state, false), expected);

    let mut realigned = State {
        expression: Some(Expression::Memory {
            register: 6,
            offset: -8,
            addend: 0,
        }),
        ..usual(0)
    };
    realigned.saved[0] = place(6, 0);
    let expected = Rule::halves(RuleKind::Memory, 6, -8, 0).with_slots(
        Origin::FramePointer,
        Slot(0),
        Slot::SAME,
    );
    assert_eq!(rule(&realigned, false), expected);

    let mut root = usual(8);
    root.saved[3] = Saved::Undefined;
    assert_eq!(rule(&root, false), Rule::ROOT);

    let mut fork = usual(0);
    fork.saved[3] = Saved::Register(5);
    assert_eq!(
        rule(&fork, false),
        Rule::halves(RuleKind::InRegister, 7, 0, 5)
    );
}

#[test]
fn a_signal_frame_needs_all_registers_in_place() {
    let mut state = State {
        expression: Some(Expression::Memory {
            register: 7,
            offset: 160,
            addend: 0,
        }),
        ..usual(0)
    };
    state.saved = [place(7, 120), place(7, 128), Saved::Same, place(7, 168)];
    assert_eq!(rule(&state, true), Rule::new(RuleKind::Signal, 7, 160));
    assert_eq!(rule(&state, false), Rule::new(RuleKind::Switch, 7, 160));
    state.saved[0] = place(7, 112);
    assert_eq!(rule(&state, true), Rule::UNSUPPORTED);
}

#[test]
fn plt_sections_are_recognized_by_their_cfi() {
    let head = [
        0xff, 0x35, 1, 2, 3, 4, 0xff, 0x25, 1, 2, 3, 4, 0x0f, 0x1f, 0x40, 0,
    ];
    let late = [0xff, 0x25, 1, 2, 3, 4, 0x68, 0, 0, 0, 0, 0xe9, 1, 2, 3, 4];
    assert_eq!(
        linkage(&[head, late].concat()),
        [
            (0, Rule::new(RuleKind::Offset, 7, 16)),
            (6, Rule::new(RuleKind::Offset, 7, 24)),
            (16, Rule::halves(RuleKind::Linkage, 7, 8, 11))
        ]
    );
    let bound = [0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 1, 2, 3, 4];
    assert_eq!(linkage(&bound), [(0, Rule::new(RuleKind::Offset, 7, 8))]);
    assert!(linkage(&[head, head].concat()).is_empty());
    assert!(linkage(b"").is_empty());
}

#[test]
fn a_state_that_fits_no_rule_is_unsupported_and_never_wrong() {
    assert_eq!(rule(&usual(1 << 40), false), Rule::UNSUPPORTED);
    let vector = State {
        base: 17,
        ..usual(8)
    };
    assert_eq!(rule(&vector, false), Rule::UNSUPPORTED);
    let unknown = State {
        expression: Some(Expression::Other),
        ..usual(8)
    };
    assert_eq!(rule(&unknown, false), Rule::UNSUPPORTED);
    let mut apart = usual(8);
    apart.saved[0] = Saved::Offset(-16);
    apart.saved[1] = place(7, 8);
    let found = rule(&apart, false);
    assert_eq!((found.fp(), found.saved()), (Slot(-2), Slot::LOST));
    apart.saved[0] = Saved::Offset(-1 << 20);
    assert_eq!(rule(&apart, false).fp(), Slot::LOST);
}
