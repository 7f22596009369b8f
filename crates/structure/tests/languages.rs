//! Which language a file, an id or a name is.

use std::path::Path;

use haft_structure::languages::{all, by_id, for_path};
use pretty_assertions::assert_eq;

#[test]
fn files_tell_their_language() {
    let language = |name: &str, line: &str| for_path(Path::new(name), Some(line.as_bytes())).map(|l| l.id);
    for (name, line, id) in [
        ("a/b.py", "", Some("python")),
        ("a/B.RS", "", Some("rust")),
        ("x.tsx", "", Some("tsx")),
        ("x.ts", "", Some("typescript")),
        ("x.d.ts", "", Some("typescript")),
        ("Makefile", "", Some("make")),
        ("Dockerfile.dev", "", Some("dockerfile")),
        ("Jenkinsfile", "", Some("groovy")),
        ("tool", "#!/usr/bin/env python3.11\n", Some("python")),
        ("tool", "#!/usr/bin/env -S deno run", Some("typescript")),
        ("tool", "#!/bin/sh -e\n", Some("bash")),
        ("tool.unknown", "#!/usr/bin/perl\n", Some("perl")),
        ("tool", "#! /usr/bin/ruby\n", Some("ruby")),
        ("tool", "plain text", None),
        ("a.txt", "", None),
        ("..", "", None),
    ] {
        assert_eq!(language(name, line), id, "{name} {line}");
    }
    assert_eq!(by_id("C#").map(|l| l.id), Some("c-sharp"));
    assert_eq!(by_id("py").map(|l| l.id), Some("python"));
    assert_eq!(by_id("klingon").map(|l| l.id), None);
}

#[test]
fn the_table_has_no_two_owners_of_one_name() {
    let mut seen = std::collections::HashMap::new();
    let mut twice = Vec::new();
    for language in all() {
        let names = std::iter::once(&language.id).chain(language.aliases);
        for name in names
            .map(|n| format!("id {n}"))
            .chain(language.extensions.iter().map(|e| format!("extension {e}")))
        {
            if let Some(other) = seen.insert(name.clone(), language.id)
                && other != language.id
            {
                twice.push(format!("{name}: {other}, {}", language.id));
            }
        }
    }
    assert_eq!(twice, Vec::<String>::new());
}
