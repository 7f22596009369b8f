//! ast-grep and ripgrep, fetched from PyPI into `target/provision`.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result};

use crate::repo;

const AST_GREP: &str = "ast-grep-cli==0.51.*";
const RIPGREP: &str = "ripgrep==15.*";

pub(crate) struct Peers {
    pub(crate) ast_grep: PathBuf,
    pub(crate) ripgrep: PathBuf,
}

pub(crate) fn fetch() -> Result<Peers> {
    let place = repo::target().join("provision/structure-peers");
    let peers = Peers { ast_grep: place.join("bin/ast-grep"), ripgrep: place.join("bin/rg") };
    if peers.ast_grep.exists() && peers.ripgrep.exists() {
        return Ok(peers);
    }
    if place.exists() {
        fs::remove_dir_all(&place).with_context(|| format!("cannot clear {}", place.display()))?;
    }
    let python = repo::find_program("python3").context("python3 is not on PATH")?;
    let mut command = Command::new(python);
    command.args(["-m", "venv"]).arg(&place);
    repo::run(command)?;
    let mut command = Command::new(place.join("bin/pip"));
    command.args(["install", "--quiet", AST_GREP, RIPGREP]);
    repo::run(command)?;
    Ok(peers)
}
