use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt, path::PathBuf};

use haft_system::{ChangeKind, Environment, PathState, ResolvedPath, Supervisor, Workdir};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use self::fake::{Dice, Fake, Kind};
use super::*;
use crate::{
    servers::{Readiness, ServerOverride, ServerSpec, Settle, Table},
    supervisor::{Servers, testing},
};

mod fake;

struct Place {
    _root: tempfile::TempDir,
    root: PathBuf,
    watch: WriteDiagnostics,
}

const FILES: [&str; 2] = ["a.fk", "b.fk"];

async fn place(kind: Kind, silent: u64, seed: u64) -> Place {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let program = root.join("fake-server");
    fs::write(&program, "").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let root = root.join("project");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("fake.toml"), "").unwrap();
    for file in FILES {
        fs::write(root.join(file), "one\n").unwrap();
    }
    let change = ServerOverride {
        command: Some(vec![program.display().to_string()]),
        languages: Some(BTreeMap::from([("fk".to_owned(), "fake".to_owned())])),
        markers: Some(vec!["fake.toml".to_owned()]),
        ..ServerOverride::default()
    };
    let table = Table::shipped().unwrap().with(&BTreeMap::from([("fake".to_owned(), change)])).unwrap();
    let spec = ServerSpec {
        settle: if kind == Kind::Flycheck { Settle::Flycheck } else { Settle::Generic },
        readiness: Readiness::None,
        ..ServerSpec::clone(table.get("fake").unwrap())
    };
    let environment = Environment::of([("PATH", "/nowhere")], &root);
    let servers = Servers::new(environment.clone(), Supervisor::new(environment));
    let checkout = Checkout::new(servers, Workdir::new(&root).unwrap(), table);
    let (server, far) = testing::server(spec.into(), &root, Fake::capabilities(kind));
    server.keep_though_silent();
    Fake::serve(kind, silent, seed, far);
    checkout.put_server(&root.join(FILES[0]), server.into()).await;
    Place { _root: dir, root, watch: WriteDiagnostics::new(checkout) }
}

impl Place {
    fn planned(&self, file: &str, after: Option<&str>) -> Planned {
        let real = self.root.join(file);
        let before = fs::read(&real).ok();
        let kind = match (&before, after) {
            (None, _) => ChangeKind::Created,
            (Some(_), None) => ChangeKind::Deleted,
            (Some(_), Some(_)) => ChangeKind::Modified,
        };
        let file = ResolvedPath { real, shown: file.into(), state: PathState::File, via_symlink: false };
        let bytes = |text: &str| Arc::from(text.as_bytes());
        Planned { file, kind, from: None, before: before.map(Into::into), after: after.map(bytes) }
    }

    /// What a commit does, without its journal.
    async fn write(&self, files: &[(&str, Option<&str>)]) -> Note {
        let planned: Vec<Planned> = files.iter().map(|(file, text)| self.planned(file, *text)).collect();
        self.watch.before(&planned).await;
        for (file, text) in files {
            match text {
                Some(text) => fs::write(self.root.join(file), text).unwrap(),
                None => fs::remove_file(self.root.join(file)).unwrap(),
            }
        }
        self.watch.after(&planned).await.unwrap()
    }

    async fn settled(&self) -> Option<Note> {
        assert!(self.watch.settled(Duration::from_mins(10)).await);
        self.watch.late()
    }
}

/// Problems by file and message, with how many there are.
type Counts = BTreeMap<(String, String), usize>;

fn counts(file: &str, text: &str, kind: Kind) -> Counts {
    let mut counts = Counts::new();
    for word in text.split_whitespace() {
        if word.contains("BAD") || (kind == Kind::Flycheck && word.contains("CHECK")) {
            *counts.entry((file.to_owned(), word.to_owned())).or_default() += 1;
        }
    }
    counts
}

fn reported(note: &Note, field: &str) -> Counts {
    let mut counts = Counts::new();
    for one in note.structured.get(field).and_then(Value::as_array).into_iter().flatten() {
        let text = |field: &str| one[field].as_str().unwrap().to_owned();
        *counts.entry((text("file"), text("message"))).or_default() += 1;
    }
    counts
}

