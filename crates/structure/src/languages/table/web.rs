//! JavaScript, TypeScript and what pages are written in.

use super::begins_for;
use crate::languages::{Language, Place, Rung, Traits, Twin};

const PROPERTY: Rung = Rung::new("property", "({", "})").only(&["pair"]).group("annotated");
const STATEMENT: Rung = Rung::new("statement", "", "\n").declares();
const EXPRESSION: Rung = Rung::new("expression", "(", ")");
const MEMBER: Rung = Rung::new("member", "class Zq {\n", "\n}").declares();
const OBJECT_MEMBER: Rung = Rung::new("object member", "({", "})")
    .only(&["method_definition", "spread_element", "shorthand_property_identifier"])
    .declares();
const CASE: Rung =
    Rung::new("case", "switch (x) {\n", "\n}").only(&["switch_case", "switch_default"]).statement();
const HANDLER: Rung = Rung::new("clause", "try {} ", "\n").only(&["catch_clause", "finally_clause"]);
const ELSE: Rung = Rung::new("else clause", "if (x) {} ", "\n").only(&["else_clause"]);
const JSX_ATTRIBUTE: Rung =
    Rung::new("JSX attribute", "<Zq ", " />").only(&["jsx_attribute", "jsx_expression"]);
/// `name={…}` and `name="…"` without blanks are how attributes are written and assignments are not.
fn is_attribute(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, value)| {
        let named = !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'$' | b':'));
        named && value.starts_with(['{', '"', '\''])
    })
}

const JSX_FIRST: Rung = JSX_ATTRIBUTE.when(is_attribute);
const DECORATOR: Rung = Rung::new("decorator", "", "\nclass Zq {}").only(&["decorator"]);
const PARAMETER: Rung = Rung::new("parameter", "function zq(", ") {}").group("annotated");

/// `export default $A`: a declaration, or a value.
fn is_default(place: &Place) -> bool {
    place.before.ends_with("export default") && place.after.is_empty()
}

const JS_HOLES: &[&str] = &["%", "%() {}", "case %:", "%: 0", "\"%\"", "%;"];
const JS_TRAITS: Traits = Traits {
    loose_leaves: &["jsx_text"],
    twins: &[Twin::with_end("let % = 0", begins_for), Twin::new("class % {}", is_default)],
    ..Traits::PLAIN
};

#[cfg(feature = "javascript")]
pub(super) static JAVASCRIPT: Language = Language {
    id: "javascript",
    name: "JavaScript",
    aliases: &["js", "jsx"],
    extensions: &["js", "mjs", "cjs", "jsx"],
    file_names: &[],
    shebangs: &["node", "nodejs", "bun"],
    grammar: || tree_sitter_javascript::LANGUAGE.into(),
    rungs: &[
        CASE,
        HANDLER,
        ELSE,
        JSX_FIRST,
        PROPERTY,
        STATEMENT,
        EXPRESSION,
        MEMBER,
        OBJECT_MEMBER,
        JSX_ATTRIBUTE,
        PARAMETER.only(&["assignment_pattern", "rest_pattern"]),
        DECORATOR,
    ],
    holes: JS_HOLES,
    traits: JS_TRAITS,
};

#[cfg(feature = "typescript")]
const TS_KINDS: &[&str] = &["required_parameter", "optional_parameter"];

#[cfg(feature = "typescript")]
pub(super) static TYPESCRIPT: Language = Language {
    id: "typescript",
    name: "TypeScript",
    aliases: &["ts"],
    extensions: &["ts", "mts", "cts"],
    file_names: &[],
    shebangs: &["deno", "ts-node", "tsx"],
    grammar: || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
    rungs: &[
        Rung::new("type", "type Zq = ", ";").only(&["generic_type"]).when(super::is_generic),
        CASE,
        HANDLER,
        ELSE,
        PROPERTY,
        STATEMENT,
        EXPRESSION,
        MEMBER.group("annotated"),
        Rung::new("interface member", "interface Zq {\n", "\n}")
            .only(&[
                "property_signature",
                "method_signature",
                "index_signature",
                "call_signature",
                "construct_signature",
            ])
            .group("annotated")
            .declares(),
        OBJECT_MEMBER,
        PARAMETER.only(TS_KINDS),
        Rung::new("type", "type Zq = ", ";"),
        Rung::new("enum member", "enum Zq {\n", "\n}").only(&["enum_assignment"]),
        DECORATOR,
    ],
    holes: &["%", "%() {}", "case %:", "%: 0", "\"%\"", "%: Zq", "%;"],
    traits: JS_TRAITS,
};

