//! Tries a fragment on one context after the other (SPEC A4).

use std::sync::Arc;

use tree_sitter::{Node, Parser, Tree};

use super::build::{Built, Filled, Misfit, Scaffolded};
use super::lex::{self, Lexed};
use super::literals;
use super::shape::{Element, Shape, What};
use super::{Compiled, PatternError, Reading, Unparseable};
use crate::languages::{Language, Place, Rung};
use crate::limits;
use crate::tree::Kinds;

pub(super) fn climb(language: &'static Language, pattern: &str) -> Result<Compiled, PatternError> {
    let pattern = dedent(pattern);
    if pattern.is_empty() {
        return Err(PatternError::Empty);
    }
    if pattern.len() > limits::PATTERN_BYTES {
        return Err(PatternError::TooLarge);
    }
    let lexed = lex::lex(&pattern, language.traits.leads)?;
    let mut rest = pattern.clone();
    for hole in lexed.holes.iter().rev() {
        rest.replace_range(hole.start..hole.end, "");
    }
    if rest.trim().is_empty() && lexed.holes.iter().all(|h| h.is_run) {
        return Err(PatternError::OnlyRun);
    }
    let grammar = (language.grammar)();
    let kinds = Arc::new(Kinds::of(language, &grammar));
    let mut parser = Parser::new();
    parser
        .set_language(&grammar)
        .map_err(|e| PatternError::Grammar { language: language.id, why: e.to_string() })?;
    let ground = Ground { language, grammar, kinds, pattern: &pattern, lexed: &lexed };
    let mut climber = Climber { ground, parser, refusals: Vec::new() };

    // `while ($A) { $$$B }`: with a `;` behind it Dart's braces would hold a set.
    let controls = is_control(&pattern);
    let shapes_differ = !lexed.holes.is_empty() && language.holes.len() > 1;
    let mut accepted: Vec<(&'static Rung, Built)> = Vec::new();
    let mut open: Vec<&'static Rung> = Vec::new();
    for rung in language.rungs.iter().filter(|r| r.when.is_none_or(|looks| looks(&pattern))) {
        match climber.plain(rung) {
            Ok(built) => accepted.push((rung, built)),
            // What only one kind of node can be is worth some trouble before a looser context takes it for something else
            // (`case $X: $$$B` for a bit field); but not where already the first word does not fit.
            Err(_)
                if shapes_differ
                    && (!rung.only.is_empty() || (controls && rung.statement && !rung.completes))
                    && climber.came_into(rung) =>
            {
                match climber.shaped(rung) {
                    Ok(built) => accepted.push((rung, built)),
                    Err(_) => open.push(rung),
                }
            }
            Err(_) => open.push(rung),
        }
    }
    // What is searched together is tried as hard in each of its contexts.
    let joined =
        |rung: &Rung| !rung.group.is_empty() && accepted.iter().any(|(other, _)| other.group == rung.group);
    let (grouped, open): (Vec<_>, Vec<_>) = open.into_iter().partition(|rung| shapes_differ && joined(rung));
    for rung in grouped {
        if let Ok(built) = climber.shaped(rung) {
            accepted.push((rung, built));
        }
    }
    // Where the plain reading is sound, the others would only be hints, and each costs dozens of parses.
    if shapes_differ && accepted.iter().all(|(_, built)| built.misnamed > 0) {
        for rung in open {
            if let Ok(built) = climber.shaped(rung) {
                accepted.push((rung, built));
            }
        }
    }
    if accepted.is_empty() {
        return Err(climber.error());
    }
    accepted.sort_by_key(|(_, built)| built.misnamed);
    let twins = match accepted.first() {
        Some((rung, built)) => climber.twins(rung, &built.choice),
        None => Vec::new(),
    };
    let kinds = climber.ground.kinds;
    Ok(finish(language, lexed, kinds, accepted, twins))
}

/// Merges equal shapes, joins declarations, and puts the readings in order.
fn finish(
    language: &'static Language,
    lexed: Lexed,
    kinds: Arc<Kinds>,
    accepted: Vec<(&'static Rung, Built)>,
    twins: Vec<Built>,
) -> Compiled {
    let mut warnings = lexed.warnings;
    let mut distinct: Vec<(Shape, Joins)> = Vec::new();
    let first = accepted.first().map(|(rung, _)| *rung);
    let mut accepted = accepted.into_iter().map(|(rung, built)| (rung, built, false));
    let twins = twins.into_iter().filter_map(|built| Some((first?, built, true)));
    // Behind the reading that they are searched together with.
    let ordered: Vec<_> = accepted.next().into_iter().chain(twins).chain(accepted).collect();
    for (at, (rung, built, twin)) in ordered.into_iter().enumerate() {
        if at == 0 {
            warnings.extend(built.warnings);
        }
        if let Some((known, _)) = distinct.iter_mut().find(|(shape, _)| shape.roots == built.roots) {
            known.holders.extend(built.holders);
            known.holders.sort_unstable();
            known.holders.dedup();
            continue;
        }
        let runs = count_runs(&built.roots);
        let shape = Shape { rung: rung.name, roots: built.roots, holders: built.holders, runs };
        let declares = rung.declares && built.declaration;
        distinct.push((shape, Joins { declares, group: rung.group, twin }));
    }
    let mut readings: Vec<(Vec<Shape>, Joins)> = Vec::new();
    for (shape, joins) in distinct {
        let joined = readings.iter_mut().find(|(_, others)| joins.twin || joins.with(others));
        match joined {
            Some((shapes, _)) => shapes.push(shape),
            None => readings.push((vec![shape], joins)),
        }
    }
    let readings = readings
        .into_iter()
        .map(|(shapes, _)| {
            let mut names: Vec<&str> = Vec::new();
            for shape in &shapes {
                if !names.contains(&shape.rung) {
                    names.push(shape.rung);
                }
            }
            Reading {
                rung: names.join(" or "),
                literals: literals::literals(&shapes),
                chains: literals::chains(&shapes),
                statement: shapes.iter().any(|s| !s.holders.is_empty()),
                variables: lexed.variables.clone(),
                kinds: kinds.clone(),
                shapes,
            }
        })
        .collect();
    Compiled { language, readings, warnings }
}

/// Which other readings one is searched together with.
struct Joins {
    declares: bool,
    group: &'static str,
    /// It is the same as the first, with something else in a variable's place.
    twin: bool,
}

impl Joins {
    fn with(&self, other: &Joins) -> bool {
        (self.declares && other.declares) || (!self.group.is_empty() && self.group == other.group)
    }
}

fn count_runs(elements: &[Element]) -> usize {
    elements
        .iter()
        .map(|e| match &e.what {
            What::Run { .. } => 1,
            What::Inner { children, .. } => count_runs(children),
            _ => 0,
        })
        .sum()
}

/// Whether it is a statement by its first word, with a block at its end.
fn is_control(pattern: &str) -> bool {
    let words = [
        "if",
        "for",
        "foreach",
        "while",
        "do",
        "switch",
        "try",
        "using",
        "lock",
        "fixed",
        "synchronized",
        "with",
    ];
    let first = pattern.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    pattern.ends_with('}') && words.contains(&first)
}

/// The pattern without the indentation that it was pasted with.
fn dedent(pattern: &str) -> String {
    let pattern = pattern.trim_matches(['\n', '\r']).trim_end();
    let indent: String = pattern.chars().take_while(|c| *c == ' ' || *c == '\t').collect();
    if indent.is_empty() {
        return pattern.to_owned();
    }
    let lines: Vec<&str> =
        pattern.split('\n').map(|line| line.strip_prefix(indent.as_str()).unwrap_or(line)).collect();
    lines.join("\n").trim_start().to_owned()
}

/// Why a rung did not take the fragment.
struct Refusal {
    rung: &'static str,
    /// Byte of the pattern at which the parser stopped.
    at: usize,
    said: String,
    /// How much of the text the parser could not use; less is nearer.
    cost: usize,
    misfit: Option<Misfit>,
    /// The rung takes only some kinds of node; a broader one's words are of more use.
    narrow: bool,
}

/// What is the same on every rung.
struct Ground<'p> {
    language: &'static Language,
    grammar: tree_sitter::Language,
    kinds: Arc<Kinds>,
    pattern: &'p str,
    lexed: &'p Lexed,
}

struct Climber<'p> {
    ground: Ground<'p>,
    parser: Parser,
    refusals: Vec<Refusal>,
}

