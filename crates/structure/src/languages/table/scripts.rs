//! Scripting languages, shells and build files.

use super::{filled, opens_value};
use crate::languages::{Language, Lead, Place, Rung, Traits, Twin};

/// `key=value` without blanks is how a keyword argument is written and a statement is not.
#[cfg(feature = "python")]
fn is_tight_pair(text: &str) -> bool {
    text.split_once('=').is_some_and(|(before, after)| {
        !before.is_empty()
            && before.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$')
            && !after.starts_with(['=', ' ', '\t', '\n'])
    })
}

/// `name: type` on a line of its own: a variable, a field or a parameter with its type.
#[cfg(feature = "python")]
fn is_annotated(text: &str) -> bool {
    let named = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$');
    text.split_once(':').is_some_and(|(name, _)| named(name) && !text.contains('\n'))
}

/// `($$$A)` is a value in brackets or a tuple.
#[cfg(feature = "python")]
fn is_tuple(place: &Place) -> bool {
    let words = [
        "return", "in", "not", "and", "or", "is", "if", "elif", "else", "while", "assert", "raise", "yield",
        "await", "lambda", "except", "from", "del", "case", "match",
    ];
    filled(place, '(', ')').is_some_and(|before| opens_value(before, &words))
}

#[cfg(feature = "python")]
pub(super) static PYTHON: Language = Language {
    id: "python",
    name: "Python",
    aliases: &["py", "python3"],
    extensions: &["py", "pyi", "pyw", "bzl"],
    file_names: &["SConstruct", "SConscript", "BUILD", "BUILD.bazel", "WORKSPACE"],
    shebangs: &["python", "pypy", "uv"],
    grammar: || tree_sitter_python::LANGUAGE.into(),
    rungs: &[
        Rung::new("clause", "try:\n    pass\n", "\n").only(&[
            "except_clause",
            "except_group_clause",
            "finally_clause",
        ]),
        Rung::new("clause", "if x:\n    pass\n", "\n").only(&["elif_clause", "else_clause"]),
        Rung::new("case", "match x:\n ", "\n").only(&["case_clause"]).statement(),
        Rung::new("argument", "zq(", ")").only(&["keyword_argument"]).when(is_tight_pair),
        Rung::new("statement", "", "\n").statement().group("subscript"),
        // `Optional[$T]` is an expression, and another node where it annotates.
        Rung::new("type", "zq: ", "\n").only(&["generic_type"]).group("subscript"),
        Rung::new("parameter", "def zq(", "): pass\n")
            .only(&["typed_parameter", "typed_default_parameter"])
            .group("subscript")
            .when(is_annotated),
        Rung::new("argument", "zq(", ")").only(&["keyword_argument", "dictionary_splat", "list_splat"]),
        Rung::new("pair", "{", "}").only(&["pair", "dictionary_splat"]),
        Rung::new("parameter", "def zq(", "): pass\n"),
        Rung::new("decorator", "", "\ndef zq(): pass\n").only(&["decorator"]),
        Rung::new("comprehension clause", "[x for y in z ", "]").only(&["for_in_clause", "if_clause"]),
    ],
    holes: &["%", "%: 0", "case %: pass", "\"%\"", "@%", "if %", "\n case %: pass"],
    traits: Traits {
        soft_semicolons: true,
        twins: &[Twin::new("%: 0", |place| filled(place, '{', '}').is_some()), Twin::new("%,", is_tuple)],
        leads: &[Lead { word: "for", form: "for % in zq", before: &[')', ']', '}'] }],
        bare_argument: Some(("generator_expression", "argument_list")),
        ..Traits::PLAIN
    },
};

/// `key => value`, which without a hash around it would be a pattern match.
#[cfg(feature = "ruby")]
fn is_arrow_pair(text: &str) -> bool {
    text.contains("=>") && !["rescue", "when", "in"].iter().any(|word| text.starts_with(word))
}

