//! code_actions: what servers offer to do; edits are worked out and staged, never applied here (SPEC L4, A9).

use std::sync::Arc;

use haft_tool::{Output, ToolError};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Lsp, LspArguments,
    ask::{self, Opened, failed, offered, with_notes},
    target::Target,
};
use crate::{
    Server,
    diagnostics::{
        Diagnostic,
        check::{self, Checked, Given},
    },
    limits::{ACTIONS, CODE_ACTION, FIXES_WAIT, READY_FILE, REQUEST, STAGED_ACTIONS},
    ready::{self, Wait},
    workspace_edit::{Open, Planner, WorkspaceEdit},
};

#[derive(Clone, Debug, Serialize)]
struct Action {
    title: String,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    edit_id: Option<String>,
    /// Why there is no edit to resolve.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
    /// The files that the edit would change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<String>,
    server: String,
}

impl Lsp {
    pub(super) async fn code_actions(&self, arguments: &LspArguments) -> Result<Output, ToolError> {
        let (path, shown) = self.file(arguments)?;
        let servers = self.checkout.servers_for(&path).await?;
        let mut offers: Vec<(Arc<Server>, Value)> = Vec::new();
        let mut notes = Vec::new();
        let mut target: Option<Target> = None;
        let mut able = 0;
        for server in servers {
            let document = ask::sync(&server, &path)?;
            let opened =
                Opened { server: server.clone(), document, path: path.clone(), shown: shown.clone() };
            let found = opened.target(arguments)?;
            let range = opened.document.lines.range(found.span.clone(), server.encoding());
            target.get_or_insert(found);
            if !offered(&server, "textDocument/codeAction").await {
                notes.push(format!("{} does not offer code actions", server.id()));
                continue;
            }
            able += 1;
            if let Wait::StillLoading(what) = ready::wait(&server, READY_FILE).await {
                notes.push(format!("{} was still loading ({what}), so fixes may be missing", server.id()));
            }
            let known = known_at(&opened, range.start.line).await;
            let params = json!({
                "textDocument": { "uri": &*opened.document.uri },
                "range": range,
                "context": { "diagnostics": known, "triggerKind": 1 },
            });
            match server.ask("textDocument/codeAction", params, CODE_ACTION).await {
                Ok(answer) => {
                    let list = answer.as_array().cloned().unwrap_or_default();
                    offers.extend(list.into_iter().map(|action| (server.clone(), action)));
                }
                Err(error) => notes.push(failed(&server, "code actions", &error).to_string()),
            }
        }
        let Some(target) = target else { return Err(ToolError::Bug("no server and no error".into())) };
        if able == 0 {
            return Err(ToolError::model(format!("{}.", notes.join("; "))));
        }
        offers.retain(|(_, action)| action.get("disabled").is_none_or(Value::is_null));
        // What is preferred and what mends something first; the order is otherwise the servers' own.
        offers.sort_by_key(|(_, action)| {
            let preferred = action.get("isPreferred").and_then(Value::as_bool) == Some(true);
            let kind = action.get("kind").and_then(Value::as_str).unwrap_or_default();
            (!preferred, !kind.starts_with("quickfix"))
        });
        let total = offers.len();
        offers.truncate(ACTIONS);
        let mut actions = Vec::new();
        for (server, offer) in &offers {
            let staged = actions.iter().filter(|action: &&Action| action.edit_id.is_some()).count();
            actions.push(self.action(server, offer, &path, staged).await);
        }
        Ok(Self::listed(&shown, &target, &actions, total, &notes))
    }

    async fn action(&self, server: &Server, offer: &Value, path: &std::path::Path, staged: usize) -> Action {
        let text =
            |field: &str| offer.get(field).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
        let mut action = Action {
            title: text("title"),
            kind: text("kind"),
            edit_id: None,
            why_not: None,
            files: Vec::new(),
            server: server.id().to_owned(),
        };
        if staged >= STAGED_ACTIONS {
            action.why_not = Some(format!("only the first {STAGED_ACTIONS} are worked out"));
            return action;
        }
        match self.stage_edit(server, offer, path, &action.title).await {
            Ok((edit_id, files)) => {
                action.edit_id = Some(edit_id);
                action.files = files;
            }
            Err(why) => action.why_not = Some(why),
        }
        action
    }

    async fn stage_edit(
        &self,
        server: &Server,
        offer: &Value,
        path: &std::path::Path,
        title: &str,
    ) -> Result<(String, Vec<String>), String> {
        let Some((changes, stage)) = &self.staging else {
            return Err("nothing can be staged in this run".into());
        };
        let mut edit = offer.get("edit").filter(|edit| !edit.is_null()).cloned();
        // A bare `Command` has a text where an action has an object.
        let is_command = offer.get("command").is_some_and(Value::is_string);
        if edit.is_none() && !is_command && server.can("codeAction/resolve") {
            let resolved = server.ask("codeAction/resolve", offer.clone(), REQUEST).await;
            let resolved =
                resolved.map_err(|error| format!("{} did not work it out: {error}", server.id()))?;
            edit = resolved.get("edit").filter(|edit| !edit.is_null()).cloned();
        }
        let Some(edit) = edit else {
            return Err("it is a command that the server would run by itself, not an edit".into());
        };
        let edit = WorkspaceEdit::parse(&edit).map_err(|error| error.to_string())?;
        let open = |path: &std::path::Path| {
            let document = server.document(path)?;
            Some(Open { version: document.version, text: document.lines.text().clone() })
        };
        let planner =
            Planner { changes, encoding: server.encoding(), open: &open, named: Some(path), replaces: None };
        let plan = planner.plan(&edit).await.map_err(|error| error.to_string())?;
        if plan.set.changes.is_empty() {
            return Err("its edit changes nothing".into());
        }
        let files = plan.files.iter().map(|file| file.file.clone()).collect();
        let origin = format!("code action \"{title}\" of {}", server.id());
        let edit_id = stage.stage(plan.set, origin).map_err(|error| error.to_string())?;
        Ok((edit_id, files))
    }

