//! Benchmarks: whole processes, side by side in one run, against a mock model on this machine.

mod agent;
mod debug;
mod eval;
mod lsp;
mod measure;
mod mock;
mod report;
mod wire;

use std::{net::Ipv4Addr, path::PathBuf};

use anyhow::Result;
use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Start, one turn, a turn with tools and memory, beside `codex exec`.
    Agent(Agent),
    /// The debugger beside a bare script that says the same to the same adapters.
    Debug(Debug),
    /// Kernels beside jupyter_client and ipykernel.
    Eval(Eval),
    /// Language servers beside a raw client of the same servers, and beside Serena.
    Lsp(Lsp),
    /// Structural search beside ast-grep and ripgrep.
    Structure(crate::structure::Bench),
    /// Serve the mock model until interrupted, to try things by hand.
    Mock(Mock),
}

#[derive(Args)]
pub(crate) struct Agent {
    /// Rounds per measure; each subject once per round, after one that does not count.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Measure this program instead of building one with `--release`.
    #[arg(long, value_name = "FILE")]
    pub(crate) haft: Option<PathBuf>,
    /// Measure this program as the peer instead of fetching it.
    #[arg(long, value_name = "FILE")]
    pub(crate) codex: Option<PathBuf>,
    /// Measure Haft alone.
    #[arg(long, conflicts_with = "codex")]
    pub(crate) alone: bool,
}

#[derive(Args)]
pub(crate) struct Debug {
    /// Sessions per adapter and subject, after one that does not count.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Steps per session.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) steps: u32,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Measure this program instead of building one with `--release`.
    #[arg(long, value_name = "FILE")]
    pub(crate) haft: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Eval {
    /// Rounds of the slow measures.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Measure this program instead of building one with `--release`.
    #[arg(long, value_name = "FILE")]
    pub(crate) haft: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Lsp {
    /// Writes of each kind per server and client, after those that warm the servers up.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Questions of each kind per server and client.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) calls: u32,
    /// Measure only this server; may be given again.
    #[arg(long, value_name = "SERVER")]
    pub(crate) only: Vec<String>,
    /// Leave Serena out.
    #[arg(long)]
    pub(crate) alone: bool,
    /// Print JSON instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
    /// Measure this program instead of building one with `--release`.
    #[arg(long, value_name = "FILE")]
    pub(crate) haft: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Mock {
    /// The port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Tool calls before the final text.
    #[arg(long, default_value_t = 0)]
    tools: u32,
    /// Pieces of final text.
    #[arg(long, default_value_t = 4)]
    chunks: u32,
    /// Milliseconds before the first byte of an answer.
    #[arg(long, default_value_t = 0)]
    delay: u32,
}

impl Bench {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Bench::Agent(agent) => agent::run(&agent),
            Bench::Debug(options) => debug::run(&options),
            Bench::Eval(options) => eval::run(&options),
            Bench::Lsp(options) => lsp::run(&options),
            Bench::Structure(structure) => structure.run(),
            Bench::Mock(options) => {
                let mock = mock::Mock::start((Ipv4Addr::LOCALHOST, options.port).into())?;
                let scene =
                    wire::Scene { tools: options.tools, chunks: options.chunks, delay_ms: options.delay };
                println!("OPENAI_BASE_URL={}", mock.base(scene));
                println!("ANTHROPIC_BASE_URL={}", mock.base(scene).trim_end_matches("/v1"));
                loop {
                    std::thread::park();
                }
            }
        }
    }
}
