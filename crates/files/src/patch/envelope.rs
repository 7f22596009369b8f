//! The `*** Begin Patch` envelope.
//!
//! Read as written by models: the first hunk may do without `@@`, blank lines may lack the space of a context line, several `@@` lines narrow
//! one hunk. A missing `*** End Patch` is an error, since the patch may have been cut off.

use super::{Action, Hunk, HunkLine, Kind, Patch, Section, Unreadable, unified};

struct Reader {
    sections: Vec<Section>,
    /// Blank lines in an added file; content only if more of it follows.
    blank: usize,
    /// The next line is the `+++` of a unified diff's file header.
    plus_header: bool,
}

pub(super) fn parse(lines: &[&str]) -> Result<Patch, Unreadable> {
    let mut reader = Reader { sections: Vec::new(), blank: 0, plus_header: false };
    let mut inside = false;
    for (at, line) in lines.iter().enumerate() {
        let number = at + 1;
        let marker = line.trim_end();
        // Inside a section a marker stands in the first column; with a space before it is a line of the file.
        let marker = if reader.sections.is_empty() { marker.trim_start() } else { marker };
        match marker {
            "*** Begin Patch" if !inside => inside = true,
            "*** End Patch" if inside => {
                reader.close();
                inside = false;
            }
            _ if !inside && marker.trim().is_empty() => {}
            _ if !inside => {
                return Err(Unreadable(format!(
                    "line {number} stands after `*** End Patch`: {}",
                    quote(line)
                )));
            }
            _ => reader.line(number, line, marker, lines.get(at + 1).copied())?,
        }
    }
    // Some models indent the last marker.
    if inside
        && lines
            .iter()
            .rev()
            .find(|line| !line.trim().is_empty())
            .is_some_and(|line| line.trim() == "*** End Patch")
    {
        reader.drop_indented_end();
        inside = false;
    }
    if inside {
        return Err(Unreadable("`*** End Patch` is missing, so the patch may have been cut off.".into()));
    }
    for section in &reader.sections {
        if let Action::Update { to, hunks } = &section.action {
            let empty = hunks.iter().any(|hunk| hunk.lines.iter().all(|line| line.bare));
            if empty || (hunks.is_empty() && to.is_none()) {
                return Err(Unreadable(format!(
                    "`*** Update File: {}` has {} without lines.",
                    section.path,
                    if hunks.is_empty() { "no hunk, or one" } else { "a hunk" }
                )));
            }
        }
    }
    Ok(Patch { sections: reader.sections, notes: Vec::new() })
}