    fn listed(shown: &str, target: &Target, actions: &[Action], total: usize, notes: &[String]) -> Output {
        let place = format!("`{}` ({shown}:{})", target.name, target.line);
        let mut text = match total {
            0 => format!("No code actions at {place}."),
            1 => format!("1 code action at {place}:"),
            _ => format!("{total} code actions at {place}:"),
        };
        for action in actions {
            let kind = if action.kind.is_empty() { "action" } else { &action.kind };
            text.push_str(&format!("\n- {} [{kind}, {}]", action.title, action.server));
            match (&action.edit_id, &action.why_not) {
                (Some(edit_id), _) => text.push_str(&format!(" → {edit_id} ({})", action.files.join(", "))),
                (None, Some(why)) => text.push_str(&format!(": {}", why.trim_end_matches('.'))),
                (None, None) => {}
            }
        }
        if total > actions.len() {
            text.push_str(&format!("\n… and {} more.", total - actions.len()));
        }
        if actions.iter().any(|action| action.edit_id.is_some()) {
            text.push_str("\nNothing has been changed: `resolve` accepts or discards an edit_id.");
        }
        for note in notes {
            text.push_str(&format!("\n({})", note.trim_end_matches('.')));
        }
        let text = with_notes(text, [target.note.as_deref(), None]);
        Output::text(text).structured(json!({ "actions": actions, "total": total }))
    }
}

/// What the server itself has found on a line of the text that it has: fixes are offered for that. What it has not found yet within a short
/// time is left out; it then offers fewer fixes.
async fn known_at(opened: &Opened, line: u32) -> Vec<Value> {
    let server = &opened.server;
    let pulls = server.offers("textDocument/diagnostic");
    let mut found = Vec::new();
    for options in &pulls {
        let mut params = json!({ "textDocument": { "uri": &*opened.document.uri } });
        if let (Some(identifier), Some(fields)) = (options.get("identifier"), params.as_object_mut()) {
            fields.insert("identifier".into(), identifier.clone());
        }
        if let Ok(answer) = server.ask("textDocument/diagnostic", params, REQUEST).await {
            found.extend(answer.get("items").and_then(Value::as_array).cloned().unwrap_or_default());
        }
    }
    if pulls.is_empty() {
        found = pushed(opened).await;
    }
    found.retain(|diagnostic| touches_line(diagnostic, line));
    found
}

/// What a server that pushes has found. Its own words where they have come, for they may carry data that a fix needs; else put together from
/// what is known of them.
async fn pushed(opened: &Opened) -> Vec<Value> {
    let server = &opened.server;
    let until = tokio::time::Instant::now() + FIXES_WAIT;
    let Ok(given) = Given::from_disk(server, &opened.path, false) else { return Vec::new() };
    let known = match check::wait(server, given, &opened.shown, until).await {
        Checked::Verified(known) => known,
        Checked::Not(why) => {
            tracing::debug!(%why, "fixes are asked for without what the server has found");
            Vec::new()
        }
    };
    let published = server.published(&opened.path).map(|published| published.diagnostics);
    let own: Vec<Value> = published.iter().flat_map(|list| list.iter().cloned()).collect();
    if known
        .iter()
        .all(|one| own.iter().any(|raw| raw.get("message").and_then(Value::as_str) == Some(&*one.message)))
    {
        return own;
    }
    known.iter().map(raw).collect()
}

fn raw(known: &Diagnostic) -> Value {
    let [from_line, from, to_line, to] = known.span;
    let code = known
        .code
        .as_ref()
        .map(|code| code.parse::<u64>().map_or_else(|_| json!(code), |number| json!(number)));
    let range = json!({
        "start": { "line": from_line, "character": from }, "end": { "line": to_line, "character": to },
    });
    let mut raw = json!({ "range": range, "severity": known.severity as u8 + 1, "message": known.message });
    if let Some(fields) = raw.as_object_mut() {
        fields.extend(code.map(|code| ("code".to_owned(), code)));
        fields.extend(known.source.clone().map(|source| ("source".to_owned(), json!(source))));
    }
    raw
}

fn touches_line(diagnostic: &Value, line: u32) -> bool {
    let at = |end: &str| {
        diagnostic.get("range").and_then(|range| range.get(end)?.get("line")?.as_u64()).unwrap_or(u64::MAX)
    };
    at("start") <= u64::from(line) && u64::from(line) <= at("end")
}
