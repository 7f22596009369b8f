//! `ast_edit`: proposes a rewrite of every place that a pattern matches (SPEC A5, A6). Nothing is written.

use std::{fmt::Write, path::PathBuf, sync::Arc};

use haft_system::{Before, Captured, Change, ChangeSet, Changes, Workdir};
use haft_tool::{Access, Context, Output, Tier, Tool, ToolError, Touch};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    blocking, language,
    show::{self, plural},
};
use crate::{
    limits::{DIFF_WHOLE_BYTES, MAX_STAGED_BYTES},
    matcher::find,
    pattern::Compiled,
    rewrite::{Template, TemplateError},
    search::{Effort, Engine, LanguageRead, Query, Seen, Skipped, Visit, cut, prepare, run},
    staging::{Staging, change_diff, cut_for_model},
};

mod one;

use one::{Outcome, Proposed};

/// Proposes a rewrite of every place that a pattern matches.
pub struct AstEdit {
    workdir: Workdir,
    changes: Changes,
    engine: Arc<Engine>,
    staging: Arc<Staging>,
}

/// What `ast_edit` is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AstEditArguments {
    /// A fragment of code, as for `ast_grep`: `$NAME` any one node, `$$$NAME` a run of siblings.
    pattern: String,
    /// What each match becomes; `$NAME` and `$$$NAME` of the pattern are put in. Empty removes the match (a whole statement with its line).
    rewrite: String,
    /// File or directory; the whole working directory by default.
    path: Option<String>,
    /// Files of this language only.
    language: Option<String>,
}

impl AstEdit {
    /// Proposes changes to files of `workdir` and keeps them in `staging`; `changes` captures what the files hold.
    pub fn new(workdir: Workdir, changes: Changes, engine: Arc<Engine>, staging: Arc<Staging>) -> Self {
        AstEdit { workdir, changes, engine, staging }
    }
}

impl Tool for AstEdit {
    type Arguments = AstEditArguments;
    const NAME: &'static str = "ast_edit";
    const TIER: Tier = Tier::Write;

    fn description(&self) -> String {
        "Proposes a rewrite of code by its shape: every place that `pattern` matches (as in `ast_grep`) becomes `rewrite`, with `$NAME` and `$$$NAME` put in. \
         Indentation, line ends and captured strings are kept; matches inside a variable's text are rewritten too. NOTHING IS WRITTEN: the answer shows a diff and \
         an `edit_id`; `resolve` accepts or discards it. Use it for the same change in many places."
            .into()
    }

    fn touches(&self, arguments: &AstEditArguments) -> Vec<Touch> {
        vec![Touch::Path(PathBuf::from(arguments.path.as_deref().unwrap_or(".")), Access::Write)]
    }

    async fn call(&self, arguments: AstEditArguments, context: &Context) -> Result<Output, ToolError> {
        let query = Query {
            scope: self.workdir.resolve(arguments.path.as_deref().unwrap_or("."), Access::Read)?,
            language: language(arguments.language.as_deref())?,
            pattern: arguments.pattern.clone(),
            max_results: usize::MAX,
            count_all: true,
        };
        let (engine, workdir) = (Arc::clone(&self.engine), self.workdir.clone());
        let text = arguments.rewrite.clone();
        let worked_out =
            blocking(context, move |cancel| work_out(&engine, &workdir, &query, &text, cancel)).await?;
        let WorkedOut { compiled, .. } = &worked_out;
        let compiled = Arc::clone(compiled);
        let mut staged = Vec::new();
        let mut skipped = worked_out.skipped.clone();
        for planned in worked_out.files {
            if context.cancel.is_cancelled() {
                return Err(ToolError::Cancelled);
            }
            match self.capture(planned, &compiled, context).await? {
                Ok(proposed) => staged.push(proposed),
                Err(left_out) => skipped.push(left_out),
            }
        }
        skipped.sort();
        let origin = format!("ast_edit `{}` → `{}`", brief(&arguments.pattern), brief(&arguments.rewrite));
        let notes = Notes {
            read: worked_out.read,
            not_read: worked_out.not_read,
            skipped,
            searched: worked_out.searched,
        };
        self.answer(staged, notes, origin)
    }
}

fn brief(text: &str) -> String {
    cut(text.lines().map(str::trim).collect::<Vec<_>>().join(" ").as_bytes(), 60)
}

/// A pattern of one language with the template that replaces it.
struct Rewriter {
    compiled: Compiled,
    template: Template,
}

