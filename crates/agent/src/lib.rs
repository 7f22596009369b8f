//! haft-agent
