//! `resolve` when the ground moves: what is between staging and accepting, and what ends the process in the middle. The tree is the old one or the
//! new one, the answer says which, and nothing lies about beside the files.

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "a process that dies is started here, by hand")]

mod common;

use std::{
    fs, io,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, symlink},
        process::ExitStatusExt,
    },
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use common::Bench;
use haft_structure::{AstEdit, Engine, Resolve, Staging};
use haft_system::{Changes, Workdir, changes::StepHook};
use haft_tool::{Call, Context, Family, Origin, Outcome, Registry, Surface};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

const OLD: [(&str, &str); 3] = [("a.js", "foo(1);\n"), ("d/b.js", "foo(2);\n"), ("d/c.js", "foo(3);\n")];

fn new() -> Vec<(String, String)> {
    OLD.iter().map(|(file, text)| ((*file).to_owned(), text.replace("foo", "bar"))).collect()
}

fn old() -> Vec<(String, String)> {
    OLD.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect()
}

/// Every file below a directory, with its content; a link with its target.
fn tree(root: &Path) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            if path.is_symlink() {
                all.push((name, format!("-> {}", fs::read_link(&path).unwrap().display())));
            } else if path.is_dir() {
                waiting.push(path);
            } else {
                all.push((name, String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()));
            }
        }
    }
    all.sort();
    all
}

/// What happened between staging and accepting, and what must come of it.
struct Row {
    what: &'static str,
    act: fn(&Path),
    /// Nothing is written, and the tree is as `act` left it; else every file is the new one.
    refused: bool,
    /// The edit can be accepted once the cause is gone.
    stays: bool,
}

const ROWS: &[Row] = &[
    Row { what: "nothing", act: |_| {}, refused: false, stays: false },
    Row {
        what: "a file became a symbolic link to an equal file",
        act: |root| {
            fs::rename(root.join("d/b.js"), root.join("d/real.js")).unwrap();
            symlink("real.js", root.join("d/b.js")).unwrap();
        },
        refused: true,
        stays: false,
    },
    Row {
        what: "a file became a symbolic link out of the directory",
        act: |root| {
            fs::write(root.parent().unwrap().join("outside.js"), "foo(2);\n").unwrap();
            fs::remove_file(root.join("d/b.js")).unwrap();
            symlink(root.parent().unwrap().join("outside.js"), root.join("d/b.js")).unwrap();
        },
        refused: true,
        stays: true,
    },
    Row {
        what: "a directory became a symbolic link out of the directory",
        act: |root| {
            let out = root.parent().unwrap().join("outside");
            fs::rename(root.join("d"), &out).unwrap();
            symlink(&out, root.join("d")).unwrap();
        },
        refused: true,
        stays: true,
    },
    Row {
        what: "a file got a second name",
        act: |root| fs::hard_link(root.join("d/b.js"), root.join("second.js")).unwrap(),
        refused: false,
        stays: false,
    },
    Row {
        what: "a file became a directory",
        act: |root| {
            fs::remove_file(root.join("d/b.js")).unwrap();
            fs::create_dir(root.join("d/b.js")).unwrap();
        },
        refused: true,
        stays: false,
    },
    Row {
        what: "a byte changed and the size did not",
        act: |root| fs::write(root.join("d/b.js"), "foo(7);\n").unwrap(),
        refused: true,
        stays: false,
    },
    Row {
        what: "the same bytes were written again",
        act: |root| fs::write(root.join("d/b.js"), "foo(2);\n").unwrap(),
        refused: false,
        stays: false,
    },
    Row {
        what: "a file is gone",
        act: |root| fs::remove_file(root.join("d/b.js")).unwrap(),
        refused: true,
        stays: false,
    },
    Row {
        what: "a file is read-only",
        act: |root| fs::set_permissions(root.join("d/b.js"), fs::Permissions::from_mode(0o444)).unwrap(),
        refused: true,
        stays: true,
    },
];