#[cfg(feature = "ruby")]
pub(super) static RUBY: Language = Language {
    id: "ruby",
    name: "Ruby",
    aliases: &["rb"],
    extensions: &["rb", "rake", "gemspec", "ru", "podspec"],
    file_names: &[
        "Rakefile",
        "Gemfile",
        "Podfile",
        "Vagrantfile",
        "Brewfile",
        "Guardfile",
        "Capfile",
        "Fastfile",
    ],
    shebangs: &["ruby", "jruby"],
    grammar: || tree_sitter_ruby::LANGUAGE.into(),
    rungs: &[
        Rung::new("pair", "{", "}").only(&["pair"]).when(is_arrow_pair),
        Rung::new("when clause", "case x\n", "\nend\n").only(&["when", "in_clause"]).statement(),
        Rung::new("clause", "begin\n", "\nend\n").only(&["rescue", "ensure"]),
        Rung::new("clause", "if x\n", "\nend\n").only(&["elsif", "else"]),
        Rung::new("statement", "", "\n").statement(),
        Rung::new("pair", "{", "}").only(&["pair", "hash_splat_argument"]),
        Rung::new("expression", "zq = ", "\n"),
        Rung::new("parameter", "def zq(", ")\nend\n"),
    ],
    holes: &["%", "Z%", "%: 1", "when %", "\"%\""],
    traits: Traits { soft_semicolons: true, ..Traits::PLAIN },
};

/// `name: value`, which without a call around it would be a label.
#[cfg(feature = "php")]
fn is_named_argument(text: &str) -> bool {
    text.split_once(':').is_some_and(|(name, value)| {
        let named = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        named && !value.starts_with(':') && !value.trim_start().starts_with('\n')
    })
}

#[cfg(feature = "php")]
pub(super) static PHP: Language = Language {
    id: "php",
    name: "PHP",
    aliases: &[],
    extensions: &["php", "php3", "php4", "php5", "php7", "phtml", "inc"],
    file_names: &[],
    shebangs: &["php"],
    grammar: || tree_sitter_php::LANGUAGE_PHP.into(),
    rungs: &[
        Rung::new("argument", "<?php\nzq(", ");\n").only(&["argument"]).when(is_named_argument),
        Rung::new("array element", "<?php\n$zq = [", "];\n")
            .only(&["array_element_initializer"])
            .when(|text| text.contains("=>"))
            .group("arrow"),
        Rung::new("match arm", "<?php\n$zq = match ($x) {\n", "\n};\n")
            .only(&["match_conditional_expression", "match_default_expression"])
            .group("arrow"),
        Rung::new("case", "<?php\nswitch ($x) {\n", "\n}\n")
            .only(&["case_statement", "default_statement"])
            .statement(),
        Rung::new("clause", "<?php\ntry {} ", "\n").only(&["catch_clause", "finally_clause"]),
        Rung::new("clause", "<?php\nif ($x) {} ", "\n").only(&["else_clause", "else_if_clause"]),
        Rung::new("statement", "<?php\n", "\n").declares(),
        Rung::new("statement", "<?php\n", ";\n").declares().completes(),
        Rung::new("member", "<?php\nclass Zq {\n", "\n}\n").declares(),
        Rung::new("member", "<?php\nclass Zq {\n", ";\n}\n").declares().completes(),
        Rung::new("parameter", "<?php\nfunction zq(", ") {}\n").only(&[
            "simple_parameter",
            "variadic_parameter",
            "property_promotion_parameter",
        ]),
        Rung::new("attribute", "<?php\n", "\nfunction zq() {}\n").only(&["attribute_list"]),
    ],
    holes: &["%", "$%", "%;", "function %() {}", "case %:", "'%'", "% => 0"],
    traits: Traits { keywords_any_case: true, ..Traits::PLAIN },
};

