//! What a commit does, refuses and says.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]
#![expect(unreachable_pub, reason = "the module is shared by several tests")]
#![allow(dead_code, reason = "not every test uses every helper")]

mod tree;

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use haft_system::{
    Before, Change, ChangeError, ChangeKind, ChangeObserver, ChangeSet, Committed, FileChange, Note,
    PathError, Planned, ResolvedPath,
};
use haft_tool::{Access, Outcome, ToolError};
use pretty_assertions::assert_eq;
use serde_json::json;
use tree::*;

fn file_change(file: &str, change: ChangeKind, from: Option<&str>) -> FileChange {
    FileChange { file: file.to_owned(), change, from: from.map(str::to_owned) }
}

fn plain(text: &str) -> Node {
    Node::File { text: text.to_owned(), mode: 0o644, links: 1 }
}

fn text_of(result: Result<Committed, ChangeError>) -> String {
    result.unwrap_err().to_string()
}

#[tokio::test]
async fn every_kind_of_change_is_made_and_told() {
    let place = Place::new();
    place.file("a.txt", "old", 0o644);
    place.file("same.txt", "same", 0o644);
    place.file("gone.txt", "gone", 0o644);
    place.file("here.txt", "moved", 0o644);
    place.file("over.txt", "over", 0o644);
    place.file("old.rs", "source", 0o755);
    let changes = place.changes();
    let set = vec![
        write(&changes, "a.txt", "new").await,
        write(&changes, "made/by/it.txt", "created").await,
        write(&changes, "same.txt", "same").await,
        delete(&changes, "gone.txt").await,
        rename(&changes, "here.txt", "there/here.txt", None).await,
        rename(&changes, "old.rs", "over.txt", Some("changed source")).await,
    ];
    let committed = commit(&changes, set).await.unwrap();
    assert_eq!(
        committed,
        Committed {
            files: vec![
                file_change("a.txt", ChangeKind::Modified, None),
                file_change("made/by/it.txt", ChangeKind::Created, None),
                file_change("gone.txt", ChangeKind::Deleted, None),
                file_change("there/here.txt", ChangeKind::Moved, Some("here.txt")),
                file_change("over.txt", ChangeKind::Moved, Some("old.rs")),
            ],
            unchanged: vec!["same.txt".to_owned()],
            notes: vec![],
            warnings: vec![],
        }
    );
    assert_eq!(
        serde_json::to_value(&committed.files[2..4]).unwrap(),
        json!([
            {"file": "gone.txt", "change": "deleted"},
            {"file": "there/here.txt", "change": "moved", "from": "here.txt"},
        ])
    );
    let directory = Node::Directory { mode: 0o755 };
    assert_eq!(
        place.tree(),
        Tree::from([
            ("a.txt".to_owned(), plain("new")),
            ("made".to_owned(), directory.clone()),
            ("made/by".to_owned(), directory.clone()),
            ("made/by/it.txt".to_owned(), plain("created")),
            ("over.txt".to_owned(), Node::File { text: "changed source".to_owned(), mode: 0o755, links: 1 }),
            ("same.txt".to_owned(), plain("same")),
            ("there".to_owned(), directory),
            ("there/here.txt".to_owned(), plain("moved")),
        ])
    );
    assert_eq!(place.journal_left(), [""; 0]);
}

#[tokio::test]
async fn bytes_are_bytes() {
    let place = Place::new();
    let bytes = b"\xEF\xBB\xBFa\r\nb\0c\xFF\xFE no end".to_vec();
    place.file("a.bin", "old", 0o644);
    let changes = place.changes();
    let at = capture(&changes, "a.bin").await;
    commit(&changes, vec![Change::Write { at, after: bytes.clone() }]).await.unwrap();
    assert_eq!(fs::read(place.root().join("a.bin")).unwrap(), bytes);
    let Before::File { bytes: captured, print } = capture(&changes, "a.bin").await.before else { panic!() };
    assert_eq!((captured.to_vec(), print.size, print.mode), (bytes.clone(), bytes.len() as u64, 0o100_644));
    assert_eq!(print.blake3, *blake3::hash(&bytes).as_bytes());
}