struct WorkedOut {
    compiled: Arc<Vec<Rewriter>>,
    files: Vec<Planned>,
    read: Vec<LanguageRead>,
    not_read: Vec<(&'static str, String)>,
    skipped: Vec<Skipped>,
    searched: usize,
}

/// A file with matches, before it is captured.
struct Planned {
    path: PathBuf,
    rewriter: usize,
    outcome: Outcome,
    before: Vec<u8>,
}

struct Notes {
    read: Vec<LanguageRead>,
    not_read: Vec<(&'static str, String)>,
    skipped: Vec<Skipped>,
    searched: usize,
}

fn work_out(
    engine: &Engine,
    workdir: &Workdir,
    query: &Query,
    rewrite: &str,
    cancel: &CancellationToken,
) -> Result<WorkedOut, ToolError> {
    let prepared = prepare(engine, workdir, query, cancel)?;
    let templates = prepared.compiled.iter().map(|compiled| {
        let bound: Vec<(String, bool)> = compiled.readings[0]
            .variables()
            .iter()
            .map(|variable| (variable.name.clone(), variable.is_run))
            .collect();
        Template::parse(rewrite, &bound)
    });
    let templates: Vec<Template> = templates
        .collect::<Result<_, TemplateError>>()
        .map_err(|error| ToolError::model(error.to_string()))?;
    let plans = prepared.plans(engine);
    let visit = |visit: Visit<'_>| {
        let found = find(&prepared.compiled[visit.plan].readings[0], &visit.parsed.tree, &visit.parsed.text);
        let keep = (!found.matches.is_empty()).then(|| {
            let outcome = one::rewrite_parsed(&visit, &found.matches, &templates[visit.plan], cancel);
            (visit.plan, outcome, visit.bytes.to_vec())
        });
        Seen { matches: found.matches.len(), kept: usize::from(keep.is_some()), keep, gave_up: found.gave_up }
    };
    let mut ran = run(engine, &prepared.listing.files, &plans, usize::MAX, Effort::All, &visit, cancel)?;
    let skipped = prepared.skipped(workdir, &ran);
    let kept = std::mem::take(&mut ran.kept);
    let files: Vec<Planned> = kept
        .into_iter()
        .filter_map(|(index, kept)| {
            let (rewriter, outcome, before) = kept?;
            Some(Planned { path: prepared.listing.files[index].path.clone(), rewriter, outcome, before })
        })
        .collect();
    let bytes: usize = files.iter().map(|file| file.before.len() + file.outcome.bytes()).sum();
    if bytes > MAX_STAGED_BYTES {
        return Err(ToolError::model(format!(
            "The rewrite would hold {} MB of old and new text in {}; at most {} MB can be staged. Do it in parts, with a narrower `path`.",
            bytes >> 20,
            plural(files.len(), "file"),
            MAX_STAGED_BYTES >> 20
        )));
    }
    if files.is_empty() {
        // What a search says that finds nothing is what helps here, too.
        let results = crate::search::search(engine, workdir, query, cancel)?;
        let text = format!("Nothing to rewrite, nothing staged. {}", show::for_model(&results));
        let fields = Value::Object(show::for_programs(&results));
        return Err(ToolError::model(text).with_structured(fields));
    }
    let read = prepared.reads(&ran);
    let searched = ran.searched;
    let not_read = prepared.not_read;
    let compiled = prepared.compiled.into_iter().zip(templates);
    let compiled = compiled.map(|(compiled, template)| Rewriter { compiled, template }).collect();
    Ok(WorkedOut { compiled: Arc::new(compiled), files, read, not_read, skipped, searched })
}

impl AstEdit {
    /// Captures a file and makes sure that what was worked out is about what was captured.
    async fn capture(
        &self,
        planned: Planned,
        rewriters: &Arc<Vec<Rewriter>>,
        context: &Context,
    ) -> Result<Result<(Captured, Proposed), Skipped>, ToolError> {
        let file = self.workdir.show(&planned.path);
        let skip = |reason: String| Ok(Err(Skipped { file: file.clone(), reason }));
        let path = match self.workdir.resolve(&planned.path, Access::Write) {
            Ok(path) => path,
            Err(error) => return skip(format!("not rewritten: {error}")),
        };
        let captured = match self.changes.capture(&path).await {
            Ok(captured) => captured,
            Err(error) => return skip(format!("not rewritten: {error}")),
        };
        let Before::File { bytes, .. } = &captured.before else {
            return skip("not rewritten: it is gone since it was searched".to_owned());
        };
        let outcome = if **bytes == *planned.before {
            planned.outcome
        } else {
            // Somebody wrote it in between: what counts is what was captured.
            let (bytes, rewriters) = (Arc::clone(bytes), Arc::clone(rewriters));
            blocking(context, move |cancel| {
                Ok(one::rewrite_bytes(&bytes, &rewriters[planned.rewriter], cancel))
            })
            .await?
        };
        match outcome {
            Outcome::Proposed(proposed) => Ok(Ok((captured, proposed))),
            Outcome::NoMatch => skip("not rewritten: it has no match any more".to_owned()),
            Outcome::Failed(reason) => skip(format!("not rewritten: {reason}")),
        }
    }

