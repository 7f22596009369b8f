use std::path::Path;

use haft_system::Workdir;
use haft_tool::{Access, Spec, Tier, Touch};
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::*;

fn spec(name: &str, tier: Tier) -> Spec {
    Spec { name: name.into(), tier, description: String::new(), schema: json!({}), parallel: true }
}

fn shell_spec() -> Spec {
    spec("shell", Tier::Exec)
}

fn allow(pattern: &str) -> Rule {
    Rule::new(Action::Allow, "haft.toml:1").command(CommandPattern::new(pattern).unwrap())
}

fn deny(pattern: &str) -> Rule {
    Rule { action: Action::Deny, ..allow(pattern) }
}

fn path(action: Action, pattern: &str) -> Rule {
    Rule { path: Some(PathPattern::new(pattern).unwrap()), ..Rule::new(action, "haft.toml:1") }
}

impl Rule {
    fn anchored_at(mut self, directory: &Path) -> Self {
        self.path = self.path.map(|path| path.anchored(directory).unwrap());
        self
    }
}

struct Place {
    directory: TempDir,
    workdir: Workdir,
}

fn place() -> Place {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("work");
    std::fs::create_dir_all(root.join("src")).unwrap();
    std::fs::create_dir_all(root.join("config")).unwrap();
    std::fs::create_dir_all(directory.path().join("elsewhere")).unwrap();
    std::fs::write(root.join(".env"), "SECRET=1").unwrap();
    std::fs::write(root.join("config/secret"), "x").unwrap();
    std::os::unix::fs::symlink("../config/secret", root.join("src/key")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", root.join("out")).unwrap();
    let workdir = Workdir::new(&root).unwrap();
    Place { directory, workdir }
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow { .. } => "allow",
        Verdict::Deny { .. } => "deny",
        Verdict::Prompt { .. } => "prompt",
    }
}

fn judge(policy: &Policy, workdir: &Workdir, line: &str) -> Verdict {
    policy.judge(&shell_spec(), &[Touch::Command(line.into())], &json!({"command": line}), workdir)
}

/// Judges every line and compares the whole table.
fn table(policy: &Policy, lines: &[(&str, &str)]) {
    let place = place();
    let got: Vec<(&str, &str)> =
        lines.iter().map(|(line, _)| (*line, word(&judge(policy, &place.workdir, line)))).collect();
    let odd: Vec<String> = lines
        .iter()
        .zip(&got)
        .filter(|((_, wanted), (_, got))| wanted != got)
        .map(|((line, wanted), (_, got))| {
            format!("{line:?}: wanted {wanted}, got {got}: {:?}", judge(policy, &place.workdir, line))
        })
        .collect();
    assert_eq!(odd, Vec::<String>::new());
}

/// Rules that are as wide as a careless person would write them, and two that deny.
fn careless() -> Policy {
    let allowed = [
        "git status",
        "git log *",
        "git diff *",
        "git add *",
        "git *",
        "cargo test *",
        "ls *",
        "echo *",
        "cat *",
        "rg *",
        "find *",
        "env *",
        "sh *",
        "bash *",
        "python3 *",
        "perl *",
        "node *",
        "ruby *",
        "xargs *",
        "sed *",
        "awk *",
        "timeout *",
        "nice *",
        "nohup *",
        "sudo *",
        "eval *",
        "exec *",
        "command *",
        "ssh *",
        "parallel *",
        "time *",
        "tar *",
        "sort *",
        "test *",
        "printf *",
        "export *",
        "source *",
        "alias *",
        "trap *",
        "coproc *",
        "tee *",
        "rmdir",
        "npm run test:*",
        "[ *",
        "read *",
        "let *",
        "set *",
        "declare *",
    ];
    let mut rules: Vec<Rule> = allowed.iter().map(|pattern| allow(pattern)).collect();
    rules.push(deny("git push"));
    rules.push(deny("rm *"));
    Policy::new(Preset::Ask, rules)
}

