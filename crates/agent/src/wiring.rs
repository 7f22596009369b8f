//! Which tools a run has. Explicit: a tool exists when the resources it stands on were given (SPEC R2).

use std::sync::Arc;

use haft_files::{ApplyPatch, Edit, Glob, Jobs, Read, Reads, Search, Shell, Write};
use haft_system::{Changes, Supervisor, Workdir};
use haft_tool::{Family, Registry, RegistryBuilder, Tier};

/// What a run was given.
pub(crate) struct Resources {
    pub(crate) workdir: Option<Workdir>,
    pub(crate) changes: Option<Changes>,
    pub(crate) reads: Reads,
    pub(crate) supervisor: Option<Supervisor>,
    pub(crate) jobs: Option<Arc<Jobs>>,
}

/// The known tools, registered or noted with the reason why not. Their order is what models see; new ones go to the end.
pub(crate) fn tools(resources: Resources) -> RegistryBuilder {
    let Resources { workdir, changes, reads, supervisor, jobs } = resources;
    let mut builder = Registry::builder();
    let general = Family::General;
    match &workdir {
        Some(workdir) => {
            builder = builder
                .tool(Read::new(workdir.clone(), reads.clone()), general)
                .tool(Glob::new(workdir.clone()), general)
                .tool(Search::new(workdir.clone()), general);
        }
        None => {
            for name in ["read", "glob", "search"] {
                builder = builder.absent(name, Tier::Read, general, "the run has no working directory");
            }
        }
    }
    match changes {
        Some(changes) => {
            builder = builder
                .tool(Write::new(changes.clone(), reads.clone()), general)
                .tool(Edit::new(changes.clone(), reads.clone()), general)
                .tool(ApplyPatch::new(changes, reads), general);
        }
        None => {
            for name in ["write", "edit", "apply_patch"] {
                builder =
                    builder.absent(name, Tier::Write, general, "the run has no change set to write through");
            }
        }
    }
    match (workdir, supervisor, jobs) {
        (Some(workdir), Some(supervisor), Some(jobs)) => {
            builder.tool(Shell::new(supervisor, workdir, jobs), general)
        }
        _ => builder.absent(
            "shell",
            Tier::Exec,
            general,
            "the run lacks a process supervisor, a working directory or a place for background jobs",
        ),
    }
}
