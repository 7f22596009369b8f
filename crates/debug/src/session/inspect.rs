//! Looking at a program that stands, and placing breakpoints.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Session, SessionError, Top,
    breakpoints::{Asked, LineBreak, Placed, Plan},
    references::Target,
    state::{State, Stop},
};
use crate::{
    limits::{CHILDREN, FRAMES, LOCALS, SETTLE},
    protocol::{
        RequestError,
        message::{
            BreakpointAnswer, Evaluated, ExceptionInfo, Scope, StackFrame, Thread, Variable as Raw, list, one,
        },
    },
};

/// A stack frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Ours.
    pub(crate) id: u64,
    pub(crate) name: String,
    /// Absolute, or whatever the adapter calls the source.
    pub(crate) file: Option<PathBuf>,
    /// `None` where there is no line.
    pub(crate) line: Option<u32>,
}

/// A variable, or the result of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) kind: Option<String>,
    /// Ours; `None` where it has no children.
    pub(crate) reference: Option<u64>,
}

/// A part of a list, and how much more there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed<T> {
    pub(crate) items: Vec<T>,
    /// How many there are behind these; `None` where there are more but their number is not known.
    pub(crate) more: Option<usize>,
}

impl<T> Listed<T> {
    fn nothing() -> Self {
        Listed { items: Vec::new(), more: Some(0) }
    }
}

/// Everything that a stop is reported with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) reason: String,
    pub(crate) detail: Option<String>,
    pub(crate) thread: Option<i64>,
    /// Which process it is, where there is or was more than one.
    pub(crate) process: Option<u32>,
    /// Where it stands.
    pub(crate) top: Option<Frame>,
    /// The nearest frame of the project, where the top frame is none.
    pub(crate) nearest: Option<Frame>,
    /// Of the nearest frame of the project, else of the top frame.
    pub(crate) locals: Listed<Variable>,
    /// When the session was.
    pub(crate) begun: Instant,
    /// What could not be found out.
    pub(crate) unknown: Option<String>,
}

impl Session {
    /// Everything about the stop in one go. Never an error: what the adapter refuses to tell is said in `unknown`.
    pub(crate) async fn look(&self, stop: &Stop, project: &Path) -> Standing {
        self.shared.with(State::tell);
        self.take_focus();
        let mut standing = Standing {
            reason: stop.reason.clone(),
            detail: stop.detail.clone(),
            thread: stop.thread,
            process: self.pid().filter(|_| self.has_company()),
            top: None,
            nearest: None,
            locals: Listed::nothing(),
            begun: self.begun,
            unknown: None,
        };
        let panicked = self.panic_breakpoint.get().is_some_and(|id| stop.breakpoints.contains(id));
        if let Err(error) = self.look_into(&mut standing, project, panicked).await {
            standing.unknown = Some(error.to_string());
        }
        let at_panic = |frame: &Frame| frame.name.ends_with("rust_panic");
        if panicked || (stop.reason == "breakpoint" && standing.top.as_ref().is_some_and(at_panic)) {
            standing.reason = "panic".into();
            // Rust writes the message before it comes here, but what is written takes a way of its own.
            let message =
                self.shared.when_within(SETTLE, |state| state.output.last_from("panicked at ")).await;
            standing.detail = Some(message.unwrap_or_else(|| "the program has not written a message".into()));
        }
        if stop.reason == "exception"
            && self.capabilities().supports_exception_info_request
            && let Some(thread) = standing.thread
        {
            let asked = self.ask("exceptionInfo", json!({"threadId": thread})).await;
            if let Ok(body) = asked {
                let info: ExceptionInfo = one(&body);
                let description = info.description.unwrap_or_default();
                let text = if description.contains(&info.exception_id) || description.is_empty() {
                    if description.is_empty() { info.exception_id } else { description }
                } else {
                    format!("{}: {description}", info.exception_id)
                };
                if !text.trim().is_empty() {
                    standing.detail = Some(text.trim().to_owned());
                }
            }
        }
        standing
    }

