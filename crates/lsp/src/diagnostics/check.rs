//! Waiting until a server has said all it has to say about the text that it has of one file.

use std::{future::pending, path::Path, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use tokio::time::Instant;

use super::{
    Diagnostic, pull,
    rules::{self, Rules},
    settle::{Checks, Delivery, Event, Settle, Verdict},
};
use crate::{
    client::RequestError,
    limits::{
        CHECK_COLD, LOOK_AGAIN, LOOKS_AGAIN, PULL, RECONFIGURED, RECONFIGURES_AFTER, SAVE_AGAIN, SAVES_AGAIN,
    },
    servers::Readiness,
    supervisor::{Asked, Document, Published, Server, ServerState, Work},
};

/// What came of a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    /// The server has analysed exactly this text, and this is what it found.
    Verified(Vec<Diagnostic>),
    /// It has not, or it is not known; why, in words that follow "not verified by SERVER: ".
    Not(String),
}

/// A text that a server was given, and when.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    /// As it was given.
    pub(crate) document: Document,
    /// [`Server::serial`] before it was given: what the server says later has a higher number.
    pub(crate) mark: u64,
    /// When.
    pub(crate) at: Instant,
    /// Whether it was given just now; otherwise the server has had it for a while.
    pub(crate) fresh: bool,
    /// Whether a save was announced with it.
    pub(crate) saved: bool,
    /// Whether the server may have to find out anew what the file belongs to.
    pub(crate) placed_anew: bool,
    /// Whether it is one of several that were saved together: a checker that began at the first save is broken off at the next.
    pub(crate) in_batch: bool,
}

impl Given {
    /// Gives `server` what is on the disk (see [`Server::sync`]). `written`: it was written just now, so that a save is announced in any case; a sync by itself announces
    /// one only for a file that was open with another text.
    pub(crate) fn from_disk(
        server: &Server,
        path: &Path,
        written: bool,
    ) -> Result<Given, crate::supervisor::SyncError> {
        let before = server.document(path);
        let (mark, at) = (server.serial(), Instant::now());
        let document = server.sync(path)?;
        let fresh = is_fresh(before.as_ref(), &document);
        let is_saved = fresh && before.is_some();
        let saved = written || is_saved || needs_save(server);
        if saved && !is_saved {
            server.saved(&document)?;
        }
        let placed_anew = is_placed_anew(before.as_ref(), &document);
        Ok(Given { document, mark, at, fresh, saved, placed_anew, in_batch: false })
    }

    /// Gives `server` what is on the disk as a new version even if it has just that text: for a server that pushes, and says nothing of its own accord about a file that a
    /// change of another may have broken.
    pub(crate) fn again(server: &Server, path: &Path) -> Result<Given, crate::supervisor::SyncError> {
        let given = Given::from_disk(server, path, false)?;
        if given.fresh {
            return Ok(given);
        }
        let (mark, at) = (server.serial(), Instant::now());
        server.give_again(path, rules::of(server.spec()).silent_when_same)?;
        let document = server.document(path).unwrap_or(given.document);
        Ok(Given { document, mark, at, fresh: true, saved: true, placed_anew: false, in_batch: false })
    }

    /// Gives `server` a text of the caller's.
    pub(crate) fn text(
        server: &Server,
        path: &Path,
        text: &str,
    ) -> Result<Given, crate::supervisor::SyncError> {
        let before = server.document(path);
        let (mark, at) = (server.serial(), Instant::now());
        let document = server.give(path, text)?;
        let fresh = is_fresh(before.as_ref(), &document);
        let saved = needs_save(server);
        if saved {
            server.saved(&document)?;
        }
        let placed_anew = is_placed_anew(before.as_ref(), &document);
        Ok(Given { document, mark, at, fresh, saved, placed_anew, in_batch: false })
    }
}

fn is_fresh(before: Option<&Document>, given: &Document) -> bool {
    before.is_none_or(|before| before.version != given.version)
}

/// A file that is opened, and one (of Go) whose build constraints or package change.
fn is_placed_anew(before: Option<&Document>, given: &Document) -> bool {
    let head = |document: &Document| {
        let text = document.lines.text();
        let lines = text.lines().scan(false, |over, line| {
            let goes_on = !*over;
            *over = line.starts_with("package ");
            goes_on.then(|| line.to_owned())
        });
        lines.collect::<Vec<String>>()
    };
    before.is_none_or(|before| before.version != given.version && head(before) != head(given))
}

