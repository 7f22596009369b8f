//! Magics as they run.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "tests look at the machine by hand")]

mod support;

use haft_system::Environment;
use pretty_assertions::assert_eq;
use serde_json::Value;
use support::*;

#[tokio::test]
async fn shell_lines_run_and_show_their_exit_codes() {
    let bench = Bench::new();
    bench.python("name = 'wor ld'; d = {'k': 3}").await;
    for (code, out) in [
        ("!echo hello", "hello\n"),
        ("!echo \"$name\" {d['k']} {name!r} {1 + 1} $HAFT_NOT {{x}}", "wor ld 3 wor ld 2 {x}\n"),
        ("!exit 3", "[exit code 3]\n"),
        ("!kill -9 $$", "[killed by signal 9]\n"),
        (
            "x = !printf 'a\\nb\\n'; exit 4\nprint(x, x.n, x.s, x.returncode, _exit_code)",
            "[exit code 4]\n['a', 'b'] a\nb a b 4 4\n",
        ),
        ("d['out'] = !echo stored\nprint(d['out'])", "['stored']\n"),
        ("if True: !echo inline", "inline\n"),
        ("x = 1; !echo behind", "behind\n"),
        ("# a comment\n%%bash\necho one\necho two", "one\ntwo\n"),
        ("%%sh\nawk 'BEGIN { print 1 + 1 }'", "2\n"),
        ("%%script cat\nwhole\nscript", "whole\nscript\n"),
        ("def f(local):\n    !echo {local} $local\nf('in a function')", "in a function in a function\n"),
    ] {
        assert_eq!((code, gist(&bench.python(code).await)), (code, fine(Value::Null, out)));
    }
    assert_eq!(result(&bench.python("!!echo a; echo b").await), "['a', 'b']");
    let outcome = bench.python("%%bash\necho before\nexit 7").await;
    assert_eq!(
        (stdout(&outcome), &outcome.structured["error"]["message"]),
        ("before\n", &Value::from("%%bash ended with exit code 7"))
    );
    assert_eq!(outcome.structured["error"]["name"], "ShellError");
    bench.close().await;
}

#[tokio::test]
async fn directories_variables_and_files() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path().join("sub")).unwrap();
    let root = bench.path().canonicalize().unwrap().display().to_string();
    assert_eq!(gist(&bench.python("%cd sub").await), fine(Value::Null, &format!("{root}/sub\n")));
    assert_eq!(result(&bench.python("import os; os.path.basename(os.getcwd())").await), "'sub'");
    assert_eq!(gist(&bench.python("%cd -").await), fine(Value::Null, &format!("{root}\n")));
    assert_eq!(result(&bench.python("%pwd").await), format!("'{root}'"));
    assert_eq!(gist(&bench.python("%env HAFT_T=a b").await), fine(Value::Null, "env: HAFT_T=a b\n"));
    assert_eq!(gist(&bench.python("!echo $HAFT_T").await), fine(Value::Null, "a b\n"));
    assert_eq!(gist(&bench.python("%%writefile out.py\nimport sys\nvalue = len(sys.argv)\nprint('ran', __name__, sys.argv[1:])").await), fine(Value::Null, "Wrote out.py\n"));
    assert_eq!(
        gist(&bench.python("%run out.py a 'b c'\nvalue").await),
        fine("3", "ran __main__ ['a', 'b c']\n")
    );
    assert_eq!(
        stdout(&bench.python("%load out.py").await),
        "import sys\nvalue = len(sys.argv)\nprint('ran', __name__, sys.argv[1:])\n"
    );
    bench.python("alpha = 1; beta = 'x'").await;
    assert_eq!(result(&bench.python("%who_ls int").await), "['alpha', 'value']");
    assert!(stdout(&bench.python("%whos").await).contains("beta"));
    assert!(stdout(&bench.python("%reset -f").await).contains("names removed"));
    assert_eq!(result(&bench.python("'alpha' in globals(), callable(tool)").await), "(False, True)");
    assert_eq!(gist(&bench.python("%matplotlib inline").await), fine(Value::Null, ""));
    assert!(stdout(&bench.python("len?").await).contains("Return the number of items in a container."));
    let outcome = bench.python("%pipp install x").await;
    assert_eq!(
        outcome.first_text().unwrap(),
        "Line 1: there is no magic `%pipp`; the nearest is `%pip`. Nothing of the cell was run."
    );
    bench.close().await;
}

