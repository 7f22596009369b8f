//! The part of a C or C++ file that compilers take out and keep compiled.

/// The comments and directives at the top of a file, up to the first other word; what is included there can be seen from nothing else.
pub(super) fn preamble(text: &str) -> &str {
    let mut end = 0;
    let mut rest = text;
    loop {
        let next = rest.trim_start();
        let after = if next.starts_with('#') {
            after_directive(next)
        } else if let Some(comment) = next.strip_prefix("//") {
            comment.split_once('\n').map_or("", |(_, after)| after)
        } else if let Some(comment) = next.strip_prefix("/*") {
            comment.split_once("*/").map_or("", |(_, after)| after)
        } else {
            return &text[..end];
        };
        end = text.len() - after.len();
        rest = after;
    }
}

/// What comes after the line of a directive, which goes on after a backslash and in a comment.
fn after_directive(text: &str) -> &str {
    let mut rest = text;
    loop {
        let line_end = rest.find('\n').unwrap_or(rest.len());
        let comment = rest.find("/*").filter(|at| *at < line_end);
        // What stands in a `//` comment opens none.
        if let Some(comment) = comment.filter(|at| !rest[..*at].contains("//")) {
            rest = rest[comment + 2..].split_once("*/").map_or("", |(_, after)| after);
            continue;
        }
        let line = rest[..line_end].trim_end_matches('\r');
        rest = rest.get(line_end + 1..).unwrap_or_default();
        if rest.is_empty() || !line.ends_with('\\') {
            return rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::preamble;
    use pretty_assertions::assert_eq;

    #[test]
    fn directives_and_comments_at_the_top_are_the_preamble() {
        let cases = [
            ("", ""),
            ("int a;\n#include <a>\n", ""),
            ("#include <a>\n\nint a;\n", "#include <a>\n"),
            ("\n  # include <a>\r\n// b\r\nint a;", "\n  # include <a>\r\n// b\r\n"),
            ("/* l */ #define A 1 \\\n  2\nint a;", "/* l */ #define A 1 \\\n  2\n"),
            ("#define A /* \n #include <no>\n */ 1\nint a;", "#define A /* \n #include <no>\n */ 1\n"),
            ("#if 1 // a /* b\n#endif\nint a; /* */", "#if 1 // a /* b\n#endif\n"),
            ("#pragma once", "#pragma once"),
            ("/* open", "/* open"),
            ("#include \"é.h\"\nextern \"C\" {\n#include <b>\n}", "#include \"é.h\"\n"),
        ];
        for (text, expected) in cases {
            assert_eq!(preamble(text), expected, "{text:?}");
        }
    }
}
