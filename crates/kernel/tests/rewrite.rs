//! The rewriter: what it makes of magics, what it leaves alone, and IPython's transformer as its oracle.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "tests look at the machine by hand")]

mod support;

use std::{
    io::Write,
    process::{Command, Stdio},
};

use haft_kernel::rewrite::{javascript, python};
use pretty_assertions::assert_eq;
use proptest::prelude::*;

fn code(source: &str) -> String {
    python(source).unwrap_or_else(|error| panic!("{source}: {error}")).code
}

#[test]
fn magics_become_calls() {
    for (source, expected) in [
        ("%cd src", "get_ipython().run_line_magic('cd', 'src')"),
        ("%pip install 'a>1' b", "get_ipython().run_line_magic('pip', \"install 'a>1' b\")"),
        ("!ls -l", "get_ipython().system('ls -l')"),
        ("  \n!ls", "  \nget_ipython().system('ls')"),
        ("!! ls", "get_ipython().getoutput('ls')"),
        ("x = !ls | wc", "x = get_ipython().getoutput('ls | wc')"),
        ("d[\"k\"] = !pwd", "d[\"k\"] = get_ipython().getoutput('pwd')"),
        ("a, b = !echo {c}", "a, b = get_ipython().getoutput('echo {c}')"),
        ("x: list = !ls", "x: list = get_ipython().getoutput('ls')"),
        ("%pwd;", "get_ipython().run_line_magic('pwd', '')"),
        ("p = %pwd", "p = get_ipython().run_line_magic('pwd', '')"),
        ("x=1; !ls", "x=1; get_ipython().system('ls')"),
        ("if x: !ls", "if x: get_ipython().system('ls')"),
        (
            "if x:\n    %cd a\nelse: %cd b",
            "if x:\n    get_ipython().run_line_magic('cd', 'a')\nelse: get_ipython().run_line_magic('cd', 'b')",
        ),
        ("for f in x: y = !wc {f}", "for f in x: y = get_ipython().getoutput('wc {f}')"),
        ("!ls \\\n  -l \\\n  -a\nx", "get_ipython().system('ls    -l    -a')\n\n\nx"),
        ("f?", "get_ipython().run_line_magic('pinfo', 'f')"),
        ("a.b??", "get_ipython().run_line_magic('pinfo2', 'a.b')"),
        ("?a.b", "get_ipython().run_line_magic('pinfo', 'a.b')"),
        ("os.*dir*?", "get_ipython().run_line_magic('psearch', 'os.*dir*')"),
        ("%pip?", "get_ipython().run_line_magic('pinfo', '%pip')"),
        ("%time !ls", "get_ipython().run_line_magic('time', \"get_ipython().system('ls')\")"),
        ("%%bash\necho 'x'\n!no", "get_ipython().run_cell_magic('bash', '', \"echo 'x'\\n!no\\n\")\n"),
        (
            "# a comment\n\n%%bash -e\nls",
            "# a comment\n\nget_ipython().run_cell_magic('bash', '-e', 'ls\\n')\n",
        ),
        (
            "%%time\n!ls\n'''\n!no'''",
            "get_ipython().run_cell_magic('time', '', \"get_ipython().system('ls')\\n'''\\n!no'''\\n\")\n",
        ),
        (">>> x = 1\n>>> if x:\n...     y\n", "x = 1\nif x:\n    y\n"),
        ("In [1]: %cd a\n   ...: x", "get_ipython().run_line_magic('cd', 'a')\nx"),
        ("    x = 1\n    %cd a", "x = 1\nget_ipython().run_line_magic('cd', 'a')"),
        ("x = 1\r\n%cd a\r\n", "x = 1\nget_ipython().run_line_magic('cd', 'a')\n"),
    ] {
        assert_eq!((source, code(source).as_str()), (source, expected));
    }
}

