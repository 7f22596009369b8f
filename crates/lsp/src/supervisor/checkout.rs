//! A working directory with the servers that belong to its files: what the tools and the observers of a conversation stand on.

use std::{
    collections::HashMap,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use futures::future::join_all;
use haft_system::Workdir;
use haft_tool::ToolError;

use super::{Key, Server, Servers, StartError};
use crate::limits::{FOUND_FOR, FOUND_PLACES};
use crate::servers::{self, Found, Group, NotFound, Role, RootFound, Scan, ServerSpec, Table};

/// A working directory with its servers. Cheap to clone.
#[derive(Clone)]
pub struct Checkout {
    pub(super) servers: Servers,
    workdir: Workdir,
    table: Arc<Table>,
    /// What was found a moment ago, so that a row of questions does not look for markers and programs each time. Only what was found: a
    /// server that has just been installed is seen at once.
    found: Arc<Mutex<FoundPlaces>>,
    /// The roots that were found last.
    scanned: Arc<Mutex<Option<Scan>>>,
}

/// By directory and kind of file name, with the time at which they were found.
type FoundPlaces = HashMap<(PathBuf, OsString), (Instant, Vec<Place>)>;

/// A server that belongs to a file, with its root and its program found.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Which server.
    pub spec: Arc<ServerSpec>,
    /// Where it belongs.
    pub root: RootFound,
    /// Its program.
    pub found: Found,
}

/// Why there is no server for a file, in words for the model.
#[derive(Clone, Debug, PartialEq)]
pub enum WhyNot {
    /// No known server has to do with such files.
    UnknownLanguage {
        /// The file, as shown.
        file: String,
    },
    /// Servers are known, but none of their markers is above the file.
    NoRoot {
        /// The file, as shown.
        file: String,
        /// Servers with their markers.
        servers: Vec<(String, Vec<String>)>,
    },
    /// There is a root, but no program.
    NoProgram {
        /// The file, as shown.
        file: String,
        /// Servers with what was looked for, and how they can be had.
        servers: Vec<(String, NotFound, Option<String>)>,
    },
    /// Config has switched them off.
    Disabled {
        /// The file, as shown.
        file: String,
        /// The servers.
        servers: Vec<String>,
    },
    /// It does not start, or not yet again.
    Start(StartError),
}

impl std::fmt::Display for WhyNot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WhyNot::UnknownLanguage { file } => write!(
                f,
                "No known language server has to do with `{file}`. `lsp` with action \"status\" lists the known ones; more can be added in haft.toml under [lsp.servers.NAME]."
            ),
            WhyNot::NoRoot { file, servers } => {
                write!(
                    f,
                    "No language server for `{file}`: none of the files that mark a project root is in its directory or above it. "
                )?;
                let looked: Vec<String> = servers
                    .iter()
                    .map(|(id, markers)| format!("{id} wants one of {}", markers.join(", ")))
                    .collect();
                write!(f, "{}.", looked.join("; "))
            }
            WhyNot::NoProgram { file, servers } => {
                write!(f, "No language server for `{file}` is installed.")?;
                for (id, missing, hint) in servers {
                    write!(f, "\n- {id}: {missing}.")?;
                    if let Some(hint) = hint {
                        write!(f, " To get it: {hint}")?;
                    }
                }
                f.write_str("\n`lsp` with action \"status\" shows where was looked.")
            }
            WhyNot::Disabled { file, servers } => {
                write!(
                    f,
                    "The language servers for `{file}` are switched off in haft.toml: {}.",
                    servers.join(", ")
                )
            }
            WhyNot::Start(error) => error.fmt(f),
        }
    }
}

impl From<WhyNot> for ToolError {
    fn from(why: WhyNot) -> Self {
        ToolError::model(why.to_string())
    }
}

impl Checkout {
    /// A working directory whose files the servers of `table` may be started for.
    pub fn new(servers: Servers, workdir: Workdir, table: Table) -> Self {
        Checkout { servers, workdir, table: Arc::new(table), found: Arc::default(), scanned: Arc::default() }
    }

    /// The working directory.
    pub fn workdir(&self) -> &Workdir {
        &self.workdir
    }

    /// The servers that may be used.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The servers of the process.
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// Which servers belong to a file (canonical path), the language server first, then the linters. Starts nothing.
    pub async fn places(&self, file: &Path) -> Result<Vec<Place>, WhyNot> {
        let key = kind_of(file);
        if let Some(places) = key.as_ref().and_then(|key| self.found_before(key)) {
            return Ok(places);
        }
        let places = self.look(file).await?;
        if let Some(key) = key {
            let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            if found.len() >= FOUND_PLACES {
                found.clear();
            }
            found.insert(key, (Instant::now(), places.clone()));
        }
        Ok(places)
    }

