use super::Finding;
use crate::diagnostics::Severity;

/// `tsc --pretty false`: `file(line,column): error TS1234: words`, with indented lines that go on. Without a file: `error TS5023: words`.
pub(super) fn tsc(text: &str) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for line in text.lines() {
        if line.starts_with([' ', '\t']) {
            if let Some(last) = found.last_mut() {
                last.message.push('\n');
                last.message.push_str(line.trim());
            }
            continue;
        }
        let Some((place, rest)) = split_tsc(line) else { continue };
        let (word, rest) = rest;
        let (code, message) = rest.split_once(": ").unwrap_or((rest, ""));
        let (path, at) = place.unwrap_or(("", (1, 1)));
        found.push(Finding {
            severity: error_or_warning(word),
            code: Some(code.trim_start_matches("TS").to_owned()),
            ..Finding::at("tsc", path, at, message)
        });
    }
    found
}

fn error_or_warning(word: &str) -> Severity {
    if word == "error" { Severity::Error } else { Severity::Warning }
}

fn push_new(found: &mut Vec<Finding>, finding: Finding) {
    if !found.contains(&finding) {
        found.push(finding);
    }
}

type Place<'a> = Option<(&'a str, (u32, u32))>;

fn split_tsc(line: &str) -> Option<(Place<'_>, (&str, &str))> {
    for word in ["error", "warning"] {
        if let Some(rest) = line.strip_prefix(word).and_then(|rest| rest.strip_prefix(" TS")) {
            return Some((None, (word, rest)));
        }
        let Some(at) = line.find(&format!("): {word} TS")) else { continue };
        let open = line[..at].rfind('(')?;
        let (row, column) = line[open + 1..at].split_once(',')?;
        let place = (&line[..open], (row.parse().ok()?, column.parse().ok()?));
        return Some((Some(place), (word, &line[at + "): ".len() + word.len() + 1..])));
    }
    None
}

/// `file:line:column: words`; the column may be missing. Windows drives do not occur: Haft runs on Linux.
fn at_place(line: &str) -> Option<(&str, u32, u32, &str)> {
    let mut from = 0;
    loop {
        let colon = from + line[from..].find(':')?;
        let rest = &line[colon + 1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && colon > 0 && rest[digits..].starts_with(':') {
            let row = rest[..digits].parse().ok()?;
            let rest = &rest[digits + 1..];
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (column, words) = if digits > 0 && rest[digits..].starts_with(':') {
                (rest[..digits].parse().ok()?, &rest[digits + 1..])
            } else {
                (1, rest)
            };
            return Some((&line[..colon], row, column, words.trim()));
        }
        from = colon + 1;
    }
}

/// `go build`, `go vet`: `./file.go:6:14: words`, `vet: ./file.go:6:14: words`, notes with a tab before them, `# package` above. What `go build` finds and
/// what `vet` marks as its own trouble are errors; the rest of vet's findings are doubts: `plain` is what a line without
/// a mark counts as.
pub(super) fn go(text: &str, plain: Severity) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for line in text.lines() {
        if line.starts_with('\t') {
            if let Some(last) = found.last_mut() {
                last.message.push('\n');
                last.message.push_str(line.trim());
            }
            continue;
        }
        let (line, severity) = match line.strip_prefix("vet: ") {
            Some(line) => (line, Severity::Error),
            None => (line, plain),
        };
        let Some((path, row, column, words)) = at_place(line) else { continue };
        let extension = std::path::Path::new(path).extension().and_then(std::ffi::OsStr::to_str);
        if !matches!(extension, Some("go" | "mod" | "work" | "s" | "c" | "h")) {
            continue;
        }
        push_new(&mut found, Finding { severity, ..Finding::at("go", path, (row, column), words) });
    }
    found
}

/// `mypy`: `file:line:column: error: words  [code]`.
pub(super) fn mypy(text: &str) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for line in text.lines() {
        let Some((path, row, column, words)) = at_place(line) else { continue };
        let Some((word, words)) = words.split_once(": ") else { continue };
        if word == "note" {
            if let Some(last) = found.last_mut() {
                last.message.push('\n');
                last.message.push_str(words);
            }
            continue;
        }
        let (message, code) = bracketed(words, "  [");
        found.push(Finding {
            severity: error_or_warning(word),
            code,
            ..Finding::at("mypy", path, (row, column), message)
        });
    }
    found
}

/// gcc and clang: `file:line:column: error: words [-Wflag]`. Notes belong to what stands above them; the quoted lines of source are left out.
pub(super) fn compiler(text: &str) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for line in text.lines() {
        if line.starts_with([' ', '\t']) {
            continue;
        }
        let Some((path, row, column, words)) = at_place(line) else { continue };
        let (severity, words) = if let Some(words) =
            words.strip_prefix("error: ").or_else(|| words.strip_prefix("fatal error: "))
        {
            (Severity::Error, words)
        } else if let Some(words) = words.strip_prefix("warning: ") {
            (Severity::Warning, words)
        } else {
            continue;
        };
        let (message, code) = bracketed(words, " [");
        let finding = Finding { severity, code, ..Finding::at("compiler", path, (row, column), message) };
        // A header's error comes once for every file that includes it.
        push_new(&mut found, finding);
    }
    found
}

