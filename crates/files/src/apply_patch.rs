//! `apply_patch`: changes to several files, all or nothing.
//!
//! Every section is worked out in memory first, later sections on top of earlier ones; only when all of them fit is the whole handed to
//! [`Changes::commit`]. One that does not fit leaves every file as it was.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use haft_system::{Before, Captured, Change, ChangeSet, Changes, PathState, TextFile};
use haft_tool::{Access, Context, Output, Tier, Tool, ToolError, Touch};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Reads, answer, blocking,
    diff::{Diffs, tally},
    limits::MISFITS_LISTED,
    lines::{count, split},
    patch::{self, Action, Hunk, Section},
    target::{self, Target},
};

/// The tool.
#[derive(Clone)]
pub struct ApplyPatch {
    changes: Changes,
    reads: Reads,
}

impl ApplyPatch {
    /// Writes through `changes`, and notes in `reads` what is there afterwards.
    pub fn new(changes: Changes, reads: Reads) -> Self {
        ApplyPatch { changes, reads }
    }
}

/// What to apply.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyPatchArguments {
    /// The whole patch.
    patch: String,
}

impl Tool for ApplyPatch {
    type Arguments = ApplyPatchArguments;
    const NAME: &'static str = "apply_patch";
    const TIER: Tier = Tier::Write;

    fn description(&self) -> String {
        "Changes several files at once, all or nothing. Takes a unified diff (git's too), or this form:
*** Begin Patch
*** Update File: src/a.py
*** Move to: src/b.py
@@ def greet(name):
 unchanged line
-old line
+new line
*** Add File: new.txt
+every line with a plus
*** Delete File: old.txt
*** End Patch
`Move to` and `@@ line` are optional; the `@@` line stands above the change and tells equal places apart. Give about three unchanged lines around \
each change. Lines must fit exactly or but for white space; a place that is not unique is an error."
            .into()
    }

    fn touches(&self, arguments: &ApplyPatchArguments) -> Vec<Touch> {
        // A patch that cannot be read touches nothing: the call fails.
        let Ok(patch) = patch::parse(&arguments.patch) else { return Vec::new() };
        let paths = patch.sections.into_iter().flat_map(|section| {
            let to = match section.action {
                Action::Update { to, .. } => to,
                Action::Add { .. } | Action::Delete { .. } => None,
            };
            std::iter::once(section.path).chain(to)
        });
        paths.map(|path| Touch::Path(path.into(), Access::Write)).collect()
    }

    async fn call(&self, arguments: ApplyPatchArguments, context: &Context) -> Result<Output, ToolError> {
        let patch = patch::parse(&arguments.patch).map_err(|error| ToolError::model(error.to_string()))?;
        let _turn = self.reads.turn(&context.cancel).await?;
        let mut plan = Plan { changes: &self.changes, works: Vec::new(), index: HashMap::new() };
        let mut misfits = Vec::new();
        for section in patch.sections {
            if context.cancel.is_cancelled() {
                return Err(ToolError::Cancelled);
            }
            let path = section.path.clone();
            match plan.add(section).await {
                Ok(()) => {}
                Err(ToolError::Model { text, .. }) => misfits.push(format!("{path}: {text}")),
                Err(other) => return Err(other),
            }
        }
        if !misfits.is_empty() {
            let more = misfits.len().saturating_sub(MISFITS_LISTED);
            misfits.truncate(MISFITS_LISTED);
            let more = if more > 0 {
                format!("\n\nand {}", count(more, "other problem", "other problems"))
            } else {
                String::new()
            };
            return Err(ToolError::model(format!(
                "The patch does not fit. Nothing was written.\n\n{}{more}",
                misfits.join("\n\n")
            )));
        }
        let works = plan.works;
        let finished = blocking(move || finish(works)).await?;
        let mut text = finished.text;
        for note in finished.notes.iter().chain(&patch.notes) {
            text.push_str(&format!("\nNote: {note}"));
        }
        if finished.set.changes.is_empty() {
            return Ok(answer::unchanged(format!("The patch changes nothing; nothing was written.{text}")));
        }
        let files = count(finished.set.changes.len(), "file", "files");
        let committed = self.changes.commit(finished.set, Self::NAME).await?;
        for (path, bytes) in &finished.seen {
            self.reads.saw(path, bytes);
        }
        committed.answer(&format!("Applied the patch to {files}.{text}"))
    }
}

