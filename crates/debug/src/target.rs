//! From what a caller names to an adapter and what it is told.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use haft_system::{PathState, ProcessSpec, ResolvedPath, StdinMode, Supervisor, Workdir};
use haft_tool::{Access, Context, ToolError};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::{net::TcpStream, time::timeout};

use crate::{
    adapters::{self, Adapter, Kind, Pythons, TABLE},
    cargo, go,
    limits::{ATTACH, CANDIDATES, GRACE, LAUNCH},
    python::{self, Script},
    session::{Begin, Transport},
};

/// What a caller asked to have debugged.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Launch {
    pub(crate) program: Option<String>,
    pub(crate) arguments: Vec<String>,
    pub(crate) adapter: Option<String>,
    pub(crate) test: bool,
    pub(crate) directory: Option<String>,
    pub(crate) variables: Map<String, Value>,
    /// Whether Python processes below the program are debugged too.
    pub(crate) subprocesses: bool,
}

/// Everything that a session is made from.
pub(crate) struct Prepared {
    pub(crate) adapter: &'static Adapter,
    pub(crate) title: String,
    pub(crate) launched: bool,
    pub(crate) transport: Transport,
    pub(crate) begin: Begin,
    /// Where delve puts the program; removed with the session.
    pub(crate) scratch: Option<TempDir>,
}

/// What stands for the program, after a look at the disk.
enum Program {
    Module(String),
    File(ResolvedPath),
    Directory(ResolvedPath),
    /// Not a path: perhaps a cargo target.
    Name(String),
    Nothing,
}

/// Finds adapter and program, builds what has to be built, and starts the adapter.
pub(crate) async fn launch(
    supervisor: &Supervisor,
    workdir: &Workdir,
    wish: &Launch,
    context: &Context,
) -> Result<Prepared, ToolError> {
    let (program, arguments) = look(workdir, wish)?;
    let adapter = choose(workdir, wish, &program)?;
    let place = place_of(workdir, &program);
    let marker = adapter.marker_above(&place, workdir);
    // A path may lie beside the project it belongs to; a name has no place at all.
    let marker = match (&program, marker) {
        (Program::Name(_) | Program::Nothing | Program::Module(_), None) => adapter.marker_below(workdir),
        (_, marker) => marker,
    };
    if marker.is_none() && wish.adapter.is_none() {
        return Err(ToolError::model(format!(
            "`{}` would be debugged with {}, but there is no root marker of such a project ({}) in its directory or above it. Pass \
             adapter: \"{}\" to do it all the same.",
            wish.program.as_deref().unwrap_or("."),
            adapter.id,
            adapter.markers.join(", "),
            adapter.id
        )));
    }
    let project = marker.as_ref().and_then(|marker| marker.0.parent()).unwrap_or(workdir.root()).to_owned();
    let directory = match &wish.directory {
        Some(given) => {
            let resolved = workdir.resolve(given, Access::Read)?;
            if resolved.state != PathState::Directory {
                return Err(ToolError::model(format!("cwd `{given}` is not a directory.")));
            }
            Some(resolved.real)
        }
        None => None,
    };
    let job = Job {
        supervisor,
        workdir,
        wish,
        arguments: &arguments,
        context,
        adapter,
        project: &project,
        directory,
    };
    match adapter.kind {
        Kind::Debugpy => job.python(&program).await,
        Kind::Lldb => job.native(&program).await,
        Kind::Delve => job.go(&program).await,
        Kind::Dart => job.dart(&program).await,
    }
}

struct Job<'a> {
    supervisor: &'a Supervisor,
    workdir: &'a Workdir,
    wish: &'a Launch,
    arguments: &'a [String],
    context: &'a Context,
    adapter: &'static Adapter,
    project: &'a Path,
    /// As the caller asked.
    directory: Option<PathBuf>,
}

