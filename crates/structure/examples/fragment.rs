//! Shows what the parser makes of a text, and what the compiler makes of it as a pattern. For whoever adds a language or a
//! rung: `cargo run -p haft-structure --example fragment -- rust 'foo($A)'`, or with `--tree` for a whole file on stdin.

#![expect(clippy::print_stdout, reason = "this is a tool for a terminal")]
#![expect(clippy::print_stderr, reason = "this is a tool for a terminal")]

use std::io::Read;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [language, pattern] = arguments.as_slice() else {
        eprintln!("give a language and a pattern, or a language and --tree");
        return;
    };
    let Some(language) = haft_structure::languages::by_id(language) else {
        eprintln!("no such language");
        return;
    };
    if pattern == "--tree" {
        let mut text = String::new();
        if std::io::stdin().read_to_string(&mut text).is_err() {
            return;
        }
        print_tree(language, &text);
        return;
    }
    match haft_structure::compile(language, pattern) {
        Err(error) => println!("{error}"),
        Ok(compiled) => {
            for reading in &compiled.readings {
                println!("{} (statement: {})\n{reading:#?}", reading.rung(), reading.is_statement());
            }
            println!("{:?}", compiled.warnings);
        }
    }
}

fn print_tree(language: &haft_structure::languages::Language, text: &str) {
    let mut parser = tree_sitter::Parser::new();
    if parser.set_language(&(language.grammar)()).is_err() {
        return;
    }
    let Some(tree) = parser.parse(text, None) else { return };
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        let field = cursor.field_name().map(|f| format!("{f}: ")).unwrap_or_default();
        let mark = if node.is_missing() { " MISSING" } else { "" };
        let extra = if node.is_extra() { " extra" } else { "" };
        let name = if node.is_named() { node.kind().to_owned() } else { format!("{:?}", node.kind()) };
        let text = text.get(node.byte_range()).unwrap_or_default();
        let shown = if node.child_count() == 0 { format!(" {text:?}") } else { String::new() };
        println!("{}{field}{name}{mark}{extra}{shown}", "  ".repeat(cursor.depth() as usize));
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}
