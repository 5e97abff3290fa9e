//! How kernel tests share the machine with one another.
//!
//! In: the source of a file of tests. Out: for each test, what its `#[kernel_test]` says.
//! Never: a guess. A test that is not in the source is an error to who asks.

use std::collections::HashMap;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// How a kernel test shares the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// With any others: what it asks for holds beside a load.
    Any,
    /// With one on each other CPU: it compares with the truth what a load makes less sharp.
    Timing,
    /// With none: it changes the machine, or others would be in what it counts.
    Alone,
}

impl Sharing {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Any, Self::Timing, Self::Alone];
}

/// Wishes of each test of a file, by its name.
pub(crate) fn of_tests(tokens: &TokenStream) -> HashMap<String, Sharing> {
    let mut found = HashMap::new();
    let mut asked = None;
    let mut is_name = false;
    for token in tokens.clone() {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
                asked = of_attribute(group.stream()).or(asked);
            }
            TokenTree::Ident(word) if is_name => {
                is_name = false;
                if let Some(sharing) = asked.take() {
                    found.insert(word.to_string(), sharing);
                }
            }
            TokenTree::Ident(word) => is_name = word == "fn",
            _ => {}
        }
    }
    found
}

fn of_attribute(tokens: TokenStream) -> Option<Sharing> {
    let mut tokens = tokens.into_iter();
    match tokens.next()? {
        // Needs neither root nor a turn.
        TokenTree::Ident(name) if name == "test" => return Some(Sharing::Any),
        TokenTree::Ident(name) if name == "kernel_test" => {}
        _ => return None,
    }
    let Some(TokenTree::Group(arguments)) = tokens.next() else {
        return Some(Sharing::Any);
    };
    match arguments.stream().to_string().as_str() {
        "timing" => Some(Sharing::Timing),
        // Alone, or both; what else there may be one day is not known to share.
        _ => Some(Sharing::Alone),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_shares_as_its_attribute_says() {
        let source = "fn helper() {}\n#[kernel_test]\nfn a() { fn inner() {} }\n#[kernel_test(timing)]\n#[expect(dead_code)]\n\
                      fn b() {}\nconst X: [u8; 1] = [0];\n#[kernel_test(timing, alone)]\nfn c() {}\n#[test]\nfn d() {}";
        let tokens = source.parse().expect("this is Rust");
        let mut found: Vec<_> = of_tests(&tokens).into_iter().collect();
        found.sort_by(|one, other| one.0.cmp(&other.0));
        let expected = [
            ("a".to_owned(), Sharing::Any),
            ("b".to_owned(), Sharing::Timing),
            ("c".to_owned(), Sharing::Alone),
            ("d".to_owned(), Sharing::Any),
        ];
        assert_eq!(found, expected);
    }
}
