//! From the parser's tree of a fragment to a [`Shape`].

use std::ops::Range;

use tree_sitter::{Node, TreeCursor};

use super::lex::{Hole, Lexed};
use super::shape::{Compare, Edges, Element, Token, What, is_closing};
use crate::languages::{Language, Rung};
use crate::limits;
use crate::tree::{self, Child, Kinds};

/// A pattern in its scaffold, as text and as the parser sees it.
pub(super) struct Scaffolded<'p> {
    pub(super) language: &'static Language,
    pub(super) grammar: &'p tree_sitter::Language,
    pub(super) kinds: &'p Kinds,
    pub(super) pattern: &'p str,
    pub(super) lexed: &'p Lexed,
    /// Prefix, fragment with the variables filled in, suffix.
    pub(super) text: String,
    /// The fragment's place in `text`.
    pub(super) fragment: Range<usize>,
    /// Where each variable of `lexed` stands in `text`, in order.
    pub(super) filled: Vec<Filled>,
}

/// What stands in a variable's place.
pub(super) struct Filled {
    pub(super) range: Range<usize>,
    /// The terminator behind it belongs to it.
    pub(super) takes_end: bool,
}

/// Why a tree without errors is still no reading of the fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Misfit {
    /// A node takes in a part of the fragment and a part of the scaffold.
    NotWhole,
    /// There is nothing but comments.
    OnlyComment,
    /// A variable's text was split up or joined to its neighbour.
    Broken,
    /// A block that the grammar lets be empty is.
    NoBody,
    TooLarge,
    OnlyRun,
}

/// What the tree of a fragment comes to.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) roots: Vec<Element>,
    /// Kinds of the nodes that are just the fragment, outermost first; of all siblings for a sequence.
    pub(super) outermost: Vec<String>,
    /// Kinds that a statement of this shape stands directly in.
    pub(super) holders: Vec<u16>,
    /// The declaration-like kinds, for joining readings.
    pub(super) declaration: bool,
    /// Keywords of the language that were taken for names (`if (a) {}` for an enum constant called `if`). It happens where
    /// the keyword cannot stand; a reading without it is the better one.
    pub(super) misnamed: usize,
    /// The fragment is one node, not a sequence of siblings.
    pub(super) single: bool,
    /// It is nothing but a variable.
    pub(super) bare: bool,
    pub(super) warnings: Vec<String>,
    /// The forms that the variables had.
    pub(super) choice: Vec<usize>,
}

impl Built {
    /// Whether it is one of these kinds, or nothing but such.
    pub(super) fn fits(&self, kinds: &[&str]) -> bool {
        let is_one = |kind: &String| kinds.contains(&kind.as_str());
        if self.single {
            self.outermost.iter().any(is_one)
        } else {
            !self.outermost.is_empty() && self.outermost.iter().all(is_one)
        }
    }
}

