//! Bug hunts through the console alone: a sample program fails, and breakpoints, conditions, the stack, variables, expressions and steps
//! lead to the line that is wrong (SPEC section 5). And what is left of a session when Haft itself is killed: nothing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests; these look at the machine from outside"
)]

mod support;

use std::{
    io::BufReader,
    path::{Path, PathBuf},
    process::Stdio,
};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use support::{Console, World, wait_until};

/// The debugpy that `cargo xtask test` fetches.
fn debugpy() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let bin = target.join("provision/debugpy-1.8.22/bin");
    assert!(bin.join("python3").exists(), "{} is missing: run `cargo xtask test` once", bin.display());
    bin
}

struct Hunt {
    console: Console,
}

impl Hunt {
    fn begin(world: &World) -> Hunt {
        let path = std::env::var_os("PATH").unwrap();
        let path =
            std::env::join_paths(std::iter::once(debugpy()).chain(std::env::split_paths(&path))).unwrap();
        let mut command = world.haft(&["console", "--approve", "all"]);
        command.env("PATH", path);
        // The home of these tests is empty; toolchains and build caches are the machine's.
        for name in ["CARGO_HOME", "RUSTUP_HOME", "GOCACHE", "GOPATH"] {
            let value = std::env::var_os(name).or_else(|| {
                let home = PathBuf::from(std::env::var_os("HOME")?);
                let below = match name {
                    "CARGO_HOME" => ".cargo",
                    "RUSTUP_HOME" => ".rustup",
                    "GOCACHE" => ".cache/go-build",
                    _ => "go",
                };
                Some(home.join(below).into())
            });
            command.env(name, value.unwrap());
        }
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let console = Console {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
        };
        Hunt { console }
    }

    fn ask(&mut self, arguments: Value) -> Value {
        let answer = self.console.call("debug", arguments.clone());
        assert_eq!(answer["is_error"], false, "{arguments}: {}", answer["content"][0]["text"]);
        answer
    }

    /// Reason, file and line.
    fn stop(&mut self, arguments: Value) -> (String, String, u64) {
        let answer = self.ask(arguments);
        place(&answer)
    }

