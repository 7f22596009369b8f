//! How a syntax tree is looked at: the children that count, for patterns and for files alike.
//!
//! White space, comments and empty nodes do not count (SPEC A3). Text that the grammar gives no node of its own does: it
//! becomes a child of the kind [`GAP`], so that nothing of a node goes uncompared.

use std::num::NonZeroU16;
use std::ops::Range;

use tree_sitter::{Node, TreeCursor};

use crate::languages::Language;
use crate::pattern::shape::{GAP, is_opening, is_separator};

/// What is known about the kinds of node of one grammar.
#[derive(Debug)]
pub(crate) struct Kinds {
    flags: Vec<u8>,
    pub(crate) soft_semicolons: bool,
    /// The kinds of an argument that stands in the place of a list of arguments, and of the list.
    bare_argument: Option<(u16, u16)>,
    /// The grammar can hide any text behind a line break: here-documents, code that a directive switches off.
    pub(crate) hides_text: bool,
}

const COMMENT: u8 = 1;
const HEREDOC: u8 = 1 << 1;
const CLAUSE: u8 = 1 << 2;
const LOOSE: u8 = 1 << 3;
const BLANK: u8 = 1 << 4;
const LIST: u8 = 1 << 5;
const HOLDER: u8 = 1 << 6;
const NAME: u8 = 1 << 7;

/// Nodes that whole statements, members or items stand in, by their names' endings.
const HOLDERS: &[&str] = &[
    "block",
    "statements",
    "statement_list",
    "declaration_list",
    "class_body",
    "interface_body",
    "enum_body",
    "module_body",
    "template_body",
    "body_statement",
    "block_body",
    "suite",
    "compound_statement",
    "do_group",
    "do_block",
    "then",
    "else",
    "object_type",
];

/// Clauses that follow a list of statements with no bracket between them. A `$$$` that stands for the statements must not take
/// them in: a pattern without `else` does not match a statement with one (SPEC A3).
const CLAUSES: &[&str] = &[
    "else_clause",
    "elif_clause",
    "elseif_clause",
    "else_if_clause",
    "elsif_clause",
    "except_clause",
    "except_group_clause",
    "finally_clause",
    "catch_clause",
    "else_block",
    "rescue_block",
    "catch_block",
    "after_block",
    "finally_block",
    "rescue",
    "ensure",
    "elsif",
    "else",
    "else_statement",
    "elseif_statement",
    "elif_statement",
    "else_branch",
    "else_if_branch",
];

/// Whether a kind is a comment by its name. SQL has the keyword and the statement `COMMENT` beside them.
pub(crate) fn is_comment(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("comment") && !name.starts_with("keyword_")
}

impl Kinds {
    pub(crate) fn of(language: &Language, grammar: &tree_sitter::Language) -> Kinds {
        let traits = &language.traits;
        let flags = (0..grammar.node_kind_count())
            .map(|id| {
                let id = id as u16;
                let Some(name) = grammar.node_kind_for_id(id) else { return 0 };
                let named = grammar.node_kind_is_named(id);
                let mut flags = 0;
                if named && is_comment(name) {
                    flags |= COMMENT;
                }
                if name.contains("heredoc") {
                    flags |= HEREDOC;
                }
                if named && (CLAUSES.contains(&name) || traits.clauses.contains(&name)) {
                    flags |= CLAUSE;
                }
                if traits.loose_leaves.contains(&name) {
                    flags |= LOOSE;
                }
                if (!named && name.trim().is_empty()) || matches!(name, "newline" | "new_line" | "line_break")
                {
                    flags |= BLANK;
                }
                if named
                    && (name.contains("identifier")
                        || matches!(name, "name" | "constant" | "word" | "property_name"))
                {
                    flags |= NAME;
                }
                let list = [
                    "list",
                    "block",
                    "body",
                    "statements",
                    "arguments",
                    "parameters",
                    "suite",
                    "sequence",
                    "then",
                ];
                if named
                    && HOLDERS
                        .iter()
                        .any(|end| name == *end || name.strip_suffix(end).is_some_and(|n| n.ends_with('_')))
                {
                    flags |= HOLDER;
                }
                if named && list.iter().any(|word| name.contains(word)) {
                    flags |= LIST;
                }
                flags
            })
            .collect();
        let hides = |name: &str| name.contains("heredoc") || name == "preproc_inactive";
        let hides_text =
            (0..grammar.node_kind_count()).any(|id| grammar.node_kind_for_id(id as u16).is_some_and(hides));
        let kind = |name| grammar.id_for_node_kind(name, true);
        let bare_argument = traits.bare_argument.map(|(argument, list)| (kind(argument), kind(list)));
        Kinds { flags, soft_semicolons: traits.soft_semicolons, bare_argument, hides_text }
    }

