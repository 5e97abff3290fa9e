//! Clicks, keys and the pointer: hints, zoom, rows of tables.

use super::*;

#[test]
fn beside_the_pointer_stands_all_about_a_frame_and_its_name_can_be_copied() {
    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let stacks = vec![
        (stack("sh;main;work"), 40),
        (stack("sh;main;work;read_[k]"), 20),
        (stack("sh;main"), 40),
    ];
    let path = write(folder.path(), &profile(Unit::Samples, &stacks));
    let page = open(&mut browser, &path, Screen::LARGE);
    let below = "(() => { const box = canvas.getBoundingClientRect(); return [box.left + 40, box.bottom - 3.5 * 16]; })()";
    let place = page.ask(below);
    let at = |index: usize| place[index].as_f64().expect("it is a number");
    page.point(at(0), at(1));
    let tip =
        "Array.from(document.getElementById('tip').children, (line) => line.textContent).join('|')";
    page.wait_for("!document.getElementById('tip').hidden");
    assert_eq!(
        page.ask(tip),
        "work|self 40 samples, 40.00% of all|total 60 samples, 60.00% of all|kind program"
    );
    let inside = "(() => { const box = document.getElementById('tip').getBoundingClientRect(); \
        return box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight; })()";
    assert_eq!(page.ask(inside), true);
    page.press("c");
    page.wait_for("document.getElementById('found').textContent === 'Copied: work'");
    page.point(at(0), 5.0);
    page.wait_for("document.getElementById('tip').hidden");
    assert_eq!(page.errors(), NOTHING);
}

#[test]
fn back_leads_out_of_a_zoom_and_not_off_the_page() {
    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let stacks = vec![(stack("sh;main;work"), 60), (stack("sh;idle"), 40)];
    let path = write(folder.path(), &profile(Unit::Samples, &stacks));
    let page = open(&mut browser, &path, Screen::LARGE);
    for key in ["ArrowUp", "ArrowUp", "Enter"] {
        page.press(key);
    }
    assert_eq!(text(page, "name"), "main");
    click(page, "view-callers");
    page.ask("history.back()");
    page.wait_for("document.getElementById('view-flame').getAttribute('aria-pressed') === 'true'");
    page.wait_for("document.getElementById('name').textContent === 'main'");
    page.ask("history.back()");
    page.wait_for("document.getElementById('reset').disabled");
    page.ask("history.forward()");
    page.wait_for("!document.getElementById('reset').disabled");
    assert_eq!(page.errors(), NOTHING);
}

#[test]
fn the_whole_row_of_a_table_leads_to_the_function() {
    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let stacks = vec![(stack("sh;main;work"), 60), (stack("sh;idle"), 40)];
    let path = write(folder.path(), &profile(Unit::Samples, &stacks));
    let page = open(&mut browser, &path, Screen::LARGE);
    click(page, "view-functions");
    let place = page.ask("(() => { const box = document.querySelector('#functions-body .cell.self').getBoundingClientRect(); \
        return [box.x + 5, box.y + 5]; })()");
    page.click(place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
    page.wait_for(
        "document.getElementById('view-sandwich').getAttribute('aria-pressed') === 'true'",
    );
    assert_eq!(text(page, "name"), "work");
    assert_eq!(page.errors(), NOTHING);
}
