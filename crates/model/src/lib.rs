//! Language models behind one trait.
//!
//! A [`Model`] is given a [`Request`] and answers with a stream of [`Event`]s that ends in [`Event::Done`] or an error. Providers, the script
//! model and the replay of a recording are all the same to the run. Names are `provider/NAME` (SPEC H2).

#![deny(missing_docs)]

mod types;

pub use types::*;