/// What is put in a variable's place.
struct Form {
    text: &'static str,
    twin: bool,
    takes_end: bool,
}

impl Ground<'_> {
    /// The language's forms are followed by those of its twins.
    fn form(&self, choice: usize) -> Form {
        let holes = self.language.holes;
        let twin = || choice.checked_sub(holes.len()).and_then(|at| self.language.traits.twins.get(at));
        match (holes.get(choice), twin()) {
            (Some(text), _) => Form { text, twin: false, takes_end: false },
            (None, Some(twin)) => Form { text: twin.form, twin: true, takes_end: twin.takes_end },
            (None, None) => Form { text: "%", twin: false, takes_end: false },
        }
    }

    /// The variables that stand where two things look alike, each with the other form for it.
    fn doubtful(&self) -> Vec<(usize, usize)> {
        let mut places = Vec::new();
        for (at, hole) in self.lexed.holes.iter().enumerate() {
            let before = self.pattern.get(..hole.start).unwrap_or_default().trim_end();
            let after = self.pattern.get(hole.end..).unwrap_or_default().trim_start();
            let place = Place { before, after, is_run: hole.is_run };
            for (twin, kind) in self.language.traits.twins.iter().enumerate() {
                if hole.lead.is_none() && (kind.when)(&place) {
                    places.push((at, self.language.holes.len() + twin));
                }
            }
        }
        places
    }

    fn scaffold(&self, rung: &Rung, choice: &[usize]) -> Scaffolded<'_> {
        let mut text = String::with_capacity(rung.prefix.len() + self.pattern.len() + rung.suffix.len() + 64);
        text.push_str(rung.prefix);
        let start = text.len();
        let mut at = 0;
        let mut filled = Vec::with_capacity(self.lexed.holes.len());
        for (index, hole) in self.lexed.holes.iter().enumerate() {
            text.push_str(self.pattern.get(at..hole.start).unwrap_or_default());
            at = hole.end;
            let chosen = choice
                .get(index)
                .map_or(Form { text: "%", twin: false, takes_end: false }, |c| self.form(*c));
            let form = hole.lead.map_or(chosen.text, |lead| lead.form);
            let (white, form) = form.split_at(form.len() - form.trim_ascii_start().len());
            text.push_str(white);
            let from = text.len();
            // No keyword, and nobody's name.
            text.push_str(&form.replace('%', &format!("zqxh{index}")));
            // A line break behind it ends what is before, and is no part of it; so is the comma that makes a tuple.
            let whole = text.get(from..).unwrap_or_default().trim_ascii_end();
            let own = if chosen.twin { whole.trim_end_matches(',') } else { whole };
            let to = from + own.len();
            filled.push(Filled { range: from..to, takes_end: chosen.takes_end });
        }
        text.push_str(self.pattern.get(at..).unwrap_or_default());
        let end = text.len() + usize::from(rung.completes);
        text.push_str(rung.suffix);
        Scaffolded {
            language: self.language,
            grammar: &self.grammar,
            kinds: &self.kinds,
            pattern: self.pattern,
            lexed: self.lexed,
            text,
            fragment: start..end,
            filled,
        }
    }
}

