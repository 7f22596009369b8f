//! Serena, a server of language-server tools over MCP, on the same project with the same pyright.

use std::{
    ffi::OsString,
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{
    Bench,
    console::Console,
    table::{Beside, Serena},
};
use crate::{bench::report::Spread, provision};

/// How often Serena is asked each question.
const BESIDE: usize = 30;
/// How often it is asked for diagnostics, which take it seconds each time.
const BESIDE_SLOW: usize = 8;

impl Bench<'_> {
    /// Asks Serena and Haft the same, in turns.
    pub(super) fn serena(&self, ours: &mut Console) -> Result<Serena> {
        let python = provision::program("serena")?;
        let pyright = provision::program("pyright")?;
        let root = self.place.join("serena");
        self.sample.generate(&root)?;
        let home = self.place.join("serena-home");
        let mut mcp = Mcp::start(&python, &pyright, &self.environment, &home, &root)?;
        let (tools, schema_bytes) = mcp.schemas()?;
        let mut rows = Vec::new();
        for (haft_call, serena_call) in [
            ("lsp definition", "find_symbol"),
            ("lsp references", "find_referencing_symbols"),
            ("lsp diagnostics", "get_diagnostics_for_file"),
        ] {
            let (mut ours_spent, mut serena_spent) = (Vec::new(), Vec::new());
            // Once around without counting: it opens files and fills its caches.
            let (uncounted, counted) = match serena_call {
                "get_diagnostics_for_file" => (1, BESIDE_SLOW),
                _ => (self.asked.len(), BESIDE),
            };
            for round in 0..uncounted + counted {
                let turn = round % self.asked.len();
                let asked = &self.asked[turn];
                let symbol = &asked.call.symbol;
                // Where the function is that is called: Serena asks by name and file.
                let (_, definition) = ours.at("definition", &asked.call)?;
                let defined = definition["structured"]["locations"][0]["file"].clone();
                let arguments = match serena_call {
                    "find_symbol" => json!({ "name_path_pattern": symbol, "relative_path": defined }),
                    "find_referencing_symbols" => json!({ "name_path": symbol, "relative_path": defined }),
                    _ => json!({ "relative_path": asked.call.file }),
                };
                let mut ask_serena = || -> Result<f64> {
                    let (spent, said) = mcp.call(serena_call, &arguments)?;
                    if serena_call != "get_diagnostics_for_file" && !said.contains(".py") {
                        bail!("Serena's {serena_call} found nothing: {said}");
                    }
                    Ok(spent)
                };
                let ask_ours = |ours: &mut Console| match serena_call {
                    "find_symbol" => ours.at("definition", &asked.call),
                    "find_referencing_symbols" => ours.at("references", &asked.call),
                    _ => ours.good("lsp", &json!({ "action": "diagnostics", "file": asked.call.file })),
                };
                let (ours, serena) = if round % 2 == 0 {
                    let serena = ask_serena()?;
                    (ask_ours(ours)?.0, serena)
                } else {
                    (ask_ours(ours)?.0, ask_serena()?)
                };
                if round >= uncounted {
                    ours_spent.push(ours);
                    serena_spent.push(serena);
                }
            }
            let spread = |values: Vec<f64>| Spread::of(values).context("nothing was measured");
            rows.push(Beside {
                haft_call,
                serena_call,
                haft: spread(ours_spent)?,
                serena: spread(serena_spent)?,
            });
        }
        let what = format!("{}, with the same pyright, over MCP on standard input", mcp.version);
        Ok(Serena { what, rows, tools, schema_bytes })
    }
}

struct Mcp {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    next: i64,
    version: String,
}

impl Mcp {
    /// Starts it on the project with its classic tools, its dashboard off, and `pyright` instead of the one that it would fetch. All that it keeps goes
    /// below `home`.
    fn start(
        python: &Path,
        pyright: &Path,
        environment: &[(String, OsString)],
        home: &Path,
        root: &Path,
    ) -> Result<Mcp> {
        fs::create_dir_all(home)?;
        // Its configuration is YAML, and JSON is YAML.
        let config = json!({
            "language_backend": "LSP",
            "agent_interface": "tools",
            "web_dashboard": false,
            "web_dashboard_open_on_launch": false,
            "gui_log_window": false,
            "projects": [],
            "ls_specific_settings": { "python": { "ls_path": pyright } },
        });
        fs::write(home.join("serena_config.yml"), config.to_string())?;
        fs::create_dir_all(root.join(".serena"))?;
        let project = json!({ "project_name": "bench", "language_servers": ["python"], "encoding": "utf-8" });
        fs::write(root.join(".serena/project.yml"), project.to_string())?;
        let mut child = Command::new(python)
            .args(["-c", "from serena.cli import top_level; top_level()", "start-mcp-server", "--project"])
            .arg(root)
            .args(["--agent-interface", "tools", "--enable-web-dashboard", "false", "--log-level", "ERROR"])
            .env_clear()
            .envs(environment.iter().cloned())
            .env("SERENA_HOME", home)
            .current_dir(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", python.display()))?;
        let (to, from) = child.stdin.take().zip(child.stdout.take()).context("no pipes")?;
        let mut mcp = Mcp { child, to, from: BufReader::new(from), next: 0, version: String::new() };
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } });
        let answer = mcp.request("initialize", &hello)?;
        mcp.version = answer["serverInfo"]["version"].as_str().unwrap_or_default().to_owned();
        mcp.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(mcp)
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        // One write, so that nobody waits for a second packet.
        Ok(self.to.write_all(format!("{message}\n").as_bytes())?)
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let mut line = String::new();
            if self.from.read_line(&mut line)? == 0 {
                bail!("Serena ended");
            }
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            if message.get("method").is_none() && message["id"] == id {
                if let Some(error) = message.get("error") {
                    bail!("Serena refused {method}: {error}");
                }
                return Ok(message["result"].clone());
            }
        }
    }

    /// Milliseconds, and the text of the answer.
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<(f64, String)> {
        let params = json!({ "name": tool, "arguments": arguments });
        let begin = Instant::now();
        let answer = self.request("tools/call", &params)?;
        let spent = begin.elapsed().as_secs_f64() * 1e3;
        let text = answer["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        if answer["isError"] == true || text.starts_with("Error") {
            bail!("Serena's {tool} failed: {text}");
        }
        Ok((spent, text))
    }

    /// How many tools it has, and the bytes of what a model is told about them: name, description and schema as JSON.
    fn schemas(&mut self) -> Result<(usize, usize)> {
        let answer = self.request("tools/list", &json!({}))?;
        let tools = answer["tools"].as_array().context("no list of tools")?;
        let told = |tool: &Value| {
            let told = json!({ "name": tool["name"], "description": tool["description"], "input_schema": tool["inputSchema"] });
            told.to_string().len()
        };
        Ok((tools.len(), tools.iter().map(told).sum()))
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        // Its server is ended by itself when it is interrupted; killed, it would leave pyright behind.
        // SAFETY: the child has not been waited for, so the number is its own.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGINT) };
        let until = Instant::now() + std::time::Duration::from_secs(10);
        while Instant::now() < until && self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