#[test]
fn plain_lines_pass_by_their_rules() {
    table(
        &careless(),
        &[
            ("git status", "allow"),
            ("  git   status  ", "allow"),
            ("git status\n", "allow"),
            ("/usr/bin/git status", "allow"),
            ("git status && cargo test", "allow"),
            ("git status; cargo test --all | cat", "allow"),
            ("cargo test -p haft-tool 2>&1 | cat", "allow"),
            ("cargo test >/dev/null 2>&1", "allow"),
            ("(git status; ls src)", "allow"),
            ("{ git status; ls; }", "allow"),
            ("! git status", "allow"),
            ("if git status; then ls; else cargo test; fi", "allow"),
            ("while false; do ls; done", "allow"),
            ("ls & cargo test", "allow"),
            ("git status # and rm -rf /", "allow"),
            ("git status # ; rm -rf /\nls", "allow"),
            ("echo 'rm -rf / ; $(id) `x`'", "allow"),
            ("echo \"a; b && c | d > e\"", "allow"),
            ("echo a\\;b \\$HOME", "allow"),
            ("echo $ 100%", "allow"),
            ("ls *.rs src/[ab]?", "allow"),
            ("find . -name '*.rs' -type f", "allow"),
            ("sed -n '1,50p' src/lib.rs", "allow"),
            ("sed -i 's/a b/c/g' src/lib.rs", "allow"),
            ("awk '{print $1}' file", "allow"),
            ("python3 scripts/build.py --fast", "allow"),
            ("python3 -m pytest -x", "allow"),
            ("npm run test:unit", "allow"),
            ("timeout 60 cargo test", "allow"),
            ("timeout -k 5 60 cargo test", "allow"),
            ("nice -n 10 cargo test && nohup ls", "allow"),
            ("git --no-pager log", "allow"),
            ("cd src && ls", "allow"),
            ("[ -f Cargo.toml ] && cat Cargo.toml", "allow"),
            ("cat <<'EOF'\n$(rm -rf /)\nEOF", "allow"),
            ("cat <<EOF\nplain; rm -rf /\nEOF\nls", "allow"),
            ("cat <<-EOF | rg x\n\tplain\n\tEOF", "allow"),
            ("cat <<< hello", "allow"),
            ("cat < src/lib.rs", "allow"),
            ("echo grüße 日本語 🦀", "allow"),
            ("echo foo#bar", "allow"),
            ("cargo \\\n  test --all", "allow"),
            ("tee /dev/null", "allow"),
            ("true", "allow"),
            ("command -v git", "allow"),
            ("bash scripts/ci.sh", "allow"),
            ("echo 'it'\"'\"'s'", "allow"),
        ],
    );
}

#[test]
fn every_command_of_a_line_is_judged() {
    table(
        &careless(),
        &[
            ("git status; curl x", "prompt"),
            ("git status && curl x", "prompt"),
            ("git status || curl x", "prompt"),
            ("git status | curl x", "prompt"),
            ("git status |& curl x", "prompt"),
            ("git status & curl x", "prompt"),
            ("git status\ncurl x", "prompt"),
            ("git status;curl x", "prompt"),
            ("git status&&curl x", "prompt"),
            ("(git status; curl x)", "prompt"),
            ("{ git status; curl x; }", "prompt"),
            ("if git status; then curl x; fi", "prompt"),
            ("while git status; do curl x; done", "prompt"),
            ("until curl x; do ls; done", "prompt"),
            ("! curl x", "prompt"),
            ("git status # x\ncurl x", "prompt"),
            ("cat <<EOF && curl x\nhi\nEOF", "prompt"),
            ("cat <<EOF\nhi\nEOF\ncurl x", "prompt"),
            // Deny rules find the command in every corner.
            ("git status; rm x", "deny"),
            ("git status && rm x", "deny"),
            ("git status | rm x", "deny"),
            ("git status & rm x", "deny"),
            ("git status\nrm x", "deny"),
            ("(rm x)", "deny"),
            ("{ rm x; }", "deny"),
            ("echo $(rm x)", "deny"),
            ("echo `rm x`", "deny"),
            ("echo \"a $(rm x) b\"", "deny"),
            ("echo \"a `rm x` b\"", "deny"),
            ("echo ${x:-$(rm x)}", "deny"),
            ("echo $(( $(rm x) + 1 ))", "deny"),
            ("cat <(rm x)", "deny"),
            ("ls >(rm x)", "deny"),
            ("cat <<EOF\n$(rm x)\nEOF", "deny"),
            ("cat <<EOF\n`rm x`\nEOF", "deny"),
            ("cat <<< \"$(rm x)\"", "deny"),
            ("f() { rm x; }; f", "deny"),
            ("function f { rm x; }", "deny"),
            ("for i in a b; do rm x; done", "deny"),
            ("for i in $(rm x); do ls; done", "deny"),
            ("for ((i=0; i<3; i++)); do rm x; done", "deny"),
            ("while true; do rm x; done", "deny"),
            ("if rm x; then ls; fi", "deny"),
            ("case $x in a) ls;; b|c) rm x;; esac", "deny"),
            ("select x in a b; do rm x; done", "deny"),
            ("[[ -n $(rm x) ]]", "deny"),
            ("(( a[$(rm x)] ))", "deny"),
            ("a=$(rm x)", "deny"),
            ("a=$(rm x) ls", "deny"),
            ("arr=(1 $(rm x))", "deny"),
            ("export A=$(rm x)", "deny"),
            ("X=1 rm x", "deny"),
            ("> file rm x", "deny"),
            ("! rm x", "deny"),
            ("time rm x", "deny"),
            ("coproc rm x", "deny"),
            ("coproc N { rm x; }", "prompt"),
            ("cat <<EOF && rm x\nhi\nEOF", "deny"),
            ("echo x > \"$(rm x)\"", "deny"),
        ],
    );
}

