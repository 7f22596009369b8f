//! The supervisor against real programs, well-behaved and not.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may fail loudly and look at the machine itself"
)]

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use haft_system::{
    Environment, Exit, Finished, OutputMode, ProcessSpec, RunBounds, RunEnd, SpawnError, StderrMode,
    StdinMode, Supervisor,
};
use pretty_assertions::assert_eq;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

const MARK: &str = "HAFT_TEST_MARK";
const PATIENCE: Duration = Duration::from_secs(20);

fn supervisor() -> Supervisor {
    Supervisor::new(Environment::capture())
}

fn bash(script: &str) -> ProcessSpec {
    ProcessSpec::new("bash", "/").arg("-c").arg(script)
}

fn bounds() -> RunBounds {
    RunBounds { time: Some(Duration::from_mins(1)), capture_bytes: 1 << 20 }
}

async fn run(spec: ProcessSpec) -> Finished {
    supervisor().run(spec, bounds(), &CancellationToken::new(), &mut |_| {}).await.unwrap()
}

/// A mark that nothing else on the machine has, carried by a process and whatever it starts.
fn mark(name: &str) -> String {
    format!("{name}-{}-{:?}", std::process::id(), std::time::SystemTime::now())
}

/// Pids of the running processes that carry the mark.
fn marked(mark: &str) -> Vec<i32> {
    let wanted = format!("{MARK}={mark}");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A zombie's environment is empty.
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()) {
            found.push(pid);
        }
    }
    found
}

/// Waits for a condition, and fails when it does not come true in a time that no healthy machine needs.
fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PATIENCE, "not in {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn stat_field(pid: u32, index: usize) -> Option<String> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(line[line.rfind(')')? + 2..].split(' ').nth(index)?.to_owned())
}

fn parent_of(pid: u32) -> u32 {
    stat_field(pid, 1).unwrap().parse().unwrap()
}

fn kill_now(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn exit_codes_signals_and_both_outputs() {
    let finished = run(bash("echo out; echo err >&2; exit 7")).await;
    let shown =
        (finished.exit, finished.end, finished.stdout.text(), finished.stderr.text(), finished.leftovers);
    assert_eq!(shown, (Exit::Code(7), RunEnd::Exited, "out\n".into(), "err\n".into(), Vec::new()));

    assert_eq!(run(bash("kill -SEGV $$")).await.exit, Exit::Signal(libc::SIGSEGV));
    assert_eq!(run(ProcessSpec::new("true", "/")).await.exit, Exit::Code(0));
}

#[tokio::test]
async fn merged_output_keeps_its_order() {
    let script = "for i in 1 2 3; do echo out $i; echo err $i >&2; done";
    let finished = run(bash(script).stderr(StderrMode::Merged)).await;
    assert_eq!(finished.stdout.text(), "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n");
    assert_eq!(finished.stderr.total, 0);
}

#[tokio::test]
async fn what_cannot_be_started_is_said_in_words() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode: u32| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    file("plain", "#!/bin/sh\n", 0o644);
    file("orphaned", "#!/no/such/interpreter\n", 0o755);
    file("garbage", "\x7fnot a program", 0o755);
    let attempt = async |spec: ProcessSpec| match supervisor().spawn(spec).await {
        Ok(_) => "started".to_owned(),
        Err(error) => error.to_string().replace(directory.path().to_str().unwrap(), "DIR"),
    };
    let here = |program: &str| ProcessSpec::new(program, directory.path());
    let said = [
        attempt(here("haft-no-such-program")).await,
        attempt(here("./missing")).await,
        attempt(here("./plain")).await,
        attempt(here("./orphaned")).await,
        attempt(here("./garbage")).await,
        attempt(here("true").env("PATH", directory.path())).await,
        attempt(here("plain").env("PATH", directory.path())).await,
        attempt(ProcessSpec::new("true", directory.path().join("nowhere"))).await,
        attempt(ProcessSpec::new("true", directory.path().join("plain"))).await,
        attempt(here("echo").arg("a\0b")).await,
        attempt(here("echo").arg("x".repeat(200_000))).await,
        attempt(here("")).await,
    ];
    assert_eq!(
        said.join("\n"),
        "\
There is no program `haft-no-such-program` on the PATH.
There is no program `./missing`.
`./plain` cannot be run: permission denied.
`./orphaned` cannot be run: the interpreter or loader that it names does not exist.
`./garbage` cannot be run: it is neither a program for this machine nor a script that begins with `#!`.
There is no program `true` on the PATH.
`DIR/plain` cannot be run: it is not an executable file.
`true` cannot start in the directory DIR/nowhere: no such file or directory.
`true` cannot start in the directory DIR/plain: not a directory.
The arguments of `echo` cannot be passed on: argument 1 holds a NUL byte, which no program can be given.
The arguments of `echo` cannot be passed on: together with the environment they are longer than the system allows.
There is no program ``: the name is empty."
    );
}