    /// Whether a node of the kind `argument` can stand where a `list` of arguments does, as its only one.
    pub(crate) fn is_bare_argument(&self, argument: u16, list: u16) -> bool {
        self.bare_argument == Some((argument, list))
    }

    fn has(&self, kind: u16, flag: u8) -> bool {
        self.flags.get(usize::from(kind)).is_some_and(|flags| flags & flag != 0)
    }

    pub(crate) fn is_clause(&self, kind: u16) -> bool {
        self.has(kind, CLAUSE)
    }

    pub(crate) fn is_loose(&self, kind: u16) -> bool {
        self.has(kind, LOOSE)
    }

    /// A leaf that is a name, whatever it names.
    pub(crate) fn is_name(&self, kind: u16) -> bool {
        self.has(kind, NAME)
    }

    /// A node that statements stand in.
    pub(crate) fn is_holder(&self, kind: u16) -> bool {
        self.has(kind, HOLDER)
    }

    /// A node that is nothing but a list of others.
    pub(crate) fn is_list(&self, kind: u16) -> bool {
        self.has(kind, LIST)
    }
}

/// A child that counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Child<'t> {
    /// The node itself; for a [`GAP`] the node whose text it is.
    pub(crate) node: Node<'t>,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: u16,
    pub(crate) field: Option<NonZeroU16>,
    pub(crate) named: bool,
    pub(crate) leaf: bool,
    /// May stand anywhere without meaning for its neighbours (a here-document's body).
    pub(crate) stray: bool,
}

impl<'t> Child<'t> {
    pub(crate) fn of(node: Node<'t>, field: Option<NonZeroU16>, source: &[u8]) -> Child<'t> {
        let leaf = node.child_count() == 0;
        let start = node.start_byte();
        let mut end = node.end_byte();
        // Some grammars put the line break into the node (`#define`, Markdown), or the blank before a `|` (PowerShell); it is no part of
        // what a reader would select.
        if !leaf && matches!(source.get(end.wrapping_sub(1)), Some(b'\n' | b' ' | b'\t')) {
            let text = source.get(start..end).unwrap_or_default();
            end = start + text.trim_ascii_end().len();
        }
        Child { node, start, end, kind: node.kind_id(), field, named: node.is_named(), leaf, stray: false }
    }

    pub(crate) fn text<'s>(&self, source: &'s [u8]) -> &'s [u8] {
        source.get(self.start..self.end).unwrap_or_default()
    }

    pub(crate) fn is_separator(&self, source: &[u8]) -> bool {
        self.leaf && self.end - self.start == 1 && is_separator(self.text(source))
    }

    pub(crate) fn is_opening(&self, source: &[u8]) -> bool {
        self.leaf && !self.named && is_opening(self.text(source))
    }
}

/// Appends the children of `node` that count to `into`.
pub(crate) fn children<'t>(
    cursor: &mut TreeCursor<'t>,
    node: Node<'t>,
    source: &[u8],
    kinds: &Kinds,
    into: &mut Vec<Child<'t>>,
) {
    cursor.reset(node);
    if !cursor.goto_first_child() {
        return;
    }
    let mut reached = node.start_byte();
    loop {
        let child = cursor.node();
        let start = child.start_byte();
        gap(node, reached, start, source, kinds, into);
        let end = child.end_byte();
        reached = reached.max(end);
        let kind = child.kind_id();
        let heredoc = kinds.has(kind, HEREDOC);
        let extra = child.is_extra() && !child.is_error();
        let skipped = start == end
            || kinds.has(kind, COMMENT | BLANK)
            || (extra && !heredoc)
            || (kinds.has(kind, LOOSE) && is_blank(source.get(start..end).unwrap_or_default()))
            || (kinds.soft_semicolons && end - start == 1 && source.get(start) == Some(&b';'));
        if !skipped {
            into.push(Child { stray: extra, ..Child::of(child, cursor.field_id(), source) });
        }
        if !cursor.goto_next_sibling() {
            break;
        }
    }
    gap(node, reached, node.end_byte(), source, kinds, into);
}

