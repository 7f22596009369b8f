//! What is known about programs: which ones run other commands, where in their arguments those stand, and which ones
//! take code. A program that is not here is what it seems to be.

use super::word::{Sure, Word};
use crate::limits::{SHELL_CRUDE_WORDS, SHELL_TAIL_WORDS};

/// What one simple command comes to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Study {
    /// The command in other words that mean the same (`git -C x push` is `git push`) and the commands that it certainly runs.
    pub(crate) same: Vec<Vec<Word>>,
    /// Commands that it could run.
    pub(crate) possible: Vec<Vec<Word>>,
    /// Shell code that it certainly runs.
    pub(crate) scripts: Vec<String>,
    /// Code in other languages.
    pub(crate) code: Vec<String>,
    /// Files that it writes as a redirect would.
    pub(crate) writes: Vec<Word>,
    /// Why no rule about its words lets it through.
    pub(crate) doubt: Option<String>,
    /// Why it could run anything.
    pub(crate) blind: Option<String>,
    /// How it is let through.
    pub(crate) pass: Pass,
}

/// How a command without doubt is let through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pass {
    /// By a rule about its words.
    #[default]
    Words,
    /// By a rule about these words instead: what is in front only changes how long or how eagerly they run.
    Inner(Vec<Word>),
    /// It does nothing.
    Harmless,
    /// A `cd` to this directory: let through without a rule if it is inside the working directory.
    Directory(Word),
}

