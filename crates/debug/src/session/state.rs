//! What is known about the program: a pure function of what was asked and what the adapter said, in the order in which both came.

use serde_json::Value;
use tokio::time::Instant;

use super::output::{Output, Tail};
use crate::{
    limits::WORDS_BYTES,
    protocol::message::{BreakpointAnswer, Stopped, one},
};

/// Where the program is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Phase {
    /// It is being started or attached to.
    Starting,
    Running,
    Stopped(Stop),
    Ended(End),
}

/// A stop, in words that are the same for every adapter.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stop {
    /// `breakpoint`, `step`, `pause`, `exception`, `panic`, `entry`, or what the adapter calls it.
    pub(crate) reason: String,
    /// More about it, as far as the adapter says.
    pub(crate) detail: Option<String>,
    pub(crate) thread: Option<i64>,
    pub(crate) breakpoints: Vec<i64>,
}

/// How a session's program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The adapter said so. The code is `None` where it did not say.
    Exited { code: Option<i64> },
    /// The process is gone and the adapter has not said a word about it.
    Vanished,
    /// The adapter is gone, and the program that it had started with it.
    AdapterDied { how: String },
    /// The connection to a program of somebody else's is gone; whether that runs on is not known.
    Disconnected { why: String },
    /// `terminate`, the end of the conversation, or the time limit.
    Terminated { why: String },
}

/// The reducer.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    /// Counts resumes: references that were handed out in an earlier epoch are not valid any more.
    pub(crate) epoch: u64,
    pub(crate) initialized: bool,
    /// The adapter has said its last word.
    pub(crate) settled: Settled,
    pub(crate) output: Output,
    /// The adapter's own words (category `console`, `important`): for error messages.
    pub(crate) words: Tail,
    /// What the adapter wrote to stderr.
    pub(crate) stderr: Tail,
    pub(crate) pid: Option<u32>,
    /// Since when an evaluation is under way that its call did not wait for.
    pub(crate) busy: Option<Instant>,
    /// The stop at which the program stands was shown in an answer.
    told: bool,
    /// The signal at which the program last stopped, by its name.
    pub(crate) signal: Option<String>,
    /// A pause was asked for and has not shown.
    pausing: bool,
    /// The `continued` that belongs to the last resume has not come. It may come late, after the stop (lldb-dap), or never (debugpy).
    continued_due: bool,
    /// Changes of breakpoints that the adapter has told by itself.
    pub(crate) breakpoint_news: Vec<BreakpointAnswer>,
}

/// Which of an adapter's last words have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) exited: bool,
    pub(crate) terminated: bool,
    pub(crate) closed: bool,
}

impl Settled {
    /// Nothing of interest follows.
    pub(crate) fn is_final(self) -> bool {
        self.closed || (self.exited && self.terminated)
    }
}

impl Default for State {
    fn default() -> Self {
        State {
            phase: Phase::Starting,
            epoch: 0,
            initialized: false,
            settled: Settled::default(),
            output: Output::default(),
            words: Tail::new(WORDS_BYTES),
            stderr: Tail::new(WORDS_BYTES),
            pid: None,
            busy: None,
            told: false,
            signal: None,
            pausing: false,
            continued_due: false,
            breakpoint_news: Vec::new(),
        }
    }
}

impl State {
    /// The program is about to be let go for the first time. Without `configurationDone` it has been running since the launch, and may
    /// stand already.
    pub(crate) fn let_go(&mut self) {
        if self.phase == Phase::Starting {
            self.phase = Phase::Running;
            self.epoch += 1;
            self.continued_due = true;
        }
    }

    /// The program is about to be let go. To be called before the request is sent, because the stop may come before its response.
    pub(crate) fn resume(&mut self) {
        if !matches!(self.phase, Phase::Ended(_)) {
            self.phase = Phase::Running;
            self.epoch += 1;
            self.continued_due = true;
            self.pausing = false;
        }
    }

    /// The resume was refused: the program stands where it stood. References stay invalid, since the adapter may have dropped its own.
    pub(crate) fn resume_failed(&mut self, stop: Stop) {
        if self.phase == Phase::Running {
            self.phase = Phase::Stopped(stop);
            self.continued_due = false;
        }
    }

    /// A pause is about to be asked for.
    pub(crate) fn pause(&mut self) {
        self.pausing = true;
    }

    /// The stop is shown in an answer.
    pub(crate) fn tell(&mut self) {
        self.told = true;
    }

    /// Whether it stands at a stop that was in no answer.
    pub(crate) fn has_untold_stop(&self) -> bool {
        matches!(self.phase, Phase::Stopped(_)) && !self.told
    }

    /// Something that was asked after the stop was answered: a `continued` that comes now is news.
    pub(crate) fn answered_at_stop(&mut self) {
        self.continued_due = false;
    }

