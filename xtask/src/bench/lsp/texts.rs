//! The texts of the projects' files. Each module uses the one before it and a function that all use; none has a problem.

use std::fmt::Write;

use super::samples::{MODULES, PER_PACKAGE, package};

/// Functions of a module that only make it longer.
const STEPS: usize = 10;

pub(super) const PYTHON_HUB: &str = "def normalise(name: str) -> str:\n    return name.strip().lower()\n";
pub(super) const TYPESCRIPT_HUB: &str =
    "export function normalise(name: string): string {\n  return name.trim().toLowerCase();\n}\n";
pub(super) const GO_HUB: &str = "package shared\n\nimport \"strings\"\n\n// Normalise makes names alike.\nfunc Normalise(name string) string {\n\treturn strings.ToLower(strings.TrimSpace(name))\n}\n";
pub(super) const C_HUB: &str = "#include \"shared.h\"\n#include <string.h>\n\nint normalise(const char *name) {\n    return (int)strlen(name);\n}\n";

pub(super) fn python(module: usize) -> String {
    let before = module.saturating_sub(1);
    let mut text = format!(
        "\"\"\"Records of kind {module}.\"\"\"\n\nfrom __future__ import annotations\n\nfrom dataclasses import dataclass, field\n\nfrom shared.base import normalise\n"
    );
    if module > 0 {
        let package = package(before);
        let _ = writeln!(
            text,
            "from {package}.mod_{before:03} import Record{before:03}, compute_{before:03}, make_{before:03}"
        );
    }
    let _ = write!(
        text,
        r#"

@dataclass
class Record{module:03}:
    """What is kept under a name."""

    name: str
    values: list[int] = field(default_factory=list)

    def total(self, factor: int = 1) -> int:
        """Adds up the values."""
        return sum(value * factor for value in self.values)


def make_{module:03}(name: str) -> Record{module:03}:
    return Record{module:03}(name=normalise(name), values=[1, 2, {module}])


def compute_{module:03}(record: Record{module:03}, factor: int) -> int:
    """Adds up what the record holds, and how long its name is."""
    return record.total(factor) + len(record.name)


def use_{module:03}(factor: int) -> int:
    held: Record{before:03} = make_{before:03}("name")
    amount = compute_{before:03}(held, factor)
    return amount + {module}
"#
    );
    for step in 0..STEPS {
        let _ = write!(
            text,
            r#"

def step_{module:03}_{step:02}(values: list[int], limit: int) -> dict[str, int]:
    counted: dict[str, int] = {{}}
    for index, value in enumerate(values):
        if value > limit:
            counted[f"over {{index}}"] = value - limit
        else:
            counted[f"under {{index}}"] = limit - value
    return counted
"#
        );
    }
    text
}

pub(super) fn typescript(module: usize) -> String {
    let before = module.saturating_sub(1);
    let mut text = "import { normalise } from \"../shared/base\";\n".to_owned();
    if module > 0 {
        let package = package(before);
        let _ = writeln!(
            text,
            "import {{ type Record{before:03}, compute{before:03}, make{before:03} }} from \"../{package}/mod{before:03}\";"
        );
    }
    let _ = write!(
        text,
        r#"
/** What is kept under a name. */
export interface Record{module:03} {{
  name: string;
  values: number[];
}}

export function make{module:03}(name: string): Record{module:03} {{
  return {{ name: normalise(name), values: [1, 2, {module}] }};
}}

/** Adds up what the record holds, and how long its name is. */
export function compute{module:03}(record: Record{module:03}, factor: number): number {{
  return record.values.reduce((sum, value) => sum + value * factor, 0) + record.name.length;
}}

export function use{module:03}(factor: number): number {{
  const held: Record{before:03} = make{before:03}("name");
  const amount = compute{before:03}(held, factor);
  return amount + {module};
}}
"#
    );
    for step in 0..STEPS {
        let _ = write!(
            text,
            r"
export function step{module:03}x{step:02}(values: number[], limit: number): Map<string, number> {{
  const counted = new Map<string, number>();
  values.forEach((value, index) => {{
    if (value > limit) {{
      counted.set(`over ${{index}}`, value - limit);
    }} else {{
      counted.set(`under ${{index}}`, limit - value);
    }}
  }});
  return counted;
}}
"
        );
    }
    text
}

pub(super) fn go(module: usize) -> String {
    let before = module.saturating_sub(1);
    let (own, other) = (package(module), package(before));
    let (import, at) = if own == other {
        (String::new(), String::new())
    } else {
        (format!("\t\"bench/{other}\"\n"), format!("{other}."))
    };
    let mut text = format!(
        r#"package {own}

import (
{import}	"bench/shared"
	"fmt"
)

// Record{module:03} is what is kept under a name.
type Record{module:03} struct {{
	Name   string
	Values []int
}}

// Make{module:03} makes one.
func Make{module:03}(name string) Record{module:03} {{
	return Record{module:03}{{Name: shared.Normalise(name), Values: []int{{1, 2, {module}}}}}
}}

// Compute{module:03} adds up what the record holds, and how long its name is.
func Compute{module:03}(record Record{module:03}, factor int) int {{
	sum := len(record.Name)
	for _, value := range record.Values {{
		sum += value * factor
	}}
	return sum
}}

// Use{module:03} uses the one before.
func Use{module:03}(factor int) int {{
	held := {at}Make{before:03}("name")
	amount := {at}Compute{before:03}(held, factor)
	return amount + {module}
}}
"#
    );
    for step in 0..STEPS {
        let _ = write!(
            text,
            r#"
// Step{module:03}x{step:02} counts.
func Step{module:03}x{step:02}(values []int, limit int) map[string]int {{
	counted := map[string]int{{}}
	for index, value := range values {{
		if value > limit {{
			counted[fmt.Sprintf("over %d", index)] = value - limit
		}} else {{
			counted[fmt.Sprintf("under %d", index)] = limit - value
		}}
	}}
	return counted
}}
"#
        );
    }
    text
}

