//! What a match is replaced by: text with `$NAME` and `$$$NAME` in it (SPEC A5).

/// A rewrite, taken apart once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Line ends are `\n` here, whatever the caller wrote.
    Text(String),
    Variable(String),
}

/// Why a rewrite cannot be carried out. The text is for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A variable that the pattern does not bind.
    #[error("The rewrite uses `{used}`, which the pattern does not bind. {}", bound_words(bound))]
    Unbound {
        /// As the rewrite has it.
        used: String,
        /// What the pattern binds, with its dollars.
        bound: Vec<String>,
    },
    /// `$_`, `$_X`, or `$$$` without a name.
    #[error(
        "The rewrite uses `{used}`, which matches but binds nothing. Give it a name in the pattern and in the rewrite."
    )]
    Nameless {
        /// As the rewrite has it.
        used: String,
    },
}

fn bound_words(bound: &[String]) -> String {
    if bound.is_empty() {
        "It binds no variables at all.".to_owned()
    } else {
        let names: Vec<String> = bound.iter().map(|name| format!("`{name}`")).collect();
        format!("It binds {}.", names.join(", "))
    }
}

impl Template {
    /// Takes `rewrite` apart. `bound` are the pattern's variables: the name without dollars, and whether it is a run.
    ///
    /// `$NAME` and `$$$NAME` both stand for whatever the name is bound to. `$lower` and a lone `$` are text.
    pub fn parse(rewrite: &str, bound: &[(String, bool)]) -> Result<Template, TemplateError> {
        let rewrite = rewrite.replace("\r\n", "\n");
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = rewrite.as_str();
        while let Some(at) = rest.find('$') {
            text.push_str(&rest[..at]);
            rest = &rest[at..];
            let dollars = rest.len() - rest.trim_start_matches('$').len();
            // `$$$$A` is a dollar and a run; `$$A` a dollar and a variable.
            let own = match dollars {
                0..=2 => 1,
                _ => 3,
            };
            text.push_str(&rest[..dollars - own]);
            let sign = &rest[dollars - own..];
            let name_end = sign[own..]
                .find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))
                .map_or(sign.len(), |end| own + end);
            let name = &sign[own..name_end];
            let starts_well = name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_');
            let goes_on = sign[name_end..].starts_with(|c: char| c.is_alphanumeric());
            if own == 3 && name.is_empty() {
                return Err(TemplateError::Nameless { used: "$$$".to_owned() });
            }
            if !starts_well || goes_on && !bound.iter().any(|(known, _)| known == name) {
                // `$1`, `$lower`, `$Mixed`: text.
                text.push_str(&sign[..name_end]);
                rest = &sign[name_end..];
                continue;
            }
            if name.starts_with('_') {
                return Err(TemplateError::Nameless { used: sign[..name_end].to_owned() });
            }
            if !bound.iter().any(|(known, _)| known == name) {
                let bound =
                    bound.iter().map(|(name, run)| format!("{}{name}", if *run { "$$$" } else { "$" }));
                return Err(TemplateError::Unbound {
                    used: sign[..name_end].to_owned(),
                    bound: bound.collect(),
                });
            }
            if !text.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut text)));
            }
            parts.push(Part::Variable(name.to_owned()));
            rest = &sign[name_end..];
        }
        text.push_str(rest);
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        Ok(Template { parts })
    }

    /// Whether a variable stands in it.
    pub(super) fn uses(&self, name: &str) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Variable(used) if used == name))
    }

    /// The text on both sides of a variable, where it stands first.
    pub(super) fn beside(&self, name: &str) -> (&str, &str) {
        let text = |at: Option<usize>| match at.and_then(|at| self.parts.get(at)) {
            Some(Part::Text(text)) => text.as_str(),
            _ => "",
        };
        let at = self.parts.iter().position(|part| matches!(part, Part::Variable(used) if used == name));
        at.map_or(("", ""), |at| (text(at.checked_sub(1)), text(Some(at + 1))))
    }

    /// Whether a comma stands beside a variable.
    pub(super) fn has_comma_beside(&self, name: &str) -> bool {
        let (before, after) = self.beside(name);
        before.trim_end().ends_with(',') || after.trim_start().starts_with(',')
    }

    /// The text between the variables, to find out how it is indented.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Variable(_) => None,
        })
    }

    /// The parts for one match, in which some variables stand for nothing: those are gone, and the separators that they leave
    /// behind with them.
    pub(super) fn without_empty(&self, is_empty: &dyn Fn(&str) -> bool) -> Vec<Part> {
        let mut parts = self.parts.clone();
        while let Some(at) =
            parts.iter().position(|part| matches!(part, Part::Variable(name) if is_empty(name)))
        {
            let text = |part: Option<&Part>| match part {
                Some(Part::Text(text)) => Some(text.clone()),
                _ => None,
            };
            let before = at.checked_sub(1).and_then(|at| text(parts.get(at)));
            let after = text(parts.get(at + 1));
            let (left, right) =
                closed_up(before.as_deref(), after.as_deref(), at == 0, at + 1 == parts.len());
            let first = if before.is_some() { at - 1 } else { at };
            let last = if after.is_some() { at + 1 } else { at };
            let joined = left + &right;
            let filler = (!joined.is_empty()).then_some(Part::Text(joined));
            parts.splice(first..=last, filler);
        }
        parts
    }
}

