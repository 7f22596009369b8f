//! Structural search and rewrite.

#![deny(missing_docs)]

pub mod languages;
mod limits;
mod lines;
pub mod matcher;
pub mod pattern;
pub mod rewrite;
pub mod search;
pub mod staging;
pub mod tools;
mod tree;
pub mod types;

pub use matcher::find;
pub use pattern::{Compiled, PatternError, Reading, Variable, compile};
pub use search::{Engine, Query, Results, SearchError, search};
pub use staging::Staging;
pub use tools::{AstEdit, AstGrep, Resolve};
pub use types::{Binding, Found, Match};
