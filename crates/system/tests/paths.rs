//! The working-directory jail.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use std::{
    ffi::OsStr,
    fs,
    io::Read,
    os::unix::{ffi::OsStrExt, fs::symlink, net::UnixListener},
    path::{Path, PathBuf},
};

use haft_system::{PathError, PathState, ResolvedPath, Workdir};
use haft_tool::{
    Access::{Read as Reading, Write as Writing},
    Outcome, ToolError,
};
use pretty_assertions::assert_eq;

struct Place {
    scratch: tempfile::TempDir,
}

impl Place {
    /// `work/` with a few files, and beside it `outside/` with a secret.
    fn new() -> Self {
        let place = Place { scratch: tempfile::tempdir().unwrap() };
        for directory in ["work/src", "work/.git/hooks", "work/sub/.git", "outside"] {
            fs::create_dir_all(place.at(directory)).unwrap();
        }
        for file in ["work/a.txt", "work/src/lib.rs", "work/.git/config", "outside/secret.txt"] {
            fs::write(place.at(file), file).unwrap();
        }
        place
    }

    fn at(&self, below: &str) -> PathBuf {
        self.scratch.path().canonicalize().unwrap().join(below)
    }

    fn link(&self, target: impl AsRef<Path>, name: &str) {
        symlink(target, self.at(name)).unwrap();
    }

    fn workdir(&self) -> Workdir {
        Workdir::new(self.at("work")).unwrap()
    }

    fn resolve(&self, path: impl AsRef<Path>, access: haft_tool::Access) -> Result<ResolvedPath, PathError> {
        self.workdir().resolve(path, access)
    }

    fn reading(&self, path: impl AsRef<Path>) -> Result<ResolvedPath, PathError> {
        self.workdir().resolve(path, Reading)
    }

    fn writing(&self, path: impl AsRef<Path>) -> Result<ResolvedPath, PathError> {
        self.workdir().resolve(path, Writing)
    }

    #[expect(clippy::unnecessary_wraps, reason = "it is compared with results")]
    fn expected(&self, shown: &str, state: PathState, via_symlink: bool) -> Result<ResolvedPath, PathError> {
        let real = if shown == "." { self.at("work") } else { self.at("work").join(shown) };
        Ok(ResolvedPath { real, shown: shown.to_owned(), state, via_symlink })
    }

    fn outside(&self, given: &str, leads_to: &str) -> Result<ResolvedPath, PathError> {
        Err(PathError::Outside {
            given: given.to_owned(),
            leads_to: self.at(leads_to).components().collect::<PathBuf>().display().to_string(),
            root: self.at("work").display().to_string(),
            also: String::new(),
            advice: "Use a path inside it; a person can allow more in the configuration.",
        })
    }
}

#[test]
fn plain_paths_are_resolved() {
    let place = Place::new();
    for access in [Reading, Writing] {
        let file = place.expected("src/lib.rs", PathState::File, false);
        assert_eq!(place.resolve("src/lib.rs", access), file);
        assert_eq!(place.resolve("./src//./lib.rs", access), file);
        assert_eq!(place.resolve("src/../src/lib.rs", access), file);
        assert_eq!(place.resolve(place.at("work/src/lib.rs"), access), file);
        assert_eq!(place.resolve("../work/src/lib.rs", access), file);
        assert_eq!(
            place.resolve("new/deep/file", access),
            place.expected("new/deep/file", PathState::Missing, false)
        );
        for directory in ["src", "src/", "src/."] {
            assert_eq!(place.resolve(directory, access), place.expected("src", PathState::Directory, false));
        }
        assert_eq!(place.resolve(".", access), place.expected(".", PathState::Directory, false));
    }
}

