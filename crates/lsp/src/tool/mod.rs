//! The tool `lsp` (SPEC L3, L4): one file per kind of question.

mod actions;
pub(crate) mod ask;
mod calls;
mod hover;
mod kinds;
mod navigate;
pub(crate) mod places;
mod state;
mod symbols;
pub(crate) mod target;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use haft_system::Changes;
use haft_tool::{Access, Content, Context, Output, Tier, Tool, ToolError, Touch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Checkout, stage::Stage};

/// What is asked (SPEC L4). The variants have no documentation of their own: it would go into the schema, and the tool's description says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(description = "")]
#[allow(missing_docs, reason = "see above")]
pub enum LspAction {
    Diagnostics,
    Definition,
    TypeDefinition,
    Implementation,
    References,
    Hover,
    Symbols,
    CodeActions,
    Calls,
    Status,
    Reload,
}

/// The arguments of `lsp`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LspArguments {
    action: LspAction,
    /// Path in the working directory; for `diagnostics` also "*".
    #[serde(default)]
    file: Option<String>,
    /// 1-based line that the symbol stands on.
    #[serde(default)]
    line: Option<u32>,
    /// Text on that line that names the symbol; `name#2` means its second occurrence there.
    #[serde(default)]
    symbol: Option<String>,
    /// For `symbols`: what to search for by name.
    #[serde(default)]
    query: Option<String>,
}

/// The tool `lsp`: questions to language servers.
pub struct Lsp {
    checkout: Checkout,
    staging: Option<(Changes, Arc<dyn Stage>)>,
    /// Whether it was said which servers config switches off by mistake.
    told: AtomicBool,
}

impl Lsp {
    /// A tool over the servers of a working directory. Code actions are listed, not worked out.
    pub fn new(checkout: Checkout) -> Self {
        Lsp { checkout, staging: None, told: AtomicBool::new(false) }
    }

    /// The same, but edits of code actions are worked out against `changes` and wait in `stage`.
    pub fn staging(self, changes: Changes, stage: Arc<dyn Stage>) -> Self {
        Lsp { staging: Some((changes, stage)), ..self }
    }
}

impl Tool for Lsp {
    type Arguments = LspArguments;
    const NAME: &'static str = "lsp";
    const TIER: Tier = Tier::Read;

    fn description(&self) -> String {
        "Asks the project's language servers instead of guessing. \
         With file, line, symbol: definition, type_definition, implementation, references, hover, calls (incoming and outgoing), \
         code_actions (fixes; one with an edit gets an edit_id for `resolve`). \
         With file: diagnostics (errors and warnings of the file as it is on disk; file \"*\" runs the project's own checkers, \
         build scripts included), symbols (outline). With query: symbols (workspace search). \
         status: which servers run and why others do not. reload: restarts them. \
         Columns are never needed: the symbol is a piece of the line's text."
            .into()
    }

    fn touches(&self, arguments: &LspArguments) -> Vec<Touch> {
        match arguments.file.as_deref() {
            Some("*") | None => Vec::new(),
            Some(file) => vec![Touch::Path(PathBuf::from(file), Access::Read)],
        }
    }

    async fn call(&self, arguments: LspArguments, context: &Context) -> Result<Output, ToolError> {
        let status = arguments.action == LspAction::Status;
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => Err(ToolError::Cancelled),
            answer = self.answer(arguments, context) => self.with_broken(status, answer),
        }
    }
}

impl Lsp {
    /// With a first answer, what of config makes no sense: a server that is switched off by mistake is not missed by whoever gets an answer from another. `status` says it each time.
    fn with_broken(&self, status: bool, answer: Result<Output, ToolError>) -> Result<Output, ToolError> {
        let broken = self.checkout.table().broken();
        if broken.is_empty() || self.told.swap(true, Ordering::Relaxed) || status {
            return answer;
        }
        let words: Vec<String> = broken.values().map(|why| format!("\n({why}.)")).collect();
        match answer {
            Ok(output) => Ok(output.with(Content::text(words.concat().trim_start()))),
            Err(ToolError::Model { text, structured }) => {
                Err(ToolError::Model { text: text + &words.concat(), structured })
            }
            Err(other) => Err(other),
        }
    }

    async fn answer(&self, arguments: LspArguments, context: &Context) -> Result<Output, ToolError> {
        match arguments.action {
            LspAction::Diagnostics => self.diagnostics(&arguments, context).await,
            LspAction::Definition
            | LspAction::TypeDefinition
            | LspAction::Implementation
            | LspAction::References => self.navigate(&arguments).await,
            LspAction::Hover => self.hover(&arguments).await,
            LspAction::Symbols => self.symbols(&arguments).await,
            LspAction::CodeActions => self.code_actions(&arguments).await,
            LspAction::Calls => self.calls(&arguments).await,
            LspAction::Status => Ok(self.status().await),
            LspAction::Reload => self.reload(&arguments).await,
        }
    }

    async fn diagnostics(&self, arguments: &LspArguments, context: &Context) -> Result<Output, ToolError> {
        match arguments.file.as_deref() {
            None => Err(ToolError::model(
                "`file` is missing: a file of the working directory, or \"*\" for the project's own checkers.",
            )),
            Some("*") => {
                let processes = self.checkout.servers().processes();
                crate::checkers::check_all(
                    self.checkout.workdir(),
                    processes,
                    processes.environment(),
                    context,
                )
                .await
            }
            Some(_) => {
                let (path, shown) = self.file(arguments)?;
                crate::diagnostics::of_file(&self.checkout, &path, &shown).await
            }
        }
    }
}
