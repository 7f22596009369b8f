use std::{collections::HashSet, path::Path, time::Duration};

use haft_system::{Note, TextFile};
use serde_json::{Map, Value, json};

use super::{
    Inner, State,
    dependants::{ANOTHER_ROOT, Dependant, DependantState, NOT_OFFERED},
    job::{Found, Job, is_checking, speaks_of_now},
    scope, server_name,
};
use crate::{
    diagnostics::{
        Diagnostic,
        check::{Checked, seconds},
        counted,
        ledger::News,
        listed, rules, sort,
    },
    supervisor::WhyNot,
    tool::ask::NO_INDEX,
};

/// What results come to once the ledger has seen them.
#[derive(Default)]
struct Digest {
    new: Vec<Diagnostic>,
    /// There now, perhaps before too: server, file, list.
    unknown: Vec<(String, String, Vec<Diagnostic>)>,
    /// Server, file, why not.
    unverified: Vec<(String, String, String)>,
    /// Servers that verified a file of the commit.
    by: Vec<String>,
    /// Files of the commit that were verified.
    files: Vec<String>,
}

/// The note for the result of the write itself.
pub(super) fn inline(inner: &Inner, job: &Job, waited: Duration) -> Note {
    let mut state = inner.state();
    let (digest, waiting, unserved, dependants) = {
        let mut results = job.results();
        let digest = digest(&mut state, &results.list[results.delivered..]);
        results.delivered = results.list.len();
        let dependants = results.dependants.clone();
        if job.speaks_of_others(&digest) {
            for one in &mut results.dependants {
                one.said = one.state != DependantState::Waiting;
            }
        }
        (digest, results.waiting.clone(), results.unserved.clone(), dependants)
    };
    let mut why_not: Vec<String> = Vec::new();
    let mut text = problems(&digest);
    let mut untold: Vec<String> = Vec::new();
    for (file, why) in &unserved {
        why_not.push(brief(why, file));
        // A missing program is worth a line, once; that a text file has no server is not.
        if matches!(why, WhyNot::NoProgram { .. } | WhyNot::Start(_)) {
            let line = why.to_string();
            if state.told.insert(line.clone()) {
                untold.push(line);
            }
        }
    }
    why_not.extend(digest.unverified.iter().map(|(server, file, why)| format!("{server} on {file}: {why}")));
    if !waiting.is_empty() {
        let names =
            waiting.iter().map(|(server, file)| format!("{server} ({file})")).collect::<Vec<_>>().join(", ");
        why_not.push(format!(
            "after {} {names} had not answered; what comes later is added to a later result",
            seconds(waited)
        ));
    }
    if !job.finished()
        && waiting.is_empty()
        && digest.by.is_empty()
        && digest.unverified.is_empty()
        && unserved.is_empty()
    {
        why_not.push(format!(
            "after {} the language server had not come to this change (it is starting, or at work on an earlier one); what it finds comes with a later result",
            seconds(waited)
        ));
    }
    if job.left_out > 0 {
        why_not.push(format!("{} more files of this change were not looked at", job.left_out));
    }
    why_not.extend(
        digest.unknown.iter().map(|(server, file, _)| {
            format!("what {server} found in {file} before this change is not known")
        }),
    );
    if text.is_empty() && !digest.by.is_empty() {
        text = format!("No new problems ({}).\n", digest.by.join(", "));
    }
    let others = Others::of(&dependants);
    let worth_telling = digest.unverified.len() + waiting.len() > 0
        || (unserved.is_empty() && (job.has_text() || !job.finished()));
    if !why_not.is_empty() && worth_telling && unserved.len() < why_not.len() {
        let told: Vec<&String> = why_not.iter().skip(unserved.len()).collect();
        text.push_str(&format!(
            "Not verified: {}.\n",
            told.into_iter().cloned().collect::<Vec<_>>().join("; ")
        ));
    }
    for line in untold {
        text.push_str(&format!("Not verified: {line}\n"));
    }
    if job.speaks_of_others(&digest) {
        text.push_str(&others.in_words(&mut state.told));
    }
    let nothing_to_verify = why_not.is_empty() && digest.by.is_empty();
    let verified = why_not.is_empty() && !nothing_to_verify;
    let mut structured = Map::new();
    structured.insert("new_diagnostics".into(), json!(digest.new));
    structured.insert("verified".into(), json!(verified));
    structured.insert("verified_files".into(), json!(verified_files(&digest, &waiting)));
    insert_unknown(&mut structured, &digest);
    if !dependants.is_empty() {
        structured.insert("other_files".into(), others.structured());
    }
    if nothing_to_verify {
        structured.insert(
            "unverified_because".into(),
            json!("nothing in this change could be looked at by a language server"),
        );
    } else if !verified {
        structured.insert("unverified_because".into(), json!(why_not.join("; ")));
    }
    Note { text: (!text.is_empty()).then(|| text.trim_end().to_owned()), structured }
}

