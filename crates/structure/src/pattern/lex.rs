//! Finds the variables in a pattern's text (SPEC A1).

use super::{PatternError, Variable};
use crate::languages::Lead;

/// A place in the pattern that a variable stands at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hole {
    /// Bytes of the pattern.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Index into the variables; `None` for one that binds nothing.
    pub(super) variable: Option<usize>,
    pub(super) is_run: bool,
    /// The word before a run that belongs to what it stands for. `start` is where the word begins.
    pub(super) lead: Option<Lead>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lexed {
    pub(super) holes: Vec<Hole>,
    pub(super) variables: Vec<Variable>,
    pub(super) warnings: Vec<String>,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_'
}

/// The word before a run that begins what the run stands for, and where it begins.
fn lead<'l>(pattern: &str, start: usize, end: usize, leads: &'l [Lead]) -> Option<(usize, &'l Lead)> {
    let before = pattern.get(..start)?;
    let word = before.trim_end();
    let after = pattern.get(end..)?.trim_start_matches([' ', '\t']).chars().next().unwrap_or('\n');
    let lead = leads.iter().find(|lead| {
        let rest = word.strip_suffix(lead.word);
        let apart = word.len() < before.len()
            && rest.is_some_and(|rest| rest.is_empty() || rest.ends_with(char::is_whitespace));
        apart && lead.before.contains(&after)
    })?;
    Some((word.len() - lead.word.len(), lead))
}

pub(super) fn lex(pattern: &str, leads: &[Lead]) -> Result<Lexed, PatternError> {
    let bytes = pattern.as_bytes();
    let mut lexed = Lexed::default();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'$', bytes.get(at..).unwrap_or_default()) {
        let start = at + found;
        let dollars = bytes.iter().skip(start).take_while(|b| **b == b'$').count();
        let name_start = start + dollars;
        let word = bytes.iter().skip(name_start).take_while(|b| is_word(**b)).count();
        let end = name_start + word;
        at = end;
        let name = pattern.get(name_start..end).unwrap_or_default();
        let written = pattern.get(start..end).unwrap_or_default();
        let after_word = start.checked_sub(1).and_then(|i| bytes.get(i)).is_some_and(|b| is_word(*b));
        let proper =
            !name.is_empty() && name.bytes().all(is_name) && !name.starts_with(|c: char| c.is_ascii_digit());
        let is_hole = !after_word
            && bytes.get(end) != Some(&b'$')
            && match dollars {
                1 => proper,
                3 => proper || name.is_empty(),
                _ => false,
            };
        if !is_hole {
            if word > 0 {
                let why = if after_word {
                    "it is joined to the word before it"
                } else if dollars == 2 || dollars > 3 {
                    "a variable has one dollar sign, a run three"
                } else if bytes.get(end) == Some(&b'$') {
                    "it is joined to the `$` behind it"
                } else {
                    "a variable's name is capitals, digits and `_`"
                };
                let warning = format!("`{written}` is literal text: {why}");
                if !lexed.warnings.contains(&warning) {
                    lexed.warnings.push(warning);
                }
            }
            continue;
        }
        let is_run = dollars == 3;
        let variable = if name.is_empty() || name.starts_with('_') {
            None
        } else if let Some(known) = lexed.variables.iter().position(|v| v.name == name) {
            if let Some(v) = lexed.variables.get_mut(known) {
                if v.is_run != is_run {
                    return Err(PatternError::BothKinds { name: name.to_owned() });
                }
                v.repeated = true;
            }
            Some(known)
        } else {
            lexed.variables.push(Variable { name: name.to_owned(), is_run, repeated: false });
            Some(lexed.variables.len() - 1)
        };
        let lead = is_run.then(|| lead(pattern, start, end, leads)).flatten();
        let start = lead.map_or(start, |(start, _)| start);
        lexed.holes.push(Hole { start, end, variable, is_run, lead: lead.map(|(_, lead)| *lead) });
    }
    Ok(lexed)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn spans(pattern: &str) -> Vec<(&str, bool)> {
        let lexed = lex(pattern, &[]).unwrap();
        lexed.holes.iter().map(|h| (&pattern[h.start..h.end], h.is_run)).collect()
    }

    #[test]
    fn variables_are_capitals_and_runs_have_three_dollars() {
        assert_eq!(
            spans("f($A, $$$REST, $_, $$$, $A_2)"),
            [("$A", false), ("$$$REST", true), ("$_", false), ("$$$", true), ("$A_2", false),]
        );
    }

    #[test]
    fn other_dollars_are_literal_and_said() {
        for (pattern, warning) in [
            ("$lower", "`$lower` is literal text: a variable's name is capitals, digits and `_`"),
            ("$Foo", "`$Foo` is literal text: a variable's name is capitals, digits and `_`"),
            ("use$HOOK", "`$HOOK` is literal text: it is joined to the word before it"),
            ("$$A", "`$$A` is literal text: a variable has one dollar sign, a run three"),
            ("$1", "`$1` is literal text: a variable's name is capitals, digits and `_`"),
        ] {
            let lexed = lex(pattern, &[]).unwrap();
            assert_eq!((lexed.holes, lexed.warnings), (vec![], vec![warning.to_owned()]), "{pattern}");
        }
        assert_eq!(lex("${x} $ $(a)", &[]).unwrap(), Lexed::default());
    }

    #[test]
    fn names_that_begin_with_an_underscore_bind_nothing() {
        let lexed = lex("f($_X, $_X, $A, $A)", &[]).unwrap();
        assert_eq!(lexed.variables, [Variable { name: "A".to_owned(), is_run: false, repeated: true }]);
    }

    #[test]
    fn one_name_is_not_both_a_node_and_a_run() {
        assert_eq!(lex("f($A, $$$A)", &[]), Err(PatternError::BothKinds { name: "A".to_owned() }));
    }
}
