//! `lsp_rename` against the real servers (SPEC N1, N2): definition, imports and uses change, the project still builds, and a failure at any step leaves
//! everything as it was.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests; the builds are run as a person would"
)]

#[path = "real/support.rs"]
#[allow(dead_code, reason = "shared with the other tests of real servers")]
mod support;

use std::{
    collections::BTreeMap,
    fs, io,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use haft_lsp::{Checkout, LspRename, WriteDiagnostics};
use haft_system::{Changes, Workdir};
use haft_tool::{Call, Context, Family, Origin, Outcome, Registry, Surface};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use support::{Project, link_package, path_with};

async fn rename(checkout: &Checkout, changes: &Changes, arguments: Value) -> Outcome {
    let tool = LspRename::new(checkout.clone(), changes.clone());
    let registry = Registry::builder().tool(tool, Family::Workshop).build();
    registry
        .call(&Surface::agent(), Call::new("lsp_rename", arguments, Origin::Console), Context::detached())
        .await
}

/// Every text file of a project.
fn contents(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let name = entry.file_name();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() && name != "target" && name != "node_modules" {
                directories.push(entry.path());
            } else if kind.is_file() && name != "Cargo.lock" {
                let shown = entry.path().strip_prefix(root).unwrap().display().to_string();
                found.insert(shown, fs::read_to_string(entry.path()).unwrap());
            }
        }
    }
    found
}

/// A project in which `greet` of one file is used in another.
struct Case {
    files: &'static [(&'static str, &'static str)],
    programs: &'static [&'static str],
    package: Option<(&'static str, &'static str)>,
    disabled: &'static [&'static str],
    /// Where `greet` is defined, and where it is imported or used: file and line.
    definition: (&'static str, u32),
    import: (&'static str, u32),
    /// A second name that may be asked for.
    new_name: &'static str,
    /// Files in which `greet` stands, with how often.
    hits: &'static [(&'static str, usize)],
    build: &'static [&'static str],
}

impl Case {
    fn project(&self) -> Option<Project> {
        let path = path_with(self.programs)?;
        let mut project = Project::new("p", path, self.files);
        if let Some((item, package)) = self.package
            && !link_package(&project, item, package)
        {
            return None;
        }
        project.switch_off(self.disabled);
        Some(project)
    }

    fn builds(&self, project: &Project) {
        let [program, arguments @ ..] = self.build else { return };
        let path = path_with(self.programs).unwrap();
        let program = program.replace("ROOT", project.root.to_str().unwrap());
        let output = Command::new(program)
            .args(arguments)
            .current_dir(&project.root)
            .env("PATH", path)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }

    async fn run(&self) {
        let Some(project) = self.project() else { return };
        self.builds(&project);
        let before = contents(&project.root);
        self.refusals(&project, &before).await;
        self.failures(&project, &before).await;

        let watch =
            WriteDiagnostics::with_inline(project.checkout.clone(), std::time::Duration::from_mins(1));
        project.changes.observe(Arc::new(watch));
        let renamed = |new_name: &str| -> BTreeMap<String, String> {
            let text = |(file, text): (&String, &String)| {
                let is_hit = self.hits.iter().any(|(hit, _)| hit == file);
                (file.clone(), if is_hit { text.replace("greet", new_name) } else { text.clone() })
            };
            before.iter().map(text).collect()
        };
        // From the definition, and then from the place that imports it, where some servers would only introduce an alias.
        let mut name = "greet".to_owned();
        for (place, new_name) in [(self.definition, self.new_name), (self.import, "salute")] {
            let arguments = json!({ "file": place.0, "line": place.1, "symbol": name, "new_name": new_name });
            let outcome = rename(&project.checkout, &project.changes, arguments).await;
            assert!(!outcome.is_error, "{}", outcome.all_text());
            assert_eq!(contents(&project.root), renamed(new_name), "{}", outcome.all_text());
            let edits: usize = self.hits.iter().map(|(_, count)| count).sum();
            assert_eq!(outcome.structured["edits"], json!(edits));
            assert_eq!(outcome.structured["new_diagnostics"], json!([]), "{}", outcome.all_text());
            assert_eq!(outcome.structured["verified"], json!(true), "{}", outcome.all_text());
            let files = outcome.structured["files"].as_array().unwrap();
            assert_eq!(files.len(), self.hits.len());
            self.builds(&project);
            name = new_name.to_owned();
        }
        project.checkout.servers().shut_down().await;
    }

