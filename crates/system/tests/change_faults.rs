//! Whatever fails or dies in the middle of a commit, the tree is the old one or the new one.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]
#![expect(clippy::disallowed_methods, reason = "a process that dies is started here, by hand")]
#![expect(unreachable_pub, reason = "the module is shared by several tests")]
#![allow(dead_code, reason = "not every test uses every helper")]

mod tree;

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, atomic::Ordering},
};

use haft_system::{Change, ChangeError, Changes, Workdir, changes::StepHook};
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use tree::*;

/// Every kind of change at once.
fn plant(place: &Place) {
    place.file("private.txt", "private, old\n", 0o600);
    place.file("script.sh", "echo old\n", 0o755);
    place.file("deep/gone.txt", "gone\n", 0o640);
    place.file("old/name.txt", "moved, old\n", 0o604);
    place.file("linked.txt", "linked, old and long enough to be cut\n", 0o644);
    fs::hard_link(place.root().join("linked.txt"), place.root().join("other-link.txt")).unwrap();
}

async fn everything(changes: &Changes) -> Vec<Change> {
    vec![
        write(changes, "private.txt", "private, new\n").await,
        write(changes, "made/by/it.txt", "created\n").await,
        delete(changes, "deep/gone.txt").await,
        rename(changes, "old/name.txt", "moved/name.txt", Some("moved, new\n")).await,
        write(changes, "linked.txt", "linked, new\n").await,
        write(changes, "script.sh", "echo new\n").await,
    ]
}

/// One file that is replaced takes a shorter way.
async fn single(changes: &Changes) -> Vec<Change> {
    vec![write(changes, "private.txt", "private, new\n").await]
}

async fn single_new(changes: &Changes) -> Vec<Change> {
    vec![write(changes, "made/by/it.txt", "created\n").await]
}

async fn single_delete(changes: &Changes) -> Vec<Change> {
    vec![delete(changes, "deep/gone.txt").await]
}

const SETS: [&str; 4] = ["everything", "single", "single_new", "single_delete"];

async fn set(name: &str, changes: &Changes) -> Vec<Change> {
    match name {
        "everything" => everything(changes).await,
        "single" => single(changes).await,
        "single_new" => single_new(changes).await,
        "single_delete" => single_delete(changes).await,
        other => panic!("no set {other}"),
    }
}

/// The tree before and after, and in how many steps.
async fn old_and_new(name: &str) -> (Tree, Tree, usize) {
    let place = Place::new();
    plant(&place);
    let old = place.tree();
    let (count, hook) = counting();
    let changes = place.hooked(hook);
    commit(&changes, set(name, &changes).await).await.unwrap();
    assert_eq!(place.journal_left(), [""; 0]);
    (old, place.tree(), count.load(Ordering::Relaxed))
}

#[tokio::test]
async fn a_step_that_fails_leaves_the_old_tree_or_the_new_one() {
    for name in SETS {
        let (old, new, steps) = old_and_new(name).await;
        assert!(steps > 5, "{name} took {steps} steps");
        for step in 0..steps {
            let place = Place::new();
            plant(&place);
            let changes = place.hooked(failing(step, false));
            let result = commit(&changes, set(name, &changes).await).await;
            match &result {
                Ok(_) => assert_eq!(place.tree(), new, "{name}, step {step}"),
                Err(_) => assert_eq!(place.tree(), old, "{name}, step {step}: {result:?}"),
            }
            // Nothing changes when the next process looks, and nothing is left.
            let tree = place.tree();
            drop(place.open());
            assert_eq!(place.tree(), tree, "{name}, step {step}, reopened");
            assert_eq!(place.journal_left(), [""; 0], "{name}, step {step}");
        }
    }
}

#[tokio::test]
async fn a_disk_that_fails_for_good_is_put_right_by_the_next_start() {
    for name in SETS {
        let (old, new, steps) = old_and_new(name).await;
        for step in 0..steps {
            let place = Place::new();
            plant(&place);
            let changes = place.hooked(failing(step, true));
            let result = commit(&changes, set(name, &changes).await).await;
            if let Err(ChangeError::RollbackFailed { files, .. }) = &result {
                assert!(!files.is_empty());
                for file in files.iter().filter(|file| file.backup.is_some()) {
                    assert!(file.backup.as_ref().unwrap().is_file(), "{file:?}");
                }
            } else if result.is_err() {
                let without_litter: Tree =
                    place.tree().into_iter().filter(|(path, _)| !path.contains(".haft-")).collect();
                let real: Tree = without_litter
                    .into_iter()
                    .filter(|(path, _)| {
                        old.contains_key(path) || !["made", "made/by", "moved"].contains(&path.as_str())
                    })
                    .collect();
                assert_eq!(real, old, "{name}, step {step}: {result:?}");
            }
            let (_, recovered) = place.open();
            assert!(recovered.iter().all(|recovery| !recovery.needs_attention), "{recovered:?}");
            let tree = place.tree();
            match result {
                Ok(_) => assert_eq!(tree, new, "{name}, step {step}"),
                // The short way has no second chance: what could not be taken back stays new if no journal could be written.
                Err(ChangeError::RollbackFailed { .. }) if name != "everything" => {
                    assert!(tree == old || tree == new, "{name}, step {step}: {tree:?}");
                }
                Err(_) => assert_eq!(tree, old, "{name}, step {step}"),
            }
            assert_eq!(place.journal_left(), [""; 0], "{name}, step {step}");
        }
    }
}

fn dying(at: usize) -> StepHook {
    Arc::new(move |step, _| {
        if step == at {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
            unreachable!("the process is dead");
        }
        Ok(())
    })
}

