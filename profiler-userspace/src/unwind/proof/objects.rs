//! The programs and libraries by which the proof goes.
//!
//! In: names, and the machine. Out: those of them that are there.

use std::path::{Path, PathBuf};

/// Files by which the proof goes, if they are there.
pub(in crate::unwind) fn candidates() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = [
        "/lib64/ld-linux-x86-64.so.2",
        "/lib/ld-musl-x86_64.so.1",
        "/usr/bin/bash",
        "/usr/bin/git",
        "/usr/bin/node",
        "/usr/bin/openssl",
        "/usr/bin/perl",
        "/usr/bin/python3",
        "/usr/bin/sqlite3",
        "/usr/sbin/nginx",
        "/usr/bin/redis-server",
        "/usr/bin/x86_64-linux-gnu-ld.bfd",
    ]
    .map(PathBuf::from)
    .to_vec();
    let folders = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/gcc/x86_64-linux-gnu",
        "/usr/lib/jvm",
    ];
    let names = [
        "libc.so.",
        "libm.so.",
        "libmvec.so.",
        "libstdc++.so.",
        "libgcc_s.so.",
        "libcrypto.so.",
        "libssl.so.",
        "libgcrypt.so.",
        "libgnutls.so.",
        "libgmp.so.",
        "libz.so.",
        "liblzma.so.",
        "libzstd.so.",
        "libbz2.so.",
        "libsqlite3.so.",
        "libperl.so.",
        "libpython3",
        "libxml2.so.",
        "libglib-2.0.so.",
        "libcurl.so.",
        "libncursesw.so.",
        "libreadline.so.",
        "libtinfo.so.",
        "libpcre2-8.so.",
        "libexpat.so.",
        "libffi.so.",
        "libelf.so.",
        "libdw.so.",
        "libunwind.so.",
        "libnettle.so.",
        "libsystemd.so.",
        "libX11.so.",
        "libx264.so.",
        "libx265.so.",
        "libde265.so.",
        "libdav1d.so.",
        "librav1e.so.",
        "libavcodec.so.",
        "libtsan.so.",
        "libasan.so.",
        "libitm.so.",
        "libgomp.so.",
        "libLLVM-",
        "libclang",
        "cc1",
        "lto1",
        "libjvm.so",
        "libjsvml.so",
        "libjava.so",
    ];
    for folder in folders {
        below(Path::new(folder), 4, &mut |path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if names.iter().any(|wanted| name.starts_with(wanted)) {
                paths.push(path.to_owned());
            }
        });
    }
    if let Ok(printed) = std::process::Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
    {
        let root = String::from_utf8_lossy(&printed.stdout);
        below(&Path::new(root.trim()).join("lib"), 1, &mut |path| {
            paths.push(path.to_owned());
        });
    }
    let mut real: Vec<PathBuf> = paths
        .iter()
        .filter_map(|path| match path.canonicalize() {
            Ok(path) => Some(path),
            Err(error) => {
                println!("not compared: {}: {error}", path.display());
                None
            }
        })
        .collect();
    real.sort();
    real.dedup();
    real
}

/// Everything in a folder, down to a depth.
fn below(folder: &Path, depth: u32, visit: &mut dyn FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if !path.is_dir() {
            visit(&path);
        } else if depth > 1 {
            below(&path, depth - 1, visit);
        }
    }
}
