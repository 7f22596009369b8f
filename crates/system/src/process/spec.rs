use std::{ffi::OsString, fmt, io, path::PathBuf, time::Duration};

use haft_tool::ToolError;

use crate::limits::GRACE;

/// What a program reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StdinMode {
    /// Nothing: `/dev/null`.
    #[default]
    Null,
    /// What is written to [`super::Process::take_stdin`].
    Piped,
}

/// Where a program's stdout goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputMode {
    /// To [`super::Process::take_stdout`].
    #[default]
    Piped,
    /// Nowhere: `/dev/null`.
    Null,
}

/// Where a program's stderr goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StderrMode {
    /// To [`super::Process::take_stderr`].
    #[default]
    Piped,
    /// Where stdout goes, in the order in which it was written, as with `2>&1`.
    Merged,
    /// Nowhere: `/dev/null`.
    Null,
}

/// A program to be started.
#[derive(Clone, Debug)]
pub struct ProcessSpec {
    /// A name that is looked for on the PATH that the program will see, or a path, relative to `directory`.
    pub program: OsString,
    /// The arguments, without the program's own name.
    pub arguments: Vec<OsString>,
    /// The directory it starts in.
    pub directory: PathBuf,
    /// Variables on top of [`crate::Environment::for_children`].
    pub set_env: Vec<(OsString, OsString)>,
    /// Variables it is not to see; goes over `set_env`.
    pub remove_env: Vec<OsString>,
    /// What it reads.
    pub stdin: StdinMode,
    /// Where its output goes.
    pub stdout: OutputMode,
    /// Where its error output goes.
    pub stderr: StderrMode,
    /// Whether its descriptor 3 is one end of a socket pair whose other end is [`super::Process::take_channel`].
    pub channel: bool,
    /// For people who look at what is running.
    pub label: String,
    /// How long it and what it started have between TERM and KILL.
    pub grace: Duration,
}

impl ProcessSpec {
    /// No arguments, no stdin, both outputs piped apart, two seconds of grace.
    pub fn new(program: impl Into<OsString>, directory: impl Into<PathBuf>) -> Self {
        let program = program.into();
        ProcessSpec {
            label: program.to_string_lossy().into_owned(),
            program,
            arguments: Vec::new(),
            directory: directory.into(),
            set_env: Vec::new(),
            remove_env: Vec::new(),
            stdin: StdinMode::default(),
            stdout: OutputMode::default(),
            stderr: StderrMode::default(),
            channel: false,
            grace: GRACE,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.set_env.push((name.into(), value.into()));
        self
    }

    /// Takes a variable away.
    pub fn without_env(mut self, name: impl Into<OsString>) -> Self {
        self.remove_env.push(name.into());
        self
    }

    /// Sets what it reads.
    pub fn stdin(self, stdin: StdinMode) -> Self {
        ProcessSpec { stdin, ..self }
    }

    /// Sets where its output goes.
    pub fn stdout(self, stdout: OutputMode) -> Self {
        ProcessSpec { stdout, ..self }
    }

    /// Sets where its error output goes.
    pub fn stderr(self, stderr: StderrMode) -> Self {
        ProcessSpec { stderr, ..self }
    }

    /// Gives it a private channel to Haft as its descriptor 3, beside its stdin and outputs.
    pub fn channel(self) -> Self {
        ProcessSpec { channel: true, ..self }
    }

    /// Sets the name that people see.
    pub fn label(self, label: impl Into<String>) -> Self {
        ProcessSpec { label: label.into(), ..self }
    }

    /// Sets the time between TERM and KILL; zero kills at once.
    pub fn grace(self, grace: Duration) -> Self {
        ProcessSpec { grace, ..self }
    }
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Not known; the words say why.
    Unknown(String),
}

impl Exit {
    /// Whether the program ended by itself and with code 0.
    pub fn success(&self) -> bool {
        *self == Exit::Code(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::Signal(number) => match signal_name(*number) {
                Some(name) => write!(f, "killed by signal {number} ({name})"),
                None => write!(f, "killed by signal {number}"),
            },
            Exit::Unknown(why) => write!(f, "end unknown: {why}"),
        }
    }
}

fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return None,
    })
}

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// There is no such program.
    #[error("There is no program `{program}`{looked_in}.")]
    NotFound {
        /// As it was asked for.
        program: String,
        /// Where it was looked for, in words that follow the program's name.
        looked_in: String,
    },
    /// There is such a file, but it cannot be run.
    #[error("`{program}` cannot be run: {why}.")]
    NotExecutable {
        /// The file.
        program: String,
        /// What the system said.
        why: String,
    },
    /// The directory it was to start in cannot be entered.
    #[error("`{program}` cannot start in the directory {}: {why}.", directory.display())]
    Directory {
        /// As it was asked for.
        program: String,
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        why: String,
    },
    /// An argument or variable holds a NUL byte, or all of them together are more than the system takes.
    #[error("The arguments of `{program}` cannot be passed on: {why}.")]
    Arguments {
        /// As it was asked for.
        program: String,
        /// Which, and why not.
        why: String,
    },
    /// [`super::Supervisor::shutdown`] was called.
    #[error("`{0}` was not started: Haft is shutting down.")]
    ShutDown(String),
    /// The guard ended before it could say how the start went.
    #[error("Whether `{program}` has run is not known: {why}.")]
    Guard {
        /// As it was asked for.
        program: String,
        /// What happened to the guard, and what was done about what it may have started.
        why: String,
    },
    /// The system refused something a start needs: descriptors, processes, memory.
    #[error("`{program}` was not started: the system refused: {source}")]
    System {
        /// As it was asked for.
        program: String,
        /// The refusal.
        source: io::Error,
    },
}

impl From<SpawnError> for ToolError {
    fn from(error: SpawnError) -> Self {
        let text = error.to_string();
        match error {
            SpawnError::NotFound { .. }
            | SpawnError::NotExecutable { .. }
            | SpawnError::Directory { .. }
            | SpawnError::Arguments { .. }
            | SpawnError::ShutDown(_)
            | SpawnError::Guard { .. } => ToolError::model(text),
            SpawnError::System { .. } => ToolError::operator(text),
        }
    }
}
