use super::*;
use crate::debuginfod::tests::{Manner, Server};
use crate::profile::{
    FrameKind, FrameProfile, FrameRef, Function, Mapping, SourceFrame, Unit, Window,
};
use profiler_common::abi::StackEnd;
use rustix::fs::{Mode, mkfifoat};
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// A directory with files of numbered lines.
fn tree(files: &[(&str, u32)]) -> TempDir {
    let root = tempfile::tempdir().expect("a temporary folder");
    for (path, lines) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("folders");
        let text: String = (1..=*lines).map(|line| format!("line {line}\n")).collect();
        fs::write(path, text).expect("a file");
    }
    root
}

/// The source that is found of one line in each of these paths, and what is said.
fn find(root: &Path, wanted: &[(&str, u32)]) -> (SourceText, String) {
    let directories = Directories::open(&[root.to_owned()], &Servers::IfSet).expect("it is there");
    let wanted: Vec<(Arc<str>, u32)> = wanted
        .iter()
        .map(|(path, line)| (Arc::from(*path), *line))
        .collect();
    let lines = wanted.iter().map(|(path, line)| (path, *line));
    let found = directories.find_lines(lines, None, None);
    let text = found.text.expect("source was asked for");
    let said = found.finding.expect("there is something to say").text;
    ((*text).clone(), said)
}

#[test]
fn the_longest_end_of_a_path_is_the_file() {
    let root = tree(&[("src/a.c", 9), ("a.c", 9), ("lib/src/b.c", 9)]);
    let wanted = [
        ("/build/x-1.0/src/a.c", 3),
        ("../lib/./src/b.c", 4),
        ("/build/x-1.0/absent.c", 1),
    ];
    let (text, said) = find(root.path(), &wanted);
    let at = |path: &str| {
        let (_, file) = text.files().find(|(known, _)| *known == path).expect(path);
        file.found_at.clone()
    };
    let found = |end: &str| root.path().join(end).display().to_string();
    assert_eq!(at("/build/x-1.0/src/a.c"), found("src/a.c"));
    assert_eq!(at("../lib/./src/b.c"), found("lib/src/b.c"));
    assert_eq!(text.line("/build/x-1.0/src/a.c", 3), Some("line 3"));
    assert!(
        said.starts_with("2 of 3 files with samples found in "),
        "{said}"
    );
    assert!(
        said.ends_with("; not there: /build/x-1.0/absent.c"),
        "{said}"
    );
}

#[test]
fn no_path_leads_out_of_the_directory_or_to_anything_but_a_file() {
    let outside = tree(&[("secret.c", 9)]);
    let root = tree(&[("src/a.c", 9)]);
    let secret = outside.path().join("secret.c");
    let link = |to: &Path, name: &str| symlink(to, root.path().join(name)).expect("a link");
    link(&secret, "link.c");
    link(outside.path(), "folder");
    link(Path::new("/proc/self/environ"), "magic.c");
    link(Path::new("src/a.c"), "inside.c");
    fs::create_dir(root.path().join("folder.c")).expect("a folder");
    let fifo = root.path().join("fifo.c");
    mkfifoat(rustix::fs::CWD, &fifo, Mode::RUSR | Mode::WUSR).expect("a pipe");
    let up = format!(
        "../{}/secret.c",
        outside.path().file_name().unwrap().to_string_lossy()
    );
    let secret = secret.display().to_string();
    let wanted = [
        (&*secret, 1),
        (&*up, 1),
        ("src/../../secret.c", 1),
        ("link.c", 1),
        ("folder/secret.c", 1),
        ("magic.c", 1),
        ("folder.c", 1),
        ("fifo.c", 1),
        ("nul\0.c", 1),
        ("..", 1),
        ("/", 1),
        ("inside.c", 1),
    ];
    let (text, said) = find(root.path(), &wanted);
    let found: Vec<&str> = text.files().map(|(path, _)| path).collect();
    assert_eq!(found, ["inside.c"], "{said}");
}

