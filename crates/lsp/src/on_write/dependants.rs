//! Other files that use what a commit changes (SPEC W5): a caller in a file that nobody has opened breaks without a word where a server looks only at open files. So before a
//! commit the server is asked which files use the symbols on the lines that change, and what it thinks of them; after it they are asked for again.
//!
//! Servers that speak about every file of their root by themselves are not asked. What could not be looked at is named with the result: "no new problems" is about the files of the
//! commit, and never about others that nobody looked at.

use std::{
    collections::BTreeSet,
    ops::Range as Span,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::future::join_all;
use haft_system::{ChangeKind, TextFile};
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use super::{
    Inner,
    job::{Job, JobFile, relevant},
    scope, server_name,
};
use crate::{
    diagnostics::{
        check::{self, Checked, Given},
        rules,
    },
    limits::{CHANGED_SYMBOLS, DEPENDANTS, DOCUMENT_BYTES, OTHER_FILES},
    position::{Lines, PositionEncoding, Range},
    ready::{self, Wait},
    servers::{Role, is_foreign},
    supervisor::Server,
    tool::{ask::left_out, places},
};

/// How the reason begins that is given for closed files of other roots.
pub(super) const ANOTHER_ROOT: &str = "those of another root that are not open";
/// Why a server cannot be asked, after its name.
pub(super) const NOT_OFFERED: &str = "has not offered to look for them";

/// A file that uses what a commit changes, or what is known of such files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dependant {
    /// The server that knows of it.
    pub(super) server: String,
    /// As shown; `None`: which files there are is not known.
    pub(super) file: Option<String>,
    pub(super) state: DependantState,
    /// A result has said what came of it.
    pub(super) said: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DependantState {
    Waiting,
    LookedAt,
    /// And why.
    Left(String),
}

const NO_TIME: &str = "there was no time to ask what it thought of them before the change";
const TOO_LATE: &str = "the change came before its state was known";

/// `Some` once the commit is on the disk.
pub(super) type Committed = watch::Receiver<Option<bool>>;

/// The files to ask for again after the commit.
pub(super) struct Dependants {
    pub(super) server: Arc<Server>,
    pub(super) files: Vec<PathBuf>,
}

impl Dependant {
    pub(super) fn left(server: &Server, file: Option<String>, why: impl Into<String>) -> Self {
        let state = DependantState::Left(why.into());
        Dependant { server: server.id().to_owned(), file, state, said: false }
    }

    pub(super) fn waiting(server: &Server, file: Option<String>) -> Self {
        Dependant { server: server.id().to_owned(), file, state: DependantState::Waiting, said: false }
    }
}

/// Who used the symbols of a file when the server was asked last. It is not asked again while the same symbols are written over and over and nothing else changes.
pub(super) struct Searched {
    /// [`Server::told_of_others`] at that time.
    others: u64,
    /// What the last write made of the file since.
    text: Arc<str>,
    /// The symbols, as [`Name::called`].
    asked: BTreeSet<String>,
    users: BTreeSet<PathBuf>,
}

impl Searched {
    /// Whether that is what the server would find for these symbols of the file with this text.
    fn holds(&self, others: u64, text: &str, symbols: &BTreeSet<String>) -> bool {
        self.others == others && *self.text == *text && symbols.is_subset(&self.asked)
    }
}

/// Finds the dependants of the files of a job that a server has the old text of, and takes the state before into the ledger.
pub(super) async fn before(
    inner: &Inner,
    job: &Job,
    server: &Arc<Server>,
    files: &[usize],
    committed: &Committed,
) -> Dependants {
    let mut found = Dependants { server: server.clone(), files: Vec::new() };
    let own: Vec<(&JobFile, &Path, &Arc<str>)> =
        files.iter().filter_map(|index| job.files.get(*index)).filter_map(old_text).collect();
    let rules = rules::of(server.spec());
    let until = Instant::now() + DEPENDANTS;
    if rules.whole_workspace && server.can("textDocument/diagnostic") {
        // Of files that are open it publishes a part only, and the rest has to be asked for.
        found.files = open_before(inner, job, server, until, committed, false).await;
    } else if !is_undisturbed(inner, server)
        && (server.can("textDocument/diagnostic") || rules.exact.is_some())
    {
        // They are asked for again after the change, and what others did to them is no news of it.
        open_before(inner, job, server, until, committed, true).await;
    }
    if server.spec().role != Role::Language || rules.whole_workspace || own.is_empty() {
        return found;
    }
    let leave = |file: Option<String>, why: String| {
        job.results().dependants.push(Dependant::left(server, file, why));
    };
    // Data formats have no symbols that other files use.
    if !server.spec().searchable {
        return found;
    }
    for method in ["textDocument/references", "textDocument/documentSymbol"] {
        if !server.can(method) {
            leave(None, format!("{} {NOT_OFFERED}", server.id()));
            return found;
        }
    }
    let searched = timeout_at(until, async {
        match ready::wait(server, DEPENDANTS).await {
            Wait::Ready => search(inner, job, server, &own).await,
            Wait::StillLoading(what) => Err(format!("{} was still loading ({what})", server.id())),
            Wait::Gone(why) => Err(format!("{} is gone: {why}", server.id())),
        }
    });
    let mut users = match searched.await {
        Ok(Ok(users)) => users,
        Ok(Err(why)) => {
            leave(None, why);
            return found;
        }
        Err(_) => {
            let limit = check::seconds(DEPENDANTS);
            leave(None, format!("{} had not named them within {limit}", server.id()));
            return found;
        }
    };
    if let Some(left_out) = left_out(server) {
        leave(None, left_out.what);
    }
    let shown = |path: &Path| inner.checkout.workdir().show(path);
    for surplus in users.iter().skip(OTHER_FILES) {
        leave(Some(shown(surplus)), format!("more than {OTHER_FILES} use it"));
    }
    users.truncate(OTHER_FILES);
    let undisturbed = is_undisturbed(inner, server);
    let mut states = Vec::new();
    for path in users {
        if undisturbed && inner.state().ledger.is_clean(&scope(server, &path)) {
            found.files.push(path);
            continue;
        }
        // One after the other: a server that does one thing at a time would have a dozen files before the one that is being written.
        let state = if Instant::now() < until {
            state_before(server, &path, &shown(&path), until).await
        } else {
            Err(NO_TIME.into())
        };
        states.push((path, state));
    }
    // Somebody asked a question meanwhile, or the commit was quick: what was answered may be about the new text.
    let is_old = own.iter().all(|(_, path, text)| {
        server.document(path).is_some_and(|document| **document.lines.text() == ***text)
    });
    for (path, state) in states {
        match state {
            Ok(_) if !is_old => {
                leave(Some(shown(&path)), TOO_LATE.into());
            }
            Ok(diagnostics) => {
                inner.state().ledger.baseline(&scope(server, &path), &relevant(diagnostics));
                found.files.push(path);
            }
            Err(why) => leave(Some(shown(&path)), format!("{}: {why}", server.id())),
        }
    }
    found
}

/// The open files of a server of another root, whose state before is taken into the ledger. It is not asked who uses what changes: its root does not have it.
pub(super) async fn beside(
    inner: &Inner,
    job: &Job,
    server: &Arc<Server>,
    committed: &Committed,
) -> Dependants {
    let files = open_before(inner, job, server, Instant::now() + DEPENDANTS, committed, false).await;
    let root = inner.checkout.workdir().show(server.root());
    job.results().dependants.push(Dependant::left(server, None, format!("{ANOTHER_ROOT}: {root}")));
    Dependants { server: server.clone(), files }
}

/// Whether what is known of files is true still, for nobody else has changed anything since.
fn is_undisturbed(inner: &Inner, server: &Server) -> bool {
    inner.state().undisturbed.get(&server_name(server)) == Some(&server.foreign_changes())
}

/// The open files of a server whose state before the commit is known, or could be had. `known_only`: only those that are in the ledger.
async fn open_before(
    inner: &Inner,
    job: &Job,
    server: &Arc<Server>,
    until: Instant,
    committed: &Committed,
    known_only: bool,
) -> Vec<PathBuf> {
    let mut known = Vec::new();
    let leave = |file: String, why: String| {
        // Those of the ledger are looked at in passing, and nothing is promised of them.
        if !known_only {
            job.results().dependants.push(Dependant::left(server, Some(file), why));
        }
    };
    let undisturbed = is_undisturbed(inner, server);
    let open = server.open_documents();
    let is_wanted = |path: &PathBuf| {
        !job.names(path) && (!known_only || inner.state().ledger.is_clean(&scope(server, path)))
    };
    for (index, path) in open.into_iter().filter(is_wanted).enumerate() {
        let place = scope(server, &path);
        let shown = inner.checkout.workdir().show(&path);
        let is_known = undisturbed && inner.state().ledger.is_clean(&place);
        let state = if index >= OTHER_FILES {
            Err(format!("more than {OTHER_FILES} are open"))
        } else if is_known {
            Ok(None)
        } else if Instant::now() >= until {
            Err(NO_TIME.into())
        } else {
            state_before(server, &path, &shown, until).await.map(Some)
        };
        match state {
            // What was found may be about the change already.
            Ok(Some(_)) if committed.borrow().is_some() => leave(shown, TOO_LATE.into()),
            Ok(found) => {
                if let Some(found) = found {
                    inner.state().ledger.baseline(&place, &relevant(found));
                }
                known.push(path);
            }
            Err(why) => leave(shown, format!("{}: {why}", server.id())),
        }
    }
    known
}

/// What a server thinks of a file of which it may have nothing yet. What others did to the disk is not told here: that would bring the new text of the commit's own files.
async fn state_before(
    server: &Arc<Server>,
    path: &Path,
    shown: &str,
    until: Instant,
) -> Result<Vec<crate::diagnostics::Diagnostic>, String> {
    if path.metadata().is_ok_and(|metadata| metadata.len() > DOCUMENT_BYTES) {
        return Err("it is too large".into());
    }
    let bytes = std::fs::read(path).map_err(|error| format!("it cannot be read: {error}"))?;
    let text = TextFile::parse(&bytes).map_err(|not| not.why)?.text;
    let given = Given::text(server, path, &text).map_err(|error| error.to_string())?;
    match check::wait(server, given, shown, until).await {
        Checked::Verified(found) => Ok(found),
        Checked::Not(why) => Err(why),
    }
}

/// What a server thinks of a dependant after the commit.
pub(super) async fn after(server: &Arc<Server>, path: &Path, shown: &str, until: Instant) -> Checked {
    let given = if server.can("textDocument/diagnostic") || rules::of(server.spec()).exact.is_some() {
        Given::from_disk(server, path, false)
    } else {
        // A server that pushes says nothing about a file that it finds as before, so it is given the file once more.
        Given::again(server, path)
    };
    match given {
        Ok(given) => check::wait(server, given, shown, until).await,
        Err(error) => Checked::Not(error.to_string()),
    }
}

/// A file whose old text may be used elsewhere, under the name that it had.
fn old_text(file: &JobFile) -> Option<(&JobFile, &Path, &Arc<str>)> {
    let path = file.from.as_deref().unwrap_or(&file.path);
    (file.kind != ChangeKind::Created).then_some(())?;
    Some((file, path, file.before.as_ref()?))
}

/// The files that use what changes, in the order of their paths.
async fn search(
    inner: &Inner,
    job: &Job,
    server: &Arc<Server>,
    own: &[(&JobFile, &Path, &Arc<str>)],
) -> Result<Vec<PathBuf>, String> {
    server.catch_up().await;
    let mut users: BTreeSet<PathBuf> = BTreeSet::new();
    for (file, path, old) in own {
        let document = server.give(path, old).map_err(|error| error.to_string())?;
        // A file that goes away or gets another name takes all that is in it along.
        let kept = file.kind == ChangeKind::Modified;
        let region = changed(old, if kept { file.after.as_deref().unwrap_or_default() } else { "" });
        let uri = json!({ "uri": &*document.uri });
        let symbols =
            server.ask("textDocument/documentSymbol", json!({ "textDocument": uri }), DEPENDANTS).await;
        let symbols = symbols.map_err(|error| format!("{}: {error}", server.id()))?;
        let lines = &document.lines;
        let mut names = Vec::new();
        let symbols = read_symbols(&symbols, lines, server.encoding());
        touched(&symbols, &region, lines, "", &mut names);
        named_outside(&symbols, &region, lines, path, &mut names);
        names.dedup_by_key(|name| name.at);
        let asked: BTreeSet<String> = names.iter().map(|name| name.called.clone()).collect();
        let after = file.after.as_ref().filter(|_| kept && names.len() <= CHANGED_SYMBOLS);
        let place = scope(server, path);
        let others = server.told_of_others(path);
        let before = inner.state().searched.remove(&place);
        if let (Some(mut before), Some(after)) = (before, after)
            && before.holds(others, old, &asked)
        {
            users.extend(before.users.iter().cloned());
            before.text = after.clone();
            inner.state().searched.insert(place, before);
            continue;
        }
        if names.len() > CHANGED_SYMBOLS {
            job.results().dependants.push(Dependant::left(
                server,
                None,
                format!("only those of the first {CHANGED_SYMBOLS} changed symbols are looked for"),
            ));
            names.truncate(CHANGED_SYMBOLS);
        }
        let questions = names.into_iter().map(|name| {
            let params = json!({
                "textDocument": uri,
                "position": lines.position(name.at, server.encoding()),
                // Declarations and implementations elsewhere have to fit too.
                "context": { "includeDeclaration": true },
            });
            server.ask("textDocument/references", params, DEPENDANTS)
        });
        let mut found: BTreeSet<PathBuf> = BTreeSet::new();
        for answer in join_all(questions).await {
            let answer = match answer {
                Ok(answer) => answer,
                // "No identifier found": nothing that could be used.
                Err(crate::RequestError::Refused { .. }) => continue,
                Err(error) => return Err(format!("{}: {error}", server.id())),
            };
            found.extend(places::read(&answer).iter().filter_map(|place| server.path_of(&place.uri)));
        }
        if let Some(after) = after {
            let searched = Searched { others, text: after.clone(), asked, users: found.clone() };
            inner.state().searched.insert(place, searched);
        }
        users.extend(found);
    }
    let root = inner.checkout.workdir().root();
    users.retain(|path| {
        let within = path
            .strip_prefix(root)
            .is_ok_and(|below| !below.components().any(|part| is_foreign(part.as_os_str().to_str())));
        within
            && path.starts_with(server.root())
            && !job.names(path)
            && server.spec().language_of(path).is_some()
            && path.is_file()
    });
    Ok(users.into_iter().collect())
}

/// The lines (from 0) of the old text that the new one has otherwise; empty where lines only come in.
fn changed(old: &str, new: &str) -> Span<usize> {
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let same = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let rest = old[same..].iter().rev().zip(new[same..].iter().rev());
    same..old.len() - rest.take_while(|(one, other)| one == other).count()
}

/// A name whose users are looked for.
struct Name {
    /// Where it stands, in bytes.
    at: usize,
    /// What tells it apart within its file, whatever line it is on.
    called: String,
}

struct Symbol {
    called: String,
    /// Lines from 0; the end is exclusive.
    lines: Span<usize>,
    /// Where its name is, in bytes.
    name: Option<usize>,
    is_container: bool,
    children: Vec<Symbol>,
}

/// `DocumentSymbol` with what is below it, and the flat `SymbolInformation`.
fn read_symbols(answer: &Value, lines: &Lines, encoding: PositionEncoding) -> Vec<Symbol> {
    let list = answer.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|entry| read_symbol(entry, lines, encoding, 0)).collect()
}