/// Whether a range between two children of `node` holds nothing but white space, comments and one separator.
pub(crate) fn only_comments<'t>(
    cursor: &mut TreeCursor<'t>,
    node: Node<'t>,
    within: Range<usize>,
    source: &[u8],
    kinds: &Kinds,
) -> bool {
    cursor.reset(node);
    let mut there = cursor.goto_first_child();
    let mut rest = Vec::new();
    let mut at = within.start;
    while there {
        let child = cursor.node();
        let range = child.byte_range();
        if range.start >= within.end {
            break;
        }
        // Some grammars put the line break into the comment.
        if range.start >= at && kinds.has(child.kind_id(), COMMENT) {
            rest.extend_from_slice(source.get(at..range.start).unwrap_or_default());
            at = range.end.min(within.end);
        }
        there = cursor.goto_next_sibling();
    }
    rest.extend_from_slice(source.get(at..within.end).unwrap_or_default());
    let rest = rest.trim_ascii();
    rest.is_empty() || is_separator(rest)
}

fn gap<'t>(node: Node<'t>, from: usize, to: usize, source: &[u8], kinds: &Kinds, into: &mut Vec<Child<'t>>) {
    let Some(text) = source.get(from..to) else { return };
    if is_blank(text) {
        return;
    }
    let blank = |b: &u8| b.is_ascii_whitespace();
    let head = text.iter().take_while(|b| blank(b)).count();
    let tail = text.iter().rev().take_while(|b| blank(b)).count();
    let (start, end) = (from + head, to - tail);
    if kinds.soft_semicolons && source.get(start..end) == Some(b";") {
        return;
    }
    into.push(Child { node, start, end, kind: GAP, field: None, named: false, leaf: true, stray: false });
}

/// White space, with line continuations (also PowerShell's), Unicode's spaces and a byte order mark counted as such. It is asked
/// only of text that the parser took for no token.
fn is_blank(text: &[u8]) -> bool {
    let mut i = 0;
    while let Some(byte) = text.get(i) {
        i += match byte {
            b if b.is_ascii_whitespace() || *b == 0x0b => 1,
            b'\\' | b'`' if matches!(text.get(i + 1), Some(b'\n' | b'\r')) => 2,
            0x80.. => match wide_space(text.get(i..).unwrap_or_default()) {
                Some(length) => length,
                None => return false,
            },
            _ => return false,
        };
    }
    true
}

/// The length of the space outside of ASCII that a text begins with.
fn wide_space(text: &[u8]) -> Option<usize> {
    let length =
        [2, 3].into_iter().find(|length| text.get(..*length).is_some_and(|c| str::from_utf8(c).is_ok()))?;
    let space = str::from_utf8(text.get(..length)?).ok()?.chars().next()?;
    (space.is_whitespace() || matches!(space, '\u{feff}' | '\u{2060}' | '\u{200b}')).then_some(length)
}

/// Whether two texts are the same token by token: white space and comments between tokens do not count (SPEC A1).
pub(crate) fn same_tokens<'t>(a: &[Child<'t>], b: &[Child<'t>], source: &[u8], kinds: &Kinds) -> bool {
    let span = |list: &[Child]| match (list.first(), list.last()) {
        (Some(first), Some(last)) => source.get(first.start..last.end).unwrap_or_default(),
        _ => &[],
    };
    if span(a) == span(b) {
        return true;
    }
    let (Some(first), Some(_)) = (a.first(), b.first()) else { return false };
    let mut cursor = first.node.walk();
    let mut left = Tokens::new(a);
    let mut right = Tokens::new(b);
    loop {
        let l = left.next(&mut cursor, source, kinds);
        let r = right.next(&mut cursor, source, kinds);
        match (l, r) {
            (None, None) => return true,
            (Some(l), Some(r)) if l.text(source) == r.text(source) => {}
            _ => return false,
        }
    }
}

/// The leaves below some nodes, in order. Its own stack, so that no file is too deep for it.
struct Tokens<'t> {
    /// The next one is last.
    stack: Vec<Child<'t>>,
    scratch: Vec<Child<'t>>,
}

impl<'t> Tokens<'t> {
    fn new(nodes: &[Child<'t>]) -> Tokens<'t> {
        Tokens { stack: nodes.iter().rev().copied().collect(), scratch: Vec::new() }
    }

    fn next(&mut self, cursor: &mut TreeCursor<'t>, source: &[u8], kinds: &Kinds) -> Option<Child<'t>> {
        loop {
            let child = self.stack.pop()?;
            if child.leaf {
                return Some(child);
            }
            self.scratch.clear();
            children(cursor, child.node, source, kinds, &mut self.scratch);
            self.stack.extend(self.scratch.iter().rev());
        }
    }
}

/// Whether `outer` is `inner` with at most a terminator behind it.
pub(crate) fn only_terminated(inner: &Range<usize>, outer: &Range<usize>, source: &[u8]) -> bool {
    inner.start == outer.start
        && source.get(inner.end..outer.end).is_some_and(|rest| {
            let rest = rest.trim_ascii();
            rest.is_empty() || rest == b";"
        })
}
