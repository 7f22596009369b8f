//! Unified diffs, with git's extended headers or without.
//!
//! The counts of a hunk header are followed while the lines agree with them, since only they tell a removed `-- x` from a file header. Where a
//! model counted wrongly, the prefixes decide.

use super::{Action, Hunk, HunkLine, Kind, Patch, Section, Unreadable};

const NO_FILE: &str = "/dev/null";

/// Whether there is a file header anywhere.
pub(super) fn looks_like(lines: &[&str]) -> bool {
    lines.iter().any(|line| line.starts_with("diff --git "))
        || lines.windows(2).any(|pair| pair[0].starts_with("--- ") && pair[1].starts_with("+++ "))
}

/// `(first line, number of lines)` before the change, from `@@ -a,b +c,d @@`.
pub(super) fn range(marker: &str) -> Option<(usize, usize)> {
    ranges(marker).map(|(old, _)| old)
}

fn ranges(marker: &str) -> Option<((usize, usize), (usize, usize))> {
    let inside = marker.strip_prefix("@@ ")?;
    let inside = &inside[..inside.find(" @@")?];
    let (old, new) = inside.trim().split_once(' ')?;
    Some((pair(old.strip_prefix('-')?)?, pair(new.trim_start().strip_prefix('+')?)?))
}

fn pair(text: &str) -> Option<(usize, usize)> {
    match text.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

/// What stands between `diff --git` (or `---`) and the hunks.
#[derive(Default)]
struct Header {
    /// From `diff --git`, needed where neither `---` nor `rename` follows (an empty new file, a mode change).
    git: Option<(String, String)>,
    old: Option<String>,
    new: Option<String>,
    rename: Option<(String, String)>,
    created: bool,
    deleted: bool,
    mode: Option<String>,
}

impl Header {
    /// Whether `---` and `+++` lines name the file that the lines above them are about.
    fn is_of(&self, old: &str, new: &str) -> bool {
        let same = |name: &str, expected: &str| name == NO_FILE || name == expected;
        match (&self.rename, &self.git) {
            (Some((from, to)), _) => {
                stripped(old.to_owned(), new.to_owned(), self.git.as_ref())
                    == (Some(from.clone()), Some(to.clone()))
            }
            // Names with spaces that differ cannot be told apart in a `diff --git` line.
            (None, Some((git_old, git_new))) if git_old.get(2..) == git_new.get(2..) => {
                same(old, git_old) && same(new, git_new)
            }
            _ => true,
        }
    }
}

pub(super) fn parse(lines: &[&str]) -> Result<Patch, Unreadable> {
    let mut patch = Patch { sections: Vec::new(), notes: Vec::new() };
    let mut at = 0;
    while at < lines.len() {
        if starts_file(lines, at) {
            at = file(lines, at, &mut patch)?;
        } else if lines[at].starts_with("@@") {
            return Err(Unreadable(format!("line {}: a hunk without a file header above it.", at + 1)));
        } else {
            // Text around the diffs: a commit message, `Index:` lines.
            at += 1;
        }
    }
    Ok(patch)
}

fn starts_file(lines: &[&str], at: usize) -> bool {
    lines[at].starts_with("diff --git ")
        || (lines[at].starts_with("--- ") && lines.get(at + 1).is_some_and(|next| next.starts_with("+++ ")))
}

fn file(lines: &[&str], mut at: usize, patch: &mut Patch) -> Result<usize, Unreadable> {
    let start = at;
    let mut header = Header::default();
    if let Some(paths) = lines[at].strip_prefix("diff --git ") {
        header.git = git_paths(paths);
        at += 1;
    }
    while at < lines.len() && !lines[at].starts_with("diff --git ") && !lines[at].starts_with("@@") {
        let line = lines[at];
        if starts_file(lines, at) {
            let (old, new) = (file_name(&line[4..]), file_name(&lines[at + 1][4..]));
            if !header.is_of(&old, &new) {
                // Another file, without a `diff --git` of its own.
                break;
            }
            (header.old, header.new) = (Some(old), Some(new));
            at += 2;
            break;
        }
        if let Some(path) = line.strip_prefix("rename from ") {
            header.rename = Some((file_name(path), String::new()));
        } else if let Some(path) = line.strip_prefix("rename to ") {
            if let Some((_, to)) = &mut header.rename {
                *to = file_name(path);
            }
        } else if line.starts_with("copy from ") {
            return Err(Unreadable(format!(
                "line {}: copies are not supported; add the file whole.",
                at + 1
            )));
        } else if let Some(mode) = line.strip_prefix("new file mode ") {
            header.created = true;
            header.mode = (mode.trim() != "100644").then(|| mode.trim().to_owned());
        } else if line.starts_with("deleted file mode ") {
            header.deleted = true;
        } else if let Some(mode) = line.strip_prefix("new mode ") {
            header.mode = Some(mode.trim().to_owned());
        } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
            return Err(Unreadable(format!("line {}: binary patches are not supported.", at + 1)));
        }
        at += 1;
    }
    let (hunks, next) = hunks(lines, at)?;
    let section = section(header, hunks, &mut patch.notes)
        .map_err(|what| Unreadable(format!("the file header at line {}: {what}", start + 1)))?;
    patch.sections.extend(section);
    Ok(next)
}

