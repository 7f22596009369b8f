//! symbols: the outline of a file, or a search by name.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use haft_tool::{Output, ToolError};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Lsp, LspArguments,
    ask::{self, Reach, offered, with_notes},
    kinds,
    places::{range_of, read_one},
};
use crate::{
    Server,
    limits::{OUTLINE, REQUEST, STARTED_AT_ONCE, WORKSPACE_SYMBOLS},
    servers::{Role, ServerSpec},
    supervisor::Place,
};

/// A symbol as `structured` has it (SPEC section 10).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Symbol {
    name: String,
    kind: &'static str,
    file: String,
    line: u32,
    container: Option<String>,
    #[serde(skip)]
    depth: usize,
}

/// What one server found, and how far that is to be believed.
type Searched = Result<(Vec<Symbol>, Option<String>), ToolError>;

impl Lsp {
    pub(super) async fn symbols(&self, arguments: &LspArguments) -> Result<Output, ToolError> {
        let query = arguments.query.as_deref().map(str::trim).filter(|query| !query.is_empty());
        match (&arguments.file, query) {
            (Some(_), query) => self.outline(arguments, query).await,
            (None, Some(query)) => self.search(query).await,
            (None, None) => Err(ToolError::model(
                "`symbols` needs a `query` (a name, or a part of one, to search the workspace for) or a `file` (its outline).",
            )),
        }
    }

    async fn outline(&self, arguments: &LspArguments, query: Option<&str>) -> Result<Output, ToolError> {
        let opened = self.open(arguments).await?;
        let method = "textDocument/documentSymbol";
        opened.needs(method, "an outline").await?;
        let params = json!({ "textDocument": { "uri": &*opened.document.uri } });
        let answer = opened.ask(method, params, Reach::File, REQUEST).await?;
        let mut symbols = Vec::new();
        for entry in answer.value.as_array().into_iter().flatten() {
            outline_into(&mut symbols, entry, &opened.shown, None, 0);
        }
        if let Some(query) = query {
            let wanted = query.to_lowercase();
            symbols.retain(|symbol| symbol.name.to_lowercase().contains(&wanted));
        }
        let total = symbols.len();
        symbols.truncate(OUTLINE);
        let id = opened.server.id();
        let mut text = match (total, query) {
            (0, None) => format!("{id} finds no symbols in {}.", opened.shown),
            (0, Some(query)) => {
                format!("{id} finds no symbol in {} whose name contains `{query}`.", opened.shown)
            }
            (1, _) => format!("1 symbol in {} ({id}):", opened.shown),
            _ => format!("{total} symbols in {} ({id}):", opened.shown),
        };
        for symbol in &symbols {
            text.push_str(&format!(
                "\n{}{}: {} {}",
                "  ".repeat(symbol.depth),
                symbol.line,
                symbol.kind,
                symbol.name
            ));
        }
        if total > symbols.len() {
            text.push_str(&format!("\n… and {} more; a `query` narrows it down.", total - symbols.len()));
        }
        let text = with_notes(text, [None, answer.caveat.as_deref()]);
        Ok(Output::text(text).structured(json!({ "symbols": symbols, "total": total, "server": id })))
    }

