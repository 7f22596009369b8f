//! The table of known servers: `table.toml`, with what `haft.toml` says laid over it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use serde::Deserialize;
use serde_json::Value;

use super::Install;

/// What a server is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Knows the language: navigation, rename, diagnostics.
    #[default]
    Language,
    /// Adds diagnostics and fixes beside a language server; never asked for navigation.
    Linter,
}

/// Servers for the same language of which one is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// Type checkers for Python.
    Python,
    /// Servers for TypeScript and JavaScript.
    Typescript,
    /// Servers for Ruby.
    Ruby,
}

/// How the nearest root is exchanged for one further up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hoist {
    /// The nearest root it is.
    #[default]
    None,
    /// To the Cargo workspace that the package is a member of.
    Cargo,
    /// To the `go.work` that uses the module.
    Go,
    /// To the topmost directory in an unbroken row upwards that has one of the markers: builds of several modules.
    Topmost,
}

/// How one knows that a server has loaded its project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Readiness {
    /// It may report progress: wait for what has begun to end.
    #[default]
    Progress,
    /// It always reports its loading as progress, if late: wait for some to have begun and all to have ended.
    Reports,
    /// It says so with `experimental/serverStatus` (rust-analyzer).
    ServerStatus,
    /// It answers when it can; what it reports has nothing to do with that.
    None,
}

/// How one knows that diagnostics of a version are complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Settle {
    /// By what it does: a pull answers, a push with a version counts for that version, one without is given time to settle.
    #[default]
    Generic,
    /// As generic, and the end of the progress `rust-analyzer/flycheck/N` ends the wait for what `cargo check` finds.
    Flycheck,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub struct ServerSpec {
    /// Its name, unique in the table.
    #[serde(skip)]
    pub id: String,
    /// What it is for.
    #[serde(default)]
    pub role: Role,
    /// The servers that it is an alternative to.
    #[serde(default)]
    pub group: Option<Group>,
    /// Language ids by extension (`rs`) or, where the name decides, by whole file name (`Dockerfile`).
    pub languages: BTreeMap<String, String>,
    /// Names of files or directories that mark a root; `*.ext` stands for any file with that extension.
    pub markers: Vec<String>,
    /// How the nearest root is exchanged for one further up.
    #[serde(default)]
    pub hoist: Hoist,
    /// Programs with their arguments, tried in this order. A name is looked for in the project before PATH.
    pub commands: Vec<Vec<String>>,
    /// Variables that it gets.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Its answer to `workspace/configuration`, by section. Never `null`: that has been seen to switch diagnostics off.
    #[serde(default)]
    pub settings: Value,
    /// Its `initializationOptions`.
    #[serde(default)]
    pub initialization_options: Value,
    /// How one knows that it has loaded its project.
    #[serde(default)]
    pub readiness: Readiness,
    /// How one knows that its diagnostics are complete.
    #[serde(default)]
    pub settle: Settle,
    /// Ask the program for its version before it is taken: there are stand-ins that exist but do not run.
    #[serde(default)]
    pub probe: bool,
    /// It has to be the project's own TypeScript, and that has to be 7 or later.
    #[serde(default)]
    pub needs_typescript_7: bool,
    /// Files that say that the project has chosen this one of its group.
    #[serde(default)]
    pub chosen_by: Vec<String>,
    /// A table in `pyproject.toml` under `tool` that says so.
    #[serde(default)]
    pub chosen_by_pyproject: Option<String>,
    /// It takes what a file includes from an earlier look: other open files are re-synced when a file changes that they may include, and a file is opened anew when what it includes
    /// has changed.
    #[serde(default)]
    pub resync_dependants: bool,
    /// A file that has come is opened in it, because it takes in others only after a while.
    #[serde(default)]
    pub opens_created: bool,
    /// Of files that have come it knows only those that are open.
    #[serde(default)]
    pub loads_open_only: bool,
    /// It reads files that have changed some time after it was told of them, and can be asked with this method what it has of one.
    #[serde(default)]
    pub reads_late: Option<String>,
    /// After files have come or gone it answers from what it knew before, until work that it reports is done.
    #[serde(default)]
    pub rechecks: bool,
    /// Of files that are not open it knows what they were when it started, or when they were closed.
    #[serde(default)]
    pub indexes_once: bool,
    /// Files that say what belongs to the project, in a directory above a source or at this path below one. Of sources without such a file it knows only those that are open.
    #[serde(default)]
    pub indexed_by: Vec<String>,
    /// A package that has come is not looked at before something is asked about a file of it.
    #[serde(default)]
    pub loads_when_asked: bool,
    /// It has to be told which part of a document a new text replaces, even where that is all of it.
    #[serde(default)]
    pub ranged_changes: bool,
    /// Parts of the errors (messages, lines on stderr) with which it says that it has not taken its configuration as it is. It goes on with its defaults, or with what it had before,
    /// and its answers look like any others.
    #[serde(default)]
    pub misread: Vec<String>,
    /// A search for symbols without a file may start it. Not so for data formats and prose.
    #[serde(default = "yes")]
    pub searchable: bool,
    /// How it can be had.
    #[serde(default)]
    pub install: Install,
    /// Not to be used. Only config says so.
    #[serde(default)]
    pub disabled: bool,
}

