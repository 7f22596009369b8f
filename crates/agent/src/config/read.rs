//! From the text of a `haft.toml` to typed items, each with its line. Everything that is not known is an error here: a
//! misspelt key that is ignored in silence is a guardrail that is not there.

use std::{ops::Range, str::FromStr};

use haft_lsp::servers::ServerOverride;
use haft_tool::Tier;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{ConfigError, ProviderName, Secret, source::Source};
use crate::guard::{Action, CommandPattern, PathPattern, Preset, Rule};

/// A setting as it stands in a file.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) key: String,
    pub(crate) line: usize,
    pub(crate) value: ItemValue,
}

#[derive(Clone, Debug)]
pub(crate) enum ItemValue {
    /// `models.default`, `models.fast`, `models.good`.
    Model(Slot, String),
    ApiKey(ProviderName, Secret),
    ApiKeyVariable(ProviderName, String),
    BaseUrl(ProviderName, String),
    Context {
        model: String,
        tokens: u32,
    },
    Images {
        model: String,
        images: bool,
    },
    Prices {
        model: String,
        prices: Prices,
    },
    Preset(Preset),
    Rule(Box<Rule>),
    ReadPath(String),
    WritePath(String),
    MaxSteps(u32),
    MaxOutputTokens(u32),
    ShellTimeout(u32),
    QuestionTimeout(u32),
    EvalTimeout(u32),
    EvalTimeoutMost(u32),
    EnclosurePrefix(Vec<String>),
    EnclosureVariable(String, String),
    InstructionFile(String),
    LanguageServer {
        id: String,
        change: Box<ServerOverride>,
    },
}

/// Which of the three models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Slot {
    Default,
    Fast,
    Good,
}

/// US dollars per million tokens, as far as they are given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input read from the cache; as input where absent.
    pub cache_read: Option<f64>,
    /// Input written to the cache; as input where absent.
    pub cache_write: Option<f64>,
}

/// Reads the file.
pub(crate) fn read(source: &Source) -> Result<Vec<Item>, ConfigError> {
    let document = DeTable::parse(&source.text).map_err(|error| ConfigError::Syntax {
        file: source.shown.clone(),
        line: line_of(&source.text, error.span().map_or(0, |span| span.start)),
        why: error.message().to_owned(),
    })?;
    let mut reader = Reader { source, items: Vec::new() };
    let root = Table { table: document.get_ref(), prefix: String::new() };
    reader.root(&root)?;
    Ok(reader.items)
}

struct Reader<'a> {
    source: &'a Source,
    items: Vec<Item>,
}

struct Table<'a, 'i> {
    table: &'a DeTable<'i>,
    /// `run.` and so on, empty at the top.
    prefix: String,
}

type Value<'i> = Spanned<DeValue<'i>>;

impl<'i> Table<'_, 'i> {
    fn key(&self, name: &str) -> String {
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        if plain { format!("{}{name}", self.prefix) } else { format!("{}{name:?}", self.prefix) }
    }

    fn entries(&self) -> impl Iterator<Item = (&str, Range<usize>, &Value<'i>)> {
        self.table.iter().map(|(name, value)| (name.get_ref().as_ref(), name.span(), value))
    }
}

