//! Instructions from the project and the person: AGENTS.md, and the files that `[instructions] files` names.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use haft_system::{Environment, Workdir};

use crate::{
    config::{Config, project_directories, shown},
    limits::{INSTRUCTION_FILE, INSTRUCTIONS},
};

/// The file that is looked for.
pub const FILE_NAME: &str = "AGENTS.md";

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// For the model: every file under a heading with its name, the person's own first, then from the repository's root inwards, so
    /// that the nearest has the last word. Empty where there is none.
    pub text: String,
    /// The files that were read, in that order.
    pub sources: Vec<InstructionSource>,
    /// For the person: files that were left out or cut, and why.
    pub notes: Vec<String>,
}

/// A file with instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionSource {
    /// Canonical.
    pub path: PathBuf,
    /// For people.
    pub shown: String,
    /// How many bytes of it are in the text.
    pub bytes: usize,
    /// Whether it was cut.
    pub cut: bool,
}

/// Reads the instructions that count in the working directory.
pub fn collect(environment: &Environment, workdir: &Workdir, config: &Config) -> Instructions {
    gather(environment, workdir.root(), config.instruction_files())
}

/// Reads the instructions that count in `directory`, `more` after the AGENTS.md files.
pub fn gather(environment: &Environment, directory: &Path, more: &[PathBuf]) -> Instructions {
    let mut found = Instructions::default();
    let mut room = INSTRUCTIONS;
    if let Some(own) = environment.config_dir() {
        // The person's own may be a link to wherever they keep such files.
        found.add(environment, directory, &own.join(FILE_NAME), None, &mut room, /*named*/ false);
    }
    let directories = project_directories(directory);
    let root = directories.first().cloned().unwrap_or_else(|| directory.to_owned());
    for ancestor in &directories {
        found.add(
            environment,
            directory,
            &ancestor.join(FILE_NAME),
            Some(&root),
            &mut room,
            /*named*/ false,
        );
    }
    for file in more {
        found.add(environment, directory, file, None, &mut room, /*named*/ true);
    }
    found
}

impl Instructions {
    /// `within` is the tree that the file may not lead out of; a `named` file is missed where it is not there.
    fn add(
        &mut self,
        environment: &Environment,
        directory: &Path,
        path: &Path,
        within: Option<&Path>,
        room: &mut usize,
        named: bool,
    ) {
        let name = shown(environment, directory, path);
        if !named && path.symlink_metadata().is_err() {
            return;
        }
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(error) => return self.notes.push(format!("{name} is left out: {error}.")),
        };
        if within.is_some_and(|root| !real.starts_with(root)) {
            return self.notes.push(format!(
                "{name} is left out: it is a link to {}, outside the project.",
                real.display()
            ));
        }
        if self.sources.iter().any(|source| source.path == real) {
            return;
        }
        if !real.is_file() {
            return self.notes.push(format!("{name} is left out: it is not a file."));
        }
        if *room == 0 {
            return self.notes.push(format!(
                "{name} is left out: the instructions before it are {INSTRUCTIONS} bytes long."
            ));
        }
        let limit = INSTRUCTION_FILE.min(*room);
        let mut bytes = Vec::new();
        let read = fs::File::open(&real).and_then(|file| file.take(limit as u64 + 1).read_to_end(&mut bytes));
        if let Err(error) = read {
            return self.notes.push(format!("{name} is left out: {error}."));
        }
        let cut = bytes.len() > limit;
        let mut text = String::from_utf8_lossy(bytes.get(..limit).unwrap_or(&bytes)).into_owned();
        if cut {
            // At a line's end, so that no half sentence and no half character is left.
            text.truncate(text.rfind('\n').map_or(text.len(), |at| at + 1));
            let mark =
                format!("[Cut here: {name} is longer than {limit} bytes. Read the file for the rest.]\n");
            text.push_str(&mark);
            self.notes.push(format!("{name} is cut after {limit} bytes."));
        } else if text.contains('\u{fffd}') {
            self.notes.push(format!(
                "{name} is not UTF-8 throughout; what could not be read is shown as \u{fffd}."
            ));
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text).trim();
        if text.is_empty() {
            return;
        }
        *room = room.saturating_sub(text.len());
        self.sources.push(InstructionSource { path: real, shown: name.clone(), bytes: text.len(), cut });
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.extend(["# Instructions from ", &name, "\n\n", text, "\n"]);
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use tempfile::TempDir;

    use super::*;

    /// A repository with a working directory `sub/dir`, beside the person's home.
    fn scene() -> (TempDir, Environment, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(directory.path()).unwrap();
        let work = base.join("repo/sub/dir");
        fs::create_dir_all(&work).unwrap();
        fs::create_dir_all(base.join("repo/.git")).unwrap();
        fs::create_dir_all(base.join("home/.config/haft")).unwrap();
        let environment = Environment::of([("HOME", base.join("home"))], &work);
        (directory, environment, work)
    }

