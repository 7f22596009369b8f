//! Every wire format against recorded shapes of its provider's answers, and what is done when something goes wrong on the way.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod anthropic;
mod attempts;
mod chat;
mod checker;
mod gemini;
mod names;
mod ollama;
mod recording;
mod responses;
mod support;
