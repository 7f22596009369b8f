use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use haft_system::{ChangeKind, Planned, TextFile};
use tokio::{sync::watch, time::Instant};

use super::{
    Inner, State, Verified,
    dependants::{self, Dependant, DependantState, Dependants},
    scope, server_name,
};
use crate::{
    client::RequestError,
    diagnostics::{
        Diagnostic,
        check::{self, Checked, Given},
        pull, rules,
    },
    limits::{
        CHECK_COLD, CHECK_WARM, DEPENDANTS, OTHER_FILES, OTHERS_INLINE, UNCONCERNED_INLINE, VERIFIED_FILES,
    },
    servers::Role,
    supervisor::{Published, Server, WhyNot},
};

/// One commit, watched.
pub(super) struct Job {
    pub(super) files: Vec<JobFile>,
    /// Files of the commit that are more than are verified.
    pub(super) left_out: usize,
    baseline: watch::Sender<bool>,
    progress: watch::Sender<Progress>,
    results: Mutex<Results>,
}

/// A file of a commit.
pub(super) struct JobFile {
    pub(super) path: PathBuf,
    pub(super) shown: String,
    pub(super) kind: ChangeKind,
    pub(super) from: Option<PathBuf>,
    pub(super) before: Option<Arc<str>>,
    pub(super) after: Option<Arc<str>>,
    /// Which write of this file it is.
    pub(super) write: u64,
    /// How often the ledger had the file as written before.
    pub(super) writes_before: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    /// Every server has said what it thinks of the files of the commit, or will not.
    own: bool,
    finished: bool,
}

/// What has come in.
#[derive(Default)]
pub(super) struct Results {
    pub(super) list: Vec<Found>,
    /// How many of them have been handed over.
    pub(super) delivered: usize,
    /// Who was asked and has not answered: server and file.
    pub(super) waiting: Vec<(String, String)>,
    /// Files without a server: file and why.
    pub(super) unserved: Vec<(String, WhyNot)>,
    /// Other files that the commit may have broken.
    pub(super) dependants: Vec<Dependant>,
    pub(super) finished: bool,
}

/// What one server said about one file after the commit.
#[derive(Clone)]
pub(super) struct Found {
    pub(super) server: Arc<Server>,
    pub(super) path: PathBuf,
    pub(super) shown: String,
    pub(super) checked: Checked,
    /// Whether it is a file of the commit.
    pub(super) is_own: bool,
    /// The write of the file that it is about.
    pub(super) write: u64,
    /// Of a file that is not of the commit: how many commits had changed it before it was looked at. [`Found::write`] counts those that were only about to.
    pub(super) commits: Option<u64>,
    /// The text that was looked at, and the one that the baseline is of.
    pub(super) text: Option<Arc<str>>,
    pub(super) before: Option<Arc<str>>,
    /// The server publishes about every file of its root and had said all of it before, so a file that it had not mentioned was without problems.
    pub(super) complete: bool,
}

impl Job {
    pub(super) fn new(planned: &[Planned], state: &mut State) -> Self {
        let (writes, ledger) = (&mut state.writes, &state.ledger);
        let text = |bytes: &Option<Arc<[u8]>>| {
            let parsed = bytes.as_ref().and_then(|bytes| TextFile::parse(bytes).ok());
            parsed.map(|file| Arc::<str>::from(file.text))
        };
        let mut count = |path: &Path| {
            let count = writes.entry(path.to_owned()).or_insert(0);
            *count += 1;
            *count
        };
        let files = planned.iter().take(VERIFIED_FILES).map(|one| {
            if let Some(from) = &one.from {
                count(&from.real);
            }
            JobFile {
                path: one.file.real.clone(),
                shown: one.file.shown.clone(),
                kind: one.kind,
                from: one.from.as_ref().map(|from| from.real.clone()),
                before: text(&one.before),
                after: text(&one.after),
                write: count(&one.file.real),
                writes_before: ledger.writes(&one.file.real),
            }
        });
        Job {
            files: files.collect(),
            left_out: planned.len().saturating_sub(VERIFIED_FILES),
            baseline: watch::Sender::new(false),
            progress: watch::Sender::default(),
            results: Mutex::default(),
        }
    }