/// The text on both sides of a variable that stands for nothing, without the separator that belonged to it.
///
/// `None` is a neighbour that is a variable, or the edge of the template (`at_start`, `at_end` say which).
fn closed_up(before: Option<&str>, after: Option<&str>, at_start: bool, at_end: bool) -> (String, String) {
    let left = before.unwrap_or_default();
    let right = after.unwrap_or_default();
    if let Some(kept) = left.trim_end().strip_suffix(',') {
        return (kept.to_owned(), right.to_owned());
    }
    if let Some(kept) = right.trim_start().strip_prefix(',') {
        return (left.to_owned(), kept.trim_start().to_owned());
    }
    // Alone on its line: the line goes.
    let blank_before = match left.rfind('\n') {
        Some(newline) => left[newline + 1..].trim().is_empty().then_some(newline),
        None => None,
    };
    let line_starts = blank_before.is_some() || at_start || (before.is_some() && left.trim().is_empty());
    let statement_end = right.strip_prefix(';').unwrap_or(right);
    let to_line_end = statement_end.trim_start_matches([' ', '\t']);
    if line_starts && (to_line_end.starts_with('\n') || (at_end || to_line_end.is_empty() && after.is_some()))
    {
        return match blank_before {
            Some(newline) => (left[..newline].to_owned(), to_line_end.to_owned()),
            None => (String::new(), to_line_end.strip_prefix('\n').unwrap_or(to_line_end).to_owned()),
        };
    }
    if line_starts && statement_end.len() < right.len() {
        return (left.to_owned(), to_line_end.to_owned());
    }
    // `{ $$$B }` leaves one blank, not two.
    if left.ends_with(' ') && right.starts_with(' ') {
        return (left.to_owned(), right[1..].to_owned());
    }
    (left.to_owned(), right.to_owned())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn bound() -> Vec<(String, bool)> {
        vec![("A".to_owned(), false), ("ARGS".to_owned(), true), ("B".to_owned(), true)]
    }

    fn text(text: &str) -> Part {
        Part::Text(text.to_owned())
    }

    fn variable(name: &str) -> Part {
        Part::Variable(name.to_owned())
    }

    #[test]
    fn a_rewrite_is_taken_apart() {
        let parts = |rewrite: &str| Template::parse(rewrite, &bound()).map(|template| template.parts);
        assert_eq!(
            parts("f($A, $$$ARGS)"),
            Ok(vec![text("f("), variable("A"), text(", "), variable("ARGS"), text(")")])
        );
        assert_eq!(parts("get$A()"), Ok(vec![text("get"), variable("A"), text("()")]));
        assert_eq!(parts("$1 $lower $ a$"), Ok(vec![text("$1 $lower $ a$")]));
        assert_eq!(parts("$$A"), Ok(vec![text("$"), variable("A")]));
        assert_eq!(parts("$Ab"), Ok(vec![variable("A"), text("b")]));
        assert_eq!(parts("$Xb"), Ok(vec![text("$Xb")]));
        assert_eq!(parts("a\r\nb"), Ok(vec![text("a\nb")]));
        assert_eq!(parts(""), Ok(vec![]));
    }

    #[test]
    fn an_unbound_variable_is_an_error() {
        let error = |rewrite: &str| Template::parse(rewrite, &bound()).map_err(|error| error.to_string());
        insta::assert_snapshot!(
            [error("bar($C, $A)"), error("$$$"), error("$_"), error("$_X")]
                .map(|result| result.err().unwrap_or_default())
                .join("\n")
        );
        assert_eq!(
            Template::parse("$X", &[]).map_err(|error| error.to_string()),
            Err("The rewrite uses `$X`, which the pattern does not bind. It binds no variables at all."
                .to_owned())
        );
    }

    #[test]
    fn an_empty_run_takes_its_separator_along() {
        let without = |rewrite: &str, empty: &[&str]| {
            let template = Template::parse(rewrite, &bound()).unwrap();
            let parts = template.without_empty(&|name| empty.contains(&name));
            let shown = parts.iter().map(|part| match part {
                Part::Text(text) => text.clone(),
                Part::Variable(name) => format!("<{name}>"),
            });
            shown.collect::<String>()
        };
        assert_eq!(without("bar(ctx, $$$ARGS)", &["ARGS"]), "bar(ctx)");
        assert_eq!(without("bar($$$ARGS, ctx)", &["ARGS"]), "bar(ctx)");
        assert_eq!(without("bar($$$ARGS, $A, $$$B)", &["ARGS", "B"]), "bar(<A>)");
        assert_eq!(without("bar($$$ARGS, $$$B)", &["ARGS", "B"]), "bar()");
        assert_eq!(without("bar($$$ARGS, $$$B)", &["ARGS"]), "bar(<B>)");
        assert_eq!(without("bar(\n  ctx,\n  $$$ARGS\n)", &["ARGS"]), "bar(\n  ctx\n)");
        assert_eq!(without("bar(\n  $$$ARGS,\n  ctx\n)", &["ARGS"]), "bar(\n  ctx\n)");
        assert_eq!(without("{\n  $$$B\n}", &["B"]), "{\n}");
        assert_eq!(without("{\n  $$$B;\n  x();\n}", &["B"]), "{\n  x();\n}");
        assert_eq!(without("{ $$$B }", &["B"]), "{ }");
        assert_eq!(without("$$$B", &["B"]), "");
        assert_eq!(without("$$$B\nx()", &["B"]), "x()");
        assert_eq!(without("f($A)", &[]), "f(<A>)");
    }
}