#[tokio::test]
async fn secrets_and_removed_variables_are_not_seen_and_set_ones_are() {
    let path = Environment::capture().get("PATH").unwrap().to_owned();
    let environment = Environment::of(
        [
            ("PATH", path.as_str()),
            ("ANTHROPIC_API_KEY", "secret"),
            ("KEPT", "1"),
            ("GONE", "1"),
            ("OLDPWD", "/x"),
        ],
        "/",
    );
    let spec = ProcessSpec::new("env", "/tmp").env("EXTRA", "a b").env("GONE", "2").without_env("GONE");
    let finished = Supervisor::new(environment)
        .run(spec, bounds(), &CancellationToken::new(), &mut |_| {})
        .await
        .unwrap();
    let text = finished.stdout.text();
    let seen: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
    let expected =
        BTreeMap::from([("PATH", path.as_str()), ("KEPT", "1"), ("EXTRA", "a b"), ("PWD", "/tmp")]);
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_program_inherits_only_its_three_descriptors_and_no_signal_state() {
    let script = "ls /proc/self/fd | wc -l; grep -E '^Sig(Blk|Ign):' /proc/self/status; read -r -a stat < /proc/$$/stat; echo ${stat[5]}; echo $$";
    let finished = run(bash(script)).await;
    let text = finished.stdout.text();
    let lines: Vec<&str> = text.lines().collect();
    // `ls` itself has the directory open.
    assert_eq!(lines[..3], ["4", "SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"]);
    assert_eq!(lines[3], lines[4], "it leads a session of its own");
}

#[tokio::test]
async fn stdin_is_piped_both_ways() {
    let mut process = supervisor().spawn(ProcessSpec::new("cat", "/").stdin(StdinMode::Piped)).await.unwrap();
    let mut stdin = process.take_stdin().unwrap();
    let mut stdout = process.take_stdout().unwrap();
    // More than both pipes hold, so writer and reader have to run side by side.
    let sent = "0123456789abcdef".repeat(100_000);
    let (written, read) = tokio::join!(
        async {
            stdin.write_all(sent.as_bytes()).await.unwrap();
            drop(stdin);
        },
        async {
            let mut received = String::new();
            stdout.read_to_string(&mut received).await.unwrap();
            received
        }
    );
    let () = written;
    assert!(read == sent);
    assert_eq!(process.wait().await, Exit::Code(0));
    assert_eq!(process.wait().await, Exit::Code(0), "waiting again gives the same answer");
    assert!(process.signal(libc::SIGTERM).is_err());
}

#[tokio::test]
async fn stdin_is_at_its_end_where_none_was_asked_for() {
    assert_eq!(run(ProcessSpec::new("cat", "/")).await.stdout.text(), "");
    let spec = ProcessSpec::new("cat", "/").stdin(StdinMode::Piped).stdout(OutputMode::Null);
    assert_eq!(run(spec).await.exit, Exit::Code(0));
}

#[tokio::test]
async fn a_signal_reaches_the_group_and_may_be_handled() {
    let script = "trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.05; done";
    let mut process = supervisor().spawn(bash(script)).await.unwrap();
    let mut stdout = process.take_stdout().unwrap();
    let mut first = [0; 6];
    stdout.read_exact(&mut first).await.unwrap();
    process.signal(libc::SIGINT).unwrap();
    assert_eq!(process.wait().await, Exit::Code(3));
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "caught\n");
}

#[tokio::test]
async fn a_time_out_ends_a_tree_that_ignores_term() {
    let mark = mark("stubborn");
    let script = "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & while :; do sleep 1; done";
    let spec = bash(script).env(MARK, &mark).grace(Duration::from_millis(200));
    let bounds = RunBounds { time: Some(Duration::from_millis(300)), capture_bytes: 1000 };
    let finished = supervisor().run(spec, bounds, &CancellationToken::new(), &mut |_| {}).await.unwrap();
    assert_eq!((finished.end, finished.exit), (RunEnd::TimedOut, Exit::Signal(libc::SIGKILL)));
    assert_eq!(marked(&mark), Vec::<i32>::new());
}

