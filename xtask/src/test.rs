//! `cargo xtask test`: everything that has to hold before a change is taken.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    sync::mpsc,
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
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
        let steps = [
            ("format", step(&["fmt", "--all", "--check"])),
            ("lints", step(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])),
            ("tests", self.tests()),
        ];
        let mut failed = Vec::new();
        for (name, done) in steps {
            if let Err(error) = done {
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

    /// Tests with real servers, debuggers and kernels wait for programs that are not ours, which now and then do not do what they always do. What
    /// failed in a whole run is run once more, by itself, and has to pass; what failed in the first stands above and is still a bug to be found.
    fn tests(&self) -> Result<()> {
        let narrowed = self.arguments.iter().any(|word| word == "-p" || word.starts_with("--package"));
        let mut words = vec!["test", "--no-fail-fast"];
        words.extend((!narrowed).then_some("--workspace"));
        words.extend(self.arguments.iter().map(String::as_str));
        let (done, targets) = cargo_test(&words)?;
        let Err(error) = done else { return Ok(()) };
        if narrowed || targets.is_empty() {
            return Err(error);
        }
        eprintln!(
            "{error:#}\n\nWhat failed is run once more, to tell what always fails from what fails now and then."
        );
        for target in targets {
            // Without `-p`: other features would be chosen for one package than for all, and half of everything built again.
            let mut words = vec!["test", "--no-fail-fast", "--workspace"];
            words.extend(target.split(' ').skip(2));
            words.extend(self.arguments.iter().map(String::as_str));
            cargo_test(&words)?.0?;
        }
        eprintln!("\nThat passed. What failed in the first run fails now and then: see above.");
        Ok(())
    }
}

fn step(words: &[&str]) -> Result<()> {
    repo::run(repo::cargo(words))
}

/// Whether the tests passed, and what of them did not, as cargo is told to run it: `-p haft-store --lib`.
fn cargo_test(words: &[&str]) -> Result<(Result<()>, Vec<String>)> {
    let line = format!("cargo {}", words.join(" "));
    eprintln!("\n$ {line}");
    let mut command = repo::cargo(words);
    // What was provisioned has to be used: a test that finds a server missing then fails instead of leaving it out.
    command.env("HAFT_REQUIRE_SERVERS", "1").stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start `{line}`"))?;
    let told = BufReader::new(child.stderr.take().context("no standard error")?);
    let (sender, receiver) = mpsc::channel();
    // By a thread, which is left behind where something that a test has started keeps the pipe open.
    thread::spawn(move || {
        let mut listed = false;
        for line in told.lines().map_while(Result::ok) {
            eprintln!("{line}");
            listed |= line.starts_with("error: ") && line.ends_with(" failed:");
            if let Some(target) = failed_target(&line).filter(|_| listed) {
                let _ = sender.send(target);
            }
        }
    });
    let status = child.wait()?;
    let mut targets = Vec::new();
    while let Ok(target) = receiver.recv_timeout(Duration::from_secs(2)) {
        targets.push(target);
    }
    let done = if status.success() { Ok(()) } else { Err(anyhow::anyhow!("`{line}` failed ({status})")) };
    Ok((done, targets))
}

/// The target of a line of cargo's list of those that failed.
fn failed_target(line: &str) -> Option<String> {
    let target = line.strip_prefix("    `")?.strip_suffix('`')?;
    target.starts_with("-p ").then(|| target.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_failed_is_named_as_cargo_takes_it() {
        let named = failed_target("    `-p haft-lsp --test rename`");
        assert_eq!(named.as_deref(), Some("-p haft-lsp --test rename"));
        assert_eq!(failed_target("    `something else`"), None);
        assert_eq!(failed_target("   Compiling haft-lsp"), None);
    }
}
