//! Whether one place of a file has a shape, and what the variables then stand for.
//!
//! Lists are matched with backtracking, by continuation: what is left to match after a node's children is a linked list on
//! the stack. The recursion goes one level per element of the *pattern*, whose number is bounded; the file's size and depth
//! only show in loops.

use std::collections::HashSet;
use std::ops::Range;

use tree_sitter::{Node, Tree, TreeCursor};

use crate::limits;
use crate::pattern::build;
use crate::pattern::shape::{Compare, Edges, Element, GAP, Shape, Token, What, is_closing, is_separator};
use crate::pattern::{Reading, Variable};
use crate::tree::{self, Child, Kinds};
use crate::types::Binding;

/// A match, before it is known whether it is a statement.
pub(super) struct Outcome {
    pub(super) range: Range<usize>,
    pub(super) bindings: Vec<(String, Binding)>,
}

/// Children of one node, in the arena.
#[derive(Debug, Clone, Copy)]
struct List {
    start: usize,
    end: usize,
    /// Where the node begins: the place of a run in a node without children.
    origin: usize,
    finish: usize,
    /// Whether everything up to the end must be used up. A sequence of statements may go on.
    whole: bool,
}

/// What is still to be matched once a list is through.
struct Next<'n, 'p> {
    elements: &'p [Element],
    list: List,
    from: usize,
    then: Option<&'n Next<'n, 'p>>,
}

/// What a variable is bound to, as places in the arena.
#[derive(Debug, Clone, Copy)]
struct Bound {
    from: usize,
    to: usize,
    /// Where it would be, if empty.
    place: usize,
    /// For a run: the list node that stands for it, to be opened.
    open: bool,
    /// What belongs to the nodes and not to the variable.
    edges: Edges,
    /// For a run: the list it is a part of. Comments at its ends belong to it.
    list: Option<List>,
}

impl Bound {
    fn one(at: usize, place: usize, edges: Edges) -> Bound {
        Bound { from: at, to: at + 1, place, open: false, edges, list: None }
    }

    fn empty(at: usize, place: usize, list: List) -> Bound {
        Bound { from: at, to: at, place, open: false, edges: Edges::default(), list: Some(list) }
    }
}

pub(super) struct Fit<'r, 't> {
    source: &'r [u8],
    kinds: &'r Kinds,
    variables: &'r [Variable],
    repeats: bool,
    cursor: TreeCursor<'t>,
    arena: Vec<Child<'t>>,
    bound: Vec<Option<Bound>>,
    /// Element, its list and the place in it: failed before. Only where no name is repeated, else bindings matter too.
    failed: HashSet<(usize, usize, usize)>,
    remember: bool,
    steps: u64,
    gave_up: usize,
    /// Where the outermost list ended.
    reached: usize,
    /// The ends of the last text whose separator the pattern lacks: with the separator and without.
    unasked: Option<(usize, usize)>,
}

impl<'r, 't> Fit<'r, 't> {
    pub(super) fn new(reading: &'r Reading, tree: &'t Tree, source: &'r [u8]) -> Fit<'r, 't> {
        let variables = reading.variables();
        Fit {
            source,
            kinds: &reading.kinds,
            variables,
            repeats: variables.iter().any(|v| v.repeated),
            cursor: tree.walk(),
            arena: Vec::new(),
            bound: vec![None; variables.len()],
            failed: HashSet::new(),
            remember: false,
            steps: 0,
            gave_up: 0,
            reached: 0,
            unasked: None,
        }
    }

    pub(super) fn take_gave_up(&mut self) -> usize {
        std::mem::take(&mut self.gave_up)
    }

    fn begin(&mut self, shape: &Shape) {
        self.bound.fill(None);
        self.failed.clear();
        self.remember = shape.runs > 1 && !self.repeats;
        self.steps = 0;
        self.unasked = None;
    }

    /// Whether `node` is the shape's only root.
    pub(super) fn node(&mut self, shape: &Shape, root: &Element, node: Node<'t>) -> Option<Outcome> {
        self.begin(shape);
        self.arena.clear();
        self.arena.push(Child::of(node, None, self.source));
        let matched = match &root.what {
            // The outermost node is matched here and not as an element, since its own last separator may be left out of the match.
            What::Inner { children, .. } => {
                let list = self.open(node, true);
                self.list(children, list, list.start, None)
            }
            _ => {
                let list = List {
                    start: 0,
                    end: 1,
                    origin: node.start_byte(),
                    finish: node.end_byte(),
                    whole: true,
                };
                self.list(std::slice::from_ref(root), list, 0, None)
            }
        };
        self.give_up_said();
        matched.then(|| self.outcome(node.start_byte()))
    }

