//! Where a server's program is (SPEC L1): the project's own before PATH, then Haft's own folder. Every place is remembered, so that a
//! person can be told where it was looked for.

use std::{
    collections::HashMap,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use haft_system::{Environment, ProcessSpec, RunBounds, RunEnd, Supervisor};
use tokio_util::sync::CancellationToken;

use super::ServerSpec;
use crate::limits::{PROBE, STDERR_BYTES};

/// A server's program, found and, where the table asks for it, seen to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Absolute.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// What it said its version is, where it was asked.
    pub version: Option<String>,
    /// Programs of the name that come before it but do not run, each with what they said.
    pub passed_over: Vec<(PathBuf, String)>,
}

/// What was looked for and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotFound {
    /// Names of programs.
    pub names: Vec<String>,
    /// Directories, in the order in which they were looked into.
    pub places: Vec<PathBuf>,
    /// Programs of the name that are there but do not run, each with what they said.
    pub dead: Vec<(PathBuf, String)>,
    /// A condition that what is there does not meet.
    pub condition: Option<String>,
}

impl std::fmt::Display for NotFound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(condition) = &self.condition {
            return f.write_str(condition);
        }
        const NAMED: usize = 3;
        let mut names: Vec<String> = self.names.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
        if self.names.len() > NAMED {
            names.push(format!("and {} other names", self.names.len() - NAMED));
        }
        for (path, said) in &self.dead {
            write!(f, "`{}` is there but does not run: {said}. ", path.display())?;
        }
        write!(f, "{} not found", names.join(", "))
    }
}

/// Finds programs. Remembers which ones do not run until [`Resolver::forget`].
#[derive(Clone)]
pub struct Resolver {
    environment: Environment,
    processes: Supervisor,
    probed: Arc<Mutex<HashMap<PathBuf, Result<String, String>>>>,
}

impl Resolver {
    /// Looks on the PATH of `environment` and runs probes under `processes`.
    pub fn new(environment: Environment, processes: Supervisor) -> Self {
        Resolver { environment, processes, probed: Arc::default() }
    }

    /// Forgets which programs do not run.
    pub fn forget(&self) {
        self.probed.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Where Haft installs a server of this name.
    pub fn own_place(&self, id: &str) -> Option<PathBuf> {
        self.environment.cache_dir().map(|cache| cache.join("servers").join(id))
    }

    /// Finds the program of a server for a root inside a working directory.
    pub async fn find(&self, spec: &ServerSpec, root: &Path, workdir: &Path) -> Result<Found, NotFound> {
        let places = self.places(&spec.id, root, workdir);
        let mut missing = NotFound { places: places.clone(), ..NotFound::default() };
        if spec.needs_typescript_7 {
            match typescript_of(root, workdir) {
                Some((_, version)) if major(&version).is_some_and(|major| major >= 7) => {}
                Some((at, version)) => {
                    missing.condition = Some(format!(
                        "it needs the project's TypeScript to be 7 or later, and {} is {version}",
                        at.display()
                    ));
                    return Err(missing);
                }
                None => {
                    missing.condition =
                        Some("it needs the project's own TypeScript to be 7 or later, and the project has none in node_modules".into());
                    return Err(missing);
                }
            }
        }
        for command in &spec.commands {
            let Some((name, arguments)) = command.split_first() else { continue };
            missing.names.push(name.clone());
            for program in candidates(name, &places, workdir) {
                let version = if spec.probe {
                    match self.probe(&program, root).await {
                        Ok(version) => Some(version),
                        Err(said) => {
                            missing.dead.push((program, said));
                            continue;
                        }
                    }
                } else {
                    None
                };
                let arguments = arguments.to_vec();
                return Ok(Found { program, arguments, version, passed_over: missing.dead });
            }
        }
        Err(missing)
    }

    fn places(&self, id: &str, root: &Path, workdir: &Path) -> Vec<PathBuf> {
        let mut places = Vec::new();
        for directory in root.ancestors().take_while(|directory| directory.starts_with(workdir)) {
            for below in [".venv/bin", "venv/bin", "node_modules/.bin"] {
                let place = directory.join(below);
                if place.is_dir() {
                    places.push(place);
                }
            }
        }
        if let Some(path) = self.environment.get("PATH") {
            places.extend(std::env::split_paths(path).filter(|place| place.is_absolute()));
        }
        if let Some(own) = self.own_place(id) {
            places.extend([own.join("node_modules/.bin"), own.join("bin")]);
        }
        places
    }

    /// Asks a program for its version.
    async fn probe(&self, program: &Path, directory: &Path) -> Result<String, String> {
        let known = self.probed.lock().unwrap_or_else(PoisonError::into_inner).get(program).cloned();
        if let Some(known) = known {
            return known;
        }
        let spec = ProcessSpec::new(program, directory)
            .arg("--version")
            .label(format!("{} --version", program.display()));
        let bounds = RunBounds { time: Some(PROBE), capture_bytes: STDERR_BYTES };
        let ran = self.processes.run(spec, bounds, &CancellationToken::new(), &mut |_| {}).await;
        let result = match ran {
            Ok(finished) if finished.exit.success() => {
                Ok(first_line(&finished.stdout.head).unwrap_or_default())
            }
            Ok(finished) if finished.end == RunEnd::TimedOut => {
                Err(format!("it did not say its version within {} s", PROBE.as_secs()))
            }
            Ok(finished) => {
                let said = first_line(&finished.stderr.head).or_else(|| first_line(&finished.stdout.head));
                Err(said.unwrap_or_else(|| finished.exit.to_string()))
            }
            Err(error) => Err(error.to_string().trim_end_matches('.').to_owned()),
        };
        self.probed.lock().unwrap_or_else(PoisonError::into_inner).insert(program.to_owned(), result.clone());
        result
    }
}

fn first_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .map(|line| line.trim_end_matches('.').to_owned())
}

