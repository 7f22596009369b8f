//! Development tasks: `cargo xtask test`, `cargo xtask demo`, `cargo xtask bench agent`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a development tool talks to its terminal and starts cargo and other programs; Haft's own rules are about the server"
)]

mod bench;
mod demo;
mod provision;
mod repo;
mod structure;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Development tasks of Haft")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check format and lints and run every test, after fetching what the tests need.
    Test(test::Test),
    /// Build Haft and watch it do its main job on a sample project; needs no model key.
    Demo(demo::Demo),
    /// Measure Haft beside its peers.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Compare what Haft finds with what a peer finds.
    #[command(subcommand)]
    Differential(structure::Differential),
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Test(test) => test.run(),
        Task::Demo(demo) => demo.run(),
        Task::Bench(bench) => bench.run(),
        Task::Differential(differential) => differential.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
