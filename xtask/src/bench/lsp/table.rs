//! What was measured, as tables for people and as JSON for programs.

use std::fmt::Write;

use serde::Serialize;

use crate::bench::report::{Spread, short};

/// What navigation may cost beyond the raw client, in milliseconds.
const P50_ABOVE: f64 = 2.0;
const P99_ABOVE: f64 = 5.0;
/// What both tools may take of a model's context, in bytes.
const SCHEMA_BYTES: usize = 3 << 10;

/// Half of the measurements are at most the one, 99 of 100 at most the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Percentiles {
    pub(super) p50: f64,
    pub(super) p99: f64,
}

impl Percentiles {
    pub(super) fn of(values: &[f64]) -> Percentiles {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let index = ((values.len().saturating_sub(1)) as f64 * part).round() as usize;
            values.get(index).copied().unwrap_or(f64::NAN)
        };
        Percentiles { p50: at(0.5), p99: at(0.99) }
    }
}

/// A kind of question to one server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Question {
    pub(super) server: &'static str,
    pub(super) about: &'static str,
    pub(super) haft: Percentiles,
    pub(super) raw: Percentiles,
}

impl Question {
    fn above(&self) -> Percentiles {
        Percentiles { p50: self.haft.p50 - self.raw.p50, p99: self.haft.p99 - self.raw.p99 }
    }
}

/// A kind of write, looked at by one server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Written {
    pub(super) server: &'static str,
    pub(super) rule: &'static str,
    pub(super) write: &'static str,
    pub(super) haft: Spread,
    /// `None` where the server has nothing to say, so that the raw client cannot know.
    pub(super) raw: Option<Spread>,
    /// The raw client when it asks what Haft asks beside: the state before, and other files.
    pub(super) raw_alike: Option<Spread>,
    /// An edit of a file that no server looks at, through Haft in the same rounds.
    pub(super) plain: Spread,
    /// What Haft may take beyond the raw client; `None` where the row is only told.
    pub(super) allowed: Option<f64>,
    /// Writes whose answer came before the server had spoken, so that Haft was asked once more; of all.
    pub(super) asked_again: (usize, usize),
}

impl Written {
    fn above(&self) -> Option<f64> {
        self.raw.map(|raw| self.haft.median - raw.median)
    }
}

impl Written {
    fn above_alike(&self) -> Option<f64> {
        self.raw_alike.map(|raw| self.haft.median - raw.median)
    }

    /// Beyond the raw client, and beyond one that asks the same.
    fn met(&self) -> String {
        let Some(allowed) = self.allowed else { return String::new() };
        let both = [self.above(), self.above_alike()];
        both.into_iter().flatten().map(|above| met(above <= allowed)).collect::<Vec<_>>().join(", ")
    }
}

/// One question to Haft and to Serena.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Beside {
    pub(super) haft_call: &'static str,
    pub(super) serena_call: &'static str,
    pub(super) haft: Spread,
    pub(super) serena: Spread,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Serena {
    /// Its version and its server's, or why it was not measured.
    pub(super) what: String,
    pub(super) rows: Vec<Beside>,
    /// Its tools, and the bytes of what a model is told about them.
    pub(super) tools: usize,
    pub(super) schema_bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Tables {
    pub(super) conditions: Vec<String>,
    pub(super) questions: Vec<Question>,
    pub(super) writes: Vec<Written>,
    /// What was not measured, and why.
    pub(super) left_out: Vec<String>,
    pub(super) schema_bytes: Option<usize>,
    pub(super) serena: Option<Serena>,
}

fn met(is_met: bool) -> &'static str {
    if is_met { "yes" } else { "**no**" }
}

fn spread(spread: Spread) -> String {
    format!("{} ({} – {})", short(spread.median), short(spread.min), short(spread.max))
}

