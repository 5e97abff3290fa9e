//! Whole names of threads, of which the kernel keeps the first 15 bytes.
//!
//! In: samples that were drained. Out: names of their threads, where a runtime keeps them and the thread still runs. Each thread is
//! looked for once.

use crate::process::{ProcessKey, Processes, own_thread_id};
use crate::profile::raw::{RawProfile, Who};
use crate::runtime::Namer;
use foldhash::{HashMap, HashSet};
use std::sync::Arc;

/// Bytes of a name that was cut, and perhaps of one that was not.
const CUT: usize = 15;

/// Looks for the names of the threads of samples.
pub(super) fn look(raw: &RawProfile, namer: &mut Namer, processes: &mut Processes) {
    let wakers = raw.samples.iter().filter_map(|sample| sample.waker);
    let wakers = wakers.map(|index| &raw.waker_at(index).who);
    let owners = raw.samples.iter().map(|sample| &sample.who).chain(wakers);
    let is_wanted = |who: &&Who| {
        may_be_cut(who)
            && namer.keeps_thread_names(ProcessKey::from(*who))
            && processes.thread_name(who).is_none()
    };
    let wanted = owners.filter(is_wanted);
    // Those of a thread on several CPUs, or in several cgroups, are one.
    let wanted = wanted.map(|who| Who {
        cpu: None,
        cgroup: 0,
        ..*who
    });
    let mut of: HashMap<ProcessKey, HashSet<Who>> = HashMap::default();
    for who in wanted {
        of.entry(ProcessKey::from(&who)).or_default().insert(who);
    }
    for (process_key, threads) in of {
        let threads: Vec<(u32, Who)> = threads.into_iter().filter_map(numbered).collect();
        let asked: Vec<(u32, &[u8])> = threads
            .iter()
            .map(|(number, who)| (*number, &who.comm[..CUT]))
            .collect();
        let Some(names) = namer.threads(process_key, &asked) else {
            continue;
        };
        for ((_, who), name) in threads.iter().zip(names) {
            let name = name.map(|name| Arc::from(name.into_bytes()));
            processes.name_thread(who, name);
        }
    }
}

/// Whether threads are told apart, and the kernel may have but the beginning of this one's name.
fn may_be_cut(who: &Who) -> bool {
    who.tid.is_some() && !who.comm[..CUT].contains(&0)
}

/// With the number that the thread has in its own namespace; none if it has ended.
fn numbered(who: Who) -> Option<(u32, Who)> {
    Some((own_thread_id(who.tgid, who.tid?)?, who))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_fifteen_bytes_may_be_cut() {
        let who = |comm: &[u8; 16], tid| Who {
            tgid: 1,
            incarnation: 1,
            comm: *comm,
            tid,
            cpu: None,
            cgroup: 0,
        };
        assert!(may_be_cut(&who(b"http-nio-8080-e\0", Some(7))));
        assert!(!may_be_cut(&who(b"http-nio-8080-e\0", None)));
        assert!(!may_be_cut(&who(b"http-nio-8080\0\0\0", Some(7))));
    }
}
