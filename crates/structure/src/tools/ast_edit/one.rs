//! The rewrite of one file, in memory.

use tokio_util::sync::CancellationToken;
use tree_sitter::{Node, Tree};

use super::Rewriter;
use crate::{
    languages::Language,
    matcher::find,
    rewrite::{Rewritten, Template, rewrite},
    search::{Reader, Recode, Visit, errors, searched},
    types::Match,
};

/// What became of one file.
pub(super) enum Outcome {
    Proposed(Proposed),
    NoMatch,
    /// Why not, in words.
    Failed(String),
}

/// A file's new content.
pub(super) struct Proposed {
    pub(super) after: Vec<u8>,
    pub(super) replacements: usize,
    pub(super) overlapping: usize,
    pub(super) lost_comments: usize,
    /// Why the new content may be no good.
    pub(super) worse: Option<String>,
}

impl Outcome {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Outcome::Proposed(proposed) => proposed.after.len(),
            _ => 0,
        }
    }
}

/// Rewrites a file that a search has just parsed.
pub(super) fn rewrite_parsed(
    visit: &Visit<'_>,
    matches: &[Match],
    template: &Template,
    cancel: &CancellationToken,
) -> Outcome {
    let source = Source {
        language: visit.listed.language,
        text: &visit.parsed.text,
        tree: &visit.parsed.tree,
        recode: visit.recode,
    };
    source.rewrite(matches, template, cancel)
}

/// Rewrites a file from its bytes.
pub(super) fn rewrite_bytes(bytes: &[u8], rewriter: &Rewriter, cancel: &CancellationToken) -> Outcome {
    let language = rewriter.compiled.language;
    let (text, recode) = match searched(bytes) {
        Ok(searched) => searched,
        Err(reason) => return Outcome::Failed(reason),
    };
    let tree = match Reader::new(cancel).parse(language, &text) {
        Ok(tree) => tree,
        Err(reason) => return Outcome::Failed(reason),
    };
    let found = find(&rewriter.compiled.readings[0], &tree, &text);
    if found.matches.is_empty() {
        return Outcome::NoMatch;
    }
    let source = Source { language, text: &text, tree: &tree, recode: recode.as_ref() };
    source.rewrite(&found.matches, &rewriter.template, cancel)
}

struct Source<'a> {
    language: &'static Language,
    text: &'a [u8],
    tree: &'a Tree,
    recode: Option<&'a Recode>,
}

impl Source<'_> {
    fn rewrite(&self, matches: &[Match], template: &Template, cancel: &CancellationToken) -> Outcome {
        let Rewritten { after, replacements, overlapping, lost_comments } =
            match rewrite(self.text, self.tree, matches, template) {
                Ok(rewritten) => rewritten,
                Err(error) => return Outcome::Failed(error.to_string()),
            };
        let worse = if after == self.text { None } else { self.worse(&after, cancel) };
        let after = match self.recode {
            None => after,
            Some(form) => match form.encode(after) {
                Ok(after) => after,
                Err(reason) => return Outcome::Failed(reason),
            },
        };
        Outcome::Proposed(Proposed { after, replacements, overlapping, lost_comments, worse })
    }

    fn worse(&self, after: &[u8], cancel: &CancellationToken) -> Option<String> {
        let before = errors(self.tree);
        match Reader::new(cancel).parse(self.language, after) {
            Ok(tree) => {
                let now = errors(&tree);
                if self.language.id == "python" {
                    let (before, now) = (Blocks::of(self.tree), Blocks::of(&tree));
                    if now.empty > before.empty {
                        return Some("the new text has a block without a statement in it, which Python refuses. Put `pass` there.".to_owned());
                    }
                    if now.uneven > before.uneven {
                        return Some("the new text has statements of one block at different indentations, which Python refuses. Put each `$$$` on a line of its own.".to_owned());
                    }
                }
                (now > before).then(|| {
                    format!("the new text parses worse than the old: {now} syntax errors, before {before}. Look at the diff before you accept.")
                })
            }
            Err(reason) => Some(format!("the new text could not be checked: {reason}.")),
        }
    }
}

/// What Python's grammar lets pass and Python does not.
#[derive(Default)]
struct Blocks {
    /// Blocks without a statement.
    empty: usize,
    /// Statements that begin a line elsewhere than the others of their block.
    uneven: usize,
}

impl Blocks {
    fn of(tree: &Tree) -> Blocks {
        let mut blocks = Blocks::default();
        let mut cursor = tree.walk();
        loop {
            let node = cursor.node();
            if matches!(node.kind(), "block" | "module") {
                blocks.empty += usize::from(node.kind() == "block" && node.named_child_count() == 0);
                blocks.uneven += uneven(node);
            }
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return blocks;
                }
            }
        }
    }
}

fn uneven(block: Node) -> usize {
    let header = block.prev_sibling().map(|header| header.end_position().row);
    let mut last_row = header;
    let mut column = None;
    let mut count = 0;
    let mut cursor = block.walk();
    for statement in block.named_children(&mut cursor).filter(|node| !node.is_extra()) {
        let start = statement.start_position();
        if last_row.is_none_or(|row| start.row > row) {
            count += usize::from(*column.get_or_insert(start.column) != start.column);
        } else {
            // Behind the header or another statement; below it is no place for more of a block that began behind its header.
            column = column.or((last_row == header && header.is_some()).then_some(usize::MAX));
        }
        last_row = Some(statement.end_position().row);
    }
    count
}