/// The last component: `/usr/bin/rm` is `rm`.
pub(crate) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Looks at a command. `words` is not empty.
pub(crate) fn study(words: &[Word]) -> Study {
    let mut study = Study::default();
    let Some((first, arguments)) = words.split_first() else { return study };
    if let Some(unknown) = words.iter().find(|word| word.sure == Sure::Unknown) {
        study.doubt = Some(format!("the value of `{}` is not known", unknown.shown()));
    }
    if first.sure != Sure::Literal {
        study.blind = Some(format!("`{}` stands for a program that is not known", first.shown()));
        study.doubt.clone_from(&study.blind);
    }
    let name = base_name(&first.text).to_owned();
    match name.as_str() {
        "" => study.doubt = Some("an empty program name".into()),
        "true" | "false" | ":" => study.pass = Pass::Harmless,
        "[" if !arguments.iter().any(|word| matches!(word.text.as_str(), "-v" | "-R")) => {
            study.pass = Pass::Harmless;
        }
        "cd" => {
            if let [directory] = arguments
                && !directory.text.starts_with('-')
                && !directory.text.is_empty()
                && directory.sure == Sure::Literal
            {
                study.pass = Pass::Directory(directory.clone());
            } else {
                study.doubt("`cd` to a directory that is not known");
            }
        }
        "pushd" | "popd" | "chdir" => study.doubt("it changes the directory"),
        "[[" | "{" | "}" | "if" | "then" | "elif" | "else" | "fi" | "while" | "until" | "do" | "done"
        | "for" | "case" | "esac" | "select" | "function" | "in" | "!" => {
            study.doubt("a keyword where a program should be");
            study.possible(arguments);
        }
        "eval" | "trap" => {
            study.script(arguments, &name);
        }
        "source" | "." => study.doubt("it runs a script in this shell"),
        "alias" | "hash" | "enable" | "shopt" | "set" | "export" | "declare" | "typeset" | "local"
        | "readonly" | "unset" | "let" | "read" | "mapfile" | "readarray" | "getopts" | "complete"
        | "compgen" | "jobs" | "bind" | "fc" | "history" => {
            study.doubt("it changes how the shell reads what follows");
            study.possible(arguments);
        }
        "test" | "printf" if arguments.iter().any(|word| word.text.starts_with("-v")) => {
            study.doubt("`-v` evaluates a variable's name");
        }
        "sh" | "bash" | "zsh" | "dash" | "ksh" | "mksh" | "ash" | "fish" | "rbash" | "csh" | "tcsh" => {
            shell(arguments, &name, &mut study);
        }
        "busybox" | "toybox" => study.wraps(arguments, 0, &[]),
        "env" => study.wraps(arguments, 0, &["-u", "--unset", "-C", "--chdir", "-S", "--split-string"]),
        "sudo" => study.wraps(
            arguments,
            0,
            &[
                "-u", "--user", "-g", "--group", "-h", "-p", "-C", "-D", "--chdir", "-R", "-T", "-r", "-t",
                "-U",
            ],
        ),
        "time" => study.wraps(arguments, 0, &["-o", "-f", "--output", "--format"]),
        "doas" => study.wraps(arguments, 0, &["-u", "-C"]),
        "command" | "builtin" | "exec" | "coproc" | "noglob" | "nocorrect" => {
            if name == "command"
                && arguments.first().is_some_and(|word| matches!(word.text.as_str(), "-v" | "-V"))
            {
                return study;
            }
            study.wraps(arguments, 0, &["-a"]);
        }
        "xargs" => study.wraps(
            arguments,
            0,
            &[
                "-n",
                "-P",
                "-I",
                "-L",
                "-d",
                "-s",
                "-a",
                "-E",
                "--max-args",
                "--max-procs",
                "--replace",
                "--arg-file",
            ],
        ),
        "setsid" | "unshare" | "nsenter" | "chroot" | "flock" | "strace" | "ltrace" | "watch"
        | "parallel" | "ssh" | "su" | "script" | "runuser" | "setpriv" | "systemd-run" | "bwrap"
        | "firejail" | "chrt" | "taskset" | "ionice" | "stdbuf" | "unbuffer" | "rlwrap" | "entr"
        | "watchexec" | "at" | "batch" | "crontab" | "expect" | "screen" | "tmux" | "proot" | "fakeroot"
        | "cgexec" | "prlimit" | "perf" | "gdb" | "valgrind" | "rsh" | "pkexec" | "sg"
        | "dbus-run-session" | "xvfb-run" | "direnv" | "nix-shell" | "capsh" | "numactl"
        | "start-stop-daemon" => {
            study.doubt(format!("`{name}` runs another command"));
            study.possible(arguments);
            study.texts(arguments);
        }
        "timeout" => transparent(
            arguments,
            &mut study,
            &["-k", "-s", "--kill-after", "--signal"],
            &["--foreground", "--preserve-status", "-v", "--verbose", "-f", "-p"],
            /*operands*/ 1,
        ),
        "nice" => transparent(arguments, &mut study, &["-n", "--adjustment"], &[], 0),
        "nohup" => transparent(arguments, &mut study, &[], &[], 0),
        "find" | "fd" | "fdfind" => find(arguments, &mut study),
        "git" => git(first, arguments, &mut study),
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => awk(arguments, &mut study),
        "sed" | "gsed" => sed(arguments, &mut study),
        "tee" => {
            study.writes = arguments.iter().filter(|word| !word.text.starts_with('-')).cloned().collect();
        }
        _ => interpreters(&name, arguments, &mut study),
    }
    if let Some((_, options)) = RUNNING_OPTIONS.iter().find(|(program, _)| *program == name)
        && let Some(option) =
            arguments.iter().find(|word| options.iter().any(|option| is_option(word, option)))
    {
        study.doubt(format!("`{}` of `{name}` can run another command or write a file", option.shown()));
        study.texts(arguments);
        study.possible(arguments);
    }
    study
}