fn section(header: Header, hunks: Vec<Hunk>, notes: &mut Vec<String>) -> Result<Option<Section>, String> {
    let (old, new) = match (header.rename, header.old, header.new, header.git) {
        (Some((from, to)), ..) if !to.is_empty() => (Some(from), Some(to)),
        (Some(_), ..) => return Err("`rename to` is missing.".into()),
        (None, Some(old), Some(new), git) => stripped(old, new, git.as_ref()),
        (None, _, _, Some((old, new))) => {
            let (old, new) = stripped(old, new, None);
            (old.filter(|_| !header.created), new.filter(|_| !header.deleted))
        }
        _ => return Err("it names no file.".into()),
    };
    let section = match (old, new) {
        (None, None) => return Err("both sides are /dev/null.".into()),
        (None, Some(path)) => Section { action: Action::Add { content: added(&path, &hunks)? }, path },
        (Some(path), None) => Section { path, action: Action::Delete { hunks } },
        (Some(path), Some(to)) => {
            let to = (to != path).then_some(to);
            if hunks.is_empty() && to.is_none() {
                if let Some(mode) = header.mode {
                    notes.push(format!("{path}: the file mode {mode} was not set; use the shell for that."));
                    return Ok(None);
                }
                return Err(format!("{path} has no hunks."));
            }
            Section { path, action: Action::Update { to, hunks } }
        }
    };
    if let Some(mode) = header.mode {
        notes.push(format!("{}: the file mode {mode} was not set; use the shell for that.", section.path));
    }
    Ok(Some(section))
}

fn added(path: &str, hunks: &[Hunk]) -> Result<String, String> {
    let mut content = String::new();
    for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
        if line.bare {
            continue;
        }
        if line.kind != Kind::Insert {
            return Err(format!("{path} is a new file, so its lines all begin with `+`."));
        }
        content.push_str(&line.text);
        if !line.no_newline {
            content.push('\n');
        }
    }
    Ok(content)
}

fn hunks(lines: &[&str], mut at: usize) -> Result<(Vec<Hunk>, usize), Unreadable> {
    let mut hunks = Vec::new();
    while at < lines.len() {
        let line = lines[at];
        if line.starts_with("@@") {
            let (hunk, next) = hunk(lines, at)?;
            hunks.push(hunk);
            at = next;
        } else if starts_file(lines, at) {
            break;
        } else if hunks.is_empty() && line.trim().is_empty() {
            at += 1;
        } else if line.trim().is_empty()
            || line.starts_with("-- ")
            || line == "--"
            || !line.starts_with([' ', '+', '-', '\\'])
        {
            // The signature of `git format-patch`, or text between the files.
            at += 1;
        } else {
            return Err(Unreadable(format!(
                "line {}: this line belongs to no hunk: {:?}",
                at + 1,
                crate::lines::cut(line, 120)
            )));
        }
    }
    Ok((hunks, at))
}

