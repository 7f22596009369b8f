//! Which checkers fit what lies in a working directory.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use haft_system::{Environment, ProcessSpec, RunBounds, Supervisor, Workdir};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Format, Job, Unchecked};
use crate::{
    limits::{CHECKED_ROOTS, CHECKED_UNITS, SCAN_DEPTH, SCANNED_DIRECTORIES},
    servers::is_foreign,
};

const PYTHON_MARKERS: &[&str] = &[
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
    "pyrightconfig.json",
    "ty.toml",
    "pyrefly.toml",
    "mypy.ini",
    "Pipfile",
];

/// Compiles every file without writing anything (`compileall` would write `__pycache__`).
const PYTHON_SYNTAX: &str = r"
import json, os, sys
skip = {'.git', '.hg', '.svn', '.venv', 'venv', 'node_modules', '__pycache__', 'site-packages', '.tox', 'build', 'dist', 'target'}
errors, files = [], 0
for top, directories, names in os.walk('.'):
    directories[:] = sorted(d for d in directories if d not in skip)
    for name in sorted(names):
        if not name.endswith('.py'):
            continue
        path = os.path.join(top, name)
        files += 1
        try:
            with open(path, 'rb') as file:
                compile(file.read(), path, 'exec', dont_inherit=True)
        except SyntaxError as error:
            errors.append({'path': path, 'line': error.lineno or 1, 'column': error.offset or 1, 'kind': type(error).__name__, 'message': error.msg})
        except (OSError, ValueError) as error:
            errors.append({'path': path, 'line': 1, 'column': 1, 'kind': type(error).__name__, 'message': str(error)})
json.dump({'files': files, 'errors': errors}, sys.stdout)
sys.exit(1 if errors else 0)
";

/// What is to be run, and what cannot be.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) jobs: Vec<Job>,
    pub(super) unchecked: Vec<Unchecked>,
}

struct Search<'a> {
    workdir: &'a Path,
    environment: &'a Environment,
    plan: Plan,
}

/// Looks through the working directory, ignored directories left out.
pub(super) fn discover(workdir: &Workdir, environment: &Environment) -> Plan {
    let directories = directories(workdir.root());
    let mut search = Search { workdir: workdir.root(), environment, plan: Plan::default() };
    search.rust(&directories);
    search.typescript(&directories);
    search.python(&directories);
    search.go(&directories);
    search.dart(&directories);
    search.native(&directories);
    search.eslint(&directories);
    search.plan
}

fn directories(root: &Path) -> Vec<PathBuf> {
    let walk = ignore::WalkBuilder::new(root)
        .max_depth(Some(SCAN_DEPTH))
        .hidden(true)
        .require_git(false)
        .filter_entry(|entry| {
            entry.file_type().is_some_and(|kind| kind.is_dir()) && !is_foreign(entry.file_name().to_str())
        })
        .sort_by_file_name(OsStr::cmp)
        .build();
    let mut found: Vec<PathBuf> =
        walk.flatten().take(SCANNED_DIRECTORIES).map(ignore::DirEntry::into_path).collect();
    found.sort_by_key(|directory| directory.components().count());
    found
}

/// Directories with one of the markers.
fn with_marker(directories: &[PathBuf], markers: &[&str]) -> Vec<PathBuf> {
    directories
        .iter()
        .filter(|directory| markers.iter().any(|marker| directory.join(marker).is_file()))
        .cloned()
        .collect()
}

/// Those that lie in none of the others.
fn topmost(found: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut top: Vec<PathBuf> = Vec::new();
    for one in found {
        if !top.iter().any(|above| one.starts_with(above)) {
            top.push(one);
        }
    }
    top
}

