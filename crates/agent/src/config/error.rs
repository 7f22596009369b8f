use std::path::PathBuf;

/// Why the settings could not be read. The words are for the person who wrote them.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is there and cannot be read.
    #[error("{file} cannot be read: {why}")]
    Read {
        /// Which file.
        file: String,
        /// What the system says.
        why: String,
    },
    /// Not TOML.
    #[error("{file}:{line}: this is not TOML: {why}")]
    Syntax {
        /// Which file.
        file: String,
        /// From 1.
        line: usize,
        /// What the parser says.
        why: String,
    },
    /// A key that means nothing.
    #[error("{file}:{line}: there is no key `{key}`{hint}")]
    UnknownKey {
        /// Which file.
        file: String,
        /// From 1.
        line: usize,
        /// With its sections: `run.max_step`.
        key: String,
        /// The nearest known key, or all of them, in words.
        hint: String,
    },
    /// A value that does not fit.
    #[error("{file}:{line}: `{key}`: expected {expected}, found {found}")]
    Value {
        /// Which file.
        file: String,
        /// From 1.
        line: usize,
        /// With its sections.
        key: String,
        /// What would fit.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The list of trusted files.
    #[error("the list of trusted files, {file}, {why}")]
    Trust {
        /// Which file.
        file: PathBuf,
        /// "cannot be read: …" and so on.
        why: String,
    },
    /// Nothing to trust or distrust.
    #[error("there is no haft.toml in {directory} or above it within its repository")]
    NoProject {
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// Without a state directory nothing can be remembered.
    #[error("there is no place for Haft's state: set HOME, XDG_STATE_HOME or HAFT_STATE_DIR")]
    NoState,
}
