//! calls: who calls a function, and what it calls.

use std::collections::HashSet;

use haft_tool::{Output, ToolError};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Lsp, LspArguments,
    ask::{Reach, with_notes},
    kinds,
    places::{RawPlace, Shower, range_of},
};
use crate::{
    limits::{CALLS, REQUEST},
    position::Range,
};

#[derive(Debug, Serialize)]
struct Call {
    name: String,
    kind: &'static str,
    file: String,
    line: u32,
    text: String,
    #[serde(skip)]
    range: Range,
}

impl Lsp {
    pub(super) async fn calls(&self, arguments: &LspArguments) -> Result<Output, ToolError> {
        let opened = self.open(arguments).await?;
        let target = opened.target(arguments)?;
        let method = "textDocument/prepareCallHierarchy";
        opened.needs(method, "calls").await?;
        let prepared = opened.ask(method, opened.at(&target, Value::Null), Reach::Project, REQUEST).await?;
        let items = prepared.value.as_array().cloned().unwrap_or_default();
        let id = opened.server.id();
        if items.is_empty() {
            let text = format!(
                "{id} knows no calls of `{}` ({}:{}): it may be no function.",
                target.name, opened.shown, target.line
            );
            let text = with_notes(text, [target.note.as_deref(), prepared.caveat.as_deref()]);
            return Ok(Output::text(text)
                .structured(json!({ "incoming": [], "outgoing": [], "total": 0, "server": id })));
        }
        let mut incoming = Vec::new();
        let mut outgoing = Vec::new();
        let mut caveat = prepared.caveat;
        let mut shower = Shower::new(&opened.server, self.checkout.workdir());
        for item in &items {
            let params = json!({ "item": item });
            let answer =
                opened.ask("callHierarchy/incomingCalls", params.clone(), Reach::File, REQUEST).await?;
            for entry in answer.value.as_array().into_iter().flatten() {
                // The places are in the caller's file.
                let Some(from) = entry.get("from") else { continue };
                let uri = from.get("uri").and_then(Value::as_str).unwrap_or_default();
                incoming.extend(calls(from, uri, entry, &mut shower));
            }
            caveat = caveat.or(answer.caveat);
            let answer = opened.ask("callHierarchy/outgoingCalls", params, Reach::File, REQUEST).await;
            let answer = match answer {
                Ok(answer) => answer,
                Err(error) => {
                    caveat = caveat.or(Some(format!("Outgoing calls are not known: {error}")));
                    continue;
                }
            };
            for entry in answer.value.as_array().into_iter().flatten() {
                // The places are in the file of the function that was asked about.
                let Some(to) = entry.get("to") else { continue };
                let uri = item.get("uri").and_then(Value::as_str).unwrap_or_default();
                outgoing.extend(calls(to, uri, entry, &mut shower));
            }
        }
        let (mut incoming, mut outgoing) = (once(incoming), once(outgoing));
        let (callers, callees) = (incoming.len(), outgoing.len());
        let mut text = String::new();
        for (list, what) in [(&mut incoming, "called by"), (&mut outgoing, "calls")] {
            let total = list.len();
            list.truncate(CALLS);
            text.push_str(&format!(
                "{}`{}` {what}: {total}",
                if text.is_empty() { "" } else { "\n" },
                target.name
            ));
            for call in list.iter() {
                text.push_str(&format!(
                    "\n{}:{}: {} {}: {}",
                    call.file, call.line, call.kind, call.name, call.text
                ));
            }
            if total > list.len() {
                text.push_str(&format!("\n… and {} more; {CALLS} are listed.", total - list.len()));
            }
        }
        text.push_str(&format!("\n(from {id})"));
        let text = with_notes(text, [target.note.as_deref(), caveat.as_deref()]);
        Ok(Output::text(text).structured(
            json!({ "incoming": incoming, "outgoing": outgoing, "total": callers + callees, "server": id }),
        ))
    }
}

/// Servers name the same place once for every overload (pyright has an item for each).
fn once(mut calls: Vec<Call>) -> Vec<Call> {
    let mut seen = HashSet::new();
    calls.retain(|call| seen.insert((call.name.clone(), call.file.clone(), call.range)));
    calls
}

/// One entry per place of a call.
fn calls(other: &Value, uri: &str, entry: &Value, shower: &mut Shower<'_>) -> Vec<Call> {
    let name = other.get("name").and_then(Value::as_str).unwrap_or_default();
    let kind = kinds::symbol(other.get("kind").and_then(Value::as_u64).unwrap_or(0));
    let ranges = entry.get("fromRanges").and_then(Value::as_array).cloned().unwrap_or_default();
    ranges
        .iter()
        .filter_map(range_of)
        .map(|range| {
            let place = shower.show(&RawPlace { uri: uri.to_owned(), range, whole: range });
            Call { name: name.to_owned(), kind, file: place.file, line: place.line, text: place.text, range }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Position;

    #[test]
    fn a_place_is_named_once_and_two_on_one_line_twice() {
        let call = |name: &str, character| Call {
            name: name.to_owned(),
            kind: "method",
            file: "a.py".to_owned(),
            line: 3,
            text: "get(get(x))".to_owned(),
            range: Range {
                start: Position { line: 2, character },
                end: Position { line: 2, character: character + 3 },
            },
        };
        let calls = once(vec![call("get", 0), call("get", 0), call("get", 4), call("put", 4)]);
        let left: Vec<_> =
            calls.iter().map(|call| (call.name.as_str(), call.range.start.character)).collect();
        assert_eq!(left, [("get", 0), ("get", 4), ("put", 4)]);
    }
}