pub(super) fn c(module: usize) -> String {
    let before = module.saturating_sub(1);
    let mut text = format!(
        r#"#include "mod_{module:03}.h"
#include "mod_{before:03}.h"
#include "shared.h"
#include <stdlib.h>
#include <string.h>

struct record_{module:03} make_{module:03}(const char *name) {{
    struct record_{module:03} made = {{normalise(name), {module}, name}};
    return made;
}}

/* Adds up what the record holds, and how long its name is. */
int compute_{module:03}(struct record_{module:03} record, int factor) {{
    return (record.first + record.second) * factor + (int)strlen(record.name);
}}

int use_{module:03}(int factor) {{
    struct record_{before:03} held = make_{before:03}("name");
    int amount = compute_{before:03}(held, factor);
    return amount + {module};
}}
"#
    );
    for step in 0..STEPS {
        let _ = write!(
            text,
            r"
int *step_{module:03}_{step:02}(const int *values, size_t count, int limit) {{
    int *counted = calloc(count, sizeof *counted);
    for (size_t index = 0; counted && index < count; index++) {{
        if (values[index] > limit) {{
            counted[index] = values[index] - limit;
        }} else {{
            counted[index] = limit - values[index];
        }}
    }}
    return counted;
}}
"
        );
    }
    text
}

pub(super) fn rust(module: usize) -> String {
    let before = module.saturating_sub(1);
    let (own, other) = (package(module), package(before));
    let from = if own == other { "crate".to_owned() } else { other };
    let mut text = "use std::collections::BTreeMap;\n\nuse shared::normalise;\n".to_owned();
    if module > 0 {
        let _ = writeln!(
            text,
            "use {from}::mod_{before:03}::{{Record{before:03}, compute_{before:03}, make_{before:03}}};"
        );
    }
    let _ = write!(
        text,
        r#"
/// What is kept under a name.
pub struct Record{module:03} {{
    pub name: String,
    pub values: Vec<i64>,
}}

pub fn make_{module:03}(name: &str) -> Record{module:03} {{
    Record{module:03} {{ name: normalise(name), values: vec![1, 2, {module}] }}
}}

/// Adds up what the record holds, and how long its name is.
pub fn compute_{module:03}(record: &Record{module:03}, factor: i64) -> i64 {{
    record.values.iter().map(|value| value * factor).sum::<i64>() + record.name.len() as i64
}}

pub fn use_{module:03}(factor: i64) -> i64 {{
    let held: Record{before:03} = make_{before:03}("name");
    let amount = compute_{before:03}(&held, factor);
    amount + {module}
}}
"#
    );
    for step in 0..STEPS {
        let _ = write!(
            text,
            r#"
pub fn step_{module:03}_{step:02}(values: &[i64], limit: i64) -> BTreeMap<String, i64> {{
    let mut counted = BTreeMap::new();
    for (index, value) in values.iter().enumerate() {{
        if *value > limit {{
            counted.insert(format!("over {{index}}"), value - limit);
        }} else {{
            counted.insert(format!("under {{index}}"), limit - value);
        }}
    }}
    counted
}}
"#
        );
    }
    text
}

pub(super) fn rust_crates() -> Vec<(String, String)> {
    let manifest = |name: &str, uses: &[String]| {
        let uses: Vec<String> =
            uses.iter().map(|used| format!("{used} = {{ path = \"../{used}\" }}")).collect();
        let uses = uses.join("\n");
        let text = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\n{uses}"
        );
        (format!("crates/{name}/Cargo.toml"), text)
    };
    let mut files = vec![
        manifest("shared", &[]),
        (
            "crates/shared/src/lib.rs".into(),
            "/// Makes names alike.\npub fn normalise(name: &str) -> String {\n    name.trim().to_lowercase()\n}\n"
                .into(),
        ),
        manifest("edited", &["shared".into(), package(MODULES - 1)]),
    ];
    for first in (0..MODULES).step_by(PER_PACKAGE) {
        let mut uses = vec!["shared".to_owned()];
        uses.extend((first > 0).then(|| package(first - 1)));
        files.push(manifest(&package(first), &uses));
        let modules = (first..first + PER_PACKAGE).map(|module| format!("pub mod mod_{module:03};\n"));
        files.push((format!("crates/{}/src/lib.rs", package(first)), modules.collect()));
    }
    files
}