impl Job<'_> {
    fn directory(&self) -> &Path {
        self.directory.as_deref().unwrap_or(self.workdir.root())
    }

    fn unusable(&self, why: &str, install: &str) -> ToolError {
        ToolError::model(format!(
            "The debug adapter {} cannot be used: {why}. To install it: {install}.",
            self.adapter.id
        ))
    }

    /// The adapter's binary.
    async fn binary(&self) -> Result<PathBuf, ToolError> {
        let found = self.adapter.find(self.supervisor, self.project, self.workdir.root()).await;
        found.map(|found| found.binary).map_err(|why| self.unusable(&why, self.adapter.install))
    }

    async fn spawn(&self, spec: ProcessSpec) -> Result<Transport, ToolError> {
        Ok(Transport::Stdio(self.supervisor.spawn(spec.stdin(StdinMode::Piped)).await?))
    }

    async fn python(self, program: &Program) -> Result<Prepared, ToolError> {
        let mut arguments = self.arguments.to_vec();
        let pytest = self.wish.test.then(|| "pytest".to_owned());
        let (script, title) = match (program, &pytest) {
            (Program::File(path) | Program::Directory(path), Some(pytest)) => {
                arguments.insert(0, path.real.display().to_string());
                (Script::Module(pytest), format!("pytest {}", path.shown))
            }
            (Program::Nothing, Some(pytest)) => (Script::Module(pytest), "pytest".to_owned()),
            (Program::Module(name), _) => (Script::Module(name), format!("-m {name}")),
            (Program::File(path), None) => (Script::File(&path.real), path.shown.clone()),
            (Program::Directory(path), None) if path.real.join("__main__.py").is_file() => {
                (Script::File(&path.real), path.shown.clone())
            }
            (Program::Directory(path), None) => {
                return Err(ToolError::model(format!(
                    "`{}` is a directory without a __main__.py. Name a file, or `-m module`.",
                    path.shown
                )));
            }
            (Program::Name(name), _) => return Err(no_such(name)),
            (Program::Nothing, None) => return Err(needs_program("a Python file, or `-m module`")),
        };
        let pythons = Pythons::of(self.supervisor.environment(), self.project, self.workdir.root());
        let install = pythons.install();
        let started =
            python::start(self.supervisor, pythons, self.workdir.root(), &self.context.cancel).await?;
        let started = started.map_err(|why| self.unusable(&why, &install))?;
        let interpreter = started.interpreter.as_deref();
        let mut launch =
            python::launch(&script, &arguments, self.directory(), &self.wish.variables, interpreter);
        launch["subProcess"] = self.wish.subprocesses.into();
        Ok(prepared(self.adapter, title, started.transport, launch))
    }

    async fn native(self, program: &Program) -> Result<Prepared, ToolError> {
        let (adapter, binary) = (self.adapter, self.binary().await?);
        let is_cargo = self.project.join("Cargo.toml").is_file();
        let mut variables = self.wish.variables.clone();
        let (executable, title, mut directory) = match program {
            Program::File(path) if adapters::is_native(&path.real) => {
                (path.real.clone(), path.shown.clone(), self.directory().to_owned())
            }
            Program::Module(_) => return Err(ToolError::model("`-m` is for Python modules.")),
            Program::File(path) if path.real.extension() != Some(OsStr::new("rs")) || !is_cargo => {
                return Err(ToolError::model(format!(
                    "`{}` is not a program that can run here (neither ELF nor Mach-O). Build it, with debug information (-g), and \
                     name what was built.",
                    path.shown
                )));
            }
            Program::Directory(path) if !is_cargo => {
                return Err(ToolError::model(format!(
                    "`{}` is a directory. Name the program that was built.",
                    path.shown
                )));
            }
            Program::Nothing if !is_cargo => return Err(needs_program("the program that was built")),
            Program::Name(name) if !is_cargo => return Err(no_such(name)),
            program => {
                let (name, path) = match program {
                    Program::File(path) | Program::Directory(path) => {
                        (path.shown.as_str(), Some(&*path.real))
                    }
                    Program::Name(name) => (name.as_str(), None),
                    Program::Nothing | Program::Module(_) => ("", None),
                };
                // The directory of the workspace itself means whatever there is to run.
                let is_root = path.is_some_and(|path| path == self.project)
                    && !std::fs::read_to_string(self.project.join("Cargo.toml"))
                        .is_ok_and(|text| text.contains("[package]"));
                let wish = if is_root {
                    cargo::Wish { name: "", path: None, test: self.wish.test }
                } else {
                    cargo::Wish { name, path, test: self.wish.test }
                };
                let progress = self.context.progress.clone();
                let built =
                    cargo::build(self.supervisor, self.project, wish, &self.context.cancel, &mut |piece| {
                        progress.emit(String::from_utf8_lossy(piece));
                    })
                    .await?;
                // `cargo test` runs tests in their package's directory, `cargo run` where it stands.
                let is_test = self.wish.test || built.label.starts_with("test:");
                if is_test {
                    // The harness would keep back what a test writes, the message of its panic too, until the test is over.
                    variables.entry("RUST_TEST_NOCAPTURE").or_insert_with(|| "1".into());
                }
                let directory = if is_test { built.package } else { self.workdir.root().to_owned() };
                (built.executable, built.label, directory)
            }
        };
        if let Some(given) = self.directory {
            directory = given;
        }
        // A program that reads its input gets its end, not a terminal that never types.
        let mut commands = vec!["settings set target.input-path /dev/null".to_owned()];
        commands.extend(cargo::formatters(self.supervisor, self.workdir.root(), self.project).await);
        // As a list: lldb-dap 19 passes over an object without a word.
        let variables: Vec<String> = variables
            .iter()
            .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
            .collect();
        let launch = json!({
            "name": "haft",
            "type": "lldb-dap",
            "request": "launch",
            "program": executable.display().to_string(),
            "args": self.arguments,
            "cwd": directory.display().to_string(),
            "env": variables,
            "stopOnEntry": false,
            "initCommands": commands,
        });
        let spec = ProcessSpec::new(&binary, self.workdir.root())
            .args(adapter.arguments.iter().copied())
            .grace(GRACE)
            .label("lldb-dap");
        let transport = self.supervisor.spawn(spec.stdin(StdinMode::Piped)).await?;
        let mut prepared = prepared(adapter, title, Transport::Stdio(transport), launch);
        prepared.begin.stop_at_panic = is_cargo;
        Ok(prepared)
    }

    async fn go(self, program: &Program) -> Result<Prepared, ToolError> {
        let (adapter, binary) = (self.adapter, self.binary().await?);
        let (mode, path, title) = match program {
            Program::File(path) if path.real.extension() == Some(OsStr::new("go")) && self.wish.test => {
                let directory = path.real.parent().unwrap_or(self.project).to_owned();
                (go::Mode::Test, directory, format!("go test {}", path.shown))
            }
            Program::File(path) if path.real.extension() == Some(OsStr::new("go")) => {
                (go::Mode::Debug, path.real.clone(), path.shown.clone())
            }
            Program::File(path) if adapters::is_native(&path.real) => {
                (go::Mode::Exec, path.real.clone(), path.shown.clone())
            }
            Program::Directory(path) if self.wish.test => {
                (go::Mode::Test, path.real.clone(), format!("go test {}", path.shown))
            }
            Program::Directory(path) => (go::Mode::Debug, path.real.clone(), path.shown.clone()),
            Program::Nothing if self.wish.test => {
                (go::Mode::Test, self.project.to_owned(), "go test".to_owned())
            }
            Program::Nothing => (go::Mode::Debug, self.project.to_owned(), "go package".to_owned()),
            Program::File(path) => {
                return Err(ToolError::model(format!(
                    "`{}` is neither a Go source file nor a program. Name a package's directory, a `.go` file, or a binary.",
                    path.shown
                )));
            }
            Program::Name(name) => return Err(no_such(name)),
            Program::Module(_) => return Err(ToolError::model("`-m` is for Python modules.")),
        };
        let scratch = tempfile::Builder::new()
            .prefix("haft-debug-")
            .tempdir_in(self.supervisor.environment().temp_dir())
            .map_err(|error| {
                ToolError::operator(format!("no temporary directory for the program: {error}"))
            })?;
        let directory = match (&self.directory, mode) {
            (Some(given), _) => given.clone(),
            // As `go test` does.
            (None, go::Mode::Test) => path.clone(),
            (None, _) => self.workdir.root().to_owned(),
        };
        let output = scratch.path().join("program");
        let launch = go::launch(mode, &path, self.arguments, &directory, &self.wish.variables, &output);
        // delve calls `go` in the directory it stands in, and `go` finds the module from there.
        let build_in = if path.is_dir() { path.clone() } else { self.project.to_owned() };
        let (process, stream) = go::dial_in(self.supervisor, &binary, &build_in, adapter.arguments)
            .await
            .map_err(|why| ToolError::model(format!("The debug adapter delve did not start: {why}")))?;
        let mut prepared = prepared(adapter, title, Transport::DialledIn(process, stream), launch);
        prepared.scratch = Some(scratch);
        Ok(prepared)
    }

    async fn dart(self, program: &Program) -> Result<Prepared, ToolError> {
        let (adapter, binary) = (self.adapter, self.binary().await?);
        let path = match program {
            Program::File(path) => path.clone(),
            Program::Name(name) => return Err(no_such(name)),
            Program::Module(_) => return Err(ToolError::model("`-m` is for Python modules.")),
            Program::Directory(_) | Program::Nothing => {
                return Err(needs_program("a Dart file, such as bin/main.dart"));
            }
        };
        let launch = json!({
            "name": "haft",
            "type": "dart",
            "request": "launch",
            "program": path.real.display().to_string(),
            "args": self.arguments,
            "cwd": self.directory().display().to_string(),
            "env": self.wish.variables,
            "console": "debugConsole",
        });
        let mut spec = ProcessSpec::new(&binary, self.project)
            .args(adapter.arguments.iter().copied())
            .grace(GRACE)
            .label("dart debug_adapter");
        if self.wish.test {
            spec = spec.arg("--test");
        }
        let transport = self.spawn(spec).await?;
        Ok(prepared(adapter, path.shown, transport, launch))
    }
}

