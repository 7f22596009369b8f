//! Numbers as a table for people and as JSON for programs.

use std::fmt::Write;

use serde::Serialize;

/// The middle of a row of measurements, and its ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// None where nothing was measured.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[middle],
            _ => f64::midpoint(*values.get(middle.checked_sub(1)?)?, values[middle]),
        };
        Some(Spread { median, min: *values.first()?, max: *values.last()? })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "MiB")]
    Mebibytes,
}

impl Unit {
    fn as_str(self) -> &'static str {
        match self {
            Unit::Milliseconds => "ms",
            Unit::Mebibytes => "MiB",
        }
    }
}

/// What is wanted of Haft's median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    /// At most this many.
    AtMost(f64),
    /// At most this part of the peer's.
    RatioAtMost(f64),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Row {
    pub(crate) what: &'static str,
    pub(crate) unit: Unit,
    pub(crate) haft: Spread,
    pub(crate) peer: Option<Spread>,
    pub(crate) targets: Vec<Target>,
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        self.peer.map(|peer| self.haft.median / peer.median)
    }

    /// None where there was nothing to compare with.
    fn met(&self, target: Target) -> Option<bool> {
        match target {
            Target::AtMost(most) => Some(self.haft.median <= most),
            Target::RatioAtMost(most) => self.ratio().map(|ratio| ratio <= most),
        }
    }
}

/// A whole benchmark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Report {
    /// What was measured where, a line each.
    pub(crate) conditions: Vec<String>,
    /// The peer's name and version, or why there is none.
    pub(crate) peer: String,
    pub(crate) rounds: u32,
    pub(crate) rows: Vec<Row>,
}

impl Report {
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        for line in &self.conditions {
            let _ = writeln!(text, "- {line}");
        }
        let _ = writeln!(text, "- {} rounds; median (least – most)\n", self.rounds);
        let _ = writeln!(text, "| measure | haft | {} | ratio | target | met |", self.peer);
        text.push_str("| --- | --- | --- | --- | --- | --- |\n");
        for row in &self.rows {
            let unit = row.unit.as_str();
            let spread = |spread: Spread| {
                format!("{} ({} – {}) {unit}", short(spread.median), short(spread.min), short(spread.max))
            };
            let targets: Vec<String> = row
                .targets
                .iter()
                .map(|target| match target {
                    Target::AtMost(most) => format!("≤ {most} {unit}"),
                    Target::RatioAtMost(most) => format!("ratio ≤ {most}"),
                })
                .collect();
            let met: Vec<&str> = row
                .targets
                .iter()
                .map(|target| match row.met(*target) {
                    Some(true) => "yes",
                    Some(false) => "**no**",
                    None => "not measured",
                })
                .collect();
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} |",
                row.what,
                spread(row.haft),
                row.peer.map_or("–".to_owned(), spread),
                row.ratio().map_or("–".to_owned(), |ratio| format!("{ratio:.2}")),
                targets.join(", "),
                met.join(", "),
            );
        }
        text
    }
}

/// Three digits are as many as such measurements are worth.
pub(crate) fn short(value: f64) -> String {
    let digits = match value.abs() {
        size if size < 10.0 => 2,
        size if size < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn the_middle_of_odd_even_and_nothing() {
        let spread = |values: &[f64]| Spread::of(values.iter().copied());
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(spread(&[4.0, 1.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn a_report_says_what_is_met_and_what_was_not_measured() {
        let spread = |median| Spread { median, min: median - 1.0, max: median + 100.0 };
        let row = |what, haft, peer: Option<f64>, targets: &[Target]| Row {
            what,
            unit: Unit::Milliseconds,
            haft: spread(haft),
            peer: peer.map(spread),
            targets: targets.to_vec(),
        };
        let report = Report {
            conditions: vec!["A machine".to_owned()],
            peer: "codex 1".to_owned(),
            rounds: 3,
            rows: vec![
                row("met", 9.999, Some(20.0), &[Target::AtMost(10.0), Target::RatioAtMost(0.6)]),
                row("missed", 123.0, Some(200.0), &[Target::AtMost(120.0), Target::RatioAtMost(0.6)]),
                row("alone", 5.0, None, &[Target::AtMost(10.0), Target::RatioAtMost(0.6)]),
                Row { unit: Unit::Mebibytes, ..row("no target", 5.0, None, &[]) },
            ],
        };
        insta::assert_snapshot!(report.markdown());
    }
}