/// Options of programs that run a command which stands in their value, or write where it says.
const RUNNING_OPTIONS: &[(&str, &[&str])] = &[
    (
        "tar",
        &[
            "--to-command",
            "--checkpoint-action",
            "-I",
            "--use-compress-program",
            "--rsh-command",
            "-F",
            "--info-script",
        ],
    ),
    ("rg", &["--pre", "--hostname-bin"]),
    ("sort", &["--compress-program"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("scp", &["-S", "-o"]),
    ("man", &["-P", "--pager", "-H"]),
    ("zip", &["-TT", "--unzip-command"]),
    ("split", &["--filter"]),
    ("vim", &["-c", "--cmd", "-S", "-es", "-s"]),
    ("vi", &["-c", "--cmd", "-S", "-es", "-s"]),
    ("nvim", &["-c", "--cmd", "-S", "-es", "-l"]),
    ("emacs", &["--eval", "-eval", "--execute", "-l", "--load", "-f"]),
    ("make", &["--eval", "-E"]),
    ("cargo", &["--config"]),
    ("go", &["-exec", "--exec", "-toolexec", "--toolexec", "-vettool"]),
    ("npm", &["--node-options", "--script-shell"]),
    ("curl", &["-o", "-O", "--output", "--remote-name", "-K", "--config"]),
    ("wget", &["--use-askpass", "-e", "--execute"]),
    ("less", &["+"]),
    ("tcpdump", &["-z"]),
    ("openssl", &["-engine"]),
];

/// Whether the word is this option, alone (`-I`), with a value in the same word (`--pre=x`, `-Ix`), or could be one.
fn is_option(word: &Word, option: &str) -> bool {
    let text = word.text.as_str();
    if option.starts_with("--") {
        // Long options may be abbreviated.
        let name = text.split_once('=').map_or(text, |(name, _)| name);
        return name == option || (name.len() > 4 && name.starts_with("--") && option.starts_with(name));
    }
    text == option
        || (option.len() == 2 && text.starts_with(option))
        || text.starts_with(&format!("{option}="))
}

impl Study {
    fn doubt(&mut self, why: impl Into<String>) {
        self.doubt.get_or_insert(why.into());
    }

    /// Every tail of the words could be a command.
    fn possible(&mut self, words: &[Word]) {
        for start in 0..words.len().min(SHELL_CRUDE_WORDS) {
            self.possible.push(words.iter().skip(start).take(SHELL_TAIL_WORDS).cloned().collect());
        }
        if words.len() > SHELL_CRUDE_WORDS {
            self.blind.get_or_insert("the command has too many words to be read".into());
        }
    }

    /// Words that hold white space could be code.
    fn texts(&mut self, words: &[Word]) {
        self.code.extend(
            words.iter().filter(|word| word.text.contains(char::is_whitespace)).map(|word| word.text.clone()),
        );
    }

    fn script(&mut self, arguments: &[Word], name: &str) {
        self.doubt(format!("`{name}` runs its arguments as shell code"));
        if arguments.iter().all(|word| word.sure == Sure::Literal) {
            let code = arguments.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
            self.scripts.push(code);
        } else {
            self.blind.get_or_insert(format!("`{name}` runs code that is not known"));
        }
    }

    /// A wrapper that never passes: its options are skipped as far as they are known, and what follows is a command.
    fn wraps(&mut self, arguments: &[Word], operands: usize, with_value: &[&str]) {
        self.doubt("it runs another command");
        self.possible(arguments);
        self.texts(arguments);
        if let Some(inner) = after_options(arguments, with_value, None, operands) {
            let set = inner.iter().take_while(|word| word.assigns().is_some()).count();
            let inner = inner.get(set..).unwrap_or_default();
            if !inner.is_empty() {
                self.same.push(inner.to_vec());
            }
        }
    }
}

/// The arguments after the options and `operands` more; `None` where an option is not in the lists (with `flags` given).
fn after_options<'a>(
    arguments: &'a [Word],
    with_value: &[&str],
    flags: Option<&[&str]>,
    operands: usize,
) -> Option<&'a [Word]> {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let text = word.text.as_str();
        if text == "--" {
            at += 1;
            break;
        }
        if !text.starts_with('-') || text == "-" {
            break;
        }
        if with_value.contains(&text) {
            at += 2;
            continue;
        }
        let joined = with_value.iter().any(|option| {
            if option.starts_with("--") {
                text.strip_prefix(option).is_some_and(|rest| rest.starts_with('='))
            } else {
                text.starts_with(option)
            }
        });
        if !joined && flags.is_some_and(|flags| !flags.contains(&text)) {
            return None;
        }
        at += 1;
    }
    arguments.get(at + operands..)
}

