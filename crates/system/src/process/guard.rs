//! The guard: a small process between Haft and each program that it starts.
//!
//! It is this very program, executed again with [`MARKER`]; [`become_guard`] takes such an execution over before `main`. A guard is
//! the subreaper of what it started, so whatever a program leaves behind (`&` jobs, double forks, daemons in their own session)
//! becomes its child, and it knows for certain that nothing is left when the kernel says that it has no children. It ends
//! everything below it when Haft asks, when the program itself has ended, and when the socket to Haft closes, which the kernel
//! does even where Haft was killed with SIGKILL. It has one thread, so fork is safe here as it never is in Haft.

use std::{
    collections::{BTreeSet, HashSet},
    ffi::{CString, OsStr},
    io::{self, IoSliceMut, Read},
    mem::MaybeUninit,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::{ffi::OsStrExt, net::UnixStream},
    },
    time::{Duration, Instant},
};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use super::{
    tree,
    wire::{self, Order, Report, Request, Stage, Status},
};
use crate::limits::{KILL_PATIENCE, LAST_PATIENCE, LINGER, PROCESSES_LISTED};

/// The one argument of a guard. The program's own arguments are not on the guard's command line: a `pkill -f` from below must
/// not find the guard by them.
pub(super) const MARKER: &str = "--haft-guard";

/// What `ps` shows.
pub(super) const NAME: &str = "haft-guard";

#[ctor::ctor]
fn become_guard() {
    let mut arguments = std::env::args_os();
    let marked = match arguments.len() {
        // glibc gives them to constructors; other C libraries do not, but the kernel has them.
        0 => is_guard(std::process::id().cast_signed()),
        2 => arguments.nth(1).as_deref() == Some(OsStr::new(MARKER)),
        _ => false,
    };
    if marked {
        let code = i32::from(run().is_err());
        // SAFETY: ends the process without running exit handlers of a program whose `main` never ran.
        unsafe { libc::_exit(code) }
    }
}

/// Whether a process is a guard.
pub(super) fn is_guard(pid: i32) -> bool {
    matches!(tree::arguments(pid).as_slice(), [_, marker] if marker == MARKER.as_bytes())
}

fn run() -> io::Result<()> {
    let mut link = settle()?;
    let (first, fds) = receive_fds(&link)?;
    let body = wire::read_message(&mut first.as_slice().chain(&mut link))?;
    let request = Request::decode(&body)?;
    let child_events = child_events()?;
    match start(&request, fds) {
        Ok(main) => {
            send(&link, &Report::Started(main))?;
            Guard {
                link: Some(link),
                inbox: Vec::new(),
                main,
                status: None,
                phase: Phase::Running,
                grace: Duration::from_millis(request.grace_ms.into()),
                asked: HashSet::new(),
                leftovers: Vec::new(),
            }
            .watch(&child_events);
            Ok(())
        }
        Err((stage, error)) => {
            send(&link, &Report::Failed { stage, errno: error.raw_os_error().unwrap_or(0) })
        }
    }
}

/// Cuts the guard loose from Haft's terminal, signals and open files; answers the socket to Haft, which came as stdin.
fn settle() -> io::Result<UnixStream> {
    // SAFETY: plain system calls. Descriptors from 3 on are not owned by anything in this process: `main` never runs.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0);
        let link = check(libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 3))?;
        let nothing = check(libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC))?;
        check(libc::dup2(nothing, 0))?;
        libc::close(nothing);
        // Fails only for a group leader, which a freshly spawned process is not.
        check(libc::setsid())?;
        check(libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as libc::c_ulong))?;
        libc::prctl(libc::PR_SET_NAME, c"haft-guard".as_ptr());
        for signal in [
            libc::SIGTERM,
            libc::SIGINT,
            libc::SIGHUP,
            libc::SIGQUIT,
            libc::SIGPIPE,
            libc::SIGUSR1,
            libc::SIGUSR2,
            libc::SIGALRM,
        ] {
            libc::signal(signal, libc::SIG_IGN);
        }
        // Inherited as ignored, the kernel would reap for us and the exit status be lost.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        Ok(UnixStream::from_raw_fd(link))
    }
}

