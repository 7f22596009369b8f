use std::{collections::HashSet, fmt, path::Path, str::FromStr};

use haft_system::Workdir;
use haft_tool::{Access, Spec, Tier, Touch};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    places::Place,
    rule::{Action, CommandPattern, Match, Rule},
    shell::{self, Line, Need, Redirect, Sure, Word, shown},
    suggest,
};

/// What happens to calls that no rule is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Write and exec prompt.
    #[default]
    Ask,
    /// Exec prompts; changes to files inside the working directory are let through.
    Edits,
    /// Nothing prompts, except what a deny or prompt rule could be about.
    Trusted,
}

impl Preset {
    /// The word in `haft.toml`.
    pub fn as_str(self) -> &'static str {
        match self {
            Preset::Ask => "ask",
            Preset::Edits => "edits",
            Preset::Trusted => "trusted",
        }
    }

    fn allows(self, tier: Tier) -> bool {
        match self {
            Preset::Ask => tier == Tier::Read,
            Preset::Edits => tier <= Tier::Write,
            Preset::Trusted => true,
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ask" => Ok(Preset::Ask),
            "edits" => Ok(Preset::Edits),
            "trusted" => Ok(Preset::Trusted),
            other => Err(format!("`{other}` is not a preset: ask, edits or trusted")),
        }
    }
}

/// What is to happen with a call.
#[expect(clippy::large_enum_variant, reason = "one is made per call and taken apart at once")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Allow {
        /// The rules that let it through, in words with their origin; `None` where the preset did.
        rule: Option<String>,
    },
    /// It is refused.
    Deny {
        /// The rule in words, with its origin.
        rule: String,
        /// What the rule gives as its reason.
        reason: Option<String>,
    },
    /// A person is asked; with nobody to ask it is refused (SPEC Q3).
    Prompt {
        /// Why, as a sentence for the card.
        why: String,
        /// The rule that "always in this conversation" would add; `None` where no rule would let this call through next time.
        always: Option<Rule>,
    },
}

/// The rules of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    preset: Preset,
    rules: Vec<Rule>,
}

/// A call as the rules see it.
struct Subject<'a> {
    spec: &'a Spec,
    /// The working directory.
    root: &'a Path,
    /// What the tool says it touches.
    places: Vec<Place>,
    lines: Vec<LineSubject>,
}

struct LineSubject {
    line: Line,
    /// Files that redirects (and `tee`) name.
    redirects: Vec<Place>,
    /// Words that could be paths, for deny and prompt rules; empty where no such rule is about paths.
    mentions: Vec<Place>,
    /// Words with wildcards.
    wildcards: Vec<String>,
    /// Relative words in a line with a `cd`: what they name depends on it.
    adrift: Vec<String>,
}

impl Policy {
    /// `rules` in any order: what wins does not depend on it.
    pub fn new(preset: Preset, rules: Vec<Rule>) -> Self {
        Policy { preset, rules }
    }

    /// What happens to calls that no rule is about.
    pub fn preset(&self) -> Preset {
        self.preset
    }

    /// The rules.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Adds a rule, such as the one that "always in this conversation" gives.
    pub fn add(&mut self, rule: Rule) {
        if !self.rules.contains(&rule) {
            self.rules.push(rule);
        }
    }

    /// Judges a call. `arguments` are shown to people only.
    pub fn judge(&self, spec: &Spec, touches: &[Touch], arguments: &Value, workdir: &Workdir) -> Verdict {
        let _ = arguments;
        let subject = Subject::new(spec, touches, workdir, &self.rules);
        let mut possible: Option<&Rule> = None;
        for action in [Action::Deny, Action::Prompt] {
            for rule in self.rules.iter().filter(|rule| rule.action == action) {
                match (subject.met_by(rule), action) {
                    (Match::Yes, Action::Deny) => {
                        return Verdict::Deny { rule: rule.to_string(), reason: rule.reason.clone() };
                    }
                    (Match::Yes, _) => {
                        let reason =
                            rule.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
                        return Verdict::Prompt {
                            why: format!("The rule {rule} wants you to be asked{reason}."),
                            always: None,
                        };
                    }
                    (Match::Maybe, _) => possible = possible.or(Some(rule)),
                    (Match::No, _) => {}
                }
            }
        }
        if let Some(rule) = possible {
            let because = subject.blind().map(|why| format!(": {why}")).unwrap_or_default();
            return Verdict::Prompt {
                why: format!("It cannot be ruled out that this is what the rule {rule} is about{because}."),
                always: None,
            };
        }
        match self.permit(&subject, workdir) {
            Ok(rules) => Verdict::Allow { rule: (!rules.is_empty()).then(|| rules.join("; ")) },
            Err(why) => {
                let always = suggest::always(&subject.describe()).filter(|rule| {
                    let mut policy = self.clone();
                    policy.add(rule.clone());
                    policy.permit(&subject, workdir).is_ok()
                });
                Verdict::Prompt { why, always }
            }
        }
    }

