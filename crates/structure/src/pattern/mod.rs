//! From the text of a pattern to something that can be searched for.
//!
//! A pattern is a fragment of the language with `$NAME` and `$$$NAME` in it (SPEC A1). It is put, with identifiers in the
//! variables' places, into one scaffold after another (the language's rungs), and read by the language's own parser. The
//! first scaffold in which the fragment is whole and without error gives the reading; every other one that gives a different
//! shape is kept too, for a search that finds nothing (SPEC A4).

pub(crate) mod build;
mod error;
mod ladder;
mod lex;
pub(crate) mod literals;
#[cfg(test)]
mod rungs;
pub(crate) mod shape;

use std::sync::Arc;

use crate::languages::Language;
use crate::tree::Kinds;
pub use error::{PatternError, Unparseable};
use shape::Shape;

/// A pattern that at least one context accepts.
#[derive(Debug)]
pub struct Compiled {
    /// The language it was compiled for.
    pub language: &'static Language,
    /// What it can mean: the first acceptor's reading first (that is the one to search), then those of the other contexts that
    /// accept it with a different shape. Never empty.
    pub readings: Vec<Reading>,
    /// What a reader should know about the pattern, in words: `$lower` is literal text, and the like. Worth showing when
    /// nothing is found.
    pub warnings: Vec<String>,
}

/// One meaning of a pattern.
#[derive(Debug)]
pub struct Reading {
    rung: String,
    pub(crate) shapes: Vec<Shape>,
    literals: Vec<Box<[u8]>>,
    /// Per shape, tokens that stand side by side in every file in which it matches. Empty: nothing can be said.
    chains: Vec<Vec<literals::Chain>>,
    statement: bool,
    pub(crate) variables: Vec<Variable>,
    pub(crate) kinds: Arc<Kinds>,
}

/// A variable of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Without its dollar signs.
    pub name: String,
    /// `$$$NAME`.
    pub is_run: bool,
    /// It occurs more than once.
    pub(crate) repeated: bool,
}

impl Reading {
    /// The context it was read in (`statement`, `match arm`); several joined by ` or ` where a declaration means the same in
    /// each of them.
    pub fn rung(&self) -> &str {
        &self.rung
    }

    /// Byte strings that are in every file in which this reading matches, the longest first, each once. A file that lacks one need
    /// not be parsed. They are single tokens, so white space and comments between tokens cannot make this wrong. May be empty.
    pub fn literals(&self) -> &[Box<[u8]>] {
        &self.literals
    }

    /// Whether a file of these bytes can hold a match: every token is there, and those that nothing can stand between follow one
    /// another with only white space or what could be a comment between. `false` is certain, `true` is not.
    pub fn may_match_in(&self, text: &[u8]) -> bool {
        literals::Sieve::of(self).sift(text) == literals::Sifted::Passes
    }

    /// Whether the pattern is a whole statement (or member, item …) in this reading.
    pub fn is_statement(&self) -> bool {
        self.statement
    }

    /// The variables that bind, in the order in which they first occur.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }
}

/// Compiles a pattern for a language.
///
/// # Errors
/// [`PatternError`] where no context accepts the pattern, or where it says nothing that could be searched for. Its text is
/// meant for the model.
pub fn compile(language: &'static Language, pattern: &str) -> Result<Compiled, PatternError> {
    ladder::climb(language, pattern)
}
