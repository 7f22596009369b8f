//! Odd places, the same for every server: a root with every odd character, Windows line ends and byte order marks, a root inside a root, a directory reached through a link, files that go
//! and come back, and two conversations at once.

use haft_tool::Outcome;
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::{
    C, GO, PYTHON, RUST, TYPESCRIPT,
    support::{self, Project, path_with},
};

type Files = &'static [(&'static str, &'static str)];

struct Case {
    id: &'static str,
    programs: &'static [&'static str],
    package: Option<(&'static str, &'static str)>,
    files: Files,
    /// The file and line with a use after an emoji, and one after a CJK text.
    main: &'static str,
    lines: [u32; 2],
    name: &'static str,
    definition: (&'static str, u32),
    references: &'static [&'static str],
    /// Whether a server takes a root inside another as one of its own.
    nests: bool,
    /// Whether it deals with a byte order mark: pyrefly does not find the uses of what a file with one defines.
    marks: bool,
}

const ROOT: &str = "dír é 日本 #1 [x] 100%25 a+b@c";

const SERVERS: &[&str] = &[
    "pyright",
    "basedpyright",
    "ty",
    "pyrefly",
    "ruff",
    "tsgo",
    "typescript-language-server",
    "vtsls",
    "eslint",
];

impl Case {
    /// The text of a file of the project: with a byte order mark and Windows line ends where it is no configuration.
    fn odd(&self, file: &str, text: &str) -> String {
        let mark = if self.marks { "\u{feff}" } else { "" };
        if self.is_code(file) { format!("{mark}{}", text.replace('\n', "\r\n")) } else { text.to_owned() }
    }

    fn is_code(&self, file: &str) -> bool {
        std::path::Path::new(file).extension() == std::path::Path::new(self.main).extension()
    }

    /// The file with the definition, which stands three lines further down.
    fn shifted(&self) -> String {
        let (file, _) = self.definition;
        let text = self.files.iter().find(|(name, _)| *name == file).unwrap().1;
        // Not before a package clause.
        let text =
            if self.id == "gopls" { text.replacen('\n', "\n\n\n\n", 1) } else { format!("\n\n\n{text}") };
        self.odd(file, &text)
    }

    async fn run(&self) {
        let Some(path) = path_with(self.programs) else { return };
        let root = "outer";
        let mut files: Vec<(String, String)> = Vec::new();
        for (file, text) in self.files {
            let inside = |directory: &str| text.replace("ROOT", &format!("ROOT/{directory}"));
            let outer = match *file {
                // Cargo takes a package below another for a member that was forgotten.
                "Cargo.toml" => format!("{text}\n[workspace]\nexclude = [\"inner\"]\n"),
                file => self.odd(file, &inside(root)),
            };
            files.push((format!("{root}/{file}"), outer));
            if self.nests {
                let inner = match *file {
                    "Cargo.toml" => format!("{}\n[workspace]\n", text.replace("\"x\"", "\"y\"")),
                    file => self.odd(file, &inside("outer/inner")),
                };
                files.push((format!("{root}/inner/{file}"), inner));
            }
        }
        let files: Vec<(&str, &str)> = files.iter().map(|(file, text)| (&**file, &**text)).collect();
        let mut project = Project::new(ROOT, path, &files);
        if let Some((item, package)) = self.package
            && !support::link_package(&project, item, package)
        {
            return;
        }
        let others: Vec<&str> = SERVERS.iter().copied().filter(|id| *id != self.id).collect();
        project.switch_off(&others);
        std::os::unix::fs::symlink(root, project.root.join("link")).unwrap();
        self.ask(&project, root).await;
        project.checkout.servers().shut_down().await;
        assert_eq!(project.supervisor.running(), []);
    }

