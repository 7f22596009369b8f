//! `haft config`: the settings, where each comes from, and trust in a project's own.

use std::process::ExitCode;

use haft_system::Environment;

use crate::{
    cli::{self, ConfigAction},
    output::{err, out},
    session,
};

/// Shows the settings, or changes whether this project's are trusted.
pub(crate) fn config(environment: &Environment, arguments: &cli::Config) -> anyhow::Result<ExitCode> {
    let config = session::load_config(environment, &arguments.place.dir, &arguments.place.models)?;
    match arguments.action {
        Some(ConfigAction::Trust) => out(config.trust(environment)?)?,
        Some(ConfigAction::Distrust) => out(config.distrust(environment)?)?,
        None if arguments.json => out(serde_json::to_string_pretty(&config.explain())?)?,
        None => {
            let settings = config.explain();
            let key = settings.iter().map(|setting| setting.key.len()).max().unwrap_or(0);
            let value =
                settings.iter().map(|setting| setting.value.chars().count()).max().unwrap_or(0).min(60);
            for setting in settings {
                let note = setting.note.map(|note| format!("  ({note})")).unwrap_or_default();
                out(format_args!(
                    "{:key$}  {:value$}  {}{note}",
                    setting.key, setting.value, setting.origin
                ))?;
            }
            for warning in config.warnings() {
                err(format_args!("· {warning}"));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