#[cfg(feature = "perl")]
pub(super) static PERL: Language = Language {
    id: "perl",
    name: "Perl",
    aliases: &["pl"],
    extensions: &["pl", "pm", "t", "psgi"],
    file_names: &["cpanfile"],
    shebangs: &["perl"],
    grammar: || ts_parser_perl::LANGUAGE.into(),
    rungs: &[
        Rung::new("clause", "if ($x) {} ", "\n").only(&["elsif", "else"]),
        Rung::new("statement", "", "\n").statement(),
        Rung::new("statement", "", ";\n").statement().completes(),
        Rung::new("expression", "my $zq = (", ");\n"),
    ],
    holes: &["%", "$%", "%();", "'%'"],
    traits: Traits::PLAIN,
};

#[cfg(feature = "lua")]
pub(super) static LUA: Language = Language {
    id: "lua",
    name: "Lua",
    aliases: &[],
    extensions: &["lua", "rockspec"],
    file_names: &[],
    shebangs: &["lua", "luajit"],
    grammar: || tree_sitter_lua::LANGUAGE.into(),
    rungs: &[
        Rung::new("clause", "if x then\n", "\nend\n").only(&["elseif_statement", "else_statement"]),
        Rung::new("statement", "", "\n").statement(),
        Rung::new("expression", "return ", "\n"),
        Rung::new("field", "zq = {", "}\n").only(&["field"]),
    ],
    holes: &["%", "%()", "% = 1", "\"%\""],
    traits: Traits { soft_semicolons: true, ..Traits::PLAIN },
};

#[cfg(feature = "r")]
pub(super) static R: Language = Language {
    id: "r",
    name: "R",
    aliases: &[],
    extensions: &["r"],
    file_names: &[".Rprofile"],
    shebangs: &["Rscript"],
    grammar: || tree_sitter_r::LANGUAGE.into(),
    rungs: &[
        Rung::new("statement", "", "\n").statement(),
        Rung::new("argument", "zq(", ")\n").only(&["argument"]),
        Rung::new("parameter", "zq <- function(", ") 1\n").only(&["parameter"]),
    ],
    holes: &["%", "\"%\"", "% = 1"],
    traits: Traits { soft_semicolons: true, ..Traits::PLAIN },
};

#[cfg(feature = "julia")]
pub(super) static JULIA: Language = Language {
    id: "julia",
    name: "Julia",
    aliases: &["jl"],
    extensions: &["jl"],
    file_names: &[],
    shebangs: &["julia"],
    grammar: || tree_sitter_julia::LANGUAGE.into(),
    rungs: &[
        Rung::new("clause", "if x\n", "\nend\n").only(&["elseif_clause", "else_clause"]),
        Rung::new("clause", "try\n", "\nend\n").only(&["catch_clause", "finally_clause"]),
        Rung::new("statement", "", "\n").statement(),
        Rung::new("field", "struct Zq\n", "\nend\n"),
        Rung::new("argument", "zq(", ")\n").only(&["named_argument", "keyword_argument"]),
        Rung::new("expression", "zq = ", "\n"),
    ],
    holes: &["%", "\"%\"", "%::Zq"],
    traits: Traits { soft_semicolons: true, ..Traits::PLAIN },
};

/// `a) b ;;`: its bracket closes what it has not opened, or the end tells.
#[cfg(feature = "bash")]
fn is_case_item(text: &str) -> bool {
    let count = |bracket| text.matches(bracket).count();
    count(')') > count('(') || [";;", ";&", ";;&"].iter().any(|end| text.ends_with(end))
}