fn hunk(lines: &[&str], start: usize) -> Result<(Hunk, usize), Unreadable> {
    let ranges = ranges(lines[start]);
    let mut hunk = Hunk { range: ranges.map(|(old, _)| old), ..Hunk::default() };
    if ranges.is_none() {
        let anchor = lines[start].trim_matches('@').trim_end();
        let anchor = anchor.strip_prefix(' ').unwrap_or(anchor);
        hunk.anchors
            .extend((!anchor.trim().is_empty() && !anchor.contains("...")).then(|| anchor.to_owned()));
    }
    let (mut old_left, mut new_left) =
        ranges.map_or((0, 0), |((_, old_count), (_, new_count))| (old_count, new_count));
    let counted = ranges.is_some();
    let mut overran = false;
    let mut at = start + 1;
    while at < lines.len() {
        let line = lines[at];
        if line.starts_with('\\') {
            if let Some(last) = hunk.lines.last_mut() {
                last.no_newline = true;
                hunk.at_end = true;
            }
            at += 1;
            continue;
        }
        let within = counted && (old_left > 0 || new_left > 0);
        let really_a_file = starts_file(lines, at)
            && (!within
                || lines.get(at + 2).is_some_and(|line| line.starts_with("@@"))
                || line.starts_with("diff "));
        if line.starts_with("@@") || line.starts_with("diff --git ") || really_a_file {
            break;
        }
        // `git format-patch` ends with a signature below a line of two dashes.
        if counted && !within && (line == "-- " || line == "--") {
            break;
        }
        let Some(parsed) = HunkLine::parse(line) else {
            // After counts that were followed exactly, other text may stand between the files; anywhere else it is a line that lost its prefix.
            if within || overran || !counted {
                return Err(Unreadable(format!(
                    "line {}: every line of a hunk begins with a space, `+` or `-`: {:?}",
                    at + 1,
                    crate::lines::cut(line, 120)
                )));
            }
            break;
        };
        if parsed.bare && counted && !within {
            break;
        }
        overran |= counted && !within;
        match parsed.kind {
            Kind::Context => {
                old_left = old_left.saturating_sub(1);
                new_left = new_left.saturating_sub(1);
            }
            Kind::Remove => old_left = old_left.saturating_sub(1),
            Kind::Insert => new_left = new_left.saturating_sub(1),
        }
        hunk.lines.push(parsed);
        at += 1;
    }
    if hunk.lines.iter().all(|line| line.bare) {
        return Err(Unreadable(format!("the hunk at line {} has no lines.", start + 1)));
    }
    Ok((hunk, at))
}

/// The letters that git writes before the two paths: old and new, index, working tree, commit, object.
const PREFIXES: [(char, char); 5] = [('a', 'b'), ('i', 'w'), ('c', 'w'), ('c', 'i'), ('o', 'w')];

/// Whether two paths that are not `/dev/null` carry one of git's pairs of letters.
fn prefixed(old: &str, new: &str) -> bool {
    let has = |name: &str, letter: char| name.strip_prefix(letter).is_some_and(|rest| rest.starts_with('/'));
    PREFIXES
        .iter()
        .any(|(left, right)| has(old, *left) && has(new, *right) || has(old, *right) && has(new, *left))
}

/// Takes `a/` and `b/` off where both sides have them; `/dev/null` becomes nothing. The `diff --git` line decides where there is one.
fn stripped(old: String, new: String, git: Option<&(String, String)>) -> (Option<String>, Option<String>) {
    let both = match git {
        Some((git_old, git_new)) => prefixed(git_old, git_new),
        // A single path says less: only the usual letters are taken for a prefix.
        None if old == NO_FILE => new.starts_with("b/"),
        None if new == NO_FILE => old.starts_with("a/"),
        None => prefixed(&old, &new),
    };
    let take = |name: String| match name {
        name if name == NO_FILE => None,
        name if both => Some(name.get(2..).map_or_else(|| name.clone(), str::to_owned)),
        name => Some(name),
    };
    (take(old), take(new))
}