    /// Every place among the children of `node` where the shape's roots stand one after the other. Places do not overlap.
    pub(super) fn windows(&mut self, shape: &Shape, node: Node<'t>) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        let Some(first) = shape.roots.first() else { return outcomes };
        if node.child_count() < 2 {
            return outcomes;
        }
        self.arena.clear();
        let list = self.open(node, false);
        let mut from = list.start;
        while from < list.end {
            let plausible = match (&first.what, self.arena.get(from)) {
                (What::Inner { kind, .. }, Some(child)) => *kind == child.kind,
                (What::Token(token), Some(child)) => token.kind == child.kind,
                (_, Some(child)) => !child.is_separator(self.source),
                (_, None) => false,
            };
            let start = self.arena.get(from).map_or(0, |c| c.start);
            if plausible {
                self.begin(shape);
                self.arena.truncate(list.end);
                let matched = self.list(&shape.roots, list, from, None);
                self.give_up_said();
                if matched && self.reached > start {
                    let outcome = self.outcome(start);
                    let end = outcome.range.end;
                    outcomes.push(outcome);
                    while self.arena.get(from).is_some_and(|c| from < list.end && c.start < end) {
                        from += 1;
                    }
                    continue;
                }
            }
            from += 1;
        }
        outcomes
    }

    fn give_up_said(&mut self) {
        if self.steps > limits::MATCH_STEPS {
            self.gave_up += 1;
        }
    }

    fn open(&mut self, node: Node<'t>, whole: bool) -> List {
        let start = self.arena.len();
        tree::children(&mut self.cursor, node, self.source, self.kinds, &mut self.arena);
        List { start, end: self.arena.len(), origin: node.start_byte(), finish: node.end_byte(), whole }
    }

    /// An argument that brings its own brackets, as the list of arguments that it stands for: `(`, the argument, `)`.
    fn open_bare(&mut self, argument: &Child<'t>) -> Option<List> {
        let start = self.arena.len();
        let list = self.open(argument.node, true);
        let children = self.arena.get(list.start..list.end).unwrap_or_default();
        let (opening, rest) = children.split_first()?;
        let (closing, inner) = rest.split_last()?;
        let (first, last) = inner.first().zip(inner.last())?;
        let alone = Child { start: first.start, end: last.end, field: None, ..*argument };
        let shown = [*opening, alone, *closing];
        self.arena.truncate(start);
        self.arena.extend(shown);
        Some(List {
            start,
            end: start + shown.len(),
            origin: argument.start,
            finish: argument.end,
            whole: true,
        })
    }

