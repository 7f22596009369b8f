use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// What Haft was started with: variables, its own program and the directory it stood in. Read once, then passed on, so that a test
/// can say what a run sees.
#[derive(Clone, Debug)]
pub struct Environment {
    inner: Arc<Inner>,
}

#[derive(Clone, Debug)]
struct Inner {
    variables: BTreeMap<OsString, OsString>,
    directory: PathBuf,
    program: PathBuf,
    /// Further variables that are not passed on.
    secrets: Vec<OsString>,
}

/// Variables that hold secrets of Haft's own and are not passed on to any process it starts.
const SECRETS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "OLLAMA_API_KEY",
    "HAFT_TOKEN",
];

impl Environment {
    /// The process's own.
    pub fn capture() -> Self {
        Self::assemble(
            std::env::vars_os().collect(),
            std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            std::env::current_exe().unwrap_or_default(),
        )
    }

    /// A made-up one, for tests.
    pub fn of<K: Into<OsString>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (K, V)>,
        directory: impl Into<PathBuf>,
    ) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self::assemble(variables, directory.into(), std::env::current_exe().unwrap_or_default())
    }

    fn assemble(variables: BTreeMap<OsString, OsString>, directory: PathBuf, program: PathBuf) -> Self {
        Environment { inner: Arc::new(Inner { variables, directory, program, secrets: Vec::new() }) }
    }

    /// The same with one variable set.
    pub fn with(&self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let mut inner = (*self.inner).clone();
        inner.variables.insert(name.into(), value.into());
        Environment { inner: Arc::new(inner) }
    }

    /// The same with further variables that are not passed on to processes: those that settings name as holding a key.
    pub fn with_secrets(&self, names: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let mut inner = (*self.inner).clone();
        inner.secrets.extend(names.into_iter().map(Into::into));
        Environment { inner: Arc::new(inner) }
    }

    /// A variable, if it is set, not empty and UTF-8.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.inner
            .variables
            .get(OsStr::new(name))
            .and_then(|value| value.to_str())
            .filter(|value| !value.is_empty())
    }

    /// Where Haft was started.
    pub fn directory(&self) -> &Path {
        &self.inner.directory
    }

    /// Haft's own program.
    pub fn program(&self) -> &Path {
        &self.inner.program
    }

    /// The person's home directory.
    pub fn home(&self) -> Option<PathBuf> {
        self.get("HOME").map(PathBuf::from)
    }

    /// Where the person's `haft.toml` is: `$XDG_CONFIG_HOME/haft`, else `~/.config/haft`.
    pub fn config_dir(&self) -> Option<PathBuf> {
        self.base("XDG_CONFIG_HOME", ".config")
    }

    /// Where transcripts and journals are kept: `$HAFT_STATE_DIR`, else `$XDG_STATE_HOME/haft`, else `~/.local/state/haft`.
    pub fn state_dir(&self) -> Option<PathBuf> {
        self.get("HAFT_STATE_DIR").map(PathBuf::from).or_else(|| self.base("XDG_STATE_HOME", ".local/state"))
    }

    /// Where what can be fetched again is kept: `$XDG_CACHE_HOME/haft`, else `~/.cache/haft`.
    pub fn cache_dir(&self) -> Option<PathBuf> {
        self.base("XDG_CACHE_HOME", ".cache")
    }

    /// For files that need not outlive the process.
    pub fn temp_dir(&self) -> PathBuf {
        self.get("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
    }

    fn base(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        // The XDG specification says that relative values are invalid and must be ignored.
        let base = self.get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        base.or_else(|| self.home().map(|home| home.join(below_home))).map(|base| base.join("haft"))
    }

    /// The first executable file of that name on PATH. A name with a slash is taken as it is, relative to [`Self::directory`].
    pub fn find_program(&self, name: impl AsRef<Path>) -> Option<PathBuf> {
        let name = name.as_ref();
        if name.components().count() > 1 {
            let path = self.inner.directory.join(name);
            return is_executable(&path).then_some(path);
        }
        let path = self.inner.variables.get(OsStr::new("PATH"))?;
        std::env::split_paths(path)
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join(name))
            .find(|candidate| is_executable(candidate))
    }

    /// What processes started by Haft get to see: everything but Haft's own secrets.
    pub fn for_children(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.inner
            .variables
            .iter()
            .filter(|(name, _)| !SECRETS.iter().any(|secret| name.as_os_str() == OsStr::new(secret)))
            .filter(|(name, _)| !self.inner.secrets.contains(name))
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_passed_on() {
        let environment =
            Environment::of([("ANTHROPIC_API_KEY", "a"), ("MY_KEY", "b"), ("PATH", "/bin")], "/")
                .with_secrets(["MY_KEY"])
                .with("EDITOR", "ed");
        let names: Vec<&OsStr> = environment.for_children().map(|(name, _)| name).collect();
        assert_eq!(names, ["EDITOR", "PATH"]);
        assert_eq!(environment.get("MY_KEY"), Some("b"), "Haft itself sees them");
    }
}
