//! Where a server belongs: the nearest directory above the file that has a marker, inside the working directory (SPEC L2), exchanged for
//! the workspace that it says it is part of where a language has such a thing.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{Hoist, ServerSpec};
use crate::limits::RESCANNED_FILES;

/// A root and why it is one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RootFound {
    /// The directory.
    pub root: PathBuf,
    /// The marker's path.
    pub marker: PathBuf,
}

/// The root of `file` for a server. `file` and `workdir` are canonical.
pub fn find_root(spec: &ServerSpec, file: &Path, workdir: &Path) -> Option<RootFound> {
    let above = || file.ancestors().skip(1).take_while(|directory| directory.starts_with(workdir));
    let nearest = above().find_map(|directory| marked(spec, directory))?;
    Some(hoisted(spec, nearest, workdir))
}

/// Some file of each server's languages below a root, found in one walk: the nearest to it, then the first by name.
pub(crate) fn any_files(specs: &[Arc<ServerSpec>], root: &Path) -> Vec<Option<PathBuf>> {
    let walk = ignore::WalkBuilder::new(root)
        .hidden(true)
        .require_git(false)
        .filter_entry(|entry| {
            !(entry.file_type().is_some_and(|kind| kind.is_dir()) && is_foreign(entry.file_name().to_str()))
        })
        .build();
    let mut nearest: Vec<Option<(usize, PathBuf)>> = vec![None; specs.len()];
    for entry in walk.flatten().take(RESCANNED_FILES) {
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        for (spec, nearest) in specs.iter().zip(&mut nearest) {
            let is_nearer = nearest
                .as_ref()
                .is_none_or(|(depth, path)| (entry.depth(), entry.path()) < (*depth, path.as_path()));
            if is_nearer && spec.language_of(entry.path()).is_some() {
                *nearest = Some((entry.depth(), entry.path().to_owned()));
            }
        }
    }
    nearest.into_iter().map(|found| found.map(|(_, path)| path)).collect()
}

/// Those of these files that a server knows nothing of while they are closed, because nothing says that they belong to the project; not more than `limit`.
pub(crate) fn unindexed<'a>(
    spec: &ServerSpec,
    files: impl Iterator<Item = &'a PathBuf>,
    limit: usize,
) -> Vec<PathBuf> {
    if spec.indexed_by.is_empty() {
        return Vec::new();
    }
    let mut indexed: BTreeMap<&Path, bool> = BTreeMap::new();
    let mut is_indexed = |file: &'a Path| {
        let above: Vec<&Path> = file.ancestors().skip(1).collect();
        let known = above.iter().position(|directory| indexed.contains_key(directory)).unwrap_or(above.len());
        let mut answer =
            above.get(known).and_then(|directory| indexed.get(directory)).copied().unwrap_or(false);
        for directory in above[..known].iter().rev() {
            answer = answer || spec.indexed_by.iter().any(|index| directory.join(index).exists());
            indexed.insert(directory, answer);
        }
        answer
    };
    files.filter(|file| spec.language_of(file).is_some() && !is_indexed(file)).take(limit).cloned().collect()
}

/// Directories with other people's code in them.
pub(crate) fn is_foreign(name: Option<&str>) -> bool {
    matches!(name, Some("node_modules" | "target" | "vendor" | "__pycache__" | "venv" | "site-packages"))
}

/// Whether a directory is a root: the first marker that is there, in the order of the table.
pub(super) fn marked(spec: &ServerSpec, directory: &Path) -> Option<RootFound> {
    spec.markers.iter().find_map(|marker| {
        let path = match marker.strip_prefix("*.") {
            None => Some(directory.join(marker)).filter(|path| path.exists()),
            Some(extension) => {
                let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
                    .ok()?
                    .flatten()
                    .map(|entry| entry.path())
                    .filter(|path| path.extension().is_some_and(|found| found == extension))
                    .collect();
                files.sort();
                files.into_iter().next()
            }
        }?;
        Some(RootFound { root: directory.to_owned(), marker: path })
    })
}

pub(super) fn hoisted(spec: &ServerSpec, nearest: RootFound, workdir: &Path) -> RootFound {
    let further: Vec<&Path> =
        nearest.root.ancestors().skip(1).take_while(|directory| directory.starts_with(workdir)).collect();
    match spec.hoist {
        Hoist::None => nearest,
        Hoist::Topmost => {
            let top = further.iter().map_while(|directory| marked(spec, directory)).last();
            top.unwrap_or(nearest)
        }
        Hoist::Cargo => {
            // A package that is the root of a workspace itself belongs to no other.
            if workspace_of(&nearest.marker).is_some() {
                return nearest;
            }
            let holder = further.iter().find_map(|directory| {
                let manifest = directory.join("Cargo.toml");
                let workspace = workspace_of(&manifest)?;
                lists(&workspace, directory, &nearest.root)
                    .then(|| RootFound { root: directory.to_path_buf(), marker: manifest })
            });
            holder.unwrap_or(nearest)
        }
        Hoist::Go => {
            let holder = further.iter().find_map(|directory| {
                let work = directory.join("go.work");
                let text = std::fs::read_to_string(&work).ok()?;
                uses(&text, directory, &nearest.root)
                    .then(|| RootFound { root: directory.to_path_buf(), marker: work })
            });
            holder.unwrap_or(nearest)
        }
    }
}

fn workspace_of(manifest: &Path) -> Option<toml::Table> {
    let text = std::fs::read_to_string(manifest).ok()?;
    let parsed: toml::Table = toml::from_str(&text).ok()?;
    parsed.get("workspace")?.as_table().cloned()
}

