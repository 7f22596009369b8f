//! The tools: arguments, checks, and words for the model.

mod ast_edit;
mod ast_grep;
mod resolve;
mod show;

pub use ast_edit::{AstEdit, AstEditArguments};
pub use ast_grep::{AstGrep, AstGrepArguments};
pub use resolve::{Resolve, ResolveArguments};
pub use show::{for_programs, for_terminal};

use haft_tool::{Context, ToolError};
use tokio_util::sync::CancellationToken;

use crate::{
    languages::{self, Language},
    search::{SearchError, language_ids},
};

impl From<SearchError> for ToolError {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Cancelled => ToolError::Cancelled,
            other => ToolError::model(other.to_string()),
        }
    }
}

fn language(id: Option<&str>) -> Result<Option<&'static Language>, ToolError> {
    let Some(id) = id else { return Ok(None) };
    match languages::by_id(id) {
        Some(language) => Ok(Some(language)),
        None => Err(ToolError::model(format!("There is no language `{id}`. Known are: {}.", language_ids()))),
    }
}

/// Does work that keeps processors busy off the async threads. When the caller gives up, the work is told so and ends soon after.
async fn blocking<T: Send + 'static>(
    context: &Context,
    work: impl FnOnce(&CancellationToken) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let cancel = context.cancel.child_token();
    // Cancels when this future is dropped, too.
    let _guard = cancel.clone().drop_guard();
    tokio::task::spawn_blocking(move || work(&cancel))
        .await
        .map_err(|error| ToolError::Bug(format!("a search ended early: {error}")))?
}
