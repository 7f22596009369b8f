//! `lsp_rename` (SPEC N1, N2): its own tool because it writes. The server says what has to change; it is checked as a whole and committed all or nothing.

mod elsewhere;
mod names;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_system::{Changes, Committed, PathState};
use haft_tool::{Access, Context, Output, Tier, Tool, ToolError, Touch};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Checkout, Document, Server,
    limits::{READY, RENAME},
    position::{Position, Range},
    ready::{self, Wait},
    tool::{
        ask::{failed, left_out, offered, sync},
        target::{self, Target},
    },
    workspace_edit::{EditPlan, Open, Planner, Step, WorkspaceEdit},
};

/// Renames a symbol wherever it is used.
pub struct LspRename {
    checkout: Checkout,
    changes: Changes,
}

/// What is to be renamed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LspRenameArguments {
    /// Path in the working directory.
    file: String,
    /// 1-based line that the symbol stands on.
    line: u32,
    /// The name as it stands on that line; `name#2` for its second occurrence.
    symbol: String,
    /// The new name.
    new_name: String,
}

impl LspRename {
    /// Asks the servers of `checkout` and writes through `changes`.
    pub fn new(checkout: Checkout, changes: Changes) -> Self {
        LspRename { checkout, changes }
    }
}

impl Tool for LspRename {
    type Arguments = LspRenameArguments;
    const NAME: &'static str = "lsp_rename";
    const TIER: Tier = Tier::Write;

    fn description(&self) -> String {
        "Renames a symbol in the whole project through the language server: definition, imports and uses, not comments or strings. All files \
         are written or none. Use it instead of editing each place."
            .into()
    }

    fn touches(&self, arguments: &LspRenameArguments) -> Vec<Touch> {
        vec![Touch::Path(PathBuf::from(&arguments.file), Access::Write)]
    }

    async fn call(&self, arguments: LspRenameArguments, context: &Context) -> Result<Output, ToolError> {
        let plan = tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(ToolError::Cancelled),
            plan = self.plan(&arguments) => plan?,
        };
        let committed = self.changes.commit(plan.edit.set.clone(), Self::NAME).await?;
        let left = remove_emptied(&plan.edit.emptied);
        answer(&plan, &arguments.new_name, committed, &left)
    }
}

/// A rename, worked out.
struct Plan {
    edit: EditPlan,
    old_name: String,
    server: String,
    notes: Vec<String>,
}

impl LspRename {
    async fn plan(&self, arguments: &LspRenameArguments) -> Result<Plan, ToolError> {
        let resolved = self.checkout.workdir().resolve(&arguments.file, Access::Write)?;
        match resolved.state {
            PathState::File => {}
            PathState::Missing => {
                return Err(ToolError::model(format!("There is no file `{}`.", resolved.shown)));
            }
            _ => return Err(ToolError::model(format!("`{}` is not a file.", resolved.shown))),
        }
        let server = self.checkout.language_server_for(&resolved.real).await?;
        let document = sync(&server, &resolved.real)?;
        let language = server.spec().language_of(&resolved.real).unwrap_or_default().to_owned();
        let dollar = language.starts_with("javascript")
            || language.starts_with("typescript")
            || matches!(language.as_str(), "vue" | "svelte");
        let target = target::find(
            &document.lines,
            &resolved.shown,
            Some(arguments.line),
            Some(&arguments.symbol),
            dollar,
        )?;
        check_name(&language, &target, &arguments.new_name)?;
        if !offered(&server, "textDocument/rename").await {
            return Err(ToolError::model(format!(
                "{} does not offer renaming. Nothing was changed. `search` finds the places; `edit` changes them.",
                server.id()
            )));
        }
        // A rename of half a project is worse than none, so the project has to be loaded.
        match ready::wait(&server, READY).await {
            Wait::Ready => {}
            Wait::StillLoading(what) => {
                return Err(ToolError::model(format!(
                    "{} was still loading the project after {} s ({what}), and a rename now could miss places. Nothing was changed. Try again later.",
                    server.id(),
                    READY.as_secs()
                )));
            }
            Wait::Gone(why) => {
                return Err(ToolError::model(format!(
                    "{} is gone: {}. Nothing was changed. The next call starts it again.",
                    server.id(),
                    why.trim_end_matches('.')
                )));
            }
        }
        server.catch_up().await;
        if let Some(left_out) = left_out(&server) {
            return Err(ToolError::model(format!(
                "{}, and a rename now could miss places. Nothing was changed. {}",
                left_out.what, left_out.remedy
            )));
        }
        let mut notes: Vec<String> = target.note.iter().cloned().collect();
        let position = document.lines.position(target.span.start, server.encoding());
        let old_name = prepare(&server, &document, &target, position, &resolved.shown).await?;
        let mut edit = ask(&server, &document, position, &arguments.new_name, &target).await?;
        if introduces_alias(&edit, &arguments.new_name) {
            match self.at_definition(&server, &document, position, &old_name, &arguments.new_name, &target).await {
                Some(whole) => edit = whole,
                None => notes.push("Only the name in this file was changed, with an alias in the import; the definition keeps its name.".into()),
            }
        }
        if edit.is_empty() {
            return Err(nothing(&server, &target));
        }
        // Whatever was written while the server was at it has to be noticed before its edit is used.
        let open = |path: &Path| {
            server
                .document(path)
                .map(|document| Open { version: document.version, text: Arc::clone(document.lines.text()) })
        };
        let planner = Planner {
            changes: &self.changes,
            encoding: server.encoding(),
            open: &open,
            named: Some(&resolved.real),
            replaces: Some(bare(&old_name)),
        };
        let plan = planner.plan(&edit).await?;
        if plan.set.changes.is_empty() {
            return Err(nothing(&server, &target));
        }
        if !plan
            .files
            .iter()
            .any(|file| file.file == resolved.shown || file.from.as_deref() == Some(&resolved.shown))
        {
            notes.push(format!("`{}` itself is not among the files that changed.", resolved.shown));
        }
        if server.watches_in_part() {
            notes.push("Not all of the project is watched for changes by others, so a file that was changed elsewhere a moment ago may be missing.".into());
        }
        let is_changed = |shown: &str| {
            plan.files.iter().any(|file| file.file == shown || file.from.as_deref() == Some(shown))
        };
        notes.extend(self.left_elsewhere(&server, bare(&old_name), &is_changed).await);
        Ok(Plan { edit: plan, old_name, server: server.id().to_owned(), notes })
    }
}