/// A wrapper that changes only how long or how eagerly a command runs.
fn transparent(arguments: &[Word], study: &mut Study, with_value: &[&str], flags: &[&str], operands: usize) {
    study.possible(arguments);
    match after_options(arguments, with_value, Some(flags), operands) {
        Some(inner) if !inner.is_empty() => {
            study.same.push(inner.to_vec());
            study.pass = Pass::Inner(inner.to_vec());
        }
        _ => study.doubt("it runs another command"),
    }
}

fn shell(arguments: &[Word], name: &str, study: &mut Study) {
    let mut rest = arguments.iter();
    let mut code = false;
    let mut operand = None;
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        if matches!(text, "--rcfile" | "--init-file" | "-o" | "+o" | "-O" | "+O") {
            study.doubt(format!("`{name}` is given options, which can make it run code"));
            let _value = rest.next();
        } else if text.starts_with("--") || text == "-" {
            study.doubt(format!("`{name}` is given options, which can make it run code"));
        } else if text.starts_with(['-', '+']) {
            study.doubt(format!("`{name}` is given options, which can make it run code"));
            code |= text.contains('c');
        } else {
            operand = Some(word);
            break;
        }
    }
    match operand {
        Some(word) if code => study.script(std::slice::from_ref(word), name),
        Some(word) if word.sure == Sure::Literal => {}
        Some(word) => study.doubt(format!("`{}` is a script that is not known", word.shown())),
        None => {
            study.doubt(format!("`{name}` runs what it reads"));
            study.blind.get_or_insert(format!("`{name}` runs what it reads"));
        }
    }
}

fn find(arguments: &[Word], study: &mut Study) {
    for (at, word) in arguments.iter().enumerate() {
        match word.text.as_str() {
            "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "--exec" | "-X" | "--exec-batch" => {
                study.doubt(format!("`{}` runs another command", word.text));
                let inner: Vec<Word> = arguments
                    .iter()
                    .skip(at + 1)
                    .take_while(|word| !matches!(word.text.as_str(), ";" | "+"))
                    .cloned()
                    .collect();
                if !inner.is_empty() {
                    study.same.push(inner);
                }
            }
            "-delete" | "-fprint" | "-fprint0" | "-fprintf" | "-fls" => {
                study.doubt(format!("`{}` changes files", word.text));
            }
            text if text.starts_with("--exec") => {
                study.doubt("it runs another command");
                study.texts(arguments);
                study.possible(arguments);
            }
            _ => {}
        }
    }
}

