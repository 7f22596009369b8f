//! Why a pattern cannot be searched for, in words for the model.

use thiserror::Error;

use crate::limits;

/// Why a pattern cannot be searched for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatternError {
    /// There is no text.
    #[error("the pattern is empty")]
    Empty,
    /// It is longer or deeper than a fragment.
    #[error(
        "the pattern is too large: at most {} bytes, {} nodes and {} levels are taken; search for a part of it",
        limits::PATTERN_BYTES,
        limits::PATTERN_ELEMENTS,
        limits::PATTERN_DEPTH
    )]
    TooLarge,
    /// `$$$` alone, which is everything and nothing.
    #[error("a pattern of nothing but `$$$` says nothing to look for; put something that is there beside it")]
    OnlyRun,
    /// One name for two kinds of variable.
    #[error(
        "`{name}` is used both as `${name}` (one node) and as `$$${name}` (a run); give them different names"
    )]
    BothKinds {
        /// The name without dollar signs.
        name: String,
    },
    /// The grammar could not be loaded; a fault of the build.
    #[error("the {language} grammar could not be loaded: {why}")]
    Grammar {
        /// The language's id.
        language: &'static str,
        /// What tree-sitter said.
        why: String,
    },
    /// No context accepts it.
    #[error("{0}")]
    Unparseable(Box<Unparseable>),
}

/// What the parser said about a pattern that no context accepts.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "this is not {language}: read as {rung}, line {line}, column {column} of the pattern: {said}. Contexts tried: {}",
    tried.join(", ")
)]
pub struct Unparseable {
    /// The language's id.
    pub language: &'static str,
    /// The context in which the parser came furthest.
    pub rung: &'static str,
    /// Where in the pattern it stopped, from 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What it said there.
    pub said: String,
    /// Every context that was tried, in order.
    pub tried: Vec<&'static str>,
}
