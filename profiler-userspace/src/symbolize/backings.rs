//! Symbols of the objects that processes of a recording had mapped.
//!
//! In: an [`Object`] and offsets into it. Out: its symbols, and why the rest has none.

use super::locations::Answer;
use super::native::{self, Named, Sources};
use super::objects::{Object, module};
use super::unsymbolized::{Reached, UnsymbolizedCode};
use crate::object::FileOffset;
use crate::process::{Backing, Opened, Processes, Unreachable, vdso};
use std::path::{Path, PathBuf};

/// The symbols at some offsets of an object, as it was opened; none if it could not be, with the reason.
pub(super) fn answer(
    object: &Object,
    backing: &Backing,
    opened: Result<(Opened, PathBuf), Unreachable>,
    sources: Sources<'_>,
    offsets: &[FileOffset],
) -> Answer {
    let (named, reached) = match opened {
        Ok((opened, path)) => (
            native::name(&opened, &path, offsets, sources),
            match opened.root == Path::new("/") {
                true => Reached::Here,
                false => Reached::Elsewhere,
            },
        ),
        Err(reason) => {
            let reached = match reason {
                Unreachable::Gone => Reached::Gone,
                Unreachable::Denied => Reached::Denied,
            };
            (Named::nothing(offsets.len()), reached)
        }
    };
    Answer {
        code: unsymbolized(object, backing, &named, reached),
        named,
        module: module(backing),
        path: backing.path(),
    }
}

/// The object's file, and the path that it had. None if another has its path by now: one that was made after
/// the first of its owners was seen is not what that one ran.
pub(super) fn open(
    object: &Object,
    processes: &Processes,
) -> Result<(Opened, PathBuf), Unreachable> {
    match processes.backing(object.backing) {
        Backing::File(file) => {
            let opened = processes.open(object.backing, &object.owners)?;
            match opened.file.existed(object.since) {
                true => Ok((opened, file.path.clone())),
                false => Err(Unreachable::Gone),
            }
        }
        Backing::Vdso if !object.narrow => vdso::image()
            .map(|image| (Opened::ours(image), PathBuf::new()))
            .ok_or(Unreachable::Gone),
        Backing::Vdso | Backing::Memory { .. } => Err(Unreachable::Gone),
    }
}

/// The code that places without names are in, if the report should have it.
fn unsymbolized(
    object: &Object,
    backing: &Backing,
    named: &Named,
    reached: Reached,
) -> Option<UnsymbolizedCode> {
    match backing {
        // Symbols of an object that has them leave out only a linker's stubs.
        Backing::File(_) if named.has_symbols => None,
        Backing::File(file)
            if named.is_object
                || matches!(reached, Reached::Gone | Reached::Denied) && !file.is_memory() =>
        {
            Some(UnsymbolizedCode::Object {
                module: module(backing),
                path: file.path.clone(),
                build_id: named.build_id.clone(),
                reached,
            })
        }
        _ => object.maker.map(|maker| UnsymbolizedCode::Made {
            tgid: maker.tgid,
            maker: maker.maker,
            has_code_map: maker.has_code_map,
        }),
    }
}