impl Reader {
    fn line(
        &mut self,
        number: usize,
        line: &str,
        marker: &str,
        next: Option<&str>,
    ) -> Result<(), Unreadable> {
        if let Some(action) = header(marker) {
            let (path, action) = action.map_err(|what| Unreadable(format!("line {number}: {what}")))?;
            self.close();
            self.sections.push(Section { path, action });
            return Ok(());
        }
        let bad = |what: &str| Err(Unreadable(format!("line {number}: {what}: {}", quote(line))));
        let Some(section) = self.sections.last_mut() else {
            if line.trim().is_empty() {
                return Ok(());
            }
            return bad("a `*** Add File:`, `*** Update File:` or `*** Delete File:` line has to come first");
        };
        match &mut section.action {
            Action::Delete { .. } if line.trim().is_empty() => Ok(()),
            Action::Delete { .. } => bad("nothing may follow `*** Delete File:`"),
            Action::Add { content } => match line.strip_prefix('+') {
                Some(text) => {
                    for _ in 0..std::mem::take(&mut self.blank) {
                        content.push('\n');
                    }
                    content.push_str(text);
                    content.push('\n');
                    Ok(())
                }
                None if line.trim().is_empty() => {
                    self.blank += 1;
                    Ok(())
                }
                // Codex's models end an added file so now and then.
                None if marker == "*** End of File" => Ok(()),
                None => bad("every line of an added file begins with `+`"),
            },
            Action::Update { to, hunks } => {
                if let Some(path) = marker.strip_prefix("*** Move to:") {
                    if to.is_some() || !hunks.is_empty() {
                        return bad("`*** Move to:` stands once, right below `*** Update File:`");
                    }
                    if path.trim().is_empty() {
                        return bad("the path is missing");
                    }
                    *to = Some(path.trim().to_owned());
                    return Ok(());
                }
                if marker == "*** End of File" {
                    return match hunks.last_mut() {
                        Some(hunk) if !hunk.lines.is_empty() => {
                            hunk.at_end = true;
                            Ok(())
                        }
                        _ => bad("`*** End of File` stands below the lines of a hunk"),
                    };
                }
                if marker.starts_with("*** ") {
                    return bad(
                        "this is not a known `***` line; a line of the file needs a space, `+` or `-` before it",
                    );
                }
                if marker == "@@" || marker.starts_with("@@ ") {
                    start_hunk(hunks, marker);
                    return Ok(());
                }
                // A file header of a unified diff above the first hunk says nothing new.
                if std::mem::take(&mut self.plus_header) {
                    return Ok(());
                }
                if hunks.is_empty()
                    && line.starts_with("--- ")
                    && next.is_some_and(|next| next.starts_with("+++ "))
                {
                    self.plus_header = true;
                    return Ok(());
                }
                let Some(parsed) = HunkLine::parse(line) else {
                    return bad("every line of a hunk begins with a space, `+` or `-`");
                };
                match hunks.last_mut() {
                    Some(hunk) if hunk.at_end && !parsed.bare => {
                        hunks.push(Hunk { lines: vec![parsed], ..Hunk::default() });
                    }
                    Some(hunk) if hunk.at_end => {}
                    Some(hunk) => hunk.lines.push(parsed),
                    None if parsed.bare => {}
                    None => hunks.push(Hunk { lines: vec![parsed], ..Hunk::default() }),
                }
                Ok(())
            }
        }
    }

    fn close(&mut self) {
        self.blank = 0;
    }

    /// Takes the last ` *** End Patch` back out of the hunk into which it was read.
    fn drop_indented_end(&mut self) {
        if let Some(Section { action: Action::Update { hunks, .. }, .. }) = self.sections.last_mut()
            && let Some(hunk) = hunks.last_mut()
        {
            while hunk.lines.last().is_some_and(|line| line.bare) {
                hunk.lines.pop();
            }
            if hunk
                .lines
                .last()
                .is_some_and(|line| line.kind == Kind::Context && line.text.trim() == "*** End Patch")
            {
                hunk.lines.pop();
            }
        }
    }
}

fn start_hunk(hunks: &mut Vec<Hunk>, marker: &str) {
    let (range, anchor) = match unified::range(marker) {
        // What git writes behind the second `@@` is a help for people and may come from far above.
        Some(range) => (Some(range), None),
        None => {
            let anchor = marker.trim_start_matches('@').strip_prefix(' ').unwrap_or_default();
            let anchor = anchor.strip_suffix("@@").map_or(anchor, str::trim_end);
            (None, (!anchor.trim().is_empty()).then(|| anchor.to_owned()))
        }
    };
    match hunks.last_mut() {
        Some(hunk) if hunk.lines.is_empty() => {
            hunk.anchors.extend(anchor);
            hunk.range = hunk.range.or(range);
        }
        _ => hunks.push(Hunk { anchors: anchor.into_iter().collect(), range, ..Hunk::default() }),
    }
}

type Header = Result<(String, Action), String>;

fn header(marker: &str) -> Option<Header> {
    let (path, action) = if let Some(path) = marker.strip_prefix("*** Add File:") {
        (path, Action::Add { content: String::new() })
    } else if let Some(path) = marker.strip_prefix("*** Delete File:") {
        (path, Action::Delete { hunks: Vec::new() })
    } else if let Some(path) = marker.strip_prefix("*** Update File:") {
        (path, Action::Update { to: None, hunks: Vec::new() })
    } else {
        return None;
    };
    let path = path.trim();
    if path.is_empty() {
        return Some(Err(format!("the path is missing in `{marker}`")));
    }
    Some(Ok((path.to_owned(), action)))
}

