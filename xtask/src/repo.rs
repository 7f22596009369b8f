//! The checkout, and programs run in it.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// The directory of the workspace.
pub(crate) fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |set| root().join(set))
}

/// The cargo that runs this task.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root()).stdin(Stdio::null());
    command
}

/// Shows the command and runs it to its end.
pub(crate) fn run(mut command: Command) -> Result<()> {
    let words: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let line = format!("{} {}", program.to_string_lossy(), words.join(" "));
    eprintln!("\n$ {line}");
    let status = command.status().with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// The first program of that name on PATH.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(name)).find(|candidate| {
        candidate.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    })
}
