use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::PermissionsExt, net::UnixStream as StdStream, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::{
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    },
    pipe::PipeFlags,
    process::{Pid, Signal},
};
use tokio::{
    io::Interest,
    net::unix::pipe,
    sync::{mpsc, oneshot, watch},
};
use tokio_util::sync::CancellationToken;

use super::{
    Exit, OutputMode, ProcessSpec, SpawnError, StderrMode, StdinMode, guard,
    monitor::{Monitor, Refused},
    orphans,
    wire::{LARGEST_MESSAGE, Request},
};
use crate::{Environment, clock, limits::QUEUED_SIGNALS};

/// What a program reads from.
pub type ProcessStdin = pipe::Sender;
/// Where a program's stdout, or both of its outputs, arrive.
pub type ProcessStdout = pipe::Receiver;
/// Where a program's stderr arrives.
pub type ProcessStderr = pipe::Receiver;

/// Haft's end of a program's private channel; the program has the other as its descriptor 3.
pub type ProcessChannel = tokio::net::UnixStream;

/// Starts programs and answers for their end (SPEC H7: no process is left behind). Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Supervisor {
    inner: Arc<Inner>,
}

struct Inner {
    environment: Environment,
    table: Mutex<Table>,
    /// How many guards have not been reaped.
    guards: watch::Sender<usize>,
}

#[derive(Default)]
struct Table {
    closed: bool,
    next: u64,
    live: BTreeMap<u64, Entry>,
}

struct Entry {
    /// The pid is 0 until the program is started.
    info: ProcessInfo,
    end: CancellationToken,
}

/// A running program, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessInfo {
    /// [`ProcessSpec::label`].
    pub label: String,
    /// The program's, not its guard's.
    pub pid: u32,
    /// Milliseconds since 1970.
    pub started_ms: i64,
}

/// What is known when a program has ended.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) exit: Exit,
    pub(super) leftovers: Vec<String>,
    pub(super) survivors: Vec<String>,
}

/// A started program. Dropping it ends the program and everything below it.
pub struct Process {
    pid: u32,
    stdin: Option<ProcessStdin>,
    stdout: Option<ProcessStdout>,
    stderr: Option<ProcessStderr>,
    channel: Option<ProcessChannel>,
    /// Who gets signals where it is not the program's own group, and whether it leads a group of its own.
    met: Option<(Pid, bool)>,
    end: CancellationToken,
    signals: mpsc::Sender<i32>,
    ended: watch::Receiver<Option<Ended>>,
}

impl Supervisor {
    /// A supervisor whose programs see `environment` without Haft's own secrets. Starting needs a tokio runtime, this does not.
    pub fn new(environment: Environment) -> Self {
        let inner = Inner { environment, table: Mutex::new(Table::default()), guards: watch::Sender::new(0) };
        Supervisor { inner: Arc::new(inner) }
    }

    /// What programs are started with, and where they are looked for.
    pub fn environment(&self) -> &Environment {
        &self.inner.environment
    }

    /// Starts a program. Answers when `execve` has succeeded, so a program that is missing or cannot be run is an error
    /// here. A caller that gives up waiting leaves nothing running.
    pub async fn spawn(&self, spec: ProcessSpec) -> Result<Process, SpawnError> {
        let name = spec.program.to_string_lossy().into_owned();
        let system = |source: io::Error| SpawnError::System { program: name.clone(), source };
        let directory = self.inner.environment.directory().join(&spec.directory);
        let environment = self.environment_for(&spec, &directory);
        let program = find(&spec.program, &directory, environment.get(OsStr::new("PATH")))?;
        let request = encode(&spec, &name, program, directory.clone(), &environment)?;

        let (mut stdio, stdin, stdout, stderr) = pipes(&spec).map_err(system)?;
        let channel = if spec.channel { Some(private_channel(&mut stdio).map_err(system)?) } else { None };
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .map_err(|error| system(error.into()))?;

        let end = CancellationToken::new();
        let (id, guard) = self.start_guard(&spec, &name, theirs, &end)?;
        let ticket = Ticket { supervisor: self.clone(), id };
        // Queued in the socket before the guard reads: the first piece fits any socket's buffer.
        let sent = attach(&ours, &request, stdio).map_err(system)?;
        let link = StdStream::from(ours);
        link.set_nonblocking(true).map_err(system)?;
        let link = tokio::net::UnixStream::from_std(link).map_err(system)?;

        let (started, start) = oneshot::channel();
        let (signals, received) = mpsc::channel(QUEUED_SIGNALS);
        let (ending, ended) = watch::channel(None);
        let monitor =
            Monitor { ticket, guard, grace: spec.grace, end: end.clone(), signals: received, ended: ending };
        tokio::spawn(monitor.run(link, request[sent..].to_vec(), started));

        match start.await {
            Ok(Ok(pid)) => {
                Ok(Process { pid, stdin, stdout, stderr, channel, met: None, end, signals, ended })
            }
            Ok(Err(refused)) => Err(refusal(refused, name, directory)),
            Err(_) => {
                Err(SpawnError::Guard { program: name, why: "the task that watches it was ended".into() })
            }
        }
    }

