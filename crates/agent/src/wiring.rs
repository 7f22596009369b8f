//! Which tools a run has. Explicit: a tool exists when the resources it stands on were given (SPEC R2).

use std::sync::Arc;

use haft_files::{ApplyPatch, Edit, Glob, Jobs, Read, Reads, Search, Shell, Write};
use haft_structure::{AstEdit, AstGrep, Engine, Resolve, Staging};
use haft_system::{Changes, Supervisor, Workdir};
use haft_tool::{Family, Registry, RegistryBuilder, Tier};

/// What a run was given.
pub(crate) struct Resources {
    pub(crate) workdir: Option<Workdir>,
    pub(crate) changes: Option<Changes>,
    pub(crate) reads: Reads,
    pub(crate) supervisor: Option<Supervisor>,
    pub(crate) jobs: Option<Arc<Jobs>>,
    pub(crate) parser: Option<Arc<Engine>>,
    pub(crate) staging: Option<Arc<Staging>>,
}

/// The known tools, registered or noted with the reason why not. Their order is what models see; new ones go to the end.
pub(crate) fn tools(resources: Resources) -> RegistryBuilder {
    let Resources { workdir, changes, reads, supervisor, jobs, parser, staging } = resources;
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
    match changes.clone() {
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
    builder = match (workdir.clone(), supervisor, jobs) {
        (Some(workdir), Some(supervisor), Some(jobs)) => {
            builder.tool(Shell::new(supervisor, workdir, jobs), general)
        }
        _ => builder.absent(
            "shell",
            Tier::Exec,
            general,
            "the run lacks a process supervisor, a working directory or a place for background jobs",
        ),
    };
    structure(builder, workdir, changes, parser, staging)
}

/// `ast_grep` ← parser; `ast_edit`, `resolve` ← parser and staging area (SPEC R2).
fn structure(
    builder: RegistryBuilder,
    workdir: Option<Workdir>,
    changes: Option<Changes>,
    parser: Option<Arc<Engine>>,
    staging: Option<Arc<Staging>>,
) -> RegistryBuilder {
    let workshop = Family::Workshop;
    let builder = match (workdir.clone(), parser.clone()) {
        (Some(workdir), Some(parser)) => builder.tool(AstGrep::new(workdir, parser), workshop),
        _ => builder.absent(
            "ast_grep",
            Tier::Read,
            workshop,
            "the run lacks a syntax parser or a working directory",
        ),
    };
    match (workdir, changes, parser, staging) {
        (Some(workdir), Some(changes), Some(parser), Some(staging)) => builder
            .tool(AstEdit::new(workdir, changes.clone(), parser, staging.clone()), workshop)
            .tool(Resolve::new(changes, staging), workshop),
        _ => {
            let why = "the run lacks a syntax parser, a staging area or a change set to write through";
            builder.absent("ast_edit", Tier::Write, workshop, why).absent(
                "resolve",
                Tier::Write,
                workshop,
                why,
            )
        }
    }
}
