//! What of a server's diagnostics is new (SPEC W2, W3).
//!
//! Per server and file the ledger keeps the last state that was verified, as a multiset: how many there are of each (severity, code, message), and on
//! which lines, the lines only to name the right one of several equal ones. New is what the verified state after a write has more of than that. So an error
//! that slid is not new, a second one of the same kind is, and one that was fixed and comes back is new again.
//!
//! Three rules keep it honest. An answer that did not come changes nothing. A baseline taken while an earlier write is still unverified is
//! not taken over, or what that write broke would count as having been there before. And where no baseline is known the ledger says so.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

use super::{Diagnostic, Severity};

/// Which server's view of which file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    /// The server, unique among those of a working directory (its id and root).
    pub server: String,
    /// The file, canonical.
    pub file: PathBuf,
}

/// What a verified state brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Compared with what was known: these are new, perhaps none.
    New(Vec<Diagnostic>),
    /// Nothing was known before, so what is there now may be old or new.
    Unknown(Vec<Diagnostic>),
}

/// The diagnostics that a run knows of.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    scopes: HashMap<Scope, State>,
    /// How often each file has been written.
    written: HashMap<PathBuf, u64>,
}

#[derive(Clone, Debug, Default)]
struct State {
    /// `None`: nothing is known.
    known: Option<Counts>,
    /// Which write of the file `known` is true of.
    of_write: u64,
}

/// Lines (1-based) of the diagnostics of each key.
type Counts = HashMap<Key, Vec<u32>>;

/// Severity, and a hash of code and message: messages can be long, and they are compared only for equality.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key(Severity, u64);

impl Key {
    fn of(diagnostic: &Diagnostic) -> Self {
        let mut hasher = DefaultHasher::new();
        diagnostic.code.hash(&mut hasher);
        without_places(&diagnostic.message).hash(&mut hasher);
        Key(diagnostic.severity, hasher.finish())
    }
}

/// A message without the line numbers that some servers put into it ("declared at lib.go:12:5", "defined on line 7"), which slide as the error itself does.
fn without_places(message: &str) -> String {
    let mut result = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, digits) = rest.split_at(at);
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        result.push_str(before);
        let is_place = result.ends_with(':') || result.ends_with("line ");
        result.push_str(if is_place { "#" } else { &digits[..end] });
        rest = &digits[end..];
    }
    result.push_str(rest);
    result
}

impl Ledger {
    /// Nothing is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a state of this file is known and nothing has been written since.
    pub fn is_clean(&self, scope: &Scope) -> bool {
        self.knows(scope) && !self.is_dirty(scope)
    }

    /// Whether any state of this file is known, if perhaps from before a write.
    pub fn knows(&self, scope: &Scope) -> bool {
        self.scopes.get(scope).is_some_and(|state| state.known.is_some())
    }

    /// Whether this file has been written since its state was last verified.
    pub fn is_dirty(&self, scope: &Scope) -> bool {
        self.writes(&scope.file) > self.scopes.get(scope).map_or(0, |state| state.of_write)
    }

    /// How often a file has been written.
    pub fn writes(&self, file: &Path) -> u64 {
        self.written.get(file).copied().unwrap_or(0)
    }

    /// Takes over what is there before a write, unless an earlier write is still unverified and something was known before it.
    pub fn baseline(&mut self, scope: &Scope, now: &[Diagnostic]) {
        if !self.is_dirty(scope) {
            self.scopes.entry(scope.clone()).or_default().known = Some(counts(now));
        }
    }

    /// Takes over the state from before a write, whether or not that write has been noted by now (SPEC W3: a server that was still starting is shown the old text
    /// first). `writes` is what [`Ledger::writes`] was before it. Where an earlier write is unverified, nothing is taken over.
    pub fn baseline_before(&mut self, scope: &Scope, writes: u64, before: &[Diagnostic]) {
        let state = self.scopes.entry(scope.clone()).or_default();
        if state.of_write == writes {
            state.known = Some(counts(before));
        }
    }

    /// The file is being created, so there was nothing before.
    pub fn created(&mut self, scope: &Scope, writes: u64) {
        self.scopes.insert(scope.clone(), State { known: Some(Counts::new()), of_write: writes });
    }

    /// Notes that a file has been written.
    pub fn wrote(&mut self, file: &Path) {
        *self.written.entry(file.to_owned()).or_default() += 1;
    }

