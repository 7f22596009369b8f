//! Which files a server wants to hear about when others change them.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use serde_json::Value;

use super::heard::{Registration, WATCHED_FILES};
use crate::{servers::ServerSpec, uri};

/// See the module.
pub(super) struct Interest<'a> {
    spec: &'a ServerSpec,
    root: &'a Path,
    /// What it registered; empty when it registered nothing, and then what its languages and markers say counts.
    watched: Vec<(PathBuf, GlobMatcher)>,
}

impl<'a> Interest<'a> {
    pub(super) fn of(spec: &'a ServerSpec, root: &'a Path, registrations: &[Registration]) -> Self {
        let mut watched = Vec::new();
        let registered = registrations.iter().filter(|known| known.method == WATCHED_FILES);
        for entry in registered.filter_map(|known| known.options.get("watchers")?.as_array()).flatten() {
            let Some((base, pattern)) = pattern_of(entry.get("globPattern"), root) else { continue };
            // A pattern that is no glob here would be one in an editor: better to tell too much than too little.
            let glob = GlobBuilder::new(&pattern).literal_separator(true).build();
            if let Ok(glob) = glob.or_else(|_| GlobBuilder::new("**").build()) {
                watched.push((base, glob.compile_matcher()));
            }
        }
        Interest { spec, root, watched }
    }

    pub(super) fn covers(&self, path: &Path) -> bool {
        if self.watched.is_empty() {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            return self.spec.language_of(path).is_some()
                || self.spec.markers.iter().any(|marker| marker == name);
        }
        // Servers ask for what is below their root, and may use what is beside it.
        if !path.starts_with(self.root) && self.spec.language_of(path).is_some() {
            return true;
        }
        self.watched
            .iter()
            .any(|(base, glob)| path.strip_prefix(base).is_ok_and(|below| glob.is_match(below)))
    }
}

/// A pattern with the directory that it is relative to.
fn pattern_of(pattern: Option<&Value>, root: &Path) -> Option<(PathBuf, String)> {
    match pattern? {
        Value::String(text) => match text.strip_prefix('/') {
            Some(absolute) => Some((PathBuf::from("/"), absolute.to_owned())),
            None => Some((root.to_owned(), text.clone())),
        },
        Value::Object(relative) => {
            let base = relative.get("baseUri")?;
            let base = base.as_str().or_else(|| base.get("uri")?.as_str())?;
            Some((uri::to_path(base)?, relative.get("pattern")?.as_str()?.to_owned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::Table;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn patterns_of_all_forms_are_understood() {
        let table = Table::shipped().unwrap();
        let spec = table.get("gopls").unwrap();
        let options = json!({ "watchers": [
            { "globPattern": "**/*.{go,mod}" },
            { "globPattern": "/w/extra/*.s" },
            { "globPattern": { "baseUri": { "uri": "file:///lib", "name": "lib" }, "pattern": "**/*.tmpl" } },
        ] });
        let registered =
            [Registration { id: "1".into(), method: "workspace/didChangeWatchedFiles".into(), options }];
        let root = Path::new("/w");
        let covered = |registrations: &[Registration]| {
            let interest = Interest::of(spec, root, registrations);
            [
                "/w/a.go",
                "/w/b/go.mod",
                "/w/extra/x.s",
                "/w/extra/y/x.s",
                "/lib/a/b.tmpl",
                "/w/b.tmpl",
                "/w/c.py",
            ]
            .map(|path| interest.covers(Path::new(path)))
        };
        assert_eq!(covered(&registered), [true, true, true, false, true, false, false]);
        assert_eq!(covered(&[]), [true, true, false, false, false, false, false]);
    }
}
