use super::super::MappedAddress;
use super::*;

/// One that no process has.
const GONE: ProcessKey = ProcessKey::new(u32::MAX, 1);

fn ourselves() -> ProcessKey {
    ourselves_at(7)
}

fn ourselves_at(incarnation: u64) -> ProcessKey {
    ProcessKey::new(std::process::id(), incarnation)
}

fn here() -> u64 {
    ourselves as fn() -> ProcessKey as usize as u64
}

fn place(processes: &Processes, process_key: ProcessKey, address: u64) -> Option<MappedAddress> {
    processes.get(process_key)?.place(address)
}

#[test]
fn an_address_is_placed_in_its_file() {
    let mut processes = Processes::new();
    assert!(processes.see(ourselves()));
    assert!(!processes.see(ourselves()));
    let found = place(&processes, ourselves(), here()).unwrap();
    let file = processes.backing(found.backing).file().unwrap();
    assert_eq!(file.path, std::env::current_exe().unwrap());
    assert!(found.mapping.contains(&here()));
    assert_eq!(place(&processes, ourselves(), 8), None);
}

#[test]
fn an_exited_process_has_no_mappings() {
    let mut processes = Processes::new();
    assert!(processes.see(GONE));
    assert!(!processes.see(GONE));
    assert_eq!(place(&processes, GONE, here()), None);
    assert!(!processes.refresh(GONE));
}

/// A program that sleeps.
pub(in super::super) fn sleeping() -> (std::process::Child, ProcessKey) {
    let child = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    // Starting it returns when the old program is gone, which is before the new one is mapped.
    let maps = format!("/proc/{}/maps", child.id());
    while !std::fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("libc")) {
        std::thread::yield_now();
    }
    let process_key = ProcessKey::new(child.id(), 1);
    (child, process_key)
}

#[test]
fn mappings_are_kept_after_the_process_exits() {
    let (mut child, process_key) = sleeping();
    let mut processes = Processes::new();
    processes.see(process_key);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!processes.refresh(process_key));
    let mapped = processes.known[&process_key].readings[0].mappings[0]
        .range
        .start;
    assert!(place(&processes, process_key, mapped).is_some());
}

#[test]
fn mappings_from_before_exec_are_not_read_after_it() {
    let mut processes = Processes::new();
    processes.see(ourselves());
    let earlier = ourselves_at(6);
    assert!(processes.see(earlier));
    assert_eq!(place(&processes, earlier, here()), None);
    let later = ourselves_at(8);
    assert!(processes.see(later));
    assert!(place(&processes, later, here()).is_some());
    assert!(!processes.refresh(ourselves()));
}

/// As if this test's own code had not been mapped yet.
fn forget_here(processes: &mut Processes) {
    for reading in &mut processes.known.get_mut(&ourselves()).unwrap().readings {
        let all = std::mem::take(&mut reading.mappings).into_iter();
        reading.mappings = all
            .filter(|mapping| !mapping.range.contains(&here()))
            .collect();
    }
}

#[test]
fn refreshing_finds_what_was_mapped_since() {
    let mut processes = Processes::new();
    processes.see(ourselves());
    forget_here(&mut processes);
    assert_eq!(place(&processes, ourselves(), here()), None);
    assert!(processes.refresh(ourselves()));
    assert!(place(&processes, ourselves(), here()).is_some());
    assert!(
        !processes.refresh(ourselves()),
        "nothing new the second time"
    );
}

#[test]
fn refreshing_ignores_mappings_of_another_program() {
    let mut processes = Processes::new();
    processes.see(ourselves());
    let Process { readings, .. } = processes.known.get_mut(&ourselves()).unwrap();
    for mapping in &mut readings[0].mappings {
        // Of what the kernel maps, some lies at the same place in every process.
        if !matches!(
            processes.backings.get(mapping.backing),
            Backing::Memory { .. }
        ) {
            mapping.range = mapping.range.start + 1..mapping.range.end;
        }
    }
    assert!(!processes.refresh(ourselves()));
    assert_eq!(processes.known[&ourselves()].readings.len(), 1);
}

#[test]
fn old_mappings_are_evicted_but_the_first_are_kept() {
    let mut processes = Processes::new();
    processes.see(ourselves());
    for _ in 0..20 {
        forget_here(&mut processes);
        assert!(processes.refresh(ourselves()));
    }
    assert_eq!(processes.known[&ourselves()].readings.len(), MAX_READINGS);
    assert_eq!(processes.shortage().readings, 21 - MAX_READINGS);
}

#[test]
fn a_process_is_read_once_and_marked_when_it_exits() {
    let mut processes = Processes::new();
    assert!(processes.meet(ourselves()));
    assert!(!processes.meet(ourselves()));
    assert!(!processes.has_gone(ourselves()));
    let later = ourselves_at(8);
    assert!(processes.meet(later));
    assert!(processes.has_gone(ourselves()), "it runs another program");
    assert!(processes.meet(GONE));
    assert!(processes.has_gone(GONE));
    // One whose mappings were read for another reason is not read again.
    processes.remove(later);
    processes.see(later);
    assert!(!processes.meet(later));
}

#[test]
fn ended_processes_are_reported_and_forgotten() {
    let mut sleep = std::process::Command::new("sleep");
    let mut child = sleep.arg("60").spawn().unwrap();
    let key = ProcessKey::new(child.id(), 1);
    let mut processes = Processes::new();
    processes.see(key);
    processes.see(ourselves_at(1));
    assert_eq!(processes.ended(), []);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(processes.ended(), [key]);
    processes.remove(key);
    assert_eq!((processes.len(), processes.ended().len()), (1, 0));
    assert!(processes.get(key).is_none());
    assert!(processes.see(key), "as if never seen");
}

#[test]
fn a_program_that_became_another_has_ended() {
    let mut processes = Processes::new();
    processes.see(ourselves_at(1));
    processes.see(ourselves_at(2));
    assert_eq!(processes.ended(), [ourselves_at(1)]);
    processes.remove(ourselves_at(1));
    assert!(processes.get(ourselves_at(2)).is_some());
    assert!(!processes.see(ourselves_at(2)));
    // A late event of the first does not get the mappings of the second.
    assert!(processes.see(ourselves_at(1)));
    assert_eq!(processes.ended(), [ourselves_at(1)]);
}
