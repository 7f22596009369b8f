//! The first reader: tree-sitter-bash, walked completely. It finds the commands in every corner (substitutions, function
//! bodies, here-documents), so that deny rules reach them, and collects what makes a line uncertain.

use tree_sitter::{Node, Parser};

use super::{
    flat::{self, Redirect},
    word::{HOLE, Sure, Word},
};
use crate::limits::SHELL_NESTING;

/// What the grammar sees in a line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    /// Every simple command, in the order of the text.
    pub(crate) commands: Vec<Vec<Word>>,
    pub(crate) redirects: Vec<Redirect>,
    /// Why no rule may let this line through.
    pub(crate) doubts: Vec<String>,
    /// Shell code that the grammar does not look into: backticks in here-documents.
    pub(crate) scripts: Vec<String>,
    /// Why the line could run commands that are not in `commands`.
    pub(crate) blind: Option<String>,
}

/// Reads the line. Never fails: what was not understood is in `doubts` and `blind`.
pub(crate) fn read(source: &str) -> Tree {
    let mut tree = Tree::default();
    let mut parser = Parser::new();
    if let Err(error) = parser.set_language(&tree_sitter_bash::LANGUAGE.into()) {
        tree.blind(format!("the shell grammar cannot be used ({error})"));
        return tree;
    }
    let Some(parsed) = parser.parse(source, None) else {
        tree.blind("the line could not be parsed".into());
        return tree;
    };
    Walk { source, tree: &mut tree }.node(parsed.root_node(), 0);
    if parsed.root_node().has_error() {
        tree.blind("the line does not parse as a shell command".into());
        tree.commands.extend(crude(source));
    }
    tree
}

impl Tree {
    fn doubt(&mut self, why: impl Into<String>) {
        let why = why.into();
        if !self.doubts.contains(&why) {
            self.doubts.push(why);
        }
    }

    fn blind(&mut self, why: String) {
        self.doubt(why.clone());
        self.blind.get_or_insert(why);
    }
}

struct Walk<'a> {
    source: &'a str,
    tree: &'a mut Tree,
}

impl Walk<'_> {
    fn text(&self, node: Node<'_>) -> &str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    fn node(&mut self, node: Node<'_>, depth: usize) {
        if depth > SHELL_NESTING {
            self.tree.blind("the line is nested too deeply".into());
            return;
        }
        match node.kind() {
            "command" => self.command(node),
            "declaration_command" | "unset_command" => {
                self.tree
                    .doubt(format!("`{}` changes variables for what follows", one_line(self.text(node))));
                self.words(node);
            }
            "variable_assignment" => {
                self.tree.doubt(format!("`{}` sets a variable for what follows", one_line(self.text(node))));
            }
            "file_redirect" => self.redirect(node),
            "test_command" => self.test(node),
            "heredoc_redirect" => self.document(node),
            "for_statement" | "c_style_for_statement" | "case_statement" | "function_definition" => {
                self.tree.doubt(format!("`{}`", keyword(node.kind())));
            }
            "command_substitution" | "process_substitution" => {
                self.tree.doubt(format!("the result of `{}` is not known", one_line(self.text(node))));
            }
            "expansion" | "simple_expansion" => {
                let text = self.text(node).to_owned();
                self.tree.doubt(format!("the value of `{}` is not known", one_line(&text)));
                if text.ends_with("@P}") {
                    self.tree.blind(format!("`{text}` runs the substitutions in a variable"));
                }
            }
            "arithmetic_expansion" | "subscript" => {
                // The value of a variable in an arithmetic context is itself evaluated, substitutions in it included.
                self.tree.doubt(format!("the arithmetic of `{}`", one_line(self.text(node))));
            }
            "ERROR" => self.tree.blind("the line does not parse as a shell command".into()),
            kind if node.is_named() && !PLAIN.contains(&kind) => {
                self.tree.blind(format!("`{}` is not understood", one_line(self.text(node))));
            }
            _ => {}
        }
        if node.is_missing() {
            self.tree.blind("the line is not complete".into());
        }
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        for child in children {
            self.node(child, depth + 1);
        }
    }

    fn command(&mut self, node: Node<'_>) {
        self.words(node);
    }

    /// Adds the words of a command-like node: its text without redirects, expansions replaced by holes.
    fn words(&mut self, node: Node<'_>) {
        let mut spans = Vec::new();
        holes(node, &mut spans, 0);
        let text = cut(self.source, node, &spans);
        match flat::words(&text) {
            Some(mut words) => {
                let leading = words.iter().take_while(|word| word.assigns().is_some()).count();
                words.drain(..leading);
                if !words.is_empty() {
                    self.tree.commands.push(words);
                }
            }
            None => {
                self.tree.blind(format!("`{}` is not read with certainty", one_line(self.text(node))));
                self.tree.commands.extend(crude(&text));
            }
        }
    }

    fn redirect(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let targets: Vec<Node<'_>> = node.children_by_field_name("destination", &mut cursor).collect();
        let mut cursor = node.walk();
        let operator = node.children(&mut cursor).find(|child| !child.is_named()).map(|child| child.kind());
        if let [_, more @ ..] = targets.as_slice()
            && !more.is_empty()
        {
            // The grammar takes the words after a redirect's target for more targets; the shell takes them for arguments.
            self.tree.blind("there are words after a redirect".into());
            self.tree.commands.extend(crude(self.source));
        }
        let Some(target) = targets.first().copied() else { return };
        let mut spans = Vec::new();
        holes(target, &mut spans, 0);
        let words = flat::words(&cut(self.source, target, &spans)).unwrap_or_default();
        let word = match words.as_slice() {
            [word] => word.clone(),
            _ => Word { text: HOLE.to_string(), sure: Sure::Unknown, quoted: false },
        };
        let operator = operator.unwrap_or_default();
        let reads_descriptor = operator == "<&"
            && word.known().is_none_or(|text| !text.starts_with(|c: char| c.is_ascii_digit()));
        if reads_descriptor || matches!(operator, "<&-" | ">&-") {
            // In `git <&-push` the shell closes a descriptor and gives `push` to git.
            self.tree.blind("there are words right after a closed descriptor".into());
        }
        let duplicates = matches!(operator, "<&" | ">&" | "<&-" | ">&-")
            && word.known().is_some_and(|text| text.chars().all(|c| c.is_ascii_digit() || c == '-'));
        if !duplicates {
            let writes = !matches!(operator, "<" | "<&");
            self.tree.redirects.push(Redirect { target: word, writes });
        }
    }

    fn document(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let (mut mark, mut body) = (String::new(), String::new());
        for child in node.children(&mut cursor) {
            match child.kind() {
                "heredoc_start" => self.text(child).clone_into(&mut mark),
                "heredoc_body" => self.text(child).clone_into(&mut body),
                _ => {}
            }
        }
        let name = mark.trim_start_matches('\\').trim_matches(['\'', '"']);
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            self.tree.blind("a here-document with an unusual end mark".into());
        }
        if name == mark {
            // A line that goes on in the next one can be the end mark for the shell alone.
            if body.contains("\\\n") {
                self.tree.blind("a here-document with continued lines".into());
            }
            let between = body.split('`').skip(1).step_by(2);
            self.tree.scripts.extend(between.map(str::to_owned));
        }
    }

    /// `[ … ]` is a command whose words may hold redirects; `[[ … ]]` evaluates arithmetic in some of its operators.
    fn test(&mut self, node: Node<'_>) {
        let text = self.text(node).to_owned();
        if text.starts_with("[[") || text.starts_with("((") {
            self.tree.doubt("a `[[ … ]]` or `(( … ))` test");
        } else {
            self.words(node);
        }
    }
}