    /// Takes over a verified state and says what is new in it. `moved` tells where a line of the last verified state is now, if that is known.
    pub fn verified(&mut self, scope: &Scope, now: &[Diagnostic], moved: &dyn Fn(u32) -> u32) -> News {
        let of_write = self.writes(&scope.file);
        let state = self.scopes.entry(scope.clone()).or_default();
        state.of_write = of_write;
        let Some(known) = state.known.replace(counts(now)) else {
            return News::Unknown(now.to_vec());
        };
        let mut fresh = Vec::new();
        let mut by_key: HashMap<Key, Vec<&Diagnostic>> = HashMap::new();
        for diagnostic in now {
            by_key.entry(Key::of(diagnostic)).or_default().push(diagnostic);
        }
        for (key, found) in by_key {
            let old: Vec<u32> = known.get(&key).into_iter().flatten().map(|line| moved(*line)).collect();
            fresh.extend(unmatched(found, old).into_iter().cloned());
        }
        super::merge::sort(&mut fresh);
        News::New(fresh)
    }

    /// The file has another name. What is known of it goes along; that it was written is noted as for any other write.
    pub fn renamed(&mut self, from: &Path, to: &Path) {
        let of_write = self.writes(to);
        let moving: Vec<Scope> = self.scopes.keys().filter(|scope| scope.file == from).cloned().collect();
        for scope in moving {
            let is_dirty = self.is_dirty(&scope);
            if let Some(state) = self.scopes.remove(&scope) {
                let of_write = if is_dirty { 0 } else { of_write };
                self.scopes.insert(Scope { file: to.to_owned(), ..scope }, State { of_write, ..state });
            }
        }
    }

    /// The file is gone: one of the same name that comes later starts with nothing known.
    pub fn deleted(&mut self, file: &Path) {
        self.scopes.retain(|scope, _| scope.file != file);
    }
}

fn counts(now: &[Diagnostic]) -> Counts {
    let mut counts = Counts::new();
    for diagnostic in now {
        counts.entry(Key::of(diagnostic)).or_default().push(diagnostic.line);
    }
    counts
}

