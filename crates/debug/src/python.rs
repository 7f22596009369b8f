//! Starting debugpy.

use std::path::Path;

use haft_system::ProcessSpec;
use serde_json::{Map, Value, json};

/// Runs debugpy's adapter with one difference: before and after every read from the socket to the debugged program the kernel is told
/// to acknowledge at once (TCP_QUICKACK, which it forgets after a while and so has to be told again). debugpy writes small messages
/// with Nagle's algorithm on; with the kernel's delayed acknowledgement every step of a program waits 40 ms for nothing
/// (microsoft/debugpy#2054). The program itself runs untouched.
const BOOTSTRAP: &str = include_str!("bootstrap.py");

/// The adapter's process.
pub(crate) fn adapter(python: &Path, directory: &Path) -> ProcessSpec {
    ProcessSpec::new(python, directory).args(["-c", BOOTSTRAP]).grace(crate::limits::GRACE).label("debugpy")
}

/// What stands for the program: a file, or a module as with `python -m`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Script<'a> {
    File(&'a Path),
    Module(&'a str),
}

/// The arguments of `launch`.
pub(crate) fn launch(
    script: &Script<'_>,
    arguments: &[String],
    directory: &Path,
    variables: &Map<String, Value>,
    interpreter: Option<&Path>,
) -> Value {
    let mut launch = json!({
        "name": "haft",
        "type": "python",
        "request": "launch",
        "args": arguments,
        "cwd": directory.display().to_string(),
        "env": variables,
        "console": "internalConsole",
        "redirectOutput": true,
        "justMyCode": true,
        // A child process would wait for a debugger of its own.
        "subProcess": false,
    });
    match script {
        Script::File(path) => launch["program"] = path.display().to_string().into(),
        Script::Module(name) => launch["module"] = (*name).into(),
    }
    if let Some(interpreter) = interpreter {
        launch["python"] = json!([interpreter.display().to_string()]);
    }
    launch
}

/// The arguments of `attach` to what `debugpy --listen` opened.
pub(crate) fn attach() -> Value {
    // With an empty object pydevd fails over a missing positional argument.
    json!({"name": "haft", "type": "python", "request": "attach", "justMyCode": true, "redirectOutput": true, "subProcess": false})
}