#[test]
fn nothing_outside_is_reached() {
    let place = Place::new();
    let secret = place.at("outside/secret.txt").display().to_string();
    for access in [Reading, Writing] {
        let get = |path: &str| place.resolve(path, access);
        assert_eq!(
            get("../outside/secret.txt"),
            place.outside("../outside/secret.txt", "outside/secret.txt")
        );
        assert_eq!(get(&secret), place.outside(&secret, "outside/secret.txt"));
        assert_eq!(get("src/../../outside"), place.outside("src/../../outside", "outside"));
        assert_eq!(get(".."), place.outside("..", "."));
        // Not even whether something exists there is told.
        assert_eq!(get("../outside/nothing"), place.outside("../outside/nothing", "outside/nothing"));
        assert_eq!(
            get("../outside/secret.txt/below"),
            place.outside("../outside/secret.txt/below", "outside/secret.txt")
        );
        assert_eq!(
            get("../outside/nothing/../x"),
            place.outside("../outside/nothing/../x", "outside/nothing")
        );
    }
    // A name that only begins like the working directory's.
    fs::create_dir(place.at("work-2")).unwrap();
    assert_eq!(place.reading("../work-2"), place.outside("../work-2", "work-2"));
}

#[test]
fn symbolic_links_are_followed_before_anything_is_decided() {
    let place = Place::new();
    place.link("src", "work/in");
    place.link(place.at("work/src"), "work/in-absolute");
    place.link("../../work/src/../a.txt", "work/src/up-and-back");
    place.link("../outside", "work/out");
    place.link("../outside/secret.txt", "work/out-file");
    place.link("new.txt", "work/dangling-in");
    place.link("../outside/new.txt", "work/dangling-out");
    place.link("dangling-out", "work/chain-out");
    place.link("/etc", "work/etc");
    for access in [Reading, Writing] {
        let get = |path: &str| place.resolve(path, access);
        assert_eq!(get("in/lib.rs"), place.expected("src/lib.rs", PathState::File, true));
        assert_eq!(get("in-absolute/lib.rs"), place.expected("src/lib.rs", PathState::File, true));
        assert_eq!(get("src/up-and-back"), place.expected("a.txt", PathState::File, true));
        assert_eq!(get("dangling-in"), place.expected("new.txt", PathState::Missing, true));
        assert_eq!(get("out/secret.txt"), place.outside("out/secret.txt", "outside/secret.txt"));
        assert_eq!(get("out-file"), place.outside("out-file", "outside/secret.txt"));
        assert_eq!(get("dangling-out"), place.outside("dangling-out", "outside/new.txt"));
        assert_eq!(get("chain-out"), place.outside("chain-out", "outside/new.txt"));
        assert!(matches!(get("etc/passwd"), Err(PathError::Outside { .. })));
        // `..` goes up from where the link led, not from where it stands.
        assert_eq!(get("out/../outside"), place.outside("out/../outside", "outside"));
        assert_eq!(get("out/../work/a.txt"), place.expected("a.txt", PathState::File, true));
    }
}

#[test]
fn a_root_that_is_a_symbolic_link_is_the_place_it_leads_to() {
    let place = Place::new();
    place.link("work", "way");
    let workdir = Workdir::new(place.at("way")).unwrap();
    assert_eq!(workdir.root(), place.at("work"));
    let expected = place.expected("a.txt", PathState::File, false);
    assert_eq!(workdir.resolve("a.txt", Writing), expected);
    let through_the_link = ResolvedPath { via_symlink: true, ..expected.unwrap() };
    assert_eq!(workdir.resolve(place.at("way/a.txt"), Writing), Ok(through_the_link));
    assert!(matches!(Workdir::new(place.at("work/a.txt")), Err(PathError::Root { .. })));
    assert!(matches!(Workdir::new(place.at("nothing")), Err(PathError::Root { .. })));
}

#[test]
fn links_in_a_circle_end() {
    let place = Place::new();
    place.link("b", "work/a");
    place.link("a", "work/b");
    place.link("self/x", "work/self");
    assert!(matches!(place.reading("a"), Err(PathError::Loop { .. })));
    assert!(matches!(place.writing("self"), Err(PathError::Loop { .. })));
}