/// What config says about one server: changes to a known one, or a new one. Absent fields leave what is there.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub struct ServerOverride {
    /// The program with its arguments, in place of all known ones.
    pub command: Option<Vec<String>>,
    /// Language ids by extension or file name; added to the known ones.
    pub languages: Option<BTreeMap<String, String>>,
    /// Root markers, in place of the known ones.
    pub markers: Option<Vec<String>>,
    /// Variables; added.
    pub env: Option<BTreeMap<String, String>>,
    /// Settings; laid over the known ones.
    pub settings: Option<Value>,
    /// `initializationOptions`; laid over the known ones.
    pub initialization_options: Option<Value>,
    /// What it is for.
    pub role: Option<Role>,
    /// Switches it off.
    pub disabled: Option<bool>,
    /// Takes it before the others of its group.
    pub preferred: Option<bool>,
}

impl ServerOverride {
    /// This, with what `over` says laid over it.
    pub fn overlaid(self, over: &ServerOverride) -> Self {
        fn both(under: Option<Value>, over: Option<&Value>) -> Option<Value> {
            match (under, over) {
                (Some(mut under), Some(over)) => {
                    merge(&mut under, over);
                    Some(under)
                }
                (under, over) => over.cloned().or(under),
            }
        }
        fn joined(
            under: Option<BTreeMap<String, String>>,
            over: Option<&BTreeMap<String, String>>,
        ) -> Option<BTreeMap<String, String>> {
            match (under, over) {
                (Some(mut under), Some(over)) => {
                    under.extend(over.clone());
                    Some(under)
                }
                (under, over) => over.cloned().or(under),
            }
        }
        ServerOverride {
            command: over.command.clone().or(self.command),
            languages: joined(self.languages, over.languages.as_ref()),
            markers: over.markers.clone().or(self.markers),
            env: joined(self.env, over.env.as_ref()),
            settings: both(self.settings, over.settings.as_ref()),
            initialization_options: both(self.initialization_options, over.initialization_options.as_ref()),
            role: over.role.or(self.role),
            disabled: over.disabled.or(self.disabled),
            preferred: over.preferred.or(self.preferred),
        }
    }

    /// Whether all it does is to switch a server off.
    pub fn only_disables(&self) -> bool {
        *self == ServerOverride { disabled: Some(true), ..ServerOverride::default() }
    }

