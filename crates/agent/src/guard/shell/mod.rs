//! What a shell line would do, as far as that can be known without running it (SPEC G1).
//!
//! Two readers look at the line: the grammar (`tree`), which finds every command in every corner, and a small strict one
//! (`flat`). Deny rules are tried against what either found; a line passes by rules only where both agree and nothing is
//! uncertain.

mod flat;
mod programs;
mod tree;
mod word;

pub(crate) use flat::Redirect;
pub(crate) use programs::base_name;
pub(crate) use word::{HOLE, Sure, Word, shown};

use crate::limits::{SHELL_LINE, SHELL_SCRIPTS};
use programs::Pass;

/// The whole of a line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    /// For deny and prompt rules: every command that the line runs or could run.
    pub(crate) candidates: Vec<Candidate>,
    /// For allow rules: everything that has to be let through.
    pub(crate) needs: Vec<Need>,
    pub(crate) redirects: Vec<Redirect>,
    /// Why the line could run commands that are not among the candidates.
    pub(crate) blind: Option<String>,
    /// Code in other languages, and text that could be code.
    pub(crate) code: Vec<String>,
    /// Whether a `cd` changes what relative paths mean.
    pub(crate) moves: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) words: Vec<Word>,
    /// Whether the line certainly runs it.
    pub(crate) certain: bool,
}

/// Something that has to be let through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// A rule that allows these words.
    Words(Vec<Word>),
    /// This directory being inside the working directory, or a rule that allows `cd` to it.
    Directory { words: Vec<Word>, to: Word },
    /// Nothing but a rule that allows everything.
    Everything(String),
}

/// Analyses a line.
pub(crate) fn analyse(source: &str) -> Line {
    let mut line = Line::default();
    line.add(source, 0);
    line
}

impl Line {
    fn add(&mut self, source: &str, depth: usize) {
        if source.len() > SHELL_LINE || depth > SHELL_SCRIPTS {
            self.unknown("the line is too long or too deeply nested to be read".into());
            return;
        }
        let mut tree = tree::read(source);
        let flat = flat::read(source);
        let mut doubts = std::mem::take(&mut tree.doubts);
        for command in &tree.commands {
            self.study(command, None, depth);
        }
        self.redirects.append(&mut tree.redirects.clone());
        match flat {
            Ok(flat) => {
                if doubts.is_empty() && !agree(&tree, &flat) {
                    doubts.push("the line can be read in more than one way".into());
                    if tree.blind.is_none() {
                        tree.blind = Some("the line can be read in more than one way".into());
                    }
                }
                let mut needs = Vec::new();
                for command in &flat.commands {
                    self.study(command, Some(&mut needs), depth);
                }
                for redirect in flat.redirects {
                    if !self.redirects.contains(&redirect) {
                        self.redirects.push(redirect);
                    }
                }
                if doubts.is_empty() {
                    self.needs.append(&mut needs);
                }
            }
            Err(why) => {
                // With one reader alone, a command that is named anywhere in the line cannot be ruled out.
                for mut words in tree::crude(source) {
                    for word in &mut words {
                        word.sure = Sure::Literal;
                    }
                    self.candidate(&words, false);
                }
                if doubts.is_empty() {
                    doubts.push(why);
                }
            }
        }
        for script in &tree.scripts {
            self.add(script, depth + 1);
        }
        if let Some(why) = tree.blind {
            self.blind.get_or_insert(why);
        }
        // A reason for every doubt would be a wall of text; the first says enough.
        if let Some(doubt) = doubts.into_iter().next() {
            self.needs.push(Need::Everything(doubt));
        }
    }

    fn unknown(&mut self, why: String) {
        self.needs.push(Need::Everything(why.clone()));
        self.blind.get_or_insert(why);
    }

    fn study(&mut self, words: &[Word], needs: Option<&mut Vec<Need>>, depth: usize) {
        if words.is_empty() {
            return;
        }
        self.candidate(words, true);
        let study = programs::study(words);
        let name = words.first().map_or("", |word| base_name(&word.text));
        self.moves |= matches!(name, "cd" | "pushd" | "popd" | "chdir");
        if let Some(why) = study.blind {
            self.blind.get_or_insert(why);
        }
        self.code.extend(study.code);
        self.redirects.extend(study.writes.into_iter().map(|target| Redirect { target, writes: true }));
        for inner in &study.possible {
            self.candidate(inner, false);
        }
        let inner_needs = needs.is_some();
        let mut nested = Vec::new();
        if depth < SHELL_SCRIPTS {
            for inner in &study.same {
                // The program itself in other words (`git push` for `git -C x push`) would be studied for ever.
                if inner.len() >= words.len() {
                    self.candidate(inner, true);
                } else {
                    self.study(inner, inner_needs.then_some(&mut nested), depth + 1);
                }
            }
        } else {
            self.unknown("the line is too deeply nested to be read".into());
        }
        for script in &study.scripts {
            self.add(script, depth + 1);
        }
        let Some(needs) = needs else { return };
        needs.push(match (study.doubt, study.pass) {
            (Some(why), _) => Need::Everything(why),
            (None, Pass::Harmless) => return,
            (None, Pass::Directory(to)) => Need::Directory { words: words.to_vec(), to },
            (None, Pass::Words) => Need::Words(words.to_vec()),
            (None, Pass::Inner(_)) => {
                needs.append(&mut nested);
                return;
            }
        });
    }

    fn candidate(&mut self, words: &[Word], certain: bool) {
        let candidate = Candidate { words: words.to_vec(), certain };
        if !self.candidates.contains(&candidate) {
            self.candidates.push(candidate);
        }
    }
}

fn agree(tree: &tree::Tree, flat: &flat::Flat) -> bool {
    let sorted = |commands: &[Vec<Word>]| {
        let mut commands = commands.to_vec();
        commands.sort();
        commands
    };
    let files = |redirects: &[Redirect]| {
        let mut redirects = redirects.to_vec();
        redirects.sort();
        redirects
    };
    sorted(&tree.commands) == sorted(&flat.commands) && files(&tree.redirects) == files(&flat.redirects)
}

/// The words of a pattern in a rule; `None` where it is more or less than plain words.
pub(crate) fn pattern_words(text: &str) -> Option<Vec<Word>> {
    let words = flat::words(text)?;
    words.iter().all(|word| word.sure != Sure::Unknown).then_some(words)
}
