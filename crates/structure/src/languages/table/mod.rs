//! The table of languages: one row each, grouped by kinship.

mod c_family;
mod data;
mod functional;
mod managed;
mod scripts;
mod systems;
mod web;

use super::Language;

/// `Name<…>` is how a type is written; as an expression it would be two comparisons, or an instantiation nobody means.
fn is_generic(text: &str) -> bool {
    let text = text.trim();
    text.ends_with('>') && text.contains('<') && !text.contains(['(', '=', ';', '{'])
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
