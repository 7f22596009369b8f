use serde_json::{Map, Value};

use crate::{Outcome, Output, output::object};

/// Why a tool could not do its work, split by who has to read it.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The model can act on it: what happened, and what to do next.
    #[error("{text}")]
    Model {
        /// Complete sentences; the first says what happened.
        text: String,
        /// Fields for programs, often empty.
        structured: Map<String, Value>,
    },
    /// For the model too: the call failed after it had come to something worth keeping (pictures, tables). The first piece of the
    /// content says what happened.
    #[error("the call failed")]
    Failed(Box<Output>),
    /// The person who runs Haft has to act on it (disk full, database unreadable). The model is told that it cannot.
    #[error("{0}")]
    Operator(String),
    /// A mistake in Haft itself.
    #[error("{0}")]
    Bug(String),
    /// The call was cancelled before it came to an end.
    #[error("cancelled")]
    Cancelled,
}

impl ToolError {
    /// An error for the model.
    pub fn model(text: impl Into<String>) -> Self {
        ToolError::Model { text: text.into(), structured: Map::new() }
    }

    /// An error for the person who runs Haft.
    pub fn operator(text: impl Into<String>) -> Self {
        ToolError::Operator(text.into())
    }

    /// Adds fields for programs to an error for the model; the other kinds have none.
    pub fn with_structured(self, fields: Value) -> Self {
        match self {
            ToolError::Model { text, .. } => ToolError::Model { text, structured: object(fields) },
            other => other,
        }
    }
}

impl From<ToolError> for Outcome {
    fn from(error: ToolError) -> Self {
        match error {
            ToolError::Model { text, structured } => Outcome { structured, ..Outcome::error(text) },
            ToolError::Failed(output) => Outcome { is_error: true, ..Outcome::from(*output) },
            ToolError::Operator(text) => {
                tracing::error!(%text, "a tool failed for a reason outside the run");
                Outcome::error(format!(
                    "{text}\nThis has to be put right by the person running Haft; trying again will not help."
                ))
            }
            ToolError::Bug(text) => {
                tracing::error!(%text, "a bug in a tool");
                Outcome::error(format!("Internal error in Haft: {text}"))
            }
            ToolError::Cancelled => Outcome::error("Cancelled before it finished."),
        }
    }
}
