use haft_model::ToolCall;
use haft_tool::Outcome;

use crate::limits::{LOOP_STOP, LOOP_WARNING};

/// Notices a model that goes round in circles: the same calls with the same outcomes, step after step.
#[derive(Default)]
pub(super) struct Repetition {
    last: Vec<(String, String, String)>,
    times: usize,
}

/// What the last step looked like.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Not the same, or not often enough to say anything.
    New,
    /// So many times in a row; the model should be told.
    Again(usize),
    /// So many times in a row, although it was told.
    TooOften(usize),
}

impl Repetition {
    /// Takes in a step. Only the texts of outcomes are compared: a poll whose answer changes is no loop.
    pub(super) fn look(&mut self, calls: &[ToolCall], outcomes: &[Outcome]) -> Seen {
        let step: Vec<_> = calls
            .iter()
            .zip(outcomes)
            .map(|(call, outcome)| (call.tool.clone(), call.arguments.to_string(), outcome.all_text()))
            .collect();
        if step == self.last {
            self.times += 1;
        } else {
            self.last = step;
            self.times = 1;
        }
        match self.times {
            times if times >= LOOP_STOP => Seen::TooOften(times),
            LOOP_WARNING => Seen::Again(LOOP_WARNING),
            _ => Seen::New,
        }
    }
}

#[cfg(test)]
mod tests {
    use haft_tool::Output;
    use serde_json::json;

    use super::*;

    fn step(argument: u32, text: &str) -> (Vec<ToolCall>, Vec<Outcome>) {
        let call =
            ToolCall { id: "x".into(), tool: "read".into(), arguments: json!({"n": argument}), proof: None };
        (vec![call], vec![Output::text(text).into()])
    }

    #[test]
    fn a_circle_is_told_once_and_then_stopped() {
        let mut repetition = Repetition::default();
        let (calls, outcomes) = step(1, "same");
        let seen: Vec<Seen> = (0..LOOP_STOP).map(|_| repetition.look(&calls, &outcomes)).collect();
        let mut expected: Vec<Seen> = (0..LOOP_STOP).map(|_| Seen::New).collect();
        expected[LOOP_WARNING - 1] = Seen::Again(LOOP_WARNING);
        expected[LOOP_STOP - 1] = Seen::TooOften(LOOP_STOP);
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_poll_whose_answer_changes_is_no_circle() {
        let mut repetition = Repetition::default();
        for round in 0..3 * LOOP_STOP {
            let (calls, outcomes) = step(1, &format!("{round} of 100 done"));
            assert_eq!(repetition.look(&calls, &outcomes), Seen::New);
        }
    }
}
