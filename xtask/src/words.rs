//! Words that the field has better ones for, and that were hunted down once; words that comments
//! do not begin with.
//!
//! In: the Rust files and the documents. Out: each place where such a word came back, and the word to use.
//! Never: strings. What a user reads is the tests' business.

use std::path::Path;

use crate::source::Source;

/// A word that was hunted down.
struct Hunted {
    /// One name or several, such as `leaf_word`; an `s` at the end counts as the same word.
    word: &'static str,
    instead: &'static str,
    /// Whether it has no other meaning, so that comments and documents may not have it either.
    everywhere: bool,
}

/// A word that is gone from names alone, and one that is gone from comments and documents, too.
const fn names(word: &'static str, instead: &'static str) -> Hunted {
    Hunted {
        word,
        instead,
        everywhere: false,
    }
}

const fn everywhere(word: &'static str, instead: &'static str) -> Hunted {
    Hunted {
        word,
        instead,
        everywhere: true,
    }
}

/// The list may only become longer.
const HUNTED: &[Hunted] = &[
    everywhere("seat", "cpu_slot"),
    names("books", "counters"),
    names("track", "event"),
    everywhere("spot", "location"),
    everywhere("locator", "normalizer"),
    names("locate", "normalize"),
    names("located", "normalized"),
    names("doing", "ThreadState"),
    names("heard", "received"),
    names("hearing", "events"),
    names("hired", "spawned"),
    names("house", "layering"),
    names("unsteady", "flaky"),
    everywhere("circumstances", "RecordingInfo"),
    names("desk", "queue"),
    names("shelf", "cache"),
    names("hire", "spawn"),
    names("pace", "sampling arguments"),
    names("thin", "wait_sampling"),
    names("recognize", "look up in kstack_cache"),
    names("recall", "look up in kstack_cache"),
    names("one_look", "single_lookup"),
    names("identity", "process_key"),
    names("linked_with", "needed_libs"),
    names("gap_id", "unsymbolized"),
    names("allowance", "budget"),
    everywhere("deed", "cache op"),
    names("side_by_side", "parallel"),
    names("labour", "run_jobs"),
    names("notice", "kernel event"),
    names("news", "kernel events"),
    names("hear", "handle"),
    names("look_period", "wait_sample_period"),
    names("sleeper_table", "thread table"),
    names("tell_mapping", "mapping_events"),
    names("mappings_untold", "mapping_events_dropped"),
    names("urgent", "is_priority"),
    names("let_go", "remove"),
    names("take_in", "add, or handle"),
    names("glue", "hidden_frames"),
];

/// Names of types that do not say what the type is, so that many had them.
const VAGUE: &[&str] = &[
    "Asked", "Found", "How", "Known", "Look", "Piece", "Place", "Row", "Shown", "Stored", "Wanted",
    "What",
];

/// Beginnings of constants' names, and the usual ones.
const BOUNDS: &[(&str, &str)] = &[
    ("MOST", "MAX"),
    ("LARGEST", "MAX"),
    ("LEAST", "MIN"),
    ("USUAL", "DEFAULT"),
];

/// Names that hold such a word and are not ours.
const FOREIGN: &[&str] = &["track_caller"];

/// Words that no line of a comment begins with: its subject comes first.
const QUESTIONS: &[&str] = &["What", "Who", "Whoever", "Whom", "Whose"];

/// Every line of a comment that begins with a question word, one sentence each.
pub(crate) fn questions(sources: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    for source in sources {
        for (number, line) in (1..).zip(source.text.lines()) {
            if let Some(word) = question(line) {
                wrong.push(format!(
                    "{}:{number}: the comment begins with {word}: begin with its noun or verb",
                    source.path.display()
                ));
            }
        }
    }
    wrong
}

/// The question word that a line begins with, if it is a comment's.
fn question(line: &str) -> Option<&str> {
    let comment = line.trim_start().strip_prefix("//")?;
    let text = comment.strip_prefix(['/', '!']).unwrap_or(comment);
    let first = text
        .trim_start()
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .next()?;
    QUESTIONS.contains(&first).then_some(first)
}

