use super::packed::{Columns, Names};
use super::*;
use crate::profile::{Unit, Window, fold};

fn page(folded: &str, style: &Style) -> String {
    let profile = fold::parse(folded.as_bytes(), Unit::Samples).expect("it is folded text");
    let mut page = Vec::new();
    write(&profile, style, &mut page).expect("a vector takes everything");
    String::from_utf8(page).expect("a page is text")
}

#[test]
fn a_page_has_two_scripts_that_end_where_they_should() {
    let page = page("sh;</script><script>;<!-- 3\n", &Style::default());
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script>").count(), 2);
    for asking in ["<!--", " src=", "url(", "@import", "<link"] {
        assert!(!page.contains(asking), "{asking}");
    }
    for (name, text) in page::SCRIPT {
        assert!(text.starts_with("// "), "{name} does not say what it does");
        assert!(!text.contains("innerHTML"), "{name} takes text for markup");
    }
}

#[test]
fn a_title_is_text() {
    let style = Style {
        title: "</title><b>&\u{0}".to_owned(),
        ..Style::default()
    };
    let page = page("sh;main 3\n", &style);
    assert!(page.contains("<title>&lt;/title&gt;&lt;b&gt;&amp;\\u{0}</title>"));
}

#[test]
fn nodes_are_in_the_order_of_a_flame_graph() {
    let text = b"sh;main;work;read_[k] 2\nsh;main;again 1\nsh;a;b 4\nsh 5\n";
    let profile = fold::parse(text, Unit::Samples).expect("it is folded text");
    let tree = CallTree::new(&profile);
    let calls = Calls::new(&profile, &tree, false);
    let (mut names, mut columns) = (Names::default(), Columns::default());
    calls.push(&[], &mut names, &mut columns);
    let shapes = columns.shapes(0);
    assert_eq!(shapes[5], json!(["node_up", 6]));
    let mut places: Vec<(u32, u64)> = tree
        .samples()
        .iter()
        .map(|sample| (calls.place(sample.node), sample.weight))
        .collect();
    places.sort_unstable();
    // `a` and `b`, then `main` with `again` before `work`; what has no stack is at the root.
    assert_eq!(places, [(0, 5), (2, 4), (4, 1), (6, 2)]);
}

#[test]
fn a_profile_without_weight_is_no_page() {
    let empty = Profile::new(Unit::Samples, Window::default());
    let mut page = Vec::new();
    assert!(matches!(
        write(&empty, &Style::default(), &mut page),
        Err(Error::Empty)
    ));
    assert!(page.is_empty());
}
