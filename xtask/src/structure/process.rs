//! One run of a program: what it said, and what it cost as the kernel counts it.

use std::{
    fs::File,
    io,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// What a run cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) wall: Duration,
    /// User and system.
    pub(crate) cpu: Duration,
    /// The largest resident set, in bytes.
    pub(crate) peak: u64,
}

/// Runs a program to its end with its output in a file. Exit codes of 1 are an answer ("nothing found"), others are not.
pub(crate) fn run(program: &Path, arguments: &[&str], out: &Path) -> Result<Cost> {
    let mut command = Command::new(program);
    let errors = out.with_extension("stderr");
    command.args(arguments).stdin(Stdio::null()).stdout(File::create(out)?).stderr(File::create(&errors)?);
    let start = Instant::now();
    let child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
    let mut status = 0;
    // SAFETY: an all-zero rusage is a valid one.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live, writable values of the right types.
        let waited = unsafe { libc::wait4(child.id() as libc::pid_t, &raw mut status, 0, &raw mut usage) };
        if waited > 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error).context("waiting for a program");
        }
    }
    let wall = start.elapsed();
    if !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) > 1 {
        let said = std::fs::read_to_string(&errors).unwrap_or_default();
        bail!("{} {arguments:?} ended with status {status:#x}: {said}", program.display());
    }
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    Ok(Cost { wall, cpu: time(usage.ru_utime) + time(usage.ru_stime), peak: usage.ru_maxrss as u64 * 1024 })
}
