//! Breakpoints: what was asked for, which belongs to the conversation, and what an adapter made of it, which belongs to a session.

use std::{collections::BTreeMap, path::PathBuf};

use serde_json::{Map, Value, json};

use crate::{
    adapters::Hits,
    protocol::message::{BreakpointAnswer, Capabilities},
};

/// A breakpoint on a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LineBreak {
    pub(crate) line: u32,
    pub(crate) condition: Option<String>,
    pub(crate) hit_condition: Option<String>,
    pub(crate) log_message: Option<String>,
}

/// Everything that was asked for. Kept from one session to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) files: BTreeMap<PathBuf, Vec<LineBreak>>,
    pub(crate) functions: Vec<String>,
    /// Exception filters by the adapter's names; the adapter's defaults where nothing was asked for.
    pub(crate) exceptions: Option<Vec<String>>,
}

/// What became of one breakpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) asked: Asked,
    pub(crate) id: Option<i64>,
    /// `None` while no adapter was asked.
    pub(crate) verified: Option<bool>,
    /// Where the adapter put it.
    pub(crate) line: Option<u32>,
    pub(crate) message: Option<String>,
}

/// What a breakpoint was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Line(PathBuf, LineBreak),
    Function(String),
}

impl Plan {
    /// Every breakpoint, as it is while there is no session.
    pub(crate) fn unplaced(&self) -> Vec<Placed> {
        let lines = self
            .files
            .iter()
            .flat_map(|(file, lines)| lines.iter().map(|line| Asked::Line(file.clone(), line.clone())));
        let functions = self.functions.iter().cloned().map(Asked::Function);
        lines.chain(functions).map(Placed::waiting).collect()
    }
}

impl Placed {
    pub(crate) fn waiting(asked: Asked) -> Self {
        Placed { asked, id: None, verified: None, line: None, message: None }
    }

    pub(crate) fn refused(asked: Asked, why: impl Into<String>) -> Self {
        Placed { verified: Some(false), message: Some(why.into()), ..Placed::waiting(asked) }
    }

    pub(crate) fn answered(asked: Asked, answer: &BreakpointAnswer) -> Self {
        let mut placed = Placed { id: answer.id, ..Placed::waiting(asked) };
        placed.update(answer);
        placed
    }

    /// Takes in what the adapter says later about the same breakpoint.
    pub(crate) fn update(&mut self, answer: &BreakpointAnswer) {
        self.verified = Some(answer.verified);
        self.line = answer.line.and_then(|line| u32::try_from(line).ok()).or(self.line);
        self.message = answer.message.clone().filter(|text| !text.trim().is_empty());
    }
}

impl Hits {
    fn understands(self, text: &str) -> bool {
        let text = text.trim();
        let is_number = |text: &str| text.trim().parse::<u32>().is_ok();
        match self {
            Hits::Any => true,
            Hits::Number => is_number(text),
            Hits::ComparisonOrCondition => {
                is_number(text)
                    || ["==", ">=", "<=", ">", "<", "%"]
                        .iter()
                        .filter_map(|operator| text.strip_prefix(operator))
                        .any(is_number)
            }
        }
    }
}

impl LineBreak {
    /// Why this adapter cannot do it; a condition that is left out in silence would stop where it should not.
    pub(crate) fn unsupported(&self, can: &Capabilities, hits: Hits) -> Option<&'static str> {
        let understood = self.hit_condition.as_deref().is_none_or(|text| hits.understands(text));
        if self.condition.is_some() && !can.supports_conditional_breakpoints {
            Some("not set: this adapter has no conditions on breakpoints")
        } else if self.hit_condition.is_some() && !can.supports_hit_conditional_breakpoints {
            Some("not set: this adapter has no hit conditions on breakpoints")
        } else if !understood {
            Some(match hits {
                Hits::ComparisonOrCondition => {
                    "not set: hit_condition has to be a number, or one of == > >= < <= % and a number"
                }
                Hits::Number | Hits::Any => "not set: hit_condition has to be a number",
            })
        } else if self.hit_condition.is_some()
            && self.condition.is_some()
            && hits == Hits::ComparisonOrCondition
        {
            Some(
                "not set: this adapter would stop where the condition or the hit condition is true, not both; use one of them, or count \
                 in the condition",
            )
        } else if self.log_message.is_some() && !can.supports_log_points {
            Some("not set: this adapter has no log messages on breakpoints")
        } else {
            None
        }
    }

    /// As the protocol has it.
    pub(crate) fn request(&self) -> Value {
        let mut fields = Map::from_iter([("line".to_owned(), json!(self.line))]);
        for (name, value) in [
            ("condition", &self.condition),
            ("hitCondition", &self.hit_condition),
            ("logMessage", &self.log_message),
        ] {
            if let Some(value) = value {
                fields.insert(name.to_owned(), json!(value));
            }
        }
        Value::Object(fields)
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn hit_conditions_that_an_adapter_would_silently_never_meet_are_not_understood() {
        let texts = ["3", " 12 ", ">= 3", "%2", "==4", "abc", "", "-1", "> x", "3 4", "!= 2"];
        let understood =
            |hits: Hits| -> Vec<&str> { texts.into_iter().filter(|text| hits.understands(text)).collect() };
        assert_eq!(understood(Hits::Number), ["3", " 12 "]);
        assert_eq!(understood(Hits::ComparisonOrCondition), ["3", " 12 ", ">= 3", "%2", "==4"]);
        assert_eq!(understood(Hits::Any), texts);
    }
}
