//! `cargo xtask bench lsp`: `lsp` and the diagnostics of a write through `haft console`, beside a raw JSON-RPC client with a server of the same kind, and beside
//! Serena.

mod console;
mod raw;
mod samples;
mod serena;
mod table;
mod texts;
mod writes;

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use self::{
    console::{Console, Started},
    raw::{Raw, Told},
    samples::{Asked, Language, Rule, Sample},
    table::{Percentiles, Question, Serena, Tables},
};
use super::Lsp;
use crate::repo;

/// What is asked: its name in the table, the method, and the capability that says whether the server can.
const QUESTIONS: &[(&str, &str, &str)] = &[
    ("definition", "textDocument/definition", "definitionProvider"),
    ("type_definition", "textDocument/typeDefinition", "typeDefinitionProvider"),
    ("references, 3 or 4", "textDocument/references", "referencesProvider"),
    ("references, hundreds", "textDocument/references", "referencesProvider"),
    ("hover", "textDocument/hover", "hoverProvider"),
    ("symbols of a file", "textDocument/documentSymbol", "documentSymbolProvider"),
    ("symbols by name", "workspace/symbol", "workspaceSymbolProvider"),
];

/// How long both may take until they answer alike.
const WARM: Duration = Duration::from_mins(3);

pub(crate) fn run(options: &Lsp) -> Result<()> {
    let haft = match &options.haft {
        Some(path) => fs::canonicalize(path).with_context(|| format!("there is no {}", path.display()))?,
        None => {
            repo::run(repo::cargo(["build", "--release", "--package", "haft"]))?;
            repo::target().join("release/haft")
        }
    };
    let samples = samples::samples();
    for name in &options.only {
        if !samples.iter().any(|sample| sample.server == name) {
            let known: Vec<&str> = samples.iter().map(|sample| sample.server).collect();
            bail!("`{name}` is not measured; there are {}", known.join(", "));
        }
    }
    let work = repo::target().join("bench").join(format!("lsp-{}", std::process::id()));
    fs::create_dir_all(&work)?;
    let work = work.canonicalize()?;
    let result = measure_all(options, &haft, &work, &samples);
    fs::remove_dir_all(&work).with_context(|| format!("cannot clear {}", work.display()))?;
    let tables = result?;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&tables)?);
    } else {
        print!("{}", tables.markdown());
    }
    Ok(())
}

fn measure_all(options: &Lsp, haft: &Path, work: &Path, samples: &[Sample]) -> Result<Tables> {
    let load = || fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load_before = load();
    let mut tables = Tables {
        conditions: vec![
            format!("haft: {}", haft.display()).replace(&repo::root().display().to_string(), "."),
            format!(
                "{} questions of each kind and {} writes of each kind per server and client",
                options.calls, options.runs
            ),
        ],
        questions: Vec::new(),
        writes: Vec::new(),
        left_out: Vec::new(),
        schema_bytes: None,
        serena: None,
    };
    let chosen = samples
        .iter()
        .filter(|one| options.only.is_empty() || options.only.iter().any(|name| name == one.server));
    for sample in chosen {
        eprintln!("{} …", sample.server);
        let directories = match sample.programs() {
            Ok(directories) => directories,
            Err(error) => {
                tables.left_out.push(format!("{}: {error:#}", sample.server));
                continue;
            }
        };
        if sample.rule == Rule::Check && !Path::new("/usr/bin/rust-analyzer").is_file() {
            let why =
                "rust-analyzer: it is not installed (`cargo xtask test` installs Debian's rust-web-analyzer)";
            tables.left_out.push(why.into());
            continue;
        }
        let place = work.join(sample.server);
        fs::create_dir_all(&place)?;
        Bench::new(options, haft, &place, sample, &directories)?
            .run(&mut tables)
            .with_context(|| format!("with {}", sample.server))?;
    }
    let processors = thread::available_parallelism().map_or(0, usize::from);
    let first = |load: &str| load.split(' ').next().unwrap_or_default().to_owned();
    tables.conditions.push(format!(
        "{processors} processors; load {} at the beginning, {} at the end (one processor is busy with the benchmark itself)",
        first(&load_before),
        first(&load())
    ));
    Ok(tables)
}

/// One server's turn.
struct Bench<'a> {
    options: &'a Lsp,
    sample: &'a Sample,
    language: Language,
    asked: Vec<Asked>,
    haft: &'a Path,
    place: &'a Path,
    environment: Vec<(String, OsString)>,
}

