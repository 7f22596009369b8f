//! Installing a server into Haft's own folder.

use std::path::Path;

use haft_system::{ProcessSpec, RunBounds, Supervisor};
use tokio_util::sync::CancellationToken;

use crate::limits::{INSTALL, STDERR_BYTES};

/// Carries out the commands of [`super::InstallStep::Own`] for a folder, which is emptied first. `say` hears each command before it runs. What a
/// failed attempt has left is removed, so that half a server is never found.
pub async fn install(
    processes: &Supervisor,
    commands: &[Vec<String>],
    place: &Path,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<(), String> {
    let clear = || match std::fs::remove_dir_all(place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{} cannot be cleared: {error}", place.display()))
        }
        _ => Ok(()),
    };
    clear()?;
    std::fs::create_dir_all(place).map_err(|error| format!("{} cannot be made: {error}", place.display()))?;
    for command in commands {
        let filled: Vec<String> =
            command.iter().map(|part| part.replace("{place}", &place.display().to_string())).collect();
        let line = filled.join(" ");
        say(&line);
        let Some((program, arguments)) = filled.split_first() else { continue };
        let spec = ProcessSpec::new(program, place).args(arguments.iter().cloned()).label(&line);
        let bounds = RunBounds { time: Some(INSTALL), capture_bytes: STDERR_BYTES };
        let ran = processes.run(spec, bounds, &CancellationToken::new(), &mut |_| {}).await;
        let why = match ran {
            Ok(finished) if finished.exit.success() => continue,
            Ok(finished) => {
                let mut said = String::from_utf8_lossy(&finished.stderr.head).into_owned();
                said.push_str(&String::from_utf8_lossy(&finished.stderr.tail));
                format!("`{line}` failed ({}):\n{}", finished.exit, said.trim())
            }
            Err(error) => error.to_string(),
        };
        // The first error is the one that counts.
        let _ = clear();
        return Err(why);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_system::Environment;
    use pretty_assertions::assert_eq;

    fn lines(lines: &[&[&str]]) -> Vec<Vec<String>> {
        lines.iter().map(|line| line.iter().map(|part| (*part).to_owned()).collect()).collect()
    }

    #[tokio::test]
    async fn a_failed_attempt_leaves_nothing_that_could_be_found() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("servers/x");
        let processes = Supervisor::new(Environment::capture());
        let mut said = Vec::new();
        let good = lines(&[&["mkdir", "{place}/bin"], &["touch", "{place}/bin/x"]]);
        install(&processes, &good, &place, &mut |line| said.push(line.to_owned())).await.unwrap();
        assert!(place.join("bin/x").exists());
        let at = place.display();
        assert_eq!(said, [format!("mkdir {at}/bin"), format!("touch {at}/bin/x")]);
        let bad = lines(&[&["mkdir", "{place}/bin"], &["sh", "-c", "echo no network >&2; exit 7"]]);
        let error = install(&processes, &bad, &place, &mut |_| {}).await.unwrap_err();
        assert_eq!(error, "`sh -c echo no network >&2; exit 7` failed (exit code 7):\nno network");
        assert!(!place.exists());
    }
}
