#!/bin/busybox sh
# The first process of the machine that `cargo xtask vm` boots. It takes each step, prints what came of it on the console
# between marks that vm/log.rs reads, and turns the machine off. vm/verdict.rs knows what each step must come to.

/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp

# Into files first: the console is a terminal, and one that changes the ends of lines.
step() {
    echo "@@ step $1"
    shift
    "$@" >/tmp/out 2>/tmp/errors
    code=$?
    cat /tmp/out
    echo
    echo "@@ errors"
    cat /tmp/errors
    echo
    echo "@@ exit $code"
}

# As many events at once as there may be: the first one's stacks are printed.
several() {
    tracks="-e $1 -o -"
    shift
    for event; do
        tracks="$tracks -e $event -o /tmp/$event.folded"
    done
    flame-bpf -v -a -d 2 $tracks
}

# PIDs count from 1 in here, and /proc must say so.
namespace() {
    unshare -m -p -f sh -c '
        [ $$ = 1 ] || { echo "this is no new PID namespace" >&2; exit 99; }
        mount -t proc proc /proc
        shares >/dev/null &
        sleep 0.3
        flame-bpf -v -p $! -d 2 -F 99 -f'
}

# The profiler is in a cgroup namespace with a mount of its own, and names a cgroup as that shows it.
cgroup() {
    mount -t cgroup2 none /sys/fs/cgroup
    mkdir -p /sys/fs/cgroup/box/inner
    echo "$shares" >/sys/fs/cgroup/box/inner/cgroup.procs
    sh -c 'echo $$ >/sys/fs/cgroup/box/cgroup.procs
        exec util-unshare --cgroup --mount sh -c "
            umount /sys/fs/cgroup
            mount -t cgroup2 none /sys/fs/cgroup
            exec flame-bpf -v --cgroup /inner -d 2 -F 499 -f"'
}

# The command shares its standard output with flame-bpf, so the stacks go elsewhere.
launch() {
    flame-bpf -v -F 499 -o /tmp/launch.folded -- exit_code 7 200 200
    code=$?
    cat /tmp/launch.folded
    return $code
}

# As above; the workload's first line takes it some memory.
alloc() {
    flame-bpf -v --alloc -o /tmp/alloc.folded -- exit_code 0 10 400
    code=$?
    cat /tmp/alloc.folded
    return $code
}

# What follows the interpreters is loaded for those that are there, and again when Python comes.
interpreted() {
    interpreters >/tmp/pids
    sleep 5
    flame-bpf -v --annotate -p "$(tr '\n' , </tmp/pids | sed 's/,$//')" -d 8 -F 199 -f
    code=$?
    kill $(cat /tmp/pids)
    return $code
}

# The kernel's code is read by a program that is run in passing.
kernel_text() {
    flame-bpf -v -a -K -I -d 1 -F 99 -o /tmp/kernel.fbpf || return
    flame-bpf render -q /tmp/kernel.fbpf -f
    flame-bpf annotate /tmp/kernel.fbpf do_idle >/tmp/do_idle && grep -q 'call  *[a-z]' /tmp/do_idle
}

echo "@@ kernel $(uname -r)"
shares >/dev/null &
shares=$!
sleep 0.5
step process flame-bpf -v -p $shares -d 2 -F 499 -f
step machine flame-bpf -v -a -d 1 -F 99 -f
step kernel-stacks flame-bpf -v -a -K -I -d 1 -F 99 -f
step kernel-text kernel_text
step labels flame-bpf -v -a --per-thread --per-cpu -I -d 1 -F 99 -f
step namespace namespace
step cgroup cgroup
step tracepoint flame-bpf -v -e sched:sched_switch -a -d 1 -f
step events several cpu-clock task-clock page-faults context-switches cpu-migrations minor-faults major-faults \
    cgroup-switches
step tracepoints several sched:sched_switch sched:sched_wakeup sched:sched_waking sched:sched_process_fork \
    sched:sched_process_exit sched:sched_process_exec sched:sched_migrate_task raw_syscalls:sys_enter
kill $shares
bare_chain 100000 >/dev/null &
bare=$!
bare_chain 40 >/dev/null &
calling=$!
chain >/dev/null &
chain=$!
sleep 0.5
step tables flame-bpf -v -U -p $bare,$calling -d 2 -F 499 -f
step no-tables flame-bpf -v -U -p $bare --call-graph fp -d 1 -F 499 -f
step pointers flame-bpf -v -U -p $chain --call-graph fp -d 1 -F 499 -f
step function flame-bpf -v -e uprobe:/bin/chain:twelfth -p $chain -d 1 -f
kill $bare $calling $chain
waits >/dev/null &
waits=$!
sleep 0.5
step off-cpu flame-bpf -v --off-cpu -p $waits -d 2 -f
step both flame-bpf -v -p $waits -d 2 -F 499 -f --off-cpu-output /tmp/waits.folded
step wall flame-bpf -v --wall -p $waits -d 2 -F 499 -f
step off-wake flame-bpf -v --off-wake -p $waits -d 2 -f
step wakeup flame-bpf -v --wakeup -p $waits -d 2 -f
step syscalls flame-bpf -v --syscalls -p $waits -d 1 -f
step latency flame-bpf -v --syscalls=latency -p $waits -d 1 -f
step io flame-bpf -v --io --io-kind all --io-files -p $waits -d 1 -f
step locks flame-bpf -v --locks -p $waits -d 1 -f
kill $waits
step launch launch
step alloc alloc
step interpreted interpreted
echo "@@ end"
poweroff -f