impl Search<'_> {
    fn add(
        &mut self,
        language: &'static str,
        directory: &Path,
        program: PathBuf,
        arguments: &[&str],
        format: Format,
    ) -> &mut Job {
        self.plan.jobs.push(Job {
            language,
            program,
            arguments: arguments.iter().map(OsString::from).collect(),
            directory: directory.to_owned(),
            environment: Vec::new(),
            format,
            after: None,
            incomplete: None,
        });
        let last = self.plan.jobs.len() - 1;
        &mut self.plan.jobs[last]
    }

    fn cannot(&mut self, language: &'static str, directory: &Path, why: impl Into<String>) {
        self.plan.unchecked.push(Unchecked { language, directory: directory.to_owned(), why: why.into() });
    }

    /// Keeps to a bound, and says what it leaves out.
    fn bounded(&mut self, language: &'static str, mut roots: Vec<PathBuf>) -> Vec<PathBuf> {
        if let Some(first) = roots.get(CHECKED_ROOTS).cloned() {
            let left = roots.len() - CHECKED_ROOTS;
            self.cannot(
                language,
                &first,
                format!("more than {CHECKED_ROOTS} roots; {left} were left out, from this one on"),
            );
            roots.truncate(CHECKED_ROOTS);
        }
        roots
    }

    /// The project's own program (virtual environment, `node_modules`) before the one on PATH.
    fn program(&self, directory: &Path, name: &str) -> Option<PathBuf> {
        let above = directory.ancestors().take_while(|at| at.starts_with(self.workdir));
        let own = above
            .flat_map(|at| {
                [".venv/bin", "venv/bin", "node_modules/.bin"].map(|place| at.join(place).join(name))
            })
            .find(|path| is_executable(path));
        own.or_else(|| self.environment.find_program(name))
    }

    fn rust(&mut self, directories: &[PathBuf]) {
        let roots = with_marker(directories, &["Cargo.toml"]);
        let roots = self.bounded("Rust", roots);
        let cargo = self.environment.find_program("cargo");
        for root in roots {
            match &cargo {
                Some(cargo) => {
                    let arguments = ["check", "--workspace", "--all-targets", "--message-format=json"];
                    self.add("Rust", &root, cargo.clone(), &arguments, Format::Cargo);
                }
                None => self.cannot("Rust", &root, "`cargo` is not on PATH"),
            }
        }
    }

    fn typescript(&mut self, directories: &[PathBuf]) {
        let mut roots = with_marker(directories, &["tsconfig.json"]);
        let is_solution = |root: &Path| {
            fs::read_to_string(root.join("tsconfig.json")).is_ok_and(|text| text.contains("\"references\""))
        };
        // A solution builds the projects that it refers to.
        let solutions: Vec<PathBuf> = roots.iter().filter(|root| is_solution(root)).cloned().collect();
        roots.retain(|root| !solutions.iter().any(|above| root != above && root.starts_with(above)));
        for root in self.bounded("TypeScript", roots) {
            let Some(tsc) = self.program(&root, "tsc") else {
                self.cannot(
                    "TypeScript",
                    &root,
                    "there is no `tsc` in node_modules or on PATH; `npm install` may bring it",
                );
                continue;
            };
            let arguments: &[&str] = if solutions.contains(&root) {
                &["-b", "--noEmit", "--pretty", "false"]
            } else {
                &["--noEmit", "--pretty", "false", "-p", "."]
            };
            self.add("TypeScript", &root, tsc, arguments, Format::Tsc);
        }
    }

    fn python(&mut self, directories: &[PathBuf]) {
        let roots = topmost(with_marker(directories, PYTHON_MARKERS));
        for root in self.bounded("Python", roots) {
            let pyproject = fs::read_to_string(root.join("pyproject.toml")).unwrap_or_default();
            let chose = |files: &[&str], table: &str| {
                files.iter().any(|file| root.join(file).is_file())
                    || pyproject.lines().any(|line| {
                        let line = line.trim();
                        line.starts_with(&format!("[tool.{table}]"))
                            || line.starts_with(&format!("[tool.{table}."))
                    })
            };
            // The project's own choice first, then in a fixed order whatever is there.
            let known: [(&str, bool, &[&str], Format); 5] = [
                ("pyright", chose(&["pyrightconfig.json"], "pyright"), &["--outputjson"], Format::Pyright),
                ("basedpyright", chose(&[], "basedpyright"), &["--outputjson"], Format::Pyright),
                ("ty", chose(&["ty.toml"], "ty"), &["check", "--output-format", "gitlab"], Format::Gitlab),
                (
                    "pyrefly",
                    chose(&["pyrefly.toml"], "pyrefly"),
                    &["check", "--output-format", "json"],
                    Format::Pyrefly,
                ),
                (
                    "mypy",
                    chose(&["mypy.ini", ".mypy.ini"], "mypy"),
                    &[
                        "--show-column-numbers",
                        "--no-pretty",
                        "--no-color-output",
                        "--cache-dir=/dev/null",
                        ".",
                    ],
                    Format::Mypy,
                ),
            ];
            let mut order: Vec<_> = known.iter().collect();
            order.sort_by_key(|(_, chosen, ..)| !chosen);
            let found = order.into_iter().find_map(|(name, _, arguments, format)| {
                self.program(&root, name).map(|program| (program, *arguments, *format))
            });
            match found {
                Some((program, arguments, format)) => {
                    self.add("Python", &root, program, arguments, format);
                }
                None => match self.program(&root, "python3").or_else(|| self.program(&root, "python")) {
                    Some(python) => {
                        let job = self.add(
                            "Python",
                            &root,
                            python,
                            &["-I", "-c", PYTHON_SYNTAX],
                            Format::PythonSyntax,
                        );
                        job.incomplete = Some(
                            "only the syntax was checked: no type checker (pyright, basedpyright, ty, pyrefly, mypy) is installed here".into(),
                        );
                    }
                    None => self.cannot("Python", &root, "there is no type checker here and no Python"),
                },
            }
            if chose(&["ruff.toml", ".ruff.toml"], "ruff")
                && let Some(ruff) = self.program(&root, "ruff")
            {
                self.add(
                    "Python",
                    &root,
                    ruff,
                    &["check", "--no-cache", "--output-format", "json"],
                    Format::Ruff,
                );
            }
        }
    }

    fn go(&mut self, directories: &[PathBuf]) {
        let roots = with_marker(directories, &["go.mod"]);
        let go = self.environment.find_program("go");
        for root in self.bounded("Go", roots) {
            let Some(go) = &go else {
                self.cannot("Go", &root, "`go` is not on PATH");
                continue;
            };
            // `-o /dev/null`: with a single main package `go build` would leave a program behind.
            let build =
                self.add("Go", &root, go.clone(), &["build", "-o", "/dev/null", "./..."], Format::GoBuild);
            build.environment.push(("GOFLAGS", "-mod=readonly"));
            let vet = self.add("Go", &root, go.clone(), &["vet", "./..."], Format::GoVet);
            vet.environment.push(("GOFLAGS", "-mod=readonly"));
            vet.after = Some("go build");
        }
    }

    fn dart(&mut self, directories: &[PathBuf]) {
        let roots = topmost(with_marker(directories, &["pubspec.yaml"]));
        for root in self.bounded("Dart", roots) {
            match self.environment.find_program("dart") {
                Some(dart) => {
                    self.add("Dart", &root, dart, &["analyze", "--format=machine"], Format::Dart);
                }
                None => self.cannot("Dart", &root, "`dart` is not on PATH"),
            }
        }
    }

    /// C and C++: every translation unit of the compilation database, checked for what its own compiler says.
    fn native(&mut self, directories: &[PathBuf]) {
        let roots = topmost(with_marker(directories, &["compile_commands.json", "CMakeLists.txt"]));
        for root in self.bounded("C/C++", roots) {
            let database =
                ["compile_commands.json", "build/compile_commands.json", "out/compile_commands.json"]
                    .map(|place| root.join(place))
                    .into_iter()
                    .find(|path| path.is_file());
            let Some(database) = database else {
                self.cannot("C/C++", &root, "there is no compile_commands.json; `cmake -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -B build` writes one");
                continue;
            };
            let units =
                fs::read(&database).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
            let Some(units) = units.as_ref().and_then(Value::as_array) else {
                self.cannot("C/C++", &root, "compile_commands.json cannot be read");
                continue;
            };
            if units.len() > CHECKED_UNITS {
                let left = units.len() - CHECKED_UNITS;
                self.cannot(
                    "C/C++",
                    &root,
                    format!(
                        "{left} of {} files were left out; build the project to check them all",
                        units.len()
                    ),
                );
            }
            for unit in units.iter().take(CHECKED_UNITS) {
                let Some((program, arguments, directory)) = unit_command(unit, &root) else {
                    self.cannot("C/C++", &root, "an entry of compile_commands.json cannot be read");
                    continue;
                };
                self.plan.jobs.push(Job {
                    language: "C/C++",
                    program,
                    arguments,
                    directory,
                    environment: vec![("LC_ALL", "C")],
                    format: Format::Compiler,
                    after: None,
                    incomplete: None,
                });
            }
        }
    }

    fn eslint(&mut self, directories: &[PathBuf]) {
        for root in topmost(with_marker(directories, &["package.json"])) {
            // Only a project's own: a linter without the project's rules says nothing about it.
            let own = root.join("node_modules/.bin/eslint");
            if is_executable(&own) {
                self.add("JavaScript", &root, own, &[".", "-f", "json"], Format::Eslint);
            }
        }
    }
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// A unit's own command, made to check and write nothing.
fn unit_command(unit: &Value, root: &Path) -> Option<(PathBuf, Vec<OsString>, PathBuf)> {
    let words: Vec<String> = match unit.get("arguments").and_then(Value::as_array) {
        Some(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        None => split_words(unit.get("command")?.as_str()?),
    };
    let directory = root.join(unit.get("directory")?.as_str()?);
    let mut words = words.into_iter();
    let program = PathBuf::from(words.next()?);
    let mut arguments = vec![OsString::from("-fsyntax-only")];
    while let Some(word) = words.next() {
        match word.as_str() {
            "-o" | "-MF" | "-MT" | "-MQ" => drop(words.next()),
            "-c" | "-MD" | "-MMD" | "-MP" | "-M" | "-MM" => {}
            _ => arguments.push(word.into()),
        }
    }
    Some((program, arguments, directory))
}

/// Words as a shell splits them, as far as compilation databases use that: quotes and backslashes.
fn split_words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut characters = command.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), other) => word.get_or_insert_default().push(other),
            (_, '\\') => word.get_or_insert_default().extend(characters.next()),
            (Some(_), other) => word.get_or_insert_default().push(other),
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, space) if space.is_whitespace() => words.extend(word.take()),
            (None, other) => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

