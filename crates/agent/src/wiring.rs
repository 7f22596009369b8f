//! Which tools a run has. Explicit: a tool exists when the resources it stands on were given (SPEC R2).

use std::{sync::Arc, time::Duration};

use haft_debug::{Debug, Debugger};
use haft_files::{ApplyPatch, Edit, Glob, Jobs, Read, Reads, Search, Shell, Write};
use haft_kernel::{Eval, Kernels};
use haft_lsp::{Checkout, Lsp, LspRename, Stage};
use haft_structure::{AstEdit, AstGrep, Engine, Resolve, Staging};
use haft_system::{ChangeSet, Changes, Supervisor, Workdir};
use haft_tool::{Family, Registry, RegistryBuilder, Tier, Tool, ToolError};

use crate::{
    ask_user::AskUser,
    cards::Cards,
    explore::Explore,
    helper::Nursery,
    vibe::{Roster, VibeKill, VibeList, VibeSend, VibeSpawn, VibeWait},
};

/// What a run was given.
pub(crate) struct Resources {
    pub(crate) workdir: Option<Workdir>,
    pub(crate) changes: Option<Changes>,
    pub(crate) reads: Reads,
    pub(crate) supervisor: Option<Supervisor>,
    pub(crate) jobs: Option<Arc<Jobs>>,
    /// The time-out of commands that do not name one, where the settings do.
    pub(crate) shell_time: Option<Duration>,
    pub(crate) parser: Option<Arc<Engine>>,
    pub(crate) staging: Option<Arc<Staging>>,
    /// The question port.
    pub(crate) questions: Option<Questions>,
    /// The space whose people are asked.
    pub(crate) space: Option<String>,
    /// Makes explorers.
    pub(crate) helpers: Option<Nursery>,
    pub(crate) roster: Option<Arc<Roster>>,
    /// The language servers of the working directory, or why there are none.
    pub(crate) checkout: Result<Checkout, String>,
    /// The conversation's debug session.
    pub(crate) debugger: Option<Arc<Debugger>>,
    /// The conversation's kernels.
    pub(crate) kernels: Option<Arc<Kernels>>,
}

/// Whom questions go to, in whose name, and for how long.
pub(crate) struct Questions {
    pub(crate) cards: Arc<Cards>,
    pub(crate) from: String,
    pub(crate) time: Duration,
}

impl Resources {
    /// Without everything that changes, starts or asks something: an explorer cannot be given by mistake what it must not have (SPEC R4).
    pub(crate) fn reads_only(self) -> Self {
        Resources {
            changes: None,
            supervisor: None,
            jobs: None,
            staging: None,
            questions: None,
            helpers: None,
            roster: None,
            debugger: None,
            kernels: None,
            ..self
        }
    }
}

/// The known tools, registered or noted with the reason why not. Their order is what models see; new ones go to the end.
pub(crate) fn tools(resources: Resources) -> RegistryBuilder {
    let people = (resources.questions, resources.space);
    let (helpers, roster, debugger) = (resources.helpers, resources.roster, resources.debugger);
    let kernels = resources.kernels;
    let Resources { workdir, changes, reads, supervisor, jobs, shell_time, parser, staging, .. } = resources;
    let servers = (resources.checkout, changes.clone(), staging.clone());
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
            let mut shell = Shell::new(supervisor, workdir, jobs);
            if let Some(time) = shell_time {
                shell = shell.with_time(time);
            }
            builder.tool(shell, general)
        }
        _ => builder.absent(
            "shell",
            Tier::Exec,
            general,
            "the run lacks a process supervisor, a working directory or a place for background jobs",
        ),
    };
    let builder = structure(builder, workdir, changes, parser, staging);
    let builder = debug(workers(explorers(questions(builder, people), helpers), roster), debugger);
    eval(language_servers(builder, servers), kernels)
}