fn git(first: &Word, arguments: &[Word], study: &mut Study) {
    let mut at = 0;
    while let Some(word) = arguments.get(at).filter(|word| word.text.starts_with('-')) {
        let text = word.text.as_str();
        match text {
            "--no-pager"
            | "-P"
            | "--no-optional-locks"
            | "--no-replace-objects"
            | "--literal-pathspecs"
            | "--glob-pathspecs"
            | "--noglob-pathspecs"
            | "--icase-pathspecs"
            | "--no-advice"
            | "--no-lazy-fetch" => {}
            "--version" | "-v" | "--help" | "-h" => {}
            "-p" | "--paginate" | "--bare" => study.doubt(format!("the option `{text}` of `git`")),
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--super-prefix" | "--config-env"
            | "--exec-path" | "--attr-source" | "--list-cmds" => {
                study.doubt(format!("the option `{text}` of `git`"));
                // `--exec-path` takes its value only after `=`; the others take the next word.
                if text != "--exec-path" {
                    at += 1;
                }
                if text == "-c" {
                    study.blind_alias(arguments.get(at));
                }
            }
            _ => {
                study.doubt(format!("the option `{text}` of `git`"));
                // Whether the option takes a value is not known, so each of the next words may be the subcommand.
                for start in at..arguments.len().min(at + SHELL_TAIL_WORDS) {
                    let tail = arguments.get(start..arguments.len().min(start + SHELL_TAIL_WORDS));
                    study.possible.push(with_program(first, tail));
                }
                if text.starts_with("-c") || text.starts_with("--config-env") {
                    study.blind_alias(Some(word));
                }
            }
        }
        at += 1;
    }
    let rest = arguments.get(at..).unwrap_or_default();
    if at > 0 {
        let normal = with_program(first, Some(rest));
        study.pass = Pass::Inner(normal.clone());
        study.same.push(normal);
    }
    let Some((subcommand, options)) = rest.split_first() else { return };
    let running =
        |list: &[&str]| options.iter().any(|word| list.iter().any(|option| is_option(word, option)));
    let runs = match subcommand.text.as_str() {
        "rebase" => running(&["-x", "--exec"]),
        "bisect" => options.first().is_some_and(|word| word.text == "run"),
        "submodule" => options.iter().any(|word| word.text == "foreach"),
        "difftool" | "mergetool" | "filter-branch" | "daemon" | "instaweb" | "send-email"
        | "for-each-repo" | "credential" | "archimport" | "svn" | "p4" => true,
        "grep" => running(&["-O", "--open-files-in-pager"]),
        "config" => !options.iter().any(|word| {
            matches!(
                word.text.as_str(),
                "--get" | "--list" | "-l" | "get" | "list" | "--get-all" | "--get-regexp"
            )
        }),
        _ => false,
    };
    let common =
        running(&["--upload-pack", "--receive-pack", "--exec", "--output", "--ext-diff", "--textconv"])
            || options.iter().any(|word| word.text.contains("ext::") || word.text.starts_with("--template"));
    if runs || common {
        study.doubt(format!(
            "`git {}` with these words can run another command or write a file",
            subcommand.text
        ));
        study.texts(options);
        study.possible(options);
    }
}

impl Study {
    /// `git -c alias.x='!…'` and settings that name programs.
    fn blind_alias(&mut self, setting: Option<&Word>) {
        match setting {
            Some(word) if word.sure == Sure::Literal => {
                let value = word.text.split_once('=').map_or("", |(_, value)| value);
                if let Some(script) = value.strip_prefix('!') {
                    self.scripts.push(script.to_owned());
                } else if value.contains(char::is_whitespace) || value.contains('/') {
                    self.code.push(value.to_owned());
                }
                if word.text.to_lowercase().contains("alias.") {
                    self.possible.push(with_program(&Word::literal("git"), crude_words(value).get(..)));
                }
            }
            _ => {
                self.blind.get_or_insert("a setting of `git -c` is not known".into());
            }
        }
    }
}

fn crude_words(text: &str) -> Vec<Word> {
    text.split_whitespace().map(Word::literal).collect()
}

fn with_program(first: &Word, rest: Option<&[Word]>) -> Vec<Word> {
    let mut words = vec![first.clone()];
    words.extend_from_slice(rest.unwrap_or_default());
    words
}

fn awk(arguments: &[Word], study: &mut Study) {
    for word in arguments {
        let text = word.text.as_str();
        let does = ["system", "|", ">", "getline", "@", "close"].iter().any(|part| text.contains(part));
        if does || matches!(text, "-i" | "-l" | "-E" | "-f") || text.starts_with("--") {
            study.doubt("an `awk` program that can run commands or write files");
            study.code.push(text.to_owned());
        }
    }
}