/// The first piece of the request, and the program's stdin, stdout, stderr and perhaps its channel attached to it.
fn receive_fds(link: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut piece = vec![0; 4096];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let message = rustix::net::recvmsg(
        link,
        &mut [IoSliceMut::new(&mut piece)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    piece.truncate(message.bytes);
    let fds: Vec<OwnedFd> = ancillary
        .drain()
        .flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => fds.collect(),
            _ => Vec::new(),
        })
        .collect();
    if !(3..=4).contains(&fds.len()) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok((piece, fds))
}

/// SIGCHLD as something to poll.
fn child_events() -> io::Result<OwnedFd> {
    // SAFETY: `mask` is initialised by `sigemptyset` before it is read; the descriptor is new and owned by nobody else.
    unsafe {
        let mut mask = MaybeUninit::uninit();
        libc::sigemptyset(mask.as_mut_ptr());
        libc::sigaddset(mask.as_mut_ptr(), libc::SIGCHLD);
        check(libc::sigprocmask(libc::SIG_BLOCK, mask.as_ptr(), std::ptr::null_mut()))?;
        let fd = check(libc::signalfd(-1, mask.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Forks and executes the program; answers its pid once `execve` has succeeded.
fn start(request: &Request, fds: Vec<OwnedFd>) -> Result<i32, (Stage, io::Error)> {
    let setup = |error: io::Error| (Stage::Setup, error);
    let text =
        |bytes: &OsStr| CString::new(bytes.as_bytes()).map_err(|_| setup(io::ErrorKind::InvalidInput.into()));
    let program = text(request.program.as_os_str())?;
    let directory = text(request.directory.as_os_str())?;
    let arguments = request.arguments.iter().map(|item| text(item)).collect::<Result<Vec<_>, _>>()?;
    let environment = request.environment.iter().map(|item| text(item)).collect::<Result<Vec<_>, _>>()?;
    let pointers = |list: &[CString]| -> Vec<*const libc::c_char> {
        list.iter().map(|item| item.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (argv, envp) = (pointers(&arguments), pointers(&environment));

    let mut pipe = [0; 2];
    // SAFETY: `pipe` has room for two descriptors.
    check(unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) }).map_err(setup)?;
    // SAFETY: both descriptors are new and owned by nobody else.
    let (mut failure, failing) =
        unsafe { (std::fs::File::from_raw_fd(pipe[0]), OwnedFd::from_raw_fd(pipe[1])) };
    // SAFETY: `getpid` and `fork` in a process with one thread.
    let (guard, child) = unsafe { (libc::getpid(), libc::fork()) };
    match check(child).map_err(setup)? {
        0 => {
            let raw: Vec<RawFd> = fds.iter().map(AsRawFd::as_raw_fd).collect();
            // SAFETY: this is the child; all pointers are to strings and arrays made above, NUL- and null-terminated.
            unsafe { enter(guard, &raw, failing.as_raw_fd(), &program, &directory, &argv, &envp) }
        }
        child => {
            // Held open here, the program's pipes would never come to an end.
            drop(fds);
            drop(failing);
            let mut report = Vec::new();
            failure.read_to_end(&mut report).map_err(setup)?;
            match report.as_slice() {
                [] => Ok(child),
                [stage, errno @ ..] => {
                    let errno = errno.try_into().map_or(0, i32::from_le_bytes);
                    let stage = match stage {
                        1 => Stage::Directory,
                        2 => Stage::Exec,
                        _ => Stage::Setup,
                    };
                    Err((stage, io::Error::from_raw_os_error(errno)))
                }
            }
        }
    }
}

/// The child's way from fork to exec. Never returns.
unsafe fn enter(
    guard: libc::pid_t,
    fds: &[RawFd],
    failing: RawFd,
    program: &CString,
    directory: &CString,
    argv: &[*const libc::c_char],
    envp: &[*const libc::c_char],
) -> ! {
    // SAFETY: the caller's promise; only system calls and memory of this process.
    unsafe {
        let fail = |stage: u8| -> ! {
            let [a, b, c, d] = io::Error::last_os_error().raw_os_error().unwrap_or(0).to_le_bytes();
            let report = [stage, a, b, c, d];
            libc::write(failing, report.as_ptr().cast(), report.len());
            libc::_exit(127)
        };
        if libc::setsid() < 0 || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) < 0 {
            fail(0);
        }
        // The guard may have died before the line above took effect.
        if libc::getppid() != guard {
            libc::_exit(127);
        }
        // Descriptor 3 is the guard's own socket (`settle`), which the program does not get: nothing of the others is lost.
        for (target, fd) in fds.iter().enumerate() {
            if libc::dup2(*fd, target as RawFd) < 0 {
                fail(0);
            }
        }
        if libc::chdir(directory.as_ptr()) < 0 {
            fail(1);
        }
        // Ignored signals and the mask survive exec; a program must not inherit the guard's, nor those of whoever started Haft.
        // By system call, because the C library does not touch the two real-time signals that it keeps for itself.
        let default = [0_usize; 4];
        for signal in 1..=libc::SIGRTMAX() {
            let nowhere = std::ptr::null_mut::<usize>();
            libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), nowhere, size_of::<u64>());
        }
        let mut none = MaybeUninit::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
        libc::execve(program.as_ptr(), argv.as_ptr(), envp.as_ptr());
        fail(2)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// The program has ended, others of its tree have until then to end by themselves.
    Lingering(Instant),
    /// TERM was sent; KILL follows then.
    Terminating(Instant),
    /// KILL is sent again and again; what is left then is reported.
    Killing(Instant),
    /// Reported, but something is left that cannot be killed. Without a Haft, trying ends then.
    Stuck(Instant),
}

struct Guard {
    /// `None` when Haft is gone, or has let go.
    link: Option<UnixStream>,
    inbox: Vec<u8>,
    main: i32,
    status: Option<Status>,
    phase: Phase,
    grace: Duration,
    /// Who has had a TERM, by pid and start.
    asked: HashSet<(i32, u64)>,
    leftovers: Vec<String>,
}

impl Guard {
    fn watch(&mut self, child_events: &OwnedFd) {
        loop {
            if self.reap() {
                if !matches!(self.phase, Phase::Stuck(_)) {
                    self.report_end(Vec::new());
                }
                return;
            }
            let now = Instant::now();
            if self.advance(now) {
                return;
            }
            self.rest(now, child_events);
            self.listen();
        }
    }

    /// Collects what has ended. True when nothing is left: a process without children has no descendants either, because
    /// orphans become its children.
    fn reap(&mut self) -> bool {
        loop {
            let mut status = 0;
            // SAFETY: `status` is valid for the call.
            match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } {
                0 => return false,
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                -1 => return true,
                pid if pid == self.main => {
                    self.status = Some(if libc::WIFSIGNALED(status) {
                        Status::Signal(libc::WTERMSIG(status))
                    } else {
                        Status::Code(libc::WEXITSTATUS(status))
                    });
                }
                _ => {}
            }
        }
    }

    /// Takes the next step of the kill ladder where it is due. True when the guard has to give up.
    fn advance(&mut self, now: Instant) -> bool {
        match self.phase {
            Phase::Running => {
                if self.status.is_some() {
                    self.phase = Phase::Lingering(now + LINGER);
                }
            }
            Phase::Lingering(until) if now >= until => {
                self.leftovers = listed(&living());
                self.terminate(self.grace);
                return self.advance(now);
            }
            Phase::Lingering(_) => {}
            Phase::Terminating(kill_at) if now >= kill_at => {
                self.phase = Phase::Killing(now + KILL_PATIENCE);
                kill_all();
            }
            Phase::Terminating(_) => self.ask_all(),
            Phase::Killing(give_up) => {
                kill_all();
                if now >= give_up {
                    self.report_end(listed(&living()));
                    self.phase = Phase::Stuck(now + LAST_PATIENCE);
                }
            }
            Phase::Stuck(last) => {
                kill_all();
                return self.link.is_none() && now >= last;
            }
        }
        false
    }

    fn terminate(&mut self, grace: Duration) {
        let kill_at = Instant::now() + grace;
        match self.phase {
            Phase::Running | Phase::Lingering(_) => self.phase = Phase::Terminating(kill_at),
            Phase::Terminating(earlier) => self.phase = Phase::Terminating(kill_at.min(earlier)),
            Phase::Killing(_) | Phase::Stuck(_) => {}
        }
    }

    /// Sends TERM, once, to everything below.
    fn ask_all(&mut self) {
        for process in living() {
            if self.asked.insert((process.pid, process.started)) {
                signal(process.pid, libc::SIGTERM);
                // A stopped process acts on TERM only once it goes on.
                signal(process.pid, libc::SIGCONT);
            }
        }
    }

    fn report_end(&mut self, survivors: Vec<String>) {
        let report =
            Report::Ended { status: self.status, leftovers: std::mem::take(&mut self.leftovers), survivors };
        if let Some(link) = &self.link
            && send(link, &report).is_err()
        {
            self.link = None;
        }
    }

    /// Waits for a child's end, a word from Haft, or the next step.
    fn rest(&self, now: Instant, child_events: &OwnedFd) {
        let timeout = match self.phase {
            Phase::Running => -1,
            Phase::Lingering(until) => milliseconds(until.saturating_duration_since(now)),
            // Not to the end: what is forked meanwhile gets its TERM too.
            Phase::Terminating(kill_at) => milliseconds(kill_at.saturating_duration_since(now)).min(50),
            // A tree that forks as fast as it can is only beaten by being as fast.
            Phase::Killing(_) => 1,
            Phase::Stuck(_) => 250,
        };
        let link = self.link.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let mut fds = [
            libc::pollfd { fd: child_events.as_raw_fd(), events: libc::POLLIN, revents: 0 },
            // A negative descriptor is left out by poll(2).
            libc::pollfd { fd: link, events: libc::POLLIN, revents: 0 },
        ];
        // SAFETY: both are valid for the call.
        unsafe {
            libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout);
            let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
            libc::read(
                child_events.as_raw_fd(),
                info.as_mut_ptr().cast(),
                size_of::<libc::signalfd_siginfo>(),
            );
        }
    }

    fn listen(&mut self) {
        let Some(link) = &self.link else { return };
        let mut buffer = [0_u8; 256];
        loop {
            // SAFETY: `buffer` is valid for the call.
            let count = unsafe {
                libc::recv(link.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT)
            };
            match usize::try_from(count) {
                Ok(0) => break self.abandoned(),
                Ok(count) => self.inbox.extend_from_slice(&buffer[..count]),
                Err(_) => match io::Error::last_os_error().kind() {
                    io::ErrorKind::WouldBlock => break,
                    io::ErrorKind::Interrupted => {}
                    _ => break self.abandoned(),
                },
            }
        }
        while let Some((order, rest)) = self.inbox.split_first_chunk::<{ Order::LENGTH }>() {
            let (order, rest) = (Order::decode(*order), rest.to_vec());
            self.inbox = rest;
            match order {
                // Once the program is reaped its number may belong to somebody else.
                Some(Order::Signal(number)) if self.status.is_none() => signal(-self.main, number),
                Some(Order::Signal(_)) | None => {}
                Some(Order::Terminate(grace)) => self.terminate(Duration::from_millis(grace.into())),
            }
        }
    }

    fn abandoned(&mut self) {
        self.link = None;
        self.terminate(self.grace);
    }
}

