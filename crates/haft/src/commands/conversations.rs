//! `haft conversations`: what can be gone on with.

use std::process::ExitCode;

use haft_agent::Host;
use haft_system::{Environment, clock};

use crate::{cli, output::out, session};

/// Lists conversations, the last used first.
pub(crate) async fn conversations(
    environment: Environment,
    arguments: cli::Conversations,
) -> anyhow::Result<ExitCode> {
    let host = Host::open(environment).await?;
    let mut all = host.store().conversations(arguments.space.as_deref()).await?;
    if !arguments.all {
        all.retain(|record| !session::is_helper(record));
    }
    if arguments.json {
        for record in &all {
            out(serde_json::to_string(record)?)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if all.is_empty() {
        out("No conversations yet: `haft chat` or `haft run TASK` starts one.")?;
    }
    let now = clock::now_ms();
    for record in &all {
        let title = if record.title.is_empty() { "(no title)" } else { &record.title };
        out(format_args!(
            "{}  {:>9} ago  {:>6} events  {}  {title}",
            record.id,
            age(now - record.updated_at_ms),
            record.last_sequence,
            record.directory,
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn age(ms: i64) -> String {
    match ms.max(0) / 1000 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds @ 3600..86_400 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}