#[test]
fn a_file_of_two_paths_is_that_of_the_tree_that_more_are_in() {
    let root = tree(&[("src/lib.rs", 9), ("src/other.rs", 9), ("src/tie.rs", 9)]);
    let own = ("/home/me/project/src/lib.rs", 2);
    let wanted = [
        own,
        ("/home/me/project/src/other.rs", 2),
        ("/rustc/abc/library/core/src/lib.rs", 2),
        ("/one/src/tie.rs", 2),
        ("/two/src/tie.rs", 2),
    ];
    let (text, _) = find(root.path(), &wanted);
    let found: Vec<&str> = text.files().map(|(path, _)| path).collect();
    assert_eq!(found, [own.0, "/home/me/project/src/other.rs"]);
    // Its own path is the best there is.
    let place = root.path().canonicalize().expect("it is there");
    let place = place.join("src/tie.rs").display().to_string();
    let (text, _) = find(root.path(), &[("/one/src/tie.rs", 2), (&place, 2)]);
    let found: Vec<&str> = text.files().map(|(path, _)| path).collect();
    assert_eq!(found, [place]);
}

#[test]
fn another_file_of_the_same_name_is_not_taken() {
    let root = tree(&[("a.c", 9)]);
    let (text, _) = find(root.path(), &[("/src/a.c", 10)]);
    assert!(text.is_empty());
}

#[test]
fn lines_are_there_with_some_around_and_no_others() {
    let root = tree(&[("a.c", 1000)]);
    let (text, _) = find(root.path(), &[("a.c", 5), ("a.c", 30), ("a.c", 500)]);
    let (_, file) = text.files().next().expect("it is there");
    let spans: Vec<(u32, u32)> = (file.runs.iter())
        .map(|run| (run.first, run.first + run.lines.len() as u32 - 1))
        .collect();
    assert_eq!(spans, [(1, 40), (490, 510)]);
}

#[test]
fn no_file_and_no_line_is_too_large() {
    let root = tree(&[("a.c", 3)]);
    let long = format!("x\t{}\u{202e}\n", "y".repeat(1 << 20));
    fs::write(root.path().join("long.c"), long).expect("a file");
    let huge = "line\n".repeat(1 << 20);
    fs::write(root.path().join("huge.c"), huge).expect("a file");
    let (text, said) = find(root.path(), &[("a.c", 1), ("long.c", 1), ("huge.c", 1)]);
    let line = text.line("long.c", 1).expect("it is there");
    assert!(
        line.starts_with("x       yyy") && line.len() < 300,
        "{line}"
    );
    assert!(
        said.ends_with("; 1 file there with fewer lines, or larger than 4 MiB"),
        "{said}"
    );
    assert_eq!(shown("\u{202e}a\u{1b}\r"), "\\u{202e}a\\u{1b}");

    // Files of so many lines do not fit together.
    let files: Vec<String> = (0..40).map(|number| format!("f{number}.c")).collect();
    let text = format!("{}\n", "z".repeat(200)).repeat(400);
    for file in &files {
        fs::write(root.path().join(file), &text).expect("a file");
    }
    let wanted: Vec<(&str, u32)> = files
        .iter()
        .flat_map(|file| (1..400).step_by(20).map(|line| (&**file, line)))
        .collect();
    let (text, said) = find(root.path(), &wanted);
    let bytes: usize = text
        .files()
        .flat_map(|(_, file)| &file.runs)
        .flat_map(|run| &run.lines)
        .map(|line| line.len() + 1)
        .sum();
    assert!(bytes <= MAX_TEXT_BYTES, "{bytes}");
    assert!(
        said.ends_with(
            " of less weight left out, beyond 4096 files or 1 MiB of text: select with --focus"
        ),
        "{said}"
    );
}

