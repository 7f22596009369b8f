use std::path::Path;

use ignore::{Match, gitignore::Gitignore};

/// Directories of other people's code or of tools; what lies in them is written by nobody in the project.
const NOT_OURS: &[&str] = &[
    "node_modules",
    ".git",
    ".hg",
    ".svn",
    ".venv",
    "venv",
    "site-packages",
    "vendor",
    "bower_components",
    "__pycache__",
    ".tox",
    ".dart_tool",
    ".gradle",
    "Pods",
];

/// Why a file below `root` should not be changed by a rename, in words that follow "which"; `None` if nothing speaks against it.
/// Ignore files are asked with or without a repository around them: they say what the project's people do not write by hand.
pub(super) fn why_not(root: &Path, file: &Path) -> Option<String> {
    let below = file.strip_prefix(root).ok()?;
    for part in below.parent()?.components() {
        if let Some(name) = NOT_OURS.iter().find(|name| part.as_os_str() == **name) {
            return Some(format!("lies in `{name}`, where no code of this project is"));
        }
    }
    let mut directory = Some(file.parent()?);
    while let Some(at) = directory {
        // The file nearest to the target decides, as in git.
        for name in [".gitignore", ".git/info/exclude"] {
            let path = at.join(name);
            if !path.is_file() {
                continue;
            }
            let (rules, _) = Gitignore::new(&path);
            // `Gitignore::new` matches below the ignore file's own directory; the exclude file speaks about the repository's.
            let relative = file.strip_prefix(at).ok()?;
            match rules.matched_path_or_any_parents(relative, false) {
                Match::Ignore(glob) => {
                    let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
                    return Some(format!("is ignored (`{}` in {shown})", glob.original()));
                }
                Match::Whitelist(_) => return None,
                Match::None => {}
            }
        }
        if at == root {
            return None;
        }
        directory = at.parent();
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs;

    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn vendored_and_ignored_files_are_named_and_others_are_not() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("pkg/gen")).unwrap();
        fs::create_dir_all(root.join(".git/info")).unwrap();
        fs::write(root.join(".gitignore"), "build/\n*.gen.ts\n").unwrap();
        fs::write(root.join("pkg/.gitignore"), "!keep.gen.ts\ngen/\n").unwrap();
        fs::write(root.join(".git/info/exclude"), "private.ts\n").unwrap();
        let cases = [
            ("src/a.ts", None),
            ("node_modules/x/index.ts", Some("lies in `node_modules`, where no code of this project is")),
            ("build/out.ts", Some("is ignored (`build/` in .gitignore)")),
            ("pkg/a.gen.ts", Some("is ignored (`*.gen.ts` in .gitignore)")),
            ("pkg/keep.gen.ts", None),
            ("pkg/gen/b.ts", Some("is ignored (`gen/` in pkg/.gitignore)")),
            ("private.ts", Some("is ignored (`private.ts` in .git/info/exclude)")),
        ];
        for (file, expected) in cases {
            assert_eq!(why_not(&root, &root.join(file)).as_deref(), expected, "{file}");
        }
    }
}