/// See [`super::WriteDiagnostics::late`].
pub(super) fn late(inner: &Inner) -> Option<Note> {
    let mut state = inner.state();
    let jobs = state.late.clone();
    let mut results: Vec<Found> = Vec::new();
    let mut dependants: Vec<Dependant> = Vec::new();
    for job in &jobs {
        let is_last = job.files.iter().all(|file| state.writes.get(&file.path) == Some(&file.write));
        let mut of_job = job.results();
        for one in of_job.dependants.iter_mut().filter(|one| one.state != DependantState::Waiting) {
            // What a later write of the same file made of others is told with that.
            if !std::mem::replace(&mut one.said, true) && is_last {
                dependants.push(one.clone());
            }
        }
        results.extend_from_slice(&of_job.list[of_job.delivered..]);
        of_job.delivered = of_job.list.len();
    }
    state.late.retain(|job| !job.finished());
    // What was written again, by Haft or by others, is not what was looked at.
    results.retain(|found| {
        let is_last = state.writes.get(&found.path).copied().unwrap_or(0) == found.write;
        let is_same = if found.is_own {
            is_on_disk(&found.path, found.text.as_deref())
        } else {
            !state.ledger.is_dirty(&scope(&found.server, &found.path))
        };
        is_last && is_same
    });
    results.extend(published_since(inner, &mut state));
    let digest = digest(&mut state, &results);
    let mut text = problems(&digest);
    for (server, file, why) in &digest.unverified {
        text.push_str(&format!("The change of {file} could not be verified by {server}: {why}.\n"));
    }
    if text.is_empty() && !digest.by.is_empty() {
        text = format!(
            "Now verified, no new problems: {} ({}).\n",
            digest.files.join(", "),
            digest.by.join(", ")
        );
    }
    let others = Others::of(&dependants);
    if !text.is_empty() {
        text.push_str(&others.in_words(&mut state.told));
    } else if !others.looked_at.is_empty() {
        text = format!("No new problems in {}.\n{}", several(&others.looked_at), others.left_in_words());
    } else if others.left.iter().any(|(why, _)| !is_lasting(why)) {
        text = others.left_in_words();
    }
    if text.is_empty() {
        return None;
    }
    let mut structured = Map::new();
    if !dependants.is_empty() {
        structured.insert("other_files".into(), others.structured());
    }
    structured.insert("late_diagnostics".into(), json!(digest.new));
    structured.insert("late_verified_files".into(), json!(verified_files(&digest, &[])));
    insert_unknown(&mut structured, &digest);
    let text = format!("From an earlier change: {}", text.trim_end());
    Some(Note { text: Some(text), structured })
}

/// Files beside those of a change: which were looked at, which will be, and which were not and why.
#[derive(Default)]
struct Others {
    looked_at: Vec<String>,
    waiting: Vec<String>,
    /// By reason.
    left: Vec<(String, Vec<String>)>,
}

impl Others {
    fn of(dependants: &[Dependant]) -> Self {
        let mut others = Others::default();
        for one in dependants {
            let name = one.file.clone();
            match &one.state {
                DependantState::LookedAt => {
                    others.looked_at.push(name.unwrap_or_else(|| "the other files".into()));
                }
                DependantState::Waiting => {
                    others.waiting.push(name.unwrap_or_else(|| "the other files".into()));
                }
                DependantState::Left(why) => match others.left.iter_mut().find(|(known, _)| known == why) {
                    Some((_, files)) => files.extend(name),
                    None => others.left.push((why.clone(), name.into_iter().collect())),
                },
            }
        }
        for list in [&mut others.looked_at, &mut others.waiting] {
            list.sort();
            list.dedup();
        }
        others
    }

    fn in_words(&self, told: &mut HashSet<String>) -> String {
        let mut text = String::new();
        if !self.looked_at.is_empty() {
            text.push_str(&format!("Also looked at: {}.\n", several(&self.looked_at)));
        }
        if !self.waiting.is_empty() {
            text.push_str(&format!(
                "Not looked at yet: {}. What is found there is added to a later result.\n",
                several(&self.waiting)
            ));
        }
        let is_news = self.left.iter().any(|(why, _)| !is_lasting(why) || told.insert(why.clone()));
        if is_news { text + &self.left_in_words() } else { text }
    }

