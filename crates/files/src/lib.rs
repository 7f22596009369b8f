//! haft-files