/// Leaves out packages that are checked with their workspace, which only cargo knows for sure.
pub(super) async fn without_members(
    plan: Plan,
    supervisor: &Supervisor,
    cancel: &CancellationToken,
) -> (Vec<Job>, Vec<Unchecked>) {
    let mut roots: BTreeSet<PathBuf> = BTreeSet::new();
    let mut jobs = Vec::new();
    let several = plan.jobs.iter().filter(|job| job.format == Format::Cargo).count() > 1;
    for mut job in plan.jobs {
        if job.format == Format::Cargo && several {
            if let Some(root) = workspace_of(&job, supervisor, cancel).await {
                job.directory = root;
            }
            if !roots.insert(job.directory.clone()) {
                continue;
            }
        }
        jobs.push(job);
    }
    (jobs, plan.unchecked)
}

/// The directory of a package's workspace; `None` where cargo cannot say, and then the package is checked by itself, which shows what is wrong with it.
async fn workspace_of(job: &Job, supervisor: &Supervisor, cancel: &CancellationToken) -> Option<PathBuf> {
    let spec = ProcessSpec::new(&job.program, &job.directory)
        .args(["locate-project", "--workspace", "--message-format", "plain"])
        .label("cargo locate-project");
    let bounds = RunBounds { time: Some(Duration::from_secs(10)), capture_bytes: 8 << 10 };
    let finished = supervisor.run(spec, bounds, cancel, &mut |_| {}).await.ok()?;
    if !finished.exit.success() {
        return None;
    }
    let said = String::from_utf8(finished.stdout.head).ok()?;
    Path::new(said.trim()).parent().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn executable(path: &Path) {
        use std::os::unix::fs::PermissionsExt;
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn every_language_present_with_the_projects_own_programs_and_choices() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap().join("p");
        let bin = place.path().canonicalize().unwrap().join("bin");
        for name in ["cargo", "go", "pyright", "mypy", "tsc"] {
            executable(&bin.join(name));
        }
        for (file, text) in [
            ("rs/Cargo.toml", ""),
            ("rs/member/Cargo.toml", ""),
            ("web/tsconfig.json", "{}"),
            ("web/package.json", "{}"),
            ("solution/tsconfig.json", "{\"references\": []}"),
            ("solution/a/tsconfig.json", "{}"),
            ("py/pyproject.toml", "[tool.mypy]\nstrict = true\n[tool.ruff]\n"),
            ("py/sub/setup.py", ""),
            ("go/go.mod", ""),
            ("dart/pubspec.yaml", ""),
            ("c/CMakeLists.txt", ""),
            ("web/node_modules/x/tsconfig.json", "{}"),
            (".gitignore", "generated/\n"),
            ("generated/go.mod", ""),
        ] {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), text).unwrap();
        }
        executable(&root.join("web/node_modules/.bin/tsc"));
        executable(&root.join("web/node_modules/.bin/eslint"));
        let environment = Environment::of([("PATH", bin.as_os_str())], &root);
        let plan = discover(&Workdir::new(&root).unwrap(), &environment);
        let mut text = String::new();
        for job in &plan.jobs {
            let arguments: Vec<_> = job.arguments.iter().map(|word| word.to_string_lossy()).collect();
            text.push_str(&format!(
                "{} in {}: {} {}\n",
                job.language,
                job.directory.display(),
                job.program.display(),
                arguments.join(" ")
            ));
        }
        for one in &plan.unchecked {
            text.push_str(&format!("{} in {}: not: {}\n", one.language, one.directory.display(), one.why));
        }
        let text = text.replace(root.to_str().unwrap(), "[p]").replace(bin.to_str().unwrap(), "[bin]");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn commands_of_a_compilation_database_are_made_to_write_nothing() {
        let unit = json!({"directory": "build", "command": "/usr/bin/c++ -DNAME=\\\"x\\ y\\\" -I'a b' -MD -MF a.d -o a.o -c ../a.cpp", "file": "../a.cpp"});
        let words = ["-fsyntax-only", "-DNAME=\"x y\"", "-Ia b", "../a.cpp"].map(OsString::from).to_vec();
        assert_eq!(
            unit_command(&unit, Path::new("/p")),
            Some(("/usr/bin/c++".into(), words, "/p/build".into()))
        );
    }
}