fn read_symbol(entry: &Value, lines: &Lines, encoding: PositionEncoding, depth: usize) -> Option<Symbol> {
    let range = |value: &Value| serde_json::from_value::<Range>(value.clone()).ok();
    let whole = entry.get("range").or_else(|| entry.pointer("/location/range")).and_then(range)?;
    let selection = entry.get("selectionRange").and_then(range);
    let from = lines.offset(selection.unwrap_or(whole).start, encoding);
    let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
    let rest = &lines.text()[from..];
    let at = if selection.is_some() { Some(from) } else { word_in(rest, name).map(|at| from + at) };
    let ends_before = whole.end.character == 0 && whole.end.line > whole.start.line;
    let end = whole.end.line as usize + usize::from(!ends_before);
    let children = entry.get("children").and_then(Value::as_array).filter(|_| depth < 64);
    Some(Symbol {
        called: name.to_owned(),
        lines: whole.start.line as usize..end,
        name: at,
        // Module, namespace, package, class, enum, interface, object, struct.
        is_container: matches!(entry.get("kind").and_then(Value::as_u64), Some(2..=5 | 10 | 11 | 19 | 23)),
        children: children
            .into_iter()
            .flatten()
            .filter_map(|child| read_symbol(child, lines, encoding, depth + 1))
            .collect(),
    })
}