#[test]
fn what_was_sampled_is_looked_for() {
    let root = tree(&[("a.c", 9)]);
    let mut profile = FrameProfile::new(Profile::new(Unit::Samples, Window::default()));
    let frame = |name, file, line| SourceFrame {
        frame: FrameRef {
            name,
            kind: FrameKind::User,
        },
        file,
        line,
    };
    profile.push(&[frame("main", "/x/a.c", 2), frame("work", "", 0)], 3, 3);
    let mut profile = profile.into_profile();
    // Functions are one frame each, and lines are known all the same.
    profile.line_frames = false;
    let directories =
        Directories::open(&[root.path().to_owned()], &Servers::IfSet).expect("it is there");
    let found = directories.find(&profile);
    let text = found.text.expect("source was asked for");
    assert_eq!(text.line("/x/a.c", 2), Some("line 2"));
    let none = Directories::open(&[], &Servers::IfSet)
        .expect("nothing to open")
        .find(&profile);
    assert!(none.text.is_none() && none.finding.is_none());
    let error = Directories::open(&[root.path().join("absent")], &Servers::IfSet)
        .err()
        .expect("it is absent");
    assert!(
        format!("{error:#}").starts_with("cannot read --source "),
        "{error:#}"
    );
}

/// The source that is found of a build's lines in a directory and on a server that behaves so, and what is said.
fn find_with_server(manner: Manner) -> (SourceText, String) {
    let root = tree(&[("src/a.c", 9)]);
    let wanted = "abcd/source/build/x%2B1/src/b.c".to_owned();
    let servers = Servers::Named(Server::start_with(wanted, manner).address);
    let names = [root.path().to_owned(), PathBuf::from(SERVERS)];
    let directories = Directories::open(&names, &servers).expect("both are there");
    let mut profile = Profile::new(Unit::Samples, Window::default());
    let mapping = Some(profile.mapping(Mapping {
        path: "/usr/bin/x".into(),
        build_id: [0xab, 0xcd].into(),
        ..Mapping::default()
    }));
    for (file, line) in [
        ("/build/x+1/src/a.c", 3),
        ("/build/x+1/src/b.c", 2),
        ("/build/x+1/src/c.c", 2),
        ("relative.c", 2),
    ] {
        let function = Function {
            file: file.into(),
            ..Function::named(file)
        };
        profile.push_line(mapping, u64::from(line), (function, line), StackEnd::Root);
    }
    let found = directories.find(&profile);
    let text = found.text.expect("source was asked for");
    let said = found.finding.expect("there is something to say").text;
    ((*text).clone(), said)
}

#[test]
fn what_no_directory_has_comes_from_servers_by_build_id() {
    let has = Manner::Has(Arc::new(b"one\ntwo\n".to_vec()));
    let (text, said) = find_with_server(has);
    assert_eq!(text.line("/build/x+1/src/a.c", 3), Some("line 3"));
    assert_eq!(text.line("/build/x+1/src/b.c", 2), Some("two"));
    assert_eq!(text.files().count(), 2);
    assert!(
        said.starts_with("2 of 4 files") && said.contains(", debuginfod; not there: "),
        "{said}"
    );
    let names = [PathBuf::from(SERVERS)];
    let error = Directories::open(&names, &Servers::Named(String::new())).err();
    let error = error.expect("there is no server").to_string();
    assert!(error.contains("no server is known"), "{error}");
}

#[test]
fn what_servers_do_not_give_is_told_with_its_reason() {
    let (text, said) = find_with_server(Manner::Fails);
    assert_eq!(text.files().count(), 1);
    assert!(
        said.contains("was not asked again: ") && said.contains("500"),
        "{said}"
    );
    let huge = vec![b'\n'; MAX_FILE_BYTES as usize + 1];
    let (text, said) = find_with_server(Manner::Has(Arc::new(huge)));
    assert_eq!(text.files().count(), 1);
    assert!(
        said.contains("1 file there with fewer lines, or larger than 4 MiB"),
        "{said}"
    );
}