    /// Asks every language server of the working directory; those that do not run are started, in bounds.
    async fn search(&self, query: &str) -> Result<Output, ToolError> {
        let mut running = self.checkout.running();
        running.retain(|server| server.spec().role == Role::Language);
        // Those that run are asked while it is looked for others.
        let (mut answers, (more, mut notes)) =
            tokio::join!(self.search_all(&running, query), self.searchable(&running));
        answers.extend(self.search_all(&more, query).await);
        if answers.is_empty() {
            let why = if notes.is_empty() { String::new() } else { format!("\n{}", notes.join("\n")) };
            return Err(ToolError::model(format!(
                "No language server runs here that could search for `{query}`.{why}\n`lsp` with action \"status\" says why; `search` finds text."
            )));
        }
        let mut symbols = Vec::new();
        let mut ids = Vec::new();
        for (id, found) in answers {
            match found {
                Ok((found, caveat)) => {
                    ids.push(id);
                    symbols.extend(found);
                    notes.extend(caveat);
                }
                Err(error) => notes.push(error.to_string()),
            }
        }
        if ids.is_empty() {
            return Err(ToolError::model(notes.join("\n")));
        }
        ids.sort();
        ids.dedup();
        // Exact names first; otherwise the servers' order, which is by how well a name fits.
        symbols.sort_by_key(|symbol| symbol.name != query);
        let total = symbols.len();
        symbols.truncate(WORKSPACE_SYMBOLS);
        let by = ids.join(", ");
        let mut text = match total {
            0 => format!("No symbol for `{query}` ({by})."),
            1 => format!("1 symbol for `{query}` ({by}):"),
            _ => format!("{total} symbols for `{query}` ({by}):"),
        };
        for symbol in &symbols {
            let within =
                symbol.container.as_ref().map(|container| format!("  (in {container})")).unwrap_or_default();
            text.push_str(&format!(
                "\n{}:{}: {} {}{within}",
                symbol.file, symbol.line, symbol.kind, symbol.name
            ));
        }
        if total > symbols.len() {
            text.push_str(&format!(
                "\n… and {} more; a longer query narrows it down.",
                total - symbols.len()
            ));
        }
        for note in &notes {
            text.push_str(&format!("\n({note})"));
        }
        Ok(Output::text(text).structured(json!({ "symbols": symbols, "total": total, "server": by })))
    }

    async fn search_all(&self, servers: &[Arc<Server>], query: &str) -> Vec<(String, Searched)> {
        let asked = servers
            .iter()
            .map(|server| async { (server.id().to_owned(), self.search_in(server, query).await) });
        futures::future::join_all(asked).await
    }

    /// The language servers of the roots here beside those that run, started, and why others are left out.
    async fn searchable(&self, running: &[Arc<Server>]) -> (Vec<Arc<Server>>, Vec<String>) {
        let mut by_root: BTreeMap<PathBuf, Vec<Arc<ServerSpec>>> = BTreeMap::new();
        let mut roots: Vec<PathBuf> = Vec::new();
        for (spec, root) in self.checkout.scan().await {
            // One of a group stands for all of it.
            let known = running.iter().any(|server| {
                let is_same =
                    server.id() == spec.id || (spec.group.is_some() && server.spec().group == spec.group);
                is_same && server.root() == root.root
            });
            // Data formats have no symbols worth a start.
            if known || spec.role == Role::Linter || !spec.searchable {
                continue;
            }
            if !roots.contains(&root.root) {
                roots.push(root.root.clone());
            }
            by_root.entry(root.root).or_default().push(spec);
        }
        let mut servers: Vec<Arc<Server>> = Vec::new();
        let mut notes = Vec::new();
        let mut started = 0;
        // In the order of the scan: the nearest first.
        for root in roots {
            let specs = by_root.remove(&root).unwrap_or_default();
            let files = self.checkout.any_files(specs.clone(), &root).await;
            for (spec, file) in specs.iter().zip(files) {
                // A file of the language in that root decides which server of a group it is, and is opened: several load nothing before.
                let Some(file) = file else { continue };
                let Ok(places) = self.checkout.places(&file).await else { continue };
                let Some(place) = places.into_iter().find(|place| place.spec.id == spec.id) else { continue };
                if started == STARTED_AT_ONCE {
                    notes.push(format!(
                        "{} in {} was not started for this",
                        spec.id,
                        self.checkout.workdir().show(&root)
                    ));
                    continue;
                }
                started += 1;
                match self.start_with(&place, &file).await {
                    Ok(server) => servers.push(server),
                    Err(why) => notes.push(why),
                }
            }
        }
        (servers, notes)
    }