    fn left_in_words(&self) -> String {
        let mut text = String::new();
        for (why, files) in &self.left {
            let what =
                if files.is_empty() { "other files that use what changed".into() } else { several(files) };
            text.push_str(&format!("Not looked at: {what} ({why}).\n"));
        }
        text
    }

    fn structured(&self) -> Value {
        let left: Vec<Value> =
            self.left.iter().map(|(why, files)| json!({ "files": files, "because": why })).collect();
        json!({ "looked_at": self.looked_at, "waiting": self.waiting, "not_looked_at": left })
    }
}

/// Whether it is the same at every write, so that it is said once.
fn is_lasting(why: &str) -> bool {
    why.contains(NOT_OFFERED) || why.contains(NO_INDEX) || why.starts_with(ANOTHER_ROOT)
}

/// Names, not more of them than one reads.
fn several(names: &[String]) -> String {
    const NAMED: usize = 5;
    match names.len().checked_sub(NAMED) {
        Some(more @ 1..) => format!("{} and {more} more", names[..NAMED].join(", ")),
        _ => names.join(", "),
    }
}

/// What servers have published about other files since it was last looked at.
fn published_since(inner: &Inner, state: &mut State) -> Vec<Found> {
    let root = inner.checkout.workdir().root().to_owned();
    let mut found = Vec::new();
    for server in inner.checkout.running() {
        let rules = rules::of(server.spec());
        let Some(mark) = state.heard.get(&server_name(&server)).copied() else { continue };
        // Half of a check's findings would look like news and then like news again.
        if rules.exact.is_some() || is_checking(&server) {
            continue;
        }
        state.heard.insert(server_name(&server), server.serial());
        for (path, published) in server.published_since(mark) {
            let place = scope(&server, &path);
            let is_true = speaks_of_now(&server, &path, &published) && state.ledger.is_clean(&place);
            if !path.starts_with(&root) || !is_true {
                continue;
            }
            let shown = inner.checkout.workdir().show(&path);
            let write = state.writes.get(&path).copied().unwrap_or(0);
            let list = Diagnostic::list_from_lsp(&shown, &published.diagnostics);
            found.push(Found {
                server: server.clone(),
                path,
                shown,
                checked: Checked::Verified(list),
                is_own: false,
                write,
                commits: None,
                text: None,
                before: None,
                complete: false,
            });
        }
    }
    found
}

fn is_on_disk(path: &Path, text: Option<&str>) -> bool {
    let Some(text) = text else { return false };
    std::fs::read(path)
        .ok()
        .and_then(|bytes| TextFile::parse(&bytes).ok())
        .is_some_and(|file| file.text == text)
}

/// Moves the ledger on and says what is new.
fn digest(state: &mut State, results: &[Found]) -> Digest {
    let mut digest = Digest::default();
    for found in results {
        let server = found.server.id().to_owned();
        let is_own = found.is_own;
        let place = scope(&found.server, &found.path);
        // Written since it was looked at, or written and not verified since: that is the business of its own write.
        let is_older = found.commits.is_some_and(|commits| commits != state.ledger.writes(&found.path));
        if !is_own && (is_older || state.ledger.is_dirty(&place)) {
            continue;
        }
        let list = match &found.checked {
            Checked::Verified(list) => {
                list.iter().filter(|one| one.severity.matters()).cloned().collect::<Vec<_>>()
            }
            Checked::Not(why) => {
                digest.unverified.push((server, found.shown.clone(), why.clone()));
                continue;
            }
        };
        if !is_own && !state.ledger.knows(&place) {
            if !found.complete {
                // Nothing is known of how it was, and nobody asked.
                state.ledger.baseline(&place, &list);
                continue;
            }
            state.ledger.baseline(&place, &[]);
        }
        let moved = line_map(found.before.as_deref(), found.text.as_deref());
        match state.ledger.verified(&place, &list, &moved) {
            News::New(new) => {
                for one in new {
                    let is_there = digest.new.iter().any(|other: &Diagnostic| {
                        (&other.file, other.line, other.severity, &other.message)
                            == (&one.file, one.line, one.severity, &one.message)
                    });
                    if !is_there {
                        digest.new.push(one);
                    }
                }
                if let Some(why) = found.server.misread().filter(|_| is_own) {
                    // What it finds by other rules is news all the same; what it does not find says nothing.
                    digest.unverified.push((server, found.shown.clone(), why));
                } else if is_own {
                    if !digest.by.contains(&server) {
                        digest.by.push(server);
                    }
                    if !digest.files.contains(&found.shown) {
                        digest.files.push(found.shown.clone());
                    }
                }
            }
            News::Unknown(list) => digest.unknown.push((server, found.shown.clone(), list)),
        }
    }
    sort(&mut digest.new);
    digest
}

