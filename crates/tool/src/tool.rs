use std::{future::Future, path::PathBuf, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{ArgumentError, Context, Output, Schema, Tier, ToolError};

/// What a reader of the registry is told about a tool (SPEC R1).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spec {
    /// Unique in a registry.
    pub name: String,
    /// Decides who sees it.
    pub tier: Tier,
    /// For the model: what it does, when to use it, what it answers.
    pub description: String,
    /// JSON schema of the arguments.
    pub schema: Value,
    /// Whether calls may run beside each other within a conversation (SPEC R6).
    pub parallel: bool,
}

/// How a call touches a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Looks at it.
    Read,
    /// Creates, changes or removes it.
    Write,
}

/// Something a call is about to touch, so that guardrail rules can be written about it (SPEC G1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touch {
    /// A file or directory as the caller wrote it, not yet resolved.
    Path(PathBuf, Access),
    /// A shell command line.
    Command(String),
}

/// A tool, as its family writes it.
///
/// Constructors check *wiring* (is the resource there?), calls check the *checkout* (does it make sense here?): SPEC R2, R3.
pub trait Tool: Send + Sync + 'static {
    /// The arguments; doc comments on the fields become their descriptions in the schema. Use
    /// `#[serde(deny_unknown_fields)]`, so that a misspelt field is an error and not ignored.
    type Arguments: DeserializeOwned + JsonSchema + Send + 'static;

    /// The name that callers use.
    const NAME: &'static str;

    /// The tier, declared once and never dependent on arguments.
    const TIER: Tier;

    /// Whether calls may run beside each other within a conversation.
    const PARALLEL: bool = true;

    /// For the model: what it does, when to use it, what it answers.
    fn description(&self) -> String;

    /// The paths and commands that these arguments would touch. Everything that a person could want a rule about
    /// belongs here.
    fn touches(&self, arguments: &Self::Arguments) -> Vec<Touch> {
        let _ = arguments;
        Vec::new()
    }

    /// Does the work. Returns soon after `context.cancel` fires.
    fn call(
        &self,
        arguments: Self::Arguments,
        context: &Context,
    ) -> impl Future<Output = Result<Output, ToolError>> + Send;
}

/// A tool with its argument type erased, as the registry keeps it. Implemented for every [`Tool`] by [`erase`]; written by
/// hand only where the schema is not known at compile time (tools bridged from an MCP server).
pub trait AnyTool: Send + Sync {
    /// What readers are told.
    fn spec(&self) -> &Spec;

    /// Checks arguments against the schema; the error names the field, what was expected and what came.
    fn check(&self, arguments: &Value) -> Result<(), ArgumentError>;

    /// See [`Tool::touches`]; arguments that do not check touch nothing.
    fn touches(&self, arguments: &Value) -> Vec<Touch>;

    /// Does the work. The arguments have passed `check`.
    fn call<'a>(&'a self, arguments: Value, context: &'a Context)
    -> BoxFuture<'a, Result<Output, ToolError>>;
}

/// Erases a tool's argument type.
pub fn erase<T: Tool>(tool: T) -> Arc<dyn AnyTool> {
    let schema = Schema::of::<T::Arguments>();
    let spec = Spec {
        name: T::NAME.to_owned(),
        tier: T::TIER,
        description: tool.description(),
        schema: schema.json().clone(),
        parallel: T::PARALLEL,
    };
    Arc::new(Erased { tool, spec, schema })
}

struct Erased<T> {
    tool: T,
    spec: Spec,
    schema: Schema,
}

impl<T: Tool> AnyTool for Erased<T> {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn check(&self, arguments: &Value) -> Result<(), ArgumentError> {
        self.schema.check(arguments)?;
        // The schema cannot say everything serde knows (a number that overflows its type).
        T::Arguments::deserialize(arguments).map(drop).map_err(|error| ArgumentError::from_serde(&error))
    }

    fn touches(&self, arguments: &Value) -> Vec<Touch> {
        T::Arguments::deserialize(arguments).map(|typed| self.tool.touches(&typed)).unwrap_or_default()
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        async move {
            let typed = serde_json::from_value(arguments)
                .map_err(|error| ToolError::model(ArgumentError::from_serde(&error).to_string()))?;
            self.tool.call(typed, context).await
        }
        .boxed()
    }
}