impl<'a> Bench<'a> {
    fn new(
        options: &'a Lsp,
        haft: &'a Path,
        place: &'a Path,
        sample: &'a Sample,
        directories: &[PathBuf],
    ) -> Result<Bench<'a>> {
        let home = place.join("home");
        fs::create_dir_all(&home)?;
        let variable = |name: &str| std::env::var_os(name);
        let person = PathBuf::from(variable("HOME").unwrap_or_default());
        let mut path: Vec<PathBuf> = directories.to_vec();
        path.extend(std::env::split_paths(&variable("PATH").unwrap_or_default()));
        let mut environment: Vec<(String, OsString)> = vec![
            ("HOME".into(), home.into()),
            ("HAFT_STATE_DIR".into(), place.join("state").into()),
            ("GOFLAGS".into(), "-mod=mod".into()),
            ("GOPROXY".into(), "off".into()),
            ("GOTOOLCHAIN".into(), "local".into()),
        ];
        for (name, default) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            environment.push((name.into(), variable(name).unwrap_or_else(|| person.join(default).into())));
        }
        if sample.rule == Rule::Check {
            let cargo = repo::find_program("cargo").context("cargo is not on PATH")?;
            let stamped = writes::stamped_cargo(place, &cargo)?;
            environment.push(("CARGO".into(), stamped.clone().into()));
            path.insert(0, stamped.parent().context("no directory")?.to_owned());
        }
        environment.push(("PATH".into(), std::env::join_paths(path)?));
        let language = sample.language;
        Ok(Bench { options, sample, language, asked: language.asked(), haft, place, environment })
    }

    fn run(&self, tables: &mut Tables) -> Result<()> {
        let (ours_root, raw_root) = (self.place.join("haft"), self.place.join("raw"));
        for root in [&ours_root, &raw_root] {
            self.sample.generate(root)?;
        }
        let server = self.sample.server;
        let mut ours = Console::start(self.haft, &self.environment, &ours_root)?;
        if tables.schema_bytes.is_none() {
            tables.schema_bytes = Some(ours.schema_bytes(&["lsp", "lsp_rename"])?);
        }
        let edited = self.language.edited();
        ours.good("read", &json!({ "path": edited }))?;
        ours.good("lsp", &json!({ "action": "diagnostics", "file": edited }))?;
        let started = ours.started(server)?;
        tables.conditions.push(format!("{server} {}", started.version).trim().to_owned());
        let mut raw = self.raw(&started, &raw_root)?;
        self.warm(&mut ours, &mut raw)?;
        for question in QUESTIONS {
            let (name, method, field) = *question;
            if !raw.offers(field, method) {
                tables.left_out.push(format!("{server}: it does not offer {name}"));
                continue;
            }
            tables.questions.push(self.ask(name, &mut ours, &mut raw)?);
        }
        // Only where both hear of a write in the same way.
        let mut alike = None;
        if matches!(self.sample.rule, Rule::Pull | Rule::Version) {
            let root = self.place.join("alike");
            self.sample.generate(&root)?;
            let alike = alike.insert(self.raw(&started, &root)?);
            for _ in 0..2 {
                for (name, method, field) in QUESTIONS {
                    if !alike.offers(field, method) {
                        continue;
                    }
                    for asked in &self.asked {
                        Self::ask_raw(name, asked, alike)?;
                    }
                }
            }
        }
        self.writes(&mut ours, &mut raw, alike.as_mut(), tables)?;
        drop((raw, alike));
        if server == "pyright" && !self.options.alone {
            tables.serena = Some(match self.serena(&mut ours) {
                Ok(serena) => serena,
                Err(error) => Serena {
                    what: format!("not measured: {error:#}"),
                    rows: Vec::new(),
                    tools: 0,
                    schema_bytes: 0,
                },
            });
        }
        Ok(())
    }

    /// A raw client with a server of its own on a copy of the project.
    fn raw(&self, started: &Started, root: &Path) -> Result<Raw> {
        let told = Told::of(self.sample.server, &started.program)?;
        let mut raw = Raw::start(&started.program, &started.arguments, &self.environment, root, &told)?;
        let files: BTreeSet<&String> = self.asked.iter().map(|asked| &asked.call.file).collect();
        for file in files {
            raw.open(file, self.language.id())?;
        }
        raw.open(&self.language.edited(), self.language.id())?;
        raw.loaded(Duration::from_secs(2))?;
        Ok(raw)
    }

    // ---- questions

    /// Asks both everything until both answer alike. Whoever has not loaded everything finds less.
    fn warm(&self, ours: &mut Console, raw: &mut Raw) -> Result<()> {
        let until = Instant::now() + WARM;
        loop {
            match self.alike(ours, raw)? {
                None => return Ok(()),
                Some(difference) if Instant::now() > until => bail!("{difference}"),
                Some(_) => thread::sleep(Duration::from_secs(1)),
            }
        }
    }

    fn alike(&self, ours: &mut Console, raw: &mut Raw) -> Result<Option<String>> {
        for (name, method, field) in QUESTIONS {
            if !raw.offers(field, method) {
                continue;
            }
            for asked in &self.asked {
                let ours = Self::ask_ours(name, asked, ours)?.1;
                let raw = Self::ask_raw(name, asked, raw)?.1;
                if ours != raw || ours == 0 {
                    return Ok(Some(format!(
                        "{name} at {:?}: Haft finds {ours}, the raw client {raw}",
                        asked.call
                    )));
                }
            }
        }
        Ok(None)
    }

    fn ask(&self, name: &'static str, ours: &mut Console, raw: &mut Raw) -> Result<Question> {
        let (mut ours_spent, mut raw_spent) = (Vec::new(), Vec::new());
        for round in 0..self.options.calls as usize {
            let asked = &self.asked[round % self.asked.len()];
            // In turns: whoever comes second finds warmer caches.
            let (ours, raw) = if round % 2 == 0 {
                let raw = Self::ask_raw(name, asked, raw)?;
                (Self::ask_ours(name, asked, ours)?, raw)
            } else {
                let ours = Self::ask_ours(name, asked, ours)?;
                (ours, Self::ask_raw(name, asked, raw)?)
            };
            if ours.1 != raw.1 {
                bail!("{name} at {:?}: Haft finds {}, the raw client {}", asked.call, ours.1, raw.1);
            }
            ours_spent.push(ours.0);
            raw_spent.push(raw.0);
        }
        Ok(Question {
            server: self.sample.server,
            about: name,
            haft: Percentiles::of(&ours_spent),
            raw: Percentiles::of(&raw_spent),
        })
    }

    /// Milliseconds, and how much was found.
    fn ask_ours(name: &str, asked: &Asked, ours: &mut Console) -> Result<(f64, usize)> {
        let (spent, answer) = match name {
            "definition" => ours.at("definition", &asked.call)?,
            "type_definition" => ours.at("type_definition", &asked.variable)?,
            "references, 3 or 4" => ours.at("references", &asked.call)?,
            "references, hundreds" => ours.at("references", &asked.hub)?,
            "hover" => ours.at("hover", &asked.call)?,
            "symbols of a file" => {
                ours.good("lsp", &json!({ "action": "symbols", "file": asked.call.file }))?
            }
            _ => ours.good("lsp", &json!({ "action": "symbols", "query": asked.call.symbol }))?,
        };
        let structured = &answer["structured"];
        let found = match name {
            "hover" => usize::from(structured["text"].as_str().is_some_and(|text| !text.is_empty())),
            _ => structured["total"].as_u64().with_context(|| format!("no total: {answer}"))? as usize,
        };
        Ok((spent, found))
    }

    fn ask_raw(name: &str, asked: &Asked, raw: &mut Raw) -> Result<(f64, usize)> {
        let begin = Instant::now();
        let answer = match name {
            "definition" => raw.at("textDocument/definition", &asked.call)?,
            "type_definition" => raw.at("textDocument/typeDefinition", &asked.variable)?,
            "references, 3 or 4" => raw.at("textDocument/references", &asked.call)?,
            "references, hundreds" => raw.at("textDocument/references", &asked.hub)?,
            "hover" => raw.at("textDocument/hover", &asked.call)?,
            "symbols of a file" => raw.outline(&asked.call.file)?,
            _ => raw.search(&asked.call.symbol)?,
        };
        let spent = milliseconds(begin);
        let found = match name {
            "hover" => usize::from(!answer["contents"].is_null()),
            "symbols of a file" => outline(&answer),
            "symbols by name" => answer.as_array().map_or(0, Vec::len),
            _ => distinct_places(&answer),
        };
        Ok((spent, found))
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// How many symbols an outline has, those below others included.
fn outline(symbols: &Value) -> usize {
    let below = |symbol: &Value| 1 + outline(&symbol["children"]);
    symbols.as_array().map_or(0, |symbols| symbols.iter().map(below).sum())
}

/// How many different places an answer has.
fn distinct_places(answer: &Value) -> usize {
    let one = std::slice::from_ref(answer);
    let places = match answer {
        Value::Array(places) => places.as_slice(),
        Value::Null => &[],
        _ => one,
    };
    let key = |place: &Value| {
        let uri = place.get("targetUri").unwrap_or(&place["uri"]);
        let range = place.get("targetSelectionRange").unwrap_or(&place["range"]);
        format!("{uri} {range}")
    };
    places.iter().map(key).collect::<BTreeSet<_>>().len()
}
