//! Writes, and how long it takes until it is known what the server thinks of them.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{
    Bench,
    console::{Console, text},
    milliseconds,
    raw::Raw,
    samples::{Rule, problem},
    table::{Tables, Written},
};
use crate::bench::report::Spread;

/// Before each write, for both, so that what the servers do after the write before is over.
const PAUSE: Duration = Duration::from_millis(250);

/// Rounds before the first that counts: a server in JavaScript needs some hundred writes until it is as fast as it gets. A checker is a program that is started anew.
const WARM_ROUNDS: usize = 30;
const WARM_ROUNDS_OF_A_CHECKER: usize = 1;

impl Bench<'_> {
    /// `alike`: a raw client with a server of its own, so that every server gets every write once.
    pub(super) fn writes(
        &self,
        ours: &mut Console,
        raw: &mut Raw,
        alike: Option<&mut Raw>,
        tables: &mut Tables,
    ) -> Result<()> {
        let mut alike = alike;
        let is_check = self.sample.rule == Rule::Check;
        let warm_rounds = if is_check { WARM_ROUNDS_OF_A_CHECKER } else { WARM_ROUNDS };
        let mut kinds = [
            Kind::new("a new problem", |number| (number, true)),
            Kind::new("mends it", |number| (number, false)),
            Kind::new("clean, stays clean", |number| (number + 1_000_000, false)),
        ];
        let mut line = self.language.clean(0);
        let mut was_broken = false;
        let mut plain = Plain { edits: 0 };
        for round in 0..warm_rounds + self.options.runs as usize {
            for kind in &mut kinds {
                let (number, is_broken) = (kind.text)(round + 1);
                let next = if is_broken { self.language.broken(number) } else { self.language.clean(number) };
                let write = Write {
                    old: &line,
                    new: &next,
                    text: self.language.edited_text(&next),
                    problem: is_broken.then(|| problem(number)),
                    changes: is_broken != was_broken,
                };
                was_broken = is_broken;
                let mut raw_takes = || -> Result<_> {
                    let alone = self.write_raw(&write, raw)?;
                    let alike = alike.as_deref_mut().map(|raw| self.write_raw_alike(&write, raw));
                    Ok((alone, alike.transpose()?))
                };
                let (ours_took, (raw_took, alike_took)) = if round % 2 == 0 {
                    let raw = raw_takes()?;
                    (self.write_ours(&write, ours)?, raw)
                } else {
                    let ours = self.write_ours(&write, ours)?;
                    (ours, raw_takes()?)
                };
                line = next;
                if round >= warm_rounds {
                    kind.take(&ours_took, raw_took.as_ref(), alike_took);
                }
            }
        }
        // Not between the others, for only Haft's server would be told of them.
        for _ in 0..self.options.runs {
            for kind in &mut kinds {
                kind.plain.push(plain.edit(ours)?);
            }
        }
        for kind in kinds {
            let row = |write, ours: &[f64], raw: &[f64], alike: &[f64], allowed| -> Result<Written> {
                let spread =
                    |values: &[f64]| Spread::of(values.iter().copied()).context("nothing was measured");
                Ok(Written {
                    server: self.sample.server,
                    rule: self.sample.rule.words(),
                    write,
                    haft: spread(ours)?,
                    raw: Spread::of(raw.iter().copied()),
                    raw_alike: Spread::of(alike.iter().copied()),
                    plain: spread(&kind.plain)?,
                    allowed,
                    asked_again: (kind.again, ours.len()),
                })
            };
            // The check itself takes its time, and never the same; what counts is what comes after it.
            let allowed = (!is_check).then_some(self.sample.rule.allowed());
            tables.writes.push(row(kind.name, &kind.ours, &kind.raw, &kind.raw_alike, allowed)?);
            if is_check {
                let allowed = Some(self.sample.rule.allowed());
                let mut after =
                    row("… from the end of cargo check", &kind.ours_after, &kind.raw_after, &[], allowed)?;
                after.asked_again.0 = 0;
                tables.writes.push(after);
            }
        }
        Ok(())
    }

    /// An edit, until Haft has said what the server thinks of it: in the answer itself, or, where that says that it is not verified yet, in the next one.
    fn write_ours(&self, write: &Write<'_>, ours: &mut Console) -> Result<Verdict> {
        thread::sleep(PAUSE);
        let edited = self.language.edited();
        let begin = Instant::now();
        let (_, answer) =
            ours.good("edit", &json!({ "path": edited, "old": write.old, "new": write.new }))?;
        let is_verified = answer["structured"]["verified"] == true;
        let mut found = messages(&answer["structured"]["new_diagnostics"]);
        let mut said = text(&answer);
        if !is_verified {
            let (_, answer) = ours.good("lsp", &json!({ "action": "diagnostics", "file": edited }))?;
            found.extend(messages(&answer["structured"]["diagnostics"]));
            said.push_str(&text(&answer));
        }
        let verdict = Verdict::since(begin, self.stamp(), !is_verified);
        let is_right = match &write.problem {
            Some(problem) => found.iter().any(|message| message.contains(problem.as_str())),
            None => !found.iter().any(|message| message.contains("missing_")),
        };
        if !is_right {
            bail!("Haft's answer is wrong: after {:?} it said: {said}", write.new);
        }
        Ok(verdict)
    }

    fn write_raw(&self, write: &Write<'_>, raw: &mut Raw) -> Result<Option<Verdict>> {
        thread::sleep(PAUSE);
        let is_right = |found: &[String]| match &write.problem {
            Some(problem) => found.iter().any(|message| message.contains(problem.as_str())),
            None => !found.iter().any(|message| message.contains("missing_")),
        };
        let begin = Instant::now();
        let found = raw.write(&self.language.edited(), &write.text, self.sample.rule, is_right)?;
        let verdict = Verdict::since(begin, self.stamp(), false);
        let Some(found) = found else {
            // Where nothing changes a server may say nothing. Where something does, it has to.
            if write.changes {
                bail!("the server of the raw client said nothing after {:?}", write.new);
            }
            return Ok(None);
        };
        if !is_right(&found) {
            bail!("the raw client's answer is wrong: after {:?} it has {found:?}", write.new);
        }
        Ok(Some(verdict))
    }

    /// The same write with all that Haft asks about it too.
    fn write_raw_alike(&self, write: &Write<'_>, raw: &mut Raw) -> Result<f64> {
        thread::sleep(PAUSE);
        let changed = self.language.changed().context("the edited file has no function")?;
        let is_gopls = self.sample.server == "gopls";
        let begin = Instant::now();
        raw.before(&changed, self.sample.rule, !is_gopls)?;
        let edited = self.language.edited();
        raw.write(&edited, &write.text, self.sample.rule, |_| true)?;
        if is_gopls {
            raw.diagnose(&edited)?;
        }
        Ok(milliseconds(begin))
    }

    /// When `cargo check` last ended, in seconds since 1970.
    fn stamp(&self) -> Option<f64> {
        fs::read_to_string(self.place.join("cargo-ended")).ok()?.trim().parse().ok()
    }
}