#[tokio::test]
async fn modes_attributes_and_links_are_kept_and_the_time_changes() {
    let place = Place::new();
    for (name, mode) in [("private", 0o600), ("script", 0o755), ("odd", 0o4751), ("write-only-for-me", 0o200)]
    {
        place.file(name, "old", mode);
    }
    let attribute = rustix::fs::setxattr(
        place.root().join("script"),
        "user.note",
        b"kept",
        rustix::fs::XattrFlags::empty(),
    );
    place.file("real/target", "old", 0o640);
    symlink("real/target", place.root().join("link")).unwrap();
    let time = |name: &str| fs::metadata(place.root().join(name)).unwrap().modified().unwrap();
    let before = time("script");
    let changes = place.changes();
    let mut names = vec!["private", "script", "odd", "link"];
    // Only root can read it.
    if rustix::process::geteuid().is_root() {
        names.push("write-only-for-me");
    }
    for name in &names {
        let committed = commit(&changes, vec![write(&changes, name, "new").await]).await.unwrap();
        assert_eq!(committed.warnings, [""; 0]);
    }
    let mode = |name: &str| fs::metadata(place.root().join(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!(["private", "script", "odd", "real/target"].map(mode), [0o600, 0o755, 0o4751, 0o640]);
    assert!(place.root().join("link").is_symlink());
    for name in names {
        assert_eq!(fs::read(place.root().join(name)).unwrap(), b"new");
    }
    assert_ne!(time("script"), before);
    if attribute.is_ok() {
        let mut value = [0; 16];
        let size = rustix::fs::getxattr(place.root().join("script"), "user.note", &mut value[..]).unwrap();
        assert_eq!(&value[..size], b"kept");
    }
}

/// A POSIX access list as the kernel takes it: version 2, then tag, permissions and id of each entry.
fn access_list() -> Vec<u8> {
    let entries: [(u16, u16, u32); 5] =
        [(1, 7, u32::MAX), (2, 7, 12345), (4, 5, u32::MAX), (0x10, 7, u32::MAX), (0x20, 5, u32::MAX)];
    let mut bytes = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

#[tokio::test]
async fn access_lists_are_kept_and_none_is_inherited() {
    let place = Place::new();
    let (plain, listed) = (place.file("dir/plain", "old", 0o640), place.file("dir/listed", "old", 0o640));
    let set = |path: &std::path::Path, name: &str| {
        rustix::fs::setxattr(path, name, &access_list(), rustix::fs::XattrFlags::empty())
    };
    let get = |path: &std::path::Path| {
        let mut value = [0; 256];
        let size = rustix::fs::getxattr(path, "system.posix_acl_access", &mut value[..]).ok()?;
        Some(value[..size].to_vec())
    };
    if let Err(error) = set(&place.root().join("dir"), "system.posix_acl_default") {
        eprintln!("NOT TESTED: this file system has no access lists ({error})");
        return;
    }
    set(&listed, "system.posix_acl_access").unwrap();
    let changes = place.changes();
    let set = vec![write(&changes, "dir/plain", "new").await, write(&changes, "dir/listed", "new").await];
    commit(&changes, set).await.unwrap();
    assert_eq!((get(&plain), get(&listed)), (None, Some(access_list())));
    assert_eq!(fs::metadata(&plain).unwrap().permissions().mode() & 0o777, 0o640);
}

#[tokio::test]
async fn the_time_changes_even_within_one_tick_of_the_clock() {
    let place = Place::new();
    let path = place.file("a", "0", 0o644);
    fs::hard_link(&path, place.root().join("b")).unwrap();
    place.file("c", "0", 0o644);
    let changes = place.changes();
    for name in ["a", "c"] {
        let mut last = fs::metadata(place.root().join(name)).unwrap().modified().unwrap();
        for round in 1..20 {
            commit(&changes, vec![write(&changes, name, &round.to_string()).await]).await.unwrap();
            let now = fs::metadata(place.root().join(name)).unwrap().modified().unwrap();
            assert_ne!(now, last);
            last = now;
        }
    }
}

#[tokio::test]
async fn a_file_with_several_hard_links_stays_one_file() {
    let place = Place::new();
    let path = place.file("a", "old and long", 0o644);
    fs::hard_link(&path, place.root().join("b")).unwrap();
    let inode = fs::metadata(&path).unwrap().ino();
    let changes = place.changes();
    let committed = commit(&changes, vec![write(&changes, "a", "new").await]).await.unwrap();
    assert_eq!(
        committed.warnings,
        ["a has 2 hard links, which all show the change, so it was written in place."]
    );
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
    assert_eq!(fs::read(place.root().join("b")).unwrap(), b"new");
    // Both names in one set are one file.
    let set = vec![write(&changes, "a", "1").await, write(&changes, "b", "2").await];
    assert_eq!(
        text_of(commit(&changes, set).await),
        "Nothing was changed: b and a are one and the same file (a hard link), so they cannot be changed together."
    );
    let set = vec![rename(&changes, "a", "b", None).await];
    assert_eq!(
        text_of(commit(&changes, set).await),
        "Nothing was changed: b is the same file as a (a hard link), so it cannot be moved there."
    );
    let committed = commit(&changes, vec![rename(&changes, "a", "c", None).await]).await.unwrap();
    assert_eq!(
        committed.warnings,
        ["a was one of 2 hard links to a file; the other 1 still have the old content."]
    );
}

#[tokio::test]
async fn two_names_that_differ_in_case_are_two_files_here_and_a_move_between_them_works() {
    let place = Place::new();
    let path = place.file("Readme", "text", 0o644);
    let changes = place.changes();
    commit(&changes, vec![rename(&changes, "Readme", "README", Some("new")).await]).await.unwrap();
    let names: Vec<_> = place.tree().into_keys().collect();
    assert_eq!(names, ["README"]);
    // Hard links that differ in case only are not taken for one name.
    fs::hard_link(place.root().join("README"), &path).unwrap();
    let set = vec![rename(&changes, "README", "Readme", None).await];
    assert_eq!(
        text_of(commit(&changes, set).await),
        "Nothing was changed: Readme is a hard link to the file that would be moved there."
    );
}

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

fn mount(
    source: impl AsRef<std::path::Path>,
    target: &std::path::Path,
    kind: &str,
    flags: libc::c_ulong,
    options: &str,
) -> std::io::Result<()> {
    use std::{ffi::CString, os::unix::ffi::OsStrExt};
    let c = |bytes: &[u8]| CString::new(bytes).unwrap();
    let (source, target) = (c(source.as_ref().as_os_str().as_bytes()), c(target.as_os_str().as_bytes()));
    let (kind, options) = (c(kind.as_bytes()), c(options.as_bytes()));
    // SAFETY: all pointers are to strings that end with NUL and outlive the call.
    let result = unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
    };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

fn unmount(target: &std::path::Path) {
    use std::{ffi::CString, os::unix::ffi::OsStrExt};
    let target = CString::new(target.as_os_str().as_bytes()).unwrap();
    // SAFETY: the pointer is to a string that ends with NUL and outlives the call.
    assert_eq!(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) }, 0);
}

#[tokio::test]
async fn a_full_disk_is_survived() {
    let place = Place::new();
    if let Err(error) = mount("tmpfs", &place.root(), "tmpfs", 0, "size=64k") {
        eprintln!("NOT TESTED: a small file system could not be mounted here ({error})");
        return;
    }
    place.file("a", "old", 0o644);
    place.file("b", "old", 0o644);
    let tree = place.tree();
    let changes = place.changes();
    let big = "x".repeat(40 << 10);
    let set = vec![write(&changes, "a", &big).await, write(&changes, "b", &big).await];
    let error = commit(&changes, set).await.unwrap_err();
    let after = place.tree();
    let journal = place.journal_left();
    drop(changes);
    unmount(&place.root());
    assert_eq!(error.to_string(), "Nothing was changed: writing b failed: no space left on device.");
    assert_eq!((after, journal), (tree, vec![]));
}

#[tokio::test]
async fn a_file_that_is_mounted_by_itself_is_written_in_place() {
    let place = Place::new();
    let path = place.file("mounted", "old", 0o644);
    fs::write(place.scratch().join("source"), "old").unwrap();
    let source = place.scratch().join("source");
    if let Err(error) = mount(&source, &path, "none", libc::MS_BIND, "") {
        eprintln!("NOT TESTED: a file could not be mounted here ({error})");
        return;
    }
    let changes = place.changes();
    let result = commit(&changes, vec![write(&changes, "mounted", "new").await]).await;
    unmount(&path);
    assert_eq!(
        result.unwrap().warnings,
        ["mounted is a mount point by itself, which cannot be replaced, so it was written in place."]
    );
    assert_eq!((fs::read(&source).unwrap(), fs::read(&path).unwrap()), (b"new".to_vec(), b"old".to_vec()));
}

#[tokio::test]
async fn names_as_long_as_they_may_be_have_room_for_a_temporary_file() {
    let place = Place::new();
    let changes = place.changes();
    for name in ["n".repeat(255), format!("{}é", "é".repeat(126)), "é".repeat(127)] {
        commit(&changes, vec![write(&changes, &name, "1").await]).await.unwrap();
        commit(&changes, vec![write(&changes, &name, "2").await]).await.unwrap();
        assert_eq!(fs::read(place.root().join(&name)).unwrap(), b"2");
    }
}

#[tokio::test]
async fn a_thousand_files_are_one_change() {
    let place = Place::new();
    let changes = place.changes();
    for text in ["1", "2"] {
        let mut set = Vec::new();
        for index in 0..1000 {
            set.push(write(&changes, &format!("d{}/f{index}", index % 20), text).await);
        }
        let committed = commit(&changes, set).await.unwrap();
        assert_eq!(committed.files.len(), 1000);
    }
    let texts = place.tree().into_values().filter(|node| *node == plain("2")).count();
    assert_eq!((texts, place.tree().len(), place.journal_left()), (1000, 1020, vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_writers_take_turns_and_the_slower_one_is_refused() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        place.file(name, "0", 0o644);
    }
    // Two instances, as in two processes, and each with two clones.
    let (one, two) = (place.changes(), place.changes());
    let writers = [one.clone(), one, two.clone(), two];
    let tasks = writers.into_iter().enumerate().map(|(writer, changes)| {
        tokio::spawn(async move {
            let mut wins = 0;
            for round in 0..25 {
                let text = format!("{writer} {round}");
                let set = vec![
                    write(&changes, "a", &text).await,
                    write(&changes, "b", &text).await,
                    write(&changes, "c", &text).await,
                ];
                match commit(&changes, set).await {
                    Ok(_) => wins += 1,
                    Err(ChangeError::Stale { .. }) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
            wins
        })
    });
    let wins: usize = futures::future::join_all(tasks).await.into_iter().map(Result::unwrap).sum();
    assert!(wins > 0);
    let texts: Vec<_> = place.tree().into_values().collect();
    assert_eq!(texts.len(), 3);
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
    assert_eq!(place.journal_left(), [""; 0]);
}

#[derive(Default)]
struct Watcher {
    seen: Mutex<Vec<String>>,
    note: Option<Note>,
    root: std::path::PathBuf,
}

impl Watcher {
    fn tell(&self, when: &str, planned: &[Planned]) {
        let text = |bytes: &Option<Arc<[u8]>>| {
            bytes.as_ref().map_or("-".to_owned(), |bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        for planned in planned {
            let on_disk = fs::read_to_string(&planned.file.real).unwrap_or("-".to_owned());
            let from = planned.from.as_ref().map_or(String::new(), |from| format!(" from {}", from.shown));
            self.seen.lock().unwrap().push(format!(
                "{when}: {}{from} {:?} {} -> {}, on disk {on_disk}",
                planned.file.shown,
                planned.kind,
                text(&planned.before),
                text(&planned.after),
            ));
        }
    }
}

#[async_trait]
impl ChangeObserver for Watcher {
    async fn before(&self, planned: &[Planned]) {
        self.tell("before", planned);
    }

    async fn after(&self, committed: &[Planned]) -> Option<Note> {
        self.tell("after", committed);
        self.note.clone()
    }
}

struct Faulty;

#[async_trait]
impl ChangeObserver for Faulty {
    async fn before(&self, _: &[Planned]) {}

    async fn after(&self, _: &[Planned]) -> Option<Note> {
        panic!("a bug in an observer");
    }
}

fn note(text: &str) -> Note {
    Note { text: Some(text.to_owned()), structured: json!({"verified": true}).as_object().unwrap().clone() }
}

#[tokio::test]
async fn observers_see_all_files_at_once_and_their_notes_come_back() {
    let place = Place::new();
    for name in ["a", "b", "c", "same"] {
        place.file(name, "old", 0o644);
    }
    let changes = place.changes();
    let first = Arc::new(Watcher { note: Some(note("first")), root: place.root(), ..Watcher::default() });
    let second = Arc::new(Watcher { note: Some(note("second")), ..Watcher::default() });
    let silent = Arc::new(Watcher::default());
    changes.observe(first.clone());
    changes.observe(silent);
    changes.observe(Arc::new(Faulty));
    changes.observe(second);
    let set = vec![
        write(&changes, "same", "old").await,
        write(&changes, "a", "new").await,
        delete(&changes, "b").await,
        rename(&changes, "c", "d", Some("moved")).await,
        write(&changes, "e", "created").await,
    ];
    let committed = commit(&changes, set).await.unwrap();
    assert_eq!(committed.notes, [note("first"), note("second")]);
    insta::assert_snapshot!(committed.warnings.join("\n"));
    let seen = std::mem::take(&mut *first.seen.lock().unwrap());
    assert_eq!(
        seen,
        [
            "before: a Modified old -> new, on disk old",
            "before: b Deleted old -> -, on disk old",
            "before: d from c Moved old -> moved, on disk -",
            "before: e Created - -> created, on disk -",
            "after: a Modified old -> new, on disk new",
            "after: b Deleted old -> -, on disk -",
            "after: d from c Moved old -> moved, on disk moved",
            "after: e Created - -> created, on disk created",
        ]
    );
    // Nothing to see where nothing changes, and no `after` for what was refused.
    commit(&changes, vec![write(&changes, "same", "old").await]).await.unwrap();
    assert_eq!(*first.seen.lock().unwrap(), [""; 0]);
    let set = vec![write(&changes, "a", "newer").await];
    fs::write(place.root().join("a"), "by somebody").unwrap();
    commit(&changes, set).await.unwrap_err();
    assert_eq!(*first.seen.lock().unwrap(), ["before: a Modified new -> newer, on disk by somebody"]);
}

/// Holds a commit before it begins until it is let go.
struct Gate {
    reached: tokio::sync::Notify,
    open: tokio::sync::Notify,
    done: tokio::sync::Notify,
}

#[async_trait]
impl ChangeObserver for Gate {
    async fn before(&self, _: &[Planned]) {
        self.reached.notify_one();
        self.open.notified().await;
    }

    async fn after(&self, _: &[Planned]) -> Option<Note> {
        self.done.notify_one();
        None
    }
}

#[tokio::test]
async fn a_caller_that_gives_up_does_not_leave_half_a_commit() {
    let place = Place::new();
    for name in ["a", "b"] {
        place.file(name, "old", 0o644);
    }
    let changes = place.changes();
    let gate = Arc::new(Gate {
        reached: tokio::sync::Notify::new(),
        open: tokio::sync::Notify::new(),
        done: tokio::sync::Notify::new(),
    });
    changes.observe(gate.clone());
    let set = vec![write(&changes, "a", "new").await, write(&changes, "b", "new").await];
    let task = {
        let changes = changes.clone();
        tokio::spawn(async move { changes.commit(ChangeSet { changes: set }, "a test").await })
    };
    gate.reached.notified().await;
    // One that has not had its turn yet does nothing at all once it is dropped.
    let waiting = {
        let set = vec![write(&changes, "c", "never").await];
        let changes = changes.clone();
        tokio::spawn(async move { changes.commit(ChangeSet { changes: set }, "a test").await })
    };
    tokio::task::yield_now().await;
    waiting.abort();
    task.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    assert!(task.await.unwrap_err().is_cancelled());
    gate.open.notify_one();
    gate.done.notified().await;
    assert_eq!(
        place.tree(),
        [("a", "new"), ("b", "new")].map(|(name, text)| (name.to_owned(), plain(text))).into()
    );
    // The turn was given back.
    let last = vec![write(&changes, "a", "newer").await];
    gate.open.notify_one();
    commit(&changes, last).await.unwrap();
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