/// Everything below this process that still runs.
fn living() -> Vec<tree::Stat> {
    let me = std::process::id().cast_signed();
    let living = |found: Vec<tree::Stat>| -> Vec<tree::Stat> {
        found.into_iter().filter(|process| !process.is_zombie()).collect()
    };
    let found = living(tree::descendants(me));
    if found.is_empty() { living(tree::descendants_by_scan(me)) } else { found }
}

/// Sends KILL to everything below, by group first: the kernel signals a group in one step, and a fork that is under way when
/// it does starts again and finds the signal, so a group of forking processes has no way out.
fn kill_all() {
    let found = living();
    // SAFETY: cannot fail.
    let own = unsafe { libc::getpgrp() };
    let groups: BTreeSet<i32> = found.iter().map(|process| process.group).collect();
    for group in groups {
        if group > 1 && group != own {
            signal(-group, libc::SIGKILL);
        }
    }
    for process in found {
        signal(process.pid, libc::SIGKILL);
    }
}

fn listed(processes: &[tree::Stat]) -> Vec<String> {
    let mut lines: Vec<String> =
        processes.iter().take(PROCESSES_LISTED).map(|process| tree::describe(process.pid)).collect();
    match processes.len().saturating_sub(PROCESSES_LISTED) {
        0 => {}
        more => lines.push(format!("and {more} more")),
    }
    lines
}

/// A failure (the process is gone, or belongs to another user) shows in that it is still there on the next pass.
fn signal(pid: i32, number: i32) {
    // SAFETY: a plain system call.
    unsafe { libc::kill(pid, number) };
}

fn send(link: &UnixStream, report: &Report) -> io::Result<()> {
    // SIGPIPE is ignored here.
    io::Write::write_all(&mut &*link, &report.encode())
}

fn milliseconds(duration: Duration) -> i32 {
    // Rounded up: a time-out of 0 just before the instant would spin.
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX).saturating_add(1)
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