    /// What it says, for people.
    pub fn in_words(&self) -> String {
        let mut words = Vec::new();
        words.extend(self.command.as_ref().map(|command| format!("command `{}`", command.join(" "))));
        words.extend(self.markers.as_ref().map(|markers| format!("markers {}", markers.join(", "))));
        words.extend(
            self.languages
                .as_ref()
                .map(|list| format!("languages {}", list.keys().cloned().collect::<Vec<_>>().join(", "))),
        );
        // Variables may hold secrets.
        words.extend(
            self.env
                .as_ref()
                .map(|env| format!("env {}", env.keys().cloned().collect::<Vec<_>>().join(", "))),
        );
        words.extend(self.settings.as_ref().map(|_| "settings".to_owned()));
        words.extend(self.initialization_options.as_ref().map(|_| "initialization_options".to_owned()));
        words.extend(self.role.map(|role| format!("role {role:?}").to_lowercase()));
        words.extend(self.disabled.map(|off| if off { "disabled" } else { "enabled" }.to_owned()));
        words.extend(self.preferred.filter(|preferred| *preferred).map(|_| "preferred".to_owned()));
        words.join("; ")
    }
}

/// Why config cannot be laid over the table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The shipped table does not parse: a bug, kept from happening by a test.
    #[error("the table of language servers is broken: {0}")]
    Shipped(String),
    /// A new server lacks something.
    #[error("[lsp.servers.{id}] is a new server and needs `{field}`")]
    Incomplete {
        /// Its name.
        id: String,
        /// What it lacks.
        field: &'static str,
    },
    /// A command without a program.
    #[error("[lsp.servers.{id}] has an empty `command`")]
    EmptyCommand {
        /// Its name.
        id: String,
    },
}

/// The servers that can be used here, in the order in which alternatives are tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    servers: Vec<Arc<ServerSpec>>,
    preferred: BTreeSet<String>,
    /// What config says and what cannot be: by server, in words.
    broken: BTreeMap<String, String>,
}

const SHIPPED: &str = include_str!("table.toml");

impl Table {
    /// The table as it is shipped.
    pub fn shipped() -> Result<Self, TableError> {
        let parsed: toml::Table =
            toml::from_str(SHIPPED).map_err(|error| TableError::Shipped(error.to_string()))?;
        let order = order_of(SHIPPED);
        let mut servers = Vec::new();
        for (id, entry) in parsed {
            let mut spec: ServerSpec = entry
                .try_into()
                .map_err(|error: toml::de::Error| TableError::Shipped(format!("[{id}] {error}")))?;
            spec.id = id;
            servers.push(Arc::new(spec));
        }
        // toml's tables are sorted by name; the file's order is the order of preference.
        servers.sort_by_key(|spec| order.iter().position(|id| *id == spec.id));
        Ok(Table { servers, preferred: BTreeSet::new(), broken: BTreeMap::new() })
    }

    /// Lays what config says over the table.
    pub fn with(mut self, overrides: &BTreeMap<String, ServerOverride>) -> Result<Self, TableError> {
        for (id, change) in overrides {
            if change.command.as_ref().is_some_and(|command| command.first().is_none_or(String::is_empty)) {
                return Err(TableError::EmptyCommand { id: id.clone() });
            }
            let known = self.servers.iter().position(|spec| spec.id == *id);
            let base = match known {
                Some(at) => ServerSpec::clone(&self.servers[at]),
                None => blank(id, change)?,
            };
            let spec = Arc::new(base.changed(change));
            match known {
                Some(at) => self.servers[at] = spec,
                None => self.servers.push(spec),
            }
            if change.preferred == Some(true) {
                self.preferred.insert(id.clone());
            }
        }
        let preferred = &self.preferred;
        self.servers.sort_by_key(|spec| !preferred.contains(&spec.id));
        Ok(self)
    }

    /// Lays over the table what config says as far as it makes sense. A server whose entry does not is switched off, and [`Table::broken`] says why: the others are none the worse for it.
    pub fn with_what_fits(mut self, overrides: &BTreeMap<String, ServerOverride>) -> Self {
        for (id, change) in overrides {
            match self.clone().with(&BTreeMap::from([(id.clone(), change.clone())])) {
                Ok(table) => self = table,
                Err(error) => {
                    self.broken
                        .insert(id.clone(), format!("{error}; it is switched off until that is mended"));
                    if let Some(spec) = self.servers.iter_mut().find(|spec| spec.id == *id) {
                        *spec = Arc::new(ServerSpec { disabled: true, ..ServerSpec::clone(spec) });
                    }
                }
            }
        }
        self
    }

