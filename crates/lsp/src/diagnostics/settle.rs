//! When a server has said all it has to say about one version of one file (field notes: push and pull at once, publications without versions, checkers
//! that run after a save). A state machine without clock or channel: events and times go in, a verdict comes out.

use std::time::Duration;

use tokio::time::Instant;

use super::{Diagnostic, merge, rules::Rules};
use crate::limits::SAME;

/// How a server delivers diagnostics of the file in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// It is asked. What it pushes beside that counts too.
    Pull,
    /// It publishes by itself.
    Push,
}

/// What happened.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A publication about the file came after the change was sent.
    Published { version: Option<i64>, diagnostics: Vec<Diagnostic> },
    /// The server answered a request that was sent after the change, so it has read the change. What comes from here on was at least written after that.
    Barrier,
    /// The answer to a pull that was sent after the change.
    Pulled(Vec<Diagnostic>),
    /// The checker began.
    ExternalBegan,
    /// The checker ended; all of its publications came before.
    ExternalEnded,
    /// No checker runs, and none has ended that looked at the text.
    ExternalStopped,
    /// Whether the server says that it has loaded the project.
    Ready(bool),
    /// The server has come to offer pulling (some register it only once they run), or has stopped to.
    Delivery(Delivery),
    /// The text was given to the server once more, under this version.
    Nudged(i64),
    /// The server has read a text that it had before, and may have nothing to say about it.
    ReadSame,
}

/// What is known now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Not enough; look again on the next event, or at this time.
    Wait(Option<Instant>),
    /// The server analysed this version, and this is what it found.
    Settled(Vec<Diagnostic>),
    /// The server may have published about this text before it could be told that the text was this one. Give it the text once more.
    Nudge,
    /// It will not become known in time; why, in words that follow "not verified: ".
    GivenUp(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checker {
    None,
    /// May begin until then.
    Awaited(Instant),
    Running,
    /// Ended then. One that was only broken off (because the project is loaded anew) ends too, and is followed by another or by word that the project is loading.
    Ended(Instant),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// About our version, by its number.
    Exact,
    /// Has no version, but came after the server had read the change.
    Later,
    /// Has no version and may be about the text before.
    Doubtful,
}

struct Push {
    diagnostics: Vec<Diagnostic>,
    fit: Fit,
    at: Instant,
}

/// Whether a checker is expected to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checks {
    /// Nothing was saved, and none is running.
    No,
    /// After a save, but this server has not been seen to run one.
    Perhaps,
    /// After the start of a server.
    AtStart,
    /// After a save, of a server that has been seen to run one.
    Surely,
}

/// The state of one wait.
pub(crate) struct Settle {
    rules: Rules,
    delivery: Delivery,
    version: i64,
    sent: Instant,
    barrier: bool,
    /// A text that the server had before, and may say nothing about: when it had read it.
    same: Option<Instant>,
    ready: bool,
    pushed: Option<Push>,
    pulled: Option<Vec<Diagnostic>>,
    checker: Checker,
    /// How long the checker may take to begin.
    begin: Option<Duration>,
    /// Whether it is known to run, so that without it nothing is known.
    runs: bool,
    nudged: bool,
    /// How long nothing more may come from a server that has been asked to look at everything and has answered.
    patience: Duration,
}

impl Settle {
    /// A wait for `version`, which was sent at `sent`. `checks` says whether a checker is expected to run or runs already. `standing` is what the server had published about the file before; it counts only where a checker's findings are not published
    /// again when they stay the same.
    pub(crate) fn new(
        rules: Rules,
        delivery: Delivery,
        version: i64,
        sent: Instant,
        checks: Checks,
        standing: Option<Vec<Diagnostic>>,
    ) -> Self {
        let begin = rules.external.and_then(|external| match checks {
            Checks::No => None,
            Checks::Perhaps => Some(external.begin_within),
            Checks::AtStart | Checks::Surely => Some(external.begin_surely_within),
        });
        let checker = begin.map_or(Checker::None, |begin| Checker::Awaited(sent + begin));
        let pushed = match (rules.external, standing) {
            (Some(_), Some(diagnostics)) => Some(Push { diagnostics, fit: Fit::Later, at: sent }),
            _ => None,
        };
        Settle {
            rules,
            delivery,
            version,
            sent,
            barrier: false,
            same: None,
            ready: true,
            pushed,
            pulled: None,
            checker,
            begin,
            runs: checks == Checks::Surely,
            nudged: false,
            patience: Duration::ZERO,
        }
    }

