//! The scanner for JavaScript cells. The engine's own REPL mode does everything but `import`, so only that is rewritten: to a host
//! function that resolves from the working directory.

use super::{RewriteError, Rewritten};

/// Rewrites a JavaScript cell.
pub fn javascript(source: &str) -> Result<Rewritten, RewriteError> {
    let mut scanner = Scanner {
        source,
        bytes: source.as_bytes(),
        at: 0,
        copied: 0,
        out: String::new(),
        braces: Vec::new(),
        depth: 0,
        last: Last::Operator,
    };
    scanner.run();
    scanner.out.push_str(&source[scanner.copied..]);
    Ok(Rewritten { code: scanner.out, quiet: false, commands: Vec::new() })
}

/// What stood last decides whether `/` divides or begins a regular expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Value,
    Operator,
    Dot,
}

struct Scanner<'a> {
    source: &'a str,
    bytes: &'a [u8],
    at: usize,
    copied: usize,
    out: String,
    /// For each open `{`: whether it belongs to a template's `${`.
    braces: Vec<bool>,
    /// Open parentheses and brackets.
    depth: usize,
    last: Last,
}

impl Scanner<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn run(&mut self) {
        while self.at < self.bytes.len() {
            let c = self.peek(0);
            match c {
                _ if c.is_ascii_whitespace() => self.at += 1,
                b'/' if self.peek(1) == b'/' => self.skip_to(b"\n"),
                b'/' if self.peek(1) == b'*' => {
                    self.at += 2;
                    self.skip_to(b"*/");
                    self.at = (self.at + 2).min(self.bytes.len());
                }
                b'/' => self.slash(),
                b'"' | b'\'' => {
                    self.string(c);
                    self.last = Last::Value;
                }
                b'`' => {
                    self.at += 1;
                    self.template();
                }
                b'{' => {
                    self.braces.push(false);
                    self.step(Last::Operator);
                }
                b'}' => {
                    self.step(Last::Operator);
                    if self.braces.pop() == Some(true) {
                        self.template();
                    }
                }
                b'(' | b'[' => {
                    self.depth += 1;
                    self.step(Last::Operator);
                }
                b')' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.step(Last::Value);
                }
                // Not the last dot of a spread.
                b'.' if self.peek(1) != b'.' && (self.at == 0 || self.bytes[self.at - 1] != b'.') => {
                    self.step(Last::Dot);
                }
                _ if is_word(c) => self.word(),
                _ => self.step(Last::Operator),
            }
        }
    }

    fn step(&mut self, last: Last) {
        self.at += 1;
        self.last = last;
    }

    fn skip_to(&mut self, end: &[u8]) {
        let rest = &self.bytes[self.at..];
        self.at = memchr::memmem::find(rest, end).map_or(self.bytes.len(), |n| self.at + n);
    }

    fn string(&mut self, quote: u8) {
        self.at += 1;
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'\\' => self.at = (self.at + 2).min(self.bytes.len()),
                b'\n' => return,
                c => {
                    self.at += 1;
                    if c == quote {
                        return;
                    }
                }
            }
        }
    }

    /// Text of a template, up to its end or to the next `${`.
    fn template(&mut self) {
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'\\' => self.at = (self.at + 2).min(self.bytes.len()),
                b'`' => return self.step(Last::Value),
                b'$' if self.peek(1) == b'{' => {
                    self.at += 2;
                    self.braces.push(true);
                    self.last = Last::Operator;
                    return;
                }
                _ => self.at += 1,
            }
        }
    }

    fn slash(&mut self) {
        if self.last == Last::Value {
            return self.step(Last::Operator);
        }
        let begin = self.at;
        let mut class = false;
        self.at += 1;
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'\n' => break,
                b'\\' => self.at = (self.at + 2).min(self.bytes.len()),
                b'/' if !class => {
                    self.at += 1;
                    self.last = Last::Value;
                    return;
                }
                c => {
                    class = (class || c == b'[') && c != b']';
                    self.at += 1;
                }
            }
        }
        // It had no end on its line: a division after all.
        self.at = begin;
        self.step(Last::Operator);
    }

    fn word(&mut self) {
        let begin = self.at;
        let property = self.last == Last::Dot;
        while is_word(self.peek(0)) {
            self.at += 1;
        }
        let word = &self.source[begin..self.at];
        self.last = match word {
            "return" | "typeof" | "case" | "in" | "of" | "delete" | "void" | "throw" | "new"
            | "instanceof" | "else" | "do" | "yield" | "await"
                if !property =>
            {
                Last::Operator
            }
            _ => Last::Value,
        };
        if word != "import" || property {
            return;
        }
        let behind = skip_blank(self.source, self.at);
        match self.bytes.get(behind) {
            Some(b'(') => self.replace(begin, self.at, "__haft_import"),
            Some(b'.') => {
                let after = skip_blank(self.source, behind + 1);
                if self.source[after..].starts_with("meta") {
                    self.replace(begin, after + 4, "__haft_import.meta");
                }
            }
            // A property's or method's name.
            Some(b':' | b'=' | b',' | b'}' | b';' | b')') | None => {}
            Some(_) if self.braces.is_empty() && self.depth == 0 => {
                if let Some((end, code)) = declaration(self.source, behind) {
                    let breaks = self.source[begin..end].matches('\n').count();
                    self.replace(begin, end, &(code + &"\n".repeat(breaks)));
                }
            }
            Some(_) => {}
        }
    }

    fn replace(&mut self, from: usize, to: usize, with: &str) {
        self.out.push_str(&self.source[self.copied..from]);
        self.out.push_str(with);
        self.copied = to;
        self.at = to;
    }
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$' | b'#') || c >= 0x80
}

