//! The debug adapters that are known, as data.

use super::{Adapter, Binary, Hits, Kind};

/// In the order in which they are listed.
pub(crate) static TABLE: &[Adapter] = &[
    Adapter {
        id: "dart",
        kind: Kind::Dart,
        markers: &["pubspec.yaml"],
        extensions: &["dart"],
        binary: Binary::Named(&["dart"]),
        arguments: &["debug_adapter"],
        evaluate_context: "repl",
        forget_step: None,
        pages: false,
        hides_pid: false,
        code_with_farewell: false,
        hits: Hits::Any,
        lists_threads_up_to: None,
        traces: false,
        announces_processes: false,
        install: "install the Dart SDK (https://dart.dev/get-dart) so that `dart` is on PATH",
    },
    Adapter {
        id: "debugpy",
        kind: Kind::Debugpy,
        markers: &["pyproject.toml", "setup.py", "requirements.txt"],
        extensions: &["py", "pyw"],
        binary: Binary::Python,
        // Started through the bootstrap in `python.rs`.
        arguments: &[],
        // Statements too; every other context takes expressions only.
        evaluate_context: "repl",
        forget_step: None,
        pages: false,
        hides_pid: false,
        code_with_farewell: false,
        hits: Hits::ComparisonOrCondition,
        lists_threads_up_to: None,
        traces: false,
        announces_processes: true,
        // Where the project has an interpreter of its own, with that one.
        install: "python3 -m pip install debugpy",
    },
    Adapter {
        id: "lldb",
        kind: Kind::Lldb,
        markers: &["Cargo.toml", "CMakeLists.txt"],
        extensions: &["rs", "c", "cc", "cpp", "cxx"],
        binary: Binary::Lldb,
        arguments: &[],
        // `repl` is LLDB's own command line, and `hover` refuses `a + 1`.
        evaluate_context: "watch",
        // Of its stack of plans all but the first, which is no step. `repl` and the backtick make it a command.
        forget_step: Some("`thread plan discard 1"),
        pages: true,
        hides_pid: false,
        code_with_farewell: false,
        hits: Hits::Number,
        lists_threads_up_to: None,
        traces: true,
        announces_processes: false,
        install: "apt-get install lldb (Debian, Ubuntu), dnf install lldb (Fedora), or xcode-select --install (macOS)",
    },
    Adapter {
        id: "delve",
        kind: Kind::Delve,
        markers: &["go.mod"],
        extensions: &["go"],
        binary: Binary::Delve,
        arguments: &["dap"],
        // With it `call f(x)` works too.
        evaluate_context: "repl",
        forget_step: None,
        pages: false,
        hides_pid: true,
        code_with_farewell: true,
        hits: Hits::Any,
        // 1024 goroutines; some of them it drops again, as dead.
        lists_threads_up_to: Some(1000),
        traces: true,
        announces_processes: false,
        install: "go install github.com/go-delve/delve/cmd/dlv@latest (or apt-get install delve)",
    },
];
