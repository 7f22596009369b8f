use super::{Diagnostic, Severity};
use crate::limits::{SHOWN_DIAGNOSTICS, SHOWN_MESSAGE_CHARS};

/// "2 errors and 1 warning"; `what` stands before the nouns ("new ").
pub fn counted(list: &[Diagnostic], what: &str) -> String {
    let mut parts = Vec::new();
    for (severity, noun) in [
        (Severity::Error, "error"),
        (Severity::Warning, "warning"),
        (Severity::Information, "remark"),
        (Severity::Hint, "hint"),
    ] {
        let count = list.iter().filter(|one| one.severity == severity).count();
        if count > 0 {
            parts.push(format!("{count} {what}{noun}{}", if count == 1 { "" } else { "s" }));
        }
    }
    match parts.split_last() {
        None => format!("no {what}problems"),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// A line for each, in the order given, at most [`SHOWN_DIAGNOSTICS`] and then how many more there are.
pub fn listed(list: &[Diagnostic]) -> String {
    let mut text = String::new();
    for one in list.iter().take(SHOWN_DIAGNOSTICS) {
        let by = match (&one.source, &one.code) {
            (Some(source), Some(code)) => format!(" [{source} {code}]"),
            (Some(one), None) | (None, Some(one)) => format!(" [{one}]"),
            (None, None) => String::new(),
        };
        let message = indented(&one.message);
        text.push_str(&format!("{}:{}: {}: {message}{by}\n", one.file, one.line, one.severity.as_str()));
    }
    if list.len() > SHOWN_DIAGNOSTICS {
        text.push_str(&format!("… and {} more.\n", list.len() - SHOWN_DIAGNOSTICS));
    }
    text
}

/// Later lines of a message under its first, and a very long message cut.
fn indented(message: &str) -> String {
    let mut cut: String = message.chars().take(SHOWN_MESSAGE_CHARS).collect();
    if cut.len() < message.len() {
        cut.push('…');
    }
    cut.lines().collect::<Vec<_>>().join("\n    ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_lists() {
        let one = |severity, line: u32, code: Option<&str>, source: Option<&str>, message: &str| Diagnostic {
            file: "src/a.rs".into(),
            line,
            severity,
            code: code.map(Into::into),
            message: message.into(),
            source: source.map(Into::into),
            span: [0; 4],
        };
        let list = [
            one(
                Severity::Error,
                3,
                Some("E0308"),
                Some("rustc"),
                "mismatched types\nexpected `u32`, found `&str`",
            ),
            one(Severity::Error, 4, None, None, &"long ".repeat(300)),
            one(Severity::Warning, 9, None, Some("clippy"), "needless borrow"),
        ];
        insta::assert_snapshot!(format!(
            "{}; {}\n{}",
            counted(&list, "new "),
            counted(&[], "new "),
            listed(&list)
        ));
    }
}
