//! The table of languages: one row each, grouped by kinship.

mod c_family;
mod data;
mod functional;
mod managed;
mod scripts;
mod systems;
mod web;

use super::{Language, Place};

/// `Name<…>` is how a type is written; as an expression it would be two comparisons, or an instantiation nobody means.
fn is_generic(text: &str) -> bool {
    let text = text.trim();
    text.ends_with('>') && text.contains('<') && !text.contains(['(', '=', ';', '{'])
}

/// The word that a text ends with, perhaps none.
fn last_word(text: &str) -> &str {
    text.trim_end().rsplit(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').next().unwrap_or_default()
}

/// Whether a bracket behind this text begins a value of its own, and no call, index or macro. `words` are those that a value follows.
fn opens_value(before: &str, words: &[&str]) -> bool {
    let word = last_word(before);
    if !word.is_empty() {
        return words.contains(&word);
    }
    let before = before.trim_end();
    let arrow = before.ends_with("->") || before.ends_with("=>");
    arrow || !before.ends_with([')', ']', '}', '"', '\'', '`', '!', '?', '>'])
}

/// A run that is all there is between two brackets; the text before them, if so.
fn filled<'p>(place: &Place<'p>, open: char, close: char) -> Option<&'p str> {
    let before = place.before.strip_suffix(open)?;
    (place.is_run && place.after.starts_with(close)).then_some(before)
}

/// `for ($A; …`: the first part may be a declaration, which its `;` belongs to.
fn begins_for(place: &Place) -> bool {
    place.after.starts_with(';')
        && place.before.strip_suffix('(').is_some_and(|text| last_word(text) == "for")
}

/// `sizeof($A)` is asked of values and of types.
#[cfg(any(feature = "c", feature = "cpp", feature = "objc"))]
fn is_measured(place: &Place) -> bool {
    let word = place.before.strip_suffix('(').map(last_word);
    place.after.starts_with(')') && word.is_some_and(|word| ["sizeof", "_Alignof", "alignof"].contains(&word))
}

/// A block by its braces, which could also be a list of values.
fn is_braced(text: &str) -> bool {
    text.starts_with('{')
}

/// In order of the ids.
pub(super) static ALL: &[&Language] = &[
    #[cfg(feature = "bash")]
    &scripts::BASH,
    #[cfg(feature = "c")]
    &c_family::C,
    #[cfg(feature = "c-sharp")]
    &managed::C_SHARP,
    #[cfg(feature = "cmake")]
    &scripts::CMAKE,
    #[cfg(feature = "cpp")]
    &c_family::CPP,
    #[cfg(feature = "css")]
    &web::CSS,
    #[cfg(feature = "dart")]
    &managed::DART,
    #[cfg(feature = "dockerfile")]
    &scripts::DOCKERFILE,
    #[cfg(feature = "xml")]
    &data::DTD,
    #[cfg(feature = "elixir")]
    &functional::ELIXIR,
    #[cfg(feature = "elm")]
    &functional::ELM,
    #[cfg(feature = "erlang")]
    &functional::ERLANG,
    #[cfg(feature = "fsharp")]
    &functional::FSHARP,
    #[cfg(feature = "gleam")]
    &functional::GLEAM,
    #[cfg(feature = "go")]
    &systems::GO,
    #[cfg(feature = "graphql")]
    &data::GRAPHQL,
    #[cfg(feature = "groovy")]
    &managed::GROOVY,
    #[cfg(feature = "haskell")]
    &functional::HASKELL,
    #[cfg(feature = "hcl")]
    &data::HCL,
    #[cfg(feature = "html")]
    &web::HTML,
    #[cfg(feature = "java")]
    &managed::JAVA,
    #[cfg(feature = "javascript")]
    &web::JAVASCRIPT,
    #[cfg(feature = "json")]
    &data::JSON,
    #[cfg(feature = "julia")]
    &scripts::JULIA,
    #[cfg(feature = "kotlin")]
    &managed::KOTLIN,
    #[cfg(feature = "lua")]
    &scripts::LUA,
    #[cfg(feature = "make")]
    &scripts::MAKE,
    #[cfg(feature = "markdown")]
    &data::MARKDOWN,
    #[cfg(feature = "nix")]
    &data::NIX,
    #[cfg(feature = "objc")]
    &c_family::OBJC,
    #[cfg(feature = "ocaml")]
    &functional::OCAML,
    #[cfg(feature = "ocaml")]
    &functional::OCAML_INTERFACE,
    #[cfg(feature = "perl")]
    &scripts::PERL,
    #[cfg(feature = "php")]
    &scripts::PHP,
    #[cfg(feature = "powershell")]
    &scripts::POWERSHELL,
    #[cfg(feature = "proto")]
    &data::PROTO,
    #[cfg(feature = "python")]
    &scripts::PYTHON,
    #[cfg(feature = "r")]
    &scripts::R,
    #[cfg(feature = "ruby")]
    &scripts::RUBY,
    #[cfg(feature = "rust")]
    &systems::RUST,
    #[cfg(feature = "scala")]
    &managed::SCALA,
    #[cfg(feature = "solidity")]
    &c_family::SOLIDITY,
    #[cfg(feature = "sql")]
    &data::SQL,
    #[cfg(feature = "svelte")]
    &web::SVELTE,
    #[cfg(feature = "swift")]
    &managed::SWIFT,
    #[cfg(feature = "toml")]
    &data::TOML,
    #[cfg(feature = "typescript")]
    &web::TSX,
    #[cfg(feature = "typescript")]
    &web::TYPESCRIPT,
    #[cfg(feature = "xml")]
    &data::XML,
    #[cfg(feature = "yaml")]
    &data::YAML,
    #[cfg(feature = "zig")]
    &systems::ZIG,
];
