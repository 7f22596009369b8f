//! `haft doctor`: what is there for this checkout, what is missing, and the command that brings it.

use std::{path::Path, process::ExitCode};

use haft_agent::config::Config;
use haft_debug::{AdapterReport, Debugger};
use haft_system::{Environment, Supervisor, Workdir};

use super::doctor_servers;
use crate::{
    cli,
    output::{FAILED, out},
    session,
};

/// One thing that was looked at.
struct Check {
    what: &'static str,
    state: State,
    detail: String,
}

enum State {
    Good,
    /// Something will not work until it is put right.
    Missing {
        remedy: String,
    },
    /// Worth knowing; everything works without.
    Note,
    /// Something more would work with this.
    Offer {
        remedy: String,
    },
}

/// Looks, and says what it saw. Fails when something that a run needs is missing.
pub(crate) async fn doctor(environment: &Environment, arguments: &cli::Doctor) -> anyhow::Result<ExitCode> {
    let config = session::load_config(environment, &arguments.place.dir, &arguments.place.models)?;
    let directory = environment.directory().join(&arguments.place.dir);
    let mut checks = vec![
        state(environment),
        program(environment, "bash", "the `shell` tool runs commands with it", true),
    ];
    checks.push(program(environment, "git", "models use it to see what changed", false));
    checks.push(repository(&directory));
    checks.push(model(&config));
    for server in doctor_servers::servers(environment, &config, &directory, arguments.install).await? {
        let state = match (server.usable, server.remedy) {
            (true, _) => State::Good,
            (false, Some(remedy)) => State::Offer { remedy },
            (false, None) => State::Note,
        };
        checks.push(Check { what: "language", state, detail: server.detail });
    }
    checks.extend(debuggers(environment, &directory).await?);
    for warning in config.warnings() {
        checks.push(Check { what: "settings", state: State::Note, detail: warning.clone() });
    }
    let mut missing = false;
    for check in checks {
        let (sign, remedy) = match &check.state {
            State::Good => ("ok     ", None),
            State::Missing { remedy } => ("missing", Some(remedy)),
            State::Note => ("note   ", None),
            State::Offer { remedy } => {
                out(format_args!("note     {:9}  {}", check.what, check.detail))?;
                out(format_args!("                    → {remedy}"))?;
                continue;
            }
        };
        out(format_args!("{sign}  {:9}  {}", check.what, check.detail))?;
        if let Some(remedy) = remedy {
            missing = true;
            out(format_args!("                    → {remedy}"))?;
        }
    }
    Ok(if missing { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// The debug adapters, as the tool's `adapters` has them.
async fn debuggers(environment: &Environment, directory: &Path) -> anyhow::Result<Vec<Check>> {
    let workdir = Workdir::new(directory)?;
    let processes = Supervisor::new(environment.clone());
    let reports = Debugger::new(processes.clone(), workdir.clone()).adapters().await;
    processes.shutdown().await;
    Ok(reports.into_iter().map(|report| debugger(report, &workdir)).collect())
}

fn debugger(report: AdapterReport, workdir: &Workdir) -> Check {
    let found = [
        report.marker.as_ref().map(|marker| workdir.show(marker)),
        report.binary.as_ref().map(|binary| binary.display().to_string()),
        report.probe,
    ];
    let found: Vec<String> = found.into_iter().flatten().collect();
    let mut detail = report.id.to_owned();
    if !found.is_empty() {
        detail.push_str(&format!(" ({})", found.join(", ")));
    }
    if !report.why_not.is_empty() {
        detail.push_str(&format!(": {}", report.why_not.join("; ")));
    }
    let state = match (report.why_not.is_empty(), report.install) {
        (true, _) => State::Good,
        // Nothing here would be debugged with it.
        (false, Some(remedy)) if report.marker.is_some() => State::Offer { remedy },
        (false, _) => State::Note,
    };
    Check { what: "debugger", state, detail }
}

fn state(environment: &Environment) -> Check {
    let what = "state";
    let Some(directory) = environment.state_dir() else {
        return Check {
            what,
            state: State::Missing { remedy: "set HAFT_STATE_DIR, or HOME".into() },
            detail: "there is no place to keep transcripts".into(),
        };
    };
    // The nearest directory that exists has to take the others.
    let existing = directory.ancestors().find(|path| path.exists()).unwrap_or(&directory);
    let writable = rustix::fs::access(existing, rustix::fs::Access::WRITE_OK).is_ok();
    let detail = format!("transcripts are kept in {}", directory.display());
    let state = if writable {
        State::Good
    } else {
        State::Missing { remedy: format!("make {} writable, or set HAFT_STATE_DIR", existing.display()) }
    };
    Check { what, state, detail }
}

fn program(environment: &Environment, name: &'static str, why: &str, needed: bool) -> Check {
    match environment.find_program(name) {
        Some(path) => Check { what: name, state: State::Good, detail: path.display().to_string() },
        None => Check {
            what: name,
            state: if needed {
                State::Missing { remedy: format!("install {name} with your system's package manager") }
            } else {
                State::Note
            },
            detail: format!("not on PATH; {why}"),
        },
    }
}

fn repository(directory: &Path) -> Check {
    let what = "checkout";
    match directory.canonicalize() {
        Ok(real) => {
            let detail = match real.ancestors().find(|path| path.join(".git").exists()) {
                Some(root) => format!("{} in the repository {}", real.display(), root.display()),
                None => format!(
                    "{}, which is in no git repository: changes cannot be compared or taken back with git",
                    real.display()
                ),
            };
            Check { what, state: State::Good, detail }
        }
        Err(error) => Check {
            what,
            state: State::Missing { remedy: "name a directory that exists with --dir".into() },
            detail: format!("{}: {error}", directory.display()),
        },
    }
}

fn model(config: &Config) -> Check {
    let what = "model";
    if config.model().is_none() {
        return Check {
            what,
            state: State::Missing {
                remedy: "export ANTHROPIC_API_KEY=… and use --model anthropic/NAME; docs/models.md has the other ways".into(),
            },
            detail: "none is configured".into(),
        };
    }
    match session::open_model(config, None) {
        Ok(model) => Check {
            what,
            state: State::Good,
            detail: format!(
                "{} (settings are there; whether the provider takes the key shows at the first question)",
                model.name()
            ),
        },
        Err(error) => Check {
            what,
            state: State::Missing { remedy: "see `haft config` for where the setting comes from".into() },
            detail: format!("{error:#}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_debug_adapter_is_shown_with_both_halves_its_probe_and_what_installs_it() {
        let directory = tempfile::tempdir().unwrap();
        let workdir = Workdir::new(directory.path()).unwrap();
        let shown = |marker: Option<&str>, binary: Option<&str>, why_not: &[&str]| {
            let check = debugger(
                AdapterReport {
                    id: "lldb",
                    marker: marker.map(|name| workdir.root().join(name)),
                    binary: binary.map(Into::into),
                    probe: binary.map(|_| "processes may be traced".into()),
                    why_not: why_not.iter().map(|why| (*why).to_owned()).collect(),
                    install: binary.is_none().then(|| "apt-get install lldb".into()),
                },
                &workdir,
            );
            let state = match check.state {
                State::Good => "good".to_owned(),
                State::Note => "note".to_owned(),
                State::Missing { remedy } => format!("missing: {remedy}"),
                State::Offer { remedy } => format!("offer: {remedy}"),
            };
            (state, check.detail)
        };
        assert_eq!(
            [
                shown(Some("Cargo.toml"), Some("/usr/bin/lldb-dap"), &[]),
                shown(Some("Cargo.toml"), None, &["no `lldb-dap` on PATH"]),
                shown(None, None, &["no root marker here", "no `lldb-dap` on PATH"]),
            ],
            [
                ("good".into(), "lldb (Cargo.toml, /usr/bin/lldb-dap, processes may be traced)".into()),
                ("offer: apt-get install lldb".into(), "lldb (Cargo.toml): no `lldb-dap` on PATH".into()),
                ("note".into(), "lldb: no root marker here; no `lldb-dap` on PATH".into()),
            ]
        );
    }
}