/// Where the names of those symbols are that a change of `region` touches: of a class the members, and the class itself only where more than its members changes.
fn touched(symbols: &[Symbol], region: &Span<usize>, lines: &Lines, of: &str, names: &mut Vec<Name>) {
    for (index, symbol) in symbols.iter().enumerate().filter(|(_, symbol)| touches(&symbol.lines, region)) {
        // Overloads have one name.
        let nth = symbols[..index].iter().filter(|other| other.called == symbol.called).count();
        let called = format!("{of}/{}#{nth}", symbol.called);
        if symbol.is_container && !symbol.children.is_empty() {
            touched(&symbol.children, region, lines, &called, names);
            let within = region.start.max(symbol.lines.start)..region.end.min(symbol.lines.end);
            if outside(&symbol.children, &within, lines).next().is_none() && !within.is_empty() {
                continue;
            }
            if within.is_empty() && symbol.children.iter().any(|child| touches(&child.lines, region)) {
                continue;
            }
        }
        names.extend(symbol.name.map(|at| Name { at, called }));
    }
}

fn touches(lines: &Span<usize>, region: &Span<usize>) -> bool {
    if region.is_empty() {
        // Lines come in before `region.start`.
        lines.start < region.start && region.start < lines.end
    } else {
        lines.start < region.end && region.start < lines.end
    }
}