/// Files that one sentence names.
const NAMED: usize = 5;

impl LspRename {
    /// Says where the old name stands in files that are not changed: in other roots, which the server does not know, and in its own, where files may belong to no project
    /// that it has loaded. Whether the same is meant there, only a reader can tell.
    async fn left_elsewhere(
        &self,
        server: &Server,
        name: &str,
        is_changed: &(dyn Fn(&str) -> bool + Sync),
    ) -> Vec<String> {
        let (root, spec, name_there) =
            (self.checkout.workdir().root().to_owned(), server.spec().clone(), name.to_owned());
        let found = move || elsewhere::with_word(&root, &spec, &name_there);
        let found = tokio::task::spawn_blocking(found).await.unwrap_or_default();
        let workdir = self.checkout.workdir();
        let (own, other): (Vec<_>, Vec<_>) = found
            .iter()
            .map(|(path, line)| (path, workdir.show(path), line))
            .filter(|(_, shown, _)| !is_changed(shown))
            .partition(|(path, ..)| path.starts_with(server.root()));
        let named = |places: &[(&PathBuf, String, &usize)]| {
            let mut names: Vec<String> =
                places.iter().take(NAMED).map(|(_, shown, line)| format!("{shown}:{line}")).collect();
            if places.len() > NAMED {
                names.push(format!("{} more files", places.len() - NAMED));
            }
            names.join(", ")
        };
        let mut notes = Vec::new();
        if !own.is_empty() {
            notes.push(format!(
                "{} did not name these, and `{name}` stands in them too: {}. Look whether it is the same.",
                server.id(),
                named(&own)
            ));
        }
        if !other.is_empty() {
            notes.push(format!(
                "Only the root {} was searched. `{name}` also stands in {}: look whether it is the same.",
                workdir.show(server.root()),
                named(&other)
            ));
        }
        notes
    }

    /// The rename asked for at the definition of what is imported under its own name.
    async fn at_definition(
        &self,
        server: &Server,
        document: &Document,
        position: Position,
        old_name: &str,
        new_name: &str,
        target: &Target,
    ) -> Option<WorkspaceEdit> {
        let params = json!({ "textDocument": { "uri": &*document.uri }, "position": position });
        let answer = server.ask("textDocument/definition", params, RENAME).await.ok()?;
        let (uri, place) = first_place(&answer)?;
        let path = server.path_of(uri)?;
        self.checkout.workdir().resolve(&path, Access::Write).ok()?;
        let defining = sync(server, &path).ok()?;
        let at = defining.lines.offset(place, server.encoding());
        if !defining.lines.text()[at..].starts_with(old_name) {
            return None;
        }
        let edit = ask(server, &defining, place, new_name, target).await.ok()?;
        (!edit.is_empty() && !introduces_alias(&edit, new_name)).then_some(edit)
    }
}

async fn ask(
    server: &Server,
    document: &Document,
    position: Position,
    new_name: &str,
    target: &Target,
) -> Result<WorkspaceEdit, ToolError> {
    let params =
        json!({ "textDocument": { "uri": &*document.uri }, "position": position, "newName": new_name });
    let answer = server
        .ask("textDocument/rename", params, RENAME)
        .await
        .map_err(|error| refusal(server, target, &error))?;
    Ok(WorkspaceEdit::parse(&answer)?)
}

/// Whether an edit gives an import another local name instead of renaming what is imported. rust-analyzer does that for a name in a `use`, tsserver where it
/// is not told otherwise.
fn introduces_alias(edit: &WorkspaceEdit, new_name: &str) -> bool {
    let alias = format!(" as {new_name}");
    edit.steps.iter().any(|step| match step {
        Step::Edit { edits, .. } => edits.iter().any(|edit| edit.text.ends_with(&alias)),
        _ => false,
    })
}