/// What is there of which it is not known whether it was there before: fields for programs.
fn insert_unknown(structured: &mut Map<String, Value>, digest: &Digest) {
    if !digest.unknown.is_empty() {
        let files: Vec<&String> = digest.unknown.iter().map(|(_, file, _)| file).collect();
        let list: Vec<&Diagnostic> = digest.unknown.iter().flat_map(|(_, _, list)| list).collect();
        structured.insert("unknown_before_files".into(), json!(files));
        structured.insert("present_diagnostics".into(), json!(list));
    }
}

/// The files of a change that every server that was asked has verified.
fn verified_files<'a>(digest: &'a Digest, waiting: &[(String, String)]) -> Vec<&'a String> {
    let is_whole = |file: &&String| {
        !digest.unverified.iter().any(|(_, other, _)| other == *file)
            && !digest.unknown.iter().any(|(_, other, _)| other == *file)
            && !waiting.iter().any(|(_, other)| other == *file)
    };
    digest.files.iter().filter(is_whole).collect()
}

fn problems(digest: &Digest) -> String {
    let mut text = String::new();
    if !digest.new.is_empty() {
        text.push_str(&format!("{}:\n{}", counted(&digest.new, "new "), listed(&digest.new)));
    }
    for (server, file, list) in &digest.unknown {
        if list.is_empty() {
            text.push_str(&format!("{server} finds no problems in {file}.\n"));
        } else {
            text.push_str(&format!(
                "{server} finds {} in {file}; which of them were there before this change is not known:\n{}",
                counted(list, ""),
                listed(list)
            ));
        }
    }
    text
}

/// Where a line (from 1) of the old text is in the new one, as far as common beginnings and ends tell.
fn line_map(before: Option<&str>, after: Option<&str>) -> impl Fn(u32) -> u32 + use<> {
    let old: Vec<&str> = before.unwrap_or_default().lines().collect();
    let new: Vec<&str> = after.unwrap_or_default().lines().collect();
    let same = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let rest = old[same..]
        .iter()
        .rev()
        .zip(new[same..].iter().rev())
        .take_while(|(one, other)| one == other)
        .count();
    let (old, new) = (old.len(), new.len());
    let is_known = before.is_some() && after.is_some();
    move |line| {
        let index = line as usize;
        if is_known && index > old - rest { (index + new).saturating_sub(old) as u32 } else { line }
    }
}

fn brief(why: &WhyNot, file: &str) -> String {
    match why {
        WhyNot::UnknownLanguage { .. } => format!("no known language server has to do with {file}"),
        WhyNot::NoRoot { .. } => format!("no project root for {file}"),
        WhyNot::NoProgram { .. } => format!("no language server for {file} is installed"),
        WhyNot::Disabled { .. } => format!("the language servers for {file} are switched off"),
        WhyNot::Start(error) => error.to_string().trim_end_matches('.').to_owned(),
    }
}

impl Job {
    fn finished(&self) -> bool {
        self.results().finished
    }

    /// Where nothing is known yet of the files of the change themselves, what is known of others is told with that. Files that were only taken away have nothing to be known.
    fn speaks_of_others(&self, digest: &Digest) -> bool {
        !digest.by.is_empty() || !digest.new.is_empty() || !self.has_text()
    }

    fn has_text(&self) -> bool {
        self.files.iter().any(|file| file.after.is_some())
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn lines_below_a_change_slide_with_it() {
        let map = line_map(Some("a\nb\nc\nd\n"), Some("a\nx\ny\nz\nc\nd\n"));
        assert_eq!([1, 2, 3, 4].map(map), [1, 2, 5, 6]);
        let map = line_map(Some("a\nb\nc\nd\n"), Some("a\nd\n"));
        assert_eq!([1, 2, 3, 4].map(map), [1, 2, 3, 2]);
        let map = line_map(None, Some("a\n"));
        assert_eq!(map(7), 7);
    }
}