    fn answer(
        &self,
        files: Vec<(Captured, Proposed)>,
        notes: Notes,
        origin: String,
    ) -> Result<Output, ToolError> {
        let mut lines = Vec::new();
        let mut listed = Vec::new();
        let mut changes = Vec::new();
        let (mut replacements, mut unchanged) = (0, 0);
        for (at, proposed) in files {
            if at.before.bytes().is_some_and(|before| **before == *proposed.after) {
                unchanged += proposed.replacements;
                continue;
            }
            let file = at.path.shown.clone();
            if proposed.overlapping > 0 {
                lines.push(format!(
                    "{file}: {} overlapped another outside of its variables and stayed as part of it; search again after accepting.",
                    plural(proposed.overlapping, "match")
                ));
            }
            if proposed.lost_comments > 0 {
                lines.push(format!(
                    "WARNING {file}: {} between the parts of the pattern would go away; look at the diff.",
                    plural(proposed.lost_comments, "comment")
                ));
            }
            if let Some(worse) = &proposed.worse {
                lines.push(format!("WARNING {file}: {worse}"));
            }
            replacements += proposed.replacements;
            listed.push(json!({
                "file": file,
                "change": "modified",
                "replacements": proposed.replacements,
                "parses_worse": proposed.worse.is_some(),
                "lost_comments": proposed.lost_comments,
            }));
            changes.push(Change::Write { at, after: proposed.after });
        }
        if changes.is_empty() {
            let mut text = format!(
                "Nothing staged: every match reads like the rewrite already ({}).",
                plural(unchanged, "match")
            );
            for line in show::footer(&notes.not_read, &notes.skipped) {
                let _ = write!(text, "\n{line}");
            }
            let mut fields = Map::new();
            show::add_skipped(&mut fields, &notes.skipped);
            return Err(ToolError::model(text).with_structured(Value::Object(fields)));
        }
        let diffs: Vec<String> = changes.iter().map(change_diff).collect();
        let (diff, left_out) = cut_for_model(&diffs);
        let count = changes.len();
        let receipt = self.staging.stage(ChangeSet { changes }, origin)?;
        let id = &receipt.edit_id;
        let mut text = format!(
            "(proposed) {id}: {} in {}, {} searched ({}). No file has been changed.\n",
            plural(replacements, "replacement"),
            plural(count, "file"),
            notes.searched,
            show::read_as(&notes.read),
        );
        for line in &lines {
            let _ = writeln!(text, "{line}");
        }
        for line in show::footer(&notes.not_read, &notes.skipped) {
            let _ = writeln!(text, "{line}");
        }
        for (dropped, origin) in &receipt.dropped {
            let _ = writeln!(text, "`{dropped}` ({origin}) was dropped from the staging area to make room.");
        }
        text.push_str(&diff);
        if left_out > 0 {
            let _ = writeln!(text, "… {} of the diff are left out here.", plural(left_out, "more line"));
        }
        let _ = write!(
            text,
            "Call `resolve` with `edit_id` \"{id}\" and `action` \"accept\" to write it, or \"discard\"."
        );
        let whole = diffs.concat();
        let diff_is_cut = whole.len() > DIFF_WHOLE_BYTES;
        let mut fields = Map::new();
        fields.insert("edit_id".into(), json!(id));
        fields.insert("replacements".into(), replacements.into());
        fields.insert("files".into(), listed.into());
        fields.insert("read_as".into(), show::read_as_field(&notes.read).into());
        fields.insert("languages".into(), show::languages(&notes.read));
        fields.insert("not_read".into(), show::not_read(&notes.not_read));
        show::add_skipped(&mut fields, &notes.skipped);
        fields.insert("diff".into(), cut(whole.as_bytes(), DIFF_WHOLE_BYTES).into());
        fields.insert("diff_is_cut".into(), diff_is_cut.into());
        fields.insert(
            "dropped".into(),
            receipt.dropped.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>().into(),
        );
        Ok(Output { structured: fields, ..Output::text(text) })
    }
}