impl Climber<'_> {
    /// With the language's first hole text in every variable's place.
    fn plain(&mut self, rung: &Rung) -> Result<Built, usize> {
        let choice = vec![0; self.ground.lexed.holes.len()];
        self.attempt(rung, &choice)
    }

    /// Whether the parser made something of the fragment's beginning in this rung.
    fn came_into(&self, rung: &Rung) -> bool {
        let starts_with_hole = self.ground.lexed.holes.first().is_some_and(|h| h.start == 0);
        rung.when.is_some()
            || starts_with_hole
            || self.refusals.last().is_some_and(|r| r.rung == rung.name && r.at > 0)
    }

    /// With whichever hole texts the parser likes in this rung: one variable after the other is given the text that leaves the
    /// least error.
    fn shaped(&mut self, rung: &Rung) -> Result<Built, usize> {
        let holes = self.ground.lexed.holes.len();
        let texts = self.ground.language.holes.len();
        let mut tries = 0;
        // One text for all is right more often than not.
        let mut best: Option<(usize, Vec<usize>)> = None;
        for text in 0..texts {
            let choice = vec![text; holes];
            tries += 1;
            match self.attempt(rung, &choice) {
                Ok(built) => return Ok(built),
                Err(cost) => {
                    if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                        best = Some((cost, choice));
                    }
                }
            }
        }
        if holes < 2 {
            return Err(usize::MAX);
        }
        if let Some(built) = self.by_brackets(rung) {
            return Ok(built);
        }
        let mut starts = vec![vec![0; holes]];
        starts.extend(best.map(|(_, choice)| choice).filter(|c| c.iter().any(|t| *t != 0)));
        for start in starts {
            if let Some(built) = self.nearer_and_nearer(rung, start, &mut tries) {
                return Ok(built);
            }
        }
        Err(usize::MAX)
    }

    /// One form for what stands in parentheses and another for what stands in braces: `void f($$$A) { $$$B }`.
    fn by_brackets(&mut self, rung: &Rung) -> Option<Built> {
        let opener = |hole: &lex::Hole| {
            let before = self.ground.pattern.get(..hole.start).unwrap_or_default();
            hole.is_run.then(|| before.chars().rev().find(|c| matches!(c, '(' | '{' | ')' | '}'))).flatten()
        };
        let openers: Vec<Option<char>> = self.ground.lexed.holes.iter().map(opener).collect();
        let texts = self.ground.language.holes.len();
        let inside = |bracket| if openers.contains(&Some(bracket)) { texts } else { 1 };
        for round in 0..inside('(') {
            for curly in 0..inside('{') {
                let choice: Vec<usize> = openers
                    .iter()
                    .map(|opener| match opener {
                        Some('(') => round,
                        Some('{') => curly,
                        _ => 0,
                    })
                    .collect();
                if let Ok(built) = self.attempt(rung, &choice) {
                    return Some(built);
                }
            }
        }
        None
    }

    /// Changes the variable's text that takes away the most error, again and again.
    fn nearer_and_nearer(&mut self, rung: &Rung, mut choice: Vec<usize>, tries: &mut usize) -> Option<Built> {
        let texts = self.ground.language.holes.len();
        let mut least = match self.attempt(rung, &choice) {
            Ok(built) => return Some(built),
            Err(cost) => cost,
        };
        loop {
            let mut better: Option<(usize, usize, usize)> = None;
            for hole in 0..choice.len() {
                for text in 0..texts {
                    if choice.get(hole) == Some(&text) {
                        continue;
                    }
                    *tries += 1;
                    if *tries > limits::SHAPE_TRIES {
                        return None;
                    }
                    let mut other = choice.clone();
                    if let Some(slot) = other.get_mut(hole) {
                        *slot = text;
                    }
                    match self.attempt(rung, &other) {
                        Ok(built) => return Some(built),
                        Err(cost) if cost < better.map_or(least, |(c, _, _)| c) => {
                            better = Some((cost, hole, text))
                        }
                        Err(_) => {}
                    }
                }
            }
            let (cost, hole, text) = better?;
            least = cost;
            if let Some(slot) = choice.get_mut(hole) {
                *slot = text;
            }
        }
    }

    /// What a fragment that a rung takes can be besides, with other forms where two things look alike.
    fn twins(&mut self, rung: &Rung, choice: &[usize]) -> Vec<Built> {
        let places = self.ground.doubtful();
        // Every combination of a few; of many each for itself.
        let together: Vec<u32> = match places.len() {
            0 => return Vec::new(),
            few @ 1..=3 => (1..1 << few).collect(),
            many => (0..many.min(limits::TWINS)).map(|at| 1 << at).collect(),
        };
        let mut twins = Vec::new();
        for set in together {
            let mut other = choice.to_vec();
            for (_, (hole, form)) in places.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1) {
                if let Some(slot) = other.get_mut(*hole) {
                    *slot = *form;
                }
            }
            twins.extend(self.attempt(rung, &other));
        }
        twins
    }

    fn attempt(&mut self, rung: &Rung, choice: &[usize]) -> Result<Built, usize> {
        let scaffold = self.ground.scaffold(rung, choice);
        let Some(tree) = self.parser.parse(&scaffold.text, None) else {
            return Err(usize::MAX);
        };
        let complaint = if tree.root_node().has_error() { complaint(&tree, &scaffold, rung) } else { None };
        let refusal = if let Some(refusal) = complaint {
            refusal
        } else {
            match scaffold.read(&tree, rung) {
                // A variable in a form of its own would make the whole pattern into what the form says.
                Ok(built) if built.bare && choice.iter().any(|c| *c != 0) => return Err(usize::MAX / 2),
                Ok(built) if rung.only.is_empty() || built.fits(rung.only) => {
                    return Ok(Built { choice: choice.to_vec(), ..built });
                }
                // It is whole, but not what the rung is for; no reason to name it as an error.
                Ok(_) => return Err(usize::MAX / 2),
                Err(misfit) => {
                    let said = match misfit {
                        Misfit::NotWhole => {
                            "the fragment is not whole here: it begins or ends inside of something"
                        }
                        Misfit::OnlyComment => {
                            "there is nothing but a comment, and comments are not searched"
                        }
                        Misfit::Broken => "a variable stands where no single node can",
                        Misfit::NoBody => {
                            "the block that belongs to it is missing; write `$$$BODY` for whatever it holds"
                        }
                        Misfit::TooLarge | Misfit::OnlyRun => "",
                    };
                    Refusal {
                        rung: rung.name,
                        at: 0,
                        said: said.to_owned(),
                        cost: scaffold.text.len(),
                        misfit: Some(misfit),
                        narrow: !rung.only.is_empty(),
                    }
                }
            }
        };
        let cost = refusal.cost;
        self.refusals.push(refusal);
        Err(cost)
    }

    /// The refusal that came furthest, as an error.
    fn error(&self) -> PatternError {
        let misfit = |wanted: &Misfit| self.refusals.iter().any(|r| r.misfit.as_ref() == Some(wanted));
        if misfit(&Misfit::TooLarge) {
            return PatternError::TooLarge;
        }
        if misfit(&Misfit::OnlyRun) {
            return PatternError::OnlyRun;
        }
        let mut tried: Vec<&'static str> = Vec::new();
        for rung in self
            .ground
            .language
            .rungs
            .iter()
            .filter(|r| r.when.is_none_or(|looks| looks(self.ground.pattern)))
        {
            if !tried.contains(&rung.name) {
                tried.push(rung.name);
            }
        }
        let best = self.refusals.iter().min_by_key(|r| {
            let telling = matches!(r.misfit, Some(Misfit::OnlyComment | Misfit::NoBody));
            (!telling, r.misfit.is_some(), r.narrow, usize::MAX - r.at, r.cost)
        });
        let (rung, at, said) = match best {
            Some(best) => (best.rung, best.at, best.said.clone()),
            None => (tried.first().copied().unwrap_or("file"), 0, "it fits no context".to_owned()),
        };
        let before = self.ground.pattern.get(..at).unwrap_or(self.ground.pattern);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        PatternError::Unparseable(Box::new(Unparseable {
            language: self.ground.language.id,
            rung,
            line,
            column,
            said,
            tried,
        }))
    }
}

