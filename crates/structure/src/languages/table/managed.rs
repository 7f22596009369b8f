//! Languages of the big virtual machines, Swift and Dart.

use super::{begins_for, filled};
use crate::languages::{Language, Rung, Traits, Twin};

/// `Name(…) {…}` with modifiers at most before it is a constructor; it could be an enum's constant with a body.
#[cfg(feature = "java")]
fn is_constructor(text: &str) -> bool {
    let Some((head, _)) = text.split_once('(') else { return false };
    let mut words = head.split_whitespace().rev();
    let named = words.next().is_some_and(|name| name.starts_with(|c: char| c == '$' || c.is_uppercase()));
    named
        && text.ends_with('}')
        && words.all(|word| word.starts_with('@') || ["public", "protected", "private"].contains(&word))
}

#[cfg(feature = "java")]
pub(super) static JAVA: Language = Language {
    id: "java",
    name: "Java",
    aliases: &[],
    extensions: &["java"],
    file_names: &[],
    shebangs: &["java"],
    grammar: || tree_sitter_java::LANGUAGE.into(),
    rungs: &[
        Rung::new("type", "class Zq { ", " zq; }").only(&["generic_type"]).when(super::is_generic),
        Rung::new("case", "class Zq { void zq() { switch (x) {\n", "\n} } }")
            .only(&["switch_block_statement_group", "switch_rule"])
            .statement(),
        Rung::new("clause", "class Zq { void zq() { try {} ", "\n} }")
            .only(&["catch_clause", "finally_clause"]),
        Rung::new("member", "class Zq {\n", "\n}")
            .declares()
            .only(&["constructor_declaration"])
            .when(is_constructor),
        Rung::new("statement", "class Zq { void zq() {\n", "\n} }").declares(),
        Rung::new("statement", "class Zq { void zq() {\n", ";\n} }").declares().completes(),
        Rung::new("member", "class Zq {\n", "\n}").declares(),
        Rung::new("member", "class Zq {\n", ";\n}").declares().completes(),
        Rung::new("constructor's first statement", "class Zq { Zq() {\n", "\n} }")
            .only(&["explicit_constructor_invocation"])
            .statement(),
        Rung::new("interface member", "interface Zq {\n", "\n}").declares(),
        Rung::new("declaration", "", "\n").declares(),
        Rung::new("declaration", "", ";\n").declares().completes(),
        Rung::new("expression", "class Zq { Object zq = ", "; }"),
        Rung::new("annotation", "class Zq {\n", "\nvoid zq() {} }")
            .only(&["annotation", "marker_annotation"]),
        Rung::new("parameter", "class Zq { void zq(", ") {} }")
            .only(&["formal_parameter", "spread_parameter"]),
        Rung::new("type", "class Zq { ", " zq; }"),
        Rung::new("enum constant", "enum Zq {\n", "\n}").only(&["enum_constant"]),
    ],
    holes: &["%", "%;", "%();", "Zq %", "case %:", "void %() {}", "\"%\"", "% = 0"],
    traits: Traits { twins: &[Twin::with_end("int % = 0", begins_for)], ..Traits::PLAIN },
};

/// `x switch {…}`, which in a class could be a property of that name.
#[cfg(feature = "c-sharp")]
fn is_switch_expression(text: &str) -> bool {
    text.ends_with('}') && text.split_once('{').is_some_and(|(head, _)| head.trim_end().ends_with(" switch"))
}

