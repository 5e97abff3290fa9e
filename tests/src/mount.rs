//! Mounted file systems.

use std::path::PathBuf;
use std::process::Command;

/// A file system that is unmounted when the value is dropped.
#[derive(Debug)]
pub struct Mounted(pub PathBuf);

impl Mounted {
    /// A new file system at a folder that is there, with room for so many KiB.
    ///
    /// # Errors
    ///
    /// When nothing can be mounted here.
    pub fn small(folder: PathBuf, kib: u32) -> Result<Self, String> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={kib}k"), "none"]);
        match mount.arg(&folder).status() {
            Ok(status) if status.success() => Ok(Self(folder)),
            _ => Err("no file system can be mounted here".to_owned()),
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let mut unmount = Command::new("umount");
        // Nothing is mounted any more, then.
        let _unmounted = unmount.arg("-l").arg(&self.0).status();
    }
}
