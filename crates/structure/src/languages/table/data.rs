//! Data, configuration, interfaces and queries.

use crate::languages::{Language, Lead, Rung, Traits};

#[cfg(feature = "json")]
pub(super) static JSON: Language = Language {
    id: "json",
    name: "JSON",
    aliases: &["jsonc"],
    extensions: &["json", "jsonc", "json5", "geojson", "webmanifest", "ipynb", "code-workspace"],
    file_names: &[".babelrc", ".eslintrc", ".prettierrc", "composer.lock", "Pipfile.lock"],
    shebangs: &[],
    grammar: || tree_sitter_json::LANGUAGE.into(),
    rungs: &[Rung::new("pair", "{", "}").only(&["pair"]), Rung::new("value", "", "\n")],
    holes: &["\"%\"", "%", "1", "\"%\": 1"],
    traits: Traits::PLAIN,
};

#[cfg(feature = "yaml")]
pub(super) static YAML: Language = Language {
    id: "yaml",
    name: "YAML",
    aliases: &["yml"],
    extensions: &["yaml", "yml"],
    file_names: &[".clang-format", ".clang-tidy"],
    shebangs: &[],
    grammar: || tree_sitter_yaml::LANGUAGE.into(),
    rungs: &[
        Rung::new("node", "", "\n").statement(),
        Rung::new("flow pair", "{", "}\n").only(&["flow_pair"]),
    ],
    holes: &["%", "%: 1", "- %"],
    // `- $$$A` is all items of a list.
    traits: Traits { leads: &[Lead { word: "-", form: "- %", before: &['\n'] }], ..Traits::PLAIN },
};

#[cfg(feature = "toml")]
pub(super) static TOML: Language = Language {
    id: "toml",
    name: "TOML",
    aliases: &[],
    extensions: &["toml"],
    file_names: &["Cargo.lock", "poetry.lock", "uv.lock", "Pipfile", "pdm.lock"],
    shebangs: &[],
    grammar: || tree_sitter_toml_ng::LANGUAGE.into(),
    rungs: &[Rung::new("pair", "", "\n").statement(), Rung::new("value", "zq = ", "\n")],
    holes: &["%", "\"%\"", "% = 1", "1"],
    traits: Traits::PLAIN,
};

#[cfg(feature = "xml")]
pub(super) static XML: Language = Language {
    id: "xml",
    name: "XML",
    aliases: &["svg"],
    extensions: &[
        "xml",
        "svg",
        "xsd",
        "xsl",
        "xslt",
        "plist",
        "csproj",
        "fsproj",
        "vbproj",
        "props",
        "targets",
        "xaml",
        "rss",
        "pom",
        "wsdl",
        "storyboard",
        "xib",
        "arb",
    ],
    file_names: &[],
    shebangs: &[],
    grammar: || tree_sitter_xml::LANGUAGE_XML.into(),
    rungs: &[
        Rung::new("attribute", "<zq ", "/>")
            .only(&["Attribute"])
            .when(|text| !text.trim_start().starts_with('<')),
        Rung::new("element", "<zq>", "</zq>").statement(),
        Rung::new("document", "", "\n").statement(),
    ],
    holes: &["%", "\"%\"", "<p>%</p>"],
    traits: Traits { loose_leaves: &["CharData"], ..Traits::PLAIN },
};

#[cfg(feature = "xml")]
pub(super) static DTD: Language = Language {
    id: "dtd",
    name: "DTD",
    aliases: &[],
    extensions: &["dtd", "ent"],
    file_names: &[],
    shebangs: &[],
    grammar: || tree_sitter_xml::LANGUAGE_DTD.into(),
    rungs: &[Rung::new("declaration", "", "\n").statement()],
    holes: &["%", "\"%\""],
    traits: Traits::PLAIN,
};

#[cfg(feature = "hcl")]
pub(super) static HCL: Language = Language {
    id: "hcl",
    name: "HCL",
    aliases: &["terraform", "tf"],
    extensions: &["hcl", "tf", "tfvars", "nomad"],
    file_names: &[".terraform.lock.hcl"],
    shebangs: &[],
    grammar: || tree_sitter_hcl::LANGUAGE.into(),
    rungs: &[
        Rung::new("body", "", "\n").statement().group("assignment"),
        Rung::new("expression", "zq = ", "\n"),
        Rung::new("element", "zq = {", "}\n").only(&["object_elem"]).group("assignment"),
    ],
    holes: &["%", "% = 1", "\"%\"", "% {}"],
    traits: Traits::PLAIN,
};

