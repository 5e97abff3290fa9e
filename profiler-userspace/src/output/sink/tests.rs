use super::*;
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory for the test")
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("the directory");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

fn deliver(sink: &Sink, text: &str) -> Result<Delivery, OutputError> {
    sink.deliver(|out| Ok(out.write_all(text.as_bytes())?))
}

fn refusal(path: &Path) -> String {
    Sink::prepare(path).expect_err("a refusal").to_string()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("the file").mode() & 0o7777
}

fn root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn preparing_leaves_nothing_behind() {
    let directory = directory();
    Sink::prepare(&directory.path().join("a.svg")).unwrap();
    assert!(names(directory.path()).is_empty());
}

#[test]
fn a_file_is_there_when_it_is_complete() {
    let directory = directory();
    let path = directory.path().join("a.svg");
    let sink = Sink::prepare(&path).unwrap();
    let delivery = sink.deliver(|out| {
        out.write_all(b"half ")?;
        out.flush()?;
        assert!(!path.exists(), "half a file can be seen");
        assert_eq!(names(directory.path()).len(), 1, "it is written beside");
        Ok(out.write_all(b"and half")?)
    });
    assert_eq!(delivery.unwrap(), Delivery::Complete);
    assert_eq!(fs::read_to_string(&path).unwrap(), "half and half");
    assert_eq!(names(directory.path()), ["a.svg"]);
}

#[test]
fn a_failed_write_keeps_the_existing_file() {
    let directory = directory();
    let path = directory.path().join("a.svg");
    fs::write(&path, "older").unwrap();
    let sink = Sink::prepare(&path).unwrap();
    let error = sink.deliver(|out| {
        out.write_all(b"newer")?;
        out.flush()?;
        Err(OutputError::Empty)
    });
    assert!(matches!(error, Err(OutputError::Empty)));
    let error = sink
        .deliver(|_| Err(OutputError::Write(io::ErrorKind::StorageFull.into())))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "cannot finish `{}`: no storage space; nothing of it was kept; free some space, or write to another file system",
            path.display()
        )
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "older");
    assert_eq!(names(directory.path()), ["a.svg"]);
}

#[test]
fn a_directory_removed_meanwhile_is_an_error() {
    let directory = directory();
    let inner = directory.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let sink = Sink::prepare(&inner.join("a.svg")).unwrap();
    fs::remove_dir(&inner).unwrap();
    assert!(
        deliver(&sink, "x")
            .unwrap_err()
            .to_string()
            .contains("No such file or directory")
    );
}

#[test]
fn a_missing_directory_is_refused_with_its_name() {
    let directory = directory();
    let path = directory.path().join("no/where/a.svg");
    let message = refusal(&path);
    let missing = path.parent().unwrap().display().to_string();
    assert_eq!(
        message,
        format!(
            "cannot write `{}`: there is no directory `{missing}`; make it with `mkdir -p` first",
            path.display()
        )
    );
}

#[test]
fn a_path_that_cannot_hold_a_file_is_refused() {
    let directory = directory();
    let inner = directory.path().join("inner");
    fs::create_dir(&inner).unwrap();
    symlink(&inner, directory.path().join("link")).unwrap();
    symlink(
        directory.path().join("circle"),
        directory.path().join("circle"),
    )
    .unwrap();
    fs::write(directory.path().join("file"), "").unwrap();
    let _listening =
        std::os::unix::net::UnixListener::bind(directory.path().join("socket")).unwrap();
    let cases = [
        ("inner", "it is a directory; name a file in it"),
        ("inner/", "it is a directory; name a file in it"),
        ("new/", "it is a directory; name a file in it"),
        ("inner/..", "it is a directory; name a file in it"),
        ("link", "it is a directory; name a file in it"),
        ("circle", "it is a link in a circle; name a file"),
        ("socket", "it is a socket; name a file"),
        (
            "file/a.svg",
            "Not a directory (os error 20); write to another place",
        ),
        (
            &"x".repeat(300),
            "File name too long (os error 36); choose a shorter name",
        ),
    ];
    assert_eq!(
        refusal(Path::new("")),
        "cannot write ``: it is an empty name; name a file"
    );
    for (name, wanted) in cases {
        let path = directory.path().join(name);
        assert_eq!(
            refusal(&path),
            format!("cannot write `{}`: {wanted}", path.display())
        );
    }
}

#[test]
fn an_unwritable_path_is_refused() {
    if root() {
        // Root may write anywhere but where nobody may.
        let message = refusal(Path::new("/proc/a.svg"));
        assert!(
            message.starts_with("cannot write `/proc/a.svg`: "),
            "{message}"
        );
        return;
    }
    let directory = directory();
    let path = directory.path().join("a.svg");
    fs::write(&path, "older").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
    let denied =
        "Permission denied (os error 13); run with sudo, or write to a directory of your own";
    assert_eq!(
        refusal(&path),
        format!("cannot write `{}`: {denied}", path.display())
    );
    fs::set_permissions(directory.path(), Permissions::from_mode(0o555)).unwrap();
    let other = directory.path().join("b.svg");
    assert_eq!(
        refusal(&other),
        format!("cannot write `{}`: {denied}", other.display())
    );
}

#[test]
fn symbolic_links_are_followed_and_kept() {
    let directory = directory();
    let inner = directory.path().join("inner");
    fs::create_dir(&inner).unwrap();
    symlink("inner/b.svg", directory.path().join("a.svg")).unwrap();
    symlink("a.svg", directory.path().join("first.svg")).unwrap();
    for text in ["new", "replaced"] {
        let sink = Sink::prepare(&directory.path().join("first.svg")).unwrap();
        deliver(&sink, text).unwrap();
        assert_eq!(fs::read_to_string(inner.join("b.svg")).unwrap(), text);
    }
    assert!(
        directory.path().join("first.svg").is_symlink()
            && directory.path().join("a.svg").is_symlink()
    );
    assert_eq!(names(&inner), ["b.svg"]);
}

