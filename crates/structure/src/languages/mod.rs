//! The languages: which grammar reads them, which files are theirs, and the contexts (rungs) a fragment of theirs can
//! stand in. All of it is data; a new language is a new row.

mod table;

use std::path::Path;

/// A language that can be searched.
///
/// Rows are compared by [`Language::id`]; there is one static row per language.
#[derive(Debug)]
pub struct Language {
    /// What `language` takes and results name (SPEC A2, A8): `python`, `c-sharp`, `tsx`.
    pub id: &'static str,
    /// For people: `C#`.
    pub name: &'static str,
    /// Other ids that are accepted for it: `py`, `csharp`.
    pub aliases: &'static [&'static str],
    /// File name endings without the dot, lower case.
    pub extensions: &'static [&'static str],
    /// Whole file names: `Makefile`. One that ends in `*` is a prefix: `Dockerfile.*`.
    pub file_names: &'static [&'static str],
    /// Names of interpreters in a `#!` line, without version digits.
    pub shebangs: &'static [&'static str],
    /// The parser's tables. Cheap: it hands out a reference.
    pub grammar: fn() -> tree_sitter::Language,
    /// The contexts a fragment can stand in, in the order they are tried.
    pub rungs: &'static [Rung],
    /// Texts that can stand where a `$NAME` is, with `%` for a fresh identifier, in the order they are tried. The first one
    /// is tried on every rung before any other.
    pub holes: &'static [&'static str],
    /// What is peculiar to the language.
    pub traits: Traits,
}

/// What else a variable can stand for in a place where two things look alike: `{$$$A}` is a set of Python's and a dictionary, the `$A` of
/// `sizeof($A)` a value and a type. Both are searched together.
#[derive(Debug)]
pub struct Twin {
    /// Stands where the variable is, with `%` for a fresh identifier.
    pub form: &'static str,
    /// Whether a variable with this text of the pattern before and behind it is in such a place.
    pub when: fn(&Place) -> bool,
    /// The terminator behind the variable belongs to what it stands for: the `;` in `for (int i = 0; …`. It is no part of the binding.
    pub takes_end: bool,
}

/// A word before a run that belongs to the first of its nodes.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub struct Lead {
    /// The word.
    pub word: &'static str,
    /// What stands for word and run together, with `%` for a fresh identifier.
    pub form: &'static str,
    /// One of these must follow; a line break stands for the end of the pattern too.
    pub before: &'static [char],
}

/// Where a variable stands in a pattern.
#[derive(Debug, Clone, Copy)]
pub struct Place<'p> {
    /// The text before it, without white space at its end.
    pub before: &'p str,
    /// The text behind it, without white space at its beginning.
    pub after: &'p str,
    /// It is a `$$$NAME`.
    pub is_run: bool,
}

impl Twin {
    /// Something that ends where the variable does.
    pub const fn new(form: &'static str, when: fn(&Place) -> bool) -> Twin {
        Twin { form, when, takes_end: false }
    }

    /// Something that the terminator behind the variable belongs to.
    pub const fn with_end(form: &'static str, when: fn(&Place) -> bool) -> Twin {
        Twin { form, when, takes_end: true }
    }
}

/// What is peculiar to a language when its trees are compared.
#[derive(Debug, Clone, Copy)]
pub struct Traits {
    /// Keywords are the same in any case (`SELECT`, `select`).
    pub keywords_any_case: bool,
    /// A `;` between statements says no more than a line break.
    pub soft_semicolons: bool,
    /// Node kinds that a `$$$` never takes in beside the built-in ones: clauses that follow a list of statements without a
    /// bracket between, such as `rescue`.
    pub clauses: &'static [&'static str],
    /// Node kinds that hold loose tokens instead of code, such as what stands in a macro's brackets. Directly in one a `$NAME`
    /// stands for all tokens up to the next separator.
    pub loose_trees: &'static [&'static str],
    /// Leaf kinds whose text is compared without the white space around it, because the grammar puts some into the leaf.
    pub loose_leaves: &'static [&'static str],
    /// Places in which a variable can stand for two things that look alike.
    pub twins: &'static [Twin],
    /// Words that begin what a `$$$` behind them stands for: in Python's `[$E for $$$C]` the run is all clauses, without the first word.
    pub leads: &'static [Lead],
    /// A node that stands in the place of a list of arguments and is its only argument, brackets included, and the list's kind:
    /// `sum(x for x in y)`.
    pub bare_argument: Option<(&'static str, &'static str)>,
}

impl Traits {
    /// Nothing peculiar.
    pub const PLAIN: Traits = Traits {
        keywords_any_case: false,
        soft_semicolons: false,
        clauses: &[],
        loose_trees: &[],
        loose_leaves: &[],
        twins: &[],
        leads: &[],
        bare_argument: None,
    };
}

