//! Measures whole processes: wall-clock time, processor time and memory, as the kernel accounts for them.

use std::{
    ffi::OsString,
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// A program that takes longer hangs.
const PATIENCE: Duration = Duration::from_mins(1);

/// A program as it is measured: the same directory and environment for every run, and nothing of the caller's.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) program: PathBuf,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Its working directory, in which its output is kept too.
    pub(crate) directory: PathBuf,
}

/// One run of a process. Processes that it started and waited for are part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// From before its start to its end.
    pub(crate) wall: Duration,
    /// User and system.
    pub(crate) cpu: Duration,
    /// The largest resident set of any one process of it, in bytes. The kernel counts what the process was before it became the program
    /// too, so this is never below this benchmark's own few megabytes.
    pub(crate) peak: u64,
}

/// What differs from run to run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Invocation {
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(&'static str, String)>,
}

impl Invocation {
    pub(crate) fn of<const N: usize>(arguments: [&str; N]) -> Invocation {
        Invocation { arguments: arguments.map(str::to_owned).to_vec(), environment: Vec::new() }
    }
}

/// A process that is running.
pub(crate) struct Running {
    child: Child,
    start: Instant,
    subject: Subject,
}

impl Subject {
    pub(crate) fn start(&self, invocation: &Invocation) -> Result<Running> {
        let file = |name: &str| fs::File::create(self.directory.join(name));
        let mut command = Command::new(&self.program);
        command
            .args(&invocation.arguments)
            .env_clear()
            .envs(self.environment.iter().cloned())
            .envs(invocation.environment.iter().cloned())
            .current_dir(self.project())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(file("stdout")?)
            .stderr(file("stderr")?);
        let start = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start {}", self.program.display()))?;
        Ok(Running { child, start, subject: self.clone() })
    }

    /// Runs it to its end; its standard output must contain `expected`.
    pub(crate) fn run(&self, invocation: &Invocation, expected: &str) -> Result<Sample> {
        self.start(invocation)?.finish(expected)
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.directory.join("project")
    }

    fn output(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.directory.join(name)).unwrap_or_default()).into_owned()
    }
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn finish(self, expected: &str) -> Result<Sample> {
        let pid = self.child.id() as libc::pid_t;
        let (ended, watch) = mpsc::channel::<()>();
        let watchdog = std::thread::spawn(move || {
            let hangs = watch.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout);
            if hangs {
                // SAFETY: kill takes no pointers. The process has not been waited for yet, so the group is still its own.
                unsafe { libc::kill(-pid, libc::SIGKILL) };
            }
            hangs
        });
        let waited = wait(pid, self.start);
        let _ = ended.send(());
        let hung = watchdog.join().unwrap_or_default();
        let (status, sample) = waited?;
        let out = self.subject.output("stdout");
        if hung || status != 0 || !out.contains(expected) {
            let what = if hung { "hung".to_owned() } else { format!("ended with wait status {status:#x}") };
            bail!(
                "{} {what}; its output should contain `{expected}`.\nstdout: {out}\nstderr: {}",
                self.subject.program.display(),
                self.subject.output("stderr")
            );
        }
        Ok(sample)
    }
}

fn wait(pid: libc::pid_t, start: Instant) -> Result<(i32, Sample)> {
    let mut status = 0;
    // SAFETY: an all-zero rusage is a valid one.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live, writable values of the right types.
        let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
        let wall = start.elapsed();
        if waited == pid {
            let cpu = duration(usage.ru_utime) + duration(usage.ru_stime);
            return Ok((status, Sample { wall, cpu, peak: usage.ru_maxrss as u64 * 1024 }));
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error).context("waiting for the process");
        }
    }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
}

