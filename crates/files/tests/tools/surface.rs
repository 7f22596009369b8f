use haft_tool::{Surface, Tier, Touch};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::bench::Bench;

#[test]
fn descriptions_and_schemas() {
    let bench = Bench::new();
    let specs = bench.registry().list(&Surface::agent());
    insta::assert_json_snapshot!(specs);
}

#[test]
fn schemas_stay_small_because_every_request_carries_them() {
    let bench = Bench::new();
    let size = |surface: &Surface| -> usize {
        bench
            .registry()
            .list(surface)
            .into_iter()
            .map(|spec| serde_json::to_string(spec).unwrap().len())
            .sum()
    };
    assert!(size(&Surface::plan()) <= 4 * 1024, "{}", size(&Surface::plan()));
    assert!(size(&Surface::agent()) <= 8 * 1024, "{}", size(&Surface::agent()));
}

#[test]
fn tiers_are_as_listed() {
    let bench = Bench::new();
    let listed: Vec<(String, Tier)> =
        haft_files::known().into_iter().map(|(name, tier)| (name.to_owned(), tier)).collect();
    let registered: Vec<(String, Tier)> = bench
        .registry()
        .list(&Surface::agent())
        .into_iter()
        .map(|spec| (spec.name.clone(), spec.tier))
        .collect();
    assert_eq!(listed, registered);
    let seen: Vec<&str> =
        bench.registry().list(&Surface::plan()).into_iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(seen, ["read", "glob", "search"]);
}

#[test]
fn a_patch_touches_every_path_in_it() {
    use haft_tool::{Access, Tool};
    let bench = Bench::new();
    let tool = haft_files::ApplyPatch::new(bench.changes.clone(), haft_files::Reads::new());
    let touches = |patch: &str| tool.touches(&serde_json::from_value(json!({ "patch": patch })).unwrap());
    let writes = |paths: &[&str]| -> Vec<Touch> {
        paths.iter().map(|path| Touch::Path((*path).into(), Access::Write)).collect()
    };
    let envelope = "*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n*** Move to: ../c\n-x\n+y\n*** Delete File: d\n*** End Patch";
    assert_eq!(touches(envelope), writes(&["a", "b", "../c", "d"]));
    let diff = "diff --git a/x b/y\nrename from x\nrename to y\n--- /dev/null\n+++ b/z\n@@ -0,0 +1 @@\n+z\n";
    assert_eq!(touches(diff), writes(&["x", "y", "z"]));
    assert_eq!(touches("nonsense"), vec![]);
}
