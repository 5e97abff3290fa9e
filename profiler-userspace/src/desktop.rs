//! Opening a file in the browser of the person who called.
//!
//! In: a file, and who we are. Out: a started program, or a sentence that says why there is none.
//! Never: a browser that runs as root, or on a screen that the caller does not sit at: where sudo hides the caller's
//! session, it is that of our own ancestors, which the caller started.

use crate::caller::User;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Command of xdg-utils that opens a file with the program that its owner prefers, on all desktops.
const OPENER: &str = "xdg-open";

/// How long the opener is watched. What lives longer is the browser itself.
const WATCHED: Duration = Duration::from_secs(2);
const GLANCE: Duration = Duration::from_millis(20);

/// More ancestors than anybody has.
const MAX_ANCESTORS: usize = 64;
/// The most that is read of an environment, in bytes.
const MAX_ENVIRONMENT: u64 = 1 << 20;

/// One of these must be there, or there is no screen.
const DISPLAYS: [&str; 2] = ["WAYLAND_DISPLAY", "DISPLAY"];
/// Environment variables that a program needs to be part of a session.
const SESSION: [&str; 13] = [
    "BROWSER",
    "DBUS_SESSION_BUS_ADDRESS",
    "DESKTOP_SESSION",
    "DISPLAY",
    "HOME",
    "LANG",
    "USER",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_CURRENT_DESKTOP",
    "XDG_DATA_DIRS",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_TYPE",
];

/// Variables by name.
type Environment = BTreeMap<OsString, OsString>;

/// Opens a file, and says what came of it, in a line.
pub(crate) fn open(file: &Path) -> String {
    let shown = file.display();
    let is_root = rustix::process::geteuid().is_root();
    // Root's own session is nobody's screen.
    let caller = User::who_called_sudo().filter(|caller| caller.uid != 0);
    let (caller, environment) = match (is_root, caller) {
        (false, _) => (None, own()),
        (true, Some(caller)) => {
            let mut environments = vec![own()];
            environments.extend(of_ancestors(caller.uid));
            (Some(caller), session_of(caller, &environments))
        }
        (true, None) => {
            return format!(
                "flame-bpf: {shown} is not opened: a browser should not run as root; call flame-bpf by sudo, or open it \
                 as yourself\n"
            );
        }
    };
    if !has_display(&environment) {
        return format!(
            "flame-bpf: {shown} is not opened: this session has no display (neither DISPLAY nor WAYLAND_DISPLAY is set); \
             copy it to where there is one\n"
        );
    }
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    match start(caller, &environment, file.as_os_str()) {
        Ok(None) => format!("opened: {shown}\n"),
        Ok(Some(status)) if status.success() => format!("opened: {shown}\n"),
        Ok(Some(status)) => format!(
            "flame-bpf: {shown} is not opened: {OPENER} failed ({status}); open it in a browser yourself\n"
        ),
        Err(error) => format!(
            "flame-bpf: {shown} is not opened: {OPENER} cannot be started ({error}); install xdg-utils, or open it in a \
             browser yourself\n"
        ),
    }
}

/// Starts the opener. Returns how it ended, if it did.
fn start(
    caller: Option<User>,
    environment: &Environment,
    file: &OsStr,
) -> std::io::Result<Option<ExitStatus>> {
    let mut command = match caller {
        None => Command::new(OPENER),
        Some(User { uid, gid }) => {
            // The standard library leaves a user's further groups out, and screens are for some of them.
            let mut command = Command::new("setpriv");
            command
                .arg(format!("--reuid={uid}"))
                .arg(format!("--regid={gid}"))
                .args(["--init-groups", "--inh-caps=-all", OPENER]);
            command
        }
    };
    command.env_clear().envs(environment);
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    let mut started = command
        .arg(file)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C is for us alone.
        .process_group(0)
        .spawn()?;
    let begun = Instant::now();
    while begun.elapsed() < WATCHED {
        if let Some(status) = started.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(GLANCE);
    }
    Ok(None)
}

/// The caller's session, of the first of these environments that has a display; with what the system would say of it.
fn session_of(caller: User, environments: &[Environment]) -> Environment {
    let displays = environments
        .iter()
        .find(|environment| has_display(environment));
    // Ours is root's but for the display that sudo keeps, so the others say who the caller is.
    let callers = environments.iter().skip(1).chain(displays);
    let mut session = Environment::new();
    for environment in callers {
        for name in SESSION {
            let name = OsStr::new(name);
            let is_of_display = ["DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"]
                .iter()
                .any(|of_display| name == *of_display);
            let from = if is_of_display {
                displays
            } else {
                Some(environment)
            };
            if let Some(value) = from.and_then(|from| from.get(name)) {
                let known = session.entry(name.to_owned());
                known.or_insert_with(|| value.clone());
            }
        }
    }
    if environments.len() < 2 {
        // There is nobody to ask: what sudo left is root's.
        for name in [
            "HOME",
            "USER",
            "DBUS_SESSION_BUS_ADDRESS",
            "XDG_RUNTIME_DIR",
        ] {
            session.remove(OsStr::new(name));
        }
    }
    let runtime = format!("/run/user/{}", caller.uid);
    let bus = format!("unix:path={runtime}/bus");
    for (name, value) in [
        ("XDG_RUNTIME_DIR", runtime),
        ("DBUS_SESSION_BUS_ADDRESS", bus),
    ] {
        let known = session.entry(name.into());
        known.or_insert_with(|| value.into());
    }
    session
}