/// A path from a `---`, `+++` or `rename` line: without a time stamp, unquoted.
fn file_name(text: &str) -> String {
    if text.starts_with('"')
        && let Some((name, _)) = unquote(text)
    {
        return name;
    }
    text.split('\t').next().unwrap_or(text).trim_end().to_owned()
}

/// The two paths of a `diff --git` line. Unquoted paths with spaces are told apart by both being the same.
fn git_paths(text: &str) -> Option<(String, String)> {
    if text.starts_with('"') {
        let (old, rest) = unquote(text)?;
        return Some((old, file_name(rest.trim_start())));
    }
    if let Some(at) = text.find(" \"") {
        return Some((text[..at].to_owned(), file_name(&text[at + 1..])));
    }
    let middle = text.len() / 2;
    if text.len() % 2 == 1
        && text.as_bytes().get(middle) == Some(&b' ')
        && text[..middle].get(2..) == text[middle + 1..].get(2..)
    {
        return Some((text[..middle].to_owned(), text[middle + 1..].to_owned()));
    }
    // With more than one space only the new path's `b/` can tell where it begins.
    let (old, new) = match text.strip_prefix("a/").and_then(|rest| rest.split_once(" b/")) {
        Some((old, new)) => (format!("a/{old}"), format!("b/{new}")),
        None => text.split_once(' ').map(|(old, new)| (old.to_owned(), new.to_owned()))?,
    };
    (!new.contains(" b/") && (text.matches(' ').count() == 1 || new.starts_with("b/"))).then_some((old, new))
}

