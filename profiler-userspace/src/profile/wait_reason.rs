//! Reasons for waits, told from the functions that a thread's kernel stack leads through.
//!
//! In: the functions of a kernel stack that ends at what called the scheduler. Out: a [`WaitReason`]. Never: an answer that
//! the stack does not hold; what no row knows is `[other]`.

use std::sync::LazyLock;

/// Reason for a wait.
///
/// A row's number in [`REASONS`], or one of the numbers behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WaitReason(u8);

/// Which function on the way to the scheduler tells what is waited for: names, or beginnings of them where
/// a `*` stands. The first row that fits any frame has it, so what is more telling comes first.
const TABLE: &str = "\
[page fault] exc_page_fault asm_exc_page_fault do_page_fault handle_mm_fault
[futex] futex_* __futex_* do_futex
[epoll] ep_poll do_epoll_wait
[poll] do_sys_poll do_poll poll_schedule_timeout do_select core_sys_select
[io_uring] io_cqring_wait io_wq_worker io_sq_thread
[child] do_wait kernel_wait4 kernel_waitid
[sleep] hrtimer_nanosleep common_nsleep*
[pause] __x64_sys_pause __do_sys_pause __ia32_sys_pause sys_pause
[signal] do_sigtimedwait sigsuspend __x64_sys_rt_sigsuspend __x64_sys_rt_sigtimedwait
[stopped] do_signal_stop ptrace_stop do_jobctl_trap ptrace_do_notify
[file lock] flock_lock_inode_wait posix_lock_inode_wait locks_lock_inode_wait fcntl_setlk
[read: pipe] pipe_read anon_pipe_read fifo_pipe_read
[write: pipe] pipe_write anon_pipe_write fifo_pipe_write
[open: pipe] fifo_open
[read: terminal] tty_read n_tty_read
[write: terminal] tty_write n_tty_write file_tty_write
[accept] inet_csk_accept do_accept __sys_accept4 unix_accept
[connect] inet_stream_connect __sys_connect unix_stream_connect
[read: socket] sock_recvmsg sock_read_iter tcp_recvmsg unix_stream_read_generic __skb_wait_for_more_packets __sys_recvfrom __sys_recvmsg
[write: socket] sock_sendmsg sock_write_iter tcp_sendmsg sk_stream_wait_memory sock_alloc_send_pskb __sys_sendto __sys_sendmsg
[read: eventfd] eventfd_read
[read: timer] timerfd_read*
[read: inotify] inotify_read
[read: kernel log] devkmsg_read do_syslog
[kernel lock] __mutex_lock* rwsem_down_* down_read* down_write* percpu_rwsem_wait rt_mutex_* __down* mutex_lock*
[sync] vfs_fsync* do_fsync ksys_sync file_write_and_wait* jbd2_log_wait_commit folio_wait_writeback
[read: file] vfs_read filemap_read ksys_read __x64_sys_read __x64_sys_pread64
[write: file] vfs_write ksys_write __x64_sys_write __x64_sys_pwrite64 balance_dirty_pages*
[disk] io_schedule* bit_wait_io folio_wait_bit* blk_mq_get_tag submit_bio_wait
[vfork] wait_for_vfork_done kernel_clone
[exit] do_exit do_group_exit exit_mm
[idle worker] worker_thread rescuer_thread kthread_worker_fn smpboot_thread_fn
[kernel thread] kthread ret_from_fork*";

/// Each reason's name, and its functions.
static REASONS: LazyLock<Vec<(&str, Vec<&str>)>> = LazyLock::new(|| {
    let row = |line: &'static str| {
        let (name, functions) = line.split_once("] ").unwrap_or((line, ""));
        (&line[..=name.len()], functions.split(' ').collect())
    };
    TABLE.lines().map(row).collect()
});

impl WaitReason {
    /// A reason that no row knows.
    const OTHER: Self = Self(u8::MAX - 1);

    /// A wait without a kernel stack.
    pub(super) const NOT_KNOWN: Self = Self(u8::MAX);

    /// Reason for the wait of a thread whose kernel stack leads through these functions.
    pub(super) fn of(kernel: &[&str]) -> Self {
        if kernel.is_empty() {
            return Self::NOT_KNOWN;
        }
        let fits = |pattern: &str| {
            kernel
                .iter()
                .map(|name| plain(name))
                .any(|name| match pattern.strip_suffix('*') {
                    Some(start) => name.starts_with(start),
                    None => name == pattern,
                })
        };
        (0..)
            .zip(&*REASONS)
            .find(|(_, (_, patterns))| patterns.iter().any(|pattern| fits(pattern)))
            .map_or(Self::OTHER, |(row, _)| Self(row))
    }

    /// Its name, in brackets.
    pub fn name(self) -> &'static str {
        match self {
            Self::NOT_KNOWN => "[not known]",
            Self(row) => REASONS
                .get(usize::from(row))
                .map_or("[other]", |(name, _)| name),
        }
    }
}

/// A function's name without what compilers put behind it.
pub(super) fn plain(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_mark() {
        assert!(REASONS.len() < usize::from(WaitReason::OTHER.0));
        for (place, (reason, patterns)) in REASONS.iter().enumerate() {
            assert!(reason.starts_with('[') && reason.ends_with(']'));
            assert!(patterns.iter().all(|pattern| !pattern.is_empty()));
            assert!(REASONS[..place].iter().all(|(other, _)| other != reason));
        }
    }
}
