use std::{fmt, path::Path};

use globset::{GlobBuilder, GlobMatcher};
use haft_tool::Tier;
use serde::{Deserialize, Serialize};

use super::shell::{HOLE, Sure, Word, base_name};

/// What a rule does with the calls that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Lets them through without asking.
    Allow,
    /// Refuses them.
    Deny,
    /// Asks a person, whatever the preset and allow rules say.
    Prompt,
}

impl Action {
    /// The word in `haft.toml`.
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Allow => "allow",
            Action::Deny => "deny",
            Action::Prompt => "prompt",
        }
    }
}

/// A guardrail rule: all the conditions that it gives must hold (SPEC G1). A rule without conditions is about every call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The tool's tier; a redirect in a shell line counts as `write` or `read` as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// A path that the call touches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathPattern>,
    /// A command in a shell line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandPattern>,
    /// What to do.
    pub action: Action,
    /// Why, for the one who is refused or asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Where the rule stands, for people: `haft.toml:12`, `this conversation`.
    pub origin: String,
}

impl Rule {
    /// A rule about every call.
    pub fn new(action: Action, origin: impl Into<String>) -> Self {
        let origin = origin.into();
        Rule { tool: None, tier: None, path: None, command: None, action, reason: None, origin }
    }

    /// Only calls of this tool.
    pub fn tool(self, name: impl Into<String>) -> Self {
        Rule { tool: Some(name.into()), ..self }
    }

    /// Only calls with this command.
    pub fn command(self, pattern: CommandPattern) -> Self {
        Rule { command: Some(pattern), ..self }
    }

    /// The rule as it is told to people, without its origin: "allow tool `shell`, command `cargo test *`".
    pub fn in_words(&self) -> String {
        let mut conditions = Vec::new();
        if let Some(tool) = &self.tool {
            conditions.push(format!("tool `{tool}`"));
        }
        if let Some(tier) = self.tier {
            conditions.push(format!("tier `{tier}`"));
        }
        if let Some(path) = &self.path {
            conditions.push(format!("path `{path}`"));
        }
        if let Some(command) = &self.command {
            conditions.push(format!("command `{command}`"));
        }
        let conditions = if conditions.is_empty() { "every call".to_owned() } else { conditions.join(", ") };
        format!("{} {conditions}", self.action.as_str())
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.in_words(), self.origin)
    }
}

/// Why a pattern in a rule is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Nothing in it.
    #[error("an empty pattern")]
    Empty,
    /// Not a glob.
    #[error("`{pattern}` is not a glob: {why}")]
    Glob {
        /// As written.
        pattern: String,
        /// What the glob parser says.
        why: String,
    },
    /// `..` or `~` in it, which would never match.
    #[error("`{pattern}`: {why}")]
    Path {
        /// As written.
        pattern: String,
        /// What is wrong.
        why: &'static str,
    },
    /// Not a list of words.
    #[error(
        "`{pattern}` is not a list of plain words: a rule is about one command, without `;`, `|`, `>` or `$`"
    )]
    Words {
        /// As written.
        pattern: String,
    },
}

/// Which paths a rule is about. Without a `/` (except at the end) the pattern is about that name at any depth; with one, `./` included,
/// it starts at the working directory, or at `/` if that is its first character. `*` and `?` stay within one name, `**` crosses directories. What matches a directory
/// holds for everything below it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PathPattern {
    text: String,
    /// `.`: the working directory and everything in it.
    whole: bool,
    matcher: GlobMatcher,
}

impl PathPattern {
    /// Reads a pattern.
    pub fn new(text: impl Into<String>) -> Result<Self, PatternError> {
        let text = text.into();
        let body = text.strip_suffix('/').filter(|body| !body.is_empty()).unwrap_or(&text);
        let body = body.strip_prefix("./").unwrap_or(body);
        if body.is_empty() {
            return Err(PatternError::Empty);
        }
        let wrong = |why| Err(PatternError::Path { pattern: text.clone(), why });
        if body.split('/').any(|part| part == "..") {
            return wrong("`..` never matches, because paths are compared after it was removed");
        }
        if body.starts_with('~') {
            return wrong("`~` is not expanded in a rule; write the absolute path");
        }
        let anywhere = !body.contains('/') && !text.starts_with("./");
        let whole = body == ".";
        let glob = if anywhere { format!("**/{body}") } else { body.to_owned() };
        let matcher = GlobBuilder::new(&glob)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| PatternError::Glob { pattern: text.clone(), why: error.kind().to_string() })?
            .compile_matcher();
        Ok(PathPattern { text, whole, matcher })
    }

    /// Whether a deny or prompt rule with this pattern is about the path, given absolute. Outside `root`, the working directory,
    /// relative patterns are compared too: a name is no less secret there.
    pub(crate) fn meets(&self, path: &Path, root: &Path) -> bool {
        self.allows(path, root) || (!path.starts_with(root) && !self.whole && self.covers(path))
    }

    /// Whether an allow rule with this pattern is about the path, given absolute and with symbolic links followed. Only a pattern
    /// that begins with `/` is about places outside `root`, the working directory.
    pub(crate) fn allows(&self, path: &Path, root: &Path) -> bool {
        if self.text.starts_with('/') {
            return self.covers(path);
        }
        path.strip_prefix(root).is_ok_and(|inside| self.whole || self.covers(inside))
    }

    fn covers(&self, path: &Path) -> bool {
        path.ancestors().any(|path| self.matcher.is_match(path))
    }

    /// The same pattern for a rule that stands in a file in `directory`: a `/` in it starts there, wherever the working directory is.
    pub(crate) fn anchored(self, directory: &Path) -> Result<Self, PatternError> {
        let anywhere = !self.whole && !self.text.trim_end_matches('/').contains('/');
        if self.text.starts_with('/') || anywhere {
            return Ok(self);
        }
        let directory = globset::escape(&directory.to_string_lossy());
        let below = if self.whole { "**" } else { self.text.trim_start_matches("./") };
        PathPattern::new(format!("{}/{below}", directory.trim_end_matches('/')))
    }

    /// Whether `word` could be a path that this is about, in a directory that is not known.
    pub(crate) fn could_end(&self, word: &str) -> bool {
        let last_of =
            |path: &'_ str| path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
        GlobBuilder::new(&last_of(&self.text))
            .build()
            .map_or(true, |glob| glob.compile_matcher().is_match(last_of(word)))
    }

    /// Whether the shell could expand `word` to a path that this is about, as far as the name in the pattern is plain.
    pub(crate) fn could_be(&self, word: &str) -> bool {
        let plain = self.text.trim_end_matches('/');
        if plain.contains(['*', '?', '[', '{']) {
            return false;
        }
        let last_of = |path: &'_ str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let word = word.strip_prefix("./").unwrap_or(word);
        let whole = plain.contains('/') && !word.starts_with(['/', '~']) && !word.contains("..");
        let (word, wanted) = if whole {
            (word.to_owned(), plain.strip_prefix("./").unwrap_or(plain).to_owned())
        } else {
            (last_of(word), last_of(plain))
        };
        if !whole && wanted.starts_with('.') && !word.starts_with(['.', '[', '?']) {
            // A wildcard at the beginning of a name does not stand for a dot.
            return false;
        }
        GlobBuilder::new(&word)
            .literal_separator(true)
            .build()
            .map_or(true, |glob| glob.compile_matcher().is_match(wanted))
    }
}

