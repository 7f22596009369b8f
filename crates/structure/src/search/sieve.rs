//! Which files have to be parsed: those whose bytes hold what every match holds.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::{
    languages::Language,
    pattern::{
        Reading,
        literals::{Sieve, Sifted},
    },
};

/// What to look for in the files of a language: files that cannot match in any of the readings are not parsed.
pub(crate) struct Plan<'a> {
    pub(crate) language: &'static Language,
    /// None where every file is to be parsed.
    sieves: Vec<Sieve<'a>>,
    /// Whether the longest token of the first reading was in any file.
    first_seen: AtomicBool,
    /// Files that hold every token of the first reading, but nowhere as the pattern has them.
    scattered: AtomicUsize,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(language: &'static Language, readings: &'a [Reading], prefilter: bool) -> Plan<'a> {
        let sieves = if prefilter { readings.iter().map(Sieve::of).collect() } else { Vec::new() };
        Plan { language, sieves, first_seen: AtomicBool::new(false), scattered: AtomicUsize::new(0) }
    }

    pub(crate) fn lets_pass(&self, text: &[u8]) -> bool {
        let passes = self.sieves.iter().enumerate().any(|(number, sieve)| {
            let sifted = sieve.sift(text);
            if number == 0 && sifted != Sifted::First {
                self.first_seen.store(true, Ordering::Relaxed);
            }
            if number == 0 && sifted == Sifted::Scattered {
                self.scattered.fetch_add(1, Ordering::Relaxed);
            }
            sifted == Sifted::Passes
        });
        passes || self.sieves.is_empty()
    }

    /// The longest token of the first reading, if no file at all has it.
    pub(crate) fn never_seen(&self) -> Option<&[u8]> {
        let first = self.sieves.first()?.first()?;
        (!self.first_seen.load(Ordering::Relaxed)).then_some(first)
    }

    /// How many files hold every token of the first reading and were turned away all the same.
    pub(crate) fn scattered(&self) -> usize {
        self.scattered.load(Ordering::Relaxed)
    }
}
