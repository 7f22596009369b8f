//! What to do when a guard was killed: its program dies with it (PDEATHSIG), and whatever else stood below it becomes a
//! child of Haft, which is a subreaper too.

use std::{thread, time::Duration};

use rustix::process::{Pid, WaitIdOptions};

use super::{guard, tree};
use crate::limits::KILL_PATIENCE;

/// Makes orphans of this process's descendants its own children. Idempotent; cannot fail on a kernel that has it (3.4).
pub(super) fn adopt() {
    // SAFETY: a plain system call.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as libc::c_ulong) };
}

/// Kills and reaps every orphan, and answers those that could not be killed. Blocks, for some seconds at most.
///
/// An orphan is a child in another session than ours which is not a guard: programs start in a session of their own, and no
/// process can enter another one's session, while what this process itself forks stays in its session until it has become a guard.
pub(super) fn sweep() -> Vec<String> {
    let me = std::process::id().cast_signed();
    // SAFETY: cannot fail for the calling process.
    let session = unsafe { libc::getsid(0) };
    let pause = Duration::from_millis(2);
    let mut patience = KILL_PATIENCE;
    loop {
        let below = tree::descendants_by_scan(me);
        let orphans: Vec<&tree::Stat> = below
            .iter()
            .filter(|process| {
                process.parent == me && process.session != session && !guard::is_guard(process.pid)
            })
            // A guard that has just ended is a zombie without arguments, and belongs to the task that watches it.
            .filter(|process| !(process.is_zombie() && was_guard(process.pid)))
            .collect();
        if orphans.is_empty() {
            return Vec::new();
        }
        if patience.is_zero() {
            return orphans
                .iter()
                .filter(|process| !process.is_zombie())
                .map(|process| tree::describe(process.pid))
                .collect();
        }
        for orphan in &orphans {
            if orphan.is_zombie() {
                reap(orphan.pid);
                continue;
            }
            // SAFETY: plain system calls.
            unsafe {
                if orphan.group > 1 {
                    libc::kill(-orphan.group, libc::SIGKILL);
                }
                libc::kill(orphan.pid, libc::SIGKILL);
            }
            // What stands below it comes here when it is dead, and is found by the next pass.
        }
        thread::sleep(pause);
        patience = patience.saturating_sub(pause);
    }
}

fn was_guard(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_end() == guard::NAME)
}

fn reap(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        // An error means that somebody else has reaped it.
        let _ = rustix::process::waitid(
            rustix::process::WaitId::Pid(pid),
            WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
        );
    }
}