impl Scaffolded<'_> {
    fn source(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// What a range of the scaffolded text was in the pattern: variables are put back.
    fn original(&self, range: Range<usize>) -> String {
        let mut out = String::new();
        let mut at = range.start;
        for (hole, filled) in self.holes() {
            if filled.end <= range.start || filled.start >= range.end {
                continue;
            }
            out.push_str(self.text.get(at..filled.start).unwrap_or_default());
            out.push_str(self.pattern.get(hole.start..hole.end).unwrap_or_default());
            at = filled.end;
        }
        out.push_str(self.text.get(at..range.end.max(at)).unwrap_or_default());
        out
    }

    /// The byte of the pattern that a byte of the scaffolded text comes from; within a variable, its start.
    pub(super) fn in_pattern(&self, at: usize) -> usize {
        let mut text = self.fragment.start;
        let mut pattern = 0;
        for (hole, filled) in self.holes() {
            if at < filled.start {
                break;
            }
            if at < filled.end {
                return hole.start;
            }
            (text, pattern) = (filled.end, hole.end);
        }
        (pattern + at.saturating_sub(text)).min(self.pattern.len())
    }

    /// The variables and where each stands in `text`.
    fn holes(&self) -> impl Iterator<Item = (&Hole, &Range<usize>)> {
        self.lexed.holes.iter().zip(self.filled.iter().map(|filled| &filled.range))
    }

    fn hole(&self, range: &Range<usize>) -> Option<&Hole> {
        self.holes().find_map(|(hole, filled)| (filled == range).then_some(hole))
    }

    /// The variable whose text is all of a range but the terminator at its end, where that belongs to it.
    fn ended_hole(&self, range: &Range<usize>) -> Option<&Hole> {
        let at = self.filled.iter().position(|filled| {
            let rest = self.text.get(filled.range.end..range.end).map(str::trim_ascii);
            filled.takes_end && filled.range.start == range.start && rest == Some(";")
        })?;
        self.lexed.holes.get(at)
    }

    /// Whether a block in the fragment is not there. Some grammars let it be empty and take what follows for something else.
    fn lacks_body(&self, cursor: &mut TreeCursor<'_>) -> bool {
        loop {
            let node = cursor.node();
            let inside = self.fragment.start <= node.end_byte() && node.start_byte() <= self.fragment.end;
            if inside && node.start_byte() == node.end_byte() && node.kind() == "block" {
                return true;
            }
            if inside && cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return false;
                }
            }
        }
    }

    /// Reads the tree. It holds no error.
    pub(super) fn read(&self, tree: &tree_sitter::Tree, rung: &Rung) -> Result<Built, Misfit> {
        let root = tree.root_node();
        let mut cursor = root.walk();
        if self.lacks_body(&mut cursor) {
            return Err(Misfit::NoBody);
        }
        let mut wanted = self.fragment.clone();
        // From the root down to the innermost node that is just the fragment.
        let mut parents: Vec<Node> = Vec::new();
        let mut chain: Vec<Child> = Vec::new();
        let mut node = root;
        let siblings = loop {
            let mut kids = Vec::new();
            tree::children(&mut cursor, node, self.source(), self.kinds, &mut kids);
            kids.retain(|k| k.start < wanted.end && k.end > wanted.start);
            let Some((first, last)) = kids.first().zip(kids.last()) else {
                if chain.is_empty() {
                    return Err(Misfit::OnlyComment);
                }
                break kids;
            };
            if first.start >= wanted.start && last.end <= wanted.end {
                // Comments at the fragment's ends belong to no node that counts.
                wanted = first.start..last.end;
            }
            let [only] = kids.as_slice() else {
                break kids;
            };
            let covers = only.start <= wanted.start && only.end >= wanted.end;
            if !covers {
                return Err(Misfit::NotWhole);
            }
            let just = only.start == wanted.start && only.end == wanted.end;
            if just && (only.named || chain.is_empty()) {
                if chain.is_empty() {
                    parents.push(node);
                }
                chain.push(*only);
                if only.leaf || !only.named || self.hole(&wanted).is_some() {
                    break kids;
                }
            } else if just {
                break kids;
            } else {
                parents.push(node);
                if only.leaf {
                    return Err(Misfit::NotWhole);
                }
            }
            node = only.node;
        };

        let mut build = Build {
            scaffold: self,
            cursor,
            depth: 0,
            elements: 0,
            misnamed: 0,
            warnings: Vec::new(),
            loose: false,
        };
        let (roots, outermost) = if let Some(outer) = chain.first() {
            let inner = chain.last().unwrap_or(outer);
            let element = build.element(inner)?;
            let names = chain.iter().map(|c| c.node.kind().to_owned()).collect();
            (element.into_iter().map(|e| Element { field: None, ..e }).collect::<Vec<_>>(), names)
        } else {
            if siblings.iter().any(|s| s.start < wanted.start || s.end > wanted.end) {
                return Err(Misfit::NotWhole);
            }
            // Go's grammar takes `Name string $TAG` for two variables, with nothing between.
            let joined = |pair: &[Child]| match pair {
                [one, other] => {
                    let between = self.text.get(one.end..other.start).unwrap_or_default();
                    let is_node = self.hole(&(other.start..other.end)).is_some_and(|hole| !hole.is_run);
                    is_node && one.named && !between.contains([';', '\n'])
                }
                _ => false,
            };
            if rung.statement && self.kinds.soft_semicolons && siblings.windows(2).any(joined) {
                return Err(Misfit::Broken);
            }
            let names = siblings.iter().filter(|s| s.named).map(|s| s.node.kind().to_owned()).collect();
            (build.elements(&siblings)?, names)
        };
        let mut roots = if rung.completes { without_terminator(roots)? } else { roots };
        // `struct $S { $$$F };` is a whole declaration, and no part of `typedef struct s { … } t;`.
        if let Some(Element { what: What::Token(token), .. }) = roots.last_mut()
            && *token.text == *b";"
        {
            token.trailing = false;
        }
        if roots.iter().all(Element::is_run) {
            return Err(Misfit::OnlyRun);
        }
        let (warnings, misnamed) = (std::mem::take(&mut build.warnings), build.misnamed);
        let holders = if rung.statement { self.holders(&wanted, &parents, root) } else { Vec::new() };
        let declaration = chain.iter().chain(&siblings).any(|c| c.named && is_declaration(c.node.kind()));
        let bare = matches!(roots.as_slice(), [Element { what: What::Any { .. }, .. }]);
        Ok(Built {
            roots,
            outermost,
            holders,
            declaration,
            misnamed,
            single: !chain.is_empty(),
            bare,
            warnings,
            choice: Vec::new(),
        })
    }

    /// The node that a statement of this shape stands in, and the root, where statements stand as well.
    fn holders(&self, fragment: &Range<usize>, parents: &[Node], root: Node) -> Vec<u16> {
        let mut top = fragment.clone();
        let mut holders = vec![root.kind_id()];
        for parent in parents.iter().rev() {
            let holds = self.kinds.is_holder(parent.kind_id()) || parent.id() == root.id();
            if !holds && tree::only_terminated(&top, &parent.byte_range(), self.source()) {
                top = parent.byte_range();
                continue;
            }
            holders.push(parent.kind_id());
            break;
        }
        holders.sort_unstable();
        holders.dedup();
        holders
    }
}

