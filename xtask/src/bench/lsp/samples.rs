//! The servers that are measured, and a project for each: some hundred files that use one another as those of a real project do.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::texts;
use crate::provision;

/// Modules of a project. In C each of them is two files.
pub(super) const MODULES: usize = 240;
/// Modules of a package.
pub(super) const PER_PACKAGE: usize = 20;
/// Modules in which questions are asked, in turn. Fewer than Haft keeps open.
const ASKED: usize = 20;

/// What tells a client that the server has said what it thinks of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// It is asked, and answers.
    Pull,
    /// It publishes, and names the version.
    Version,
    /// It publishes, and does not say about which text.
    NoVersion,
    /// It runs `cargo check` after a save, which ends.
    Check,
}

impl Rule {
    pub(super) fn words(self) -> &'static str {
        match self {
            Rule::Pull => "pull",
            Rule::Version => "push with version",
            Rule::NoVersion => "push without version",
            Rule::Check => "pull, and cargo check after a save",
        }
    }

    /// What Haft may add to the time of the raw client.
    pub(super) fn allowed(self) -> f64 {
        match self {
            Rule::Pull | Rule::Version => 10.0,
            Rule::NoVersion => 160.0,
            Rule::Check => 20.0,
        }
    }
}

pub(super) struct Sample {
    /// Its name in Haft's table.
    pub(super) server: &'static str,
    pub(super) rule: Rule,
    pub(super) language: Language,
    /// What has to be fetched; the directories of these programs come first on PATH.
    fetched: &'static [&'static str],
    /// The item whose packages are the project's own.
    node_modules: Option<&'static str>,
    /// Files at the root, by which servers choose themselves too. `ROOT` stands for the root's path.
    files: &'static [(&'static str, &'static str)],
}

const TSCONFIG: (&str, &str) = (
    "tsconfig.json",
    r#"{"compilerOptions": {"strict": true, "noEmit": true, "target": "es2022", "module": "esnext", "moduleResolution": "bundler", "types": []}, "include": ["src"]}"#,
);

pub(super) fn samples() -> Vec<Sample> {
    let python = |server, files| Sample {
        server,
        rule: Rule::Pull,
        language: Language::Python,
        fetched: if server == "ty" { &["ty"] } else { &["pyright"] },
        node_modules: None,
        files,
    };
    vec![
        python(
            "pyright",
            &[("pyrightconfig.json", "{}\n"), ("pyproject.toml", "[project]\nname = \"bench\"\n")],
        ),
        python("ty", &[("ty.toml", ""), ("pyproject.toml", "[project]\nname = \"bench\"\n")]),
        Sample {
            server: "tsgo",
            rule: Rule::Pull,
            language: Language::TypeScript,
            fetched: &["typescript"],
            node_modules: Some("typescript"),
            files: &[TSCONFIG, ("package.json", "{\"name\": \"bench\", \"private\": true}\n")],
        },
        Sample {
            server: "typescript-language-server",
            rule: Rule::NoVersion,
            language: Language::TypeScript,
            fetched: &["typescript-language-server"],
            node_modules: Some("typescript-language-server"),
            files: &[TSCONFIG, ("package.json", "{\"name\": \"bench\", \"private\": true}\n")],
        },
        Sample {
            server: "gopls",
            rule: Rule::Version,
            language: Language::Go,
            fetched: &["go", "gopls"],
            node_modules: None,
            files: &[("go.mod", "module bench\n\ngo 1.22\n")],
        },
        Sample {
            server: "clangd",
            rule: Rule::Version,
            language: Language::C,
            fetched: &["clangd"],
            node_modules: None,
            files: &[],
        },
        Sample {
            server: "rust-analyzer",
            rule: Rule::Check,
            language: Language::Rust,
            fetched: &[],
            node_modules: None,
            files: &[("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\nresolver = \"2\"\n")],
        },
    ]
}

impl Sample {
    /// The directories that its programs are in, fetched where they are not there.
    pub(super) fn programs(&self) -> Result<Vec<PathBuf>> {
        let directory = |id: &&str| -> Result<PathBuf> {
            let program = provision::program(id)?;
            Ok(program.parent().context("a program without a directory")?.to_owned())
        };
        self.fetched.iter().map(directory).collect()
    }

