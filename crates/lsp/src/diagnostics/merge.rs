use std::collections::HashMap;

use super::Diagnostic;

type Place<'a> = ([u32; 4], super::Severity, &'a str, Option<&'a str>);

/// One list from several answers about the same file: what is in more than one of them is there once, what one of them has twice stays twice.
/// Sorted: errors first, then by place.
pub fn merge(lists: &[Vec<Diagnostic>]) -> Vec<Diagnostic> {
    let mut result: Vec<Diagnostic> = Vec::new();
    // How many of each are in the result already. Two servers that say the same word for word say it about the same thing, whatever they
    // call themselves, so the source is no part of it.
    let mut have: HashMap<Place<'_>, usize> = HashMap::new();
    for list in lists {
        let mut seen: HashMap<Place<'_>, usize> = HashMap::new();
        for diagnostic in list {
            let place = (
                diagnostic.span,
                diagnostic.severity,
                diagnostic.message.as_str(),
                diagnostic.code.as_deref(),
            );
            let count = seen.entry(place).or_insert(0);
            *count += 1;
            let had = have.entry(place).or_insert(0);
            if *count > *had {
                *had = *count;
                result.push(diagnostic.clone());
            }
        }
    }
    sort(&mut result);
    result
}

/// The order in which problems are shown: errors first, then by file and place.
pub(crate) fn sort(list: &mut [Diagnostic]) {
    list.sort_by(|a, b| {
        (a.severity, &a.file, a.line, a.span, &a.message)
            .cmp(&(b.severity, &b.file, b.line, b.span, &b.message))
    });
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::{super::Severity, *};

    #[test]
    fn what_two_lists_share_is_there_once_and_what_one_has_twice_stays_twice() {
        let one = |message: &str, line: u32| Diagnostic {
            file: "a.rs".into(),
            line,
            severity: Severity::Error,
            code: None,
            message: message.into(),
            source: None,
            span: [line - 1, 0, line - 1, 4],
        };
        let native = vec![one("a", 3), one("a", 3), one("b", 1)];
        let check = vec![one("a", 3), one("c", 2)];
        assert_eq!(merge(&[native, check]), vec![one("b", 1), one("c", 2), one("a", 3), one("a", 3)]);
    }
}