#[test]
fn quoting_does_not_hide_a_command() {
    table(
        &careless(),
        &[
            ("git push", "deny"),
            ("git push origin main", "deny"),
            ("g\"i\"t pu\\sh", "deny"),
            ("'git' \"push\"", "deny"),
            ("\\rm x", "deny"),
            ("r''m x", "deny"),
            ("/usr/bin/rm x", "deny"),
            ("./rm x", "deny"),
            ("r\\\nm x", "deny"),
            ("git pu\\\nsh", "deny"),
            ("git \\\n push", "deny"),
            ("git -C dir push", "deny"),
            ("git --no-pager push", "deny"),
            ("git -c a=b push", "deny"),
            ("git -c alias.x='!rm y' x", "deny"),
            ("git --git-dir=x --work-tree y push", "deny"),
            // What the shell makes of it is not known, and it could be denied.
            ("$'rm' x", "prompt"),
            ("$X x", "prompt"),
            ("git $X", "prompt"),
            ("git pus?", "prompt"),
            ("/bin/r? x", "prompt"),
            ("/*/rm x", "prompt"),
            ("{rm,x}", "prompt"),
            ("git {push,x}", "prompt"),
            ("~/bin/tool x", "prompt"),
            ("git --unknown-option push", "deny"),
            ("git --unknown-option value push", "prompt"),
            ("git -c alias.x=push x", "prompt"),
        ],
    );
}

#[test]
fn wrappers_never_pass_and_are_seen_through() {
    table(
        &careless(),
        &[
            ("env git status", "prompt"),
            ("env A=1 ls", "prompt"),
            ("env", "prompt"),
            ("xargs cat", "prompt"),
            ("ls | xargs cat", "prompt"),
            ("sh -c 'git status'", "prompt"),
            ("bash -lc 'git status'", "prompt"),
            ("bash -c \"$X\"", "prompt"),
            ("echo ls | bash", "prompt"),
            ("bash < script", "prompt"),
            ("bash <<EOF\nls\nEOF", "prompt"),
            ("eval git status", "prompt"),
            ("eval \"$X\"", "prompt"),
            ("exec git status", "prompt"),
            ("command git status", "prompt"),
            ("sudo ls", "prompt"),
            ("time ls", "prompt"),
            ("ssh host ls", "prompt"),
            ("parallel ls ::: a b", "prompt"),
            ("find . -delete", "prompt"),
            ("find . -exec cat {} +", "prompt"),
            ("find . -ok cat {} \\;", "prompt"),
            ("find . -fprint x", "prompt"),
            ("git -c core.pager=x log", "prompt"),
            ("git --exec-path=/tmp log", "prompt"),
            ("git -C /tmp status", "prompt"),
            ("git rebase -x ls main", "prompt"),
            ("git bisect run ls", "prompt"),
            ("git grep -Oless x", "prompt"),
            ("git config core.pager x", "prompt"),
            ("git diff --output=x", "prompt"),
            ("python3 -c 'print(1)'", "prompt"),
            ("python3 -Ic 'print(1)'", "prompt"),
            ("python3 -W ignore -c 'print(1)'", "prompt"),
            ("python3", "prompt"),
            ("echo x | python3 -", "prompt"),
            ("perl -e 'x'", "prompt"),
            ("perl -ne 'x' file", "prompt"),
            ("node -e 'x'", "prompt"),
            ("node --eval=x", "prompt"),
            ("ruby -e 'x'", "prompt"),
            ("awk 'BEGIN { system(\"ls\") }'", "prompt"),
            ("awk '{ print > \"f\" }'", "prompt"),
            ("sed '1e ls' f", "prompt"),
            ("sed 's/a/b/e' f", "prompt"),
            ("sed 's/a/b/w out' f", "prompt"),
            ("sed -n -e '1p' -e 'w out' f", "prompt"),
            ("rg --pre ls x", "prompt"),
            ("tar --to-command=ls xf a", "prompt"),
            ("sort --compress-program=ls a", "prompt"),
            ("test -v 'a[$(ls)]'", "prompt"),
            ("printf -v 'a[0]' x", "prompt"),
            ("export PATH=/tmp; git status", "prompt"),
            ("source ./x; git status", "prompt"),
            ("alias git=ls; git status", "prompt"),
            ("trap 'ls' EXIT", "prompt"),
            ("coproc cat", "prompt"),
            ("read x", "prompt"),
            ("let a=1", "prompt"),
            ("timeout --unknown 5 ls", "prompt"),
            ("timeout 5", "prompt"),
            ("timeout 5 curl x", "prompt"),
            ("nohup curl x", "prompt"),
            ("timeout 5 env ls", "prompt"),
            // A deny rule sees the command inside.
            ("env rm x", "deny"),
            ("env -i -u B A=1 rm x", "deny"),
            ("xargs rm", "deny"),
            ("ls | xargs -0 -n 1 rm -f", "deny"),
            ("sh -c 'rm x'", "deny"),
            ("bash -lc 'ls && rm x'", "deny"),
            ("bash -c \"sh -c 'rm x'\"", "deny"),
            ("bash -c 'echo $(rm x)'", "deny"),
            ("eval 'rm x'", "deny"),
            ("eval rm x", "deny"),
            ("exec rm x", "deny"),
            ("command rm x", "deny"),
            ("builtin command rm x", "deny"),
            ("sudo -u root rm x", "deny"),
            ("nohup rm x", "deny"),
            ("timeout 5 rm x", "deny"),
            ("timeout -s KILL 5 nice -n 3 rm x", "deny"),
            ("find . -exec rm {} \\;", "deny"),
            ("find . -name x -execdir rm {} +", "deny"),
            ("trap 'rm x' EXIT", "deny"),
            ("timeout 5 git -C x push", "deny"),
            ("sudo env X=1 git push", "deny"),
            // It could be what is denied.
            ("ssh host rm x", "prompt"),
            ("parallel rm ::: a", "prompt"),
            ("python3 -c 'import os; os.system(\"rm x\")'", "prompt"),
        ],
    );
}