fn prepared(adapter: &'static Adapter, title: String, transport: Transport, arguments: Value) -> Prepared {
    let begin = Begin { command: "launch", arguments, within: LAUNCH, stop_at_panic: false };
    Prepared { adapter, title, launched: true, transport, begin, scratch: None }
}

/// Reaches a debugger that is listening on a port of this machine.
pub(crate) async fn attach(
    supervisor: &Supervisor,
    workdir: &Workdir,
    adapter: Option<&str>,
    port: u16,
    program: Option<&str>,
) -> Result<Prepared, ToolError> {
    let adapter = match adapter {
        Some(id) => known(id)?,
        None => {
            let here: Vec<&Adapter> =
                TABLE.iter().filter(|adapter| adapter.marker_below(workdir).is_some()).collect();
            match here.as_slice() {
                [one] => by(one.id),
                _ => {
                    let ids: Vec<&str> = TABLE.iter().map(|adapter| adapter.id).collect();
                    return Err(ToolError::model(format!(
                        "What listens on port {port}? Say which debugger it is with adapter: {}.",
                        ids.join(", ")
                    )));
                }
            }
        }
    };
    let connect = async || {
        let dialled = timeout(ATTACH, TcpStream::connect((std::net::Ipv4Addr::LOCALHOST, port))).await;
        let why = match dialled {
            Ok(Ok(stream)) => return Ok(Transport::Connected(stream)),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} seconds", ATTACH.as_secs()),
        };
        Err(ToolError::model(format!("Nothing to attach to on port {port}: {why}.")))
    };
    let (transport, arguments) = match adapter.kind {
        Kind::Debugpy => (connect().await?, python::attach()),
        Kind::Delve => (connect().await?, go::attach()),
        Kind::Lldb => {
            let found =
                adapter.find(supervisor, workdir.root(), workdir.root()).await.map_err(ToolError::model)?;
            let mut commands = cargo::formatters(supervisor, workdir.root(), workdir.root()).await;
            // A wrong port would otherwise be waited for by lldb itself, for a minute.
            commands.push(format!(
                "settings set plugin.process.gdb-remote.packet-timeout {}",
                ATTACH.as_secs() / 2
            ));
            let mut attach = json!({
                "name": "haft", "type": "lldb-dap", "request": "attach", "gdb-remote-port": port,
                "gdb-remote-hostname": "127.0.0.1", "stopOnEntry": false, "initCommands": commands,
            });
            if let Some(program) = program {
                attach["program"] = workdir.resolve(program, Access::Read)?.real.display().to_string().into();
            }
            let spec = ProcessSpec::new(&found.binary, workdir.root())
                .stdin(StdinMode::Piped)
                .grace(GRACE)
                .label("lldb-dap");
            (Transport::Stdio(supervisor.spawn(spec).await?), attach)
        }
        Kind::Dart => {
            let found =
                adapter.find(supervisor, workdir.root(), workdir.root()).await.map_err(ToolError::model)?;
            let attach = json!({
                "name": "haft", "type": "dart", "request": "attach",
                "cwd": workdir.root().display().to_string(), "vmServiceUri": format!("http://127.0.0.1:{port}/"),
            });
            let spec = ProcessSpec::new(&found.binary, workdir.root())
                .args(adapter.arguments.iter().copied())
                .stdin(StdinMode::Piped)
                .grace(GRACE)
                .label("dart debug_adapter");
            (Transport::Stdio(supervisor.spawn(spec).await?), attach)
        }
    };
    let begin = Begin { command: "attach", arguments, within: ATTACH, stop_at_panic: false };
    Ok(Prepared { adapter, title: format!("port {port}"), launched: false, transport, begin, scratch: None })
}