/// What has been worked out so far.
struct Plan<'a> {
    changes: &'a Changes,
    works: Vec<Work>,
    /// By canonical path: which work a path belongs to, under its old name and its new.
    index: HashMap<PathBuf, usize>,
}

/// One file on its way.
struct Work {
    captured: Captured,
    /// As it is on the disk; `None` for a file that is new, or that is only deleted and need not be text.
    file: Option<TextFile>,
    to: Option<Captured>,
    /// `None` when it goes.
    now: Option<String>,
    /// It was deleted, and another file moves to its place.
    replaced: bool,
    notes: Vec<String>,
}

impl Plan<'_> {
    async fn add(&mut self, section: Section) -> Result<(), ToolError> {
        let path = PathBuf::from(&section.path);
        match section.action {
            Action::Add { content } => self.create(&path, content).await,
            Action::Delete { hunks } => self.delete(&path, hunks).await,
            Action::Update { to, hunks } => self.update(&path, to, hunks).await,
        }
    }

    fn push(&mut self, work: Work) {
        let at = self.works.len();
        self.index.insert(work.captured.path.real.clone(), at);
        if let Some(to) = &work.to {
            self.index.insert(to.path.real.clone(), at);
        }
        self.works.push(work);
    }

    async fn create(&mut self, given: &Path, content: String) -> Result<(), ToolError> {
        let path = target::resolve(self.changes, given)?;
        if let Some(at) = self.index.get(&path.real) {
            let work = &mut self.works[*at];
            // A model replaces a whole file by deleting and adding it.
            if work.now.is_none() && !work.replaced && work.captured.path.real == path.real {
                work.file = work.captured.before.bytes().and_then(|bytes| TextFile::parse(bytes).ok());
                work.now = Some(match &work.file {
                    Some(file) => file.with_endings(&content),
                    None => content,
                });
                return Ok(());
            }
            return Err(twice());
        }
        if path.state == PathState::File {
            return Err(ToolError::model(
                "it exists already. Use `*** Update File:`, or delete it in the same patch first.",
            ));
        }
        let captured = self.changes.capture(&path).await?;
        self.push(Work {
            captured,
            file: None,
            to: None,
            now: Some(content),
            replaced: false,
            notes: Vec::new(),
        });
        Ok(())
    }

    async fn delete(&mut self, given: &Path, hunks: Vec<Hunk>) -> Result<(), ToolError> {
        let path = target::resolve(self.changes, given)?;
        if self.index.contains_key(&path.real) {
            return Err(twice());
        }
        if path.state == PathState::Missing {
            return Err(target::missing(self.changes, &path).await);
        }
        if !hunks.is_empty() {
            let Target { file, .. } = target::text(self.changes, given).await?;
            let applied = fit(file.text, hunks).await?;
            if !applied.text.is_empty() {
                return Err(ToolError::model(format!(
                    "the diff deletes it, but it has {} that the diff does not know.",
                    count(split(&applied.text).len(), "line", "lines")
                )));
            }
        }
        let captured = self.changes.capture(&path).await?;
        self.push(Work { captured, file: None, to: None, now: None, replaced: false, notes: Vec::new() });
        Ok(())
    }

    async fn update(&mut self, given: &Path, to: Option<String>, hunks: Vec<Hunk>) -> Result<(), ToolError> {
        let path = target::resolve(self.changes, given)?;
        if let Some(at) = self.index.get(&path.real).copied() {
            let work = &mut self.works[at];
            // An earlier section changed the file: this one goes on from there. A file that moved goes by its new name.
            let named_now = work.to.as_ref().unwrap_or(&work.captured).path.real == path.real;
            let Some(text) = work.now.clone().filter(|_| to.is_none() && named_now) else {
                return Err(twice());
            };
            let applied = fit(text, hunks).await?;
            work.now = Some(applied.text);
            work.notes.extend(applied.notes);
            return Ok(());
        }
        let target = target::text(self.changes, given).await?;
        let mut replaces = None;
        let to = match to {
            None => None,
            Some(to) => {
                let place = target::resolve(self.changes, Path::new(&to))?;
                if place.real == path.real {
                    None
                } else if let Some(at) = self.index.get(&place.real).copied() {
                    // Deleted above: the move takes its place.
                    let there = &mut self.works[at];
                    if there.now.is_some() || there.replaced || there.captured.path.real != place.real {
                        return Err(ToolError::model(format!(
                            "the patch names `{}`, to which it moves, twice.",
                            place.shown
                        )));
                    }
                    replaces = Some(at);
                    Some(there.captured.clone())
                } else if place.state == PathState::File {
                    return Err(ToolError::model(format!(
                        "it cannot be moved to `{}`, which exists already. Delete that file in the same patch first, or choose another name.",
                        place.shown
                    )));
                } else {
                    Some(self.changes.capture(&place).await?)
                }
            }
        };
        let (now, notes) = if hunks.is_empty() {
            (target.file.text.clone(), Vec::new())
        } else {
            let applied = fit(target.file.text.clone(), hunks).await?;
            (applied.text, applied.notes)
        };
        if let Some(at) = replaces {
            self.works[at].replaced = true;
        }
        let replaced = false;
        self.push(Work {
            captured: target.captured,
            file: Some(target.file),
            to,
            now: Some(now),
            replaced,
            notes,
        });
        Ok(())
    }
}