    fn value(&mut self, expression: &str) -> String {
        self.ask(json!({"op": "evaluate", "expression": expression}))["structured"]["result"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    fn end(self) {
        assert_eq!(self.console.end().0, Some(0));
    }
}

fn place(answer: &Value) -> (String, String, u64) {
    let stopped = &answer["structured"]["stopped"];
    let text = |name: &str| stopped[name].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("file"), stopped["line"].as_u64().unwrap_or_default())
}

fn local(answer: &Value, name: &str) -> String {
    answer["structured"]["variables"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|variable| variable["name"] == name)
        .unwrap_or_else(|| panic!("no {name}: {answer}"))["value"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn at(reason: &str, file: &str, line: u64) -> (String, String, u64) {
    (reason.into(), file.into(), line)
}

fn put(world: &World, name: &str, text: &str) {
    let path = world.project().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A discount that is taken off twice for the one customer who has two coupons of a kind.
const SHOP: &str = "\
class Cart:
    def __init__(self, coupons):
        self.coupons = coupons
        self.applied = []

    def discount(self, price):
        for coupon in self.coupons:
            kind, percent = coupon
            if coupon in self.applied:
                continue
            price -= price * percent // 100
            self.applied.append(kind)
        return price
";

const SHOP_TEST: &str = "\
import unittest
from shop import Cart

class Discounts(unittest.TestCase):
    def test_every_kind_counts_once(self):
        carts = [Cart([('new', 10)]), Cart([('new', 10), ('new', 10)])]
        self.assertEqual([cart.discount(100) for cart in carts], [90, 90])

if __name__ == '__main__':
    unittest.main()
";

#[test]
fn a_bug_in_python_is_found() {
    let world = World::new();
    put(&world, "requirements.txt", "");
    put(&world, "shop.py", SHOP);
    put(&world, "test_shop.py", SHOP_TEST);
    let mut hunt = Hunt::begin(&world);
    // The test fails.
    let answer = hunt.ask(json!({"op": "launch", "program": "-m unittest test_shop"}));
    assert_eq!(
        (&answer["structured"]["state"], &answer["structured"]["exit_code"]),
        (&json!("exited"), &json!(1))
    );
    let output = answer["structured"]["output"].as_str().unwrap();
    assert!(output.contains("[90, 81] != [90, 90]"), "{output}");
    // Why is the second coupon of a kind not left out? Stop where it is taken off, for the cart with two.
    let lines = json!([{"line": 11, "condition": "len(self.coupons) == 2 and self.applied"}]);
    hunt.ask(json!({"op": "breakpoints", "file": "shop.py", "lines": lines}));
    let stop = hunt.ask(json!({"op": "restart"}));
    assert_eq!(place(&stop), at("breakpoint", "shop.py", 11));
    assert_eq!((local(&stop, "price"), local(&stop, "coupon")), ("90".into(), "('new', 10)".into()));
    // `applied` holds kinds, and is asked for pairs.
    assert_eq!(hunt.value("self.applied"), "['new']");
    assert_eq!(
        (hunt.value("coupon in self.applied"), hunt.value("kind in self.applied")),
        ("False".into(), "True".into())
    );
    let stack = hunt.ask(json!({"op": "stack"}));
    assert_eq!(stack["structured"]["frames"][0]["name"], "discount");
    assert_eq!(hunt.stop(json!({"op": "step_over"})), at("step", "shop.py", 12));
    hunt.ask(json!({"op": "terminate"}));
    // With the condition put right the test passes.
    put(&world, "shop.py", &SHOP.replace("if coupon in self.applied", "if kind in self.applied"));
    hunt.ask(json!({"op": "breakpoints", "file": "shop.py", "lines": []}));
    let answer = hunt.ask(json!({"op": "restart"}));
    assert_eq!(answer["structured"]["exit_code"], 0, "{answer}");
    hunt.end();
}

/// The median of an even number of values is wrong, because a sort goes by text.
const MEDIAN: &str = "\
pub struct Series {
    pub name: String,
    pub values: Vec<i64>,
}

pub fn median(series: &Series) -> i64 {
    let mut sorted = series.values.clone();
    sorted.sort_by_key(|value| value.to_string());
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        return sorted[middle];
    }
    let (low, high) = (sorted[middle - 1], sorted[middle]);
    (low + high) / 2
}

#[test]
fn odd() {
    let series = Series { name: \"odd\".into(), values: vec![3, 1, 2] };
    assert_eq!(median(&series), 2);
}

#[test]
fn even() {
    let series = Series { name: \"even\".into(), values: vec![10, 9, 2, 3] };
    assert_eq!(median(&series), 6);
}
";

#[test]
fn a_bug_in_rust_is_found() {
    let world = World::new();
    put(
        &world,
        "Cargo.toml",
        "[package]\nname = \"median\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
    );
    put(&world, "src/lib.rs", MEDIAN);
    let mut hunt = Hunt::begin(&world);
    // The failing assertion stops the program where it stands, with its message.
    let stop = hunt.ask(json!({"op": "launch", "program": "median", "test": true, "args": ["even"]}));
    assert_eq!(place(&stop), at("panic", "src/lib.rs", 26), "{stop}");
    assert!(stop["structured"]["output"].as_str().unwrap().contains("left: 2"), "{stop}");
    // 2 instead of 6: which two are taken for the middle?
    let lines = json!([{"line": 14, "condition": "low < high"}]);
    hunt.ask(json!({"op": "breakpoints", "file": "src/lib.rs", "lines": lines}));
    let stop = hunt.ask(json!({"op": "restart"}));
    assert_eq!(place(&stop), at("breakpoint", "src/lib.rs", 14), "{stop}");
    assert_eq!((local(&stop, "low"), local(&stop, "high")), ("2".into(), "3".into()));
    // The sort is to blame: 10 comes first, as it does by text.
    let variables = stop["structured"]["variables"].as_array().unwrap();
    let sorted = variables.iter().find(|variable| variable["name"] == "sorted").unwrap();
    let elements = hunt.ask(json!({"op": "variables", "reference": sorted["reference"]}));
    let order: Vec<String> = (0..4).map(|at| local(&elements, &format!("[{at}]"))).collect();
    assert_eq!(order, ["10", "2", "3", "9"]);
    let stack = hunt.ask(json!({"op": "stack"}));
    assert_eq!(stack["structured"]["frames"][1]["name"], "median::even", "{stack}");
    assert_eq!(hunt.value("low + high"), "5");
    assert_eq!(hunt.stop(json!({"op": "step_over"})).0, "step");
    hunt.ask(json!({"op": "terminate"}));
    put(&world, "src/lib.rs", &MEDIAN.replace("sort_by_key(|value| value.to_string())", "sort()"));
    hunt.ask(json!({"op": "breakpoints", "file": "src/lib.rs", "lines": []}));
    let answer = hunt.ask(json!({"op": "restart"}));
    assert_eq!(answer["structured"]["exit_code"], 0, "{answer}");
    hunt.end();
}

/// A queue gives a job to nobody when it wraps around.
const RING: &str = "\
package ring

type Ring struct {
\titems [4]string
\thead  int
\tcount int
}

func (r *Ring) Push(item string) bool {
\tif r.count == len(r.items) {
\t\treturn false
\t}
\tr.items[(r.head+r.count)%len(r.items)] = item
\tr.count++
\treturn true
}

func (r *Ring) Pop() string {
\titem := r.items[r.head]
\tr.head = (r.head + 1) % (len(r.items) - 1)
\tr.count--
\treturn item
}
";

const RING_TEST: &str = "\
package ring

import \"testing\"

func TestOrder(t *testing.T) {
\tvar ring Ring
\tfor turn := 0; turn < 8; turn++ {
\t\titem := string(rune('a' + turn))
\t\tring.Push(item)
\t\tring.Push(item + item)
\t\tif got := ring.Pop(); got != item && turn == 0 {
\t\t\tt.Fatalf(\"%q\", got)
\t\t}
\t\tif got := ring.Pop(); got != item+item {
\t\t\tt.Fatalf(\"turn %d: %q\", turn, got)
\t\t}
\t}
}
";

#[test]
fn a_bug_in_go_is_found() {
    let world = World::new();
    put(&world, "go.mod", "module ring\n\ngo 1.19\n");
    put(&world, "ring.go", RING);
    put(&world, "ring_test.go", RING_TEST);
    let mut hunt = Hunt::begin(&world);
    let answer = hunt.ask(json!({"op": "launch", "program": ".", "test": true}));
    assert_eq!(answer["structured"]["exit_code"], 1, "{answer}");
    assert!(answer["structured"]["output"].as_str().unwrap().contains("turn 1: \"a\""), "{answer}");
    // Turn 1 gets what it had before: where did the head go?
    hunt.ask(
        json!({"op": "breakpoints", "file": "ring.go", "lines": [{"line": 20, "condition": "r.head == 2"}]}),
    );
    let stop = hunt.ask(json!({"op": "restart"}));
    assert_eq!(place(&stop), at("breakpoint", "ring.go", 20));
    assert_eq!(hunt.value("r.count"), "2");
    let frames = hunt.ask(json!({"op": "stack"}))["structured"]["frames"].clone();
    assert_eq!(frames[1]["file"], "ring_test.go");
    let turn = hunt.ask(json!({"op": "evaluate", "expression": "turn", "frame_id": frames[1]["id"]}));
    assert_eq!(turn["structured"]["result"], "1");
    assert_eq!(hunt.stop(json!({"op": "step_over"})), at("step", "ring.go", 21));
    // There are four places, and after the third comes the first.
    assert_eq!((hunt.value("r.head"), hunt.value("len(r.items)")), ("0".into(), "4".into()));
    hunt.ask(json!({"op": "terminate"}));
    put(&world, "ring.go", &RING.replace("(len(r.items) - 1)", "len(r.items)"));
    hunt.ask(json!({"op": "breakpoints", "file": "ring.go", "lines": []}));
    let answer = hunt.ask(json!({"op": "restart"}));
    assert_eq!(answer["structured"]["exit_code"], 0, "{answer}");
    hunt.end();
}

/// Living processes that stand in the directory or execute a file below it.
fn processes_in(directory: &Path) -> Vec<String> {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let alive = stat.rfind(')').is_some_and(|at| !stat[at + 2..].starts_with(['Z', 'X']));
            let link = |name: &str| std::fs::read_link(entry.path().join(name)).ok();
            alive && [link("cwd"), link("exe")].into_iter().flatten().any(|path| path.starts_with(directory))
        })
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// A program that goes on for ever, for each adapter: what launches it, the file and a line that it comes by again and again.
fn endless(world: &World) -> Vec<(Value, &'static str, u64)> {
    put(world, "python/requirements.txt", "");
    put(world, "python/spin.py", "import time\nwhile True:\n    time.sleep(0.01)\n");
    put(world, "native/CMakeLists.txt", "");
    put(
        world,
        "native/spin.c",
        "#include <unistd.h>\nint main(void) {\n    for (;;) {\n        usleep(10000);\n    }\n}\n",
    );
    let built = std::process::Command::new("cc")
        .args(["-g", "-O0", "-o", "spin", "spin.c"])
        .current_dir(world.project().join("native"))
        .status()
        .unwrap();
    assert!(built.success());
    put(world, "go/go.mod", "module spin\n\ngo 1.19\n");
    put(
        world,
        "go/main.go",
        "package main\n\nimport \"time\"\n\nfunc main() {\n\tfor {\n\t\ttime.Sleep(10 * time.Millisecond)\n\t}\n}\n",
    );
    vec![
        (json!({"op": "launch", "program": "python/spin.py"}), "python/spin.py", 3),
        (json!({"op": "launch", "program": "native/spin"}), "native/spin.c", 4),
        (json!({"op": "launch", "program": "./go"}), "go/main.go", 7),
    ]
}

#[test]
fn a_killed_haft_leaves_neither_adapter_nor_program() {
    for running in [false, true] {
        let world = World::new();
        for (launch, file, line) in endless(&world) {
            let mut hunt = Hunt::begin(&world);
            hunt.ask(json!({"op": "breakpoints", "file": file, "lines": [line]}));
            let stop = hunt.ask(launch);
            assert_eq!(place(&stop), at("breakpoint", file, line), "{stop}");
            if running {
                hunt.ask(json!({"op": "breakpoints", "file": file, "lines": []}));
                hunt.ask(json!({"op": "continue", "wait_seconds": 0}));
            }
            let directory = world.project().canonicalize().unwrap();
            // Haft itself, the adapter, the program.
            assert!(processes_in(&directory).len() >= 3, "{file}");
            hunt.console.child.kill().unwrap();
            hunt.console.child.wait().unwrap();
            wait_until("nothing is left", || processes_in(&directory).is_empty());
        }
    }
}

#[test]
fn the_end_of_input_ends_the_session() {
    let world = World::new();
    put(&world, "requirements.txt", "");
    put(&world, "spin.py", "import time\nwhile True:\n    time.sleep(0.01)\n");
    let mut hunt = Hunt::begin(&world);
    let answer = hunt.ask(json!({"op": "launch", "program": "spin.py", "wait_seconds": 0}));
    assert_eq!(answer["structured"]["state"], "running");
    let directory = world.project().canonicalize().unwrap();
    hunt.end();
    assert_eq!(processes_in(&directory), Vec::<String>::new());
}

/// Runs a program in which `ptrace` is refused, as in many a container: a filter on system calls that is inherited (seccomp(2)).
const WITHOUT_PTRACE: &str = r#"
import ctypes, os, platform, struct, sys
number = {"x86_64": 101, "aarch64": 117}[platform.machine()]
def instruction(code, yes, no, value):
    return struct.pack("HBBI", code, yes, no, value)
code = (instruction(0x20, 0, 0, 0) + instruction(0x15, 0, 1, number)
        + instruction(0x06, 0, 0, 0x00050001) + instruction(0x06, 0, 0, 0x7FFF0000))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
text = ctypes.create_string_buffer(code, len(code))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(4, ctypes.addressof(text))), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn adapters_that_need_ptrace_are_not_usable_where_it_is_refused() {
    let world = World::new();
    put(&world, "CMakeLists.txt", "");
    put(&world, "go.mod", "module none\n");
    let plain = world.haft(&["tool", "debug", r#"{"op": "adapters"}"#, "--approve", "all"]);
    let mut restricted = std::process::Command::new("python3");
    restricted.args(["-c", WITHOUT_PTRACE]).arg(plain.get_program()).args(plain.get_args());
    restricted.current_dir(world.project()).env_clear();
    for (name, value) in plain.get_envs() {
        restricted.env(name, value.unwrap());
    }
    let output = restricted.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for id in ["lldb", "delve"] {
        let line =
            text.lines().find(|line| line.contains(&format!("- {id}: "))).unwrap_or_else(|| panic!("{text}"));
        assert!(
            line.contains("not usable here: this machine does not let a debugger trace a process (ptrace: "),
            "{line}"
        );
    }
}
