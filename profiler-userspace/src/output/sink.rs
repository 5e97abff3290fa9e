//! Where bytes go: standard output, a file, or something special such as a pipe.
//!
//! In: a path, and later a function that writes. Out: the complete file, or an error and nothing at
//! all. Never: a file that is half written, or an older one that is lost to a failure.
//!
//! A file is written under another name beside its place and renamed when it is complete. Whether
//! that will work is tried before the recording, when it is not yet too late to choose another place.

mod place;

use super::Error as OutputError;
use crate::caller::User;
use place::FileDestination;
use rustix::fs::{Access, AtFlags, CWD};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// The file of the graph when nothing is said. What was there before is kept beside it, as `.old`: nobody asked to replace it.
pub const DEFAULT_FILE: &str = "flamegraph.svg";

const BUFFER_BYTES: usize = 64 * 1024;

/// Why something cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path can never hold a profile.
    #[error("cannot write `{}`: it is {what}; {remedy}", path.display())]
    Unsuitable {
        /// As given.
        path: PathBuf,
        /// Its kind.
        what: &'static str,
        /// Remedy.
        remedy: &'static str,
    },
    /// The directory does not exist.
    #[error("cannot write `{}`: there is no directory `{}`; make it with `mkdir -p` first", path.display(), directory.display())]
    NoDirectory {
        /// As given.
        path: PathBuf,
        /// Where the file would be.
        directory: PathBuf,
    },
    /// The system refuses.
    #[error("cannot write `{}`: {source}; {}", path.display(), remedy(source))]
    Refused {
        /// As given.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Writing a file failed. Nothing is left of it.
    #[error("cannot finish `{}`: {source}; nothing of it was kept; {}", path.display(), remedy(source))]
    Failed {
        /// As given.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Writing more to a file has failed. It has what was written before.
    #[error("cannot write more to `{}`: {source}; what was written before is kept; {}", path.display(), remedy(source))]
    Stopped {
        /// As given.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Writing to something that keeps what it got has failed.
    #[error("cannot write all to {name}: {source}; {}", remedy(source))]
    Interrupted {
        /// The path as given, or standard output.
        name: String,
        /// The system's reason.
        source: io::Error,
    },
}

fn remedy(reason: &io::Error) -> &'static str {
    match reason.kind() {
        io::ErrorKind::PermissionDenied if !rustix::process::geteuid().is_root() => {
            "run with sudo, or write to a directory of your own"
        }
        io::ErrorKind::ReadOnlyFilesystem => "write to another file system",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space, or write to another file system"
        }
        io::ErrorKind::InvalidFilename => "choose a shorter name",
        _ => "write to another place",
    }
}

/// Fate of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// All of them are there.
    Complete,
    /// The reader of a pipe had enough. No failure: that is how `head` ends.
    ReaderGone,
}

/// A place that bytes can go to.
#[derive(Debug)]
pub struct Sink {
    /// As the user knows it.
    name: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    Stdout,
    /// Not a file that could be replaced: a device, a pipe, someone's descriptor.
    Special,
    File(FileDestination),
}

impl Sink {
    /// Standard output.
    pub fn stdout() -> Self {
        Self {
            name: PathBuf::from("standard output"),
            target: Target::Stdout,
        }
    }

    /// The file `path`, or what it links to. Refuses what cannot be written, as far as that can be
    /// known now, and leaves everything as it was.
    pub fn prepare(path: &Path) -> Result<Self, Error> {
        Self::prepare_for(path, User::who_called_sudo())
    }