/// Steps over white space and comments.
fn skip_blank(source: &str, mut at: usize) -> usize {
    loop {
        let rest = &source[at..];
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        if trimmed.starts_with("//") {
            at += trimmed.find('\n').unwrap_or(trimmed.len());
        } else if trimmed.starts_with("/*") {
            at += trimmed.find("*/").map_or(trimmed.len(), |n| n + 2);
        } else {
            return at;
        }
    }
}

/// An import declaration from behind its `import`: where it ends, and the code that does the same. `None` where it is not
/// understood; the engine then says what is wrong.
fn declaration(source: &str, at: usize) -> Option<(usize, String)> {
    let mut reader = Reader { source, at };
    let (mut default, mut namespace) = (None, None);
    let mut names: Vec<(String, String)> = Vec::new();
    if !matches!(reader.next_byte(), Some(b'"' | b'\'')) {
        if reader.next_byte()? != b'{' && reader.next_byte()? != b'*' {
            default = Some(reader.word()?);
            if reader.eat(",") && !matches!(reader.next_byte(), Some(b'{' | b'*')) {
                return None;
            }
        }
        match reader.next_byte()? {
            b'*' => {
                reader.eat("*");
                reader.keyword("as")?;
                namespace = Some(reader.word()?);
            }
            b'{' => {
                reader.eat("{");
                while !reader.eat("}") {
                    let name = match reader.next_byte()? {
                        b'"' | b'\'' => reader.string()?,
                        _ => reader.word()?,
                    };
                    let local = if reader.keyword("as").is_some() { reader.word()? } else { name.clone() };
                    names.push((name, local));
                    if !reader.eat(",") && reader.next_byte()? != b'}' {
                        return None;
                    }
                }
            }
            _ => {}
        }
        reader.keyword("from")?;
    }
    let specifier = reader.string()?;
    // `with {type: "json"}`.
    let mut options = String::from("undefined");
    let before = reader.at;
    if reader.keyword("with").or_else(|| reader.keyword("assert")).is_some()
        && reader.next_byte() == Some(b'{')
    {
        let begin = skip_blank(source, reader.at);
        let end = begin + source[begin..].find('}')? + 1;
        options = format!("{{with: {}}}", &source[begin..end]);
        reader.at = end;
    } else {
        reader.at = before;
    }
    if let Some(default) = default {
        names.insert(0, ("default".into(), default));
    }
    let quoted = |name: &str| {
        if name.starts_with(['"', '\'']) { name.to_owned() } else { format!("\"{name}\"") }
    };
    let wanted: Vec<String> = names.iter().map(|(name, _)| quoted(name)).collect();
    let load = format!("await __haft_import.names({specifier}, [{}], {options})", wanted.join(", "));
    let fields: Vec<String> = names
        .iter()
        .map(|(name, local)| if name == local { name.clone() } else { format!("{}: {local}", quoted(name)) })
        .collect();
    let code = match (namespace, fields.is_empty()) {
        (Some(namespace), true) => format!("const {namespace} = {load}"),
        (Some(namespace), false) => {
            format!("const {namespace} = {load}, {{{}}} = {namespace}", fields.join(", "))
        }
        (None, false) => format!("const {{{}}} = {load}", fields.join(", ")),
        (None, true) => load,
    };
    // So that a following line which begins with a bracket does not go on with it.
    let ended = source[reader.at..].trim_start_matches([' ', '\t']).starts_with(';');
    Some((reader.at, if ended { code } else { code + ";" }))
}

struct Reader<'a> {
    source: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn next_byte(&mut self) -> Option<u8> {
        self.at = skip_blank(self.source, self.at);
        self.source.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, text: &str) -> bool {
        self.at = skip_blank(self.source, self.at);
        let found = self.source[self.at..].starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn word(&mut self) -> Option<String> {
        self.at = skip_blank(self.source, self.at);
        let rest = &self.source[self.at..];
        let length = rest.bytes().take_while(|c| is_word(*c)).count();
        (length > 0).then(|| {
            self.at += length;
            rest[..length].to_owned()
        })
    }

    fn keyword(&mut self, keyword: &str) -> Option<()> {
        let before = self.at;
        if self.word().as_deref() == Some(keyword) {
            return Some(());
        }
        self.at = before;
        None
    }

    /// A string literal with its quotes.
    fn string(&mut self) -> Option<String> {
        let quote = self.next_byte().filter(|c| matches!(c, b'"' | b'\''))?;
        let rest = &self.source[self.at..];
        let mut escaped = false;
        for (index, c) in rest.bytes().enumerate().skip(1) {
            match c {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'\n' => return None,
                _ if c == quote => {
                    self.at += index + 1;
                    return Some(rest[..=index].to_owned());
                }
                _ => {}
            }
        }
        None
    }
}