impl Tables {
    pub(super) fn markdown(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        for line in &self.conditions {
            let _ = writeln!(text, "- {line}");
        }
        for line in &self.left_out {
            let _ = writeln!(text, "- not measured: {line}");
        }
        let _ = writeln!(
            text,
            "\nNavigation, ms, p50 / p99; wanted: at most {P50_ABOVE} / {P99_ABOVE} above raw\n\n| server | question | haft | raw client | above raw | met |\n| --- | --- | --- | --- | --- | --- |"
        );
        for row in &self.questions {
            let above = row.above();
            let pair = |pair: Percentiles| format!("{} / {}", short(pair.p50), short(pair.p99));
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {}, {} |",
                row.server,
                row.about,
                pair(row.haft),
                pair(row.raw),
                pair(above),
                met(above.p50 <= P50_ABOVE),
                met(above.p99 <= P99_ABOVE),
            );
        }
        text.push_str(
            "\nFrom a write to what the server thinks of it, ms, median (least – most)\n\n| server | what decides | write | haft | raw client | above raw | raw client, asking the same | above that | wanted | met | a plain edit |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        );
        for row in &self.writes {
            let again = match row.asked_again {
                (0, _) => String::new(),
                (again, all) => format!(" (asked again after {again} of {all})"),
            };
            let _ = writeln!(
                text,
                "| {} | {} | {}{again} | {} | {} | {} | {} | {} | {} | {} | {} |",
                row.server,
                row.rule,
                row.write,
                spread(row.haft),
                row.raw.map_or_else(|| "hears nothing".to_owned(), spread),
                row.above().map_or_else(|| "–".to_owned(), short),
                row.raw_alike.map_or_else(|| "–".to_owned(), spread),
                row.above_alike().map_or_else(|| "–".to_owned(), short),
                row.allowed.map_or_else(String::new, |allowed| format!("≤ {allowed}")),
                row.met(),
                spread(row.plain),
            );
        }
        if let Some(serena) = &self.serena {
            let _ = writeln!(text, "\nBeside Serena: {}", serena.what);
            if !serena.rows.is_empty() {
                text.push_str("\nms, median (least – most)\n\n");
                text.push_str("| haft | | Serena | | Serena ÷ haft |\n| --- | --- | --- | --- | --- |\n");
            }
            for row in &serena.rows {
                let _ = writeln!(
                    text,
                    "| `{}` | {} | `{}` | {} | {:.0} |",
                    row.haft_call,
                    spread(row.haft),
                    row.serena_call,
                    spread(row.serena),
                    row.serena.median / row.haft.median,
                );
            }
            if serena.tools > 0 {
                let _ = writeln!(
                    text,
                    "\nWhat a model is told about Serena's {} tools: {} bytes.",
                    serena.tools, serena.schema_bytes
                );
            }
        }
        if let Some(bytes) = self.schema_bytes {
            let _ = writeln!(
                text,
                "\nWhat a model is told about `lsp` and `lsp_rename` (names, descriptions, schemas): {bytes} bytes; wanted ≤ {SCHEMA_BYTES}; met: {}.",
                met(bytes <= SCHEMA_BYTES)
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn percentiles_of_many_one_and_none() {
        let values: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(Percentiles::of(&values), Percentiles { p50: 50.0, p99: 99.0 });
        assert_eq!(Percentiles::of(&[3.0]), Percentiles { p50: 3.0, p99: 3.0 });
        assert!(Percentiles::of(&[]).p50.is_nan());
    }

    #[test]
    fn tables_say_what_is_met_and_what_was_left_out() {
        let at = |median| Spread { median, min: median - 1.0, max: median + 100.0 };
        let question = |server, haft, raw| Question { server, about: "hover", haft, raw };
        let written = |write, haft, raw: Option<f64>, allowed, asked_again| Written {
            server: "ty",
            rule: "pull",
            write,
            haft: at(haft),
            raw: raw.map(at),
            raw_alike: raw.map(|raw| at(raw + 3.0)),
            plain: at(4.0),
            allowed,
            asked_again,
        };
        let tables = Tables {
            conditions: vec!["a machine".into()],
            questions: vec![
                question("ty", Percentiles { p50: 2.5, p99: 6.0 }, Percentiles { p50: 0.5, p99: 1.0 }),
                question("gopls", Percentiles { p50: 3.0, p99: 7.0 }, Percentiles { p50: 0.5, p99: 1.0 }),
            ],
            writes: vec![
                written("stays clean", 15.0, Some(5.0), Some(10.0), (0, 15)),
                written("a new problem", 15.5, Some(5.0), Some(10.0), (3, 15)),
                written("told only", 15.5, None, Some(10.0), (0, 15)),
            ],
            left_out: vec!["clangd: it is not there".into()],
            schema_bytes: Some(4000),
            serena: Some(Serena {
                what: "version 9".into(),
                rows: vec![Beside {
                    haft_call: "lsp definition",
                    serena_call: "find_symbol",
                    haft: at(2.0),
                    serena: at(104.0),
                }],
                tools: 28,
                schema_bytes: 40_000,
            }),
        };
        insta::assert_snapshot!(tables.markdown());
        let none = Tables {
            schema_bytes: None,
            serena: Some(Serena {
                what: "not measured: no network".into(),
                rows: vec![],
                tools: 0,
                schema_bytes: 0,
            }),
            questions: vec![],
            writes: vec![],
            ..tables
        };
        insta::assert_snapshot!(none.markdown());
    }
}