    async fn look_into(
        &self,
        standing: &mut Standing,
        project: &Path,
        deep: bool,
    ) -> Result<(), SessionError> {
        let thread = match standing.thread {
            Some(thread) => thread,
            None => self.some_thread().await?,
        };
        standing.thread = Some(thread);
        let is_ours = |frame: &Frame| {
            frame.line.is_some() && frame.file.as_ref().is_some_and(|file| file.starts_with(project))
        };
        let mut levels = if deep { FRAMES } else { 1 };
        let frames = loop {
            let arguments = json!({"threadId": thread, "startFrame": 0, "levels": levels});
            let body = self.ask("stackTrace", arguments).await?;
            let frames = self.take_frames(&body, FRAMES);
            let epoch = self.shared.with(|state| {
                state.answered_at_stop();
                state.epoch
            });
            self.note_top(epoch, list(&body, "stackFrames").into_iter().next());
            if levels == FRAMES || frames.first().is_some_and(is_ours) {
                break frames;
            }
            levels = FRAMES;
        };
        let nearest = frames.iter().position(is_ours);
        standing.top = frames.first().cloned();
        standing.nearest = nearest.filter(|at| *at > 0).map(|at| frames[at].clone());
        let Some(shown) = standing.nearest.as_ref().or(standing.top.as_ref()) else { return Ok(()) };
        standing.locals = self.locals(shown.id).await?;
        Ok(())
    }

    /// The variables of a frame's innermost scope of locals.
    pub(crate) async fn locals(&self, frame: u64) -> Result<Listed<Variable>, SessionError> {
        let id = self.references().frame(frame)?;
        let scopes = self.raw_scopes(id).await?;
        let is_local = |scope: &&Scope| {
            scope.presentation_hint.as_deref() == Some("locals")
                || scope.name.to_ascii_lowercase().starts_with("local")
        };
        let scope = scopes.iter().find(is_local).or_else(|| scopes.iter().find(|scope| !scope.expensive));
        let Some(scope) = scope else { return Ok(Listed::nothing()) };
        let mut listed = self.children(scope.variables_reference, 0, LOCALS, scope.named_variables).await?;
        // debugpy groups what every Python object has under names with a space in them.
        listed.items.retain(|variable| {
            !matches!(variable.name.as_str(), "special variables" | "function variables" | "class variables")
        });
        Ok(listed)
    }

    /// A thread of the program; the first where it does not matter.
    pub(super) async fn some_thread(&self) -> Result<i64, SessionError> {
        let threads = self.raw_threads().await?;
        // delve marks the goroutine that it stands in.
        let current = threads.iter().find(|thread| thread.name.starts_with("* ")).or(threads.first());
        current.map(|thread| thread.id).ok_or_else(|| {
            RequestError::Failed { message: "the debug adapter lists no threads".into() }.into()
        })
    }

    async fn raw_threads(&self) -> Result<Vec<Thread>, SessionError> {
        Ok(list(&self.ask("threads", json!({"_": 0})).await?, "threads"))
    }

    /// The program's threads (delve: goroutines).
    pub(crate) async fn threads(&self) -> Result<Vec<(i64, String)>, SessionError> {
        if let Some(since) = self.busy().await {
            return Err(SessionError::Busy(since.as_secs()));
        }
        Ok(self.raw_threads().await?.into_iter().map(|thread| (thread.id, thread.name)).collect())
    }

    fn take_frames(&self, body: &Value, most: usize) -> Vec<Frame> {
        let mut references = self.references();
        list::<StackFrame>(body, "stackFrames")
            .into_iter()
            .take(most)
            .map(|frame| Frame {
                id: references.give(Target::Frame(frame.id)),
                name: plain_name(&frame.name),
                file: frame.source.and_then(|source| source.path.or(source.name)).map(PathBuf::from),
                line: u32::try_from(frame.line).ok().filter(|line| *line > 0),
            })
            .collect()
    }

    /// The stack of a thread, from `start`.
    pub(crate) async fn stack(
        &self,
        thread: Option<i64>,
        start: usize,
    ) -> Result<(i64, Listed<Frame>), SessionError> {
        let stop = self.standing().await?;
        let thread = match thread.or(stop.thread) {
            Some(thread) => thread,
            None => self.some_thread().await?,
        };
        // One more than is shown, so that "there are more" is known where the adapter gives no total.
        let arguments = json!({"threadId": thread, "startFrame": start, "levels": FRAMES + 1});
        let body = self.ask("stackTrace", arguments).await?;
        let mut items = self.take_frames(&body, FRAMES + 1);
        let total = body["totalFrames"].as_u64().and_then(|total| usize::try_from(total).ok());
        let more = if items.len() > FRAMES {
            // Adapters that load stacks lazily (delve, js-debug) give the number of frames loaded so far.
            total.map(|total| total.saturating_sub(start + FRAMES)).filter(|more| *more > 1)
        } else {
            Some(0)
        };
        items.truncate(FRAMES);
        Ok((thread, Listed { items, more }))
    }

