//! Guardrails: whether a call is let through, refused, or put to a person (SPEC G1, Q3).
//!
//! [`Policy::judge`] looks at a call's tool, tier, paths and command and answers with a [`Verdict`]. It starts nothing and asks
//! nobody; to find out where a path leads it reads symbolic links. The order is: a deny rule wins over everything, then a prompt
//! rule, then allow rules, then the preset. `docs/guardrails.md` tells it to the people who write rules.

mod places;
mod policy;
mod rule;
pub(crate) mod shell;
mod suggest;
#[cfg(test)]
mod tests;

pub use policy::{Policy, Preset, Verdict};
pub use rule::{Action, CommandPattern, PathPattern, PatternError, Rule};