fn more(now: &Counts, known: &Counts) -> Counts {
    let gained = now.iter().filter_map(|(key, count)| {
        let gain = count.saturating_sub(known.get(key).copied().unwrap_or(0));
        (gain > 0).then(|| (key.clone(), gain))
    });
    gained.collect()
}

fn text(dice: &mut Dice, kind: Kind) -> String {
    let lines = dice.roll(8);
    let line = |dice: &mut Dice| match dice.roll(4) {
        0 => format!("x BAD{}", ["a", "b", "c"][dice.roll(3) as usize]),
        1 if kind == Kind::Flycheck => format!("y CHECK{}", ["a", "b"][dice.roll(2) as usize]),
        _ => format!("fine {}", dice.roll(100)),
    };
    (0..lines).map(|_| line(dice) + "\n").collect()
}

/// A thousand writes against a server that delays, repeats, mixes up and now and then swallows what it has to say. Whatever is called verified has to be exactly what the
/// texts say, and what comes late has to be true of what is on the disk.
async fn fuzz(kind: Kind, silent: u64, seed: u64) {
    let place = place(kind, silent, seed).await;
    let mut dice = Dice::new(seed + 77);
    // Per file what has been handed over as known.
    let mut known: BTreeMap<&str, Counts> = FILES.into_iter().map(|file| (file, Counts::new())).collect();
    let mut now: BTreeMap<&str, Counts> = known.clone();
    let (mut verified, mut late) = (0, 0);
    for cycle in 0..1000 {
        let both = dice.roll(6) == 0;
        let first = dice.roll(2) as usize;
        let names: Vec<&str> = if both { FILES.to_vec() } else { vec![FILES[first]] };
        let texts: Vec<String> = names.iter().map(|_| text(&mut dice, kind)).collect();
        let files: Vec<(&str, Option<&str>)> =
            names.iter().zip(&texts).map(|(name, text)| (*name, Some(text.as_str()))).collect();
        // A write of what is there already is none.
        let files: Vec<_> = files
            .into_iter()
            .filter(|(file, text)| fs::read_to_string(place.root.join(file)).ok().as_deref() != *text)
            .collect();
        if files.is_empty() {
            continue;
        }
        let note = place.write(&files).await;
        for (file, text) in &files {
            now.insert(*file, counts(file, text.unwrap(), kind));
        }
        verified += usize::from(note.structured["verified"] == json!(true));
        let context = format!("{kind:?} cycle {cycle}: {note:?}");
        agree(&note, "verified_files", "new_diagnostics", &now, &mut known, &context);
        if note.structured["verified"] != json!(true) {
            assert!(note.structured.contains_key("unverified_because"), "{context}");
            // Sometimes the next write comes before the answer.
            if dice.roll(3) > 0
                && let Some(later) = place.settled().await
            {
                late += 1;
                let context = format!("{context}, later {later:?}");
                agree(&later, "late_verified_files", "late_diagnostics", &now, &mut known, &context);
            }
        }
    }
    assert!(verified > 200, "{kind:?}: only {verified} writes were verified inline");
    assert!(late > 0 || silent == 0, "{kind:?}: nothing came late");
}