    /// What must not be done is not done, and said.
    async fn refusals(&self, project: &Project, before: &BTreeMap<String, String>) {
        let (file, line) = self.definition;
        let bad =
            [("greet", "9bad name"), ("greet", "a-b"), ("greet", ""), ("greet", "greet"), ("absent", "b")];
        for (symbol, new_name) in bad {
            let arguments = json!({ "file": file, "line": line, "symbol": symbol, "new_name": new_name });
            let outcome = rename(&project.checkout, &project.changes, arguments).await;
            assert!(outcome.is_error, "{symbol} {new_name:?}: {}", outcome.all_text());
        }
        assert_eq!(&contents(&project.root), before);
    }

    /// A disk that fails at the first, the second, … step.
    async fn failures(&self, project: &Project, before: &BTreeMap<String, String>) {
        let (file, line) = self.definition;
        let mut failed = 0;
        for nth in 0.. {
            let journal = tempfile::tempdir().unwrap();
            let steps = Arc::new(AtomicUsize::new(0));
            let hook = {
                let steps = steps.clone();
                Arc::new(move |step: usize, _: &'static str| {
                    steps.fetch_max(step + 1, Ordering::SeqCst);
                    if step == nth { Err(io::Error::other("no space left on device")) } else { Ok(()) }
                })
            };
            let workdir = Workdir::new(&project.root).unwrap();
            let (changes, _) = Changes::open_with_hook(workdir, journal.path().to_owned(), hook).unwrap();
            let arguments =
                json!({ "file": file, "line": line, "symbol": "greet", "new_name": self.new_name });
            let outcome = rename(&project.checkout, &changes, arguments).await;
            if outcome.is_error {
                assert_eq!(&contents(&project.root), before, "failed at step {nth}: {}", outcome.all_text());
                failed += 1;
                continue;
            }
            // Either every step has been failed, or this one did not matter; undo it.
            for (file, text) in before {
                fs::write(project.root.join(file), text).unwrap();
            }
            if steps.load(Ordering::SeqCst) <= nth {
                break;
            }
        }
        assert!(failed >= 2, "only {failed} steps could fail");
    }
}

#[tokio::test]
async fn typescript_language_server() {
    TYPESCRIPT.run().await;
}

#[tokio::test]
async fn typescript_7() {
    let case = Case {
        programs: &[],
        package: Some(("typescript-7", "typescript")),
        disabled: &["typescript-language-server", "vtsls", "eslint"],
        ..TYPESCRIPT
    };
    case.run().await;
}

const TYPESCRIPT: Case = Case {
    files: &[
        ("package.json", "{\"name\": \"p\"}"),
        ("tsconfig.json", "{\"compilerOptions\": {\"strict\": true, \"noEmit\": true, \"types\": []}}"),
        ("util.ts", "export function greet(name: string): string {\n  return `🦀 ${name}`;\n}\n"),
        (
            "main.ts",
            "import { greet } from \"./util\";\n\nconst e = \"🦀日本\"; export const m = greet(e) + greet(\"b\");\n",
        ),
        (
            "other.ts",
            "import * as util from \"./util\";\r\n// hello\r\nexport const 日本 = \"日\", n = util.greet(\"c\");\r\n",
        ),
        ("notes.md", "call greet\n"),
    ],
    programs: &["typescript-language-server"],
    package: Some(("typescript-language-server", "typescript")),
    disabled: &["tsgo", "vtsls", "eslint"],
    definition: ("util.ts", 1),
    import: ("main.ts", 1),
    new_name: "größe",
    hits: &[("util.ts", 1), ("main.ts", 3), ("other.ts", 1)],
    build: &["ROOT/node_modules/.bin/tsc", "-p", "."],
};

