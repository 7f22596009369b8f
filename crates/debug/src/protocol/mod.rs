//! The Debug Adapter Protocol, client side.

mod client;
mod framing;
pub(crate) mod message;

pub(crate) use client::{Client, Handler, RequestError, Sent};
