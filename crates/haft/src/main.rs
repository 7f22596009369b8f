//! Haft.
fn main() {}
