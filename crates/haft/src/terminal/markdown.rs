/// Styles Markdown while it streams in. Every character is kept, escape sequences are added around it: what is copied from the terminal is what the
/// model wrote, and no cursor has to move.
#[derive(Debug)]
pub(crate) struct Markdown {
    colours: bool,
    /// Nothing but white space has come on this line yet.
    line_start: bool,
    /// Marks at the start of a line or in it that may still grow: `*`, `` ` `` and `#`.
    pending: String,
    fenced: bool,
    heading: bool,
    code: bool,
    bold: bool,
}

const RESET: &str = "\u{1b}[0m";

impl Markdown {
    /// Plain text comes through unchanged where there are no colours.
    pub(crate) fn new(colours: bool) -> Self {
        Markdown {
            colours,
            line_start: true,
            pending: String::new(),
            fenced: false,
            heading: false,
            code: false,
            bold: false,
        }
    }

    /// The next piece, styled as far as it can be told yet.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len() + 16);
        for c in piece.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')) {
            if !self.colours {
                out.push(c);
            } else if matches!(c, '*' | '`' | '#') && self.pending.chars().all(|mark| mark == c) {
                self.pending.push(c);
            } else {
                self.settle(&mut out, Some(c));
                if matches!(c, '*' | '`' | '#') {
                    self.pending.push(c);
                } else {
                    self.plain(&mut out, c);
                }
            }
        }
        out
    }

    /// What was held back, and the end of all styles.
    pub(crate) fn finish(&mut self) -> String {
        let mut out = String::new();
        if self.colours {
            self.settle(&mut out, None);
            out.push_str(RESET);
        }
        *self = Markdown::new(self.colours);
        out
    }

    fn plain(&mut self, out: &mut String, c: char) {
        out.push(c);
        if c == '\n' {
            if self.heading || self.code {
                self.heading = false;
                self.code = false;
                out.push_str(&self.style());
            }
            self.line_start = true;
        } else if !c.is_whitespace() {
            self.line_start = false;
        }
    }

    /// Decides what the held marks mean, now that the next character is known.
    fn settle(&mut self, out: &mut String, next: Option<char>) {
        let marks = std::mem::take(&mut self.pending);
        let Some(mark) = marks.chars().next() else { return };
        let count = marks.len();
        let before = self.style();
        match (mark, count) {
            ('`', 3..) if self.line_start => self.fenced = !self.fenced,
            ('`', 1) if !self.fenced => self.code = !self.code,
            ('*', 2) if !self.fenced && !self.code => self.bold = !self.bold,
            ('#', 1..=6) if self.line_start && !self.fenced && next == Some(' ') => self.heading = true,
            _ => {}
        }
        let after = self.style();
        if before == after {
            out.push_str(&marks);
        } else {
            // Marks are styled like what they enclose: opening ones by what follows, closing ones by what they end.
            let opening = self.code || self.fenced || self.bold || self.heading;
            if opening {
                out.push_str(&after);
                out.push_str(&marks);
            } else {
                out.push_str(&marks);
                out.push_str(&after);
            }
        }
        self.line_start = false;
    }

    fn style(&self) -> String {
        let mut style = RESET.to_owned();
        if self.fenced {
            style.push_str("\u{1b}[36m");
        } else if self.code {
            style.push_str("\u{1b}[33m");
        }
        if self.bold || self.heading {
            style.push_str("\u{1b}[1m");
        }
        style
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn render(pieces: &[&str]) -> String {
        let mut markdown = Markdown::new(true);
        let mut out: String = pieces.iter().map(|piece| markdown.push(piece)).collect();
        out.push_str(&markdown.finish());
        out
    }

    fn stripped(text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('\u{1b}') {
            out.push_str(&rest[..at]);
            rest = rest[at..].split_once('m').map_or("", |(_, rest)| rest);
        }
        out + rest
    }

    #[test]
    fn every_character_is_kept_however_it_is_cut() {
        let text =
            "# A *title*\nSome `code` and **bold**, 2 * 3.\n```rust\nlet x = \"**\";\n```\nend ** open `";
        let letters: Vec<String> = text.chars().map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        assert_eq!(stripped(&render(&[text])), text);
        assert_eq!(render(&letters), render(&[text]), "the cut of the stream must not show");
    }

    #[test]
    fn a_model_cannot_steer_the_terminal() {
        assert_eq!(stripped(&render(&["a\u{1b}[2Jb\u{7}\r\n"])), "a[2Jb\n");
        assert_eq!(Markdown::new(false).push("a\u{1b}]0;title\u{7}b"), "a]0;titleb");
    }

    #[test]
    fn styles_end_where_they_should() {
        assert_eq!(
            render(&["**b** `c`\n"]),
            "\u{1b}[0m\u{1b}[1m**b**\u{1b}[0m \u{1b}[0m\u{1b}[33m`c`\u{1b}[0m\n\u{1b}[0m"
        );
        assert_eq!(render(&["# H\nx"]), "\u{1b}[0m\u{1b}[1m# H\n\u{1b}[0mx\u{1b}[0m");
    }
}