#[tokio::test]
async fn term_comes_first_and_leaves_time_to_tidy_up() {
    let script = "trap 'echo tidied; exit 5' TERM; echo ready; while :; do sleep 0.05; done";
    let cancel = CancellationToken::new();
    let finished = supervisor()
        .run(bash(script).grace(PATIENCE), bounds(), &cancel, &mut |_| cancel.cancel())
        .await
        .unwrap();
    let shown = (finished.end, finished.exit, finished.stdout.text());
    assert_eq!(shown, (RunEnd::Cancelled, Exit::Code(5), "ready\ntidied\n".into()));
}

#[tokio::test]
async fn a_stopped_program_is_ended_too() {
    let mark = mark("stopped");
    let mut process = supervisor().spawn(bash("kill -STOP $$").env(MARK, &mark)).await.unwrap();
    let pid = process.pid();
    eventually("the program stops", || stat_field(pid, 0).as_deref() == Some("T"));
    assert_eq!(process.terminate().await, Exit::Signal(libc::SIGTERM));
    assert_eq!(marked(&mark), Vec::<i32>::new());
}

#[tokio::test]
async fn background_jobs_left_behind_are_named_and_killed() {
    let mark = mark("disowned");
    let finished = run(bash("sleep 1000 & disown; echo done").env(MARK, &mark)).await;
    assert_eq!((finished.exit, finished.stdout.text()), (Exit::Code(0), "done\n".into()));
    let names: Vec<&str> = finished
        .leftovers
        .iter()
        .filter_map(|line| line.split_once(' '))
        .map(|(_, command)| command)
        .collect();
    assert_eq!(names, ["sleep 1000"]);
    assert_eq!(marked(&mark), Vec::<i32>::new());
}

#[tokio::test]
async fn a_double_forked_daemon_in_its_own_session_does_not_get_away() {
    let mark = mark("daemon");
    let daemon =
        "(setsid bash -c \"trap '' TERM HUP; exec -a daemon sleep 1000\" >/dev/null 2>&1 </dev/null &)";
    let script = format!("{daemon}; {daemon}; exit 0");
    let finished = run(bash(&script).env(MARK, &mark).grace(Duration::from_millis(100))).await;
    assert_eq!(finished.exit, Exit::Code(0));
    assert_eq!(finished.leftovers.len(), 2);
    assert_eq!(marked(&mark), Vec::<i32>::new());
}

#[tokio::test]
async fn a_process_substitution_may_finish_its_work() {
    let directory = tempfile::tempdir().unwrap();
    let spec =
        ProcessSpec::new("bash", directory.path()).arg("-c").arg("echo text > >(sleep 0.01; cat > copy)");
    let finished = run(spec).await;
    assert_eq!(finished.leftovers, Vec::<String>::new());
    assert_eq!(fs::read_to_string(directory.path().join("copy")).unwrap(), "text\n");
}

#[tokio::test]
async fn a_chain_of_forks_does_not_get_away() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("chain");
    // Each generation ends when it has started the next, in a session of its own.
    fs::write(&script, "#!/bin/sh\nsetsid \"$0\" &\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    for program in ["f() { f & }; f; sleep 1000".to_owned(), format!("{}; sleep 1000", script.display())] {
        let mark = mark("chain");
        let spec = bash(&program).env(MARK, &mark).grace(Duration::ZERO);
        let bounds = RunBounds { time: Some(Duration::from_millis(300)), capture_bytes: 1000 };
        let finished = supervisor().run(spec, bounds, &CancellationToken::new(), &mut |_| {}).await.unwrap();
        assert_eq!((finished.end, finished.survivors), (RunEnd::TimedOut, Vec::new()));
        assert_eq!(marked(&mark), Vec::<i32>::new());
    }
}

#[tokio::test]
async fn a_flood_is_bounded_and_counted() {
    let mut seen = 0_u64;
    let bounds = RunBounds { capture_bytes: 10_000, ..bounds() };
    let script = "printf begin; head -c 200000000 /dev/zero; printf end";
    let finished = supervisor()
        .run(bash(script), bounds, &CancellationToken::new(), &mut |piece| seen += piece.len() as u64)
        .await
        .unwrap();
    let output = finished.stdout;
    assert_eq!((finished.exit, output.total, seen), (Exit::Code(0), 200_000_008, 200_000_008));
    assert!(output.head.starts_with(b"begin\0") && output.tail.ends_with(b"\0end"));
    assert_eq!(output.head.len() + output.tail.len(), 10_000);
}

