//! What a search finds. Every range is in bytes of the source that was searched.

use std::ops::Range;

/// One place in a file that a pattern matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The matched text.
    pub range: Range<usize>,
    /// What each `$NAME` and `$$$NAME` of the pattern stands for here, in the pattern's order. `$_`, `$$$` and names
    /// that begin with `_` bind nothing and are not listed.
    pub bindings: Vec<(String, Binding)>,
    /// Where the match is a whole statement (or member, item …), with at most its terminator beside it: the range of that
    /// statement, terminator included. `None` where the match is a part of something larger, or where the pattern
    /// can be no statement. Rewriting to nothing removes this range.
    pub statement: Option<Range<usize>>,
}

/// What a variable stands for at one match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// `$NAME`: one node.
    One(Range<usize>),
    /// `$$$NAME`: a run of siblings.
    Run {
        /// From the first element to the last, with the separators and comments between them. Empty, at the place where
        /// elements would be, where there are none.
        span: Range<usize>,
        /// The elements without the separators between them.
        elements: Vec<Range<usize>>,
        /// From the token before the run to the token behind it, where there is nothing else between but white space, comments and a
        /// last comma: what goes with the run where it is moved. Else the same as `span`.
        around: Range<usize>,
    },
}

impl Binding {
    /// The bytes that stand for the variable, as they are in the source.
    pub fn range(&self) -> Range<usize> {
        match self {
            Binding::One(range) => range.clone(),
            Binding::Run { span, .. } => span.clone(),
        }
    }
}

/// The answer of [`find`](crate::matcher::find).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// In order of their start; of two that start together the longer is first (a match may lie inside another).
    pub matches: Vec<Match>,
    /// Places where the pattern had so many ways to fit that the search gave up before it knew. Never silently: whoever
    /// shows the matches says this too (SPEC A10).
    pub gave_up: usize,
}