/// Every hunted word that came back to the code, one sentence each.
pub(crate) fn in_code(sources: &[Source]) -> Vec<String> {
    let own = |source: &&Source| !source.path.ends_with("xtask/src/words.rs");
    let mut wrong = Vec::new();
    for source in sources.iter().filter(own) {
        let shown = source.path.display();
        for name in source.names() {
            if FOREIGN.contains(&name.as_str()) {
                continue;
            }
            let parts = format!("_{}_", parts(&name));
            for hunted in HUNTED.iter().filter(|hunted| hunted.is_in(&parts)) {
                wrong.push(format!("{shown} has the name {name}: {}", hunted.remedy()));
            }
        }
        for (keyword, name) in source.definitions() {
            let remedy = if keyword == "const" || keyword == "static" {
                unusual_bound(&name)
            } else {
                let is_vague = VAGUE.contains(&name.as_str());
                is_vague.then(|| "say of what it is one".to_owned())
            };
            wrong.extend(remedy.map(|remedy| format!("{shown} defines {name}: {remedy}")));
        }
        for (number, line) in (1..).zip(source.text.lines()) {
            if let Some((_, comment)) = line.split_once("//") {
                wrong.extend(in_prose(comment).map(|said| format!("{shown}:{number}: {said}")));
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    wrong
}

/// The remedy for a constant's name whose first word is not the usual one.
fn unusual_bound(name: &str) -> Option<String> {
    let first = name.split('_').next();
    let (word, usual) = BOUNDS.iter().find(|(word, _)| Some(*word) == first)?;
    Some(format!("say {usual}, not {word}"))
}

/// Every hunted word that came back to a document, one sentence each.
pub(crate) fn in_document(path: &Path, text: &str) -> Vec<String> {
    let lines = (1..).zip(text.lines());
    let wrong = lines.flat_map(|(number, line)| {
        in_prose(line).map(move |said| format!("{}:{number}: {said}", path.display()))
    });
    wrong.collect()
}

fn in_prose(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let parts = words.map(parts).collect::<Vec<_>>().join(" _ ");
    let parts = format!("_{}_", parts.replace(' ', "_"));
    let found = HUNTED
        .iter()
        .filter(move |hunted| hunted.everywhere && hunted.is_in(&parts));
    found.map(Hunted::remedy)
}

impl Hunted {
    /// Whether names that are put together as `_like_this_` hold the word.
    fn is_in(&self, parts: &str) -> bool {
        [format!("_{}_", self.word), format!("_{}s_", self.word)]
            .iter()
            .any(|word| parts.contains(word))
    }

    fn remedy(&self) -> String {
        format!("say {}, not {}", self.instead, self.word)
    }
}

/// Names of others' that are one word, whatever their letters.
const PROPER_NAMES: [&str; 1] = ["HotSpot"];

/// The words of a name in small letters: `like_this` for `LikeThis`, `like_this` and `LIKE_THIS`.
fn parts(name: &str) -> String {
    let name = PROPER_NAMES.iter().fold(name.to_owned(), |name, proper| {
        name.replace(proper, &proper.to_lowercase())
    });
    let mut parts = String::new();
    let mut before = '_';
    for letter in name.chars() {
        if letter.is_uppercase() && (before.is_lowercase() || before.is_numeric()) {
            parts.push('_');
        }
        parts.extend(letter.to_lowercase());
        before = letter;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        in_code(&[Source::new(Path::new("x.rs"), text.to_owned()).expect("Rust")])
    }

    #[test]
    fn a_hunted_word_is_found_however_a_name_is_written() {
        for text in [
            "fn seat() {}",
            "struct CpuSeats;",
            "const MY_SEAT: u8 = 0;",
            "m!(a.two_seats())",
            "// of each seat",
        ] {
            assert_eq!(said(text).len(), 1, "{text}");
        }
        assert_eq!(
            said("struct CpuSeats;"),
            ["x.rs has the name CpuSeats: say cpu_slot, not seat"]
        );
    }

    #[test]
    fn longer_words_and_foreign_names_are_left_alone() {
        for text in [
            "#[track_caller] fn tracking_seatbelts() {} // keep track of the house",
            "struct HotSpot; // A method of HotSpot's.",
        ] {
            assert!(said(text).is_empty(), "{text}");
        }
        assert_eq!(said("struct Spot;").len(), 1);
    }

    #[test]
    fn types_and_constants_have_the_usual_names() {
        for (text, expected) in [
            (
                "enum Place { A }",
                "x.rs defines Place: say of what it is one",
            ),
            (
                "const MOST_ROWS: u8 = 1;",
                "x.rs defines MOST_ROWS: say MAX, not MOST",
            ),
            (
                "mod m { static USUAL: u8 = 1; }",
                "x.rs defines USUAL: say DEFAULT, not USUAL",
            ),
        ] {
            assert_eq!(said(text), [expected]);
        }
        for text in [
            "enum Answer { Found }",
            "struct PlaceOf; const MAX_MOST: u8 = 0;",
            "fn f() { let MOST = Place; }",
        ] {
            assert!(said(text).is_empty(), "{text}");
        }
    }

    fn asked(path: &str, text: &str) -> Vec<String> {
        questions(&[Source::new(Path::new(path), text.to_owned()).expect("Rust")])
    }

    #[test]
    fn a_line_of_a_comment_may_not_begin_with_a_question_word() {
        for text in [
            "//! What it does.",
            "    /// Whose it is.",
            "//Who is there.",
            "// Whom it serves,",
            "// it serves\n\t// Whoever: comes",
        ] {
            assert_eq!(asked("x.rs", text).len(), 1, "{text}");
        }
        assert_eq!(
            asked(
                "a/x.rs",
                "//! Doors.\n\n/// What a door is.\nstruct Door;\n"
            ),
            ["a/x.rs:3: the comment begins with What: begin with its noun or verb"]
        );
    }

    #[test]
    fn other_words_and_lines_may_ask() {
        for text in [
            "// Whatever, and What",
            "// A door: what it is",
            "// what it is",
            "fn a() {} // What it does.",
            "const A: &str = \"// What\";",
        ] {
            assert_eq!(asked("x.rs", text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_document_may_not_have_a_word_that_is_gone_everywhere() {
        let said = in_document(Path::new("d.md"), "one\ntwo `Spots`, a track\n");
        assert_eq!(said, ["d.md:2: say location, not spot"]);
    }
}