    /// Waits for `patience` after the last publication of a server that has been asked to look at everything.
    pub(crate) fn patiently(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Whether a checker is to begin.
    pub(crate) fn awaits_checker(&self) -> bool {
        matches!(self.checker, Checker::Awaited(_))
    }

    /// Takes in what happened.
    pub(crate) fn on(&mut self, event: Event, now: Instant) {
        match event {
            Event::Published { version, diagnostics } => {
                let fit = match version {
                    Some(version) if version == self.version => Fit::Exact,
                    // A checker's findings are about files on disk; the number beside them is whatever was open.
                    Some(_) if self.rules.external.is_some() => Fit::Later,
                    Some(_) => return,
                    None if self.barrier => Fit::Later,
                    None => Fit::Doubtful,
                };
                self.pushed = Some(Push { diagnostics, fit, at: now });
            }
            Event::Barrier => self.barrier = true,
            Event::Pulled(diagnostics) => self.pulled = Some(diagnostics),
            Event::ExternalBegan => {
                if self.checker != Checker::None {
                    self.checker = Checker::Running;
                }
            }
            Event::ExternalEnded => {
                if self.checker != Checker::None {
                    self.checker = Checker::Ended(now);
                }
            }
            Event::ExternalStopped => {
                // Broken off, and another begins; or there is none.
                if let (Checker::Running, Some(begin)) = (self.checker, self.begin) {
                    self.checker = Checker::Awaited(now + begin);
                }
            }
            Event::Ready(ready) => {
                if ready && !self.ready {
                    // What was found while the project was loading is worth nothing, and the first check begins now.
                    self.pulled = None;
                    self.sent = now;
                    if let Some(begin) = self.begin {
                        self.checker = Checker::Awaited(now + begin);
                    }
                }
                self.ready = ready;
            }
            Event::Delivery(delivery) => self.delivery = delivery,
            Event::ReadSame => self.same = Some(now),
            Event::Nudged(version) => {
                self.version = version;
                self.nudged = true;
            }
        }
    }

    /// What is known at `now`.
    pub(crate) fn verdict(&self, now: Instant) -> Verdict {
        if !self.ready {
            return Verdict::Wait(None);
        }
        if let (Some(external), Checker::Awaited(_) | Checker::Running | Checker::Ended(_)) =
            (self.rules.external, self.checker)
        {
            let cap = self.sent + external.cap;
            let is_over = matches!(self.checker, Checker::Ended(_));
            if now >= cap && !is_over {
                return Verdict::GivenUp(format!(
                    "{} had not ended after {} s",
                    external.name,
                    external.cap.as_secs()
                ));
            }
            match self.checker {
                Checker::Awaited(until) if now < until => return Verdict::Wait(Some(until)),
                Checker::Awaited(_) if self.runs => {
                    return Verdict::GivenUp(format!("{} has not run since the change", external.name));
                }
                Checker::Running => return Verdict::Wait(Some(cap)),
                Checker::Ended(at) if now < at + external.settle => {
                    return Verdict::Wait(Some(at + external.settle));
                }
                _ => {}
            }
        }
        match self.delivery {
            Delivery::Pull => match &self.pulled {
                None => Verdict::Wait(None),
                Some(pulled) => {
                    let pushed = self.pushed.as_ref().filter(|push| push.fit != Fit::Doubtful);
                    let pushed = pushed.map(|push| push.diagnostics.clone()).unwrap_or_default();
                    let pulled = without_doubles(pulled, &pushed);
                    Verdict::Settled(merge(&[pulled, pushed]))
                }
            },
            Delivery::Push => match &self.pushed {
                None => match self.same.map(|read| read + SAME) {
                    Some(_) if self.nudged => Verdict::Wait(None),
                    Some(until) if now < until => Verdict::Wait(Some(until)),
                    Some(_) => Verdict::Nudge,
                    None => Verdict::Wait(None),
                },
                Some(push) if push.fit == Fit::Doubtful => {
                    let until = push.at + self.rules.settle_unversioned;
                    match (self.barrier && !self.nudged, now < until) {
                        (false, _) => Verdict::Wait(None),
                        (true, true) => Verdict::Wait(Some(until)),
                        (true, false) => Verdict::Nudge,
                    }
                }
                Some(_) if self.rules.by_request && !self.barrier => Verdict::Wait(None),
                Some(push) => {
                    let quiet = match push.fit {
                        Fit::Exact if self.rules.by_request => self.patience,
                        Fit::Exact => self.rules.settle_versioned,
                        _ => self.rules.settle_unversioned,
                    };
                    let until = push.at.max(self.sent) + quiet;
                    if now < until {
                        Verdict::Wait(Some(until))
                    } else {
                        Verdict::Settled(merge(std::slice::from_ref(&push.diagnostics)))
                    }
                }
            },
        }
    }
}

/// What a server finds by itself without what its checker found too: the same code on the same line, in the checker's words.
fn without_doubles(native: &[Diagnostic], checker: &[Diagnostic]) -> Vec<Diagnostic> {
    let is_double = |one: &Diagnostic| {
        one.code.is_some()
            && checker
                .iter()
                .any(|other| (&other.code, other.severity, other.line) == (&one.code, one.severity, one.line))
    };
    native.iter().filter(|one| !is_double(one)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::{
        super::{
            Severity,
            rules::{PLAIN, RUST_ANALYZER},
        },
        *,
    };

    fn problem(message: &str) -> Diagnostic {
        Diagnostic {
            file: "a".into(),
            line: 1,
            severity: Severity::Error,
            code: None,
            message: message.into(),
            source: None,
            span: [0; 4],
        }
    }

    fn published(version: Option<i64>, messages: &[&str]) -> Event {
        Event::Published { version, diagnostics: messages.iter().map(|message| problem(message)).collect() }
    }

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn an_old_version_is_ignored_and_the_new_one_settles() {
        let start = Instant::now();
        let mut settle = Settle::new(PLAIN, Delivery::Push, 7, start, Checks::Perhaps, None);
        settle.on(published(Some(6), &["old"]), start + ms(1));
        assert_eq!(settle.verdict(start + ms(900)), Verdict::Wait(None));
        settle.on(published(Some(7), &["first"]), start + ms(901));
        assert_eq!(settle.verdict(start + ms(901)), Verdict::Wait(Some(start + ms(906))));
        settle.on(published(Some(7), &["new"]), start + ms(902));
        assert_eq!(settle.verdict(start + ms(907)), Verdict::Settled(vec![problem("new")]));
    }

    #[test]
    fn without_versions_only_what_came_after_the_barrier_counts() {
        let start = Instant::now();
        let mut settle = Settle::new(PLAIN, Delivery::Push, 2, start, Checks::Perhaps, None);
        // Written before the server had read the change: about the old text.
        settle.on(published(None, &[]), start + ms(1));
        assert_eq!(settle.verdict(start + ms(500)), Verdict::Wait(None));
        settle.on(Event::Barrier, start + ms(501));
        // It may have been about the new text after all, published while the change was being read: ask for it again.
        assert_eq!(settle.verdict(start + ms(501)), Verdict::Nudge);
        settle.on(Event::Nudged(3), start + ms(502));
        assert_eq!(settle.verdict(start + ms(800)), Verdict::Wait(None));
        settle.on(published(None, &["new"]), start + ms(801));
        assert_eq!(settle.verdict(start + ms(950)), Verdict::Wait(Some(start + ms(951))));
        assert_eq!(settle.verdict(start + ms(951)), Verdict::Settled(vec![problem("new")]));
    }

    #[test]
    fn rust_analyzer_settles_at_the_end_of_the_check_and_not_at_a_version() {
        let start = Instant::now();
        let old = vec![problem("old")];
        let mut settle = Settle::new(RUST_ANALYZER, Delivery::Pull, 3, start, Checks::Perhaps, Some(old));
        settle.on(Event::Pulled(vec![problem("native")]), start + ms(5));
        // The old findings under the new version, as it does.
        settle.on(published(Some(3), &["old"]), start + ms(6));
        assert_eq!(settle.verdict(start + ms(10)), Verdict::Wait(Some(start + ms(500))));
        settle.on(Event::ExternalBegan, start + ms(200));
        settle.on(published(Some(3), &[]), start + ms(210));
        settle.on(published(Some(3), &["new"]), start + ms(600));
        assert_eq!(settle.verdict(start + ms(600)), Verdict::Wait(Some(start + ms(60_000))));
        settle.on(Event::ExternalEnded, start + ms(601));
        assert_eq!(settle.verdict(start + ms(601)), Verdict::Wait(Some(start + ms(611))));
        assert_eq!(
            settle.verdict(start + ms(611)),
            Verdict::Settled(vec![problem("native"), problem("new")])
        );
    }

    #[test]
    fn a_check_that_does_not_begin_leaves_its_last_findings_standing() {
        let start = Instant::now();
        let mut settle =
            Settle::new(RUST_ANALYZER, Delivery::Pull, 3, start, Checks::Perhaps, Some(vec![problem("old")]));
        settle.on(Event::Pulled(vec![]), start + ms(5));
        assert_eq!(settle.verdict(start + ms(500)), Verdict::Settled(vec![problem("old")]));
    }

    #[test]
    fn without_the_check_of_a_server_that_runs_one_nothing_is_known() {
        let start = Instant::now();
        let mut settle =
            Settle::new(RUST_ANALYZER, Delivery::Pull, 3, start, Checks::Surely, Some(vec![problem("old")]));
        settle.on(Event::Pulled(vec![]), start + ms(5));
        assert_eq!(settle.verdict(start + ms(9_999)), Verdict::Wait(Some(start + ms(10_000))));
        let verdict = settle.verdict(start + ms(10_000));
        assert_eq!(verdict, Verdict::GivenUp("cargo check has not run since the change".into()));
    }

    #[test]
    fn the_first_check_of_a_server_is_awaited_from_the_moment_it_has_loaded() {
        let start = Instant::now();
        let mut settle = Settle::new(RUST_ANALYZER, Delivery::Pull, 1, start, Checks::Perhaps, None);
        settle.on(Event::Ready(false), start);
        settle.on(Event::Pulled(vec![]), start + ms(5));
        assert_eq!(settle.verdict(start + ms(7000)), Verdict::Wait(None));
        settle.on(Event::Ready(true), start + ms(8000));
        settle.on(Event::Pulled(vec![]), start + ms(8005));
        assert_eq!(settle.verdict(start + ms(8005)), Verdict::Wait(Some(start + ms(8500))));
        settle.on(Event::ExternalBegan, start + ms(8300));
        settle.on(published(Some(1), &["old"]), start + ms(9000));
        settle.on(Event::ExternalEnded, start + ms(9001));
        assert_eq!(settle.verdict(start + ms(9021)), Verdict::Settled(vec![problem("old")]));
    }

    #[test]
    fn a_check_that_was_broken_off_because_the_project_is_loaded_anew_is_no_check() {
        let start = Instant::now();
        let mut settle = Settle::new(RUST_ANALYZER, Delivery::Pull, 1, start, Checks::Surely, None);
        settle.on(Event::Pulled(vec![]), start + ms(5));
        settle.on(Event::ExternalBegan, start + ms(100));
        settle.on(published(Some(1), &[]), start + ms(101));
        settle.on(Event::ExternalEnded, start + ms(200));
        settle.on(Event::Ready(false), start + ms(210));
        assert_eq!(settle.verdict(start + ms(300)), Verdict::Wait(None));
        settle.on(Event::Ready(true), start + ms(900));
        settle.on(Event::Pulled(vec![]), start + ms(905));
        settle.on(Event::ExternalBegan, start + ms(1000));
        settle.on(published(Some(1), &["real"]), start + ms(1100));
        settle.on(Event::ExternalEnded, start + ms(1200));
        assert_eq!(settle.verdict(start + ms(1220)), Verdict::Settled(vec![problem("real")]));
    }

    #[test]
    fn a_check_that_does_not_end_is_given_up_and_called_so() {
        let start = Instant::now();
        let mut settle = Settle::new(RUST_ANALYZER, Delivery::Pull, 3, start, Checks::Perhaps, None);
        settle.on(Event::Pulled(vec![]), start + ms(5));
        settle.on(Event::ExternalBegan, start + ms(100));
        let verdict = settle.verdict(start + ms(60_000));
        assert_eq!(verdict, Verdict::GivenUp("cargo check had not ended after 60 s".into()));
    }

    #[test]
    fn a_check_that_was_broken_off_is_not_waited_for() {
        let start = Instant::now();
        let mut settle = Settle::new(RUST_ANALYZER, Delivery::Pull, 3, start, Checks::Perhaps, None);
        settle.on(Event::Pulled(vec![]), start + ms(5));
        settle.on(Event::ExternalBegan, start + ms(10));
        settle.on(Event::ExternalStopped, start + ms(100));
        assert_eq!(settle.verdict(start + ms(100)), Verdict::Wait(Some(start + ms(600))));
        settle.on(Event::ExternalStopped, start + ms(110));
        settle.on(Event::ExternalBegan, start + ms(150));
        settle.on(published(Some(3), &["new"]), start + ms(200));
        settle.on(Event::ExternalEnded, start + ms(210));
        assert_eq!(settle.verdict(start + ms(230)), Verdict::Settled(vec![problem("new")]));
    }

    #[test]
    fn nothing_settles_while_the_project_is_loading() {
        let start = Instant::now();
        let mut settle = Settle::new(PLAIN, Delivery::Pull, 1, start, Checks::No, None);
        settle.on(Event::Ready(false), start);
        settle.on(Event::Pulled(vec![]), start + ms(1));
        assert_eq!(settle.verdict(start + ms(2)), Verdict::Wait(None));
        settle.on(Event::Ready(true), start + ms(3));
        // What it answered while it was loading does not count.
        assert_eq!(settle.verdict(start + ms(3)), Verdict::Wait(None));
        settle.on(Event::Pulled(vec![problem("a")]), start + ms(4));
        assert_eq!(settle.verdict(start + ms(4)), Verdict::Settled(vec![problem("a")]));
    }
}
