//! What the bytes of a file must hold for a reading to match in it: the pattern's tokens, and which of them follow each other.
//!
//! Everything here must be sound. A file that is turned away is not parsed, and a match in it would be lost in silence.

use memchr::memmem::Finder;

use super::Reading;
use super::build::pieces;
use super::shape::{Compare, Element, Shape, What};

/// Tokens that follow one another in every match, with nothing between them but what the matcher skips: white space, comments and
/// separators behind the last element of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) words: Vec<Word>,
    /// The word to look for first. It is compared byte by byte.
    pub(crate) pivot: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// Without white space at its ends, never empty.
    pub(crate) text: Box<[u8]>,
    pub(crate) any_case: bool,
}

/// The byte strings that every match must hold, the longest first.
pub(super) fn literals(shapes: &[Shape]) -> Vec<Box<[u8]>> {
    let mut sets = shapes.iter().map(|shape| {
        let words = links(shape).into_iter().flatten();
        words.filter(|word| !word.any_case).map(|word| word.text).collect::<Vec<_>>()
    });
    let mut all = sets.next().unwrap_or_default();
    for set in sets {
        all.retain(|literal| set.contains(literal));
    }
    all.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    all.dedup();
    all
}

/// Per shape, the chains that a file must hold for it to match. Empty where one of the shapes needs none: then nothing can be said.
pub(super) fn chains(shapes: &[Shape]) -> Vec<Vec<Chain>> {
    let mut all: Vec<Vec<Chain>> = Vec::new();
    for shape in shapes {
        let mut own: Vec<Chain> = Vec::new();
        for words in links(shape) {
            // Rare enough to be worth the look, and surely these bytes.
            let exact = words.iter().enumerate().filter(|(_, word)| !word.any_case);
            let pivot = exact.max_by_key(|(_, word)| word.text.len()).map(|(at, _)| at);
            if let (Some(pivot), true) = (pivot, words.len() > 1) {
                let chain = Chain { words, pivot };
                if !own.contains(&chain) {
                    own.push(chain);
                }
            }
        }
        if own.is_empty() {
            return Vec::new();
        }
        if !all.contains(&own) {
            all.push(own);
        }
    }
    all
}

/// The literal tokens of a shape in their order, cut where something stands between that can be any text.
fn links(shape: &Shape) -> Vec<Vec<Word>> {
    let mut links = vec![Vec::new()];
    gather(&shape.roots, &mut links);
    links.retain(|words| !words.is_empty());
    links
}

fn gather(elements: &[Element], links: &mut Vec<Vec<Word>>) {
    for (at, element) in elements.iter().enumerate() {
        match &element.what {
            What::Inner { children, .. } => gather(children, links),
            What::Any { .. } | What::Run { .. } => links.push(Vec::new()),
            What::Token(token) => {
                let beside_run =
                    |i: Option<usize>| i.and_then(|i| elements.get(i)).is_some_and(Element::is_run);
                // A separator that a file may lack cuts nothing: what follows it follows what was before it.
                let may_lack = token.trailing
                    || (element.is_separator()
                        && (beside_run(at.checked_sub(1)) || beside_run(Some(at + 1))));
                if may_lack {
                    continue;
                }
                let whole = token.text.trim_ascii();
                let parts = match token.compare {
                    Compare::Pieces => pieces(&token.text).collect(),
                    _ => vec![whole],
                };
                let any_case = token.compare == Compare::AnyCase;
                let words = parts
                    .into_iter()
                    .filter(|part| !part.is_empty())
                    .map(|part| Word { text: Box::from(part), any_case });
                if let Some(last) = links.last_mut() {
                    last.extend(words);
                }
            }
        }
    }
}

/// Tells from bytes alone whether a reading can match in a file.
pub(crate) struct Sieve<'r> {
    literals: Vec<Finder<'r>>,
    shapes: Vec<Vec<(&'r Chain, Finder<'r>)>>,
    hides_text: bool,
}

/// What the bytes of a file say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sifted {
    /// The longest token is not there.
    First,
    /// Another token is not there.
    Another,
    /// Every token is there, but nowhere one after the other as in the pattern.
    Scattered,
    /// There may be a match.
    Passes,
}