    /// The rules that let everything about the call through, or why it is put to a person.
    fn permit(&self, subject: &Subject<'_>, workdir: &Workdir) -> Result<Vec<String>, String> {
        let mut used = Vec::new();
        let mut permit = |rule: &Rule| {
            let words = rule.to_string();
            if !used.contains(&words) {
                used.push(words);
            }
        };
        let tier = subject.spec.tier;
        if self.preset.allows(tier) && (self.preset == Preset::Trusted || subject.lines.is_empty()) {
            return Ok(used);
        }
        let allow: Vec<&Rule> = self
            .rules
            .iter()
            .filter(|rule| {
                rule.action == Action::Allow
                    && rule.tool.as_ref().is_none_or(|tool| *tool == subject.spec.name)
            })
            .collect();
        // A rule about the tool or the tier allows everything about the call.
        let whole = allow.iter().find(|rule| {
            rule.tier.is_none_or(|wanted| wanted == tier)
                && rule.path.is_none()
                && rule.command.as_ref().is_none_or(CommandPattern::is_everything)
                && (rule.command.is_none() || !subject.lines.is_empty())
        });
        if let Some(rule) = whole {
            permit(rule);
            return Ok(used);
        }
        if subject.places.is_empty() && subject.lines.is_empty() {
            return Err(format!("`{}` is a tool of the {tier} tier.", subject.spec.name));
        }
        let path_rule = |place: &Place, of: Tier| {
            let real = place.real.as_deref()?;
            allow.iter().find(|rule| {
                // A rule about paths alone is meant for reading and changing them, not for starting what lies there.
                rule.tier.map_or(of < Tier::Exec || rule.tool.is_some(), |wanted| wanted == of)
                    && rule.command.is_none()
                    && match &rule.path {
                        Some(pattern) => pattern.allows(real, workdir.root()),
                        None => place.inside && rule.tier.is_some(),
                    }
            })
        };
        for place in &subject.places {
            match path_rule(place, tier) {
                Some(rule) => permit(rule),
                None => {
                    return Err(format!("`{}` would {} `{}`.", subject.spec.name, verb(place), place.shown));
                }
            }
        }
        for LineSubject { line, redirects, .. } in &subject.lines {
            for need in &line.needs {
                let words = match need {
                    Need::Everything(why) => return Err(format!("The command needs a look: {why}.")),
                    Need::Words(words) => words,
                    Need::Directory { words, to } => {
                        if Place::of(workdir, Path::new(&to.text), Access::Read).inside {
                            continue;
                        }
                        words
                    }
                };
                let program = words.first().map_or("", |word| word.text.as_str());
                if line.moves && program.contains('/') && !program.starts_with('/') {
                    return Err(format!("`{program}` depends on the `cd` in the same line."));
                }
                let rule = allow.iter().find(|rule| {
                    rule.tier.is_none_or(|wanted| wanted == tier)
                        && rule.path.is_none()
                        && rule.command.as_ref().is_some_and(|pattern| pattern.allows(words))
                });
                match rule {
                    Some(rule) => permit(rule),
                    None => return Err(format!("No rule allows `{}`.", shown(words))),
                }
            }
            for place in redirects {
                let default = match place.access {
                    Access::Read => true,
                    Access::Write => self.preset.allows(Tier::Write),
                };
                if place.inside && default {
                    continue;
                }
                match path_rule(place, tier_of(place.access)) {
                    Some(rule) => permit(rule),
                    None => return Err(format!("The command would {} `{}`.", verb(place), place.shown)),
                }
            }
        }
        Ok(used)
    }
}

fn verb(place: &Place) -> &'static str {
    match (place.access, place.inside) {
        (Access::Read, true) => "read",
        (Access::Write, true) => "write",
        (Access::Read, false) => "read, outside the working directory or in a place that is not known,",
        (Access::Write, false) => "write, outside the working directory or in a place that is not known,",
    }
}

fn tier_of(access: Access) -> Tier {
    match access {
        Access::Read => Tier::Read,
        Access::Write => Tier::Write,
    }
}

impl<'a> Subject<'a> {
    fn new(spec: &'a Spec, touches: &[Touch], workdir: &'a Workdir, rules: &[Rule]) -> Self {
        // To look where every word of a line leads is worth it only if a rule could forbid it.
        let paths_matter = rules.iter().any(|rule| rule.path.is_some() && rule.action != Action::Allow);
        let mut subject = Subject { spec, root: workdir.root(), places: Vec::new(), lines: Vec::new() };
        for touch in touches {
            match touch {
                Touch::Path(path, access) => subject.places.push(Place::of(workdir, path, *access)),
                Touch::Command(command) => {
                    subject.lines.push(LineSubject::new(shell::analyse(command), workdir, paths_matter));
                }
            }
        }
        subject
    }

    fn blind(&self) -> Option<&str> {
        self.lines.iter().find_map(|subject| subject.line.blind.as_deref())
    }

