//! Which debug adapters there are, and whether one can be used in this checkout (SPEC D2, R3): its root marker and its binary must
//! both be there.

mod table;

use std::{
    collections::VecDeque,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use haft_system::{Environment, ProcessSpec, RunBounds, RunEnd, Supervisor, Workdir};
use tokio_util::sync::CancellationToken;

pub(crate) use table::TABLE;

use crate::limits::{MARKER_DEPTH, MARKER_DIRECTORIES, PROBE};

/// What is known about an adapter.
#[derive(Debug)]
pub(crate) struct Adapter {
    pub(crate) id: &'static str,
    pub(crate) kind: Kind,
    /// Files that make a directory a project of its language.
    pub(crate) markers: &'static [&'static str],
    /// Of source files that it debugs.
    pub(crate) extensions: &'static [&'static str],
    pub(crate) binary: Binary,
    pub(crate) arguments: &'static [&'static str],
    /// The `context` in which it evaluates expressions as a person means them.
    pub(crate) evaluate_context: &'static str,
    /// What to evaluate in the context `repl`, so that it does not go on with a step that something else has cut short.
    pub(crate) forget_step: Option<&'static str>,
    /// Whether it heeds `start` and `count` of a `variables` request.
    pub(crate) pages: bool,
    /// Whether it keeps the program's process number to itself.
    pub(crate) hides_pid: bool,
    /// Whether it tells the exit code only after `disconnect`.
    pub(crate) code_with_farewell: bool,
    /// What it takes for a hit condition.
    pub(crate) hits: Hits,
    /// With so many threads it may have left others out.
    pub(crate) lists_threads_up_to: Option<usize>,
    /// Whether it needs ptrace.
    pub(crate) traces: bool,
    /// Whether it asks for a session of their own for the processes that a program starts (`startDebugging`).
    pub(crate) announces_processes: bool,
    /// What installs it.
    pub(crate) install: &'static str,
}

/// How a program is handed to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Dart,
    Debugpy,
    Lldb,
    Delve,
}

/// Which hit conditions an adapter understands. What it does not, it takes all the same, and never stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hits {
    /// It says itself what it does not understand.
    Any,
    /// A number: the first so many hits less one are passed over.
    Number,
    /// A number (that very hit), or `==`, `>`, `>=`, `<`, `<=`, `%` and a number. Beside a condition it stops where *either* is true.
    ComparisonOrCondition,
}

/// How its binary is looked for.
#[derive(Debug)]
pub(crate) enum Binary {
    /// By these names on PATH.
    Named(&'static [&'static str]),
    /// An interpreter that can import debugpy: the project's, then those on PATH.
    Python,
    /// `lldb-dap` under any of its names.
    Lldb,
    /// `dlv` on PATH or where `go install` puts it.
    Delve,
}

/// A binary that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Absolute.
    pub(crate) binary: PathBuf,
    /// What was tried with it, and went well.
    pub(crate) probe: Option<String>,
}

/// A root marker, relative to nothing: absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker(pub(crate) PathBuf);

/// A debug adapter as it is in a checkout (SPEC D2): what was looked for, and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterReport {
    /// `dart`, `debugpy`, `lldb` or `delve`.
    pub id: &'static str,
    /// The root marker, absolute; the one nearest to the working directory.
    pub marker: Option<PathBuf>,
    /// Absolute.
    pub binary: Option<PathBuf>,
    /// What was tried with the binary, and went well.
    pub probe: Option<String>,
    /// What is in the way. Empty where the adapter can be used.
    pub why_not: Vec<String>,
    /// What installs the binary, where it is missing.
    pub install: Option<String>,
}

/// The adapter of that name.
pub(crate) fn by_id(id: &str) -> Option<&'static Adapter> {
    TABLE.iter().find(|adapter| adapter.id == id)
}

/// The adapter for a source file.
pub(crate) fn by_extension(path: &Path) -> Option<&'static Adapter> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    TABLE.iter().find(|adapter| adapter.extensions.contains(&extension.as_str()))
}

impl Adapter {
    /// The nearest marker in `from` or above it, inside the working directory.
    pub(crate) fn marker_above(&self, from: &Path, workdir: &Workdir) -> Option<Marker> {
        from.ancestors()
            .take_while(|directory| directory.starts_with(workdir.root()))
            .find_map(|directory| self.marker_in(directory))
    }

    /// A marker anywhere in the working directory; the one nearest to the root.
    pub(crate) fn marker_below(&self, workdir: &Workdir) -> Option<Marker> {
        directories(workdir.root()).into_iter().find_map(|directory| self.marker_in(&directory))
    }

    fn marker_in(&self, directory: &Path) -> Option<Marker> {
        self.markers.iter().map(|marker| directory.join(marker)).find(|marker| marker.is_file()).map(Marker)
    }