    /// The adapter's id of the frame that the stopped thread stands in. Known from the look at the stop, as long as it stands there.
    pub(super) async fn top_frame(&self, stop: &Stop) -> Result<Option<i64>, SessionError> {
        let epoch = self.shared.look(|state| state.epoch);
        if let Some(known) = self.lock_top().as_ref().filter(|top| top.epoch == epoch) {
            return Ok(Some(known.id));
        }
        let thread = match stop.thread {
            Some(thread) => thread,
            None => self.some_thread().await?,
        };
        let frame = self.first_frame(thread).await?;
        Ok(self.note_top(epoch, frame))
    }

    /// The frame that a thread stands in.
    pub(super) async fn first_frame(&self, thread: i64) -> Result<Option<StackFrame>, SessionError> {
        let arguments = json!({"threadId": thread, "startFrame": 0, "levels": 1});
        let body = self.ask("stackTrace", arguments).await?;
        Ok(list(&body, "stackFrames").into_iter().next())
    }

    /// Keeps a frame as the one that the program stands in.
    fn note_top(&self, epoch: u64, frame: Option<StackFrame>) -> Option<i64> {
        let top = frame.map(|frame| Top { epoch, id: frame.id, name: frame.name, line: frame.line });
        let id = top.as_ref().map(|top| top.id);
        *self.lock_top() = top;
        id
    }

    /// Our number of the frame that the program stands in.
    pub(crate) async fn current_frame(&self) -> Result<u64, SessionError> {
        let stop = self.standing().await?;
        let id = self.top_frame(&stop).await?;
        let id = id.ok_or_else(|| RequestError::Failed { message: "this thread has no frames".into() })?;
        Ok(self.references().give(Target::Frame(id)))
    }

    async fn raw_scopes(&self, frame: i64) -> Result<Vec<Scope>, SessionError> {
        Ok(list(&self.ask("scopes", json!({"frameId": frame})).await?, "scopes"))
    }

    /// The scopes of a frame with our references.
    pub(crate) async fn scopes(&self, frame: u64) -> Result<Vec<(String, u64)>, SessionError> {
        self.standing().await?;
        let id = self.references().frame(frame)?;
        let scopes = self.raw_scopes(id).await?;
        let mut references = self.references();
        Ok(scopes
            .into_iter()
            .map(|scope| (scope.name, references.give(Target::Children(scope.variables_reference))))
            .collect())
    }

    /// The children of a scope or a variable, from `start`.
    pub(crate) async fn variables(
        &self,
        reference: u64,
        start: usize,
    ) -> Result<Listed<Variable>, SessionError> {
        self.standing().await?;
        let adapters = self.references().children(reference)?;
        self.children(adapters, start, CHILDREN, None).await
    }

    async fn children(
        &self,
        reference: i64,
        start: usize,
        most: usize,
        total: Option<i64>,
    ) -> Result<Listed<Variable>, SessionError> {
        let elements = self.references().elements(reference);
        if let Some(elements) = elements {
            return self.elements(reference, start, most, elements).await;
        }
        // One more than is shown tells whether there are more. Adapters that do not page send all of them.
        let arguments = json!({"variablesReference": reference, "start": start, "count": most + 1});
        let all: Vec<Raw> = list(&self.ask("variables", arguments).await?, "variables");
        let pages = self.adapter.pages && all.len() <= most + 1;
        let from = if pages { 0 } else { start };
        let given = all.len();
        let items: Vec<Variable> =
            all.into_iter().skip(from).take(most).map(|raw| self.variable(raw)).collect();
        let behind = given.saturating_sub(from + items.len());
        let more = match total.and_then(|total| usize::try_from(total).ok()) {
            _ if behind == 0 || !pages => Some(behind),
            Some(total) => Some(total.saturating_sub(start + items.len())),
            None => None,
        };
        Ok(Listed { items, more })
    }

    /// The elements of something of which the adapter has told how many it has. Without saying which are wanted one gets the first
    /// of them only (delve: 64), and nothing tells that there are more.
    async fn elements(
        &self,
        reference: i64,
        start: usize,
        most: usize,
        elements: usize,
    ) -> Result<Listed<Variable>, SessionError> {
        let count = most.min(elements.saturating_sub(start));
        let mut items = Vec::new();
        if count > 0 {
            let arguments =
                json!({"variablesReference": reference, "filter": "indexed", "start": start, "count": count});
            let given: Vec<Raw> = list(&self.ask("variables", arguments).await?, "variables");
            // One that does not heed the filter has sent everything.
            let from = if given.len() > count { start } else { 0 };
            items.extend(given.into_iter().skip(from).take(count).map(|raw| self.variable(raw)));
        }
        let more = elements.saturating_sub(start + items.len());
        Ok(Listed { items, more: Some(more) })
    }

