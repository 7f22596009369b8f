//! Files with the whole of long output (SPEC E6, H7). The bytes are artifacts of the transcript; the files are where `read` and `search` find
//! them, and are made again when a conversation is taken up without them: on another machine, from a backup, or as a fork whose
//! origin's files are gone.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use haft_store::Store;

use crate::{host::create_private, transcript::KeptFile};

/// Where the files of `kept` are, each there again if it can be, and what people should know. A fork's are in its origin's directory too.
pub(crate) async fn restore(
    store: &dyn Store,
    state: &Path,
    kept: &[KeptFile],
) -> (Vec<PathBuf>, Vec<String>) {
    let mut directories = BTreeSet::new();
    let mut lost = Vec::new();
    for kept in kept {
        // What another version may have written is not turned into a path.
        let Some((conversation, name)) = kept.place() else { continue };
        let directory = state.join("outputs").join(conversation);
        let file = directory.join(name);
        if !file.exists()
            && let Err(why) = bring_back(store, kept, &directory, &file).await
        {
            lost.push(format!("{} ({why})", file.display()));
        }
        if directory.is_dir() {
            directories.insert(directory);
        }
    }
    let notices = match lost.as_slice() {
        [] => Vec::new(),
        lost => vec![format!("Long output of earlier calls cannot be read any more: {}.", lost.join(", "))],
    };
    (directories.into_iter().collect(), notices)
}

async fn bring_back(store: &dyn Store, kept: &KeptFile, directory: &Path, file: &Path) -> Result<(), String> {
    let artifact = store.artifact(&kept.artifact).await.map_err(|error| error.to_string())?;
    let (directory, file) = (directory.to_owned(), file.to_owned());
    let write = move || -> io::Result<()> {
        create_private(&directory)?;
        let temporary = file.with_extension("part");
        fs::write(&temporary, artifact.data)?;
        fs::rename(temporary, file)
    };
    let written = tokio::task::spawn_blocking(write).await.map_err(|error| error.to_string())?;
    written.map_err(|error| error.to_string())
}
