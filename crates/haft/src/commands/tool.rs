//! `haft tool NAME '{…}'`: one call by hand, without a model.

use std::{
    io::{IsTerminal, Read},
    process::ExitCode,
    sync::Arc,
    time::Instant,
};

use anyhow::Context;
use haft_structure::{AstGrep, tools::for_terminal};
use haft_system::Environment;
use haft_tool::{Content, Origin, Outcome, Tool as _};
use serde_json::{Value, json};

use super::console::answer;
use crate::{
    cli,
    output::{self, FAILED, out},
    session,
    terminal::{Input, Running, answer_cards, colours, table},
};

/// Makes the call and prints its answer; the exit code says whether it failed.
pub(crate) async fn tool(environment: Environment, arguments: cli::Tool) -> anyhow::Result<ExitCode> {
    let text = if arguments.arguments == "-" {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text).context("standard input cannot be read")?;
        text
    } else {
        arguments.arguments
    };
    let call: Value = serde_json::from_str(&text).with_context(|| {
        format!("the arguments are not JSON. They are written as one object: haft tool {} '{{\"field\": \"value\"}}'", arguments.name)
    })?;
    let cancel = session::until_signal()?;
    let (host, conversation) = session::open(&environment, &arguments.place).await?;
    let conversation = Arc::new(conversation);
    // Whoever types a call can also be asked whether it may be made.
    let person = if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        let running = Running::default();
        running.set(Some(cancel.clone()));
        Some(answer_cards(conversation.clone(), Input::start(None)?, running))
    } else {
        None
    };
    let begin = Instant::now();
    let outcome = conversation.call(&arguments.name, call, Origin::Console, cancel.clone()).await;
    drop(person);
    conversation.close().await?;
    host.shutdown().await;
    let failed = outcome.is_error;
    if arguments.json {
        out(answer(&json!(1), Some(&arguments.name), outcome, begin))?;
    } else if arguments.name == AstGrep::NAME && colours(&environment) {
        out(for_terminal(&outcome).trim_end_matches('\n'))?;
    } else {
        print(&outcome)?;
    }
    Ok(if cancel.is_cancelled() {
        ExitCode::from(output::INTERRUPTED)
    } else if failed {
        ExitCode::from(FAILED)
    } else {
        ExitCode::SUCCESS
    })
}

fn print(outcome: &Outcome) -> std::io::Result<()> {
    for piece in &outcome.content {
        match piece {
            Content::Text { text } => out(text.trim_end_matches('\n'))?,
            Content::Image { mime, data } => {
                out(format_args!("[a picture: {mime}, {} bytes; --json has it]", data.len()))?
            }
            Content::Table { columns, rows } => out(table(columns, rows))?,
        }
    }
    Ok(())
}
