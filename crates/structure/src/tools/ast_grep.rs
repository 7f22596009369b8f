//! `ast_grep`: finds code by its shape (SPEC A1–A4).

use std::{path::PathBuf, sync::Arc};

use haft_system::Workdir;
use haft_tool::{Access, Context, Output, Tier, Tool, ToolError, Touch};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{blocking, language, show};
use crate::{
    limits::{DEFAULT_RESULTS, MOST_RESULTS},
    search::{Engine, Query, search},
};

/// Finds code by its shape.
pub struct AstGrep {
    workdir: Workdir,
    engine: Arc<Engine>,
}

/// What `ast_grep` is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AstGrepArguments {
    /// A fragment of code. `$NAME` stands for any one node, `$$$NAME` for a run of siblings (perhaps none), `$_` for any node without
    /// binding it; a name used twice must stand for the same code.
    pub(super) pattern: String,
    /// File or directory to search; the whole working directory by default.
    pub(super) path: Option<String>,
    /// Search files of this language only; by default the file's own, or in a directory every language that reads the pattern.
    pub(super) language: Option<String>,
    /// How many matches to show; 50 by default. The total is counted in any case.
    #[schemars(range(min = 1, max = MOST_RESULTS))]
    pub(super) max_results: Option<usize>,
}

impl AstGrep {
    /// Searches inside `workdir`.
    pub fn new(workdir: Workdir, engine: Arc<Engine>) -> Self {
        AstGrep { workdir, engine }
    }
}

impl Tool for AstGrep {
    type Arguments = AstGrepArguments;
    const NAME: &'static str = "ast_grep";
    const TIER: Tier = Tier::Read;

    fn description(&self) -> String {
        "Finds code by its shape: the pattern is a fragment of the language itself and is parsed, so white space, line breaks and comments do not \
         matter, and text inside strings and comments never matches. `$NAME` (capitals) matches any one node, `$$$NAME` any number of siblings: \
         `foo($A, $A)`, `if ($C) { $$$B }`, `fn $F($$$A) -> Result<$T, $E> { $$$B }`. A pattern accounts for every part of a node: `if ($C) { $$$B }` does not \
         match one with an `else`, `fn $F()` no `pub fn`. Answers file:line, the matching lines, what the variables stand for, and the total. \
         Use it instead of `search` when the question is about code (calls, declarations, shapes) and not about text."
            .into()
    }

    fn touches(&self, arguments: &AstGrepArguments) -> Vec<Touch> {
        vec![Touch::Path(PathBuf::from(arguments.path.as_deref().unwrap_or(".")), Access::Read)]
    }

    async fn call(&self, arguments: AstGrepArguments, context: &Context) -> Result<Output, ToolError> {
        let query = Query {
            scope: self.workdir.resolve(arguments.path.as_deref().unwrap_or("."), Access::Read)?,
            language: language(arguments.language.as_deref())?,
            pattern: arguments.pattern,
            max_results: arguments.max_results.unwrap_or(DEFAULT_RESULTS),
            count_all: false,
        };
        let (engine, workdir) = (Arc::clone(&self.engine), self.workdir.clone());
        let results = blocking(context, move |cancel| Ok(search(&engine, &workdir, &query, cancel)?)).await?;
        Ok(Output { structured: show::for_programs(&results), ..Output::text(show::for_model(&results)) })
    }
}