    /// Makes the project.
    pub(super) fn generate(&self, root: &Path) -> Result<()> {
        let write = |name: &str, text: &str| -> Result<()> {
            let path = root.join(name);
            let directory = path.parent().context("a file without a directory")?;
            fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        for (name, text) in self.files {
            write(name, &text.replace("ROOT", &root.display().to_string()))?;
        }
        for (name, text) in self.language.project(root) {
            write(&name, &text)?;
        }
        write(&self.language.edited(), &self.language.edited_text(&self.language.clean(0)))?;
        if let Some(item) = self.node_modules {
            let program = provision::program(item)?;
            let modules = program.parent().and_then(Path::parent).context("no node_modules")?;
            std::os::unix::fs::symlink(modules, root.join("node_modules"))?;
        }
        Ok(())
    }
}

/// A place in a project that is asked about.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) file: String,
    /// From 1.
    pub(super) line: usize,
    /// From 0; the text is ASCII, so it is the same in every encoding.
    pub(super) character: usize,
    pub(super) symbol: String,
}

/// The places of one module.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// A call of a function of the module before. Three or four uses in all.
    pub(super) call: Place,
    /// A variable.
    pub(super) variable: Place,
    /// A call of the function that every module uses.
    pub(super) hub: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    TypeScript,
    Go,
    C,
    Rust,
}

impl Language {
    pub(super) fn id(self) -> &'static str {
        match self {
            Language::Python => "python",
            Language::TypeScript => "typescript",
            Language::Go => "go",
            Language::C => "c",
            Language::Rust => "rust",
        }
    }

    /// The file that is written to. Nothing uses it.
    pub(super) fn edited(self) -> String {
        match self {
            Language::Python => "edited/edited.py",
            Language::TypeScript => "src/edited/edited.ts",
            Language::Go => "edited/edited.go",
            Language::C => "src/edited/edited.c",
            Language::Rust => "crates/edited/src/lib.rs",
        }
        .to_owned()
    }

    /// Its text around one line.
    pub(super) fn edited_text(self, line: &str) -> String {
        let module = self.module(MODULES);
        let (head, tail) = match self {
            Language::Python => ("\n\ndef tuned() -> int:\n", "    return tuned_amount\n"),
            Language::TypeScript => ("\nexport function tuned(): number {\n", "  return tunedAmount;\n}\n"),
            Language::Go => ("\nfunc Tuned() int {\n", "\treturn tunedAmount\n}\n"),
            Language::C => ("\nint tuned(void) {\n", "    return tuned_amount;\n}\n"),
            Language::Rust => ("\npub fn tuned() -> i64 {\n", "    tuned_amount\n}\n"),
        };
        format!("{module}{head}{line}{tail}")
    }

    /// The function of the edited file that changes. Nothing uses it.
    pub(super) fn changed(self) -> Option<Place> {
        let text = self.edited_text(&self.clean(0));
        let symbol = if self == Language::Go { "Tuned" } else { "tuned" }.to_owned();
        let called = format!("{symbol}(");
        let (index, line) = text.lines().enumerate().find(|(_, line)| line.contains(&called))?;
        Some(Place { file: self.edited(), line: index + 1, character: line.find(&called)?, symbol })
    }

    /// The line without a problem.
    pub(super) fn clean(self, number: usize) -> String {
        self.line(&(number + 1).to_string())
    }

    /// The line with a problem whose message has [`problem`] in it.
    pub(super) fn broken(self, number: usize) -> String {
        self.line(&problem(number))
    }

    fn line(self, value: &str) -> String {
        match self {
            Language::Python => format!("    tuned_amount = {value}\n"),
            Language::TypeScript => format!("  const tunedAmount: number = {value};\n"),
            Language::Go => format!("\ttunedAmount := {value}\n"),
            Language::C => format!("    int tuned_amount = {value};\n"),
            Language::Rust => format!("    let tuned_amount = {value};\n"),
        }
    }

    /// Where questions are asked.
    pub(super) fn asked(self) -> Vec<Asked> {
        let modules = (0..ASKED).map(|turn| 5 + turn * 11);
        modules.filter_map(|module| self.asked_in(module)).collect()
    }

    fn asked_in(self, module: usize) -> Option<Asked> {
        let (file, text) = (self.file(module), self.module(module));
        let place = |on: &str, symbol: String| {
            let (index, line) = text.lines().enumerate().find(|(_, line)| line.contains(on))?;
            let character = line.find(&symbol)?;
            Some(Place { file: file.clone(), line: index + 1, character, symbol })
        };
        let names = Names::of(self, module - 1);
        Some(Asked {
            call: place("amount = ", names.compute.clone()).or_else(|| place("amount := ", names.compute))?,
            variable: place("held", "held".into())?,
            hub: place(&format!("{}(name)", names.hub), names.hub.into())?,
        })
    }

    fn file(self, module: usize) -> String {
        let package = package(module);
        match self {
            Language::Python => format!("{package}/mod_{module:03}.py"),
            Language::TypeScript => format!("src/{package}/mod{module:03}.ts"),
            Language::Go => format!("{package}/mod_{module:03}.go"),
            Language::C => format!("src/{package}/mod_{module:03}.c"),
            Language::Rust => format!("crates/{package}/src/mod_{module:03}.rs"),
        }
    }

    /// Every file but the edited one and those at the root.
    fn project(self, root: &Path) -> Vec<(String, String)> {
        let mut files: Vec<(String, String)> =
            (0..MODULES).map(|module| (self.file(module), self.module(module))).collect();
        match self {
            Language::Python => {
                files.push(("shared/base.py".into(), texts::PYTHON_HUB.into()));
            }
            Language::TypeScript => files.push(("src/shared/base.ts".into(), texts::TYPESCRIPT_HUB.into())),
            Language::Go => files.push(("shared/base.go".into(), texts::GO_HUB.into())),
            Language::C => {
                files.push((
                    "include/shared.h".into(),
                    "#pragma once\nint normalise(const char *name);\n".into(),
                ));
                files.push(("src/shared/shared.c".into(), texts::C_HUB.into()));
                let header = |module: usize| {
                    format!(
                        "#pragma once\nstruct record_{module:03} {{\n    int first;\n    int second;\n    const char *name;\n}};\nstruct record_{module:03} make_{module:03}(const char *name);\nint compute_{module:03}(struct record_{module:03} record, int factor);\nint use_{module:03}(int factor);\n"
                    )
                };
                files.extend(
                    (0..=MODULES).map(|module| (format!("include/mod_{module:03}.h"), header(module))),
                );
                let sources = (0..MODULES).map(|module| self.file(module));
                let sources = sources.chain(["src/shared/shared.c".to_owned(), self.edited()]);
                let commands: Vec<serde_json::Value> = sources
                    .map(|file| {
                        serde_json::json!({"directory": root, "file": file, "arguments": ["cc", "-std=c11", "-Iinclude", "-c", file]})
                    })
                    .collect();
                files.push(("compile_commands.json".into(), serde_json::Value::from(commands).to_string()));
            }
            Language::Rust => files.extend(texts::rust_crates()),
        }
        files
    }

    fn module(self, module: usize) -> String {
        match self {
            Language::Python => texts::python(module),
            Language::TypeScript => texts::typescript(module),
            Language::Go => texts::go(module),
            Language::C => texts::c(module),
            Language::Rust => texts::rust(module),
        }
    }
}