impl Reader<'_> {
    fn root(&mut self, root: &Table<'_, '_>) -> Result<(), ConfigError> {
        for (name, at, value) in root.entries() {
            match name {
                "models" => self.models(&self.table(root, name, value)?)?,
                "providers" => self.providers(&self.table(root, name, value)?)?,
                "guardrails" => self.guardrails(&self.table(root, name, value)?)?,
                "paths" => self.paths(&self.table(root, name, value)?)?,
                "run" => self.run(&self.table(root, name, value)?)?,
                "instructions" => self.instructions(&self.table(root, name, value)?)?,
                "lsp" => self.lsp(&self.table(root, name, value)?)?,
                "enclosure" => self.enclosure(&self.table(root, name, value)?)?,
                _ => {
                    let known = [
                        "models",
                        "providers",
                        "guardrails",
                        "paths",
                        "run",
                        "instructions",
                        "lsp",
                        "enclosure",
                    ];
                    return Err(self.unknown(root, name, at, &known));
                }
            }
        }
        Ok(())
    }

    fn models(&mut self, table: &Table<'_, '_>) -> Result<(), ConfigError> {
        for (name, at, value) in table.entries() {
            let slot = match name {
                "default" => Slot::Default,
                "fast" => Slot::Fast,
                "good" => Slot::Good,
                "profiles" => {
                    self.profiles(&self.table(table, name, value)?)?;
                    continue;
                }
                _ => return Err(self.unknown(table, name, at, &["default", "fast", "good", "profiles"])),
            };
            let key = table.key(name);
            let model = self.string(&key, value)?;
            if !model.contains(['/', ':']) {
                return Err(self.wrong(&key, value, "a model as `provider/NAME`"));
            }
            self.push(key, at, ItemValue::Model(slot, model));
        }
        Ok(())
    }

    fn profiles(&mut self, table: &Table<'_, '_>) -> Result<(), ConfigError> {
        for (name, _, value) in table.entries() {
            let profile = self.table(table, name, value)?;
            let model = name.to_owned();
            for (name, at, value) in profile.entries() {
                let key = profile.key(name);
                let model = model.clone();
                let item = match name {
                    "context_tokens" => ItemValue::Context { model, tokens: self.number(&key, value)? },
                    "images" => ItemValue::Images { model, images: self.boolean(&key, value)? },
                    "prices" => ItemValue::Prices {
                        model,
                        prices: self.prices(&self.table(&profile, name, value)?, value)?,
                    },
                    _ => {
                        return Err(self.unknown(
                            &profile,
                            name,
                            at,
                            &["context_tokens", "images", "prices"],
                        ));
                    }
                };
                self.push(key, at, item);
            }
        }
        Ok(())
    }

    fn prices(&self, table: &Table<'_, '_>, whole: &Value<'_>) -> Result<Prices, ConfigError> {
        let (mut input, mut output, mut cache_read, mut cache_write) = (None, None, None, None);
        for (name, at, value) in table.entries() {
            let slot = match name {
                "input" => &mut input,
                "output" => &mut output,
                "cache_read" => &mut cache_read,
                "cache_write" => &mut cache_write,
                _ => {
                    return Err(self.unknown(
                        table,
                        name,
                        at,
                        &["input", "output", "cache_read", "cache_write"],
                    ));
                }
            };
            *slot = Some(self.price(&table.key(name), value)?);
        }
        match (input, output) {
            (Some(input), Some(output)) => Ok(Prices { input, output, cache_read, cache_write }),
            _ => Err(self.wrong(
                table.prefix.trim_end_matches('.'),
                whole,
                "at least `input` and `output`, in US dollars per million tokens",
            )),
        }
    }

    fn providers(&mut self, table: &Table<'_, '_>) -> Result<(), ConfigError> {
        for (name, at, value) in table.entries() {
            let Ok(provider) = ProviderName::from_str(name) else {
                return Err(self.unknown(table, name, at, &ProviderName::ALL.map(ProviderName::as_str)));
            };
            let section = self.table(table, name, value)?;
            for (name, at, value) in section.entries() {
                let key = section.key(name);
                let item = match name {
                    "api_key" => ItemValue::ApiKey(provider, Secret::new(self.string(&key, value)?)),
                    "api_key_env" => {
                        let variable = self.string(&key, value)?;
                        let fits = variable.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                        if variable.is_empty() || !fits {
                            // Whoever writes a key here must not find it in an error message.
                            return Err(self.problem(
                                &key,
                                at,
                                "the name of an environment variable",
                                "something else",
                            ));
                        }
                        ItemValue::ApiKeyVariable(provider, variable)
                    }
                    "base_url" => {
                        let url = self.string(&key, value)?;
                        if !url.starts_with("http://") && !url.starts_with("https://") {
                            return Err(self.wrong(
                                &key,
                                value,
                                "an address that begins with http:// or https://",
                            ));
                        }
                        ItemValue::BaseUrl(provider, url)
                    }
                    _ => {
                        return Err(self.unknown(
                            &section,
                            name,
                            at,
                            &["api_key", "api_key_env", "base_url"],
                        ));
                    }
                };
                self.push(key, at, item);
            }
        }
        Ok(())
    }

    fn guardrails(&mut self, table: &Table<'_, '_>) -> Result<(), ConfigError> {
        for (name, at, value) in table.entries() {
            let key = table.key(name);
            match name {
                "preset" => {
                    let preset = self.parsed(&key, value, "`ask`, `edits` or `trusted`", Preset::from_str)?;
                    self.push(key, at, ItemValue::Preset(preset));
                }
                "rules" => {
                    let DeValue::Array(rules) = value.get_ref() else {
                        return Err(self.wrong(&key, value, "`[[guardrails.rules]]` sections"));
                    };
                    for (index, rule) in rules.iter().enumerate() {
                        let key = format!("{key}[{index}]");
                        let DeValue::Table(inner) = rule.get_ref() else {
                            return Err(self.wrong(&key, rule, "a `[[guardrails.rules]]` section"));
                        };
                        let parsed = self.rule(&Table { table: inner, prefix: format!("{key}.") }, rule)?;
                        self.push(key, rule.span(), ItemValue::Rule(Box::new(parsed)));
                    }
                }
                _ => return Err(self.unknown(table, name, at, &["preset", "rules"])),
            }
        }
        Ok(())
    }

    fn rule(&self, table: &Table<'_, '_>, whole: &Value<'_>) -> Result<Rule, ConfigError> {
        let origin = format!("{}:{}", self.source.shown, line_of(&self.source.text, whole.span().start));
        let mut action = None;
        let mut rule = Rule::new(Action::Deny, origin);
        for (name, at, value) in table.entries() {
            let key = table.key(name);
            match name {
                "action" => {
                    action =
                        Some(self.parsed(&key, value, "`allow`, `deny` or `prompt`", |text| match text {
                            "allow" => Ok(Action::Allow),
                            "deny" => Ok(Action::Deny),
                            "prompt" => Ok(Action::Prompt),
                            _ => Err(String::new()),
                        })?);
                }
                "tool" => rule.tool = Some(self.string(&key, value)?),
                "tier" => {
                    rule.tier =
                        Some(self.parsed(&key, value, "`read`, `write` or `exec`", Tier::from_str)?);
                }
                "path" => {
                    let text = self.string(&key, value)?;
                    let pattern = PathPattern::new(text).and_then(|pattern| {
                        if self.source.of_project {
                            pattern.anchored(self.source.directory())
                        } else {
                            Ok(pattern)
                        }
                    });
                    rule.path = Some(pattern.map_err(|error| {
                        self.problem(&key, value.span(), "a pattern for paths", &error.to_string())
                    })?);
                }
                "command" => {
                    let text = self.string(&key, value)?;
                    rule.command = Some(CommandPattern::new(text).map_err(|error| {
                        self.problem(&key, value.span(), "a pattern for commands", &error.to_string())
                    })?);
                }
                "reason" => rule.reason = Some(self.string(&key, value)?),
                _ => {
                    let known = ["action", "tool", "tier", "path", "command", "reason"];
                    return Err(self.unknown(table, name, at, &known));
                }
            }
        }
        let Some(action) = action else {
            let key = table.prefix.trim_end_matches('.');
            return Err(self.problem(key, whole.span(), "an `action`: `allow`, `deny` or `prompt`", "none"));
        };
        if action == Action::Allow && rule.path.is_some() && rule.command.is_some() {
            // It would never let anything through: a path alone does not make a command safe, nor the reverse.
            let key = table.prefix.trim_end_matches('.');
            return Err(self.problem(
                key,
                whole.span(),
                "an allow rule with a `path` or a `command`",
                "both",
            ));
        }
        Ok(Rule { action, ..rule })
    }

    fn paths(&mut self, table: &Table<'_, '_>) -> Result<(), ConfigError> {
        for (name, at, value) in table.entries() {
            let make = match name {
                "read" => ItemValue::ReadPath,
                "write" => ItemValue::WritePath,
                _ => return Err(self.unknown(table, name, at, &["read", "write"])),
            };
            let key = table.key(name);
            for (text, span) in self.strings(&key, value)? {
                self.push(key.clone(), span, make(text));
            }
        }
        Ok(())
    }

    fn run(&mut self, table: &Table<'_, '_>) -> Result<(), ConfigError> {
        for (name, at, value) in table.entries() {
            let make = match name {
                "max_steps" => ItemValue::MaxSteps,
                "max_output_tokens" => ItemValue::MaxOutputTokens,
                "shell_timeout_seconds" => ItemValue::ShellTimeout,
                "question_timeout_seconds" => ItemValue::QuestionTimeout,
                "eval_timeout_seconds" => ItemValue::EvalTimeout,
                "eval_timeout_most_seconds" => ItemValue::EvalTimeoutMost,
                _ => {
                    let known = [
                        "max_steps",
                        "max_output_tokens",
                        "shell_timeout_seconds",
                        "question_timeout_seconds",
                        "eval_timeout_seconds",
                        "eval_timeout_most_seconds",
                    ];
                    return Err(self.unknown(table, name, at, &known));
                }
            };
            let key = table.key(name);
            let number = self.number(&key, value)?;
            self.push(key, at, make(number));
        }
        Ok(())
    }

    fn enclosure(&mut self, table: &Table<'_, '_>) -> Result<(), ConfigError> {
        for (name, at, value) in table.entries() {
            let key = table.key(name);
            match name {
                "command_prefix" => {
                    let words = self.strings(&key, value)?.into_iter().map(|(word, _)| word).collect();
                    self.push(key, at, ItemValue::EnclosurePrefix(words));
                }
                "environment" => {
                    let variables = self.table(table, name, value)?;
                    for (name, at, value) in variables.entries() {
                        let key = variables.key(name);
                        let Some(text) = value.get_ref().as_str() else {
                            return Err(self.wrong(&key, value, "text in quotes"));
                        };
                        if name.is_empty() || name.contains(['=', '\0']) {
                            return Err(self.problem(&key, at, "the name of an environment variable", name));
                        }
                        self.push(key, at, ItemValue::EnclosureVariable(name.to_owned(), text.to_owned()));
                    }
                }
                _ => return Err(self.unknown(table, name, at, &["command_prefix", "environment"])),
            }
        }
        Ok(())
    }

    fn instructions(&mut self, table: &Table<'_, '_>) -> Result<(), ConfigError> {
        for (name, at, value) in table.entries() {
            if name != "files" {
                return Err(self.unknown(table, name, at, &["files"]));
            }
            let key = table.key(name);
            for (text, span) in self.strings(&key, value)? {
                self.push(key.clone(), span, ItemValue::InstructionFile(text));
            }
        }
        Ok(())
    }

    fn lsp(&mut self, table: &Table<'_, '_>) -> Result<(), ConfigError> {
        for (name, at, value) in table.entries() {
            if name != "servers" {
                return Err(self.unknown(table, name, at, &["servers"]));
            }
            // Settings of a server are free-form, so the second, plain reading of the file is the simple way to them.
            let plain: toml::Table =
                toml::from_str(&self.source.text).map_err(|error| ConfigError::Syntax {
                    file: self.source.shown.clone(),
                    line: line_of(&self.source.text, error.span().map_or(0, |span| span.start)),
                    why: error.message().to_owned(),
                })?;
            let plain = plain.get("lsp").and_then(|lsp| lsp.get("servers"));
            let servers = self.table(table, name, value)?;
            for (id, at, value) in servers.entries() {
                let key = servers.key(id);
                // Not a table: the error says so.
                self.table(&servers, id, value)?;
                let entry = plain.and_then(|servers| servers.get(id)).cloned();
                let change =
                    entry.map(toml::Value::try_into::<ServerOverride>).transpose().map_err(|error| {
                        self.problem(&key, at.clone(), "the settings of a language server", error.message())
                    })?;
                let change = Box::new(change.unwrap_or_default());
                self.push(key, at, ItemValue::LanguageServer { id: id.to_owned(), change });
            }
        }
        Ok(())
    }

    fn push(&mut self, key: String, at: Range<usize>, value: ItemValue) {
        let line = line_of(&self.source.text, at.start);
        self.items.push(Item { key, line, value });
    }

    fn table<'a, 'i>(
        &self,
        outer: &Table<'_, '_>,
        name: &str,
        value: &'a Value<'i>,
    ) -> Result<Table<'a, 'i>, ConfigError> {
        let key = outer.key(name);
        match value.get_ref() {
            DeValue::Table(table) => Ok(Table { table, prefix: format!("{key}.") }),
            _ => Err(self.wrong(&key, value, "a section")),
        }
    }

    fn string(&self, key: &str, value: &Value<'_>) -> Result<String, ConfigError> {
        match value.get_ref().as_str() {
            Some("") => Err(self.wrong(key, value, "some text")),
            Some(text) => Ok(text.to_owned()),
            None => Err(self.wrong(key, value, "text in quotes")),
        }
    }

    fn strings(&self, key: &str, value: &Value<'_>) -> Result<Vec<(String, Range<usize>)>, ConfigError> {
        let DeValue::Array(values) = value.get_ref() else {
            return Err(self.wrong(key, value, "a list of texts"));
        };
        values.iter().map(|value| Ok((self.string(key, value)?, value.span()))).collect()
    }

    fn parsed<T, E>(
        &self,
        key: &str,
        value: &Value<'_>,
        expected: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<T, ConfigError> {
        let parsed = value.get_ref().as_str().and_then(|text| parse(text).ok());
        parsed.ok_or_else(|| self.wrong(key, value, expected))
    }

    fn number(&self, key: &str, value: &Value<'_>) -> Result<u32, ConfigError> {
        let number = value.get_ref().as_integer();
        let number = number.and_then(|number| u32::from_str_radix(number.as_str(), number.radix()).ok());
        number.filter(|number| *number > 0).ok_or_else(|| self.wrong(key, value, "a whole number above 0"))
    }

    fn boolean(&self, key: &str, value: &Value<'_>) -> Result<bool, ConfigError> {
        value.get_ref().as_bool().ok_or_else(|| self.wrong(key, value, "true or false"))
    }

    fn price(&self, key: &str, value: &Value<'_>) -> Result<f64, ConfigError> {
        let text = match value.get_ref() {
            DeValue::Float(number) => Some(number.as_str()),
            DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str()),
            _ => None,
        };
        let price =
            text.and_then(|text| text.parse::<f64>().ok()).filter(|price| price.is_finite() && *price >= 0.0);
        price.ok_or_else(|| self.wrong(key, value, "a price in US dollars per million tokens"))
    }

    fn unknown(&self, table: &Table<'_, '_>, name: &str, at: Range<usize>, known: &[&str]) -> ConfigError {
        let hint = match nearest(name, known) {
            Some(near) => format!("; did you mean `{}`?", table.key(near)),
            None => {
                let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
                format!("; known here: {}", known.join(", "))
            }
        };
        ConfigError::UnknownKey {
            file: self.source.shown.clone(),
            line: line_of(&self.source.text, at.start),
            key: table.key(name),
            hint,
        }
    }

    fn wrong(&self, key: &str, value: &Value<'_>, expected: &str) -> ConfigError {
        // Whatever stands there may be the key, without its quotes.
        let secret = key.ends_with("api_key");
        let found = match value.get_ref() {
            DeValue::String(text) if secret && text.is_empty() => "nothing".to_owned(),
            _ if secret => "something else".to_owned(),
            DeValue::String(text) => format!("{text:?}"),
            DeValue::Integer(number) => format!("the number {number}"),
            DeValue::Float(number) => format!("the number {number}"),
            DeValue::Boolean(flag) => flag.to_string(),
            DeValue::Datetime(_) => "a date".to_owned(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a section".to_owned(),
        };
        self.problem(key, value.span(), expected, &found)
    }

    fn problem(&self, key: &str, at: Range<usize>, expected: &str, found: &str) -> ConfigError {
        ConfigError::Value {
            file: self.source.shown.clone(),
            line: line_of(&self.source.text, at.start),
            key: key.to_owned(),
            expected: expected.to_owned(),
            found: found.to_owned(),
        }
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

/// The known name that is nearest to `name`, if one is near.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known.iter().map(|known| (distance(name, known), *known)).min()?;
    (near.0 <= 1 + name.chars().count() / 4).then_some(near.1)
}

/// How many letters have to be added, removed or changed.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
            let change = at(&row, j) + usize::from(x != *y);
            next.push(change.min(at(&row, j + 1) + 1).min(at(&next, j) + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(usize::MAX)
}
