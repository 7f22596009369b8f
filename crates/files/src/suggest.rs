//! Names that come near a path that does not exist.

use std::path::Path;

use haft_system::{ResolvedPath, Workdir};
use haft_tool::ToolError;

use crate::{
    limits::{SUGGESTION_SCAN, SUGGESTIONS},
    nearest::name_likeness,
    walk,
};

/// Two names this alike are worth a suggestion.
const ALIKE: f64 = 0.7;
/// What standing in the same directory adds to a name's likeness.
const NEIGHBOUR: f64 = 0.15;

/// The error for a path at which nothing exists.
pub(crate) fn missing(workdir: &Workdir, path: &ResolvedPath) -> ToolError {
    let near = near(workdir, &path.real);
    let mut text = format!("`{}` does not exist.", path.shown);
    if !near.is_empty() {
        text.push_str(" Did you mean: ");
        text.push_str(&near.join(", "));
        text.push('?');
    }
    ToolError::model(text)
}

fn near(workdir: &Workdir, wanted: &Path) -> Vec<String> {
    let Some(name) = wanted.file_name().map(|name| name.to_string_lossy().into_owned()) else {
        return Vec::new();
    };
    let mut found: Vec<(f64, String)> = walk::some_paths(workdir, SUGGESTION_SCAN)
        .into_iter()
        .filter_map(|path| {
            let own = path.file_name()?.to_string_lossy().into_owned();
            let mut score = name_likeness(&name, &own);
            if path.parent() == wanted.parent() {
                score += NEIGHBOUR;
            }
            (score >= ALIKE).then(|| (score, format!("`{}`", workdir.show(&path))))
        })
        .collect();
    found.sort_by(|(a, left), (b, right)| b.total_cmp(a).then(left.cmp(right)));
    found.truncate(SUGGESTIONS);
    found.into_iter().map(|(_, shown)| shown).collect()
}
