//! `cargo xtask demo`: what Haft does, on a sample project, without a model key.

use std::process::Stdio;

use anyhow::Result;
use clap::Args;

use crate::repo;

#[derive(Args)]
pub(crate) struct Demo {
    /// Goes to `haft demo`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Demo {
    /// Builds without optimisation: for somebody who looks for the first time, the time to build is what counts.
    pub(crate) fn run(self) -> Result<()> {
        eprintln!("Building Haft; the first time takes a few minutes.");
        repo::run(repo::cargo(["build", "--package", "haft"]))?;
        let mut words = vec!["run", "--quiet", "--package", "haft", "--", "demo"];
        words.extend(self.arguments.iter().map(String::as_str));
        let mut command = repo::cargo(words);
        command.stdin(Stdio::inherit());
        repo::run(command)
    }
}