/// Plain Python in which something looks like a magic.
const PLAIN: &[&str] = &[
    "s = '''\n!ls\n%cd x\n%%bash\nf?\n'''",
    "s = \"\"\"a\\\"\"\"\n!ls\n\"\"\"",
    "r'''\\\n%cd\n'''",
    "b'!ls'",
    "Rb\"%cd\"",
    "x = (10\n%3)",
    "x = [\n!a\n]",
    "x = 10 \\\n%3",
    "x = 10 \\\n  % 3",
    "f'{x!r}'",
    "f'{x!r:>{w}}' + f\"{d['%cd']}\"",
    "f'''{\n!x\n}'''",
    "f'{{!ls}}'",
    "f'''\n!ls {x}\n%cd\n'''",
    "f\"{x:%Y-%m-%d}\"",
    "f'{f\"{a!r}\"}'",
    "f\"{x[\"!\"]}\"",
    "t'{x!s}'",
    "a != b",
    "if a != b: c",
    "assert x, '%'",
    "x %= 3",
    "x = y % z",
    "x = y %z",
    "print('%d' % x)",
    "# %cd",
    "x  # !ls?",
    "lambda x: x % 2",
    "{'a': b % c}",
    "x[1:y % 2]",
    "def f(a=1, *, b: int = 2) -> int: return a % b",
    "x == -1",
    "x <= y",
    "(y := 5)",
    "if (n := 3) % 2: pass",
    "class A: x = 1",
    "async def f():\n    await g()",
    "try: x\nexcept E: y",
    "match x:\n    case {'a': 1}: pass",
    "x = '\\''; y = \"\\\\\"",
    "'''unterminated\n!ls",
    "x = 'unterminated\ny = 2",
    "é = 'ü' # ñ",
    "x = 1 if y else 2",
    "@decorator\ndef f(): pass",
    "print(\"?\", '!')",
];

#[test]
fn plain_python_is_left_as_it_is() {
    for source in PLAIN {
        assert_eq!((*source, code(source)), (*source, (*source).to_owned()));
    }
}

#[test]
fn a_semicolon_at_the_end_is_quiet_where_it_is_the_end() {
    for (source, quiet) in [
        ("x;", true),
        ("x; # why\n\n", true),
        ("x", false),
        ("';'", false),
        ("x # ;", false),
        ("x;\ny", false),
        ("%time f();", true),
        ("!ls;", false),
    ] {
        assert_eq!((source, python(source).unwrap().quiet), (source, quiet));
    }
}

#[test]
fn what_cannot_be_rewritten_is_told_with_its_line() {
    for (source, expected) in [
        (
            "x\n%pipp install",
            "Line 2: there is no magic `%pipp`; the nearest is `%pip`. Nothing of the cell was run.",
        ),
        (
            "%%bsh\nls",
            "Line 1: there is no cell magic `%%bsh`; the nearest is `%%bash`. Nothing of the cell was run.",
        ),
        (
            "x = 1\n%%bash\nls",
            "Line 2: `%%bash` takes the whole cell and stands on its first line; code before it belongs in a call of its own. Nothing of the cell was run.",
        ),
        (
            "%%time\nx\n%nope",
            "Line 3: there is no magic `%nope`; the nearest is `%node`. Nothing of the cell was run.",
        ),
        ("!", "Line 1: `!` needs a command. Nothing of the cell was run."),
        ("x = !", "Line 1: `!` needs a command. Nothing of the cell was run."),
    ] {
        let error = python(source).unwrap_err().to_string();
        if source.contains("nope") {
            assert!(error.starts_with("Line 3: there is no magic `%nope`; the nearest is `%"), "{error}");
        } else {
            assert_eq!((source, error.as_str()), (source, expected));
        }
    }
}

#[test]
fn shell_commands_are_told_to_guardrails() {
    let commands = python("!rm -r x\ny = !git push\n%pip install z\n'''!no'''\nif a: !ls").unwrap().commands;
    assert_eq!(commands, ["rm -r x", "git push", "pip install z", "ls"]);
    assert_eq!(python("%%bash\nrm x\n").unwrap().commands, ["rm x\n"]);
    assert_eq!(python("%%capture\n!rm x\n").unwrap().commands, ["rm x"]);
}