fn has_display(environment: &Environment) -> bool {
    let is_set = |name: &str| {
        let value = environment.get(OsStr::new(name));
        value.is_some_and(|value| !value.is_empty())
    };
    DISPLAYS.iter().any(|name| is_set(name))
}

fn own() -> Environment {
    std::env::vars_os().collect()
}

/// The environments of those of our ancestors that belong to a user, the nearest first.
fn of_ancestors(uid: u32) -> Vec<Environment> {
    let mut found = Vec::new();
    let mut pid = std::process::id();
    for _ in 0..MAX_ANCESTORS {
        let Some(parent) = parent(pid).filter(|parent| *parent > 1) else {
            break;
        };
        pid = parent;
        let place = format!("/proc/{pid}");
        let is_theirs = std::fs::metadata(&place).is_ok_and(|metadata| metadata.uid() == uid);
        if !is_theirs {
            continue;
        }
        let mut bytes = Vec::new();
        let read = File::open(format!("{place}/environ"))
            .and_then(|file| file.take(MAX_ENVIRONMENT).read_to_end(&mut bytes));
        if read.is_ok() {
            found.push(parse(&bytes));
        }
    }
    found
}

/// `PPid:` of proc(5)'s status.
fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

/// `NAME=value`, with a zero behind each.
fn parse(bytes: &[u8]) -> Environment {
    let variables = bytes.split(|byte| *byte == 0);
    variables
        .filter_map(|variable| {
            let equals = variable.iter().position(|byte| *byte == b'=')?;
            let (name, value) = variable.split_at(equals);
            let value = OsString::from_vec(value[1..].to_vec());
            Some((OsStr::from_bytes(name).to_owned(), value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(environments: &[&[u8]]) -> Vec<(String, String)> {
        let environments: Vec<Environment> =
            environments.iter().map(|bytes| parse(bytes)).collect();
        let caller = User {
            uid: 1000,
            gid: 1000,
        };
        let session = session_of(caller, &environments).into_iter();
        let text = |text: OsString| text.to_string_lossy().into_owned();
        session
            .map(|(name, value)| (text(name), text(value)))
            .collect()
    }

    fn value<'a>(session: &'a [(String, String)], name: &str) -> Option<&'a str> {
        let found = session.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    #[test]
    fn the_session_is_that_of_the_caller_and_not_of_root() {
        let root: &[u8] = b"HOME=/root\0USER=root\0DISPLAY=:0\0LD_PRELOAD=/x\0PATH=/sbin\0";
        let shell: &[u8] =
            b"HOME=/home/a\0USER=a\0DISPLAY=:7\0DBUS_SESSION_BUS_ADDRESS=unix:x\0LD_PRELOAD=/y\0";
        let kept = session(&[root, shell]);
        assert_eq!(value(&kept, "HOME"), Some("/home/a"));
        assert_eq!(value(&kept, "USER"), Some("a"));
        assert_eq!(value(&kept, "DBUS_SESSION_BUS_ADDRESS"), Some("unix:x"));
        // sudo kept the display, with the authority that belongs to it.
        assert_eq!(value(&kept, "DISPLAY"), Some(":0"));
        assert_eq!(value(&kept, "LD_PRELOAD"), None);
        assert_eq!(value(&kept, "PATH"), None);
    }

    #[test]
    fn a_display_that_sudo_hides_is_that_of_the_shell() {
        let root: &[u8] = b"HOME=/root\0";
        let tmux: &[u8] = b"HOME=/home/a\0TERM=screen\0";
        let desktop: &[u8] = b"HOME=/home/a\0WAYLAND_DISPLAY=wayland-0\0XAUTHORITY=/run/x\0";
        let found = session(&[root, tmux, desktop]);
        assert_eq!(value(&found, "WAYLAND_DISPLAY"), Some("wayland-0"));
        assert_eq!(value(&found, "XAUTHORITY"), Some("/run/x"));
        assert_eq!(value(&found, "XDG_RUNTIME_DIR"), Some("/run/user/1000"));
        assert_eq!(
            value(&found, "DBUS_SESSION_BUS_ADDRESS"),
            Some("unix:path=/run/user/1000/bus")
        );
        let none = session(&[root, tmux]);
        assert_eq!(value(&none, "DISPLAY"), None);
        // A caller of whom nothing is known has no home, rather than root's.
        assert_eq!(
            value(&session(&[b"HOME=/root\0DISPLAY=:0\0"]), "HOME"),
            None
        );
    }

    #[test]
    fn environments_are_read_whatever_is_in_them() {
        assert_eq!(parse(b"").len(), 0);
        let odd = parse(b"A=\0=x\0nothing\0B=a=b\xff\0");
        assert_eq!(odd.get(OsStr::new("A")), Some(&OsString::new()));
        assert_eq!(odd[OsStr::new("B")].as_bytes(), b"a=b\xff");
        assert!(!odd.contains_key(OsStr::new("nothing")));
        assert!(!has_display(&parse(b"DISPLAY=\0")));
    }

    #[test]
    fn our_parent_is_found() {
        assert_eq!(
            parent(std::process::id()),
            Some(std::os::unix::process::parent_id())
        );
    }
}