impl PartialEq for PathPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for PathPattern {}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<PathPattern> for String {
    fn from(pattern: PathPattern) -> Self {
        pattern.text
    }
}

impl TryFrom<String> for PathPattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        PathPattern::new(text)
    }
}

/// Which commands a rule is about, word by word. `*` inside a word stands for any characters, alone for any one word, at the
/// end for any further words, none included; alone as the whole pattern it is every line whatever is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommandPattern {
    text: String,
    words: Vec<String>,
    open: bool,
}

/// How sure a pattern is about a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    No,
    Maybe,
    Yes,
}

impl CommandPattern {
    /// Reads a pattern. Quotes and backslashes group words as in the shell.
    pub fn new(text: impl Into<String>) -> Result<Self, PatternError> {
        let text = text.into();
        let Some(words) = super::shell::pattern_words(&text) else {
            return Err(PatternError::Words { pattern: text });
        };
        let mut words: Vec<String> = words.into_iter().map(|word| word.text).collect();
        let open = words.last().is_some_and(|word| word == "*");
        if open {
            words.pop();
        }
        if words.is_empty() && !open {
            return Err(PatternError::Empty);
        }
        Ok(CommandPattern { text, words, open })
    }

    /// `*`: every line, whatever is in it.
    pub(crate) fn is_everything(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether an allow rule with this pattern lets the command through. `words` hold nothing unknown.
    pub(crate) fn allows(&self, words: &[Word]) -> bool {
        if words.len() < self.words.len() || (!self.open && words.len() > self.words.len()) {
            return false;
        }
        self.words.iter().zip(words).enumerate().all(|(index, (pattern, word))| {
            word.known().is_some_and(|text| {
                let text = if index == 0 && !pattern.contains('/') { trusted_name(text) } else { text };
                wild(pattern, text)
            })
        })
    }

    /// Whether a deny or prompt rule with this pattern is about the command. Further words never make it escape.
    pub(crate) fn meets(&self, words: &[Word]) -> Match {
        let mut sure = Match::Yes;
        for (index, pattern) in self.words.iter().enumerate() {
            let Some(word) = words.get(index) else { return Match::No };
            let text = match index {
                0 if !pattern.contains('/') => base_name(&word.text),
                _ => word.text.as_str(),
            };
            match word.sure {
                // It may be several words or none, so the comparison ends here.
                Sure::Unknown => return Match::Maybe,
                Sure::Literal if wild(pattern, text) => {}
                Sure::Literal => return Match::No,
                Sure::Pattern => {
                    let could = pattern.contains('*')
                        || GlobBuilder::new(text)
                            .build()
                            .map_or(true, |glob| glob.compile_matcher().is_match(pattern));
                    if !could {
                        return Match::No;
                    }
                    sure = Match::Maybe;
                }
            }
        }
        sure
    }

    /// Whether code could be about the program that the pattern names.
    pub(crate) fn mentioned_in(&self, code: &str) -> bool {
        self.words.first().is_none_or(|program| {
            let plain = program.trim_matches('*');
            plain.is_empty() || plain.contains('*') || code.contains(base_name(plain)) || code.contains(HOLE)
        })
    }
}

/// `/usr/bin/git` is the program that `git` means; `./git` and `/tmp/git` are not.
fn trusted_name(text: &str) -> &str {
    ["/usr/local/bin/", "/usr/bin/", "/bin/", "/usr/sbin/", "/sbin/"]
        .iter()
        .find_map(|directory| text.strip_prefix(directory))
        .filter(|name| !name.contains('/'))
        .unwrap_or(text)
}

/// `*` stands for any characters; everything else is itself.
fn wild(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match text.find(part) {
            Some(at) => text = text.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    text.len() >= last.len() && text.ends_with(last)
}

impl fmt::Display for CommandPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<CommandPattern> for String {
    fn from(pattern: CommandPattern) -> Self {
        pattern.text
    }
}

impl TryFrom<String> for CommandPattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        CommandPattern::new(text)
    }
}