impl<'r> Sieve<'r> {
    pub(crate) fn of(reading: &'r Reading) -> Sieve<'r> {
        let finders =
            |shape: &'r Vec<Chain>| shape.iter().map(|chain| (chain, Finder::new(chain.pivot()))).collect();
        Sieve {
            literals: reading.literals.iter().map(|literal| Finder::new(&**literal)).collect(),
            shapes: reading.chains.iter().map(finders).collect(),
            hides_text: reading.kinds.hides_text,
        }
    }

    /// The longest token.
    pub(crate) fn first(&self) -> Option<&[u8]> {
        self.literals.first().map(Finder::needle)
    }

    pub(crate) fn sift(&self, text: &[u8]) -> Sifted {
        let mut literals = self.literals.iter();
        if literals.next().is_some_and(|first| first.find(text).is_none()) {
            return Sifted::First;
        }
        if literals.any(|literal| literal.find(text).is_none()) {
            return Sifted::Another;
        }
        let stands =
            |(chain, pivots): &(&Chain, Finder<'_>)| chain.may_stand_in(text, pivots, self.hides_text);
        if self.shapes.is_empty() || self.shapes.iter().any(|shape| shape.iter().all(stands)) {
            return Sifted::Passes;
        }
        Sifted::Scattered
    }
}

impl Chain {
    /// Whether the words may follow one another somewhere in a text. `hides` says that the language can hide any text behind a line
    /// break, as here-documents do.
    fn may_stand_in(&self, text: &[u8], pivots: &Finder<'_>, hides: bool) -> bool {
        pivots.find_iter(text).any(|at| self.may_stand_at(text, at, hides))
    }

    fn pivot(&self) -> &[u8] {
        self.words.get(self.pivot).map_or(&[], |word| &word.text)
    }

    fn may_stand_at(&self, text: &[u8], at: usize, hides: bool) -> bool {
        let (before, after) = self.words.split_at(self.pivot);
        let mut end = at + self.pivot().len();
        for word in after.iter().skip(1) {
            match right(text, end, word, hides) {
                Beside::Word(next) => end = next,
                Beside::Perhaps => break,
                Beside::Other => return false,
            }
        }
        let mut start = at;
        for word in before.iter().rev() {
            match left(text, start, word) {
                Beside::Word(next) => start = next,
                Beside::Perhaps => break,
                Beside::Other => return false,
            }
        }
        true
    }
}

/// What stands beside a place, white space apart.
enum Beside {
    /// The word, up to here.
    Word(usize),
    /// Something that the matcher may skip, such as a comment. Behind it may be anything.
    Perhaps,
    Other,
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn right(text: &[u8], from: usize, word: &Word, hides: bool) -> Beside {
    let rest = text.get(from..).unwrap_or_default();
    let blank = rest.iter().take_while(|byte| is_space(**byte)).count();
    let (space, rest) = rest.split_at(blank);
    if hides && space.contains(&b'\n') || may_begin_skipped(rest, space.last().copied()) {
        return Beside::Perhaps;
    }
    if rest.get(..word.text.len()).is_some_and(|there| word.is(there)) {
        return Beside::Word(from + blank + word.text.len());
    }
    Beside::Other
}

fn left(text: &[u8], to: usize, word: &Word) -> Beside {
    let rest = text.get(..to).unwrap_or_default();
    let blank = rest.iter().rev().take_while(|byte| is_space(**byte)).count();
    let (rest, space) = rest.split_at(rest.len() - blank);
    // A comment that ends with its line looks like anything from behind.
    if space.contains(&b'\n') || space.contains(&b'\r') || may_end_skipped(rest) {
        return Beside::Perhaps;
    }
    let start = rest.len().saturating_sub(word.text.len());
    if rest.get(start..).is_some_and(|there| word.is(there)) {
        return Beside::Word(start);
    }
    Beside::Other
}

impl Word {
    fn is(&self, there: &[u8]) -> bool {
        if self.any_case { self.text.eq_ignore_ascii_case(there) } else { *self.text == *there }
    }
}

/// Whether a comment, a continuation of the line, a preprocessor's line or whatever else a grammar lets stand between two tokens could
/// begin here. This is the union over all grammars: their `extras`, and the separators that the matcher skips by itself.
fn may_begin_skipped(rest: &[u8], before: Option<u8>) -> bool {
    let Some(first) = rest.first() else { return false };
    let second = |wanted: &[u8]| rest.get(1).is_some_and(|byte| wanted.contains(byte));
    match first {
        // `#` in shells, scripts, C's preprocessor; `%` in Erlang; a backslash or a grave accent before a line break.
        b'#' | b'%' | b'\\' | b'`' | b',' | b';' => true,
        b'/' => second(b"/*"),
        b'-' => second(b"-"),
        // OCaml and F#.
        b'(' => second(b"*"),
        // Haskell and Elm.
        b'{' => second(b"-"),
        // `<!--`, `<?php`, PowerShell's `<#`.
        b'<' => second(b"!?#"),
        // `?>`: PHP's way out to the page and back.
        b'?' => second(b">"),
        // OCaml's `[@attribute]`.
        b'[' => second(b"@"),
        // Ruby's `=begin` and Perl's `=pod` begin a line.
        b'=' => before.is_none_or(|byte| matches!(byte, b'\n' | b'\r')),
        // Spaces of Unicode, byte order marks, and what some grammars take for a space below 0x20.
        byte => *byte >= 0x80 || (byte.is_ascii_control() && !is_space(*byte)),
    }
}

/// The same, seen from its end. What ends with its line is not told here.
fn may_end_skipped(rest: &[u8]) -> bool {
    let Some(last) = rest.last() else { return false };
    let ends = |with: &[&[u8]]| with.iter().any(|end| rest.ends_with(end));
    match last {
        // Julia's `=#` too; OCaml's attributes and Lua's `]]` end with a bracket.
        b'#' | b'%' | b'\\' | b'`' | b',' | b';' | b'/' | b']' => true,
        b')' => ends(&[b"*)"]),
        b'}' => ends(&[b"-}"]),
        b'>' => ends(&[b"-->", b"#>", b"?>"]),
        // `<?php`, `<?=` and `<?`.
        b'?' | b'=' => ends(&[b"<?", b"<?="]),
        b'p' | b'P' => rest.len() >= 5 && rest[rest.len() - 5..].eq_ignore_ascii_case(b"<?php"),
        byte => *byte >= 0x80 || (byte.is_ascii_control() && !is_space(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use crate::{compile, languages::by_id};

    fn chains(language: &str, pattern: &str) -> Vec<Vec<String>> {
        let compiled = compile(by_id(language).unwrap(), pattern).unwrap();
        let chains = compiled.readings[0].chains.iter().flatten();
        let words = chains.map(|chain| {
            chain.words.iter().map(|word| String::from_utf8_lossy(&word.text).into_owned()).collect()
        });
        words.collect()
    }

    #[test]
    fn chains_are_cut_where_anything_may_stand() {
        assert_eq!(chains("python", "os.path.join($$$A)"), [vec!["os", ".", "path", ".", "join", "("]]);
        assert_eq!(chains("typescript", "$A as unknown"), [vec!["as", "unknown"]]);
        assert_eq!(chains("rust", "$X.unwrap().map($F)"), [vec![".", "unwrap", "(", ")", ".", "map", "("]]);
        // The comma of an empty run is absent, and with it nothing between the name and the bracket.
        assert_eq!(chains("python", "f(a, $$$B)"), [vec!["f", "(", "a"]]);
        assert_eq!(chains("c", "#define $A $B"), [vec!["#", "define"]]);
        assert_eq!(chains("python", "a is not $B"), [vec!["a", "is", "not"]]);
        assert_eq!(chains("sql", "SELECT a FROM $T"), [vec!["SELECT", "a", "FROM"]]);
        assert_eq!(chains("python", "$A == $B"), Vec::<Vec<String>>::new());
    }

    #[test]
    fn what_may_be_skipped_lets_pass_and_what_cannot_does_not() {
        let stands = |language: &str, pattern: &str, text: &str| {
            let compiled = compile(by_id(language).unwrap(), pattern).unwrap();
            compiled.readings[0].may_match_in(text.as_bytes())
        };
        for (language, pattern, text, expected) in [
            ("python", "os.path.join($A)", "os.path.join(a)", true),
            ("python", "os.path.join($A)", "x = os . path\t.join (a)", true),
            ("python", "os.path.join($A)", "x.path.join(os.path)", false),
            ("python", "os.path.join($A)", "', '.join(os.path)", false),
            ("python", "os.path.join($A)", "(os.path # os\n .join(a))", true),
            ("python", "os.path.join($A)", "os.path\\\n.join(a)", true),
            ("python", "os.path.join($A)", "os.path.join\u{feff}(a)", true),
            ("javascript", "a.b($C)", "a./* x */b(1)", true),
            ("javascript", "a.b($C)", "a/* x */.b(1)", true),
            ("javascript", "a.b($C)", "c.b(1)", false),
            ("javascript", "f(a)", "f(a,)", true),
            ("typescript", "$A as unknown", "x as  unknown", true),
            ("typescript", "$A as unknown", "x: unknown as y", false),
            ("c", "#define $A $B", "#  define X 1", true),
            ("php", "$a->b()", "$a ?> x <?php ->b()", true),
            ("ruby", "f(a).b", "f(a)\n=begin\n=end\n.b", true),
            ("sql", "SELECT a FROM $T", "select a from t", true),
        ] {
            assert_eq!(stands(language, pattern, text), expected, "{language} {pattern} {text}");
        }
    }
}