    /// The program has ended, for a reason that no event told.
    pub(crate) fn end(&mut self, end: End) {
        if !matches!(self.phase, Phase::Ended(_)) {
            self.phase = Phase::Ended(end);
            self.epoch += 1;
        }
    }

    /// Takes in an event.
    pub(crate) fn event(&mut self, name: &str, body: &Value) {
        match name {
            "initialized" => self.initialized = true,
            "stopped" => self.stopped(one(body)),
            "continued" => self.continued(),
            "exited" => self.exited(body["exitCode"].as_i64()),
            "terminated" => {
                self.settled.terminated = true;
                self.end(End::Exited { code: None });
            }
            "output" => self.wrote(body),
            "process" => {
                if let Some(pid) = body["systemProcessId"].as_u64().and_then(|pid| u32::try_from(pid).ok()) {
                    self.pid = self.pid.or(Some(pid));
                }
            }
            "breakpoint" => self.breakpoint_news.push(one(&body["breakpoint"])),
            // thread, module, loadedSource, capabilities, invalidated, progress…, and what adapters invent.
            _ => {}
        }
    }

    /// The connection is gone.
    pub(crate) fn closed(&mut self) {
        self.settled.closed = true;
    }

    fn stopped(&mut self, event: Stopped) {
        if matches!(self.phase, Phase::Ended(_)) {
            // delve reports a stop of a program that was killed before.
            return;
        }
        let signalled = event.description.as_deref().is_some_and(|text| text.contains("SIGSTOP"));
        // How a pause shows: lldb-dap calls it an exception with SIGSTOP, js-debug sometimes a step.
        let is_pause = event.reason == "pause"
            || (self.pausing && (signalled || matches!(event.reason.as_str(), "step" | "signal" | "")));
        let reason = match event.reason.as_str() {
            _ if is_pause => "pause",
            "function breakpoint" | "data breakpoint" | "instruction breakpoint" => "breakpoint",
            "" => "unknown",
            "signal" => "exception",
            // delve, of a step while an earlier one waits to be gone on with.
            "exception" if event.description.as_deref() == Some("invalid command") => "step refused",
            other => other,
        };
        let detail = [event.description, event.text]
            .into_iter()
            .flatten()
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty() && text != reason && !is_pause)
            .collect::<Vec<_>>();
        self.pausing = false;
        let mut detail = detail;
        detail.dedup();
        // lldb: "signal SIGSEGV: address not mapped to object".
        self.signal = detail.iter().find_map(|text| {
            let name = text.strip_prefix("signal ")?.split([':', ' ']).next()?;
            name.starts_with("SIG").then(|| name.to_owned())
        });
        let stop = Stop {
            reason: reason.to_owned(),
            detail: (!detail.is_empty()).then(|| detail.join(": ")),
            thread: event.thread_id,
            breakpoints: event.hit_breakpoint_ids,
        };
        if let Phase::Stopped(known) = &self.phase
            && known.thread.is_some()
            && self.epoch > 0
        {
            // Other threads stop a moment after the first (js-debug sends an event for each); the first is the cause.
            return;
        }
        self.phase = Phase::Stopped(stop);
        self.told = false;
    }

    fn continued(&mut self) {
        if self.continued_due {
            self.continued_due = false;
        } else if matches!(self.phase, Phase::Stopped(_)) {
            // Somebody else let it go: a debugger command in an expression, another client.
            self.phase = Phase::Running;
            self.epoch += 1;
        }
    }

    fn exited(&mut self, code: Option<i64>) {
        self.settled.exited = true;
        match &mut self.phase {
            // `terminated` came first.
            Phase::Ended(End::Exited { code: known @ None }) => *known = code,
            Phase::Ended(_) => {}
            _ => self.end(End::Exited { code }),
        }
    }

    fn wrote(&mut self, body: &Value) {
        let text = body["output"].as_str().unwrap_or_default();
        match body["category"].as_str().unwrap_or("console") {
            "stdout" | "stderr" => self.output.push(text.as_bytes()),
            "telemetry" => {}
            _ => {
                self.words.push(text.as_bytes());
                if !text.ends_with('\n') {
                    self.words.push(b"\n");
                }
                // delve tells the exit code here and nowhere else: "Process 123 has exited with status 3".
                let code = text
                    .split_once("has exited with status ")
                    .and_then(|(_, rest)| rest.split_ascii_whitespace().next()?.parse().ok());
                match (code, &mut self.phase) {
                    (Some(code), Phase::Ended(End::Exited { code: known @ None })) => *known = Some(code),
                    (Some(code), Phase::Running | Phase::Stopped(_)) => {
                        self.end(End::Exited { code: Some(code) });
                    }
                    _ => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn running() -> State {
        let mut state = State::default();
        state.resume();
        state
    }

    fn stop(reason: &str, thread: i64) -> Phase {
        Phase::Stopped(Stop { reason: reason.into(), thread: Some(thread), ..Stop::default() })
    }

    fn stopped(state: &mut State, reason: &str) {
        state.event("stopped", &json!({"reason": reason, "threadId": 1}));
    }

    #[test]
    fn a_continued_that_comes_after_the_stop_it_precedes_does_not_make_it_run() {
        let mut state = running();
        stopped(&mut state, "step");
        state.event("continued", &json!({"threadId": 1}));
        assert_eq!(state.phase, stop("step", 1));
        // The next one is news.
        let epoch = state.epoch;
        state.event("continued", &json!({}));
        assert_eq!((&state.phase, state.epoch), (&Phase::Running, epoch + 1));
    }

    #[test]
    fn a_continued_that_never_came_is_not_waited_for_once_the_stop_was_looked_at() {
        let mut state = running();
        stopped(&mut state, "step");
        state.answered_at_stop();
        state.event("continued", &json!({}));
        assert_eq!(state.phase, Phase::Running);
    }

    #[test]
    fn an_end_is_an_end() {
        let mut state = running();
        state.event("exited", &json!({"exitCode": 3}));
        stopped(&mut state, "breakpoint");
        state.event("continued", &json!({}));
        state.event("terminated", &json!({}));
        state.end(End::Vanished);
        state.resume();
        assert_eq!(state.phase, Phase::Ended(End::Exited { code: Some(3) }));
        assert!(state.settled.is_final());
    }

    #[test]
    fn a_code_may_come_after_the_end() {
        let mut state = running();
        state.event("terminated", &Value::Null);
        assert_eq!(state.phase, Phase::Ended(End::Exited { code: None }));
        state.event("exited", &json!({"exitCode": -1}));
        assert_eq!(state.phase, Phase::Ended(End::Exited { code: Some(-1) }));
        let mut state = running();
        state.event(
            "output",
            &json!({"category": "console", "output": "Process 7 has exited with status 2\n"}),
        );
        state.event("terminated", &json!({}));
        assert_eq!(state.phase, Phase::Ended(End::Exited { code: Some(2) }));
    }

    #[test]
    fn reasons_are_the_same_for_every_adapter() {
        let lldb_pause = json!({"reason": "exception", "description": "signal SIGSTOP", "threadId": 1});
        let mut state = running();
        state.pause();
        state.event("stopped", &lldb_pause);
        assert_eq!(state.phase, stop("pause", 1));
        let mut state = running();
        state.event("stopped", &json!({"reason": "signal", "description": "signal SIGSEGV", "threadId": 1}));
        let Phase::Stopped(at) = &state.phase else { panic!("{state:?}") };
        assert_eq!((at.reason.as_str(), at.detail.as_deref()), ("exception", Some("signal SIGSEGV")));
        let mut state = running();
        state.pause();
        stopped(&mut state, "breakpoint");
        assert_eq!(state.phase, stop("breakpoint", 1));
        let refused = json!({"reason": "exception", "description": "invalid command", "text": "Unable to step", "threadId": 1});
        let mut state = running();
        state.event("stopped", &refused);
        let Phase::Stopped(at) = &state.phase else { panic!("{state:?}") };
        assert_eq!(at.reason, "step refused");
        let mut state = running();
        state.event("stopped", &Value::Null);
        let Phase::Stopped(at) = &state.phase else { panic!("{state:?}") };
        assert_eq!((at.reason.as_str(), at.thread), ("unknown", None));
    }

    #[test]
    fn the_first_of_several_stops_is_the_cause() {
        let mut state = running();
        stopped(&mut state, "breakpoint");
        state.event("stopped", &json!({"reason": "pause", "threadId": 2}));
        assert_eq!(state.phase, stop("breakpoint", 1));
    }

    #[test]
    fn a_refused_resume_leaves_the_program_where_it_stood() {
        let mut state = running();
        stopped(&mut state, "breakpoint");
        let Phase::Stopped(before) = state.phase.clone() else { panic!("{state:?}") };
        state.resume();
        state.resume_failed(before);
        assert_eq!(state.phase, stop("breakpoint", 1));
    }

    #[test]
    fn odd_bodies_change_nothing() {
        let mut state = running();
        for name in ["output", "process", "breakpoint", "thread", "debugpySockets", "", "module"] {
            for body in [Value::Null, json!([]), json!({"output": 7, "systemProcessId": "x"}), json!("text")]
            {
                state.event(name, &body);
            }
        }
        assert_eq!((state.phase, state.pid), (Phase::Running, None));
    }
}
