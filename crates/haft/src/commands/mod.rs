//! The commands, a file each.

pub(crate) mod chat;
pub(crate) mod config;
pub(crate) mod console;
pub(crate) mod conversations;
pub(crate) mod demo;
mod demo_workers;
pub(crate) mod doctor;
mod doctor_servers;
pub(crate) mod export;
pub(crate) mod run;
pub(crate) mod tool;
pub(crate) mod tools;