/// One write for both.
struct Write<'a> {
    old: &'a str,
    new: &'a str,
    text: String,
    /// What the message of the new problem has in it.
    problem: Option<String>,
    /// Whether there are other problems after it than before.
    changes: bool,
}

/// A file that no language server looks at.
struct Plain {
    edits: usize,
}

impl Plain {
    const FILE: &str = "notes.txt";

    /// Milliseconds of an edit of it: what an edit costs by itself.
    fn edit(&mut self, ours: &mut Console) -> Result<f64> {
        let line = |edits: usize| format!("{edits} edits\n");
        if self.edits == 0 {
            ours.good("write", &json!({ "path": Self::FILE, "content": line(0) }))?;
        }
        thread::sleep(PAUSE);
        let (old, new) = (line(self.edits), line(self.edits + 1));
        self.edits += 1;
        Ok(ours.good("edit", &json!({ "path": Self::FILE, "old": old, "new": new }))?.0)
    }
}

/// A kind of write, with what was measured of it.
struct Kind {
    name: &'static str,
    /// By round: the number in the line, and whether it is broken.
    text: fn(usize) -> (usize, bool),
    ours: Vec<f64>,
    raw: Vec<f64>,
    raw_alike: Vec<f64>,
    plain: Vec<f64>,
    ours_after: Vec<f64>,
    raw_after: Vec<f64>,
    again: usize,
}

impl Kind {
    fn new(name: &'static str, text: fn(usize) -> (usize, bool)) -> Kind {
        Kind {
            name,
            text,
            ours: Vec::new(),
            raw: Vec::new(),
            raw_alike: Vec::new(),
            plain: Vec::new(),
            ours_after: Vec::new(),
            raw_after: Vec::new(),
            again: 0,
        }
    }

    fn take(&mut self, ours: &Verdict, raw: Option<&Verdict>, alike: Option<f64>) {
        self.ours.push(ours.spent);
        self.raw.extend(raw.map(|raw| raw.spent));
        self.raw_alike.extend(alike);
        self.ours_after.extend(ours.after_check);
        self.raw_after.extend(raw.and_then(|raw| raw.after_check));
        self.again += usize::from(ours.again);
    }
}

/// How long a verdict took, in milliseconds.
struct Verdict {
    spent: f64,
    /// From the end of `cargo check`.
    after_check: Option<f64>,
    again: bool,
}

impl Verdict {
    fn since(begin: Instant, stamp: Option<f64>, again: bool) -> Verdict {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        Verdict { spent: milliseconds(begin), after_check: stamp.map(|ended| (now - ended) * 1e3), again }
    }
}

/// A `cargo` that writes down when it ended; both clients' servers run it.
pub(super) fn stamped_cargo(place: &Path, cargo: &Path) -> Result<PathBuf> {
    let directory = place.join("bin");
    fs::create_dir_all(&directory)?;
    let script = directory.join("cargo");
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', "'\\''"));
    fs::write(
        &script,
        format!(
            "#!/bin/bash\n{} \"$@\"\ncode=$?\nLC_ALL=C\n[ \"$1\" = check ] && echo \"$EPOCHREALTIME\" > {}\nexit $code\n",
            quoted(cargo),
            quoted(&place.join("cargo-ended")),
        ),
    )?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    Ok(script)
}

fn messages(diagnostics: &Value) -> Vec<String> {
    let message = |one: &Value| one["message"].as_str().unwrap_or_default().to_owned();
    diagnostics.as_array().into_iter().flatten().map(message).collect()
}