#[test]
fn imports_become_calls_and_nothing_else_changes() {
    for (source, expected) in [
        ("import 'x'", "await __haft_import.names('x', [], undefined);"),
        (
            "import d from \"x\";",
            "const {\"default\": d} = await __haft_import.names(\"x\", [\"default\"], undefined);",
        ),
        (
            "import {a, b as c} from 'x'",
            "const {a, \"b\": c} = await __haft_import.names('x', [\"a\", \"b\"], undefined);",
        ),
        ("import * as ns from 'x'", "const ns = await __haft_import.names('x', [], undefined);"),
        (
            "import d, * as ns from 'x'",
            "const ns = await __haft_import.names('x', [\"default\"], undefined), {\"default\": d} = ns;",
        ),
        (
            "import {\n  a,\n} from 'x'\nb",
            "const {a} = await __haft_import.names('x', [\"a\"], undefined);\n\n\nb",
        ),
        (
            "import j from './a.json' with {type: 'json'}",
            "const {\"default\": j} = await __haft_import.names('./a.json', [\"default\"], {with: {type: 'json'}});",
        ),
        ("const m = await import('x')", "const m = await __haft_import('x')"),
        ("f(() => import(`x${y}`))", "f(() => __haft_import(`x${y}`))"),
        ("import.meta.url", "__haft_import.meta.url"),
        ("[...import.meta.x]", "[...__haft_import.meta.x]"),
        ("'import x from \"y\"'", "'import x from \"y\"'"),
        ("`import x from 'y' ${import('z')} import(`", "`import x from 'y' ${__haft_import('z')} import(`"),
        ("// import x from 'y'\n/* import('z') */", "// import x from 'y'\n/* import('z') */"),
        ("/import('x')/.test(s)", "/import('x')/.test(s)"),
        ("a / import_x / b", "a / import_x / b"),
        ("x.import('y'); ({import: 1})", "x.import('y'); ({import: 1})"),
        ("/[/'\"]/; import 'x'", "/[/'\"]/; await __haft_import.names('x', [], undefined);"),
        ("import x", "import x"),
    ] {
        assert_eq!((source, javascript(source).unwrap().code.as_str()), (source, expected));
    }
}

/// Statements that cells of the differential test are put together from.
const STATEMENTS: &[&str] = &[
    "%cd src",
    "%time f(1)",
    "%timeit -n 3 f(1)",
    "%pip install 'x' \"y\"",
    "%env A=1",
    "!echo 'a' \"b\" | wc -l",
    "!ls \\\n  -l",
    "!!ls -l",
    "x = !ls -l",
    "x = !ls \\\n -l",
    "a, b = !echo {x}",
    "d['k'] = !pwd",
    "x = %pwd",
    "f?",
    "a.b??",
    "?f",
    "??f",
    "if x:\n    !ls\n    y = !pwd\n    %cd a",
    "def f():\n    %cd a\n    return 1",
    "x = '''\n%cd\n''' # !ls",
    "print(f'''{x}\n!ls {y!r}\n''')",
];

const ORACLE: &str = r"
import json, sys, warnings
warnings.simplefilter('ignore')
from IPython.core.inputtransformer2 import TransformerManager
cells = json.load(sys.stdin)
json.dump([TransformerManager().transform_cell(cell) for cell in cells], sys.stdout)
";