    async fn start_with(&self, place: &Place, file: &std::path::Path) -> Result<Arc<Server>, String> {
        let server = self.checkout.start(place).await.map_err(|error| error.to_string())?;
        server.sync(file).map_err(|error| error.to_string())?;
        Ok(server)
    }

    async fn search_in(&self, server: &Server, query: &str) -> Searched {
        let method = "workspace/symbol";
        server.tell_disk_changes().map_err(|error| ToolError::model(error.to_string()))?;
        if !offered(server, method).await {
            return Ok((Vec::new(), Some(format!("{} does not offer a workspace search", server.id()))));
        }
        if server.open_documents().is_empty()
            && let Some(file) = self.checkout.any_file(server.spec(), server.root()).await
        {
            ask::sync(server, &file)?;
        }
        let answer = ask::ask(server, method, json!({ "query": query }), Reach::Project, REQUEST).await?;
        let entries = answer.value.as_array().cloned().unwrap_or_default();
        let symbols = entries.iter().filter_map(|entry| {
            let location = entry.get("location")?;
            let place = read_one(location);
            let uri = location.get("uri")?.as_str()?;
            let file = server
                .path_of(uri)
                .map_or_else(|| uri.to_owned(), |path| self.checkout.workdir().show(&path));
            Some(Symbol {
                name: entry.get("name")?.as_str()?.to_owned(),
                kind: kinds::symbol(entry.get("kind").and_then(Value::as_u64).unwrap_or(0)),
                file,
                line: place.map_or(1, |place| place.range.start.line + 1),
                container: container_of(entry),
                depth: 0,
            })
        });
        Ok((symbols.collect(), answer.caveat))
    }
}

fn container_of(entry: &Value) -> Option<String> {
    entry.get("containerName").and_then(Value::as_str).filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Reads `DocumentSymbol` with what is below it, and the flat `SymbolInformation`.
fn outline_into(symbols: &mut Vec<Symbol>, entry: &Value, file: &str, container: Option<&str>, depth: usize) {
    let Some(name) = entry.get("name").and_then(Value::as_str) else { return };
    let range = entry
        .get("selectionRange")
        .or_else(|| entry.get("range"))
        .or_else(|| entry.get("location").and_then(|location| location.get("range")));
    let line = range.and_then(range_of).map_or(1, |range| range.start.line + 1);
    symbols.push(Symbol {
        name: name.to_owned(),
        kind: kinds::symbol(entry.get("kind").and_then(Value::as_u64).unwrap_or(0)),
        file: file.to_owned(),
        line,
        container: container.map(str::to_owned).or_else(|| container_of(entry)),
        depth,
    });
    // No program nests deeper; an answer that does is not walked to its end.
    if depth < 64 {
        for child in entry.get("children").and_then(Value::as_array).into_iter().flatten() {
            outline_into(symbols, child, file, Some(name), depth + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn outlines_nested_and_flat() {
        let range = json!({ "start": { "line": 4, "character": 0 }, "end": { "line": 4, "character": 1 } });
        let nested = json!({ "name": "A", "kind": 5, "range": range, "selectionRange": range, "children": [
            { "name": "m", "kind": 6, "range": range, "selectionRange": range },
        ] });
        let flat = json!({ "name": "f", "kind": 99, "containerName": "M", "location": { "uri": "file:///x", "range": range } });
        let mut symbols = Vec::new();
        outline_into(&mut symbols, &nested, "x", None, 0);
        outline_into(&mut symbols, &flat, "x", None, 0);
        let symbol = |name: &str, kind, container: Option<&str>, depth| Symbol {
            name: name.into(),
            kind,
            file: "x".into(),
            line: 5,
            container: container.map(str::to_owned),
            depth,
        };
        let expected = [
            symbol("A", "class", None, 0),
            symbol("m", "method", Some("A"), 1),
            symbol("f", "symbol", Some("M"), 0),
        ];
        assert_eq!(symbols, expected);
    }
}