    fn found_before(&self, key: &(PathBuf, OsString)) -> Option<Vec<Place>> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.get(key).filter(|(at, _)| at.elapsed() < FOUND_FOR).map(|(_, places)| places.clone())
    }

    async fn look(&self, file: &Path) -> Result<Vec<Place>, WhyNot> {
        let shown = self.workdir.show(file);
        let workdir = self.workdir.root();
        let known: Vec<&Arc<ServerSpec>> = self.table.for_file(file).collect();
        if known.is_empty() {
            return Err(WhyNot::UnknownLanguage { file: shown });
        }
        let enabled: Vec<&Arc<ServerSpec>> = known.iter().copied().filter(|spec| !spec.disabled).collect();
        if enabled.is_empty() {
            let servers = known.iter().map(|spec| spec.id.clone()).collect();
            return Err(WhyNot::Disabled { file: shown, servers });
        }
        let rooted: Vec<(&Arc<ServerSpec>, RootFound)> = enabled
            .iter()
            .filter_map(|spec| Some((*spec, servers::find_root(spec, file, workdir)?)))
            .collect();
        if !rooted.iter().any(|(spec, _)| spec.role == Role::Language) && !only_linters(&enabled) {
            let servers = enabled
                .iter()
                .filter(|spec| spec.role == Role::Language)
                .map(|spec| (spec.id.clone(), spec.markers.clone()))
                .collect();
            return Err(WhyNot::NoRoot { file: shown, servers });
        }
        let mut places: Vec<Place> = Vec::new();
        let mut missing = Vec::new();
        let mut taken: Vec<Group> = Vec::new();
        for (spec, root) in self.by_choice(rooted) {
            if spec.group.is_some_and(|group| taken.contains(&group)) {
                continue;
            }
            match self.servers.resolver().find(spec, &root.root, workdir).await {
                Ok(found) => {
                    taken.extend(spec.group);
                    places.push(Place { spec: spec.clone(), root, found });
                }
                Err(why) => missing.push((spec.id.clone(), why, spec.install.hint())),
            }
        }
        places.sort_by_key(|place| place.spec.role == Role::Linter);
        if places.first().is_none_or(|first| first.spec.role == Role::Linter && !only_linters(&enabled)) {
            missing.retain(|(id, ..)| self.table.get(id).is_some_and(|spec| spec.role == Role::Language));
            return Err(WhyNot::NoProgram { file: shown, servers: missing });
        }
        Ok(places)
    }

    /// The servers of a file (canonical path), started where they do not run: the language server first, then those linters that run.
    /// `Err` when there is no language server for it, and why. Takes as long as a start takes, which is bounded.
    pub async fn servers_for(&self, file: &Path) -> Result<Vec<Arc<Server>>, WhyNot> {
        let places = self.places(file).await?;
        let started = join_all(places.iter().map(|place| self.start(place))).await;
        let mut servers = Vec::new();
        for (place, started) in places.iter().zip(started) {
            match started {
                Ok(server) => servers.push(server),
                // Diagnostics say that a linter is missing; navigation can do without.
                Err(error) if place.spec.role == Role::Linter => {
                    tracing::warn!(%error, "a linter does not start");
                }
                Err(error) => return Err(WhyNot::Start(error)),
            }
        }
        Ok(servers)
    }

    /// The language server of a file, started if it does not run; linters are left alone.
    pub async fn language_server_for(&self, file: &Path) -> Result<Arc<Server>, WhyNot> {
        let places = self.places(file).await?;
        match places.first() {
            Some(place) => self.start(place).await.map_err(WhyNot::Start),
            None => Err(WhyNot::UnknownLanguage { file: self.workdir.show(file) }),
        }
    }

    /// Those servers of a file that run now. Starts nothing and waits for nothing but the file system.
    pub async fn running_for(&self, file: &Path) -> Vec<Arc<Server>> {
        let places = self.places(file).await.unwrap_or_default();
        places.iter().filter_map(|place| self.peek(place)).collect()
    }

    /// The server of a place if it runs.
    pub fn peek(&self, place: &Place) -> Option<Arc<Server>> {
        self.servers.peek(&key_of(place))
    }

    /// The server of a place, started if it does not run.
    pub async fn start(&self, place: &Place) -> Result<Arc<Server>, StartError> {
        let workdir = self.workdir.root().to_owned();
        self.servers.get(key_of(place), &place.spec, &place.found, workdir).await
    }

    /// The running servers whose root lies in this working directory.
    pub fn running(&self) -> Vec<Arc<Server>> {
        let mut running = self.servers.running();
        running.retain(|server| server.root().starts_with(self.workdir.root()));
        running
    }

    /// Stops the servers of a file's roots, or all of the working directory, and forgets what did not work. Answers how many ran.
    pub async fn reload(&self, file: Option<&Path>) -> usize {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let roots: Option<Vec<PathBuf>> = file.map(|file| {
            let known = self.table.for_file(file);
            known.filter_map(|spec| Some(servers::find_root(spec, file, self.workdir.root())?.root)).collect()
        });
        let here = self.workdir.root();
        self.servers
            .reset(|key| match &roots {
                Some(roots) => roots.contains(&key.root),
                None => key.root.starts_with(here),
            })
            .await
    }

    /// Roots below the working directory, of servers that are not switched off.
    pub(crate) async fn scan(&self) -> Vec<(Arc<ServerSpec>, RootFound)> {
        let (table, scanned) = (self.table.clone(), self.scanned.clone());
        let workdir = self.workdir.root().to_owned();
        let looked = tokio::task::spawn_blocking(move || {
            let mut scanned = scanned.lock().unwrap_or_else(PoisonError::into_inner);
            let scan = scanned.take().filter(Scan::holds).unwrap_or_else(|| {
                let specs: Vec<&ServerSpec> =
                    table.servers().iter().filter(|spec| !spec.disabled).map(AsRef::as_ref).collect();
                Scan::new(&specs, &workdir)
            });
            scanned.insert(scan).found.clone()
        });
        let found = looked.await.unwrap_or_default();
        found.into_iter().filter_map(|(id, root)| Some((self.table.get(&id)?.clone(), root))).collect()
    }

    /// Some file of a server's languages below a root, the nearest to it; bounded.
    pub async fn any_file(&self, spec: &Arc<ServerSpec>, root: &Path) -> Option<PathBuf> {
        self.any_files(vec![spec.clone()], root).await.into_iter().flatten().next()
    }

    /// The same for several servers, in their order.
    pub(crate) async fn any_files(&self, specs: Vec<Arc<ServerSpec>>, root: &Path) -> Vec<Option<PathBuf>> {
        let root = root.to_owned();
        let found = tokio::task::spawn_blocking(move || servers::any_files(&specs, &root));
        found.await.unwrap_or_default()
    }

    pub(super) fn deaths(&self, place: &Place) -> Vec<String> {
        self.servers.deaths(&key_of(place))
    }

    /// Puts the alternatives of a group into the order in which they are tried: what config prefers, what the project has chosen by its own
    /// configuration, then the order of the table.
    fn by_choice<'a>(
        &self,
        mut rooted: Vec<(&'a Arc<ServerSpec>, RootFound)>,
    ) -> Vec<(&'a Arc<ServerSpec>, RootFound)> {
        let workdir = self.workdir.root();
        rooted.sort_by_key(|(spec, root)| {
            let preferred = self.table.is_preferred(&spec.id);
            (!preferred, spec.group.is_none() || !is_chosen(spec, &root.root, workdir))
        });
        rooted
    }
}