/// Takes away one of `found` for each of `old`, the same line first and the nearest then; what is left is new.
fn unmatched(found: Vec<&Diagnostic>, old: Vec<u32>) -> Vec<&Diagnostic> {
    let mut left = found;
    let mut slid = Vec::new();
    for line in old {
        match left.iter().position(|diagnostic| diagnostic.line == line) {
            Some(at) => {
                left.remove(at);
            }
            None => slid.push(line),
        }
    }
    for line in slid {
        let nearest = left.iter().enumerate().min_by_key(|(_, diagnostic)| diagnostic.line.abs_diff(line));
        let Some((at, _)) = nearest else { break };
        left.remove(at);
    }
    left
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn scope() -> Scope {
        Scope { server: "pyright /p".into(), file: "/p/a.py".into() }
    }

    fn problem(message: &str, line: u32) -> Diagnostic {
        Diagnostic {
            file: "a.py".into(),
            line,
            severity: Severity::Error,
            code: Some("E1".into()),
            message: message.into(),
            source: None,
            span: [line - 1, 0, line - 1, 1],
        }
    }

    fn still(line: u32) -> u32 {
        line
    }

    #[test]
    fn an_error_that_slid_is_not_new_and_a_second_of_its_kind_is() {
        let mut ledger = Ledger::new();
        ledger.baseline(&scope(), &[problem("a", 3)]);
        ledger.wrote(&scope().file);
        assert_eq!(ledger.verified(&scope(), &[problem("a", 7)], &still), News::New(vec![]));
        // hermes-agent#25978: with equal errors not counted, the second one would be hidden.
        let now = [problem("a", 7), problem("a", 20)];
        assert_eq!(ledger.verified(&scope(), &now, &still), News::New(vec![problem("a", 20)]));
        assert_eq!(ledger.verified(&scope(), &now, &still), News::New(vec![]));
    }

    #[test]
    fn of_equal_errors_the_new_one_is_named_though_lines_moved() {
        let mut ledger = Ledger::new();
        ledger.baseline(&scope(), &[problem("a", 3)]);
        ledger.wrote(&scope().file);
        let down_ten = |line| line + 10;
        let now = [problem("a", 3), problem("a", 13)];
        assert_eq!(ledger.verified(&scope(), &now, &down_ten), News::New(vec![problem("a", 3)]));
    }

    #[test]
    fn an_error_that_was_fixed_and_comes_back_is_new_again() {
        let mut ledger = Ledger::new();
        ledger.baseline(&scope(), &[problem("a", 3)]);
        assert_eq!(ledger.verified(&scope(), &[], &still), News::New(vec![]));
        assert_eq!(ledger.verified(&scope(), &[problem("a", 3)], &still), News::New(vec![problem("a", 3)]));
    }

    #[test]
    fn a_baseline_after_an_unverified_write_does_not_hide_what_that_write_broke() {
        let mut ledger = Ledger::new();
        ledger.baseline(&scope(), &[]);
        ledger.wrote(&scope().file);
        // The first write was never verified; before the second the error is there.
        ledger.baseline(&scope(), &[problem("a", 3)]);
        ledger.wrote(&scope().file);
        assert_eq!(ledger.verified(&scope(), &[problem("a", 3)], &still), News::New(vec![problem("a", 3)]));
    }

    #[test]
    fn without_a_baseline_nothing_is_called_new() {
        let mut ledger = Ledger::new();
        ledger.wrote(&scope().file);
        assert_eq!(
            ledger.verified(&scope(), &[problem("a", 3)], &still),
            News::Unknown(vec![problem("a", 3)])
        );
        // The next write's baseline would hide what the one before broke, if that was never verified.
        let mut ledger = Ledger::new();
        ledger.wrote(&scope().file);
        ledger.baseline_before(&scope(), 1, &[problem("a", 3)]);
        ledger.wrote(&scope().file);
        assert_eq!(
            ledger.verified(&scope(), &[problem("a", 3)], &still),
            News::Unknown(vec![problem("a", 3)])
        );
    }

    #[test]
    fn a_baseline_may_come_after_its_write() {
        let mut ledger = Ledger::new();
        ledger.wrote(&scope().file);
        ledger.baseline_before(&scope(), 0, &[problem("a", 3)]);
        assert_eq!(ledger.verified(&scope(), &[problem("a", 3)], &still), News::New(vec![]));
        ledger.deleted(&scope().file);
        ledger.wrote(&scope().file);
        ledger.created(&scope(), 1);
        assert_eq!(ledger.verified(&scope(), &[problem("a", 3)], &still), News::New(vec![problem("a", 3)]));
    }

    #[test]
    fn places_inside_a_message_do_not_make_it_another() {
        let mut ledger = Ledger::new();
        ledger.baseline(&scope(), &[problem("x redeclared, see ./a.go:3:5 and line 12", 9)]);
        let now = [problem("x redeclared, see ./a.go:13:5 and line 22", 19)];
        assert_eq!(ledger.verified(&scope(), &now, &still), News::New(vec![]));
        let other = [problem("expected 2 arguments, got 3", 19)];
        ledger.baseline(&scope(), &[problem("expected 2 arguments, got 4", 19)]);
        assert_eq!(ledger.verified(&scope(), &other, &still), News::New(other.to_vec()));
    }

    #[test]
    fn a_moved_file_takes_what_is_known_along() {
        let mut ledger = Ledger::new();
        ledger.baseline(&scope(), &[problem("a", 3)]);
        ledger.renamed(Path::new("/p/a.py"), Path::new("/p/b.py"));
        let moved = Scope { file: "/p/b.py".into(), ..scope() };
        assert_eq!(ledger.verified(&moved, &[problem("a", 3)], &still), News::New(vec![]));
        assert!(!ledger.is_clean(&scope()));
    }

    proptest! {
        /// Whatever happens: as many are new of each kind as there are more of it than in the last verified state.
        #[test]
        fn counts_decide(states in prop::collection::vec(prop::collection::vec((0u8..4, 1u32..30), 0..12), 1..12)) {
            let mut ledger = Ledger::new();
            let mut last: Option<BTreeMap<u8, usize>> = None;
            for state in states {
                let now: Vec<Diagnostic> = state.iter().map(|(kind, line)| problem(&format!("m{kind}x"), *line)).collect();
                let mut count = BTreeMap::new();
                for (kind, _) in &state {
                    *count.entry(*kind).or_insert(0usize) += 1;
                }
                ledger.wrote(&scope().file);
                let news = ledger.verified(&scope(), &now, &still);
                match &last {
                    None => prop_assert_eq!(news, News::Unknown(now)),
                    Some(before) => {
                        let expected: usize = count.iter().map(|(kind, n)| n.saturating_sub(before.get(kind).copied().unwrap_or(0))).sum();
                        let News::New(fresh) = news else { panic!("a baseline was known") };
                        prop_assert_eq!(fresh.len(), expected);
                        prop_assert!(fresh.iter().all(|one| now.contains(one)));
                    }
                }
                last = Some(count);
            }
        }
    }
}
