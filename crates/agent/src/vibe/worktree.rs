//! A worker's own git worktree, and the way of its changes back: a staged edit in its director's conversation.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_structure::Staging;
use haft_system::{Before, Change, ChangeSet, Changes, Exit, ProcessSpec, RunBounds, Supervisor};
use haft_tool::Access;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::limits::{GIT_OUTPUT, GIT_TIME, WORKTREE_DIFF};

/// Where a worker's worktree is and what it began from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// The top of the director's repository.
    pub repository: PathBuf,
    /// The worktree.
    pub path: PathBuf,
    /// The director's directory within the repository; empty when it is the top.
    pub inside: PathBuf,
    /// The commit that it began from: the director's tracked files as they were then, changes that were not committed included.
    pub base: String,
}

/// What it takes to handle worktrees.
#[derive(Clone)]
pub(crate) struct Worktrees {
    pub(crate) supervisor: Supervisor,
    /// Where they are made.
    pub(crate) place: PathBuf,
    pub(crate) changes: Changes,
    pub(crate) staging: Arc<Staging>,
}

impl Worktrees {
    /// Makes a worktree of the director's repository; the error says why there is none.
    pub(crate) async fn make(&self, name: &str) -> Result<Worktree, String> {
        let directory = self.changes.workdir().root();
        let top = self.git(directory, &["rev-parse", "--show-toplevel"]).await.map_err(|why| {
            format!("the working directory is not in a git repository that can be used: {why}")
        })?;
        let repository = PathBuf::from(line(&top));
        let inside = directory.strip_prefix(&repository).map_err(|error| error.to_string())?.to_owned();
        let author = ["-c", "user.name=haft", "-c", "user.email=haft@localhost", "stash", "create"];
        // Nothing is said when nothing was changed.
        let mut base = line(&self.git(&repository, &author).await?);
        if base.is_empty() {
            base = line(&self.git(&repository, &["rev-parse", "HEAD"]).await?);
        }
        std::fs::create_dir_all(&self.place)
            .map_err(|error| format!("{} cannot be made: {error}", self.place.display()))?;
        let path = self.place.join(name);
        let shown = path.display().to_string();
        self.git(&repository, &["worktree", "add", "--quiet", "--detach", &shown, &base]).await?;
        Ok(Worktree { repository, path, inside, base })
    }

    /// Takes it away with everything in it.
    pub(crate) async fn remove(&self, worktree: &Worktree) -> Result<(), String> {
        let path = worktree.path.display().to_string();
        self.git(&worktree.repository, &["worktree", "remove", "--force", &path]).await.map(drop)
    }

    /// Stages what the worker changed, and says so for its report. `who` is the worker.
    pub(crate) async fn bring_back(&self, worktree: &Worktree, who: &str) -> String {
        match self.try_bring_back(worktree, who).await {
            Ok(text) => text,
            Err(why) => format!(
                "What it changed could not be staged: {why}. It is in its worktree, {}.",
                worktree.path.display()
            ),
        }
    }

