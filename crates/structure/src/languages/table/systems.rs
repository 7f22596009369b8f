//! Rust, Go and Zig.

use super::{filled, opens_value};
use crate::languages::{Language, Place, Rung, Traits, Twin};

/// `($$$A)` is a value in brackets or a tuple.
#[cfg(feature = "rust")]
fn is_tuple(place: &Place) -> bool {
    let words = ["return", "in", "match", "if", "while", "break", "else", "as", "mut", "ref", "move"];
    filled(place, '(', ')').is_some_and(|before| opens_value(before, &words))
}

#[cfg(feature = "rust")]
pub(super) static RUST: Language = Language {
    id: "rust",
    name: "Rust",
    aliases: &["rs"],
    extensions: &["rs"],
    file_names: &[],
    shebangs: &["rust-script", "cargo"],
    grammar: || tree_sitter_rust::LANGUAGE.into(),
    rungs: &[
        Rung::new("match arm", "fn zq() { match x {\n", "\n} }").only(&["match_arm"]).statement(),
        Rung::new("else clause", "fn zq() { if x {} ", "\n}").only(&["else_clause"]),
        Rung::new("statement", "fn zq() {\n", "\n}").declares(),
        Rung::new("statement", "fn zq() {\n", ";\n}").declares().completes(),
        Rung::new("item", "", "\n").declares(),
        Rung::new("member", "impl Zq {\n", "\n}").declares(),
        Rung::new("trait member", "trait Zq {\n", "\n}").declares(),
        Rung::new("field", "struct Zq {\n", "\n}").group("annotated").statement(),
        Rung::new("parameter", "fn zq(", ") {}").only(&["parameter", "self_parameter"]).group("annotated"),
        Rung::new("field value", "fn zq() { Zq {\n", "\n}; }")
            .only(&["field_initializer", "base_field_initializer"])
            .group("annotated"),
        Rung::new("variant", "enum Zq {\n", "\n}").statement(),
        Rung::new("type", "type Zq = ", ";"),
        Rung::new("pattern", "fn zq() { let ", " = x; }"),
        Rung::new("where predicate", "fn zq() where ", " {}").only(&["where_predicate"]),
        Rung::new("condition", "fn zq() { if ", " {} }").only(&["let_condition", "let_chain"]),
        Rung::new("import", "use ", ";"),
        Rung::new("generic parameter", "fn zq<", ">() {}"),
    ],
    holes: &["%", "%: Zq", "% => 0", "fn %() {}", "\"%\"", "%;"],
    traits: Traits { loose_trees: &["token_tree"], twins: &[Twin::new("%,", is_tuple)], ..Traits::PLAIN },
};

/// `type T[$$$P] …` has parameters; without their constraints it looks like an array's length.
#[cfg(feature = "go")]
fn is_type_parameter(place: &Place) -> bool {
    let head = filled(place, '[', ']').and_then(|before| before.trim_start().strip_prefix("type "));
    head.is_some_and(|name| !name.trim().contains([' ', '[', '(', '{']))
}

#[cfg(feature = "go")]
pub(super) static GO: Language = Language {
    id: "go",
    name: "Go",
    aliases: &["golang"],
    extensions: &["go"],
    file_names: &[],
    shebangs: &["gorun"],
    grammar: || tree_sitter_go::LANGUAGE.into(),
    rungs: &[
        Rung::new("case", "package zq\nfunc zq() { switch x {\n", "\n} }\n")
            .only(&["expression_case", "default_case"])
            .group("case")
            .statement(),
        Rung::new("type case", "package zq\nfunc zq() { switch x.(type) {\n", "\n} }\n")
            .only(&["type_case"])
            .group("case")
            .statement(),
        Rung::new("select case", "package zq\nfunc zq() { select {\n", "\n} }\n")
            .only(&["communication_case"])
            .group("case")
            .statement(),
        Rung::new("element", "package zq\nvar zq = Zq{", "}\n").only(&["keyed_element"]),
        Rung::new("statement", "package zq\nfunc zq() {\n", "\n}\n").declares(),
        Rung::new("declaration", "package zq\n", "\n").declares(),
        Rung::new("type", "package zq\nvar zq ", "\n"),
        Rung::new("field", "package zq\ntype Zq struct {\n", "\n}\n").declares(),
        Rung::new("interface member", "package zq\ntype Zq interface {\n", "\n}\n").declares(),
        Rung::new("expression", "package zq\nvar zq = ", "\n"),
        Rung::new("parameter", "package zq\nfunc zq(", ") {}\n")
            .only(&["parameter_declaration", "variadic_parameter_declaration"]),
        Rung::new("for clause", "package zq\nfunc zq() { for ", " {} }\n")
            .only(&["range_clause", "for_clause"]),
        Rung::new("constant", "package zq\nconst (\n", "\n)\n").only(&["const_spec"]).statement(),
        Rung::new("variable", "package zq\nvar (\n", "\n)\n").only(&["var_spec"]).statement(),
        Rung::new("import", "package zq\nimport (\n", "\n)\n").only(&["import_spec"]),
    ],
    holes: &["%", "% int", "case %:", "%: 0", "\"%\"", "%()", "%\n", "% int\n", "{ % }"],
    traits: Traits {
        soft_semicolons: true,
        twins: &[Twin::new("% any", is_type_parameter)],
        ..Traits::PLAIN
    },
};

/// `fn name() T {…}` declares; among statements it would be a function's type and a block.
#[cfg(feature = "zig")]
fn is_function(text: &str) -> bool {
    ["fn ", "pub fn ", "export fn ", "inline fn "].iter().any(|start| text.starts_with(start))
}

#[cfg(feature = "zig")]
pub(super) static ZIG: Language = Language {
    id: "zig",
    name: "Zig",
    aliases: &[],
    extensions: &["zig", "zon"],
    file_names: &[],
    shebangs: &[],
    grammar: || tree_sitter_zig::LANGUAGE.into(),
    rungs: &[
        Rung::new("declaration", "", "\n").declares().only(&["function_declaration"]).when(is_function),
        Rung::new("prong", "fn zq() void { switch (x) {\n", "\n} }").only(&["switch_case"]).statement(),
        Rung::new("statement", "fn zq() void {\n", "\n}").declares(),
        Rung::new("statement", "fn zq() void {\n", ";\n}").declares().completes(),
        Rung::new("declaration", "", "\n").declares(),
        Rung::new("member", "const Zq = struct {\n", "\n};").declares(),
        Rung::new("expression", "const zq = ", ";"),
        Rung::new("parameter", "fn zq(", ") void {}").only(&["parameter"]),
    ],
    holes: &["%", "%;", "%: u8", "%: u8,", "\"%\"", "% => 0"],
    traits: Traits::PLAIN,
};
