//! C and what descends from its syntax.

use super::{begins_for, is_measured};
use crate::languages::{Language, Rung, Traits, Twin};

#[cfg(any(feature = "c", feature = "cpp", feature = "objc"))]
const TWINS: &[Twin] = &[Twin::new("struct %", is_measured), Twin::with_end("int % = 0", begins_for)];

#[cfg(feature = "c")]
pub(super) static C: Language = Language {
    id: "c",
    name: "C",
    aliases: &[],
    extensions: &["c", "h"],
    file_names: &[],
    shebangs: &["tcc"],
    grammar: || tree_sitter_c::LANGUAGE.into(),
    rungs: &[
        Rung::new("block", "void zq(void) ", "\n")
            .only(&["compound_statement"])
            .when(super::is_braced)
            .statement(),
        Rung::new("case", "void zq(void) { switch (x) {\n", "\n} }").only(&["case_statement"]).statement(),
        Rung::new("else clause", "void zq(void) { if (x) {} ", "\n}").only(&["else_clause"]),
        Rung::new("statement", "void zq(void) {\n", "\n}").declares(),
        Rung::new("expression", "void zq(void) { return ", "; }"),
        Rung::new("statement", "void zq(void) {\n", ";\n}").declares().completes(),
        Rung::new("member", "struct zq {\n", "\n};").declares(),
        Rung::new("member", "struct zq {\n", ";\n};").declares().completes(),
        Rung::new("declaration", "", "\n").declares(),
        Rung::new("declaration", "", ";\n").declares().completes(),
        Rung::new("value", "int zq = ", ";"),
        Rung::new("initializer", "struct zq zq = {", "};").only(&["initializer_pair"]),
        Rung::new("parameter", "void zq(", ");").only(&["parameter_declaration", "variadic_parameter"]),
        Rung::new("type", "int zq = sizeof(", ");").only(&["type_descriptor"]),
        Rung::new("enumerator", "enum zq {\n", "\n};").only(&["enumerator"]),
    ],
    holes: &["%", "%;", "int %", "int %;", "case %:", "\"%\""],
    traits: Traits { loose_leaves: &["preproc_arg"], twins: TWINS, ..Traits::PLAIN },
};

/// `T name(…) {…}` is a function; among statements it could be a variable with its initial value in braces.
#[cfg(feature = "cpp")]
fn is_function(text: &str) -> bool {
    let head = text.split_once('{').map_or("", |(head, _)| head).trim_end();
    let keyword = ["if", "for", "while", "switch", "catch", "else", "do", "return"];
    let first = text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    let returns = head.rsplit_once("->").is_some_and(|(before, _)| before.trim_end().ends_with([')', 't']));
    text.ends_with('}')
        && !text.starts_with('[')
        && (returns || [")", "const", "override", "noexcept", "final"].iter().any(|end| head.ends_with(end)))
        && !keyword.contains(&first)
}

#[cfg(feature = "cpp")]
pub(super) static CPP: Language = Language {
    id: "cpp",
    name: "C++",
    aliases: &["c++", "cxx", "cc"],
    extensions: &[
        "cpp", "cc", "cxx", "c++", "hpp", "hh", "hxx", "h++", "ipp", "tpp", "inl", "cu", "cuh", "ino",
    ],
    file_names: &[],
    shebangs: &[],
    grammar: || tree_sitter_cpp::LANGUAGE.into(),
    rungs: &[
        Rung::new("declaration", "", "\n")
            .declares()
            .only(&["function_definition", "template_declaration"])
            .when(is_function),
        Rung::new("block", "void zq() ", "\n")
            .only(&["compound_statement"])
            .when(super::is_braced)
            .statement(),
        Rung::new("type", "void zq() { ", " zq; }")
            .only(&["qualified_identifier", "template_type"])
            .when(super::is_generic),
        Rung::new("expression", "void zq() { return ", "; }")
            .only(&["lambda_expression"])
            .when(|text| text.starts_with('[')),
        Rung::new("case", "void zq() { switch (x) {\n", "\n} }").only(&["case_statement"]).statement(),
        Rung::new("else clause", "void zq() { if (x) {} ", "\n}").only(&["else_clause"]),
        Rung::new("catch clause", "void zq() { try {} ", "\n}").only(&["catch_clause"]),
        Rung::new("statement", "void zq() {\n", "\n}").declares(),
        Rung::new("expression", "void zq() { return ", "; }"),
        Rung::new("statement", "void zq() {\n", ";\n}").declares().completes(),
        Rung::new("member", "class zq {\n", "\n};").declares(),
        Rung::new("member", "class zq {\n", ";\n};").declares().completes(),
        Rung::new("declaration", "", "\n").declares(),
        Rung::new("declaration", "", ";\n").declares().completes(),
        Rung::new("value", "int zq = ", ";"),
        Rung::new("initializer", "struct zq zq = {", "};").only(&["initializer_pair"]),
        Rung::new("parameter", "void zq(", ");").only(&[
            "parameter_declaration",
            "optional_parameter_declaration",
            "variadic_parameter_declaration",
        ]),
        Rung::new("type", "int zq = sizeof(", ");").only(&["type_descriptor"]),
        Rung::new("enumerator", "enum zq {\n", "\n};").only(&["enumerator"]),
    ],
    holes: &["%", "%;", "int %", "int %;", "case %:", "\"%\"", "%(0)"],
    traits: Traits { loose_leaves: &["preproc_arg"], twins: TWINS, ..Traits::PLAIN },
};