/// The lines of `region` with a word on them that belong to no symbol.
fn outside<'a>(
    symbols: &'a [Symbol],
    region: &Span<usize>,
    lines: &'a Lines,
) -> impl Iterator<Item = usize> + 'a {
    region.clone().filter(move |line| {
        let has_word = lines.line(*line).is_some_and(|text| text.contains(char::is_alphanumeric));
        has_word && !symbols.iter().any(|symbol| symbol.lines.contains(line))
    })
}

/// Names that a line gives out again without being a symbol: `export { a } from`, what a Python package takes in, a macro.
fn named_outside(
    symbols: &[Symbol],
    region: &Span<usize>,
    lines: &Lines,
    path: &Path,
    names: &mut Vec<Name>,
) {
    let is_package = path.file_name().is_some_and(|name| name == "__init__.py");
    for line in outside(symbols, region, lines) {
        let (Some(span), Some(text)) = (lines.span(line), lines.line(line)) else { continue };
        let begins = text.trim_start();
        let is_macro = begins.starts_with("#define");
        let gives_out = begins.starts_with("export")
            || is_macro
            || (is_package && (begins.starts_with("from") || begins.starts_with("import")));
        if !gives_out {
            continue;
        }
        let words = words(text).filter(|(_, word)| {
            !matches!(*word, "export" | "from" | "import" | "as" | "type" | "default" | "define")
        });
        let count = if is_macro { 1 } else { usize::MAX };
        let name = |(at, word): (usize, &str)| Name { at: span.start + at, called: word.to_owned() };
        names.extend(words.take(count).map(name));
    }
}

