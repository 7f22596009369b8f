//! The second reader of a command line.
//!
//! A grammar that is meant for editors forgives and guesses; a rule that lets a command through must not. A line
//! passes by rules only if this small reader, which gives up on everything that it does not know for certain, sees
//! exactly the commands that the grammar sees.

use super::word::{HOLE, Sure, Word};

/// What the line says when it is read flat: the commands in their order and the files that redirects name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flat {
    pub(crate) commands: Vec<Vec<Word>>,
    pub(crate) redirects: Vec<Redirect>,
}

/// A redirect to or from a file. Duplicated descriptors (`2>&1`) and here-documents are none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Redirect {
    pub(crate) target: Word,
    pub(crate) writes: bool,
}

/// Reads the whole line, or says what it is not certain about.
pub(crate) fn read(source: &str) -> Result<Flat, String> {
    let mut reader = Reader { chars: source.chars().collect(), at: 0, holes: false };
    let mut flat = Flat::default();
    let mut command: Vec<Word> = Vec::new();
    let mut pending: Vec<HereDoc> = Vec::new();
    loop {
        match reader.token()? {
            Token::Word(word) => {
                if command.is_empty() && !word.quoted && word.sure == Sure::Literal {
                    match word.text.as_str() {
                        "if" | "then" | "elif" | "else" | "while" | "until" | "do" | "{" | "!" | "fi"
                        | "done" | "}" => continue,
                        "for" | "select" | "case" | "esac" | "in" | "function" | "[[" | "coproc" | "time" => {
                            return Err(format!("`{}` is not read word by word", word.text));
                        }
                        _ => {}
                    }
                }
                if command.is_empty() && word.assigns().is_some() {
                    return Err(format!("`{}` sets a variable for what follows", word.shown()));
                }
                command.push(word);
            }
            Token::Redirect { operator, target } => match operator.as_str() {
                "<<" | "<<-" => pending.push(HereDoc::new(&target, operator == "<<-")?),
                "<<<" => {}
                "<&" | ">&" if is_descriptor(&target) => {}
                "<&" => return Err("`<&` with something that is not a descriptor".into()),
                "<" => flat.redirects.push(Redirect { target, writes: false }),
                _ => flat.redirects.push(Redirect { target, writes: true }),
            },
            Token::Operator(operator) => {
                if operator == "(" && !command.is_empty() {
                    return Err("a parenthesis right after a word".into());
                }
                if matches!(operator.as_str(), ";;" | ";&" | ";;&") {
                    return Err(format!("`{operator}` belongs to a `case`"));
                }
                if !command.is_empty() {
                    flat.commands.push(std::mem::take(&mut command));
                }
                if operator == "\n" {
                    for document in pending.drain(..) {
                        reader.skip_document(&document)?;
                    }
                }
            }
            Token::End => {
                if !command.is_empty() {
                    flat.commands.push(command);
                }
                return if pending.is_empty() {
                    Ok(flat)
                } else {
                    Err("a here-document without its end".into())
                };
            }
        }
    }
}

/// Reads the words of one command whose substitutions were replaced by [`HOLE`]; `None` where it is not just words.
pub(crate) fn words(source: &str) -> Option<Vec<Word>> {
    let mut reader = Reader { chars: source.chars().collect(), at: 0, holes: true };
    let mut words = Vec::new();
    loop {
        match reader.token().ok()? {
            Token::Word(word) => words.push(word),
            Token::End => return Some(words),
            _ => return None,
        }
    }
}

enum Token {
    Word(Word),
    Operator(String),
    Redirect { operator: String, target: Word },
    End,
}

struct HereDoc {
    end: String,
    strip_tabs: bool,
    expands: bool,
}

impl HereDoc {
    fn new(word: &Word, strip_tabs: bool) -> Result<Self, String> {
        let plain = !word.text.is_empty() && word.text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if plain {
            Ok(HereDoc { end: word.text.clone(), strip_tabs, expands: !word.quoted })
        } else {
            Err("a here-document with an unusual end mark".into())
        }
    }
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    /// Whether [`HOLE`] stands for an expansion, and brace and `$'…'` expansions make a word unknown instead of ending the reading.
    holes: bool,
}