#[tokio::test]
async fn an_endless_flood_ends_at_its_time() {
    let bounds = RunBounds { time: Some(Duration::from_millis(200)), capture_bytes: 1000 };
    let spec = ProcessSpec::new("yes", "/");
    let finished = supervisor().run(spec, bounds, &CancellationToken::new(), &mut |_| {}).await.unwrap();
    assert_eq!((finished.end, finished.exit), (RunEnd::TimedOut, Exit::Signal(libc::SIGTERM)));
    assert!(finished.stdout.total > 0);
}

#[tokio::test]
async fn dropping_a_process_or_a_run_kills_the_tree_and_reaps_the_guard() {
    let mark = mark("dropped");
    let supervisor = supervisor();
    let script = "sleep 1000 & sleep 1000";
    let process = supervisor.spawn(bash(script).env(MARK, &mark)).await.unwrap();
    let guard = parent_of(process.pid());
    assert!(fs::read_to_string(format!("/proc/{guard}/comm")).unwrap().starts_with("haft-guard"));
    drop(process);
    until("the guard is reaped", || !Path::new(&format!("/proc/{guard}")).exists()).await;
    assert_eq!(marked(&mark), Vec::<i32>::new());

    let cancel = CancellationToken::new();
    let mut ignore = |_: &[u8]| {};
    let running = supervisor.run(bash(script).env(MARK, &mark), bounds(), &cancel, &mut ignore);
    let dropped = tokio::time::timeout(Duration::from_millis(100), running).await;
    assert!(dropped.is_err());
    until("the tree is gone", || marked(&mark).is_empty() && supervisor.running().is_empty()).await;
}

/// [`eventually`] for what this process's own tasks have to do.
async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PATIENCE, "not in {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_guard_that_is_killed_takes_everything_with_it() {
    let mark = mark("guard-killed");
    let supervisor = supervisor();
    let script = "(setsid sleep 1000 &) ; trap '' TERM; sleep 1000 & sleep 1000";
    let mut process = supervisor.spawn(bash(script).env(MARK, &mark)).await.unwrap();
    until("all four run", || marked(&mark).len() == 4).await;
    kill_now(parent_of(process.pid()));
    let exit = process.wait().await;
    let expected = "its guard was lost (it was killed by signal 9); everything below it was killed";
    assert_eq!(exit, Exit::Unknown(expected.into()));
    assert_eq!(marked(&mark), Vec::<i32>::new());
    assert_eq!(supervisor.running(), []);
}

#[tokio::test]
async fn a_program_that_kills_its_guard_is_not_said_to_have_never_run() {
    let mark = mark("own-guard-killed");
    for _ in 0..20 {
        // The guard may or may not have come to say that the program runs.
        let spec = bash("sleep 1000 & kill -9 $PPID; sleep 1000").env(MARK, &mark);
        match supervisor().run(spec, bounds(), &CancellationToken::new(), &mut |_| {}).await {
            Ok(finished) => {
                assert!(matches!(finished.exit, Exit::Unknown(_)));
                assert_eq!(finished.survivors, Vec::<String>::new());
            }
            Err(error) => {
                let expected = "Whether `bash` has run is not known: its guard ended early (it was killed by signal 9; early \
 eof); everything below it was killed.";
                assert_eq!(error.to_string(), expected);
            }
        }
        assert_eq!(marked(&mark), Vec::<i32>::new());
    }
}

#[tokio::test]
async fn shutdown_ends_everything_and_refuses_what_comes_after() {
    let mark = mark("shutdown");
    let supervisor = supervisor();
    let spec = |script: &str| bash(script).env(MARK, &mark).grace(Duration::from_millis(100));
    let mut first = supervisor.spawn(spec("sleep 1000").label("one")).await.unwrap();
    let second = supervisor.spawn(spec("trap '' TERM; sleep 1000 & sleep 1000").label("two")).await.unwrap();
    let listed: Vec<(String, u32)> =
        supervisor.running().into_iter().map(|info| (info.label, info.pid)).collect();
    assert_eq!(listed, [("one".to_owned(), first.pid()), ("two".to_owned(), second.pid())]);
    let guards = [parent_of(first.pid()), parent_of(second.pid())];

    supervisor.shutdown().await;
    assert_eq!(marked(&mark), Vec::<i32>::new());
    assert_eq!(guards.map(|guard| Path::new(&format!("/proc/{guard}")).exists()), [false, false]);
    assert_eq!(first.wait().await, Exit::Signal(libc::SIGTERM));
    assert!(matches!(supervisor.spawn(spec("true")).await, Err(SpawnError::ShutDown(_))));
    supervisor.shutdown().await;
}

