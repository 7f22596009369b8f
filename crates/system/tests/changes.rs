//! What a commit does.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]
#![expect(unreachable_pub, reason = "the module is shared by several tests")]
#![allow(dead_code, reason = "not every test uses every helper")]

mod tree;

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
};

use haft_system::{Before, Change, ChangeError, ChangeKind, Committed, FileChange};
use pretty_assertions::assert_eq;
use serde_json::json;
use tree::*;

fn file_change(file: &str, change: ChangeKind, from: Option<&str>) -> FileChange {
    FileChange { file: file.to_owned(), change, from: from.map(str::to_owned) }
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
async fn a_file_moved_over_an_equal_one_brings_its_mode_along() {
    let place = Place::new();
    place.file("a", "equal", 0o755);
    place.file("b", "equal", 0o644);
    let changes = place.changes();
    let committed = commit(&changes, vec![rename(&changes, "a", "b", None).await]).await.unwrap();
    let files = vec![file_change("b", ChangeKind::Moved, Some("a"))];
    assert_eq!(committed, Committed { files, ..Committed::default() });
    let moved = Node::File { text: "equal".to_owned(), mode: 0o755, links: 1 };
    assert_eq!(place.tree(), Tree::from([("b".to_owned(), moved)]));
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

/// Not a test by itself: what a process of another user does.
#[test]
#[ignore = "started by the test below as a process of its own"]
#[expect(clippy::disallowed_methods, reason = "the test below tells it where to work")]
fn process_of_another_user() {
    let Some(scratch) = std::env::var_os("SCRATCH").map(std::path::PathBuf::from) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let workdir = haft_system::Workdir::new(root_in(&scratch)).unwrap();
    let (changes, _) = haft_system::Changes::open(workdir, journal_in(&scratch)).unwrap();
    runtime.block_on(async {
        let committed = commit(&changes, vec![write(&changes, "theirs", "new").await]).await.unwrap();
        assert_eq!(
            committed.warnings,
            ["theirs belongs to another user or group, which only root could give it again, so it was written in place."]
        );
        assert_eq!(
            text_of(commit(&changes, vec![write(&changes, "closed", "new").await]).await),
            "Nothing was changed: closed may not be written by the user that Haft runs as."
        );
        assert_eq!(
            text_of(commit(&changes, vec![write(&changes, "dir/new", "new").await]).await),
            "Nothing was changed: dir/new lies in the directory dir, which may not be written by the user that Haft runs as."
        );
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a process of another user is started here, by hand")]
fn without_the_right_to_give_a_file_its_owner_it_is_written_in_place() {
    use std::os::unix::{fs::chown, process::CommandExt};
    const NOBODY: u32 = 65534;
    if !rustix::process::geteuid().is_root() {
        eprintln!("NOT TESTED: only root can start a process as another user");
        return;
    }
    let place = Place::new();
    let open_to_all =
        |path: &std::path::Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    open_to_all(place.scratch());
    open_to_all(&place.root());
    let theirs = place.file("theirs", "old", 0o664);
    chown(&theirs, Some(0), Some(NOBODY)).unwrap();
    place.file("closed", "old", 0o644);
    fs::create_dir(place.root().join("dir")).unwrap();
    // The program may lie where the other user cannot look.
    let program = place.scratch().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let output = std::process::Command::new(&program)
        .args(["--exact", "process_of_another_user", "--ignored", "--nocapture"])
        .env("SCRATCH", place.scratch())
        .current_dir(place.scratch())
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata = fs::metadata(&theirs).unwrap();
    assert_eq!((metadata.uid(), metadata.gid(), metadata.permissions().mode() & 0o777), (0, NOBODY, 0o664));
    assert_eq!(fs::read(theirs).unwrap(), b"new");
    assert_eq!(fs::read(place.root().join("closed")).unwrap(), b"old");
}
