//! The scanner for Python cells. It knows strings (prefixes, triple quotes, nested f-strings), comments, brackets, continuations and where a
//! statement starts, and nothing else of the grammar: outside strings and comments Python itself has no `!` but in `!=`, no `?`, and no `%`
//! where a statement or a value starts, so what is found there is a magic.

use super::{
    RewriteError, Rewritten,
    literal::repr,
    magics::{self, CELL, LINE, PYTHON_BODY, SHELL_BODY},
};

/// Rewrites a Python cell.
pub fn python(source: &str) -> Result<Rewritten, RewriteError> {
    let source = prepare(source);
    match cell_magic(&source) {
        Some(at) => rewrite_cell_magic(&source, at),
        None => Scanner::new(&source).run(),
    }
}

/// Line ends as Python sees them, prompts of a pasted session and a common indentation taken away.
fn prepare(source: &str) -> String {
    let mut text = source.replace("\r\n", "\n");
    let Some(first) = text.lines().find(|line| !line.trim().is_empty()).map(str::to_owned) else {
        return text;
    };
    if first == ">>>" || first.starts_with(">>> ") {
        text = strip_lines(&text, |line| {
            line.strip_prefix(">>>")
                .or_else(|| line.strip_prefix("..."))
                .and_then(|rest| if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ') })
        });
    } else if input_prompt(&first).is_some() {
        text = strip_lines(&text, |line| input_prompt(line).or_else(|| continuation_prompt(line)));
    } else {
        let indent = &first[..first.len() - first.trim_start_matches([' ', '\t']).len()];
        if !indent.is_empty() {
            text = strip_lines(&text, |line| line.strip_prefix(indent));
        }
    }
    text
}

fn strip_lines(text: &str, strip: impl Fn(&str) -> Option<&str>) -> String {
    text.split('\n').map(|line| strip(line).unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// `In [3]: `.
fn input_prompt(line: &str) -> Option<&str> {
    let (number, rest) = line.strip_prefix("In [")?.split_once("]: ")?;
    (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(rest)
}

/// `   ...: `.
fn continuation_prompt(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("...")?.trim_start_matches('.').strip_prefix(':')?;
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

/// Where `%%` stands, if it is the first thing in the cell that is not a comment.
fn cell_magic(source: &str) -> Option<usize> {
    let mut at = 0;
    for line in source.split_inclusive('\n') {
        let text = line.trim();
        if !text.is_empty() && !text.starts_with('#') {
            return line.starts_with("%%").then_some(at);
        }
        at += line.len();
    }
    None
}

fn rewrite_cell_magic(source: &str, at: usize) -> Result<Rewritten, RewriteError> {
    let before = &source[..at];
    let line_number = before.matches('\n').count() + 1;
    let (line, body) = source[at + 2..].split_once('\n').unwrap_or((&source[at + 2..], ""));
    let line = line.trim_end();
    let (name, arguments) = split_name(line);
    let refused = |text: String| RewriteError { line: line_number, text };
    if !CELL.contains(&name) {
        return Err(refused(magics::unknown(name, true)));
    }
    let mut body = body.to_owned();
    if !body.is_empty() && !body.ends_with('\n') {
        body.push('\n');
    }
    let mut rewritten = Rewritten::default();
    if PYTHON_BODY.contains(&name) {
        let inner = Scanner::new(&body)
            .run()
            .map_err(|error| RewriteError { line: error.line + line_number, ..error })?;
        rewritten.quiet = inner.quiet;
        rewritten.commands = inner.commands;
        body = inner.code;
    } else if SHELL_BODY.contains(&name) {
        rewritten.commands.push(if name == "!" || name == "sx" || name == "system" {
            format!("{arguments}\n{body}")
        } else {
            body.clone()
        });
    }
    rewritten.code = format!(
        "{before}get_ipython().run_cell_magic({}, {}, {})\n",
        repr(name),
        repr(arguments),
        repr(&body)
    );
    Ok(rewritten)
}

fn split_name(line: &str) -> (&str, &str) {
    match line.split_once([' ', '\t']) {
        Some((name, rest)) => (name, rest),
        None => (line, ""),
    }
}

struct Scanner<'a> {
    source: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Copied up to here.
    copied: usize,
    out: String,
    depth: usize,
    /// A statement may start here.
    start: bool,
    /// A block's first statement may stand behind this `:`, on its line.
    behind_colon: bool,
    /// Where the statement started.
    statement: usize,
    /// The last character that is neither white space nor in a comment.
    last: u8,
    commands: Vec<String>,
}

impl<'a> Scanner<'a> {
    fn new(source: &'a str) -> Self {
        Scanner {
            source,
            bytes: source.as_bytes(),
            at: 0,
            copied: 0,
            out: String::with_capacity(source.len() + 64),
            depth: 0,
            start: true,
            behind_colon: false,
            statement: 0,
            last: 0,
            commands: Vec::new(),
        }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn run(mut self) -> Result<Rewritten, RewriteError> {
        while self.at < self.bytes.len() {
            let c = self.peek(0);
            match c {
                b' ' | b'\t' | b'\x0c' | b'\r' => self.at += 1,
                b'\n' => {
                    self.at += 1;
                    if self.depth == 0 {
                        self.start = true;
                        self.behind_colon = false;
                    }
                }
                b'#' => self.skip_line(),
                b'\\' if self.peek(1) == b'\n' => self.at += 2,
                b'!' | b'%' | b'?' if self.depth == 0 && (self.start || self.behind_colon) => {
                    if !self.escape()? {
                        self.plain(c);
                    }
                }
                b'?' if self.depth == 0 => {
                    if !self.help_behind() {
                        self.plain(c);
                    }
                }
                b'=' if self.depth == 0 => self.equals()?,
                b'"' | b'\'' => {
                    self.begin();
                    self.string("");
                    self.last = c;
                }
                b'(' | b'[' | b'{' => {
                    self.plain(c);
                    self.depth += 1;
                }
                b')' | b']' | b'}' => {
                    self.plain(c);
                    self.depth = self.depth.saturating_sub(1);
                }
                b';' if self.depth == 0 => {
                    self.plain(c);
                    self.start = true;
                }
                b':' if self.depth == 0 && self.peek(1) != b'=' => {
                    self.plain(c);
                    self.behind_colon = true;
                }
                _ if is_word(c) => {
                    self.begin();
                    let begin = self.at;
                    while is_word(self.peek(0)) {
                        self.at += 1;
                    }
                    self.last = c;
                    let word = &self.source[begin..self.at];
                    if matches!(self.peek(0), b'"' | b'\'') && is_prefix(word) {
                        self.string(word);
                    }
                }
                _ => self.plain(c),
            }
        }
        self.out.push_str(&self.source[self.copied..]);
        Ok(Rewritten { code: self.out, quiet: self.last == b';', commands: self.commands })
    }

    /// A token that starts or goes on with a statement.
    fn begin(&mut self) {
        if self.start {
            self.statement = self.at;
        }
        self.start = false;
        self.behind_colon = false;
    }

    fn plain(&mut self, c: u8) {
        self.begin();
        self.last = c;
        self.at += 1;
    }

    fn skip_line(&mut self) {
        self.at = memchr::memchr(b'\n', &self.bytes[self.at..]).map_or(self.bytes.len(), |n| self.at + n);
    }

    /// Steps over a string whose opening quote is at the current place. One that has no end is left where its line ends: Python
    /// will say what is wrong with it.
    fn string(&mut self, prefix: &str) {
        let formatted = prefix.bytes().any(|b| matches!(b.to_ascii_lowercase(), b'f' | b't'));
        let quote = self.peek(0);
        let triple = self.peek(1) == quote && self.peek(2) == quote;
        self.at += if triple { 3 } else { 1 };
        self.string_body(quote, triple, formatted, 0);
    }

    fn string_body(&mut self, quote: u8, triple: bool, formatted: bool, nesting: usize) {
        while self.at < self.bytes.len() {
            let c = self.peek(0);
            match c {
                b'\\' => self.at = (self.at + 2).min(self.bytes.len()),
                b'\n' if !triple => return,
                _ if c == quote && !triple => {
                    self.at += 1;
                    return;
                }
                _ if c == quote && self.peek(1) == quote && self.peek(2) == quote => {
                    self.at += 3;
                    return;
                }
                b'{' if formatted && self.peek(1) == b'{' => self.at += 2,
                b'{' if formatted && nesting < NESTING => {
                    let begin = self.at;
                    self.at += 1;
                    if !self.field(quote, triple, nesting + 1) {
                        // Not a field after all: a string that older Pythons end here too.
                        self.at = begin + 1;
                    }
                }
                _ => self.at += 1,
            }
        }
        self.at = self.at.min(self.bytes.len());
    }

    /// Steps over a replacement field, behind its `{`. False where it has no end.
    fn field(&mut self, quote: u8, triple: bool, nesting: usize) -> bool {
        let mut depth = 0_usize;
        while self.at < self.bytes.len() {
            let c = self.peek(0);
            match c {
                b'}' if depth == 0 => {
                    self.at += 1;
                    return true;
                }
                b'(' | b'[' | b'{' => {
                    depth += 1;
                    self.at += 1;
                }
                b')' | b']' | b'}' => {
                    depth = depth.saturating_sub(1);
                    self.at += 1;
                }
                // The format: text of the string again, with fields of its own.
                b':' if depth == 0 => {
                    self.at += 1;
                    return self.format(quote, triple, nesting);
                }
                b'"' | b'\'' => {
                    // Before Python 3.12 the string's own quote ends it, from then on it begins another. Where the field is closed
                    // behind it, it was another.
                    self.string("");
                }
                b'#' if triple => self.skip_line(),
                // From Python 3.12 on a field may go over lines.
                b'\n' if !triple && !self.closes() => return false,
                _ if is_word(c) => {
                    let begin = self.at;
                    while is_word(self.peek(0)) {
                        self.at += 1;
                    }
                    let word = &self.source[begin..self.at];
                    if nesting < NESTING && matches!(self.peek(0), b'"' | b'\'') && is_prefix(word) {
                        let formatted = word.bytes().any(|b| matches!(b.to_ascii_lowercase(), b'f' | b't'));
                        let inner = self.peek(0);
                        let inner_triple = self.peek(1) == inner && self.peek(2) == inner;
                        self.at += if inner_triple { 3 } else { 1 };
                        self.string_body(inner, inner_triple, formatted, nesting);
                    }
                }
                _ => self.at += 1,
            }
        }
        false
    }

    /// Whether a `}` follows at all.
    fn closes(&self) -> bool {
        memchr::memchr(b'}', &self.bytes[self.at..]).is_some()
    }

    /// Steps over a field's format, up to and with its `}`.
    fn format(&mut self, quote: u8, triple: bool, nesting: usize) -> bool {
        while self.at < self.bytes.len() {
            let c = self.peek(0);
            match c {
                b'}' => {
                    self.at += 1;
                    return true;
                }
                b'{' if nesting < NESTING => {
                    self.at += 1;
                    if !self.field(quote, triple, nesting + 1) {
                        return false;
                    }
                }
                b'\n' if !triple => return false,
                _ if c == quote && (!triple || (self.peek(1) == quote && self.peek(2) == quote)) => {
                    return false;
                }
                b'\\' => self.at = (self.at + 2).min(self.bytes.len()),
                _ => self.at += 1,
            }
        }
        false
    }

    fn line_number(&self, at: usize) -> usize {
        self.source[..at].matches('\n').count() + 1
    }

    /// The rest of the logical line as IPython puts it together, where it ends, and how many line breaks it holds.
    fn rest_of_line(&self, from: usize) -> (String, usize, usize) {
        let mut parts = Vec::new();
        let (mut begin, mut breaks) = (from, 0);
        loop {
            let end = memchr::memchr(b'\n', &self.bytes[begin..]).map_or(self.bytes.len(), |n| begin + n);
            let line = &self.source[begin..end];
            if line.ends_with('\\') && end < self.bytes.len() {
                parts.push(line[..line.len() - 1].to_owned());
                begin = end + 1;
                breaks += 1;
                continue;
            }
            parts.push(line.trim_end().to_owned());
            return (parts.join(" "), end, breaks);
        }
    }

    fn replace(&mut self, from: usize, to: usize, breaks: usize, with: &str) {
        self.out.push_str(&self.source[self.copied..from]);
        self.out.push_str(with);
        for _ in 0..breaks {
            self.out.push('\n');
        }
        self.copied = to;
        self.at = to;
        self.start = false;
        self.behind_colon = false;
    }

    /// A magic, shell line or question where a statement starts. False where it is none.
    fn escape(&mut self) -> Result<bool, RewriteError> {
        let from = self.at;
        match (self.peek(0), self.peek(1)) {
            (b'!', b'=') => return Ok(false),
            (b'!', next) => {
                let capture = next == b'!';
                let (text, end, breaks) = self.rest_of_line(from + if capture { 2 } else { 1 });
                let command = text.trim_start_matches(' ');
                if command.trim().is_empty() {
                    return Err(self.refuse(from, "`!` needs a command.".into()));
                }
                self.commands.push(command.to_owned());
                let method = if capture { "getoutput" } else { "system" };
                let call = format!("get_ipython().{method}({})", repr(command));
                self.last = b')';
                self.replace(from, end, breaks, &call);
            }
            (b'%', b'%') => {
                let (text, ..) = self.rest_of_line(from + 2);
                let (name, _) = split_name(&text);
                let text = if CELL.contains(&name) {
                    format!(
                        "`%%{name}` takes the whole cell and stands on its first line; code before it belongs in a call of its own."
                    )
                } else {
                    magics::unknown(name, true)
                };
                return Err(self.refuse(from, text));
            }
            (b'%', next) if is_word(next) => {
                let (text, end, breaks) = self.rest_of_line(from + 1);
                let call = self.line_magic(from, &text)?;
                self.last = if text.trim_end().ends_with(';') { b';' } else { b')' };
                self.replace(from, end, breaks, &call);
            }
            (b'?', next) => {
                let detailed = next == b'?';
                let (text, end, breaks) = self.rest_of_line(from + if detailed { 2 } else { 1 });
                let call = help(text.trim(), detailed);
                self.last = b')';
                self.replace(from, end, breaks, &call);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn refuse(&self, at: usize, text: String) -> RewriteError {
        RewriteError { line: self.line_number(at), text }
    }

    fn line_magic(&mut self, at: usize, text: &str) -> Result<String, RewriteError> {
        let (name, arguments) = split_name(text);
        let name = if arguments.is_empty() { name.trim_end_matches(';') } else { name };
        // `%pip?` asks about the magic.
        if let Some(asked) = name.strip_suffix('?') {
            let detailed = asked.ends_with('?');
            return Ok(help(&format!("%{}", asked.trim_end_matches('?')), detailed));
        }
        if !LINE.contains(&name) {
            return Err(self.refuse(at, magics::unknown(name, false)));
        }
        let mut arguments = arguments.to_owned();
        match name {
            "time" => {
                let inner = Scanner::new(&arguments)
                    .run()
                    .map_err(|error| RewriteError { line: self.line_number(at), ..error })?;
                self.commands.extend(inner.commands);
                arguments = inner.code;
            }
            "sx" | "system" => self.commands.push(arguments.clone()),
            "pip" | "uv" | "ls" | "ll" => self.commands.push(format!("{name} {arguments}")),
            _ => {}
        }
        Ok(format!("get_ipython().run_line_magic({}, {})", repr(name), repr(&arguments)))
    }

    /// `target?` with the `?` at the current place.
    fn help_behind(&mut self) -> bool {
        let from = self.statement;
        let detailed = self.peek(1) == b'?';
        let behind = self.at + if detailed { 2 } else { 1 };
        let end = memchr::memchr(b'\n', &self.bytes[behind..]).map_or(self.bytes.len(), |n| behind + n);
        let target = &self.source[from..self.at];
        if !self.source[behind..end].trim().is_empty() || !is_target(target) {
            return false;
        }
        let call = help(target, detailed);
        self.last = b')';
        self.replace(from, end, 0, &call);
        true
    }

    /// `=`: an assignment of what a command or magic gives, or nothing special.
    fn equals(&mut self) -> Result<(), RewriteError> {
        let before = if self.at == 0 { 0 } else { self.bytes[self.at - 1] };
        if self.peek(1) == b'=' {
            self.plain(b'=');
            self.plain(b'=');
            return Ok(());
        }
        self.plain(b'=');
        if matches!(
            before,
            b'!' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'@' | b':' | b'='
        ) {
            return Ok(());
        }
        let mut at = self.at;
        while matches!(self.bytes.get(at), Some(b' ' | b'\t')) {
            at += 1;
        }
        let next = |n: usize| self.bytes.get(at + n).copied().unwrap_or(0);
        if next(0) == b'!' && next(1) != b'=' {
            let (text, end, breaks) = self.rest_of_line(at + 1);
            let command = text.strip_prefix('!').unwrap_or(&text).to_owned();
            if command.trim().is_empty() {
                return Err(self.refuse(at, "`!` needs a command.".into()));
            }
            self.commands.push(command.trim().to_owned());
            self.last = b')';
            self.replace(at, end, breaks, &format!("get_ipython().getoutput({})", repr(&command)));
        } else if next(0) == b'%' && is_word(next(1)) {
            let (text, end, breaks) = self.rest_of_line(at + 1);
            let call = self.line_magic(at, &text)?;
            self.last = b')';
            self.replace(at, end, breaks, &call);
        }
        Ok(())
    }
}

/// Fields within fields within strings: deeper than anybody writes, and a bound for the stack.
const NESTING: usize = 64;

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c >= 0x80
}

fn is_prefix(word: &str) -> bool {
    matches!(
        word.to_ascii_lowercase().as_str(),
        "r" | "b" | "u" | "f" | "t" | "br" | "rb" | "fr" | "rf" | "tr" | "rt"
    )
}

/// What may stand before `?`: a dotted name, with `*` as a wildcard, with simple subscripts.
fn is_target(text: &str) -> bool {
    let text = text.trim_start_matches('%');
    let mut characters = text.chars();
    characters.next().is_some_and(|c| c.is_alphabetic() || c == '_' || c == '*')
        && characters.all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '*' | '[' | ']' | '\'' | '"'))
        && !text.ends_with('.')
}

fn help(target: &str, detailed: bool) -> String {
    let magic = if target.contains('*') {
        "psearch"
    } else if detailed {
        "pinfo2"
    } else {
        "pinfo"
    };
    format!("get_ipython().run_line_magic({}, {})", repr(magic), repr(target))
}
