//! Whether a new name can be one in its language (SPEC N2). Servers do not check: four of them have been seen to return edits for `9bad name`.

use crate::limits::NAME_CHARS;

/// What a language allows in a name.
struct Rules {
    /// LSP language ids.
    languages: &'static [&'static str],
    /// Characters beside letters, digits and `_`, anywhere.
    extra: &'static str,
    /// Prefixes that belong to the name in this language (`#private`, `$php`, `'lifetime`, `r#raw`), taken away before the rest is checked.
    prefixes: &'static [&'static str],
    /// Characters that may stand at the end (`empty?`, `save!`, `x'`).
    suffixes: &'static str,
    /// Words that are no names.
    reserved: &'static [&'static str],
}

const TABLE: &[Rules] = &[
    Rules {
        languages: &["python"],
        extra: "",
        prefixes: &[],
        suffixes: "",
        reserved: &[
            "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
            "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in",
            "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with",
            "yield",
        ],
    },
    Rules {
        languages: &["javascript", "javascriptreact", "typescript", "typescriptreact", "vue", "svelte"],
        extra: "$",
        prefixes: &["#"],
        suffixes: "",
        reserved: &[
            "await",
            "break",
            "case",
            "catch",
            "class",
            "const",
            "continue",
            "debugger",
            "default",
            "delete",
            "do",
            "else",
            "enum",
            "export",
            "extends",
            "false",
            "finally",
            "for",
            "function",
            "if",
            "import",
            "in",
            "instanceof",
            "let",
            "new",
            "null",
            "return",
            "static",
            "super",
            "switch",
            "this",
            "throw",
            "true",
            "try",
            "typeof",
            "var",
            "void",
            "while",
            "with",
            "yield",
        ],
    },
    Rules {
        languages: &["rust"],
        extra: "",
        prefixes: &["r#", "'"],
        suffixes: "",
        reserved: &[
            "_", "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue",
            "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if",
            "impl", "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub",
            "ref", "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
            "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
        ],
    },
    Rules {
        languages: &["go"],
        extra: "",
        prefixes: &[],
        suffixes: "",
        reserved: &[
            "_",
            "break",
            "case",
            "chan",
            "const",
            "continue",
            "default",
            "defer",
            "else",
            "fallthrough",
            "for",
            "func",
            "go",
            "goto",
            "if",
            "import",
            "interface",
            "map",
            "package",
            "range",
            "return",
            "select",
            "struct",
            "switch",
            "type",
            "var",
        ],
    },
    Rules {
        languages: &["c", "cpp", "objective-c", "objective-cpp", "cuda-cpp"],
        extra: "$",
        prefixes: &["~"],
        suffixes: "",
        reserved: &[
            "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
            "extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "return", "short",
            "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void",
            "volatile", "while",
        ],
    },
    Rules {
        languages: &["java", "kotlin", "csharp", "scala", "dart", "swift", "groovy"],
        extra: "$",
        prefixes: &["@"],
        suffixes: "",
        reserved: &[
            "break", "case", "class", "continue", "default", "do", "else", "enum", "false", "for", "if",
            "in", "is", "new", "null", "return", "super", "switch", "this", "throw", "true", "try", "var",
            "void", "while",
        ],
    },
    Rules {
        languages: &["php"],
        extra: "",
        prefixes: &["$"],
        suffixes: "",
        reserved: &["this", "class", "function", "return", "if", "else", "while", "for", "foreach", "new"],
    },
    Rules {
        languages: &["ruby", "elixir"],
        extra: "",
        prefixes: &["@@", "@", "$", ":"],
        suffixes: "?!",
        reserved: &[
            "class", "def", "do", "else", "end", "false", "if", "in", "module", "nil", "not", "or", "and",
            "self", "true", "while", "fn",
        ],
    },
    Rules {
        languages: &["haskell", "ocaml"],
        extra: "'",
        prefixes: &["`"],
        suffixes: "",
        reserved: &[
            "case", "class", "data", "do", "else", "if", "in", "let", "module", "of", "then", "type",
            "where", "with", "match", "fun",
        ],
    },
    Rules {
        languages: &["lua", "zig", "terraform", "shellscript"],
        extra: "",
        prefixes: &[],
        suffixes: "",
        reserved: &[
            "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "nil",
            "not", "or", "return", "then", "true", "while", "fi", "done", "case", "esac",
        ],
    },
];

/// Why `name` cannot be a name in the language with this LSP id, in words that follow "`name` ". `None` if nothing speaks against it. For a language that is
/// not in the table only what no language allows is refused. Letters are Unicode letters, which is a little more than some languages take.
pub(crate) fn why_not(language: &str, name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("is empty".into());
    }
    if name.chars().count() > NAME_CHARS {
        return Some(format!("has more than {NAME_CHARS} characters"));
    }
    if let Some(bad) = name.chars().find(|c| c.is_control() || c.is_whitespace()) {
        let what = match bad {
            '\n' | '\r' => "a line break".to_owned(),
            c if c.is_whitespace() => "white space".to_owned(),
            c => format!("the control character U+{:04X}", u32::from(c)),
        };
        return Some(format!("contains {what}"));
    }
    let rules = TABLE.iter().find(|rules| rules.languages.contains(&language))?;
    let mut rest = name;
    for prefix in rules.prefixes {
        if let Some(stripped) = rest.strip_prefix(prefix) {
            rest = stripped;
            break;
        }
    }
    let raw = rest.len() < name.len();
    if let Some(last) = rest.chars().next_back()
        && rules.suffixes.contains(last)
    {
        rest = &rest[..rest.len() - last.len_utf8()];
    }
    let Some(first) = rest.chars().next() else { return Some(format!("is no name in {language}")) };
    let fits = |c: char| c.is_alphabetic() || c == '_' || rules.extra.contains(c);
    if !fits(first) {
        return Some(format!("begins with `{first}`, with which no name in {language} begins"));
    }
    if let Some(bad) = rest.chars().find(|c| !fits(*c) && !c.is_alphanumeric()) {
        return Some(format!("contains `{bad}`, which no name in {language} can"));
    }
    if !raw && rules.reserved.contains(&rest) {
        return Some(format!("is a word of the language {language} itself"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_names_pass() {
        let good = [
            ("python", "größe_2"),
            ("typescript", "$store"),
            ("typescript", "#secret"),
            ("rust", "r#type"),
            ("rust", "'a"),
            ("go", "名前"),
            ("cpp", "~Widget"),
            ("ruby", "empty?"),
            ("haskell", "x'"),
            ("php", "$row"),
            ("css", "--main-color"),
            ("latex", "sec:intro"),
        ];
        for (language, name) in good {
            assert_eq!(why_not(language, name), None, "{language} {name}");
        }
    }

    #[test]
    fn bad_names_are_refused_in_words() {
        let bad = [
            ("typescript", ""),
            ("typescript", "9bad name"),
            ("typescript", "9bad"),
            ("typescript", "a-b"),
            ("typescript", "class"),
            ("python", "a\nb"),
            ("python", "lambda"),
            ("python", "$a"),
            ("rust", "fn"),
            ("rust", "a::b"),
            ("go", "func"),
            ("css", "a b"),
            ("unknown", "a\u{7}b"),
        ];
        let said: Vec<String> = bad
            .iter()
            .map(|(language, name)| format!("{name:?} {}", why_not(language, name).unwrap()))
            .collect();
        insta::assert_snapshot!(said.join("\n"));
    }
}