    fn child(&self, at: usize) -> Option<Child<'t>> {
        self.arena.get(at).copied()
    }

    /// Whether `elements` fit the list from `from` on, and then whatever is next.
    fn list<'p>(
        &mut self,
        elements: &'p [Element],
        list: List,
        from: usize,
        then: Option<&Next<'_, 'p>>,
    ) -> bool {
        self.steps += 1;
        if self.steps > limits::MATCH_STEPS {
            return false;
        }
        let Some((element, rest)) = elements.split_first() else {
            return self.end(list, from, then);
        };
        let child = (from < list.end).then(|| self.child(from)).flatten();
        match &element.what {
            What::Run { .. } => self.run(element, rest, list, from, then),
            What::Token(token) => self.token(token, element, elements, list, from, child, then),
            What::Any { variable, loose: true, .. } => self.loose(*variable, rest, list, from, then),
            What::Any { variable, loose: false, ended } => {
                let Some(child) = child else { return false };
                let edges = Edges { ended: *ended, ..Edges::default() };
                let bound = Bound::one(from, child.start, edges);
                if self.is_any(element, &child)
                    && edges.fit(&child, &child, self.source)
                    && self.bind(*variable, bound, |fit| fit.list(rest, list, from + 1, then))
                {
                    return true;
                }
                child.stray && self.list(elements, list, from + 1, then)
            }
            What::Inner { kind, children } => {
                let Some(child) = child else { return false };
                if child.kind == *kind && fields_agree(element, &child) && !child.leaf {
                    let length = self.arena.len();
                    let inner = self.open(child.node, true);
                    let next = Next { elements: rest, list, from: from + 1, then };
                    if self.list(children, inner, inner.start, Some(&next)) {
                        return true;
                    }
                    self.arena.truncate(length);
                }
                if self.kinds.is_bare_argument(child.kind, *kind) && fields_agree(element, &child) {
                    let length = self.arena.len();
                    if let Some(inner) = self.open_bare(&child) {
                        let next = Next { elements: rest, list, from: from + 1, then };
                        if self.list(children, inner, inner.start, Some(&next)) {
                            return true;
                        }
                    }
                    self.arena.truncate(length);
                }
                child.stray && self.list(elements, list, from + 1, then)
            }
        }
    }

    /// The pattern's elements are used up; so must the file's be, apart from one separator behind the last.
    fn end(&mut self, list: List, from: usize, then: Option<&Next<'_, '_>>) -> bool {
        let mut at = from;
        if list.whole {
            while at < list.end && self.child(at).is_some_and(|c| c.stray) {
                at += 1;
            }
            if at + 1 == list.end && self.is_trailing(list, at) {
                let ends = |i: usize| self.child(i).map(|c| c.end);
                self.unasked = ends(at).zip(at.checked_sub(1).and_then(ends));
                at += 1;
            }
            if at != list.end {
                return false;
            }
        }
        match then {
            Some(next) => self.list(next.elements, next.list, next.from, next.then),
            None => {
                self.reached = from
                    .checked_sub(1)
                    .filter(|last| *last >= list.start)
                    .and_then(|last| self.child(last))
                    .map_or(list.origin, |c| c.end);
                true
            }
        }
    }

    /// A separator that has an element before it.
    fn is_trailing(&self, list: List, at: usize) -> bool {
        let separator = self.child(at).is_some_and(|c| c.is_separator(self.source));
        let before = at.checked_sub(1).filter(|b| *b >= list.start).and_then(|b| self.child(b));
        separator && before.is_some_and(|b| !b.is_separator(self.source) && !b.is_opening(self.source))
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the state of a list match; a struct would be built and taken apart at each token"
    )]
    fn token<'p>(
        &mut self,
        token: &'p Token,
        element: &'p Element,
        elements: &'p [Element],
        list: List,
        from: usize,
        child: Option<Child<'t>>,
        then: Option<&Next<'_, 'p>>,
    ) -> bool {
        let rest = elements.get(1..).unwrap_or_default();
        if let Some(child) = child {
            // JavaScript's grammar has another kind for the `;` of an empty part of a `for`.
            let separates = is_separator(&token.text) && child.is_separator(self.source);
            if (token.kind == child.kind || separates)
                && child.leaf
                && fields_agree(element, &child)
                && text_agrees(token, child.text(self.source))
                && self.list(rest, list, from + 1, then)
            {
                return true;
            }
            // `f(a, b,)` for `f(a, b)`.
            let closing = !token.named && is_closing(&token.text);
            let trailing = closing
                && self.is_trailing(list, from)
                && self.child(from + 1).is_some_and(|c| {
                    from + 1 < list.end && c.kind == token.kind && c.text(self.source) == &*token.text
                });
            if trailing && self.list(elements, list, from + 1, then) {
                return true;
            }
            if child.stray && self.list(elements, list, from + 1, then) {
                return true;
            }
        }
        // The other way round: the pattern has it, the file does not.
        if token.trailing && self.list(rest, list, from, then) {
            return true;
        }
        // `f(a, $$$R)` for `f(a)`: an empty run takes the separator before it along.
        if element.is_separator()
            && let Some((run, after)) = rest.split_first()
            && let What::Run { variable, .. } = run.what
            && !after.first().is_some_and(Element::is_separator)
        {
            let place = from
                .checked_sub(1)
                .filter(|b| *b >= list.start)
                .and_then(|b| self.child(b))
                .map_or(list.origin, |c| c.end);
            return self
                .bind(variable, Bound::empty(from, place, list), |fit| fit.list(after, list, from, then));
        }
        false
    }

    /// A variable among loose tokens: it takes them up to a separator, as few as will do.
    fn loose<'p>(
        &mut self,
        variable: Option<usize>,
        rest: &'p [Element],
        list: List,
        from: usize,
        then: Option<&Next<'_, 'p>>,
    ) -> bool {
        let Some(first) = self.child(from).filter(|_| from < list.end) else { return false };
        let mut to = from;
        while let Some(child) = self.child(to).filter(|_| to < list.end) {
            if child.is_separator(self.source) || child.node.is_error() {
                return false;
            }
            to += 1;
            let bound = Bound { to, ..Bound::one(from, first.start, Edges::default()) };
            if self.bind(variable, bound, |fit| fit.list(rest, list, to, then)) {
                return true;
            }
            if self.steps > limits::MATCH_STEPS {
                return false;
            }
        }
        false
    }

    fn run<'p>(
        &mut self,
        element: &'p Element,
        rest: &'p [Element],
        list: List,
        from: usize,
        then: Option<&Next<'_, 'p>>,
    ) -> bool {
        let What::Run { variable, lists, edges } = &element.what else { return false };
        // The element says where in the pattern this is, the list's first child where in the file: what follows is the same too.
        let first = self.child(list.start).filter(|_| list.start < list.end);
        let key = (std::ptr::from_ref(element) as usize, first.map_or(0, |c| c.node.id()), from - list.start);
        if self.remember && self.failed.contains(&key) {
            return false;
        }
        let separated = rest.first().is_some_and(Element::is_separator);
        let place = from.checked_sub(1).filter(|b| *b >= list.start).and_then(|b| self.child(b)).map_or_else(
            || self.child(from).filter(|_| from < list.end).map_or(list.origin, |c| c.start),
            |c| c.end,
        );
        // Empty; the separator behind it goes with it.
        let empty = Bound::empty(from, place, list);
        let after = if separated { rest.get(1..).unwrap_or_default() } else { rest };
        let may_be_empty = edges.lead.is_none() && !edges.ended;
        if may_be_empty && self.bind(*variable, empty, |fit| fit.list(after, list, from, then)) {
            return true;
        }
        let mut to = from;
        while to < list.end {
            let Some(child) = self.child(to) else { break };
            if !self.may_run_over(element, &child) || (to == from && child.text(self.source) == b",") {
                break;
            }
            to += 1;
            if child.leaf && child.text(self.source) == b"," {
                continue;
            }
            let open = to == from + 1 && lists.contains(&child.kind) && !child.leaf;
            let bound = Bound { from, to, place, open, edges: *edges, list: Some(list) };
            let fits = self.child(from).is_some_and(|first| edges.fit(&first, &child, self.source));
            if fits && self.bind(*variable, bound, |fit| fit.list(rest, list, to, then)) {
                return true;
            }
            if self.steps > limits::MATCH_STEPS {
                return false;
            }
        }
        if self.remember {
            self.failed.insert(key);
        }
        false
    }

    fn may_run_over(&self, element: &Element, child: &Child) -> bool {
        let field = match (element.field, child.field) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        };
        // Ruby's `else` of a `case` is one of its branches, like the `default` of a `switch`.
        let branch = || child.node.parent().is_some_and(|p| matches!(p.kind(), "case" | "case_match"));
        field && (!self.kinds.is_clause(child.kind) || branch())
    }

    fn is_any(&self, element: &Element, child: &Child) -> bool {
        let agree = fields_agree(element, child);
        let text = child.text(self.source);
        let is_node = child.named
            || child.kind == GAP
            // Without a name in Rust's and in C#'s grammar.
            || (child.leaf && matches!(text, b"_" | b"this" | b"base"))
            || (element.field.is_some() && element.field == child.field);
        agree
            && is_node
            && !child.is_separator(self.source)
            && !child.node.is_error()
            && !self.kinds.is_clause(child.kind)
    }

    /// Runs `and_then` with the variable bound; where that fails it is free again.
    fn bind(
        &mut self,
        variable: Option<usize>,
        bound: Bound,
        and_then: impl FnOnce(&mut Self) -> bool,
    ) -> bool {
        let Some(variable) = variable else { return and_then(self) };
        let Some(slot) = self.bound.get(variable).copied() else { return false };
        if let Some(earlier) = slot {
            let part = |b: Bound| self.arena.get(b.from..b.to).unwrap_or_default();
            return tree::same_tokens(part(earlier), part(bound), self.source, self.kinds) && and_then(self);
        }
        self.set(variable, Some(bound));
        if and_then(self) {
            return true;
        }
        self.set(variable, None);
        false
    }

    fn set(&mut self, variable: usize, bound: Option<Bound>) {
        if let Some(slot) = self.bound.get_mut(variable) {
            *slot = bound;
        }
    }

    fn outcome(&mut self, start: usize) -> Outcome {
        let mut bindings = Vec::with_capacity(self.variables.len());
        for (variable, bound) in self.variables.iter().zip(self.bound.clone()) {
            // A variable can be absent from one of several joined shapes.
            let Some(bound) = bound else { continue };
            bindings.push((variable.name.clone(), self.binding(variable.is_run, bound)));
        }
        // `if (a) $X.b()` stops before the `;` that it does not have, or a rewrite would lose it.
        let end = self
            .unasked
            .filter(|(with, _)| *with == self.reached)
            .map_or(self.reached, |(_, without)| without);
        Outcome { range: start..end, bindings }
    }

    fn binding(&mut self, is_run: bool, bound: Bound) -> Binding {
        let nodes: Vec<Child> = self.arena.get(bound.from..bound.to).unwrap_or_default().to_vec();
        let span = match (nodes.first(), nodes.last()) {
            (Some(first), Some(last)) => bound.edges.inside(first.start..last.end, self.source),
            _ => bound.place..bound.place,
        };
        if !is_run {
            return Binding::One(span);
        }
        let around = self.around(&bound, &span);
        let mut elements: Vec<Child> = nodes;
        if let (true, [list]) = (bound.open, elements.as_slice()) {
            let mut inner = Vec::new();
            tree::children(&mut self.cursor, list.node, self.source, self.kinds, &mut inner);
            // A list in brackets is one thing, not its elements.
            if !inner.first().is_some_and(|c| c.is_opening(self.source)) {
                elements = inner;
            }
        }
        let elements = elements
            .iter()
            .filter(|c| !c.is_separator(self.source) && !c.stray)
            .map(|c| c.start.max(span.start)..c.end.min(span.end))
            .collect();
        Binding::Run { span, elements, around }
    }

    /// A run with what lies between it and its neighbours in the list.
    fn around(&mut self, bound: &Bound, span: &Range<usize>) -> Range<usize> {
        let mut around = span.clone();
        let Some(list) = bound.list else { return around };
        let before = bound.from.checked_sub(1).filter(|at| *at >= list.start).and_then(|at| self.child(at));
        let first = before.or_else(|| self.child(bound.from).filter(|_| list.whole && bound.from < bound.to));
        if let Some(sibling) = first.filter(|_| bound.edges.lead.is_none()) {
            let start = before.map_or(list.origin, |before| before.end);
            if self.is_passed_over(sibling, start..span.start) {
                around.start = start;
            }
        }
        let behind = |at: usize| (at < list.end).then(|| self.child(at)).flatten();
        let mut after = behind(bound.to);
        // The separator that a list may end with.
        if after.is_some_and(|c| c.is_separator(self.source))
            && let Some(closing) = behind(bound.to + 1).filter(|c| is_closing(c.text(self.source)))
        {
            after = Some(closing);
        }
        let last = || bound.to.checked_sub(1).and_then(|at| self.child(at));
        let sibling = after.or_else(|| last().filter(|_| list.whole && bound.from < bound.to));
        if let Some(sibling) = sibling.filter(|_| !bound.edges.ended) {
            let rest = self.source.get(span.end..list.finish).unwrap_or_default().trim_ascii_end();
            let end = after.map_or(span.end + rest.len(), |after| after.start);
            if self.is_passed_over(sibling, span.end..end) {
                around.end = end;
            }
        }
        around
    }

    /// Whether there is nothing beside `sibling` in a range but what the matcher passes over.
    fn is_passed_over(&mut self, sibling: Child<'t>, within: Range<usize>) -> bool {
        let Some(text) = self.source.get(within.clone()) else { return false };
        if text.trim_ascii().is_empty() {
            return true;
        }
        let parent = if sibling.kind == GAP { Some(sibling.node) } else { sibling.node.parent() };
        parent.is_some_and(|parent| {
            tree::only_comments(&mut self.cursor, parent, within, self.source, self.kinds)
        })
    }
}