/// Where `name` stands as a whole word.
fn word_in(text: &str, name: &str) -> Option<usize> {
    words(text).find(|(_, word)| *word == name).map(|(at, _)| at)
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text[from..].find(is_part)?;
        let rest = &text[start..];
        let end = start + rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        from = end;
        Some((start, &text[start..end]))
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    const OLD: &str = "import { a } from \"./a\";\nexport { b } from \"./b\";\n\nclass C {\n  one() {\n    return 1;\n  }\n\n  two() {}\n}\n\nfunction f() {}\n";

    fn entry(name: &str, kind: u32, lines: Span<u32>, at: (u32, u32), children: Vec<Value>) -> Value {
        let place = |line: u32, character: u32| json!({ "line": line, "character": character });
        json!({
            "name": name, "kind": kind, "children": children,
            "range": { "start": place(lines.start, 0), "end": place(lines.end, 1) },
            "selectionRange": { "start": place(at.0, at.1), "end": place(at.0, at.1 + name.len() as u32) },
        })
    }

    /// The names that are asked for when `OLD` becomes `new`.
    fn asked(new: &str) -> Vec<String> {
        let members = vec![entry("one", 6, 4..6, (4, 2), vec![]), entry("two", 6, 8..8, (8, 2), vec![])];
        let flat = json!({ "name": "f", "kind": 12, "location": { "uri": "file:///x", "range": {
            "start": { "line": 11, "character": 0 }, "end": { "line": 11, "character": 15 },
        } } });
        let answer = json!([entry("C", 5, 3..9, (3, 6), members), flat]);
        let lines = Lines::new(OLD);
        let symbols = read_symbols(&answer, &lines, PositionEncoding::Utf16);
        let region = changed(OLD, new);
        let mut names = Vec::new();
        touched(&symbols, &region, &lines, "", &mut names);
        named_outside(&symbols, &region, &lines, Path::new("x.ts"), &mut names);
        let word = |at: usize| words(&OLD[at..]).next().map(|(_, word)| word.to_owned());
        names.into_iter().filter_map(|name| word(name.at)).collect()
    }

    #[test]
    fn a_change_asks_for_the_users_of_what_it_touches() {
        assert_eq!(asked(&OLD.replace("return 1", "return 2")), ["one"]);
        assert_eq!(asked(&OLD.replace("  two() {}\n", "")), ["two"]);
        assert_eq!(asked(&OLD.replace("  }\n\n", "  }\n\n  three() {}\n\n")), ["C"], "a member comes in");
        assert_eq!(asked(&OLD.replace("class C {", "class C extends D {")), ["C"]);
        // Of a flat answer the name is looked for, and it is not the first letter of `function`.
        assert_eq!(asked(&OLD.replace("f() {}", "g() {}")), ["f"]);
        assert_eq!(
            asked(&OLD.replace("export { b }", "export { c }")),
            ["b", "b"],
            "what is given on, and the path"
        );
        assert_eq!(asked(&OLD.replace("import { a }", "import { d }")), Vec::<String>::new());
        assert_eq!(asked(&format!("{OLD}\nfunction g() {{}}\n")), Vec::<String>::new());
        assert_eq!(asked(""), ["one", "two", "C", "f", "b", "b"], "all of it goes");
    }
}