/// The first error of a tree and how much of the text is in error. `None` where the grammar only misses a token that it keeps
/// hidden, such as the line break after a statement.
fn complaint(tree: &Tree, scaffold: &Scaffolded, rung: &Rung) -> Option<Refusal> {
    let mut cost = 0;
    let mut first: Option<Node> = None;
    let mut cursor = tree.walk();
    'walk: loop {
        let node = cursor.node();
        if node.is_error() || node.is_missing() {
            cost += if node.is_missing() { 3 } else { 5 + node.end_byte() - node.start_byte() };
            first = first.or(Some(node));
        }
        if node.has_error() && !node.is_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                break 'walk;
            }
        }
    }
    let node = first?;
    let inside = node.start_byte() >= scaffold.fragment.start && node.start_byte() < scaffold.fragment.end;
    let at = scaffold.in_pattern(node.start_byte().clamp(scaffold.fragment.start, scaffold.fragment.end));
    let said = if node.is_missing() {
        format!("`{}` is missing", node.kind())
    } else if inside {
        let rest = scaffold.pattern.get(at..).unwrap_or_default();
        let shown: String = rest.lines().next().unwrap_or_default().chars().take(40).collect();
        format!("did not understand `{shown}`")
    } else {
        "the fragment is not whole: something is not closed, or is closed twice".to_owned()
    };
    Some(Refusal { rung: rung.name, at, said, cost, misfit: None, narrow: !rung.only.is_empty() })
}

/// Whether one rung alone takes a fragment.
#[cfg(test)]
pub(super) fn takes(language: &'static Language, rung: &Rung, fragment: &str) -> bool {
    let lexed = lex::lex(fragment, language.traits.leads).unwrap();
    let grammar = (language.grammar)();
    let kinds = Arc::new(Kinds::of(language, &grammar));
    let mut parser = Parser::new();
    parser.set_language(&grammar).unwrap();
    let ground = Ground { language, grammar, kinds, pattern: fragment, lexed: &lexed };
    let mut climber = Climber { ground, parser, refusals: Vec::new() };
    rung.when.is_none_or(|looks| looks(fragment))
        && (climber.plain(rung).is_ok() || climber.shaped(rung).is_ok())
}
