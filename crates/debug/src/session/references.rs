//! The numbers that callers get for frames and variables.
//!
//! Adapters use their own numbers again after every resume and answer old ones with whatever stands there now (four of four that
//! were tried). Ours are never used twice, and an old one is refused.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// What a number stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    /// The adapter's id of a stack frame.
    Frame(i64),
    /// The adapter's reference of a scope's or variable's children.
    Children(i64),
}

/// Why a number is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReferenceError {
    #[error("{0} was valid at an earlier stop; the program has moved since. Ask for the `stack` again.")]
    Stale(u64),
    #[error(
        "{0} is not a number that was handed out. Frames come from `stack`, references from `scopes` and `variables`."
    )]
    Unknown(u64),
    #[error(
        "{0} is a frame, not a reference: ask for its `scopes`, or for `variables` with frame_id instead of reference."
    )]
    IsFrame(u64),
    #[error("{0} is a reference of variables, not a frame. Frames come from `stack`.")]
    IsChildren(u64),
}

/// The numbers of one process.
#[derive(Debug, Default)]
pub(crate) struct References {
    epoch: u64,
    /// The highest one so far, in all processes of the session.
    given: Arc<AtomicU64>,
    valid: HashMap<u64, Target>,
    numbers: HashMap<Target, u64>,
    /// How many elements the adapter says there are behind its references.
    elements: HashMap<i64, usize>,
}

impl References {
    /// None so far in this process.
    pub(crate) fn counted_by(given: Arc<AtomicU64>) -> Self {
        References { given, ..References::default() }
    }

    /// Forgets what was given before this epoch.
    pub(crate) fn enter(&mut self, epoch: u64) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.valid.clear();
            self.numbers.clear();
            self.elements.clear();
        }
    }

    /// The number for `target`, the same as long as the program stands.
    pub(crate) fn give(&mut self, target: Target) -> u64 {
        if let Some(number) = self.numbers.get(&target) {
            return *number;
        }
        let number = self.given.fetch_add(1, Ordering::Relaxed) + 1;
        self.valid.insert(number, target);
        self.numbers.insert(target, number);
        number
    }

    /// Notes how many elements the adapter says there are behind its reference.
    pub(crate) fn has_elements(&mut self, reference: i64, count: usize) {
        self.elements.insert(reference, count);
    }

    /// How many elements there are behind the adapter's reference, where it has told.
    pub(crate) fn elements(&self, reference: i64) -> Option<usize> {
        self.elements.get(&reference).copied()
    }

    /// The adapter's id of a frame.
    pub(crate) fn frame(&self, number: u64) -> Result<i64, ReferenceError> {
        match self.find(number)? {
            Target::Frame(id) => Ok(id),
            Target::Children(_) => Err(ReferenceError::IsChildren(number)),
        }
    }

    /// The adapter's reference of children.
    pub(crate) fn children(&self, number: u64) -> Result<i64, ReferenceError> {
        match self.find(number)? {
            Target::Children(reference) => Ok(reference),
            Target::Frame(_) => Err(ReferenceError::IsFrame(number)),
        }
    }

    /// Whether a number is one of this process's and of this stop.
    pub(crate) fn is_valid(&self, number: u64) -> bool {
        self.valid.contains_key(&number)
    }

    fn find(&self, number: u64) -> Result<Target, ReferenceError> {
        match self.valid.get(&number) {
            Some(target) => Ok(*target),
            None if number > 0 && number <= self.given.load(Ordering::Relaxed) => {
                Err(ReferenceError::Stale(number))
            }
            None => Err(ReferenceError::Unknown(number)),
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn numbers_are_valid_for_one_stop_and_never_used_twice() {
        let mut references = References::default();
        references.enter(1);
        let frame = references.give(Target::Frame(1000));
        let children = references.give(Target::Children(1));
        assert_eq!((frame, children, references.give(Target::Frame(1000))), (1, 2, 1));
        assert_eq!((references.frame(frame), references.children(children)), (Ok(1000), Ok(1)));
        assert_eq!(references.children(frame), Err(ReferenceError::IsFrame(1)));
        assert_eq!(references.frame(children), Err(ReferenceError::IsChildren(2)));
        references.enter(2);
        assert_eq!(references.frame(frame), Err(ReferenceError::Stale(1)));
        // The adapter uses its own number again; ours is a new one.
        assert_eq!(references.give(Target::Frame(1000)), 3);
        assert_eq!(references.children(9), Err(ReferenceError::Unknown(9)));
        assert_eq!(references.frame(0), Err(ReferenceError::Unknown(0)));
    }

    #[test]
    fn two_processes_never_hand_out_the_same_number() {
        let given = Arc::default();
        let mut one = References::counted_by(Arc::clone(&given));
        let mut other = References::counted_by(given);
        assert_eq!((one.give(Target::Frame(1)), other.give(Target::Frame(1))), (1, 2));
        assert_eq!((one.is_valid(1), one.is_valid(2), other.is_valid(2)), (true, false, true));
        assert_eq!((other.frame(2), other.frame(1)), (Ok(1), Err(ReferenceError::Stale(1))));
    }
}