const OPERATORS: &[&str] = &[";;&", "&&", "||", ";;", ";&", "|&", "|", ";", "&", "(", ")", "\n"];
const REDIRECTS: &[&str] = &["&>>", "<<<", "<<-", "&>", "<<", "<>", "<&", ">>", ">|", ">&", ">", "<"];

impl Reader {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn starts(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(index, c)| self.peek(index) == Some(c))
    }

    /// The shell joins lines before it looks for operators and expansions: `$`, a continuation and `(` are a substitution. So lines are
    /// joined here only where a blank separates them anyway.
    fn joined(&mut self) -> Result<(), String> {
        if !self.holes {
            return Err("a word that goes on in the next line".into());
        }
        self.at += 2;
        Ok(())
    }

    fn skip_blanks(&mut self) {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(' ' | '\t'), _) => self.at += 1,
                (Some('\\'), Some('\n'))
                    if self.holes
                        || self
                            .at
                            .checked_sub(1)
                            .is_some_and(|at| matches!(self.chars.get(at), Some(' ' | '\t'))) =>
                {
                    self.at += 2;
                }
                _ => return,
            }
        }
    }

    fn token(&mut self) -> Result<Token, String> {
        self.skip_blanks();
        let Some(first) = self.peek(0) else { return Ok(Token::End) };
        if first == '#' {
            while self.peek(0).is_some_and(|c| c != '\n') {
                self.at += 1;
            }
            return Ok(self.token_after_comment());
        }
        let digits = self.chars.iter().skip(self.at).take_while(|c| c.is_ascii_digit()).count();
        if matches!(self.peek(digits), Some('<' | '>')) && digits > 0 {
            self.at += digits;
        }
        if let Some(operator) = REDIRECTS.iter().find(|operator| self.starts(operator)) {
            self.at += operator.chars().count();
            if matches!(*operator, "<" | ">") && self.peek(0) == Some('(') {
                return Err("a process substitution".into());
            }
            self.skip_blanks();
            let target = self.word()?;
            if target.text.is_empty() && !target.quoted {
                return Err("a redirect to nothing".into());
            }
            return Ok(Token::Redirect { operator: (*operator).to_owned(), target });
        }
        if let Some(operator) = OPERATORS.iter().find(|operator| self.starts(operator)) {
            self.at += operator.chars().count();
            return Ok(Token::Operator((*operator).to_owned()));
        }
        let word = self.word()?;
        if matches!(self.peek(0), Some('<' | '>')) && word.text.starts_with('{') && word.text.ends_with('}') {
            return Err("a redirect with a named descriptor".into());
        }
        Ok(Token::Word(word))
    }

    fn token_after_comment(&mut self) -> Token {
        if self.peek(0).is_none() {
            return Token::End;
        }
        self.at += 1;
        Token::Operator("\n".into())
    }

    fn word(&mut self) -> Result<Word, String> {
        let mut word = Word::literal("");
        let mut braces = Braces::default();
        while let Some(c) = self.peek(0) {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\'' => {
                    word.quoted = true;
                    self.at += 1;
                    loop {
                        match self.peek(0) {
                            None => return Err("a quote that is not closed".into()),
                            Some('\'') => break,
                            Some(c) => self.push(&mut word, c)?,
                        }
                    }
                    self.at += 1;
                }
                '"' => {
                    word.quoted = true;
                    self.at += 1;
                    self.double_quoted(&mut word)?;
                }
                '\\' if self.peek(1) == Some('\n') => self.joined()?,
                '\\' => {
                    self.at += 1;
                    match self.peek(0) {
                        None => return Err("a backslash at the end".into()),
                        Some(c) => {
                            word.quoted = true;
                            self.push(&mut word, c)?;
                        }
                    }
                }
                '$' => self.dollar(&mut word)?,
                '`' => return Err("a substitution in backticks".into()),
                HOLE if self.holes => {
                    word.sure = Sure::Unknown;
                    self.push(&mut word, c)?;
                }
                _ => {
                    if matches!(c, '*' | '?' | '[') || (c == '~' && word.text.is_empty() && !word.quoted) {
                        word.sure = word.sure.max(Sure::Pattern);
                    }
                    braces.see(c);
                    self.push(&mut word, c)?;
                }
            }
        }
        if word.text == "[" {
            // The command, not the beginning of a pattern.
            word.sure = Sure::Literal;
        }
        if braces.expand {
            if !self.holes {
                return Err(format!("`{}` holds a brace expansion", word.shown()));
            }
            word.sure = Sure::Unknown;
        }
        Ok(word)
    }

    fn double_quoted(&mut self, word: &mut Word) -> Result<(), String> {
        loop {
            match (self.peek(0), self.peek(1)) {
                (None, _) => return Err("a quote that is not closed".into()),
                (Some('"'), _) => {
                    self.at += 1;
                    return Ok(());
                }
                (Some('\\'), Some('\n')) => self.joined()?,
                (Some('\\'), Some(c @ ('$' | '`' | '"' | '\\'))) => {
                    self.at += 1;
                    self.push(word, c)?;
                }
                (Some('$'), _) => self.dollar(word)?,
                (Some('`'), _) => return Err("a substitution in backticks".into()),
                (Some(HOLE), _) if self.holes => {
                    word.sure = Sure::Unknown;
                    self.push(word, HOLE)?;
                }
                (Some(c), _) => self.push(word, c)?,
            }
        }
    }

    /// A `$` that begins nothing is itself; what it begins is not certain.
    fn dollar(&mut self, word: &mut Word) -> Result<(), String> {
        let next = self.peek(1);
        let begins = next.is_some_and(|c| c.is_alphanumeric() || "_{([@*#?$!-'\"".contains(c) || c == HOLE);
        // Inside double quotes a closing quote may follow the `$`; to call that uncertain costs one prompt.
        if !begins {
            return self.push(word, '$');
        }
        if self.holes && matches!(next, Some('\'' | '"')) {
            word.sure = Sure::Unknown;
            self.at += 1;
            return Ok(());
        }
        Err("the value of an expansion (`$…`)".into())
    }

    fn push(&mut self, word: &mut Word, c: char) -> Result<(), String> {
        let odd = (c.is_control() && !matches!(c, '\t' | '\n')) || (c.is_whitespace() && !c.is_ascii());
        if odd || (c == HOLE && !self.holes) {
            return Err(format!("the unusual character U+{:04X}", u32::from(c)));
        }
        word.text.push(c);
        self.at += 1;
        Ok(())
    }

    fn skip_document(&mut self, document: &HereDoc) -> Result<(), String> {
        loop {
            if self.at >= self.chars.len() {
                return Err("a here-document without its end".into());
            }
            let rest = self.chars.get(self.at..).unwrap_or_default();
            let length = rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
            let line: String = rest.iter().take(length).collect();
            self.at = (self.at + length + 1).min(self.chars.len());
            let compared = if document.strip_tabs { line.trim_start_matches('\t') } else { line.as_str() };
            if compared == document.end {
                return Ok(());
            }
            if document.expands && line.contains(['$', '`', '\\']) {
                return Err("an expansion in a here-document".into());
            }
        }
    }
}

/// Recognises `{a,b}` and `{1..3}`, whose result is several words.
#[derive(Default)]
struct Braces {
    open: bool,
    last: Option<char>,
    expand: bool,
}

impl Braces {
    fn see(&mut self, c: char) {
        match c {
            '{' => self.open = true,
            ',' if self.open => self.expand = true,
            '.' if self.open && self.last == Some('.') => self.expand = true,
            _ => {}
        }
        self.last = Some(c);
    }
}

fn is_descriptor(word: &Word) -> bool {
    let text = word.known().unwrap_or_default();
    let digits = text.strip_suffix('-').unwrap_or(text);
    !word.quoted && (text == "-" || (!digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())))
}