#[test]
fn an_existing_files_mode_is_kept() {
    let directory = directory();
    let path = directory.path().join("a.svg");
    fs::write(&path, "").unwrap();
    for wanted in [0o600, 0o664, 0o755] {
        fs::set_permissions(&path, Permissions::from_mode(wanted)).unwrap();
        deliver(&Sink::prepare(&path).unwrap(), "x").unwrap();
        assert_eq!(mode(&path), wanted);
    }
}

#[test]
fn a_new_files_mode_obeys_the_umask() {
    let directory = directory();
    let path = directory.path().join("a.svg");
    deliver(&Sink::prepare(&path).unwrap(), "x").unwrap();
    let plain = directory.path().join("plain");
    fs::write(&plain, "").unwrap();
    assert_eq!(mode(&path), mode(&plain) & 0o644);
}

#[test]
fn a_new_file_belongs_to_the_sudo_caller_and_an_existing_one_keeps_its_owner() {
    // Without root, the only owner that can be given is oneself.
    let us = (
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    let (uid, gid) = if root() { (1234, 2345) } else { us };
    let directory = directory();
    let path = directory.path().join("a.svg");
    let sink = Sink::prepare_for(&path, User::new(&uid.to_string(), &gid.to_string())).unwrap();
    deliver(&sink, "x").unwrap();
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (uid, gid));

    let sink = Sink::prepare_for(&path, User::new("1", "1")).unwrap();
    deliver(&sink, "y").unwrap();
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (uid, gid));
    assert_eq!(fs::read_to_string(&path).unwrap(), "y");
}

#[test]
fn devices_are_written_in_place() {
    let sink = Sink::prepare(Path::new("/dev/null")).unwrap();
    assert_eq!(deliver(&sink, "x").unwrap(), Delivery::Complete);
    assert!(
        fs::metadata("/dev/null")
            .unwrap()
            .file_type()
            .is_char_device()
    );
    let sink = Sink::prepare(Path::new("/dev/full")).unwrap();
    assert_eq!(
        deliver(&sink, "x").unwrap_err().to_string(),
        "cannot write all to /dev/full: No space left on device (os error 28); free some space, or write to another file system"
    );
}

#[test]
fn dev_stdout_is_standard_output() {
    for path in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        assert!(
            Sink::prepare(Path::new(path)).unwrap().is_stdout(),
            "{path}"
        );
    }
    let directory = directory();
    symlink("/dev/stdout", directory.path().join("out.folded")).unwrap();
    assert!(
        Sink::prepare(&directory.path().join("out.folded"))
            .unwrap()
            .is_stdout()
    );
    assert!(matches!(
        place::find(Path::new("/dev/fd/2")),
        Ok(place::PathTarget::Special)
    ));
    assert!(matches!(
        place::find(Path::new("/proc/1/fd/1")),
        Ok(place::PathTarget::Special)
    ));
    assert!(Sink::stdout().is_stdout());
}

#[test]
fn a_named_pipe_is_written_and_may_lose_its_reader() {
    let directory = directory();
    let path = directory.path().join("pipe.folded");
    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    let sink = Sink::prepare(&path).unwrap();
    let mut reader = Command::new("cat")
        .arg(&path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(deliver(&sink, "through").unwrap(), Delivery::Complete);
    let mut text = String::new();
    io::Read::read_to_string(&mut reader.stdout.take().unwrap(), &mut text).unwrap();
    assert_eq!(text, "through");
    reader.wait().unwrap();

    let mut reader = Command::new("head")
        .args(["-c", "1"])
        .arg(&path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let more_than_a_pipe_holds = "x".repeat(1 << 20);
    assert_eq!(
        deliver(&sink, &more_than_a_pipe_holds).unwrap(),
        Delivery::ReaderGone
    );
    reader.wait().unwrap();
    assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
}

#[test]
fn a_full_disk_leaves_nothing_half_written() {
    // A file size limit is a full disk that needs no root. It holds for a process and raises a
    // signal, so that a shell sets both for a child: this test, once more.
    const MARK: &str = "FLAME_BPF_TEST_FULL_DISK";
    if let Some(path) = std::env::var_os(MARK) {
        let sink = Sink::prepare(Path::new(&path)).unwrap();
        let error = deliver(&sink, &"x".repeat(1 << 20))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("File too large (os error 27); nothing of it was kept"),
            "{error}"
        );
        return;
    }
    let directory = directory();
    let path = directory.path().join("a.svg");
    fs::write(&path, "older").unwrap();
    let again = Command::new("sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 64; exec \"$0\" --exact \"$1\"",
        ])
        .arg(std::env::current_exe().unwrap())
        .arg(format!(
            "{}::a_full_disk_leaves_nothing_half_written",
            module_path!().split_once("::").unwrap().1
        ))
        .env(MARK, &path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&again.stdout);
    assert!(
        again.status.success() && said.contains("1 passed"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "older");
    assert_eq!(names(directory.path()), ["a.svg"]);
}

#[test]
fn a_graph_that_nobody_named_keeps_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("graph");
    let mut place = FileDestination::new(file.clone(), None);
    place.keeps_old = true;
    let old = folder.path().join("graph.old");
    for (text, kept) in [("1", None), ("2", Some("1")), ("3", Some("2"))] {
        let beside = place.create().unwrap();
        beside.as_file().write_all(text.as_bytes()).unwrap();
        place.replace(beside).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        assert_eq!(std::fs::read_to_string(&old).ok().as_deref(), kept);
    }
}
