//! The `haft` program: one file per command.

mod cli;
mod commands;
mod output;
mod session;
mod terminal;

use std::process::ExitCode;

use clap::Parser;
use haft_system::Environment;

use crate::{
    cli::{Cli, Command},
    output::err,
};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let environment = Environment::capture();
    start_log(&environment);
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            err(format_args!("haft: no threads to be had: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(dispatch(cli, environment));
    // A reader of standard input may still be blocked in a thread of its own.
    runtime.shutdown_background();
    match result {
        Ok(code) => code,
        Err(error) => {
            err(format_args!("haft: {error:#}"));
            ExitCode::from(output::USAGE)
        }
    }
}

async fn dispatch(cli: Cli, environment: Environment) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Chat(arguments) => commands::chat::chat(environment, arguments).await,
        Command::Run(arguments) => commands::run::run(environment, arguments).await,
        Command::Tool(arguments) => commands::tool::tool(environment, arguments).await,
        Command::Console(arguments) => commands::console::console(environment, arguments).await,
        Command::Tools(arguments) => commands::tools::tools(environment, arguments).await,
        Command::Config(arguments) => commands::config::config(&environment, &arguments),
        Command::Doctor(arguments) => commands::doctor::doctor(&environment, &arguments).await,
        Command::Conversations(arguments) => {
            commands::conversations::conversations(environment, arguments).await
        }
        Command::Export(arguments) => commands::export::export(environment, arguments).await,
        Command::Demo(arguments) => commands::demo::demo(environment, arguments).await,
    }
}

/// Diagnostics go to standard error when `HAFT_LOG` asks for them (`HAFT_LOG=debug`, `HAFT_LOG=haft_model=trace`).
fn start_log(environment: &Environment) {
    let Some(filter) = environment.get("HAFT_LOG") else { return };
    let filter = tracing_subscriber::EnvFilter::new(filter);
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}
