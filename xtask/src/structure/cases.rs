const TRAILING: &str = "ast-grep passes over what follows the last part of the pattern (an `else`, a second module, the rest of a chain), and a rewrite would delete it";
const NOT_UTF8: &str = "ast-grep leaves out files that are not UTF-8 without a word";
const COMMENT: &str = "ast-grep finds nothing where a comment stands before a part of several tokens";
const EQUALITY: &str = "ast-grep compares a repeated variable by structure, so that different strings can be equal to it; and it passes over the rest of a chain";
const WILDCARD: &str = "`_` in a Rust pattern has no named node, and ast-grep's `$A` takes named nodes only";
const TYPES: &str = "Haft takes a type for the `$A` of `sizeof($A)` as well as a value; the rule is about values alone";
const SEVERAL: &str = "Haft reads the pattern as a member, an interface member or a parameter, which are searched together; the rule is about interface members alone";

const CASES: &[Case] = &[
    case("python", "$X.append($A)"),
    case("python", "isinstance($A, str)"),
    case("python", "socket.socketpair($$$A)"),
    case("python", "$A == $A").peer(EQUALITY),
    case("python", "if $A: $$$B").haft(NOT_UTF8).peer(TRAILING),
    case("python", "import $A").haft(NOT_UTF8).peer(TRAILING),
    case("python", "raise $E").peer(TRAILING),
    case("python", "$F($A, key=$V)").haft(COMMENT),
    case("rust", "$X.unwrap()"),
    case("rust", "Vec::with_capacity($A)"),
    case("rust", "Some($A) => $B")
        .within("fn f() { match x { Some($A) => $B } }", "match_arm")
        .haft(WILDCARD)
        .peer(TRAILING),
    case("rust", "if let Some($A) = $B { $$$C }").haft(WILDCARD).peer(TRAILING),
    case("c", "memcpy($$$A)").within("void f() { memcpy($$$A); }", "call_expression"),
    case("c", "if ($A) return $B;")
        .within("void f() { if ($A) return $B; }", "if_statement")
        .haft(COMMENT)
        .peer(TRAILING),
    case("c", "sizeof($A)").within("int x = sizeof($A);", "sizeof_expression").haft(TYPES),
    case("javascript", "console.log($$$A)"),
    case("javascript", "if ($A) { $$$B }").haft(COMMENT).peer(TRAILING),
    case("javascript", "$A === undefined"),
    case("typescript", "$A as unknown"),
    case("typescript", "$A?: $T").within("interface I { $A?: $T }", "property_signature").haft(SEVERAL),
];