/// A name that nothing has.
pub(super) fn problem(number: usize) -> String {
    format!("missing_{number}")
}

struct Names {
    compute: String,
    hub: &'static str,
}

impl Names {
    fn of(language: Language, module: usize) -> Names {
        match language {
            Language::Python | Language::C | Language::Rust => {
                Names { compute: format!("compute_{module:03}"), hub: "normalise" }
            }
            Language::TypeScript => Names { compute: format!("compute{module:03}"), hub: "normalise" },
            Language::Go => Names { compute: format!("Compute{module:03}"), hub: "Normalise" },
        }
    }
}

/// The package of a module; the edited file is in one of its own.
pub(super) fn package(module: usize) -> String {
    if module == MODULES { "edited".to_owned() } else { format!("pkg{:02}", module / PER_PACKAGE) }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn every_place_is_where_it_says() {
        for language in [Language::Python, Language::TypeScript, Language::Go, Language::C, Language::Rust] {
            let asked = language.asked();
            assert_eq!(asked.len(), ASKED, "{language:?}");
            for (turn, asked) in asked.iter().enumerate() {
                let text = language.module(5 + turn * 11);
                for place in [&asked.call, &asked.variable, &asked.hub] {
                    let line = text.lines().nth(place.line - 1).unwrap();
                    assert!(line[place.character..].starts_with(&place.symbol), "{line}: {place:?}");
                    assert!(line.is_ascii());
                }
            }
        }
    }

    #[test]
    fn the_line_that_is_written_stands_in_its_file_once() {
        for language in [Language::Python, Language::TypeScript, Language::Go, Language::C, Language::Rust] {
            for line in [language.clean(7), language.broken(7)] {
                assert_eq!(language.edited_text(&line).matches(&line).count(), 1);
            }
            assert!(language.broken(7).contains(&problem(7)));
            let place = language.changed().unwrap();
            let text = language.edited_text(&language.clean(0));
            assert!(text.lines().nth(place.line - 1).unwrap()[place.character..].starts_with(&place.symbol));
        }
    }
}