/// A C-style quoted name as git writes it, and what follows.
fn unquote(text: &str) -> Option<(String, &str)> {
    let inside = text.strip_prefix('"')?;
    let bytes = inside.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            b'"' => return Some((String::from_utf8(out).ok()?, &inside[at + 1..])),
            b'\\' => {
                let escaped = *bytes.get(at + 1)?;
                at += 2;
                match escaped {
                    b'n' => out.push(b'\n'),
                    b't' => out.push(b'\t'),
                    b'r' => out.push(b'\r'),
                    b'a' => out.push(7),
                    b'b' => out.push(8),
                    b'f' => out.push(12),
                    b'v' => out.push(11),
                    b'0'..=b'7' => {
                        let digits = inside.get(at - 1..at + 2)?;
                        out.push(u8::from_str_radix(digits, 8).ok()?);
                        at += 2;
                    }
                    other => out.push(other),
                }
            }
            other => {
                out.push(other);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn read(patch: &str) -> Result<Patch, Unreadable> {
        parse(&patch.split('\n').collect::<Vec<_>>())
    }

    #[test]
    fn git_headers_are_read() {
        let patch = r#"From 123 Mon Sep 17 00:00:00 2001
Subject: [PATCH] Words

diff --git a/old name.txt b/new name.txt
similarity index 100%
rename from old name.txt
rename to new name.txt
diff --git a/empty.txt b/empty.txt
new file mode 100644
index 0000000..e69de29
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
diff --git "a/\303\244.txt" "b/\303\244.txt"
deleted file mode 100644
index 1..0
--- "a/\303\244.txt"
+++ /dev/null
@@ -1 +0,0 @@
-bye
\ No newline at end of file
diff --git a/x.c b/x.c
--- a/x.c	2026-01-01 00:00:00
+++ b/x.c	2026-01-01 00:00:00
@@ -1,2 +1,2 @@ int main()
--- not a header
+++ neither
 end
-- 
2.39.2
"#;
        let bye = HunkLine { no_newline: true, ..HunkLine::new(Kind::Remove, "bye") };
        let expected = Patch {
            sections: vec![
                Section {
                    path: "old name.txt".into(),
                    action: Action::Update { to: Some("new name.txt".into()), hunks: vec![] },
                },
                Section { path: "empty.txt".into(), action: Action::Add { content: String::new() } },
                Section {
                    path: "ä.txt".into(),
                    action: Action::Delete {
                        hunks: vec![Hunk {
                            range: Some((1, 1)),
                            lines: vec![bye],
                            at_end: true,
                            ..Hunk::default()
                        }],
                    },
                },
                Section {
                    path: "x.c".into(),
                    action: Action::Update {
                        to: None,
                        hunks: vec![Hunk {
                            range: Some((1, 2)),
                            lines: vec![
                                HunkLine::new(Kind::Remove, "-- not a header"),
                                HunkLine::new(Kind::Insert, "++ neither"),
                                HunkLine::new(Kind::Context, "end"),
                            ],
                            ..Hunk::default()
                        }],
                    },
                },
            ],
            notes: vec!["run.sh: the file mode 100755 was not set; use the shell for that.".into()],
        };
        assert_eq!(read(patch).unwrap(), expected);
    }

    #[test]
    fn prefixes_are_taken_off_only_where_both_sides_have_them() {
        let paths = |patch: &str| -> Vec<String> {
            read(patch).unwrap().sections.into_iter().map(|section| section.path).collect()
        };
        assert_eq!(paths("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b"), ["x"]);
        assert_eq!(paths("--- a/x\n+++ a/x\n@@ -1 +1 @@\n-a\n+b"), ["a/x"]);
        assert_eq!(paths("--- x y\n+++ x y\n@@ -1 +1 @@\n-a\n+b"), ["x y"]);
        assert_eq!(paths("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+b"), ["x"]);
        // One path alone is no pair of git's other letters: `i` is a directory here.
        assert_eq!(paths("--- /dev/null\n+++ i/x\n@@ -0,0 +1 @@\n+b"), ["i/x"]);
        assert_eq!(
            paths("diff --git i/x w/x\nnew file mode 100644\n--- /dev/null\n+++ w/x\n@@ -0,0 +1 @@\n+b"),
            ["x"]
        );
        assert_eq!(
            paths("diff --git x x\nnew file mode 100644\n--- /dev/null\n+++ x\n@@ -0,0 +1 @@\n+b"),
            ["x"]
        );
        assert_eq!(
            paths(
                "diff --git a/o p.c b/n q.c\nrename from o p.c\nrename to n q.c\n--- a/o p.c\n+++ b/n q.c\n@@ -1 +1 @@\n-a\n+b"
            ),
            ["o p.c"]
        );
    }

    #[test]
    fn a_file_without_a_git_header_below_one_with_it_is_another_file() {
        let patch =
            read("diff --git a/x b/y\nrename from x\nrename to y\n--- /dev/null\n+++ b/z\n@@ -0,0 +1 @@\n+z")
                .unwrap();
        let expected = vec![
            Section { path: "x".into(), action: Action::Update { to: Some("y".into()), hunks: vec![] } },
            Section { path: "z".into(), action: Action::Add { content: "z\n".into() } },
        ];
        assert_eq!(patch, Patch { sections: expected, notes: vec![] });
    }

    #[test]
    fn wrong_counts_do_not_lose_lines() {
        let wrong = read(
            "--- a/x\n+++ b/x\n@@ -1,9 +1,1 @@\n a\n-b\n+c\n d\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
        )
        .unwrap();
        let right = read(
            "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n+c\n d\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
        )
        .unwrap();
        let lines = |patch: &Patch| -> Vec<Vec<HunkLine>> {
            patch
                .sections
                .iter()
                .map(|section| match &section.action {
                    Action::Update { hunks, .. } => {
                        hunks.iter().flat_map(|hunk| hunk.lines.clone()).collect()
                    }
                    _ => vec![],
                })
                .collect()
        };
        assert_eq!(lines(&wrong), lines(&right));
        let short = read("--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n a\n-b\n+c\n d\n").unwrap();
        assert_eq!(lines(&short)[0], lines(&right)[0]);
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let said = |patch: &str| read(patch).unwrap_err().to_string();
        insta::assert_snapshot!(
            [
                said("diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 3"),
                said("diff --git a/x b/x\nsimilarity index 90%\ncopy from x\ncopy to y"),
                said("--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+x"),
                said("--- a/x\n+++ b/x\n"),
                said("--- /dev/null\n+++ b/x\n@@ -1 +1 @@\n-a\n+b"),
                said("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\nb\n"),
                said("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n"),
            ]
            .join("\n\n")
        );
    }
}