#[tokio::test]
async fn vtsls() {
    let case = Case {
        programs: &["vtsls"],
        disabled: &["tsgo", "typescript-language-server", "eslint"],
        ..TYPESCRIPT
    };
    case.run().await;
}

#[tokio::test]
async fn pyright() {
    PYTHON.run().await;
}

#[tokio::test]
async fn basedpyright() {
    let case = Case {
        programs: &["basedpyright-langserver", "basedpyright"],
        disabled: &["pyright", "ty", "pyrefly", "ruff"],
        build: &["basedpyright", "--level", "error", "."],
        ..PYTHON
    };
    case.run().await;
}

#[tokio::test]
async fn ty() {
    let case = Case {
        programs: &["ty"],
        disabled: &["pyright", "basedpyright", "pyrefly", "ruff"],
        build: &["ty", "check"],
        ..PYTHON
    };
    case.run().await;
}

#[tokio::test]
async fn pyrefly() {
    let case = Case {
        programs: &["pyrefly"],
        disabled: &["pyright", "basedpyright", "ty", "ruff"],
        build: &["pyrefly", "check"],
        ..PYTHON
    };
    case.run().await;
}

const PYTHON: Case = Case {
    files: &[
        ("pyproject.toml", "[project]\nname = \"p\"\nversion = \"1\"\n"),
        ("util.py", "def greet(name: str) -> str:\n    return \"🦀\" + name\n"),
        ("main.py", "from util import greet\n\ne = \"🦀日本\"; m = greet(e) + greet(\"b\")\n"),
        ("pkg/__init__.py", ""),
        ("pkg/other.py", "import util\r\n\r\nn = \"日本\" + util.greet(\"c\")\r\n"),
    ],
    programs: &["pyright-langserver", "pyright"],
    package: None,
    disabled: &["basedpyright", "ty", "pyrefly", "ruff"],
    definition: ("util.py", 1),
    import: ("main.py", 1),
    new_name: "größe",
    hits: &[("util.py", 1), ("main.py", 3), ("pkg/other.py", 1)],
    build: &["pyright", "."],
};

#[tokio::test]
async fn gopls() {
    let case = Case {
        files: &[
            ("go.mod", "module p\n\ngo 1.21\n"),
            ("util.go", "package main\n\nfunc greet(name string) string {\n\treturn \"🦀\" + name\n}\n"),
            (
                "main.go",
                "package main\n\nfunc main() {\n\te := \"🦀日本\"; println(greet(e), greet(\"b\"))\n}\n",
            ),
        ],
        programs: &["gopls", "go"],
        package: None,
        disabled: &[],
        definition: ("util.go", 3),
        import: ("main.go", 4),
        new_name: "größe",
        hits: &[("util.go", 1), ("main.go", 2)],
        build: &["go", "build", "-o", "/dev/null", "./..."],
    };
    case.run().await;
}

#[tokio::test]
async fn rust_analyzer() {
    let case = Case {
        files: &[
            (
                "Cargo.toml",
                "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
            ),
            (
                "src/lib.rs",
                "pub mod util;\nuse util::greet;\n\npub fn m() -> String {\n    let e = \"🦀日本\"; greet(e) + &greet(\"b\")\n}\n",
            ),
            ("src/util.rs", "pub fn greet(name: &str) -> String {\n    format!(\"🦀{name}\")\n}\n"),
        ],
        programs: &["rust-analyzer", "cargo"],
        package: None,
        disabled: &[],
        definition: ("src/util.rs", 1),
        import: ("src/lib.rs", 2),
        new_name: "größe",
        hits: &[("src/util.rs", 1), ("src/lib.rs", 3)],
        build: &["cargo", "check", "--quiet"],
    };
    case.run().await;
}