#[tokio::test]
async fn many_at_once_neither_mix_nor_leak() {
    let supervisor = supervisor();
    let runs = (0..40).map(|number| {
        let supervisor = supervisor.clone();
        async move {
            let spec = bash(&format!("echo {number}; exit {number}"));
            let finished =
                supervisor.run(spec, bounds(), &CancellationToken::new(), &mut |_| {}).await.unwrap();
            (finished.exit, finished.stdout.text())
        }
    });
    let finished = futures::future::join_all(runs).await;
    let expected: Vec<(Exit, String)> =
        (0..40).map(|number| (Exit::Code(number), format!("{number}\n"))).collect();
    assert_eq!(finished, expected);
    until("all guards are reaped", || supervisor.running().is_empty()).await;
}

#[test]
fn nothing_outlives_a_haft_that_was_killed() {
    let mark = mark("haft-killed");
    let mut haft = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_haft_that_is_killed", "--ignored", "--nocapture"])
        .env(MARK, &mark)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(haft.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("everything is started")));
    // Itself, the stubborn shell with two sleeps, and the daemon.
    eventually("all run", || marked(&mark).len() >= 5);
    haft.kill().unwrap();
    haft.wait().unwrap();
    eventually("nothing is left", || marked(&mark).is_empty());
}

#[tokio::test]
#[ignore = "the victim of `nothing_outlives_a_haft_that_was_killed`, which starts it in a process of its own"]
async fn the_haft_that_is_killed() {
    let supervisor = supervisor();
    let stubborn = bash("trap '' TERM; sleep 1000 & sleep 1000").grace(Duration::from_millis(200));
    let _stubborn = supervisor.spawn(stubborn).await.unwrap();
    let _daemon = supervisor.spawn(bash("(setsid sleep 1000 &); sleep 1000")).await.unwrap();
    println!("everything is started");
    std::future::pending::<()>().await;
}

#[tokio::test]
#[ignore = "a measurement, run by hand"]
async fn what_a_start_costs() {
    let supervisor = supervisor();
    let mut times = Vec::new();
    for _ in 0..100 {
        let begin = Instant::now();
        let spec = ProcessSpec::new("true", "/");
        supervisor.run(spec, bounds(), &CancellationToken::new(), &mut |_| {}).await.unwrap();
        times.push(begin.elapsed());
    }
    times.sort();
    println!("true: median {:?}, worst {:?}", times[50], times[99]);
    let process = supervisor.spawn(ProcessSpec::new("sleep", "/").arg("5")).await.unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", parent_of(process.pid()))).unwrap();
    println!(
        "{}",
        status
            .lines()
            .filter(|line| line.starts_with("Rss") || line.starts_with("VmRSS"))
            .collect::<Vec<_>>()
            .join("\n")
    );
}

#[tokio::test]
#[ignore = "a measurement, run by hand"]
async fn what_a_gigabyte_and_a_wide_tree_cost() {
    let supervisor = supervisor();
    let resident = || {
        fs::read_to_string("/proc/self/status")
            .unwrap()
            .lines()
            .find(|line| line.starts_with("VmHWM"))
            .unwrap()
            .to_owned()
    };
    let before = resident();
    let begin = Instant::now();
    let spec = ProcessSpec::new("head", "/").args(["-c", "1000000000", "/dev/zero"]);
    let finished = supervisor.run(spec, bounds(), &CancellationToken::new(), &mut |_| {}).await.unwrap();
    println!(
        "{} bytes in {:?}; {before} before, {} after",
        finished.stdout.total,
        begin.elapsed(),
        resident()
    );

    let script = "trap '' TERM; for i in $(seq 2000); do sleep 1000 & done; echo started; wait";
    let cancel = CancellationToken::new();
    let mut asked = None;
    let spec = bash(script).grace(Duration::ZERO);
    let finished = supervisor
        .run(spec, bounds(), &cancel, &mut |_| {
            asked = Some(Instant::now());
            cancel.cancel();
        })
        .await
        .unwrap();
    println!("2000 processes killed in {:?}: {}", asked.unwrap().elapsed(), finished.exit);
}
