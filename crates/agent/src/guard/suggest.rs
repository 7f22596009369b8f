//! The rule that "always in this conversation" on a permission card would add.

use haft_tool::{Spec, Tier};

use super::{
    rule::{Action, CommandPattern, Rule},
    shell::{Need, Sure, Word, base_name},
};

/// What a call asks for.
pub(crate) struct Wish<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) needs: Vec<&'a Need>,
}

/// Programs whose first word says what they do.
const WITH_SUBCOMMANDS: &[&str] = &[
    "apt",
    "apt-get",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "cmake",
    "composer",
    "conda",
    "dart",
    "deno",
    "docker",
    "dotnet",
    "flutter",
    "gem",
    "gh",
    "git",
    "go",
    "gradle",
    "helm",
    "just",
    "kubectl",
    "make",
    "mix",
    "mvn",
    "nix",
    "npm",
    "npx",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "rustup",
    "swift",
    "systemctl",
    "task",
    "terraform",
    "uv",
    "yarn",
    "zig",
];

/// Subcommands that run whatever stands behind them, or reach beyond this machine: for these the very words are suggested.
const TOO_WIDE: &[&str] = &["config", "dlx", "exec", "publish", "push", "run", "shell", "tool", "x"];

/// Programs that only look, with whatever arguments.
const LOOKING: &[&str] = &[
    "basename", "cat", "cut", "date", "df", "diff", "dirname", "du", "echo", "file", "grep", "head", "jq",
    "ls", "nl", "printf", "pwd", "realpath", "rg", "sort", "stat", "tail", "tree", "uniq", "wc", "which",
];

/// A rule that is no wider than it has to be; the caller checks that it would really let the call through.
pub(crate) fn always(wish: &Wish<'_>) -> Option<Rule> {
    let rule = Rule::new(Action::Allow, "this conversation").tool(wish.spec.name.clone());
    if wish.needs.is_empty() {
        return (wish.spec.tier > Tier::Read).then_some(rule);
    }
    let mut words = None;
    for need in &wish.needs {
        match need {
            Need::Everything(_) => return None,
            Need::Directory { .. } => {}
            // With several commands the last one that is not only looking is the likely reason for the question; the caller
            // drops the suggestion where that is not enough.
            Need::Words(candidate) => {
                let looks = candidate.first().is_some_and(|word| LOOKING.contains(&base_name(&word.text)));
                if words.is_none() || !looks {
                    words = Some(candidate);
                }
            }
        }
    }
    CommandPattern::new(pattern(words?)?).ok().map(|pattern| rule.command(pattern))
}

fn pattern(words: &[Word]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    // A `*` in a pattern is not a `*` in a word, so such a word cannot be written down exactly.
    let exact = |words: &[Word]| {
        let plain = words.iter().all(|word| word.sure == Sure::Literal && !word.text.contains(['*', '\n']));
        plain.then(|| super::shell::shown(words))
    };
    let name = base_name(&program.text);
    if LOOKING.contains(&name) {
        return exact(std::slice::from_ref(program)).map(|program| format!("{program} *"));
    }
    if WITH_SUBCOMMANDS.contains(&name)
        && let Some(subcommand) = arguments.first().filter(|word| !TOO_WIDE.contains(&word.text.as_str()))
        && subcommand.text.starts_with(|c: char| c.is_ascii_lowercase())
        && subcommand.text.chars().all(|c| c.is_ascii_alphanumeric() || "-_:".contains(c))
    {
        return exact(words.get(..2)?).map(|words| format!("{words} *"));
    }
    exact(words)
}