    /// Whether the first stage is over.
    pub(super) fn has_baseline(&self) -> bool {
        *self.baseline.borrow()
    }

    pub(super) async fn baseline_by(&self, until: Instant) {
        let mut baseline = self.baseline.subscribe();
        // Too late means to go on without.
        let _ = tokio::time::timeout_at(until, baseline.wait_for(|done| *done)).await;
    }

    pub(super) async fn own_by(&self, until: Instant) -> bool {
        let mut progress = self.progress.subscribe();
        let own = progress.wait_for(|progress| progress.own);
        tokio::time::timeout_at(until, own).await.is_ok()
    }

    async fn own(&self) {
        // An error means that the job is gone.
        let _ = self.progress.subscribe().wait_for(|progress| progress.own).await;
    }

    pub(super) async fn finished_by(&self, until: Instant) -> bool {
        let mut progress = self.progress.subscribe();
        let finished = progress.wait_for(|progress| progress.finished);
        tokio::time::timeout_at(until, finished).await.is_ok()
    }

    /// How long other files are worth waiting for once those of the commit are known; `None` where they use what changed.
    pub(super) fn others_inline(&self) -> Option<Duration> {
        let results = self.results();
        let mut states = results.dependants.iter().map(|one| &one.state);
        if states.clone().any(|state| *state == DependantState::Waiting) {
            None
        } else if states.any(|state| matches!(state, DependantState::Left(_))) {
            Some(OTHERS_INLINE)
        } else {
            // Those that use what changed were looked for, and there are none left.
            Some(UNCONCERNED_INLINE)
        }
    }

    pub(super) fn results(&self) -> MutexGuard<'_, Results> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a commit does to the ledger by itself.
    pub(super) fn note_committed(&self, state: &mut State) {
        for file in &self.files {
            if let Some(from) = &file.from {
                state.ledger.renamed(from, &file.path);
            }
            if file.kind == ChangeKind::Deleted {
                state.ledger.deleted(&file.path);
            }
            state.ledger.wrote(&file.path);
        }
    }

    pub(super) fn names(&self, path: &Path) -> bool {
        self.files.iter().any(|file| file.path == path || file.from.as_deref() == Some(path))
    }

    fn end(&self) {
        self.results().finished = true;
        self.baseline.send_replace(true);
        self.progress.send_replace(Progress { own: true, finished: true });
    }
}