    async fn try_bring_back(&self, worktree: &Worktree, who: &str) -> Result<String, String> {
        let Worktree { repository, path, base, .. } = worktree;
        // What the director may have accepted of an earlier turn.
        let earlier = line(&self.git(path, &["rev-parse", "HEAD"]).await?);
        self.git(path, &["add", "--all"]).await?;
        let names = self.git(path, &["diff", "--cached", "--name-only", "--no-renames", "-z", base]).await?;
        let (mut set, mut files, mut stale, mut other) =
            (ChangeSet::default(), Vec::new(), Vec::new(), Vec::new());
        for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let name = std::str::from_utf8(name).map_err(|_| "a file name is not UTF-8".to_owned())?;
            let (theirs, ours) = (path.join(name), repository.join(name));
            let resolved = match self.changes.workdir().resolve(&ours, Access::Write) {
                Ok(resolved) => resolved,
                Err(error) => {
                    other.push(format!("{name} ({error})"));
                    continue;
                }
            };
            let after = match std::fs::symlink_metadata(&theirs) {
                Ok(kind) if kind.is_file() => {
                    Some(std::fs::read(&theirs).map_err(|error| format!("{name}: {error}"))?)
                }
                Ok(_) => {
                    other.push(format!("{name} (not a regular file)"));
                    continue;
                }
                Err(_) => None,
            };
            let at = self.changes.capture(&resolved).await.map_err(|error| error.to_string())?;
            if at.before.bytes().map(AsRef::as_ref) == after.as_deref() {
                continue;
            }
            if !self.is_as_known(worktree, name, &earlier, &at.before).await? {
                stale.push(name.to_owned());
                continue;
            }
            files.push(resolved.shown.clone());
            set.changes.push(match after {
                Some(after) => Change::Write { at, after },
                None => Change::Delete { at },
            });
        }
        if !stale.is_empty() {
            return Err(format!(
                "these files have changed in your directory since it began: {}",
                stale.join(", ")
            ));
        }
        let left_out = match other.as_slice() {
            [] => String::new(),
            other => format!(" Not brought back: {}.", other.join(", ")),
        };
        if set.changes.is_empty() {
            return Ok(format!("It has changed no files of yours.{left_out}"));
        }
        let diff = self.git(path, &["diff", "--cached", "--no-color", "--no-ext-diff", base]).await?;
        let staged =
            self.staging.stage(set, format!("worktree of {who}")).map_err(|error| error.to_string())?;
        let message =
            ["-c", "user.name=haft", "-c", "user.email=haft@localhost", "commit", "--quiet", "--no-verify"];
        self.git(path, &[message.as_slice(), &["--allow-empty", "--message", "A worker's turn"]].concat())
            .await?;
        Ok(format!(
            "Its changes to {} are staged as `{}` and not in your directory yet: look at them, then accept or discard them with `resolve`.{left_out}\n\n{}",
            files.join(", "),
            staged.edit_id,
            cut(&String::from_utf8_lossy(&diff))
        ))
    }

    /// Whether the director's file is as it was when the worker began, or as an earlier turn of the worker left it.
    async fn is_as_known(
        &self,
        worktree: &Worktree,
        name: &str,
        earlier: &str,
        before: &Before,
    ) -> Result<bool, String> {
        let mut known = Vec::new();
        for commit in [worktree.base.as_str(), earlier] {
            let look = ["ls-tree", "--object-only", "--full-tree", commit, "--", name];
            known.push(line(&self.git(&worktree.path, &look).await?));
        }
        let now = match before {
            Before::Absent => String::new(),
            // Through git, so that its conversions of line ends and the like apply to both.
            Before::File { .. } => line(&self.git(&worktree.repository, &["hash-object", "--", name]).await?),
        };
        Ok(known.contains(&now))
    }

    /// Runs git without the project's hooks; the error is what it said.
    async fn git(&self, directory: &Path, arguments: &[&str]) -> Result<Vec<u8>, String> {
        let spec = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"]
            .into_iter()
            .fold(ProcessSpec::new("git", directory), ProcessSpec::without_env)
            .args(["-c", "core.hooksPath=/dev/null"])
            .args(arguments.iter().copied())
            .label(format!("git {}", arguments.first().copied().unwrap_or_default()));
        let bounds = RunBounds { time: Some(GIT_TIME), capture_bytes: GIT_OUTPUT };
        let finished = self
            .supervisor
            .run(spec, bounds, &CancellationToken::new(), &mut |_| {})
            .await
            .map_err(|error| error.to_string())?;
        if finished.exit != Exit::Code(0) {
            return Err(format!("git: {}", finished.stderr.text().trim()));
        }
        if finished.stdout.dropped() > 0 {
            return Err("git said more than can be taken in: too much was changed".to_owned());
        }
        Ok(finished.stdout.bytes())
    }
}

fn line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\n').to_owned()
}

fn cut(diff: &str) -> String {
    match diff.char_indices().nth(WORKTREE_DIFF) {
        None => diff.to_owned(),
        Some((at, _)) => {
            let at = diff[..at].rfind('\n').unwrap_or(at);
            format!("{}\n[… {} more lines of the diff]", &diff[..at], diff[at..].lines().count())
        }
    }
}
