//! The magics that the worker knows. `magics.py` answers them; a test holds the two lists against each other.

/// Line magics.
pub(super) const LINE: &[&str] = &[
    "aimport",
    "autoreload",
    "cd",
    "colors",
    "conda",
    "config",
    "doctest_mode",
    "env",
    "ll",
    "load",
    "load_ext",
    "ls",
    "lsmagic",
    "magic",
    "mamba",
    "matplotlib",
    "micromamba",
    "pdef",
    "pdoc",
    "pfile",
    "pinfo",
    "pinfo2",
    "pip",
    "pprint",
    "precision",
    "psearch",
    "psource",
    "pwd",
    "pycat",
    "pylab",
    "quickref",
    "reload_ext",
    "reset",
    "reset_selective",
    "run",
    "set_env",
    "sx",
    "system",
    "time",
    "timeit",
    "unload_ext",
    "uv",
    "who",
    "who_ls",
    "whos",
    "xdel",
    "xmode",
];

/// Cell magics.
pub(super) const CELL: &[&str] = &[
    "!",
    "HTML",
    "SVG",
    "bash",
    "capture",
    "file",
    "html",
    "latex",
    "markdown",
    "node",
    "perl",
    "python",
    "python3",
    "ruby",
    "script",
    "sh",
    "svg",
    "sx",
    "system",
    "time",
    "timeit",
    "writefile",
];

/// Cell magics whose body is Python and may hold magics itself.
pub(super) const PYTHON_BODY: &[&str] = &["capture", "time", "timeit"];

/// Cell magics whose body is a shell script.
pub(super) const SHELL_BODY: &[&str] = &["!", "bash", "sh", "sx", "system"];

/// A sentence that says what an unknown magic might have been meant to be.
pub(super) fn unknown(name: &str, cell: bool) -> String {
    let (own, other) = if cell { (CELL, LINE) } else { (LINE, CELL) };
    let (mark, other_mark) = if cell { ("%%", "%") } else { ("%", "%%") };
    if other.contains(&name) {
        return if cell {
            format!("there is no cell magic `%%{name}`, only the line magic `%{name}`.")
        } else {
            format!("`%%{name}` is a cell magic: it takes the whole cell and stands on its first line.")
        };
    }
    let nearest = own
        .iter()
        .map(|known| (distance(name, known), mark, *known))
        .chain(other.iter().map(|known| (distance(name, known) + 1, other_mark, *known)))
        .min_by_key(|(distance, ..)| *distance);
    let kind = if cell { "cell magic" } else { "magic" };
    match nearest {
        Some((_, mark, known)) => format!(
            "there is no {kind} `{}{name}`; the nearest is `{mark}{known}`.",
            if cell { "%%" } else { "%" }
        ),
        None => format!("there is no {kind} `{name}`."),
    }
}

/// Edits (insert, remove, replace) between two names.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn the_nearest_name_is_told() {
        assert_eq!(unknown("pipp", false), "there is no magic `%pipp`; the nearest is `%pip`.");
        assert_eq!(unknown("bsh", true), "there is no cell magic `%%bsh`; the nearest is `%%bash`.");
        assert_eq!(
            unknown("bash", false),
            "`%%bash` is a cell magic: it takes the whole cell and stands on its first line."
        );
        assert_eq!(unknown("pip", true), "there is no cell magic `%%pip`, only the line magic `%pip`.");
    }
}