    /// Looks for the binary; the error says where it was looked for. `project` is where the project's own interpreter would be.
    pub(crate) async fn find(
        &self,
        supervisor: &Supervisor,
        project: &Path,
        root: &Path,
    ) -> Result<Found, String> {
        let environment = supervisor.environment();
        let plain = |binary| Found { binary, probe: None };
        match self.binary {
            Binary::Named(names) => names
                .iter()
                .find_map(|name| environment.find_program(name))
                .map(plain)
                .ok_or_else(|| format!("no `{}` on PATH", names.join("`, `"))),
            Binary::Lldb => lldb(environment).map(plain).ok_or_else(|| {
                "no `lldb-dap`, `lldb-dap-NN` or `lldb-vscode` on PATH, and none in /usr/lib/llvm-NN/bin"
                    .to_owned()
            }),
            Binary::Delve => {
                let below_home = environment.home().map(|home| home.join("go/bin/dlv"));
                let below_gopath = environment.get("GOPATH").map(|path| PathBuf::from(path).join("bin/dlv"));
                environment
                    .find_program("dlv")
                    .or_else(|| {
                        [below_gopath, below_home]
                            .into_iter()
                            .flatten()
                            .find_map(|path| environment.find_program(path))
                    })
                    .map(plain)
                    .ok_or_else(|| "no `dlv` on PATH, in GOPATH/bin or in ~/go/bin".to_owned())
            }
            Binary::Python => python(supervisor, project, root).await,
        }
    }
}

/// All adapters, as they are in this checkout.
pub(crate) async fn report(supervisor: &Supervisor, workdir: &Workdir) -> Vec<AdapterReport> {
    let mut reports = Vec::new();
    for adapter in TABLE {
        let marker = adapter.marker_below(workdir).map(|marker| marker.0);
        let project = marker.as_deref().and_then(Path::parent).unwrap_or(workdir.root());
        let found = adapter.find(supervisor, project, workdir.root()).await;
        let mut why_not = Vec::new();
        if marker.is_none() {
            why_not.push(format!("no root marker here ({})", adapter.markers.join(", ")));
        }
        let (binary, mut probe) = match found {
            Ok(found) => (Some(found.binary), found.probe),
            Err(why) => {
                why_not.push(why);
                (None, None)
            }
        };
        if adapter.traces && binary.is_some() {
            match haft_system::process::may_trace() {
                Ok(()) => probe = Some("processes may be traced".to_owned()),
                Err(error) => why_not.push(no_trace(&error)),
            }
        }
        if adapter.kind == Kind::Delve
            && binary.is_some()
            && supervisor.environment().find_program("go").is_none()
        {
            why_not.push("no `go` on PATH, which delve builds programs with".to_owned());
        }
        let install = binary.is_none().then(|| match adapter.kind {
            Kind::Debugpy => Pythons::of(supervisor.environment(), project, workdir.root()).install(),
            _ => adapter.install.to_owned(),
        });
        reports.push(AdapterReport { id: adapter.id, marker, binary, probe, why_not, install });
    }
    reports
}

/// What to say where one process may not trace another.
fn no_trace(error: &std::io::Error) -> String {
    format!("this machine does not let a debugger trace a process (ptrace: {error})")
}

/// `lldb-dap` by all its names. Started by anything but its absolute path it does not find its own helpers.
fn lldb(environment: &Environment) -> Option<PathBuf> {
    let absolute = |path: PathBuf| std::fs::canonicalize(&path).unwrap_or(path);
    if let Some(path) = environment.find_program("lldb-dap") {
        return Some(absolute(path));
    }
    let mut numbered: Vec<(u32, PathBuf)> = Vec::new();
    for directory in environment.get("PATH").unwrap_or_default().split(':').map(Path::new) {
        for name in names(directory) {
            let number = ["lldb-dap-", "lldb-vscode-"]
                .iter()
                .find_map(|prefix| name.strip_prefix(prefix))
                .and_then(|number| number.parse().ok());
            if let Some(number) = number {
                numbered.push((number, directory.join(&name)));
            }
        }
    }
    for name in names(Path::new("/usr/lib")) {
        let number = name.strip_prefix("llvm-").and_then(|number| number.parse().ok());
        if let Some(number) = number {
            numbered.push((number, Path::new("/usr/lib").join(&name).join("bin/lldb-dap")));
        }
    }
    numbered.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    numbered
        .into_iter()
        .find_map(|(_, path)| environment.find_program(path))
        .or_else(|| environment.find_program("lldb-vscode"))
        .map(absolute)
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// The interpreters that debugpy may be in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pythons {
    /// The project's own.
    pub(crate) own: Option<PathBuf>,
    /// The project's own, then those on PATH; each once.
    pub(crate) candidates: Vec<PathBuf>,
}

impl Pythons {
    /// `project` is where the project's own interpreter would be; else it may stand in `root`.
    pub(crate) fn of(environment: &Environment, project: &Path, root: &Path) -> Pythons {
        let mut places: Vec<&Path> = vec![project];
        places.extend((project != root).then_some(root));
        let own = places
            .into_iter()
            .flat_map(|place| [place.join(".venv/bin"), place.join("venv/bin")])
            .flat_map(|bin| [bin.join("python3"), bin.join("python")])
            .find(|python| python.is_file());
        let mut candidates: Vec<PathBuf> = own.clone().into_iter().collect();
        for python in ["python3", "python"].into_iter().filter_map(|name| environment.find_program(name)) {
            if !candidates.contains(&python) {
                candidates.push(python);
            }
        }
        Pythons { own, candidates }
    }