/// Whether a Cargo workspace has the package in `member` among its members.
fn lists(workspace: &toml::Table, root: &Path, member: &Path) -> bool {
    let Ok(below) = member.strip_prefix(root) else { return false };
    let patterns = |field: &str| -> Vec<String> {
        let list = workspace.get(field).and_then(toml::Value::as_array);
        list.into_iter().flatten().filter_map(|entry| entry.as_str().map(str::to_owned)).collect()
    };
    let matches = |pattern: &String| {
        let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
        globset::GlobBuilder::new(pattern)
            .literal_separator(true)
            .build()
            .is_ok_and(|glob| glob.compile_matcher().is_match(below))
    };
    // `exclude` holds for everything below it too.
    let excluded =
        patterns("exclude").iter().any(|pattern| below.starts_with(pattern.trim_start_matches("./")));
    patterns("members").iter().any(matches) && !excluded
}

/// Whether a `go.work` uses the module in `member`.
fn uses(text: &str, root: &Path, member: &Path) -> bool {
    let mut block = false;
    text.lines().map(|line| line.split("//").next().unwrap_or_default().trim()).any(|line| {
        let path = if block {
            if line == ")" {
                block = false;
                return false;
            }
            line
        } else if let Some(rest) = line.strip_prefix("use") {
            let rest = rest.trim();
            if rest == "(" {
                block = true;
                return false;
            }
            rest
        } else {
            return false;
        };
        let path = path.trim_matches('"').trim_start_matches("./").trim_end_matches('/');
        !path.is_empty() && (root.join(path) == member || (path == "." && root == member))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::Table;
    use pretty_assertions::assert_eq;
    use std::fs;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = place.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = place.path().canonicalize().unwrap();
        (place, root)
    }

    fn root_of(id: &str, file: &str, workdir: &Path) -> Option<String> {
        let table = Table::shipped().unwrap();
        let found = find_root(table.get(id).unwrap(), &workdir.join(file), workdir)?;
        Some(found.marker.strip_prefix(workdir).unwrap().display().to_string())
    }

    #[test]
    fn a_member_goes_to_its_workspace_and_a_stranger_stays() {
        let (_place, root) = tree(&[
            ("Cargo.toml", "[workspace]\nmembers = [\"crates/*\", \"./tool\"]\nexclude = [\"crates/old\"]"),
            ("crates/a/Cargo.toml", "[package]\nname = \"a\""),
            ("crates/old/Cargo.toml", "[package]\nname = \"old\""),
            ("tool/Cargo.toml", "[package]\nname = \"tool\""),
            ("other/Cargo.toml", "[package]\nname = \"other\""),
            ("crates/own/Cargo.toml", "[workspace]\n[package]\nname = \"own\""),
        ]);
        let found: Vec<Option<String>> = ["crates/a", "tool", "crates/old", "other", "crates/own"]
            .iter()
            .map(|package| root_of("rust-analyzer", &format!("{package}/src/lib.rs"), &root))
            .collect();
        let expected = [
            "Cargo.toml",
            "Cargo.toml",
            "crates/old/Cargo.toml",
            "other/Cargo.toml",
            "crates/own/Cargo.toml",
        ];
        assert_eq!(found, expected.map(|path| Some(path.to_owned())));
    }

    #[test]
    fn sources_that_nothing_lists_are_not_indexed() {
        let (_place, root) = tree(&[
            ("a.c", ""),
            ("a.txt", ""),
            ("sub/compile_commands.json", "[]"),
            ("sub/deep/b.c", ""),
            ("built/build/compile_commands.json", "[]"),
            ("built/src/c.h", ""),
            ("other/d.h", ""),
        ]);
        let files =
            ["a.c", "a.txt", "built/src/c.h", "other/d.h", "sub/deep/b.c"].map(|file| root.join(file));
        let table = Table::shipped().unwrap();
        let found = |id: &str, limit| unindexed(table.get(id).unwrap(), files.iter(), limit);
        assert_eq!(found("clangd", 9), [root.join("a.c"), root.join("other/d.h")]);
        assert_eq!(found("clangd", 1), [root.join("a.c")]);
        assert_eq!(found("gopls", 9), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_go_module_goes_to_the_work_file_that_uses_it() {
        let (_place, root) = tree(&[
            ("go.work", "go 1.22\n\nuse (\n\t./a // the first\n\t\"b\"\n)\n"),
            ("a/go.mod", "module a"),
            ("b/go.mod", "module b"),
            ("c/go.mod", "module c"),
        ]);
        let found: Vec<Option<String>> =
            ["a/x.go", "b/x.go", "c/x.go"].iter().map(|file| root_of("gopls", file, &root)).collect();
        assert_eq!(found, ["go.work", "go.work", "c/go.mod"].map(|path| Some(path.to_owned())));
    }

    #[test]
    fn a_package_of_a_monorepo_is_its_own_root_and_nothing_above_the_working_directory_counts() {
        let (_place, root) = tree(&[
            ("package.json", "{}"),
            ("packages/a/package.json", "{}"),
            ("packages/b/src/x.ts", ""),
            ("CMakeLists.txt", ""),
            ("src/CMakeLists.txt", ""),
        ]);
        let at = |id, file| root_of(id, file, &root);
        assert_eq!(at("vtsls", "packages/a/src/x.ts").as_deref(), Some("packages/a/package.json"));
        assert_eq!(at("vtsls", "packages/b/src/x.ts").as_deref(), Some("package.json"));
        assert_eq!(at("clangd", "src/x.c").as_deref(), Some("CMakeLists.txt"));
        let inner = root.join("packages/b");
        assert_eq!(root_of("vtsls", "src/x.ts", &inner), None);
    }
}