    fn variable(&self, raw: Raw) -> Variable {
        let reference = (raw.variables_reference > 0).then(|| {
            let mut references = self.references();
            let named_only = raw.named_variables.is_some_and(|named| named > 0);
            let elements = raw.indexed_variables.and_then(|count| usize::try_from(count).ok());
            // lldb-dap gives everything by position, and pages without being asked for elements.
            if let Some(elements) = elements.filter(|count| *count > 0 && !named_only && !self.adapter.pages)
            {
                references.has_elements(raw.variables_reference, elements);
            }
            references.give(Target::Children(raw.variables_reference))
        });
        Variable {
            name: raw.name,
            value: raw.value,
            kind: raw.kind.filter(|kind| !kind.is_empty()),
            reference,
        }
    }

    pub(super) fn evaluated(&self, expression: &str, body: &Value) -> Variable {
        let Evaluated { result, kind, variables_reference, indexed_variables, named_variables } = one(body);
        self.variable(Raw {
            name: expression.to_owned(),
            value: result,
            kind,
            variables_reference,
            indexed_variables,
            named_variables,
        })
    }

    /// Hands every breakpoint to the adapter. A refusal is the breakpoint's own; the session goes on.
    pub(super) async fn place_all(&self, plan: &Plan, stop_at_panic: bool) {
        for (file, lines) in &plan.files {
            self.place_file(file, lines).await;
        }
        self.place_functions(&plan.functions, stop_at_panic).await;
        self.place_exceptions(plan.exceptions.as_deref()).await;
    }

    /// Replaces the breakpoints of a file.
    pub(crate) async fn place_file(&self, file: &Path, lines: &[LineBreak]) {
        let can = self.capabilities();
        let asked = |line: &LineBreak| Asked::Line(file.to_owned(), line.clone());
        let mut set = Vec::new();
        let mut refused = Vec::new();
        for line in lines {
            match line.unsupported(&can, self.adapter.hits) {
                None => set.push(line),
                Some(why) => refused.push(Placed::refused(asked(line), why)),
            }
        }
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
        let arguments = json!({
            "source": {"name": name, "path": file.display().to_string()},
            "breakpoints": set.iter().map(|line| line.request()).collect::<Vec<_>>(),
            // For adapters of an older protocol.
            "lines": set.iter().map(|line| line.line).collect::<Vec<_>>(),
            "sourceModified": false,
        });
        let mut placed: Vec<Placed> = match self.ask("setBreakpoints", arguments).await {
            Ok(body) => pair(set.iter().map(|line| asked(line)), &list(&body, "breakpoints")),
            Err(error) => set.iter().map(|line| Placed::refused(asked(line), error.to_string())).collect(),
        };
        placed.extend(refused);
        let mut all = self.lock_placed();
        all.retain(|known| !matches!(&known.asked, Asked::Line(path, _) if path == file));
        all.extend(placed);
    }

    /// Replaces the function breakpoints.
    pub(crate) async fn place_functions(&self, functions: &[String], stop_at_panic: bool) {
        let can = self.capabilities();
        let asked = |name: &String| Asked::Function(name.clone());
        let mut placed = Vec::new();
        let keeps_panic = stop_at_panic || self.panic_breakpoint.get().is_some();
        if functions.is_empty() && !keeps_panic && self.lock_placed().iter().all(|known| !known.is_function())
        {
            return;
        }
        if can.supports_function_breakpoints {
            let mut names: Vec<&str> = functions.iter().map(String::as_str).collect();
            if keeps_panic {
                names.push("rust_panic");
            }
            let breakpoints: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            match self.ask("setFunctionBreakpoints", json!({"breakpoints": breakpoints})).await {
                Ok(body) => {
                    let answers: Vec<BreakpointAnswer> = list(&body, "breakpoints");
                    placed = pair(functions.iter().map(asked), &answers);
                    if keeps_panic && let Some(id) = answers.get(functions.len()).and_then(|last| last.id) {
                        let _ = self.panic_breakpoint.set(id);
                    }
                }
                Err(error) => placed
                    .extend(functions.iter().map(|name| Placed::refused(asked(name), error.to_string()))),
            }
        } else {
            let why = "not set: this adapter has no breakpoints on functions";
            placed.extend(functions.iter().map(|name| Placed::refused(asked(name), why)));
        }
        let mut all = self.lock_placed();
        all.retain(|known| !known.is_function());
        all.extend(placed);
    }