fn candidates(name: &str, places: &[PathBuf], workdir: &Path) -> Vec<PathBuf> {
    if name.contains('/') {
        let path = workdir.join(name);
        return if is_executable(&path) { vec![path] } else { Vec::new() };
    }
    let mut found: Vec<PathBuf> = Vec::new();
    for place in places {
        let path = place.join(name);
        if is_executable(&path) && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// The project's own TypeScript and its version.
pub(super) fn typescript_of(root: &Path, workdir: &Path) -> Option<(PathBuf, String)> {
    root.ancestors().take_while(|directory| directory.starts_with(workdir)).find_map(|directory| {
        let package = directory.join("node_modules/typescript");
        let manifest = std::fs::read(package.join("package.json")).ok()?;
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).ok()?;
        Some((package, manifest.get("version")?.as_str()?.to_owned()))
    })
}

fn major(version: &str) -> Option<u64> {
    version.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::Table;
    use pretty_assertions::assert_eq;
    use std::fs;

    fn script(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn resolver(path: &[&Path]) -> Resolver {
        let path = std::env::join_paths(path).unwrap();
        let environment = Environment::of([("PATH", path)], "/");
        Resolver::new(environment.clone(), Supervisor::new(environment))
    }

    #[tokio::test]
    async fn a_dead_rustup_stand_in_before_the_real_server_is_passed_over() {
        let place = tempfile::tempdir().unwrap();
        let (proxy, real) =
            (place.path().join("cargo/rust-analyzer"), place.path().join("usr/rust-analyzer"));
        script(
            &proxy,
            "#!/bin/sh\necho \"error: Unknown binary 'rust-analyzer' in official toolchain.\" >&2\nexit 1\n",
        );
        script(&real, "#!/bin/sh\necho rust-analyzer 1.96.0\n");
        let table = Table::shipped().unwrap();
        let spec = table.get("rust-analyzer").unwrap();
        let resolver = resolver(&[proxy.parent().unwrap(), real.parent().unwrap()]);
        let found = resolver.find(spec, place.path(), place.path()).await;
        let said = "error: Unknown binary 'rust-analyzer' in official toolchain".to_owned();
        assert_eq!(
            found,
            Ok(Found {
                program: real.clone(),
                arguments: vec![],
                version: Some("rust-analyzer 1.96.0".into()),
                passed_over: vec![(proxy.clone(), said.clone())],
            })
        );
        fs::remove_file(&real).unwrap();
        let missing = resolver.find(spec, place.path(), place.path()).await.unwrap_err();
        assert_eq!(missing.dead, [(proxy, said)]);
    }

    #[tokio::test]
    async fn the_projects_own_program_comes_before_path() {
        let place = tempfile::tempdir().unwrap();
        let project = place.path().join("project");
        let own = project.join("node_modules/.bin/pyright-langserver");
        let system = place.path().join("bin/pyright-langserver");
        script(&own, "#!/bin/sh\n");
        script(&system, "#!/bin/sh\n");
        let table = Table::shipped().unwrap();
        let spec = table.get("pyright").unwrap();
        let resolver = resolver(&[system.parent().unwrap()]);
        let package = project.join("packages/a");
        assert_eq!(resolver.find(spec, &package, &project).await.unwrap().program, own);
        // A project next to it is none of its business.
        assert_eq!(resolver.find(spec, &package, &package).await.unwrap().program, system);
    }

    #[tokio::test]
    async fn the_server_in_typescript_needs_the_projects_typescript_to_be_7() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        let table = Table::shipped().unwrap();
        let spec = table.get("tsgo").unwrap();
        let resolver = resolver(&[Path::new("/nowhere")]);
        script(&root.join("node_modules/.bin/tsc"), "#!/bin/sh\n");
        script(&root.join("node_modules/typescript/package.json"), "{\"version\": \"6.0.3\"}");
        let why = resolver.find(spec, root, root).await.unwrap_err().to_string();
        assert!(why.contains("to be 7 or later") && why.ends_with("is 6.0.3"), "{why}");
        script(&root.join("node_modules/typescript/package.json"), "{\"version\": \"7.0.2\"}");
        assert_eq!(
            resolver.find(spec, root, root).await.unwrap().program,
            root.join("node_modules/.bin/tsc")
        );
    }
}
