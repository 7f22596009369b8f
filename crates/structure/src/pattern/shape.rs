//! A compiled fragment: the tree that a place in a file must have.

use std::num::NonZeroU16;

/// The kind of text that belongs to a node but to none of its children; some grammars leave string contents or terminators
/// without a node. No grammar has that many kinds, and tree-sitter uses the last ones itself.
pub(crate) const GAP: u16 = u16::MAX - 7;

/// One way in which a fragment can stand in a file.
#[derive(Debug, PartialEq)]
pub(crate) struct Shape {
    /// The rung's name.
    pub(crate) rung: &'static str,
    /// One element, or several siblings that must stand one after the other.
    pub(crate) roots: Vec<Element>,
    /// Kinds of node that whole statements stand directly in. Empty where the fragment can be no statement.
    pub(crate) holders: Vec<u16>,
    /// `$$$` in it, which decides whether failures are worth remembering.
    pub(crate) runs: usize,
}

/// What one child must be.
#[derive(Debug, PartialEq)]
pub(crate) struct Element {
    /// The field it stands in, where the grammar names one.
    pub(crate) field: Option<NonZeroU16>,
    pub(crate) what: What,
}

#[derive(Debug, PartialEq)]
pub(crate) enum What {
    /// A leaf.
    Token(Token),
    /// A node with children, all of which are accounted for.
    Inner { kind: u16, children: Vec<Element> },
    /// `$NAME`. The index is into the reading's variables; `$_` has none.
    Any {
        variable: Option<usize>,
        /// Among loose tokens, where it stands for as many of them as there are up to a separator.
        loose: bool,
        /// It ends with a terminator, which is not bound.
        ended: bool,
    },
    /// `$$$NAME`.
    Run {
        variable: Option<usize>,
        /// Kinds of list node that stand for nothing but this run in the pattern: where exactly one of them fills the run's
        /// place, its children are the elements.
        lists: Vec<u16>,
        edges: Edges,
    },
}

/// What belongs to a run's nodes and not to what the variable stands for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Edges {
    /// The word that the first node begins with.
    pub(crate) lead: Option<&'static str>,
    /// The last node ends with a terminator.
    pub(crate) ended: bool,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: u16,
    pub(crate) text: Box<[u8]>,
    pub(crate) named: bool,
    pub(crate) compare: Compare,
    /// A `,` or `;` after the last element, which a file may lack.
    pub(crate) trailing: bool,
}

/// How a leaf's text is compared once its kind agrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compare {
    /// Sign by sign; between the words of `not in` and behind the `#` of `#define` there may be any white space.
    Pieces,
    Exact,
    AnyCase,
    /// Without the white space around it.
    Trimmed,
}

/// What a single character means in a list.
pub(crate) fn is_separator(text: &[u8]) -> bool {
    matches!(text, b"," | b";")
}

pub(crate) fn is_opening(text: &[u8]) -> bool {
    matches!(text, b"(" | b"[" | b"{" | b"<" | b"|" | b"${" | b"#{" | b"%{" | b"[|" | b"{|")
}

pub(crate) fn is_closing(text: &[u8]) -> bool {
    matches!(text, b")" | b"]" | b"}" | b">" | b"|" | b"|]" | b"|}" | b"end")
}

impl Element {
    pub(crate) fn token(&self) -> Option<&Token> {
        match &self.what {
            What::Token(token) => Some(token),
            _ => None,
        }
    }

    pub(crate) fn is_separator(&self) -> bool {
        self.token().is_some_and(|t| is_separator(&t.text))
    }

    pub(crate) fn is_run(&self) -> bool {
        matches!(self.what, What::Run { .. })
    }
}