/// Ends a job however its task ends, so that nobody waits for it in vain.
struct Ending(Arc<Job>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The task of a job.
pub(super) async fn run(
    inner: Arc<Inner>,
    job: Arc<Job>,
    previous: Option<Arc<Job>>,
    mut committed: watch::Receiver<Option<bool>>,
) {
    let _ending = Ending(job.clone());
    if let Some(previous) = &previous {
        // The job before is bounded, and ends in any case.
        let mut baseline = previous.baseline.subscribe();
        let _ = baseline.wait_for(|done| *done).await;
    }
    let mut serving: Vec<(usize, Vec<Arc<Server>>)> = Vec::new();
    let starts = job.files.iter().map(|file| inner.checkout.servers_for(&file.path));
    for (index, started) in join_all(starts).await.into_iter().enumerate() {
        let Some(file) = job.files.get(index) else { continue };
        match started {
            Ok(servers) => serving.push((index, servers)),
            Err(why) if file.kind != ChangeKind::Deleted => {
                job.results().unserved.push((file.shown.clone(), why))
            }
            Err(_) => {}
        }
    }
    let all = distinct(&serving);
    // Where publications have no version, one that is still to come for an older text could be taken for that of a newer one. So the newer text waits.
    if let Some(previous) = &previous
        && all.iter().any(|server| check::is_wordless(server))
    {
        previous.finished_by(Instant::now() + CHECK_COLD).await;
    }
    let is_before = committed.borrow().is_none();
    if is_before {
        for server in &all {
            // What cannot be told now is noticed by the wait.
            let _ = server.tell_disk_changes();
        }
    }
    let baselines = serving.iter().flat_map(|(index, servers)| {
        let file = job.files.get(*index);
        servers.iter().filter_map(move |server| file.map(|file| (file, server)))
    });
    let verified = join_all(baselines.map(|(file, server)| baseline(&inner, file, server, &committed))).await;
    let complete = verified.iter().all(|verified| *verified);
    let searches = all.iter().map(|server| {
        let is_of = |servers: &[Arc<Server>]| servers.iter().any(|one| Arc::ptr_eq(one, server));
        let files: Vec<usize> =
            serving.iter().filter(|(_, servers)| is_of(servers)).map(|(index, _)| *index).collect();
        let (inner, job, committed) = (&inner, &job, &committed);
        async move { dependants::before(inner, job, server, &files, committed).await }
    });
    let mut dependants = join_all(searches).await;
    let beside = beside(&inner, &job, &all);
    let looks = beside.iter().map(|server| dependants::beside(&inner, &job, server, &committed));
    dependants.extend(join_all(looks).await);
    let told = join_all(all.iter().map(|server| all_told(&inner, &job, server))).await;
    let complete = complete && told.iter().all(|told| *told);
    for server in &all {
        snapshot_others(&inner, &job, server);
    }
    job.baseline.send_replace(true);

    // An error means that the commit was refused.
    let Ok(_) = committed.wait_for(Option::is_some).await else { return };
    let mut given: Vec<(usize, Arc<Server>, Result<Given, String>)> = Vec::new();
    let marks: BTreeMap<String, u64> =
        all.iter().chain(&beside).map(|server| (server_name(server), server.serial())).collect();
    for (index, servers) in &serving {
        let Some(file) = job.files.get(*index) else { continue };
        for server in servers {
            if let Some(from) = &file.from {
                // Gone from the disk, so it is closed; the answer says just that.
                let _ = server.sync(from);
            }
            if file.kind == ChangeKind::Deleted {
                let _ = server.sync(&file.path);
                continue;
            }
            if !inner.is_current(&file.path, file.write) {
                continue;
            }
            let sent = Given::from_disk(server, &file.path, true).map_err(|error| error.to_string());
            job.results().waiting.push((server.id().to_owned(), file.shown.clone()));
            given.push((*index, server.clone(), sent));
        }
    }
    let in_batch = given.len() > 1;
    for (_, _, sent) in &mut given {
        if let Ok(sent) = sent {
            sent.in_batch = in_batch;
        }
    }
    expect_others(&inner, &job, &all, &dependants);
    let checks = given.into_iter().filter_map(|(index, server, given)| {
        let file = job.files.get(index)?;
        let (inner, job) = (&inner, &job);
        Some(async move { after(inner, job, file, server, given, complete).await })
    });
    let own = async {
        join_all(checks).await;
        job.progress.send_replace(Progress { own: true, finished: false });
    };
    let is_beside = |server: &Arc<Server>| beside.iter().any(|one| Arc::ptr_eq(one, server));
    let rest = join_all(dependants.iter().map(|of| {
        let (inner, job, marks, is_beside, since) =
            (&inner, &job, &marks, is_beside(&of.server), of.server.tick());
        async move {
            // The server works on both at once, so the one is not waited for before the other is asked.
            let told = if is_beside { None } else { all_told_after(job, &of.server, since).await };
            others(inner, job, of, marks, complete, told).await;
        }
    }));
    tokio::join!(own, rest);
}

/// Notes what is going to be looked at beside the files of the commit, so that a result that comes before that can say so.
fn expect_others(inner: &Inner, job: &Job, all: &[Arc<Server>], dependants: &[Dependants]) {
    let mut results = job.results();
    for of in dependants {
        let shown = of.files.iter().map(|path| inner.checkout.workdir().show(path));
        results.dependants.extend(shown.map(|file| Dependant::waiting(&of.server, Some(file))));
    }
    for server in all.iter().filter(|server| pull::diagnoses(server)) {
        results.dependants.push(Dependant::waiting(server, None));
    }
}

fn distinct(serving: &[(usize, Vec<Arc<Server>>)]) -> Vec<Arc<Server>> {
    let mut all: Vec<Arc<Server>> = Vec::new();
    for server in serving.iter().flat_map(|(_, servers)| servers) {
        if !all.iter().any(|known| Arc::ptr_eq(known, server)) {
            all.push(server.clone());
        }
    }
    all
}

/// Servers of other roots that may use what changes, as far as they run.
fn beside(inner: &Inner, job: &Job, own: &[Arc<Server>]) -> Vec<Arc<Server>> {
    let mut running = inner.checkout.running();
    running.retain(|server| {
        let speaks_it = |file: &JobFile| server.spec().language_of(&file.path).is_some();
        server.spec().role == Role::Language
            && !own.iter().any(|one| Arc::ptr_eq(one, server))
            && own.iter().any(|one| one.id() == server.id())
            && job.files.iter().any(speaks_it)
    });
    running
}

/// How long a server may take in the background: one that has only just started loads the project first.
fn patience(server: &Server) -> Duration {
    if server.age() < CHECK_COLD { CHECK_COLD } else { CHECK_WARM }
}

pub(super) fn relevant(list: Vec<Diagnostic>) -> Vec<Diagnostic> {
    list.into_iter().filter(|one| one.severity.matters()).collect()
}

/// Takes the state before the change into the ledger; whether it is known.
async fn baseline(
    inner: &Inner,
    file: &JobFile,
    server: &Arc<Server>,
    committed: &watch::Receiver<Option<bool>>,
) -> bool {
    let path = file.from.as_deref().unwrap_or(&file.path);
    let place = scope(server, path);
    match (file.kind, &file.before) {
        (ChangeKind::Created, _) => {
            inner.state().ledger.created(&place, file.writes_before);
            return true;
        }
        (ChangeKind::Deleted, _) | (_, None) => return true,
        (ChangeKind::Modified | ChangeKind::Moved, Some(_)) => {}
    }
    // Known and unverified since: what is there now is no baseline.
    if inner.state().ledger.is_dirty(&place) && inner.state().ledger.knows(&place) {
        return true;
    }
    let text = file.before.as_deref().unwrap_or_default();
    // What was verified of just this text will do where nothing else has changed since, and where asking again takes the settling time.
    let is_as_verified = inner.state().verified.get(&place).is_some_and(|verified| {
        let is_undisturbed =
            || !check::awaits_checker(server) && verified.others == server.told_of_others(path);
        *verified.text == *text && (check::is_wordless(server) || is_undisturbed())
    });
    if is_as_verified && inner.state().ledger.is_clean(&place) {
        return true;
    }
    let Ok(given) = Given::text(server, path, text) else { return false };
    let needs_disk = check::awaits_checker(server);
    if let Checked::Verified(found) =
        check::wait(server, given, &file.shown, Instant::now() + patience(server)).await
    {
        // A checker looks at the disk. What it found there while the file was being written is no state from before.
        if needs_disk && committed.borrow().is_some() {
            return false;
        }
        // A moved file has taken what was known along with it already.
        let writes = match (&file.from, committed.borrow().is_some()) {
            (Some(_), true) => return false,
            (Some(from), false) => inner.state().ledger.writes(from),
            (None, _) => file.writes_before,
        };
        inner.state().ledger.baseline_before(&place, writes, &relevant(found));
        return true;
    }
    false
}

/// Takes what a server has published about other files as known, as far as nothing newer is under way.
fn snapshot_others(inner: &Inner, job: &Job, server: &Arc<Server>) {
    if is_checking(server) {
        return;
    }
    let serial = server.serial();
    let published = server.published_since(0);
    let workdir = inner.checkout.workdir();
    let mut state = inner.state();
    if rules::of(server.spec()).exact.is_none() {
        for (path, published) in published {
            if !job.names(&path) && speaks_of_now(server, &path, &published) {
                let found = Diagnostic::list_from_lsp(&workdir.show(&path), &published.diagnostics);
                state.ledger.baseline(&scope(server, &path), &relevant(found));
            }
        }
    }
    state.heard.insert(server_name(server), serial);
}

/// Whether a publication is all that the server thinks of the text that it has. Of an open file a server that is asked as well publishes only a part.
pub(super) fn speaks_of_now(server: &Server, path: &Path, published: &Published) -> bool {
    match server.document(path) {
        Some(open) => {
            !server.can("textDocument/diagnostic")
                && match published.version {
                    Some(version) => version == open.version,
                    // What it publishes when a file is closed, which may have been opened again since.
                    None => !server.names_versions(),
                }
        }
        None => true,
    }
}

/// Whether a checker of the server is at work, so that what it has published is unfinished.
pub(super) fn is_checking(server: &Server) -> bool {
    let Some(external) = rules::of(server.spec()).external else { return false };
    server.work().iter().any(|(token, work)| token.starts_with(external.token) && work.is_active())
}

async fn after(
    inner: &Inner,
    job: &Job,
    file: &JobFile,
    server: Arc<Server>,
    given: Result<Given, String>,
    complete: bool,
) {
    let others = server.told_of_others(&file.path);
    let checked = match given {
        Ok(given) => check::wait(&server, given, &file.shown, Instant::now() + patience(&server)).await,
        Err(why) => Checked::Not(why),
    };
    let is_current = inner.is_current(&file.path, file.write);
    if is_current
        && matches!(checked, Checked::Verified(_))
        && let Some(text) = file.after.clone()
    {
        inner.state().verified.insert(scope(&server, &file.path), Verified { text, others });
    }
    let mut results = job.results();
    let key = (server.id().to_owned(), file.shown.clone());
    results.waiting.retain(|waiting| *waiting != key);
    if is_current {
        results.list.push(Found {
            path: file.path.clone(),
            shown: file.shown.clone(),
            checked,
            is_own: true,
            write: file.write,
            commits: None,
            text: file.after.clone(),
            before: file.before.clone(),
            complete,
            server,
        });
    }
}

/// Has a server say all that it has to say about its root, where it says so in pieces and before a first change; whether what it has not mentioned is without problems. Otherwise
/// what it comes to late would look like news.
async fn all_told(inner: &Inner, job: &Job, server: &Server) -> bool {
    if !pull::diagnoses(server) || inner.state().heard.contains_key(&server_name(server)) {
        return true;
    }
    diagnose(job, server, server.tick(), DEPENDANTS).await.is_ok()
}

/// The same after a change; what came of it, of a server that has to be asked.
async fn all_told_after(job: &Job, server: &Server, since: u64) -> Option<DependantState> {
    if !pull::diagnoses(server) {
        return None;
    }
    Some(match diagnose(job, server, since, patience(server)).await {
        Ok(()) => DependantState::LookedAt,
        Err(error) => DependantState::Left(format!("{}: {error}", server.id())),
    })
}

async fn diagnose(job: &Job, server: &Server, since: u64, limit: Duration) -> Result<(), RequestError> {
    let files: Vec<&Path> = job.files.iter().map(|file| file.path.as_path()).collect();
    pull::diagnose(server, &files, since, limit).await
}

/// What the change did to other files, as far as the server says so: what it answers about those that use what changed and those that are open and whose state before is
/// known, and what it published about any (SPEC W5).
async fn others(
    inner: &Inner,
    job: &Job,
    of: &Dependants,
    marks: &BTreeMap<String, u64>,
    complete: bool,
    told: Option<DependantState>,
) {
    let server = &of.server;
    let rules = rules::of(server.spec());
    let complete = complete && rules.whole_workspace;
    let mark = marks.get(&server_name(server)).copied().unwrap_or(u64::MAX);
    let pulls = server.can("textDocument/diagnostic") || rules.exact.is_some();
    let mut found: Vec<Found> = Vec::new();
    let shown = |path: &Path| inner.checkout.workdir().show(path);
    let known = |path: &Path| inner.state().ledger.is_clean(&scope(server, path));
    let mut asked: Vec<PathBuf> = of.files.clone();
    if pulls {
        let open = server.open_documents();
        let more =
            open.into_iter().filter(|path| !job.names(path) && known(path) && !of.files.contains(path));
        asked.extend(more.take(OTHER_FILES.saturating_sub(of.files.len())));
    }
    let mut settled: Vec<(Option<String>, DependantState)> = Vec::new();
    for (path, (writes, checked)) in asked.iter().zip(look_at(inner, job, server, &asked).await) {
        let name = shown(path);
        let state = match &checked {
            Checked::Verified(_) => DependantState::LookedAt,
            Checked::Not(why) => DependantState::Left(format!("{}: {why}", server.id())),
        };
        if state == DependantState::LookedAt {
            found.push(other(server, path, name.clone(), writes, checked, complete));
        }
        settled.push((Some(name), state));
    }
    settled.extend(told.map(|state| (None, state)));
    if rules.exact.is_none() {
        for (path, published) in server.published_since(mark) {
            let is_inside = path.starts_with(inner.checkout.workdir().root());
            let is_asked = asked.contains(&path);
            if is_asked || job.names(&path) || !is_inside || !speaks_of_now(server, &path, &published) {
                continue;
            }
            let list = Diagnostic::list_from_lsp(&shown(&path), &published.diagnostics);
            let writes = (inner.writes(&path), inner.commits(&path));
            found.push(other(server, &path, shown(&path), writes, Checked::Verified(list), complete));
        }
    }
    let serial = server.serial();
    {
        // Together: nobody may read that a file was looked at before what was found there.
        let mut results = job.results();
        results.list.extend(found);
        for (file, state) in settled {
            let expected = results.dependants.iter_mut().find(|one| {
                one.server == server.id() && one.file == file && one.state == DependantState::Waiting
            });
            if let Some(one) = expected {
                one.state = state;
            }
        }
    }
    let mut state = inner.state();
    state.heard.insert(server_name(server), serial);
    state.undisturbed.insert(server_name(server), server.foreign_changes());
}

/// What a server thinks of files that are not of the commit, in their order, with the numbers of their writes and commits.
async fn look_at(
    inner: &Inner,
    job: &Job,
    server: &Arc<Server>,
    asked: &[PathBuf],
) -> Vec<((u64, u64), Checked)> {
    let look = async |path: &PathBuf, until| {
        let writes = (inner.writes(path), inner.commits(path));
        let is_last = job.files.iter().all(|file| inner.is_current(&file.path, file.write));
        let checked = if is_last {
            dependants::after(server, path, &inner.checkout.workdir().show(path), until).await
        } else {
            Checked::Not("the file that it uses was changed again".into())
        };
        (writes, checked)
    };
    if rules::of(server.spec()).external.is_none() {
        job.own().await;
        let until = Instant::now() + patience(server);
        let mut looked = Vec::new();
        // One after the other, for some servers do one thing at a time and cannot be broken off: the next write must not stand behind a dozen files.
        for path in asked {
            looked.push(look(path, until).await);
        }
        return looked;
    }
    // What is to be known of these is known when the checker ends. That another begins is waited for with the files of the commit.
    tokio::select! {
        () = check::checker_ended(server) => {}
        () = job.own() => {}
    }
    let look_at_all = || {
        let until = Instant::now() + patience(server);
        join_all(asked.iter().map(move |path| look(path, until)))
    };
    let begun = check::last_checker(server);
    let (looked, ()) = tokio::join!(look_at_all(), job.own());
    if check::last_checker(server) == begun { looked } else { look_at_all().await }
}

fn other(
    server: &Arc<Server>,
    path: &Path,
    shown: String,
    (write, commits): (u64, u64),
    checked: Checked,
    complete: bool,
) -> Found {
    Found {
        server: server.clone(),
        path: path.to_owned(),
        shown,
        checked,
        is_own: false,
        write,
        commits: Some(commits),
        text: None,
        before: None,
        complete,
    }
}