#[cfg(feature = "typescript")]
pub(super) static TSX: Language = Language {
    id: "tsx",
    name: "TSX",
    aliases: &[],
    extensions: &["tsx"],
    file_names: &[],
    shebangs: &[],
    grammar: || tree_sitter_typescript::LANGUAGE_TSX.into(),
    rungs: &[
        Rung::new("type", "type Zq = ", ";").only(&["generic_type"]).when(super::is_generic),
        CASE,
        HANDLER,
        ELSE,
        JSX_FIRST,
        PROPERTY,
        STATEMENT,
        EXPRESSION,
        MEMBER.group("annotated"),
        Rung::new("interface member", "interface Zq {\n", "\n}")
            .only(&[
                "property_signature",
                "method_signature",
                "index_signature",
                "call_signature",
                "construct_signature",
            ])
            .group("annotated")
            .declares(),
        OBJECT_MEMBER,
        PARAMETER.only(TS_KINDS),
        JSX_ATTRIBUTE,
        Rung::new("type", "type Zq = ", ";"),
        Rung::new("enum member", "enum Zq {\n", "\n}").only(&["enum_assignment"]),
        DECORATOR,
    ],
    holes: &["%", "%() {}", "case %:", "%: 0", "\"%\"", "%: Zq", "%;"],
    traits: JS_TRAITS,
};

#[cfg(feature = "html")]
pub(super) static HTML: Language = Language {
    id: "html",
    name: "HTML",
    aliases: &["htm"],
    extensions: &["html", "htm", "xhtml"],
    file_names: &[],
    shebangs: &[],
    grammar: || tree_sitter_html::LANGUAGE.into(),
    rungs: &[
        Rung::new("attribute", "<zq ", "></zq>")
            .only(&["attribute"])
            .when(|text| !text.trim_start().starts_with('<')),
        Rung::new("element", "", "\n").statement(),
        Rung::new("start tag", "", "</zq>").only(&["start_tag"]),
    ],
    holes: &["%", "\"%\"", "<p>%</p>"],
    traits: Traits { loose_leaves: &["text"], ..Traits::PLAIN },
};

#[cfg(feature = "svelte")]
pub(super) static SVELTE: Language = Language {
    id: "svelte",
    name: "Svelte",
    aliases: &[],
    extensions: &["svelte"],
    file_names: &[],
    shebangs: &[],
    grammar: || tree_sitter_svelte_ng::LANGUAGE.into(),
    rungs: &[
        Rung::new("attribute", "<zq ", "></zq>")
            .only(&["attribute"])
            .when(|text| !text.trim_start().starts_with('<')),
        Rung::new("element", "", "\n").statement(),
    ],
    holes: &["%", "\"%\"", "<p>%</p>"],
    traits: Traits { loose_leaves: &["text"], ..Traits::PLAIN },
};

#[cfg(feature = "css")]
pub(super) static CSS: Language = Language {
    id: "css",
    name: "CSS",
    aliases: &[],
    extensions: &["css"],
    file_names: &[],
    shebangs: &[],
    grammar: || tree_sitter_css::LANGUAGE.into(),
    rungs: &[
        Rung::new("declaration", "a {\n", "\n}").only(&["declaration"]).statement(),
        Rung::new("declaration", "a {\n", ";\n}").only(&["declaration"]).statement().completes(),
        Rung::new("rule", "", "\n").statement(),
        Rung::new("rule", "", ";\n").statement().completes(),
        Rung::new("selector", "", " {}\n"),
        Rung::new("value", "a { b: ", "; }"),
        Rung::new("query", "@media ", " {}\n"),
    ],
    holes: &["%", "% : 0;", "% {}", "\"%\"", "1", "to {}"],
    traits: Traits::PLAIN,
};
