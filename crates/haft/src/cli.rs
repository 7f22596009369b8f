use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use haft_agent::{Approve, Mode};

/// A coding agent with the tools of a good workshop.
#[derive(Debug, Parser)]
#[command(name = "haft", version, about, max_term_width = 100, after_help = START)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const START: &str = "To begin: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY (or have a local server), then `haft chat` in your project. \
Without a key: `haft demo` shows a whole run, `haft tool read '{\"path\": \"README.md\"}'` makes one call by hand.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Talk with the agent in the terminal.
    Chat(Chat),
    /// Run one task to its end, without waiting for anybody.
    Run(Run),
    /// Make one call by hand, without a model.
    Tool(Tool),
    /// Make calls from standard input, a JSON object a line; answers go to standard output.
    Console(Console),
    /// List the tools and who sees them.
    Tools(Tools),
    /// Show the settings and where each comes from.
    Config(Config),
    /// Say what is installed for this checkout and what is missing.
    Doctor(Doctor),
    /// List conversations.
    Conversations(Conversations),
    /// Write a conversation out as Markdown or JSON Lines.
    Export(Export),
    /// Watch a whole run on a sample project, played from a script through the real tools.
    Demo(Demo),
}

/// Where and how to work.
#[derive(Clone, Debug, Args)]
pub(crate) struct Place {
    /// The directory to work in.
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// What the conversation may do: `agent` (the default) everything, under the guardrails; `plan` looks and changes nothing; `vibe` also
    /// directs workers.
    #[arg(long, value_name = "agent|plan|vibe")]
    pub(crate) mode: Option<Mode>,
    /// What happens to calls that need permission: `all` allows every one, `none` asks the attached person and refuses where there is none.
    #[arg(long, default_value = "none")]
    pub(crate) approve: ApproveFlag,
    /// Where people see the conversation.
    #[arg(long, default_value = "default", value_name = "NAME")]
    pub(crate) space: String,
    #[command(flatten)]
    pub(crate) models: Models,
}

/// Which models to use.
#[derive(Clone, Debug, Args)]
pub(crate) struct Models {
    /// The model: anthropic/NAME, openai/NAME, openai-chat/NAME, gemini/NAME, ollama/NAME, script:FILE or replay:FILE.
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<String>,
    /// The model for mechanical work.
    #[arg(long, value_name = "M")]
    pub(crate) fast: Option<String>,
    /// The model for design and review.
    #[arg(long, value_name = "M")]
    pub(crate) good: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ApproveFlag {
    All,
    None,
}

impl From<ApproveFlag> for Approve {
    fn from(flag: ApproveFlag) -> Self {
        match flag {
            ApproveFlag::All => Approve::All,
            ApproveFlag::None => Approve::None,
        }
    }
}

/// Which conversation to go on with.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Go on with this conversation instead of starting one.
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// Go on with the last conversation of this directory.
    #[arg(long = "continue", conflicts_with = "resume")]
    pub(crate) go_on: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Chat {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) which: Which,
    /// Keep the raw frames of the model in this file, to be played again with `replay:FILE`.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) which: Which,
    /// Print events, a JSON object a line, instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep the raw frames of the model in this file, to be played again with `replay:FILE`.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// A picture to go with the task; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Vec<PathBuf>,
    /// The task; `-` reads it from standard input.
    #[arg(required = true, value_name = "TASK")]
    pub(crate) task: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Tool {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Print the answer as the console does, a JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// The tool's name; `haft tools` lists them.
    pub(crate) name: String,
    /// The arguments, a JSON object; `-` reads them from standard input.
    #[arg(default_value = "{}")]
    pub(crate) arguments: String,
}

#[derive(Debug, Args)]
pub(crate) struct Console {
    #[command(flatten)]
    pub(crate) place: Place,
    /// The console is an attached person: cards come out as lines and are answered by lines.
    #[arg(long)]
    pub(crate) person: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Tools {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Every known tool: registered or why not, and which surfaces see it.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Config {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) action: Option<ConfigAction>,
}

#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Let this project's haft.toml, as it is now, allow things and run commands.
    Trust,
    /// Take that back.
    Distrust,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Install the language servers that this checkout could use and that are missing, into Haft's own cache folder.
    #[arg(long)]
    pub(crate) install: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct Conversations {
    /// Those of this space only.
    #[arg(long, value_name = "NAME")]
    pub(crate) space: Option<String>,
    /// Those of workers and explorers too.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON, an object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The conversation; the last one if not given. `haft conversations` lists them.
    pub(crate) id: Option<String>,
    /// The form.
    #[arg(long, default_value = "markdown")]
    pub(crate) format: ExportFormat,
    /// The cells of `eval` as a notebook that Jupyter opens, instead of the whole conversation.
    #[arg(long, conflicts_with = "format")]
    pub(crate) notebook: bool,
    /// Write to this file instead of standard output; pictures are put beside it.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ExportFormat {
    /// To be read.
    Markdown,
    /// Every event, a JSON object a line.
    Jsonl,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum DemoKind {
    /// One agent mends a failing test.
    Task,
    /// A director with three workers, a question, a permission and a kill.
    Workers,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// What to watch.
    #[arg(default_value = "task")]
    pub(crate) which: DemoKind,
    /// Leave the sample project where it was made, to look at it.
    #[arg(long)]
    pub(crate) keep: bool,
}