/// What IPython makes of cells; `None` where it is not there.
fn oracle(cells: &[String]) -> Option<Vec<String>> {
    let place = support::python_with_packages()?;
    let mut child = Command::new(place.join("bin/python"))
        .args(["-c", ORACLE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&serde_json::to_vec(cells).unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Empty lines apart, which are ours where lines were joined.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect()
}

/// A generator that needs no seed from outside, so that a failure is the same again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

/// Cells that both have an opinion on: everything but what stands in [`DIFFERENCES`].
fn cells() -> Vec<String> {
    let parses_everywhere = |source: &&&str| {
        // Unterminated strings and lines that only newer Pythons have leave IPython's tokenizer without an opinion.
        !source.contains("unterminated")
            && !source.contains("[\"!\"]")
            && !source.contains("x = [\n!a")
            && !source.contains("f'''{\n!x")
            && !source.starts_with("t'")
    };
    let plain: Vec<&str> = PLAIN.iter().filter(parses_everywhere).copied().collect();
    let mut cells: Vec<String> = plain.iter().chain(STATEMENTS).map(|source| (*source).to_owned()).collect();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for _ in 0..1500 {
        let mut cell = Vec::new();
        for _ in 0..=dice.roll(6) {
            let pool = if dice.roll(2) == 0 { plain.as_slice() } else { STATEMENTS };
            cell.push(pool[dice.roll(pool.len())]);
            if dice.roll(5) == 0 {
                cell.push(["", "# %cd", "    ", "#"][dice.roll(4)]);
            }
        }
        cells.push(cell.join("\n"));
    }
    cells
}

#[test]
fn ipython_makes_the_same_of_cells() {
    let cells = cells();
    let Some(theirs) = oracle(&cells) else { return };
    let mut differ = Vec::new();
    for (cell, theirs) in cells.iter().zip(&theirs) {
        let ours = code(cell);
        if lines(&ours) != lines(theirs) {
            differ.push(format!("--- cell\n{cell}\n--- ours\n{ours}\n--- IPython\n{theirs}"));
        }
    }
    assert!(differ.is_empty(), "{} of {} differ, such as\n{}", differ.len(), cells.len(), differ[0]);
}

/// Where Haft does something else than IPython, and why.
const DIFFERENCES: &[(&str, &str)] = &[
    ("x=1; !ls", "IPython leaves a syntax error; a statement starts behind `;` too"),
    ("if x: !ls", "IPython leaves a syntax error; a statement starts behind the `:` of a block too"),
    (
        "# note\n%%bash\nls",
        "IPython makes a line magic of it, which does not exist; comments before a cell magic change nothing",
    ),
    ("%%time\n!ls", "IPython rewrites the body when it runs it; here all is rewritten before anything runs"),
    ("x = f?", "IPython drops the assignment and shows help; here Python says that it is no syntax"),
    ("/f 1", "IPython's automatic calls are not there: they guess"),
    (",f a b", "IPython's automatic quoting is not there either"),
    ("x = !!ls", "IPython runs `!ls` in the shell; here it is the same as one `!`"),
];

#[test]
fn differences_from_ipython_are_these() {
    let cells: Vec<String> = DIFFERENCES.iter().map(|(cell, _)| (*cell).to_owned()).collect();
    let Some(theirs) = oracle(&cells) else { return };
    for ((cell, why), theirs) in DIFFERENCES.iter().zip(&theirs) {
        let ours = code(cell);
        assert!(lines(&ours) != lines(theirs), "no longer different: {cell} ({why})\n{ours}");
    }
}

#[test]
fn unknown_magics_are_refused_where_ipython_would_run_half_the_cell() {
    assert!(python("x = 1\n%unknown y").is_err());
}

proptest! {
    #[test]
    fn no_text_makes_the_scanners_panic(source in "(?s).{0,80}") {
        let _ = python(&source);
        let _ = javascript(&source);
    }

    #[test]
    fn awkward_text_does_not_either(pieces in prop::collection::vec(prop::sample::select(vec![
        "'", "\"", "'''", "\"\"\"", "f'", "rb\"", "{", "}", "(", ")", "\\", "\n", "!", "%", "%%", "?", "#", "é", ";", ":", "=", "x", " ", "`", "${",
        "/", "import", "*", "//", "/*", "*/", "from", "\r\n", "{{", "!r", "\u{feff}",
    ]), 0..40)) {
        let source = pieces.concat();
        let _ = python(&source);
        let _ = javascript(&source);
    }

    #[test]
    fn statements_keep_their_lines(picks in prop::collection::vec((any::<bool>(), 0_usize..100), 1..8)) {
        let mut source = String::new();
        let mut starts = Vec::new();
        for (plain, n) in picks {
            let pool = if plain { PLAIN } else { STATEMENTS };
            let statement = pool[n % pool.len()];
            if statement.contains("unterminated") { continue; }
            starts.push((source.matches('\n').count(), plain.then_some(statement)));
            source.push_str(statement);
            source.push('\n');
        }
        let rewritten = code(&source);
        prop_assert_eq!(rewritten.matches('\n').count(), source.matches('\n').count());
        let lines: Vec<&str> = rewritten.split('\n').collect();
        for (start, plain) in starts {
            if let Some(plain) = plain {
                let found = lines[start..start + plain.split('\n').count()].join("\n");
                prop_assert_eq!(found, plain);
            }
        }
    }
}