/// Whether a kind's name says that something is declared.
fn is_declaration(kind: &str) -> bool {
    let says = [
        "declaration",
        "definition",
        "signature",
        "_item",
        "method",
        "constructor",
        "local_function",
        "class_member",
    ];
    says.iter().any(|word| kind.contains(word))
        && !kind.contains("call")
        && !kind.contains("expression")
        && !kind.contains("invocation")
}

struct Build<'s, 'p, 't> {
    scaffold: &'s Scaffolded<'p>,
    cursor: TreeCursor<'t>,
    depth: usize,
    elements: usize,
    misnamed: usize,
    warnings: Vec<String>,
    /// The elements are loose tokens.
    loose: bool,
}

impl<'t> Build<'_, '_, 't> {
    fn element(&mut self, child: &Child<'t>) -> Result<Option<Element>, Misfit> {
        self.elements += 1;
        if self.elements > limits::PATTERN_ELEMENTS || self.depth > limits::PATTERN_DEPTH {
            return Err(Misfit::TooLarge);
        }
        let range = child.start..child.end;
        let ended = self.scaffold.ended_hole(&range);
        if let Some(hole) = self.scaffold.hole(&range).or(ended) {
            let variable = hole.variable;
            let what = if hole.is_run {
                let edges = Edges { lead: hole.lead.map(|lead| lead.word), ended: ended.is_some() };
                What::Run { variable, lists: self.lists(child), edges }
            } else {
                What::Any { variable, loose: self.loose, ended: ended.is_some() }
            };
            return Ok(Some(Element { field: child.field, what }));
        }
        if self.scaffold.holes().any(|(_, f)| f.start <= child.start && child.end <= f.end) {
            return Err(Misfit::Broken);
        }
        if child.leaf {
            return Ok(Some(Element { field: child.field, what: What::Token(self.token(child)) }));
        }
        let mut kids = Vec::new();
        tree::children(&mut self.cursor, child.node, self.scaffold.source(), self.scaffold.kinds, &mut kids);
        self.depth += 1;
        let outer = self.loose;
        self.loose = self.scaffold.language.traits.loose_trees.contains(&child.node.kind());
        let mut children = self.elements(&kids)?;
        self.loose = outer;
        self.depth -= 1;
        // `$$$BODY;` where statements stand is a run of statements, not one statement.
        let only_run = matches!(children.as_slice(), [run, end] if run.is_run() && end.token().is_some_and(|t| t.trailing));
        if only_run && let Some(mut run) = children.drain(..).next() {
            run.field = child.field;
            return Ok(Some(run));
        }
        Ok(Some(Element { field: child.field, what: What::Inner { kind: child.kind, children } }))
    }

