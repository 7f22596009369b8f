//! Replaces the matches of a pattern in one file, in memory (SPEC A6).
//!
//! The bytes outside the matches stay as they are, whatever they are. Matches inside a variable's text are rewritten too, so the work goes from
//! the inside out, over an explicit list: nesting may be as deep as it likes.

mod edges;
mod indent;
mod template;

use std::ops::Range;

use tree_sitter::{Node, Tree};

pub use template::{Template, TemplateError};

use self::{
    edges::Edges,
    indent::{Piece, Unit, line_indent, starts_in_string},
    template::Part,
};
use crate::{
    limits::MAX_REWRITTEN_BYTES,
    lines::Lines,
    tree::{is_comment, only_terminated},
    types::{Binding, Match},
};

/// A file after a rewrite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// The whole new content.
    pub after: Vec<u8>,
    /// Matches that were replaced, those inside of others included.
    pub replacements: usize,
    /// Matches left alone because they overlap another one outside of its variables; the outer one was replaced.
    pub overlapping: usize,
    /// Comments inside of matches that are in no variable's text: the matcher passes over them, and the rewrite has no place for them.
    pub lost_comments: usize,
}

/// A rewrite that cannot be carried out on a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// Nested matches whose variable stands several times in the template.
    #[error("the result would be larger than {} MB", MAX_REWRITTEN_BYTES >> 20)]
    TooLarge,
}

/// Replaces `matches` (as [`find`](crate::matcher::find) gives them for this tree and source) by what `template` says.
pub fn rewrite(
    source: &[u8],
    tree: &Tree,
    matches: &[Match],
    template: &Template,
) -> Result<Rewritten, RewriteError> {
    let nesting = Nesting::of(matches, template);
    let file = FileStyle {
        source,
        tree,
        lines: Lines::of(source),
        line_end: line_end(source),
        file_unit: Unit::of_file(source, &|line| starts_in_string(tree, source, line)),
        template_unit: Unit::of_template(template.texts()),
    };
    let mut edits: Vec<Option<Edit>> = vec![None; matches.len()];
    // A match comes after those that hold it; backwards means from the inside out.
    for &at in nesting.kept.iter().rev() {
        let edit = file.replace(&matches[at], template, &nesting.children[at], &edits)?;
        for child in &nesting.children[at] {
            edits[*child] = None;
        }
        edits[at] = Some(edit);
    }
    let outermost = nesting.outermost.iter().filter_map(|at| edits[*at].take());
    let after = splice(source, 0..source.len(), outermost)?;
    let lost_comments = nesting.kept.iter().map(|at| file.lost_comments(&matches[*at], template)).sum();
    Ok(Rewritten {
        after: after.text,
        replacements: nesting.kept.len(),
        overlapping: nesting.overlapping,
        lost_comments,
    })
}

/// Which matches lie in the variables of which.
struct Nesting {
    /// Indices of the matches that are replaced, in their order.
    kept: Vec<usize>,
    /// Of those, the ones inside no other.
    outermost: Vec<usize>,
    /// Per match, the ones directly inside the text of its variables, in their order.
    children: Vec<Vec<usize>>,
    overlapping: usize,
}

impl Nesting {
    fn of(matches: &[Match], template: &Template) -> Nesting {
        let mut nesting = Nesting {
            kept: Vec::new(),
            outermost: Vec::new(),
            children: vec![Vec::new(); matches.len()],
            overlapping: 0,
        };
        let mut around: Vec<usize> = Vec::new();
        for (at, found) in matches.iter().enumerate() {
            while around.last().is_some_and(|outer| matches[*outer].range.end <= found.range.start) {
                around.pop();
            }
            let Some(&outer) = around.last() else {
                nesting.kept.push(at);
                nesting.outermost.push(at);
                around.push(at);
                continue;
            };
            if matches[outer].range == found.range {
                continue;
            }
            let holder =
                matches[outer].bindings.iter().find(|(_, binding)| holds(&binding.range(), &found.range));
            match holder {
                Some((name, _)) if template.uses(name) => {
                    nesting.kept.push(at);
                    nesting.children[outer].push(at);
                    around.push(at);
                }
                // The text goes away with its variable, and the match with it.
                Some(_) => {}
                None => nesting.overlapping += 1,
            }
        }
        nesting
    }
}