    /// What is running now, in the order in which it was started.
    pub fn running(&self) -> Vec<ProcessInfo> {
        self.table().live.values().map(|entry| entry.info.clone()).filter(|info| info.pid != 0).collect()
    }

    /// Ends everything, refuses new programs, and returns when all of it is dead.
    pub async fn shutdown(&self) {
        {
            let mut table = self.table();
            table.closed = true;
            for entry in table.live.values() {
                entry.end.cancel();
            }
        }
        // An error would mean that the sender is gone, and `self` holds it.
        let _ = self.inner.guards.subscribe().wait_for(|guards| *guards == 0).await;
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.inner.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn environment_for(&self, spec: &ProcessSpec, directory: &Path) -> BTreeMap<OsString, OsString> {
        let mut variables: BTreeMap<OsString, OsString> = self
            .inner
            .environment
            .for_children()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        // As a shell does after `cd`; Haft's own would be a lie.
        variables.insert("PWD".into(), directory.into());
        variables.remove(OsStr::new("OLDPWD"));
        variables.extend(spec.set_env.iter().cloned());
        for name in &spec.remove_env {
            variables.remove(name);
        }
        variables
    }

    /// Executes this program again as a guard, with its end of the socket as stdin, and enters it in the table.
    fn start_guard(
        &self,
        spec: &ProcessSpec,
        name: &str,
        link: OwnedFd,
        end: &CancellationToken,
    ) -> Result<(u64, Pid), SpawnError> {
        orphans::adopt();
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0(guard::NAME)
            .arg(guard::MARKER)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(link))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(path) = self.inner.environment.get("LD_LIBRARY_PATH") {
            command.env("LD_LIBRARY_PATH", path);
        }
        let mut table = self.table();
        if table.closed {
            return Err(SpawnError::ShutDown(name.to_owned()));
        }
        let child =
            command.spawn().map_err(|source| SpawnError::System { program: name.to_owned(), source })?;
        let pid = Pid::from_child(&child);
        let id = table.next;
        table.next += 1;
        let info = ProcessInfo { label: spec.label.clone(), pid: 0, started_ms: clock::now_ms() };
        table.live.insert(id, Entry { info, end: end.clone() });
        self.inner.guards.send_modify(|guards| *guards += 1);
        Ok((id, pid))
    }
}

/// A place in the supervisor's table, given back when dropped.
pub(super) struct Ticket {
    supervisor: Supervisor,
    id: u64,
}

impl Ticket {
    /// The program runs.
    pub(super) fn started(&self, pid: u32) {
        if let Some(entry) = self.supervisor.table().live.get_mut(&self.id) {
            entry.info.pid = pid;
        }
    }

    /// The program has ended, though its guard may still be there.
    pub(super) fn ended(&self) {
        self.supervisor.table().live.remove(&self.id);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.ended();
        self.supervisor.inner.guards.send_modify(|guards| *guards -= 1);
    }
}

impl Process {
    /// The program's number, not its guard's.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The writing end of its stdin, once, with [`StdinMode::Piped`]. Dropping it is the end of the program's input.
    pub fn take_stdin(&mut self) -> Option<ProcessStdin> {
        self.stdin.take()
    }

    /// The reading end of its stdout, once, with [`OutputMode::Piped`].
    pub fn take_stdout(&mut self) -> Option<ProcessStdout> {
        self.stdout.take()
    }

    /// The reading end of its stderr, once, with [`StderrMode::Piped`].
    pub fn take_stderr(&mut self) -> Option<ProcessStderr> {
        self.stderr.take()
    }

    /// Haft's end of the private channel, once, with [`ProcessSpec::channel`].
    pub fn take_channel(&mut self) -> Option<ProcessChannel> {
        self.channel.take()
    }

    /// Reads the first byte that comes over the channel; from then on signals go to whoever wrote it, and to its process group where it
    /// leads one. A program that was started through another one (an enclosure's launcher) is met this way, under the number that it has
    /// for Haft and not the one that it has for itself.
    pub async fn meet(&mut self, channel: &ProcessChannel) -> io::Result<u8> {
        let (byte, pid) = channel.async_io(Interest::READABLE, || first_byte(channel)).await?;
        self.met = Some((pid, rustix::process::getpgid(Some(pid))? == pid));
        Ok(byte)
    }

