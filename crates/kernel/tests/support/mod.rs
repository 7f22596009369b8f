//! A conversation's kernels over a directory of their own, and the way to them through a registry.

#![allow(dead_code, reason = "not every test uses every helper")]
#![expect(unreachable_pub, reason = "the module is shared by several tests")]

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, Weak},
    time::Duration,
};

use haft_kernel::{Bridge, Eval, Kernels, Settings};
use haft_system::{Environment, Supervisor, Workdir};
use haft_tool::{
    Call, Content, Context, Family, Origin, Outcome, Output, Progress, Registry, Surface, Tier, Tool,
    ToolError,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub struct Bench {
    pub kernels: Arc<Kernels>,
    pub registry: Arc<Registry>,
    pub supervisor: Supervisor,
    pub directory: tempfile::TempDir,
}

/// What tests leave to the bench.
#[derive(Default)]
pub struct Wish {
    pub settings: Option<Settings>,
    pub environment: Option<Environment>,
}

struct Door {
    registry: OnceLock<Weak<Registry>>,
    surface: Surface,
}

#[async_trait::async_trait]
impl Bridge for Door {
    async fn call(&self, tool: String, arguments: Value, from: Context) -> Outcome {
        match self.registry.get().and_then(Weak::upgrade) {
            Some(registry) => {
                registry.call(&self.surface, Call::new(tool, arguments, Origin::Cell), from).await
            }
            None => Outcome::error("the run has ended"),
        }
    }
}

impl Bench {
    pub fn new() -> Bench {
        Bench::wishing(Wish::default())
    }

    pub fn wishing(wish: Wish) -> Bench {
        let directory = tempfile::tempdir().unwrap();
        let workdir = Workdir::new(directory.path()).unwrap();
        let environment = wish.environment.unwrap_or_else(|| Environment::capture().with("VIRTUAL_ENV", ""));
        let supervisor = Supervisor::new(environment);
        let outputs = workdir.root().join("outputs");
        std::fs::create_dir(&outputs).unwrap();
        let settings = wish.settings.unwrap_or_default();
        let settings = Settings { outputs: Some(outputs), ..settings };
        let door = Arc::new(Door { registry: OnceLock::new(), surface: Surface::agent() });
        let kernels = Arc::new(Kernels::new(supervisor.clone(), workdir, door.clone(), settings));
        let registry = Registry::builder()
            .tool(Eval::new(kernels.clone()), Family::Workshop)
            .tool(Echo, Family::General)
            .tool(Sleep::default(), Family::General)
            .build();
        let registry = Arc::new(registry);
        let _ = door.registry.set(Arc::downgrade(&registry));
        Bench { kernels, registry, supervisor, directory }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub async fn call(&self, arguments: Value) -> Outcome {
        self.call_with(arguments, Context::detached()).await
    }

    pub async fn call_with(&self, arguments: Value, context: Context) -> Outcome {
        self.registry.call(&Surface::agent(), Call::new("eval", arguments, Origin::Model), context).await
    }

    /// A Python cell.
    pub async fn python(&self, code: &str) -> Outcome {
        self.call(json!({"code": code, "description": "a cell of a test"})).await
    }

    /// A JavaScript cell.
    pub async fn javascript(&self, code: &str) -> Outcome {
        self.call(json!({"code": code, "description": "a cell of a test", "language": "javascript"})).await
    }

    /// A cell that gives up after so many seconds without a sign of life.
    pub async fn impatient(&self, language: &str, code: &str, seconds: u32) -> Outcome {
        self.call(json!({"code": code, "description": "a cell of a test", "language": language, "timeout_seconds": seconds}))
            .await
    }

    /// A cell with everything it shows live.
    pub async fn live(&self, arguments: Value) -> (Outcome, String) {
        let (sender, mut receiver) = mpsc::channel(1024);
        let context = Context::new(CancellationToken::new(), Progress::to(sender));
        let outcome = self.call_with(arguments, context).await;
        let mut shown = String::new();
        while let Ok((_, piece)) = receiver.try_recv() {
            shown.push_str(&piece);
        }
        (outcome, shown)
    }

    /// Ends everything; nothing may be left running.
    pub async fn close(self) {
        self.kernels.shutdown().await;
        assert_eq!(self.supervisor.running(), vec![]);
    }
}

/// The fields that a cell's end is about.
pub fn gist(outcome: &Outcome) -> Value {
    let fields = &outcome.structured;
    json!({
        "is_error": outcome.is_error,
        "result": fields["result"],
        "stdout": fields["stdout"],
        "stderr": fields["stderr"],
        "error": fields["error"]["name"],
        "state_kept": fields["state_kept"],
    })
}

/// A cell that ended well with this value and this output.
pub fn fine(result: impl Into<Value>, stdout: &str) -> Value {
    json!({"is_error": false, "result": result.into(), "stdout": stdout, "stderr": "", "error": null, "state_kept": true})
}

pub fn result(outcome: &Outcome) -> &str {
    outcome
        .structured
        .get("result")
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("no result: {}", outcome.all_text()))
}

pub fn stdout(outcome: &Outcome) -> &str {
    outcome
        .structured
        .get("stdout")
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("no stdout: {}", outcome.all_text()))
}