#[test]
fn what_is_not_certain_is_asked() {
    table(
        &careless(),
        &[
            ("LD_PRELOAD=x git status", "prompt"),
            ("PATH=/tmp git status", "prompt"),
            ("PATH=/tmp; git status", "prompt"),
            ("GIT_PAGER=x git log", "prompt"),
            ("A=1", "prompt"),
            ("for PATH in /tmp; do git status; done", "prompt"),
            ("echo $HOME", "prompt"),
            ("echo \"$HOME\"", "prompt"),
            ("echo ${x@P}", "prompt"),
            ("echo $(git status)", "prompt"),
            ("echo `git status`", "prompt"),
            ("echo $((1 + 2))", "prompt"),
            ("echo $'a'", "prompt"),
            ("echo {a,b}", "prompt"),
            ("echo {1..3}", "prompt"),
            ("cat <(ls)", "prompt"),
            ("cat <<EOF\n$HOME\nEOF", "prompt"),
            ("cat <<EO\"F\"\n$(id)\nEOF", "prompt"),
            ("cat <<A <<B\nx\nA\ny\nB", "prompt"),
            ("cat <<EOF\nnever closed", "prompt"),
            ("(( x = 1 ))", "prompt"),
            ("[[ -v a ]]", "prompt"),
            ("[ a > b ]", "prompt"),
            ("git status\r\nls\r\n", "prompt"),
            ("git\u{a0}status", "prompt"),
            ("git status\u{b}", "prompt"),
            ("git\u{2028}status", "prompt"),
            ("git status \u{f8ff}", "prompt"),
            ("ls 'unterminated", "prompt"),
            ("ls (", "prompt"),
            ("ls ;;", "prompt"),
            ("ls )", "prompt"),
            ("if ls; then", "prompt"),
            ("git status &&", "prompt"),
            ("cat <<EOF\nEO\\\nF\nls\nEOF", "prompt"),
            ("echo \"$\\\n(ls)\"", "prompt"),
            ("echo $\\\n(ls)", "prompt"),
            ("echo \"a\\\nb\"", "prompt"),
            ("ls &\\\n& ls", "prompt"),
            ("ec\\\nho x", "prompt"),
            ("echo \"$\\\n(rm x)\"", "prompt"),
            ("ls > /dev/null x", "prompt"),
            ("ls \\", "prompt"),
            ("f() { ls; }", "prompt"),
            ("case x in x) ls;; esac", "prompt"),
            ("cd /tmp && ls", "prompt"),
            ("cd - && ls", "prompt"),
            ("cd out && ls", "prompt"),
            ("cd && ls", "prompt"),
            ("./git status", "prompt"),
            ("/tmp/git status", "prompt"),
            ("git status x", "allow"),
            ("rmdir x", "prompt"),
            ("rmdir", "allow"),
            ("gitk status", "prompt"),
            ("ls {fd}>x", "prompt"),
            ("\"\" x", "prompt"),
            ("", "allow"),
            ("# nothing", "allow"),
            // A line that does not parse: deny rules are tried against its words.
            ("if; then rm x", "deny"),
            ("ls 'unterminated ; git push", "deny"),
            ("git >/dev/null push", "deny"),
        ],
    );
}