/// Not a test by itself: what the process does that dies.
#[test]
#[ignore = "started by the tests below as a process of its own"]
fn process_that_dies() {
    let Some(scratch) = std::env::var_os("SCRATCH") else { return };
    let step: usize = std::env::var("STEP").unwrap().parse().unwrap();
    let name = std::env::var("SET").unwrap();
    let scratch = PathBuf::from(scratch);
    let workdir = Workdir::new(root_in(&scratch)).unwrap();
    let (changes, _) = Changes::open_with_hook(workdir, journal_in(&scratch), dying(step)).unwrap();
    if name == "recover" {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        commit(&changes, set(&name, &changes).await).await.unwrap();
    });
}

/// Whether it died there.
fn die(scratch: &Path, name: &str, step: usize) -> bool {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process_that_dies", "--ignored", "--nocapture"])
        .env("SCRATCH", scratch)
        .env("STEP", step.to_string())
        .env("SET", name)
        .output()
        .unwrap();
    let killed = output.status.signal() == Some(9);
    assert!(
        killed || output.status.success(),
        "{:?}: {}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    killed
}

#[tokio::test]
async fn a_process_killed_at_any_step_leaves_the_old_tree_or_the_new_one() {
    for name in SETS {
        let (old, new, steps) = old_and_new(name).await;
        let mut seen = (0, 0);
        for step in 0..steps {
            let place = Place::new();
            plant(&place);
            assert!(die(place.scratch(), name, step), "{name}, step {step}");
            let (_, recovered) = place.open();
            assert!(recovered.iter().all(|recovery| !recovery.needs_attention), "{recovered:?}");
            let tree = place.tree();
            assert!(tree == old || tree == new, "{name}, step {step}: {tree:?}\n{recovered:?}");
            seen = if tree == old { (seen.0 + 1, seen.1) } else { (seen.0, seen.1 + 1) };
            assert_eq!(place.journal_left(), [""; 0], "{name}, step {step}");
            // And it works again.
            let changes = place.changes();
            if tree == old {
                commit(&changes, set(name, &changes).await).await.unwrap();
                assert_eq!(place.tree(), new);
            }
        }
        assert!(seen.0 > 0 && seen.1 > 0, "{name}: both ends were seen: {seen:?}");
        assert!(!die(Place::new_planted().scratch(), name, steps), "there is no step {steps}");
    }
}

#[tokio::test]
async fn a_recovery_that_is_killed_is_finished_by_the_next_one() {
    let (old, new, steps) = old_and_new("everything").await;
    // Late enough that most files are in place already.
    for crash in [steps / 2, steps * 3 / 4, steps - 6, steps - 2] {
        for step in 0.. {
            let place = Place::new_planted();
            assert!(die(place.scratch(), "everything", crash));
            let died_again = die(place.scratch(), "recover", step);
            let (_, recovered) = place.open();
            assert!(recovered.iter().all(|recovery| !recovery.needs_attention), "{recovered:?}");
            let tree = place.tree();
            assert!(tree == old || tree == new, "crash {crash}, recovery step {step}: {tree:?}");
            assert_eq!(place.journal_left(), [""; 0]);
            if !died_again {
                break;
            }
        }
    }
}

impl Place {
    fn new_planted() -> Self {
        let place = Place::new();
        plant(&place);
        place
    }
}

#[derive(Clone, Debug)]
enum Wish {
    Write(String),
    Delete,
    Move(Option<String>),
}

fn wish() -> impl Strategy<Value = Wish> {
    prop_oneof![
        "[a-z\n]{0,40}".prop_map(Wish::Write),
        Just(Wish::Delete),
        prop::option::of("[a-z\n]{0,40}").prop_map(Wish::Move),
    ]
}

/// For each of these names: its old content, if any, and what shall become of it.
const NAMES: [&str; 6] = ["a", "b", "d/a", "d/b", "e/f/a", "e/f/b"];

async fn random_set(changes: &Changes, files: &[(Option<String>, Option<Wish>)]) -> Vec<Change> {
    let mut set = Vec::new();
    for (name, (old, wish)) in NAMES.iter().zip(files) {
        match (old, wish) {
            (_, None) | (None, Some(Wish::Delete | Wish::Move(_))) => {}
            (_, Some(Wish::Write(text))) => set.push(write(changes, name, text).await),
            (Some(_), Some(Wish::Delete)) => set.push(delete(changes, name).await),
            (Some(_), Some(Wish::Move(text))) => {
                let to = format!("moved/{name}");
                set.push(rename(changes, name, &to, text.as_deref()).await);
            }
        }
    }
    set
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_set_with_any_fault_ends_old_or_new(
        files in prop::collection::vec((prop::option::of("[a-z\n]{0,40}"), prop::option::of(wish())), NAMES.len()),
        at in any::<prop::sample::Index>(),
        for_good in any::<bool>(),
    ) {
        let plant = || {
            let place = Place::new();
            for (name, (old, _)) in NAMES.iter().zip(&files) {
                if let Some(old) = old {
                    place.file(name, old, 0o644);
                }
            }
            place
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let place = plant();
            let old = place.tree();
            let (count, hook) = counting();
            let changes = place.hooked(hook);
            commit(&changes, random_set(&changes, &files).await).await.unwrap();
            let new = place.tree();

            let steps = count.load(Ordering::Relaxed);
            let place = plant();
            let changes = place.hooked(failing(at.index(steps + 1), for_good));
            let result = commit(&changes, random_set(&changes, &files).await).await;
            drop(place.open());
            let tree = place.tree();
            if result.is_ok() {
                assert_eq!(tree, new);
            } else {
                assert!(tree == old || tree == new, "{result:?}: {tree:?}");
            }
            assert_eq!(place.journal_left(), [""; 0]);
        });
    }
}
