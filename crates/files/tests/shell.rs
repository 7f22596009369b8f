//! `shell` and its background jobs, called as a run calls them.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{
    fmt::Write,
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use haft_files::{Jobs, Shell};
use haft_system::{Environment, Supervisor, Workdir};
use haft_tool::{Call, Context, Family, Origin, Outcome, Progress, Registry, Surface, Tool, Touch};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(20);

struct Bench {
    directory: tempfile::TempDir,
    supervisor: Supervisor,
    jobs: Arc<Jobs>,
    registry: Registry,
}

fn bench() -> Bench {
    bench_with(Environment::capture())
}

fn bench_with(environment: Environment) -> Bench {
    let directory = tempfile::tempdir().unwrap();
    let supervisor = Supervisor::new(environment);
    let jobs = Arc::new(Jobs::new(supervisor.clone()));
    let workdir = Workdir::new(directory.path()).unwrap();
    let shell = Shell::new(supervisor.clone(), workdir, Arc::clone(&jobs));
    let registry = Registry::builder().tool(shell, Family::General).build();
    Bench { directory, supervisor, jobs, registry }
}

impl Bench {
    async fn call(&self, arguments: Value) -> Outcome {
        self.call_in(arguments, Context::detached()).await
    }

    async fn call_in(&self, arguments: Value, context: Context) -> Outcome {
        self.registry.call(&Surface::agent(), Call::new("shell", arguments, Origin::Model), context).await
    }

    /// The answer as it is written into a snapshot: what differs between two runs is replaced.
    async fn shown(&self, arguments: Value) -> String {
        let outcome = self.call(arguments.clone()).await;
        self.show(&format!("{arguments}"), &outcome)
    }

    fn show(&self, title: &str, outcome: &Outcome) -> String {
        let mut text = format!("=== {title}\n{}\n", outcome.all_text());
        if outcome.is_error {
            text.push_str("--- is an error\n");
        }
        writeln!(text, "--- {}", Value::Object(outcome.structured.clone())).unwrap();
        let text = text.replace(self.directory.path().to_str().unwrap(), "DIR");
        let mut steady = String::new();
        let mut rest = text.as_str();
        // Process numbers.
        while let Some(position) =
            rest.find("pid ").map(|at| at + 4).or_else(|| rest.find("\"pid\":").map(|at| at + 6))
        {
            let (before, after) = rest.split_at(position);
            steady.push_str(before);
            steady.push_str("PID");
            rest = after.trim_start_matches(|character: char| character.is_ascii_digit());
        }
        steady.push_str(rest);
        steady
    }
}