fn quote(line: &str) -> String {
    format!("{:?}", crate::lines::cut(line, 120))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn read(patch: &str) -> Result<Patch, Unreadable> {
        parse(&patch.split('\n').collect::<Vec<_>>())
    }

    fn line(kind: Kind, text: &str) -> HunkLine {
        HunkLine::new(kind, text)
    }

    #[test]
    fn every_kind_of_section_is_read() {
        let patch = "*** Begin Patch
*** Add File: new file.txt
+one
+
+two
*** Delete File: gone.txt

*** Update File: src/a.rs
*** Move to: src/b.rs
@@ impl A
@@     fn x()
 let a = 1;

-old
+new
@@ -10,2 +11,2 @@ fn far_above()
-x
+y
*** End of File
*** End Patch";
        let expected = Patch {
            sections: vec![
                Section {
                    path: "new file.txt".into(),
                    action: Action::Add { content: "one\n\ntwo\n".into() },
                },
                Section { path: "gone.txt".into(), action: Action::Delete { hunks: vec![] } },
                Section {
                    path: "src/a.rs".into(),
                    action: Action::Update {
                        to: Some("src/b.rs".into()),
                        hunks: vec![
                            Hunk {
                                anchors: vec!["impl A".into(), "    fn x()".into()],
                                lines: vec![
                                    line(Kind::Context, "let a = 1;"),
                                    HunkLine { bare: true, ..line(Kind::Context, "") },
                                    line(Kind::Remove, "old"),
                                    line(Kind::Insert, "new"),
                                ],
                                ..Hunk::default()
                            },
                            Hunk {
                                range: Some((10, 2)),
                                lines: vec![line(Kind::Remove, "x"), line(Kind::Insert, "y")],
                                at_end: true,
                                ..Hunk::default()
                            },
                        ],
                    },
                },
            ],
            notes: vec![],
        };
        assert_eq!(read(patch).unwrap(), expected);
    }

    #[test]
    fn a_diff_header_inside_the_envelope_is_no_change() {
        let with = read("*** Begin Patch\n*** Update File: a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-x\n+y\n*** End Patch").unwrap();
        let without =
            read("*** Begin Patch\n*** Update File: a.rs\n@@ -1 +1 @@\n-x\n+y\n*** End Patch").unwrap();
        assert_eq!(with, without);
    }

    #[test]
    fn an_indented_end_is_an_end_and_not_a_line_of_the_file() {
        let patch = read("*** Begin Patch\n*** Update File: a\n-x\n+y\n *** End Patch").unwrap();
        assert_eq!(patch, read("*** Begin Patch\n*** Update File: a\n-x\n+y\n*** End Patch").unwrap());
    }

    #[test]
    fn a_patch_that_is_cut_off_or_malformed_is_refused() {
        let said = |patch: &str| read(patch).unwrap_err().to_string();
        insta::assert_snapshot!(
            [
                said("*** Begin Patch\n*** Update File: a\n-x\n+y"),
                said("*** Begin Patch\n*** Update File: a\n*** End Patch"),
                said("*** Begin Patch\n*** Update File: a\n@@ fn x()\n*** End Patch"),
                said("*** Begin Patch\n*** Update File: a\n@@\nx\n*** End Patch"),
                said("*** Begin Patch\n*** Add File: a\nx\n*** End Patch"),
                said("*** Begin Patch\n*** Rename File: a\n*** End Patch"),
                said("*** Begin Patch\n*** Update File:\n*** End Patch"),
                said("*** Begin Patch\n*** Delete File: a\n+x\n*** End Patch"),
                said("*** Begin Patch\n*** Update File: a\n-x\n*** Move to: b\n*** End Patch"),
                said("*** Begin Patch\n*** Delete File: a\n*** End Patch\nDone!"),
            ]
            .join("\n\n")
        );
    }
}