    fn prepare_for(path: &Path, owner: Option<User>) -> Result<Self, Error> {
        let target = match place::find(path)? {
            place::PathTarget::Stdout => Target::Stdout,
            place::PathTarget::Special => {
                rustix::fs::accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).map_err(
                    |source| Error::Refused {
                        path: path.to_owned(),
                        source: source.into(),
                    },
                )?;
                Target::Special
            }
            place::PathTarget::File(file) => {
                let mut place = FileDestination::new(file, owner);
                place.keeps_old = path == Path::new(DEFAULT_FILE);
                place.probe().map_err(|source| Error::Refused {
                    path: path.to_owned(),
                    source,
                })?;
                Target::File(place)
            }
        };
        Ok(Self {
            name: path.to_owned(),
            target,
        })
    }

    /// The name by which the user knows this place.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Whether this is standard output, under whatever name.
    pub fn is_stdout(&self) -> bool {
        matches!(self.target, Target::Stdout)
    }

    /// Whether it is a file, which may [grow](Self::grow).
    ///
    /// # Errors
    /// When it is none.
    pub fn may_grow(&self) -> Result<(), Error> {
        self.growing_place().map(|_| ())
    }

    fn growing_place(&self) -> Result<&FileDestination, Error> {
        match &self.target {
            Target::File(place) => Ok(place),
            _ => Err(Error::Unsuitable {
                path: self.name.clone(),
                what: "no file that can grow",
                remedy: "name one, or leave --window out",
            }),
        }
    }

    /// Has `fill` write what the file begins with, and puts it into its place, where it may grow. On an error the
    /// place is as it was before.
    pub fn grow<T>(
        &self,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> Result<(Growing, T), OutputError> {
        let place = self.growing_place()?;
        let begun = place.create().and_then(|beside| {
            let filled = fill(&mut beside.as_file())?;
            let file = beside.as_file().try_clone()?;
            let whole = file.metadata()?.len();
            place.replace(beside)?;
            let name = self.name.clone();
            Ok((Growing { name, file, whole }, filled))
        });
        let failed = |source| Error::Failed {
            path: self.name.clone(),
            source,
        };
        Ok(begun.map_err(failed)?)
    }

    /// Has `fill` write everything, and puts it into its place. On an error of `fill`, or of the
    /// system, the place is as it was before, unless it is one that bytes pass through.
    pub fn deliver(
        &self,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), OutputError>,
    ) -> Result<Delivery, OutputError> {
        let outcome = match &self.target {
            Target::Stdout => io::stdout()
                .as_fd()
                .try_clone_to_owned()
                .map_err(OutputError::Write)
                .and_then(|stdout| pour(File::from(stdout), fill)),
            Target::Special => File::options()
                .write(true)
                .open(&self.name)
                .map_err(OutputError::Write)
                .and_then(|file| pour(file, fill)),
            Target::File(place) => place
                .create()
                .map_err(OutputError::Write)
                .and_then(|beside| {
                    pour(beside.as_file(), fill)?;
                    Ok(place.replace(beside)?)
                }),
        };
        match outcome {
            Ok(()) => Ok(Delivery::Complete),
            Err(OutputError::Write(reason)) if reason.kind() == io::ErrorKind::BrokenPipe => {
                Ok(Delivery::ReaderGone)
            }
            Err(OutputError::Write(source)) => Err(match &self.target {
                Target::File(_) => Error::Failed {
                    path: self.name.clone(),
                    source,
                },
                Target::Stdout | Target::Special => Error::Interrupted {
                    name: self.name.display().to_string(),
                    source,
                },
            }
            .into()),
            Err(other) => Err(other),
        }
    }
}

/// A file that is in its place, and grows.
#[derive(Debug)]
pub struct Growing {
    name: PathBuf,
    file: File,
    // How many bytes of it are whole.
    whole: u64,
}

impl Growing {
    /// Has `fill` write more. On an error the file is as it was before.
    pub fn add(
        &mut self,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        let mut buffer = Vec::new();
        let added = fill(&mut buffer).and_then(|()| self.file.write_all(&buffer));
        if let Err(source) = added {
            // Bytes behind are no window, and a reader says so; but they need not be there.
            let _it_is_said_then = self.file.set_len(self.whole);
            return Err(Error::Stopped {
                path: self.name.clone(),
                source,
            }
            .into());
        }
        self.whole += buffer.len() as u64;
        Ok(())
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.whole
    }
}

fn pour(
    file: impl Write,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), OutputError>,
) -> Result<(), OutputError> {
    let mut buffer = BufWriter::with_capacity(BUFFER_BYTES, file);
    let filled = fill(&mut buffer);
    if filled.is_err() {
        // The rest of the buffer is worth nothing now, and writing it could only fail again.
        drop(buffer.into_parts());
        return filled;
    }
    Ok(buffer.flush()?)
}

#[cfg(test)]
mod tests;
