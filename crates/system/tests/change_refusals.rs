//! What a commit refuses, what it takes back, and what it says.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]
#![expect(unreachable_pub, reason = "the module is shared by several tests")]
#![allow(dead_code, reason = "not every test uses every helper")]

mod tree;

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    sync::Arc,
};

use haft_system::{Change, ChangeError, Committed, PathError, ResolvedPath};
use haft_tool::{Access, Outcome, ToolError};
use pretty_assertions::assert_eq;
use serde_json::json;
use tree::*;

#[tokio::test]
async fn what_has_changed_since_is_refused_as_a_whole_and_every_file_is_named() {
    let place = Place::new();
    for name in ["fine", "edited", "deleted", "linked", "directory", "same-again", "idle"] {
        place.file(name, "old", 0o644);
    }
    fs::create_dir(place.root().join("sub")).unwrap();
    let changes = place.changes();
    let mut set = Vec::new();
    for name in ["fine", "edited", "deleted", "linked", "directory", "created", "sub/file", "same-again"] {
        set.push(write(&changes, name, "new").await);
    }
    set.push(write(&changes, "idle", "old").await);
    let at = |name: &str| place.root().join(name);
    fs::write(at("edited"), "by somebody").unwrap();
    fs::remove_file(at("deleted")).unwrap();
    fs::remove_file(at("linked")).unwrap();
    symlink("fine", at("linked")).unwrap();
    fs::remove_file(at("directory")).unwrap();
    fs::create_dir(at("directory")).unwrap();
    fs::write(at("created"), "by somebody").unwrap();
    fs::remove_dir(at("sub")).unwrap();
    fs::create_dir(at("elsewhere")).unwrap();
    symlink("elsewhere", at("sub")).unwrap();
    // Another file with the same content is as good.
    fs::remove_file(at("same-again")).unwrap();
    fs::write(at("same-again"), "old").unwrap();
    // A file that would not even be written belongs to the set as well.
    fs::write(at("idle"), "by somebody").unwrap();
    let tree = place.tree();
    let error = commit(&changes, set).await.unwrap_err();
    assert_eq!(place.tree(), tree);
    let stale = [
        ("edited", "its content has changed"),
        ("deleted", "it has been deleted"),
        ("linked", "a symbolic link has been put in its way, it now leads to fine"),
        ("directory", "it has become a directory"),
        ("created", "it has been created in the meantime"),
        ("sub/file", "a symbolic link has been put in its way, it now leads to elsewhere/file"),
        ("idle", "its content has changed"),
    ]
    .map(|(file, why)| (file.to_owned(), why.to_owned()));
    assert!(matches!(&error, ChangeError::Stale { files } if files == &stale), "{error:?}");
    insta::assert_snapshot!(error.to_string());
    let ToolError::Model { structured, .. } = error.into() else { panic!() };
    assert_eq!(structured["stale"][0], json!({"file": "edited", "why": "its content has changed"}));
}

#[tokio::test]
async fn sets_that_make_no_sense_are_refused() {
    let place = Place::new();
    place.file("a", "a", 0o644);
    place.file("dir/b", "b", 0o644);
    let changes = place.changes();
    let tree = place.tree();
    let twice = vec![write(&changes, "a", "1").await, delete(&changes, "a").await];
    let by_another_path = vec![write(&changes, "dir/../a", "1").await, write(&changes, "a", "2").await];
    let onto_itself = vec![rename(&changes, "a", "./a", None).await];
    let nothing_to_delete = vec![delete(&changes, "nothing").await];
    let nothing_to_move = vec![rename(&changes, "nothing", "b", None).await];
    let nested = vec![write(&changes, "x", "1").await, write(&changes, "x/y", "2").await];
    let mut told = Vec::new();
    for set in [twice, by_another_path, onto_itself, nothing_to_delete, nothing_to_move, nested] {
        told.push(text_of(commit(&changes, set).await));
    }
    let path = changes.workdir().resolve("dir", Access::Write).unwrap();
    told.push(changes.capture(&path).await.unwrap_err().to_string());
    insta::assert_snapshot!(told.join("\n"));
    assert_eq!(place.tree(), tree);
    // Nothing to do is nothing done.
    assert_eq!(commit(&changes, vec![]).await.unwrap(), Committed::default());
}

