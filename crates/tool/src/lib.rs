//! The contract between a run and its tools.
//!
//! A tool family implements [`Tool`] for each of its tools: a name, a [`Tier`], an argument struct whose JSON schema
//! the model sees, and a `call`. The wiring of a run puts the tools whose resources exist into a [`Registry`]; whoever
//! wants something done (a model, a kernel cell, a worker, an outside client, the console) goes through
//! [`Registry::call`], the one door (SPEC R7). The registry leads every call through its layers in one written order,
//! [`Place`], and what comes out is an [`Outcome`], never a panic and never silence.
//!
//! ```
//! use haft_tool::{Call, Context, Family, Origin, Output, Registry, Surface, Tier, Tool, ToolError};
//!
//! struct Greet;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct GreetArguments {
//!     /// Whom to greet.
//!     name: String,
//! }
//!
//! impl Tool for Greet {
//!     type Arguments = GreetArguments;
//!     const NAME: &'static str = "greet";
//!     const TIER: Tier = Tier::Read;
//!     fn description(&self) -> String {
//!         "Greets a person by name.".into()
//!     }
//!     async fn call(&self, arguments: GreetArguments, _: &Context) -> Result<Output, ToolError> {
//!         Ok(Output::text(format!("Hello, {}.", arguments.name)))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let registry = Registry::builder().tool(Greet, Family::General).build();
//! let call = Call::new("greet", serde_json::json!({"name": "Ada"}), Origin::Console);
//! let outcome = registry.call(&Surface::agent(), call, Context::detached()).await;
//! assert_eq!(outcome.first_text(), Some("Hello, Ada."));
//! # }
//! ```
//!
//! Nothing in this crate touches the machine: no files, no processes, no clock.

#![deny(missing_docs)]

mod call;
mod error;
mod layer;
mod output;
mod registry;
mod schema;
mod surface;
mod tier;
mod tool;

pub use call::{Call, CallId, Context, Origin, Progress};
pub use error::ToolError;
pub use layer::{Admission, Layer, Next, Place};
pub use output::{Content, Outcome, Output};
pub use registry::{Explained, Family, Registry, RegistryBuilder};
pub use schema::{ArgumentError, Schema};
pub use surface::{Surface, SurfaceKind};
pub use tier::Tier;
pub use tool::{Access, AnyTool, Spec, Tool, Touch, erase};
