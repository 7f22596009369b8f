//! `eval`: code in a kernel that stays (SPEC E1).

use std::{sync::Arc, time::Duration};

use haft_tool::{Context, Output, Tier, Tool, ToolError, Touch};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Kernels,
    cell::Language,
    display::Display,
    kernels::Request,
    limits::SOURCE,
    render,
    rewrite::{self, Rewritten},
};

/// Runs cells in the conversation's kernels.
pub struct Eval {
    kernels: Arc<Kernels>,
}

impl Eval {
    /// The tool for a run; `kernels` belong to its conversation.
    pub fn new(kernels: Arc<Kernels>) -> Self {
        Eval { kernels }
    }
}

/// A cell.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvalArguments {
    /// The cell's code. May be empty with `reset`.
    code: String,
    /// What the cell does, in 5 to 10 words: the transcript's label.
    description: String,
    /// The language; python unless given.
    #[serde(default)]
    language: EvalLanguage,
    /// Start the kernel of this language anew before the code runs. Its variables are gone, whatever becomes of the code.
    #[serde(default)]
    reset: bool,
    /// How long the cell may go without output or a tool call before it is interrupted.
    #[serde(default)]
    #[schemars(range(min = 1))]
    timeout_seconds: Option<u32>,
}

// Without doc comments on the variants, which would make the schema a choice between schemas instead of a list of words.
/// The language of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum EvalLanguage {
    #[default]
    Python,
    JavaScript,
}

impl From<EvalLanguage> for Language {
    fn from(language: EvalLanguage) -> Self {
        match language {
            EvalLanguage::Python => Language::Python,
            EvalLanguage::JavaScript => Language::JavaScript,
        }
    }
}

impl EvalArguments {
    fn rewritten(&self) -> Result<Rewritten, rewrite::RewriteError> {
        match self.language {
            EvalLanguage::Python => rewrite::python(&self.code),
            EvalLanguage::JavaScript => rewrite::javascript(&self.code),
        }
    }
}

impl Tool for Eval {
    type Arguments = EvalArguments;
    const NAME: &'static str = "eval";
    const TIER: Tier = Tier::Exec;
    const PARALLEL: bool = false;

    fn description(&self) -> String {
        format!(
            "Runs code in a kernel that stays: variables, imports and loaded data are there in the next call, as in a notebook. Python (the \
             project's .venv or venv, else python3) or JavaScript (node). The value of the last expression is shown (Python: not after `;`), \
             tables and pictures as such; display(x) shows more. Top-level await works.\n\
             Python cells take magics: %pip install …, !command, x = !command, %%bash, %cd, %env, %run, %time, %timeit and others. JavaScript \
             takes import and lets const and let be declared again.\n\
             tool(\"read\", {{\"path\": \"…\"}}) calls a tool of yours from within a cell (await it in JavaScript): its text, with .structured and \
             .images; a failure raises.\n\
             A cell that gives no sign of life for {} s (`timeout_seconds` in a call, at most {}) is interrupted; the answer says whether variables were kept. There \
             is no input(). `reset`: true starts afresh.",
            self.kernels.settings.inactivity.min(self.kernels.settings.inactivity_most).as_secs(),
            self.kernels.settings.inactivity_most.as_secs(),
        )
    }

    fn touches(&self, arguments: &EvalArguments) -> Vec<Touch> {
        let mut commands = arguments.rewritten().map(|rewritten| rewritten.commands).unwrap_or_default();
        if !commands.is_empty() {
            // The rest of the cell is code: rules that allow its commands must not let it pass.
            commands.push("python3 -c cell".into());
        }
        commands.into_iter().map(Touch::Command).collect()
    }

    async fn call(&self, mut arguments: EvalArguments, context: &Context) -> Result<Output, ToolError> {
        if let Some(rest) = arguments.code.strip_prefix('\u{feff}') {
            // A file's byte order mark, pasted with it.
            arguments.code = rest.to_owned();
        }
        if arguments.description.trim().is_empty() {
            return Err(ToolError::model("`description` is empty: say in 5 to 10 words what the cell does."));
        }
        if arguments.code.len() > SOURCE {
            return Err(ToolError::model(format!(
                "`code` has {} bytes, {SOURCE} is the most: put data into a file and read it.",
                arguments.code.len()
            )));
        }
        if arguments.timeout_seconds == Some(0) {
            return Err(ToolError::model("`timeout_seconds` is 0: give at least 1, or leave it out."));
        }
        if arguments.code.trim().is_empty() && !arguments.reset {
            return Err(ToolError::model("`code` is empty: there is nothing to run."));
        }
        let rewritten = arguments.rewritten().map_err(|error| ToolError::model(error.to_string()))?;
        let language = Language::from(arguments.language);
        let settings = &self.kernels.settings;
        let asked = arguments.timeout_seconds.map(|seconds| Duration::from_secs(seconds.into()));
        let budget = asked.unwrap_or(settings.inactivity).min(settings.inactivity_most);
        let capped = asked.is_some_and(|asked| asked > budget).then_some(budget);
        let request = Request {
            language,
            code: (!arguments.code.trim().is_empty()).then_some((rewritten.code, rewritten.quiet)),
            source: arguments.code,
            reset: arguments.reset,
            budget,
        };
        let mut evaluated = self.kernels.evaluate(request, context).await?;
        if let Some(most) = capped {
            evaluated
                .notices
                .push(format!("timeout_seconds is at most {}; the cell ran with that", most.as_secs()));
        }
        // A thread for what is only text would cost more than it saves.
        let heavy = evaluated.ran.as_ref().is_some_and(|ran| ran.displays.iter().any(Display::has_picture));
        if !heavy {
            return render::answer(evaluated, language);
        }
        // Pictures may have to be decoded.
        match tokio::task::spawn_blocking(move || render::answer(evaluated, language)).await {
            Ok(answer) => answer,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(ToolError::Cancelled),
        }
    }
}