    async fn ask(&self, project: &Project, root: &str) {
        let (id, name) = (self.id, self.name);
        let (definition, line) = self.definition;
        let main = format!("{root}/{}", self.main);
        let expected = vec![format!("{root}/{definition}:{line}")];
        // Two conversations at once, with a first question each.
        let again = {
            let mut again = project.again();
            again.switch_off(&SERVERS.iter().copied().filter(|other| *other != id).collect::<Vec<_>>());
            again
        };
        let (one, other) = tokio::join!(
            project.places("definition", &main, self.lines[0], name),
            again.places("definition", &main, self.lines[1], name)
        );
        assert_eq!((&one, &other), (&expected, &expected), "{id}: definition");
        assert_eq!(project.checkout.running().len(), 1, "{id}: two conversations share a server");
        assert_eq!(project.checkout.running()[0].id(), id);
        let references: Vec<String> = self.references.iter().map(|place| format!("{root}/{place}")).collect();
        let mut found = project.places("references", &expected_file(&expected), line, name).await;
        // A root inside belongs to the outer one too, and what its files import is the server's to say.
        found.retain(|place| !place.starts_with(&format!("{root}/inner/")));
        assert_eq!(found, references, "{id}: references");
        // Through a link it is the same file, under its own name.
        let link = format!("link/{}", self.main);
        assert_eq!(
            project.places("definition", &link, self.lines[0], name).await,
            expected,
            "{id}: through a link"
        );
        let clean = project.lsp(json!({ "action": "diagnostics", "file": main })).await;
        assert_eq!(clean.structured["verified"], json!(true), "{id}: {}", clean.all_text());
        assert_eq!(errors(&clean), 0, "{id}: {}", clean.all_text());
        if self.nests {
            let inner = format!("{root}/inner/{}", self.main);
            assert_eq!(
                project.places("definition", &inner, self.lines[0], name).await,
                [format!("{root}/inner/{definition}:{line}")],
                "{id}: in a root inside a root"
            );
            let roots: Vec<String> = project
                .checkout
                .running()
                .iter()
                .map(|server| project.checkout.workdir().show(server.root()))
                .collect();
            assert_eq!(roots, [root.to_owned(), format!("{root}/inner")], "{id}");
        }
        // Gone, and back with another text, behind the server's back.
        let file = project.root.join(root).join(definition);
        std::fs::remove_file(&file).unwrap();
        let gone = project.ask("hover", &format!("{root}/{definition}"), line, name).await;
        assert!(gone.is_error && gone.all_text().contains("There is no file"), "{id}: {}", gone.all_text());
        std::fs::write(&file, self.shifted()).unwrap();
        assert_eq!(
            project.places("definition", &main, self.lines[1], name).await,
            [format!("{root}/{definition}:{}", line + 3)],
            "{id}: back with another text"
        );
    }
}

fn expected_file(places: &[String]) -> String {
    places[0].rsplit_once(':').unwrap().0.to_owned()
}

fn errors(outcome: &Outcome) -> usize {
    let list = outcome.structured["diagnostics"].as_array().unwrap();
    list.iter().filter(|one| one["severity"] == "error").count()
}

const PYTHON_CASE: Case = Case {
    id: "pyright",
    programs: &["pyright-langserver"],
    package: None,
    files: PYTHON,
    main: "main.py",
    lines: [3, 4],
    name: "greet",
    definition: ("util.py", 1),
    references: &["main.py:1", "main.py:3", "main.py:4", "util.py:1"],
    nests: true,
    marks: true,
};

const TYPESCRIPT_CASE: Case = Case {
    id: "typescript-language-server",
    programs: &["typescript-language-server"],
    package: Some(("typescript-language-server", "typescript")),
    files: TYPESCRIPT,
    main: "main.ts",
    lines: [3, 4],
    name: "greet",
    definition: ("util.ts", 1),
    references: &["main.ts:1", "main.ts:3", "main.ts:4", "util.ts:1"],
    nests: true,
    marks: true,
};

#[tokio::test]
async fn pyright() {
    PYTHON_CASE.run().await;
}

#[tokio::test]
async fn basedpyright() {
    Case { id: "basedpyright", programs: &["basedpyright-langserver"], ..PYTHON_CASE }.run().await;
}

#[tokio::test]
async fn ty() {
    Case { id: "ty", programs: &["ty"], ..PYTHON_CASE }.run().await;
}

#[tokio::test]
async fn pyrefly() {
    Case { id: "pyrefly", programs: &["pyrefly"], marks: false, ..PYTHON_CASE }.run().await;
}

#[tokio::test]
async fn typescript_language_server() {
    TYPESCRIPT_CASE.run().await;
}

#[tokio::test]
async fn vtsls() {
    Case { id: "vtsls", programs: &["vtsls"], ..TYPESCRIPT_CASE }.run().await;
}

#[tokio::test]
async fn typescript_7() {
    let package = Some(("typescript-7", "typescript"));
    Case { id: "tsgo", programs: &[], package, ..TYPESCRIPT_CASE }.run().await;
}

#[tokio::test]
async fn clangd() {
    let case = Case {
        id: "clangd",
        programs: &["clangd"],
        package: None,
        files: C,
        main: "main.c",
        lines: [4, 5],
        name: "greet",
        definition: ("util.c", 3),
        references: &["main.c:4", "main.c:5", "util.c:3", "util.h:1"],
        // The topmost of an unbroken row is its root.
        nests: false,
        marks: true,
    };
    case.run().await;
}

#[tokio::test]
async fn gopls() {
    let case = Case {
        id: "gopls",
        programs: &["gopls", "go"],
        package: None,
        files: GO,
        main: "main.go",
        lines: [4, 5],
        name: "Greet",
        definition: ("util.go", 3),
        references: &["main.go:4", "main.go:5", "util.go:3"],
        nests: true,
        marks: true,
    };
    case.run().await;
}

#[tokio::test]
async fn rust_analyzer() {
    let case = Case {
        id: "rust-analyzer",
        programs: &["rust-analyzer", "cargo"],
        package: None,
        files: RUST,
        main: "src/main.rs",
        lines: [5, 6],
        name: "greet",
        definition: ("src/util.rs", 1),
        references: &["src/main.rs:2", "src/main.rs:5", "src/main.rs:6", "src/util.rs:1"],
        nests: true,
        marks: true,
    };
    case.run().await;
}