/// `- (void)name` declares a method; as an expression it would be a negated cast.
#[cfg(feature = "objc")]
fn is_method(text: &str) -> bool {
    text.strip_prefix(['-', '+']).is_some_and(|rest| rest.trim_start().starts_with('('))
}

#[cfg(feature = "objc")]
pub(super) static OBJC: Language = Language {
    id: "objc",
    name: "Objective-C",
    aliases: &["objective-c"],
    extensions: &["m", "mm"],
    file_names: &[],
    shebangs: &[],
    grammar: || tree_sitter_objc::LANGUAGE.into(),
    rungs: &[
        Rung::new("block", "void zq(void) ", "\n")
            .only(&["compound_statement"])
            .when(super::is_braced)
            .statement(),
        Rung::new("method", "@implementation Zq\n", "\n@end").declares().when(is_method),
        Rung::new("method declaration", "@interface Zq\n", "\n@end").declares().when(is_method),
        Rung::new("method declaration", "@interface Zq\n", ";\n@end").declares().completes().when(is_method),
        Rung::new("case", "void zq(void) { switch (x) {\n", "\n} }").only(&["case_statement"]).statement(),
        Rung::new("else clause", "void zq(void) { if (x) {} ", "\n}").only(&["else_clause"]),
        Rung::new("statement", "void zq(void) {\n", "\n}").declares(),
        Rung::new("expression", "void zq(void) { return ", "; }"),
        Rung::new("statement", "void zq(void) {\n", ";\n}").declares().completes(),
        Rung::new("member", "struct zq {\n", "\n};").declares(),
        Rung::new("declaration", "", "\n").declares(),
        Rung::new("value", "int zq = ", ";"),
        Rung::new("initializer", "struct zq zq = {", "};").only(&["initializer_pair"]),
        Rung::new("parameter", "void zq(", ");").only(&["parameter_declaration"]),
    ],
    holes: &["%", "%;", "int %", "int %;", "case %:", "\"%\""],
    traits: Traits { loose_leaves: &["preproc_arg"], twins: TWINS, ..Traits::PLAIN },
};

#[cfg(feature = "solidity")]
pub(super) static SOLIDITY: Language = Language {
    id: "solidity",
    name: "Solidity",
    aliases: &["sol"],
    extensions: &["sol"],
    file_names: &[],
    shebangs: &[],
    grammar: || tree_sitter_solidity::LANGUAGE.into(),
    rungs: &[
        Rung::new("statement", "contract Zq { function zq() public {\n", "\n} }").declares(),
        Rung::new("statement", "contract Zq { function zq() public {\n", ";\n} }").declares().completes(),
        Rung::new("member", "contract Zq {\n", "\n}").declares(),
        Rung::new("member", "contract Zq {\n", ";\n}").declares().completes(),
        Rung::new("struct member", "contract Zq { struct Zq {\n", "\n} }").declares(),
        Rung::new("declaration", "", "\n").declares(),
        Rung::new("declaration", "", ";\n").declares().completes(),
        Rung::new("expression", "contract Zq { uint zq = ", "; }"),
        Rung::new("parameter", "contract Zq { function zq(", ") public {} }").only(&["parameter"]),
    ],
    holes: &["%", "%;", "uint %", "uint %;", "function %() public {}", "\"%\""],
    traits: Traits { twins: &[Twin::with_end("uint % = 0", begins_for)], ..Traits::PLAIN },
};