/// A context that a fragment is parsed in: `prefix`, the fragment, `suffix` make a whole file (SPEC A4).
#[derive(Debug, Clone, Copy)]
pub struct Rung {
    /// Named in results as the reading: `statement`, `match arm`.
    pub name: &'static str,
    /// What stands before the fragment.
    pub prefix: &'static str,
    /// What stands after it.
    pub suffix: &'static str,
    /// The fragment is accepted only where its outermost node is of one of these kinds. Empty: any.
    pub only: &'static [&'static str],
    /// A fragment that fills this context is a whole statement, member or item.
    pub statement: bool,
    /// A declaration here is the same thing to a reader as a declaration in the other rungs with this mark (a local
    /// variable, a field, a top-level variable): they are searched together.
    pub declares: bool,
    /// Readings in rungs of one group are searched together even where they are no declarations (`a: $B` is a property and a
    /// parameter with its type). Empty: no group.
    pub group: &'static str,
    /// The first character of `suffix` is the terminator that the fragment lacks: `foo($A)` for `foo($A);`. It is read as
    /// a part of the fragment and then left out.
    pub completes: bool,
    /// Whether the fragment's text looks as if it were meant for this rung; for contexts that the parser alone cannot tell apart.
    pub when: Option<fn(&str) -> bool>,
}

impl Rung {
    /// A context inside statements or expressions.
    pub const fn new(name: &'static str, prefix: &'static str, suffix: &'static str) -> Rung {
        Rung {
            name,
            prefix,
            suffix,
            only: &[],
            statement: false,
            declares: false,
            group: "",
            completes: false,
            when: None,
        }
    }

    /// Accepts only fragments whose outermost node is of one of `kinds`.
    pub const fn only(self, kinds: &'static [&'static str]) -> Rung {
        Rung { only: kinds, ..self }
    }

    /// Marks a context that whole statements, members or items stand in.
    pub const fn statement(self) -> Rung {
        Rung { statement: true, ..self }
    }

    /// Marks a context of statements, members or items in which declarations stand.
    pub const fn declares(self) -> Rung {
        Rung { statement: true, declares: true, ..self }
    }

    /// The first character of the suffix is the terminator that the fragment may lack.
    pub const fn completes(self) -> Rung {
        Rung { completes: true, ..self }
    }

    /// Searched together with the other rungs of this group.
    pub const fn group(self, group: &'static str) -> Rung {
        Rung { group, ..self }
    }

    /// Tried only for fragments that look like it.
    pub const fn when(self, when: fn(&str) -> bool) -> Rung {
        Rung { when: Some(when), ..self }
    }
}

impl PartialEq for Language {
    fn eq(&self, other: &Language) -> bool {
        self.id == other.id
    }
}

impl Eq for Language {}

/// Every language of this build, in order of their ids.
pub fn all() -> &'static [&'static Language] {
    table::ALL
}

/// The language of an id or of one of its aliases, in any case.
pub fn by_id(id: &str) -> Option<&'static Language> {
    let id = id.trim();
    let named = |name: &&str| name.eq_ignore_ascii_case(id);
    all()
        .iter()
        .copied()
        .find(|l| named(&l.id))
        .or_else(|| all().iter().copied().find(|l| l.aliases.iter().any(named)))
}

/// The language of a file: by its whole name, else by its ending, else by the interpreter in its first line.
pub fn for_path(path: &Path, first_line: Option<&[u8]>) -> Option<&'static Language> {
    let name = path.file_name()?.to_string_lossy();
    let by_name = all().iter().copied().find(|l| {
        l.file_names.iter().any(|n| match n.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => *n == name,
        })
    });
    if by_name.is_some() {
        return by_name;
    }
    if let Some((_, extension)) = name.rsplit_once('.') {
        let extension = extension.to_ascii_lowercase();
        // An ending that is not in the table may still be a script with a `#!` line.
        let known = all().iter().copied().find(|l| l.extensions.contains(&extension.as_str()));
        if known.is_some() {
            return known;
        }
    }
    let interpreter = interpreter(first_line?)?;
    all().iter().copied().find(|l| l.shebangs.contains(&interpreter.as_str()))
}

/// The interpreter's name in a `#!` line, without its folder and version: `python3.11` is `python`.
fn interpreter(line: &[u8]) -> Option<String> {
    let line = line.strip_prefix(b"#!")?;
    let line = line.split(|b| *b == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let base = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
    let mut words = line.split_whitespace();
    let mut program = base(words.next()?);
    if program == "env" {
        // `env -S deno run`, `env VAR=1 python3`
        program = base(words.find(|w| !w.starts_with('-') && !w.contains('='))?);
    }
    let bare = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    Some(if bare.is_empty() { program } else { bare.to_owned() })
}