/// Files of one directory and one kind of name have the same servers.
fn kind_of(file: &Path) -> Option<(PathBuf, OsString)> {
    let name = file.file_name()?;
    let kind = name.to_str().and_then(|name| name.find('.').map(|dot| OsString::from(&name[dot..])));
    Some((file.parent()?.to_owned(), kind.unwrap_or_else(|| name.to_owned())))
}

pub(super) fn key_of(place: &Place) -> Key {
    Key::of(&place.spec, place.root.root.clone(), &place.found)
}

fn only_linters(specs: &[&Arc<ServerSpec>]) -> bool {
    specs.iter().all(|spec| spec.role == Role::Linter)
}

/// Whether the project's own configuration has chosen a server.
fn is_chosen(spec: &ServerSpec, root: &Path, workdir: &Path) -> bool {
    let upwards = || root.ancestors().take_while(|directory| directory.starts_with(workdir));
    if upwards().any(|directory| spec.chosen_by.iter().any(|file| directory.join(file).exists())) {
        return true;
    }
    let Some(tool) = &spec.chosen_by_pyproject else { return false };
    upwards().any(|directory| {
        let text = std::fs::read_to_string(directory.join("pyproject.toml")).unwrap_or_default();
        let parsed: toml::Table = toml::from_str(&text).unwrap_or_default();
        parsed.get("tool").and_then(toml::Value::as_table).is_some_and(|tools| tools.contains_key(tool))
    })
}