#[tokio::test]
async fn what_is_read_only_is_refused_beforehand_to_root_too() {
    let place = Place::new();
    place.file("fine", "old", 0o644);
    place.file("locked", "old", 0o444);
    place.file("dir/file", "old", 0o644);
    let directory = place.root().join("dir");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o555)).unwrap();
    let changes = place.changes();
    let tree = place.tree();
    let mut told = Vec::new();
    for name in ["locked", "dir/file", "dir/new", "dir/deep/new"] {
        let set = vec![write(&changes, "fine", "new").await, write(&changes, name, "new").await];
        told.push(text_of(commit(&changes, set).await));
    }
    told.push(text_of(commit(&changes, vec![delete(&changes, "locked").await]).await));
    told.push(text_of(commit(&changes, vec![rename(&changes, "locked", "free", None).await]).await));
    assert_eq!(place.tree(), tree);
    insta::assert_snapshot!(told.join("\n"));
    // What is not changed may be read-only.
    commit(&changes, vec![write(&changes, "locked", "old").await]).await.unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn the_jail_holds_at_the_commit_too() {
    let place = Place::new();
    place.file(".git/config", "", 0o644);
    fs::write(place.scratch().join("outside"), "old").unwrap();
    let changes = place.changes();
    for real in [place.root().join(".git/config"), place.scratch().join("outside")] {
        let path = ResolvedPath {
            real: real.canonicalize().unwrap(),
            shown: "x".to_owned(),
            state: haft_system::PathState::File,
            via_symlink: false,
        };
        let at = changes.capture(&path).await.unwrap();
        let error = commit(&changes, vec![Change::Write { at, after: b"new".to_vec() }]).await.unwrap_err();
        assert!(
            matches!(error, ChangeError::Path(PathError::Git { .. } | PathError::Outside { .. })),
            "{error:?}"
        );
        assert_ne!(fs::read(real).unwrap(), b"new");
    }
}

type Act = fn(&std::path::Path);

#[tokio::test]
async fn what_slips_in_between_the_check_and_the_rename_is_kept_and_all_is_taken_back() {
    let acts: [(&str, Act); 5] = [
        ("it was changed while the change was being made", |root| {
            fs::write(root.join("b"), "by somebody").unwrap();
        }),
        ("it was deleted while the change was being made", |root| fs::remove_file(root.join("b")).unwrap()),
        ("it was changed while the change was being made", |root| {
            fs::remove_file(root.join("b")).unwrap();
            symlink("/etc/passwd", root.join("b")).unwrap();
        }),
        ("it was created while the change was being made", |root| {
            fs::write(root.join("new"), "by somebody").unwrap();
        }),
        ("its directory has been moved or replaced", |root| {
            fs::rename(root.join("d"), root.join("moved")).unwrap();
            symlink("/tmp", root.join("d")).unwrap();
        }),
    ];
    for (why, act) in acts {
        let plant = |place: &Place| {
            for name in ["a", "b", "d/c"] {
                place.file(name, "old", 0o644);
            }
        };
        let expected = Place::new();
        plant(&expected);
        act(&expected.root());

        let place = Place::new();
        plant(&place);
        let root = place.root();
        let changes = place.hooked(before_step("look again", move || act(&root)));
        let set = vec![
            write(&changes, "a", "new").await,
            write(&changes, "b", "new").await,
            write(&changes, "new", "new").await,
            write(&changes, "d/c", "new").await,
        ];
        let error = commit(&changes, set).await.unwrap_err();
        assert!(matches!(&error, ChangeError::Stale { files } if files[0].1 == why), "{error:?}");
        // A temporary file in a directory that was moved away cannot be found again; all else is as it was.
        let without_temps: Tree =
            place.tree().into_iter().filter(|(name, _)| !name.starts_with("moved/.c.haft-")).collect();
        assert_eq!(without_temps, expected.tree());
    }
}

