//! `cargo xtask test`: everything that has to hold before a change is taken.

use anyhow::{Result, bail};
use clap::Args;

use crate::{provision, repo};

#[derive(Args)]
pub(crate) struct Test {
    /// Goes to `cargo test`: a name to filter by, or `-p haft-store`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Test {
    /// Runs every step, also after one has failed, so that one run shows all that is wrong.
    pub(crate) fn run(self) -> Result<()> {
        provision::for_tests()?;
        let narrowed = self.arguments.iter().any(|word| word == "-p" || word.starts_with("--package"));
        let mut tests = vec!["test", "--no-fail-fast"];
        tests.extend((!narrowed).then_some("--workspace"));
        tests.extend(self.arguments.iter().map(String::as_str));
        let steps = [
            ("format", vec!["fmt", "--all", "--check"]),
            ("lints", vec!["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
            ("tests", tests),
        ];
        let mut failed = Vec::new();
        for (name, words) in steps {
            let mut command = repo::cargo(words);
            // What was provisioned has to be used: a test that finds a server missing then fails instead of leaving it out.
            command.env("HAFT_REQUIRE_SERVERS", "1");
            if let Err(error) = repo::run(command) {
                eprintln!("{error:#}");
                failed.push(name);
            }
        }
        if failed.is_empty() {
            eprintln!("\nFormat, lints and tests are in order.");
            return Ok(());
        }
        bail!("failed: {}", failed.join(", "))
    }
}