    /// Waits until the program and everything below it has ended. What it left running is killed first. May be called again.
    pub async fn wait(&mut self) -> Exit {
        self.end_of_tree().await.exit
    }

    /// What the program had left running when it ended by itself, and what was then killed: `PID command line`. Empty before.
    pub fn leftovers(&self) -> Vec<String> {
        self.ended.borrow().as_ref().map(|ended| ended.leftovers.clone()).unwrap_or_default()
    }

    /// Sends a signal to the program's process group, or to that of whom [`Self::meet`] has met. It is on its way when this returns,
    /// not yet received.
    pub fn signal(&self, number: i32) -> io::Result<()> {
        use mpsc::error::TrySendError;
        if self.ended.borrow().is_some() {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        if let (Some((pid, leads)), Some(signal)) = (self.met, Signal::from_named_raw(number)) {
            let sent = if leads {
                rustix::process::kill_process_group(pid, signal)
            } else {
                rustix::process::kill_process(pid, signal)
            };
            return Ok(sent?);
        }
        self.signals.try_send(number).map_err(|error| match error {
            TrySendError::Full(_) => io::Error::from(io::ErrorKind::WouldBlock),
            TrySendError::Closed(_) => io::Error::from_raw_os_error(libc::ESRCH),
        })
    }

    /// Ends the program and everything below it: TERM, the spec's grace, KILL.
    pub async fn terminate(&mut self) -> Exit {
        self.start_termination();
        self.wait().await
    }

    /// The same without waiting.
    pub fn start_termination(&self) {
        self.end.cancel();
    }

    pub(super) async fn end_of_tree(&mut self) -> Ended {
        match self.ended.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(ended)) => ended.clone(),
            Ok(None) | Err(_) => Ended {
                exit: Exit::Unknown("the runtime that watched it was ended".into()),
                leftovers: Vec::new(),
                survivors: Vec::new(),
            },
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

type Pipes = (Vec<OwnedFd>, Option<ProcessStdin>, Option<ProcessStdout>, Option<ProcessStderr>);

fn pipes(spec: &ProcessSpec) -> io::Result<Pipes> {
    let null = |write: bool| -> io::Result<OwnedFd> {
        Ok(std::fs::OpenOptions::new().read(!write).write(write).open("/dev/null")?.into())
    };
    // The ends are separate open files: Haft's is made non-blocking without the program's becoming so.
    let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC);
    let (stdin, to_stdin) = match spec.stdin {
        StdinMode::Null => (null(false)?, None),
        StdinMode::Piped => {
            let (read, write) = pipe()?;
            (read, Some(pipe::Sender::from_owned_fd(write)?))
        }
    };
    let output = |piped: bool| -> io::Result<(OwnedFd, Option<pipe::Receiver>)> {
        if !piped {
            return Ok((null(true)?, None));
        }
        let (read, write) = pipe()?;
        Ok((write, Some(pipe::Receiver::from_owned_fd(read)?)))
    };
    let (stdout, from_stdout) = output(spec.stdout == OutputMode::Piped)?;
    let (stderr, from_stderr) = match spec.stderr {
        StderrMode::Merged => (stdout.try_clone()?, None),
        StderrMode::Piped => output(true)?,
        StderrMode::Null => output(false)?,
    };
    Ok((vec![stdin, stdout, stderr], to_stdin, from_stdout, from_stderr))
}

/// A socket pair; the program's end is added to what it is given.
fn private_channel(fds: &mut Vec<OwnedFd>) -> io::Result<ProcessChannel> {
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // So that the kernel says who writes (`Process::meet`).
    rustix::net::sockopt::set_socket_passcred(&ours, true)?;
    let ours = StdStream::from(ours);
    ours.set_nonblocking(true)?;
    fds.push(theirs);
    tokio::net::UnixStream::from_std(ours)
}

/// One byte, and who wrote it.
fn first_byte(channel: &ProcessChannel) -> io::Result<(u8, Pid)> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let message = rustix::net::recvmsg(
        channel,
        &mut [IoSliceMut::new(&mut byte)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if message.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let writer = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmCredentials(who) => Some(who.pid),
        _ => None,
    });
    writer.map(|pid| (byte[0], pid)).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Sends the first piece of the request with the descriptors attached; answers its length.
fn attach(link: &OwnedFd, request: &[u8], given: Vec<OwnedFd>) -> io::Result<usize> {
    let fds: Vec<BorrowedFd<'_>> = given.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let piece = &request[..request.len().min(1024)];
    Ok(rustix::net::sendmsg(link, &[IoSlice::new(piece)], &mut ancillary, SendFlags::NOSIGNAL)?)
}

fn encode(
    spec: &ProcessSpec,
    name: &str,
    program: PathBuf,
    directory: PathBuf,
    environment: &BTreeMap<OsString, OsString>,
) -> Result<Vec<u8>, SpawnError> {
    let nul = |what: String| SpawnError::Arguments {
        program: name.to_owned(),
        why: format!("{what} holds a NUL byte, which no program can be given"),
    };
    let has_nul = |text: &OsStr| text.as_bytes().contains(&0);
    let mut arguments = vec![spec.program.clone()];
    arguments.extend(spec.arguments.iter().cloned());
    if let Some(position) = arguments.iter().position(|argument| has_nul(argument)) {
        return Err(nul(format!("argument {position}")));
    }
    if has_nul(directory.as_os_str()) {
        return Err(nul("the directory".into()));
    }
    let mut variables = Vec::with_capacity(environment.len());
    for (variable, value) in environment {
        if has_nul(variable) || has_nul(value) {
            return Err(nul(format!("the variable `{}`", variable.to_string_lossy())));
        }
        let mut pair = variable.clone();
        pair.push("=");
        pair.push(value);
        variables.push(pair);
    }
    let grace_ms = u32::try_from(spec.grace.as_millis()).unwrap_or(u32::MAX);
    let request = Request { program, directory, arguments, environment: variables, grace_ms }.encode();
    if request.len() > LARGEST_MESSAGE {
        return Err(too_long(name.to_owned()));
    }
    Ok(request)
}

/// The file to execute: for a bare name the first on `path` that can be run, as the program itself would find it.
fn find(program: &OsStr, directory: &Path, path: Option<&OsString>) -> Result<PathBuf, SpawnError> {
    let shown = || program.to_string_lossy().into_owned();
    if program.is_empty() {
        return Err(SpawnError::NotFound { program: shown(), looked_in: ": the name is empty".into() });
    }
    if program.as_bytes().contains(&b'/') {
        // Whether it can be run is for the kernel to say.
        return Ok(directory.join(program));
    }
    // What execvp(3) uses without a PATH.
    let default = OsString::from("/bin:/usr/bin");
    let path = path.unwrap_or(&default);
    let mut unusable = None;
    for place in std::env::split_paths(path).filter(|place| place.is_absolute()) {
        let candidate = place.join(program);
        match candidate.metadata() {
            Ok(metadata) if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 => {
                return Ok(candidate);
            }
            Ok(_) => unusable = unusable.or(Some(candidate)),
            Err(_) => {}
        }
    }
    Err(match unusable {
        Some(file) => SpawnError::NotExecutable {
            program: file.display().to_string(),
            why: "it is not an executable file".into(),
        },
        None => SpawnError::NotFound { program: shown(), looked_in: " on the PATH".into() },
    })
}

fn refusal(refused: Refused, program: String, directory: PathBuf) -> SpawnError {
    let (source, at_exec) = match refused {
        Refused::Lost(why) => return SpawnError::Guard { program, why },
        Refused::Directory(error) => {
            return SpawnError::Directory { program, directory, why: plain(&error) };
        }
        Refused::Exec(error) => (error, true),
        Refused::Setup(error) => (error, false),
    };
    match source.raw_os_error() {
        Some(libc::ENOENT) if at_exec => {
            let file = directory.join(&program);
            if program.contains('/') && !file.exists() {
                SpawnError::NotFound { program, looked_in: String::new() }
            } else {
                SpawnError::NotExecutable {
                    program,
                    why: "the interpreter or loader that it names does not exist".into(),
                }
            }
        }
        Some(libc::ENOEXEC) => SpawnError::NotExecutable {
            program,
            why: "it is neither a program for this machine nor a script that begins with `#!`".into(),
        },
        Some(libc::E2BIG) => too_long(program),
        Some(libc::ENOMEM | libc::EAGAIN | libc::EMFILE | libc::ENFILE) => {
            SpawnError::System { program, source }
        }
        _ if at_exec => SpawnError::NotExecutable { why: plain(&source), program },
        _ => SpawnError::System { program, source },
    }
}

fn too_long(program: String) -> SpawnError {
    let why = "together with the environment they are longer than the system allows".into();
    SpawnError::Arguments { program, why }
}

/// The system's words without Rust's `(os error 13)`.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}