#[cfg(feature = "nix")]
pub(super) static NIX: Language = Language {
    id: "nix",
    name: "Nix",
    aliases: &[],
    extensions: &["nix"],
    file_names: &[],
    shebangs: &["nix-shell"],
    grammar: || tree_sitter_nix::LANGUAGE.into(),
    rungs: &[
        Rung::new("expression", "", "\n"),
        Rung::new("binding", "{\n", "\n}\n").only(&["binding", "inherit", "inherit_from"]).statement(),
        Rung::new("binding", "{\n", ";\n}\n")
            .only(&["binding", "inherit", "inherit_from"])
            .statement()
            .completes(),
        Rung::new("formal", "{ ", " }: 1\n").only(&["formal"]),
    ],
    holes: &["%", "% = 1;", "\"%\""],
    traits: Traits::PLAIN,
};

#[cfg(feature = "sql")]
pub(super) static SQL: Language = Language {
    id: "sql",
    name: "SQL",
    aliases: &[],
    extensions: &["sql", "ddl", "dml", "psql"],
    file_names: &[],
    shebangs: &[],
    grammar: || tree_sitter_sequel::LANGUAGE.into(),
    rungs: &[
        Rung::new("statement", "", "\n").statement(),
        Rung::new("expression", "SELECT a FROM b WHERE ", ";\n"),
        Rung::new("clause", "SELECT a FROM b ", ";\n"),
        Rung::new("term", "SELECT ", " FROM b;\n"),
        // Last, since it takes nearly every two words for a name and its type.
        Rung::new("column definition", "CREATE TABLE zq (", ");\n")
            .only(&["column_definition", "constraint"]),
    ],
    holes: &["%", "'%'", "1", "% = 1"],
    traits: Traits { keywords_any_case: true, ..Traits::PLAIN },
};

#[cfg(feature = "graphql")]
pub(super) static GRAPHQL: Language = Language {
    id: "graphql",
    name: "GraphQL",
    aliases: &["gql"],
    extensions: &["graphql", "gql", "graphqls"],
    file_names: &[],
    shebangs: &[],
    grammar: || tree_sitter_graphql::LANGUAGE.into(),
    rungs: &[
        Rung::new("field definition", "type Zq {\n", "\n}\n").only(&["field_definition"]).statement(),
        Rung::new("selection", "query {\n", "\n}\n")
            .only(&["selection", "field", "fragment_spread", "inline_fragment"])
            .statement(),
        Rung::new("definition", "", "\n").statement(),
        Rung::new("argument", "query { zq(", ") }\n").only(&["argument"]),
        Rung::new("enum value", "enum Zq {\n", "\n}\n").only(&["enum_value_definition"]).statement(),
        Rung::new("directive", "type Zq ", " { a: Int }\n").only(&["directive"]),
    ],
    holes: &["%", "%: Int", "\"%\"", "1"],
    traits: Traits::PLAIN,
};

#[cfg(feature = "proto")]
pub(super) static PROTO: Language = Language {
    id: "proto",
    name: "Protocol Buffers",
    aliases: &["protobuf"],
    extensions: &["proto"],
    file_names: &[],
    shebangs: &[],
    grammar: || tree_sitter_proto::LANGUAGE.into(),
    rungs: &[
        Rung::new("field", "syntax = \"proto3\";\nmessage Zq {\n", "\n}\n")
            .only(&["field", "map_field", "oneof", "reserved"])
            .statement(),
        Rung::new("field", "syntax = \"proto3\";\nmessage Zq {\n", ";\n}\n")
            .only(&["field", "map_field"])
            .statement()
            .completes(),
        Rung::new("enum field", "syntax = \"proto3\";\nenum Zq {\n", "\n}\n")
            .only(&["enum_field"])
            .statement(),
        Rung::new("declaration", "syntax = \"proto3\";\n", "\n").statement(),
        Rung::new("rpc", "syntax = \"proto3\";\nservice Zq {\n", "\n}\n").only(&["rpc"]).statement(),
        Rung::new("file", "", "\n").statement(),
    ],
    holes: &["%", "int32 % = 1;", "1", "\"%\"", "% = 1;", "rpc %(Zq) returns (Zq);"],
    traits: Traits::PLAIN,
};

#[cfg(feature = "markdown")]
pub(super) static MARKDOWN: Language = Language {
    id: "markdown",
    name: "Markdown",
    aliases: &["md"],
    extensions: &["md", "markdown", "mdx", "mkd"],
    file_names: &[],
    shebangs: &[],
    grammar: || tree_sitter_md::LANGUAGE.into(),
    rungs: &[Rung::new("block", "", "\n").statement()],
    holes: &["%"],
    traits: Traits::PLAIN,
};