    /// Servers whose entry in config makes no sense, and why.
    pub fn broken(&self) -> &BTreeMap<String, String> {
        &self.broken
    }

    /// All of them, the disabled ones included.
    pub fn servers(&self) -> &[Arc<ServerSpec>] {
        &self.servers
    }

    /// One by its name.
    pub fn get(&self, id: &str) -> Option<&Arc<ServerSpec>> {
        self.servers.iter().find(|spec| spec.id == id)
    }

    /// Whether config wants it before the others of its group.
    pub fn is_preferred(&self, id: &str) -> bool {
        self.preferred.contains(id)
    }

    /// Those that know a file of this name.
    pub fn for_file<'a>(&'a self, file: &'a Path) -> impl Iterator<Item = &'a Arc<ServerSpec>> {
        self.servers.iter().filter(move |spec| spec.language_of(file).is_some())
    }
}

impl ServerSpec {
    /// The language id of a file, by its whole name or its extension; `None` if the server has nothing to do with it.
    pub fn language_of(&self, file: &Path) -> Option<&str> {
        let name = file.file_name()?.to_str()?;
        let by_name = self.languages.get(name);
        by_name
            .or_else(|| {
                // The longest extension first: `a.blade.php` before `.php`.
                let mut dots = name.match_indices('.').map(|(at, _)| &name[at + 1..]);
                dots.find_map(|extension| {
                    self.languages.get(extension).or_else(|| self.languages.get(&extension.to_lowercase()))
                })
            })
            .map(String::as_str)
    }

    fn changed(mut self, change: &ServerOverride) -> Self {
        if let Some(command) = &change.command {
            self.commands = vec![command.clone()];
            self.needs_typescript_7 = false;
        }
        if let Some(languages) = &change.languages {
            self.languages.extend(languages.clone());
        }
        if let Some(markers) = &change.markers {
            self.markers = markers.clone();
        }
        if let Some(env) = &change.env {
            self.env.extend(env.clone());
        }
        if let Some(settings) = &change.settings {
            merge(&mut self.settings, settings);
        }
        if let Some(options) = &change.initialization_options {
            merge(&mut self.initialization_options, options);
        }
        if let Some(role) = change.role {
            self.role = role;
        }
        if let Some(disabled) = change.disabled {
            self.disabled = disabled;
        }
        self
    }
}

fn yes() -> bool {
    true
}

fn blank(id: &str, change: &ServerOverride) -> Result<ServerSpec, TableError> {
    let lacks = |field| TableError::Incomplete { id: id.to_owned(), field };
    let command = change.command.clone().ok_or_else(|| lacks("command"))?;
    let languages = change.languages.clone().ok_or_else(|| lacks("languages"))?;
    let markers = change.markers.clone().ok_or_else(|| lacks("markers"))?;
    Ok(ServerSpec {
        id: id.to_owned(),
        role: Role::default(),
        group: None,
        languages,
        markers,
        hoist: Hoist::None,
        commands: vec![command],
        env: BTreeMap::new(),
        settings: Value::Null,
        initialization_options: Value::Null,
        readiness: Readiness::default(),
        settle: Settle::default(),
        probe: false,
        needs_typescript_7: false,
        chosen_by: Vec::new(),
        chosen_by_pyproject: None,
        resync_dependants: false,
        opens_created: false,
        loads_open_only: false,
        reads_late: None,
        indexes_once: false,
        indexed_by: Vec::new(),
        rechecks: false,
        loads_when_asked: false,
        ranged_changes: false,
        misread: Vec::new(),
        searchable: true,
        install: Install::default(),
        disabled: false,
    })
}

/// Lays `over` over `under`: objects are merged field by field, everything else is replaced.
pub(super) fn merge(under: &mut Value, over: &Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (name, value) in over {
                merge(under.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over.clone(),
    }
}

/// The names of the servers in the order of the file.
fn order_of(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'))
        .filter(|name| !name.contains('.'))
        .collect()
}