/// Named nodes that mean nothing by themselves; their children are walked.
const PLAIN: &[&str] = &[
    "ansi_c_string",
    "array",
    "binary_expression",
    "brace_expression",
    "case_item",
    "command_name",
    "comment",
    "compound_statement",
    "concatenation",
    "do_group",
    "elif_clause",
    "else_clause",
    "extglob_pattern",
    "file_descriptor",
    "heredoc_body",
    "heredoc_content",
    "heredoc_end",
    "heredoc_start",
    "herestring_redirect",
    "if_statement",
    "list",
    "negated_command",
    "number",
    "parenthesized_expression",
    "pipeline",
    "postfix_expression",
    "program",
    "raw_string",
    "redirected_statement",
    "regex",
    "special_variable_name",
    "string",
    "string_content",
    "subshell",
    "ternary_expression",
    "test_operator",
    "translated_string",
    "unary_expression",
    "variable_assignments",
    "variable_name",
    "while_statement",
    "word",
];

fn keyword(kind: &str) -> &'static str {
    match kind {
        "case_statement" => "case",
        "function_definition" => "a function",
        _ => "for",
    }
}

/// A span of the source, and what stands there instead for the word reader.
struct Span {
    from: usize,
    to: usize,
    with: char,
}

fn holes(node: Node<'_>, spans: &mut Vec<Span>, depth: usize) {
    if depth > SHELL_NESTING {
        return;
    }
    let mut cursor = node.walk();
    let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
    for child in children {
        let with = match child.kind() {
            "command_substitution"
            | "process_substitution"
            | "expansion"
            | "simple_expansion"
            | "arithmetic_expansion" => HOLE,
            "file_redirect" | "herestring_redirect" | "heredoc_redirect" => ' ',
            _ => {
                holes(child, spans, depth + 1);
                continue;
            }
        };
        spans.push(Span { from: child.start_byte(), to: child.end_byte(), with });
    }
}

fn cut(source: &str, node: Node<'_>, spans: &[Span]) -> String {
    if matches!(
        node.kind(),
        "command_substitution"
            | "process_substitution"
            | "expansion"
            | "simple_expansion"
            | "arithmetic_expansion"
    ) {
        return HOLE.to_string();
    }
    let mut text = String::new();
    let mut at = node.start_byte();
    for span in spans {
        text.push_str(source.get(at..span.from).unwrap_or_default());
        text.push(span.with);
        at = span.to;
    }
    text.push_str(source.get(at..node.end_byte()).unwrap_or_default());
    text
}

/// For lines that are not understood: every piece between separators as the words of a command, from every word on,
/// quotes and backslashes thrown away. Good enough to find a denied command in it, for nothing else.
pub(crate) fn crude(source: &str) -> Vec<Vec<Word>> {
    let mut commands = Vec::new();
    for piece in source.split([';', '&', '|', '\n', '(', ')', '`', '{', '}', '<', '>']) {
        let words: Vec<Word> = piece
            .split_whitespace()
            .map(|word| word.replace(['\'', '"', '\\'], ""))
            .filter(|word| !word.is_empty())
            .map(|text| Word {
                sure: if text.contains('$') { Sure::Unknown } else { Sure::Literal },
                text,
                quoted: false,
            })
            .collect();
        for start in 0..words.len().min(crate::limits::SHELL_CRUDE_WORDS) {
            commands.push(words.iter().skip(start).take(crate::limits::SHELL_TAIL_WORDS).cloned().collect());
        }
    }
    commands
}

/// The beginning of a piece of the line, for a message.
pub(crate) fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(60) {
        Some((cut, _)) => format!("{}…", line.get(..cut).unwrap_or_default()),
        None => line,
    }
}
