//! Names for the numbers of the protocol.

/// The name of a symbol kind.
pub(super) fn symbol(kind: u64) -> &'static str {
    const NAMES: [&str; 26] = [
        "file",
        "module",
        "namespace",
        "package",
        "class",
        "method",
        "property",
        "field",
        "constructor",
        "enum",
        "interface",
        "function",
        "variable",
        "constant",
        "string",
        "number",
        "boolean",
        "array",
        "object",
        "key",
        "null",
        "enum member",
        "struct",
        "event",
        "operator",
        "type parameter",
    ];
    usize::try_from(kind).ok().and_then(|kind| NAMES.get(kind.checked_sub(1)?)).copied().unwrap_or("symbol")
}