#[test]
fn redirects_are_writes() {
    let lines = [
        ("echo x > file", "prompt", "allow"),
        ("echo x >> src/file", "prompt", "allow"),
        ("echo x >| file", "prompt", "allow"),
        ("echo x &> file", "prompt", "allow"),
        // The grammar does not know this one.
        ("cat <> file", "prompt", "prompt"),
        ("echo x 2> file", "prompt", "allow"),
        ("echo x >&file", "prompt", "allow"),
        ("> file", "prompt", "allow"),
        ("echo x | tee file", "prompt", "allow"),
        ("{ ls; echo x; } > file", "prompt", "allow"),
        ("cat > file <<'EOF'\nx\nEOF", "prompt", "allow"),
        ("echo x > /tmp/file", "prompt", "prompt"),
        ("echo x > ../file", "prompt", "prompt"),
        ("echo x > src/../../file", "prompt", "prompt"),
        ("echo x > out/file", "prompt", "prompt"),
        ("echo x > .git/hooks/pre-commit", "prompt", "prompt"),
        ("echo x > ~/file", "prompt", "prompt"),
        ("echo x > $F", "prompt", "prompt"),
        ("echo x > *.txt", "prompt", "prompt"),
        ("echo x > /dev/tcp/host/80", "prompt", "prompt"),
        ("cat < /etc/passwd", "prompt", "prompt"),
        ("cd src && echo x > file", "prompt", "prompt"),
        ("echo x | tee /tmp/file", "prompt", "prompt"),
        ("echo x > /dev/null", "allow", "allow"),
        ("echo x >&2", "allow", "allow"),
        ("echo x 2>&1", "allow", "allow"),
    ];
    let ask = careless();
    let edits = Policy::new(Preset::Edits, ask.rules().to_vec());
    table(&ask, &lines.map(|(line, ask, _)| (line, ask)));
    table(&edits, &lines.map(|(line, _, edits)| (line, edits)));

    let mut by_rule = ask;
    by_rule.add(path(Action::Allow, "src/"));
    by_rule.add(Rule { tier: Some(Tier::Write), ..path(Action::Deny, "*.lock") });
    table(
        &by_rule,
        &[
            ("echo x > src/file", "allow"),
            ("echo x > src/deep/er/file", "allow"),
            ("echo x > srcs/file", "prompt"),
            ("echo x > src/key", "prompt"),
            ("echo x > src/../Cargo.toml", "prompt"),
            ("echo x > src/Cargo.lock", "deny"),
            ("curl x > src/file", "prompt"),
        ],
    );
}

#[test]
fn a_denied_path_is_denied_to_every_tool() {
    let place = place();
    let policy = Policy::new(
        Preset::Trusted,
        vec![path(Action::Deny, ".env"), path(Action::Deny, "config/secret"), path(Action::Deny, "/etc/")],
    );
    let touch = |tool: &str, tier: Tier, path: &str, access: Access| {
        word(&policy.judge(
            &spec(tool, tier),
            &[Touch::Path(path.into(), access)],
            &json!({}),
            &place.workdir,
        ))
    };
    let absolute = place.workdir.root().join(".env");
    let got = [
        touch("read", Tier::Read, ".env", Access::Read),
        touch("read", Tier::Read, "./src/../.env", Access::Read),
        touch("read", Tier::Read, absolute.to_str().unwrap(), Access::Read),
        touch("read", Tier::Read, "deep/below/.env", Access::Read),
        touch("write", Tier::Write, ".env", Access::Write),
        touch("read", Tier::Read, "src/key", Access::Read),
        touch("read", Tier::Read, "/etc/passwd", Access::Read),
        touch("read", Tier::Read, "src/lib.rs", Access::Read),
        touch("read", Tier::Read, ".environment", Access::Read),
    ];
    assert_eq!(got, ["deny", "deny", "deny", "deny", "deny", "deny", "deny", "allow", "allow"]);
    table(
        &policy,
        &[
            ("cat .env", "deny"),
            ("cat < .env", "deny"),
            ("echo x > .env", "deny"),
            ("cp --from=.env x", "deny"),
            ("sh -c 'cat .env'", "deny"),
            ("cat src/key", "deny"),
            ("cat .e*", "prompt"),
            ("cd config && cat secret", "prompt"),
            ("cd config && cat other", "allow"),
            ("cat * src/*.rs", "allow"),
            ("echo x > $F", "prompt"),
            ("echo hello", "allow"),
        ],
    );
}