    fn elements(&mut self, kids: &[Child<'t>]) -> Result<Vec<Element>, Misfit> {
        let mut elements = Vec::with_capacity(kids.len());
        for kid in kids {
            elements.extend(self.element(kid)?);
        }
        mark_trailing(&mut elements);
        Ok(elements)
    }

    /// The list nodes between a hole's outermost node and its identifier.
    fn lists(&mut self, outer: &Child<'t>) -> Vec<u16> {
        let mut lists = Vec::new();
        let mut node = *outer;
        let mut kids = Vec::new();
        while !node.leaf {
            if self.scaffold.kinds.is_list(node.kind) {
                lists.push(node.kind);
            }
            kids.clear();
            tree::children(
                &mut self.cursor,
                node.node,
                self.scaffold.source(),
                self.scaffold.kinds,
                &mut kids,
            );
            let [only] = kids.as_slice() else { break };
            node = *only;
        }
        lists
    }

    fn token(&mut self, child: &Child<'t>) -> Token {
        let scaffold = self.scaffold;
        let range = child.start..child.end;
        let holed = scaffold.holes().any(|(_, f)| f.start < range.end && f.end > range.start);
        let text = scaffold.original(range);
        if holed {
            let warning = format!("the variable in `{text}` is literal text: it is only a part of a token");
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        // `int` in PHP's `(int) $a` is a keyword in its place.
        let names = child.named && child.node.kind() != "cast_type";
        if names && text.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_') {
            self.misnamed += usize::from(scaffold.grammar.id_for_node_kind(&text, false) != 0);
        }
        let any_case = scaffold.language.traits.keywords_any_case;
        let kind_name = scaffold.grammar.node_kind_for_id(child.kind).unwrap_or_default();
        let wordy = text.bytes().any(|b| b.is_ascii_alphabetic());
        let compare = if child.kind == super::shape::GAP {
            Compare::Exact
        } else if child.named {
            if any_case && kind_name.starts_with("keyword") {
                Compare::AnyCase
            } else if scaffold.kinds.is_loose(child.kind) {
                Compare::Trimmed
            } else {
                Compare::Exact
            }
        } else if any_case && wordy {
            Compare::AnyCase
        } else if kind_name == text {
            Compare::Pieces
        } else {
            Compare::Exact
        };
        Token {
            kind: child.kind,
            text: text.into_bytes().into(),
            named: child.named,
            compare,
            trailing: false,
        }
    }
}

/// Takes out the terminator that the rung added, and with it the node that is nothing more than an expression and its terminator.
fn without_terminator(mut roots: Vec<Element>) -> Result<Vec<Element>, Misfit> {
    let single = roots.len() == 1;
    let Some(last) = roots.last_mut() else { return Ok(roots) };
    if last.is_separator() {
        roots.pop();
        return Ok(roots);
    }
    let What::Inner { children, .. } = &mut last.what else { return Err(Misfit::NotWhole) };
    if !drop_terminator(children) {
        return Err(Misfit::NotWhole);
    }
    if single && children.len() == 1 {
        let only = children.pop();
        return Ok(only.into_iter().map(|e| Element { field: None, ..e }).collect());
    }
    Ok(roots)
}

/// The terminator belongs to the last node at some depth: `if (a) b();`.
fn drop_terminator(children: &mut Vec<Element>) -> bool {
    match children.last_mut() {
        Some(last) if last.is_separator() => {
            children.pop();
            true
        }
        Some(Element { what, .. }) => {
            let What::Inner { children, .. } = what else { return false };
            if !drop_terminator(children) {
                return false;
            }
            // `if ($A) $B`: any statement, not only one that is an expression.
            if let [Element { what: What::Any { .. } | What::Run { .. }, .. }] = children.as_slice()
                && let Some(variable) = children.pop()
            {
                *what = variable.what;
            }
            true
        }
        None => false,
    }
}

/// Marks separators that stand behind the last element of a list, where a file may lack them.
fn mark_trailing(elements: &mut [Element]) {
    for at in 1..elements.len() {
        let before_ok = elements.get(at - 1).is_some_and(|e| {
            !e.is_separator() && e.token().is_none_or(|t| t.named || !super::shape::is_opening(&t.text))
        });
        let last = elements
            .get(at + 1)
            .is_none_or(|next| next.token().is_some_and(|t| !t.named && is_closing(&t.text)));
        if before_ok
            && last
            && let Some(Element { what: What::Token(token), .. }) = elements.get_mut(at)
        {
            token.trailing = super::shape::is_separator(&token.text);
        }
    }
}

/// The parts of a token between which the parser takes white space: `not in`, `# define`.
pub(crate) fn pieces(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_ascii_start();
        let mut end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        if matches!(rest, [b'#', b'a'..=b'z', ..] | [b'`', b'`'] | [b'[', b']']) {
            end = 1;
        }
        let (piece, behind) = rest.split_at(end);
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}