#[test]
fn what_happened_since_staging_is_noticed() {
    let mut said = String::new();
    for row in ROWS {
        let bench = Bench::new(&OLD);
        bench.ok("ast_edit", json!({"pattern": "foo($A)", "rewrite": "bar($A)"}));
        let root = bench.path("");
        (row.act)(&root);
        let before = tree(bench.directory.path());
        let outcome = bench.call("resolve", json!({"edit_id": "edit_1", "action": "accept"}));
        let text = outcome.all_text();
        assert_eq!(outcome.is_error, row.refused, "{}: {text}", row.what);
        if row.refused {
            assert_eq!(tree(bench.directory.path()), before, "{}", row.what);
            assert_eq!(text.contains("stays staged"), row.stays, "{}: {text}", row.what);
        } else {
            let after = tree(&root);
            assert!(after.iter().all(|(_, text)| text.starts_with("bar(")), "{}: {after:?}", row.what);
        }
        let text = text.replace(&bench.directory.path().display().to_string(), "[scratch]");
        said.push_str(&format!("== {}\n{}\n", row.what, text.trim_end()));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn a_second_name_shows_the_change_too() {
    let bench = Bench::new(&OLD);
    fs::hard_link(bench.path("a.js"), bench.path("other.txt")).unwrap();
    let inode = fs::metadata(bench.path("a.js")).unwrap().ino();
    bench.ok("ast_edit", json!({"pattern": "foo($A)", "rewrite": "bar($A)"}));
    let accepted = bench.ok("resolve", json!({"edit_id": "edit_1", "action": "accept"}));
    assert_eq!(bench.read("other.txt"), "bar(1);\n");
    assert_eq!(fs::metadata(bench.path("a.js")).unwrap().ino(), inode);
    assert!(accepted.all_text().contains("hard links"), "{}", accepted.all_text());
}

/// The three tools on a directory that outlives them.
fn open(scratch: &Path, hook: StepHook) -> Registry {
    let workdir = Workdir::new(scratch.join("work")).unwrap();
    let (changes, _) = Changes::open_with_hook(workdir.clone(), scratch.join("journal"), hook).unwrap();
    let staging = Arc::new(Staging::new());
    Registry::builder()
        .tool(
            AstEdit::new(workdir, changes.clone(), Arc::new(Engine::once()), Arc::clone(&staging)),
            Family::Workshop,
        )
        .tool(Resolve::new(changes, staging), Family::Workshop)
        .build()
}

fn call(registry: &Registry, tool: &str, arguments: Value) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let call = Call::new(tool, arguments, Origin::Console);
    runtime.block_on(registry.call(&Surface::agent(), call, Context::detached()))
}

fn plant(scratch: &Path) {
    for (file, text) in OLD {
        let path = scratch.join("work").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Stages and accepts, in a registry with a hook; what `resolve` said.
fn rewrite(scratch: &Path, hook: StepHook) -> Outcome {
    let registry = open(scratch, hook);
    let staged = call(&registry, "ast_edit", json!({"pattern": "foo($A)", "rewrite": "bar($A)"}));
    assert!(!staged.is_error, "{}", staged.all_text());
    call(&registry, "resolve", json!({"edit_id": "edit_1", "action": "accept"}))
}

/// Not a test by itself: what the process does that dies.
#[test]
#[ignore = "started by the test below as a process of its own"]
fn process_that_dies() {
    let Some(scratch) = std::env::var_os("SCRATCH") else { return };
    let at: usize = std::env::var("STEP").unwrap().parse().unwrap();
    let hook: StepHook = Arc::new(move |step, _| {
        if step == at {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
            unreachable!("the process is dead");
        }
        Ok(())
    });
    let outcome = rewrite(&PathBuf::from(scratch), hook);
    assert!(!outcome.is_error, "{}", outcome.all_text());
}

#[test]
fn a_process_killed_while_it_resolves_leaves_the_old_tree_or_the_new_one() {
    let (mut olds, mut news) = (0, 0);
    for step in 0.. {
        let scratch = tempfile::tempdir().unwrap();
        plant(scratch.path());
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process_that_dies", "--ignored", "--nocapture"])
            .env("SCRATCH", scratch.path())
            .env("STEP", step.to_string())
            .output()
            .unwrap();
        let killed = output.status.signal() == Some(9);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(killed || output.status.success(), "step {step}: {:?} {printed}", output.status);
        // The next start puts it right, and the same rewrite works.
        let registry = open(scratch.path(), Arc::new(|_, _| Ok(())));
        let now = tree(&scratch.path().join("work"));
        assert!(now == old() || now == new(), "step {step}: {now:?}");
        if now == old() {
            olds += 1;
            drop(registry);
            let outcome = rewrite(scratch.path(), Arc::new(|_, _| Ok(())));
            assert!(!outcome.is_error, "{}", outcome.all_text());
            assert_eq!(tree(&scratch.path().join("work")), new(), "after step {step}");
        } else {
            news += 1;
        }
        if !killed {
            assert_eq!(now, new());
            assert!(step > 10, "only {step} steps: the hook was not called");
            break;
        }
    }
    assert!(olds > 3 && news > 1, "both ends were seen: {olds}, {news}");
}

#[test]
fn a_disk_that_stays_full_from_any_step_on_leaves_the_old_tree_or_the_new_one() {
    for failing in 0.. {
        let scratch = tempfile::tempdir().unwrap();
        plant(scratch.path());
        let called = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = Arc::clone(&called);
        // The last step that a start needs is not known, so the disk is full from the first step of the commit on.
        let hook: StepHook = Arc::new(move |step, _| {
            count.store(step + 1, std::sync::atomic::Ordering::Relaxed);
            if step >= failing { Err(io::Error::from_raw_os_error(28)) } else { Ok(()) }
        });
        let outcome = rewrite(scratch.path(), hook);
        let text = outcome.all_text();
        drop(open(scratch.path(), Arc::new(|_, _| Ok(()))));
        let now = tree(&scratch.path().join("work"));
        if outcome.is_error {
            assert!(text.contains("no space left"), "step {failing}: {text}");
            assert_eq!(now, old(), "step {failing}: {text}");
        } else {
            assert_eq!(now, new(), "step {failing}: {text}");
        }
        if called.load(std::sync::atomic::Ordering::Relaxed) <= failing {
            assert!(failing > 10, "only {failing} steps");
            return;
        }
    }
}