#[tokio::test]
async fn a_rollback_never_overwrites_what_somebody_else_wrote() {
    let place = Place::new();
    place.file("a", "old", 0o644);
    place.file("b", "old", 0o644);
    let root = place.root();
    let renames = std::sync::atomic::AtomicUsize::new(0);
    // The second rename fails, and at that moment somebody writes to the first file.
    let hook: haft_system::changes::StepHook = Arc::new(move |_, step| {
        if step == "rename" && renames.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 1 {
            fs::write(root.join("a"), "by somebody else").unwrap();
            return Err(rustix::io::Errno::IO.into());
        }
        Ok(())
    });
    let changes = place.hooked(hook);
    let set = vec![write(&changes, "a", "new").await, write(&changes, "b", "new").await];
    let error = commit(&changes, set).await.unwrap_err();
    let told = error.to_string();
    let ChangeError::RollbackFailed { files, .. } = error else { panic!("{error:?}") };
    let backup = files[0].backup.clone().unwrap();
    assert_eq!(fs::read(&backup).unwrap(), b"old");
    insta::assert_snapshot!(told.replace(&backup.display().to_string(), "BACKUP"));
    let expected = [("a", "by somebody else"), ("b", "old")];
    assert_eq!(place.tree(), expected.map(|(name, text)| (name.to_owned(), plain(text))).into());
    // The next start leaves it alone as well, names it once, and keeps the backup.
    let (_, recovered) = place.open();
    let [recovery] = &recovered[..] else { panic!("{recovered:?}") };
    assert!(recovery.needs_attention);
    let kept = backup.parent().unwrap().with_extension("unresolved").join("0.before");
    insta::assert_snapshot!(recovery.text.replace(&kept.display().to_string(), "BACKUP"));
    assert_eq!(fs::read(kept).unwrap(), b"old");
    assert_eq!(place.open().1, []);
    assert_eq!(place.tree(), expected.map(|(name, text)| (name.to_owned(), plain(text))).into());
}

#[tokio::test]
async fn failures_are_told_as_they_are() {
    let mut told = Vec::new();
    for (name, step) in [("write the first half", 0), ("rename", 1), ("sync directory", 2)] {
        let place = Place::new();
        place.file("a", "old", 0o644);
        place.file("b", "old", 0o644);
        let seen = std::sync::atomic::AtomicUsize::new(0);
        let changes = place.hooked(Arc::new(move |_, at| {
            if at == name && seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == step {
                return Err(rustix::io::Errno::NOSPC.into());
            }
            Ok(())
        }));
        let set = vec![write(&changes, "a", "new").await, write(&changes, "b", "new").await];
        let error = commit(&changes, set).await.unwrap_err();
        let outcome = Outcome::from(ToolError::from(error));
        told.push(outcome.first_text().unwrap().to_owned());
    }
    insta::assert_snapshot!(told.join("\n\n"));
}

#[tokio::test]
async fn the_journal_is_private_and_other_directories_journals_are_left_alone() {
    let place = Place::new();
    place.file("a", "old", 0o644);
    let changes = place.changes();
    assert_eq!(fs::metadata(place.journal()).unwrap().permissions().mode() & 0o777, 0o700);
    drop(changes);
    let folder = place.journal().join("0190");
    fs::create_dir(&folder).unwrap();
    let foreign = json!({"version": 1, "id": "x", "by": "y", "started_ms": 0, "root": "/elsewhere", "state": "prepared",
        "directories": [], "entries": []});
    fs::write(folder.join("journal.json"), foreign.to_string()).unwrap();
    assert_eq!(place.open().1, []);
    assert_eq!(place.journal_left(), ["0190"]);
}

#[tokio::test]
async fn a_forged_journal_leads_nowhere() {
    let place = Place::new();
    place.file(".git/config", "git", 0o644);
    fs::write(place.scratch().join("outside"), "outside").unwrap();
    let root = place.root().canonicalize().unwrap();
    let folder = place.journal().join("0190");
    fs::create_dir_all(&folder).unwrap();
    let outside = place.scratch().canonicalize().unwrap().join("outside");
    let content = |text: &str| json!({"size": text.len(), "blake3": blake3::hash(text.as_bytes()).to_hex().to_string()});
    let entry = |path: &std::path::Path, after: &str| {
        json!({"path": path, "shown": path.file_name().unwrap().to_str(), "before": content("evil"), "after": content(after),
            "dress": null, "in_place": true})
    };
    let journal = json!({"version": 1, "id": "x", "by": "y", "started_ms": 0, "root": root, "state": "prepared", "directories": [],
        "entries": [entry(&outside, "outside"), entry(&root.join(".git/config"), "git")]});
    fs::write(folder.join("journal.json"), journal.to_string()).unwrap();
    fs::write(folder.join("0.before"), "evil").unwrap();
    fs::write(folder.join("1.before"), "evil").unwrap();
    let (_, recovered) = place.open();
    assert!(recovered[0].needs_attention, "{recovered:?}");
    assert_eq!(fs::read(outside).unwrap(), b"outside");
    assert_eq!(fs::read(root.join(".git/config")).unwrap(), b"git");

    let folder = place.journal().join("0191");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("journal.json"), "{ not json").unwrap();
    let (_, recovered) = place.open();
    assert!(recovered[0].text.contains("cannot be read"), "{recovered:?}");
    assert_eq!(place.open().1, []);
}