/// What a process and all processes below it have in memory now (resident set, bytes), added up; pages that they share count for each.
pub(crate) fn resident(pid: u32) -> Result<u64> {
    let status = |pid: u32| fs::read_to_string(format!("/proc/{pid}/status"));
    let own = status(pid).context("the process is gone")?;
    let mut total = resident_of(&own).context("the kernel does not say how much memory a process has")?;
    let mut below = children(pid);
    while let Some(child) = below.pop() {
        // A child that has ended in the meantime has no memory any more.
        total += status(child).ok().and_then(|status| resident_of(&status)).unwrap_or(0);
        below.extend(children(child));
    }
    Ok(total)
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|child| child.parse().ok()).collect::<Vec<_>>())
        .collect()
}

fn resident_of(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// A subject with a home and an empty project of its own below `directory`.
pub(crate) fn subject(program: &Path, directory: PathBuf, more: &[(&str, String)]) -> Result<Subject> {
    let home = directory.join("home");
    for part in [&home, &directory.join("project")] {
        fs::create_dir_all(part).with_context(|| format!("cannot create {}", part.display()))?;
    }
    let mut environment: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), std::env::var_os("PATH").unwrap_or_default()),
        ("HOME".into(), home.into()),
        ("LANG".into(), "C.UTF-8".into()),
    ];
    environment.extend(more.iter().map(|(name, value)| ((*name).into(), value.into())));
    Ok(Subject { program: program.to_owned(), environment, directory })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn bash(directory: &Path) -> Subject {
        subject(
            &crate::repo::find_program("bash").unwrap(),
            directory.to_owned(),
            &[("WORD", "seen".to_owned())],
        )
        .unwrap()
    }

    fn script(line: &str) -> Invocation {
        Invocation::of(["-c", line])
    }

    #[test]
    fn a_process_and_its_children_are_accounted_for() {
        let directory = tempfile::tempdir().unwrap();
        let subject = bash(directory.path());
        let busy = "bash -c 'for ((i=0; i<100000; i++)); do :; done'; echo $WORD/${USER-unset}";
        let busy = subject.run(&script(busy), "seen/unset").unwrap();
        let idle = subject.run(&script("echo word"), "word").unwrap();
        assert!(busy.cpu > idle.cpu && busy.wall >= busy.cpu / 2, "{busy:?} {idle:?}");
        assert!(idle.peak > 1 << 20, "{idle:?}");
    }

    #[test]
    fn a_run_that_did_not_do_its_work_is_no_measurement() {
        let directory = tempfile::tempdir().unwrap();
        let subject = bash(directory.path());
        let failed = subject.run(&script("echo word; echo why >&2; exit 3"), "word").unwrap_err().to_string();
        assert!(failed.contains("wait status 0x300") && failed.contains("why"), "{failed}");
        subject.run(&script("echo other"), "word").unwrap_err();
    }

    #[test]
    fn memory_is_of_the_whole_tree() {
        let directory = tempfile::tempdir().unwrap();
        let subject = bash(directory.path());
        // Each waits at a pipe, with nothing running beside it, for as long as it is looked at.
        let alone = subject.start(&script("mkfifo alone; read -r x < alone")).unwrap();
        let pair = subject
            .start(&script("mkfifo pair; bash -c 'mkfifo below; read -r x < below'; read -r x < pair"))
            .unwrap();
        let pipe = |name: &str| subject.project().join(name);
        // Opening one end waits for the other: the scripts have got as far as that.
        while !pipe("alone").exists() || !pipe("below").exists() {
            std::thread::yield_now();
        }
        let mut ends =
            ["alone", "below"].map(|name| fs::OpenOptions::new().write(true).open(pipe(name)).unwrap());
        let (one, two) = (resident(alone.pid()).unwrap(), resident(pair.pid()).unwrap());
        for end in &mut ends {
            writeln!(end, "go").unwrap();
        }
        fs::write(pipe("pair"), "go\n").unwrap();
        alone.finish("").unwrap();
        pair.finish("").unwrap();
        assert!(two > one + one / 2, "{one} {two}");
    }
}
