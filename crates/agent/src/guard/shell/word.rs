/// How sure one can be of what a word is when the shell has done its expansions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Sure {
    /// The text is what the program gets.
    Literal,
    /// Unquoted `*`, `?`, `[` or a leading `~`: file names take its place.
    Pattern,
    /// Holds a variable, a substitution or a brace expansion: could be any text, several words or none.
    Unknown,
}

/// A word of a command, quotes and backslashes removed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Word {
    /// With [`HOLE`] where the value is not known.
    pub(crate) text: String,
    pub(crate) sure: Sure,
    /// Whether any part was quoted: a quoted word is never a keyword or an assignment.
    pub(crate) quoted: bool,
}

/// Stands in [`Word::text`] for a piece that is not known before the shell runs.
pub(crate) const HOLE: char = '\u{f8ff}';

impl Word {
    pub(crate) fn literal(text: impl Into<String>) -> Self {
        Word { text: text.into(), sure: Sure::Literal, quoted: false }
    }

    /// The text, if it is certain.
    pub(crate) fn known(&self) -> Option<&str> {
        (self.sure == Sure::Literal).then_some(self.text.as_str())
    }

    /// For people: holes are shown as `…`, odd words are quoted.
    pub(crate) fn shown(&self) -> String {
        let text = self.text.replace(HOLE, "…");
        let plain = !text.is_empty()
            && text.chars().all(|c| !c.is_whitespace() && !"'\"\\$`;&|<>()#".contains(c) && !c.is_control());
        let keep = plain && (self.sure != Sure::Literal || !text.contains(['*', '?', '[', '~']));
        if keep { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
    }

    /// `NAME=`, `NAME+=` or `NAME[…]=` at its beginning, unquoted as far as one can see.
    pub(crate) fn assigns(&self) -> Option<&str> {
        let (left, _) = self.text.split_once('=')?;
        let name = left.strip_suffix('+').unwrap_or(left);
        let name = name.split_once('[').map_or(name, |(name, _)| name);
        let mut chars = name.chars();
        let starts = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        (starts && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')).then_some(name)
    }
}

/// The words for people, as one line.
pub(crate) fn shown(words: &[Word]) -> String {
    words.iter().map(Word::shown).collect::<Vec<_>>().join(" ")
}