#[cfg(feature = "bash")]
pub(super) static BASH: Language = Language {
    id: "bash",
    name: "Bash",
    aliases: &["sh", "shell", "zsh"],
    extensions: &["sh", "bash", "zsh", "ksh", "bats", "ebuild"],
    file_names: &[".bashrc", ".bash_profile", ".bash_aliases", ".profile", ".zshrc", ".zprofile", "PKGBUILD"],
    shebangs: &["sh", "bash", "dash", "zsh", "ksh"],
    grammar: || tree_sitter_bash::LANGUAGE.into(),
    rungs: &[
        Rung::new("case item", "case x in\n", "\nesac\n").only(&["case_item"]).when(is_case_item).statement(),
        Rung::new("clause", "if x; then y; ", "\nfi\n").only(&["elif_clause", "else_clause"]),
        Rung::new("statement", "", "\n").statement(),
        Rung::new("test", "[[ ", " ]]\n"),
        Rung::new("arithmetic", "(( ", " ))\n"),
        Rung::new("word", "zq ", "\n").when(|text| !text.contains("{ ")),
    ],
    holes: &["%", "\"%\"", "%) ;;", "%\n"],
    traits: Traits { soft_semicolons: true, ..Traits::PLAIN },
};

#[cfg(feature = "powershell")]
pub(super) static POWERSHELL: Language = Language {
    id: "powershell",
    name: "PowerShell",
    aliases: &["pwsh", "ps1"],
    extensions: &["ps1", "psm1", "psd1"],
    file_names: &[],
    shebangs: &["pwsh"],
    grammar: || tree_sitter_powershell::LANGUAGE.into(),
    rungs: &[
        Rung::new("clause", "if ($x) {} ", "\n").only(&["elseif_clause", "else_clause"]),
        Rung::new("clause", "try {} ", "\n").only(&["catch_clause", "finally_clause"]),
        Rung::new("statement", "", "\n").statement(),
        Rung::new("member", "class Zq {\n", "\n}\n").statement(),
        Rung::new("pair", "$zq = @{ ", " }\n").only(&["hash_entry"]),
        Rung::new("expression", "$zq = ", "\n"),
    ],
    holes: &["$%", "%", "\"%\"", "% = 1"],
    traits: Traits {
        keywords_any_case: true,
        soft_semicolons: true,
        loose_leaves: &["command_argument_sep"],
        ..Traits::PLAIN
    },
};

#[cfg(feature = "make")]
pub(super) static MAKE: Language = Language {
    id: "make",
    name: "Makefile",
    aliases: &["makefile"],
    extensions: &["mk", "mak"],
    file_names: &["Makefile", "makefile", "GNUmakefile", "Makefile.*"],
    shebangs: &["make"],
    grammar: || tree_sitter_make::LANGUAGE.into(),
    rungs: &[Rung::new("rule", "", "\n").statement(), Rung::new("recipe line", "zq:\n\t", "\n").statement()],
    holes: &["%"],
    traits: Traits::PLAIN,
};

#[cfg(feature = "cmake")]
pub(super) static CMAKE: Language = Language {
    id: "cmake",
    name: "CMake",
    aliases: &[],
    extensions: &["cmake"],
    file_names: &["CMakeLists.txt"],
    shebangs: &["cmake"],
    grammar: || tree_sitter_cmake::LANGUAGE.into(),
    rungs: &[Rung::new("command", "", "\n").statement()],
    holes: &["%", "%()", "\"%\""],
    traits: Traits { keywords_any_case: true, ..Traits::PLAIN },
};

#[cfg(feature = "dockerfile")]
pub(super) static DOCKERFILE: Language = Language {
    id: "dockerfile",
    name: "Dockerfile",
    aliases: &["docker", "containerfile"],
    extensions: &["dockerfile", "containerfile"],
    file_names: &["Dockerfile", "Containerfile", "Dockerfile.*", "Containerfile.*"],
    shebangs: &[],
    grammar: || tree_sitter_containerfile::LANGUAGE.into(),
    rungs: &[Rung::new("instruction", "", "\n").statement()],
    holes: &["%", "RUN %", "\"%\"", "1"],
    traits: Traits {
        keywords_any_case: true,
        // Without its quotes a word in brackets is shell.
        twins: &[Twin::new("\"%\"", |place| filled(place, '[', ']').is_some())],
        ..Traits::PLAIN
    },
};