fn holds(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

#[derive(Clone, Debug)]
struct Edit {
    /// Where the match was.
    found: Range<usize>,
    /// What goes: the match, or more where it is removed.
    range: Range<usize>,
    text: Piece,
}

/// The source in `range` with `edits` (ascending) made in it. Edits that reach over an edge or into each other are cut back: only
/// removals are widened beyond their match, so what is cut is white space and separators.
fn splice(
    source: &[u8],
    range: Range<usize>,
    edits: impl Iterator<Item = Edit>,
) -> Result<Piece, RewriteError> {
    let mut piece = Piece::default();
    let mut at = range.start;
    for edit in edits {
        let start = edit.range.start.clamp(at, range.end);
        piece.push(&source[at..start]);
        piece.append(&edit.text);
        at = edit.range.end.clamp(start, range.end);
        if piece.text.len() > MAX_REWRITTEN_BYTES {
            return Err(RewriteError::TooLarge);
        }
    }
    piece.push(&source[at..range.end]);
    Ok(piece)
}

struct FileStyle<'a> {
    source: &'a [u8],
    tree: &'a Tree,
    lines: Lines,
    line_end: &'static [u8],
    file_unit: Option<Unit>,
    template_unit: Option<Unit>,
}

impl FileStyle<'_> {
    fn replace(
        &self,
        found: &Match,
        template: &Template,
        children: &[usize],
        edits: &[Option<Edit>],
    ) -> Result<Edit, RewriteError> {
        let binding =
            |name: &str| found.bindings.iter().find(|(bound, _)| bound == name).map(|(_, binding)| binding);
        let is_empty = |name: &str| {
            binding(name).is_none_or(|binding| {
                let Binding::Run { elements, around, .. } = binding else { return false };
                let (before, after) = template.beside(name);
                elements.is_empty()
                    && self.source[self.around(name, binding, template)].trim_ascii().is_empty()
                    && !self.is_behind_comma(around, before, after)
            })
        };
        let (base, first_on_line) = line_indent(self.source, &self.lines, found.range.start);
        let mut piece = Piece::default();
        // The indentation of the template's current line as it comes out, and whether only white space stands on it so far.
        let mut indent = base.to_vec();
        let mut line_is_blank = first_on_line;
        // The variable before brought the white space along.
        let mut spaced = false;
        let parts = template.without_empty(&is_empty);
        for (at, part) in parts.iter().enumerate() {
            match part {
                Part::Text(text) => {
                    let text = if spaced { text.trim_start_matches([' ', '\t']) } else { text };
                    spaced = false;
                    let last = text.matches('\n').count();
                    for (number, line) in text.split('\n').enumerate() {
                        if number > 0 {
                            piece.push(self.line_end);
                            let white = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
                            indent = base.to_vec();
                            indent.extend(Unit::translate(self.template_unit, self.file_unit, white));
                            line_is_blank = true;
                            // White space before a line break would be new trailing white space.
                            if !line.trim().is_empty() || number == last {
                                piece.push(&indent);
                            }
                            piece.push(&line.as_bytes()[white.len()..]);
                        } else {
                            piece.push(line.as_bytes());
                        }
                        line_is_blank &= line.trim().is_empty();
                    }
                }
                Part::Variable(name) => {
                    let Some(binding) = binding(name) else { continue };
                    let range = binding.range();
                    let beside = (at.checked_sub(1).and_then(|at| parts.get(at)), parts.get(at + 1));
                    let brackets = self.shares_brackets(&range) && !in_brackets(beside);
                    let around = self.around(name, binding, template);
                    let Edges { body, behind, on_new_line, spaces, unfinished } =
                        self.edges(binding, &around, &piece, line_is_blank, beside.1);
                    spaced = spaces;
                    let inside = children.iter().filter_map(|child| edits[*child].as_ref());
                    let mut inside =
                        inside.filter(|edit| edit.found.start >= range.start && edit.found.start < range.end);
                    let mut text = self.captured(body, &mut inside);
                    for more in behind {
                        text.append(&self.marked(more));
                    }
                    if unfinished && (beside.1.is_some() || !self.ends_line(found.range.end)) {
                        text.push(self.line_end);
                        text.push(base);
                    }
                    let (from, first_in_source) = line_indent(self.source, &self.lines, range.start);
                    // A capture that began a line and does not any more keeps its lines where they were relative to the match.
                    let from = if on_new_line || first_in_source && !line_is_blank { base } else { from };
                    let nothing = text.text.is_empty();
                    if nothing || text.text.starts_with(b"\n") || text.text.starts_with(b"\r\n") {
                        piece.trim_blanks();
                    }
                    if brackets {
                        piece.push(b"(");
                    }
                    piece.append(&text.moved(from, &indent));
                    if brackets {
                        piece.push(b")");
                    }
                    line_is_blank = false;
                }
            }
            if piece.text.len() > MAX_REWRITTEN_BYTES {
                return Err(RewriteError::TooLarge);
            }
        }
        if piece.text.iter().all(u8::is_ascii_whitespace) {
            if let Some(range) = self.only_body(found) {
                let mut text = Piece::default();
                text.push(b"{}");
                return Ok(Edit { found: found.range.clone(), range, text });
            }
            return Ok(Edit {
                found: found.range.clone(),
                range: self.removal(found),
                text: Piece::default(),
            });
        }
        Ok(Edit { found: found.range.clone(), range: found.range.clone(), text: piece })
    }

    /// How many comments of a match go away with it.
    fn lost_comments(&self, found: &Match, template: &Template) -> usize {
        let range = &found.range;
        let Some(outer) = self.tree.root_node().descendant_for_byte_range(range.start, range.end) else {
            return 0;
        };
        let mut count = 0;
        let mut cursor = outer.walk();
        loop {
            let node = cursor.node();
            let own = node.byte_range();
            let apart = own.end <= range.start || own.start >= range.end;
            let kept = || {
                let used = found.bindings.iter().filter(|(name, _)| template.uses(name));
                used.into_iter().any(|(name, binding)| holds(&self.around(name, binding, template), &own))
            };
            let is_comment = node.is_named() && is_comment(node.kind());
            if !apart && !kept() {
                count += usize::from(is_comment);
                if !is_comment && cursor.goto_first_child() {
                    continue;
                }
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return count;
                }
            }
        }
    }

    /// What goes with a variable's text: the comments beside a run, and the white space that says where its lines begin and end.
    fn around(&self, name: &str, binding: &Binding, template: &Template) -> Range<usize> {
        match binding {
            // Where its comma goes, nothing can stay.
            Binding::Run { span, elements, .. } if elements.is_empty() && template.has_comma_beside(name) => {
                span.clone()
            }
            Binding::Run { around, .. } => around.clone(),
            Binding::One(range) => self.with_header(range),
        }
    }

    /// A node that begins its line, from the token before it on: a block under its header, a value under its key, what an operator leaves
    /// for the next line. In brackets and lists that is a matter of taste, and comments stay only in front of blocks.
    fn with_header(&self, range: &Range<usize>) -> Range<usize> {
        if !line_indent(self.source, &self.lines, range.start).1 {
            return range.clone();
        }
        let found = self.tree.root_node().descendant_for_byte_range(range.start, range.end);
        // Some grammars put the line break behind it into the node.
        let is_all = |node: &Node| {
            let own = node.byte_range();
            own.start == range.start && self.source[range.end..own.end.max(range.end)].trim_ascii().is_empty()
        };
        let Some(mut node) = found.filter(is_all) else { return range.clone() };
        let is_block = |node: &Node| node.kind() == "block" || node.kind().starts_with("block_");
        let mut indented = is_block(&node);
        while let Some(outer) = node.parent().filter(is_all) {
            node = outer;
            indented |= is_block(&node);
        }
        let mut before = node.prev_sibling();
        while let Some(comment) = before.filter(|node| indented && node.is_extra()) {
            before = comment.prev_sibling();
        }
        let start = before.filter(|node| !node.is_extra()).map_or(range.start, |before| before.end_byte());
        let listed = matches!(self.source[..start].last(), Some(b'(' | b'[' | b'{' | b','));
        if listed || self.source[range.start] == b'{' { range.clone() } else { start..range.end }
    }

    /// Whether a variable's text has its brackets in common with the call that it is the only argument of: Python's `sum(x for x in y)`.
    /// Anywhere else it needs brackets of its own.
    fn shares_brackets(&self, range: &Range<usize>) -> bool {
        let in_brackets = self.source[..range.start].trim_ascii_end().ends_with(b"(");
        if !in_brackets || memchr::memmem::find(&self.source[range.clone()], b"for").is_none() {
            return false;
        }
        let node = self.tree.root_node().descendant_for_byte_range(range.start, range.end);
        node.is_some_and(|node| node.kind() == "generator_expression" && node.byte_range() != *range)
    }

    /// The text of a variable with the matches inside of it replaced, and the lines marked that begin inside a string.
    fn captured(&self, range: Range<usize>, inside: &mut dyn Iterator<Item = &Edit>) -> Piece {
        let mut piece = Piece::default();
        let mut at = range.start;
        for edit in inside {
            let start = edit.range.start.clamp(at, range.end);
            piece.append(&self.marked(at..start));
            piece.append(&edit.text);
            at = edit.range.end.clamp(start, range.end);
        }
        piece.append(&self.marked(at..range.end));
        piece
    }

    fn marked(&self, range: Range<usize>) -> Piece {
        let text = self.source[range.clone()].to_vec();
        let lines = memchr::memchr_iter(b'\n', &text).map(|newline| newline + 1);
        let fixed =
            lines.filter(|line| starts_in_string(self.tree, self.source, range.start + line)).collect();
        Piece { text, fixed }
    }

    /// The statement that a match is, where it is all that an `if`, an `else` or a loop does and stands in no braces. Without it the
    /// next statement would be what they do, so empty braces take its place.
    fn only_body(&self, found: &Match) -> Option<Range<usize>> {
        if found.statement.is_some() {
            return None;
        }
        let range = &found.range;
        let mut node = self.tree.root_node().descendant_for_byte_range(range.start, range.end)?;
        while let Some(outer) = node.parent() {
            if !only_terminated(range, &outer.byte_range(), self.source) {
                break;
            }
            node = outer;
        }
        let parent = node.parent()?;
        let place = (0..parent.child_count())
            .find(|at| parent.child(*at).is_some_and(|child| child.id() == node.id()))
            .and_then(|at| parent.field_name_for_child(at));
        let is_body = parent.kind() == "else_clause"
            || (parent.kind().ends_with("_statement")
                && matches!(place, Some("body" | "consequence" | "alternative")));
        let is_statement =
            node.kind().ends_with("_statement") && !self.source[node.byte_range()].starts_with(b"{");
        (is_body && is_statement && only_terminated(range, &node.byte_range(), self.source))
            .then(|| node.byte_range())
    }

    /// What goes when a match is replaced by nothing: a whole statement takes its line along, an element its separator.
    fn removal(&self, found: &Match) -> Range<usize> {
        let source = self.source;
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
        let Some(statement) = found.statement.clone() else {
            let Range { start, end } = found.range.clone();
            let white = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let after = end + white(&source[end..]);
            if source.get(after) == Some(&b',') {
                let next = after + 1;
                return start..next + white(&source[next..]);
            }
            let before =
                start - source[..start].iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
            if before > 0 && source[before - 1] == b',' {
                return before - 1..end;
            }
            // What has its lines for itself takes them along.
            let (indent, first_on_line) = line_indent(source, &self.lines, start);
            let behind = end + source[end..].iter().take_while(blank).count();
            let line_end = match &source[behind..] {
                [b'\r', b'\n', ..] => 2,
                [b'\n', ..] => 1,
                _ => 0,
            };
            if first_on_line && line_end > 0 {
                return start - indent.len()..behind + line_end;
            }
            // One of the blanks around it is enough.
            let blank_before = source[..start].last().as_ref().is_some_and(blank);
            let blanks = source[end..].iter().take_while(blank).count();
            return start..end + if blank_before { blanks } else { 0 };
        };
        let (indent, first_on_line) = line_indent(source, &self.lines, statement.start);
        let mut after = statement.end + source[statement.end..].iter().take_while(blank).count();
        // What separates it from the next statement on its line is none of either (`a = 1; b = 2`).
        let separated = source[after..].starts_with(b";") && !source[after..].starts_with(b";;");
        if separated {
            after += 1 + source[after + 1..].iter().take_while(blank).count();
        }
        let rest = &source[after..];
        let line_end = if rest.starts_with(b"\r\n") { 2 } else { usize::from(rest.starts_with(b"\n")) };
        let last_on_line = line_end > 0 || rest.is_empty();
        match (first_on_line, last_on_line) {
            (true, true) => statement.start - indent.len()..after + line_end,
            // Something follows on the line: it moves up to where the statement was.
            (_, false) => statement.start..after,
            (false, true) => {
                let white = source[..statement.start].iter().rev().take_while(blank).count();
                statement.start - white..statement.end
            }
        }
    }
}

/// Whether what stands between two parts of a template has brackets around it there.
fn in_brackets(beside: (Option<&Part>, Option<&Part>)) -> bool {
    let (Some(Part::Text(before)), Some(Part::Text(after))) = beside else { return false };
    before.trim_end().ends_with('(') && after.trim_start().starts_with(')')
}

/// How most lines of the file end.
fn line_end(source: &[u8]) -> &'static [u8] {
    let all = memchr::memchr_iter(b'\n', source).count();
    let windows = memchr::memmem::find_iter(source, b"\r\n").count();
    if windows * 2 > all { b"\r\n" } else { b"\n" }
}
