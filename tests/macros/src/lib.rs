//! `#[kernel_test]`: a test that needs root.
//!
//! In: a test function without arguments or result. Out: the same as a `#[test]` that first waits for its turn to use the
//! kernel, or skips itself where it may not.
//! Never: a retry. `#[kernel_test(timing)]` only announces that the test measures time, as `cargo xtask test` explains.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Makes a function a kernel test, which may run beside any others. `#[kernel_test(alone)]` is for those that change the machine,
/// or count what others would be in. `#[kernel_test(timing)]` is for those that compare a measured time, or a share of samples,
/// with the truth: `cargo xtask test` runs one for each CPU, and they alone may be run a second time when they fail. Either may be
/// both.
#[proc_macro_attribute]
pub fn kernel_test(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let timing = "::flame_bpf_tests::measures_time!();";
    let (announcement, sharing) = match arguments.to_string().replace(' ', "").as_str() {
        "" => ("", "Shared"),
        "alone" => ("", "Alone"),
        "timing" => (timing, "Shared"),
        "timing,alone" => (timing, "Alone"),
        other => {
            return error(&format!(
                "`{other}` is neither `alone` nor `timing`, nor both"
            ));
        }
    };
    let turn = format!("::flame_bpf_tests::kernel_turn(::flame_bpf_tests::Sharing::{sharing})");
    let before = format!("{announcement} let _turn = ::flame_bpf_tests::require!({turn});");
    let mut tokens: Vec<TokenTree> = function.into_iter().collect();
    let Some(TokenTree::Group(body)) = tokens.pop().filter(is_block) else {
        return error("only a function can be a kernel test");
    };
    let mut whole = parsed(&before);
    whole.extend(body.stream());
    let mut block = Group::new(Delimiter::Brace, whole);
    block.set_span(body.span());
    tokens.push(TokenTree::Group(block));
    let mut test = parsed("#[test]");
    test.extend(tokens);
    test
}

fn is_block(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

fn error(message: &str) -> TokenStream {
    parsed(&format!("compile_error!({message:?});"))
}

fn parsed(code: &str) -> TokenStream {
    code.parse().expect("the code in this file is Rust")
}
