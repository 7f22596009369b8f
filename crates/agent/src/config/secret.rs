use std::fmt;

/// A key or token. It is never printed: not by `{:?}`, not by `{}`, not in a record.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps it.
    pub fn new(value: impl Into<String>) -> Self {
        Secret(value.into())
    }

    /// The secret itself, for the request that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// For people who want to know which key this is: the last four characters of a long one.
    pub fn masked(&self) -> String {
        let length = self.0.chars().count();
        match length {
            0..16 => "(set)".into(),
            _ => format!("(set, ends in {})", self.0.chars().skip(length - 4).collect::<String>()),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(set)")
    }
}