/// Answers with what it was given.
pub struct Echo;

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EchoArguments {
    /// Said back.
    text: String,
    /// Answer with a picture too.
    #[serde(default)]
    picture: bool,
}

impl Tool for Echo {
    type Arguments = EchoArguments;
    const NAME: &'static str = "echo";
    const TIER: Tier = Tier::Read;

    fn description(&self) -> String {
        "Says back what it is told.".into()
    }

    async fn call(&self, arguments: EchoArguments, _: &Context) -> Result<Output, ToolError> {
        if arguments.text == "fail" {
            return Err(ToolError::model("The echo failed, in its own words.")
                .with_structured(json!({"why": "asked to"})));
        }
        let mut output = Output::text(arguments.text.clone())
            .structured(json!({"length": arguments.text.len(), "nested": {"list": [1, 2]}}));
        if arguments.picture {
            output = output.with(Content::Image { mime: "image/png".into(), data: tiny_png() }).with(
                Content::Table { columns: vec!["a".into()], rows: vec![vec![json!(1)], vec![json!(2)]] },
            );
        }
        Ok(output)
    }
}

/// Takes as long as it is told to, and counts how many do so at once.
#[derive(Default)]
pub struct Sleep {
    now: Mutex<(usize, usize)>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SleepArguments {
    /// How long.
    milliseconds: u64,
}

impl Tool for Sleep {
    type Arguments = SleepArguments;
    const NAME: &'static str = "sleep";
    const TIER: Tier = Tier::Read;

    fn description(&self) -> String {
        "Sleeps.".into()
    }

    async fn call(&self, arguments: SleepArguments, context: &Context) -> Result<Output, ToolError> {
        {
            let mut now = self.now.lock().unwrap();
            now.0 += 1;
            now.1 = now.1.max(now.0);
        }
        let cancelled = tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(arguments.milliseconds)) => false,
            () = context.cancel.cancelled() => true,
        };
        let most = {
            let mut now = self.now.lock().unwrap();
            now.0 -= 1;
            now.1
        };
        if cancelled {
            Err(ToolError::Cancelled)
        } else {
            Ok(Output::text("slept").structured(json!({"at_once": most})))
        }
    }
}

pub fn tiny_png() -> Vec<u8> {
    let mut png = std::io::Cursor::new(Vec::new());
    image::DynamicImage::new_rgb8(3, 2).write_to(&mut png, image::ImageFormat::Png).unwrap();
    png.into_inner()
}

/// The environment with the packages that the tests of displays are about. `cargo xtask test` fetches it and wants it used.
pub fn python_with_packages() -> Option<PathBuf> {
    let provisioned = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/provision");
    let found = std::fs::read_dir(&provisioned)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .find(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with("python-kernels-") && !name.contains(".part") && path.join("bin/python").exists()
        });
    if found.is_none() {
        assert!(
            std::env::var_os("HAFT_REQUIRE_SERVERS").is_none(),
            "there is no python-kernels-… in {}",
            provisioned.display()
        );
        eprintln!("left out: `cargo xtask test` fetches the packages that this test is about");
    }
    found.map(|path| path.canonicalize().unwrap())
}

/// A bench whose kernel has the packages.
pub fn packaged() -> Option<Bench> {
    let place = python_with_packages()?;
    let environment = Environment::capture().with("VIRTUAL_ENV", place);
    Some(Bench::wishing(Wish { environment: Some(environment), ..Wish::default() }))
}