#[test]
fn trusted_prompts_only_for_what_could_be_denied() {
    table(
        &Policy::new(Preset::Trusted, Vec::new()),
        &[("rm -rf /", "allow"), ("$X", "allow"), ("ls (", "allow"), ("echo x > /tmp/y", "allow")],
    );
    table(
        &Policy::new(Preset::Trusted, vec![deny("git push")]),
        &[
            ("echo $X", "allow"),
            ("cargo $X", "allow"),
            ("for f in *.rs; do wc -l $f; done", "allow"),
            ("A=1 cargo test", "allow"),
            ("python3 -c 'print(1)'", "allow"),
            ("git status && git log", "allow"),
            ("git push", "deny"),
            ("git $X", "prompt"),
            ("$X push", "prompt"),
            ("eval \"$X\"", "prompt"),
            ("curl x | sh", "prompt"),
            ("cat <<\"E F\"\nx\nE F\nls", "prompt"),
            ("cat <<EOF\nEO\\\nF\ngit push\nEOF", "prompt"),
            ("echo $X \"git push\"", "prompt"),
            ("git <&-push", "prompt"),
            ("git >&- push", "deny"),
            ("python3 -c 'run([\"git\", \"push\"])'", "prompt"),
            ("ls (", "prompt"),
        ],
    );
}

#[test]
fn deny_beats_prompt_beats_allow_beats_preset() {
    let place = place();
    let everything = |action| Rule::new(action, "haft.toml:1").tool("edit");
    let verdict = |preset, actions: &[Action]| {
        let policy = Policy::new(preset, actions.iter().map(|action| everything(*action)).collect());
        let touches = [Touch::Path("a".into(), Access::Write)];
        word(&policy.judge(&spec("edit", Tier::Write), &touches, &json!({}), &place.workdir))
    };
    let got = [
        verdict(Preset::Ask, &[]),
        verdict(Preset::Edits, &[]),
        verdict(Preset::Trusted, &[]),
        verdict(Preset::Ask, &[Action::Allow]),
        verdict(Preset::Trusted, &[Action::Allow, Action::Prompt]),
        verdict(Preset::Trusted, &[Action::Prompt, Action::Allow, Action::Deny]),
    ];
    assert_eq!(got, ["prompt", "allow", "allow", "allow", "prompt", "deny"]);
}

#[test]
fn every_path_of_a_call_must_be_allowed() {
    let place = place();
    let policy = Policy::new(Preset::Ask, vec![path(Action::Allow, "docs/")]);
    let touches = |paths: &[&str]| {
        paths.iter().map(|path| Touch::Path(Path::new(path).into(), Access::Write)).collect::<Vec<_>>()
    };
    let verdict = |paths: &[&str]| {
        word(&policy.judge(&spec("apply_patch", Tier::Write), &touches(paths), &json!({}), &place.workdir))
    };
    let got = [verdict(&["docs/a.md"]), verdict(&["docs/a.md", "src/b.rs"]), verdict(&["docs/../src/b.rs"])];
    assert_eq!(got, ["allow", "prompt", "prompt"]);
    // Starting what lies there is another matter.
    let debug = policy.judge(&spec("debug", Tier::Exec), &touches(&["docs/a"]), &json!({}), &place.workdir);
    assert_eq!(word(&debug), "prompt");
}

