//! `haft demo`: a whole run on a sample project, played from a script through the real tools.

use std::{path::Path, process::ExitCode};

use anyhow::Context;
use haft_agent::RunEnd;
use haft_system::Environment;

use crate::{
    cli::{self, ApproveFlag, DemoKind},
    output::{code_of, err, out},
};

/// The sample project, `examples/parcel` in the source tree.
const FILES: [(&str, &str); 6] = [
    ("Cargo.toml", include_str!("../../../../examples/parcel/Cargo.toml")),
    ("README.md", include_str!("../../../../examples/parcel/README.md")),
    ("CHANGES.md", include_str!("../../../../examples/parcel/CHANGES.md")),
    ("haft.toml", include_str!("../../../../examples/parcel/haft.toml")),
    ("src/lib.rs", include_str!("../../../../examples/parcel/src/lib.rs")),
    ("src/rates.rs", include_str!("../../../../examples/parcel/src/rates.rs")),
];

/// What the model says and calls in it.
const SCRIPT: &str = include_str!("../../../../examples/parcel.jsonl");

/// Makes the sample project in a directory of its own, lets the script run on it and takes the directory away again.
pub(crate) async fn demo(environment: Environment, arguments: cli::Demo) -> anyhow::Result<ExitCode> {
    let place = environment.temp_dir().join(format!("haft-demo-{}", std::process::id()));
    let project = place.join("parcel");
    make(&project)?;
    let script = place.join("parcel.jsonl");
    std::fs::write(&script, SCRIPT).with_context(|| format!("{} cannot be written", script.display()))?;
    // The demo's transcript is its own: it must not turn up among the person's conversations.
    let own = environment.with("HAFT_STATE_DIR", place.join("state"));
    err(format_args!(
        "A sample project with a failing test is in {}.\nThe model is a script; the tools, the guardrails and the transcript are real.\n",
        project.display()
    ));
    if let DemoKind::Workers = arguments.which {
        let end = super::demo_workers::play(own, &place, &project).await;
        clear(&place, &project, arguments.keep)?;
        let end = end?;
        if let RunEnd::Failed { error } | RunEnd::Stopped { why: error } = &end {
            err(format_args!("haft: {error}"));
        }
        out(MORE)?;
        return Ok(ExitCode::from(code_of(&end)));
    }
    if environment.find_program("cargo").is_none() {
        err(
            "cargo is not on PATH: the tests of the sample project cannot run, and the script will say so.\n",
        );
    }
    let run = cli::Run {
        place: cli::Place {
            dir: project.clone(),
            mode: None,
            approve: ApproveFlag::All,
            space: "demo".into(),
            models: cli::Models {
                model: Some(format!("script:{}", script.display())),
                fast: None,
                good: None,
            },
        },
        which: cli::Which { resume: None, go_on: false },
        json: false,
        record: None,
        image: Vec::new(),
        task: vec![
            "A test of this project fails. Find out why, mend it and make sure that it stays mended.".into(),
        ],
    };
    err(format_args!("› {}\n", run.task.join(" ")));
    let code = super::run::run(own, run).await;
    clear(&place, &project, arguments.keep)?;
    out(MORE)?;
    code
}

fn clear(place: &Path, project: &Path, keep: bool) -> anyhow::Result<()> {
    if keep {
        err(format_args!("\nThe project was left in {}", project.display()));
        return Ok(());
    }
    std::fs::remove_dir_all(place).with_context(|| format!("{} cannot be removed", place.display()))
}

const MORE: &str = "
What else there is to see:
  haft demo workers                             a director with three workers, a question, a permission and a kill
  haft chat                                     the same with a model of yours (`haft doctor` says what it needs)
  haft tool search '{\"pattern\": \"TODO\"}'        one call by hand, no model
  haft tools --explain                          every tool, and who sees it
  haft run --mode plan \"…\"                      a run that can look and change nothing
  haft demo --keep                              leaves the sample project for you to try things on";

fn make(project: &Path) -> anyhow::Result<()> {
    for (name, text) in FILES {
        let path = project.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)
                .with_context(|| format!("{} cannot be made", parent.display()))?;
        }
        std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(())
}