async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let begin = Instant::now();
    while !condition().await {
        assert!(begin.elapsed() < PATIENCE, "not in {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_the_model_is_told_of_the_tool() {
    let bench = bench();
    let specs = bench.registry.list(&Surface::agent());
    insta::assert_json_snapshot!(specs);
}

#[tokio::test]
async fn answers_to_commands() {
    let bench = bench();
    let mut shown = String::new();
    for arguments in [
        json!({"command": "echo out; echo err >&2; pwd"}),
        json!({"command": "true"}),
        json!({"command": "printf 'no line break'; exit 3"}),
        json!({"command": "kill -9 $$"}),
        json!({"command": "cat; test -t 0 || echo no terminal"}),
        json!({"command": "printf '\\033[31mred\\033[0m\\n'"}),
        json!({"command": "printf 'caf\\351, long enough not to be taken for a picture\\n'"}),
        json!({"command": "head -c 5000 /dev/zero"}),
        json!({"command": "echo begun; sleep 1000", "timeout_seconds": 1}),
    ] {
        shown.push_str(&bench.shown(arguments).await);
    }
    insta::assert_snapshot!(shown);
}

#[tokio::test]
async fn arguments_that_do_not_go_together_are_refused_in_words() {
    let bench = bench();
    let mut shown = String::new();
    for arguments in [
        json!({}),
        json!({"command": "  "}),
        json!({"command": "true", "timeout_seconds": 0}),
        json!({"command": "true", "job": "job_1"}),
        json!({"command": "true", "action": "list"}),
        json!({"background": true}),
        json!({"job": "job_1", "background": true}),
        json!({"action": "kill"}),
        json!({"action": "list", "job": "job_1"}),
        json!({"action": "stop", "job": "job_1"}),
        json!({"job": "job_1"}),
        json!({"command": "a\u{0}b"}),
        json!({"cmd": "true"}),
    ] {
        shown.push_str(&bench.shown(arguments).await);
    }
    insta::assert_snapshot!(shown);
}

#[tokio::test]
async fn long_output_keeps_both_ends_and_says_what_is_missing() {
    let bench = bench();
    let outcome = bench.call(json!({"command": "seq 1 1000000"})).await;
    let text = outcome.first_text().unwrap();
    assert!(text.starts_with("1\n2\n3\n"));
    assert!(text.ends_with("\n999999\n1000000\n[exit code 0]"));
    assert!(text.len() < 34 * 1024);
    let note = text.lines().find(|line| line.contains("left out")).unwrap();
    // Exactly what is not shown is said to be missing.
    let shown: usize = text.lines().filter(|line| !line.starts_with('[')).map(|line| line.len() + 1).sum();
    let missing = 6_888_896 - shown;
    assert_eq!(
        note,
        format!(
            "[{missing} of 6888896 bytes are left out here. To read them, run the command again with its output in a file \
             (… > FILE 2>&1), and read or search that.]"
        )
    );
    assert_eq!(
        Value::Object(outcome.structured),
        json!({"exit_code": 0, "signal": null, "timed_out": false, "cancelled": false, "output_bytes": 6_888_896,
               "truncated": true, "leftovers": []})
    );
}

#[tokio::test]
async fn what_a_command_leaves_running_is_killed_and_said() {
    let bench = bench();
    let outcome = bench.call(json!({"command": "sleep 1000 & echo started"})).await;
    let leftover = outcome.structured["leftovers"][0].as_str().unwrap();
    let (pid, command) = leftover.split_once(' ').unwrap();
    assert_eq!(command, "sleep 1000");
    assert_eq!(
        outcome.first_text().unwrap(),
        format!(
            "started\n[still running when the command ended, and killed: {leftover}. What is to stay needs a call of its own \
             with \"background\": true]\n[exit code 0]"
        )
    );
    assert!(!fs::exists(format!("/proc/{pid}/cwd")).unwrap());
}

#[tokio::test]
async fn a_cancelled_command_ends_with_what_it_had_said() {
    let bench = bench();
    let cancel = CancellationToken::new();
    let (sender, mut pieces) = mpsc::channel(64);
    let context = Context::new(cancel.clone(), Progress::to(sender));
    let call = bench.call_in(json!({"command": "echo begun; sleep 1000"}), context);
    let (outcome, ()) = tokio::join!(call, async {
        let (_, piece) = pieces.recv().await.unwrap();
        assert_eq!(piece, "begun\n");
        cancel.cancel();
    });
    assert_eq!(bench.supervisor.running(), []);
    insta::assert_snapshot!(bench.show("cancelled", &outcome));
}

#[tokio::test]
async fn an_end_that_is_not_known_is_not_called_a_success() {
    let bench = bench();
    let (sender, mut pieces) = mpsc::channel(64);
    let context = Context::new(CancellationToken::new(), Progress::to(sender));
    let call = bench.call_in(json!({"command": "echo begun; sleep 1000"}), context);
    let (outcome, ()) = tokio::join!(call, async {
        pieces.recv().await.unwrap();
        until("it is known to run", async || !bench.supervisor.running().is_empty()).await;
        let pid = bench.supervisor.running()[0].pid;
        let kill_guard = format!("read -r _ _ _ guard _ < /proc/{pid}/stat; kill -9 $guard");
        bench.call(json!({"command": kill_guard})).await;
    });
    assert_eq!(bench.supervisor.running(), []);
    insta::assert_snapshot!(bench.show("the guard is killed", &outcome));
}

#[tokio::test]
async fn output_is_shown_as_it_comes_and_in_order() {
    let bench = bench();
    let (sender, mut pieces) = mpsc::channel(1024);
    let context = Context::new(CancellationToken::new(), Progress::to(sender));
    let script = "for i in $(seq 2000); do printf '\\033[1m%s\\033[0m é\\n' $i; done";
    let outcome = bench.call_in(json!({"command": script}), context).await;
    let mut live = String::new();
    let mut count = 0;
    while let Ok((_, piece)) = pieces.try_recv() {
        live.push_str(&piece);
        count += 1;
    }
    let expected: String = (1..=2000).flat_map(|number| [number.to_string(), " é\n".to_owned()]).collect();
    assert_eq!(live, expected);
    assert!(count < 200, "small pieces are put together: {count}");
    assert_eq!(outcome.first_text().unwrap(), format!("{expected}[exit code 0]"));
}

#[tokio::test]
async fn without_bash_it_is_sh_and_said() {
    let programs = tempfile::tempdir().unwrap();
    let environment = Environment::capture();
    std::os::unix::fs::symlink(environment.find_program("sh").unwrap(), programs.path().join("sh")).unwrap();
    let bench = bench_with(Environment::of([("PATH", programs.path())], "/"));
    let mut shown = bench.shown(json!({"command": "echo hello"})).await;
    fs::remove_file(programs.path().join("sh")).unwrap();
    shown.push_str(&bench.shown(json!({"command": "echo hello"})).await);
    insta::assert_snapshot!(shown);
}

#[tokio::test]
async fn commands_and_nothing_else_are_touched() {
    let bench = bench();
    let workdir = Workdir::new(bench.directory.path()).unwrap();
    let shell = Shell::new(bench.supervisor.clone(), workdir, Arc::clone(&bench.jobs));
    let touches = |arguments: Value| shell.touches(&serde_json::from_value(arguments).unwrap());
    assert_eq!(
        touches(json!({"command": "rm -rf x", "background": true})),
        [Touch::Command("rm -rf x".to_owned())]
    );
    assert_eq!(touches(json!({"job": "job_1", "action": "kill"})), []);
}

#[tokio::test]
async fn the_life_of_jobs() {
    let bench = bench();
    let mut shown = bench.shown(json!({"action": "list"})).await;
    let serve = "echo ready; while ! test -e stop; do sleep 0.02; done; echo stopped; exit 4";
    shown.push_str(&bench.shown(json!({"command": serve, "background": true})).await);
    until("the job writes", async || {
        let listed = bench.call(json!({"action": "list"})).await;
        listed.structured["jobs"][0]["output_bytes"] == 6
    })
    .await;
    shown.push_str(&bench.shown(json!({"job": "job_1"})).await);
    shown.push_str(&bench.shown(json!({"job": "job_1", "action": "output"})).await);
    shown.push_str(&bench.shown(json!({"job": "job_1", "action": "wait", "timeout_seconds": 1})).await);
    fs::write(bench.directory.path().join("stop"), "").unwrap();
    shown.push_str(&bench.shown(json!({"job": "job_1", "action": "wait"})).await);
    shown.push_str(&bench.shown(json!({"job": "job_1"})).await);

    shown.push_str(&bench.shown(json!({"command": "sleep 1000 & sleep 1000", "background": true})).await);
    shown.push_str(&bench.shown(json!({"job": "job_3", "action": "kill"})).await);
    shown.push_str(&bench.shown(json!({"job": "job_2", "action": "kill"})).await);
    shown.push_str(&bench.shown(json!({"job": "job_2", "action": "kill"})).await);
    let brief = json!({"command": "sleep 1000", "background": true, "timeout_seconds": 1});
    shown.push_str(&bench.shown(brief).await);
    shown.push_str(&bench.shown(json!({"job": "job_3", "action": "wait"})).await);
    assert_eq!(bench.supervisor.running(), []);
    insta::assert_snapshot!(shown);

    let listed = bench.call(json!({"action": "list"})).await;
    let lines: Vec<String> = listed
        .all_text()
        .lines()
        .map(|line| {
            line.split("  ")
                .enumerate()
                .filter(|(index, _)| ![2, 3].contains(index))
                .map(|(_, part)| part)
                .collect::<Vec<_>>()
                .join("  ")
        })
        .collect();
    assert_eq!(
        lines,
        [
            format!("job_1  exit code 4  14 bytes of output  {serve}"),
            "job_2  killed  0 bytes of output  sleep 1000 & sleep 1000".to_owned(),
            "job_3  timed out  0 bytes of output  sleep 1000".to_owned(),
        ]
    );
}

#[tokio::test]
async fn a_job_that_floods_is_bounded_and_what_was_lost_is_said() {
    let bench = bench();
    bench.call(json!({"command": "seq 1 1000000", "background": true})).await;
    let outcome = bench.call(json!({"job": "job_1", "action": "wait"})).await;
    let text = outcome.first_text().unwrap();
    assert!(
        text.starts_with(
            "[6626752 bytes before this were dropped: only the newest are kept until you look]\n"
        )
    );
    assert!(text.ends_with("\n1000000\n[job_1 has ended: exit code 0]"));
    assert!(text.len() < 34 * 1024);
    assert_eq!(outcome.structured["truncated"], true);
    assert_eq!(outcome.structured["output_bytes"], 6_888_896);
}

#[tokio::test]
async fn jobs_are_bounded_in_number_and_end_with_the_conversation() {
    let bench = bench();
    for _ in 0..16 {
        let outcome = bench.call(json!({"command": "trap '' TERM; sleep 1000", "background": true})).await;
        assert!(!outcome.is_error);
    }
    let mut shown = bench.shown(json!({"command": "true", "background": true})).await;
    assert_eq!(bench.supervisor.running().len(), 16);
    bench.jobs.shutdown().await;
    assert_eq!(bench.supervisor.running(), []);
    shown.push_str(&bench.shown(json!({"command": "true", "background": true})).await);
    insta::assert_snapshot!(shown);
}

#[tokio::test]
async fn jobs_that_nobody_holds_any_more_end() {
    let bench = bench();
    bench.call(json!({"command": "sleep 1000", "background": true})).await;
    let Bench { supervisor, jobs, registry, .. } = bench;
    assert_eq!(supervisor.running().len(), 1);
    drop((jobs, registry));
    until("the job is gone", async || supervisor.running().is_empty()).await;
}

#[tokio::test]
async fn old_jobs_are_forgotten_and_running_ones_are_not() {
    let bench = bench();
    bench.call(json!({"command": "sleep 1000", "background": true})).await;
    for number in 2..=40 {
        bench.call(json!({"command": "true", "background": true})).await;
        bench.call(json!({"job": format!("job_{number}"), "action": "wait"})).await;
    }
    let listed = bench.call(json!({"action": "list"})).await;
    let names: Vec<&str> = listed.structured["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["job"].as_str().unwrap())
        .collect();
    // The newest was not yet at its end when it was entered.
    let expected: Vec<String> =
        std::iter::once(1).chain(8..=40).map(|number| format!("job_{number}")).collect();
    assert_eq!(names, expected);
}
