//! Structural search beside its peers: `cargo xtask bench structure`, `cargo xtask differential structure`.

mod bench;
mod corpora;
mod differential;
mod peers;
mod process;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::repo;

/// Processor time and memory beside ast-grep and ripgrep.
#[derive(Args)]
pub(crate) struct Bench {
    /// Runs of every search; the median counts.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Only corpora whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// The same search done by Haft and by a peer, hit by hit.
#[derive(Subcommand)]
pub(crate) enum Differential {
    /// `ast_grep` beside ast-grep on real code.
    Structure {
        /// Only cases whose pattern contains this.
        #[arg(long)]
        only: Option<String>,
        /// Differences that are shown per case and side.
        #[arg(long, default_value_t = 5)]
        samples: usize,
    },
}

impl Bench {
    pub(crate) fn run(self) -> Result<()> {
        bench::run(self.runs, self.only.as_deref(), self.json)
    }
}

impl Differential {
    pub(crate) fn run(self) -> Result<()> {
        let Differential::Structure { only, samples } = self;
        differential::run(only.as_deref(), samples)
    }
}

/// Builds the small program around the search engine, as it is in a release.
fn finder() -> Result<PathBuf> {
    repo::run(repo::cargo(["build", "--release", "-p", "haft-structure", "--example", "find"]))?;
    Ok(repo::target().join("release/examples/find"))
}