/// `eval` ← kernel factory (SPEC R2).
fn eval(builder: RegistryBuilder, kernels: Option<Arc<Kernels>>) -> RegistryBuilder {
    match kernels {
        Some(kernels) => builder.tool(Eval::new(kernels), Family::Workshop),
        None => builder.absent(Eval::NAME, Tier::Exec, Family::Workshop, "the run has no kernels"),
    }
}

/// `lsp`, `lsp_rename` ← language-server supervisor and working directory; edits also need a change set (SPEC R2).
fn language_servers(
    builder: RegistryBuilder,
    (checkout, changes, staging): (Result<Checkout, String>, Option<Changes>, Option<Arc<Staging>>),
) -> RegistryBuilder {
    let family = Family::Workshop;
    let checkout = match checkout {
        Ok(checkout) => checkout,
        Err(why) => {
            return builder.absent(Lsp::NAME, Tier::Read, family, why.clone()).absent(
                LspRename::NAME,
                Tier::Write,
                family,
                why,
            );
        }
    };
    let mut lsp = Lsp::new(checkout.clone());
    if let (Some(changes), Some(staging)) = (&changes, staging) {
        lsp = lsp.staging(changes.clone(), Arc::new(Proposals(staging)));
    }
    let builder = builder.tool(lsp, family);
    match changes {
        Some(changes) => builder.tool(LspRename::new(checkout, changes), family),
        None => {
            builder.absent(LspRename::NAME, Tier::Write, family, "the run has no change set to write through")
        }
    }
}

/// Code actions wait where structural edits wait (SPEC A9).
struct Proposals(Arc<Staging>);

impl Stage for Proposals {
    fn stage(&self, set: ChangeSet, origin: String) -> Result<String, ToolError> {
        Ok(self.0.stage(set, origin)?.edit_id)
    }
}

/// `debug` ← a debugger, which stands on a process supervisor, a working directory and a conversation.
fn debug(builder: RegistryBuilder, debugger: Option<Arc<Debugger>>) -> RegistryBuilder {
    match debugger {
        Some(debugger) => builder.tool(Debug::new(debugger), Family::Workshop),
        None => builder.absent("debug", Tier::Exec, Family::Workshop, "the run has no debugger"),
    }
}

/// `ask_user` ← question port and a space, both (SPEC R2).
fn questions(builder: RegistryBuilder, people: (Option<Questions>, Option<String>)) -> RegistryBuilder {
    match people {
        (Some(Questions { cards, from, time }), Some(_)) => {
            builder.tool(AskUser::new(cards, from, time), Family::Others)
        }
        (None, _) => builder.absent("ask_user", Tier::Read, Family::Others, "the run has no question port"),
        (_, None) => builder.absent(
            "ask_user",
            Tier::Read,
            Family::Others,
            "the run is in no space, so nobody sees it",
        ),
    }
}

/// `explore` ← a way to make helpers, and a model for them.
fn explorers(builder: RegistryBuilder, helpers: Option<Nursery>) -> RegistryBuilder {
    let why = match helpers {
        Some(helpers) if helpers.config.fast().is_some() => {
            return builder.tool(Explore::new(helpers), Family::Others);
        }
        Some(_) => {
            "no model is configured for explorers: `models.fast` or `models.default`, --fast or --model"
        }
        None => "an explorer has no explorers",
    };
    builder.absent("explore", Tier::Read, Family::Others, why)
}

/// `vibe_*` ← roster; only the surface of vibe mode sees them (SPEC R2).
fn workers(builder: RegistryBuilder, roster: Option<Arc<Roster>>) -> RegistryBuilder {
    let family = Family::Workers;
    match roster {
        Some(roster) => builder
            .tool(VibeSpawn(roster.clone()), family)
            .tool(VibeSend(roster.clone()), family)
            .tool(VibeWait(roster.clone()), family)
            .tool(VibeKill(roster.clone()), family)
            .tool(VibeList(roster), family),
        None => ["vibe_spawn", "vibe_send", "vibe_wait", "vibe_kill", "vibe_list"]
            .into_iter()
            .fold(builder, |builder, name| {
                builder.absent(name, Tier::Read, family, "helpers have no workers of their own")
            }),
    }
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
