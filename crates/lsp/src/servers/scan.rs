//! The roots anywhere below a working directory. A search by name asks for them each time, so what was found is kept together with what it stands on: the directories that were
//! looked into, and the files that say what counts.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use haft_system::clock;

use super::{
    RootFound, ServerSpec,
    roots::{hoisted, is_foreign, marked},
};
use crate::{
    limits::{SCAN_DEPTH, SCAN_DOUBT, SCANNED_DIRECTORIES},
    stamp::Stamp,
};

/// Files whose content says what is passed over, and what belongs together.
const TELLING: [&str; 5] = [".gitignore", ".ignore", ".git/info/exclude", "Cargo.toml", "go.work"];

/// What a look at a working directory found.
#[derive(Debug)]
pub(crate) struct Scan {
    /// Servers by id with their roots, nearest to the working directory first.
    pub(crate) found: Vec<(String, RootFound)>,
    /// All that it stands on, as it was.
    basis: Vec<(PathBuf, Option<Stamp>)>,
    /// Something had changed only just before, and could have changed again without a trace: times are as coarse as the kernel's tick.
    doubtful: bool,
}

impl Scan {
    /// Looks for roots; ignored directories are left out. Bounded: see the crate's limits.
    pub(crate) fn new(specs: &[&ServerSpec], workdir: &Path) -> Self {
        let begun_ms = clock::now_ms();
        let mut found: Vec<(String, RootFound)> = Vec::new();
        let mut basis = Vec::new();
        let stamp = |path: &Path| path.symlink_metadata().ok().map(|metadata| Stamp::of(&metadata));
        // Rules above hold below too.
        let above = workdir
            .ancestors()
            .skip(1)
            .flat_map(|directory| TELLING[..3].iter().map(|file| directory.join(file)));
        for path in above.chain(ignore::gitignore::gitconfig_excludes_path()) {
            basis.push((path.clone(), stamp(&path)));
        }
        let walk = ignore::WalkBuilder::new(workdir)
            .max_depth(Some(SCAN_DEPTH))
            .hidden(true)
            .require_git(false)
            .filter_entry(|entry| {
                entry.file_type().is_some_and(|kind| kind.is_dir()) && !is_foreign(entry.file_name().to_str())
            })
            .build();
        for entry in walk.flatten().take(SCANNED_DIRECTORIES) {
            let directory = entry.path();
            // Before it is read: what changes meanwhile is seen the next time.
            basis.push((directory.to_owned(), stamp(directory)));
            let names = names_in(directory);
            for file in TELLING.iter().filter(|file| names.contains(first_part(file))) {
                let path = directory.join(file);
                basis.push((path.clone(), stamp(&path)));
            }
            for spec in specs {
                // Looked up in what the directory has: asking the file system for each of a hundred markers takes longer than the search that this is for.
                if !spec.markers.iter().any(|marker| may_have(&names, marker)) {
                    continue;
                }
                let Some(root) = marked(spec, directory) else { continue };
                let root = hoisted(spec, root, workdir);
                if !found.iter().any(|(id, known)| *id == spec.id && known.root == root.root) {
                    found.push((spec.id.clone(), root));
                }
            }
        }
        found.sort_by(|(_, one), (_, other)| {
            let depth = |found: &RootFound| found.root.components().count();
            depth(one).cmp(&depth(other)).then_with(|| one.root.cmp(&other.root))
        });
        let settled_ms = begun_ms - SCAN_DOUBT.as_millis() as i64;
        let doubtful =
            basis.iter().flat_map(|(_, stamp)| stamp).any(|stamp| stamp.changed_ms() >= settled_ms);
        Scan { found, basis, doubtful }
    }

    /// Whether a new look would find the same.
    pub(crate) fn holds(&self) -> bool {
        let is_as_it_was = |(path, before): &(PathBuf, Option<Stamp>)| {
            path.symlink_metadata().ok().map(|metadata| Stamp::of(&metadata)) == *before
        };
        !self.doubtful && self.basis.iter().all(is_as_it_was)
    }
}

fn names_in(directory: &Path) -> HashSet<OsString> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect()
}

/// Whether a directory with these entries can have a marker; it has none where that is false.
fn may_have(names: &HashSet<OsString>, marker: &str) -> bool {
    match marker.strip_prefix("*.") {
        // One that lies deeper is left to the file system.
        None => marker.contains('/') || names.contains(OsStr::new(marker)),
        Some(extension) => {
            names.iter().any(|name| Path::new(name).extension() == Some(OsStr::new(extension)))
        }
    }
}

fn first_part(path: &str) -> &OsStr {
    OsStr::new(path.split('/').next().unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::Table;
    use pretty_assertions::assert_eq;
    use std::{fs, thread::sleep, time::Duration};

    #[test]
    fn what_was_found_holds_until_something_changes_that_it_stands_on() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        for directory in ["a/src", "b", "out"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        fs::write(root.join("Cargo.toml"), "[workspace]\nmembers = [\"a\"]").unwrap();
        fs::write(root.join("a/Cargo.toml"), "[package]\nname = \"a\"").unwrap();
        fs::write(root.join("out/go.mod"), "module out").unwrap();
        fs::write(root.join(".gitignore"), "out/").unwrap();
        let table = Table::shipped().unwrap();
        let specs: Vec<&ServerSpec> = table.servers().iter().map(AsRef::as_ref).collect();
        let look = || Scan::new(&specs, &root);
        let roots = |scan: &Scan| {
            let shown = |(id, found): &(String, RootFound)| {
                format!("{id} {}", found.root.strip_prefix(&root).unwrap().display())
            };
            let wanted =
                scan.found.iter().filter(|(id, _)| ["rust-analyzer", "gopls"].contains(&id.as_str()));
            wanted.map(shown).collect::<Vec<_>>()
        };
        assert!(!look().holds(), "all of it was made just now");
        type Change<'a> = (&'a str, &'a dyn Fn(), &'a [&'a str]);
        let changes: [Change<'_>; 5] = [
            ("a file inside", &|| fs::write(root.join("a/src/lib.rs"), "").unwrap(), &["rust-analyzer "]),
            (
                "a marker",
                &|| fs::write(root.join("b/go.mod"), "module b").unwrap(),
                &["rust-analyzer ", "gopls b"],
            ),
            (
                "what a workspace says",
                &|| fs::write(root.join("Cargo.toml"), "[workspace]\nmembers = []").unwrap(),
                &["rust-analyzer ", "rust-analyzer a", "gopls b"],
            ),
            (
                "what is ignored",
                &|| fs::write(root.join(".gitignore"), "b/").unwrap(),
                &["rust-analyzer ", "rust-analyzer a", "gopls out"],
            ),
            (
                "a directory goes",
                &|| fs::remove_dir_all(root.join("a")).unwrap(),
                &["rust-analyzer ", "gopls out"],
            ),
        ];
        for (what, change, expected) in changes {
            sleep(SCAN_DOUBT + Duration::from_millis(20));
            let scan = look();
            assert!(scan.holds(), "before {what}");
            change();
            assert!(!scan.holds(), "after {what}");
            assert_eq!(roots(&look()), expected, "after {what}");
        }
    }
}