#[test]
fn outside_paths_are_compared_as_absolute_ones() {
    let place = place();
    let outside = std::fs::canonicalize(place.directory.path().join("elsewhere")).unwrap();
    let mut policy = careless();
    policy.add(path(Action::Allow, outside.to_str().unwrap()));
    let line = format!("echo x > {}/file", outside.display());
    let got = [&line, "echo x > out/file", "echo x > out/../file"]
        .map(|line| word(&judge(&policy, &place.workdir, line)));
    assert_eq!(got, ["allow", "allow", "prompt"]);
    // A relative pattern never lets anything outside through, and denies there all the same.
    let mut policy = careless();
    policy.add(path(Action::Allow, "**"));
    policy.add(path(Action::Allow, "."));
    policy.add(path(Action::Deny, "*.pem"));
    let got = [&line, "echo x > file", "echo x > /tmp/a.pem", "echo x > out/deep/a.pem"]
        .map(|line| word(&judge(&policy, &place.workdir, line)));
    assert_eq!(got, ["prompt", "allow", "deny", "deny"]);
    // An absolute pattern is about places inside, too.
    let mut policy = careless();
    policy.add(path(Action::Allow, &format!("{}/src", place.workdir.root().display())));
    policy.add(path(Action::Deny, "src/x/").anchored_at(place.workdir.root()));
    let got = ["echo x > src/file", "echo x > src/x/y", "echo x > file"]
        .map(|line| word(&judge(&policy, &place.workdir, line)));
    assert_eq!(got, ["allow", "deny", "prompt"]);
}