/// `sed` scripts of addresses and `p`, `d`, `q`, `=`, or one `s` without the flags `e` and `w`, do nothing but edit text.
fn sed(arguments: &[Word], study: &mut Study) {
    let mut script_next = false;
    let mut script_seen = false;
    for word in arguments {
        let text = word.text.as_str();
        let script = if script_next {
            script_next = false;
            Some(text)
        } else if text == "-e" || text == "--expression" {
            script_next = true;
            script_seen = true;
            None
        } else if matches!(
            text,
            "-n" | "-E" | "-r" | "-i" | "-s" | "-u" | "-z" | "-nE" | "-En" | "-ne" | "-Ei"
        ) {
            if text == "-ne" {
                script_next = true;
                script_seen = true;
            }
            None
        } else if text.starts_with('-') {
            study.doubt(format!("the option `{text}` of `sed`"));
            None
        } else if script_seen {
            None
        } else {
            script_seen = true;
            Some(text)
        };
        if let Some(script) = script
            && !harmless_sed(script)
        {
            study.doubt("a `sed` script that can run commands or write files");
            study.code.push(script.to_owned());
        }
    }
}

fn harmless_sed(script: &str) -> bool {
    if script.chars().all(|c| c.is_ascii_digit() || " ,;$!pdq=".contains(c)) {
        return true;
    }
    let script = script.trim_start_matches(|c: char| c.is_ascii_digit() || ",$".contains(c));
    let mut chars = script.chars();
    let (Some('s'), Some(mark)) = (chars.next(), chars.next()) else { return false };
    if mark.is_alphanumeric() || mark == '\\' || script.contains('\n') {
        return false;
    }
    let mut marks = 0;
    let mut escaped = false;
    let mut flags = String::new();
    for c in chars {
        if marks == 2 {
            flags.push(c);
        } else if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == '[' {
            // A mark inside brackets may or may not end the pattern, depending on the sed.
            return false;
        } else if c == mark {
            marks += 1;
        }
    }
    marks == 2 && flags.chars().all(|c| c.is_ascii_digit() || "gpiI".contains(c))
}

fn interpreters(name: &str, arguments: &[Word], study: &mut Study) {
    let letters: &str = match name {
        _ if name.starts_with("python") || name.starts_with("pypy") => "c",
        _ if name.starts_with("perl") || name.starts_with("ruby") || name.starts_with("lua") => "eE",
        _ if name.starts_with("php") => "rBRE",
        "node" | "nodejs" | "bun" | "deno" | "tsx" | "ts-node" => "epr",
        "Rscript" | "R" | "julia" | "groovy" | "scala" | "elixir" | "erl" | "osascript" | "ghci" | "ghc"
        | "raku" | "swipl" | "guile" | "racket" | "sbcl" | "jshell" | "pwsh" | "powershell" | "octave" => {
            "eEcf"
        }
        "tclsh" | "wish" | "irb" | "bc" | "dc" | "ed" | "ex" | "sqlite3" | "psql" | "mysql" | "ftp" => "",
        _ => return,
    };
    let mut operand = false;
    let mut inline = false;
    // The word after a short option may be its value and not the script.
    let mut value_possible = false;
    for word in arguments {
        let text = word.text.as_str();
        if text == "-" {
            break;
        }
        if text.starts_with("--") {
            inline |= ["--eval", "--print", "--exec", "--require", "--import", "--run"]
                .iter()
                .any(|option| text.starts_with(option));
            // `python --version` needs no more; other long options are not studied.
            operand |= matches!(text, "--version" | "--help");
            value_possible = false;
        } else if text.starts_with('-') {
            inline |= text.chars().skip(1).any(|c| letters.contains(c));
            operand |= matches!(text, "-V" | "-v" | "-h") || (text == "-m" && letters == "c");
            value_possible = text.len() == 2;
        } else {
            inline |= !operand && matches!(name, "deno" | "bun") && matches!(text, "eval" | "x" | "exec");
            operand = true;
            if !value_possible && !inline {
                break;
            }
            value_possible = false;
        }
    }
    if inline {
        study.doubt(format!("`{name}` runs code from its arguments"));
        study.code.extend(arguments.iter().map(|word| word.text.clone()));
    } else if !operand || letters.is_empty() {
        study.doubt(format!("`{name}` runs what it reads"));
    }
}
