//! How a server can be had: the one table that `haft doctor` and the tests' provisioning share.

use serde::Deserialize;

/// The ways to a server, each a list of packages; empty where it cannot be had that way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Install {
    /// Packages from npm, with versions where they matter.
    #[serde(default)]
    pub npm: Vec<String>,
    /// Packages from PyPI.
    #[serde(default)]
    pub pip: Vec<String>,
    /// Packages of a Debian-like system.
    #[serde(default)]
    pub apt: Vec<String>,
    /// `rustup component add`.
    #[serde(default)]
    pub rustup: Vec<String>,
    /// `go install`.
    #[serde(default)]
    pub go: Vec<String>,
    /// `gem install`.
    #[serde(default)]
    pub gem: Vec<String>,
    /// Where to read how, for those that come with something bigger (the Dart SDK).
    #[serde(default)]
    pub see: Option<String>,
}

/// One way to install a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstallStep {
    /// Commands that install into a folder of Haft's own, one after another; Haft may run them. `{place}` stands for the folder.
    Own(Vec<Vec<String>>),
    /// A command that changes the system or the person's own tools, so that a person runs it.
    System(String),
    /// Words.
    See(String),
}

impl Install {
    /// The ways, the ones that Haft can go by itself first.
    pub fn steps(&self) -> Vec<InstallStep> {
        let mut steps = Vec::new();
        let own = |line: &[&str], packages: &[String]| {
            line.iter()
                .map(|part| (*part).to_owned())
                .chain(packages.iter().cloned())
                .collect::<Vec<String>>()
        };
        if !self.npm.is_empty() {
            let line =
                ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", "{place}"];
            steps.push(InstallStep::Own(vec![own(&line, &self.npm)]));
        }
        if !self.pip.is_empty() {
            let pip = [
                "{place}/bin/python",
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--upgrade",
            ];
            steps.push(InstallStep::Own(vec![
                own(&["python3", "-m", "venv", "{place}"], &[]),
                own(&pip, &self.pip),
            ]));
        }
        for (packages, command) in [
            (&self.rustup, "rustup component add"),
            (&self.go, "go install"),
            (&self.gem, "gem install"),
            (&self.apt, "apt-get install --no-install-recommends"),
        ] {
            if !packages.is_empty() {
                steps.push(InstallStep::System(format!("{command} {}", packages.join(" "))));
            }
        }
        if let Some(see) = &self.see {
            steps.push(InstallStep::See(see.clone()));
        }
        steps
    }

    /// The first way, as a command or words for a person who adds the server to the project or the system.
    pub fn hint(&self) -> Option<String> {
        if !self.npm.is_empty() {
            return Some(format!("npm install --save-dev {}", self.npm.join(" ")));
        }
        if !self.pip.is_empty() {
            return Some(format!("pip install {}", self.pip.join(" ")));
        }
        self.steps().into_iter().find_map(|step| match step {
            InstallStep::System(words) | InstallStep::See(words) => Some(words),
            InstallStep::Own(_) => None,
        })
    }
}
