//! Looking at processes that are not ours to wait for: a program below a debugger is the debugger's child.

use std::{
    fs, io,
    net::SocketAddr,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::process::{Pid, PidfdFlags};
use tokio::io::{Interest, unix::AsyncFd};

use super::tree;
use crate::limits::WATCH_POLL;

/// A process below another one, as it was when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessGlimpse {
    /// Its number.
    pub pid: u32,
    /// The number of the process above it.
    pub parent: u32,
    /// The file that it executes; none where that cannot be read.
    pub program: Option<PathBuf>,
}

/// Everything that runs below `pid`, parents before children, without what only waits to be reaped.
pub fn below(pid: u32) -> Vec<ProcessGlimpse> {
    tree::descendants(pid.cast_signed())
        .into_iter()
        .filter(|stat| !stat.is_zombie())
        .map(|stat| ProcessGlimpse {
            pid: stat.pid.cast_unsigned(),
            parent: stat.parent.cast_unsigned(),
            program: fs::read_link(format!("/proc/{}/exe", stat.pid)).ok(),
        })
        .collect()
}

/// Knows when a process has ended, also one that is traced or somebody else's child. Holds on to that very process, not to its
/// number.
#[derive(Debug)]
pub struct ProcessWatch {
    handle: AsyncFd<OwnedFd>,
    pid: i32,
}

impl ProcessWatch {
    /// Starts watching. An error of kind `NotFound` says that there is no such process. Must be called within a runtime.
    pub fn open(pid: u32) -> io::Result<Self> {
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        let number = pid.cast_signed();
        let pid = Pid::from_raw(number).ok_or_else(gone)?;
        let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty()).map_err(|error| {
            if error == rustix::io::Errno::SRCH { gone() } else { io::Error::from(error) }
        })?;
        // SAFETY: the descriptor is owned by what is registered, and stays open until it is deregistered.
        let handle = unsafe { AsyncFd::register_with_interest(handle, Interest::READABLE)? };
        Ok(ProcessWatch { handle, pid: number })
    }

    /// Waits for its end. A process that only waits to be reaped has ended.
    pub async fn ended(&self) {
        loop {
            tokio::select! {
                // An error means that the runtime is shutting down.
                _ = self.handle.readable() => return,
                () = tokio::time::sleep(WATCH_POLL) => if self.is_dead() { return },
            }
        }
    }

    /// Whether it has ended by now.
    pub fn has_ended(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut fds = [PollFd::new(self.handle.get_ref(), PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut fds, Some(&at_once)), Ok(ready) if ready > 0) || self.is_dead()
    }

    /// Whether every thread is dead. The kernel does not call a process ended as long as its tracer has not taken notice of each of its
    /// dead threads, which a debugger that believes it stopped never does.
    fn is_dead(&self) -> bool {
        // The first thread alone tells nothing (it may end before the others) but is a cheap look that settles most cases. The
        // number is still that of the watched process: one that was reaped has made the descriptor readable.
        let is_zombie = |path: String| {
            fs::read_to_string(path).is_ok_and(|stat| {
                stat.rfind(')')
                    .and_then(|at| stat.get(at + 2..))
                    .is_some_and(|state| state.starts_with(['Z', 'X']))
            })
        };
        is_zombie(format!("/proc/{}/stat", self.pid))
            && fs::read_dir(format!("/proc/{}/task", self.pid))
                .into_iter()
                .flatten()
                .flatten()
                .all(|thread| is_zombie(format!("{}/stat", thread.path().display())))
    }
}

/// Whether the process `pid` itself holds the end `local` of a TCP connection to `remote`. Read from `/proc`; false where
/// that cannot be read.
pub fn owns_connection(pid: u32, local: SocketAddr, remote: SocketAddr) -> bool {
    let table = if local.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" };
    let Ok(table) = fs::read_to_string(table) else { return false };
    let inode = table.lines().skip(1).find_map(|line| {
        // sl, local address, remote address, state, queues, timers, retransmits, uid, timeout, inode (proc_net_tcp(5))
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let port = |field: &str| u16::from_str_radix(field.rsplit(':').next()?, 16).ok();
        let matches = port(fields.get(1)?)? == local.port() && port(fields.get(2)?)? == remote.port();
        matches.then(|| fields.get(9).map(|inode| format!("socket:[{inode}]")))?
    });
    let Some(inode) = inode else { return false };
    fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == Path::new(&inode)))
}

/// Whether a process of this one's rights may be traced by another at all; a sandbox often forbids it.
pub fn may_trace() -> io::Result<()> {
    // SAFETY: the child makes nothing but system calls, which is allowed after a fork in a process with threads.
    unsafe {
        let child = libc::fork();
        if child < 0 {
            return Err(io::Error::last_os_error());
        }
        if child == 0 {
            let refused = libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) < 0;
            libc::_exit(if refused { *libc::__errno_location() } else { 0 });
        }
        let mut status = 0;
        while libc::waitpid(child, &raw mut status, 0) < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        match libc::WEXITSTATUS(status) {
            0 if libc::WIFEXITED(status) => Ok(()),
            0 => Err(io::Error::other("the probe was killed")),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[tokio::test]
    async fn the_end_of_somebody_is_noticed_before_it_is_reaped() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let watch = ProcessWatch::open(child.id()).unwrap();
        assert!(!watch.has_ended());
        assert!(below(std::process::id()).iter().any(|process| process.pid == child.id()));
        child.kill().unwrap();
        watch.ended().await;
        assert!(watch.has_ended());
        assert!(!below(std::process::id()).iter().any(|process| process.pid == child.id()));
        child.wait().unwrap();
        let error = ProcessWatch::open(child.id()).map(drop).map_err(|error| error.kind());
        assert_eq!(error, Err(io::ErrorKind::NotFound));
    }

    #[test]
    fn the_owner_of_a_connection_is_known() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (local, remote) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
        assert!(owns_connection(std::process::id(), local, remote));
        assert!(!owns_connection(1, local, remote) || std::process::id() == 1);
        assert!(!owns_connection(std::process::id(), local, local));
    }
}