/// `x => …` and `(x, y) => …`, which in a class could be a property's value.
#[cfg(feature = "c-sharp")]
fn is_lambda(text: &str) -> bool {
    text.split_once("=>").is_some_and(|(head, _)| {
        let head = head.trim();
        let head = head.strip_prefix("async").map_or(head, str::trim_start);
        (head.starts_with('(') && head.ends_with(')'))
            || (!head.is_empty() && head.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$')))
    })
}

/// `using A.B;`, which among statements could hold a resource.
#[cfg(feature = "c-sharp")]
fn is_using(text: &str) -> bool {
    text.strip_prefix("using ").is_some_and(|rest| !rest.contains('('))
}

/// `lock (…) {…}`, whose block could also be a list of values.
#[cfg(feature = "c-sharp")]
fn is_guarded(text: &str) -> bool {
    ["lock", "fixed", "checked", "unchecked", "unsafe"]
        .contains(&text.split([' ', '(', '{']).next().unwrap_or_default())
}

#[cfg(feature = "c-sharp")]
pub(super) static C_SHARP: Language = Language {
    id: "c-sharp",
    name: "C#",
    aliases: &["csharp", "cs", "c#"],
    extensions: &["cs", "csx"],
    file_names: &[],
    shebangs: &["dotnet-script"],
    grammar: || tree_sitter_c_sharp::LANGUAGE.into(),
    rungs: &[
        Rung::new("declaration", "", "\n").only(&["using_directive"]).when(is_using).statement(),
        Rung::new("statement", "class Zq { void zq() {\n", "\n} }")
            .only(&["lock_statement", "fixed_statement", "checked_statement", "unsafe_statement"])
            .when(is_guarded)
            .declares(),
        Rung::new("expression", "class Zq { object zq = ", "; }")
            .only(&["array_creation_expression", "implicit_array_creation_expression"])
            .when(|text| text.starts_with("new")),
        Rung::new("attribute", "class Zq {\n", "\nvoid zq() {} }").only(&["attribute_list"]),
        Rung::new("expression", "class Zq { object zq = ", "; }")
            .only(&["switch_expression"])
            .when(is_switch_expression),
        Rung::new("expression", "class Zq { object zq = ", "; }")
            .only(&["lambda_expression"])
            .when(is_lambda)
            .group("arrow"),
        Rung::new("type", "class Zq { ", " zq; }").only(&["generic_name"]).when(super::is_generic),
        Rung::new("case", "class Zq { void zq() { switch (x) {\n", "\n} } }")
            .only(&["switch_section"])
            .statement(),
        Rung::new("clause", "class Zq { void zq() { try {} ", "\n} }")
            .only(&["catch_clause", "finally_clause"]),
        Rung::new("statement", "class Zq { void zq() {\n", "\n} }").declares(),
        Rung::new("statement", "class Zq { void zq() {\n", ";\n} }").declares().completes(),
        Rung::new("member", "class Zq {\n", "\n}").declares(),
        Rung::new("member", "class Zq {\n", ";\n}").declares().completes(),
        Rung::new("declaration", "", "\n").declares(),
        Rung::new("expression", "class Zq { object zq = ", "; }"),
        Rung::new("switch arm", "class Zq { int zq = x switch {\n", "\n}; }")
            .only(&["switch_expression_arm"])
            .group("arrow"),
        Rung::new("argument", "class Zq { object zq = zq(", "); }").only(&["argument"]),
        Rung::new("parameter", "class Zq { void zq(", ") {} }").only(&["parameter"]),
        Rung::new("type", "class Zq { ", " zq; }"),
    ],
    holes: &["%", "%;", "%();", "Zq %", "case %: break;", "void %() {}", "\"%\"", "% => 0"],
    traits: Traits::PLAIN,
};

#[cfg(feature = "kotlin")]
pub(super) static KOTLIN: Language = Language {
    id: "kotlin",
    name: "Kotlin",
    aliases: &["kt"],
    extensions: &["kt", "kts", "ktm"],
    file_names: &[],
    shebangs: &["kotlin"],
    grammar: || tree_sitter_kotlin_sg::LANGUAGE.into(),
    rungs: &[
        Rung::new("member", "class Zq {\n", "\n}\n")
            .only(&["anonymous_initializer"])
            .when(|text| text.starts_with("init"))
            .statement(),
        Rung::new("when entry", "fun zq() { when (x) {\n", "\n} }\n").only(&["when_entry"]).statement(),
        Rung::new("clause", "fun zq() { try {} ", "\n}\n").only(&["catch_block", "finally_block"]),
        Rung::new("statement", "fun zq() {\n", "\n}\n").declares(),
        Rung::new("member", "class Zq {\n", "\n}\n").declares(),
        Rung::new("declaration", "", "\n").declares(),
        Rung::new("argument", "fun zq() { zq(", ") }\n").only(&["value_argument"]),
        Rung::new("expression", "val zq = ", "\n"),
        Rung::new("parameter", "fun zq(", ") {}\n").only(&["parameter"]),
        Rung::new("constructor parameter", "class Zq(", ")\n").only(&["class_parameter"]),
        Rung::new("type", "val zq: ", "\n"),
        Rung::new("annotation", "", "\nfun zq() {}\n").only(&["annotation"]),
    ],
    holes: &["%", "%: Zq", "% -> 0", "fun %() {}", "\"%\""],
    traits: Traits { soft_semicolons: true, ..Traits::PLAIN },
};

#[cfg(feature = "scala")]
pub(super) static SCALA: Language = Language {
    id: "scala",
    name: "Scala",
    aliases: &[],
    extensions: &["scala", "sc", "sbt"],
    file_names: &[],
    shebangs: &["scala", "scala-cli", "amm"],
    grammar: || tree_sitter_scala::LANGUAGE.into(),
    rungs: &[
        Rung::new("case", "object Zq { x match {\n", "\n} }\n").only(&["case_clause"]).statement(),
        Rung::new("statement", "object Zq {\n", "\n}\n").declares(),
        Rung::new("declaration", "", "\n").declares(),
        Rung::new("block statement", "object Zq { def zq = {\n", "\n} }\n").declares(),
        Rung::new("expression", "object Zq { val zq = ", " }\n"),
        Rung::new("parameter", "object Zq { def zq(", ") = 1 }\n").only(&["parameter"]),
        Rung::new("type", "object Zq { type Zq = ", " }\n"),
        Rung::new("enumerator", "object Zq { for (", ") yield x }\n").only(&["enumerator"]),
        Rung::new("annotation", "object Zq {\n", "\ndef zq = 1 }\n").only(&["annotation"]),
    ],
    holes: &["%", "%: Zq", "case % => 0", "def % = 0", "\"%\"", "% <- zq"],
    traits: Traits {
        soft_semicolons: true,
        twins: &[Twin::new("case % => 0", |place| filled(place, '{', '}').is_some())],
        ..Traits::PLAIN
    },
};

#[cfg(feature = "groovy")]
pub(super) static GROOVY: Language = Language {
    id: "groovy",
    name: "Groovy",
    aliases: &[],
    extensions: &["groovy", "gradle", "gvy"],
    file_names: &["Jenkinsfile*"],
    shebangs: &["groovy"],
    grammar: || tree_sitter_groovy::LANGUAGE.into(),
    rungs: &[
        Rung::new("statement", "", "\n").declares(),
        Rung::new("block statement", "void zq() {\n", "\n}\n").declares(),
        Rung::new("expression", "def zq = ", "\n"),
    ],
    holes: &["%", "%()", "\"%\"", "Zq %", "%: 1"],
    traits: Traits { soft_semicolons: true, ..Traits::PLAIN },
};

#[cfg(feature = "swift")]
pub(super) static SWIFT: Language = Language {
    id: "swift",
    name: "Swift",
    aliases: &[],
    extensions: &["swift"],
    file_names: &[],
    shebangs: &["swift"],
    grammar: || tree_sitter_swift::LANGUAGE.into(),
    rungs: &[
        Rung::new("case", "func zq() { switch x {\n", "\n} }\n").only(&["switch_entry"]).statement(),
        Rung::new("catch clause", "func zq() { do {} ", "\n}\n").only(&["catch_block"]),
        Rung::new("statement", "func zq() {\n", "\n}\n").declares(),
        Rung::new("member", "class Zq {\n", "\n}\n").declares(),
        Rung::new("protocol member", "protocol Zq {\n", "\n}\n").declares(),
        Rung::new("declaration", "", "\n").declares(),
        Rung::new("argument", "zq(", ")\n").only(&["value_argument"]),
        Rung::new("expression", "let zq = ", "\n"),
        Rung::new("enum case", "enum Zq {\n", "\n}\n").only(&["enum_entry"]).statement(),
        Rung::new("parameter", "func zq(", ") {}\n").only(&["parameter"]),
        Rung::new("type", "let zq: ", "\n"),
        Rung::new("attribute", "", "\nfunc zq() {}\n").only(&["attribute"]),
    ],
    holes: &["%", "%: Zq", "case %: break", "func %() {}", "\"%\"", "func %()", "%()"],
    traits: Traits { soft_semicolons: true, ..Traits::PLAIN },
};

#[cfg(feature = "dart")]
pub(super) static DART: Language = Language {
    id: "dart",
    name: "Dart",
    aliases: &[],
    extensions: &["dart"],
    file_names: &[],
    shebangs: &["dart"],
    grammar: || tree_sitter_dart::LANGUAGE.into(),
    rungs: &[
        Rung::new("declaration", "", "\n")
            .only(&["type_alias"])
            .when(|text| text.starts_with("typedef"))
            .declares(),
        Rung::new("block", "void zq() ", "\n").only(&["block"]).when(super::is_braced).statement(),
        Rung::new("argument", "var zq = zq(", ");").only(&["named_argument"]).group("named"),
        Rung::new("element", "var zq = {", "};").only(&["map_element"]).group("named"),
        Rung::new("case", "void zq() { switch (x) {\n", "\n} }")
            .only(&["switch_statement_case", "switch_statement_default"])
            .statement(),
        Rung::new("clause", "void zq() { try {} ", "\n}").only(&[
            "finally_clause",
            "catch_clause",
            "on_part",
        ]),
        Rung::new("statement", "void zq() {\n", "\n}").declares(),
        Rung::new("statement", "void zq() {\n", ";\n}").declares().completes(),
        Rung::new("member", "class Zq {\n", "\n}").declares(),
        Rung::new("member", "class Zq {\n", ";\n}").declares().completes(),
        Rung::new("declaration", "", "\n").declares(),
        Rung::new("declaration", "", ";\n").declares().completes(),
        Rung::new("expression", "var zq = ", ";"),
        Rung::new("switch arm", "var zq = switch (x) {\n", "\n};").only(&["switch_expression_case"]),
        Rung::new("parameter", "void zq(", ") {}").only(&["formal_parameter"]),
        Rung::new("type", "void zq() { ", " zq; }"),
        Rung::new("annotation", "", "\nvoid zq() {}").only(&["annotation"]),
    ],
    holes: &["%", "%;", "%();", "Zq %", "case %: break;", "void %() {}", "\"%\""],
    traits: Traits { twins: &[Twin::with_end("var % = 0", begins_for)], ..Traits::PLAIN },
};