#[test]
fn git_is_read_but_never_written() {
    let place = Place::new();
    place.link(".git", "work/innocent");
    place.link(".git/config", "work/file");
    fs::create_dir(place.at("work/elsewhere")).unwrap();
    fs::create_dir(place.at("work/linked")).unwrap();
    place.link("../elsewhere", "work/linked/.git");
    for path in [
        ".git",
        ".git/config",
        ".git/hooks/pre-commit",
        "sub/.git/config",
        ".GIT/config",
        "src/../.git/config",
        "innocent/config",
        "file",
        "linked/.git/config",
        "new/.git/config",
    ] {
        assert!(
            matches!(place.writing(path), Err(PathError::Git { .. })),
            "{path}: {:?}",
            place.writing(path)
        );
        assert!(place.reading(path).is_ok(), "{path}");
    }
    for path in [".gitignore", ".github/workflows/ci.yml", "a.git", "git", ".git2/x"] {
        assert!(place.writing(path).is_ok(), "{path}");
    }
}

#[test]
fn extra_places_are_allowed_as_far_as_was_said() {
    let place = Place::new();
    fs::create_dir(place.at("shared")).unwrap();
    fs::write(place.at("shared/x"), "x").unwrap();
    place.link("../shared/x", "work/link");
    let workdir = place.workdir();
    let workdir = workdir.with_extra("../outside", Reading).unwrap();
    let workdir = workdir.with_extra(place.at("shared"), Writing).unwrap();
    let secret = place.at("outside/secret.txt");
    assert_eq!(
        workdir.resolve("../outside/secret.txt", Reading),
        Ok(ResolvedPath {
            real: secret.clone(),
            shown: secret.display().to_string(),
            state: PathState::File,
            via_symlink: false
        })
    );
    assert_eq!(
        workdir.resolve(&secret, Writing),
        Err(PathError::ReadOnly {
            given: secret.display().to_string(),
            place: place.at("outside").display().to_string()
        })
    );
    assert_eq!(workdir.resolve("link", Writing).unwrap().real, place.at("shared/x"));
    assert!(
        matches!(workdir.resolve("../third", Reading), Err(PathError::Outside { also, .. }) if also.contains("shared"))
    );
    // The working directory that it came from is as it was.
    assert!(place.reading("../outside/secret.txt").is_err());
    assert!(matches!(place.workdir().with_extra("nothing", Reading), Err(PathError::Root { .. })));
}

#[test]
fn a_file_is_no_directory() {
    let place = Place::new();
    for access in [Reading, Writing] {
        for path in ["a.txt/b", "a.txt/", "a.txt/.", "a.txt/..", "a.txt/b/c"] {
            assert_eq!(
                place.resolve(path, access),
                Err(PathError::NotADirectory {
                    given: path.to_owned(),
                    at: "a.txt".to_owned(),
                    what: "a file"
                })
            );
        }
    }
}

#[test]
fn odd_names_are_names() {
    let place = Place::new();
    for name in ["with space", "new\nline", "-rf", "…", "*", "a\\b", "%2e%2e", "...", "..a"] {
        assert_eq!(place.writing(name), place.expected(name, PathState::Missing, false));
    }
    let raw = OsStr::from_bytes(b"not-utf8-\xFF");
    fs::write(place.at("work").join(raw), "x").unwrap();
    assert_eq!(
        place.writing(raw),
        Ok(ResolvedPath {
            real: place.at("work").join(raw),
            shown: "not-utf8-\u{FFFD}".to_owned(),
            state: PathState::File,
            via_symlink: false,
        })
    );
}