#[tokio::test]
async fn time_is_measured_and_lines_fit() {
    let bench = Bench::new();
    let outcome = bench.python("%time 1 + 1").await;
    assert_eq!(result(&outcome), "2");
    assert!(stdout(&outcome).starts_with("CPU time: "), "{}", stdout(&outcome));
    let outcome = bench.python("%timeit -n 10 -r 2 sum(range(10))").await;
    assert!(stdout(&outcome).contains("2 runs, 10 loops each"), "{}", stdout(&outcome));
    let outcome = bench.python("%%timeit -n 2 -r 2 y = 3\ny + 1").await;
    assert!(stdout(&outcome).contains("2 runs, 2 loops each"), "{}", outcome.all_text());
    let outcome = bench.python("%%time\n!echo in\nz = 5\n1/0").await;
    assert!(
        outcome.structured["error"]["traceback"].as_str().unwrap().contains("line 4, in <module>\n    1/0"),
        "{}",
        outcome.all_text()
    );
    assert_eq!(result(&bench.python("z").await), "5");
    let outcome = bench.python("!true\nx = !ls \\\n -l\n\ndef f():\n    raise ValueError('here')\nf()").await;
    let traceback = outcome.structured["error"]["traceback"].as_str().unwrap();
    assert!(
        traceback.contains("line 7, in <module>\n    f()")
            && traceback.contains("line 6, in f\n    raise ValueError('here')"),
        "{traceback}"
    );
    assert!(!traceback.contains("<haft>"), "{traceback}");
    let outcome = bench.python("%%capture kept\nprint('hidden')").await;
    assert_eq!(stdout(&outcome), "");
    assert_eq!(result(&bench.python("kept.stdout").await), "'hidden\\n'");
    bench.close().await;
}

#[tokio::test]
async fn changed_modules_are_loaded_again() {
    let bench = Bench::new();
    std::fs::write(bench.path().join("mine.py"), "def f(): return 1\n").unwrap();
    assert_eq!(
        result(
            &bench
                .python(
                    "%load_ext autoreload\n%autoreload 2\nimport mine\nfrom mine import f\n(mine.f(), f())"
                )
                .await
        ),
        "(1, 1)"
    );
    std::fs::write(bench.path().join("mine.py"), "def f(): return 'changed'\n").unwrap();
    assert_eq!(result(&bench.python("(mine.f(), f())").await), "('changed', 'changed')");
    bench.close().await;
}

/// A wheel made by hand: pip installs it without a network.
fn wheel(place: &std::path::Path, version: &str) -> String {
    let name = format!("haft_sample-{version}-py3-none-any.whl");
    let script = format!(
        "import zipfile\nz = zipfile.ZipFile({name:?}, 'w')\nz.writestr('other_name/__init__.py', 'version = {version:?}')\nz.writestr('haft_sample-{version}.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: haft-sample\\nVersion: {version}\\n')\nz.writestr('haft_sample-{version}.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\nz.writestr('haft_sample-{version}.dist-info/RECORD', 'other_name/__init__.py,,\\nhaft_sample-{version}.dist-info/METADATA,,\\nhaft_sample-{version}.dist-info/WHEEL,,\\nhaft_sample-{version}.dist-info/RECORD,,\\n')\nz.close()\n"
    );
    let done =
        std::process::Command::new("python3").arg("-c").arg(script).current_dir(place).status().unwrap();
    assert!(done.success());
    name
}

#[tokio::test]
async fn pip_installs_into_the_kernels_own_interpreter_and_evicts_by_metadata() {
    let bench = Bench::new();
    let venv = std::process::Command::new("python3")
        .args(["-m", "venv", ".venv"])
        .current_dir(bench.path())
        .status()
        .unwrap();
    assert!(venv.success());
    let (first, second) = (wheel(bench.path(), "1.0"), wheel(bench.path(), "2.0"));
    let outcome = bench.python("import sys; sys.prefix").await;
    assert!(result(&outcome).ends_with("/.venv'"), "{}", outcome.all_text());
    let outcome = bench
        .python(&format!("%pip install --no-index ./{first}\nimport other_name\nother_name.version"))
        .await;
    assert_eq!(result(&outcome), "'1.0'", "{}", outcome.all_text());
    let outcome = bench
        .python(&format!("%pip install --no-index ./{second}\nimport other_name\nother_name.version"))
        .await;
    assert_eq!(result(&outcome), "'2.0'", "{}", outcome.all_text());
    assert!(
        stdout(&outcome).contains("[fresh at the next import: haft-sample (other_name)]"),
        "{}",
        stdout(&outcome)
    );
    let outcome = bench.python("%pip install --no-index no-such-package-at-all").await;
    assert_eq!(outcome.structured["error"]["name"], "ShellError");
    // `!pip` is the environment's too.
    assert!(stdout(&bench.python("!pip --version").await).contains("/.venv/"));
    bench.close().await;
}