/// What a note says of the files that it calls verified has to be exactly what they gained, and nothing is said of others.
fn agree(
    note: &Note,
    files: &str,
    diagnostics: &str,
    now: &BTreeMap<&str, Counts>,
    known: &mut BTreeMap<&str, Counts>,
    context: &str,
) {
    let verified: Vec<&str> = FILES
        .into_iter()
        .filter(|file| note.structured[files].as_array().unwrap().contains(&json!(file)))
        .collect();
    let expected: Counts = verified.iter().flat_map(|file| more(&now[file], &known[file])).collect();
    assert_eq!(reported(note, diagnostics), expected, "{context}");
    for file in verified {
        known.insert(file, now[file].clone());
    }
    // Where it is not known what was there before, all that is there is said.
    let Some(unknown) = note.structured.get("unknown_before_files").and_then(Value::as_array) else { return };
    let unknown: Vec<&str> = FILES.into_iter().filter(|file| unknown.contains(&json!(file))).collect();
    let present: Counts = unknown.iter().flat_map(|file| now[file].clone()).collect();
    assert_eq!(reported(note, "present_diagnostics"), present, "{context}");
    for file in unknown {
        known.insert(file, now[file].clone());
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_writes_with_versions() {
    fuzz(Kind::Versioned, 0, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_writes_with_versions_some_unanswered() {
    fuzz(Kind::Versioned, 40, 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_writes_without_versions() {
    fuzz(Kind::Unversioned, 0, 3).await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_writes_by_pull() {
    fuzz(Kind::Pull, 0, 4).await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_writes_by_pull_some_unanswered() {
    fuzz(Kind::Pull, 40, 5).await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_writes_with_a_late_registration() {
    fuzz(Kind::PullLate, 0, 6).await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_writes_with_a_checker() {
    fuzz(Kind::Flycheck, 0, 7).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_costs_a_write_half_a_second_and_says_so() {
    let place = place(Kind::Pull, 1, 8).await;
    for round in 0..3 {
        let begun = Instant::now();
        let note = place.write(&[("a.fk", Some(&format!("x BADa {round}\n")))]).await;
        assert_eq!(begun.elapsed().as_millis() / 10, WRITE_INLINE.as_millis() / 10, "{note:?}");
        assert_eq!(note.structured["verified"], json!(false));
        assert_eq!(note.structured["new_diagnostics"], json!([]));
    }
    // What is said in the end is that it is not known, and nothing of what the first two writes broke counts as known.
    let later = place.settled().await.unwrap();
    insta::assert_snapshot!(later.text.unwrap());
}

#[tokio::test(start_paused = true)]
async fn files_that_come_and_go() {
    let place = place(Kind::Pull, 0, 9).await;
    let bad = Some("x BADa\n");
    let new = |note: &Note| reported(note, "new_diagnostics").len();
    // The dice of this seed keep every answer within the inline time or bring it late; either way it is said once.
    let all = |note: Note, later: Option<Note>| {
        new(&note) + later.map_or(0, |later| reported(&later, "late_diagnostics").len())
    };
    let note = place.write(&[("new.fk", bad)]).await;
    let later = place.settled().await;
    assert_eq!(all(note, later), 1, "a new file's errors are new");
    let note = place.write(&[("new.fk", None)]).await;
    let later = place.settled().await;
    assert_eq!(all(note, later), 0, "a deleted file has none");
    let note = place.write(&[("new.fk", bad)]).await;
    let later = place.settled().await;
    assert_eq!(all(note, later), 1, "created again they are new again");
}

#[tokio::test(start_paused = true)]
async fn a_refused_commit_leaves_nothing_behind() {
    let place = place(Kind::Pull, 0, 10).await;
    let planned = vec![place.planned("a.fk", Some("x BADa\n"))];
    place.watch.before(&planned).await;
    // Refused: `after` is never called. The next write is compared with what is there.
    let note = place.write(&[("a.fk", Some("x BADb\n"))]).await;
    let later = place.settled().await;
    let mut told = reported(&note, "new_diagnostics");
    told.extend(later.iter().flat_map(|later| reported(later, "late_diagnostics")));
    assert_eq!(told, counts("a.fk", "x BADb\n", Kind::Pull));
}

#[tokio::test(start_paused = true)]
async fn what_notes_say() {
    let place = place(Kind::Versioned, 0, 11).await;
    let mut said = Vec::new();
    for text in ["fine\n", "x BADa\ny BADb\n", "x BADa\ny BADb\n\n", "calm\n"] {
        let note = place.write(&[("a.fk", Some(text))]).await;
        said.push(format!("inline: {}", note.text.unwrap_or_default()));
        if let Some(later) = place.settled().await {
            said.push(format!("late: {}", later.text.unwrap_or_default()));
        }
    }
    let note = place.write(&[("readme.txt", Some("text\n"))]).await;
    said.push(format!("no server: {:?} {}", note.text, note.structured["unverified_because"]));
    insta::assert_snapshot!(said.join("\n---\n"));
}
