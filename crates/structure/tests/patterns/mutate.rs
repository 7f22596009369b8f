//! Patterns cut at random from real text, and the same text with more white space and comments in it. What a pattern finds must not
//! depend on whether the bytes were asked first.

use haft_structure::languages::Language;
use haft_structure::{compile, find};
use tree_sitter::{Node, Parser};

/// The same numbers on every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides.max(1)
    }
}

/// What was tried.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Patterns that a context accepts.
    pub(crate) patterns: usize,
    /// Texts in which a pattern matched.
    pub(crate) matched: usize,
    /// Of those, texts with something put between the tokens of the match.
    pub(crate) changed: usize,
    /// Texts without a match that were turned away.
    pub(crate) turned_away: usize,
    /// Texts that were turned away although there is a match: the bug that this looks for.
    pub(crate) lost: Vec<String>,
}

const BLANKS: &[&str] =
    &[" ", "  ", "\t", "\n", "\r\n", "\n\n    ", "\\\n", "\\\r\n", "\u{a0}", "\u{feff}", "\u{b}"];

/// What may stand between two tokens, more or less. A mutant that the parser no longer understands has no match, and does no harm.
fn trivia(language: &str) -> &'static [&'static str] {
    match language {
        "python" | "bash" | "ruby" | "r" | "yaml" | "toml" | "make" | "dockerfile" | "elixir" | "nix"
        | "hcl" | "cmake" | "graphql" | "perl" | "powershell" | "julia" => &[
            " # why\n",
            "\n# join os path\n",
            " #\n",
            "#[[ x ]]",
            "#= x =#",
            "<# x #>",
            "`\n",
            "\n=begin\nx\n=end\n",
            "\n=pod\n\nx\n\n=cut\n",
            " /* x */ ",
            ",",
        ],
        "lua" | "sql" | "haskell" | "elm" => &[
            " -- why\n",
            "--[[ x ]]",
            "--[==[ x\n ]==]",
            "{- x -}",
            "/* x */",
            "\n-- | x\n",
            "{-# x #-}",
            "/* x\n*/",
        ],
        "ocaml" | "ocaml-interface" | "fsharp" => {
            &["(* x *)", "(* x\n *)", "// why\n", "[@x]", "/// x\n", "\n#if X\nx\n#endif\n", "\n# 1 \"x\"\n"]
        }
        "html" | "xml" | "svelte" | "markdown" => &["<!-- x -->", "<!-- x\n -->"],
        "erlang" => &[" % why\n", "%% x\n"],
        "php" => &["/* x */", "// x\n", "# x\n", " ?> x <?php ", "?>x<?= ", "/** x\n */"],
        "c-sharp" => {
            &["/* x */", "// x\n", "\n#region x\n", "\n#pragma warning disable x\n", "\n#endregion\n"]
        }
        "swift" => &["/* x */", "// x\n", "\n#if X\n", "\n#endif\n", "/* a /* b */ c */"],
        _ => &["/* x */", " // why\n", "/** x\n */", "/**/", "/// x\n", "\n<!-- x\n", "\n--> x\n", ",", ";"],
    }
}

pub(crate) fn try_out(
    language: &'static Language,
    source: &str,
    patterns: usize,
    dice: &mut Dice,
    tally: &mut Tally,
) {
    let mut parser = Parser::new();
    if parser.set_language(&(language.grammar)()).is_err() {
        return;
    }
    let Some(tree) = parser.parse(source, None) else { return };
    let nodes: Vec<Node> = below(tree.root_node())
        .into_iter()
        .filter(|node| {
            let length = node.byte_range().len();
            node.is_named() && !node.has_error() && (2..400).contains(&length) && node.child_count() > 0
        })
        .collect();
    for _ in 0..patterns {
        let Some(node) = nodes.get(dice.roll(nodes.len())) else { return };
        let pattern = cut(*node, source, dice);
        let Ok(compiled) = compile(language, &pattern) else { continue };
        tally.patterns += 1;
        // The text as it is, changed in the place that the pattern is from, and only the place.
        for round in 0..6 {
            let mut own = source.get(node.byte_range()).unwrap_or_default().to_owned();
            if round > 0 {
                own = changed(*node, source, language.id, dice);
            }
            let text = if round % 2 == 0 {
                let (head, tail) = (source.get(..node.start_byte()), source.get(node.end_byte()..));
                format!("{}{own}{}", head.unwrap_or_default(), tail.unwrap_or_default())
            } else {
                own
            };
            let Some(tree) = parser.parse(&text, None) else { continue };
            for reading in &compiled.readings {
                let matches = find(reading, &tree, text.as_bytes()).matches;
                let passes = reading.may_match_in(text.as_bytes());
                if matches.is_empty() {
                    tally.turned_away += usize::from(!passes);
                    continue;
                }
                tally.matched += 1;
                tally.changed += usize::from(round > 0);
                if !passes {
                    let place = text.get(matches[0].range.clone()).unwrap_or_default();
                    tally.lost.push(format!("{}: {pattern:?} is lost in {place:?}", language.id));
                }
            }
        }
    }
}

fn below(node: Node) -> Vec<Node> {
    let mut all = Vec::new();
    let mut waiting = vec![node];
    while let Some(node) = waiting.pop() {
        all.push(node);
        let mut cursor = node.walk();
        let children: Vec<Node> = node.children(&mut cursor).collect();
        waiting.extend(children.into_iter().rev());
    }
    all
}

/// The node's text, with some of what is in it replaced by variables and runs.
fn cut(node: Node, source: &str, dice: &mut Dice) -> String {
    let inside: Vec<Node> =
        below(node).into_iter().skip(1).filter(|n| n.is_named() && !n.byte_range().is_empty()).collect();
    let mut chosen: Vec<Node> = Vec::new();
    for _ in 0..dice.roll(4) {
        let Some(pick) = inside.get(dice.roll(inside.len())) else { break };
        if chosen.iter().all(|c| c.end_byte() <= pick.start_byte() || c.start_byte() >= pick.end_byte()) {
            chosen.push(*pick);
        }
    }
    chosen.sort_by_key(|n| std::cmp::Reverse(n.start_byte()));
    let mut text = source.get(node.byte_range()).unwrap_or_default().to_owned();
    for (number, n) in chosen.iter().enumerate() {
        let range = n.start_byte() - node.start_byte()..n.end_byte() - node.start_byte();
        if text.is_char_boundary(range.start) && text.is_char_boundary(range.end) {
            let dollars = if dice.roll(4) == 0 { "$$$" } else { "$" };
            text.replace_range(range, &format!("{dollars}V{number}"));
        }
    }
    text
}

/// The node's text with something put before a few of its tokens.
fn changed(node: Node, source: &str, language: &str, dice: &mut Dice) -> String {
    let mut starts: Vec<usize> =
        below(node).into_iter().filter(|n| n.child_count() == 0).map(|n| n.start_byte()).collect();
    starts.dedup();
    starts.retain(|at| *at > node.start_byte());
    let mut text = source.get(node.byte_range()).unwrap_or_default().to_owned();
    let own = trivia(language);
    let mut places: Vec<usize> =
        (0..=dice.roll(3)).filter_map(|_| starts.get(dice.roll(starts.len()))).copied().collect();
    places.sort_unstable();
    places.dedup();
    for at in places.into_iter().rev() {
        let more =
            if dice.roll(3) == 0 { BLANKS[dice.roll(BLANKS.len())] } else { own[dice.roll(own.len())] };
        let at = at - node.start_byte();
        if text.is_char_boundary(at) {
            text.insert_str(at, more);
        }
    }
    text
}