/// What the words of the call stand for; the module's name and the arguments behind it are taken apart.
fn look(workdir: &Workdir, wish: &Launch) -> Result<(Program, Vec<String>), ToolError> {
    let mut arguments = wish.arguments.clone();
    let Some(given) = wish.program.as_deref().map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok((Program::Nothing, arguments));
    };
    if given == "-m" {
        if arguments.is_empty() {
            return Err(ToolError::model("`-m` needs the name of a module: program: \"-m package.module\"."));
        }
        let module = arguments.remove(0);
        return Ok((Program::Module(module), arguments));
    }
    if let Some(rest) = given.strip_prefix("-m ") {
        let mut words = rest.split_whitespace().map(str::to_owned);
        let module = words.next().unwrap_or_default();
        let all = words.chain(arguments).collect();
        return Ok((Program::Module(module), all));
    }
    let resolved = match workdir.resolve(given, Access::Read) {
        Ok(resolved) => resolved,
        // `bin:demo` and the like are no paths, whatever the jail thinks of them.
        Err(error) if given.contains('/') => return Err(error.into()),
        Err(_) => return Ok((Program::Name(given.to_owned()), arguments)),
    };
    Ok(match resolved.state {
        PathState::File => (Program::File(resolved), arguments),
        PathState::Directory => {
            let has_marker = TABLE
                .iter()
                .flat_map(|adapter| adapter.markers)
                .any(|marker| resolved.real.join(marker).is_file());
            let has_source = std::fs::read_dir(&resolved.real)
                .into_iter()
                .flatten()
                .flatten()
                .any(|entry| adapters::by_extension(&entry.path()).is_some());
            if has_marker || has_source || given.contains('/') || given == "." {
                (Program::Directory(resolved), arguments)
            } else {
                // A cargo target may have the name of some directory.
                (Program::Name(given.to_owned()), arguments)
            }
        }
        PathState::Missing if given.contains('/') => return Err(no_such(given)),
        PathState::Missing => (Program::Name(given.to_owned()), arguments),
        PathState::Other(what) => {
            return Err(ToolError::model(format!("`{given}` is {what}, not a program.")));
        }
    })
}