/// The first place of an answer to `textDocument/definition`, in any of its shapes.
fn first_place(answer: &Value) -> Option<(&str, Position)> {
    let one = answer.as_array().map_or(Some(answer), |list| list.first())?;
    let uri = one.get("targetUri").or_else(|| one.get("uri"))?.as_str()?;
    let range = one.get("targetSelectionRange").or_else(|| one.get("range"))?;
    Some((uri, Range::deserialize(range).ok()?.start))
}

/// The name without what a language puts before it, for what a server replaces is sometimes the one and sometimes the other.
fn bare(name: &str) -> &str {
    let bare = name.trim_start_matches(['#', '$', '@', '\'', '~', ':', '`', '"']);
    let bare = bare.strip_prefix("r#").unwrap_or(bare);
    if bare.is_empty() { name } else { bare }
}

fn check_name(language: &str, target: &Target, new_name: &str) -> Result<(), ToolError> {
    if new_name == target.name {
        return Err(ToolError::model(format!("`{new_name}` is its name already. Nothing was changed.")));
    }
    match names::why_not(language, new_name) {
        None => Ok(()),
        Some(why) => Err(ToolError::model(format!(
            "The new name `{}` {why}. Nothing was changed.",
            new_name.escape_debug()
        ))),
    }
}

/// Asks whether there is something to rename, where the server offers that, and what it is called. Without an offer it is what stands there.
async fn prepare(
    server: &Server,
    document: &Document,
    target: &Target,
    position: Position,
    shown: &str,
) -> Result<String, ToolError> {
    if !server.can("textDocument/prepareRename") {
        return Ok(target.name.clone());
    }
    let params = json!({ "textDocument": { "uri": &*document.uri }, "position": position });
    let prepared = server
        .ask("textDocument/prepareRename", params, RENAME)
        .await
        .map_err(|error| refusal(server, target, &error))?;
    let cannot = || {
        ToolError::model(format!(
            "{} says that `{}` on line {} of `{shown}` cannot be renamed. Nothing was changed. Name a symbol that the project defines.",
            server.id(),
            target.name,
            target.line
        ))
    };
    if prepared.is_null() {
        return Err(cannot());
    }
    let range = prepared.get("range").unwrap_or(&prepared);
    let Ok(range) = Range::deserialize(range) else {
        // `{defaultBehavior: true}`: the client is to take the word at the place.
        return Ok(target.name.clone());
    };
    let span = document.lines.bytes(range, server.encoding());
    // tsserver's renames the name next to a keyword that it was asked about.
    if span.end < target.span.start || span.start > target.span.end || span.is_empty() {
        return Err(cannot());
    }
    Ok(document.lines.text()[span].to_owned())
}

fn refusal(server: &Server, target: &Target, error: &crate::RequestError) -> ToolError {
    match error {
        crate::RequestError::Refused { code, message, .. } if *code != -32601 => ToolError::model(format!(
            "{} refuses to rename `{}`: {}. Nothing was changed.",
            server.id(),
            target.name,
            message.trim().trim_end_matches('.')
        )),
        other => {
            let ToolError::Model { text, structured } = failed(server, "textDocument/rename", other) else {
                return failed(server, "textDocument/rename", other);
            };
            ToolError::Model { text: format!("{text} Nothing was changed."), structured }
        }
    }
}

fn nothing(server: &Server, target: &Target) -> ToolError {
    ToolError::model(format!(
        "{} found nothing to rename at `{}` on line {}. Nothing was changed. It may be a name that the project does not define; `lsp` with action \
         \"definition\" shows where it comes from.",
        server.id(),
        target.name,
        target.line
    ))
}

/// Takes away directories that a renamed directory left behind. Those that are not empty stay, and are named.
fn remove_emptied(directories: &[PathBuf]) -> Vec<PathBuf> {
    directories
        .iter()
        .filter(|directory| std::fs::remove_dir(directory).is_err() && directory.exists())
        .cloned()
        .collect()
}

fn answer(plan: &Plan, new_name: &str, committed: Committed, left: &[PathBuf]) -> Result<Output, ToolError> {
    let places: usize = plan.edit.files.iter().map(|file| file.edits).sum();
    let count = plan.edit.files.len();
    let plural =
        |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let mut text = format!(
        "Renamed `{}` to `{new_name}` ({}): {} in {}.\n",
        plan.old_name,
        plan.server,
        plural(places, "place", "places"),
        plural(count, "file", "files")
    );
    for file in &plan.edit.files {
        let moved = file.from.as_ref().map(|from| format!(", moved from {from}")).unwrap_or_default();
        text.push_str(&format!("- {}: {}{moved}\n", file.file, plural(file.edits, "place", "places")));
    }
    for directory in left {
        text.push_str(&format!("The directory {} is left because it is not empty.\n", directory.display()));
    }
    for note in &plan.notes {
        text.push_str(&format!("({note})\n"));
    }
    let mut output = committed.answer(&text)?;
    output.structured.insert("edits".into(), json!(places));
    output.structured.insert("server".into(), json!(plan.server));
    Ok(output)
}
