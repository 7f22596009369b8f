//! What `/proc` says about processes and their children. Every answer may be out of date when it is read; callers repeat.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::Path,
};

use crate::limits::COMMAND_LINE_SHOWN;

/// A line of `/proc/PID/stat`, as far as it is of use here (proc_pid_stat(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) pid: i32,
    /// `R`, `S`, `Z` and so on.
    pub(super) state: u8,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// Clock ticks since boot. Together with `pid` it names a process, though numbers are used again.
    pub(super) started: u64,
}

impl Stat {
    pub(super) fn is_zombie(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// Reads one process; `None` where it is gone.
pub(super) fn stat(pid: i32) -> Option<Stat> {
    parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
}

fn parse(pid: i32, line: &[u8]) -> Option<Stat> {
    // The second field is the program's name in parentheses, and may itself hold spaces and parentheses.
    let after_name = line.iter().rposition(|byte| *byte == b')')? + 1;
    let text = std::str::from_utf8(&line[after_name..]).ok()?;
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    Some(Stat {
        pid,
        state: *fields.first()?.as_bytes().first()?,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

/// Everything below `root`, parents before children. Uses the kernel's own lists of children where it keeps them (its cost is
/// then that of the tree, not of the machine). A process that is forked meanwhile may be missing.
pub(super) fn descendants(root: i32) -> Vec<Stat> {
    if !Path::new("/proc/thread-self/children").exists() {
        return descendants_by_scan(root);
    }
    let mut found = Vec::new();
    // A number can be in two lists when a process moved to another parent in between.
    let mut seen = HashSet::from([root]);
    let mut todo = vec![root];
    while let Some(parent) = todo.pop() {
        for child in listed_children(parent) {
            if seen.insert(child)
                && let Some(stat) = stat(child)
            {
                found.push(stat);
                todo.push(child);
            }
        }
    }
    found
}

/// The same by reading every process of the machine: slower, and not blind to children that the kernel's list left out
/// because a sibling ended while it was read (proc_pid_children(5)).
pub(super) fn descendants_by_scan(root: i32) -> Vec<Stat> {
    let mut by_parent: HashMap<i32, Vec<Stat>> = HashMap::new();
    for stat in everything() {
        by_parent.entry(stat.parent).or_default().push(stat);
    }
    let mut found = Vec::new();
    let mut todo = vec![root];
    while let Some(parent) = todo.pop() {
        for child in by_parent.remove(&parent).unwrap_or_default() {
            todo.push(child.pid);
            found.push(child);
        }
    }
    found
}

fn everything() -> impl Iterator<Item = Stat> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(stat)
}

fn listed_children(pid: i32) -> Vec<i32> {
    let mut children = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        if let Ok(list) = fs::read_to_string(task.path().join("children")) {
            children.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        }
    }
    children
}

/// The program and its arguments as it was started; empty for a zombie or one that is gone.
pub(super) fn arguments(pid: i32) -> Vec<Vec<u8>> {
    let mut bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    if bytes.last() == Some(&0) {
        bytes.pop();
    }
    if bytes.is_empty() {
        return Vec::new();
    }
    bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

/// `PID command line`, for people; long ones are cut.
pub(super) fn describe(pid: i32) -> String {
    let words: Vec<String> =
        arguments(pid).iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let line = words.join(" ").replace(|character: char| character.is_control(), " ");
    let mut shown: String = line.chars().take(COMMAND_LINE_SHOWN).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    format!("{pid} {shown}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let line =
            b"42 (a) b (c)) S 7 42 41 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 100 18446744073709551615";
        assert_eq!(
            parse(42, line),
            Some(Stat { pid: 42, state: b'S', parent: 7, group: 42, session: 41, started: 987_654 })
        );
        assert_eq!(parse(42, b"42 (cut"), None);
        assert_eq!(parse(42, b"42 (cut) S 1"), None);
    }

    #[test]
    fn this_process_is_described_by_its_arguments() {
        let pid = std::process::id().cast_signed();
        assert!(stat(pid).is_some_and(|stat| !stat.is_zombie()));
        assert!(describe(pid).starts_with(&format!("{pid} ")));
        assert_eq!(stat(i32::MAX), None);
        assert_eq!(describe(i32::MAX), i32::MAX.to_string());
    }
}