#[test]
fn what_is_neither_file_nor_directory_is_named_and_opening_it_does_not_hang() {
    let place = Place::new();
    let _listener = UnixListener::bind(place.at("work/socket")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, place.at("work/pipe"), rustix::fs::Mode::from_raw_mode(0o600))
        .unwrap();
    assert_eq!(place.reading("socket"), place.expected("socket", PathState::Other("a socket"), false));
    assert_eq!(place.reading("pipe"), place.expected("pipe", PathState::Other("a named pipe"), false));
    assert!(matches!(place.reading("pipe/x"), Err(PathError::NotADirectory { what: "a named pipe", .. })));
    place.reading("pipe").unwrap().open().unwrap();
}

#[test]
fn a_link_swapped_in_after_the_check_is_not_followed() {
    let place = Place::new();
    let file = place.reading("a.txt").unwrap();
    let below = place.reading("src/lib.rs").unwrap();
    let mut text = String::new();
    file.open().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "work/a.txt");
    fs::remove_file(place.at("work/a.txt")).unwrap();
    place.link("../outside/secret.txt", "work/a.txt");
    assert!(file.open().is_err());
    fs::rename(place.at("work/src"), place.at("work/moved")).unwrap();
    fs::write(place.at("outside/lib.rs"), "secret").unwrap();
    place.link("../outside", "work/src");
    assert!(below.open().is_err());
    assert!(place.reading(".").unwrap().open().is_ok());
}

#[test]
fn what_the_model_is_told() {
    let place = Place::new();
    place.link("../outside", "work/out");
    place.link("loop", "work/loop");
    let with_extra = place.workdir().with_extra("../outside", Reading).unwrap();
    let long_name = "n".repeat(300);
    let long_path = "d/".repeat(3000);
    let mut told = Vec::new();
    let mut tell = |result: Result<ResolvedPath, PathError>| {
        let text = result.unwrap_err().to_string();
        told.push(text.replace(&place.at("").display().to_string(), "/scratch/"));
    };
    tell(place.reading(""));
    tell(place.reading("a\0b"));
    tell(place.reading(&long_name));
    tell(place.reading(&long_path));
    tell(place.writing("~/notes.txt"));
    tell(place.reading("~"));
    tell(place.reading("out/secret.txt"));
    tell(with_extra.resolve("/elsewhere", Reading));
    tell(with_extra.resolve("out/secret.txt", Writing));
    tell(place.writing(".git/hooks/pre-commit"));
    tell(place.writing("a.txt/b"));
    tell(place.writing("nothing/../a.txt"));
    tell(place.writing("new/"));
    tell(place.reading("loop"));
    tell(Workdir::new(place.at("nothing")).map(|_| unreachable!("there is no such directory")));
    insta::assert_snapshot!(told.join("\n\n"));

    let error: ToolError = place.reading("").unwrap_err().into();
    assert!(Outcome::from(error).is_error);
    // A directory that is really called so can be used.
    fs::create_dir(place.at("work/~")).unwrap();
    assert!(place.writing("~").is_ok());
}

#[test]
fn what_is_withheld_is_out_of_reach_and_what_was_added_inside_it_is_not() {
    let place = Place::new();
    fs::create_dir_all(place.at("work/state/outputs")).unwrap();
    for file in ["work/state/haft.db", "work/state/outputs/call_1.txt"] {
        fs::write(place.at(file), file).unwrap();
    }
    place.link(place.at("work/state"), "work/link");
    let workdir = place.workdir().with_extra("state/outputs", Reading).unwrap().without("state").unwrap();
    for path in ["state/haft.db", "state", "state/new", "link/haft.db"] {
        let refused = workdir.resolve(path, Reading);
        assert!(matches!(refused, Err(PathError::Withheld { .. })), "{path}: {refused:?}");
    }
    assert!(workdir.resolve("state/outputs/call_1.txt", Reading).is_ok());
    assert!(workdir.resolve("a.txt", Writing).is_ok());
    assert!(
        workdir.withholds(&place.at("work/state/haft.db")) && !workdir.withholds(&place.at("work/a.txt"))
    );
}