    fn describe(&self) -> suggest::Wish<'_> {
        suggest::Wish {
            spec: self.spec,
            needs: self.lines.iter().flat_map(|subject| &subject.line.needs).collect(),
        }
    }

    /// How sure a deny or prompt rule is about this call: every condition has to be met by something in it.
    fn met_by(&self, rule: &Rule) -> Match {
        if rule.tool.as_ref().is_some_and(|tool| *tool != self.spec.name) {
            return Match::No;
        }
        let own_tier = rule.tier.is_none_or(|tier| tier == self.spec.tier);
        let path = match &rule.path {
            None => None,
            Some(pattern) => {
                let about = |place: &Place| pattern_match(place, |path| pattern.meets(path, self.root));
                let of_tier = |place: &&Place| own_tier || rule.tier == Some(tier_of(place.access));
                let mut sure = self.places.iter().filter(of_tier).map(about).max().unwrap_or(Match::No);
                for line in &self.lines {
                    sure =
                        sure.max(line.redirects.iter().filter(of_tier).map(about).max().unwrap_or(Match::No));
                    // What a program does with a path in its words is not known: reading and writing are both possible.
                    sure = sure.max(line.mentions.iter().map(about).max().unwrap_or(Match::No));
                    let hidden = line.wildcards.iter().any(|word| pattern.could_be(word))
                        || line.adrift.iter().any(|word| pattern.could_end(word));
                    if hidden {
                        sure = sure.max(Match::Maybe);
                    }
                }
                Some(sure)
            }
        };
        let command = rule.command.as_ref().map(|pattern| {
            self.lines.iter().map(|subject| command_match(pattern, &subject.line)).max().unwrap_or(Match::No)
        });
        match (path, command) {
            // A rule about a tier alone is about redirects too.
            (None, None) if own_tier => Match::Yes,
            (None, None) => {
                let redirected = self
                    .lines
                    .iter()
                    .flat_map(|line| &line.redirects)
                    .any(|place| rule.tier == Some(tier_of(place.access)));
                if redirected { Match::Yes } else { Match::No }
            }
            (Some(path), None) => path,
            (None, Some(command)) => {
                if own_tier {
                    command
                } else {
                    Match::No
                }
            }
            (Some(path), Some(command)) => path.min(command),
        }
    }
}

fn pattern_match(place: &Place, matches: impl Fn(&Path) -> bool) -> Match {
    match place.forms().any(matches) {
        true => Match::Yes,
        false if place.written.is_none() => Match::Maybe,
        false => Match::No,
    }
}

fn command_match(pattern: &CommandPattern, line: &Line) -> Match {
    if pattern.is_everything() {
        return Match::Yes;
    }
    let found = line
        .candidates
        .iter()
        .map(|candidate| {
            if candidate.certain {
                pattern.meets(&candidate.words)
            } else {
                pattern.meets(&candidate.words).min(Match::Maybe)
            }
        })
        .max()
        .unwrap_or(Match::No);
    let hidden = line.blind.is_some() || line.code.iter().any(|code| pattern.mentioned_in(code));
    if hidden { found.max(Match::Maybe) } else { found }
}

impl LineSubject {
    fn new(line: Line, workdir: &Workdir, paths_matter: bool) -> Self {
        let redirects =
            line.redirects.iter().filter_map(|redirect| target(redirect, line.moves, workdir)).collect();
        let mut seen = HashSet::new();
        let (mut mentions, mut wildcards, mut adrift) = (Vec::new(), Vec::new(), Vec::new());
        let words = line.candidates.iter().flat_map(|candidate| &candidate.words).filter(|_| paths_matter);
        for word in words.filter(|word| seen.insert((word.text.as_str(), word.sure))) {
            let parts = [Some(word.text.as_str()), word.text.split_once('=').map(|(_, value)| value)];
            for part in parts.into_iter().flatten().filter(|part| !part.is_empty()) {
                match word.sure {
                    Sure::Literal => {
                        mentions.push(Place::of(workdir, Path::new(part), Access::Read));
                        if line.moves && !part.starts_with('/') {
                            adrift.push(part.to_owned());
                        }
                    }
                    Sure::Pattern => wildcards.push(part.to_owned()),
                    Sure::Unknown => {}
                }
            }
        }
        LineSubject { line, redirects, mentions, wildcards, adrift }
    }
}

/// Where a redirect leads; `None` for the devices that hold nothing.
fn target(redirect: &Redirect, moved: bool, workdir: &Workdir) -> Option<Place> {
    let access = if redirect.writes { Access::Write } else { Access::Read };
    let unknown = |word: &Word| Some(Place::unknown(word.shown(), access));
    match redirect.target.known() {
        None => unknown(&redirect.target),
        Some("/dev/null" | "/dev/stdin" | "/dev/stdout" | "/dev/stderr" | "/dev/zero") => None,
        // The shell opens network connections for these names.
        Some(text) if text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/") => {
            unknown(&redirect.target)
        }
        Some(text) if moved && !text.starts_with('/') => unknown(&redirect.target),
        Some(text) => Some(Place::of(workdir, Path::new(text), access)),
    }
}
