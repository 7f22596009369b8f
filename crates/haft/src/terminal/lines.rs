use haft_agent::Spent;
use haft_tool::{Content, Outcome};
use serde_json::Value;

/// Characters of one line about a call.
const WIDTH: usize = 100;

/// A call in one line.
pub(crate) fn call_line(tool: &str, arguments: &Value) -> String {
    let shown = match arguments {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| match value {
                Value::String(text) if fields.len() == 1 => first_line(text),
                Value::String(text) => format!("{name}={}", first_line(text)),
                other => format!("{name}={other}"),
            })
            .collect::<Vec<_>>()
            .join(" "),
        other => other.to_string(),
    };
    cut(&format!("→ {tool} {shown}"))
}

/// What a call came to, in one line.
pub(crate) fn outcome_line(tool: &str, outcome: &Outcome, ms: f64) -> String {
    let text = outcome.first_text().unwrap_or_default();
    let lines = text.lines().count();
    let pictures = outcome.content.iter().filter(|piece| matches!(piece, Content::Image { .. })).count();
    let more = match (lines, pictures) {
        (0 | 1, 0) => String::new(),
        (lines, 0) => format!(" (+{} lines)", lines - 1),
        (_, pictures) => format!(" (+{pictures} pictures)"),
    };
    let sign = if outcome.is_error { '✗' } else { '✓' };
    cut(&format!("{sign} {tool} {ms:.0} ms: {}{more}", first_line(text)))
}

/// What a conversation has used, in one line.
pub(crate) fn spent_line(spent: &Spent) -> String {
    let usage = spent.usage;
    let input = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens;
    let mut line =
        format!("{input} tokens in ({} from cache), {} out", usage.cache_read_tokens, usage.output_tokens);
    if spent.cost > 0.0 {
        line.push_str(&format!(", ${:.4}", spent.cost));
    }
    if spent.unpriced_answers > 0 && input > 0 {
        line.push_str(&format!(" (the price of {} answers is not known)", spent.unpriced_answers));
    }
    line
}

/// A table as Markdown.
pub(crate) fn table(columns: &[String], rows: &[Vec<Value>]) -> String {
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let escape = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let mut lines = vec![
        line(columns.iter().map(|name| escape(name)).collect()),
        line(vec!["---".into(); columns.len()]),
    ];
    lines.extend(rows.iter().map(|row| {
        line(
            row.iter()
                .map(|value| escape(&value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
                .collect(),
        )
    }));
    lines.join("\n")
}

fn first_line(text: &str) -> String {
    text.trim_start().lines().next().unwrap_or_default().to_owned()
}

/// A line without what would steer the terminal: tools and models do not get to do that.
pub(crate) fn plain(line: &str) -> String {
    line.chars().map(|c| if c == '\t' { ' ' } else { c }).filter(|c| !c.is_control()).collect()
}

fn cut(line: &str) -> String {
    let line = plain(line);
    match line.char_indices().nth(WIDTH) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// Lines of a diff that are shown of one outcome.
const DIFF_LINES: usize = 60;

/// The diff in an answer of a tool that writes, coloured; nothing where there is none.
pub(crate) fn coloured_diff(text: &str, colours: bool) -> Option<String> {
    let lines: Vec<&str> =
        text.lines().skip_while(|line| !line.starts_with("@@") && !line.starts_with("--- ")).collect();
    if lines.is_empty() {
        return None;
    }
    let mut shown: Vec<String> = lines
        .iter()
        .take(DIFF_LINES)
        .map(|line| {
            let colour = match line.as_bytes().first() {
                _ if !colours => "",
                Some(b'+') => "\u{1b}[32m",
                Some(b'-') => "\u{1b}[31m",
                Some(b'@') => "\u{1b}[36m",
                _ => "",
            };
            let reset = if colour.is_empty() { "" } else { "\u{1b}[0m" };
            format!("  {colour}{}{reset}", plain(line))
        })
        .collect();
    if lines.len() > DIFF_LINES {
        shown.push(format!("  … {} more lines", lines.len() - DIFF_LINES));
    }
    Some(shown.join("\n"))
}