fn place_of(workdir: &Workdir, program: &Program) -> PathBuf {
    match program {
        Program::File(path) => path.real.parent().unwrap_or(workdir.root()).to_owned(),
        Program::Directory(path) => path.real.clone(),
        Program::Module(_) | Program::Name(_) | Program::Nothing => workdir.root().to_owned(),
    }
}

fn known(id: &str) -> Result<&'static Adapter, ToolError> {
    adapters::by_id(id).ok_or_else(|| {
        let ids: Vec<&str> = TABLE.iter().map(|adapter| adapter.id).collect();
        ToolError::model(format!("There is no debug adapter `{id}`. There are: {}.", ids.join(", ")))
    })
}

/// From the table, by an id that is in it.
fn by(id: &'static str) -> &'static Adapter {
    TABLE.iter().find(|adapter| adapter.id == id).unwrap_or(&TABLE[0])
}

fn choose(workdir: &Workdir, wish: &Launch, program: &Program) -> Result<&'static Adapter, ToolError> {
    if let Some(id) = &wish.adapter {
        return known(id);
    }
    let by_marker = |place: &Path| {
        place.ancestors().take_while(|directory| directory.starts_with(workdir.root())).find_map(
            |directory| {
                TABLE
                    .iter()
                    .find(|adapter| adapter.markers.iter().any(|marker| directory.join(marker).is_file()))
            },
        )
    };
    match program {
        Program::Module(_) => Ok(by("debugpy")),
        Program::File(path) => {
            if let Some(adapter) = adapters::by_extension(&path.real) {
                return Ok(adapter);
            }
            if adapters::is_native(&path.real) {
                return Ok(if adapters::is_go_program(&path.real) { by("delve") } else { by("lldb") });
            }
            if first_line(&path.real).is_some_and(|line| line.starts_with("#!") && line.contains("python")) {
                return Ok(by("debugpy"));
            }
            Err(ToolError::model(format!(
                "`{}` is neither a program nor a source file of a language that can be debugged here. Name the debugger with \
                 adapter if it is.",
                path.shown
            )))
        }
        Program::Directory(path) => {
            let nearest = by_marker(&path.real);
            nearest.ok_or_else(|| {
                ToolError::model(format!(
                    "`{}` is a directory, and neither in it nor above it is there a root marker that says which language it is. \
                     Ask for `adapters`.",
                    path.shown
                ))
            })
        }
        Program::Name(name) => {
            let cargo = by("lldb");
            let cargo_here =
                cargo.marker_below(workdir).is_some_and(|marker| marker.0.ends_with("Cargo.toml"));
            if cargo_here { Ok(cargo) } else { Err(no_such(name)) }
        }
        Program::Nothing => {
            let here: Vec<&Adapter> = TABLE
                .iter()
                .filter(|adapter| adapter.marker_above(workdir.root(), workdir).is_some())
                .collect();
            match here.as_slice() {
                [one] => Ok(by(one.id)),
                [] => Err(needs_program("a program")),
                many => {
                    let ids: Vec<&str> = many.iter().take(CANDIDATES).map(|adapter| adapter.id).collect();
                    Err(ToolError::model(format!(
                        "Which program? This directory has markers of {}: name a program, or an adapter.",
                        ids.join(", ")
                    )))
                }
            }
        }
    }
}

fn first_line(path: &Path) -> Option<String> {
    use std::io::{BufRead, BufReader, Read};
    let file = std::fs::File::open(path).ok()?;
    let mut line = Vec::new();
    BufReader::new(file.take(256)).read_until(b'\n', &mut line).ok()?;
    Some(String::from_utf8_lossy(&line).into_owned())
}

fn no_such(name: &str) -> ToolError {
    ToolError::model(format!(
        "There is no program `{name}`: no such file, and no cargo project here that could have a target of that name."
    ))
}

fn needs_program(what: &str) -> ToolError {
    ToolError::model(format!("`launch` needs a program: {what}."))
}