#[tokio::test]
async fn compiled_modules_that_are_loaded_are_not_evicted() {
    let Some(place) = python_with_packages() else { return };
    let environment = Environment::capture().with("VIRTUAL_ENV", place);
    let bench = Bench::wishing(Wish { environment: Some(environment), ..Wish::default() });
    // What an upgrade of numpy looks like to the metadata, without one.
    let code = "import numpy, pandas
from haft_worker import magics
from importlib import metadata
real = magics._distributions
seen = []
def pretend():
    found = real()
    seen.append(1)
    if len(seen) == 2:
        found['numpy'] = ('99', 0, found['numpy'][2])
        found['pillow'] = ('99', 0, found['pillow'][2])
    return found
magics._distributions = pretend
import PIL
%pip --version
import numpy as again
again is numpy, 'PIL' in __import__('sys').modules";
    let outcome = bench.python(code).await;
    assert_eq!(result(&outcome), "(True, False)", "{}", outcome.all_text());
    let out = stdout(&outcome);
    assert!(out.contains("[fresh at the next import: pillow (PIL)]"), "{out}");
    assert!(out.contains("[numpy: compiled modules of it are loaded and cannot be loaded twice."), "{out}");
    assert_eq!(result(&bench.python("numpy.arange(3)").await), "array([0, 1, 2])");
    bench.close().await;
}

#[tokio::test]
async fn every_magic_that_the_rewriter_knows_is_answered() {
    let bench = Bench::new();
    let outcome = bench.python("%lsmagic").await;
    let listed = stdout(&outcome);
    let names = |start: &str| -> Vec<String> {
        let line = listed.lines().find(|line| line.starts_with(start)).unwrap();
        line[start.len()..].split_whitespace().map(|name| name.trim_start_matches('%').to_owned()).collect()
    };
    for name in names("Line magics: ") {
        assert!(haft_kernel::rewrite::python(&format!("%{name} x")).is_ok(), "%{name}");
    }
    for name in names("Cell magics: ") {
        assert!(haft_kernel::rewrite::python(&format!("%%{name}\nx")).is_ok(), "%%{name}");
    }
    // And the other way round: what the rewriter lets through has an answer.
    let code = "from haft_worker import magics\nlen(magics.PLAIN), len(magics.CELL)";
    assert_eq!(
        result(&bench.python(code).await),
        format!("({}, {})", names("Line magics: ").len(), names("Cell magics: ").len())
    );
    bench.close().await;
}

#[tokio::test]
async fn an_interpreter_that_does_not_work_is_passed_over_and_said() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path().join(".venv/bin")).unwrap();
    std::os::unix::fs::symlink("/nonexistent/python3", bench.path().join(".venv/bin/python")).unwrap();
    let outcome = bench.python("1 + 1").await;
    assert_eq!(result(&outcome), "2");
    let notice = outcome.structured["notices"][0].as_str().unwrap();
    assert!(notice.contains("passed over:") && notice.contains(".venv/bin/python"), "{notice}");
    bench.close().await;
    let environment = Environment::of([("PATH", "/nonexistent")], "/");
    let bench = Bench::wishing(Wish { environment: Some(environment), ..Wish::default() });
    let outcome = bench.python("1").await;
    assert_eq!(
        outcome.first_text().unwrap(),
        "There is no Python that a kernel could run. Tried:\n- python3: not on the PATH\n- python: not on the PATH\nPython 3.8 or newer is needed. Make an environment for the project (`python3 -m venv .venv`, or `uv venv`), or put a python3 on the PATH."
    );
    let outcome = bench.javascript("1").await;
    assert!(outcome.first_text().unwrap().starts_with("There is no JavaScript that a kernel could run. Tried:\n- node: not on the PATH\nNode.js 18 or newer"), "{}", outcome.all_text());
    bench.close().await;
}

#[tokio::test]
async fn a_directory_that_is_gone_can_be_left() {
    let bench = Bench::new();
    let code =
        "import os, tempfile\nhome, gone = os.getcwd(), tempfile.mkdtemp()\nos.chdir(gone)\nos.rmdir(gone)";
    assert_eq!(gist(&bench.python(code).await), fine(Value::Null, ""));
    assert_eq!(gist(&bench.python("%cd -q {home}\nos.getcwd() == home").await), fine("True", ""));
    bench.close().await;
}
