//! Finds the places in a file's tree that have a pattern's shape (SPEC A3).
//!
//! Every child of a node is accounted for on both sides. What may differ is white space, comments and a separator behind the
//! last element of a list. Nothing here recurses on the depth of the file.

mod fit;

use std::ops::Range;

use memchr::memmem;
use tree_sitter::{Node, Tree};

use crate::pattern::Reading;
use crate::pattern::shape::{Shape, What};
use crate::tree;
use crate::types::{Found, Match};
use fit::{Fit, Outcome};

/// Every place in a file that a reading matches, also those inside of other matches.
///
/// `tree` is what the language's parser made of exactly these bytes.
pub fn find(reading: &Reading, tree: &Tree, source: &[u8]) -> Found {
    let Some(anchors) = anchors(reading, source) else {
        return Found::default();
    };
    let mut found = Found::default();
    let mut fit = Fit::new(reading, tree, source);
    let mut cursor = tree.walk();
    // The nodes around the current one, outermost first.
    let mut around: Vec<Node> = Vec::new();
    loop {
        let node = cursor.node();
        if anchors.touch(&node.byte_range()) {
            for shape in &reading.shapes {
                visit(&mut fit, reading, shape, node, &around, source, &mut found);
            }
            if cursor.goto_first_child() {
                around.push(node);
                continue;
            }
        }
        let mut done = false;
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                done = true;
                break;
            }
            around.pop();
        }
        if done {
            break;
        }
    }
    found.matches.sort_by(|a, b| a.range.start.cmp(&b.range.start).then(b.range.end.cmp(&a.range.end)));
    // Two shapes of one reading may agree on a place.
    found.matches.dedup_by(|later, kept| later.range == kept.range);
    found
}

fn visit<'t>(
    fit: &mut Fit<'_, 't>,
    reading: &Reading,
    shape: &Shape,
    node: Node<'t>,
    around: &[Node<'t>],
    source: &[u8],
    found: &mut Found,
) {
    let [root] = shape.roots.as_slice() else {
        for outcome in fit.windows(shape, node) {
            let statement = statement(reading, shape, &outcome.range, around, Some(node), source);
            found.matches.push(Match { range: outcome.range, bindings: outcome.bindings, statement });
        }
        found.gave_up += fit.take_gave_up();
        return;
    };
    let may = match &root.what {
        What::Inner { kind, .. } => *kind == node.kind_id(),
        // A name alone is searched wherever it is a name: as a variable, a field, a type.
        What::Token(token) if reading.kinds.is_name(token.kind) => {
            let text = source.get(node.byte_range()).unwrap_or_default();
            if reading.kinds.is_name(node.kind_id()) && node.child_count() == 0 && *token.text == *text {
                let range = node.byte_range();
                let statement = statement(reading, shape, &range, around, None, source);
                found.matches.push(Match { range, bindings: Vec::new(), statement });
            }
            return;
        }
        What::Token(token) => token.kind == node.kind_id(),
        // Alone it is every node, which somebody may want.
        What::Any { .. } => {
            node.is_named() && !node.is_missing() && !node.is_error() && node.start_byte() < node.end_byte()
        }
        What::Run { .. } => false,
    };
    if !may {
        return;
    }
    if let Some(Outcome { range, bindings }) = fit.node(shape, root, node) {
        let statement =
            statement(reading, shape, &range, around, (node.byte_range() != range).then_some(node), source);
        found.matches.push(Match { range, bindings, statement });
    }
    found.gave_up += fit.take_gave_up();
}

/// The statement that a match is, with its terminator.
fn statement(
    reading: &Reading,
    shape: &Shape,
    range: &Range<usize>,
    around: &[Node],
    inner: Option<Node>,
    source: &[u8],
) -> Option<Range<usize>> {
    if shape.holders.is_empty() {
        return None;
    }
    let holds =
        |node: &Node| shape.holders.contains(&node.kind_id()) || reading.kinds.is_holder(node.kind_id());
    let mut top = range.clone();
    for outer in inner.iter().chain(around.iter().rev()) {
        let next = outer.byte_range();
        // A file of nothing but the statement is still a file.
        let is_root = around.first().is_none_or(|root| root.id() == outer.id());
        if !is_root && tree::only_terminated(&top, &next, source) && !holds(outer) {
            top = next;
            continue;
        }
        return holds(outer).then_some(top);
    }
    None
}

/// Where the rarest literal of a reading is: a match has each of them, so nodes without it need not be looked into.
enum Anchors {
    Everywhere,
    At { positions: Vec<usize>, length: usize },
}

impl Anchors {
    fn touch(&self, range: &Range<usize>) -> bool {
        match self {
            Anchors::Everywhere => true,
            Anchors::At { positions, length } => {
                let next = positions.partition_point(|at| *at < range.start);
                positions.get(next).is_some_and(|at| at + length <= range.end)
            }
        }
    }
}

/// `None` where a literal is absent, and with it every match.
fn anchors(reading: &Reading, source: &[u8]) -> Option<Anchors> {
    let mut best: Option<Anchors> = None;
    let mut fewest = usize::MAX;
    for literal in reading.literals() {
        // One character of punctuation is everywhere; it narrows nothing and costs a pass over the file.
        if literal.len() < 2 && best.is_some() {
            continue;
        }
        let finder = memmem::Finder::new(literal.as_ref());
        let positions: Vec<usize> = finder.find_iter(source).take(fewest).collect();
        if positions.is_empty() {
            return None;
        }
        if positions.len() < fewest {
            fewest = positions.len();
            best = Some(Anchors::At { positions, length: literal.len() });
        }
    }
    Some(best.unwrap_or(Anchors::Everywhere))
}
