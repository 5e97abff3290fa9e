//! Texts of the help other than those of the flags: examples, and how to read a graph.

/// Commands that work as they stand, with a PID put in.
pub(super) const EXAMPLES: &str = "\
Examples:
  sudo flame-bpf -p 1234 -d 10             one process for 10 s: flamegraph.svg
  sudo flame-bpf -d 10 -o all.svg          the whole machine
  sudo flame-bpf top                       the same on the terminal, live; ? for help, q to end
  sudo flame-bpf -n nginx -d 30            all processes of a name, and their children to come
  sudo flame-bpf -F 997 -- make -j8        a command and its children
  sudo flame-bpf -fK 10 | grep ext4        kernel stacks as folded text
  sudo flame-bpf --off-cpu -p 1234 -d 10   where its threads wait, and for how long
  sudo flame-bpf --off-wake -p 1234 -d 10  where they wait, and who woke them
  sudo flame-bpf --wall -p 1234 -d 10      all of their time, running and waiting
  sudo flame-bpf -e page-faults -p 1234    every page fault, until Ctrl-C
  sudo flame-bpf -e uprobe:libc:malloc -p 1234 -d 10      who calls a function
  sudo flame-bpf -e cycles -e page-faults -p 1234 -d 10   two graphs of one run
  sudo flame-bpf --alloc -p 1234 -d 10     who allocates memory
  sudo flame-bpf --io=bytes --io-files -p 1234 -d 10      who reads and writes which files
  sudo flame-bpf -a -d 10 -o x.fbpf        record now ...
  flame-bpf render x.fbpf -o x.svg         ... draw later, on any machine
  sudo flame-bpf -a --window 10s -o day.fbpf              record until Ctrl-C ...
  flame-bpf render day.fbpf --from 14:05 --to 14:10       ... draw five minutes of it
  flame-bpf diff before.fbpf after.fbpf -o d.svg          what changed, and what is noise

If stdout is a pipe or a file and no output is named, folded stacks go there; messages go to stderr.
Needs Linux 5.15, and root or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE.

Exit status: 0 done, 1 failed or nothing sampled, 2 wrong usage, 130 stopped by a second Ctrl-C;
with -- COMMAND, the command's own; diff --fail-if: 3 met, 4 cannot tell.";

/// How to read what is written.
pub(super) const READING: &str = "\
Reading the graph: a frame is as wide as its share of the samples. The frame below called it; those
above were called by it; at the bottom is the process. Frames side by side are sorted by name, not
by time. Look for wide frames with nothing above them. Click a frame to zoom, press Ctrl-F to
search. Names in brackets stand for what is not known.

Folded stacks: `process;main;work 42`, from the root to the leaf, and how much was sampled there.";
