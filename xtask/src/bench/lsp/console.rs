//! Haft, as its user meets it: `haft console`.

use std::{
    ffi::OsString,
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::samples::Place;

pub(super) struct Console {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    calls: u64,
}

/// The process of a language server that Haft has started, so that the raw client can start the same.
pub(super) struct Started {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) version: String,
}

impl Console {
    pub(super) fn start(haft: &Path, environment: &[(String, OsString)], root: &Path) -> Result<Console> {
        let mut child = Command::new(haft)
            .args(["console", "--approve", "all", "--dir"])
            .arg(root)
            .env_clear()
            .envs(environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", haft.display()))?;
        let (to, from) = child.stdin.take().zip(child.stdout.take()).context("no pipes")?;
        Ok(Console { child, to, from: BufReader::new(from), calls: 0 })
    }

    fn line(&mut self, mut message: Value) -> Result<(f64, Value)> {
        self.calls += 1;
        message["id"] = self.calls.into();
        let line = format!("{message}\n");
        let mut answer = String::new();
        let begin = Instant::now();
        self.to.write_all(line.as_bytes())?;
        if self.from.read_line(&mut answer)? == 0 {
            bail!("haft console ended");
        }
        let spent = begin.elapsed().as_secs_f64() * 1e3;
        Ok((spent, serde_json::from_str(&answer).with_context(|| format!("not an answer: {answer:?}"))?))
    }

    /// Milliseconds from the line out to the line in, and the answer.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<(f64, Value)> {
        self.line(json!({ "tool": tool, "arguments": arguments }))
    }

    /// The same; the answer must not be an error.
    pub(super) fn good(&mut self, tool: &str, arguments: &Value) -> Result<(f64, Value)> {
        let (spent, answer) = self.call(tool, arguments)?;
        if answer["is_error"] != false {
            bail!("{tool} {arguments}: {}", text(&answer));
        }
        Ok((spent, answer))
    }

    pub(super) fn at(&mut self, action: &str, place: &Place) -> Result<(f64, Value)> {
        self.good(
            "lsp",
            &json!({ "action": action, "file": place.file, "line": place.line, "symbol": place.symbol }),
        )
    }

    /// Bytes of what a model is told about tools: name, description and schema as JSON.
    pub(super) fn schema_bytes(&mut self, tools: &[&str]) -> Result<usize> {
        let (_, answer) = self.line(json!({ "list": true }))?;
        let listed = answer["tools"].as_array().context("no list of tools")?;
        let mut bytes = 0;
        for name in tools {
            let tool =
                listed.iter().find(|tool| tool["name"] == *name).with_context(|| format!("no {name}"))?;
            let told =
                json!({ "name": name, "description": tool["description"], "input_schema": tool["schema"] });
            bytes += told.to_string().len();
        }
        Ok(bytes)
    }

    /// The server that runs for this project, which has to be `server`.
    pub(super) fn started(&mut self, server: &str) -> Result<Started> {
        let (_, answer) = self.good("lsp", &json!({ "action": "status" }))?;
        let servers = answer["structured"]["servers"].as_array().context("no list of servers")?;
        let running = servers.iter().find(|one| one["id"] == server && one["pid"].is_u64());
        let running = running.with_context(|| format!("Haft does not run {server}: {}", text(&answer)))?;
        let process = PathBuf::from(format!("/proc/{}", running["pid"]));
        let program = fs::read_link(process.join("exe"))?;
        let line = fs::read(process.join("cmdline"))?;
        let words = line.split(|byte| *byte == 0).skip(1).map(String::from_utf8_lossy);
        let mut arguments: Vec<String> = words.map(std::borrow::Cow::into_owned).collect();
        // The line ends with a zero.
        arguments.pop();
        let said = running["version"].as_str().unwrap_or_default();
        // gopls says how it was built.
        let built: Option<Value> = serde_json::from_str(said).ok();
        let version = built.and_then(|built| Some(built["Version"].as_str()?.to_owned()));
        let version = version.unwrap_or_else(|| said.to_owned());
        Ok(Started { program, arguments, version })
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn text(answer: &Value) -> String {
    let parts = answer["content"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}
