//! Functional languages.

use crate::languages::{Language, Rung, Traits};

#[cfg(feature = "haskell")]
pub(super) static HASKELL: Language = Language {
    id: "haskell",
    name: "Haskell",
    aliases: &["hs"],
    extensions: &["hs", "hs-boot"],
    file_names: &[],
    shebangs: &["runhaskell", "runghc", "stack"],
    grammar: || tree_sitter_haskell::LANGUAGE.into(),
    rungs: &[
        Rung::new("alternative", "zq = case x of\n  ", "\n").only(&["alternative"]),
        Rung::new("declaration", "", "\n")
            .declares()
            .only(&["signature"])
            .when(|text| text.contains("::"))
            .group("signature"),
        Rung::new("expression", "zq = ", "\n").group("signature"),
        Rung::new("declaration", "", "\n").declares(),
        Rung::new("do statement", "zq = do\n  ", "\n").statement(),
        Rung::new("type", "zq :: ", "\n"),
        Rung::new("instance member", "instance Zq Zq where\n  ", "\n").declares(),
        Rung::new("field", "data Zq = Zq { ", " }\n").only(&["field"]),
        Rung::new("pattern", "zq (", ") = x\n"),
    ],
    holes: &["%", "Z%", "\"%\"", "% = 1"],
    traits: Traits::PLAIN,
};

#[cfg(feature = "elm")]
pub(super) static ELM: Language = Language {
    id: "elm",
    name: "Elm",
    aliases: &[],
    extensions: &["elm"],
    file_names: &[],
    shebangs: &[],
    grammar: || tree_sitter_elm::LANGUAGE.into(),
    rungs: &[
        Rung::new("case branch", "zq =\n    case x of\n        ", "\n").only(&["case_of_branch"]),
        Rung::new("expression", "zq =\n    ", "\n"),
        Rung::new("declaration", "", "\n").declares(),
        Rung::new("type", "zq : ", "\nzq = 1\n"),
        Rung::new("field", "zq = { ", " }\n").only(&["field"]),
        Rung::new("field type", "type alias Zq = { ", " }\n").only(&["field_type"]),
    ],
    holes: &["%", "Z%", "\"%\"", "% = 1"],
    traits: Traits::PLAIN,
};

#[cfg(feature = "ocaml")]
pub(super) static OCAML: Language = Language {
    id: "ocaml",
    name: "OCaml",
    aliases: &["ml"],
    extensions: &["ml"],
    file_names: &[],
    shebangs: &["ocaml"],
    grammar: || tree_sitter_ocaml::LANGUAGE_OCAML.into(),
    rungs: &[
        Rung::new("match case", "let _ = match x with ", "\n").only(&["match_case"]),
        Rung::new("expression", "let _ = ", "\n"),
        Rung::new("item", "", "\n").declares(),
        Rung::new("type", "let zq : ", " = x\n"),
        Rung::new("field", "type zq = { ", " }\n").only(&["field_declaration"]),
        Rung::new("pattern", "let ", " = x\n"),
    ],
    holes: &["%", "Z%", "let % = 1", "\"%\"", "% -> 1", "% : int"],
    traits: Traits::PLAIN,
};

#[cfg(feature = "ocaml")]
pub(super) static OCAML_INTERFACE: Language = Language {
    id: "ocaml-interface",
    name: "OCaml interface",
    aliases: &["mli"],
    extensions: &["mli"],
    file_names: &[],
    shebangs: &[],
    grammar: || tree_sitter_ocaml::LANGUAGE_OCAML_INTERFACE.into(),
    rungs: &[
        Rung::new("item", "", "\n").declares(),
        Rung::new("type", "val zq : ", "\n"),
        Rung::new("field", "type zq = { ", " }\n").only(&["field_declaration"]),
    ],
    holes: &["%", "Z%", "val % : int", "% : int"],
    traits: Traits::PLAIN,
};

#[cfg(feature = "fsharp")]
pub(super) static FSHARP: Language = Language {
    id: "fsharp",
    name: "F#",
    aliases: &["f#", "fs"],
    extensions: &["fs", "fsx"],
    file_names: &[],
    shebangs: &["fsharpi"],
    grammar: || tree_sitter_fsharp::LANGUAGE_FSHARP.into(),
    rungs: &[
        Rung::new("rule", "let zq =\n  match x with\n  ", "\n").only(&["rule", "rules"]),
        Rung::new("expression", "let zq = ", "\n"),
        Rung::new("declaration", "", "\n").declares(),
        Rung::new("type", "let zq : ", " = 1\n"),
    ],
    holes: &["%", "Z%", "\"%\"", "% -> 1", "| % -> 1"],
    traits: Traits::PLAIN,
};

#[cfg(feature = "elixir")]
pub(super) static ELIXIR: Language = Language {
    id: "elixir",
    name: "Elixir",
    aliases: &["ex"],
    extensions: &["ex", "exs"],
    file_names: &["mix.lock"],
    shebangs: &["elixir"],
    grammar: || tree_sitter_elixir::LANGUAGE.into(),
    rungs: &[
        Rung::new("clause", "case x do\n", "\nend\n").only(&["stab_clause"]).statement(),
        Rung::new("expression", "", "\n").statement(),
        Rung::new("pair", "[", "]\n").only(&["keywords", "pair"]),
        Rung::new("map entry", "%{", "}\n"),
    ],
    holes: &["%", "Z%", "\"%\"", "%: 1", "% -> 1"],
    traits: Traits { soft_semicolons: true, ..Traits::PLAIN },
};

#[cfg(feature = "erlang")]
pub(super) static ERLANG: Language = Language {
    id: "erlang",
    name: "Erlang",
    aliases: &["erl"],
    extensions: &["erl", "hrl"],
    file_names: &["rebar.config"],
    shebangs: &["escript"],
    grammar: || tree_sitter_erlang::LANGUAGE.into(),
    rungs: &[
        Rung::new("function clause", "", ".\n").only(&["function_clause"]),
        Rung::new("clause", "zq() -> case x of\n", "\nend.\n").only(&["cr_clause"]),
        Rung::new("expression", "zq() ->\n", ".\n"),
        Rung::new("form", "", "\n").declares(),
        Rung::new("type", "-type zq() :: ", ".\n"),
    ],
    holes: &["Z%", "%", "% -> 1", "\"%\""],
    traits: Traits::PLAIN,
};

#[cfg(feature = "gleam")]
pub(super) static GLEAM: Language = Language {
    id: "gleam",
    name: "Gleam",
    aliases: &[],
    extensions: &["gleam"],
    file_names: &[],
    shebangs: &[],
    grammar: || tree_sitter_gleam::LANGUAGE.into(),
    rungs: &[
        Rung::new("case clause", "fn zq() { case x {\n", "\n} }\n").only(&["case_clause"]).statement(),
        Rung::new("statement", "fn zq() {\n", "\n}\n").declares(),
        Rung::new("declaration", "", "\n").declares(),
        Rung::new("argument", "fn zq() { zq(", ") }\n").only(&["argument"]),
        Rung::new("parameter", "fn zq(", ") { 1 }\n").only(&["function_parameter"]),
        Rung::new("type", "fn zq(x: ", ") { 1 }\n"),
    ],
    holes: &["%", "Z%", "% -> 1", "\"%\""],
    traits: Traits::PLAIN,
};