fn bracketed(words: &str, open: &str) -> (String, Option<String>) {
    match words.strip_suffix(']').and_then(|words| words.rsplit_once(open)) {
        Some((message, code)) if !code.contains([' ', '[']) => {
            (message.trim_end().to_owned(), Some(code.to_owned()))
        }
        _ => (words.to_owned(), None),
    }
}

/// `dart analyze --format=machine`: `SEVERITY|TYPE|CODE|path|line|column|length|message`, with `\` before `|` and `\`.
pub(super) fn dart(text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for line in text.lines() {
        let fields = split_escaped(line);
        let [severity, _, code, path, row, column, _, message] = fields.as_slice() else { continue };
        let severity = match severity.as_str() {
            "ERROR" => Severity::Error,
            "WARNING" => Severity::Warning,
            "INFO" => Severity::Information,
            _ => continue,
        };
        let (Ok(row), Ok(column)) = (row.parse(), column.parse()) else { continue };
        found.push(Finding {
            severity,
            code: Some(code.to_lowercase()),
            ..Finding::at("dart", path, (row, column), message)
        });
    }
    found
}

fn split_escaped(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '|' => fields.push(String::new()),
            '\\' => {
                let escaped = characters.next().map(|c| if c == 'n' { '\n' } else { c });
                if let Some(last) = fields.last_mut() {
                    last.extend(escaped);
                }
            }
            other => {
                if let Some(last) = fields.last_mut() {
                    last.push(other);
                }
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn finding(
        path: &str,
        line: u32,
        column: u32,
        severity: Severity,
        code: Option<&str>,
        message: &str,
        source: &str,
    ) -> Finding {
        Finding {
            path: path.into(),
            line,
            column,
            severity,
            code: code.map(Into::into),
            message: message.into(),
            source: source.into(),
        }
    }

    #[test]
    fn tsc_with_lines_that_go_on_and_brackets_in_paths() {
        let text = "app/(shop)/[id]/page.tsx(3,3): error TS2345: Argument of type 'A'.\n  Property 'b' is missing.\n\
                    error TS18003: No inputs were found.\nFound 2 errors.\n";
        let expected = vec![
            finding(
                "app/(shop)/[id]/page.tsx",
                3,
                3,
                Severity::Error,
                Some("2345"),
                "Argument of type 'A'.\nProperty 'b' is missing.",
                "tsc",
            ),
            finding("", 1, 1, Severity::Error, Some("18003"), "No inputs were found.", "tsc"),
        ];
        assert_eq!(tsc(text), expected);
    }

    #[test]
    fn go_build_and_vet() {
        let text = "# x\n./main.go:6:6: declared and not used: x\n./main.go:7:2: x redeclared in this block\n\t./a.go:3:5: other declaration of x\n\
                    # [x]\nvet: ./main.go:6:14: cannot use \"a\"\nsub/s.go:6:14: fmt.Printf format %d has arg \"x\" of wrong type string\nexit status 1\n";
        let expected = vec![
            finding("./main.go", 6, 6, Severity::Warning, None, "declared and not used: x", "go"),
            finding(
                "./main.go",
                7,
                2,
                Severity::Warning,
                None,
                "x redeclared in this block\n./a.go:3:5: other declaration of x",
                "go",
            ),
            finding("./main.go", 6, 14, Severity::Error, None, "cannot use \"a\"", "go"),
            finding(
                "sub/s.go",
                6,
                14,
                Severity::Warning,
                None,
                "fmt.Printf format %d has arg \"x\" of wrong type string",
                "go",
            ),
        ];
        assert_eq!(go(text, Severity::Warning), expected);
    }

    #[test]
    fn mypy_compilers_and_dart() {
        let text = "a.py:3: error: Incompatible return value type (got \"int\", expected \"str\")  [return-value]\na.py:3: note: See docs\nFound 1 error\n";
        let expected = vec![finding(
            "a.py",
            3,
            1,
            Severity::Error,
            Some("return-value"),
            "Incompatible return value type (got \"int\", expected \"str\")\nSee docs",
            "mypy",
        )];
        assert_eq!(mypy(text), expected);
        let text = "/p/a.c: In function 'main':\n/p/a.c:3:5: warning: unused variable 'x' [-Wunused-variable]\n    3 | int x;\n      |     ^\n\
                    /p/a.h:1:1: fatal error: no.h: No such file\n/p/a.h:1:1: fatal error: no.h: No such file\n/p/a.c:9:1: note: here\n";
        let expected = vec![
            finding(
                "/p/a.c",
                3,
                5,
                Severity::Warning,
                Some("-Wunused-variable"),
                "unused variable 'x'",
                "compiler",
            ),
            finding("/p/a.h", 1, 1, Severity::Error, None, "no.h: No such file", "compiler"),
        ];
        assert_eq!(compiler(text), expected);
        let text = "Analyzing…\nERROR|COMPILE_TIME_ERROR|UNDEFINED_METHOD|/p/a\\|b.dart|3|4|5|The method 'x\\\\y' isn't defined.\n";
        let expected = vec![finding(
            "/p/a|b.dart",
            3,
            4,
            Severity::Error,
            Some("undefined_method"),
            "The method 'x\\y' isn't defined.",
            "dart",
        )];
        assert_eq!(dart(text), expected);
    }
}