    /// The command that brings debugpy into the interpreter that would be taken first.
    pub(crate) fn install(&self) -> String {
        let python =
            self.own.as_deref().map_or_else(|| "python3".to_owned(), |own| own.display().to_string());
        // An environment made by uv has no pip of its own.
        let has_pip = self.own.as_deref().and_then(Path::parent).is_none_or(|bin| bin.join("pip").exists());
        if has_pip {
            format!("{python} -m pip install debugpy")
        } else {
            format!("uv pip install --python {python} debugpy")
        }
    }

    /// Why there is no debugpy, from why it is in none of them.
    pub(crate) fn none_of(tried: &[(PathBuf, String)]) -> String {
        if tried.is_empty() {
            return "no `.venv/bin/python`, no `venv/bin/python`, and no `python3` on PATH".to_owned();
        }
        let lines: Vec<String> =
            tried.iter().map(|(python, why)| format!("{}: {why}", python.display())).collect();
        lines.join("; ")
    }
}

/// The project's interpreter if it can import debugpy; else one on PATH that can, with the project's passed on for the program.
async fn python(supervisor: &Supervisor, project: &Path, root: &Path) -> Result<Found, String> {
    let pythons = Pythons::of(supervisor.environment(), project, root);
    let mut tried = Vec::new();
    for candidate in &pythons.candidates {
        match import_debugpy(supervisor, candidate, root).await {
            Ok(probe) => return Ok(Found { binary: candidate.clone(), probe: Some(probe) }),
            Err(why) => tried.push((candidate.clone(), why)),
        }
    }
    Err(Pythons::none_of(&tried))
}

/// Answers what was imported.
async fn import_debugpy(supervisor: &Supervisor, python: &Path, directory: &Path) -> Result<String, String> {
    // Without the directory it stands in on the path, so that a project's own `debugpy.py` is not run.
    let spec = ProcessSpec::new(python, directory)
        .args([
            "-c",
            "import sys; sys.path = [p for p in sys.path if p]; import debugpy; print(debugpy.__version__)",
        ])
        .label("debugpy probe");
    let bounds = RunBounds { time: Some(PROBE), capture_bytes: 4096 };
    let finished = supervisor
        .run(spec, bounds, &CancellationToken::new(), &mut |_| {})
        .await
        .map_err(|error| error.to_string())?;
    if finished.end == RunEnd::TimedOut {
        return Err(format!("did not start within {} seconds", PROBE.as_secs()));
    }
    if finished.exit.success() {
        let version = String::from_utf8_lossy(&finished.stdout.bytes()).trim().to_owned();
        let named = if version.is_empty() { "debugpy".to_owned() } else { format!("debugpy {version}") };
        return Ok(format!("{named} can be imported"));
    }
    Err(import_failure(&String::from_utf8_lossy(&finished.stderr.bytes()), &finished.exit))
}

/// Why an interpreter has no debugpy, from what it wrote to stderr and how it ended.
pub(crate) fn import_failure(stderr: &str, exit: &haft_system::Exit) -> String {
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    if last.contains("No module named 'debugpy'") {
        "it has no debugpy".to_owned()
    } else if last.is_empty() {
        format!("`import debugpy` failed ({exit})")
    } else {
        format!("`import debugpy` failed: {last}")
    }
}

/// The directories in which a marker may stand, the nearest to the root first. Hidden ones and those that hold what others wrote are
/// left out.
fn directories(root: &Path) -> Vec<PathBuf> {
    const SKIPPED: &[&str] = &["target", "node_modules", "vendor", "venv", "build", "dist", "__pycache__"];
    let mut found = vec![root.to_owned()];
    let mut open = VecDeque::from([(root.to_owned(), 0)]);
    while let Some((directory, depth)) = open.pop_front() {
        if depth == MARKER_DEPTH {
            continue;
        }
        for name in names(&directory) {
            let path = directory.join(&name);
            let is_directory = path.symlink_metadata().is_ok_and(|data| data.is_dir());
            if name.starts_with('.') || SKIPPED.contains(&name.as_str()) || !is_directory {
                continue;
            }
            if found.len() >= MARKER_DIRECTORIES {
                return found;
            }
            found.push(path.clone());
            open.push_back((path, depth + 1));
        }
    }
    found
}

/// Whether the file is an ELF or Mach-O program rather than a script or text.
pub(crate) fn is_native(path: &Path) -> bool {
    use std::io::Read;
    let mut magic = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok()
        && matches!(
            magic,
            [0x7f, b'E', b'L', b'F'] | [0xcf | 0xce, 0xfa, 0xed, 0xfe] | [0xca, 0xfe, 0xba, 0xbe]
        )
}

/// Whether a native program was built by Go, which puts its build information into a section of that name.
pub(crate) fn is_go_program(path: &Path) -> bool {
    let Ok(bytes) = std::fs::read(path) else { return false };
    let name = OsStr::new(".go.buildinfo").as_encoded_bytes();
    bytes.windows(name.len()).any(|window| window == name)
}