    /// Sets the exception filters: those that were asked for, else the adapter's own defaults and uncaught exceptions. Answers the
    /// names that the adapter does not know.
    pub(crate) async fn place_exceptions(&self, asked: Option<&[String]>) -> Vec<String> {
        let known = self.capabilities().exception_breakpoint_filters;
        if known.is_empty() {
            return asked.unwrap_or_default().to_vec();
        }
        let filters: Vec<&str> = match asked {
            Some(asked) => known
                .iter()
                .map(|filter| filter.filter.as_str())
                .filter(|name| asked.iter().any(|asked| asked == name))
                .collect(),
            None => known
                .iter()
                .filter(|filter| {
                    filter.default || filter.filter == "uncaught" || filter.filter == "Unhandled"
                })
                .map(|filter| filter.filter.as_str())
                .collect(),
        };
        // An error leaves the adapter's own behaviour; nothing else depends on it.
        let _ = self.ask("setExceptionBreakpoints", json!({"filters": filters})).await;
        asked
            .unwrap_or_default()
            .iter()
            .filter(|name| known.iter().all(|filter| filter.filter != **name))
            .cloned()
            .collect()
    }
}

impl Placed {
    fn is_function(&self) -> bool {
        matches!(self.asked, Asked::Function(_))
    }
}

/// Answers come in the order of what was asked; one that is missing is not known to be verified.
fn pair(asked: impl Iterator<Item = Asked>, answers: &[BreakpointAnswer]) -> Vec<Placed> {
    let mut answers = answers.iter();
    asked
        .map(|asked| match answers.next() {
            Some(answer) => Placed::answered(asked, answer),
            None => Placed::refused(asked, "the debug adapter did not answer for this breakpoint"),
        })
        .collect()
}

/// A name without what Rust's legacy mangling puts into it: a hash at the end that tells nobody anything, and escapes for what is no
/// letter (`_$u7b$$u7b$closure$u7d$$u7d$` is `{{closure}}`).
fn plain_name(name: &str) -> String {
    let name = match name.rsplit_once("::h") {
        Some((rest, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => rest,
        _ => name,
    };
    // Names of other languages have dollars too, but not these.
    if !ESCAPES.iter().any(|(escape, _)| name.contains(escape)) {
        return name.to_owned();
    }
    // An underscore keeps a part of a path from beginning with a dollar.
    let mut plain = name.replace("::_$", "::$");
    if let Some(rest) = plain.strip_prefix("_$") {
        plain = format!("${rest}");
    }
    for (escape, meant) in ESCAPES {
        plain = plain.replace(escape, meant);
    }
    plain.replace("..", "::")
}

/// The escapes of Rust's legacy mangling (rustc_symbol_mangling, `legacy.rs`).
const ESCAPES: &[(&str, &str)] = &[
    ("$SP$", "@"),
    ("$BP$", "*"),
    ("$RF$", "&"),
    ("$LT$", "<"),
    ("$GT$", ">"),
    ("$LP$", "("),
    ("$RP$", ")"),
    ("$C$", ","),
    ("$u20$", " "),
    ("$u27$", "'"),
    ("$u3b$", ";"),
    ("$u5b$", "["),
    ("$u5d$", "]"),
    ("$u7b$", "{"),
    ("$u7d$", "}"),
    ("$u7e$", "~"),
];

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn hashes_are_taken_off_names() {
        assert_eq!(plain_name("sample::total::h0123456789abcdef"), "sample::total");
        assert_eq!(plain_name("sample::hello"), "sample::hello");
        assert_eq!(plain_name("main"), "main");
    }

    #[test]
    fn escapes_are_read() {
        assert_eq!(plain_name("hunt::main::_$u7b$$u7b$closure$u7d$$u7d$"), "hunt::main::{{closure}}");
        assert_eq!(
            plain_name(
                "_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..drop..Drop$GT$::drop::h0123456789abcdef"
            ),
            "<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop"
        );
        assert_eq!(plain_name("jQuery$.._$"), "jQuery$.._$");
    }
}
