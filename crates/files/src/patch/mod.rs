//! Patches as models write them: the `*** Begin Patch` envelope and unified diffs, read into one form.
//!
//! Nothing here touches a file: parsing and placing hunks are pure, so that a patch is known to apply before anything is written.

mod envelope;
mod place;
mod unified;

pub(crate) use place::{Applied, apply};

use crate::limits::PATCH_BYTES;

/// A whole patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Patch {
    /// In the order in which they were written.
    pub(crate) sections: Vec<Section>,
    /// What the patch asks for that is not done (file modes), in words.
    pub(crate) notes: Vec<String>,
}

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// As written, without `a/` and `b/`.
    pub(crate) path: String,
    pub(crate) action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A new file with this content.
    Add { content: String },
    /// The file goes. A unified diff also says what was in it.
    Delete { hunks: Vec<Hunk> },
    /// The file changes, and may move.
    Update { to: Option<String>, hunks: Vec<Hunk> },
}

/// A piece of a file, before and after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// Lines that stand somewhere above the piece (`@@ class A`), outermost first.
    pub(crate) anchors: Vec<String>,
    /// From `@@ -start,count …`: the 1-based first line before the change and the number of lines.
    pub(crate) range: Option<(usize, usize)>,
    pub(crate) lines: Vec<HunkLine>,
    /// `*** End of File`, or a line marked as being without a final line break.
    pub(crate) at_end: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HunkLine {
    pub(crate) kind: Kind,
    /// Without prefix and line feed; a carriage return belongs to it.
    pub(crate) text: String,
    /// Written as an empty line without the prefix of a context line. At the end of a hunk it may only be spacing.
    pub(crate) bare: bool,
    /// `\ No newline at end of file` follows.
    pub(crate) no_newline: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Context,
    Remove,
    Insert,
}

impl HunkLine {
    fn new(kind: Kind, text: &str) -> Self {
        HunkLine { kind, text: text.to_owned(), bare: false, no_newline: false }
    }

    /// A line of a hunk with its prefix; `None` if it has none.
    fn parse(line: &str) -> Option<Self> {
        let mut characters = line.chars();
        match characters.next() {
            Some(' ') => Some(HunkLine::new(Kind::Context, characters.as_str())),
            Some('-') => Some(HunkLine::new(Kind::Remove, characters.as_str())),
            Some('+') => Some(HunkLine::new(Kind::Insert, characters.as_str())),
            // A tab in the first column is context whose prefix was lost on the way.
            None => Some(HunkLine { bare: true, ..HunkLine::new(Kind::Context, "") }),
            Some(_) => None,
        }
    }
}

/// Why a patch cannot be read, in words for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The patch cannot be read: {0}\nNothing was written.")]
pub(crate) struct Unreadable(pub(crate) String);

/// What both forms look like, for errors.
const FORMS: &str = "\
Write it either as
*** Begin Patch
*** Update File: path/to/file
@@ a line above the change
 unchanged line
-old line
+new line
*** End Patch
(also `*** Add File: PATH` with only + lines, `*** Delete File: PATH`, and `*** Move to: PATH` below an Update line), or as a unified diff with --- and +++ lines.";

/// Reads a patch of either form.
pub(crate) fn parse(patch: &str) -> Result<Patch, Unreadable> {
    if patch.len() > PATCH_BYTES {
        return Err(Unreadable(format!("it has {} bytes; the limit is {PATCH_BYTES}.", patch.len())));
    }
    let lines = unwrap(patch);
    let first = lines.iter().find(|line| !line.trim().is_empty());
    let parsed = match first {
        None => return Err(Unreadable(format!("it is empty. {FORMS}"))),
        Some(line) if line.trim() == "*** Begin Patch" => envelope::parse(&lines)?,
        Some(_) if unified::looks_like(&lines) => unified::parse(&lines)?,
        Some(line) if line.starts_with("*** ") => {
            return Err(Unreadable("it does not begin with `*** Begin Patch`.".into()));
        }
        Some(_) => {
            return Err(Unreadable(format!(
                "it is neither a `*** Begin Patch` envelope nor a unified diff. {FORMS}"
            )));
        }
    };
    if parsed.sections.is_empty() {
        return Err(Unreadable(format!("it names no file. {FORMS}")));
    }
    Ok(parsed)
}

/// The lines of the patch proper, without a code fence or a here-document around it. A patch whose own header ends in a carriage return was
/// sent with CRLF throughout, so the carriage returns are not part of it.
fn unwrap(patch: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = patch.split('\n').collect();
    if lines.last() == Some(&"") {
        lines.pop();
    }
    if lines.iter().find(|line| !line.trim().is_empty()).is_some_and(|line| line.ends_with('\r')) {
        for line in &mut lines {
            *line = line.strip_suffix('\r').unwrap_or(line);
        }
    }
    loop {
        let Some(start) = lines.iter().position(|line| !line.trim().is_empty()) else { return lines };
        let Some(end) = lines.iter().rposition(|line| !line.trim().is_empty()) else { return lines };
        let first = lines[start].trim();
        let fence = start < end && first.starts_with("```") && lines[end].trim() == "```";
        let here = first
            .strip_prefix("apply_patch")
            .unwrap_or(first)
            .trim_start()
            .strip_prefix("<<")
            .map(|word| word.trim_matches(['\'', '"', ' ', '-']))
            .is_some_and(|word| start < end && !word.is_empty() && lines[end].trim() == word);
        if !fence && !here {
            return lines;
        }
        lines = lines[start + 1..end].to_vec();
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn fences_here_documents_and_crlf_around_a_patch_are_taken_off() {
        let plain = parse("*** Begin Patch\n*** Delete File: a\n*** End Patch").unwrap();
        for wrapped in [
            "```\n*** Begin Patch\n*** Delete File: a\n*** End Patch\n```\n",
            "\n```diff\n*** Begin Patch\n*** Delete File: a\n*** End Patch\n```",
            "apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF\n",
            "<<EOF\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF",
            "*** Begin Patch\r\n*** Delete File: a\r\n*** End Patch\r\n",
        ] {
            assert_eq!(parse(wrapped).unwrap(), plain);
        }
    }

    #[test]
    fn what_is_no_patch_is_said_with_the_forms() {
        let said = |patch: &str| parse(patch).unwrap_err().to_string();
        insta::assert_snapshot!(
            [said(" \n"), said("please change a.rs"), said("*** Update File: a\n-x\n+y")].join("\n\n")
        );
    }
}