/// Waits at most until `until`. `shown` is the file's name in the diagnostics.
pub(crate) async fn wait(server: &Arc<Server>, given: Given, shown: &str, until: Instant) -> Checked {
    let path = given.document.path.clone();
    let checked = Wait::new(server, given, shown).run(until).await;
    match &checked {
        Checked::Verified(_) if let Some(why) = server.failure(&path) => {
            Checked::Not(format!("it could not run: {}", why.trim().trim_end_matches('.')))
        }
        Checked::Verified(found) => rules::not_analysed(server.spec(), found).map_or(checked, Checked::Not),
        Checked::Not(_) => checked,
    }
}

struct Wait<'a> {
    server: &'a Arc<Server>,
    shown: &'a str,
    rules: Rules,
    given: Given,
    settle: Settle,
    delivery: Delivery,
    /// The serial of the last publication that was taken in.
    seen: u64,
    /// A checker that began before this serial says nothing about the text: the server had not read of the save.
    external_mark: u64,
    /// A checker that ended before this serial may have been broken off because the project was being loaded.
    loaded_mark: u64,
    /// The server has not read of the save yet.
    reading_save: bool,
    /// When a save is announced once more if no checker has begun, and how often that was done.
    save_again: Instant,
    saved_again: u32,
    /// The serial of the last end of a checker that was taken in.
    external_ended: u64,
    pulling: Option<BoxFuture<'a, Result<Vec<Diagnostic>, RequestError>>>,
    pulled_at_refresh: Option<u64>,
    barrier: Option<BoxFuture<'a, Result<(), RequestError>>>,
    barrier_asked: bool,
    /// How often it was made to look again because it had the file in no build.
    looked_again: u32,
    /// What the server has said of the text was before it was told of other changes.
    outdated: bool,
    /// What it has said of the text before counts.
    stands: bool,
    ready: bool,
    /// The serial at the last look.
    looked: u64,
    asked: Asked,
}

impl<'a> Wait<'a> {
    fn new(server: &'a Arc<Server>, given: Given, shown: &'a str) -> Self {
        let mut rules = rules::of(server.spec());
        rules.by_request = pull::diagnoses(server);
        if given.in_batch
            && let Some(external) = &mut rules.external
        {
            external.settle = external.settle_batch;
        }
        let standing = server.published(&given.document.path);
        let delivery = delivery(server, rules);
        let checks = expected_checks(server, rules);
        let list = |published: &Published| Diagnostic::list_from_lsp(shown, &published.diagnostics);
        let mut settle = Settle::new(
            rules,
            delivery,
            given.document.version,
            given.at,
            checks,
            standing.as_ref().map(list),
        );
        // Of a text that the server has had for a while, what it said since then counts.
        let mut stands = false;
        // gopls says of a file that is in no build what it says of any other first, and that it is in none some 10 ms later.
        let was_placed_nowhere = || {
            let found = standing.as_ref().map(list).unwrap_or_default();
            rules::not_analysed(server.spec(), &found).is_some()
        };
        if rules.by_request && (given.placed_anew || was_placed_nowhere()) {
            settle.patiently(rules.settle_unversioned);
        }
        let outdated = !given.fresh && delivery == Delivery::Push && is_outdated(server, &given.document);
        let seen = match (&standing, given.fresh || outdated) {
            (Some(published), false) if published.version == Some(given.document.version) => {
                // Nothing has come since it came, so its quiet time is counted from there.
                settle.on(
                    Event::Published { version: published.version, diagnostics: list(published) },
                    published.at,
                );
                settle.on(Event::Barrier, published.at);
                stands = true;
                published.serial
            }
            _ => given.mark,
        };
        let external_mark = server.last_save();
        let save_again = given.at + SAVE_AGAIN;
        Wait {
            server,
            shown,
            rules,
            given,
            settle,
            delivery,
            seen,
            external_mark,
            loaded_mark: external_mark,
            reading_save: false,
            save_again,
            saved_again: 0,
            external_ended: 0,
            pulling: None,
            pulled_at_refresh: None,
            barrier: None,
            barrier_asked: false,
            looked_again: 0,
            outdated,
            stands,
            ready: true,
            looked: 0,
            asked: server.asking(),
        }
    }