#[test]
fn always_offers_a_rule_only_where_it_would_help() {
    let place = place();
    let policy = Policy::new(Preset::Ask, vec![deny("git push"), allow("ls *")]);
    let mut shown = Vec::new();
    for line in [
        "cargo test -p x",
        "cargo --version",
        "git commit -m 'a b'",
        "npm run test:unit",
        "uv run script.py",
        "grep -rn x src",
        "./run.sh --fast",
        "rm -rf target",
        "mv a* b",
        "cd src && cargo test",
        "cargo test 2>&1 | tail -5",
        "ls && cargo build",
        "timeout 60 cargo test",
        "cargo test > file",
        "env cargo test",
        "echo $X",
        "git pull && git push",
        "sh -c ls",
    ] {
        let verdict = judge(&policy, &place.workdir, line);
        let always = match &verdict {
            Verdict::Prompt { why, always } => {
                let rule = always.as_ref().map_or("nothing".to_owned(), Rule::in_words);
                format!("{why} Always: {rule}.")
            }
            Verdict::Allow { rule } => format!("allowed by {rule:?}"),
            Verdict::Deny { rule, .. } => format!("denied by {rule}"),
        };
        shown.push(format!("{line}\n  {always}"));
        if let Verdict::Prompt { always: Some(rule), .. } = verdict {
            let mut later = policy.clone();
            later.add(rule);
            assert_eq!(word(&judge(&later, &place.workdir, line)), "allow", "{line}");
        }
    }
    for (tool, tier) in [("edit", Tier::Write), ("debug", Tier::Exec)] {
        let verdict = policy.judge(
            &spec(tool, tier),
            &[Touch::Path("src/lib.rs".into(), Access::Write)],
            &json!({}),
            &place.workdir,
        );
        shown.push(format!("{tool}\n  {verdict:?}"));
    }
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn messages_name_rule_origin_and_reason() {
    let place = place();
    let rule = Rule { reason: Some("releases go through CI".into()), ..deny("git push") };
    let prompt = Rule { action: Action::Prompt, reason: Some("costs money".into()), ..allow("terraform *") };
    let policy = Policy::new(Preset::Trusted, vec![rule, prompt]);
    let shown: Vec<String> = ["git push -f", "terraform apply", "git $X", "ls"]
        .iter()
        .map(|line| format!("{line}\n  {:?}", judge(&policy, &place.workdir, line)))
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn patterns_are_read_exactly() {
    let allows = |pattern: &str, line: &str| {
        let words = shell::pattern_words(line).unwrap();
        CommandPattern::new(pattern).unwrap().allows(&words)
    };
    let got = [
        allows("cargo test", "cargo test"),
        allows("cargo test", "cargo test x"),
        allows("cargo test *", "cargo test"),
        allows("cargo test *", "cargo test x y"),
        allows("cargo test *", "cargo testx"),
        allows("cargo * --locked", "cargo build --locked"),
        allows("cargo * --locked", "cargo build x --locked"),
        allows("npm run test:*", "npm run test:a"),
        allows("npm run test:*", "npm run test:a b"),
        allows("git*", "gitk"),
        allows("a*b*c", "aXbYc"),
        allows("a*b*c", "acb"),
        allows("git commit -m 'a b'", "git commit -m 'a b'"),
        allows("*", "anything at all"),
        // A wildcard in the line is not what the rule says.
        allows("git add src", "git add s*"),
        allows("git add *", "git add s*"),
    ];
    let wanted = [
        true, false, true, true, false, true, false, true, false, true, true, false, true, true, false, true,
    ];
    assert_eq!(got, wanted);
    let errors: Vec<String> = ["", "  ", "git status; ls", "echo $X", "ls > x"]
        .iter()
        .map(|pattern| CommandPattern::new(*pattern).unwrap_err().to_string())
        .chain(
            ["", "../x", "~/x", "a[b"]
                .iter()
                .map(|pattern| PathPattern::new(*pattern).unwrap_err().to_string()),
        )
        .collect();
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn rules_survive_a_record() {
    let rule = Rule { tier: Some(Tier::Write), reason: Some("r".into()), ..path(Action::Deny, "a/**") };
    let text = serde_json::to_string(&rule).unwrap();
    assert_eq!(text, r#"{"tier":"write","path":"a/**","action":"deny","reason":"r","origin":"haft.toml:1"}"#);
    assert_eq!(serde_json::from_str::<Rule>(&text).unwrap(), rule);
    assert!(serde_json::from_str::<Rule>(r#"{"path":"../a","action":"deny","origin":"x"}"#).is_err());
}

#[test]
fn long_lines_are_read_in_bounded_space() {
    let place = place();
    let mut policy = careless();
    policy.add(path(Action::Deny, "secret"));
    let many = (0..5000).map(|number| format!("echo {number};")).collect::<Vec<_>>().concat();
    let words = "word ".repeat(12_000);
    let got = [
        many.clone(),
        format!("{many} rm x"),
        format!("xargs {words}"),
        format!("git --odd {words}"),
        format!("cat <<'EOF'\n{words}\nEOF"),
        format!("echo {words}{words}"),
        "(".repeat(5000),
        format!("{}ls{}", "(".repeat(300), ")".repeat(300)),
        format!("{}rm x{}", "$(".repeat(50), ")".repeat(50)),
        "sh -c ".repeat(20) + "ls",
    ]
    .map(|line| word(&judge(&policy, &place.workdir, &line)));
    assert_eq!(
        got,
        ["allow", "deny", "prompt", "prompt", "allow", "prompt", "prompt", "prompt", "deny", "prompt"]
    );
}

proptest! {
    /// Whatever joins a second command to an allowed one, the second is still judged.
    #[test]
    fn a_second_command_is_always_judged(
        first in prop::sample::select(vec!["git status", "ls -la src", "echo 'a b' \"c\"", "cat <<'EOF'\nx\nEOF\nls", "cargo test # x"]),
        join in prop::sample::select(vec![";", " ; ", "&&", " || ", "|", " |& ", " & ", "\n", "\n\n", " ;\n", " && \\\n ", "\t;\t"]),
        around in prop::sample::select(vec![("", ""), ("(", ")"), ("{ ", "; }"), ("$(", ")"), ("`", "`"), ("echo \"$(", ")\""),
            ("if true; then ", "; fi"), ("! ", ""), ("f() { ", "; }"), ("cat <(", ")"), ("sh -c '", "'"), ("timeout 5 ", ""), ("env -i ", "")]),
        program in "[a-z]{3,8}",
        argument in "[a-zA-Z0-9/._-]{0,8}",
    ) {
        prop_assume!(!["true", "echo", "cat", "git", "find", "env", "test", "for", "let", "awk", "sed", "read", "set"].contains(&program.as_str()));
        let place = place();
        // A comment ends only at a line's end.
        let join = if first.contains('#') { "\n" } else { join };
        let line = format!("{first}{join}{}{program} {argument}{}", around.0, around.1);
        let mut policy = careless();
        prop_assert_eq!(word(&judge(&policy, &place.workdir, &line)), "prompt", "{}", line);
        policy.add(deny(&program));
        prop_assert_eq!(word(&judge(&policy, &place.workdir, &line)), "deny", "{}", line);
    }

    /// Nothing that a model sends brings the analysis down, and what passes is what both readers agree on.
    #[test]
    fn odd_lines_are_survived(line in "[a-z $;&|<>(){}\\[\\]'\"`\\\\\n#=*?~!-]{0,60}") {
        let place = place();
        let policy = Policy::new(Preset::Ask, vec![allow("ls *")]);
        if let Verdict::Allow { .. } = judge(&policy, &place.workdir, &line) {
            let flat = shell::analyse(&line);
            prop_assert!(flat.blind.is_none(), "{}", line);
        }
    }
}
