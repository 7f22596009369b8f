//! definition, type_definition, implementation, references.

use std::collections::BTreeSet;

use haft_tool::{Output, ToolError};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    Lsp, LspAction, LspArguments,
    ask::{Reach, is_empty, with_notes},
    places::{RawPlace, Shower, listed, read},
};
use crate::{
    limits::{EMPTY_USES, EMPTY_USES_PAUSE, PLACES, REFERENCES, REQUEST},
    supervisor::Server,
};

impl Lsp {
    pub(super) async fn navigate(&self, arguments: &LspArguments) -> Result<Output, ToolError> {
        let (method, what, reach) = match arguments.action {
            LspAction::TypeDefinition => ("textDocument/typeDefinition", "type definition", Reach::File),
            LspAction::Implementation => ("textDocument/implementation", "implementation", Reach::Project),
            LspAction::References => ("textDocument/references", "use", Reach::Project),
            _ => ("textDocument/definition", "definition", Reach::File),
        };
        let uses = arguments.action == LspAction::References;
        let opened = self.open(arguments).await?;
        let target = opened.target(arguments)?;
        opened.needs(method, if uses { "references" } else { what }).await?;
        let more = if uses { json!({ "context": { "includeDeclaration": true } }) } else { Value::Null };
        let params = opened.at(&target, more);
        let mut answer = opened.ask(method, params.clone(), reach, REQUEST).await?;
        if uses {
            // The declaration is asked for too, so a list without anything cannot be the uses of a symbol. rust-analyzer answers so in the
            // moment in which it takes its project up anew, after it had said that it is ready.
            let until = Instant::now() + EMPTY_USES;
            while is_empty(&answer.value) && answer.caveat.is_none() {
                if Instant::now() >= until {
                    answer.caveat = Some(format!(
                        "Not even a declaration came, so either this is no symbol to {}, or it does not know the project yet: do not take it for an unused symbol.",
                        opened.server.id()
                    ));
                    break;
                }
                sleep(EMPTY_USES_PAUSE).await;
                answer = opened.ask(method, params.clone(), reach, REQUEST).await?;
            }
        }

        let mut places = read(&answer.value);
        places.dedup();
        let gone = gone(&opened.server, &places);
        places.retain(|place| !gone.contains(&place.uri));
        let total = places.len();
        let most = if uses { REFERENCES } else { PLACES };
        if uses {
            // By file and line, so that the list is the same every time.
            places.sort_by(|one, other| (&one.uri, one.range).cmp(&(&other.uri, other.range)));
            places.dedup();
        }
        let total = if uses { places.len() } else { total };
        places.truncate(most);
        let mut shower = Shower::new(&opened.server, self.checkout.workdir());
        let locations: Vec<_> = places.iter().map(|place| shower.show(place)).collect();
        let id = opened.server.id();
        let name = &target.name;
        let head = match total {
            0 => format!("{id} found no {what} of `{name}` ({}:{}).", opened.shown, target.line),
            1 => format!("1 {what} of `{name}` ({id}):"),
            _ => format!("{total} {what}s of `{name}` ({id}):"),
        };
        let mut text = head + &listed(&locations);
        if total > locations.len() {
            text.push_str(&format!("\n… and {} more; {most} are listed.", total - locations.len()));
        }
        if uses && total > 0 {
            text.push_str("\n(Declarations count as uses.)");
        }
        let text = with_notes(text, [target.note.as_deref(), answer.caveat.as_deref()]);
        let gone: Vec<String> = gone
            .iter()
            .filter_map(|uri| Some(self.checkout.workdir().show(&opened.server.path_of(uri)?)))
            .collect();
        let text = if gone.is_empty() {
            text
        } else {
            format!(
                "{text}\n({id} names places in what is there no more; they are left out: {})",
                gone.join(", ")
            )
        };
        Ok(Output::text(text).structured(json!({ "locations": locations, "total": total, "server": id })))
    }
}

/// The files among `places` that do not exist, by URI: servers have been seen to remember some (pyrefly one that was open).
fn gone(server: &Server, places: &[RawPlace]) -> BTreeSet<String> {
    let uris: BTreeSet<&String> = places.iter().map(|place| &place.uri).collect();
    let is_gone = |uri: &&String| server.path_of(uri).is_some_and(|path| !path.exists());
    uris.into_iter().filter(is_gone).cloned().collect()
}
