//! Removes template and generic arguments from names.
//!
//! In: a demangled C++ or Rust name. Out: the name without angle brackets, except for the type and trait of a
//! Rust method: `<Vec<T> as Drop>::drop` becomes `<Vec as Drop>::drop`. None if brackets do not match. Pure.

/// The keyword of C++ operators; brackets after it are not brackets.
const OPERATOR: &str = "operator";

/// The name without arguments; none if its brackets do not match.
pub(super) fn simplify(name: &str) -> Option<String> {
    let mut text = String::with_capacity(name.len());
    // For each open bracket, whether it is kept.
    let mut open: Vec<bool> = Vec::new();
    let mut rest = name;
    let mut before = None;
    while let Some(next) = rest.chars().next() {
        let dropping = open.contains(&false);
        let operator = operator(rest, before);
        let taken = match next {
            _ if operator > 0 => {
                if !dropping {
                    text.push_str(&rest[..operator]);
                }
                operator
            }
            '<' => {
                let is_self = opens_self(before);
                if is_self && !dropping {
                    text.push('<');
                } else if !dropping && text.ends_with("::") {
                    text.truncate(text.len() - 2);
                }
                open.push(is_self);
                1
            }
            // The arrow of a function type is not a bracket.
            '>' if before != Some('-') => {
                let kept = open.pop()?;
                if kept && !open.contains(&false) {
                    text.push('>');
                }
                1
            }
            _ => {
                if !dropping {
                    text.push(next);
                }
                next.len_utf8()
            }
        };
        before = rest[..taken].chars().next_back();
        rest = &rest[taken..];
        if operator > 0 {
            // To what follows, this was a complete name. A space separates its arguments.
            before = Some('_');
            let arguments = rest.strip_prefix(' ');
            rest = arguments
                .filter(|rest| rest.starts_with('<'))
                .unwrap_or(rest);
        }
    }
    (open.is_empty() && !text.is_empty()).then_some(text)
}

/// Whether a bracket after this character begins a Rust method's type, as in `<T as Trait>`.
fn opens_self(before: Option<char>) -> bool {
    before.is_none_or(|before| matches!(before, ' ' | '(' | '<' | ',' | '&' | '*' | '['))
}

/// The length in bytes of an operator's name at the beginning of `text`; none if there is none.
fn operator(text: &str, before: Option<char>) -> usize {
    let inside_a_word = before.is_some_and(|before| before.is_alphanumeric() || before == '_');
    let Some(symbol) = text.strip_prefix(OPERATOR).filter(|_| !inside_a_word) else {
        return 0;
    };
    let all = [
        "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">",
    ];
    let found = all.iter().find(|known| symbol.starts_with(**known));
    found.map_or(0, |known| OPERATOR.len() + known.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn arguments_are_dropped_and_the_rest_is_kept() {
        for (name, simple) in [
            ("main", "main"),
            (
                "std::vector<int, std::allocator<int> >::push_back",
                "std::vector::push_back",
            ),
            ("add<int>", "add"),
            ("a<b>::c<d<e>>::f", "a::c::f"),
            ("core::iter::map::<u32, fn(u8) -> u16>", "core::iter::map"),
            ("foo::<T>::bar::<U>", "foo::bar"),
            (
                "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
                "<alloc::vec::Vec as core::ops::Drop>::drop",
            ),
            ("<foo::Bar>::baz::<u8>", "<foo::Bar>::baz"),
            ("<<T as A>::B as C<D>>::e", "<<T as A>::B as C>::e"),
            ("A::operator<", "A::operator<"),
            ("operator<< <char>", "operator<<"),
            ("A<int>::operator->", "A::operator->"),
            ("A<int>::operator()", "A::operator()"),
            ("B<&A::operator<< >::f", "B::f"),
            ("cooperator<int>::f", "cooperator::f"),
            ("operator std::vector<int>", "operator std::vector"),
            ("f::{closure#0}::<X>", "f::{closure#0}"),
            (
                "main::{lambda()#1}::operator()",
                "main::{lambda()#1}::operator()",
            ),
        ] {
            assert_eq!(simplify(name).as_deref(), Some(simple), "{name}");
        }
    }

    #[test]
    fn malformed_names_are_left_alone() {
        for name in ["a<b", "a>b", "a>", "<", ""] {
            assert_eq!(simplify(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_name_becomes_longer(name in "[a-z<>:&, \\-\u{e9}]{0,30}|(operator|<|>|::|a|->){0,12}") {
            if let Some(simple) = simplify(&name) {
                prop_assert!(simple.len() <= name.len());
            }
        }
    }
}