    fn names(found: &Instructions) -> Vec<(&str, usize, bool)> {
        found.sources.iter().map(|source| (source.shown.as_str(), source.bytes, source.cut)).collect()
    }

    #[test]
    fn the_nearest_has_the_last_word() {
        let (directory, environment, work) = scene();
        let base = fs::canonicalize(directory.path()).unwrap();
        fs::write(base.join("AGENTS.md"), "outside the repository").unwrap();
        fs::write(base.join("home/.config/haft/AGENTS.md"), "mine\n").unwrap();
        fs::write(base.join("repo/AGENTS.md"), "\u{feff}root\r\n").unwrap();
        fs::write(base.join("repo/sub/AGENTS.md"), "  \n").unwrap();
        fs::write(work.join("AGENTS.md"), "near").unwrap();
        fs::write(work.join("style.md"), "style").unwrap();
        let more = [work.join("style.md"), work.join("missing.md"), base.join("repo/AGENTS.md")];
        let found = gather(&environment, &work, &more);
        let root = base.join("repo/AGENTS.md").display().to_string();
        let missing = "missing.md is left out: No such file or directory (os error 2).".to_owned();
        assert_eq!(found.notes, [missing]);
        assert_eq!(
            names(&found),
            [
                ("~/.config/haft/AGENTS.md", 4, false),
                (root.as_str(), 4, false),
                ("AGENTS.md", 4, false),
                ("style.md", 5, false)
            ]
        );
        assert_eq!(
            found.text.replace(&root, "ROOT"),
            "# Instructions from ~/.config/haft/AGENTS.md\n\nmine\n\n# Instructions from ROOT\n\nroot\n\n\
             # Instructions from AGENTS.md\n\nnear\n\n# Instructions from style.md\n\nstyle\n"
        );
    }

    #[test]
    fn without_a_repository_only_the_working_directory_counts() {
        let directory = tempfile::tempdir().unwrap();
        let work = directory.path().join("a/b");
        fs::create_dir_all(&work).unwrap();
        fs::write(directory.path().join("a/AGENTS.md"), "above").unwrap();
        let environment = Environment::of([("HOME", directory.path().join("home"))], &work);
        assert_eq!(gather(&environment, &work, &[]), Instructions::default());
    }

    #[test]
    fn a_link_out_of_the_tree_is_refused_and_said() {
        let (directory, environment, work) = scene();
        let base = fs::canonicalize(directory.path()).unwrap();
        fs::write(base.join("secret"), "secret").unwrap();
        fs::write(base.join("repo/shared.md"), "shared").unwrap();
        std::os::unix::fs::symlink(base.join("secret"), work.join("AGENTS.md")).unwrap();
        std::os::unix::fs::symlink("shared.md", base.join("repo/AGENTS.md")).unwrap();
        let found = gather(&environment, &work, &[]);
        assert_eq!(names(&found), [(base.join("repo/AGENTS.md").to_str().unwrap(), 6, false)]);
        assert_eq!(
            found.notes,
            [format!(
                "AGENTS.md is left out: it is a link to {}/secret, outside the project.",
                base.display()
            )]
        );
    }

    #[test]
    fn size_and_encoding_are_bounded_and_said() {
        let (directory, environment, work) = scene();
        let base = fs::canonicalize(directory.path()).unwrap();
        fs::write(base.join("repo/AGENTS.md"), "a line that repeats\n".repeat(INSTRUCTION_FILE)).unwrap();
        fs::write(work.join("AGENTS.md"), b"caf\xe9 time").unwrap();
        let found = gather(&environment, &work, &[]);
        let shown = base.join("repo/AGENTS.md").display().to_string();
        assert_eq!(
            found.notes,
            [
                format!("{shown} is cut after {INSTRUCTION_FILE} bytes."),
                "AGENTS.md is not UTF-8 throughout; what could not be read is shown as \u{fffd}.".to_owned()
            ]
        );
        assert!(found.text.contains("caf\u{fffd} time"));
        let mark =
            format!("a line that repeats\n[Cut here: {shown} is longer than {INSTRUCTION_FILE} bytes.");
        assert!(found.text.contains(&mark));
        // Many files together are bounded as well.
        let many: Vec<PathBuf> = (0..8)
            .map(|number| {
                let path = work.join(format!("{number}.md"));
                fs::write(&path, "another line\n".repeat(INSTRUCTION_FILE)).unwrap();
                path
            })
            .collect();
        let found = gather(&environment, &work, &many);
        assert!(found.text.len() < INSTRUCTIONS + 4096, "{}", found.text.len());
        assert!(
            found
                .notes
                .iter()
                .any(|note| note.starts_with("7.md is left out: the instructions before it are"))
        );
    }

    #[test]
    fn a_directory_or_a_pipe_of_that_name_is_no_instruction() {
        let (_directory, environment, work) = scene();
        fs::create_dir(work.join("AGENTS.md")).unwrap();
        let found = gather(&environment, &work, &[]);
        assert_eq!(found.notes, ["AGENTS.md is left out: it is not a file."]);
        assert_eq!(found.text, "");
    }
}