fn twice() -> ToolError {
    ToolError::model("the patch names it twice, in ways that do not go together. Write one section for it.")
}

/// Applies hunks beside the runtime: a large file takes a while.
async fn fit(text: String, hunks: Vec<Hunk>) -> Result<patch::Applied, ToolError> {
    blocking(move || patch::apply(&text, &hunks).map_err(|misfit| ToolError::model(misfit.to_string()))).await
}

/// The changes to make, and what to say about them.
struct Finished {
    set: ChangeSet,
    text: String,
    notes: Vec<String>,
    /// What will be where.
    seen: Vec<(PathBuf, Vec<u8>)>,
}

fn finish(works: Vec<Work>) -> Result<Finished, ToolError> {
    let mut finished =
        Finished { set: ChangeSet::default(), text: String::new(), notes: Vec::new(), seen: Vec::new() };
    let mut diffs = Diffs::new();
    for work in works {
        let name = work.captured.path.shown.clone();
        finished.notes.extend(work.notes.iter().map(|note| format!("{name}, {note}.")));
        let mut say = |line: String| {
            finished.text.push('\n');
            finished.text.push_str(&line);
        };
        if work.replaced {
            continue;
        }
        let Some(now) = work.now else {
            say(format!("D {name}"));
            finished.set.changes.push(Change::Delete { at: work.captured });
            continue;
        };
        let after = match &work.file {
            Some(file) => target::encode(file, &work.captured.path, &now)?,
            None => now.clone().into_bytes(),
        };
        let before = work.captured.before.bytes();
        let same = before.is_some_and(|before| before[..] == after[..]);
        let old = work.file.as_ref().map(|file| file.text.as_str());
        let tally = old.map(|old| tally(old, &now)).filter(|tally| !tally.is_empty() && !same);
        let tally = tally.map_or_else(String::new, |tally| format!(" ({tally})"));
        match (&work.to, &work.captured.before) {
            (Some(to), _) => {
                let over = if to.before == Before::Absent { "" } else { ", in place of the old file" };
                say(format!("R {name} -> {}{tally}{over}", to.path.shown));
            }
            (None, Before::Absent) => {
                say(format!("A {name} ({})", count(split(&now).len(), "line", "lines")));
            }
            (None, Before::File { .. }) if same => {
                finished.notes.push(format!("{name} already is as the patch wants it."));
                continue;
            }
            (None, Before::File { .. }) => say(format!("M {name}{tally}")),
        }
        if let (Some(old), false) = (old, same) {
            say(diffs.show(old, &now));
        }
        let place = work.to.as_ref().unwrap_or(&work.captured).path.real.clone();
        finished.seen.push((place, after.clone()));
        finished.set.changes.push(match work.to {
            Some(to) => Change::Move { from: work.captured, to, after: (!same).then_some(after) },
            None => Change::Write { at: work.captured, after },
        });
    }
    Ok(finished)
}
