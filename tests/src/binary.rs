//! Finds the flame-bpf binary under test.

use std::env;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The variable that names the binary to test, instead of the one found beside the tests.
const VARIABLE: &str = "FLAME_BPF_BIN";

/// The flame-bpf binary: `FLAME_BPF_BIN`, or the one built last in the target folder that the running
/// test was built in.
///
/// # Panics
///
/// When there is none, with a sentence that says how to build it.
pub fn binary() -> PathBuf {
    if let Some(named) = env::var_os(VARIABLE) {
        let named = PathBuf::from(named);
        assert!(
            named.is_file(),
            "{VARIABLE} names {}, which is not a file",
            named.display()
        );
        return named;
    }
    let test = env::current_exe().expect("the running test has a path");
    let target = target_folder(&test);
    ["release", "debug"]
        .iter()
        .map(|profile| target.join(profile).join("flame-bpf"))
        .filter_map(|path| Some((built(&path)?, path)))
        .max()
        .map(|(_, path)| path)
        .unwrap_or_else(|| {
            panic!(
                "no flame-bpf in {}/{{release,debug}}: build it with `cargo build --release`, or name one with {VARIABLE}",
                target.display()
            )
        })
}

/// The folder above `<profile>/deps/<test>`.
fn target_folder(test: &Path) -> PathBuf {
    test.ancestors()
        .nth(3)
        .expect("cargo puts tests in <target>/<profile>/deps")
        .to_owned()
}

fn built(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_is_looked_for_in_the_target_folder() {
        assert_eq!(
            target_folder(Path::new("/x/target/debug/deps/kernel_on_cpu-1f")),
            Path::new("/x/target")
        );
    }
}