impl Edges {
    /// Whether nodes from `first` to `last` have what belongs to them.
    fn fit(&self, first: &Child, last: &Child, source: &[u8]) -> bool {
        let leads = |lead: &str| {
            let rest = first.text(source).strip_prefix(lead.as_bytes());
            rest.is_some_and(|rest| !rest.first().is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_'))
        };
        self.lead.is_none_or(leads) && (!self.ended || last.text(source).ends_with(b";"))
    }

    /// What is left of their text for the variable.
    fn inside(&self, span: Range<usize>, source: &[u8]) -> Range<usize> {
        let Range { mut start, mut end } = span;
        start += self.lead.map_or(0, str::len);
        end -= usize::from(self.ended);
        let text = source.get(start..end).unwrap_or_default();
        start += text.len() - text.trim_ascii_start().len();
        end -= text.len() - text.trim_ascii_end().len();
        start..end.max(start)
    }
}

/// Where the grammar names the place of both, it must be the same: a `then` is no `else`.
fn fields_agree(element: &Element, child: &Child) -> bool {
    match (element.field, child.field) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    }
}

fn text_agrees(token: &Token, text: &[u8]) -> bool {
    match token.compare {
        Compare::Pieces => *token.text == *text || build::pieces(&token.text).eq(build::pieces(text)),
        Compare::Exact => *token.text == *text,
        Compare::AnyCase => token.text.eq_ignore_ascii_case(text),
        Compare::Trimmed => token.text.trim_ascii() == text.trim_ascii(),
    }
}
