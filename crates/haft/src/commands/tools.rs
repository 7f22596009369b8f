//! `haft tools`: what there is and who sees it.

use std::process::ExitCode;

use haft_system::Environment;

use crate::{cli, output::out, session};

/// Lists the tools of the surface, or explains all of them.
pub(crate) async fn tools(environment: Environment, arguments: cli::Tools) -> anyhow::Result<ExitCode> {
    let (host, conversation) = session::open(&environment, &arguments.place).await?;
    let (explained, tools) = (conversation.explain(), conversation.tools());
    conversation.close().await?;
    host.shutdown().await;
    match (arguments.explain, arguments.json) {
        (true, true) => out(serde_json::to_string_pretty(&explained)?)?,
        (false, true) => out(serde_json::to_string_pretty(&tools)?)?,
        (true, false) => {
            let width = explained.iter().map(|tool| tool.name.len()).max().unwrap_or(0);
            for tool in explained {
                let state = match &tool.why_not {
                    None => "registered".to_owned(),
                    Some(why) => format!("not registered: {why}"),
                };
                let surfaces: Vec<String> = tool.surfaces.iter().map(ToString::to_string).collect();
                let seen = if tool.registered { "seen by" } else { "would be seen by" };
                out(format_args!(
                    "{:width$}  {:5}  {state}; {seen} {}",
                    tool.name,
                    tool.tier,
                    surfaces.join(", ")
                ))?;
            }
        }
        (false, false) => {
            let width = tools.iter().map(|tool| tool.name.len()).max().unwrap_or(0);
            for tool in tools {
                let first = tool.description.split_inclusive(". ").next().unwrap_or_default().trim();
                out(format_args!("{:width$}  {:5}  {first}", tool.name, tool.tier))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