    async fn run(mut self, until: Instant) -> Checked {
        let mut changes = self.server.changes();
        if self.rules.by_request && !self.stands {
            self.barrier_asked = true;
            let (server, path) = (self.server, self.given.document.path.clone());
            let since = self.given.document.given_at.max(server.told_of_others(&path));
            self.barrier = Some(async move { pull::diagnose(server, &[&path], since, PULL).await }.boxed());
        } else if self.rules.external.is_some() && self.given.saved {
            self.await_save();
        } else if self.outdated && self.nudge().is_err() {
            return Checked::Not(self.gone());
        }
        loop {
            // Marked as seen before looking, so that nothing that comes meanwhile is missed.
            changes.borrow_and_update();
            if let Some(over) = self.look() {
                return over;
            }
            self.ask();
            let now = Instant::now();
            let Ok(again) = self.save_again(now) else { return Checked::Not(self.gone()) };
            let wake = match self.settle.verdict(now) {
                Verdict::Settled(_) if self.looked_again > 0 && self.barrier.is_some() => None,
                Verdict::Settled(found) if self.is_doubtful(&found) => {
                    self.look_again();
                    continue;
                }
                Verdict::Settled(found) => return Checked::Verified(found),
                Verdict::GivenUp(why) => return Checked::Not(why),
                Verdict::Nudge => {
                    if self.nudge().is_err() {
                        return Checked::Not(self.gone());
                    }
                    continue;
                }
                Verdict::Wait(wake) => wake,
            };
            if now >= until {
                let limit = now.saturating_duration_since(self.given.at);
                if self.pulling.is_some() {
                    self.server.unanswered("textDocument/diagnostic", self.asked, limit);
                } else if self.barrier.is_some() {
                    self.server.unanswered("a question about a file", self.asked, limit);
                }
                return Checked::Not(self.too_late(now));
            }
            let wake = wake.into_iter().chain(self.reconfiguring()).chain(again).chain([until]);
            let wake = wake.min().unwrap_or(until);
            tokio::select! {
                biased;
                answer = maybe(&mut self.pulling) => {
                    self.pulling = None;
                    match answer {
                        Ok(found) => self.settle.on(Event::Pulled(found), Instant::now()),
                        Err(error) => return Checked::Not(refused(&error)),
                    }
                }
                answer = maybe(&mut self.barrier) => {
                    self.barrier = None;
                    match answer {
                        Ok(()) if std::mem::take(&mut self.reading_save) => {
                            self.external_mark = self.server.serial();
                        }
                        Ok(()) => {
                            if std::mem::take(&mut self.outdated) && self.rules.by_request {
                                // It has looked at everything again; what it has not said anew is as it was.
                                self.seen = 0;
                            }
                            // What was published before the answer is taken in first, as what came before it.
                            self.take_publication();
                            let event = if self.is_same() { Event::ReadSame } else { Event::Barrier };
                            self.settle.on(event, Instant::now());
                        }
                        Err(error) => return Checked::Not(refused(&error)),
                    }
                }
                // An error means that the server is gone; the next look says so.
                _ = changes.changed() => {}
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }

    /// gopls has a file in no build for a moment where files of its module have just gone.
    fn is_doubtful(&self, found: &[Diagnostic]) -> bool {
        self.rules.by_request
            && self.looked_again < LOOKS_AGAIN
            && rules::not_analysed(self.server.spec(), found).is_some()
    }

    fn look_again(&mut self) {
        self.looked_again += 1;
        let (server, path) = (self.server, self.given.document.path.clone());
        let again = async move {
            tokio::time::sleep(LOOK_AGAIN).await;
            pull::diagnose(server, &[&path], server.tick(), PULL).await
        };
        self.barrier = Some(again.boxed());
    }

    fn await_save(&mut self) {
        self.barrier_asked = true;
        self.reading_save = true;
        let server = self.server;
        self.barrier = Some(async move { pull::in_turn(server).await }.boxed());
    }

    /// Announces the save once more where no checker begins; when to look again. rust-analyzer forgets a check without a word when it takes in a change of the disk while
    /// it finds out what to check.
    fn save_again(&mut self, now: Instant) -> Result<Option<Instant>, crate::supervisor::SyncError> {
        let is_due = self.ready && self.settle.awaits_checker() && self.saved_again < SAVES_AGAIN;
        if !is_due || self.reading_save || self.barrier.is_some() {
            return Ok(None);
        }
        if now < self.save_again {
            return Ok(Some(self.save_again));
        }
        self.server.saved(&self.given.document)?;
        self.await_save();
        self.saved_again += 1;
        self.save_again = now + SAVE_AGAIN * 2_u32.pow(self.saved_again);
        Ok(None)
    }

    /// Takes in what the server has said. `Some` when there is no point in waiting on.
    fn look(&mut self) -> Option<Checked> {
        if self.server.gone().is_some() {
            return Some(Checked::Not(self.gone()));
        }
        match self.server.document(&self.given.document.path) {
            Some(open) if open.version == self.given.document.version => {}
            // Somebody gave it the same text once more.
            Some(open) if open.lines.text() == self.given.document.lines.text() => {
                self.settle.on(Event::Nudged(open.version), Instant::now());
                self.given.document = open;
            }
            _ => return Some(Checked::Not("the file has changed again".into())),
        }
        let now = Instant::now();
        let serial = self.server.serial();
        // A pull right after a start may find nothing because nothing is loaded; a publication comes when there is something to say.
        let waits = match (self.server.spec().readiness, self.delivery) {
            (Readiness::ServerStatus, _) => true,
            (Readiness::Progress, Delivery::Pull) => self.rules.exact.is_none(),
            (Readiness::Progress, Delivery::Push) => self.rules.publishes_early,
            _ => false,
        };
        let loading = matches!(self.server.state(), ServerState::Loading(_));
        let silent = self.server.spec().readiness == Readiness::ServerStatus
            && self.server.quiescent().is_none()
            && self.server.age() < crate::limits::GRACE * 10;
        let ready = !(waits && (loading || silent) || self.reconfiguring().is_some());
        if ready && !self.ready {
            self.pulled_at_refresh = None;
            self.pulling = None;
            self.loaded_mark = self.looked;
            self.save_again = now + SAVE_AGAIN;
        }
        self.ready = ready;
        self.looked = serial;
        self.settle.on(Event::Ready(ready), now);
        let delivery = delivery(self.server, self.rules);
        if delivery != self.delivery {
            self.delivery = delivery;
            self.settle.on(Event::Delivery(delivery), now);
        }
        self.take_publication();
        if let Some(external) = self.rules.external {
            let work = self.server.work();
            let ours =
                work.iter().filter(|(token, _)| token.starts_with(external.token)).map(|(_, work)| work);
            let is_active = ours.clone().any(Work::is_active);
            // One that began before the last save has not seen what was saved; one that ended while the project was being loaded may have been broken off.
            let (saved, loaded) = (self.server.last_save().max(self.external_mark), self.loaded_mark);
            let ended = ours
                .filter(|work| work.begun_at > saved && work.ended_at > loaded)
                .map(|work| work.ended_at)
                .max();
            if is_active {
                self.settle.on(Event::ExternalBegan, now);
            } else if let Some(ended) = ended.filter(|_| !self.reading_save) {
                if ended > self.external_ended {
                    self.external_ended = ended;
                    self.settle.on(Event::ExternalEnded, now);
                }
            } else if !self.reading_save {
                self.settle.on(Event::ExternalStopped, now);
            }
        }
        None
    }

    /// Until when the server is given to say that it has read its configuration anew, if it has been told to and answers from the old one before it has.
    fn reconfiguring(&self) -> Option<Instant> {
        let at = self.server.reconfigured(self.rules.reconfigures_late)?;
        let until = at + RECONFIGURED;
        let has_read = self.server.refreshed().is_some_and(|refreshed| refreshed > at + RECONFIGURES_AFTER);
        (!has_read && Instant::now() < until).then_some(until)
    }

    fn take_publication(&mut self) {
        if let Some(published) = self.server.published(&self.given.document.path)
            && published.serial > self.seen
        {
            self.seen = published.serial;
            let diagnostics = Diagnostic::list_from_lsp(self.shown, &published.diagnostics);
            self.settle.on(Event::Published { version: published.version, diagnostics }, Instant::now());
        }
    }

    /// Sends what has to be asked.
    fn ask(&mut self) {
        match self.delivery {
            Delivery::Pull => {
                let refreshes = self.server.refreshes();
                let is_due = match self.pulled_at_refresh {
                    None => true,
                    // The server says that its answers have changed.
                    Some(at) => refreshes > at,
                };
                if self.pulling.is_none() && is_due {
                    self.pulled_at_refresh = Some(refreshes);
                    let (server, document, shown) = (self.server, self.given.document.clone(), self.shown);
                    let exact = self.rules.exact.filter(|exact| pull::offers(server, *exact));
                    self.pulling =
                        Some(async move { pull::pull(server, exact, &document, shown).await }.boxed());
                }
            }
            Delivery::Push => {
                if !self.barrier_asked && (!self.server.names_versions() || self.is_same()) {
                    self.barrier_asked = true;
                    let (server, document) = (self.server, self.given.document.clone());
                    self.barrier = Some(async move { pull::barrier(server, &document).await }.boxed());
                }
            }
        }
    }

    /// Whether the server may have nothing to say because it had this text before.
    fn is_same(&self) -> bool {
        self.rules.silent_when_same && self.given.document.since != self.given.document.version
    }

    fn nudge(&mut self) -> Result<(), crate::supervisor::SyncError> {
        let path = self.given.document.path.clone();
        self.server.give_again(&path, self.rules.silent_when_same)?;
        if let Some(open) = self.server.document(&path) {
            self.settle.on(Event::Nudged(open.version), Instant::now());
            self.given.document = open;
        }
        Ok(())
    }

    fn gone(&self) -> String {
        match self.server.gone() {
            Some(why) => format!("it is gone: {why}"),
            None => "it cannot be told about the file".into(),
        }
    }

    fn too_late(&self, now: Instant) -> String {
        let waited = seconds(now.saturating_duration_since(self.given.at));
        match (self.server.state(), self.delivery) {
            (ServerState::Loading(what), _) => format!("it was still loading after {waited} ({what})"),
            (_, Delivery::Pull) => format!("it had not answered after {waited}"),
            (_, Delivery::Push) => {
                format!("it had said nothing about this version of the file after {waited}")
            }
        }
    }
}

/// A checker runs after a save, and once when a server has loaded.
fn expected_checks(server: &Server, rules: Rules) -> Checks {
    let Some(external) = rules.external else { return Checks::No };
    let work = server.work();
    let ours = work.iter().filter(|(token, _)| token.starts_with(external.token)).map(|(_, work)| work);
    let has_run = ours.clone().next().is_some();
    let is_done =
        ours.clone().any(|work| work.begun_at > server.last_save()) && !ours.clone().any(Work::is_active);
    match (has_run, is_done) {
        (true, true) => Checks::No,
        (true, false) => Checks::Surely,
        (false, _) if server.age() < CHECK_COLD => Checks::AtStart,
        (false, _) => Checks::Perhaps,
    }
}

/// Waits until a checker has ended that began after the last save, or the server is gone.
pub(crate) async fn checker_ended(server: &Arc<Server>) {
    let rules = rules::of(server.spec());
    let mut changes = server.changes();
    // An error means that the server is gone.
    let is_over = |_: &_| server.gone().is_some() || expected_checks(server, rules) == Checks::No;
    let _ = changes.wait_for(is_over).await;
}

/// [`Server::serial`] when a checker last began.
pub(crate) fn last_checker(server: &Server) -> Option<u64> {
    let external = rules::of(server.spec()).external?;
    let work = server.work();
    work.iter().filter(|(token, _)| token.starts_with(external.token)).map(|(_, work)| work.begun_at).max()
}

/// Whether the server has to be told that something was saved, although the text is as it had it: its checker runs after saves only, and others have changed files since the last.
fn needs_save(server: &Server) -> bool {
    rules::of(server.spec()).external.is_some() && server.told_of_foreign() > server.last_save()
}

/// Whether what a server that publishes has said of a text may be about other files as they were.
fn is_outdated(server: &Server, document: &Document) -> bool {
    let told = server.told_of_others(&document.path);
    if server.spec().resync_dependants {
        // It is given every file again that may include what changes.
        return !server.names_versions();
    }
    if pull::diagnoses(server) {
        // What it publishes of its own accord is a part at first.
        told.max(document.given_at) > server.diagnosed()
    } else {
        !server.names_versions() || told > document.given_at
    }
}

/// Whether what a server says now waits for a checker, which looks at the disk and not at what the server was given.
pub(crate) fn awaits_checker(server: &Server) -> bool {
    expected_checks(server, rules::of(server.spec())) != Checks::No
}

/// Whether a server publishes and does not say about which text, as far as is known.
pub(crate) fn is_wordless(server: &Server) -> bool {
    delivery(server, rules::of(server.spec())) == Delivery::Push && !server.names_versions()
}

/// A time in words.
pub(crate) fn seconds(time: Duration) -> String {
    if time < Duration::from_secs(10) {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{} s", time.as_secs())
    }
}

fn delivery(server: &Server, rules: Rules) -> Delivery {
    let is_exact = rules.exact.is_some_and(|exact| pull::offers(server, exact));
    if is_exact || server.can("textDocument/diagnostic") { Delivery::Pull } else { Delivery::Push }
}

fn refused(error: &RequestError) -> String {
    match error {
        RequestError::Gone(why) => format!("it is gone: {why}"),
        RequestError::Stuck => "it has stopped reading its input".into(),
        RequestError::TimedOut(limit) => format!("it had not answered after {}", seconds(*limit)),
        RequestError::Refused { message, .. } => format!("it could not say ({message})"),
    }
}

async fn maybe<T>(future: &mut Option<BoxFuture<'_, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}
